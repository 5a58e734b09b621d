//! Why a schedule cannot be simulated.

use core::fmt;

use super::unsuitable::Unsuitable;
use crate::goal::ANY;

/// Why a schedule cannot be simulated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BuildError {
    /// 2³² − 1 or more operations, or 2³¹ or more dependencies.
    TooManyOps,
    /// Less memory was lent than the survey asked for, or the schedule is
    /// larger than the surveyed one.
    Full,
    /// Ranks did not come in ascending order, or not as many as announced.
    Order {
        /// The rank that was expected.
        rank: u32,
    },
    /// A dependency names an operation that the rank does not have.
    UnknownOp {
        /// The rank.
        rank: u32,
        /// The unknown operation.
        op: u32,
    },
    /// A message goes to or comes from a rank that does not exist.
    Peer {
        /// The rank that has the operation.
        rank: u32,
        /// The operation.
        op: u32,
        /// The rank that does not exist.
        peer: u32,
    },
    /// An operation is on a processor or interface beyond those that the
    /// survey found.
    Unit {
        /// The rank that has the operation.
        rank: u32,
        /// The operation.
        op: u32,
    },
    /// The schedule cannot run in time windows.
    Unsuitable(Unsuitable),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyOps => f.write_str(
                "a simulation holds less than 2^32 - 1 operations and 2^31 dependencies",
            ),
            Self::Full => f.write_str("the schedule does not fit into the memory lent for it"),
            Self::Order { rank } => write!(f, "rank {rank} is missing or out of order"),
            Self::UnknownOp { rank, op } => {
                write!(f, "rank {rank} has no operation {op} to depend on")
            }
            Self::Peer { rank, op, peer: ANY } => {
                write!(f, "operation {op} of rank {rank} sends to no rank in particular")
            }
            Self::Peer { rank, op, peer } => {
                write!(f, "operation {op} of rank {rank} names rank {peer}, which does not exist")
            }
            Self::Unit { rank, op } => write!(
                f,
                "operation {op} of rank {rank} has a cpu or nic that the survey did not see"
            ),
            Self::Unsuitable(why) => write!(f, "the schedule cannot run in windows: {why}"),
        }
    }
}

impl core::error::Error for BuildError {}
