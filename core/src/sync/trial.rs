//! Synchronises virtual clocks with known truth over the tree, and reports how far the corrected
//! clocks deviate from the root's and whether the claimed errors cover the deviations.

use core::fmt;

use super::check::{Residual, ResidualSummary, Residuals};
use super::simulated::{ClockTruth, Contention, NoClock, Path, VirtualClock, VirtualPinger};
use super::{
    Assumptions, Edge, RankClock, SyncError, SyncOptions, Tree, TreeEntry, TreeError, TreeMemory,
};
use crate::random::Random;
use crate::units::{Picos, SignedPicos};

/// Clocks and network of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Scenario {
    /// Properties of the clocks.
    pub clocks: ClockTruth,
    /// Path between domains. If it is asymmetric, the longer direction is drawn for every edge.
    pub network: Path,
    /// Path within a domain.
    pub within: Path,
    /// Passes over the tree at the beginning; five over [`LEAST_SPAN`](super::LEAST_SPAN) or more
    /// give a useful slope.
    pub passes: u32,
    /// Time between the beginnings of two passes; a pass that takes longer delays the next.
    pub pause: Picos,
    /// Time from the end of these passes to the final one.
    pub hold: Picos,
    /// One in this many ranks that do not lead has a clock of its own, although its domain claims
    /// to share one; 0 for none.
    pub impostors: u32,
    /// Rank whose domain's clock is set in the middle of the hold, and the change.
    pub set: Option<(u32, SignedPicos)>,
    /// Seed of every random choice.
    pub seed: u64,
}

impl Default for Scenario {
    /// Quiet: a network with 1 us one way and a tenth of it between ranks of a domain; five passes
    /// in a second, and ten seconds until the final pass.
    fn default() -> Self {
        Self {
            clocks: ClockTruth::default(),
            network: Path::of(Picos(1_000_000)),
            within: Path::of(Picos(100_000)),
            passes: 5,
            pause: Picos(super::SECOND / 4),
            hold: Picos(10 * super::SECOND),
            impostors: 0,
            set: None,
            seed: 1,
        }
    }
}

impl Scenario {
    /// One scenario for each disturbance of clocks and pings, with its name.
    #[must_use]
    pub fn all() -> [(&'static str, Self); 6] {
        const MICROSECOND: u64 = 1_000_000;
        const MILLISECOND: u64 = 1_000 * MICROSECOND;
        let quiet = Self::default();
        let clocks = quiet.clocks;
        let drift = ClockTruth { drift_ppm: 100.0, ..clocks };
        let wander = ClockTruth { wander_ppb: 20.0, widest_wander_ppb: 100.0, ..clocks };
        let jitter = ClockTruth { jitter: Picos(50_000), granularity: Picos(100_000), ..clocks };
        let noisy = Path { jitter: Picos(2 * MICROSECOND), ..quiet.network };
        let asymmetric = Path { asymmetry_percent: 80, ..quiet.network };
        let contention = Contention {
            probability: 0.005,
            phase: Picos(100 * MILLISECOND),
            delay: Picos(4 * MILLISECOND),
        };
        let contended = Path { contention, ..quiet.network };
        let within = Path { contention, ..quiet.within };
        [
            ("quiet", quiet),
            ("drift", Self { clocks: drift, ..quiet }),
            ("wander", Self { clocks: wander, ..quiet }),
            ("jitter", Self { clocks: jitter, network: noisy, ..quiet }),
            ("asymmetry", Self { network: asymmetric, ..quiet }),
            ("preemption", Self { network: contended, within, ..quiet }),
        ]
    }

    /// Options that match the paths and clock resolution of this scenario, with the given
    /// assumptions.
    #[must_use]
    pub fn options(&self, assumptions: Assumptions) -> SyncOptions {
        let (between, within) = (self.network.round_trip(), self.within.round_trip());
        SyncOptions::expecting(between, within, self.clocks.resolution(), assumptions)
    }
}

/// State of one rank in a trial.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrialRank {
    clock: RankClock,
    /// The rank's clock at the end of the first passes.
    before: RankClock,
    /// Index of the virtual clock that the rank reads.
    reads: u32,
    /// True time at which its last exchange ended.
    free: Picos,
    /// Its reading in the middle of the hold.
    middle: Picos,
}

impl TrialRank {
    /// The rank's clock after the final pass.
    #[must_use]
    pub const fn clock(&self) -> &RankClock {
        &self.clock
    }

    /// Index of the virtual clock that the rank reads.
    #[must_use]
    pub fn reads(&self) -> usize {
        index(self.reads)
    }

    /// True time at which its last exchange ended.
    #[must_use]
    pub const fn free(&self) -> Picos {
        self.free
    }
}

