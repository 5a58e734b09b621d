//! Where ranks ran.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::job::Place;

/// A machine and its ranks.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// Ranks on it.
    pub ranks: usize,
    /// Processors that these may use.
    pub processors: usize,
    /// Ranks that are bound to one processor.
    pub bound: usize,
}

/// The machines of a job, in order of their names, and whether ranks share
/// processors on one of them.
#[must_use]
pub fn hosts(places: &[Place]) -> (Vec<Host>, bool) {
    let mut by_name: BTreeMap<&str, Vec<&Place>> = BTreeMap::new();
    for place in places {
        by_name.entry(&place.host).or_default().push(place);
    }
    let shares = |ranks: &Vec<&Place>| {
        let mut cpus: Vec<_> = ranks.iter().filter_map(|place| place.cpu).collect();
        cpus.sort_unstable();
        let twice = cpus.iter().zip(cpus.iter().skip(1)).any(|(one, next)| one == next);
        twice || ranks.len() > processors(ranks)
    };
    let shared = by_name.values().any(shares);
    let host = |(name, ranks): (&&str, &Vec<&Place>)| Host {
        host: (*name).to_owned(),
        ranks: ranks.len(),
        processors: processors(ranks),
        bound: ranks.iter().filter(|place| place.cpu.is_some()).count(),
    };
    (by_name.iter().map(host).collect(), shared)
}

/// Processors that `ranks` of one machine may use together.
fn processors(ranks: &[&Place]) -> usize {
    let widest = ranks.iter().map(|place| place.processors).max().unwrap_or(0);
    let mut bound: Vec<_> = ranks.iter().filter_map(|place| place.cpu).collect();
    bound.sort_unstable();
    bound.dedup();
    widest.max(bound.len())
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
