//! Carries series of repetitions out, on all ranks together.
//!
//! Rank 0 leads: before each batch it tells all ranks how it starts, and
//! afterwards it gathers what each has timed. Between the readings of a timed
//! part nothing is allocated, locked or asked of the system, but for what MPI
//! does itself.

use std::fmt;
use std::thread;

use loggap::cli::Interrupt;
use loggap_core::sync::Assumptions;
use loggap_core::units::Picos;
use mpi::collective::{CommunicatorCollectives as _, SystemOperation};
use mpi::topology::SimpleCommunicator;

use super::buffers::{Buffers, Standing};
use super::calls::{AtOnce, Busy, Call, Computing, RootOf};
use super::course::{Course, Measured};
use super::judge::{FIELDS, Record, Tolerance};
use super::operation::{Cell, Operation};
use super::piece::{self, Piece};
use super::scheme::{Batch, SchemeName, Start};
use super::segment::{Carried, Segment};
use super::stop::{StopRule, Stopped};
use super::verify::{self, Round};
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
    job: &'a Job,
    waiting: Waiting<'a>,
    interrupt: &'a Interrupt,
    pub(super) plan: &'a Plan,
    clock: GlobalClock,
    /// Number of the next repetition; all ranks count the same.
    repetition: u64,
    halted: bool,
}

impl fmt::Debug for Bench<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("plan", self.plan).finish_non_exhaustive()
    }
}

/// Commands of the leader.
const END: u64 = 0;
const GIVE_UP: u64 = 1;
const CLOCK: u64 = 2;
const BARRIER: u64 = 3;
const ANNOUNCED: u64 = 4;
const LOOP: u64 = 5;
const ROTATE: u64 = 6;
/// The series ends, and the run.
const HALT: u64 = 7;
/// Clocks are synchronised once more.
const SYNCHRONISE: u64 = 8;

/// A segment of a series lasts at most so long, where there are several clocks.
const SEGMENT: Picos = Picos(100_000_000_000);