/// Memory of a trial, an element per rank in each slice.
#[derive(Debug)]
pub struct TrialMemory<'m> {
    /// Virtual clocks.
    pub clocks: &'m mut [VirtualClock],
    /// States of the ranks.
    pub ranks: &'m mut [TrialRank],
    /// Working memory for quantiles.
    pub residuals: &'m mut [Picos],
    /// Memory of the tree.
    pub order: &'m mut [u64],
    /// Memory of the tree.
    pub entries: &'m mut [TreeEntry],
}

/// Reasons why a trial has no result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TrialError {
    /// There is no tree, or a slice of the memory has too few elements.
    Tree(TreeError),
    /// A rank could not be synchronised.
    Rank {
        /// The rank.
        rank: u32,
        /// The error.
        error: SyncError<NoClock>,
    },
}

impl fmt::Display for TrialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tree(error) => error.fmt(f),
            Self::Rank { rank, error } => write!(f, "rank {rank}: {error}"),
        }
    }
}

impl core::error::Error for TrialError {}

/// Result of a trial. Residuals are corrected clock minus root's clock, of all ranks but the root.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TrialReport {
    /// Duration of the last of the first passes.
    pub pass: Picos,
    /// Total number of pings.
    pub pings: u64,
    /// Residuals at the end of the first passes.
    pub synchronised: ResidualSummary,
    /// Residuals at the end of the hold, extrapolated.
    pub extrapolated: ResidualSummary,
    /// Residuals in the middle of the hold, interpolated after the final pass. Ranks whose clock
    /// was found to be set are excluded.
    pub interpolated: ResidualSummary,
    /// Number of checks within a domain that found a different clock, in all passes.
    pub checks_failed: u32,
    /// Number of ranks with contradicting offsets.
    pub contradicted: u32,
}

/// Synchronises `domains.len()` ranks, an element being the clock domain of its rank, holds,
/// synchronises once more, and compares the clocks with the truth.
///
/// Errors are bounds as long as the [`Assumptions`] in `options` and the resolution of the clocks
/// hold, whatever the network does: see [`Scenario::options`].
///
/// # Errors
///
/// [`TrialError`].
pub fn trial(
    domains: &[u32],
    scenario: &Scenario,
    options: &SyncOptions,
    memory: TrialMemory<'_>,
) -> Result<TrialReport, TrialError> {
    let ranks = domains.len();
    let TrialMemory { clocks, ranks: states, residuals, order, entries } = memory;
    let tree = Tree::new(domains, TreeMemory { order, entries }).map_err(TrialError::Tree)?;
    let (Some(clocks), Some(states), Some(residuals)) =
        (clocks.get_mut(..ranks), states.get_mut(..ranks), residuals.get_mut(..ranks))
    else {
        return Err(TrialError::Tree(TreeError::Memory(ranks)));
    };
    let report = TrialReport::default();
    let mut trial = Trial { tree, scenario, options, clocks, states, residuals, report, passes: 0 };
    trial.begin();
    trial.run()?;
    Ok(trial.report)
}

struct Trial<'t> {
    tree: Tree<'t>,
    scenario: &'t Scenario,
    options: &'t SyncOptions,
    clocks: &'t mut [VirtualClock],
    states: &'t mut [TrialRank],
    residuals: &'t mut [Picos],
    report: TrialReport,
    passes: u64,
}

