//! Rules of a rank for the driver in windows.
//!
//! The RTS of a handshake is sent by the send itself. The CTS and the data leave from records of
//! their own, which are released like operations: that of the CTS on the receiver when the RTS is
//! matched; that of the data on the sender when the CTS is handled.

use super::partition::Partition;
use super::rank::{Active, WindowRank};
use super::record::{BY_ARRIVAL, BY_MATCH};
use super::shared::{HeapLinks, Shared};
use crate::sim::hooks::{Noise, Observed, Observer, Released, Satisfied};
use crate::sim::queues::chain::Chain;
use crate::sim::rank::Clock;
use crate::sim::rank::charge::Charges;
use crate::sim::rank::dependencies::{Operations, Reached, Ready};
use crate::sim::rank::matching::first_message;
use crate::sim::rank::matching::slots::Found;
use crate::sim::rank::price::Reception;
use crate::sim::rank::rules::{Creator, Letter, Match, Rules};
use crate::sim::record::{Kind, Successors};
use crate::units::Overflow;

/// Scattered messages that can be inspected in the time of one history step.
const MESSAGES_OF_STEP: u64 = 2;

impl Creator {
    /// Encoding in a record.
    #[inline]
    const fn word(self) -> u32 {
        match self {
            Self::Op(op) => op,
            Self::Match { receive, .. } => receive | BY_MATCH,
            Self::Arrival(send) => send | BY_ARRIVAL,
        }
    }
}

impl<'s, N: Noise, O: Observer> Rules<'s, N, O, Overflow> for Partition<'s, N, O> {
    type Ops = Shared<'s>;
    type Rank = Active;

    const AT_ONCE: bool = true;

    #[inline]
    fn rank_number(rank: &Active) -> u32 {
        rank.number
    }

    #[inline]
    fn ops(&mut self) -> &mut Shared<'s> {
        &mut self.shared
    }

    #[inline]
    fn op_number(&self, op: u32) -> u32 {
        self.shared.send_of(op)
    }

    #[inline]
    fn charges(&mut self) -> &mut Charges<'s, N, O> {
        &mut self.charges
    }

    #[inline]
    fn reception(&self) -> Reception {
        Reception { overlap: self.overlap, last: false }
    }

    #[inline]
    fn clock(&self, rank: &Active, clock: Clock) -> u64 {
        rank.state.free.of(clock)
    }

    #[inline]
    fn set_clock(&mut self, rank: &mut Active, clock: Clock, time: u64) {
        *rank.state.free.of_mut(clock) = time;
    }

    /// Operations that become ready are released immediately.
    #[allow(clippy::inline_always, reason = "so that the creator is a word: measured")]
    #[inline(always)]
    fn satisfy(&mut self, rank: &mut Active, on: u32, by: Creator, reached: Reached) {
        self.tell(rank, on, by.word(), reached);
        if let Creator::Match { receive, send, time } = by {
            self.shared.at(receive).meet(send, time);
        }
    }

    #[inline]
    fn take_message(&mut self, rank: &mut Active, receive: u32) -> Option<u32> {
        let (shared, last) = (&mut self.shared, &mut rank.state.unexpected);
        let (found, looks) = first_message(shared, *last, shared.envelope(receive));
        self.steps += u64::from(looks) / MESSAGES_OF_STEP;
        let (before, message) = found?;
        shared.remove(last, before, message);
        Some(message)
    }

    #[inline]
    fn post(&mut self, rank: &mut Active, receive: u32) {
        self.slots.post(&self.shared, &mut rank.state.posted, receive);
    }

    #[inline]
    fn take_posted(&mut self, rank: &mut Active, found: Found) {
        self.slots.take(&mut rank.state.posted, found);
    }

    #[inline]
    fn await_receive(&mut self, rank: &mut Active, message: &Letter) {
        self.shared.at(message.send).keep(message.source, message.size);
        self.shared.push(&mut rank.state.unexpected, message.send);
    }

    fn answer(
        &mut self,
        rank: &mut Active,
        pair: &Match,
        creator: Creator,
    ) -> Result<(), Overflow> {
        // The RTS carries the record of its CTS as its size: see `WindowRecord::set_handshake`.
        let cts = self.shared.at(pair.send).next.get();
        self.shared.handshake(cts).meet(pair.receive, pair.time);
        // The processor may have been idle before the receive was posted.
        self.shared.set_time(cts, self.shared.time_of(pair.send).max(pair.time));
        self.release(rank, cts, creator.word());
        Ok(())
    }

    fn resume(
        &mut self,
        rank: &mut Active,
        cts: u32,
        time: u64,
        done: u64,
    ) -> Result<(), Overflow> {
        let data = cts.wrapping_add(1);
        let known = self.shared.handshake(data);
        known.time.set(time);
        self.shared.at(data).tag.set(known.met().0);
        self.shared.set_time(data, done);
        self.release(rank, data, Creator::Arrival(cts).word());
        Ok(())
    }

    #[inline]
    fn note_done(&mut self, rank: &Active, time: u64) {
        let local = rank.number.wrapping_sub(self.first) as usize;
        if let Some(receiving) = self.receiving.get_mut(local) {
            receiving.done = receiving.done.max(time);
        }
    }
}

impl<N: Noise, O: Observer> Partition<'_, N, O> {
    /// Fulfils the dependencies on `op` and releases the operations that are ready.
    #[inline]
    fn tell(&mut self, rank: &mut Active, op: u32, creator: u32, reached: Reached) {
        let (on, number) = (self.shared.send_of(op), rank.number);
        let Self { shared, charges, .. } = self;
        let satisfied = |op, end| {
            let satisfied = Satisfied { rank: number, op, on, end };
            charges.observer.observe(Observed::Satisfied(&satisfied));
        };
        if shared.successors(op) == Successors::Listed {
            let (mut ready, edges) = (Ready::default(), shared.frame.edges);
            shared.satisfy_listed(op, edges, reached, &mut ready, satisfied);
            while let Some(op) = ready.take(&mut self.shared) {
                self.release(rank, op, creator);
            }
        } else if let Some(op) = shared.satisfy_one(op, reached, satisfied) {
            self.release(rank, op, creator);
        }
    }

    /// Releases an operation.
    #[inline]
    fn release(&mut self, rank: &mut Active, op: u32, creator: u32) {
        let released = Released { rank: rank.number, op: self.shared.send_of(op), cpu: 0 };
        self.charges.observer.observe(Observed::Released(&released));
        self.shared.at(op).release(creator, rank.state.released);
        self.events += 1;
        let Self { shared, heaps, overlap, .. } = self;
        shared.enlist(overlap.then_some(heaps), &mut rank.state, op);
    }
}

impl Shared<'_> {
    /// Inserts a released operation into its list or heap.
    #[inline]
    pub(super) fn enlist(
        &mut self,
        heaps: Option<&mut HeapLinks<'_>>,
        state: &mut WindowRank,
        op: u32,
    ) {
        let record = self.at(op);
        state.released += 1;
        let last = match record.kind() {
            Kind::Send => &mut state.sends,
            Kind::Calc => &mut state.calcs,
            Kind::Receive => {
                record.time.set(state.free.cpu.max(self.time_of(op)));
                &mut state.receives
            }
        };
        match heaps {
            None => self.push(last, op),
            Some(heaps) => self.await_turn(heaps, state, op),
        }
    }
}
