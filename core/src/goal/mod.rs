//! GOAL schedules: the sends, receives and calculations of each rank, and their dependencies.

pub mod binary;
pub mod check;
mod extent;
mod interleave;
mod lookup;
mod op;
mod output;
pub mod pattern;
mod protocol;
mod rank;
pub mod stats;
#[cfg(test)]
mod testing;
pub mod text;

pub use extent::Extent;
pub use interleave::{InterleaveError, Interleaver, KeptOrder};
pub use lookup::{DependsOn, Lookup, OpIndex};
pub use op::{ANY, ANY_TAG, Edge, Op, OpKind, Sink};
pub use output::{NoRoom, Output, SliceOutput};
pub use protocol::Misuse;
pub use rank::{RankMemory, RankNode};