impl Trial<'_> {
    fn begin(&mut self) {
        let Scenario { clocks, seed, impostors, .. } = *self.scenario;
        for (clock, stream) in self.clocks.iter_mut().zip(0..) {
            *clock = VirtualClock::new(clocks, seed, stream);
        }
        for (state, rank) in self.states.iter_mut().zip(0..) {
            let leader = self.tree.leader(rank).unwrap_or(rank);
            let is_impostor = impostors > 0 && rank % impostors == impostors - 1;
            let reads = if is_impostor { rank } else { leader };
            *state = TrialRank { reads, ..TrialRank::default() };
        }
        if let Some(root) = self.states.first_mut() {
            root.clock = RankClock::root();
        }
    }

    fn run(&mut self) -> Result<(), TrialError> {
        let mut now = Picos::ZERO;
        for pass in 0..self.scenario.passes.max(1) {
            let begin = Picos(self.scenario.pause.0.saturating_mul(pass.into())).max(now);
            now = self.pass(begin)?;
            self.report.pass = now.since(begin);
        }
        self.report.synchronised = self.compare_at(now);
        let half = self.scenario.hold.0 / 2;
        let middle = Picos(now.0.saturating_add(half));
        self.remember(middle);
        if let Some((rank, by)) = self.scenario.set {
            let reads = index(self.state(rank).reads);
            if let Some(clock) = self.clocks.get_mut(reads) {
                clock.set(Picos(middle.0.saturating_add(half / 2)), by);
            }
        }
        let end = Picos(now.0.saturating_add(self.scenario.hold.0));
        self.report.extrapolated = self.compare_at(end);
        self.pass(end)?;
        self.report.interpolated = self.compare_in_the_middle();
        let contradicted = |state: &&TrialRank| state.clock.contradictions() > 0;
        let contradicted = self.states.iter().filter(contradicted).count();
        self.report.contradicted = u32::try_from(contradicted).unwrap_or(u32::MAX);
        Ok(())
    }

    /// Runs one pass over the tree, which begins at the true time `begin`; returns its end.
    fn pass(&mut self, begin: Picos) -> Result<Picos, TrialError> {
        for state in self.states.iter_mut() {
            state.free = begin;
        }
        self.passes += 1;
        let tree = self.tree;
        for rank in tree.parents_first() {
            if let Some(step) = tree.parent(rank) {
                let result = self.step(rank, step.peer, step.edge);
                result.map_err(|error| TrialError::Rank { rank, error })?;
            }
        }
        Ok(self.states.iter().map(|state| state.free).max().unwrap_or(begin))
    }

    /// Synchronises `rank` with `parent`, starting when both are free.
    fn step(&mut self, rank: u32, parent: u32, edge: Edge) -> Result<(), SyncError<NoClock>> {
        let (mut own, mut peer) = (self.state(rank), self.state(parent));
        let now = own.free.max(peer.free);
        let (path, options) = match edge {
            Edge::Leaders => (self.scenario.network, *self.options),
            // A rank that turns out to have its own clock is synchronised over the path within the
            // domain.
            Edge::Domain => {
                let mut options = *self.options;
                options.series.offset.widest = options.check.offset.widest;
                (self.scenario.within, options)
            }
        };
        let seed = self.scenario.seed;
        let path = path.turned(&mut Random::stream(!seed, rank.into()));
        let random = Random::stream(seed ^ self.passes << 32, u64::from(rank) + (1 << 32));
        let reads = (index(own.reads), index(peer.reads));
        let mut pinger = VirtualPinger::new(self.clocks, reads, path, now, random);
        let announced = peer.clock.announce(&options.assumptions).map_err(SyncError::Drift)?;
        let shares = edge == Edge::Domain && own.clock.share(&announced, &mut pinger, &options)?;
        if !shares {
            self.report.checks_failed += u32::from(edge == Edge::Domain);
            own.clock.synchronise(&announced, &mut pinger, &options, &mut [])?;
        }
        (own.free, peer.free) = (pinger.true_now(), pinger.true_now());
        self.report.pings = self.report.pings.saturating_add(pinger.pings());
        self.keep(rank, own);
        self.keep(parent, peer);
        Ok(())
    }

    /// Records the state of all ranks, and their clocks' readings at the true time `middle`.
    fn remember(&mut self, middle: Picos) {
        for state in self.states.iter_mut() {
            state.before = state.clock;
            if let Some(clock) = self.clocks.get_mut(index(state.reads)) {
                state.middle = clock.exact_at(middle);
            }
        }
    }

    /// Residuals of the clocks at the true time `now`, corrected by their current models.
    fn compare_at(&mut self, now: Picos) -> ResidualSummary {
        let clocks = &mut *self.clocks;
        let mut reading = |reads| Some(clocks.get_mut(index(reads))?.exact_at(now));
        let truth = reading(0).unwrap_or_default();
        let mut residuals = Residuals::new(self.residuals);
        for state in self.states.iter().skip(1) {
            let model = state.clock.model(&self.options.assumptions).ok();
            if let Some((model, local)) = model.zip(reading(state.reads)) {
                let kept = residuals.push(Residual::of_truth(&model, local, truth));
                debug_assert!(kept.is_ok(), "memory for every rank");
            }
        }
        residuals.summary()
    }

    /// Residuals of the clocks in the middle of the hold, corrected after the final pass.
    fn compare_in_the_middle(&mut self) -> ResidualSummary {
        let truth = self.state(0).middle;
        let mut residuals = Residuals::new(self.residuals);
        for state in self.states.iter().skip(1) {
            if let Ok(model) = state.clock.since(&state.before, &self.options.assumptions) {
                let kept = residuals.push(Residual::of_truth(&model, state.middle, truth));
                debug_assert!(kept.is_ok(), "memory for every rank");
            }
        }
        residuals.summary()
    }

    fn state(&self, rank: u32) -> TrialRank {
        self.states.get(index(rank)).copied().unwrap_or_default()
    }

    fn keep(&mut self, rank: u32, state: TrialRank) {
        if let Some(place) = self.states.get_mut(index(rank)) {
            *place = state;
        }
    }
}

/// Index of a rank; past the end of any slice if it does not fit into `usize`.
fn index(rank: u32) -> usize {
    usize::try_from(rank).unwrap_or(usize::MAX)
}
