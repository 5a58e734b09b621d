//! Canaries: fixed tasks whose cost shows the state of the machine.
//!
//! Minimum and quartiles of a link's times vary between runs as much as their medians, because the
//! machine itself changes for seconds to minutes. So the same tasks, of microseconds to a few
//! milliseconds each, are timed before a run, between its launches and after it.

use std::hint::black_box;
use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::thread::{self, JoinHandle};

use loggap_core::measure::Clock;
use nix::unistd::getppid;

use crate::link::Waiting;
use crate::machine::clock::HostClock;
use crate::machine::warning::Warning;
use crate::profile::CanaryRecord;

/// Bytes copied by the copying task.
const COPY: usize = 64 << 10;
/// Steps of the arithmetic task.
const STEPS: u64 = 4_096;
/// Times that each task is timed. Its cost is the minimum, as disturbances only add to it.
const TIMES: usize = 63;
/// Repetitions between two clock readings, for tasks about as short as a reading.
const TOGETHER: u32 = 64;
/// Relative change of a cost, a fraction, above which a warning is given.
const NOTABLE: f64 = 0.1;

/// The tasks and their costs so far.
#[derive(Debug)]
pub struct Canaries {
    clock: HostClock,
    from: Vec<u8>,
    to: Vec<u8>,
    sleeper: Option<Sleeper>,
    /// Names of the tasks, with their costs in seconds in the order of timing.
    costs: Vec<(&'static str, Vec<f64>)>,
}

impl Canaries {
    /// Times the tasks for the first time, on the processor of the calling thread. Includes a
    /// wake-up if the link's ends sleep while waiting.
    #[must_use]
    pub fn before(clock: HostClock, waiting: Waiting) -> Self {
        let sleeper = match waiting {
            Waiting::Poll => None,
            // Without pipes or threads this task is skipped.
            Waiting::Block => Sleeper::start().ok(),
        };
        let (from, to) = (vec![1; COPY], vec![2; COPY]);
        let mut canaries = Self { clock, from, to, sleeper, costs: Vec::new() };
        canaries.time();
        canaries
    }

    /// Times the tasks again.
    pub fn time(&mut self) {
        let clock = self.clock;
        let together = f64::from(TOGETHER);
        let read = least(&clock, || {
            for _ in 0..TOGETHER {
                black_box(clock.now());
            }
        }) / together;
        let call = least(&clock, || {
            for _ in 0..TOGETHER {
                black_box(getppid());
            }
        }) / together;
        let copy = least(&clock, || black_box(&mut self.to).copy_from_slice(black_box(&self.from)));
        let arithmetic = least(&clock, || {
            let step = |sum: u64, at: u64| (sum ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            black_box((0..black_box(STEPS)).fold(1, step));
        });
        self.note("clock read", read);
        self.note("system call", call);
        self.note("copy of 64 KiB", copy);
        self.note("arithmetic", arithmetic);
        if let Some(sleeper) = &mut self.sleeper {
            let wake_up = least(&clock, || sleeper.wake());
            self.note("wake-up", wake_up);
        }
    }

    fn note(&mut self, name: &'static str, cost: f64) {
        match self.costs.iter_mut().find(|(known, _)| *known == name) {
            Some((_, costs)) => costs.push(cost),
            None => self.costs.push((name, vec![cost])),
        }
    }

    /// Costs of the tasks before, between and after launches. With fewer than three timings the
    /// last one fills the gaps.
    #[must_use]
    pub fn records(&self) -> Vec<CanaryRecord> {
        self.costs.iter().map(|(name, costs)| record(name, costs)).collect()
    }

    /// Warning about the task whose cost changed most; several changes have one cause.
    #[must_use]
    pub fn warning(&self) -> Option<Warning> {
        let moved = |(name, costs): &(&'static str, Vec<f64>)| (record(name, costs).moved, *name);
        let most = self.costs.iter().map(moved).max_by(|(a, _), (b, _)| a.total_cmp(b));
        let (moved, name) = most.filter(|(moved, _)| *moved > NOTABLE)?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates, and is not negative"
        )]
        let percent = (moved * 100.0).round() as u64;
        Some(Warning::CanaryMoved { name, percent })
    }
}

fn record(name: &str, costs: &[f64]) -> CanaryRecord {
    let (before, rest) = costs.split_first().unwrap_or((&0.0, &[]));
    let after = rest.last().unwrap_or(before);
    let between = rest.split_last().map_or(&[][..], |(_, between)| between);
    let mut sorted = between.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let during = sorted.get(sorted.len() / 2).unwrap_or(after);
    // The second largest change, so that a single timing decides nothing.
    let change = |cost: &f64| if *before > 0.0 { (cost / before - 1.0).abs() } else { 0.0 };
    let mut changes: Vec<f64> = rest.iter().map(change).collect();
    changes.sort_unstable_by(|a, b| b.total_cmp(a));
    CanaryRecord {
        name: name.to_owned(),
        before_s: *before,
        during_s: *during,
        after_s: *after,
        moved: changes.get(usize::from(changes.len() > 1)).copied().unwrap_or(0.0),
    }
}

/// Minimum duration of `task`, seconds.
fn least(clock: &HostClock, mut task: impl FnMut()) -> f64 {
    task();
    let mut times = [0; TIMES];
    for time in &mut times {
        let began = clock.now();
        task();
        *time = clock.now().saturating_sub(began);
    }
    clock.duration(times.into_iter().min().unwrap_or(0)).since(clock.read_cost()).seconds()
}

/// A thread that sleeps until it is woken, and answers.
#[derive(Debug)]
struct Sleeper {
    wake: Option<PipeWriter>,
    woken: PipeReader,
    thread: Option<JoinHandle<()>>,
}

impl Sleeper {
    fn start() -> io::Result<Self> {
        let ((mut waiting, wake), (woken, mut answer)) = (pipe()?, pipe()?);
        let sleep = move || {
            let mut byte = [0];
            while waiting.read_exact(&mut byte).is_ok() && answer.write_all(&byte).is_ok() {}
        };
        let thread = thread::Builder::new().name("canary".into()).spawn(sleep)?;
        Ok(Self { wake: Some(wake), woken, thread: Some(thread) })
    }

