//! Noise traces as text: the format of netgauge's `noise` pattern (method
//! selfish), which LogGOPSim reads.
//!
//! Lines that begin with `#` are comments; every other line that is not blank holds the start and
//! the duration of a detour, in nanoseconds with decimals, separated by blanks or tabs. Files
//! written here have an additional comment, which other tools skip: `# Trace length [ns]:
//! 5500000000`, the period of the trace. Netgauge's traces end with their last detour.

use core::fmt;

use super::trace::Detour;
use crate::units::Picos;
use crate::worded::worded;

/// Comment that states the length of a trace.
const LENGTH: &str = "# Trace length [ns]:";

/// Position and kind of a syntax error in a noise trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoiseError {
    /// Line, from 1.
    pub line: usize,
    /// Byte in the line, from 1.
    pub column: usize,
    /// Kind of the error.
    pub kind: NoiseErrorKind,
}

worded! {
    /// Kinds of syntax errors in a noise trace.
    pub enum NoiseErrorKind {
        /// A number of nanoseconds, such as `18720.79`, was expected.
        Number => "expected a time in nanoseconds, such as 18720.79";
        /// The end of the line was expected.
        LineEnd => "expected the end of the line after start and duration";
        /// The number is past 213 days.
        TooLarge => "time past 213 days";
        /// The lent memory has no room for this detour.
        Full => "no room for more detours";
    }
}

impl fmt::Display for NoiseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, kind } = self;
        write!(f, "line {line}, column {column}: {kind}")
    }
}

impl core::error::Error for NoiseError {}

/// Number of detours in `text`, malformed lines included: the room that [`read`] needs.
#[must_use]
pub fn count(text: &[u8]) -> usize {
    lines(text).filter(|line| is_detour(line)).count()
}

/// Reads the detours of `text` into `detours`; returns their number and the length of the trace if
/// it is stated. Their order is checked by [`Trace::new`](super::Trace::new).
///
/// # Errors
///
/// [`NoiseError`] at the first malformed line.
pub fn read(text: &[u8], detours: &mut [Detour]) -> Result<(usize, Option<Picos>), NoiseError> {
    let mut found = 0;
    let mut length = None;
    for (line, number) in lines(text).zip(1..) {
        if let Some(value) = line.strip_prefix(LENGTH.as_bytes()) {
            let mut fields = Fields { line: value, at: 0, number };
            length = Some(fields.time().map_err(|error| error.shifted(LENGTH.len()))?);
        }
        if !is_detour(line) {
            continue;
        }
        let mut fields = Fields { line, at: 0, number };
        let start = fields.time()?;
        let duration = fields.time()?;
        fields.end()?;
        let full = NoiseError { line: number, column: 1, kind: NoiseErrorKind::Full };
        *detours.get_mut(found).ok_or(full)? = Detour { start, duration };
        found += 1;
    }
    Ok((found, length))
}

/// Writes a trace that [`read`] restores exactly and other tools read to the nanosecond.
///
/// # Errors
///
/// Errors of `out`.
pub fn write<W: fmt::Write>(
    out: &mut W,
    detours: &[Detour],
    length: Picos,
) -> Result<(), fmt::Error> {
    writeln!(out, "# loggap noise trace, version 1")?;
    writeln!(out, "{LENGTH} {}", Nanos(length))?;
    writeln!(out, "# Time [ns]\tduration [ns]")?;
    detours
        .iter()
        .try_for_each(|detour| writeln!(out, "{}\t{}", Nanos(detour.start), Nanos(detour.duration)))
}

/// Displays a time in nanoseconds, exactly.
struct Nanos(Picos);

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0.0 / 1_000, self.0.0 % 1_000)
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n')
}

/// True if a line is neither a comment nor blank.
fn is_detour(line: &[u8]) -> bool {
    line.first() != Some(&b'#') && !line.iter().all(u8::is_ascii_whitespace)
}

impl NoiseError {
    const fn shifted(self, columns: usize) -> Self {
        Self { column: self.column.saturating_add(columns), ..self }
    }
}

/// The fields of one line.
struct Fields<'a> {
    line: &'a [u8],
    at: usize,
    number: usize,
}

