//! Placement of the two ends on processors.
//!
//! A process that migrates between cores, or shares one with its peer, measures the scheduler. Both
//! ends are therefore pinned, by default to two physical cores of one package.

use std::cmp::Reverse;
use std::num::ParseIntError;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use thiserror::Error;

use super::kernel_files::read_setting;

/// Number of a logical processor, as in `/proc/cpuinfo`.
pub type Cpu = usize;

/// Processors of the two ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Placement {
    /// Processor of the initiator.
    pub initiator: Cpu,
    /// Processor of the responder, if this machine starts it.
    pub responder: Cpu,
}

/// Proximity of two logical processors; greater values are better for the two ends of a link.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Closeness {
    /// One processor for both.
    Same,
    /// Two hardware threads of one core: they share its execution units.
    Siblings,
    /// Cores of different packages.
    Apart,
    /// Two cores of one package.
    Package,
}

/// Why a processor cannot be pinned to.
#[derive(Debug, Error)]
pub enum PlacementError {
    /// The text of `--cpu` is not `A` or `A,B`.
    #[error("'{text}' names no processors; expected A or A,B, as in --cpu 2,3")]
    Text {
        /// The text.
        text: String,
    },
    /// The processor does not exist, or this process may not run there.
    #[error("processor {cpu} is not available to this process; choose among {}", CpuList(allowed))]
    NotAllowed {
        /// Number of the processor.
        cpu: Cpu,
        /// Processors that this process may run on.
        allowed: Vec<Cpu>,
    },
    /// The kernel refused.
    #[error("pinning to processor {cpu} was refused ({source}); choose another with --cpu")]
    Refused {
        /// The processor's number.
        cpu: Cpu,
        /// System error.
        source: io::Error,
    },
}

/// Processors that this process may run on, in ascending order; empty if the kernel does not report
/// them.
#[must_use]
pub fn allowed() -> Vec<Cpu> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect()
}

/// Pins the calling thread, and the threads and processes that it starts from now on. A processor
/// outside [`allowed`] is tried, too, because an earlier pinning may have narrowed this process's
/// affinity.
///
/// # Errors
///
/// [`PlacementError::NotAllowed`] or [`PlacementError::Refused`].
pub fn pin(cpu: Cpu) -> Result<(), PlacementError> {
    pin_to(Pid::from_raw(0), cpu)
}

/// Pins another process of this user, before it starts further threads.
///
/// # Errors
///
/// As for [`pin`].
pub(crate) fn pin_process(process: u32, cpu: Cpu) -> Result<(), PlacementError> {
    match i32::try_from(process) {
        Ok(process) if process > 0 => pin_to(Pid::from_raw(process), cpu),
        _ => Err(PlacementError::Refused { cpu, source: io::ErrorKind::NotFound.into() }),
    }
}

/// Converts to the system's processor set.
pub(super) fn set_of(cpus: &[Cpu]) -> nix::Result<CpuSet> {
    let mut set = CpuSet::new();
    cpus.iter().try_for_each(|cpu| set.set(*cpu))?;
    Ok(set)
}

fn pin_to(process: Pid, cpu: Cpu) -> Result<(), PlacementError> {
    match set_of(&[cpu]).and_then(|set| sched_setaffinity(process, &set)) {
        Ok(()) => Ok(()),
        Err(Errno::EINVAL) => Err(PlacementError::NotAllowed { cpu, allowed: allowed() }),
        Err(error) => Err(PlacementError::Refused { cpu, source: error.into() }),
    }
}

impl Placement {
    /// Parses the argument of `--cpu`: `A,B`, or `A` for both ends.
    ///
    /// # Errors
    ///
    /// [`PlacementError::Text`].
    pub fn parse(text: &str) -> Result<Self, PlacementError> {
        let number = |digits: &str| -> Result<Cpu, ParseIntError> { digits.trim().parse() };
        let (first, second) = text.split_once(',').unwrap_or((text, text));
        match (number(first), number(second)) {
            (Ok(initiator), Ok(responder)) => Ok(Self { initiator, responder }),
            _ => Err(PlacementError::Text { text: text.to_owned() }),
        }
    }

    /// Best two of the `allowed` processors: fast, on different physical cores of one package, and
    /// with high numbers, because processor 0 serves most interrupts. A single processor serves
    /// both ends; `None` if `allowed` is empty.
    #[must_use]
    pub fn choose(allowed: &[Cpu], topology: &Topology) -> Option<Self> {
        Self::equally_good(allowed, topology).into_iter().next()
    }

