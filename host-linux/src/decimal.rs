//! Decimal text as an exact integer of a smaller unit.
//!
//! Seconds become picoseconds without passing through a binary fraction, so the output of
//! [`seconds`] is read back to the bit.

use loggap_core::units::{Picos, SignedPicos};

/// Why text is not a usable decimal number.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DecimalError {
    /// No digit at all.
    #[error("a number is missing")]
    Empty,
    /// Something that is not part of a number, at this byte of the text.
    #[error("not a number (see its character {})", .0.saturating_add(1))]
    Unexpected(usize),
    /// A negative number where only zero and above is allowed.
    #[error("a number below zero makes no sense here")]
    Negative,
    /// The number exceeds the range of the unit.
    #[error("the number is too large")]
    TooLarge,
}

/// Parses `12`, `1.5`, `.5`, `1e-6`, `+3` as a multiple of 10^−`digits`; further digits are rounded
/// half up.
///
/// # Errors
///
/// [`DecimalError`] names what is wrong.
pub fn scaled(text: &str, digits: u32) -> Result<u64, DecimalError> {
    let (negative, value) = Number::parse(text)?.scaled(i64::from(digits))?;
    if negative && value != 0 { Err(DecimalError::Negative) } else { Ok(value) }
}

/// Parses seconds as picoseconds.
///
/// # Errors
///
/// [`DecimalError`] names what is wrong.
pub fn picos(text: &str) -> Result<Picos, DecimalError> {
    scaled(text, 12).map(Picos)
}

/// Parses a signed number of seconds as picoseconds.
///
/// # Errors
///
/// [`DecimalError`] names what is wrong.
pub fn signed_picos(text: &str) -> Result<SignedPicos, DecimalError> {
    let (negative, value) = Number::parse(text)?.scaled(12)?;
    let magnitude = i64::try_from(value).map_err(|_| DecimalError::TooLarge)?;
    Ok(SignedPicos(if negative { -magnitude } else { magnitude }))
}

/// Formats `time` in seconds, exactly, without trailing zeros.
#[must_use]
pub fn seconds(time: Picos) -> String {
    fixed(u128::from(time.0), 12)
}

/// Formats a difference in seconds, as [`seconds`].
#[must_use]
pub fn signed_seconds(time: SignedPicos) -> String {
    let sign = if time.0 < 0 { "-" } else { "" };
    format!("{sign}{}", seconds(Picos(time.0.unsigned_abs())))
}

