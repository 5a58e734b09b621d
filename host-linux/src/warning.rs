//! What spoils numbers on this machine, and what to do about it.

use std::fmt;

use loggap_core::units::Bytes;

use crate::clock::{Fallback, HostClock};
use crate::environment::{LinkFingerprint, read_setting};
use crate::link::WANTED_RECEIVE_BUFFER;
use crate::placement::{Closeness, Cpu, Placement, PlacementError, Topology};

/// A circumstance under which numbers are less than they could be. Each text
/// names the remedy.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// An end could not be pinned.
    NotPinned {
        /// Why, in words.
        reason: String,
    },
    /// Both ends run on one processor.
    OneProcessor {
        /// Its number.
        cpu: Cpu,
    },
    /// Both ends run on threads of one core.
    Siblings {
        /// The processors.
        placement: Placement,
    },
    /// The ends run on different packages.
    DifferentPackages {
        /// The processors.
        placement: Placement,
    },
    /// A governor other than `performance` changes the core's frequency.
    Governor {
        /// The processor.
        cpu: Cpu,
        /// The governor in force.
        governor: String,
    },
    /// The core's frequency depends on how busy and how warm the others are.
    Turbo {
        /// The setting that turns it off, as a command.
        remedy: &'static str,
    },
    /// The processor's counter is not used as the clock.
    Clock {
        /// Why.
        reason: Fallback,
    },
    /// The receive buffer of a datagram link holds few messages.
    ReceiveBuffer {
        /// What the kernel granted.
        granted: Bytes,
        /// What was asked for.
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
        /// How often.
        times: u64,
        /// During how many milliseconds.
        millis: u64,
    },
}

/// An end of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// The one that measures.
    Initiator,
    /// The one that replies.
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

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPinned { reason } => write!(f, "not pinned: {reason}"),
            Self::OneProcessor { cpu } => write!(
                f,
                "both ends share processor {cpu}: every message waits for the scheduler; give two processors with --cpu A,B, or let them sleep with --block"
            ),
            Self::Siblings { placement: Placement { initiator, responder } } => write!(
                f,
                "processors {initiator} and {responder} are threads of one core and slow each other down; choose two cores with --cpu A,B"
            ),
            Self::DifferentPackages { placement: Placement { initiator, responder } } => write!(
                f,
                "processors {initiator} and {responder} are on different packages: latency includes the link between them; choose two of one package with --cpu A,B unless that is meant"
            ),
            Self::Governor { cpu, governor } => write!(
                f,
                "governor '{governor}' changes the frequency of processor {cpu}; set it with: cpupower -c {cpu} frequency-set -g performance"
            ),
            Self::Turbo { remedy } => {
                write!(f, "turbo frequencies depend on load and heat; for steady numbers: {remedy}")
            }
            Self::Clock { reason } => write!(
                f,
                "CLOCK_MONOTONIC_RAW is read instead of the processor's counter: {}",
                fallback_reason(*reason)
            ),
            Self::ReceiveBuffer { granted, wanted } => write!(
                f,
                "the receive buffer is {granted}, long trains of datagrams will be lost; allow more with: sysctl net.core.rmem_max={}",
                wanted.0
            ),
            Self::Stolen { cpu, permille } => write!(
                f,
                "the hypervisor gave {}.{} % of processor {cpu} to others; use a machine of its own or repeat when it is quieter",
                permille / 10,
                permille % 10
            ),
            Self::Preempted { end, times, millis } => write!(
                f,
                "other processes took the processor of the {end} {times} times in {millis} ms; stop them or choose other processors with --cpu A,B"
            ),
        }
    }
}

fn fallback_reason(reason: Fallback) -> &'static str {
    match reason {
        Fallback::Asked => "as was asked",
        Fallback::NotInvariant => {
            "the processor does not call it invariant; in a virtual machine, pass the feature `invtsc` through"
        }
        Fallback::NotOffered => {
            "the kernel does not offer it as a clock source; see `dmesg | grep -i tsc` for why, or boot with tsc=reliable"
        }
        Fallback::Unsteady => {
            "its rate changed while it was calibrated; repeat on a machine that is neither suspended nor migrated"
        }
    }
}

