//! Runs of one schedule with many parameter sets: loaded once, run in parallel.
//!
//! Patterns are computed if possible. All else is loaded, and each run uses a copy: in windows, on
//! one thread each, or, where windows are impossible, as on a network, in order of events. Results
//! do not depend on the number of threads.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};

use loggap_core::noise::Phases;
use loggap_core::sim::Settings;
use loggap_core::units::Picos;
use loggap_core::with_program;

use super::implicit::{PatternMemory, needs_of, settled};
use super::network::{messages, usual_messages, with_more_memory};
use super::noise::{PhasedNoise, with_noise};
use super::simulate::{InOrder, Loaded};
use super::windows::{Split, WindowMemory, load};
use super::{
    Computed, Job, Limit, LoadError, Needs, NetworkPlan, NoiseSource, Outcome, OwnedMemory,
    ParameterSets, RunError, Source, Wanted,
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

    fn is_stopped(&self) -> bool {
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

impl Completed {
    #[allow(clippy::unnecessary_wraps, reason = "as of a stored schedule")]
    fn computed(run: Computed) -> Ended {
        Ok(Self { makespan: run.outcome.makespan, finish: run.finish })
    }

    fn of(outcome: Outcome) -> Ended {
        match outcome.stuck.first {
            Some(left) => Err(RunError::Unfinished(left)),
            None => {
                let finish = outcome.finish.unwrap_or_default();
                Ok(Self { makespan: outcome.finished.makespan, finish })
            }
        }
    }
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
    let batch = Batch { source, plan, point, note };
    let mut results = Vec::new();
    results.resize_with(count, || None);
    for driver in [Batch::computed, Batch::in_windows, Batch::in_order] {
        let open = (0..).zip(&results).filter(|(_, result)| result.is_none());
        let open: Vec<usize> = open.map(|(at, _)| at).collect();
        if open.is_empty() || plan.is_stopped() {
            break;
        }
        for (at, ended) in open.iter().zip(driver(&batch, &open)?) {
            if let Some(result) = results.get_mut(*at) {
                *result = ended;
            }
        }
    }
    Ok(results.into_iter().map(|ended| ended.unwrap_or(Err(RunError::Interrupted))).collect())
}

/// A set of points to run.
struct Batch<'a> {
    source: &'a Source,
    plan: &'a Plan<'a>,
    point: &'a (dyn Fn(usize) -> Point + Sync),
    note: &'a (dyn Fn() + Sync),
}

/// Results of points; `None`, or missing, for those that need another driver.
type Results = Result<Vec<Option<Ended>>, RunError>;

impl Batch<'_> {
    /// Points of a pattern that can be computed.
    fn computed(&self, points: &[usize]) -> Results {
        let program = self.source.program(self.plan.settings.receive);
        let Some(program) = program else { return Ok(Vec::new()) };
        let (needs, kept) = (needs_of(&program), self.kept(self.source.ranks()));
        match self.plan.network {
            None => with_program!(&program, program => {
                let threads = self.threads(needs.bytes(), kept, points.len())?;
                let memory = || PatternMemory::new(needs, 1, needs.nodes);
                self.on_threads(threads, kept, points, memory, |memory, job| {
                    let computed = settled(with_noise!(job.noise, noise => {
                        memory.run(program, job, noise, &|_| {})
                    }));
                    Ok(computed?.map(Completed::computed))
                })
            }),
            Some(network) => {
                let messages = usual_messages(needs.ranks).min(needs.nodes_most);
                let links = network.bytes(self.source.ranks(), messages);
                let each = needs.ordered_bytes_with(needs.nodes).saturating_add(links);
                let threads = self.threads(each, kept, points.len())?;
                self.on_threads(
                    threads,
                    kept,
                    points,
                    || Ok(()),
                    |(), job| Ok(job.compute(&program, &|_| {})?.map(Completed::computed)),
                )
            }
        }
    }

    /// Loads the schedule and runs copies of it in windows, each on one thread.
    fn in_windows(&self, points: &[usize]) -> Results {
        let mut suitable = points.iter().map(|&at| (self.point)(at)).skip_while(|point| {
            point.sets.parameters().is_ok_and(|parameters| parameters.lookahead().0 == 0)
        });
        let Some(first) = suitable.next().filter(|_| self.plan.network.is_none()) else {
            return Ok(Vec::new());
        };
        let (parameters, settings) = (first.sets.parameters()?, self.plan.settings);
        let besides = |needs: &Needs| self.besides(needs);
        let (limit, split) = (self.limit(&besides), Split::Threads(1));
        let ran = load(self.source, parameters, settings, &limit, split, |stored, needs, _| {
            let copy = stored.copy_requirements();
            // The memory for messages of a window is not known in advance.
            let each = copy.bytes().saturating_add(needs.bytes.saturating_sub(stored.bytes()));
            let kept = self.besides(needs);
            let threads = self.threads(each, kept, points.len())?;
            let memory = || Ok(WindowMemory::new(&copy).map_err(LoadError::Pages)?);
            self.on_threads(threads, kept, points, memory, |memory, job| {
                let copied = stored.copy(memory.lend(), job.parameters);
                let Some(schedule) = copied else { return Ok(None) };
                let mail_bytes = job.most_bytes.saturating_sub(copy.bytes());
                let ran = Loaded { job, needs, mail_bytes }.run(schedule, &|_| {})?;
                Ok(ran.ok().map(Completed::of))
            })
        });
        match ran {
            Ok(completed) => completed,
            // A run in order needs less memory, or reports how much it needs.
            Err(LoadError::Memory { .. }) => Ok(Vec::new()),
            Err(error) if error.unsuitable().is_some() => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Loads the schedule and runs copies of it in order of events.
    fn in_order(&self, points: &[usize]) -> Results {
        // Memory for one copy; more copies are made as far as memory allows.
        let besides = |needs: &Needs| self.besides(needs);
        self.source.load(self.plan.settings, &self.limit(&besides), |stored, needs| {
            let copy = stored.copy_requirements();
            let links = |times| match self.plan.network {
                Some(plan) => plan.bytes(needs.ranks, messages(needs, times)),
                None => 0,
            };
            let (kept, allowed) = (self.besides(needs), self.plan.most_bytes);
            let each = |times| copy.bytes().saturating_add(links(times));
            let threads = self.threads(each(1), kept, points.len())?;
            // With the number of messages in flight that fit, as a multiple of the usual number.
            let memory = || Ok((OwnedMemory::new(&copy).map_err(LoadError::Pages)?, 1));
            self.on_threads(threads, kept, points, memory, |(memory, times), job| {
                // What one point needs, but does not fit, is not asked for another.
                let mut own = *times;
                let completed = with_more_memory(&mut own, |times| {
                    let needed = each(times).saturating_mul(threads as u64).saturating_add(kept);
                    if needed > allowed {
                        return Ok(Err(LoadError::Memory { needed, allowed }.into()));
                    }
                    let too_small = || LoadError::Pages(ErrorKind::OutOfMemory.into());
                    let schedule = stored.copy(memory.lend()).ok_or_else(too_small)?;
                    let outcome = InOrder { job, times, watch: &|_| {} }.run(schedule, needs)?;
                    Ok(Completed::of(outcome))
                });
                if let Ok(Ok(_)) = &completed {
                    *times = own;
                }
                completed.map(Some)
            })
        })?
    }

    /// Runs `points` on `threads` threads, each with a `memory` of its own; `kept` is the memory of
    /// all together, bytes. An error that concerns one point does not affect the others.
    fn on_threads<M>(
        &self,
        threads: usize,
        kept: u64,
        points: &[usize],
        memory: impl Fn() -> Result<M, RunError> + Sync,
        run: impl Fn(&mut M, &Job<'_>) -> Result<Option<Ended>, RunError> + Sync,
    ) -> Results {
        let Plan { settings, noise, network, finish, .. } = *self.plan;
        let most_bytes = self.plan.most_bytes.saturating_sub(kept) / threads as u64;
        side_by_side(threads, points, memory, |memory, at| {
            if self.plan.is_stopped() {
                return Ok(None);
            }
            let Point { sets, phases } = (self.point)(at);
            let noise = noise.map(|source| PhasedNoise { source, phases, names: &[] });
            let wanted = Wanted { finish: at < finish, ..Wanted::default() };
            let job = Job::new(sets.parameters()?, settings);
            let ended = match run(memory, &Job { noise, network, most_bytes, wanted, ..job }) {
                Err(error) if error.is_of_one_point() => Some(Err(error)),
                ran => ran?,
            };
            if ended.is_some() {
                (self.note)();
            }
            Ok(ended)
        })
    }

    const fn limit<'l>(&self, besides: &'l dyn Fn(&Needs) -> u64) -> Limit<'l> {
        Limit { bytes: self.plan.most_bytes, besides, hints: None }
    }

    /// Memory for the schedule that is copied, and for the finishing times that are returned, bytes.
    fn besides(&self, needs: &Needs) -> u64 {
        needs.bytes.saturating_add(self.kept(needs.ranks))
    }

    /// Memory for the finishing times that are returned, bytes.
    fn kept(&self, ranks: u32) -> u64 {
        const EACH: u64 = size_of::<Picos>() as u64;
        u64::from(ranks).saturating_mul(EACH).saturating_mul(self.plan.finish as u64)
    }

    /// Number of threads that fit into memory, with `each` bytes for each of them and `kept` bytes
    /// in total.
    fn threads(&self, each: u64, kept: u64, points: usize) -> Result<usize, RunError> {
        let allowed = self.plan.most_bytes;
        let room = allowed.saturating_sub(kept) / each.max(1);
        if room == 0 {
            let needed = each.saturating_add(kept);
            return Err(LoadError::Memory { needed, allowed }.into());
        }
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        Ok(self.plan.threads.min(room).min(points).max(1))
    }
}
