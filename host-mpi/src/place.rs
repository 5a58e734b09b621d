//! Where ranks run, and which of them share processors.

use std::collections::BTreeMap;

use loggap::machine::placement::{self, Cpu};
use nix::sys::utsname::uname;
use serde::{Deserialize, Serialize};

/// A rank's place, as all ranks know it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Place {
    /// Name of its machine.
    pub host: String,
    /// Its process there.
    pub process: u32,
    /// The processor it is bound to, where that is one only.
    pub cpu: Option<Cpu>,
    /// Processors that it may use: what `mpirun`, `taskset` or a control group
    /// leave of the machine's.
    pub processors: usize,
}

impl Place {
    /// Of this process.
    #[must_use]
    pub fn here() -> Self {
        let host = uname().map(|name| name.nodename().to_string_lossy().into_owned());
        let cpus = placement::allowed();
        let cpu = if let [only] = cpus[..] { Some(only) } else { None };
        let process = std::process::id();
        Self { host: host.unwrap_or_default(), process, cpu, processors: cpus.len() }
    }
}

/// The ranks of one machine, and the processors that they may use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MachineUse<'p> {
    /// Its name.
    pub host: &'p str,
    /// How many ranks run there.
    pub ranks: usize,
    /// Processors that they may use together.
    pub processors: usize,
    /// Ranks that are bound to one processor.
    pub bound: usize,
    /// Whether ranks wait for each other's processor: there are more ranks
    /// than processors, or two are bound to the same one.
    pub is_shared: bool,
}

/// How the ranks of a job share the processors of its machines.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sharing<'p>(Vec<MachineUse<'p>>);

impl<'p> Sharing<'p> {
    /// Of ranks at these places.
    #[must_use]
    pub fn of(places: &'p [Place]) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&Place>> = BTreeMap::new();
        for place in places {
            by_name.entry(&place.host).or_default().push(place);
        }
        Self(by_name.into_iter().map(|(host, ranks)| machine_use(host, &ranks)).collect())
    }

    /// The machines, in order of their names.
    #[must_use]
    pub fn machines(&self) -> &[MachineUse<'p>] {
        &self.0
    }

    /// Whether ranks share processors anywhere.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.0.iter().any(|machine| machine.is_shared)
    }

    /// A warning for each machine whose ranks share processors.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let warn = |machine: &MachineUse<'_>| {
            let MachineUse { host, ranks, processors, .. } = machine;
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

fn machine_use<'p>(host: &'p str, ranks: &[&Place]) -> MachineUse<'p> {
    let mut bound: Vec<Cpu> = ranks.iter().filter_map(|place| place.cpu).collect();
    let bound_ranks = bound.len();
    bound.sort_unstable();
    bound.dedup();
    let widest = ranks.iter().map(|place| place.processors).max().unwrap_or(0);
    let processors = widest.max(bound.len());
    MachineUse {
        host,
        ranks: ranks.len(),
        processors,
        bound: bound_ranks,
        is_shared: bound.len() < bound_ranks || ranks.len() > processors,
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
            sharing.machines().iter().map(|machine| (machine.host, machine.ranks)).collect();
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
