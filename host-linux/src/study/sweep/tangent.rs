//! Tangent of the makespan at the given parameters.

use loggap_core::units::Picos;

use super::{Axis, Form, Sweep};
use crate::sensitivity::{Sensitivity, Units};

/// Tangent of the makespan at the given parameters, and the interval on which the makespan is
/// proved to follow it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tangent {
    sensitivity: Sensitivity,
    makespan: Picos,
    axis: Axis,
}

/// Part of the tangent to draw: x in the unit of [`Axis::reading`], makespans in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Start of the part, x.
    pub from: f64,
    /// End of the part, x.
    pub to: f64,
    /// The given parameter, x.
    at: f64,
    /// Makespan at the given parameter.
    makespan: f64,
    /// Slope of the makespan over x.
    slope: f64,
}

impl Stretch {
    /// Makespan on the tangent at x = `at`, in seconds.
    #[must_use]
    pub fn value(&self, at: f64) -> f64 {
        self.makespan + self.slope * (at - self.at)
    }
}

impl Sweep {
    /// Tangent at the given parameters, of a run with these sensitivities. `None` unless the sweep
    /// has exactly one axis; for S; for several size ranges; and if the sensitivities do not
    /// include the parameter or prove nothing about it.
    #[must_use]
    pub fn tangent(&self, found: &[Sensitivity], makespan: Picos) -> Option<Tangent> {
        let [axis] = self.axes() else { return None };
        let mut fitting = found.iter().filter(|found| found.parameter == axis.swept);
        let (Some(&sensitivity), None) = (fitting.next(), fitting.next()) else { return None };
        let known = sensitivity.high.is_none_or(|high| high > sensitivity.low)
            && (axis.form, sensitivity.value) != (Form::Factor, Units(0));
        known.then_some(Tangent { sensitivity, makespan, axis: *axis })
    }
}

impl Tangent {
    /// Number of times that the parameter occurs on the longest path; bytes for times per byte.
    #[must_use]
    pub const fn slope(&self) -> u64 {
        self.sensitivity.slope
    }

    /// Error bound of the slope.
    #[must_use]
    pub const fn slope_error(&self) -> u64 {
        self.sensitivity.slope_error
    }

    /// True if the makespan at the axis value `raw` is proved to lie on the tangent.
    #[must_use]
    pub fn holds(&self, raw: u64) -> bool {
        let bits = self.axis.swept.shift();
        let given = u64::try_from(self.sensitivity.value.0 >> bits).unwrap_or(u64::MAX);
        let Some(applied) = self.axis.applied(raw, given) else { return false };
        let applied = Units(u128::from(applied) << bits);
        let Sensitivity { value, low, high, .. } = self.sensitivity;
        // The proof excludes the ends of the interval.
        applied == value || (applied > low && high.is_none_or(|high| applied < high))
    }

    /// The part between the ends of the axis; `None` if it is empty.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
    pub fn stretch(&self) -> Option<Stretch> {
        let Sensitivity { slope, value, low, high, .. } = self.sensitivity;
        // The x unit of a factor is the given parameter's value.
        let unit = match self.axis.form {
            Form::Value => 1.0,
            Form::Factor => value.seconds(),
        };
        let place = |units: Units| units.seconds() / unit;
        let span = self.axis.span();
        let ends = [span.from, span.to].map(|raw| self.axis.number(raw));
        let from = place(low).max(ends[0]);
        let to = high.map_or(f64::INFINITY, place).min(ends[1]);
        let stretch = Stretch {
            from,
            to,
            at: place(value),
            makespan: self.makespan.seconds(),
            slope: slope as f64 * unit,
        };
        (from < to).then_some(stretch)
    }
}
