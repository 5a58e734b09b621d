//! Running mean and variance.

/// Mean and variance of a stream, by Welford's updates: O(1) a value, no
/// cancellation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Adds a value. Returns `false` and ignores the value if it is not finite.
    pub fn add(&mut self, value: f64) -> bool {
        if !value.is_finite() {
            return false;
        }
        self.count = self.count.saturating_add(1);
        let deviation = value - self.mean;
        self.mean += deviation / self.count as f64;
        self.squares += deviation * (value - self.mean);
        true
    }

    /// Number of values added.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The arithmetic mean in the values' unit; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// The unbiased variance (n − 1 in the denominator), in the square of
    /// the values' unit; `None` below two values.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_offset_does_not_disturb_the_variance() {
        let mut moments = Moments::default();
        for i in 0..1_000_000_u32 {
            assert!(moments.add(1e9 + f64::from(i % 2)));
        }
        assert!((moments.mean().unwrap() - (1e9 + 0.5)).abs() < 1e-6);
        assert!((moments.variance().unwrap() - 0.25).abs() < 1e-6);
    }

    #[test]
    fn few_values_have_no_variance_and_odd_ones_are_refused() {
        let mut moments = Moments::default();
        assert_eq!((moments.mean(), moments.variance()), (None, None));
        assert!(!moments.add(f64::NAN));
        assert!(moments.add(3.0));
        assert_eq!((moments.mean(), moments.variance()), (Some(3.0), None));
    }
}
