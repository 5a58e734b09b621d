//! Runs of one schedule with many parameter sets: loaded once, run in parallel.
//!
//! Patterns are computed if possible. All else is loaded, and each run uses a copy: in windows, on
//! one thread each, or, where windows are impossible, as on a network, in order of events. Results
//! do not depend on the number of threads.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use loggap_core::noise::Phases;
use loggap_core::sim::network::Network;
use loggap_core::sim::windows::Schedule as WindowSchedule;
use loggap_core::sim::{Engine, Noise, Requirements, Schedule, Settings, Silent};
use loggap_core::units::Picos;

use super::network::{messages, with_more_memory};
use super::noise::{PhasedNoise, with_noise};
use super::windows::{self, Resources, Split, WindowError, WindowMemory};
use super::{
    Alone, Limit, LoadError, NetworkPlan, NoiseSource, OwnedMemory, ParameterSets, RunError, Source,
};
use crate::side_by_side::side_by_side;

/// Parameters of one run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Point {
    /// Message costs.
    pub sets: ParameterSets,
    /// Phases of the ranks in the plan's noise.
    pub phases: Phases,
}

/// Settings common to all runs.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Receive and rendezvous mode.
    pub settings: Settings,
    /// Noise of the operating system.
    pub noise: Option<&'a NoiseSource>,
    /// Network between the ranks, if messages share links.
    pub network: Option<&'a NetworkPlan>,
    /// Memory limit for all runs together, bytes. If it is too small for all threads, fewer are
    /// used.
    pub most_bytes: u64,
    /// Number of threads, at least one.
    pub threads: usize,
    /// Number of leading points for which the finishing time of each rank is returned.
    pub finish: usize,
    /// Flag to stop: once it is set, no further run starts, and the remaining ones end with
    /// [`RunError::Interrupted`].
    pub stop: Option<&'a AtomicBool>,
}

impl Plan<'_> {
    /// A plan with one thread, unlimited memory, and neither noise nor network.
    #[must_use]
    pub const fn new(settings: Settings) -> Self {
        let (noise, network) = (None, None);
        Self { settings, noise, network, most_bytes: u64::MAX, threads: 1, finish: 0, stop: None }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// Result of a completed run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Completed {
    /// Finishing time of the last rank.
    pub makespan: Picos,
    /// Finishing time of each rank; empty unless requested.
    pub finish: Vec<Picos>,
}

/// Result of one point; an error concerns only this one.
pub type Ended = Result<Completed, RunError>;

/// Runs `source` at `count` points, and calls `note` after each run, on the thread that ran it.
/// Results are in the order of points.
///
/// # Errors
///
/// The first [`RunError`] of a point, in the order of points.
pub fn run_points(
    source: &Source,
    count: usize,
    point: &(dyn Fn(usize) -> Point + Sync),
    plan: &Plan<'_>,
    note: &(dyn Fn() + Sync),
) -> Result<Vec<Completed>, RunError> {
    run_each_point(source, count, point, plan, note)?.into_iter().collect()
}

/// As [`run_points`], but an error of a single point, such as a deadlock, does not affect the other
/// points.
///
/// # Errors
///
/// [`RunError`] that does not concern a single point: memory is insufficient, or the schedule
/// cannot be read.
pub fn run_each_point(
    source: &Source,
    count: usize,
    point: &(dyn Fn(usize) -> Point + Sync),
    plan: &Plan<'_>,
    note: &(dyn Fn() + Sync),
) -> Result<Vec<Ended>, RunError> {
    let batch = Batch { plan, point, note };
    let all: Vec<usize> = (0..count).collect();
    let mut results = match plan.network {
        None => batch.computed(source, &all)?,
        Some(network) => batch.computed_on_network(source, network, &all)?,
    };
    results.resize_with(count, || None);
    let open = open_points(&results);
    if plan.network.is_none() {
        for (at, ended) in open.iter().zip(batch.in_windows(source, &open)?) {
            if let Some(result) = results.get_mut(*at) {
                *result = ended;
            }
        }
    }
    let open = open_points(&results);
    for (at, ended) in open.iter().zip(batch.in_order(source, &open)?) {
        if let Some(result) = results.get_mut(*at) {
            *result = Some(ended);
        }
    }
    let whole: Vec<Ended> = results.into_iter().flatten().collect();
    debug_assert_eq!(whole.len(), count, "every point was run");
    Ok(whole)
}

/// Points that have not been run yet.
fn open_points(results: &[Option<Ended>]) -> Vec<usize> {
    (0..).zip(results).filter(|(_, result)| result.is_none()).map(|(at, _)| at).collect()
}

/// Separates errors of one point (inner) from errors of all (outer).
pub(super) fn of_one_point<T>(
    result: Result<T, RunError>,
) -> Result<Result<T, RunError>, RunError> {
    match result {
        Err(error) if error.is_of_one_point() => Ok(Err(error)),
        other => other.map(Ok),
    }
}

