//! Warnings about conditions on this machine that spoil numbers, with remedies.

use std::{fmt, fs};

use loggap_core::measure::Traffic;
use loggap_core::units::Bytes;
use nix::unistd::{SysconfVar, sysconf};

use crate::link::{LinkFingerprint, WANTED_RECEIVE_BUFFER, Waiting, path_mtu};
use crate::machine::clock::{Fallback, HostClock};
use crate::machine::environment;
use crate::machine::kernel_files::read_setting;
use crate::machine::placement::{Closeness, Cpu, Placement, PlacementError, Topology};

/// Condition under which numbers are worse than necessary, worded in [`crate::output::warnings`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// An end could not be pinned, for this reason.
    NotPinned(String),
    /// Both ends run on one processor.
    OneProcessor {
        /// Number of the processor.
        cpu: Cpu,
        /// How the ends wait for messages.
        waiting: Waiting,
    },
    /// Both ends run on threads of one core.
    Siblings(Placement),
    /// The ends run on different packages.
    DifferentPackages(Placement),
    /// A governor other than `performance` changes the core's frequency.
    Governor {
        /// The processor.
        cpu: Cpu,
        /// The governor in force.
        governor: String,
    },
    /// The core's frequency depends on load and temperature of the others, until this command.
    Turbo(&'static str),
    /// The processor's counter is not used as the clock.
    Clock(Fallback),
    /// The receive buffer of a datagram link holds few messages.
    ReceiveBuffer {
        /// Size granted by the kernel.
        granted: Bytes,
        /// Size requested.
        wanted: Bytes,
    },
    /// The hypervisor ran something else on a processor of an end.
    Stolen {
        /// The processor.
        cpu: Cpu,
        /// Share of the run, in thousandths.
        permille: u64,
    },
    /// Other processes pushed an end off its processor.
    Preempted {
        /// Which end.
        end: End,
        /// Number of preemptions.
        times: u64,
        /// Duration of the run, milliseconds.
        millis: u64,
    },
    /// Rounds were discarded because an end was preempted.
    Busy {
        /// Number of threads that run or are runnable.
        load: u32,
        /// Number of processors of the machine.
        cpus: usize,
        /// Discarded share of the rounds, percent.
        percent: u64,
        /// How the ends wait for messages.
        waiting: Waiting,
    },
    /// The cost of a fixed task changed during the run.
    CanaryMoved {
        /// Name of the task.
        name: &'static str,
        /// Change in percent of the cost before.
        percent: u64,
    },
    /// The two processors were farther apart at some times than at others.
    ProcessorsMoved {
        /// Number of launches left out because their distance was not that of most.
        left_out: u32,
        /// Number of launches made.
        begun: u32,
        /// Shortest time of a cache line to the other processor and back, seconds.
        least_s: f64,
        /// Longest such time, seconds.
        largest_s: f64,
    },
    /// The peer refused a further connection.
    LaunchRefused {
        /// Number of launches made.
        launches: u32,
        /// Reason of the refusal, in words.
        reason: String,
    },
    /// Time or messages sufficed for one launch only.
    OneLaunch,
    /// All sessions were between the same two processes.
    OneJob,
    /// Rounds were lost on a datagram link.
    RoundsLost {
        /// Lost share of the rounds, percent.
        percent: u64,
    },
    /// The peer limits the message size.
    SizesLimited {
        /// Longest message that the peer takes, bytes.
        longest: u32,
    },
    /// Long messages never arrive.
    NothingBeyond {
        /// Longest message that arrives, bytes.
        reached: u32,
    },
    /// A router on the way takes shorter packets than this machine's interface.
    PathMtu {
        /// Maximum transmission unit of the path, in bytes.
        path: u64,
        /// Maximum transmission unit of the interface, bytes.
        interface: u64,
    },
    /// A profile of the history cannot be read.
    HistoryUnreadable {
        /// File and reason, in words.
        reason: String,
    },
}

/// An end of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// The measuring end.
    Initiator,
    /// The replying end.
    Responder,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Initiator => "initiator",
            Self::Responder => "responder",
        })
    }
}