/// Formats `value` · 10^−`digits` without trailing zeros. `digits` above 38 count as 38.
#[must_use]
pub fn fixed(value: u128, digits: u32) -> String {
    let digits = digits.min(38);
    let one = 10u128.pow(digits);
    let width = usize::try_from(digits).unwrap_or_default();
    let text = format!("{}.{:0width$}", value / one, value % one);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Parsed decimal: sign, digits, and the power of ten of the last digit.
struct Number {
    negative: bool,
    digits: Digits,
    exponent: i64,
}

/// Up to 38 leading digits; further ones only shift the decimal point.
#[derive(Default)]
struct Digits {
    value: u128,
    any: bool,
    /// Number of digits that did not fit into `value`.
    dropped: i64,
}

impl Digits {
    fn push(&mut self, digit: u8) {
        self.any = true;
        match self.value.checked_mul(10).and_then(|value| value.checked_add(u128::from(digit))) {
            Some(value) if self.dropped == 0 => self.value = value,
            _ => self.dropped = self.dropped.saturating_add(1),
        }
    }
}

impl Number {
    fn parse(text: &str) -> Result<Self, DecimalError> {
        let (unsigned, negative) = match text.as_bytes().first() {
            Some(b'-') => (text.get(1..).unwrap_or_default(), true),
            Some(b'+') => (text.get(1..).unwrap_or_default(), false),
            _ => (text, false),
        };
        let sign = text.len() - unsigned.len();
        let mut digits = Digits::default();
        let mut fraction: Option<i64> = None;
        let mut exponent = 0;
        for (at, byte) in unsigned.bytes().enumerate() {
            match byte {
                b'0'..=b'9' => {
                    digits.push(byte - b'0');
                    fraction = fraction.map(|places| places.saturating_add(1));
                }
                b'.' if fraction.is_none() => fraction = Some(0),
                b'e' | b'E' if digits.any => {
                    exponent = parse_exponent(unsigned, at.saturating_add(1), sign)?;
                    break;
                }
                _ => return Err(DecimalError::Unexpected(sign.saturating_add(at))),
            }
        }
        if !digits.any {
            return Err(DecimalError::Empty);
        }
        let exponent =
            exponent.saturating_add(digits.dropped).saturating_sub(fraction.unwrap_or(0));
        Ok(Self { negative, digits, exponent })
    }

    /// Sign (true if negative) and magnitude in units of 10^−`places`.
    fn scaled(&self, places: i64) -> Result<(bool, u64), DecimalError> {
        let value = self.digits.value;
        if value == 0 {
            return Ok((false, 0));
        }
        let shift = self.exponent.saturating_add(places);
        let scaled = match u32::try_from(shift.unsigned_abs())
            .ok()
            .and_then(|s| 10u128.checked_pow(s))
        {
            Some(power) if shift >= 0 => value.checked_mul(power).ok_or(DecimalError::TooLarge)?,
            Some(power) => value / power + u128::from(value % power >= power.div_ceil(2)),
            None if shift >= 0 => return Err(DecimalError::TooLarge),
            None => 0,
        };
        u64::try_from(scaled)
            .map(|magnitude| (self.negative, magnitude))
            .map_err(|_| DecimalError::TooLarge)
    }
}

/// Parses the exponent from byte `start` of `text`; `sign` is the number of bytes before `text`,
/// for the error's offset.
fn parse_exponent(text: &str, start: usize, sign: usize) -> Result<i64, DecimalError> {
    let rest = text.get(start..).unwrap_or_default();
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits {
        return Err(DecimalError::Unexpected(sign.saturating_add(start)));
    }
    // An exponent beyond i64 saturates.
    let magnitude = digits.parse().unwrap_or(i64::MAX);
    Ok(if rest.starts_with('-') { -magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    #[test]
    fn decimals_are_read_exactly() {
        for (text, picos_expected) in [
            ("0", 0),
            ("1", 1_000_000_000_000),
            ("0.000000000001", 1),
            (".5", 500_000_000_000),
            ("1.5e-6", 1_500_000),
            ("12E+1", 120_000_000_000_000),
            ("+3e0", 3_000_000_000_000),
            ("1e-400", 0),
            ("0e999999999999999999999", 0),
            ("1.0000000000005", 1_000_000_000_001),
            ("0.00000000000049999999999999999999999999999999999999999", 0),
            ("-0", 0),
        ] {
            assert_eq!(picos(text), Ok(Picos(picos_expected)), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused_with_its_place() {
        use DecimalError::{Empty, Negative, TooLarge, Unexpected};
        for (text, error) in [
            ("", Empty),
            ("-", Empty),
            (".", Empty),
            ("1.2.3", Unexpected(3)),
            ("-1x", Unexpected(2)),
            ("1e", Unexpected(2)),
            ("1e+-3", Unexpected(2)),
            ("NaN", Unexpected(0)),
            ("inf", Unexpected(0)),
            ("-1", Negative),
            ("1e8", TooLarge),
            ("1e999999999999999999999", TooLarge),
        ] {
            assert_eq!(picos(text), Err(error), "{text}");
        }
    }

    #[test]
    fn differences_may_be_negative() {
        assert_eq!(signed_picos("-1.5e-9"), Ok(SignedPicos(-1_500)));
        assert_eq!(signed_picos("2e-12"), Ok(SignedPicos(2)));
        assert_eq!(signed_picos("9300000"), Err(DecimalError::TooLarge));
    }

    quickcheck! {
        fn times_are_read_back_to_the_picosecond(time: u64) -> bool {
            picos(&seconds(Picos(time))) == Ok(Picos(time))
        }

        fn any_text_is_read_or_refused(text: String, digits: u8) -> bool {
            let _either = scaled(&text, u32::from(digits));
            true
        }
    }
}
