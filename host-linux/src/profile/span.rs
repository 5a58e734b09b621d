//! Spans of message sizes, as error messages name them.

use std::fmt;

use loggap_core::model::Range;
use loggap_core::units::Bytes;

/// Sizes of a range; the last may be unbounded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SizeSpan {
    /// Smallest size.
    pub first: Bytes,
    /// Largest size; 2⁶⁴ − 1 if unbounded.
    pub last: Bytes,
}

impl SizeSpan {
    /// The sizes of `range`.
    #[must_use]
    pub const fn of(range: &Range) -> Self {
        Self { first: range.first, last: range.last }
    }
}

impl fmt::Display for SizeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = self;
        match last.0 {
            u64::MAX => write!(f, "messages from {} B on", first.0),
            last => write!(f, "messages from {} to {last} B", first.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_has_no_last_size() {
        let told = |last| SizeSpan { first: Bytes(100), last: Bytes(last) }.to_string();
        assert_eq!(told(200), "messages from 100 to 200 B");
        assert_eq!(told(u64::MAX), "messages from 100 B on");
    }
}
