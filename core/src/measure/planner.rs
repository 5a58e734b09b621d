//! What to measure next.
//!
//! A state machine without I/O: [`Planner::poll_batch`] gives experiments,
//! [`Planner::handle_sample`] and [`Planner::handle_lost`] take what came of
//! them, until a batch is empty. Four stages:
//!
//! 1. **Warm-up**: round trips at the smallest and the largest size until
//!    their medians stand still. These samples are not kept.
//! 2. **Pilot**: round trips and bursts at all sizes, from which the delay of
//!    the paced rounds is chosen: `d_G = PRTT(1,0,s)`, or `PRTT(2,0,s)` where
//!    the gap comes close to it.
//! 3. **Sweeps**: each goes once through all cells (size and quantity) that
//!    still want samples, in a new random order, so that a drift of the
//!    machine spreads over all of them instead of looking like a parameter.
//! 4. **Bisection**, between sweeps: around each protocol change a size
//!    midway is added until the change is known to the byte, or noise, memory
//!    or budget forbid it.
//!
//! After the first sweeps a cell wants samples where they narrow an interval
//! of g, G, o, O or L that is still too wide, and narrow it about as well as
//! any other cell would for the same cost.

use super::plan_memory::{PlanError, PlanMemory, PlanRequirements, RowPlan, Slot};
use super::random::Random;
use super::ranges;
use super::samples::insert_first;
use super::warmup::Warmup;
use super::{
    AssessError, AssessMemory, AssessOptions, Assessment, Experiment, Findings, Quantity, Sample,
    SampleStore, assess,
};
use crate::units::Picos;
use crate::wide::{scaled, times};

/// What a measurement is to do, and what it may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PlanOptions {
    /// Confidence, wanted exactness and number of changes.
    pub assess: AssessOptions,
    /// Messages in a burst, `n`; at least 2.
    pub messages: u32,
    /// Longest time from the first poll to the end of the last batch, as far
    /// as the length of a batch can be foreseen.
    pub max_time: Picos,
    /// Most messages of all rounds together, replies included.
    pub max_messages: u64,
    /// Whether sizes may be added around protocol changes, and left out
    /// where the time does not suffice for all.
    pub adapt_sizes: bool,
    /// Decides the order of experiments.
    pub seed: u64,
}

impl Default for PlanOptions {
    /// n = 10, at most 2.5 s and 34,000 messages, which with the session's own
    /// frames stays below 3 s and 40,000.
    fn default() -> Self {
        Self {
            assess: AssessOptions::default(),
            messages: 10,
            max_time: Picos(2_500_000_000_000),
            max_messages: 34_000,
            adapt_sizes: true,
            seed: 1,
        }
    }
}

/// What became of a sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Kept {
    /// It is in the store and counts.
    Stored,
    /// It warmed up the link and does not count.
    WarmUp,
    /// It was not asked for, or there is no room for it; it does not count.
    Refused,
}

/// Why a plan is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Conclusion {
    /// Every interval is narrow enough, or more measuring would not narrow
    /// it.
    Converged,
    /// [`PlanOptions::max_time`] is over.
    TimeSpent,
    /// [`PlanOptions::max_messages`] were sent.
    MessagesSpent,
    /// No room for the samples that are wanted.
    MemorySpent,
    /// At the sizes that want samples, all rounds are lost.
    RoundsLost,
    /// [`Planner::stop`] was called.
    Stopped,
}

/// How far a plan has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Progress {
    /// Share of the budget that is spent, time or messages, whichever is
    /// more, in millionths.
    pub spent_ppm: u32,
    /// The largest half interval among the parameters, in millionths of what
    /// it has to come down to; `None` before the first analysis.
    pub widest_ppm: Option<u64>,
    /// Messages sent, replies included.
    pub messages: u64,
    /// Rounds lost.
    pub lost: u64,
}

/// Sweeps of the pilot: a median of three bursts stands an outlier.
const PILOT_SWEEPS: u32 = 3;
/// Samples that every cell gets before the analysis decides: at least 6 for
/// an interval at 95%, and enough to stand one or two outliers.
pub(super) const BASE_SAMPLES: usize = 8;
/// One part in this many of the budget may go into warming up.
const WARM_UP_SHARE: u64 = 10;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    WarmUp,
    Pilot(u32),
    Sweeps,
}

