//! Carries series of repetitions out, on all ranks together.
//!
//! Rank 0 leads: before each batch it tells all ranks how it starts, and
//! afterwards it gathers what each has timed.

use std::fmt;

use loggap::cli::Interrupt;
use loggap::machine::buffer::Alignment;
use loggap_core::sync::Assumptions;
use loggap_core::units::Picos;
use mpi::collective::{CommunicatorCollectives as _, SystemOperation};

use super::buffers::{Buffers, Standing};
use super::calls::Computing;
use super::carried::{Carried, Records};
use super::course::{Course, Measured};
use super::judge::{FIELDS, Record, Tolerance};
use super::operation::{Cell, Operation};
use super::order::{self, Order};
use super::piece::Piece;
use super::scheme::{Batch, SchemeName, Start};
use super::segment::Segment;
use super::stop::{StopRule, Stopped};
use crate::clocks::{Domains, GlobalClock};
use crate::job::Job;
use crate::waiting::Waiting;
use crate::watch::Watch;

/// The rank that decides.
pub const LEADER: i32 = 0;

/// Why there are no numbers. All ranks find the same.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CollectiveError {
    /// An operation gave a wrong result.
    #[error(
        "{operation} of {bytes} bytes gave a wrong result: rank {rank}, element {element}, \
         repetition {repetition}; this MPI library, or what carries its messages, is broken"
    )]
    Wrong {
        /// The operation.
        operation: Operation,
        /// Its size.
        bytes: u64,
        /// Who got it.
        rank: usize,
        /// The first wrong element.
        element: u64,
        /// In which repetition.
        repetition: u64,
    },
    /// A rank has no memory for its buffers.
    #[error("{operation} of {bytes} bytes: a rank has no memory for it; use smaller sizes")]
    Memory {
        /// The operation.
        operation: Operation,
        /// Its size.
        bytes: u64,
    },
    /// Rank 0 has given up, and says why.
    #[error("rank 0 has given up")]
    Ended,
}

/// What all series of a run have in common.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How repetitions start.
    pub scheme: SchemeName,
    /// The root of operations that have one.
    pub root: u32,
    /// When each rank arrives, after the common start.
    pub delays: Vec<Picos>,
    /// Which late starts are tolerated.
    pub tolerance: Tolerance,
    /// When a series ends.
    pub rule: StopRule,
    /// Whether what each rank timed is kept.
    pub keeps_samples: bool,
    /// Whether ranks that wait let others run, as they share processors.
    pub yields: bool,
    /// Place of buffers in their pages.
    pub alignment: Alignment,
    /// What is taken for one clock.
    pub domains: Domains,
    /// What has to hold of the clocks.
    pub assumptions: Assumptions,
}

/// What is timed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Body {
    /// The operation; an immediate one is waited for at once.
    Alone,
    /// An immediate operation with computation until it is waited for.
    With(Computing),
    /// No operation, but a part of one.
    Piece(Piece),
    /// The operation of this rank alone.
    Local,
}

/// A rank of a run.
pub struct Bench<'a> {
    pub(super) job: &'a Job,
    pub(super) waiting: Waiting<'a>,
    interrupt: &'a Interrupt,
    pub(super) plan: &'a Plan,
    pub(super) clock: GlobalClock,
    /// Number of the next repetition; all ranks count the same.
    pub(super) repetition: u64,
    halted: bool,
}

impl fmt::Debug for Bench<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("plan", self.plan).finish_non_exhaustive()
    }
}

/// A segment of a series lasts at most so long, where there are several clocks.
const SEGMENT: Picos = Picos(100_000_000_000);

impl<'a> Bench<'a> {
    /// This rank, with a clock that is not synchronised yet.
    #[must_use]
    pub fn new(
        (job, watch): (&'a Job, &'a Watch),
        interrupt: &'a Interrupt,
        plan: &'a Plan,
    ) -> Self {
        let waiting = if plan.yields { Waiting::yielding(watch) } else { Waiting::polling(watch) };
        Self {
            job,
            waiting,
            interrupt,
            plan,
            clock: GlobalClock::new(job, plan.domains, plan.assumptions),
            repetition: 0,
            halted: false,
        }
    }

    /// The clock, for what is said about it.
    #[must_use]
    pub const fn clock(&self) -> &GlobalClock {
        &self.clock
    }

    /// The leader's `number`, on all ranks.
    pub(super) fn share(&self, number: u64) -> u64 {
        let mut number = [number];
        self.waiting.share(self.job.control(), LEADER, &mut number);
        let [number] = number;
        number
    }

    /// Waits for all ranks.
    pub(super) fn meet(&self) {
        self.waiting.meet(self.job.control());
    }

    /// Whether somebody has asked to stop: all ranks find the same.
    #[must_use]
    pub const fn is_halted(&self) -> bool {
        self.halted
    }

