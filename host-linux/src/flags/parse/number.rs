//! Parsers of percentages, times, seeds, counts and factors.

use std::num::NonZeroUsize;
use std::time::Duration;

use loggap_core::units::{PerByte, Picos};

use crate::decimal::{self, DecimalError};

/// Why a text is not the expected number.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NumberError {
    /// Not a decimal number, or out of range.
    #[error("{reason}; expected {expected}")]
    Decimal {
        /// Cause.
        reason: DecimalError,
        /// Description of the expected value.
        expected: &'static str,
    },
    /// A number with an unsuitable unit.
    #[error("{}; expected {expected}", unit_reason(unit))]
    Unit {
        /// Unit that was given.
        unit: String,
        /// Description of the expected value.
        expected: &'static str,
    },
    /// A number below 1 without `%`, which may be a fraction or a small percentage.
    #[error(
        "expected a percentage: {}%, or {text}% if you mean that little",
        f64::from(*hundredths) / 100.0
    )]
    Fraction {
        /// Text that was given.
        text: String,
        /// Value as a fraction, in hundredths of a percent.
        hundredths: u32,
    },
    /// Wrong form; holds a description of the expected value.
    #[error("expected {0}")]
    Form(&'static str),
}

fn scaled(text: &str, digits: u32, expected: &'static str) -> Result<u64, NumberError> {
    decimal::scaled(text, digits).map_err(|reason| {
        let DecimalError::Unexpected(at) = reason else {
            return NumberError::Decimal { reason, expected };
        };
        let (number, unit) = text.split_at_checked(at).unwrap_or((text, ""));
        let unit = unit.trim_start();
        if unit.starts_with(char::is_alphabetic) && decimal::scaled(number, 0).is_ok() {
            return NumberError::Unit { unit: unit.to_owned(), expected };
        }
        NumberError::Decimal { reason, expected }
    })
}

fn unit_reason(unit: &str) -> String {
    let is_of_time = |unit: &str| UNITS.iter().any(|(name, _)| *name == unit);
    if is_of_time(unit) {
        format!("'{unit}' is a unit of time")
    } else if unit.strip_suffix("/B").is_some_and(is_of_time) {
        format!("'{unit}' is a unit of time per byte")
    } else {
        format!("unknown unit '{unit}'")
    }
}

/// Parses a percentage, `5%` or `5`, as parts per million: 50,000; from 0.0001% to below 100%.
///
/// # Errors
///
/// [`NumberError`], also for a number below 1 without `%`, which may be meant as a fraction.
pub fn percent(text: &str) -> Result<u32, NumberError> {
    const FORM: &str = "a percentage above 0% and below 100%, such as 5% or 0.5%";
    const WHOLE: u32 = 1_000_000;
    let digits = text.strip_suffix('%');
    let ppm = scaled(digits.unwrap_or(text), 4, FORM)?;
    match u32::try_from(ppm) {
        // 0.95 is 9,500 ppm as a percentage, 9,500 hundredths of a percent as a fraction.
        Ok(hundredths) if digits.is_none() && hundredths > 0 && hundredths < WHOLE / 100 => {
            Err(NumberError::Fraction { text: text.to_owned(), hundredths })
        }
        Ok(ppm) if ppm > 0 && ppm < WHOLE => Ok(ppm),
        _ => Err(NumberError::Form(FORM)),
    }
}

/// Parses a positive time: `2`, `1.5s`, `200ms`, `50us`, `100ns`, `3min` (also `3m`), `1h`; in
/// seconds without a unit; at most 30 days.
///
/// # Errors
///
/// [`NumberError`].
pub fn duration(text: &str) -> Result<Duration, NumberError> {
    const FORM: &str = "a time above 0 and up to 30 days, such as 2, 1.5s, 200ms, 50us, 3min or 1h; without a unit in s";
    const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
    let long = |(unit, seconds)| Some((text.strip_suffix(unit)?.trim_end(), seconds));
    let Picos(picos) = match LONG_UNITS.into_iter().find_map(long) {
        Some((number, seconds)) => Picos(picos(number, 9, FORM)?.0.saturating_mul(seconds)),
        None => time_or(text, 9, FORM)?,
    };
    let time = Duration::from_nanos(picos / 1_000);
    if time.is_zero() || time > LONGEST {
        return Err(NumberError::Form(FORM));
    }
    Ok(time)
}

