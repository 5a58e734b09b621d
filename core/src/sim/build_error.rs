//! Why a schedule cannot be simulated.

use core::fmt;

use super::unsuitable::Unsuitable;
use crate::goal::ANY;
use crate::worded::errors;

errors! {
    /// Why a schedule cannot be simulated.
    pub enum BuildError {
        /// 2³² − 1 or more operations, or 2³¹ or more dependencies.
        TooManyOps => "a simulation holds less than 2^32 - 1 operations and 2^31 dependencies";
        /// Less memory was lent than the survey asked for, or the schedule is
        /// larger than the surveyed one.
        Full => "the schedule does not fit into the memory lent for it";
        /// Ranks did not come in ascending order, or not as many as announced.
        Order {
            /// The rank that was expected.
            rank: u32,
        } => "rank {rank} is missing or out of order";
        /// A dependency names an operation that the rank does not have.
        UnknownOp {
            /// The rank.
            rank: u32,
            /// The unknown operation.
            op: u32,
        } => "rank {rank} has no operation {op} to depend on";
        /// A message goes to or comes from a rank that does not exist.
        Peer {
            /// The rank that has the operation.
            rank: u32,
            /// The operation.
            op: u32,
            /// The rank that does not exist.
            peer: u32,
        } => "operation {op} of rank {rank} {}", Missing(*peer);
        /// An operation is on a processor or interface beyond those that the
        /// survey found.
        Unit {
            /// The rank that has the operation.
            rank: u32,
            /// The operation.
            op: u32,
        } => "operation {op} of rank {rank} has a cpu or nic that the survey did not see";
        /// A tag of more than 32 bits, or 2³² − 1. A schedule with such tags is simulated
        /// after each of them got a number below.
        Tag {
            /// The rank that has the operation.
            rank: u32,
            /// The operation.
            op: u32,
        } => "operation {op} of rank {rank} has a tag above 2^32 - 2; give tags smaller numbers";
        /// The schedule cannot run in time windows.
        Unsuitable(why: Unsuitable) => "the schedule cannot run in windows: {why}";
    }
}

/// What is wrong with a peer.
struct Missing(u32);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ANY => f.write_str("sends to no rank in particular"),
            peer => write!(f, "names rank {peer}, which does not exist"),
        }
    }
}
