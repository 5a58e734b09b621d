//! Machines on which the ranks ran.

use serde::{Deserialize, Serialize};

use crate::job::{MachineUse, Place, Sharing};

/// A machine and its ranks.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Host {
    /// Name of the machine.
    pub host: String,
    /// Number of ranks on it.
    pub ranks: usize,
    /// Number of processors that these ranks may use.
    pub processors: usize,
    /// Number of ranks that are bound to one processor.
    pub bound: usize,
}

/// Machines of a job, in order of their names, and true if ranks share
/// processors on one of them.
#[must_use]
pub fn hosts(places: &[Place]) -> (Vec<Host>, bool) {
    let sharing = Sharing::of(places);
    let host = |machine: &MachineUse<'_>| Host {
        host: machine.host.to_owned(),
        ranks: machine.ranks,
        processors: machine.processors,
        bound: machine.bound,
    };
    (sharing.machines().iter().map(host).collect(), sharing.is_shared())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_share_processors_are_noticed() {
        let place = |host: &str, cpu, processors| Place {
            host: host.into(),
            cpu,
            processors,
            ..Place::default()
        };
        let (found, shared) =
            hosts(&[place("b", None, 2), place("a", None, 2), place("b", None, 2)]);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].host.as_str(), found[1].ranks, shared), ("a", 2, false));
        assert!(hosts(&[place("a", Some(3), 1), place("a", Some(3), 1)]).1);
        assert!(!hosts(&[place("a", Some(3), 1), place("a", Some(4), 1)]).1);
        assert!(hosts(&[place("a", None, 1), place("a", None, 1)]).1);
    }
}
