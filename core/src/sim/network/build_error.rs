//! Errors of creating a network.

use core::fmt;

use super::topology::TopologyError;

/// Reason why a network cannot be created.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum NetworkBuildError {
    /// Less memory was lent than required.
    Full,
    /// A rank is placed on no host, or on one that does not exist.
    Placement {
        /// First such rank.
        rank: u32,
    },
    /// The topology has too few hosts.
    Topology(TopologyError),
}

impl fmt::Display for NetworkBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the memory for the network is less than it requires"),
            Self::Placement { rank } => {
                write!(f, "rank {rank} is placed on no host of the topology")
            }
            Self::Topology(error) => write!(f, "topology: {error}"),
        }
    }
}

impl core::error::Error for NetworkBuildError {}
