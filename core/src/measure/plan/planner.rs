//! Planner of a measurement.
//!
//! A state machine without I/O: [`Planner::poll_batch`] returns the next experiments,
//! [`Planner::handle_sample`] and [`Planner::handle_lost`] take their outcomes, until a batch is
//! empty. Four stages:
//!
//! 1. **Warm-up**: round trips at the smallest and the largest size until their medians are stable.
//!    These samples are discarded. They determine the first allotment of each size
//!    ([`super::budget`]).
//! 2. **Pilot**: the first sweeps, of round trips and bursts only, from which the delay of paced
//!    rounds is chosen: `d_G = PRTT(1,0,s)`, or `PRTT(2,0,s)` if the gap is close to it.
//! 3. **Sweeps**: each visits all cells (size and quantity) that need samples once, in a new random
//!    order, so that drift of the machine affects all of them instead of looking like a parameter.
//! 4. **Bisection**, between sweeps: a size is added in the middle of each protocol change's
//!    interval until the change is known to the byte, or noise, memory or budget prevent it.
//!
//! After the first sweeps a cell needs samples if an interval of g, G, o, O or L is still too wide
//! and the cell narrows it about as much as any other would for the same cost in time and messages.
//! Once no interval is too wide, sweeps of all cells continue until [`PlanOptions::least_time`].

use super::budget::{BASE_SAMPLES, Left, TIERS};
use super::disturbed::{BRIEF_BATCH, Disturbed};
use super::memory::{PlanError, PlanMemory, PlanRequirements, Slot};
use crate::measure::assess::ranges::{Ranges, whole};
use crate::measure::experiment::HEADERS;
use crate::measure::plan::warmup::Warmup;
use crate::measure::{
    AssessError, AssessMemory, AssessOptions, Assessment, Experiment, Findings, Quantity,
    RowHeader, Sample, SampleStore, assess, floor,
};
use crate::random::Random;
use crate::units::{PerByte, Picos};
use crate::wide::{scaled, times};

/// Goals and limits of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PlanOptions {
    /// Confidence, requested accuracy and number of changes.
    pub assess: AssessOptions,
    /// Half-width of an interval, in millionths of the value, at which a number counts as converged
    /// on a busy machine, where better is out of reach.
    pub busy_error_ppm: u32,
    /// Messages in a burst, `n`; at least 2.
    pub messages: u32,
    /// Messages in a burst of large messages, if the budget allows. A link that passes the first
    /// bytes at a higher rate, such as a token bucket, shows its sustained rate only in long
    /// bursts. At least `messages`.
    pub large_messages: u32,
    /// Most bytes of a burst of more than `messages`: the capacity of the other end, if nothing is
    /// retransmitted.
    pub burst_bytes: u64,
    /// Time limit, from the first poll to the end of the last batch, as far as the length of a
    /// batch can be predicted.
    pub max_time: Picos,
    /// Limit up to which the time is extended on a link so slow that sizes would otherwise be
    /// dropped.
    pub longest_time: Picos,
    /// Least time of the plan, even if everything is accurate enough: samples of a longer time
    /// predict the next run better.
    pub least_time: Picos,
    /// Most messages of all rounds together, including replies.
    pub max_messages: u64,
    /// True if sizes may be added around protocol changes, and dropped if the time is too short for
    /// all.
    pub adapt_sizes: bool,
    /// Seed of the order of experiments.
    pub seed: u64,
}

impl Default for PlanOptions {
    /// n = 10, at most 2.5 s and 34,000 messages; including the session's own frames below 3 s and
    /// 40,000.
    fn default() -> Self {
        Self {
            assess: AssessOptions::default(),
            busy_error_ppm: 250_000,
            messages: 10,
            large_messages: 10,
            burst_bytes: u64::MAX,
            max_time: Picos(2_500_000_000_000),
            longest_time: Picos(2_500_000_000_000),
            least_time: Picos::ZERO,
            max_messages: 34_000,
            adapt_sizes: true,
            seed: 1,
        }
    }
}

impl PlanOptions {
    /// Subtracts time already spent from both time limits, up to half of each.
    pub fn spend(&mut self, spent: Picos) {
        for time in [&mut self.max_time, &mut self.longest_time] {
            *time = time.since(spent).max(Picos(time.0 / 2));
        }
    }
}

