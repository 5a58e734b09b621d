//! The line on which the makespan leaves the parameters that were given.

use loggap_core::units::Picos;

use super::{Axis, Form, Sweep, Swept};
use crate::sensitivity::{Sensitivity, Units};

/// The makespan as a line through the parameters that were given, and how far
/// it is proved to be that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tangent {
    sensitivity: Sensitivity,
    makespan: Picos,
    axis: Axis,
}

/// A stretch of a line on a picture: abscissas in the unit of
/// [`Axis::reading`], ordinates in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Where the parameter that was given lies.
    at: f64,
    /// The makespan there.
    makespan: f64,
    /// Growth of the makespan over that of the abscissa.
    slope: f64,
}

impl Stretch {
    /// The makespan at an abscissa, in seconds.
    #[must_use]
    pub fn value(&self, at: f64) -> f64 {
        self.makespan + self.slope * (at - self.at)
    }
}

impl Sweep {
    /// The tangent at the parameters that were given, of a run with them and
    /// these sensitivities. `None` where there is not one axis, for S, for
    /// several ranges of sizes, and where the sensitivities do not have the
    /// parameter or know nothing of it.
    #[must_use]
    pub fn tangent(&self, found: &[Sensitivity], makespan: Picos) -> Option<Tangent> {
        let [axis] = self.axes() else { return None };
        let Swept::Cost(parameter) = axis.swept else { return None };
        let mut fitting = found.iter().filter(|found| found.parameter == parameter);
        let (Some(&sensitivity), None) = (fitting.next(), fitting.next()) else { return None };
        let known = sensitivity.high.is_none_or(|high| high > sensitivity.low);
        known.then_some(Tangent { sensitivity, makespan, axis: *axis })
    }
}

impl Tangent {
    /// How often the parameter stands on the longest path; bytes for times per
    /// byte.
    #[must_use]
    pub const fn slope(&self) -> u64 {
        self.sensitivity.slope
    }

    /// By how much the slope may be off.
    #[must_use]
    pub const fn slope_error(&self) -> u64 {
        self.sensitivity.slope_error
    }

    /// Whether the makespan at the number `raw` of the axis is proved to lie on
    /// the line.
    #[must_use]
    pub fn holds(&self, raw: u64) -> bool {
        let bits = if self.axis.swept.is_per_byte() { 0 } else { Units::FRACTION_BITS };
        let given = u64::try_from(self.sensitivity.value.0 >> bits).unwrap_or(u64::MAX);
        let Some(applied) = self.axis.applied(raw, given) else { return false };
        let applied = Units(u128::from(applied) << bits);
        let Sensitivity { value, low, high, .. } = self.sensitivity;
        // At an end the simulation may do either.
        applied == value || (applied > low && high.is_none_or(|high| applied < high))
    }

    /// What of it lies between the ends of the axis; `None` where nothing does.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
    pub fn stretch(&self) -> Option<Stretch> {
        let Sensitivity { slope, value, low, high, .. } = self.sensitivity;
        // A factor of 1 is worth the parameter itself.
        let unit = match self.axis.form {
            Form::Value => 1.0,
            Form::Factor => value.seconds(),
        };
        let place = |units: Units| units.seconds() / unit;
        let span = self.axis.span();
        let ends = [span.from, span.to].map(|raw| self.axis.reading(raw).number());
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