/// Decides what to measure next, and keeps the samples.
///
/// Call [`Planner::poll_batch`], run its experiments, hand over every outcome
/// by [`Planner::handle_sample`] or [`Planner::handle_lost`], and again until
/// the batch is empty; then [`Planner::assess`]. `now` never decreases. The
/// number of batches is bounded by [`PlanOptions::max_messages`] whatever is
/// handed over.
#[derive(Debug)]
pub struct Planner<'m, const N: usize = 16> {
    pub(super) options: PlanOptions,
    pub(super) store: SampleStore<'m>,
    pub(super) plans: &'m mut [RowPlan],
    /// A stack of what is to be measured, `queued` entries high.
    order: &'m mut [Slot],
    queued: usize,
    pub(super) memory: AssessMemory<'m>,
    random: Random,
    warmup: Warmup,
    stage: Stage,
    started: Option<Picos>,
    messages: u64,
    lost: u64,
    /// Samples in the store, and how many there were at the last analysis.
    kept: u64,
    analysed: u64,
    /// Time that bisection may still take.
    pub(super) bisection_left: Picos,
    /// Brackets of changes that noise or memory forbid to narrow.
    pub(super) abandoned: heapless::Vec<(u64, u64), N>,
    pub(super) widest_ppm: Option<u64>,
    conclusion: Option<Conclusion>,
}

impl<'m, const N: usize> Planner<'m, N> {
    /// A plan for `sizes`, in any order, on lent memory whose contents do not
    /// matter; see [`PlanRequirements`] and [`super::coarse_sizes`].
    ///
    /// # Errors
    ///
    /// [`PlanError`] when there is nothing to plan or too little memory.
    pub fn new(
        options: PlanOptions,
        sizes: &[u32],
        memory: PlanMemory<'m>,
    ) -> Result<Self, PlanError> {
        if options.messages < 2 {
            return Err(PlanError::TooFewMessages(options.messages));
        }
        if sizes.contains(&0) {
            return Err(PlanError::EmptyMessage);
        }
        let PlanMemory { rows, values, plans, order, assess } = memory;
        let fits = plans.len() >= rows.len() && order.len() >= PlanRequirements::order(rows.len());
        let mut store = SampleStore::new(rows, values);
        if !fits || store.cell_capacity() < BASE_SAMPLES {
            return Err(PlanError::Memory(sizes.len()));
        }
        for &size in sizes {
            store.add_size(size).map_err(|_| PlanError::Memory(sizes.len()))?;
        }
        let ends = (store.size(0), store.size(store.len().wrapping_sub(1)));
        let (Some(smallest), Some(largest)) = ends else { return Err(PlanError::NoSizes) };
        plans.fill(RowPlan::full());
        Ok(Self {
            options,
            store,
            plans,
            order,
            queued: 0,
            memory: assess,
            random: Random::new(options.seed),
            warmup: Warmup::new(smallest, largest),
            stage: Stage::WarmUp,
            started: None,
            messages: 0,
            lost: 0,
            kept: 0,
            analysed: 0,
            bisection_left: Picos(options.max_time.0 / 3),
            abandoned: heapless::Vec::new(),
            widest_ppm: None,
            conclusion: None,
        })
    }

    /// The next experiments, at most `B`; none when the plan is over, see
    /// [`Planner::conclusion`].
    pub fn poll_batch<const B: usize>(&mut self, now: Picos) -> heapless::Vec<Experiment, B> {
        let elapsed = now.since(*self.started.get_or_insert(now));
        let mut left = self.options.max_time.since(elapsed);
        let mut batch = heapless::Vec::new();
        while !batch.is_full() && self.conclusion.is_none() {
            // What comes next depends on what came of the batch, so a batch ends with the queue.
            if self.queued == 0 && (!batch.is_empty() || !self.refill(elapsed)) {
                break;
            }
            let Some(experiment) = self.next_of_queue(&batch) else { continue };
            let Some(rest) = self.afford(&experiment, left) else { break };
            left = rest;
            let _ = batch.push(experiment); // not full, see above
        }
        batch
    }

    /// Takes the outcome of one experiment.
    pub fn handle_sample(&mut self, sample: &Sample) -> Kept {
        if self.stage == Stage::WarmUp {
            self.warmup.handle(sample);
            return Kept::WarmUp;
        }
        let Ok(row) = self.store.find(sample.experiment.size) else { return Kept::Refused };
        if let Some(plan) = self.plans.get_mut(row) {
            plan.losses = 0;
        }
        match self.store.insert(sample) {
            Ok(()) => {
                self.kept = self.kept.saturating_add(1);
                Kept::Stored
            }
            Err(_) => Kept::Refused,
        }
    }

