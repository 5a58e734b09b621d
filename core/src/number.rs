//! Operations on doubles for processors without a floating-point unit. Each is compiled once and
//! small: `libm`'s versions are optimised for speed and take four times the code.

/// The larger of the two; if one is NaN, the other.
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a >= b || b.is_nan() { a } else { b }
}

/// The smaller of the two; if one is NaN, the other.
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) fn smaller(a: f64, b: f64) -> f64 {
    if a <= b || b.is_nan() { a } else { b }
}

/// Explicit bits of a double's significand.
const FRACTION_BITS: u32 = 52;
/// Implicit leading one of the significand.
const LEADING: u64 = 1 << FRACTION_BITS;
/// Bias of the exponent field.
const BIAS: i64 = 1_023;
/// ln 2 as a sum of two parts. The first has so few digits that its product with an exponent is
/// exact.
const LN_2: (f64, f64) = (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10);

/// `2^exponent`, for −1022 to 1023.
const fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits((exponent + BIAS).cast_unsigned() << FRACTION_BITS)
}

/// Bit pattern of 1.0.
const ONE: u64 = 1.0_f64.to_bits();

/// Exponent and significand (2⁵² to 2⁵³) of a positive normal double. The exponent is 1024 for
/// infinity and NaN, −1023 for zero and subnormals.
const fn split(value: f64) -> (i64, u64) {
    let bits = value.to_bits();
    ((bits >> FRACTION_BITS).cast_signed() - BIAS, bits & (LEADING - 1) | LEADING)
}

/// The square root, correctly rounded.
#[cfg(not(target_os = "none"))]
pub(crate) fn sqrt(value: f64) -> f64 {
    libm::sqrt(value)
}

#[cfg(target_os = "none")]
pub(crate) use digitwise_root as sqrt;

/// Square root, correctly rounded, for targets without a square-root instruction: computes the 54
/// bits of the significand's root one by one.
#[cfg(any(test, target_os = "none"))]
#[inline(never)]
pub(crate) fn digitwise_root(value: f64) -> f64 {
    if value < 0.0 {
        return f64::NAN;
    }
    if value < f64::MIN_POSITIVE {
        // Zero or subnormal.
        let raised = value * power_of_two(54);
        return if raised > 0.0 { digitwise_root(raised) * power_of_two(-27) } else { value };
    }
    if !value.is_finite() {
        return value;
    }
    let (exponent, significand) = split(value);
    // Aligned to the top bit, with an even exponent; zeros follow.
    let mut digits = significand << (10 + (exponent & 1));
    let (mut root, mut rest) = (0_u64, 0_u64);
    for _ in 0..54 {
        rest = (rest << 2) | (digits >> 62);
        digits <<= 2;
        let odd = (root << 2) | 1;
        root <<= 1;
        if rest >= odd {
            rest -= odd;
            root |= 1;
        }
    }
    // The last of the 54 bits is for rounding; no root lies exactly halfway.
    let rounded = root.div_ceil(2) - LEADING;
    f64::from_bits(power_of_two(exponent >> 1).to_bits() + rounded)
}

/// e to the power of `value`; relative error below 10⁻¹⁵.
#[inline(never)]
pub(crate) fn exp(value: f64) -> f64 {
    if !(-746.0..=710.0).contains(&value) {
        return if value < 0.0 { 0.0 } else { value * f64::INFINITY };
    }
    let exponent = nearest(value * core::f64::consts::LOG2_E);
    let powers = exponent as f64;
    let rest = value - powers * LN_2.0 - powers * LN_2.1;
    // |rest| ≤ 0.35: 1 + r/1·(1 + r/2·(1 + r/3·(…)))
    let factor = (1..=14).rev().fold(1.0, |sum, order| 1.0 + rest * sum / f64::from(order));
    // In two steps: the power alone may overflow a double.
    let half = exponent / 2;
    factor * power_of_two(half) * power_of_two(exponent - half)
}

/// Natural logarithm of a positive normal double; minus infinity for anything smaller. Relative
/// error below 10⁻¹⁵.
#[inline(never)]
pub(crate) fn log(value: f64) -> f64 {
    const ROOT_HALF: u64 = core::f64::consts::FRAC_1_SQRT_2.to_bits();
    if value < f64::MIN_POSITIVE {
        return f64::NEG_INFINITY;
    }
    // value = factor · 2^powers, with √½ ≤ factor < √2.
    let shifted = value.to_bits() + (ONE - ROOT_HALF);
    let powers = (shifted >> FRACTION_BITS) as f64 - BIAS as f64;
    let factor = f64::from_bits((shifted & (LEADING - 1)) + ROOT_HALF);
    // |ratio| ≤ 0.172: ln = 2·(r + r³/3 + r⁵/5 + …)
    let ratio = (factor - 1.0) / (factor + 1.0);
    let mut sum = 0.0;
    let mut order = 23.0;
    while order > 0.0 {
        sum = ratio * ratio * sum + 1.0 / order;
        order -= 2.0;
    }
    powers * LN_2.0 + (2.0 * ratio * sum + powers * LN_2.1)
}