    /// Wakes the thread and sleeps until it answers.
    fn wake(&mut self) {
        let mut byte = [1];
        let woken = self.wake.as_mut().is_some_and(|wake| wake.write_all(&byte).is_ok());
        if woken {
            // If the thread has ended, the read returns at once, at the pipe's end.
            let _ended = self.woken.read_exact(&mut byte);
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_costs_something_and_a_wake_up_only_where_ends_sleep() {
        let names = |waiting| {
            let mut canaries = Canaries::before(HostClock::calibrated(), waiting);
            canaries.time();
            let records = canaries.records();
            assert!(records.iter().all(|canary| canary.before_s > 0.0 && canary.after_s > 0.0));
            assert!(records.iter().all(|canary| canary.before_s < 0.01), "{records:?}");
            records.into_iter().map(|canary| canary.name).collect::<Vec<_>>()
        };
        let polling = ["clock read", "system call", "copy of 64 KiB", "arithmetic"];
        assert_eq!(names(Waiting::Poll), polling);
        assert_eq!(names(Waiting::Block), [&polling[..], &["wake-up"]].concat());
    }

    #[test]
    fn a_change_that_two_timings_show_is_told_beyond_a_tenth() {
        let costs = [2e-6, 1e-6, 2.8e-6, 2.2e-6, 2e-6];
        let canary = record("x", &costs);
        assert_eq!((canary.before_s, canary.during_s, canary.after_s), (2e-6, 2.2e-6, 2e-6));
        assert!((canary.moved - 0.4).abs() < 1e-9, "{canary:?}");
        // A single deviating timing does not count.
        assert!(record("x", &[2e-6, 2e-6, 20e-6, 2e-6]).moved < 1e-9);
        let canaries = |costs: &[f64]| {
            let canaries = Canaries::before(HostClock::monotonic_raw(), Waiting::Poll);
            Canaries { costs: vec![("x", costs.to_vec())], ..canaries }
        };
        let mut moved = canaries(&costs);
        moved.costs.push(("y", vec![1.0, 2.0]));
        assert_eq!(moved.warning(), Some(Warning::CanaryMoved { name: "y", percent: 100 }));
        assert_eq!(canaries(&[2e-6, 2.1e-6]).warning(), None);
        assert_eq!(record("x", &[3.0]).moved.to_bits(), 0.0_f64.to_bits());
    }
}