    /// All placements as good as the one of [`Placement::choose`], in both directions, in
    /// descending order of numbers.
    #[must_use]
    pub fn equally_good(allowed: &[Cpu], topology: &Topology) -> Vec<Self> {
        let merit = |pair: &Self| {
            let Self { initiator, responder } = *pair;
            let slower = topology.capacity(initiator).min(topology.capacity(responder));
            (topology.closeness(initiator, responder), slower)
        };
        let pair = |initiator| move |responder| Self { initiator, responder };
        let all = allowed.iter().flat_map(|one| allowed.iter().copied().map(pair(*one)));
        let mut pairs: Vec<(_, Self)> = all.map(|pair| (merit(&pair), pair)).collect();
        let Some(best) = pairs.iter().map(|(merit, _)| *merit).max() else { return Vec::new() };
        pairs.retain(|(merit, _)| *merit == best);
        pairs.sort_by_key(|(_, pair)| {
            let Self { initiator, responder } = *pair;
            (Reverse(initiator + responder), initiator)
        });
        pairs.into_iter().map(|(_, pair)| pair).collect()
    }
}

/// Topology of the machine's processors, as the kernel reports it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Topology {
    processors: Vec<Processor>,
}

/// One logical processor.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Processor {
    cpu: Cpu,
    package: Option<u64>,
    /// Hardware threads of the same core, itself included.
    siblings: Vec<Cpu>,
    /// Relative speed; equal for all if the kernel does not report it.
    capacity: u64,
}

impl Topology {
    /// Reads the topology of `cpus` from `/sys`.
    #[must_use]
    pub fn of(cpus: &[Cpu]) -> Self {
        Self::below(Path::new("/sys/devices/system/cpu"), cpus)
    }

    fn below(root: &Path, cpus: &[Cpu]) -> Self {
        let processors = cpus.iter().map(|cpu| Processor::below(root, *cpu)).collect();
        Self { processors }
    }

    /// Closeness of two processors. Processors that the kernel does not describe count as cores of
    /// one package.
    #[must_use]
    pub fn closeness(&self, one: Cpu, other: Cpu) -> Closeness {
        if one == other {
            return Closeness::Same;
        }
        let (Some(first), Some(second)) = (self.find(one), self.find(other)) else {
            return Closeness::Package;
        };
        if first.siblings.contains(&other) {
            Closeness::Siblings
        } else if first.package == second.package {
            Closeness::Package
        } else {
            Closeness::Apart
        }
    }

    fn capacity(&self, cpu: Cpu) -> u64 {
        self.find(cpu).map_or(0, |processor| processor.capacity)
    }

    fn find(&self, cpu: Cpu) -> Option<&Processor> {
        self.processors.iter().find(|processor| processor.cpu == cpu)
    }
}

impl Processor {
    fn below(root: &Path, cpu: Cpu) -> Self {
        let folder = root.join(format!("cpu{cpu}"));
        let siblings = read_setting(folder.join("topology/thread_siblings_list"))
            .and_then(|list| parse_cpu_list(&list))
            .unwrap_or_else(|| vec![cpu]);
        let frequency = || number(folder.join("cpufreq/cpuinfo_max_freq"));
        Self {
            cpu,
            package: number(folder.join("topology/physical_package_id")),
            siblings,
            capacity: number(folder.join("cpu_capacity")).or_else(frequency).unwrap_or(0),
        }
    }
}

fn number(path: PathBuf) -> Option<u64> {
    read_setting(path)?.parse().ok()
}

