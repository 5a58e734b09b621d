//! Topologies from generators or files.

use std::path::{Path, PathBuf};

use loggap_core::sim::network::{Fabric, Topology};

use super::NetworkError;
use super::graph::GraphTopology;
use super::locations::read;

/// Description of a topology, independent of the number of ranks.
#[derive(Clone, Debug)]
pub enum TopologyPlan {
    /// Description for [`Topology::parse`].
    Named(String),
    /// Graph from the file with this path.
    File(PathBuf, GraphTopology),
}

impl TopologyPlan {
    /// File name extensions of graphs.
    const GRAPHS: [&str; 2] = ["dot", "gv"];

    /// True if this is the name of a file with a graph.
    #[must_use]
    pub fn is_file(name: &Path) -> bool {
        let end = name.extension();
        end.is_some_and(|end| Self::GRAPHS.iter().any(|graph| end == *graph))
    }

    /// True if there are links between switches, at least for some number of ranks.
    #[must_use]
    pub fn has_inner_links(&self) -> bool {
        match self {
            Self::Named(name) => name != "star",
            Self::File(_, graph) => graph.has_inner_links(),
        }
    }

    /// Topology with this description, or from the file if the name ends in `.dot` or `.gv`.
    ///
    /// # Errors
    ///
    /// [`NetworkError`] if the file contains no valid topology.
    pub fn new(name: &str) -> Result<Self, NetworkError> {
        if !Self::is_file(Path::new(name)) {
            return Ok(Self::Named(name.to_owned()));
        }
        let path = PathBuf::from(name);
        match GraphTopology::parse(&read(&path)?) {
            Ok(graph) => Ok(Self::File(path, graph)),
            Err(error) => Err(NetworkError::Graph(path, error)),
        }
    }
}

/// A topology.
#[derive(Clone, Debug)]
pub enum Wiring {
    /// From a generator.
    Generated(Topology),
    /// From a file.
    Graph(GraphTopology),
}

impl Wiring {
    /// Number of links in the topology, counting both directions.
    #[must_use]
    pub fn links_there_are(&self) -> u32 {
        match self {
            Self::Generated(topology) => topology.links_there_are(),
            Self::Graph(graph) => graph.links(),
        }
    }

    /// Name of a link: the nodes that it connects.
    #[must_use]
    pub fn link_name(&self, link: u32) -> String {
        match self {
            Self::Generated(topology) => topology.link_name(link).to_string(),
            Self::Graph(graph) => graph.link_name(link),
        }
    }
}

/// Forwards a call to the topology, whichever kind it is.
macro_rules! of_either {
    ($wiring:ident, $fabric:ident => $what:expr) => {
        match $wiring {
            Wiring::Generated($fabric) => $what,
            Wiring::Graph($fabric) => $what,
        }
    };
}

impl Fabric for Wiring {
    fn hosts(&self) -> u32 {
        of_either!(self, fabric => fabric.hosts())
    }

    fn links(&self) -> u32 {
        of_either!(self, fabric => fabric.links())
    }

    fn capacity(&self, link: u32) -> f64 {
        of_either!(self, fabric => fabric.capacity(link))
    }

    fn longest_route(&self) -> u32 {
        of_either!(self, fabric => fabric.longest_route())
    }

    #[inline]
    fn route(&self, source: u32, target: u32, seed: u64, each: impl FnMut(u32)) {
        of_either!(self, fabric => fabric.route(source, target, seed, each));
    }
}