/// `√(a² + b²)` without protection against overflow of the squares: times and sizes are far below
/// it.
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) fn hypotenuse(a: f64, b: f64) -> f64 {
    sqrt(a * a + b * b)
}

/// Nearest integer, halves away from zero, saturating at the ends of `i64`; 0 for NaN.
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) fn nearest(value: f64) -> i64 {
    let (exponent, significand) = split(value.abs());
    let magnitude = match exponent {
        // Keeps one more binary digit, for rounding.
        -1..63 => ((significand << 11) >> (62 - exponent)).div_ceil(2).cast_signed(),
        63.. if !value.is_nan() => return if value < 0.0 { i64::MIN } else { i64::MAX },
        _ => 0,
    };
    if value < 0.0 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    fn same(a: f64, b: f64) -> bool {
        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() || a == 0.0 && b == 0.0
    }

    fn close(got: f64, expected: f64) -> bool {
        // Subnormals have fewer digits.
        let least = expected.abs().max(f64::MIN_POSITIVE);
        same(got, expected) || (got - expected).abs() <= 1e-15 * least
    }

    #[allow(clippy::cast_possible_truncation, reason = "what `nearest` promises")]
    fn rounds_like_libm(value: f64) -> bool {
        nearest(value) == libm::round(value) as i64
    }

    quickcheck! {
        fn extremes_are_those_of_the_standard_library(a: f64, b: f64) -> bool {
            same(larger(a, b), a.max(b)) && same(smaller(a, b), a.min(b))
        }

        fn any_double_is_rounded_as_libm_rounds_it(bits: u64, small: i32) -> bool {
            rounds_like_libm(f64::from_bits(bits)) && rounds_like_libm(f64::from(small) / 4.0)
        }

        fn roots_are_those_of_libm_to_the_bit(bits: u64, whole: u32) -> bool {
            let exact = f64::from(whole);
            [f64::from_bits(bits), exact, exact * exact, f64::from_bits(bits >> 12)]
                .into_iter()
                .all(|value| same(digitwise_root(value), libm::sqrt(value)))
        }

        fn powers_of_e_are_those_of_libm(value: i32) -> bool {
            let value = f64::from(value) / (f64::from(i32::MAX) / 760.0);
            close(exp(value), libm::exp(value)) && close(exp(value / 1e3), libm::exp(value / 1e3))
        }

        fn logarithms_are_those_of_libm(bits: u64, near: i32) -> bool {
            let any = f64::from_bits(bits);
            let near = 1.0 + f64::from(near) / 1e10;
            let normal = any.is_normal() && any > 0.0;
            close(log(near), libm::log(near)) && (!normal || close(log(any), libm::log(any)))
        }
    }

    #[test]
    fn ends_of_the_range_are_those_of_libm() {
        let tiny = f64::from_bits(1);
        let below = f64::from_bits(LEADING - 1);
        for value in
            [0.0, 1.0, 2.0, tiny, below, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, f64::NAN]
        {
            for value in [value, -value] {
                assert!(same(digitwise_root(value), libm::sqrt(value)), "{value}");
                assert!(close(exp(value), libm::exp(value)), "{value}");
            }
        }
        for value in [f64::MIN_POSITIVE, 1.0, core::f64::consts::SQRT_2, 2.0, f64::MAX] {
            assert!(close(log(value), libm::log(value)), "{value}");
        }
        for value in [below, tiny, 0.0, -1.0] {
            assert!(same(log(value), f64::NEG_INFINITY), "{value}");
        }
        for value in [709.7, 709.79, -708.0, -740.0, -745.2, -745.9] {
            assert!(close(exp(value), libm::exp(value)), "{value}: {}", exp(value));
        }
    }

    #[test]
    fn halves_and_ends_are_rounded_as_libm_rounds_them() {
        let below_half = 0.499_999_999_999_999_94;
        let odd = 4_503_599_627_370_497.5;
        for value in [0.5, 1.5, below_half, odd, 9.3e18, 1e300, f64::INFINITY, f64::NAN] {
            assert!(rounds_like_libm(value) && rounds_like_libm(-value), "{value}");
        }
    }

    #[test]
    fn a_number_is_larger_and_smaller_than_none() {
        for pick in [larger, smaller] {
            assert!(same(pick(f64::NAN, 1.0), 1.0) && same(pick(1.0, f64::NAN), 1.0));
        }
    }
}