/// What can be said about both ends before a run. `pinned` holds the outcome
/// of pinning each end.
#[must_use]
pub fn before_run(
    placement: Placement,
    topology: &Topology,
    clock: &HostClock,
    pinned: &[&Result<(), PlacementError>],
) -> Vec<Warning> {
    let refused = pinned.iter().filter_map(|outcome| outcome.as_ref().err());
    let mut warnings: Vec<Warning> =
        refused.map(|error| Warning::NotPinned { reason: error.to_string() }).collect();
    let Placement { initiator, responder } = placement;
    match topology.closeness(initiator, responder) {
        Closeness::Same => warnings.push(Warning::OneProcessor { cpu: initiator }),
        Closeness::Siblings => warnings.push(Warning::Siblings { placement }),
        Closeness::Apart => warnings.push(Warning::DifferentPackages { placement }),
        Closeness::Package => {}
    }
    warnings.extend(governor(initiator));
    warnings.extend(governor(responder).filter(|_| responder != initiator));
    warnings.extend(turbo());
    warnings.extend(clock_warning(clock));
    warnings
}

/// What can be said about one end that stands alone, before it runs.
#[must_use]
pub fn before_run_alone(
    cpu: Cpu,
    clock: &HostClock,
    pinned: &Result<(), PlacementError>,
) -> Vec<Warning> {
    let refused =
        pinned.as_ref().err().map(|error| Warning::NotPinned { reason: error.to_string() });
    refused.into_iter().chain(governor(cpu)).chain(turbo()).chain(clock_warning(clock)).collect()
}

/// What can be said about the link before a run.
#[must_use]
pub fn about_link(link: &LinkFingerprint) -> Vec<Warning> {
    let wanted = Bytes(WANTED_RECEIVE_BUFFER as u64);
    let granted = link.receive_buffer_bytes.map(Bytes).filter(|granted| *granted < wanted);
    granted.into_iter().map(|granted| Warning::ReceiveBuffer { granted, wanted }).collect()
}

fn governor(cpu: Cpu) -> Option<Warning> {
    let governor =
        read_setting(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"))?;
    (governor != "performance").then_some(Warning::Governor { cpu, governor })
}

fn turbo() -> Option<Warning> {
    let is = |path: &str, value: &str| read_setting(path).is_some_and(|setting| setting == value);
    if is("/sys/devices/system/cpu/intel_pstate/no_turbo", "0") {
        return Some(Warning::Turbo {
            remedy: "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo",
        });
    }
    is("/sys/devices/system/cpu/cpufreq/boost", "1")
        .then_some(Warning::Turbo { remedy: "echo 0 > /sys/devices/system/cpu/cpufreq/boost" })
}

fn clock_warning(clock: &HostClock) -> Option<Warning> {
    match clock.fallback() {
        None | Some(Fallback::Asked) => None,
        Some(reason) => Some(Warning::Clock { reason }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_on_one_processor_are_warned_of_with_the_remedy() {
        let placement = Placement { initiator: 0, responder: 0 };
        let clock = HostClock::monotonic_raw();
        let refused = PlacementError::NotAllowed { cpu: 9, allowed: vec![0] };
        let warnings =
            before_run(placement, &Topology::default(), &clock, &[&Ok(()), &Err(refused)]);
        assert!(warnings.contains(&Warning::OneProcessor { cpu: 0 }));
        let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|text| text.contains("--cpu A,B")), "{texts:?}");
        assert!(texts.iter().any(|text| text.contains("processor 9")), "{texts:?}");
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
    fn shares_print_in_percent() {
        let text = Warning::Stolen { cpu: 3, permille: 25 }.to_string();
        assert!(text.contains("2.5 % of processor 3"), "{text}");
    }
}
