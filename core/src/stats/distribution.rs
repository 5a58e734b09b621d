//! Quantiles of the normal, Student's and the symmetric binomial
//! distribution.
//!
//! No coefficient tables, exponentials or trigonometric functions are used, as they would be most
//! of the code of a firmware's statistics. The normal quantile comes from a series (Abramowitz and
//! Stegun, 26.2.11). Student's distribution for whole degrees of freedom is the finite
//! trigonometric series (26.7.3 and 26.7.4), evaluated at angles made by halving a right angle and
//! inverted by bisection.

use core::f64::consts::FRAC_PI_2;
use core::ops::Add;

use crate::number::{larger, log, sqrt};

/// Degrees of freedom above which Student's quantile comes from the Cornish-Fisher expansion (A&S
/// 26.7.5), whose error there is below 10⁻⁸ at the usual tails.
const SERIES_LIMIT: u32 = 1_000;

/// ln √(2π)
const LN_ROOT_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// The z with P(Z > z) = `tail`, for `tail` in (0, ½]. The precision of ½ − `tail` as a double
/// limits z to 8.3.
///
/// P(0 < Z < z) divided by the density at z is z + z³/3 + z⁵/(3·5) + …, which is also the
/// reciprocal of the derivative of ln P(0 < Z < z). That logarithm is concave, so Newton's method
/// ascends to the solution without overshooting.
pub(crate) fn normal_upper(tail: f64) -> f64 {
    let central = 0.5 - tail;
    if central <= 0.0 {
        return 0.0;
    }
    let target = log(central) + LN_ROOT_TWO_PI;
    let (mut z, mut step) = (central, central);
    while step >= 1e-14 * z {
        let square = z * z;
        let (mut term, mut ratio, mut odd) = (z, 0.0, 1.0);
        while term > 1e-17 * ratio {
            ratio += term;
            odd += 2.0;
            term *= square / odd;
        }
        step = ratio * (target + 0.5 * square - log(ratio));
        z += step;
    }
    z
}

/// The t with P(T > t) = `tail` for Student's distribution, `tail` in (0, 0.5]; infinite for 0
/// degrees of freedom.
#[must_use]
pub fn student_upper(tail: f64, degrees_of_freedom: u32) -> f64 {
    if degrees_of_freedom == 0 || tail <= 0.0 {
        return f64::INFINITY;
    }
    if degrees_of_freedom > SERIES_LIMIT {
        return cornish_fisher(normal_upper(tail), f64::from(degrees_of_freedom));
    }
    // As a function of θ = atan(t/√ν), the two-sided tail falls from 1 at 0 to 0 at π/2.
    let mut angle = Angle { length: 0.0, sine: 0.0, cosine: 1.0 };
    let mut step = Angle { length: FRAC_PI_2, sine: 1.0, cosine: 0.0 };
    for _ in 0..60 {
        step = step.half();
        let middle = angle + step;
        if 1.0 - student_central(middle, degrees_of_freedom) > 2.0 * tail {
            angle = middle;
        }
    }
    // Near π/2 the cosine may be nothing but rounding error, of either sign.
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

/// Student's quantile from the normal one `z`, for many degrees of freedom.
fn cornish_fisher(z: f64, degrees_of_freedom: f64) -> f64 {
    let square = z * z;
    let first = z * (square + 1.0) / 4.0;
    let second = z * ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let inverse = 1.0 / degrees_of_freedom;
    z + inverse * (first + inverse * second)
}

/// Order statistics that enclose the median at a given confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MedianRanks {
    /// Elements excluded at each end.
    pub(crate) outside: usize,
    /// P(the interval covers the median).
    pub(crate) coverage: f64,
}

/// Half-width of the evaluated part of the binomial distribution, in units of √n, that is, of two
/// standard deviations. The ignored tails are below 10⁻¹⁹⁰, and the largest relative mass still
/// fits a double.
const REACH: usize = 15;

