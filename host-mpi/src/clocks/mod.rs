//! Clocks that agree over all ranks.
//!
//! All ranks of a machine read `CLOCK_MONOTONIC_RAW`, which is one clock there:
//! they form a clock domain, whose ranks share the synchronisation of their
//! leader. Leaders are synchronised over a tree from the root.
//! [`loggap_core::sync`] makes the decisions, this module sends the pings.

pub mod check;
mod domain;
mod pass;
pub mod published;
pub mod record;
pub mod study;

use loggap::machine::clock::HostClock;
use loggap_core::measure::Clock as _;
use loggap_core::sync::{
    Assumptions, ClockModel, DriftError, RankClock, Tree, TreeEntry, TreeMemory,
};
use loggap_core::units::Picos;

pub use domain::Domains;
pub(crate) use pass::Ends;
pub use pass::{Edge, Pass};

use crate::job::{CONTROLLER, Job};
use crate::waiting::Waiting;

/// Clock of this rank and its relation to global time, whose origin is that of
/// the controller's clock domain.
#[derive(Debug)]
pub struct GlobalClock {
    clock: HostClock,
    /// Reading that all ranks of this clock domain count from.
    base: u64,
    /// Clock domain of each rank.
    domains: Vec<u32>,
    /// Reading that the controller counts from, if all ranks read one clock:
    /// then the true global time is known.
    true_base: Option<u64>,
    assumptions: Assumptions,
    rank: RankClock,
    model: ClockModel,
    /// Reading at the end of the last pass.
    synchronised: u64,
    /// Quickest round trip with each peer in the first series with it.
    quickest: Vec<(i32, Picos)>,
}

impl GlobalClock {
    /// This rank's clock, not synchronised yet. All ranks call this together.
    #[must_use]
    pub fn new(job: &Job, domains: Domains, assumptions: Assumptions) -> Self {
        Self::shifted(job, domains, assumptions, Picos::ZERO)
    }

    /// As [`GlobalClock::new`], but with each rank's clock ahead of the
    /// previous rank's by `shift`, to see whether synchronising finds that. All
    /// ranks call this together.
    #[must_use]
    pub fn shifted(job: &Job, domains: Domains, assumptions: Assumptions, shift: Picos) -> Self {
        let clock = HostClock::monotonic_raw();
        let ahead = shift.0.saturating_mul(job.rank().unsigned_abs().into());
        let begin = clock.now().saturating_sub(clock.ticks(Picos(ahead)));
        let (begins, is_one_kernel) = domain::begins(job, domains, begin);
        let base_of = |rank: i32| {
            let begin = usize::try_from(rank).ok().and_then(|rank| begins.get(rank));
            begin.map_or(0, |begin| begin.reading)
        };
        let base = base_of(job.rank());
        let is_root = job.rank() == CONTROLLER;
        let (rank, model) = if is_root {
            (RankClock::root(), ClockModel::reference())
        } else {
            (RankClock::default(), unknown())
        };
        let domains = begins.iter().map(|begin| begin.domain).collect();
        Self {
            clock,
            base,
            domains,
            true_base: is_one_kernel.then(|| base_of(CONTROLLER)),
            assumptions,
            rank,
            model,
            synchronised: base,
            quickest: Vec::new(),
        }
    }

    /// Raw reading, to be converted later: a timed section does nothing else.
    #[inline(always)]
    #[must_use]
    pub fn read(&self) -> u64 {
        self.clock.now()
    }

    /// Time between two readings.
    #[must_use]
    pub fn between(&self, from: u64, to: u64) -> Picos {
        self.clock.duration(to.saturating_sub(from))
    }

    /// Local time of a reading.
    #[must_use]
    pub fn local(&self, reading: u64) -> Picos {
        self.clock.duration(reading.saturating_sub(self.base))
    }

    /// Global time of a reading.
    #[must_use]
    pub fn global(&self, reading: u64) -> Picos {
        self.model.reference_at(self.local(reading))
    }

    /// Current global time.
    #[must_use]
    pub fn now(&self) -> Picos {
        self.global(self.read())
    }

    /// First reading at or after `global`.
    #[must_use]
    pub fn reading_at(&self, global: Picos) -> u64 {
        self.base.saturating_add(self.clock.ticks(self.model.local_at(global)))
    }

    /// Bound of the error of current global times. A reading is at least as
    /// uncertain as it takes long.
    #[must_use]
    pub fn error(&self) -> Picos {
        let of_model = self.model.error_at(self.local(self.read()));
        Picos(of_model.0.saturating_add(self.read_cost().0))
    }

    /// Time since the last pass.
    #[must_use]
    pub fn age(&self) -> Picos {
        self.between(self.synchronised, self.read())
    }

    /// Model in use, from local to global time.
    #[must_use]
    pub const fn model(&self) -> &ClockModel {
        &self.model
    }

    /// State of this rank's synchronisation with the reference clock.
    #[must_use]
    pub const fn rank_clock(&self) -> &RankClock {
        &self.rank
    }

    /// True global time of a reading; `None` if ranks read more than one clock.
    #[must_use]
    pub fn truth(&self, reading: u64) -> Option<Picos> {
        Some(self.clock.duration(reading.saturating_sub(self.true_base?)))
    }

    /// Cost of a reading.
    #[must_use]
    pub fn read_cost(&self) -> Picos {
        self.clock.read_cost()
    }

    /// Name of the clock source.
    #[must_use]
    pub const fn source(&self) -> &'static str {
        self.clock.source().name()
    }

    /// The clock domain of each rank.
    #[must_use]
    pub fn domains(&self) -> &[u32] {
        &self.domains
    }

    /// Synchronises all ranks with the reference by one pass over the tree,
    /// after which global times hold. All ranks call this together.
    pub fn synchronise(&mut self, job: &Job, waiting: Waiting<'_>) -> Pass {
        let pass = pass::over_the_tree(self, job, waiting);
        self.model = self.rank.model(&self.assumptions).unwrap_or_else(|_| unknown());
        self.synchronised = self.read();
        pass
    }

    /// Uses `model`, that of another scheme.
    pub const fn follow(&mut self, model: ClockModel) {
        self.model = model;
    }

    /// Model of the time since `before`, an earlier copy of
    /// [`GlobalClock::rank_clock`], by interpolation between two passes.
    ///
    /// # Errors
    ///
    /// A clock was set in between, or there was no pass.
    pub fn since(&self, before: &RankClock) -> Result<ClockModel, DriftError> {
        self.rank.since(before, &self.assumptions)
    }

    /// Calls `work` with the tree of all ranks; `None` without ranks.
    pub fn with_tree<T>(&self, work: impl FnOnce(&Tree<'_>) -> T) -> Option<T> {
        with_tree(&self.domains, work)
    }
}

/// Calls `work` with the tree of ranks of `domains`; `None` without ranks.
fn with_tree<T>(domains: &[u32], work: impl FnOnce(&Tree<'_>) -> T) -> Option<T> {
    let count = domains.len();
    let (mut order, mut entries) = (vec![0; count], vec![TreeEntry::default(); count]);
    let memory = TreeMemory { order: &mut order, entries: &mut entries };
    Tree::new(domains, memory).ok().map(|tree| work(&tree))
}

/// Model of a clock that is not synchronised: its error is unbounded.
fn unknown() -> ClockModel {
    ClockModel { error: Picos::MAX, ..ClockModel::reference() }
}
