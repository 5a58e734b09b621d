//! Parser of a swept parameter: `L=1us:100us:20`, `G=0.01:1:50:log`, `o=0.5x:2x:10`.

use super::{NumberError, SizeError, size, time, time_per_byte};
use crate::decimal;
use crate::sensitivity::Parameter;
use crate::study::sweep::{Axis, FACTOR_DIGITS, Form, Spacing, Span, SpanError};

/// Why a text is not a swept parameter.
#[derive(Debug, thiserror::Error)]
pub enum AxisError {
    /// Wrong form.
    #[error(
        "expected PARAM=FROM:TO:POINTS, such as L=1us:100us:20, G=0.01:1:50:log or o=0.5x:2x:10"
    )]
    Form,
    /// Unknown parameter.
    #[error("'{0}' cannot be swept; these can: {known}", known = known())]
    Parameter(String),
    /// An end is not a time.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// An end is not a size.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// An end is not a factor.
    #[error("'{0}' is no factor; expected one such as 0.5x")]
    Factor(String),
    /// One end is a factor, the other is not.
    #[error("both ends are factors, such as 0.5x:2x, or neither is")]
    Mixed,
    /// Invalid number of points.
    #[error("'{0}' is no number of points")]
    Points(String),
    /// The values make no valid axis.
    #[error(transparent)]
    Span(#[from] SpanError),
}

fn known() -> String {
    Parameter::ALL.map(Parameter::symbol).join(", ")
}

/// Parses a swept parameter.
///
/// # Errors
///
/// [`AxisError`].
pub fn axis(text: &str) -> Result<Axis, AxisError> {
    let (symbol, values) = text.split_once('=').ok_or(AxisError::Form)?;
    let swept = Parameter::ALL.into_iter().find(|swept| swept.symbol() == symbol);
    let swept = swept.ok_or_else(|| AxisError::Parameter(symbol.to_owned()))?;
    let (ends, points, spacing) = match *values.split(':').collect::<Vec<_>>() {
        [from, to, points] => ([from, to], points, Spacing::Linear),
        [from, to, points, "log"] => ([from, to], points, Spacing::Logarithmic),
        _ => return Err(AxisError::Form),
    };
    let (form, [from, to]) = match ends.map(|end| end.strip_suffix('x')) {
        [Some(from), Some(to)] => (Form::Factor, [factor(from)?, factor(to)?]),
        [None, None] => (Form::Value, [value(swept, ends[0])?, value(swept, ends[1])?]),
        _ => return Err(AxisError::Mixed),
    };
    let points = points.parse().map_err(|_| AxisError::Points(points.to_owned()))?;
    Ok(Axis::new(swept, form, Span { from, to, points, spacing })?)
}

fn factor(text: &str) -> Result<u64, AxisError> {
    decimal::scaled(text, FACTOR_DIGITS).map_err(|_| AxisError::Factor(format!("{text}x")))
}

/// Parses a value in units of the parameter's type.
fn value(swept: Parameter, text: &str) -> Result<u64, AxisError> {
    Ok(match swept {
        Parameter::EagerLimit => size(text)?,
        swept if swept.is_per_byte() => time_per_byte(text)?.0,
        _ => time(text)?.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (&'static str, Form, Span) {
        let axis = axis(text).unwrap();
        (axis.swept.symbol(), axis.form, axis.span())
    }

    #[test]
    fn every_form_is_read() {
        let span = |from, to, points| Span { from, to, points, spacing: Spacing::Linear };
        let latency = span(1_000_000, 100_000_000, 20);
        assert_eq!(read("L=1us:100us:20"), ("L", Form::Value, latency));
        assert_eq!(read("L=1000:0.1ms:20"), ("L", Form::Value, latency));
        let gap = Span { spacing: Spacing::Logarithmic, ..span(10 << 16, 1_000 << 16, 50) };
        assert_eq!(read("G=0.01:1ns/B:50:log"), ("G", Form::Value, gap));
        let factors = span(500_000_000, 2_000_000_000, 10);
        assert_eq!(read("o_r=0.5x:2x:10"), ("o_r", Form::Factor, factors));
        assert_eq!(read("S=0:64K:2"), ("S", Form::Value, span(0, 65_536, 2)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("L", "expected PARAM=FROM:TO:POINTS"),
            ("L=1:2", "expected PARAM=FROM:TO:POINTS"),
            ("L=1:2:3:lin", "expected PARAM=FROM:TO:POINTS"),
            ("L=1:2:3:log:4", "expected PARAM=FROM:TO:POINTS"),
            ("P=1:2:3", "'P' cannot be swept; these can: L, o, o_s, o_r, g, G, O, O_s, O_r, S"),
            ("l=1:2:3", "'l' cannot be swept"),
            ("L=1:2m:3", "expected a time"),
            ("G=1:fast:3", "expected a time per byte"),
            ("S=1:2.5:3", "'2.5'"),
            ("L=0.5x:2:3", "both ends are factors"),
            ("L=0.5x:twox:3", "'twox' is no factor"),
            ("L=1:2:many", "'many' is no number of points"),
            ("L=1:2:-3", "'-3' is no number of points"),
            ("L=1:2:1", "at least 2 points"),
            ("L=2:1:3", "ends above where it begins"),
            ("L=0:1:3:log", "begins above 0"),
        ] {
            let error = axis(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