/// Statement that ends compete for processors; with the load at the end of the run, if that was
/// still above the number of processors.
#[must_use]
pub fn busy(load: u32, cpus: usize) -> String {
    match usize::try_from(load) {
        Ok(load) if load > cpus => format!("processors are busy (load {load} on {cpus})"),
        _ => "processors are busy".to_owned(),
    }
}

/// Remedy where ends compete for processors.
#[must_use]
pub const fn busy_remedy(waiting: Waiting) -> &'static str {
    match waiting {
        Waiting::Poll => "try --block, or wait",
        Waiting::Block => "choose others with --cpu A,B, or wait",
    }
}

/// Warnings about both ends before a run. `pinned` holds the outcome of pinning each end.
#[must_use]
pub fn before_run(
    placement: Placement,
    waiting: Waiting,
    topology: &Topology,
    clock: &HostClock,
    pinned: &[&Result<(), PlacementError>],
) -> Vec<Warning> {
    let Placement { initiator, responder } = placement;
    let closeness = match topology.closeness(initiator, responder) {
        Closeness::Same => Some(Warning::OneProcessor { cpu: initiator, waiting }),
        Closeness::Siblings => Some(Warning::Siblings(placement)),
        Closeness::Apart => Some(Warning::DifferentPackages(placement)),
        Closeness::Package => None,
    };
    let both = [initiator, responder];
    let cpus = if initiator == responder { &both[..1] } else { &both };
    closeness.into_iter().chain(about_ends(cpus, clock, pinned)).collect()
}

/// Warnings about a single end before it runs.
#[must_use]
pub fn before_run_alone(
    cpu: Cpu,
    clock: &HostClock,
    pinned: &Result<(), PlacementError>,
) -> Vec<Warning> {
    about_ends(&[cpu], clock, &[pinned])
}

fn about_ends(
    cpus: &[Cpu],
    clock: &HostClock,
    pinned: &[&Result<(), PlacementError>],
) -> Vec<Warning> {
    let refused = pinned.iter().filter_map(|outcome| outcome.as_ref().err());
    let refused = refused.map(|error| Warning::NotPinned(error.to_string()));
    let governors = cpus.iter().filter_map(|cpu| governor(*cpu));
    refused.chain(governors).chain(turbo()).chain(clock_warning(clock)).collect()
}

/// Warnings about the link before a run.
#[must_use]
pub fn about_link(link: &LinkFingerprint) -> Vec<Warning> {
    let wanted = Bytes(WANTED_RECEIVE_BUFFER as u64);
    let granted = link.receive_buffer_bytes.map(Bytes).filter(|granted| *granted < wanted);
    granted.into_iter().map(|granted| Warning::ReceiveBuffer { granted, wanted }).collect()
}

/// Warning about the path to the peer. To be called after messages have been sent, as routers
/// report too long packets only then.
#[must_use]
pub fn about_path(link: &LinkFingerprint) -> Option<Warning> {
    if link.verbs.is_some() {
        return None;
    }
    let (peer, interface) = (link.peer.parse().ok()?, link.mtu_bytes?);
    let path = path_mtu(peer).ok()?;
    // An IPv4 packet is at most 65,535 B, less than the loopback's MTU.
    (path < interface.min(65_535)).then_some(Warning::PathMtu { path, interface })
}

/// Warning about lost rounds, from 1% of the rounds on.
#[must_use]
pub fn about_losses(traffic: &Traffic) -> Option<Warning> {
    let all = traffic.rounds.saturating_add(traffic.rounds_lost).max(1);
    let percent = traffic.rounds_lost.saturating_mul(100).saturating_add(all / 2) / all;
    (traffic.rounds_lost.saturating_mul(100) >= all).then_some(Warning::RoundsLost { percent })
}

/// Warning about rounds discarded for preemption, from 10% of `rounds` on.
#[must_use]
pub fn about_processors(left_out: u64, rounds: u64, waiting: Waiting) -> Option<Warning> {
    let percent = left_out.saturating_mul(100) / rounds.max(1);
    let cpus = processors();
    (percent >= 10).then(|| Warning::Busy { load: load(), cpus, percent, waiting })
}

/// Processors of the machine, for comparison with [`load`]. The affinity cannot tell: a pinned
/// thread has one processor.
fn processors() -> usize {
    let online = sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten();
    online.and_then(|count| usize::try_from(count).ok()).unwrap_or(1)
}

