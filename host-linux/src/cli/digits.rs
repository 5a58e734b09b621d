//! Formats of times in reports: rounded with fitting units for a terminal, exact nanoseconds
//! everywhere else.

use crate::decimal::fixed;
use crate::output::number;
use crate::sensitivity::Units;
use crate::terminal::Console;

/// Options for the format of a report.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct FormatArgs {
    /// Print exact times, as is done into a pipe.
    #[arg(help_heading = "Output", long)]
    exact: bool,
    /// Print one JSON document.
    #[arg(help_heading = "Output", short = 'J', long)]
    pub(super) json: bool,
}

/// Format of times.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Digits {
    /// Nanoseconds with all digits; headings of columns name the unit.
    Exact,
    /// Three significant digits with a fitting unit.
    Rounded,
}

impl FormatArgs {
    /// Rounded on a terminal, exact otherwise and with --exact.
    pub(super) fn digits(self, console: &Console) -> Digits {
        let is_watched = console.data_terminal.is_some();
        if is_watched && !self.exact { Digits::Rounded } else { Digits::Exact }
    }
}

impl Digits {
    /// Formats a time for a column headed by [`Digits::head`].
    pub(super) fn cell(self, picos: u64) -> String {
        self.signed_cell(picos.into())
    }

    /// Formats a time of either sign for a column.
    pub(super) fn signed_cell(self, picos: i128) -> String {
        let sign = if picos < 0 { "-" } else { "" };
        #[allow(clippy::cast_precision_loss, reason = "three digits")]
        let seconds = picos.unsigned_abs() as f64 * 1e-12;
        match self {
            Self::Exact => format!("{sign}{}", fixed(picos.unsigned_abs(), 3)),
            Self::Rounded if picos == 0 => "0".to_owned(),
            Self::Rounded => format!("{sign}{}", number::in_units(seconds, number::TIME)),
        }
    }

    /// Formats a time for a sentence.
    pub(super) fn time(self, picos: u64) -> String {
        match self {
            Self::Exact => format!("{} ns", self.cell(picos)),
            Self::Rounded if picos == 0 => "0 ns".to_owned(),
            Self::Rounded => self.cell(picos),
        }
    }

    /// Formats a time per byte for a sentence.
    pub(super) fn per_byte(self, units: u64) -> String {
        let value = Units(units.into());
        match self {
            Self::Exact => format!("{} ns/B", value.nanos()),
            Self::Rounded if units == 0 => "0 ns/B".to_owned(),
            Self::Rounded => self.parameter(value, number::TIME_PER_BYTE),
        }
    }

    /// Formats a parameter for a column; exact values are in ns or ns/B.
    pub(super) fn parameter(self, value: Units, units: number::Units) -> String {
        match self {
            Self::Exact => value.nanos(),
            Self::Rounded if value.0 == 0 => "0".to_owned(),
            Self::Rounded => {
                let seconds = value.seconds();
                // Values down to 0.01 ns/B keep that unit: 0.02 ns/B is more usual than 20 ps/B.
                let least = if units == number::TIME_PER_BYTE { 0.01 } else { 1.0 };
                number::Unit::fitting(units, seconds, least).with_name(seconds)
            }
        }
    }

    /// Heading of a column of times.
    pub(super) fn head(self, name: &str) -> String {
        match self {
            Self::Exact => format!("{name}[ns]"),
            Self::Rounded => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_three_digits_and_a_unit_and_programs_every_picosecond() {
        let times = [0, 500, 1_234_567, 21_076_161_673];
        assert_eq!(
            times.map(|ps| Digits::Rounded.time(ps)),
            ["0 ns", "0.500 ns", "1.23 us", "21.1 ms"]
        );
        assert_eq!(
            times.map(|ps| Digits::Exact.time(ps)),
            ["0 ns", "0.5 ns", "1234.567 ns", "21076161.673 ns"]
        );
        assert_eq!(Digits::Rounded.signed_cell(-2_500_000), "-2.50 us");
        assert_eq!(Digits::Exact.signed_cell(-2_500_001), "-2500.001");
        assert_eq!(Digits::Exact.head("finish"), "finish[ns]");
    }
}