/// Parses the kernel's list format, `0-3,8`; `None` for other text, or for a number beyond any
/// kernel's limit.
pub(crate) fn parse_cpu_list(text: &str) -> Option<Vec<Cpu>> {
    const MOST: usize = 8_192;
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (Cpu, Cpu) = (first.parse().ok()?, last.parse().ok()?);
        if last >= MOST {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Formats processors as the kernel does: `0-3,8`.
#[derive(Clone, Copy, Debug)]
pub struct CpuList<'a>(pub &'a [Cpu]);

impl fmt::Display for CpuList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|before, after| before + 1 == *after);
        for (index, run) in runs.enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match run {
                [only] => write!(f, "{comma}{only}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    /// Two packages of two cores of two threads: siblings are n and n + 4,
    /// cores 0, 1 on package 0.
    fn two_packages() -> Topology {
        let processors = (0..8)
            .map(|cpu| Processor {
                cpu,
                package: Some(u64::from(cpu % 4 >= 2)),
                siblings: vec![cpu % 4, cpu % 4 + 4],
                capacity: 1_024,
            })
            .collect();
        Topology { processors }
    }

    fn chosen(allowed: &[Cpu]) -> Option<(Cpu, Cpu)> {
        Placement::choose(allowed, &two_packages()).map(|pair| (pair.initiator, pair.responder))
    }

    #[test]
    fn two_cores_of_one_package_come_first() {
        assert_eq!(chosen(&[0, 1, 2, 3, 4, 5, 6, 7]), Some((6, 7)));
        assert_eq!(chosen(&[0, 1, 2, 4]), Some((1, 4)));
    }

    #[test]
    fn other_packages_come_before_threads_of_one_core() {
        assert_eq!(chosen(&[1, 5, 2]), Some((2, 5)));
        assert_eq!(chosen(&[1, 5]), Some((1, 5)));
        assert_eq!(chosen(&[3]), Some((3, 3)));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn both_directions_of_all_good_pairs_are_equally_good() {
        let pairs = Placement::equally_good(&[0, 1, 2, 4], &two_packages());
        let numbers: Vec<_> = pairs.iter().map(|pair| (pair.initiator, pair.responder)).collect();
        assert_eq!(numbers, [(1, 4), (4, 1), (0, 1), (1, 0)]);
    }

    #[test]
    fn fast_cores_come_before_high_numbers() {
        let mut topology = two_packages();
        for processor in topology.processors.iter_mut().filter(|processor| processor.cpu % 4 >= 2) {
            processor.capacity = 400;
        }
        let pair = Placement::choose(&[0, 1, 2, 3, 4, 5, 6, 7], &topology).unwrap();
        assert_eq!(pair, Placement { initiator: 4, responder: 5 });
    }

    #[test]
    fn closeness_is_what_the_kernel_says() {
        let topology = two_packages();
        assert_eq!(topology.closeness(1, 1), Closeness::Same);
        assert_eq!(topology.closeness(1, 5), Closeness::Siblings);
        assert_eq!(topology.closeness(0, 5), Closeness::Package);
        assert_eq!(topology.closeness(0, 6), Closeness::Apart);
        assert_eq!(topology.closeness(0, 99), Closeness::Package);
    }

    #[test]
    fn the_topology_of_this_machine_can_be_read() {
        let allowed = allowed();
        let topology = Topology::of(&allowed);
        let pair = Placement::choose(&allowed, &topology).unwrap();
        assert!(allowed.contains(&pair.initiator) && allowed.contains(&pair.responder));
        assert_eq!(pair.initiator == pair.responder, allowed.len() == 1);
    }

    #[test]
    fn arguments_are_one_or_two_numbers() {
        let parsed =
            |text| Placement::parse(text).map(|pair| (pair.initiator, pair.responder)).ok();
        assert_eq!(parsed("2,3"), Some((2, 3)));
        assert_eq!(parsed("7"), Some((7, 7)));
        for text in ["", "a", "1,", ",1", "1,2,3", "-1", "1;2"] {
            let error = Placement::parse(text).unwrap_err().to_string();
            assert!(error.contains("--cpu 2,3"), "{error}");
        }
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused_with_those_that_are() {
        let error = pin(8_000).unwrap_err();
        assert!(matches!(error, PlacementError::NotAllowed { cpu: 8_000, .. }), "{error}");
        assert!(error.to_string().contains(&CpuList(&allowed()).to_string()));
    }

    #[test]
    fn pinning_is_kept_and_can_be_moved() {
        std::thread::spawn(|| {
            let (first, cpu) = (allowed()[0], *allowed().last().unwrap());
            pin(cpu).unwrap();
            assert_eq!(allowed(), [cpu]);
            pin(first).unwrap();
            assert_eq!(allowed(), [first]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn absurd_lists_are_refused() {
        for text in ["", "x", "1-", "0-99999999999", "3,,4"] {
            assert_eq!(parse_cpu_list(text), None, "{text}");
        }
    }

    quickcheck! {
        fn lists_print_as_they_are_read(cpus: std::collections::BTreeSet<u8>) -> bool {
            let cpus: Vec<Cpu> = cpus.into_iter().map(Cpu::from).collect();
            cpus.is_empty() || parse_cpu_list(&CpuList(&cpus).to_string()) == Some(cpus)
        }
    }
}