/// Fate of a sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Kept {
    /// The sample was stored.
    Stored,
    /// The sample was part of the warm-up and was discarded.
    WarmUp,
    /// The sample was not requested, or there is no room for it; it was discarded.
    Refused,
}

/// Reasons for the end of a plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Conclusion {
    /// Every interval is narrow enough, or cannot be narrowed by more samples.
    Converged,
    /// The time limit ([`Planner::allowed`]) was reached.
    TimeSpent,
    /// [`PlanOptions::max_messages`] were sent.
    MessagesSpent,
    /// There is no room for further samples.
    MemorySpent,
    /// All rounds are lost at the sizes that need samples.
    RoundsLost,
    /// Ended by [`Planner::stop`] or by the driver.
    Stopped,
}

/// Progress of a plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Progress {
    /// Share of the budget spent, of time or messages, whichever is more, in millionths.
    pub spent_ppm: u32,
    /// Largest half-width of a parameter's interval relative to its goal, in millionths; `None`
    /// before the first analysis.
    pub widest_ppm: Option<u64>,
    /// Messages sent, including replies.
    pub messages: u64,
    /// Number of rounds lost.
    pub lost: u64,
}

/// Bursts of each size in the pilot.
const PILOT_BURSTS: usize = 2;
/// A delay is chosen again if it exceeds this many times the one suggested by later samples.
const MISLED: u64 = 4;
/// On a busy machine, the number of sizes that get their first bursts at a time, and the round
/// trips of each size; these are short and fit into a time slice.
const ROWS_AT_A_TIME: usize = 3;
const MORE_ROUND_TRIPS: usize = 24;
/// Sweeps of only the cells in need between two sweeps of all.
const TARGETED: u8 = 2;
/// Limit for rounds that are run without need: a thousandth of the remaining budget, in units of
/// 2⁻³⁰.
const DEAR: u64 = 1 << 20;
/// Number of warm-ups after which a further launch counts as warm in any case.
const MOST_WARM_UPS: u8 = 4;
/// Lost bursts after which the bursts of a size are halved, if none has arrived.
const LOSSES_A_HALVING: u8 = 4;
/// Consecutive losses at a size, and total losses beyond the largest size that arrives, after which
/// the size counts as unreachable.
const LOSSES_OF_ONE_SIZE: u8 = 3;
const LOSSES_BEYOND: u64 = 12;
/// Least ratio of losses beyond that size to losses elsewhere; below it losses are random.
const CHANCE_SHARE: u64 = 8;
/// Most of the budget for the warm-up: one part in this many.
const WARM_UP_SHARE: u64 = 10;

/// Progress of a further launch's sweep of all cells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Launch {
    Begun,
    UnderWay,
    Covered,
}

/// Decides what to measure next, and stores the samples.
///
/// Call [`Planner::poll_batch`], run its experiments, and pass every outcome to
/// [`Planner::handle_sample`], [`Planner::handle_late`] or [`Planner::handle_lost`]; repeat until
/// the batch is empty, then call [`Planner::assess`]. `now` never decreases.
/// [`PlanOptions::max_messages`] bounds the number of batches, whatever the outcomes.
#[derive(Debug)]
pub struct Planner<'m, const N: usize = 16> {
    pub(in crate::measure) options: PlanOptions,
    /// Time limit: [`PlanOptions::max_time`], or more on a slow link.
    pub(super) allowed: Picos,
    pub(in crate::measure) store: SampleStore<'m>,
    /// Stack of cells to be measured, of which the first `queued` entries are in use.
    order: &'m mut [Slot],
    pub(in crate::measure) queued: usize,
    pub(in crate::measure) memory: AssessMemory<'m>,
    random: Random,
    pub(in crate::measure) warmup: Warmup,
    warm: bool,
    /// True once the first samples were allotted.
    allotted: bool,
    /// Sweeps of cells in need since the last one of all.
    targeted: u8,
    launch: Launch,
    /// Number of times that warm-up rounds were queued in this launch.
    warm_ups: u8,
    started: Option<Picos>,
    pub(super) messages: u64,
    pub(super) lost: u64,
    pub(super) disturbed: Disturbed,
    /// Number of samples in the store, and at the last analysis.
    kept: u64,
    analysed: u64,
    /// Remaining time for bisection, at first a third of the time allowed.
    pub(in crate::measure) bisection_left: Picos,
    /// Largest half-width of a parameter's interval relative to its goal.
    pub(in crate::measure) widest: Option<f64>,
    /// Largest size that had arrived when the larger ones were given up.
    reached: Option<u32>,
    conclusion: Option<Conclusion>,
}

