//! Parsers of rank counts, written like sizes.

use super::sizes::{SizeError, Sizes, size, sizes};

/// Why a text is not a number of ranks, or not a list of them.
#[derive(Debug, thiserror::Error)]
pub enum RanksError {
    /// Not a number.
    #[error("'{0}' is no number of ranks; expected one such as 4, 64, 4K")]
    NotANumber(String),
    /// A number not larger than its predecessor.
    #[error("{ranks} ranks follow {before}; list numbers in ascending order, each once")]
    OutOfOrder {
        /// Predecessor.
        before: u64,
        /// Offending number.
        ranks: u64,
    },
    /// An empty list.
    #[error("no number of ranks at all; give at least one")]
    Empty,
    /// More ranks than supported.
    #[error("there are at most 4294967295 ranks")]
    TooMany,
    /// Other errors of the list.
    #[error(transparent)]
    List(SizeError),
}

impl From<SizeError> for RanksError {
    fn from(error: SizeError) -> Self {
        match error {
            SizeError::NotASize(text) => Self::NotANumber(text),
            SizeError::OutOfOrder { before, size } => Self::OutOfOrder { before, ranks: size },
            SizeError::Empty => Self::Empty,
            other => Self::List(other),
        }
    }
}

/// Parses a number of ranks: a whole number, where `K`, `M`, `G` are powers of 1024.
///
/// # Errors
///
/// [`RanksError`].
pub fn rank_count(text: &str) -> Result<u32, RanksError> {
    u32::try_from(size(text)?).map_err(|_| RanksError::TooMany)
}

/// Parses a list of rank counts in the forms of [`sizes`].
///
/// # Errors
///
/// [`RanksError`] names the offending item.
pub fn rank_counts(text: &str) -> Result<Sizes, RanksError> {
    Ok(sizes(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_of_ranks() {
        assert_eq!(rank_count("4K").unwrap(), 4_096);
        assert_eq!(rank_counts("4:16").unwrap().list(), [4, 8, 16]);
        for (text, part) in [("abc", "'abc' is no number of ranks"), ("4,3", "3 ranks follow 4")] {
            let error = rank_counts(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(rank_count("4G").unwrap_err().to_string().contains("at most 4294967295"));
    }
}