/// Number of elements to exclude at each end of `count` sorted ones so that the rest covers the
/// median with at least 1 − 2·`tail`; 0 if even the whole sample does not (see `coverage`).
/// O(√count).
///
/// P(median below the (l+1)-th of n) = P(Bin(n, ½) ≤ l).
pub(crate) fn median_ranks(count: usize, tail: f64) -> MedianRanks {
    let mut root = 0;
    while (root + 1_usize).saturating_mul(root + 1) <= count {
        root += 1;
    }
    let first = (count / 2).saturating_sub(REACH * root);
    let half = count.div_ceil(2);
    // Probability mass relative to the first rank's: exact integers if that rank is 0.
    let next = |mass: f64, rank: usize| mass * ((count - rank) as f64 / (rank + 1) as f64);
    let (mut mass, mut total) = (1.0, 0.0);
    for rank in first..half {
        total += 2.0 * mass;
        mass = next(mass, rank);
    }
    if count == 2 * half {
        total += mass;
    }
    let (mut mass, mut below, mut outside) = (1.0, 1.0, first);
    while outside + 1 < half {
        mass = next(mass, outside);
        if below + mass > tail * total {
            break;
        }
        below += mass;
        outside += 1;
    }
    MedianRanks { outside, coverage: larger(1.0 - 2.0 * below / total, 0.0) }
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
            (0.75, 0.0),
        ] {
            assert!((normal_upper(tail) - z).abs() < 1e-9, "{tail}: {}", normal_upper(tail));
        }
        for tail in [0.0, 1e-300, 1e-17, 1e-16] {
            assert!((7.5..8.4).contains(&normal_upper(tail)), "{tail}: {}", normal_upper(tail));
        }
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
            (0.025, 2_000, 1.961_150_8),
        ] {
            let got = student_upper(tail, degrees);
            assert!((got - t).abs() < 2e-6, "{tail} {degrees}: {got} instead of {t}");
        }
        assert!(student_upper(0.025, 0).is_infinite());
    }

    #[test]
    fn the_normal_quantile_inverts_the_error_function() {
        for step in 0..=8_000 {
            let z = f64::from(step) / 1e3;
            let got = normal_upper(0.5 * libm::erfc(z / core::f64::consts::SQRT_2));
            let lost = f64::EPSILON * (1.0 + z * z) * libm::exp(0.5 * z * z);
            assert!((got - z).abs() < 1e-14 * (1.0 + z) + 2.0 * lost, "{got} instead of {z}");
        }
    }

    #[test]
    fn student_quantiles_of_one_and_two_degrees_have_closed_forms() {
        for tail in [0.499, 0.4, 0.25, 0.1, 0.025, 1e-3, 1e-5, 1e-7] {
            let one = 1.0 / libm::tan(core::f64::consts::PI * tail);
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
            let last = student_upper(tail, SERIES_LIMIT);
            let first = student_upper(tail, SERIES_LIMIT + 1);
            assert!(last > first && last - first < 3e-5, "{tail}: {last} {first}");
        }
    }

    #[test]
    fn median_ranks_are_the_known_ones() {
        // n = 6: [x1, x6] covers 96.9 %; n = 10: [x2, x9] covers 97.9 %.
        assert_eq!(median_ranks(6, 0.025), MedianRanks { outside: 0, coverage: 0.968_75 });
        let ten = median_ranks(10, 0.025);
        assert_eq!(ten.outside, 1);
        assert!((ten.coverage - 0.978_515_625).abs() < 1e-12);
        // n = 5 does not reach 95 %.
        assert!(median_ranks(5, 0.025).coverage < 0.95);
        assert_eq!(median_ranks(1, 0.025), MedianRanks { outside: 0, coverage: 0.0 });
        assert_eq!(median_ranks(0, 0.025).outside, 0);
    }

    #[test]
    fn ranks_of_many_elements_are_nearly_those_of_the_normal_distribution() {
        for count in [500, 900, 1_000, 1_001, 40_000, 1_000_000] {
            let ranks = median_ranks(count, 0.025);
            let size = count as f64;
            let normal = 0.5 * (size - normal_upper(0.025) * libm::sqrt(size)) - 1.0;
            assert!((ranks.outside as f64 - normal).abs() <= 1.0, "{ranks:?} {normal}");
            // With continuity correction.
            let z = (size - 2.0 * ranks.outside as f64 - 1.0) / libm::sqrt(size);
            let coverage = libm::erf(z / core::f64::consts::SQRT_2);
            assert!((ranks.coverage - coverage).abs() < 0.1 / size, "{ranks:?} {coverage}");
        }
    }
}