/// As [`duration`], for a test within one session: at most 3000 s, because responders end a session
/// after an hour.
///
/// # Errors
///
/// [`NumberError`].
pub fn session_time(text: &str) -> Result<Duration, NumberError> {
    const FORM: &str = "a time above 0 and up to 3000 s, such as 20, 500ms or 2min, without a \
        unit in s; measure longer in several runs";
    const LONGEST: Duration = Duration::from_secs(3_000);
    let time = duration(text).ok().filter(|time| *time <= LONGEST);
    time.ok_or(NumberError::Form(FORM))
}

/// Parses the computation for a request: a time up to 1 ms.
///
/// # Errors
///
/// [`NumberError`].
pub fn handler_time(text: &str) -> Result<Duration, NumberError> {
    let time = duration(text).ok().filter(|time| *time <= Duration::from_millis(1));
    time.ok_or(NumberError::Form("a time above 0 and up to 1ms, such as 20us"))
}

/// Parses a seed: a decimal or `0x` hexadecimal number below 2⁶⁴.
///
/// # Errors
///
/// [`NumberError`].
pub fn seed(text: &str) -> Result<u64, NumberError> {
    const FORM: &str = "a whole number below 2^64, decimal or hexadecimal with 0x";
    let parsed = match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16),
        _ => text.parse(),
    };
    parsed.map_err(|_| NumberError::Form(FORM))
}

/// Parses a number of threads.
///
/// # Errors
///
/// [`NumberError`].
pub fn threads(text: &str) -> Result<NonZeroUsize, NumberError> {
    text.parse().map_err(|_| NumberError::Form("a whole number from 1 on, such as 4"))
}

/// Parses a factor above 0.
///
/// # Errors
///
/// [`NumberError`].
pub fn factor(text: &str) -> Result<f64, NumberError> {
    let factor = text.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
    factor.ok_or(NumberError::Form("a factor above 0, such as 2 or 0.5"))
}

/// Parses a multiple of 10^−(`digits` − 9) ns per byte, rounded to the nearest unit of [`PerByte`].
fn per_byte(text: &str, digits: u32, expected: &'static str) -> Result<PerByte, NumberError> {
    const UNITS_PER_NANO: u128 = 1_000 << PerByte::FRACTION_BITS;
    const BILLION: u128 = 1_000_000_000;
    let billionths = scaled(text, digits, expected)?;
    let units = (u128::from(billionths) * UNITS_PER_NANO + BILLION / 2) / BILLION;
    u64::try_from(units)
        .map(PerByte)
        .map_err(|_| NumberError::Decimal { reason: DecimalError::TooLarge, expected })
}

/// Units of time, with the power of ten of each in nanoseconds. Longer suffixes first: "ms" ends in
/// "s" as well.
const UNITS: [(&str, i32); 5] = [("ms", 6), ("us", 3), ("ns", 0), ("ps", -3), ("s", 9)];

/// Further units of durations, in seconds.
const LONG_UNITS: [(&str, u64); 3] = [("min", 60), ("m", 60), ("h", 3_600)];

/// Splits a text into its number and the power of ten of its unit in nanoseconds, `digits` without
/// a unit.
fn with_unit(text: &str, digits: i32) -> (&str, i32) {
    let split = |(unit, digits): (&str, i32)| Some((text.strip_suffix(unit)?.trim_end(), digits));
    UNITS.into_iter().find_map(split).unwrap_or((text, digits))
}

/// Parses a multiple of 10^`digits` ns.
fn picos(number: &str, digits: i32, expected: &'static str) -> Result<Picos, NumberError> {
    scaled(number, 3u32.saturating_add_signed(digits), expected).map(Picos)
}

/// Parses a time in one of [`UNITS`]; without a unit a multiple of 10^`digits` ns.
fn time_or(text: &str, digits: i32, expected: &'static str) -> Result<Picos, NumberError> {
    let (number, digits) = with_unit(text, digits);
    picos(number, digits, expected)
}

/// Parses a time, `1us`, `2.5 ms`, `800ps`, as picoseconds; without a unit in nanoseconds, which
/// are usual for `LogGOPS` parameters.
///
/// # Errors
///
/// [`NumberError`].
pub fn time(text: &str) -> Result<Picos, NumberError> {
    const FORM: &str = "a time such as 1.5us or 800ns; without a unit in ns";
    time_or(text, 0, FORM)
}

