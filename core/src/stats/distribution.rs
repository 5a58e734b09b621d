//! Tail probabilities and quantiles of the normal, Student's and the
//! symmetric binomial distribution.
//!
//! All are computed from `libm` (no coefficient tables): the normal tail is
//! `erfc`; Student's for whole degrees of freedom is the finite trigonometric
//! series (Abramowitz and Stegun, 26.7.3 and 26.7.4); quantiles invert them by
//! Newton's method or bisection.

use core::f64::consts::{FRAC_PI_2, LN_2, PI, SQRT_2};

/// Degrees of freedom above which Student's quantile comes from the
/// Cornish-Fisher expansion (A&S 26.7.5), which is then good to 10⁻⁶ at the
/// tails used here.
const SERIES_LIMIT: u32 = 100;

/// P(Z > z) of a standard normal variable.
pub(crate) fn normal_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// The z with P(Z > z) = `tail`, for `tail` in (0, 1).
pub(crate) fn normal_upper(tail: f64) -> f64 {
    if tail > 0.5 {
        return -normal_upper(1.0 - tail);
    }
    if tail <= 0.0 {
        return f64::INFINITY;
    }
    // ln P(Z > z) is concave, so Newton's method on it converges from the right.
    let target = libm::log(tail);
    let mut z = libm::sqrt(-2.0 * target);
    for _ in 0..12 {
        let upper = normal_tail(z);
        let density = libm::exp(-0.5 * z * z) / libm::sqrt(2.0 * PI);
        let step = (libm::log(upper) - target) * upper / density;
        if !step.is_finite() {
            break;
        }
        z += step;
        if step.abs() < 1e-14 {
            break;
        }
    }
    z
}

/// The t with P(T > t) = `tail` for Student's distribution, `tail` in
/// (0, 0.5]; infinite without degrees of freedom.
pub(crate) fn student_upper(tail: f64, degrees_of_freedom: u32) -> f64 {
    if degrees_of_freedom == 0 || tail <= 0.0 {
        return f64::INFINITY;
    }
    if degrees_of_freedom > SERIES_LIMIT {
        return cornish_fisher(normal_upper(tail), f64::from(degrees_of_freedom));
    }
    // In w the two-sided tail falls from 1 at 0 to 0 at 1, where t/√ν = w/(1 − w).
    let tangent = |w: f64| w / (1.0 - w);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if 1.0 - student_central(tangent(middle), degrees_of_freedom) > 2.0 * tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    // The lower end stays below 1 where the middle of both may not.
    tangent(low) * libm::sqrt(f64::from(degrees_of_freedom))
}

/// P(|T| < t) with t = √ν·tan θ, by the finite series in cos θ. Sine and
/// cosine come from the tangent: trigonometric functions take six kilobytes
/// of a firmware.
fn student_central(tangent: f64, degrees_of_freedom: u32) -> f64 {
    let cosine = 1.0 / libm::sqrt(1.0 + tangent * tangent);
    let sine = tangent * cosine;
    let odd = degrees_of_freedom % 2 == 1;
    let first = if odd { cosine } else { 1.0 };
    let mut term = first;
    let mut sum = if degrees_of_freedom == 1 { 0.0 } else { first };
    // Terms carry cos^k with k = 0, 2, 4 … (ν even) or 1, 3, 5 … (ν odd), up to ν − 2.
    let mut power = if odd { 3 } else { 2 };
    while power + 2 <= degrees_of_freedom {
        term *= f64::from(power - 1) / f64::from(power) * cosine * cosine;
        sum += term;
        power += 2;
    }
    if odd { (libm::atan(tangent) + sine * sum) / FRAC_PI_2 } else { sine * sum }
}

/// Student's quantile from the normal one for many degrees of freedom.
fn cornish_fisher(z: f64, degrees_of_freedom: f64) -> f64 {
    let square = z * z;
    let first = z * (square + 1.0) / 4.0;
    let second = z * ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let third = z * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
    let inverse = 1.0 / degrees_of_freedom;
    z + inverse * (first + inverse * (second + inverse * third))
}

/// Ranks of the distribution-free interval of a median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MedianRanks {
    /// Elements left out at each end.
    pub(crate) outside: usize,
    /// P(the interval covers the median).
    pub(crate) coverage: f64,
}

/// Sample size up to which the binomial sum is exact; 2⁻ⁿ stays a normal
/// double well past it.
const EXACT_LIMIT: usize = 1_000;

