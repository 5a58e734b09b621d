//! Timed section of a repetition, on one rank. Between the clock readings there
//! is no allocation, lock or system call except those of MPI.

use std::thread;

use loggap_core::units::Picos;
use mpi::collective::CommunicatorCollectives as _;
use mpi::topology::SimpleCommunicator;

use super::buffers::Buffers;
use super::calls::{AtOnce, Busy, Call, RootOf};
use super::judge::Record;
use super::piece;
use super::run::{Bench, Body};
use super::scheme::{Batch, Start};
use super::verify::{self, Round};

/// Duration of an iteration of the loop that waits for a start, in clock
/// readings: it pauses between two of them.
const TURN: u64 = 2;

impl Bench<'_> {
    /// Carries out a batch, and stores this rank's records, one for each start.
    pub(super) fn carry_out(
        &mut self,
        batch: Batch,
        at: Picos,
        buffers: &mut Buffers,
        body: Body,
        records: &mut Vec<Record>,
    ) {
        let delay = usize::try_from(self.job.rank()).ok();
        let delay = delay.and_then(|rank| self.plan.delays.get(rank)).map_or(0, |delay| delay.0);
        let Batch { start, count } = batch;
        let (starts, operations) =
            if let Start::BackToBack { .. } = start { (1, count) } else { (count, 1) };
        let immediate = buffers.cell.operation.immediate;
        records.clear();
        for index in 0..starts.into() {
            let planned = start.of(index, at).0.saturating_add(delay);
            let at = self.clock.reading_at(Picos(planned));
            let turn = Turn { start, at, operations, immediate };
            let round = self.round(&turn);
            self.repetition += 1;
            verify::fill(buffers, round);
            let ready = self.clock.now();
            let Timing { started, ended, computed } = self.timed(&turn, &mut buffers.call(), body);
            let wrong = match body {
                // No operation, or one of this rank alone: there is no common result.
                Body::Piece(_) | Body::Local => None,
                Body::Alone | Body::With(_) => verify::first_wrong(buffers, round),
            };
            let missed = match start {
                Start::Clock { .. } => self.clock.between(at, started),
                Start::Barrier | Start::Announced | Start::BackToBack { .. } => Picos::ZERO,
            };
            records.push(Record {
                ready,
                started: self.clock.global(started),
                ended: self.clock.global(ended),
                missed,
                computed,
                wrong: wrong.map_or(0, |at| at as u64 + 1),
                error: self.clock.error(),
                reading: Picos(self.clock.read_cost().0.saturating_mul(TURN)),
            });
        }
    }

    fn round(&self, turn: &Turn) -> Round {
        let first_root = self.plan.root;
        let moved = if let Start::BackToBack { rotate: true } = turn.start {
            turn.operations.saturating_sub(1)
        } else {
            0
        };
        let (first, ranks) = (u64::from(first_root), u64::from(self.standing().ranks.max(1)));
        let last_root = u32::try_from((first + u64::from(moved)) % ranks).unwrap_or(0);
        Round { repetition: self.repetition, first_root, last_root }
    }

    /// Waits for the start, carries out the operations, and returns the
    /// readings before and after them, and the time spent computing in between.
    fn timed(&self, turn: &Turn, call: &mut Call<'_>, body: Body) -> Timing {
        let data = self.job.data();
        let fixed = i32::try_from(self.plan.root).unwrap_or(0);
        let root = RootOf::new(data, fixed);
        let mut spent = 0;
        let own = SimpleCommunicator::self_comm();
        let watch = self.waiting.watch();
        let started = match turn.start {
            // A planned wait, and not for another rank: without a deadline.
            Start::Clock { .. } => self.wait_until(turn.at),
            Start::Announced => self.clock.read(),
            Start::Barrier | Start::BackToBack { .. } => {
                watch.during(|| data.barrier());
                self.clock.read()
            }
        };
        watch.during(|| {
            let ended = match (turn.start, body) {
                (Start::BackToBack { rotate: true }, Body::Alone) => {
                    let mut at = fixed;
                    for _ in 0..turn.operations {
                        once(call, turn, data, &RootOf::new(data, at));
                        at = if at + 1 < self.job.size() { at + 1 } else { 0 };
                    }
                    self.clock.read()
                }
                (_, Body::With(plan)) => {
                    let mut busy = Busy { plan, clock: &self.clock, spent: 0 };
                    call.immediate(data, &root, &mut busy);
                    spent = busy.spent;
                    self.clock.read()
                }
                (_, Body::Piece(part)) => piece::carry_out(part, call, data, &self.clock),
                (_, Body::Local) => {
                    piece::alone(call, &own);
                    self.clock.read()
                }
                (_, Body::Alone) => {
                    (0..turn.operations).for_each(|_| once(call, turn, data, &root));
                    self.clock.read()
                }
            };
            Timing { started, ended, computed: self.clock.between(0, spent) }
        })
    }

    /// Waits for `start`; the first reading at or after it.
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
}

/// Clock readings of a rank around the operations.
struct Timing {
    started: u64,
    ended: u64,
    computed: Picos,
}

/// A start on one rank.
struct Turn {
    start: Start,
    /// Reading to wait for, if the start is by the clock.
    at: u64,
    /// Number of consecutive operations.
    operations: u32,
    immediate: bool,
}

#[inline]
fn once(call: &mut Call<'_>, turn: &Turn, ranks: &SimpleCommunicator, root: &RootOf<'_>) {
    if turn.immediate {
        call.immediate(ranks, root, &mut AtOnce)
    } else {
        call.blocking(ranks, root)
    }
}
