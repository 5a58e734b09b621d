//! What to measure next.
//!
//! A state machine without I/O: [`Planner::poll_batch`] gives experiments,
//! [`Planner::handle_sample`] and [`Planner::handle_lost`] take what came of
//! them, until a batch is empty. Four stages:
//!
//! 1. **Warm-up**: round trips at the smallest and the largest size until
//!    their medians stand still. These samples are not kept.
//! 2. **Pilot**: the first sweeps, of round trips and bursts alone, from which
//!    the delay of the paced rounds is chosen: `d_G = PRTT(1,0,s)`, or
//!    `PRTT(2,0,s)` where the gap comes close to it.
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

use super::plan_memory::{PlanError, PlanMemory, PlanRequirements, Slot};
use super::random::Random;
use super::ranges;
use super::warmup::Warmup;
use super::{
    AssessError, AssessMemory, AssessOptions, Assessment, Experiment, Findings, Quantity,
    RowHeader, Sample, SampleStore, assess,
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

/// Bursts of the pilot: a median of three stands an outlier.
const PILOT_BURSTS: usize = 3;
/// Samples that every cell gets before the analysis decides: at least 6 for
/// an interval at 95%, and enough to stand one or two outliers.
pub(super) const BASE_SAMPLES: usize = 8;
/// One part in this many of the budget may go into warming up.
const WARM_UP_SHARE: u64 = 10;

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
    /// A stack of what is to be measured, `queued` entries high.
    order: &'m mut [Slot],
    pub(super) queued: usize,
    pub(super) memory: AssessMemory<'m>,
    random: Random,
    warmup: Warmup,
    warm: bool,
    started: Option<Picos>,
    messages: u64,
    lost: u64,
    /// Samples in the store, and how many there were at the last analysis.
    kept: u64,
    analysed: u64,
    /// Time that bisection may still take.
    pub(super) bisection_left: Picos,
    /// The largest half interval among the parameters, relative to what it
    /// has to come down to.
    pub(super) widest: Option<f64>,
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
        let PlanMemory { rows, values, order, assess } = memory;
        let fits = order.len() >= PlanRequirements::order(rows.len());
        let mut store = SampleStore::new(rows, values);
        if !fits || store.cell_capacity() < BASE_SAMPLES {
            return Err(PlanError::Memory(sizes.len()));
        }
        for &size in sizes {
            store.add_size(size).map_err(|_| PlanError::Memory(sizes.len()))?;
        }
        for header in store.rows_mut() {
            header.plan.full = true;
        }
        let ends = (store.rows().first(), store.rows().last());
        let (Some(smallest), Some(largest)) = ends else { return Err(PlanError::NoSizes) };
        Ok(Self {
            options,
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
            kept: 0,
            analysed: 0,
            bisection_left: Picos(options.max_time.0 / 3),
            widest: None,
            conclusion: None,
        })
    }

    /// The next experiments, at most `B`; none when the plan is over, see
    /// [`Planner::conclusion`].
    pub fn poll_batch<const B: usize>(&mut self, now: Picos) -> heapless::Vec<Experiment, B> {
        let mut batch = heapless::Vec::new();
        self.fill_batch(now, &mut batch);
        batch
    }

    /// As [`Planner::poll_batch`], into a batch that is there already: on a
    /// small stack there is no room for two.
    pub fn fill_batch<const B: usize>(
        &mut self,
        now: Picos,
        batch: &mut heapless::Vec<Experiment, B>,
    ) {
        batch.clear();
        let elapsed = now.since(*self.started.get_or_insert(now));
        let mut left = self.options.max_time.since(elapsed);
        while !batch.is_full() && self.conclusion.is_none() {
            // What comes next depends on what came of the batch, so a batch ends with the queue.
            if self.queued == 0 && (!batch.is_empty() || !self.refill(elapsed)) {
                break;
            }
            if let Some(experiment) = self.next_of_queue(batch, &mut left) {
                let _ = batch.push(experiment); // not full, see above
            }
        }
    }

    /// Takes the outcome of one experiment.
    pub fn handle_sample(&mut self, sample: &Sample) -> Kept {
        if !self.warm {
            self.warmup.handle(sample);
            return Kept::WarmUp;
        }
        let header = self.store.header_of(sample.experiment.size);
        let Some(header) = header else { return Kept::Refused };
        header.plan.losses = 0;
        if self.store.insert(sample).is_err() {
            return Kept::Refused;
        }
        self.kept = self.kept.saturating_add(1);
        Kept::Stored
    }

    /// Takes note that a round was lost.
    pub fn handle_lost(&mut self, experiment: &Experiment) {
        self.lost = self.lost.saturating_add(1);
        if let Some(header) = self.store.header_of(experiment.size) {
            header.plan.losses = header.plan.losses.saturating_add(1);
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
            widest_ppm: self.widest.map(|widest| ranges::whole(1e6 * widest)),
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

    #[cfg_attr(target_os = "none", inline(never))]
    fn conclude(&mut self, conclusion: Conclusion) {
        self.queued = 0;
        self.conclusion.get_or_insert(conclusion);
    }

    /// Takes an entry off the queue and pays for it with some of the time
    /// that is `left`; `None` where it has become moot, where `batch`, not
    /// answered yet, fills its cell, or where the plan ends for want of
    /// messages or time.
    fn next_of_queue(&mut self, batch: &[Experiment], left: &mut Picos) -> Option<Experiment> {
        self.queued = self.queued.checked_sub(1)?;
        let slot = *self.order.get(self.queued)?;
        let (row, quantity) = (usize::from(slot.row), slot.quantity);
        let (experiment, length) = self.round(row, quantity)?;
        // Rounds that warm up are not kept.
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
            self.conclude(Conclusion::TimeSpent);
            return None;
        }
        *left = left.since(length);
        self.messages = messages;
        Some(experiment)
    }

    /// A round at a row, and how long it is likely to take.
    pub(super) fn round(&self, row: usize, quantity: Quantity) -> Option<(Experiment, Picos)> {
        let RowHeader { size, plan, .. } = self.store.header(row)?;
        let (messages, delay) = match quantity {
            Quantity::RoundTrip => (1, Picos::ZERO),
            Quantity::Gap => (self.options.messages, Picos::ZERO),
            Quantity::Paced => (self.options.messages, plan.pace),
            // Strictly beyond the round trip, so that the reply is there.
            Quantity::Receive => (1, Picos(times(plan.round_trip.0, 2).max(1))),
        };
        let known = plan.round_trip != Picos::ZERO;
        let trip = if known { plan.round_trip } else { self.warmup.expected(*size) };
        // A round trip, and half of one and a delay for each further message.
        let burst = times(trip.0 / 2, u64::from(messages) + 1);
        let waits = times(delay.0, u64::from(messages - 1).max(1));
        let experiment = Experiment { quantity, messages, delay, size: *size };
        Some((experiment, Picos(burst.saturating_add(waits))))
    }

    /// Fills the queue for the next sweep; `false` when the plan is over. A
    /// device has the analysis on its stack only meanwhile.
    #[cfg_attr(target_os = "none", inline(never))]
    fn refill(&mut self, elapsed: Picos) -> bool {
        if !self.warm && self.is_warm(elapsed) {
            self.warm = true;
            self.park_rows(self.options.max_time.since(elapsed));
        }
        if self.warm {
            self.choose_delays();
            self.queue_sweep();
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
            || elapsed.0 >= self.options.max_time.0 / WARM_UP_SHARE
            || self.messages >= self.options.max_messages / WARM_UP_SHARE
    }

    fn queue_warm_up(&mut self) {
        let last = self.store.len().saturating_sub(1);
        for _ in 0..4 {
            for &row in &[0, last, 0] {
                self.push(row, Quantity::RoundTrip);
            }
        }
    }

    /// Queues the cells that lack the base samples, otherwise what the
    /// analysis wants.
    fn queue_sweep(&mut self) {
        self.queue_cells(lacks_base);
        // An analysis costs time too: not for every handful of new samples.
        if self.queued == 0 && self.kept > self.analysed.saturating_add(self.analysed / 8) {
            self.analysed = self.kept;
            self.analyse();
        }
        if self.queued == 0 {
            self.queue_cells(|header, quantity| header.plan.wants(quantity));
        } else {
            self.analysed = 0; // what is wanted then is for the analysis to say
        }
    }

    /// Queues the cells that `wanted` picks, in random order.
    fn queue_cells(&mut self, wanted: fn(&RowHeader, Quantity) -> bool) {
        for row in 0..self.store.len() {
            for &quantity in &Quantity::ALL {
                if self.store.header(row).is_some_and(|header| wanted(header, quantity)) {
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

    /// Finds the ranges anew, then queues a bisection or what new rows lack,
    /// or decides what each cell wants.
    fn analyse(&mut self) {
        let mut changes = heapless::Vec::<_, N>::new();
        let options = &self.options.assess;
        let found = ranges::find(&self.store, options, &mut self.memory, &mut changes);
        let Ok(ends) = found else { return };
        if self.options.adapt_sizes {
            self.bisect(&changes, ends);
            if self.queued == 0 {
                self.complete_ranges(&changes, ends);
                self.queue_cells(lacks_base);
            }
        }
        if self.queued == 0 {
            self.want_by_effort(&changes, ends);
        }
    }

    /// Why there is nothing left to measure.
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

    /// Chooses the delays of rows that have none and whose pilot is done.
    ///
    /// `d_G = PRTT(1,0,s)`; where the gap comes within a quarter of it,
    /// `PRTT(2,0,s) = PRTT(1,0,s) + G_all`, with the same quarter on top of
    /// the gap.
    fn choose_delays(&mut self) {
        let rest = u64::from(self.options.messages - 1);
        for row in 0..self.store.len() {
            let Some((trip, beyond)) = self.store.round_trip_and_beyond(row) else { continue };
            let Some(header) = self.store.header_mut(row) else { continue };
            if header.plan.pace == Picos::ZERO && header.count(Quantity::Gap) >= PILOT_BURSTS {
                let gap = beyond / rest.max(1);
                let ample = gap.saturating_add(gap / 4);
                let pace = if trip >= ample { trip } else { trip.saturating_add(ample) };
                header.plan.round_trip = Picos(trip);
                header.plan.pace = Picos(pace.max(1));
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
        // A round trip, a burst of half of one for each further message, the
        // same with delays of a round trip, and one with a delay of two.
        let trips = u64::from(self.options.messages).saturating_mul(2).saturating_add(3);
        let samples = trips.saturating_mul(BASE_SAMPLES as u64);
        let last = self.store.len().saturating_sub(1);
        for halvings in 0..4 {
            let mut total = 0_u64;
            for (row, header) in self.store.rows_mut().iter_mut().enumerate() {
                header.plan.parked = row != last && row >> halvings << halvings != row;
                if !header.plan.parked {
                    total = total.saturating_add(self.warmup.expected(header.size).0);
                }
            }
            if times(total, samples) <= left.0 / 2 || last >> halvings <= 6 {
                return;
            }
        }
    }

    /// Queues one round, unless it is moot; no more than the queue holds.
    pub(super) fn push(&mut self, row: usize, quantity: Quantity) {
        let Ok(index) = u16::try_from(row) else { return };
        if !self.store.takes_more(row, quantity, 0) {
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

/// Whether a cell has too few samples for an analysis.
fn lacks_base(header: &RowHeader, quantity: Quantity) -> bool {
    header.count(quantity) < BASE_SAMPLES
}
