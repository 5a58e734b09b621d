//! Message sizes to measure.

use loggap_core::measure::coarse_sizes;

use super::MeasureError;

/// Capacity for a coarse sweep: powers of two and one size between each two, over sixteen octaves.
const COARSE_SIZES: usize = 36;

/// Message sizes to measure.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SizePlan {
    /// A coarse sweep over this span; sizes are added around changes of protocol.
    Span {
        /// Smallest size in bytes.
        first: u32,
        /// Largest size in bytes.
        last: u32,
        /// True if `last` may be lowered to the longest message of the link.
        shrink: bool,
    },
    /// Exactly these sizes, bytes.
    Listed(Vec<u32>),
}

impl Default for SizePlan {
    /// From 1 B to 64 KiB, or to the longest message of the link.
    fn default() -> Self {
        Self::Span { first: 1, last: 64 << 10, shrink: true }
    }
}

impl SizePlan {
    /// Smallest size, bytes.
    #[must_use]
    pub fn smallest(&self) -> u32 {
        match self {
            Self::Span { first, .. } => *first,
            Self::Listed(sizes) => sizes.iter().copied().min().unwrap_or(0),
        }
    }

    /// Largest size, bytes.
    #[must_use]
    pub fn largest(&self) -> u32 {
        match self {
            Self::Span { last, .. } => *last,
            Self::Listed(sizes) => sizes.iter().copied().max().unwrap_or(0),
        }
    }

    /// True if sizes may be added around changes of protocol.
    #[must_use]
    pub const fn may_add(&self) -> bool {
        matches!(self, Self::Span { .. })
    }

    /// Initial sizes for a link that takes messages of up to `longest` bytes.
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
