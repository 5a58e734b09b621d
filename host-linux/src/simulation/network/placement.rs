//! Placement of ranks on hosts.

use std::path::{Path, PathBuf};

use loggap_core::random::Random;
use loggap_core::sim::network::Fabric;

use super::locations::{RankLocation, read_locations};
use super::{NetworkError, Wiring};

/// Placement of ranks on hosts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Placement {
    /// Rank i on host i.
    Block,
    /// Consecutive ranks on hosts with different first switches.
    RoundRobin,
    /// Random order of hosts, determined by the seed.
    Random,
    /// Hosts listed in a file with this path.
    Hosts(PathBuf, Vec<u32>),
}

impl Placement {
    /// Reads the host of each rank from a file, see [`read_locations`].
    ///
    /// # Errors
    ///
    /// [`NetworkError`] with the file and the line.
    pub fn read(path: &Path) -> Result<Self, NetworkError> {
        Ok(Self::Hosts(path.to_owned(), read_locations(path, RankLocation::Host)?))
    }

    /// Hosts of the first `ranks` ranks; empty for the host of the same number.
    pub(super) fn hosts(
        &self,
        ranks: u32,
        topology: &Wiring,
        seed: u64,
    ) -> Result<Vec<u32>, NetworkError> {
        match self {
            Self::Block => Ok(Vec::new()),
            Self::RoundRobin => match topology {
                Wiring::Generated(topology) => {
                    let together = topology.hosts_together();
                    let switches = (topology.hosts() / together).max(1);
                    let host = |rank: u32| rank % switches * together + rank / switches;
                    Ok((0..ranks).map(host).collect())
                }
                Wiring::Graph(graph) => {
                    let mut dealt = graph.dealt();
                    dealt.truncate(ranks as usize);
                    Ok(dealt)
                }
            },
            Self::Random => {
                let mut hosts: Vec<u32> = (0..topology.hosts()).collect();
                let mut random = Random::new(seed);
                for at in (1..hosts.len()).rev() {
                    let other = random.below(at as u64 + 1);
                    hosts.swap(at, usize::try_from(other).unwrap_or(at));
                }
                hosts.truncate(ranks as usize);
                Ok(hosts)
            }
            Self::Hosts(path, hosts) => {
                let some = hosts.get(..ranks as usize).ok_or_else(|| NetworkError::TooFew {
                    path: path.clone(),
                    listed: hosts.len(),
                    ranks,
                })?;
                let outside = (0..).zip(some).find(|(_, host)| **host >= topology.hosts());
                if let Some((rank, &host)) = outside {
                    let (path, hosts) = (path.clone(), topology.hosts());
                    return Err(NetworkError::Host { path, rank, host, hosts });
                }
                Ok(some.to_vec())
            }
        }
    }

    /// Name on the command line.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Block => "block".to_owned(),
            Self::RoundRobin => "round-robin".to_owned(),
            Self::Random => "random".to_owned(),
            Self::Hosts(path, _) => path.display().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use loggap_core::sim::network::Topology;

    use super::*;

    #[test]
    fn random_placement_deals_every_host_once_by_its_seed() {
        let topology = Wiring::Generated(Topology::tree(32, 8, 2.0).unwrap());
        let hosts = topology.hosts();
        let deal = |seed| Placement::Random.hosts(hosts, &topology, seed).unwrap();
        let mut all: Vec<u32> = (0..hosts).collect();
        let [one, again, other] = [7, 7, 8].map(deal);
        assert_eq!(one, again);
        assert!(one != other && one != all, "{one:?}");
        let mut sorted = one;
        sorted.sort_unstable();
        assert_eq!(sorted, all);
        // A smaller number of ranks gets the first of the same hosts.
        all = deal(8);
        assert_eq!(Placement::Random.hosts(5, &topology, 8).unwrap(), all[..5]);
    }
}
