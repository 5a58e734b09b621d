//! A sum of two doubles that holds about 106 bits.
//!
//! Knuth's two-sum and Dekker's two-product. Enough that uncentred moments
//! can be added to and subtracted from for millions of points and be centred
//! only when they are read.

use core::ops::{Add, Mul, Neg, Sub};

/// The unevaluated sum `hi + lo`, |lo| ≤ ½ ulp(hi).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Double {
    hi: f64,
    lo: f64,
}

/// 2²⁷ + 1 splits a double into two halves whose products are exact.
const SPLITTER: f64 = 134_217_729.0;

fn two_sum(a: f64, b: f64) -> Double {
    let hi = a + b;
    let virtual_b = hi - a;
    Double { hi, lo: (a - (hi - virtual_b)) + (b - virtual_b) }
}

fn quick_two_sum(a: f64, b: f64) -> Double {
    let hi = a + b;
    Double { hi, lo: b - (hi - a) }
}

fn split(a: f64) -> (f64, f64) {
    let c = SPLITTER * a;
    let high = c - (c - a);
    (high, a - high)
}

impl Double {
    /// The exact product of two doubles.
    pub(super) fn product(a: f64, b: f64) -> Self {
        let hi = a * b;
        let ((ah, al), (bh, bl)) = (split(a), split(b));
        Self { hi, lo: ((ah * bh - hi) + ah * bl + al * bh) + al * bl }
    }

    /// The nearest double.
    pub(super) const fn value(self) -> f64 {
        self.hi
    }

    /// This divided by `divisor`, good to about 100 bits.
    pub(super) fn over(self, divisor: Self) -> Self {
        let first = self.hi / divisor.hi;
        let rest = self - divisor * Self::from(first);
        let second = rest.hi / divisor.hi;
        let rest = rest - divisor * Self::from(second);
        quick_two_sum(first, second) + Self::from(rest.hi / divisor.hi)
    }
}

impl From<f64> for Double {
    fn from(hi: f64) -> Self {
        Self { hi, lo: 0.0 }
    }
}

impl Neg for Double {
    type Output = Self;

    fn neg(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }
}

impl Add for Double {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let high = two_sum(self.hi, other.hi);
        let low = two_sum(self.lo, other.lo);
        let sum = quick_two_sum(high.hi, high.lo + low.hi);
        quick_two_sum(sum.hi, sum.lo + low.lo)
    }
}

impl Sub for Double {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Double {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let product = Self::product(self.hi, other.hi);
        quick_two_sum(product.hi, product.lo + (self.hi * other.lo + self.lo * other.hi))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_terms_survive_beside_large_ones() {
        let large = Double::product(2f64.powi(50), 2f64.powi(50));
        let sum = large + Double::from(0.25) - large;
        assert_eq!(sum.value().to_bits(), 0.25f64.to_bits());
    }

    #[test]
    fn a_product_keeps_what_a_double_rounds_away() {
        let a = 1.0 + 2f64.powi(-40);
        let exact = Double::product(a, a) - Double::from(1.0) - Double::from(2f64.powi(-39));
        assert_eq!(exact.value().to_bits(), 2f64.powi(-80).to_bits());
    }

    #[test]
    fn a_quotient_times_its_divisor_is_the_dividend() {
        let (a, b) = (Double::from(1.0), Double::from(3.0) + Double::from(1e-20));
        let back = a.over(b) * b - a;
        assert!(back.value().abs() < 1e-31);
    }
}
