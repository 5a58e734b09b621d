//! Why there is no network.

use std::io;
use std::path::PathBuf;

use loggap_core::sim::network::{NetworkBuildError, TopologyError};

pub use super::dot::DotError;
pub use super::locations::PairsError;
use super::locations::RankLocation;

/// What the author of a graph may not have known.
const ENDS: &str =
    "; nodes whose names begin with H are hosts, and hosts do not forward messages of others";

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// There is no such topology.
    #[error("topology '{0}': {reason}", reason = reason(.1))]
    Topology(String, TopologyError),
    /// What is in a file is no topology.
    #[error("{path}: {1}", path = .0.display())]
    Graph(PathBuf, GraphError),
    /// A file cannot be read.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// The file is longer than this many bytes.
    #[error("{path}: longer than {1} bytes, the most that are read", path = .0.display())]
    TooLong(PathBuf, u64),
    /// A word is no host, or no node.
    #[error(
        "{path}: line {line}: '{word}' is no {what}; expected the {what} of each rank, as numbers from 0 on",
        path = .path.display()
    )]
    Word {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: usize,
        /// The word.
        word: String,
        /// What was expected.
        what: RankLocation,
    },
    /// Pairs of a rank and its location that are none, or may be none.
    #[error("{path}: {reason}", path = .path.display())]
    Pairs {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: PairsError,
    },
    /// The file has hosts for fewer ranks than there are.
    #[error("{path}: hosts for {listed} of {ranks} ranks", path = .path.display())]
    TooFew {
        /// The file.
        path: PathBuf,
        /// Ranks that it has hosts for.
        listed: usize,
        /// Ranks that there are.
        ranks: u32,
    },
    /// The file names a host that the topology does not have.
    #[error("{path}: rank {rank} is on host {host} of {hosts}, counted from 0", path = .path.display())]
    Host {
        /// The file.
        path: PathBuf,
        /// The rank.
        rank: u32,
        /// Its host.
        host: u32,
        /// Hosts of the topology.
        hosts: u32,
    },
    /// The core refuses it.
    #[error(transparent)]
    Flows(#[from] NetworkBuildError),
    /// The kernel has no more memory.
    #[error("there is no memory for the network: {0}")]
    Pages(io::Error),
    /// The system has not as much, which it might notice too late.
    #[error(
        "the network takes {needed} bytes of memory, and {available} are available; take a smaller topology"
    )]
    TooLarge {
        /// What it takes, in bytes.
        needed: u64,
        /// What the system can give, in bytes.
        available: u64,
    },
}

/// Why there is no such topology; here there are also files.
fn reason(error: &TopologyError) -> String {
    match error {
        TopologyError::Unknown => "expected star, tree:HOSTS[:TAPER], fat-tree:PORTS[:TAPER], \
            torus:AxBxC, dragonfly:GROUPS:ROUTERS:HOSTS, rail:HOSTS:NODES[:TAPER], or a file with a \
            graph, FILE.dot or FILE.gv"
            .to_owned(),
        other => other.to_string(),
    }
}

/// Why a file is no topology.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum GraphError {
    /// It cannot be read.
    #[error(transparent)]
    Dot(#[from] DotError),
    /// No node is a host.
    #[error("no node is a host; their names begin with H")]
    NoHost,
    /// An edge from a node to itself.
    #[error("line {line}: an edge from {node} to itself")]
    Loop {
        /// Its line.
        line: usize,
        /// The node.
        node: String,
    },
    /// A capacity that is none.
    #[error("line {line}: capacity '{text}' is no finite number above 0, in links of a host")]
    Capacity {
        /// The line of its edge.
        line: usize,
        /// What it says.
        text: String,
    },
    /// Where routes have to be given, an edge of several of a node gives none.
    #[error(
        "line {line}: the edge from {from} to {to} has no comment; expected the hosts to which \
         messages leave over it, as in comment=\"H0,H1\", or comment=\"*\""
    )]
    NoComment {
        /// Its line.
        line: usize,
        /// Where it begins.
        from: String,
        /// Where it ends.
        to: String,
    },
    /// A capacity where all links are alike.
    #[error("line {line}: a capacity has no effect here, where every link carries 1 byte per ns")]
    Alike {
        /// The line of its edge.
        line: usize,
    },
    /// A comment names what is no host.
    #[error("line {line}: '{name}' is no host of the graph")]
    Destination {
        /// The line of its edge.
        line: usize,
        /// The name.
        name: String,
    },
    /// Two edges of a node lead to one host, or to all others.
    #[error("line {line}: another edge of {node} leads to {destination} already")]
    Twice {
        /// The line of the second.
        line: usize,
        /// The node.
        node: String,
        /// The host, or `*`.
        destination: String,
    },
    /// There is no way, or it goes round in cycles.
    #[error("there is no way from {from} to {to}{}", if *.cycle { ": messages go round a cycle" } else { ENDS })]
    NoWay {
        /// The host that sends.
        from: String,
        /// The one that receives.
        to: String,
        /// Whether links lead on for ever.
        cycle: bool,
    },
    /// A host stands between others.
    #[error("messages from {from} to {to} would pass the host {through}; hosts are ends")]
    Through {
        /// The host that sends.
        from: String,
        /// The one that receives.
        to: String,
        /// The one between.
        through: String,
    },
    /// Too many nodes times hosts.
    #[error("{nodes} nodes and {hosts} hosts need a table of more than 2^28 routes")]
    TooLarge {
        /// Nodes, hosts and switches.
        nodes: usize,
        /// Hosts.
        hosts: usize,
    },
}
