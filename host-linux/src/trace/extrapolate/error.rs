//! Reasons why traces are not extrapolated.

use loggap_core::sim::BuildError;

use super::communication::{Difference, Misfit};
use super::fit::SizeOn;
use super::mapping::DIMENSIONS;
use crate::trace::convert::ConvertError;

/// Why a trace cannot be extrapolated.
#[derive(Debug, thiserror::Error)]
pub enum ExtrapolateError {
    /// The trace cannot be converted.
    #[error(transparent)]
    Convert(#[from] ConvertError<BuildError>),
    /// A rank of the trace is missing.
    #[error("the file of rank {0} is lost: what larger programs do there is not known")]
    Lost(u32),
    /// Lists of counts differ between traces.
    #[error(
        "the lists of counts of {0} differ between the traces: how they grow is not fitted; with one \
         trace they repeat"
    )]
    Lists(String),
    /// Too many ranks.
    #[error("the larger program has more than 2147483647 ranks")]
    Ranks,
    /// Too many tags.
    #[error("the trace has more than 2147483647 tags above 2147483647")]
    Tags,
    /// Too many dimensions, or none.
    #[error("a grid has one to {DIMENSIONS} dimensions")]
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
        "the traced grid {extents} has fewer than 3 ranks along dimension {dimension}, which grows: what \
         a rank with others on both sides does is not in the trace; {MORE}"
    )]
    Narrow {
        /// Extents of the traced grid.
        extents: String,
        /// Number of the dimension, from 1.
        dimension: usize,
    },
    /// The ranks do not fit into the grid.
    #[error("the traced ranks are no grid of {extents}: {}", told(misfit))]
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
    /// A grid of more dimensions fits.
    #[error(
        "the traced ranks are a grid of {extents}: give as many extents, such as --grid {example}"
    )]
    OtherShape {
        /// Extents of the traced grid.
        extents: String,
        /// Extents of a larger grid.
        example: String,
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
        "the trace on {traced} ranks, extrapolated to {ranks}, is not the trace on {ranks}: communication \
         {message} of rank {rank} is {}, and that of its place on {traced} is {}", what[0], what[1]
    )]
    HeldOut {
        /// Number of ranks of the smaller trace.
        traced: u32,
        /// Number of ranks of the larger trace.
        ranks: u32,
        /// Rank.
        rank: u32,
        /// Number of the communication, from 1.
        message: usize,
        /// It, and that of the smaller trace.
        what: [String; 2],
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
        /// Those known.
        sizes: Vec<SizeOn>,
    },
    /// Several grids fit.
    #[error("the traced ranks may be a grid of {} or of {}: give one as --grid {}:TARGET", grids[0], grids[1], grids[0].replace('r', ""))]
    Tie {
        /// Extents of two of them.
        grids: [String; 2],
    },
}

/// Remedy where ranks are missing.
const MORE: &str = "trace on 3 or more ranks along each dimension that grows";

fn listed(sizes: &[SizeOn]) -> String {
    let one = |SizeOn { ranks, bytes }: &SizeOn| format!("{bytes} B on {ranks} ranks");
    sizes.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn told(misfit: &Misfit) -> String {
    let differ = |Difference { ranks: [one, other], number, what: [known, found] }: &Difference| {
        format!("communication {number} of rank {one} is {known}, and that of rank {other} {found}")
    };
    match misfit {
        Misfit::Differ(difference) => format!("of equal places, {}", differ(difference)),
        Misfit::Ends(difference) => format!(
            "{}; with fewer than 3 ranks along a dimension, what is between them follows only from \
             messages at one end and MPI_PROC_NULL at the other; {MORE}",
            differ(difference)
        ),
        Misfit::Null { rank, number } => format!(
            "communication {number} of rank {rank} is with MPI_PROC_NULL on all ranks, and how far its \
             peer is on more is not in the trace; {MORE}"
        ),
        Misfit::Unclear(rank) => format!(
            "a peer of rank {rank} is at the other end of a dimension, or half a ring away, and how far it \
             is on more ranks is not clear; trace on more"
        ),
    }
}
