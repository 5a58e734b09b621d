//! Errors of networks.

use std::io;
use std::path::PathBuf;

use loggap_core::sim::network::{NetworkBuildError, TopologyError};

pub use super::dot::DotError;
pub use super::locations::PairsError;
use super::locations::RankLocation;

/// Explanation of host names, for errors of routes.
const ENDS: &str =
    "; nodes whose names begin with H are hosts, and hosts do not forward messages of others";

/// Why a network cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The topology's name is invalid.
    #[error("topology '{0}': {reason}", reason = reason(.1))]
    Topology(String, TopologyError),
    /// The file contains no valid topology.
    #[error("{path}: {1}", path = .0.display())]
    Graph(PathBuf, GraphError),
    /// The file cannot be read.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// The file is longer than the limit, in bytes.
    #[error("{path}: longer than {1} bytes, the most that are read", path = .0.display())]
    TooLong(PathBuf, u64),
    /// A word is no valid number of a host or node.
    #[error(
        "{path}: line {line}: '{word}' is no {what}; expected the {what} of each rank, as numbers from 0 on",
        path = .path.display()
    )]
    Word {
        /// Path of the file.
        path: PathBuf,
        /// The line, from 1 on.
        line: usize,
        /// The word.
        word: String,
        /// Expected kind of number.
        what: RankLocation,
    },
    /// Pairs of rank and location are invalid or ambiguous.
    #[error("{path}: {reason}", path = .path.display())]
    Pairs {
        /// Path of the file.
        path: PathBuf,
        /// Why.
        reason: PairsError,
    },
    /// The file has fewer hosts than there are ranks.
    #[error("{path}: hosts for {listed} of {ranks} ranks", path = .path.display())]
    TooFew {
        /// Path of the file.
        path: PathBuf,
        /// Number of ranks in the file.
        listed: usize,
        /// Number of ranks of the schedule.
        ranks: u32,
    },
    /// The file names a host that the topology does not have.
    #[error("{path}: rank {rank} is on host {host} of {hosts}, counted from 0", path = .path.display())]
    Host {
        /// Path of the file.
        path: PathBuf,
        /// The rank.
        rank: u32,
        /// Host of the rank.
        host: u32,
        /// Number of hosts in the topology.
        hosts: u32,
    },
    /// The network rejects the topology or the placement.
    #[error(transparent)]
    Flows(#[from] NetworkBuildError),
    /// The kernel cannot provide the memory.
    #[error("there is no memory for the network: {0}")]
    Pages(io::Error),
    /// The network needs more memory than is available; overcommitment might hide that at first.
    #[error(
        "the network takes {needed} bytes of memory, and {available} are available; take a smaller topology"
    )]
    TooLarge {
        /// Required memory, bytes.
        needed: u64,
        /// Available memory, bytes.
        available: u64,
    },
}

/// Explains an invalid topology; unlike the core's message it mentions files.
fn reason(error: &TopologyError) -> String {
    match error {
        TopologyError::Unknown => "expected star, tree:HOSTS[:TAPER], fat-tree:PORTS[:TAPER], \
            torus:AxBxC, dragonfly:GROUPS:ROUTERS:HOSTS, rail:HOSTS:NODES[:TAPER], or a file with a \
            graph, FILE.dot or FILE.gv"
            .to_owned(),
        other => other.to_string(),
    }
}

/// Why a graph is no valid topology.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum GraphError {
    /// Syntax error.
    #[error(transparent)]
    Dot(#[from] DotError),
    /// No node is a host.
    #[error("no node is a host; their names begin with H")]
    NoHost,
    /// An edge connects a node to itself.
    #[error("line {line}: an edge from {node} to itself")]
    Loop {
        /// Line of the edge.
        line: usize,
        /// The node.
        node: String,
    },
    /// A capacity is invalid.
    #[error("line {line}: capacity '{text}' is no finite number above 0, in links of a host")]
    Capacity {
        /// Line of the edge.
        line: usize,
        /// Text of the capacity.
        text: String,
    },
    /// A comment names a node that is no host.
    #[error("line {line}: '{name}' is no host of the graph")]
    Destination {
        /// Line of the edge.
        line: usize,
        /// The name.
        name: String,
    },
    /// Two edges of a node lead to the same host, or both to all others.
    #[error("line {line}: another edge of {node} leads to {destination} already")]
    Twice {
        /// Line of the second edge.
        line: usize,
        /// The node.
        node: String,
        /// The host, or `*`.
        destination: String,
    },
    /// There is no route between two hosts, or it contains a cycle.
    #[error("there is no way from {from} to {to}{}", if *.cycle { ": messages go round a cycle" } else { ENDS })]
    NoWay {
        /// Sending host.
        from: String,
        /// Receiving host.
        to: String,
        /// True if the route contains a cycle.
        cycle: bool,
    },
    /// A route passes through a host.
    #[error("messages from {from} to {to} would pass the host {through}; hosts are ends")]
    Through {
        /// Sending host.
        from: String,
        /// Receiving host.
        to: String,
        /// Host on the route.
        through: String,
    },
    /// The table of routes would be too large.
    #[error("{nodes} nodes and {hosts} hosts need a table of more than 2^28 routes")]
    TooLarge {
        /// Number of nodes, hosts and switches.
        nodes: usize,
        /// Number of hosts.
        hosts: usize,
    },
}
