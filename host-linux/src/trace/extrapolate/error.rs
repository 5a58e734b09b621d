//! Reasons why traces are not extrapolated.

use loggap_core::sim::BuildError;

use super::grid::Misfit;
use super::mapping::DIMENSIONS;
use crate::trace::convert::ConvertError;

/// Why a trace cannot be extrapolated.
#[derive(Debug, thiserror::Error)]
pub enum ExtrapolateError {
    /// The trace cannot be converted.
    #[error(transparent)]
    Convert(#[from] ConvertError<BuildError>),
    /// Too many ranks.
    #[error("the larger program has more than 2147483647 ranks")]
    Ranks,
    /// There is no memory for the ranks.
    #[error("there is no memory for {0} ranks")]
    Memory(u32),
    /// Too many tags.
    #[error("the trace has more than 2147483647 tags above 2147483647")]
    Tags,
    /// Too many dimensions.
    #[error("a grid has at most {DIMENSIONS} dimensions")]
    Dimensions,
    /// The given grid is not of the traced ranks.
    #[error(
        "the trace has {ranks} ranks: before ':', --grid takes as many extents as behind it, whose \
         product is {ranks}"
    )]
    Product {
        /// Number of traced ranks.
        ranks: u32,
    },
    /// The larger grid is smaller.
    #[error("dimension {dimension} of --grid is smaller than in the trace")]
    Smaller {
        /// Number of the dimension, from 1.
        dimension: usize,
    },
    /// A dimension has no inner ranks.
    #[error(
        "the traced grid {extents} has a dimension that grows and has fewer than 3 ranks: what a rank \
         between the first and the last does is not in the trace; trace on 3 or more"
    )]
    Narrow {
        /// Extents of the traced grid.
        extents: String,
    },
    /// The ranks do not fit into the grid.
    #[error("the traced ranks are no grid of {extents}: {}", told(*misfit))]
    Misfit {
        /// Extents of the traced grid.
        extents: String,
        /// Reason.
        misfit: Misfit,
    },
    /// No grid fits.
    #[error(
        "the traced ranks are no grid of {dimensions} dimensions in which equal places do the same; \
         try another number of dimensions, '--grid TRACED:TARGET' to learn where a grid fails, or \
         --extrapolate for separate copies"
    )]
    NoGrid {
        /// Number of dimensions of the larger grid.
        dimensions: usize,
    },
    /// Messages that are neither of a ring nor of a tree.
    #[error(
        "message {message} of rank {rank} of the trace on {ranks} ranks belongs to no ring or tree: \
         --grid is for grids of more dimensions, --extrapolate for separate copies"
    )]
    NoPattern {
        /// Number of traced ranks.
        ranks: u32,
        /// Rank.
        rank: u32,
        /// Number of the message, from 1.
        message: usize,
    },
    /// Several patterns fit.
    #[error(
        "on {ranks} ranks, messages may be {} or {}: give a further --trace, on another number of ranks",
        patterns[0], patterns[1]
    )]
    PatternTie {
        /// Number of traced ranks.
        ranks: u32,
        /// Two of them.
        patterns: [String; 2],
    },
    /// Copies are made of one trace.
    #[error("--extrapolate copies one trace: several are for --grid and --to-ranks")]
    Several,
    /// The rule of a smaller trace does not give the larger one.
    #[error(
        "the trace on {traced} ranks, extrapolated to {ranks}, is not the trace on {ranks}: rank {rank} \
         differs in message {message}"
    )]
    HeldOut {
        /// Number of ranks of the smaller trace.
        traced: u32,
        /// Number of ranks of the larger trace.
        ranks: u32,
        /// Rank.
        rank: u32,
        /// Number of the message, from 1.
        message: usize,
    },
    /// Sizes that follow no form.
    #[error(
        "the size of message {message} of rank {rank} is no c P^a and no c + d log2 P: {}",
        listed(sizes)
    )]
    Sizes {
        /// Rank.
        rank: u32,
        /// Number of the message, from 1.
        message: usize,
        /// Numbers of ranks, and bytes.
        sizes: Vec<(u32, u64)>,
    },
    /// Several grids fit.
    #[error("the traced ranks may be a grid of {} or of {}: give one as --grid {}:TARGET", grids[0], grids[1], grids[0].replace('r', ""))]
    Tie {
        /// Extents of two of them.
        grids: [String; 2],
    },
}

fn listed(sizes: &[(u32, u64)]) -> String {
    let one = |(ranks, bytes): &(u32, u64)| format!("{bytes} B on {ranks} ranks");
    sizes.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn told(misfit: Misfit) -> String {
    match misfit {
        Misfit::Differ([one, other], at) => {
            format!("ranks {one} and {other} have the same place, and differ in message {}", at + 1)
        }
        Misfit::Unclear(rank) => format!(
            "a peer of rank {rank} is at the other end of a dimension, or half a ring away, and how far it \
             is on more ranks is not clear; trace on more"
        ),
    }
}
