//! Sizes of messages from one to another, as errors name them.

use std::fmt;

use loggap_core::model::Range;
use loggap_core::units::Bytes;

/// The sizes of a range, the last of which may have no end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SizeSpan {
    /// The smallest size.
    pub first: Bytes,
    /// The largest; 2⁶⁴ − 1 where there is no end.
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