/// Threads of the machine that run or are runnable, except this one.
fn load() -> u32 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running = text.split_ascii_whitespace().nth(3).and_then(|field| field.split('/').next());
    running.and_then(|count| count.parse::<u32>().ok()).unwrap_or(0).saturating_sub(1)
}

fn governor(cpu: Cpu) -> Option<Warning> {
    let governor = environment::governor(cpu)?;
    (governor != "performance").then_some(Warning::Governor { cpu, governor })
}

fn turbo() -> Option<Warning> {
    let is = |path: &str, value: &str| read_setting(path).is_some_and(|setting| setting == value);
    if is("/sys/devices/system/cpu/intel_pstate/no_turbo", "0") {
        return Some(Warning::Turbo("echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"));
    }
    is("/sys/devices/system/cpu/cpufreq/boost", "1")
        .then_some(Warning::Turbo("echo 0 > /sys/devices/system/cpu/cpufreq/boost"))
}

fn clock_warning(clock: &HostClock) -> Option<Warning> {
    clock.fallback().filter(|reason| *reason != Fallback::Asked).map(Warning::Clock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::placement;

    #[test]
    fn ends_on_one_processor_are_warned_of_with_the_remedy() {
        let placement = Placement { initiator: 0, responder: 0 };
        let clock = HostClock::monotonic_raw();
        let refused = PlacementError::NotAllowed { cpu: 9, allowed: vec![0] };
        let pinned = [&Ok(()), &Err(refused)];
        for waiting in [Waiting::Poll, Waiting::Block] {
            let warnings = before_run(placement, waiting, &Topology::default(), &clock, &pinned);
            let shared = Warning::OneProcessor { cpu: 0, waiting };
            assert!(warnings.contains(&shared));
            let text = shared.to_string();
            assert!(text.contains("--cpu A,B"), "{text}");
            assert_eq!(text.contains("--block"), waiting == Waiting::Poll, "{text}");
            let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
            assert!(texts.iter().any(|text| text.contains("processor 9")), "{texts:?}");
        }
    }

    #[test]
    fn a_clock_that_was_asked_for_is_no_reason_to_warn() {
        assert_eq!(clock_warning(&HostClock::monotonic_raw()), None);
    }

    #[test]
    fn a_small_receive_buffer_is_warned_of_with_the_setting() {
        let link =
            LinkFingerprint { receive_buffer_bytes: Some(425_984), ..LinkFingerprint::default() };
        let texts: Vec<String> = about_link(&link).iter().map(ToString::to_string).collect();
        assert!(
            matches!(&texts[..], [text] if text.contains("net.core.rmem_max=8388608")),
            "{texts:?}"
        );
        assert_eq!(about_link(&LinkFingerprint::default()), []);
    }

    #[test]
    fn lost_rounds_are_warned_of_from_one_percent_on() {
        let lost = |rounds, rounds_lost| {
            about_losses(&Traffic { rounds, rounds_lost, ..Traffic::default() })
        };
        assert_eq!([lost(0, 0), lost(1_000, 0), lost(1_000, 10)], [None, None, None]);
        assert_eq!(lost(990, 10), Some(Warning::RoundsLost { percent: 1 }));
        let text = lost(500, 500).unwrap().to_string();
        assert!(
            text.starts_with(
                "50% of the rounds were lost and discarded; use shorter bursts (-n 4)"
            ),
            "{text}"
        );
    }

    #[test]
    fn the_load_is_that_of_all_processors_also_where_an_end_is_pinned_to_one() {
        let shared_by = || match about_processors(50, 100, Waiting::Poll) {
            Some(Warning::Busy { cpus, .. }) => cpus,
            other => panic!("{other:?}"),
        };
        let before = shared_by();
        let pinned = std::thread::spawn(move || {
            placement::pin(placement::allowed()[0]).unwrap();
            shared_by()
        });
        assert_eq!(pinned.join().unwrap(), before);
    }

    #[test]
    fn shares_print_in_percent() {
        let text = Warning::Stolen { cpu: 3, permille: 25 }.to_string();
        assert!(text.starts_with("processor 3: ") && text.contains(", by up to 2.50%;"), "{text}");
    }
}
