//! What to measure next.
//!
//! A state machine without I/O: [`Planner::poll_batch`] gives experiments,
//! [`Planner::handle_sample`] and [`Planner::handle_lost`] take what came of
//! them, until a batch is empty. Four stages:
//!
//! 1. **Warm-up**: round trips at the smallest and the largest size until
//!    their medians stand still. These samples are not kept. From them it is
//!    decided what each size gets first ([`super::budget`]).
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
//! any other cell would for the same cost in time and messages. When nothing
//! is too wide, sweeps of all cells go on until [`PlanOptions::least_time`].

use super::budget::{BASE_SAMPLES, Left, TIERS, is_kept};
use super::disturbed::{BRIEF, Disturbed};
use super::memory::{PlanError, PlanMemory, PlanRequirements, Slot};
use crate::measure::assess::ranges::{Ranges, whole};
use crate::measure::experiment::HEADERS;
use crate::measure::plan::warmup::Warmup;
use crate::measure::{
    AssessError, AssessMemory, AssessOptions, Assessment, Experiment, Findings, Floor, Quantity,
    RowHeader, Sample, SampleStore, assess,
};
use crate::random::Random;
use crate::units::{PerByte, Picos};
use crate::wide::{scaled, times};

/// What a measurement is to do, and what it may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PlanOptions {
    /// Confidence, wanted exactness and number of changes.
    pub assess: AssessOptions,
    /// Where processors are taken away, a number has converged at so many millionths of
    /// it: more is wanted, and not to be had.
    pub busy_error_ppm: u32,
    /// Messages in a burst, `n`; at least 2.
    pub messages: u32,
    /// Messages in a burst of large messages, where the budget allows: a link
    /// that lets the first so many bytes pass at another rate, such as a token
    /// bucket, shows its own rate only beyond them. No less than `messages`.
    pub large_messages: u32,
    /// Most bytes of a burst that is longer than `messages`: what the other
    /// end can hold where nothing is sent again.
    pub burst_bytes: u64,
    /// Longest time from the first poll to the end of the last batch, as far
    /// as the length of a batch can be foreseen.
    pub max_time: Picos,
    /// On a link so slow that sizes would be left out, the longest time grows
    /// up to this.
    pub longest_time: Picos,
    /// Before this much time the plan is not over even where everything is
    /// exact enough: samples of a longer time tell more of the next run.
    pub least_time: Picos,
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
    /// Takes time that is spent already off the longest time, up to half of it.
    pub fn spend(&mut self, spent: Picos) {
        for time in [&mut self.max_time, &mut self.longest_time] {
            *time = time.since(spent).max(Picos(time.0 / 2));
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
    /// The time allowed, see [`Planner::allowed`], is over.
    TimeSpent,
    /// [`PlanOptions::max_messages`] were sent.
    MessagesSpent,
    /// No room for the samples that are wanted.
    MemorySpent,
    /// At the sizes that want samples, all rounds are lost.
    RoundsLost,
    /// Broken off, by [`Planner::stop`] or the driver.
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

/// Bursts of the pilot.
const PILOT_BURSTS: usize = 2;
/// A delay is chosen again where it exceeds this many times the delay that the
/// samples since suggest.
const MISLED: u64 = 4;
/// Sizes that get their first bursts at a time on a busy machine, and round
/// trips of each size: these are short and fall within a time slice.
const ROWS_AT_A_TIME: usize = 3;
const MORE_ROUND_TRIPS: usize = 24;
/// Sweeps of wanted cells between two of all.
const TARGETED: u8 = 2;
/// A round that takes more of what is left of the budget, in parts of 2³⁰,
/// is run only where it is wanted: a thousandth.
const DEAR: u64 = 1 << 20;
/// A further launch is warm after its rounds were queued this often, whatever
/// became of them.
const MOST_WARM_UPS: u8 = 4;
/// Lost bursts after which those of a size are halved where none has arrived.
const LOSSES_A_HALVING: u8 = 4;
/// Rounds lost in a row at a size, and at all sizes beyond the largest that arrives, after
/// which nothing is taken to arrive there.
const LOSSES_OF_ONE_SIZE: u8 = 3;
const LOSSES_BEYOND: u64 = 12;
/// Lost rounds beyond for one at sizes that arrive: where more were lost there, losses are
/// random.
const CHANCE_SHARE: u64 = 8;
/// One part in this many of the budget may go into warming up.
const WARM_UP_SHARE: u64 = 10;

/// How far a launch beyond the first is with its sweep of all cells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Launch {
    Begun,
    UnderWay,
    Covered,
}

/// Decides what to measure next, and keeps the samples.
///
/// Call [`Planner::poll_batch`], run its experiments, hand over every outcome
/// by [`Planner::handle_sample`], [`Planner::handle_late`] or [`Planner::handle_lost`], and again until
/// the batch is empty; then [`Planner::assess`]. `now` never decreases. The
/// number of batches is bounded by [`PlanOptions::max_messages`] whatever is
/// handed over.
#[derive(Debug)]
pub struct Planner<'m, const N: usize = 16> {
    pub(in crate::measure) options: PlanOptions,
    /// The time allowed: [`PlanOptions::max_time`], or more on a slow link.
    pub(super) allowed: Picos,
    pub(in crate::measure) store: SampleStore<'m>,
    /// A stack of what is to be measured, `queued` entries high.
    order: &'m mut [Slot],
    pub(in crate::measure) queued: usize,
    pub(in crate::measure) memory: AssessMemory<'m>,
    random: Random,
    pub(in crate::measure) warmup: Warmup,
    warm: bool,
    /// What each size gets was decided.
    allotted: bool,
    /// Sweeps of wanted cells only since the latest one of all.
    targeted: u8,
    launch: Launch,
    /// How often rounds were queued to warm this launch up.
    warm_ups: u8,
    started: Option<Picos>,
    pub(super) messages: u64,
    pub(super) lost: u64,
    pub(super) disturbed: Disturbed,
    /// Samples in the store, and how many there were at the last analysis.
    kept: u64,
    analysed: u64,
    /// Time that bisection may still take.
    pub(in crate::measure) bisection_left: Picos,
    /// The largest half interval among the parameters, relative to what it
    /// has to come down to.
    pub(in crate::measure) widest: Option<f64>,
    /// The largest size that had arrived when those beyond were given up.
    reached: Option<u32>,
    conclusion: Option<Conclusion>,
}