/// How many elements to leave out at each end of `count` sorted ones so that
/// the rest covers the median with at least 1 − 2·`tail`; none when even the
/// whole sample does not (see `coverage`).
///
/// P(median below the (l+1)-th of n) = P(Bin(n, ½) ≤ l): exact for up to
/// [`EXACT_LIMIT`] elements, beyond that the normal approximation
/// l + 1 = ⌊(n − z√n)/2⌋.
pub(crate) fn median_ranks(count: usize, tail: f64) -> MedianRanks {
    if count > EXACT_LIMIT {
        return normal_median_ranks(count, tail);
    }
    let size = count as f64;
    let mut mass = libm::exp(-size * LN_2);
    let mut below = mass;
    let mut outside = 0;
    // The next step would leave out one more: P(Bin ≤ outside + 1).
    while outside + 1 < count.div_ceil(2) {
        let next = (outside + 1) as f64;
        mass *= (size - next + 1.0) / next;
        if below + mass > tail {
            break;
        }
        below += mass;
        outside += 1;
    }
    MedianRanks { outside, coverage: (1.0 - 2.0 * below).max(0.0) }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the rank is between 0 and count/2 by the clamp"
)]
fn normal_median_ranks(count: usize, tail: f64) -> MedianRanks {
    let size = count as f64;
    let root = libm::sqrt(size);
    let rank = libm::floor((size - normal_upper(tail) * root) / 2.0);
    let outside = (rank - 1.0).min(size / 2.0 - 1.0).max(0.0) as usize;
    // With continuity correction: P(Bin(n, ½) ≤ outside).
    let z = (size - 2.0 * outside as f64 - 1.0) / root;
    MedianRanks { outside, coverage: 1.0 - 2.0 * normal_tail(z) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles_match_the_tables() {
        for (tail, z) in [
            (0.5, 0.0),
            (0.025, 1.959_963_984_540_054),
            (0.005, 2.575_829_303_548_901),
            (1e-6, 4.753_424_308_822_899),
            (0.975, -1.959_963_984_540_054),
        ] {
            assert!((normal_upper(tail) - z).abs() < 1e-9, "{tail}: {}", normal_upper(tail));
        }
        assert!((normal_tail(normal_upper(1e-12)) / 1e-12 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn student_quantiles_match_the_tables() {
        for (tail, degrees, t) in [
            (0.025, 1, 12.706_204_736),
            (0.025, 2, 4.302_652_730),
            (0.025, 3, 3.182_446_305),
            (0.05, 2, 2.919_985_580),
            (0.10, 10, 1.372_183_641),
            (0.025, 5, 2.570_581_836),
            (0.005, 10, 3.169_272_673),
            (0.025, 30, 2.042_272_456),
            (0.000_5, 60, 3.460_200_5),
            (0.025, 100, 1.983_971_518),
            (0.025, 120, 1.979_930_405),
        ] {
            let got = student_upper(tail, degrees);
            assert!((got - t).abs() < 2e-6, "{tail} {degrees}: {got} instead of {t}");
        }
        assert!(student_upper(0.025, 0).is_infinite());
    }

    #[test]
    fn the_expansion_joins_the_series() {
        for tail in [0.1, 0.025, 1e-3, 1e-5] {
            let (below, above) = (student_upper(tail, 100), student_upper(tail, 101));
            assert!(below > above && below - above < 5e-3, "{tail}: {below} {above}");
        }
    }

    #[test]
    fn median_ranks_are_the_known_ones() {
        // n = 6: [x1, x6] covers 96.9 %; n = 10: [x2, x9] covers 97.9 %.
        assert_eq!(median_ranks(6, 0.025), MedianRanks { outside: 0, coverage: 0.968_75 });
        let ten = median_ranks(10, 0.025);
        assert_eq!(ten.outside, 1);
        assert!((ten.coverage - 0.978_515_625).abs() < 1e-12);
        // n = 5 does not reach 95 %, and says so.
        assert!(median_ranks(5, 0.025).coverage < 0.95);
        assert_eq!(median_ranks(1, 0.025), MedianRanks { outside: 0, coverage: 0.0 });
        assert_eq!(median_ranks(0, 0.025).outside, 0);
    }

    #[test]
    fn exact_and_approximate_ranks_agree_where_they_meet() {
        for count in [500, 900, 1_000] {
            let (exact, normal) = (median_ranks(count, 0.025), normal_median_ranks(count, 0.025));
            assert!(exact.outside.abs_diff(normal.outside) <= 1, "{exact:?} {normal:?}");
            assert!((exact.coverage - normal.coverage).abs() < 0.01);
        }
    }
}
