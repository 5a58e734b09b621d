//! Tail probabilities and quantiles of the normal, Student's and the
//! symmetric binomial distribution.
//!
//! All are computed without coefficient tables and without trigonometry,
//! which would be most of a firmware's statistics: the normal tail is a series
//! or a continued fraction (Abramowitz and Stegun, 26.2.11 and 26.2.14);
//! Student's for whole degrees of freedom is the finite trigonometric series
//! (26.7.3 and 26.7.4) at angles made by halving a right one; quantiles invert
//! them by Newton's method or bisection.

use core::f64::consts::{FRAC_PI_2, LN_2, PI};
use core::ops::Add;

use crate::number::{exp, larger, log, smaller, sqrt};

/// Degrees of freedom above which Student's quantile comes from the
/// Cornish-Fisher expansion (A&S 26.7.5), which is then good to 10⁻⁶ at the
/// tails used here.
const SERIES_LIMIT: u32 = 100;

/// Where the series of the normal tail hands over to the fraction: beyond,
/// one half less the series cancels.
const FRACTION_FROM: f64 = 2.0;
/// Levels of the fraction, enough from [`FRACTION_FROM`] on.
const FRACTION_LEVELS: u32 = 100;

/// P(Z > z) of a standard normal variable, with a relative error below 10⁻¹³ up to z = 20.
pub(crate) fn normal_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - normal_tail(-z);
    }
    if z > FRACTION_FROM {
        // φ(z) / (z + 1/(z + 2/(z + 3/(z + …))))
        let rest = (1..=FRACTION_LEVELS).rev().fold(z, |rest, level| z + f64::from(level) / rest);
        return normal_density(z) / rest;
    }
    // ½ − φ(z)·(z + z³/3 + z⁵/(3·5) + …)
    let (mut term, mut sum, mut odd) = (z, z, 3.0);
    while term > 1e-17 * sum {
        term *= z * z / odd;
        sum += term;
        odd += 2.0;
    }
    0.5 - normal_density(z) * sum
}

fn normal_density(z: f64) -> f64 {
    exp(-0.5 * z * z) / sqrt(2.0 * PI)
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
    let target = log(tail);
    let mut z = sqrt(-2.0 * target);
    for _ in 0..12 {
        let upper = normal_tail(z);
        let step = (log(upper) - target) * upper / normal_density(z);
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
    // In θ = atan(t/√ν) the two-sided tail falls from 1 at 0 to 0 at π/2.
    let mut angle = Angle { length: 0.0, sine: 0.0, cosine: 1.0 };
    let mut step = Angle { length: FRAC_PI_2, sine: 1.0, cosine: 0.0 };
    for _ in 0..60 {
        step = step.half();
        let middle = angle + step;
        if 1.0 - student_central(middle, degrees_of_freedom) > 2.0 * tail {
            angle = middle;
        }
    }
    // What is left of the cosine there may be rounding, of either sign.
    angle.sine / larger(angle.cosine, f64::EPSILON) * sqrt(f64::from(degrees_of_freedom))
}

/// An angle between 0 and π/2 with its sine and cosine.
#[derive(Clone, Copy)]
struct Angle {
    length: f64,
    sine: f64,
    cosine: f64,
}

impl Angle {
    fn half(self) -> Self {
        let cosine = sqrt(0.5 * (1.0 + self.cosine));
        Self { length: 0.5 * self.length, sine: 0.5 * self.sine / cosine, cosine }
    }
}

impl Add for Angle {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            length: self.length + other.length,
            sine: self.sine * other.cosine + self.cosine * other.sine,
            cosine: self.cosine * other.cosine - self.sine * other.sine,
        }
    }
}

/// P(|T| < t) with t = √ν·tan θ, by the finite series in cos θ.
fn student_central(angle: Angle, degrees_of_freedom: u32) -> f64 {
    let Angle { length: theta, sine, cosine } = angle;
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
    if odd { (theta + sine * sum) / FRAC_PI_2 } else { sine * sum }
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
    let mut mass = exp(-size * LN_2);
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
    MedianRanks { outside, coverage: larger(1.0 - 2.0 * below, 0.0) }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the rank is between 0 and count/2 by the clamp"
)]
fn normal_median_ranks(count: usize, tail: f64) -> MedianRanks {
    let size = count as f64;
    let root = sqrt(size);
    let rank = smaller((size - normal_upper(tail) * root) / 2.0, size / 2.0);
    let outside = larger(rank - 1.0, 0.0) as usize;
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
    fn the_normal_tail_is_the_error_function() {
        for step in -160..=400 {
            let z = f64::from(step) / 20.0;
            let expected = 0.5 * libm::erfc(z / core::f64::consts::SQRT_2);
            let got = normal_tail(z);
            assert!((got / expected - 1.0).abs() < 1e-13, "{z}: {got} instead of {expected}");
        }
        assert!(normal_tail(f64::INFINITY) < f64::MIN_POSITIVE);
        assert!(normal_tail(f64::NAN).is_nan());
    }

    #[test]
    fn student_quantiles_of_one_and_two_degrees_have_closed_forms() {
        for tail in [0.499, 0.4, 0.25, 0.1, 0.025, 1e-3, 1e-5, 1e-7] {
            let one = 1.0 / libm::tan(PI * tail);
            let two = (1.0 - 2.0 * tail) / libm::sqrt(2.0 * tail * (1.0 - tail));
            for (degrees, expected) in [(1, one), (2, two)] {
                let got = student_upper(tail, degrees);
                let error = (got / expected - 1.0).abs();
                assert!(error < 1e-15 / tail + 1e-13, "{tail} {degrees}: {got} {expected}");
            }
        }
    }

    #[test]
    fn absurd_levels_have_large_but_finite_quantiles() {
        for tail in [1e-15, 1e-17, 1e-300] {
            for degrees in [1, 2, 3, 10, 100] {
                let quantile = student_upper(tail, degrees);
                assert!(quantile.is_finite() && quantile > 9.0, "{tail} {degrees}: {quantile}");
            }
        }
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
