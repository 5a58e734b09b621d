//! Point of a sweep: the input of a fit.

use core::fmt;

/// Largest magnitude of a value or sigma: 2⁶² ps, or 53 days.
const LIMIT: f64 = 4_611_686_018_427_387_904.0;

/// Smallest known sigma, in ps; a smaller one counts as unknown.
const SMALLEST_SIGMA: f64 = 1e-6;

/// A message size and the value measured there. All numbers are finite.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Point {
    size: u64,
    value: f64,
    sigma: f64,
    outlier: bool,
}

/// Reasons why numbers are no valid point.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PointError {
    /// The value is not finite or exceeds ±2⁶² ps (53 days).
    Value,
    /// The sigma is not finite, negative, or exceeds 2⁶² ps.
    Sigma,
}

impl fmt::Display for PointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value => "value is not a finite time within 53 days",
            Self::Sigma => "standard error is not a finite, non-negative time within 53 days",
        })
    }
}

impl core::error::Error for PointError {}

impl Point {
    /// A `value` in ps measured at `size` bytes. `sigma` is the standard error of the value in ps;
    /// 0 if it is unknown or if the samples did not scatter at all, which proves no accuracy.
    ///
    /// # Errors
    ///
    /// [`PointError`] for numbers that are not finite or out of range.
    pub fn new(size: u64, value: f64, sigma: f64) -> Result<Self, PointError> {
        if !(value.is_finite() && value.abs() <= LIMIT) {
            return Err(PointError::Value);
        }
        if !(0.0..=LIMIT).contains(&sigma) {
            return Err(PointError::Sigma);
        }
        Ok(Self { size, value, sigma, outlier: false })
    }

    /// Message size in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Measured value in ps.
    #[must_use]
    pub const fn value(&self) -> f64 {
        self.value
    }

    /// Standard error of the value in ps; `None` if unknown.
    #[must_use]
    pub fn sigma(&self) -> Option<f64> {
        (self.sigma >= SMALLEST_SIGMA).then_some(self.sigma)
    }

    /// True if [`mark_outliers`](super::mark_outliers) excluded this point from lines and from the
    /// search for changes.
    #[must_use]
    pub const fn is_outlier(&self) -> bool {
        self.outlier
    }

    /// This point, marked as an outlier.
    pub(super) const fn as_outlier(self) -> Self {
        Self { outlier: true, ..self }
    }

    /// This point, not marked.
    pub(super) const fn as_regular(self) -> Self {
        Self { outlier: false, ..self }
    }

    /// s − 1 of the formulas; an empty message counts as one byte.
    pub(crate) const fn after_first(&self) -> f64 {
        self.size.saturating_sub(1) as f64
    }
}
