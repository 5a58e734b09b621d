//! Operations on doubles that a processor without arithmetic for them should
//! have once, not wherever they are needed: each is dozens of bytes inline.

/// The larger of both; where one is NaN, the other.
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a >= b || b.is_nan() { a } else { b }
}

/// The smaller of both; where one is NaN, the other.
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) fn smaller(a: f64, b: f64) -> f64 {
    if a <= b || b.is_nan() { a } else { b }
}

/// `√(a² + b²)`, for squares that are doubles: of times and sizes all are.
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) fn hypotenuse(a: f64, b: f64) -> f64 {
    libm::sqrt(a * a + b * b)
}

/// The nearest whole number, halves away from zero, saturating at the ends of
/// `i64`; NaN is 0.
#[cfg_attr(target_os = "none", inline(never))]
#[allow(clippy::cast_possible_truncation, reason = "the cast saturates, which is the contract")]
pub(crate) fn nearest(value: f64) -> i64 {
    let whole = value as i64;
    // Exact: what the cast took off, and 0 where doubles are whole.
    let rest = value - whole as f64;
    if rest >= 0.5 {
        whole.saturating_add(1)
    } else if rest <= -0.5 {
        whole.saturating_sub(1)
    } else {
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    fn same(a: f64, b: f64) -> bool {
        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() || a == 0.0 && b == 0.0
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
