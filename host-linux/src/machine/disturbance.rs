//! Disturbances during a run.

use std::fs;

use loggap_core::measure::Clock;
use nix::sys::resource::{UsageWho, getrusage};

use crate::machine::clock::HostClock;
use crate::machine::kernel_files::read_entry;
use crate::machine::placement::Cpu;
use crate::machine::warning::{End, Warning};

/// Counts at the start of a run, to compare with those at its end.
///
/// The kernel counts each preemption of a runnable process, and time stolen by the hypervisor in
/// hundredths of a second. Neither is meaningful for runs of a few milliseconds.
#[derive(Clone, Debug)]
pub struct Disturbance {
    clock: HostClock,
    started: u64,
    /// Threads whose preemptions are counted, and their number.
    threads: UsageWho,
    count: u64,
    preemptions: Option<u64>,
    /// Preemptions of responders that have ended.
    responders: Option<u64>,
    cpus: Vec<(Cpu, CpuTimes)>,
}

/// Time of one processor since boot, in hundredths of a second.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct CpuTimes {
    all: u64,
    stolen: u64,
}

impl Disturbance {
    /// Preemptions per second that an idle machine stays below: kernel threads need the core
    /// several times a second.
    const PREEMPTIONS_PER_SECOND: u64 = 20;
    /// Stolen time that does not affect medians, in thousandths.
    const STOLEN_PERMILLE: u64 = 10;

    /// Starts watching the calling thread and the processors `cpus`.
    #[must_use]
    pub fn watch(clock: HostClock, cpus: &[Cpu]) -> Self {
        Self::of(UsageWho::RUSAGE_THREAD, 1, clock, cpus)
    }

    /// As [`Disturbance::watch`], but watches all threads of this process, also later ones; `count` of
    /// them measure.
    #[must_use]
    pub fn watch_all_threads(count: u64, clock: HostClock, cpus: &[Cpu]) -> Self {
        Self::of(UsageWho::RUSAGE_SELF, count, clock, cpus)
    }

    fn of(threads: UsageWho, count: u64, clock: HostClock, cpus: &[Cpu]) -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let times = cpus.iter().filter_map(|cpu| Some((*cpu, cpu_times(&stat, *cpu)?)));
        Self {
            cpus: times.collect(),
            threads,
            count,
            preemptions: preemptions_of_threads(threads),
            responders: None,
            started: clock.now(),
            clock,
        }
    }

    /// Adds the counts of a local responder's process, which is about to end.
    pub fn add_responder(&mut self, process: u32) {
        if let Some(count) = preemptions_of(process) {
            self.responders = Some(self.responders.unwrap_or(0).saturating_add(count));
        }
    }

    /// Disturbances so far. To be called from the thread that called [`Disturbance::watch`].
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let millis =
            self.clock.duration(self.clock.now().saturating_sub(self.started)).0 / 1_000_000_000;
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let stolen = self.cpus.iter().filter_map(|(cpu, before)| {
            let permille = cpu_times(&stat, *cpu)?.stolen_permille_since(*before)?;
            (permille > Self::STOLEN_PERMILLE).then_some(Warning::Stolen { cpu: *cpu, permille })
        });
        let own = preemptions_of_threads(self.threads).zip(self.preemptions);
        let own = own.map(|(now, before)| now.saturating_sub(before));
        let ends = [(End::Initiator, own), (End::Responder, self.responders)];
        let preempted = ends.into_iter().filter_map(|(end, times)| {
            let times = times?;
            let too_many =
                times * 1_000 > self.count * Self::PREEMPTIONS_PER_SECOND * millis.max(100);
            too_many.then_some(Warning::Preempted { end, times, millis })
        });
        stolen.chain(preempted).collect()
    }
}

impl CpuTimes {
    /// Stolen share of the time since `before`, in thousandths; `None` within the first tenth of a
    /// second.
    fn stolen_permille_since(self, before: Self) -> Option<u64> {
        let all = self.all.checked_sub(before.all)?;
        let stolen = self.stolen.checked_sub(before.stolen)?;
        (all >= 10).then(|| stolen * 1_000 / all)
    }
}

/// Parses the line of `cpu` in `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
/// The later fields are already part of user and nice.
fn cpu_times(stat: &str, cpu: Cpu) -> Option<CpuTimes> {
    const STOLEN: usize = 7;
    let name = format!("cpu{cpu}");
    let mut fields = stat.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some(name.as_str())).then_some(words)
    })?;
    let mut times = CpuTimes::default();
    for index in 0..=STOLEN {
        let value: u64 = fields.next()?.parse().ok()?;
        times.all = times.all.checked_add(value)?;
        times.stolen = if index == STOLEN { value } else { 0 };
    }
    Some(times)
}

fn preemptions_of_threads(threads: UsageWho) -> Option<u64> {
    let usage = getrusage(threads).ok()?;
    u64::try_from(usage.involuntary_context_switches()).ok()
}

fn preemptions_of(process: u32) -> Option<u64> {
    let status = format!("/proc/{process}/status");
    read_entry(status, "nonvoluntary_ctxt_switches")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::placement;
    use std::{hint, thread};

    const STAT: &str =
        "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 100 1 2 3 4 5 6 7 8 9\ncpu10 1 2 3\nintr 5\n";

    #[test]
    fn the_line_of_a_processor_is_found_and_checked() {
        assert_eq!(cpu_times(STAT, 1), Some(CpuTimes { all: 128, stolen: 7 }));
        assert_eq!(cpu_times(STAT, 10), None);
        assert_eq!(cpu_times(STAT, 0), None);
    }

    #[test]
    fn theft_is_a_share_of_the_time_that_passed() {
        let before = CpuTimes { all: 1_000, stolen: 10 };
        let permille = |all, stolen| CpuTimes { all, stolen }.stolen_permille_since(before);
        assert_eq!(permille(1_200, 15), Some(25));
        assert_eq!(permille(1_009, 10), None);
        assert_eq!(permille(900, 10), None);
    }

    #[test]
    fn this_process_has_counts_and_one_that_does_not_exist_has_none() {
        assert!(preemptions_of_threads(UsageWho::RUSAGE_THREAD).is_some());
        assert!(preemptions_of(std::process::id()).is_some());
        assert_eq!(preemptions_of(u32::MAX), None);
    }

    #[test]
    fn more_preemptions_than_an_idle_machine_has_are_told() {
        let watch = Disturbance::watch(HostClock::monotonic_raw(), &[]);
        assert_eq!(watch.warnings(), []);
        let disturbed = Disturbance { responders: Some(1_000_000), ..watch };
        let found = disturbed.warnings();
        assert!(
            matches!(found[..], [Warning::Preempted { end: End::Responder, times: 1_000_000, .. }]),
            "{found:?}"
        );
    }

    #[test]
    fn preemptions_of_other_threads_count_where_all_are_watched() {
        let clock = HostClock::monotonic_raw();
        let [all, own] =
            [Disturbance::watch_all_threads(2, clock, &[]), Disturbance::watch(clock, &[])];
        let cpu = placement::allowed()[0];
        let began = clock.now();
        thread::scope(|scope| {
            // Two threads on one processor preempt each other every few milliseconds.
            for _ in 0..2 {
                scope.spawn(|| {
                    placement::pin(cpu).unwrap();
                    while clock.duration(clock.now() - began).seconds() < 1.0 {
                        hint::spin_loop();
                    }
                });
            }
        });
        assert_eq!(own.warnings(), []);
        let found = all.warnings();
        assert!(matches!(found[..], [Warning::Preempted { end: End::Initiator, .. }]), "{found:?}");
    }
}