impl<'m, const N: usize> Planner<'m, N> {
    /// Plan for `sizes`, in any order, on lent memory whose initial contents are irrelevant; see
    /// [`PlanRequirements`] and [`crate::measure::coarse_sizes`].
    ///
    /// # Errors
    ///
    /// [`PlanError`] if there is nothing to plan or too little memory.
    pub fn new(
        options: PlanOptions,
        sizes: &[u32],
        memory: PlanMemory<'m>,
    ) -> Result<Self, PlanError> {
        if options.messages < 2 {
            return Err(PlanError::TooFewMessages(options.messages));
        }
        let large_messages = options.large_messages.max(options.messages);
        let options = PlanOptions { large_messages, ..options };
        if sizes.contains(&0) {
            return Err(PlanError::EmptyMessage);
        }
        let PlanMemory { rows, values, order, assess } = memory;
        let fits = order.len() >= PlanRequirements::order(rows.len());
        let mut store = SampleStore::new(rows, values);
        if !fits || store.cell_capacity() < usize::from(BASE_SAMPLES) {
            return Err(PlanError::Memory(sizes.len()));
        }
        store.claim_from(floor::VALUE, floor::CHANGE);
        for &size in sizes {
            store.add_size(size).map_err(|_| PlanError::Memory(sizes.len()))?;
        }
        for header in store.rows_mut() {
            header.plan.full = true;
            header.plan.base = BASE_SAMPLES;
            header.plan.messages = options.messages;
            header.plan.paced_messages = options.messages;
        }
        let ends = (store.rows().first(), store.rows().last());
        let (Some(smallest), Some(largest)) = ends else { return Err(PlanError::NoSizes) };
        Ok(Self {
            options,
            allowed: options.max_time,
            allotted: false,
            targeted: 0,
            launch: Launch::Covered,
            warm_ups: 0,
            warmup: Warmup::new(smallest.size, largest.size),
            store,
            order,
            queued: 0,
            memory: assess,
            random: Random::new(options.seed),
            warm: false,
            started: None,
            messages: 0,
            lost: 0,
            disturbed: Disturbed::default(),
            kept: 0,
            analysed: 0,
            bisection_left: Picos::ZERO,
            widest: None,
            reached: None,
            conclusion: None,
        })
    }

    /// Next experiments, at most `B`; empty if the plan is over, see [`Planner::conclusion`].
    pub fn poll_batch<const B: usize>(&mut self, now: Picos) -> heapless::Vec<Experiment, B> {
        let mut batch = heapless::Vec::new();
        self.fill_batch(now, &mut batch);
        batch
    }

    /// As [`Planner::poll_batch`], but fills an existing batch, since a small stack has no room for
    /// two.
    pub fn fill_batch<const B: usize>(
        &mut self,
        now: Picos,
        batch: &mut heapless::Vec<Experiment, B>,
    ) {
        batch.clear();
        let elapsed = now.since(*self.started.get_or_insert(now));
        let mut left = self.allowed.since(elapsed);
        self.disturbed.on_poll(elapsed);
        if elapsed > self.last_poll() {
            self.conclude(Conclusion::TimeSpent);
        }
        let brief = if self.is_busy() { BRIEF_BATCH } else { Picos::MAX };
        let (begin, until) = (left, left.since(brief));
        let mut refilled = false;
        while !batch.is_full() && self.conclusion.is_none() {
            // A round of unknown length gets a batch of its own.
            if !batch.is_empty() && (left <= until || self.is_busy() && left == begin) {
                break;
            }
            // The next sweep depends on the outcomes of this batch, so a batch ends with the queue.
            if self.queued == 0 && !batch.is_empty() {
                break;
            }
            if self.queued == 0 && refilled {
                // No round of a whole sweep fits into the remaining time.
                self.conclude(Conclusion::TimeSpent);
            } else if self.queued == 0 {
                if !self.refill(elapsed) {
                    break;
                }
                refilled = true;
            }
            if let Some(experiment) = self.next_of_queue(batch, &mut left) {
                let _ = batch.push(experiment); // not full, see above
            }
        }
    }