/// A set of points to run.
pub(super) struct Batch<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) point: &'a (dyn Fn(usize) -> Point + Sync),
    pub(super) note: &'a (dyn Fn() + Sync),
}

/// Memory of a thread for runs of copies.
struct CopyMemory {
    schedule: OwnedMemory,
    /// Number of messages in flight that fit into memory, as a multiple of the usual number.
    times: usize,
}

impl Batch<'_> {
    /// Noise of a point.
    pub(super) fn noise(&self, point: &Point) -> Option<PhasedNoise<'_>> {
        self.plan.noise.map(|source| PhasedNoise { source, phases: point.phases, names: &[] })
    }

    /// Loads the schedule and runs copies of it in windows, each on one thread. Empty, or `None`
    /// for a point, if it must be run in order.
    fn in_windows(
        &self,
        source: &Source,
        points: &[usize],
    ) -> Result<Vec<Option<Ended>>, RunError> {
        if self.plan.is_stopped() {
            return Ok(Vec::new());
        }
        let mut suitable = points.iter().map(|&at| (self.point)(at)).skip_while(|point| {
            point.sets.parameters().is_ok_and(|parameters| parameters.lookahead().0 == 0)
        });
        let Some(first) = suitable.next() else { return Ok(Vec::new()) };
        let limit = Limit {
            bytes: self.plan.most_bytes,
            besides: &|needs| needs.bytes.saturating_add(self.kept(needs.ranks)),
            hints: None,
        };
        let (parameters, settings) = (first.sets.parameters()?, self.plan.settings);
        let split = Split::Threads(1);
        let ran =
            windows::load(source, parameters, settings, &limit, split, |schedule, needs, _| {
                let copy = schedule.copy_requirements();
                // The memory for messages of a window is not known in advance.
                let each =
                    copy.bytes().saturating_add(needs.bytes.saturating_sub(schedule.bytes()));
                let kept = needs.bytes.saturating_add(self.kept(needs.ranks));
                let threads = self.threads(each, kept, points.len())?;
                let mail = self.plan.most_bytes.saturating_sub(kept) / threads as u64;
                let mail = mail.saturating_sub(copy.bytes());
                let memory = || {
                    WindowMemory::new(&copy)
                        .map_err(|error| RunError::Load(LoadError::Pages(error)))
                };
                side_by_side(threads, points, memory, |memory, at| {
                    if self.plan.is_stopped() {
                        return Ok(None);
                    }
                    let ended = of_one_point(self.run_windows(&schedule, memory, at, mail))?;
                    if !matches!(ended, Ok(None)) {
                        (self.note)();
                    }
                    Ok(ended.transpose())
                })
            });
        match ran {
            Ok(Ok(completed)) => completed,
            // A run in order needs less memory, or reports how much it needs.
            Ok(Err(_)) | Err(LoadError::Memory { .. }) => Ok(Vec::new()),
            Err(error) => Err(RunError::Load(error)),
        }
    }

    fn run_windows(
        &self,
        schedule: &WindowSchedule<'_>,
        memory: &mut WindowMemory,
        at: usize,
        mail_bytes: u64,
    ) -> Result<Option<Completed>, RunError> {
        let point = (self.point)(at);
        let Some(copy) = schedule.copy(memory.lend(), point.sets.parameters()?) else {
            return Ok(None);
        };
        with_noise!(self.noise(&point), noise => self.run_window(copy, at, mail_bytes, noise))
    }

    fn run_window<N: Noise + Clone + Send>(
        &self,
        schedule: WindowSchedule<'_>,
        at: usize,
        mail_bytes: u64,
        noise: N,
    ) -> Result<Option<Completed>, RunError> {
        let resources =
            Resources { threads: 1, mail_bytes, small: Resources::SMALL, processes: &Alone };
        let ended = match windows::run(schedule, noise, |_| Silent, &resources, &mut |_| {}) {
            Ok(ended) => ended,
            Err(WindowError::Stopped(error)) => return Err(RunError::Stopped(error)),
            Err(WindowError::Memory(error)) => {
                return Err(RunError::Load(LoadError::Pages(error)));
            }
            Err(_) => return Ok(None),
        };
        let mut left = None;
        ended.unfinished(|first| left = left.or(Some(first)));
        if let Some(left) = left {
            return Err(RunError::Unfinished(left));
        }
        let listed = if at < self.plan.finish { usize::MAX } else { 0 };
        let finish = ended.finish().take(listed).collect();
        Ok(Some(Completed { makespan: ended.finished().makespan, finish }))
    }

    /// Loads the schedule and runs copies of it in order of events.
    fn in_order(&self, source: &Source, points: &[usize]) -> Result<Vec<Ended>, RunError> {
        let interrupted = |_: &usize| Err(RunError::Interrupted);
        if points.is_empty() || self.plan.is_stopped() {
            return Ok(points.iter().map(interrupted).collect());
        }
        let limit = Limit {
            bytes: self.plan.most_bytes,
            // Memory for one copy; more copies are made as far as memory allows.
            besides: &|needs| needs.bytes.saturating_add(self.kept(needs.ranks)),
            hints: None,
        };
        let ran = source.load(self.plan.settings, &limit, |schedule, needs| {
            let copy = schedule.copy_requirements();
            let kept = needs.bytes.saturating_add(self.kept(needs.ranks));
            let network = self.plan.network;
            let links = |messages| network.map_or(0, |plan| plan.bytes(needs.ranks, messages));
            let each = copy.bytes().saturating_add(links(messages(needs, 1)));
            let threads = self.threads(each, kept, points.len())?;
            let allowed = self.plan.most_bytes;
            let all = |each: u64| each.saturating_mul(threads as u64).saturating_add(kept);
            let memory = || Ok(CopyMemory { schedule: Self::memory(&copy)?, times: 1 });
            side_by_side(threads, points, memory, |memory, at| {
                if self.plan.is_stopped() {
                    return Ok(interrupted(&at));
                }
                let CopyMemory { schedule: memory, times } = memory;
                let completed = with_more_memory(times, |times| {
                    let messages = messages(needs, times);
                    let needed = all(copy.bytes().saturating_add(links(messages)));
                    if needed > allowed {
                        return Err(RunError::Load(LoadError::Memory { needed, allowed }));
                    }
                    self.run_copy(&schedule, memory, at, messages)
                });
                (self.note)();
                match completed {
                    // The messages in flight of this point need too much memory.
                    Err(RunError::Load(refused @ LoadError::Memory { .. })) => {
                        Ok(Err(RunError::Load(refused)))
                    }
                    completed => of_one_point(completed),
                }
            })
        });
        ran.map_err(RunError::Load)?
    }

    fn memory(requirements: &Requirements) -> Result<OwnedMemory, RunError> {
        OwnedMemory::new(requirements).map_err(|error| RunError::Load(LoadError::Pages(error)))
    }

    fn run_copy(
        &self,
        schedule: &Schedule<'_>,
        memory: &mut OwnedMemory,
        at: usize,
        messages: usize,
    ) -> Result<Completed, RunError> {
        let point = (self.point)(at);
        let too_small = || RunError::Load(LoadError::Pages(io::ErrorKind::OutOfMemory.into()));
        let copy = schedule.copy(memory.lend()).ok_or_else(too_small)?;
        with_noise!(self.noise(&point), noise => {
            let listed = if at < self.plan.finish { copy.ranks() } else { 0 };
            self.run(copy, &point, messages, noise, listed)
        })
    }

    /// Runs in order, with network memory for `messages` messages in flight; returns the finishing
    /// times of the first `listed` ranks.
    fn run<N: Noise>(
        &self,
        schedule: Schedule<'_>,
        point: &Point,
        messages: usize,
        noise: N,
        listed: u32,
    ) -> Result<Completed, RunError> {
        let (parameters, settings) = (point.sets.parameters()?, self.plan.settings);
        let Some(plan) = self.plan.network else {
            let engine = Engine::with(schedule, parameters, settings, noise, Silent);
            return Self::end(engine, listed);
        };
        let mut placed = plan.place(schedule.ranks(), schedule.interfaces(), messages)?;
        let network = placed.lend()?;
        let engine = Engine::on_network(schedule, parameters, settings, noise, Silent, network);
        Self::end(engine, listed)
    }

    /// Runs `engine` to the end; returns the finishing times of the first `listed` ranks.
    fn end<N: Noise, W: Network>(
        mut engine: Engine<'_, '_, N, Silent, W>,
        listed: u32,
    ) -> Result<Completed, RunError> {
        let makespan = engine.run().map_err(RunError::Stopped)?.makespan;
        let mut left = None;
        engine.unfinished(|first| left = left.or(Some(first)));
        if let Some(left) = left {
            return Err(RunError::Unfinished(left));
        }
        Ok(Completed { makespan, finish: (0..listed).map(|rank| engine.finish(rank)).collect() })
    }

    /// Memory for the finishing times that are returned, bytes.
    pub(super) fn kept(&self, ranks: u32) -> u64 {
        const EACH: u64 = size_of::<Picos>() as u64;
        u64::from(ranks).saturating_mul(EACH).saturating_mul(self.plan.finish as u64)
    }

    /// Number of threads that fit into memory, with `each` bytes for each of them and `kept` bytes
    /// in total.
    pub(super) fn threads(&self, each: u64, kept: u64, points: usize) -> Result<usize, RunError> {
        let allowed = self.plan.most_bytes;
        let room = allowed.saturating_sub(kept) / each.max(1);
        if room == 0 {
            let needed = each.saturating_add(kept);
            return Err(RunError::Load(LoadError::Memory { needed, allowed }));
        }
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        Ok(self.plan.threads.min(room).min(points).max(1))
    }
}
