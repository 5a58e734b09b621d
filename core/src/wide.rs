//! 64-bit results of calculations whose intermediate values need 128 bits.
//!
//! A 128-bit division or square root takes two kilobytes of code on a microcontroller wherever it
//! is used. The versions here work bit by bit, are compiled once, and run only for operands that do
//! not fit into 64 bits.

/// Quotient `⌊a·b / divisor⌋` and remainder; `None` if the quotient exceeds 64 bits or the divisor
/// is 0.
#[inline(never)]
#[allow(clippy::cast_possible_truncation, reason = "the halves of a 128-bit product")]
pub(crate) fn divide(a: u64, b: u64, divisor: u64) -> Option<(u64, u64)> {
    let product = u128::from(a) * u128::from(b);
    let (mut rest, mut low) = ((product >> 64) as u64, product as u64);
    if rest == 0 {
        return Some((low.checked_div(divisor)?, low.checked_rem(divisor)?));
    }
    if rest >= divisor {
        return None;
    }
    // The quotient's bits move in from below as the dividend's move out.
    for _ in 0..64 {
        let carry = rest >> 63;
        rest = (rest << 1) | (low >> 63);
        low <<= 1;
        if carry == 1 || rest >= divisor {
            rest = rest.wrapping_sub(divisor);
            low |= 1;
        }
    }
    Some((low, rest))
}

/// `⌊a·b / divisor⌋`, saturating; `u64::MAX` for a divisor of 0.
#[inline(never)]
pub(crate) fn scaled(a: u64, b: u64, divisor: u64) -> u64 {
    divide(a, b, divisor).map_or(u64::MAX, |(quotient, _)| quotient)
}

/// `a·b`, saturating.
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) fn times(a: u64, b: u64) -> u64 {
    a.saturating_mul(b)
}

/// `⌊√(a² + b²)⌋`, saturating.
#[inline(never)]
pub(crate) fn hypotenuse(a: u64, b: u64) -> u64 {
    let square = |x: u64| u128::from(x) * u128::from(x);
    let Some(sum) = square(a).checked_add(square(b)) else { return u64::MAX };
    let mut root = 0;
    for bit in (0..64).rev() {
        let larger = root | (1 << bit);
        if square(larger) <= sum {
            root = larger;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    quickcheck! {
        fn quotients_are_those_of_the_wide_division(a: u64, b: u64, divisor: u64, small: bool) -> bool {
            let divisor = if small { divisor >> 40 } else { divisor };
            let product = u128::from(a) * u128::from(b);
            let expected = product.checked_div(divisor.into());
            let expected = expected.and_then(|quotient| u64::try_from(quotient).ok());
            let rest = product.checked_rem(divisor.into()).unwrap_or_default();
            divide(a, b, divisor) == expected.map(|q| (q, u64::try_from(rest).unwrap()))
        }

        fn roots_are_those_of_the_wide_sum(a: u64, b: u64, shift: u8) -> bool {
            let (a, b) = (a >> (shift % 64), b >> (shift % 64));
            let sum = (u128::from(a) * u128::from(a)).saturating_add(u128::from(b) * u128::from(b));
            u128::from(hypotenuse(a, b)) == sum.isqrt()
        }
    }

    #[test]
    fn the_ends_of_the_range_saturate() {
        assert_eq!(scaled(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(scaled(u64::MAX, u64::MAX, u64::MAX - 1), u64::MAX);
        assert_eq!(scaled(1, 1, 0), u64::MAX);
        assert_eq!(scaled(0, 1, u64::MAX), 0);
        assert_eq!(hypotenuse(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(hypotenuse(3, 4), 5);
    }
}
