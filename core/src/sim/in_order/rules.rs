//! Rules of a rank for the driver in global order.

use crate::sim::hooks::{MessageKind, Noise, Observed, Observer, Released, Resumed, Satisfied};
use crate::sim::in_order::engine::Engine;
use crate::sim::in_order::ranks::Ranks;
use crate::sim::in_order::release::Touched;
use crate::sim::in_order::waiting::OnRank;
use crate::sim::network::Network;
use crate::sim::outcome::SimError;
use crate::sim::parameters::{Receive, Rendezvous};
use crate::sim::rank::charge::Charges;
use crate::sim::rank::dependencies::{Operations, Reached};
use crate::sim::rank::matching::slots::Found;
use crate::sim::rank::price::Reception;
use crate::sim::rank::rules::{Creator, Letter, Match, Rules};
use crate::sim::rank::{Class, Clock, Units};
use crate::sim::record::Mark;
use crate::sim::records::Records;
use crate::sim::storage::Storage;
use crate::units::Picos;

impl<'m, 'p, N: Noise, O: Observer, W: Network, S: Storage> Rules<'p, N, O, SimError>
    for Engine<'m, 'p, N, O, W, S>
{
    type Ops = Records<'m>;
    type Rank = u32;

    const AT_ONCE: bool = false;

    #[inline]
    fn rank_number(rank: &u32) -> u32 {
        *rank
    }

    #[inline]
    fn ops(&mut self) -> &mut Records<'m> {
        &mut self.ranks.records
    }

    #[inline]
    fn charges(&mut self) -> &mut Charges<'p, N, O> {
        &mut self.charges
    }

    #[inline]
    fn reception(&self) -> Reception {
        Reception { overlap: self.settings.receive == Receive::Overlap, last: W::SHARED }
    }

    #[inline]
    fn clock(&self, rank: &u32, clock: Clock) -> u64 {
        self.ranks.clock_of(*rank, clock)
    }

    #[inline]
    fn set_clock(&mut self, rank: &mut u32, clock: Clock, time: u64) {
        self.ranks.set_clock(*rank, clock, time);
    }

    #[inline]
    fn op_number(&self, op: u32) -> u32 {
        self.storage.number(&self.ranks.records, op)
    }

    /// Operations that become ready are released at the end of the event.
    #[inline]
    fn satisfy(&mut self, rank: &mut u32, op: u32, _by: Creator, reached: Reached) {
        let rank = *rank;
        if S::is_last(self.ranks.records.at(op)) {
            return;
        }
        let on = self.op_number(op);
        let Self { ranks: Ranks { records, .. }, storage, touched, charges, .. } = self;
        let ready = Touched::note(touched, rank);
        let satisfied = |op, end| {
            charges.observer.observe(Observed::Satisfied(&Satisfied { rank, op, on, end }));
        };
        storage.satisfy(records, OnRank { rank, op }, reached, ready, satisfied);
    }

    #[inline]
    fn take_message(&mut self, rank: &mut u32, receive: u32) -> Option<u32> {
        let Ranks { records, states, waiting, .. } = &mut self.ranks;
        let receive = records.envelope(receive);
        waiting.take_message(records, *rank, states.at_mut(*rank), receive)
    }

    #[inline]
    fn post(&mut self, rank: &mut u32, receive: u32) {
        let Ranks { records, states, waiting, .. } = &mut self.ranks;
        let on = OnRank { rank: *rank, op: receive };
        waiting.post(records, on, states.at_mut(*rank));
    }

    #[inline]
    fn take_posted(&mut self, rank: &mut u32, found: Found) {
        if self.ranks.records.at(found.op).is(Mark::Claimed) {
            self.ranks.dispossess(*rank, found.op);
        }
        let Ranks { records, states, waiting, .. } = &mut self.ranks;
        waiting.take_posted(records, states.at_mut(*rank), found);
    }

    #[inline]
    fn await_receive(&mut self, rank: &mut u32, message: &Letter) {
        let Ranks { records, states, waiting, .. } = &mut self.ranks;
        let on = OnRank { rank: *rank, op: message.send };
        waiting.await_receive(records, on, states.at_mut(*rank));
    }

    fn answer(&mut self, rank: &mut u32, pair: &Match, _creator: Creator) -> Result<(), SimError> {
        self.ranks.records.at_mut(pair.send).tag = pair.receive;
        self.depart(*rank, pair.send, MessageKind::Cts)
    }

    fn resume(&mut self, rank: &mut u32, cts: u32, _: u64, _: u64) -> Result<(), SimError> {
        self.depart(*rank, cts, MessageKind::Data)
    }

    /// Ends a send above the eager limit under [`Rendezvous::Instant`]: at the instant of the
    /// match, or when its processor has finished with it, whichever is later.
    #[inline]
    fn release_sender(&mut self, receiver: &mut u32, pair: &Match) -> Result<(), SimError> {
        if self.settings.rendezvous != Rendezvous::Instant {
            return Ok(());
        }
        let (op, now) = (pair.send, pair.time);
        let record = *self.ranks.records.at(op);
        let (mut rank, Units { cpu, nic }) = (record.peer, self.ranks.records.units_of(op));
        let price = self.charges.prices.between(rank, *receiver, record.amount)?;
        if !price.costs.rendezvous {
            return Ok(());
        }
        let (sent, length) = (Picos(record.created), Picos(price.costs.overhead));
        let noise = self.charges.noise.lost(rank, sent, length).0;
        let end = price.sent(record.created, noise)?;
        for clock in [Clock::Cpu(cpu), Clock::Out(nic)] {
            self.ranks.set_clock(rank, clock, self.ranks.clock_of(rank, clock).max(now));
        }
        let (number, time) = (self.op_number(op), Picos(now));
        let resumed = Resumed { rank, op: number, cpu, nic, time };
        self.charges.observer.observe(Observed::Resumed(&resumed));
        self.satisfy(&mut rank, op, Creator::Op(op), Reached::end(end.max(now)));
        Touched::note(&mut self.touched, rank);
        Ok(())
    }

    #[inline]
    fn note_done(&mut self, rank: &u32, time: u64) {
        if let Some(done) = self.ranks.done.get_mut(*rank as usize) {
            *done = (*done).max(time);
        }
    }

    #[inline]
    fn retire(&mut self, op: u32) {
        self.storage.retire(&mut self.ranks.records, op);
    }
}

impl<N: Noise, O: Observer, W: Network, S: Storage> Engine<'_, '_, N, O, W, S> {
    /// Queues the next message of a handshake to leave from `rank`.
    fn depart(&mut self, rank: u32, op: u32, message_kind: MessageKind) -> Result<(), SimError> {
        let seq = self.draw()?;
        self.ranks.records.at_mut(op).set_message_kind(message_kind);
        self.ranks.records.stamp(op, self.ranks.now, seq);
        let (number, cpu) = (self.op_number(op), self.ranks.records.units(op).cpu);
        let released = Released { rank, op: number, cpu };
        self.charges.observer.observe(Observed::Released(&released));
        self.ranks.enlist(rank, Class::Sends, op);
        Ok(())
    }
}
