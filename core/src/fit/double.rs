//! A sum of two doubles that holds about 106 bits.
//!
//! Knuth's two-sum and Dekker's two-product. Enough that uncentred moments
//! can be added to and subtracted from for millions of points and be centred
//! only when they are read.

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

// By reference: a device passes each double in two registers, and copies them
// in and out for every call.
impl Double {
    /// The exact product of two doubles.
    #[cfg_attr(target_os = "none", inline(never))]
    pub(super) fn product(a: f64, b: f64) -> Self {
        let hi = a * b;
        let ((ah, al), (bh, bl)) = (split(a), split(b));
        Self { hi, lo: ((ah * bh - hi) + ah * bl + al * bh) + al * bl }
    }

    /// The nearest double.
    pub(super) const fn value(&self) -> f64 {
        self.hi
    }

    /// Adds `other` to this.
    #[cfg_attr(target_os = "none", inline(never))]
    pub(super) fn add(&mut self, other: &Self) {
        let high = two_sum(self.hi, other.hi);
        let low = two_sum(self.lo, other.lo);
        let sum = quick_two_sum(high.hi, high.lo + low.hi);
        *self = quick_two_sum(sum.hi, sum.lo + low.lo);
    }

    /// Adds the product of `a` and `b` to this.
    #[cfg_attr(target_os = "none", inline(never))]
    pub(super) fn add_product(&mut self, a: &Self, b: &Self) {
        let product = Self::product(a.hi, b.hi);
        self.add(&quick_two_sum(product.hi, product.lo + (a.hi * b.lo + a.lo * b.hi)));
    }

    /// This less the product of `a` and `b`.
    #[cfg_attr(target_os = "none", inline(never))]
    pub(super) fn less_product(&self, a: &Self, b: &Self) -> Self {
        let mut difference = *self;
        difference.add_product(&Self { hi: -a.hi, lo: -a.lo }, b);
        difference
    }

    /// This divided by `divisor`, good to about 100 bits.
    #[cfg_attr(target_os = "none", inline(never))]
    pub(super) fn over(&self, divisor: &Self) -> Self {
        let first = self.hi / divisor.hi;
        let rest = self.less_product(divisor, &Self::from(first));
        let second = rest.hi / divisor.hi;
        let rest = rest.less_product(divisor, &Self::from(second));
        let mut quotient = quick_two_sum(first, second);
        quotient.add(&Self::from(rest.hi / divisor.hi));
        quotient
    }
}

impl From<f64> for Double {
    fn from(hi: f64) -> Self {
        Self { hi, lo: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Double = Double { hi: 1.0, lo: 0.0 };

    #[test]
    fn small_terms_survive_beside_large_ones() {
        let large = Double::product(2f64.powi(50), 2f64.powi(50));
        let mut sum = large;
        sum.add(&Double::from(0.25));
        assert_eq!(sum.less_product(&large, &ONE).value().to_bits(), 0.25f64.to_bits());
    }

    #[test]
    fn a_product_keeps_what_a_double_rounds_away() {
        let a = 1.0 + 2f64.powi(-40);
        let rest = Double::product(a, a).less_product(&ONE, &ONE);
        let exact = rest.less_product(&Double::from(2f64.powi(-39)), &ONE);
        assert_eq!(exact.value().to_bits(), 2f64.powi(-80).to_bits());
    }

    #[test]
    fn a_quotient_times_its_divisor_is_the_dividend() {
        let mut b = Double::from(3.0);
        b.add(&Double::from(1e-20));
        let back = ONE.less_product(&ONE.over(&b), &b);
        assert!(back.value().abs() < 1e-31);
    }
}