    /// Handles the sample of one experiment.
    pub fn handle_sample(&mut self, sample: &Sample) -> Kept {
        if self.warm && self.store.find(sample.experiment.size).is_err() {
            return Kept::Refused;
        }
        self.note_arrival(&sample.experiment);
        if !self.warm {
            self.warmup.handle(sample);
            return Kept::WarmUp;
        }
        if self.store.insert(sample).is_err() {
            return Kept::Refused;
        }
        self.kept = self.kept.saturating_add(1);
        Kept::Stored
    }

    /// Handles a late reply: the next one gets more time before its receive is timed.
    pub fn handle_late(&mut self, experiment: &Experiment) {
        if let Some(header) = self.store.header_of(experiment.size) {
            header.plan.late = header.plan.late.saturating_add(1);
        }
    }

    pub(super) fn note_arrival(&mut self, experiment: &Experiment) {
        if let Some(header) = self.store.header_of(experiment.size) {
            header.plan.note_arrival();
        }
    }

    /// Handles a lost round. Bursts become shorter if none has arrived yet, as they may exceed the
    /// capacity of the other end.
    pub fn handle_lost(&mut self, experiment: &Experiment) {
        self.lost = self.lost.saturating_add(1);
        if let Ok(row) = self.store.find(experiment.size)
            && let Some(header) = self.store.header_mut(row)
        {
            header.plan.losses = header.plan.losses.saturating_add(1);
            self.give_up_unreachable(row);
        }
        self.shorten(experiment);
    }

    /// Handles a burst without a sample: further ones become shorter if none has been stored yet.
    pub(super) fn shorten(&mut self, experiment: &Experiment) {
        let Ok(row) = self.store.find(experiment.size) else { return };
        let is_first = self.store.messages(row, Quantity::Gap).is_none();
        let Some(header) = self.store.header_mut(row) else { return };
        if is_first && experiment.quantity == Quantity::Gap {
            header.plan.lost_bursts += 1;
            if header.plan.lost_bursts >= LOSSES_A_HALVING {
                header.plan.lost_bursts = 0;
                header.plan.messages = (header.plan.messages / 2).max(2);
                header.plan.paced_messages = header.plan.paced_messages.min(header.plan.messages);
            }
        }
    }

    /// Gives up the size of `row` and all larger ones if no size beyond the largest arrived one
    /// gets through: a path with a small MTU loses all longer packets, whereas random loss affects
    /// all sizes.
    fn give_up_unreachable(&mut self, row: usize) {
        let rows = self.store.rows();
        let Some(largest) = rows.iter().rposition(|header| header.plan.has_arrived()) else {
            return;
        };
        let beyond = rows.get(largest + 1..).unwrap_or_default();
        let lost: u64 = beyond.iter().map(|header| u64::from(header.plan.losses)).sum();
        let by_chance = self.lost.saturating_sub(lost + self.disturbed.repeated_losses);
        let own = rows.get(row).map_or(0, |header| header.plan.losses);
        let is_known = own >= LOSSES_OF_ONE_SIZE && lost >= LOSSES_BEYOND;
        if row <= largest || !is_known || by_chance > lost / CHANCE_SHARE {
            return;
        }
        let reached = rows.get(largest).map_or(0, |header| header.size);
        for header in self.store.rows_mut().get_mut(row..).unwrap_or_default() {
            header.plan.give_up();
        }
        self.warmup.end_at(reached);
        self.reached = Some(reached);
    }

    /// Largest size that arrives, in bytes; `None` unless larger ones were given up.
    #[must_use]
    pub fn reached(&self) -> Option<u32> {
        let reached = self.reached?;
        let beyond = |header: &&RowHeader| header.plan.has_arrived() && header.size > reached;
        // Sizes in between, which were not given up, may have arrived since.
        Some(self.store.rows().iter().rfind(beyond).map_or(reached, |header| header.size))
    }