impl Fields<'_> {
    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    const fn error(&self, kind: NoiseErrorKind) -> NoiseError {
        NoiseError { line: self.number, column: self.at.saturating_add(1), kind }
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Parses digits with at most one point; digits past the picosecond are ignored.
    fn time(&mut self) -> Result<Picos, NoiseError> {
        self.skip_blanks();
        let first = self.at;
        let mut picos = 0u64;
        let mut digits = 0u32;
        let mut decimals = None;
        while let Some(byte) = self.peek() {
            match byte {
                b'0'..=b'9' if decimals.is_none_or(|count| count < 3) => {
                    let digit = u64::from(byte - b'0');
                    let next = picos.checked_mul(10).and_then(|tens| tens.checked_add(digit));
                    picos = next.ok_or_else(|| self.error(NoiseErrorKind::TooLarge))?;
                    decimals = decimals.map(|count: u32| count + 1);
                    digits += 1;
                }
                b'0'..=b'9' => {}
                b'.' if decimals.is_none() => decimals = Some(0),
                _ => break,
            }
            self.at += 1;
        }
        if digits == 0 {
            self.at = first;
            return Err(self.error(NoiseErrorKind::Number));
        }
        if self.peek().is_some_and(|byte| !byte.is_ascii_whitespace()) {
            return Err(self.error(NoiseErrorKind::Number));
        }
        let scale = 10u64.pow(3u32.saturating_sub(decimals.unwrap_or(0)));
        let scaled = picos.checked_mul(scale);
        scaled.map(Picos).ok_or_else(|| self.error(NoiseErrorKind::TooLarge))
    }

    fn end(&mut self) -> Result<(), NoiseError> {
        self.skip_blanks();
        if self.peek().is_some() { Err(self.error(NoiseErrorKind::LineEnd)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;
    use std::string::{String, ToString};
    use std::vec;
    use std::vec::Vec;

    const SAMPLE: &str = "# Benchmark Method: selfish\n\
        # Time [ns]\tselfish duration [ns]\n\
        0.00\t18720.79\n\
        701577.96\t3194.12\r\n\
        \n\
        799076\t17145.7291\n\
        # CPU overhead due to noise: 2.14%\n";

    fn parsed(text: &str) -> Result<(Vec<Detour>, Option<Picos>), NoiseError> {
        let mut detours = vec![Detour::default(); count(text.as_bytes())];
        let (found, length) = read(text.as_bytes(), &mut detours)?;
        assert_eq!(found, detours.len());
        Ok((detours, length))
    }

    #[test]
    fn netgauges_format_is_read_to_the_picosecond() {
        let (detours, length) = parsed(SAMPLE).unwrap();
        let pairs: Vec<_> = detours.iter().map(|d| (d.start.0, d.duration.0)).collect();
        let expected = [(0, 18_720_790), (701_577_960, 3_194_120), (799_076_000, 17_145_729)];
        assert_eq!(pairs, expected);
        assert_eq!(length, None);
    }

    #[test]
    fn an_error_names_line_column_and_what_was_expected() {
        let error = |text: &str| parsed(text).unwrap_err();
        let at = |line, column, kind| NoiseError { line, column, kind };
        assert_eq!(error("1 2\n3 x\n"), at(2, 3, NoiseErrorKind::Number));
        assert_eq!(error("1 2 3\n"), at(1, 5, NoiseErrorKind::LineEnd));
        assert_eq!(error("-1 2\n"), at(1, 1, NoiseErrorKind::Number));
        assert_eq!(error("1 .\n"), at(1, 3, NoiseErrorKind::Number));
        assert_eq!(error("1.2.3\n"), at(1, 4, NoiseErrorKind::Number));
        assert_eq!(error("1\n"), at(1, 2, NoiseErrorKind::Number));
        assert_eq!(error("99999999999999999999 1\n").kind, NoiseErrorKind::TooLarge);
        assert_eq!(error("18446744073709552 1\n").kind, NoiseErrorKind::TooLarge);
        assert_eq!(error("# Trace length [ns]: x\n"), at(1, 22, NoiseErrorKind::Number));
        let full = read(b"1 1\n2 2\n", &mut [Detour::default()]).unwrap_err();
        assert_eq!(full, at(2, 1, NoiseErrorKind::Full));
        assert!(error("1\n").to_string().starts_with("line 1, column 2: expected a time"));
    }

    quickcheck! {
        fn what_is_written_is_read_again(values: Vec<(u64, u64)>, length: u64) -> bool {
            let detours: Vec<Detour> = values
                .iter()
                .map(|&(start, duration)| Detour { start: Picos(start), duration: Picos(duration) })
                .collect();
            let mut text = String::new();
            write(&mut text, &detours, Picos(length)).unwrap();
            parsed(&text) == Ok((detours, Some(Picos(length))))
        }

        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) -> bool {
            let mut detours = vec![Detour::default(); count(&bytes)];
            match read(&bytes, &mut detours) {
                Ok((found, _)) => found == detours.len(),
                Err(error) => error.kind != NoiseErrorKind::Full,
            }
        }
    }
}
