//! Runs series of repetitions, on all ranks together.
//!
//! Rank 0 leads: before each batch it announces to all ranks how it starts, and
//! afterwards it gathers their records.

use std::fmt;

use loggap::machine::buffer::Alignment;
use loggap::terminal::Interrupt;
use loggap_core::sync::Assumptions;
use loggap_core::units::Picos;
use mpi::collective::{CommunicatorCollectives as _, SystemOperation};

use super::buffers::{Buffers, Standing};
use super::calls::Computing;
use super::completed::{CompletedBatch, Records};
use super::judge::{FIELDS, Record, Tolerance};
use super::operation::{Cell, Operation};
use super::order::{self, Order};
use super::piece::Piece;
use super::scheme::{Batch, SchemeName, Start};
use super::segment::Segment;
use super::series::{Measured, SeriesState};
use super::stop::{StopRule, Stopped};
use crate::clocks::{Domains, GlobalClock};
use crate::job::{CONTROLLER, Job};
use crate::waiting::Waiting;

/// Error that ends a run. All ranks find the same one.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CollectiveError {
    /// An operation gave a wrong result.
    #[error(
        "{operation} of {bytes} bytes gave a wrong result: rank {rank}, element {element}, \
         repetition {repetition}; this MPI library, or what carries its messages, is broken"
    )]
    Wrong {
        /// Operation.
        operation: Operation,
        /// Size in bytes.
        bytes: u64,
        /// Rank with the wrong result.
        rank: usize,
        /// Index of the first wrong element.
        element: u64,
        /// Index of the repetition.
        repetition: u64,
    },
    /// A rank could not allocate its buffers.
    #[error("{operation} of {bytes} bytes: a rank has no memory for it; use smaller sizes")]
    Memory {
        /// Operation.
        operation: Operation,
        /// Size in bytes.
        bytes: u64,
    },
    /// Rank 0 has given up, and reports why.
    #[error("rank 0 has given up")]
    Ended,
}

/// Settings that all series of a run have in common.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Scheme by which repetitions start.
    pub scheme: SchemeName,
    /// Root of the operations that have one.
    pub root: u32,
    /// Arrival delay of each rank after the common start.
    pub delays: Vec<Picos>,
    /// Tolerance of late starts.
    pub tolerance: Tolerance,
    /// Rule that ends a series.
    pub rule: StopRule,
    /// True if the times of each rank are kept.
    pub keeps_samples: bool,
    /// Alignment of message buffers.
    pub alignment: Alignment,
    /// Ranks that share a clock.
    pub domains: Domains,
    /// Assumptions about the clocks.
    pub assumptions: Assumptions,
}

/// Timed part of a repetition.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Body {
    /// The operation; an immediate one is waited for at once.
    Alone,
    /// An immediate operation, with computation before it is waited for.
    With(Computing),
    /// A part of an algorithm, instead of an operation.
    Piece(Piece),
    /// The operation on this rank alone.
    Local,
}

/// State of one rank in a run.
pub struct Bench<'a> {
    pub(super) job: &'a Job,
    pub(super) waiting: Waiting<'a>,
    interrupt: &'a Interrupt,
    pub(super) plan: &'a Plan,
    pub(super) clock: GlobalClock,
    /// Number of the next repetition, the same on all ranks.
    pub(super) repetition: u64,
    halted: bool,
}

impl fmt::Debug for Bench<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("plan", self.plan).finish_non_exhaustive()
    }
}

/// Maximum time between two synchronisations in a series, if there are several clocks.
const SEGMENT: Picos = Picos(100_000_000_000);

impl<'a> Bench<'a> {
    /// State of this rank, whose clock is not synchronised yet.
    #[must_use]
    pub fn new(job: &'a Job, interrupt: &'a Interrupt, plan: &'a Plan) -> Self {
        Self {
            job,
            waiting: job.waiting(),
            interrupt,
            plan,
            clock: GlobalClock::new(job, plan.domains, plan.assumptions),
            repetition: 0,
            halted: false,
        }
    }

    /// Clock of this rank, for reports.
    #[must_use]
    pub const fn clock(&self) -> &GlobalClock {
        &self.clock
    }