    /// Whether this rank decides.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.job.rank() == LEADER
    }

    /// Measures `cell` as the plan says. `Some` at the leader.
    ///
    /// # Errors
    ///
    /// [`CollectiveError`]: all ranks are to end then.
    pub fn measure(&mut self, cell: Cell) -> Result<Option<Measured>, CollectiveError> {
        self.series(cell, Body::Alone, self.plan.rule)
    }

    /// A series of repetitions. Clocks are synchronised before it, and where
    /// there are several, again and again, and at the end: then the times in
    /// between are corrected.
    pub(super) fn series(
        &mut self,
        cell: Cell,
        body: Body,
        rule: StopRule,
    ) -> Result<Option<Measured>, CollectiveError> {
        let mut buffers = self.buffers(cell, body)?;
        if self.leads() {
            return self.lead((cell, &mut buffers), body, rule).map(Some);
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
                    self.carry_out((batch, at), (&mut buffers, body), &mut records);
                    self.report(&records);
                    self.note(&mut segment, &records, None);
                }
            }
        }
        let _ended = self.next_segment(segment, None);
        Ok(None)
    }

    /// A series at the leader. `course` decides on provisional times, the
    /// corrected ones count.
    fn lead(
        &mut self,
        (cell, buffers): (Cell, &mut Buffers),
        body: Body,
        rule: StopRule,
    ) -> Result<Measured, CollectiveError> {
        let begin = self.clock.read();
        let mut records = Vec::new();
        let (mut course, mut corrected) = (Course::new(self.plan, rule), None);
        let mut segment = self.begin_segment();
        if self.interpolates() {
            corrected = Some(Course::new(self.plan, rule));
        }
        loop {
            let elapsed = self.clock.between(begin, self.clock.read());
            if let Some(stopped) = self.verdict(&course, elapsed) {
                self.halted = stopped == Stopped::Interrupted;
                self.tell(if self.halted { Order::Halt } else { Order::End });
                let _ended = self.next_segment(segment, corrected.as_mut());
                return Ok(corrected.unwrap_or(course).finish(stopped));
            }
            if corrected.is_some() && self.clock.age() > SEGMENT {
                self.tell(Order::Synchronise);
                segment = self.next_segment(segment, corrected.as_mut());
            }
            let batch = course.next(rule.max_time.since(elapsed));
            let first = self.repetition;
            let start = self.announce(batch);
            self.carry_out((batch, start), (buffers, body), &mut records);
            let all = self.gather(&records);
            let until = self.clock.now();
            if let Some(error) = wrong(cell, first, &all, records.len()) {
                self.tell(Order::GiveUp);
                return Err(error);
            }
            let carried = Carried { batch, start, first, until, elapsed };
            course.handle(&carried, Records { all: &all, each: records.len() });
            self.note(&mut segment, &records, Some(carried));
        }
    }

    /// Whether ranks have several clocks, so that times are worth correcting.
    fn interpolates(&self) -> bool {
        self.clock.domains().iter().any(|domain| *domain != 0)
    }

    fn begin_segment(&mut self) -> Segment {
        let _pass = self.clock.synchronise(self.job, self.waiting);
        Segment::new(*self.clock.rank_clock(), *self.clock.model())
    }

    /// Keeps what is corrected later.
    fn note(&self, segment: &mut Segment, records: &[Record], carried: Option<Carried>) {
        if self.interpolates() {
            segment.push(records, carried);
        }
    }

    /// Synchronises where there are several clocks, corrects what was timed
    /// since the last time, and begins anew.
    fn next_segment(&mut self, segment: Segment, course: Option<&mut Course<'_>>) -> Segment {
        if !self.interpolates() {
            return segment;
        }
        let next = self.begin_segment();
        // None where this clock was set meanwhile.
        let model = self.clock.since(&segment.before).ok();
        let gather = |own: &[Record]| {
            if self.leads() {
                return self.gather(own);
            }
            self.report(own);
            Vec::new()
        };
        segment.correct(model.as_ref(), gather, course);
        next
    }

    fn verdict(&self, course: &Course<'_>, elapsed: Picos) -> Option<Stopped> {
        let asked = self.interrupt.is_requested().then_some(Stopped::Interrupted);
        asked.or_else(|| course.verdict(elapsed))
    }

    /// Buffers on all ranks or on none.
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

    /// Says how the next batch starts, and returns when.
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
        self.waiting.share(self.job.control(), LEADER, &mut order.to_words());
    }

    /// The leader's next order.
    fn hear(&self) -> Order {
        self.meet();
        let mut words = [0; order::WORDS];
        self.waiting.share(self.job.control(), LEADER, &mut words);
        // All ranks run one program: anything else cannot be gone on with.
        Order::from_words(words).unwrap_or(Order::GiveUp)
    }

    /// Hands what this rank timed to the leader.
    fn report(&self, records: &[Record]) {
        let own = numbers(records);
        self.waiting.collect((self.job.control(), LEADER), &own, None);
    }

    /// What all ranks timed, rank by rank.
    fn gather(&self, records: &[Record]) -> Vec<Record> {
        let own = numbers(records);
        let ranks = usize::try_from(self.job.size()).unwrap_or(0);
        let mut all = vec![0; own.len() * ranks];
        self.waiting.collect((self.job.control(), LEADER), &own, Some(&mut all));
        let record = |numbers: &[u64]| numbers.first_chunk().copied().map(Record::from_numbers);
        all.chunks(FIELDS).filter_map(record).collect()
    }
}

fn numbers(records: &[Record]) -> Vec<u64> {
    records.iter().flat_map(|record| record.to_numbers()).collect()
}

/// The first wrong result among `all`, of which each rank has `each`.
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