/// A command, the start, the window, and how many repetitions.
type Order = [u64; 4];

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
        while let Some(order) = self.hear()? {
            if let [SYNCHRONISE, ..] = order {
                segment = self.next_segment(segment, None);
                continue;
            }
            self.carry_out(order, (&mut buffers, body), &mut records);
            self.report(&records);
            self.note(&mut segment, &records, None);
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
                self.tell([if self.halted { HALT } else { END }, 0, 0, 0]);
                let _ended = self.next_segment(segment, corrected.as_mut());
                return Ok(corrected.unwrap_or(course).finish(stopped));
            }
            if corrected.is_some() && self.clock.age() > SEGMENT {
                self.tell([SYNCHRONISE, 0, 0, 0]);
                segment = self.next_segment(segment, corrected.as_mut());
            }
            let batch = course.next(rule.max_time.since(elapsed));
            let first = self.repetition;
            let order = self.announce(batch);
            self.carry_out(order, (buffers, body), &mut records);
            let all = self.gather(&records);
            let until = self.clock.now();
            if let Some(error) = wrong(cell, first, &all, records.len()) {
                self.tell([GIVE_UP, 0, 0, 0]);
                return Err(error);
            }
            let carried = Carried { batch, start: Picos(order[1]), first, until, elapsed };
            course.handle(&carried.done(&all, records.len()));
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
        // Where a clock was set, provisional times are all there is.
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
        let buffers = Buffers::new(cell, standing);
        let (own, mut all) = (i32::from(buffers.is_some()), 0);
        self.waiting.watch().during(|| {
            self.job.control().all_reduce_into(&own, &mut all, SystemOperation::min());
        });
        let refused = CollectiveError::Memory { operation: cell.operation, bytes: cell.bytes() };
        buffers.filter(|_| all == 1).ok_or(refused)
    }

    fn standing(&self) -> Standing {
        let whole = |number| u32::try_from(number).unwrap_or(0);
        Standing { rank: whole(self.job.rank()), ranks: whole(self.job.size()) }
    }

    /// Says how the next batch starts.
    fn announce(&self, batch: Batch) -> Order {
        self.meet();
        let now = self.clock.now();
        let (command, start, window) = match batch.start {
            Start::Clock { lead, window } => (CLOCK, now.0.saturating_add(lead.0), window.0),
            Start::Barrier => (BARRIER, now.0, 0),
            Start::Announced => (ANNOUNCED, now.0, 0),
            Start::BackToBack { rotate: false } => (LOOP, now.0, 0),
            Start::BackToBack { rotate: true } => (ROTATE, now.0, 0),
        };
        self.send([command, start, window, batch.count.into()])
    }

    fn tell(&self, order: Order) {
        self.waiting.meet(self.job.control());
        self.send(order);
    }

    fn send(&self, mut order: Order) -> Order {
        self.waiting.share(self.job.control(), LEADER, &mut order);
        order
    }

    /// The leader's next order; `None` where the series is over.
    fn hear(&mut self) -> Result<Option<Order>, CollectiveError> {
        self.waiting.meet(self.job.control());
        let order = self.send([END; 4]);
        match order {
            [END, ..] => Ok(None),
            [HALT, ..] => {
                self.halted = true;
                Ok(None)
            }
            [GIVE_UP, ..] => Err(CollectiveError::Ended),
            _ => Ok(Some(order)),
        }
    }

    /// Carries a batch out and notes what this rank timed, one record for
    /// each start.
    fn carry_out(
        &mut self,
        [command, start, window, count]: Order,
        (buffers, body): (&mut Buffers, Body),
        records: &mut Vec<Record>,
    ) {
        let delay = usize::try_from(self.job.rank()).ok();
        let delay = delay.and_then(|rank| self.plan.delays.get(rank)).map_or(0, |delay| delay.0);
        let (starts, operations) = if command >= LOOP { (1, count) } else { (count, 1) };
        records.clear();
        for index in 0..starts {
            let start = index.saturating_mul(window).saturating_add(start).saturating_add(delay);
            let start = self.clock.reading_at(Picos(start));
            let immediate = buffers.cell.operation.immediate;
            let turn = Turn { command, start, operations, immediate };
            let round = self.round(&turn);
            self.repetition += 1;
            verify::fill(buffers, round);
            let ready = self.clock.now();
            let Timing { started, ended, computed } = self.timed(&turn, &mut buffers.call(), body);
            let wrong = match body {
                // No operation, or of one rank: nothing that others can see.
                Body::Piece(_) | Body::Local => None,
                Body::Alone | Body::With(_) => verify::first_wrong(buffers, round),
            };
            let wrong = wrong.map_or(0, |at| at as u64 + 1);
            records.push(Record {
                ready,
                started: self.clock.global(started),
                ended: self.clock.global(ended),
                computed,
                wrong,
                error: self.clock.error(),
            });
        }
    }

    fn round(&self, turn: &Turn) -> Round {
        let first_root = self.plan.root;
        let ranks = u64::from(self.standing().ranks.max(1));
        let moved = if turn.command == ROTATE { turn.operations.saturating_sub(1) } else { 0 };
        let last_root = u32::try_from((u64::from(first_root) + moved) % ranks).unwrap_or(0);
        Round { repetition: self.repetition, first_root, last_root }
    }

    /// Waits for the start, carries the operations out, and returns the
    /// readings before and after them, and for how long it computed in between.
    fn timed(&self, turn: &Turn, call: &mut Call<'_>, body: Body) -> Timing {
        let data = self.job.data();
        let fixed = i32::try_from(self.plan.root).unwrap_or(0);
        let root = RootOf::new(data, fixed);
        let mut spent = 0;
        let own = SimpleCommunicator::self_comm();
        self.waiting.watch().during(|| {
            let started = match turn.command {
                CLOCK => self.wait_until(turn.start),
                ANNOUNCED => self.clock.read(),
                _ => {
                    data.barrier();
                    self.clock.read()
                }
            };
            match (turn.command, body) {
                (ROTATE, _) => {
                    let mut at = fixed;
                    for _ in 0..turn.operations {
                        once(call, turn, (data, &RootOf::new(data, at)));
                        at = if at + 1 < self.job.size() { at + 1 } else { 0 };
                    }
                }
                (_, Body::With(plan)) => {
                    let mut busy = Busy { plan, clock: &self.clock, spent: 0 };
                    call.immediate(data, &root, &mut busy);
                    spent = busy.spent;
                }
                (_, Body::Piece(part)) => piece::carry_out(part, call, data),
                (_, Body::Local) => piece::alone(call, &own),
                _ => (0..turn.operations).for_each(|_| once(call, turn, (data, &root))),
            }
            let ended = self.clock.read();
            Timing { started, ended, computed: self.clock.between(0, spent) }
        })
    }

    /// The first reading at or after `start`, or now where that has passed.
    #[inline]
    fn wait_until(&self, start: u64) -> u64 {
        loop {
            let now = self.clock.read();
            if now >= start {
                return now;
            }
            if self.waiting.yields() {
                thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
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

/// What a rank reads.
struct Timing {
    started: u64,
    ended: u64,
    computed: Picos,
}

/// A start, as one rank sees it.
struct Turn {
    command: u64,
    /// Reading to wait for.
    start: u64,
    operations: u64,
    immediate: bool,
}

#[inline]
fn once(call: &mut Call<'_>, turn: &Turn, (ranks, root): (&SimpleCommunicator, &RootOf<'_>)) {
    if turn.immediate {
        call.immediate(ranks, root, &mut AtOnce)
    } else {
        call.blocking(ranks, root)
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