    /// Drops sizes of more than `longest` bytes, before anything is measured, and adds `longest` if
    /// sizes may be added. False if all sizes or none exceed it.
    pub fn limit_sizes(&mut self, longest: u32) -> bool {
        let mut kept = self.store.rows().iter().filter(|header| header.size <= longest).count();
        if kept == 0 || kept == self.store.len() {
            return false;
        }
        if self.options.adapt_sizes
            && self.store.find(longest).is_err()
            && let Some(header) = self.store.header_mut(kept)
        {
            header.size = longest;
            kept += 1;
        }
        self.store.keep_first(kept);
        if let (Some(first), Some(last)) = (self.store.size(0), self.store.size(kept - 1)) {
            self.warmup = Warmup::new(first, last);
        }
        true
    }

    /// Begins a further launch, with a new connection or peer process: a few rounds of warm-up,
    /// which are discarded, then a sweep of all cells.
    pub fn begin_launch(&mut self) {
        self.disturbed.begin_launch();
        if self.allotted {
            self.warm = false;
            self.queued = 0;
            self.warmup.again();
            self.launch = Launch::Begun;
            self.warm_ups = 0;
        }
    }

    /// True if all cells have the samples that the analysis needs, and the current launch has
    /// completed its sweep.
    #[must_use]
    pub fn has_base(&self) -> bool {
        let lacks = |header: &RowHeader| {
            let lacks = |&quantity: &Quantity| lacks_base(header, quantity);
            header.plan.takes_rounds(Quantity::RoundTrip) && Quantity::ALL.iter().any(lacks)
        };
        let is_over = self.conclusion.is_some();
        is_over
            || self.allotted
                && self.launch == Launch::Covered
                && !self.store.rows().iter().any(lacks)
    }

    /// Time limit: [`PlanOptions::max_time`], or more if the link turned out to be slow.
    #[must_use]
    pub const fn allowed(&self) -> Picos {
        self.allowed
    }

    /// Ends the plan: the next batch will be empty.
    pub fn stop(&mut self) {
        self.conclude(Conclusion::Stopped);
    }

    /// Reason for the end of the plan; `None` while it continues.
    #[must_use]
    pub const fn conclusion(&self) -> Option<Conclusion> {
        self.conclusion
    }

