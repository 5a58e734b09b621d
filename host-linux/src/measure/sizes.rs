//! Which sizes to measure.

use loggap_core::measure::coarse_sizes;

use super::MeasureError;

/// Sizes of a coarse sweep: powers of two and one size between each two, over
/// sixteen octaves.
const COARSE_SIZES: usize = 36;

/// Which sizes to measure.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SizePlan {
    /// A coarse sweep over this span, with sizes added around changes. With
    /// `shrink` it ends where the link's messages do.
    Span {
        /// Smallest size in bytes.
        first: u32,
        /// Largest size in bytes.
        last: u32,
        /// Whether `last` may be lowered to what the link takes.
        shrink: bool,
    },
    /// Exactly these, in bytes.
    Listed(Vec<u32>),
}

impl SizePlan {
    /// The largest size in bytes.
    #[must_use]
    pub fn largest(&self) -> u32 {
        match self {
            Self::Span { last, .. } => *last,
            Self::Listed(sizes) => sizes.iter().copied().max().unwrap_or(0),
        }
    }

    /// Whether sizes may be added around changes.
    #[must_use]
    pub const fn may_add(&self) -> bool {
        matches!(self, Self::Span { .. })
    }

    /// The sizes to begin with, of messages up to `longest` bytes.
    ///
    /// # Errors
    ///
    /// [`MeasureError::NoSizes`] and [`MeasureError::TooLong`].
    pub fn within(&self, longest: u32) -> Result<Vec<u32>, MeasureError> {
        let sizes = match self {
            Self::Listed(sizes) => sizes.clone(),
            Self::Span { first, last, shrink } => {
                let last = if *shrink { (*last).min(longest) } else { *last };
                default_sweep(*first, last)
            }
        };
        match sizes.iter().copied().max() {
            None => Err(MeasureError::NoSizes),
            Some(size) if size > longest => Err(MeasureError::TooLong { size, longest }),
            Some(_) => Ok(sizes),
        }
    }
}

/// The coarse sweep from `first` to `last` bytes.
#[must_use]
pub fn default_sweep(first: u32, last: u32) -> Vec<u32> {
    let mut sizes = vec![0; COARSE_SIZES];
    let count = coarse_sizes(first, last, &mut sizes);
    sizes.truncate(count);
    sizes
}