impl<'m, const N: usize> Planner<'m, N> {
    /// A plan for `sizes`, in any order, on lent memory whose contents do not
    /// matter; see [`PlanRequirements`] and [`crate::measure::coarse_sizes`].
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
        store.claim_from(Floor::VALUE, Floor::CHANGE);
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
        let mut left = self.allowed.since(elapsed);
        self.disturbed.on_poll(elapsed);
        if self.is_busy() && left <= self.disturbed.usual_length() {
            self.conclude(Conclusion::TimeSpent);
        }
        let brief = if self.is_busy() { BRIEF } else { Picos::MAX };
        let (begin, until) = (left, left.since(brief));
        let mut refilled = false;
        while !batch.is_full() && self.conclusion.is_none() {
            // A round whose length is not known yet stands alone.
            if !batch.is_empty() && (left <= until || self.is_busy() && left == begin) {
                break;
            }
            // What comes next depends on what came of the batch, so a batch ends with the queue.
            if self.queued == 0 && !batch.is_empty() {
                break;
            }
            if self.queued == 0 && refilled {
                // Nothing of a whole sweep fits into what is left.
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

    /// Takes the outcome of one experiment.
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

    /// Takes note that a reply was late: the next one is waited for longer
    /// before its receive is timed.
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

    /// Takes note that a round was lost. Bursts none of which has arrived yet
    /// become shorter: they may exceed what the other end can hold.
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

    /// Takes note of a burst that does not count: they become shorter where
    /// none has counted yet.
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

    /// Gives up the sizes from that of `row` on where nothing beyond the largest arrived
    /// size comes through: a path with a small MTU loses every longer packet, random loss
    /// hits all sizes.
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

    /// The largest size that arrives, in bytes, where nothing beyond it does.
    #[must_use]
    pub fn reached(&self) -> Option<u32> {
        let reached = self.reached?;
        let beyond = |header: &&RowHeader| header.plan.has_arrived() && header.size > reached;
        // Sizes between that were not given up may have arrived since.
        Some(self.store.rows().iter().rfind(beyond).map_or(reached, |header| header.size))
    }

    /// Leaves out sizes of more than `longest` bytes, before anything is measured, and ends
    /// with that size where sizes may be added; false where there are none, or no others.
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

    /// A new connection, or a new process at the other end, begins: warms it
    /// up by a few rounds that are not kept, and goes once through all cells.
    pub fn begin_launch(&mut self) {
        if self.allotted {
            self.warm = false;
            self.queued = 0;
            self.warmup.again();
            self.launch = Launch::Begun;
            self.warm_ups = 0;
        }
    }

    /// Whether all cells have the samples that the analysis needs, and the
    /// latest launch has gone once through all of them.
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

    /// The time allowed: [`PlanOptions::max_time`], or more where the link
    /// turned out to be slow.
    #[must_use]
    pub const fn allowed(&self) -> Picos {
        self.allowed
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
        let time = share(now.since(self.started.unwrap_or(now)).0, self.allowed.0);
        let spent = time.max(share(self.messages, self.options.max_messages)).min(1_000_000);
        Progress {
            spent_ppm: u32::try_from(spent).unwrap_or(u32::MAX),
            widest_ppm: self.widest.map(|widest| whole(1e6 * widest)),
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
        let mut assessment = Assessment::default();
        self.tell(&mut assessment)?;
        Ok(assessment)
    }

    /// Tells what the samples kept so far say about the link.
    ///
    /// # Errors
    ///
    /// As [`assess`](crate::measure::assess).
    pub fn tell(&mut self, findings: &mut impl Findings) -> Result<(), AssessError> {
        let change = if self.is_busy() { Floor::CHANGE_ON_BUSY } else { Floor::CHANGE };
        self.store.claim_from(Floor::VALUE, change);
        assess::<N>(&self.store, &self.exactness(), &mut self.memory, findings)
    }

    /// How exact a number has to be, on the machine as it has been until now, to have
    /// converged.
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

    /// Takes an entry off the queue and pays for it with some of the time
    /// that is `left`; `None` where it has become moot or takes longer, where
    /// `batch`, not answered yet, fills its cell, or where the plan ends for
    /// want of messages.
    fn next_of_queue(&mut self, batch: &[Experiment], left: &mut Picos) -> Option<Experiment> {
        self.queued = self.queued.checked_sub(1)?;
        let slot = *self.order.get(self.queued)?;
        let (row, quantity) = (usize::from(slot.row), slot.quantity);
        let (experiment, length) = round(&self.store, &self.warmup, row, quantity)?;
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
            // A shorter round may fit.
            return None;
        }
        *left = left.since(length);
        self.messages = messages;
        Some(experiment)
    }

    /// Fills the queue for the next sweep; `false` when the plan is over. A
    /// device has the analysis on its stack only meanwhile.
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

    /// Decides what each size gets, once; on a link that is slow for the time
    /// allowed after allowing more.
    fn begin(&mut self, elapsed: Picos) {
        if self.allotted {
            return;
        }
        self.allotted = true;
        // Time that others take from a link is not what makes it slow.
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

    /// Two round trips at the ends first, which show how slow the link is.
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

    /// Queues the cells that lack the base samples, otherwise what the
    /// analysis wants.
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
        // An analysis costs time too: not for every handful of new samples.
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

    /// Queues all cells whose rounds are not dear, instead of those that are
    /// wanted: every third sweep is one of all, so that a drift of the machine
    /// spreads over all of them.
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

    /// Queues the cells that lack the base samples: first those of a few sizes
    /// that span the sweep, on a busy machine round trips of these, which are
    /// short, and all that the smallest lack. Where time is short, few sizes are
    /// known well, from rounds that meet the machine at many times.
    fn queue_base(&mut self) {
        let is_busy = self.is_busy();
        let last = self.store.len().saturating_sub(1);
        for &tier in &TIERS {
            let mut rows = 0;
            for row in 0..=last {
                let is_kept = |size| is_kept(size, tier) || row == 0 || row == last;
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

    /// Queues the cells that `wanted` picks, in random order.
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

    /// Finds the ranges anew, then queues a bisection or what new rows lack,
    /// or decides what each cell wants.
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

    /// Chooses the delays of rows whose pilot is done, and again where the first
    /// choice turns out to be far too long.
    ///
    /// `d_G = PRTT(1,0,s)`; where the gap comes within a quarter of it,
    /// `PRTT(2,0,s) = PRTT(1,0,s) + G_all`, with the same quarter on top of
    /// the gap.
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
            // A pilot may have met a machine that had no time for it.
            if header.plan.pace == Picos::ZERO || pace < header.plan.pace.0 / MISLED {
                header.plan.round_trip = Picos(trip);
                header.plan.pace = Picos(pace.max(1));
            }
        }
    }

    /// The time per byte that the link sustains, as the largest messages show
    /// it; zero before the pilot.
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

    /// Queues one round, unless it is moot; no more than the queue holds.
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

/// A round at a row, and how long it is likely to take.
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
        // Strictly beyond the round trip, so that the reply is there.
        Quantity::Receive => {
            let halves = 4 + u64::from(plan.late.min(16));
            (1, Picos((times(plan.round_trip.0, halves) / 2).max(1)))
        }
    };
    let known = plan.round_trip != Picos::ZERO;
    let trip = if known { plan.round_trip } else { warmup.expected(*size) };
    // A round trip, and half of one and a delay for each further message.
    let burst = times(trip.0 / 2, u64::from(messages) + 1);
    let waits = times(delay.0, u64::from(messages - 1).max(1));
    let experiment = Experiment { quantity, messages, delay, size: *size };
    let passing = experiment.passing(warmup.sustained);
    Some((experiment, Picos(burst.saturating_add(waits)).max(passing)))
}

/// Whether a cell has too few samples for an analysis.
fn lacks_base(header: &RowHeader, quantity: Quantity) -> bool {
    header.plan.takes(quantity) && header.count(quantity) < usize::from(header.plan.base)
}
