//! Errors of the builders.

use core::fmt;

use super::unsuitable::Unsuitable;
use crate::goal::ANY;
use crate::worded::errors;

errors! {
    /// Reason why a schedule cannot be simulated.
    pub enum BuildError {
        /// 2³² − 1 or more operations, or 2³¹ or more dependencies.
        TooManyOps => "a simulation holds less than 2^32 - 1 operations and 2^31 dependencies";
        /// Less memory was lent than the survey requires, or the schedule is larger than the
        /// surveyed one.
        Full => "the schedule does not fit into the memory lent for it";
        /// Ranks were not in ascending order, or not as many as announced.
        Order {
            /// Rank that was expected.
            rank: u32,
        } => "rank {rank} is missing or out of order";
        /// A dependency names an operation that the rank does not have.
        UnknownOp {
            /// Rank of the dependency.
            rank: u32,
            /// Operation that does not exist.
            op: u32,
        } => "rank {rank} has no operation {op} to depend on";
        /// A peer is a rank that does not exist.
        Peer {
            /// Rank of the operation.
            rank: u32,
            /// Index of the operation on its rank.
            op: u32,
            /// Peer that does not exist.
            peer: u32,
        } => "operation {op} of rank {rank} {}", Missing(*peer);
        /// An operation is on a processor or interface beyond those of the survey.
        Unit {
            /// Rank of the operation.
            rank: u32,
            /// Index of the operation on its rank.
            op: u32,
        } => "operation {op} of rank {rank} has a cpu or nic that the survey did not see";
        /// A tag above 2³² − 2. Renumber such tags to simulate the schedule.
        Tag {
            /// Rank of the operation.
            rank: u32,
            /// Index of the operation on its rank.
            op: u32,
        } => "operation {op} of rank {rank} has a tag above 2^32 - 2; give tags smaller numbers";
        /// The schedule cannot run in time windows.
        Unsuitable(why: Unsuitable) => "the schedule cannot run in windows: {why}";
    }
}

/// Formats the reason why a peer is invalid.
struct Missing(u32);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ANY => f.write_str("sends to no rank in particular"),
            peer => write!(f, "names rank {peer}, which does not exist"),
        }
    }
}
