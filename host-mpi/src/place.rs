//! Places of the ranks, and which of them share processors.

use std::collections::BTreeMap;

use loggap::machine::placement::{self, Cpu};
use nix::sys::utsname::uname;
use serde::{Deserialize, Serialize};

/// Machine, process and processors of a rank.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Place {
    /// Name of the machine.
    pub host: String,
    /// Process identifier on that machine.
    pub process: u32,
    /// Processor that it is bound to, if that is a single one.
    pub cpu: Option<Cpu>,
    /// Number of processors that it may use: those of the machine that
    /// `mpirun`, `taskset` or a control group leave.
    pub processors: usize,
}

impl Place {
    /// Place of this process.
    #[must_use]
    pub fn here() -> Self {
        let host = uname().map(|name| name.nodename().to_string_lossy().into_owned());
        let cpus = placement::allowed();
        let cpu = if let [only] = cpus[..] { Some(only) } else { None };
        let process = std::process::id();
        Self { host: host.unwrap_or_default(), process, cpu, processors: cpus.len() }
    }
}

/// A machine, its ranks, and the processors that they may use.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Host {
    /// Name of the machine.
    pub host: String,
    /// Number of ranks on it.
    pub ranks: usize,
    /// Number of processors that they may use together.
    pub processors: usize,
    /// Number of ranks that are bound to one processor.
    pub bound: usize,
    /// True if ranks wait for each other's processor: there are more ranks than
    /// processors, or two are bound to the same one.
    #[serde(skip)]
    pub is_shared: bool,
}

/// Sharing of the machines' processors among the ranks of a job.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sharing(Vec<Host>);

impl Sharing {
    /// Sharing among ranks at `places`.
    #[must_use]
    pub fn of(places: &[Place]) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&Place>> = BTreeMap::new();
        for place in places {
            by_name.entry(&place.host).or_default().push(place);
        }
        Self(by_name.into_iter().map(|(host, ranks)| Host::of(host, &ranks)).collect())
    }

    /// Machines, in order of their names.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.0
    }

    /// True if ranks share processors on any machine.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.0.iter().any(|machine| machine.is_shared)
    }

    /// A warning for each machine whose ranks share processors.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let warn = |machine: &Host| {
            let Host { host, ranks, processors, .. } = machine;
            let why = if ranks > processors {
                format!("{ranks} ranks may use {processors} of its processors")
            } else {
                "two ranks are bound to the same processor".to_owned()
            };
            format!(
                "{host}: {why}: idle ranks still take time; use fewer ranks, or bind each to a \
                 processor of its own"
            )
        };
        self.0.iter().filter(|machine| machine.is_shared).map(warn).collect()
    }
}

impl Host {
    fn of(host: &str, ranks: &[&Place]) -> Self {
        let mut bound: Vec<Cpu> = ranks.iter().filter_map(|place| place.cpu).collect();
        let bound_ranks = bound.len();
        bound.sort_unstable();
        bound.dedup();
        let widest = ranks.iter().map(|place| place.processors).max().unwrap_or(0);
        let processors = widest.max(bound.len());
        Self {
            host: host.to_owned(),
            ranks: ranks.len(),
            processors,
            bound: bound_ranks,
            is_shared: bound.len() < bound_ranks || ranks.len() > processors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(host: &str, cpu: Option<Cpu>, processors: usize) -> Place {
        Place { host: host.to_owned(), cpu, processors, ..Place::default() }
    }

    #[test]
    fn ranks_share_processors_where_they_are_too_many_or_bound_to_the_same_one() {
        let some = [place("b", None, 2), place("a", None, 2), place("b", None, 2)];
        let sharing = Sharing::of(&some);
        let ranks: Vec<_> =
            sharing.hosts().iter().map(|host| (host.host.as_str(), host.ranks)).collect();
        assert_eq!((ranks, sharing.is_shared()), (vec![("a", 1), ("b", 2)], false));
        assert_eq!(sharing.warnings(), Vec::<String>::new());
        let shared = |places: &[Place]| Sharing::of(places).is_shared();
        assert!(!shared(&[place("a", Some(3), 1), place("a", Some(4), 1)]));
        assert!(shared(&[place("a", Some(3), 1), place("a", Some(3), 1)]));
        assert!(shared(&[place("a", None, 1), place("a", None, 1)]));
        let twice = [place("a", Some(3), 1), place("a", Some(3), 1), place("a", None, 8)];
        let [warning] = &Sharing::of(&twice).warnings()[..] else { panic!() };
        assert!(warning.contains("bound to the same processor"), "{warning}");
        let many = [place("a", None, 1), place("a", None, 1), place("c", None, 8)];
        let [warning] = &Sharing::of(&many).warnings()[..] else { panic!() };
        assert!(warning.starts_with("a: 2 ranks may use 1 of its processors"), "{warning}");
    }
}