    /// Broadcasts the leader's `number`.
    pub(super) fn share(&self, number: u64) -> u64 {
        let mut number = [number];
        self.job.share(&mut number);
        let [number] = number;
        number
    }

    /// Barrier over all ranks.
    pub(super) fn meet(&self) {
        self.waiting.meet(self.job.control());
    }

    /// True if the run was interrupted; the same on all ranks.
    #[must_use]
    pub const fn is_halted(&self) -> bool {
        self.halted
    }

    /// True on the leader.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.job.leads()
    }

    /// Measures `cell` by the plan. `Some` at the leader.
    ///
    /// # Errors
    ///
    /// [`CollectiveError`]: all ranks have to end then.
    pub fn measure(&mut self, cell: Cell) -> Result<Option<Measured>, CollectiveError> {
        self.series(cell, Body::Alone, self.plan.rule)
    }

    /// Runs a series of repetitions. Clocks are synchronised before it. If
    /// there are several, they are synchronised again from time to time and at
    /// the end, and the times in between are corrected.
    pub(super) fn series(
        &mut self,
        cell: Cell,
        body: Body,
        rule: StopRule,
    ) -> Result<Option<Measured>, CollectiveError> {
        let mut buffers = self.buffers(cell, body)?;
        if self.leads() {
            return self.lead(&mut buffers, body, rule).map(Some);
        }
        let mut records = Vec::new();
        let mut segment = self.begin_segment();
        loop {
            match self.hear() {
                Order::End => break,
                Order::Halt => {
                    self.halted = true;
                    break;
                }
                Order::GiveUp => return Err(CollectiveError::Ended),
                Order::Synchronise => segment = self.next_segment(segment, None),
                Order::Batch { batch, at } => {
                    self.carry_out(batch, at, &mut buffers, body, &mut records);
                    let _sent = self.gather(&records);
                    self.note(&mut segment, &records, None);
                }
            }
        }
        let _ended = self.next_segment(segment, None);
        Ok(None)
    }

    /// Leads a series. `state` decides on provisional times; the corrected ones count.
    fn lead(
        &mut self,
        buffers: &mut Buffers,
        body: Body,
        rule: StopRule,
    ) -> Result<Measured, CollectiveError> {
        let begin = self.clock.read();
        let mut records = Vec::new();
        let (mut state, mut corrected) = (SeriesState::new(self.plan, rule), None);
        let mut segment = self.begin_segment();
        if self.interpolates() {
            corrected = Some(SeriesState::new(self.plan, rule));
        }
        loop {
            let elapsed = self.clock.between(begin, self.clock.read());
            if let Some(stopped) = self.verdict(&state, elapsed) {
                self.halted = stopped == Stopped::Interrupted;
                self.tell(if self.halted { Order::Halt } else { Order::End });
                let _ended = self.next_segment(segment, corrected.as_mut());
                return Ok(corrected.unwrap_or(state).finish(stopped));
            }
            if corrected.is_some() && self.clock.age() > SEGMENT {
                self.tell(Order::Synchronise);
                segment = self.next_segment(segment, corrected.as_mut());
            }
            let batch = state.next(rule.max_time.since(elapsed));
            let first = self.repetition;
            let start = self.announce(batch);
            self.carry_out(batch, start, buffers, body, &mut records);
            let all = self.gather(&records);
            let until = self.clock.now();
            if let Some(error) = wrong(buffers.cell, first, &all, records.len()) {
                self.tell(Order::GiveUp);
                return Err(error);
            }
            let completed = CompletedBatch { batch, start, first, until, elapsed };
            state.handle(&completed, Records { all: &all, each: records.len() });
            self.note(&mut segment, &records, Some(completed));
        }
    }

    /// True if ranks have several clocks, so that correcting times is worth it.
    fn interpolates(&self) -> bool {
        self.clock.domains().iter().any(|domain| *domain != 0)
    }

    fn begin_segment(&mut self) -> Segment {
        let _pass = self.clock.synchronise(self.job, self.waiting);
        Segment::new(*self.clock.rank_clock(), *self.clock.model())
    }

    /// Keeps records for the correction.
    fn note(&self, segment: &mut Segment, records: &[Record], completed: Option<CompletedBatch>) {
        if self.interpolates() {
            segment.push(records, completed);
        }
    }

    /// If there are several clocks: synchronises them, corrects the times since
    /// the last synchronisation, and begins a new segment.
    fn next_segment(&mut self, segment: Segment, state: Option<&mut SeriesState<'_>>) -> Segment {
        if !self.interpolates() {
            return segment;
        }
        let next = self.begin_segment();
        // `None` if this clock was set meanwhile.
        let model = self.clock.since(&segment.before).ok();
        segment.correct(model.as_ref(), |own| self.gather(own), state);
        next
    }

    fn verdict(&self, state: &SeriesState<'_>, elapsed: Picos) -> Option<Stopped> {
        let asked = self.interrupt.is_requested().then_some(Stopped::Interrupted);
        asked.or_else(|| state.verdict(elapsed))
    }

    /// Allocates buffers on all ranks, or fails on all of them.
    fn buffers(&self, cell: Cell, body: Body) -> Result<Buffers, CollectiveError> {
        let standing =
            if body == Body::Local { Standing { rank: 0, ranks: 1 } } else { self.standing() };
        let buffers = Buffers::new(cell, standing, self.plan.alignment);
        let (own, mut all) = (i32::from(buffers.is_some()), 0);
        self.waiting.watch().during(|| {
            self.job.control().all_reduce_into(&own, &mut all, SystemOperation::min());
        });
        let refused = CollectiveError::Memory { operation: cell.operation, bytes: cell.bytes() };
        buffers.filter(|_| all == 1).ok_or(refused)
    }

    pub(super) fn standing(&self) -> Standing {
        let whole = |number| u32::try_from(number).unwrap_or(0);
        Standing { rank: whole(self.job.rank()), ranks: whole(self.job.size()) }
    }

    /// Announces the next batch, and returns its start.
    fn announce(&self, batch: Batch) -> Picos {
        self.meet();
        let now = self.clock.now();
        let lead = if let Start::Clock { lead, .. } = batch.start { lead } else { Picos::ZERO };
        let at = Picos(now.0.saturating_add(lead.0));
        self.send(Order::Batch { batch, at });
        at
    }

    fn tell(&self, order: Order) {
        self.meet();
        self.send(order);
    }

    fn send(&self, order: Order) {
        self.waiting.share(self.job.control(), CONTROLLER, &mut order.to_words());
    }

    /// Receives the leader's next order.
    fn hear(&self) -> Order {
        self.meet();
        let mut words = [0; order::WORDS];
        self.waiting.share(self.job.control(), CONTROLLER, &mut words);
        // All ranks run the same program, so an unknown order is fatal.
        Order::from_words(words).unwrap_or(Order::GiveUp)
    }

    /// Records of all ranks, rank by rank, at the leader; none elsewhere.
    fn gather(&self, records: &[Record]) -> Vec<Record> {
        let own: Vec<u64> = records.iter().flat_map(|record| record.to_numbers()).collect();
        let all = self.waiting.gather(self.job.control(), CONTROLLER, &own);
        let record = |numbers: &[u64]| numbers.first_chunk().copied().map(Record::from_numbers);
        all.chunks(FIELDS).filter_map(record).collect()
    }
}

/// First wrong result in `all`, which has `each` records per rank.
fn wrong(cell: Cell, first: u64, all: &[Record], each: usize) -> Option<CollectiveError> {
    let (index, record) = all.iter().enumerate().find(|(_, record)| record.wrong > 0)?;
    Some(CollectiveError::Wrong {
        operation: cell.operation,
        bytes: cell.bytes(),
        rank: index / each.max(1),
        element: record.wrong - 1,
        repetition: first + (index % each.max(1)) as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::operation::{cells, operations};

    #[test]
    fn a_wrong_result_is_told_with_its_place() {
        let cell = cells(&operations("allreduce").unwrap().list, &[64], 3).unwrap()[0];
        let mut all = [Record::default(); 6];
        assert_eq!(wrong(cell, 40, &all, 2), None);
        all[3].wrong = 8;
        let told = wrong(cell, 40, &all, 2).unwrap().to_string();
        let place = "allreduce of 64 bytes gave a wrong result: rank 1, element 7, repetition 41";
        assert!(told.starts_with(place), "{told}");
    }
}
