//! A confidence level.

use super::distribution::{normal_upper, student_upper};

/// Probability with which an interval covers the true value, strictly between 0 and 100 percent.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Confidence(f64);

impl Confidence {
    /// 90 percent.
    pub const P90: Self = Self(0.9);

    /// 95 percent, the default.
    pub const P95: Self = Self(0.95);

    /// Level of `percent`; `None` unless 0 < `percent` < 100.
    #[must_use]
    pub fn from_percent(percent: f64) -> Option<Self> {
        let level = percent / 100.0;
        (level > 0.0 && level < 1.0).then_some(Self(level))
    }

    /// The level as a probability between 0 and 1.
    #[must_use]
    pub const fn probability(self) -> f64 {
        self.0
    }

    /// Probability beyond each end of a two-sided interval.
    #[must_use]
    pub const fn tail(self) -> f64 {
        (1.0 - self.0) / 2.0
    }

    /// Half-width of the two-sided interval of a normal variable, in
    /// standard deviations: 1.96 for 95 percent.
    #[must_use]
    pub fn normal(self) -> f64 {
        normal_upper(self.tail())
    }

    /// Half-width of the two-sided interval of Student's distribution, in standard errors: 2.571
    /// for 95 percent and 5 degrees of freedom; infinite for 0 degrees of freedom.
    #[must_use]
    pub fn student(self, degrees_of_freedom: u32) -> f64 {
        student_upper(self.tail(), degrees_of_freedom)
    }
}

impl Default for Confidence {
    fn default() -> Self {
        Self::P95
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_outside_the_open_interval_are_refused() {
        for percent in [0.0, -1.0, 100.0, 101.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Confidence::from_percent(percent), None, "{percent}");
        }
        assert_eq!(Confidence::from_percent(95.0), Some(Confidence::P95));
    }
}
