//! Axis of a parameter sweep.

use loggap_core::units::{PerByte, Picos};
use serde_json::Value;

use crate::decimal::fixed;
use crate::sensitivity::{Parameter, Units};

/// Meaning of the numbers of an axis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// Values of the parameter, in the units of its type: ps, 2⁻¹⁶ ps per
    /// byte, bytes.
    Value,
    /// Factors on the value of each range of sizes, in 10⁻⁹.
    Factor,
}

/// Decimal digits of a factor.
pub const FACTOR_DIGITS: u32 = 9;
const FACTOR_ONE: u128 = 10u128.pow(FACTOR_DIGITS);

/// Spacing of the numbers of an axis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Spacing {
    /// Equal differences, rounded.
    Linear,
    /// Equal ratios, rounded.
    Logarithmic,
}

/// Range and number of points of an axis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Span {
    /// First number.
    pub from: u64,
    /// Last number.
    pub to: u64,
    /// Number of points, both ends included.
    pub points: u32,
    /// Spacing of the points.
    pub spacing: Spacing,
}

/// Why a [`Span`] is invalid.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SpanError {
    /// Fewer than two points.
    #[error("a sweep has at least 2 points")]
    Points,
    /// The last number is not above the first.
    #[error("a sweep ends above where it begins")]
    Backwards,
    /// Logarithmic spacing cannot start at 0.
    #[error("a sweep in equal factors begins above 0")]
    FromZero,
}

/// A swept parameter and its values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Axis {
    /// The swept parameter.
    pub swept: Parameter,
    /// Meaning of the span's numbers.
    pub form: Form,
    span: Span,
}

impl Axis {
    /// An axis for a parameter.
    ///
    /// # Errors
    ///
    /// [`SpanError`].
    pub const fn new(swept: Parameter, form: Form, span: Span) -> Result<Self, SpanError> {
        if span.points < 2 {
            return Err(SpanError::Points);
        }
        if span.to <= span.from {
            return Err(SpanError::Backwards);
        }
        if span.from == 0 && matches!(span.spacing, Spacing::Logarithmic) {
            return Err(SpanError::FromZero);
        }
        Ok(Self { swept, form, span })
    }

    /// Range and number of points.
    #[must_use]
    pub const fn span(&self) -> Span {
        self.span
    }

    /// Name in files, with the unit.
    #[must_use]
    pub fn key(&self) -> String {
        let unit = match (self.form, self.swept) {
            (Form::Factor, _) => "factor",
            (Form::Value, Parameter::EagerLimit) => "bytes",
            (Form::Value, _) => "s",
        };
        format!("{}_{unit}", self.swept.name())
    }