    /// Takes note that a round was lost.
    pub fn handle_lost(&mut self, experiment: &Experiment) {
        self.lost = self.lost.saturating_add(1);
        let row = self.store.find(experiment.size).unwrap_or(usize::MAX);
        if let Some(plan) = self.plans.get_mut(row) {
            plan.losses = plan.losses.saturating_add(1);
        }
    }

    /// Ends the plan: the next batch is empty.
    pub fn stop(&mut self) {
        self.conclude(Conclusion::Stopped);
    }

    /// Why the plan is over; `None` while it is not.
    #[must_use]
    pub const fn conclusion(&self) -> Option<Conclusion> {
        self.conclusion
    }

    /// The samples kept so far.
    #[must_use]
    pub const fn store(&self) -> &SampleStore<'m> {
        &self.store
    }

    /// How far the plan has come at `now`.
    #[must_use]
    pub fn progress(&self, now: Picos) -> Progress {
        let share = |part, whole: u64| scaled(part, 1_000_000, whole.max(1));
        let time = share(now.since(self.started.unwrap_or(now)).0, self.options.max_time.0);
        let spent = time.max(share(self.messages, self.options.max_messages)).min(1_000_000);
        Progress {
            spent_ppm: u32::try_from(spent).unwrap_or(u32::MAX),
            widest_ppm: self.widest_ppm,
            messages: self.messages,
            lost: self.lost,
        }
    }

    /// What the samples kept so far say about the link.
    ///
    /// # Errors
    ///
    /// As [`Assessment::new`].
    pub fn assess(&mut self) -> Result<Assessment<N>, AssessError> {
        Assessment::new(&self.store, &self.options.assess, &mut self.memory)
    }

    /// Tells what the samples kept so far say about the link.
    ///
    /// # Errors
    ///
    /// As [`assess`](super::assess).
    pub fn tell(&mut self, findings: &mut impl Findings) -> Result<(), AssessError> {
        assess::<N>(&self.store, &self.options.assess, &mut self.memory, findings)
    }

    fn conclude(&mut self, conclusion: Conclusion) {
        self.queued = 0;
        self.conclusion.get_or_insert(conclusion);
    }

    /// Takes an entry off the queue; `None` where it has become moot, or
    /// where `batch`, not answered yet, fills its cell.
    fn next_of_queue(&mut self, batch: &[Experiment]) -> Option<Experiment> {
        self.queued = self.queued.checked_sub(1)?;
        let slot = *self.order.get(self.queued)?;
        let (row, quantity) = (usize::from(slot.row), slot.quantity);
        let experiment = self.takes_more(row, quantity).then(|| self.experiment(slot))??;
        if self.stage != Stage::WarmUp {
            let same =
                |asked: &&Experiment| (asked.size, asked.quantity) == (experiment.size, quantity);
            let pending = batch.iter().filter(same).count();
            let room = self.store.cell_capacity().saturating_sub(self.store.count(row, quantity));
            (pending < room).then_some(())?;
        }
        Some(experiment)
    }

    /// Pays for `experiment` and returns the time that is left then; `None`
    /// ends the plan.
    fn afford(&mut self, experiment: &Experiment, left: Picos) -> Option<Picos> {
        let cost = u64::from(experiment.messages).saturating_add(1);
        let messages = self.messages.saturating_add(cost);
        if messages > self.options.max_messages {
            self.conclude(Conclusion::MessagesSpent);
            return None;
        }
        let length = self.expected(experiment);
        if left == Picos::ZERO || left <= length {
            self.conclude(Conclusion::TimeSpent);
            return None;
        }
        self.messages = messages;
        Some(left.since(length))
    }

    fn experiment(&self, slot: Slot) -> Option<Experiment> {
        let row = usize::from(slot.row);
        let size = self.store.size(row)?;
        let plan = self.plans.get(row)?;
        let (messages, delay) = match slot.quantity {
            Quantity::RoundTrip => (1, Picos::ZERO),
            Quantity::Gap => (self.options.messages, Picos::ZERO),
            Quantity::Paced => (self.options.messages, plan.pace),
            // Strictly beyond the round trip, so that the reply is there.
            Quantity::Receive => (1, Picos(plan.round_trip.0.saturating_mul(2).max(1))),
        };
        Some(Experiment { quantity: slot.quantity, messages, delay, size })
    }

    /// How long a round is likely to take.
    pub(super) fn expected(&self, experiment: &Experiment) -> Picos {
        let row = self.store.find(experiment.size).unwrap_or(usize::MAX);
        let known = self.plans.get(row).map_or(Picos::ZERO, |plan| plan.round_trip);
        let trip = if known == Picos::ZERO { self.warmup.expected(experiment.size) } else { known };
        let rest = u64::from(experiment.messages).saturating_sub(1);
        let burst = trip.0.saturating_add(times(trip.0 / 2, rest));
        Picos(burst.saturating_add(times(experiment.delay.0, rest.max(1))))
    }

    /// Whether a cell has room and its rounds arrive.
    pub(super) fn takes_more(&self, row: usize, quantity: Quantity) -> bool {
        self.store.count(row, quantity) < self.store.cell_capacity()
            && self.plans.get(row).is_some_and(|plan| plan.takes_rounds(quantity))
    }

    /// Fills the queue for the next sweep; `false` when the plan is over.
    fn refill(&mut self, elapsed: Picos) -> bool {
        match self.stage {
            Stage::WarmUp if !self.is_warm(elapsed) => self.queue_warm_up(),
            Stage::WarmUp => {
                self.stage = Stage::Pilot(1);
                self.park_rows(self.options.max_time.since(elapsed));
                self.queue_pilot();
            }
            Stage::Pilot(sweeps) if sweeps < PILOT_SWEEPS => {
                self.stage = Stage::Pilot(sweeps + 1);
                self.queue_pilot();
            }
            Stage::Pilot(_) | Stage::Sweeps => {
                self.stage = Stage::Sweeps;
                self.choose_delays();
                self.queue_wanted();
            }
        }
        if self.queued == 0 {
            self.conclude(self.verdict());
        }
        self.queued > 0
    }

    fn is_warm(&self, elapsed: Picos) -> bool {
        self.warmup.is_stable()
            || elapsed.0 >= self.options.max_time.0 / WARM_UP_SHARE
            || self.messages >= self.options.max_messages / WARM_UP_SHARE
    }

    fn queue_warm_up(&mut self) {
        let last = self.store.len().saturating_sub(1);
        for _ in 0..4 {
            for row in [0, last, 0] {
                self.push(row, Quantity::RoundTrip);
            }
        }
    }

    fn queue_pilot(&mut self) {
        for row in 0..self.store.len() {
            for quantity in [Quantity::RoundTrip, Quantity::Gap, Quantity::RoundTrip] {
                self.push(row, quantity);
            }
        }
        self.shuffle();
    }

    /// Queues the cells that lack the base samples, otherwise what the
    /// analysis wants.
    fn queue_wanted(&mut self) {
        if self.want_base() {
            self.analysed = 0; // what is wanted then is for the analysis to say
        } else {
            // An analysis costs time too: not for every handful of new samples.
            if self.kept > self.analysed.saturating_add(self.analysed / 8) {
                self.analysed = self.kept;
                self.analyse();
                if self.queued > 0 {
                    return;
                }
            }
        }
        for row in 0..self.store.len() {
            for quantity in Quantity::ALL {
                if self.plans.get(row).is_some_and(|plan| plan.wants(quantity)) {
                    self.push(row, quantity);
                    if quantity == Quantity::RoundTrip {
                        // Cheap, and part of every other quantity.
                        self.push(row, quantity);
                    }
                }
            }
        }
        self.shuffle();
    }

    /// Wants the cells that lack base samples; `false` when none does.
    fn want_base(&mut self) -> bool {
        let lacks = |planner: &Self, row, quantity| {
            planner.store.count(row, quantity) < BASE_SAMPLES && planner.takes_more(row, quantity)
        };
        let cells = || Quantity::ALL.into_iter();
        let lacking =
            (0..self.store.len()).any(|row| cells().any(|quantity| lacks(self, row, quantity)));
        if lacking {
            for row in 0..self.store.len() {
                let wanted = Quantity::ALL.map(|quantity| lacks(self, row, quantity));
                let Some(plan) = self.plans.get_mut(row) else { continue };
                plan.want_nothing();
                for (quantity, _) in cells().zip(wanted).filter(|&(_, wanted)| wanted) {
                    plan.want(quantity);
                }
            }
        }
        lacking
    }

    /// Finds the ranges anew, then queues a bisection or decides what each
    /// cell wants.
    fn analyse(&mut self) {
        let found = ranges::find::<N>(&self.store, &self.options.assess, &mut self.memory);
        let Ok(ranges) = found else { return };
        if self.options.adapt_sizes {
            self.bisect(&ranges);
            if self.queued > 0 {
                self.analysed = 0; // and look again as soon as that is measured
                return;
            }
            self.complete_ranges(&ranges);
        }
        if !self.want_base() {
            self.want_by_effort(&ranges);
        }
    }

    /// Why there is nothing left to measure.
    fn verdict(&self) -> Conclusion {
        let wanted = |row: usize| {
            let plan = self.plans.get(row);
            Quantity::ALL.into_iter().any(|quantity| plan.is_some_and(|plan| plan.wants(quantity)))
        };
        let lost = |row: usize| self.plans.get(row).is_some_and(|plan| plan.is_given_up());
        let mut unsatisfied = (0..self.store.len()).filter(|&row| wanted(row)).peekable();
        if unsatisfied.peek().is_none() && !(0..self.store.len()).any(lost) {
            Conclusion::Converged
        } else if unsatisfied.any(|row| !lost(row)) {
            Conclusion::MemorySpent
        } else {
            Conclusion::RoundsLost
        }
    }

    /// Chooses the delays of rows that have none and whose pilot is done.
    ///
    /// `d_G = PRTT(1,0,s)`; where the gap comes within a quarter of it,
    /// `PRTT(2,0,s) = PRTT(1,0,s) + G_all`, with the same quarter on top of
    /// the gap.
    fn choose_delays(&mut self) {
        let confidence = self.options.assess.confidence;
        let rest = u64::from(self.options.messages - 1);
        for row in 0..self.store.len() {
            let median = |quantity| self.store.median(row, quantity, confidence).map(|m| m.median);
            let measured = (median(Quantity::RoundTrip), median(Quantity::Gap));
            let (Some(trip), Some(burst)) = measured else { continue };
            let gap = burst.saturating_sub(trip) / rest.max(1);
            let ample = gap.saturating_add(gap / 4);
            let pace = if trip >= ample { trip } else { trip.saturating_add(ample) };
            if let Some(plan) = self.plans.get_mut(row).filter(|plan| plan.pace == Picos::ZERO) {
                plan.round_trip = Picos(trip);
                plan.pace = Picos(pace.max(1));
            }
        }
    }

    /// Leaves out rows where the base samples of all would take longer than
    /// half of the time that is left: all but every second, fourth, … row,
    /// with the ends, down to a handful.
    fn park_rows(&mut self, left: Picos) {
        if !self.options.adapt_sizes {
            return;
        }
        let last = self.store.len().saturating_sub(1);
        for stride in [1, 2, 4, 8] {
            let mut total = Picos::ZERO;
            for row in 0..=last {
                let stays = row.is_multiple_of(stride) || row == last;
                if let Some(plan) = self.plans.get_mut(row) {
                    plan.parked = !stays;
                }
                if stays {
                    total = Picos(total.0.saturating_add(self.base_time(row).0));
                }
            }
            if total.0 <= left.0 / 2 || last.checked_div(stride).is_some_and(|rows| rows <= 6) {
                return;
            }
        }
    }

    /// How long the base samples of a row are likely to take.
    fn base_time(&self, row: usize) -> Picos {
        let Some(size) = self.store.size(row) else { return Picos::ZERO };
        let trip = self.warmup.expected(size);
        let time = |quantity| {
            let (messages, delay) = match quantity {
                Quantity::RoundTrip => (1, Picos::ZERO),
                Quantity::Gap => (self.options.messages, Picos::ZERO),
                Quantity::Paced => (self.options.messages, trip),
                Quantity::Receive => (1, Picos(trip.0.saturating_mul(2))),
            };
            self.expected(&Experiment { quantity, messages, delay, size }).0
        };
        let once = Quantity::ALL.into_iter().map(time).fold(0, u64::saturating_add);
        Picos(times(once, BASE_SAMPLES as u64))
    }

    /// Adds a row for `size`, while nothing is queued; `false` without room.
    pub(super) fn add_row(&mut self, size: u32, plan: RowPlan) -> bool {
        let before = self.store.len();
        let Ok(row) = self.store.add_size(size) else { return false };
        if self.store.len() > before
            && let Some(tail) = self.plans.get_mut(row..=before)
        {
            insert_first(tail, plan);
        }
        true
    }

    /// Queues one round, unless it is moot; no more than the queue holds.
    pub(super) fn push(&mut self, row: usize, quantity: Quantity) {
        let Ok(index) = u16::try_from(row) else { return };
        if !self.takes_more(row, quantity) {
            return;
        }
        if let Some(place) = self.order.get_mut(self.queued) {
            *place = Slot { row: index, quantity };
            self.queued += 1;
        }
    }

    pub(super) fn shuffle(&mut self) {
        self.random.shuffle(self.order.get_mut(..self.queued).unwrap_or_default());
    }
}
