//! Why there is no network.

use core::fmt;

use super::topology::TopologyError;

/// Why there is no network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum NetworkBuildError {
    /// The memory that was lent is less than it requires.
    Full,
    /// A rank has no host, or one that there is not.
    Placement {
        /// The first such rank.
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