    /// Samples stored so far.
    #[must_use]
    pub const fn store(&self) -> &SampleStore<'m> {
        &self.store
    }

    /// Progress of the plan at `now`.
    #[must_use]
    pub fn progress(&self, now: Picos) -> Progress {
        let share = |part, whole: u64| scaled(part, 1_000_000, whole.max(1));
        let time = share(now.since(self.started.unwrap_or(now)).0, self.allowed.0);
        let spent = time.max(share(self.messages, self.options.max_messages)).min(1_000_000);
        Progress {
            spent_ppm: u32::try_from(spent).unwrap_or(u32::MAX),
            widest_ppm: self.widest.map(|widest| whole(1e6 * widest)),
            messages: self.messages,
            lost: self.lost,
        }
    }

    /// Assesses the samples stored so far.
    ///
    /// # Errors
    ///
    /// As [`Assessment::new`].
    pub fn assess(&mut self) -> Result<Assessment<N>, AssessError> {
        let mut assessment = Assessment::default();
        self.tell(&mut assessment)?;
        Ok(assessment)
    }

    /// Assesses the samples stored so far and passes the results to `findings`.
    ///
    /// # Errors
    ///
    /// As [`assess`](crate::measure::assess).
    pub fn tell(&mut self, findings: &mut impl Findings) -> Result<(), AssessError> {
        self.store.claim_from(floor::VALUE, self.change_floor());
        assess::<N>(&self.store, &self.exactness(), &mut self.memory, findings)
    }

    /// Least count of samples on each side of a change, given how busy the machine has been.
    #[must_use]
    pub fn change_floor(&self) -> usize {
        if self.is_busy() { floor::CHANGE_ON_BUSY } else { floor::CHANGE }
    }

    /// Accuracy at which a number counts as converged, given how busy the machine has been.
    #[must_use]
    pub fn exactness(&self) -> AssessOptions {
        let PlanOptions { assess, busy_error_ppm, .. } = self.options;
        let enough = if self.is_busy() { busy_error_ppm } else { 0 };
        AssessOptions { relative_error_ppm: assess.relative_error_ppm.max(enough), ..assess }
    }

    #[cfg_attr(target_os = "none", inline(never))]
    fn conclude(&mut self, conclusion: Conclusion) {
        self.queued = 0;
        self.conclusion.get_or_insert(conclusion);
    }

    /// Takes an entry off the queue and subtracts its duration from the time `left`. `None` if its
    /// cell needs no more samples, counting those in `batch`, if it takes too long, or if the
    /// message limit is reached, which ends the plan.
    fn next_of_queue(&mut self, batch: &[Experiment], left: &mut Picos) -> Option<Experiment> {
        self.queued = self.queued.checked_sub(1)?;
        let slot = *self.order.get(self.queued)?;
        let (row, quantity) = (usize::from(slot.row), slot.quantity);
        let (experiment, length) = round(&self.store, &self.warmup, row, quantity)?;
        // Warm-up rounds are not stored.
        let same = |asked: &&Experiment| {
            self.warm && (asked.size, asked.quantity) == (experiment.size, quantity)
        };
        let pending = batch.iter().filter(same).count();
        if !self.store.takes_more(row, quantity, pending) {
            return None;
        }
        let cost = u64::from(experiment.messages).saturating_add(1);
        let messages = self.messages.saturating_add(cost);
        if messages > self.options.max_messages {
            self.conclude(Conclusion::MessagesSpent);
            return None;
        }
        if *left <= length {
            // A shorter round may fit.
            return None;
        }
        *left = left.since(length);
        self.messages = messages;
        Some(experiment)
    }

    /// Fills the queue for the next sweep; false if the plan is over. Not inlined on devices, so
    /// that the analysis uses stack only meanwhile.
    #[cfg_attr(target_os = "none", inline(never))]
    fn refill(&mut self, elapsed: Picos) -> bool {
        if !self.warm && self.is_warm(elapsed) {
            self.warm = true;
            self.begin(elapsed);
        }
        if self.warm {
            self.choose_delays();
            self.find_sustained();
            self.queue_sweep(elapsed);
        } else {
            self.queue_warm_up();
        }
        if self.queued == 0 {
            self.conclude(self.verdict());
        }
        self.queued > 0
    }

    fn is_warm(&self, elapsed: Picos) -> bool {
        self.warmup.is_stable()
            || self.allotted && self.warm_ups >= MOST_WARM_UPS
            || !self.allotted
                && (elapsed.0 >= self.options.max_time.0 / WARM_UP_SHARE
                    || self.messages >= self.options.max_messages / WARM_UP_SHARE)
    }

    /// Allots the first samples, once; extends the time limit before on a slow link.
    fn begin(&mut self, elapsed: Picos) {
        if self.allotted {
            return;
        }
        self.allotted = true;
        // Time taken by other processes does not make the link slow.
        while !self.allot(self.left(elapsed))
            && !self.is_busy()
            && self.allowed < self.options.longest_time
        {
            let more = (self.allowed.0 / 4).max(1);
            self.allowed =
                Picos(self.allowed.0.saturating_add(more)).min(self.options.longest_time);
        }
        self.bisection_left = Picos(self.allowed.0 / 3);
    }

    /// Queues round trips at both ends of the sweep; two at first, which show how slow the link is.
    fn queue_warm_up(&mut self) {
        self.warm_ups = self.warm_ups.saturating_add(1);
        let last = self.store.len().saturating_sub(1);
        let times = if self.warmup.is_unknown() { 1 } else { 4 };
        for _ in 0..times {
            for &row in &[0, last, 0] {
                self.push(row, Quantity::RoundTrip);
            }
        }
    }

    /// Queues the cells without their base samples, or else those requested by the analysis.
    fn queue_sweep(&mut self, elapsed: Picos) {
        self.launch = match self.launch {
            Launch::Begun => {
                self.queue_all(Left { time: Picos::MAX, messages: u64::MAX });
                Launch::UnderWay
            }
            Launch::UnderWay | Launch::Covered => Launch::Covered,
        };
        if self.queued > 0 {
            return;
        }
        self.queue_base();
        // An analysis takes time, too: only after the samples have increased by an eighth.
        if self.queued == 0 && self.kept > self.analysed.saturating_add(self.analysed / 8) {
            self.analysed = self.kept;
            self.analyse(self.left(elapsed));
        }
        if self.queued > 0 {
            self.analysed = 0; // what is wanted then is for the analysis to say
            return;
        }
        let is_wanted = self.store.rows().iter().any(|header| header.plan.wants_any());
        let whole =
            if is_wanted { self.targeted >= TARGETED } else { elapsed < self.options.least_time };
        self.targeted = if whole { 0 } else { self.targeted.saturating_add(1) };
        if whole {
            self.queue_all(self.left(elapsed));
        }
        if self.queued == 0 {
            self.queue_cells(|header, quantity| header.plan.wants(quantity));
        }
    }

    /// Queues all cells whose rounds are not expensive. Every third sweep is one of all cells, so
    /// that drift of the machine affects all of them.
    fn queue_all(&mut self, left: Left) {
        for row in 0..self.store.len() {
            for &quantity in &Quantity::ALL {
                let round = round(&self.store, &self.warmup, row, quantity);
                let takes = self.store.header(row).is_some_and(|row| row.plan.takes(quantity));
                let dear = round.is_none_or(|(experiment, length)| {
                    left.share(length.0, u64::from(experiment.messages) + 1) > DEAR
                });
                if takes && !dear {
                    self.push(row, quantity);
                }
            }
        }
        self.shuffle();
    }

    /// Queues the cells without their base samples, tier by tier: first those of a few sizes that
    /// span the sweep. On a busy machine, further round trips of these, which are short, and the
    /// other quantities of a few sizes at a time. If time is short, a few sizes are then measured
    /// well, with rounds spread over the time.
    fn queue_base(&mut self) {
        let is_busy = self.is_busy();
        let last = self.store.len().saturating_sub(1);
        for &tier in &TIERS {
            let mut rows = 0;
            for row in 0..=last {
                let is_kept = |size| tier.has(size) || row == 0 || row == last;
                let Some(header) = self.store.header(row).filter(|row| is_kept(row.size)) else {
                    continue;
                };
                let more = is_busy && header.count(Quantity::RoundTrip) < MORE_ROUND_TRIPS;
                let lacking = Quantity::ALL.map(|quantity| lacks_base(header, quantity));
                let mut lacks_other = false;
                for (&quantity, lacks) in Quantity::ALL.iter().zip(lacking) {
                    if quantity == Quantity::RoundTrip && (lacks || more) {
                        self.push(row, quantity);
                    } else if lacks && (!is_busy || rows < ROWS_AT_A_TIME) {
                        let before = self.queued;
                        self.push(row, quantity);
                        lacks_other |= self.queued > before;
                    }
                }
                rows += usize::from(lacks_other);
            }
            if self.queued > 0 {
                break;
            }
        }
        self.shuffle();
    }

    /// Queues the cells for which `wanted` is true, in random order.
    fn queue_cells(&mut self, wanted: fn(&RowHeader, Quantity) -> bool) {
        for row in 0..self.store.len() {
            for &quantity in &Quantity::ALL {
                if self.store.header(row).is_some_and(|header| wanted(header, quantity)) {
                    self.push(row, quantity);
                }
            }
        }
        self.shuffle();
    }

    /// Computes the ranges, then queues a bisection or the base samples of new rows, or marks the
    /// cells that need samples.
    fn analyse(&mut self, left: Left) {
        let found = Ranges::<N>::find(&self.store, &self.options.assess, &mut self.memory);
        let Ok(ranges) = found else { return };
        if self.options.adapt_sizes {
            self.bisect(&ranges);
            if self.queued == 0 {
                self.complete_ranges(&ranges);
                self.queue_cells(lacks_base);
            }
        }
        if self.queued == 0 {
            self.want_by_effort(&ranges, left);
        }
    }

    /// Reason why the queue is empty.
    fn verdict(&self) -> Conclusion {
        let mut verdict = Conclusion::Converged;
        for RowHeader { plan, .. } in self.store.rows() {
            if plan.is_given_up() {
                verdict = Conclusion::RoundsLost;
            } else if plan.wants_any() {
                return Conclusion::MemorySpent;
            }
        }
        verdict
    }

    /// Chooses the delays of rows whose pilot is complete, and again if the first choice turns out
    /// to be far too long.
    ///
    /// `d_G = PRTT(1,0,s)`; if the gap is within a quarter of it, `PRTT(2,0,s) = PRTT(1,0,s) +
    /// G_all`, with the gap again increased by a quarter.
    fn choose_delays(&mut self) {
        for row in 0..self.store.len() {
            let Some((trip, beyond)) = self.store.round_trip_and_beyond(row) else { continue };
            let Some(header) = self.store.header_mut(row) else { continue };
            if header.count(Quantity::Gap) < PILOT_BURSTS {
                continue;
            }
            let gap = beyond / u64::from(header.plan.messages.max(2) - 1);
            let ample = gap.saturating_add(gap / 4);
            let pace = if trip >= ample { trip } else { trip.saturating_add(ample) };
            // The pilot may have been measured while the machine was busy.
            if header.plan.pace == Picos::ZERO || pace < header.plan.pace.0 / MISLED {
                header.plan.round_trip = Picos(trip);
                header.plan.pace = Picos(pace.max(1));
            }
        }
    }

    /// Time per byte that the link sustains, from the largest messages; zero before the pilot.
    #[must_use]
    pub fn sustained(&self) -> PerByte {
        self.warmup.sustained
    }

    fn find_sustained(&mut self) {
        let rows = self.store.rows();
        let Some(row) = rows.iter().rposition(|header| header.plan.pace > Picos::ZERO) else {
            return;
        };
        let Some((_, beyond)) = self.store.round_trip_and_beyond(row) else { return };
        let Some(RowHeader { size, plan, .. }) = self.store.header(row) else { return };
        let gap = beyond / u64::from(plan.messages.max(2) - 1);
        let bytes = u64::from(*size) + u64::from(HEADERS);
        self.warmup.sustained = PerByte(scaled(gap, 1 << PerByte::FRACTION_BITS, bytes));
    }

    /// Queues one round, unless its cell needs no more samples or the queue is full.
    pub(in crate::measure) fn push(&mut self, row: usize, quantity: Quantity) {
        let Ok(index) = u16::try_from(row) else { return };
        if !self.store.takes_more(row, quantity, 0) {
            return;
        }
        if let Some(place) = self.order.get_mut(self.queued) {
            *place = Slot { row: index, quantity };
            self.queued += 1;
        }
    }

    pub(in crate::measure) fn shuffle(&mut self) {
        self.random.shuffle(self.order.get_mut(..self.queued).unwrap_or_default());
    }
}