    /// Unit in tables.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match (self.form, self.swept) {
            (Form::Factor, _) => "times",
            (Form::Value, Parameter::EagerLimit) => "B",
            (Form::Value, swept) if swept.is_per_byte() => "ns/B",
            (Form::Value, _) => "ns",
        }
    }

    /// Number at `index`, counted from 0; the last one for indices beyond the end.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "values between two equal factors are rounded anyway, and lie between the ends"
    )]
    pub fn raw(&self, index: u32) -> u64 {
        let Span { from, to, points, spacing } = self.span;
        let last = points.saturating_sub(1).max(1);
        if index == 0 {
            return from;
        }
        if index >= last {
            return to;
        }
        match spacing {
            Spacing::Linear => {
                let part = u128::from(to - from) * u128::from(index) + u128::from(last / 2);
                from + u64::try_from(part / u128::from(last)).unwrap_or(to - from)
            }
            Spacing::Logarithmic => {
                let share = f64::from(index) / f64::from(last);
                let value = from as f64 * (to as f64 / from as f64).powf(share);
                (value.round() as u64).clamp(from, to)
            }
        }
    }

    /// The number `raw` of the parameter, for legends.
    #[must_use]
    pub fn label(&self, raw: u64) -> String {
        let (symbol, text) = (self.swept.symbol(), self.text(raw));
        match self.form {
            Form::Factor => format!("{symbol} times {text}"),
            Form::Value => format!("{symbol} = {text} {}", self.unit()),
        }
    }

    /// Result of applying the number `raw` to a parameter's `value`; `None` past 2⁶⁴.
    pub(super) fn applied(&self, raw: u64, value: u64) -> Option<u64> {
        match self.form {
            Form::Value => Some(raw),
            Form::Factor => {
                let product = u128::from(value) * u128::from(raw) + FACTOR_ONE / 2;
                u64::try_from(product / FACTOR_ONE).ok()
            }
        }
    }

    /// `raw` in seconds, seconds per byte, bytes, or as a factor.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "rounding to the nearest double is the contract")]
    pub fn reading(&self, raw: u64) -> Value {
        match (self.form, self.swept) {
            (Form::Factor, _) => (raw as f64 / FACTOR_ONE as f64).into(),
            (Form::Value, Parameter::EagerLimit) => raw.into(),
            (Form::Value, swept) if swept.is_per_byte() => PerByte(raw).seconds().into(),
            (Form::Value, _) => Picos(raw).seconds().into(),
        }
    }

    /// As [`Self::reading`], for a coordinate of a chart.
    #[must_use]
    pub fn number(&self, raw: u64) -> f64 {
        self.reading(raw).as_f64().unwrap_or_default()
    }

    /// `raw` in [`Self::unit`].
    #[must_use]
    pub fn text(&self, raw: u64) -> String {
        match (self.form, self.swept) {
            (Form::Factor, _) => fixed(raw.into(), FACTOR_DIGITS),
            (Form::Value, Parameter::EagerLimit) => raw.to_string(),
            (Form::Value, swept) if swept.is_per_byte() => Units(raw.into()).nanos(),
            (Form::Value, _) => fixed(raw.into(), 3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::csv;
    use quickcheck::quickcheck;

    fn axis(swept: Parameter, form: Form, [from, to]: [u64; 2], points: u32) -> Axis {
        Axis::new(swept, form, Span { from, to, points, spacing: Spacing::Linear }).unwrap()
    }

    const LATENCY: Parameter = Parameter::Latency;

    #[test]
    fn values_are_evenly_spaced_and_have_both_ends() {
        let latency = axis(LATENCY, Form::Value, [1_000, 2_000], 5);
        let values: Vec<u64> = (0..6).map(|index| latency.raw(index)).collect();
        assert_eq!(values, [1_000, 1_250, 1_500, 1_750, 2_000, 2_000]);
        let span = Span { from: 10, to: 10_000, points: 4, spacing: Spacing::Logarithmic };
        let decades = Axis::new(LATENCY, Form::Value, span).unwrap();
        let values: Vec<u64> = (0..4).map(|index| decades.raw(index)).collect();
        assert_eq!(values, [10, 100, 1_000, 10_000]);
    }

    #[test]
    fn values_are_read_in_their_units() {
        let per_byte = Parameter::GapPerByte;
        let read = |swept, form, raw| {
            let axis = axis(swept, form, [0, 1], 2);
            (axis.key(), csv::number(&axis.reading(raw)), axis.text(raw), axis.unit())
        };
        let of = |key: &str, reading: &str, text: &str, unit| {
            (key.to_owned(), reading.to_owned(), text.to_owned(), unit)
        };
        assert_eq!(
            read(LATENCY, Form::Value, 2_500_500),
            of("latency_s", "0.0000025005", "2500.5", "ns")
        );
        assert_eq!(
            read(per_byte, Form::Value, 20 << 16),
            of("gap_per_byte_s", "0.00000000002", "0.02", "ns/B")
        );
        assert_eq!(
            read(Parameter::EagerLimit, Form::Value, 65_536),
            of("eager_limit_bytes", "65536", "65536", "B")
        );
        assert_eq!(
            read(LATENCY, Form::Factor, 1_500_000_000),
            of("latency_factor", "1.5", "1.5", "times")
        );
    }

    #[test]
    fn factors_are_rounded_to_the_unit_and_bounded() {
        let halves = axis(LATENCY, Form::Factor, [0, 500_000_000], 2);
        assert_eq!(halves.applied(500_000_000, 3), Some(2));
        assert_eq!(halves.applied(2_000_000_000, u64::MAX), None);
    }

    quickcheck! {
        fn values_ascend_between_the_ends(from: u64, to: u64, points: u16, even: bool) -> bool {
            let spacing = if even { Spacing::Linear } else { Spacing::Logarithmic };
            let span = Span { from, to, points: points.into(), spacing };
            let Ok(axis) = Axis::new(LATENCY, Form::Value, span) else { return true };
            let values: Vec<u64> = (0..axis.span().points).map(|index| axis.raw(index)).collect();
            values.is_sorted() && values.first() == Some(&from) && values.last() == Some(&to)
        }
    }
}
