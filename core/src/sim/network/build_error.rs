//! Errors of creating a network.

use super::topology::TopologyError;
use crate::worded::errors;

errors! {
    /// Reason why a network cannot be created.
    pub enum NetworkBuildError {
        /// Less memory was lent than required.
        Full => "the memory for the network is less than it requires";
        /// A rank is placed on no host, or on one that does not exist.
        Placement {
            /// First such rank.
            rank: u32,
        } => "rank {rank} is placed on no host of the topology";
        /// The topology has too few hosts.
        Topology(error: TopologyError) => "topology: {error}";
    }
}