/// Experiment at a row, and its expected duration.
pub(in crate::measure) fn round(
    store: &SampleStore<'_>,
    warmup: &Warmup,
    row: usize,
    quantity: Quantity,
) -> Option<(Experiment, Picos)> {
    let RowHeader { size, plan, .. } = store.header(row)?;
    let (messages, delay) = match quantity {
        Quantity::RoundTrip => (1, Picos::ZERO),
        Quantity::Gap => (plan.messages, Picos::ZERO),
        Quantity::Paced => (plan.paced_messages, plan.pace),
        // Strictly longer than the round trip, so that the reply has arrived.
        Quantity::Receive => {
            let halves = 4 + u64::from(plan.late.min(16));
            (1, Picos((times(plan.round_trip.0, halves) / 2).max(1)))
        }
    };
    let known = plan.round_trip != Picos::ZERO;
    let trip = if known { plan.round_trip } else { warmup.expected(*size) };
    // A round trip for the first message and its reply, half of one and a delay for each further
    // message.
    let burst = times(trip.0 / 2, u64::from(messages) + 1);
    let waits = times(delay.0, u64::from(messages - 1).max(1));
    let experiment = Experiment { quantity, messages, delay, size: *size };
    let passing = experiment.passing(warmup.sustained);
    Some((experiment, Picos(burst.saturating_add(waits)).max(passing)))
}

/// True if a cell has too few samples for an analysis.
fn lacks_base(header: &RowHeader, quantity: Quantity) -> bool {
    header.plan.takes(quantity) && header.count(quantity) < usize::from(header.plan.base)
}