/// Parses a time per byte, `80ps/B`, `0.02ns/B`; in ns/B without a unit. The resolution is 10⁻⁹ ns,
/// then that of [`PerByte`], 1.5·10⁻⁸ ns.
///
/// # Errors
///
/// [`NumberError`].
pub fn time_per_byte(text: &str) -> Result<PerByte, NumberError> {
    const FORM: &str = "a time per byte such as 80ps/B or 0.02; without a unit in ns/B";
    let (number, digits) = text.strip_suffix("/B").map_or((text, 0), |text| with_unit(text, 0));
    per_byte(number, 9u32.saturating_add_signed(digits), FORM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_does_not_fit_is_named() {
        let said = |error: NumberError| error.to_string();
        assert!(said(time("3m").unwrap_err()).starts_with("unknown unit 'm'; expected a time"));
        let wrong = said(time("1ps/B").unwrap_err());
        assert!(wrong.starts_with("'ps/B' is a unit of time per byte; expected a time"), "{wrong}");
        let wrong = said(time_per_byte("1us").unwrap_err());
        assert!(wrong.starts_with("'us' is a unit of time; expected a time per byte"), "{wrong}");
        assert!(said(duration("10 x").unwrap_err()).starts_with("unknown unit 'x'; expected"));
        assert!(said(time("1.2.3").unwrap_err()).starts_with("not a number (see its character 4)"));
    }

    #[test]
    fn percentages_are_percentages_with_or_without_the_sign() {
        assert_eq!(percent("5%"), Ok(50_000));
        assert_eq!(percent("5"), Ok(50_000));
        assert_eq!(percent("0.5%"), Ok(5_000));
        assert_eq!(percent("99.9"), Ok(999_000));
        for text in ["0%", "100%", "-1%", "five", "%", "", "1000000000000%"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_fraction_that_could_mean_a_percentage_is_questioned() {
        for (text, meant) in [("0.05", "5%, or 0.05%"), ("0.95", "95%, or 0.95%")] {
            let error = percent(text).unwrap_err().to_string();
            assert!(error.contains(meant), "{error}");
        }
    }

    #[test]
    fn times_have_units_and_are_seconds_without() {
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(duration("50us"), Ok(Duration::from_micros(50)));
        assert_eq!(duration("100 ns"), Ok(Duration::from_nanos(100)));
        assert_eq!(duration("3m"), Ok(Duration::from_secs(180)));
        assert_eq!(duration("3min"), duration("3m"));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3_600)));
        assert_eq!(duration("2500ps"), Ok(Duration::from_nanos(2)));
        for text in ["0", "-1", "", "s", "5sm", "10 parsecs", "721h", "99999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_session_is_shorter_than_an_hour() {
        assert_eq!(session_time("50min"), Ok(Duration::from_secs(3_000)));
        assert!(["51min", "0", "5 parsecs"].iter().all(|text| session_time(text).is_err()));
    }

    #[test]
    fn seeds_are_decimal_or_hexadecimal() {
        assert_eq!(seed("42"), Ok(42));
        assert_eq!(seed("0xffffffffffffffff"), Ok(u64::MAX));
        for text in ["", "-1", "0x", "0x+1", "18446744073709551616", "x"] {
            assert!(seed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_with_units_are_exact_and_nanoseconds_without() {
        for (text, picos) in [
            ("2500", 2_500_000),
            ("0.5", 500),
            ("0.5ns", 500),
            ("1us", 1_000_000),
            ("2.5 ms", 2_500_000_000),
            ("1s", 1_000_000_000_000),
            ("3ps", 3),
            ("0", 0),
        ] {
            assert_eq!(time(text), Ok(Picos(picos)), "{text}");
        }
        for (text, picos) in [
            ("6", 6_000),
            ("0.02", 20),
            ("80ps/B", 80),
            ("0.02ns/B", 20),
            ("0.001us/B", 1_000),
            ("1/B", 1_000),
            ("1e-9s/B", 1_000),
        ] {
            assert_eq!(time_per_byte(text), Ok(PerByte(picos << 16)), "{text}");
        }
        for text in ["", "us", "1m", "-1us", "1us/B", "1e20s"] {
            assert!(time(text).is_err(), "{text}");
        }
        for text in ["", "/B", "1/s", "1us", "0.02ns", "1e9s/B", "1e12"] {
            assert!(time_per_byte(text).is_err(), "{text}");
        }
    }
}
