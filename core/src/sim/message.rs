//! Messages: arrival, handling, meeting their receives.

use super::charge;
use super::engine::{Engine, SimError};
use super::event::Candidate;
use super::hooks::{
    Arrived, Handled, Matched, MessageKind, Noise, Observer, Released, Resumed, Taken,
};
use super::matching::Found;
use super::network::Network;
use super::operation::cpu_index;
use super::parameters::{Receive, Rendezvous};
use super::price::{Handling, Price};
use super::rank::Class;
use super::record::{NONE, Successors};
use super::records::owner;
use super::release::Reached;
use crate::units::Picos;

impl<N: Noise, O: Observer, W: Network> Engine<'_, '_, N, O, W> {
    /// A message is there: it joins those that wait on its rank.
    pub(super) fn arrive(&mut self, op: u32) -> u32 {
        let record = *self.records.at(op);
        let rank = record.peer;
        let source = match record.part() {
            MessageKind::Cts => owner(self.firsts, record.tag),
            // An eager send that has left.
            _ if record.successors() == Successors::None && record.next != NONE => record.next,
            _ => owner(self.firsts, op),
        };
        self.records.at_mut(op).peer = source;
        if W::SHARED {
            let (time, whole) = (Picos(self.now), W::CHARGES);
            self.observer.arrived(&Arrived { rank, op, time, whole });
        }
        self.wait(rank, Class::Arrived, (op, self.now), None);
        rank
    }

    /// Puts a message among those that wait, to try again at `time`, or when
    /// what the receive that it claims names is free. An interface that takes
    /// messages by itself leaves their receives to others: no claim then.
    fn wait(&mut self, rank: u32, class: Class, (op, time): (u32, u64), receive: Option<u32>) {
        if let Some(next) = self.next_attempts.get_mut(op as usize) {
            *next = time;
        }
        let by_interface = class == Class::Arrived && self.settings.receive == Receive::Overlap;
        if let Some(receive) = receive
            && !by_interface
        {
            self.claim(rank, op, receive);
        }
        if self.single {
            let state = self.ranks.at_mut(rank);
            self.records.insert(state.list_mut(class), op);
        } else {
            self.await_turn(rank, class, op);
        }
    }

    /// The interface takes a message, or the processor handles it.
    pub(super) fn message(&mut self, rank: u32, next: Candidate) -> Result<(), SimError> {
        let op = next.at;
        self.disclaim(op);
        let record = *self.records.at(op);
        let partner = match record.part() {
            MessageKind::Whole | MessageKind::Rts => {
                let envelope = (record.peer, record.tag);
                self.waiting.posted(&mut self.records, self.ranks.at(rank), envelope)
            }
            MessageKind::Cts | MessageKind::Data => None,
        };
        let place = match record.part() {
            MessageKind::Data => record.tag,
            _ => partner.map_or(op, |found| found.op),
        };
        let free = self.free_to_receive(rank, next.class, self.records.at(place));
        let receive = partner.map(|found| found.op);
        if free > self.now {
            debug_assert!(!self.single, "its turn had come");
            self.wait(rank, next.class, (op, free), receive);
            return Ok(());
        }
        let size = record.part().bytes(record.amount);
        let price = *self.prices.between(rank, record.peer, size)?;
        if next.class == Class::Arrived && self.settings.receive == Receive::Overlap {
            self.take(rank, (op, place), &price)?;
            self.wait(rank, Class::Taken, (op, self.now), receive);
            return Ok(());
        }
        let end = self.handle(rank, (op, place), &price)?;
        match (record.part(), partner) {
            (MessageKind::Cts, _) => self.depart(rank, op, MessageKind::Data),
            (MessageKind::Data, _) => {
                self.note_match(rank, op, record.tag);
                self.meet(rank, record.tag, op, end)
            }
            (_, Some(found)) => self.matched(rank, (op, end), found),
            (_, None) => {
                let state = self.ranks.at_mut(rank);
                self.waiting.wait(&mut self.records, state, op);
                Ok(())
            }
        }
    }

    /// Overlap: the interface takes the message; the processor may be busy.
    fn take(&mut self, rank: u32, (op, place): (u32, u32), price: &Price) -> Result<(), SimError> {
        let nic = self.records.at(place).nic();
        let free = if W::CHARGES { price.take_last(self.now)? } else { price.take(self.now)? };
        *self.arrivals_mut(rank, nic) = free;
        self.records.set_time(op, self.now);
        self.observer.taken(&Taken { rank, op, nic: cpu_index(nic), time: Picos(self.now) });
        Ok(())
    }

    /// Charges a message to the processor, and unless it is there already to
    /// the interface, of `place`. Returns when all of it is there and
    /// handled.
    fn handle(
        &mut self,
        rank: u32,
        (op, place): (u32, u32),
        price: &Price,
    ) -> Result<u64, SimError> {
        let (cpu, nic) = (self.records.at(place).cpu(), self.records.at(place).nic());
        let overlap = self.settings.receive == Receive::Overlap;
        let mut taken = if overlap { self.records.time_of(op) } else { self.now };
        // One that had to wait for its processor is there already.
        let start = if W::CHARGES && taken == self.now {
            price.begin_last(self.cpu(rank, cpu), taken)
        } else {
            self.now
        };
        let noise = self.noise.lost(rank, Picos(start), Picos(price.costs.receive_overhead)).0;
        if !overlap {
            let free = if W::CHARGES { price.take_last(taken)? } else { price.take(taken)? };
            *self.arrivals_mut(rank, nic) = free;
        }
        let handling = match (W::CHARGES, overlap) {
            (false, false) => price.handle(start, noise)?,
            (false, true) => price.handle_taken(start, taken, noise)?,
            (true, false) => price.handle_last(start, taken, noise)?,
            (true, true) => price.handle_taken_last(start, taken, noise)?,
        };
        if W::CHARGES {
            // Observers are told of first bytes.
            taken = price.begin_last(0, taken).min(start);
        }
        let Handling { cpu: released, done, .. } = handling;
        *self.cpu_mut(rank, cpu) = released;
        self.records.set_time(op, done);
        let message = self.records.at(op);
        let told = Handled {
            rank,
            op,
            from: message.peer,
            part: message.part(),
            sent: Picos(message.created),
            cpu: cpu_index(cpu),
            nic: cpu_index(nic),
            taken: Picos(taken),
            start: Picos(start),
            noise: Picos(noise),
            ..Handled::default()
        };
        charge::note_handled(price, &mut self.observer, handling, told);
        Ok(done)
    }

    fn matched(
        &mut self,
        rank: u32,
        (message, end): (u32, u64),
        found: Found,
    ) -> Result<(), SimError> {
        if self.records.at(found.op).is_claimed() {
            self.dispossess(rank, found.op);
        }
        let state = self.ranks.at_mut(rank);
        self.waiting.take(&mut self.records, state, found);
        self.note_match(rank, message, found.op);
        self.meet(rank, found.op, message, end)
    }

    fn note_match(&mut self, rank: u32, send: u32, receive: u32) {
        let time = Picos(self.now);
        self.observer.matched(&Matched { rank, send, receive, time, unexpected: false });
    }

    /// A receive and a handled message, which was all there at `end`, have
    /// met.
    pub(super) fn meet(
        &mut self,
        rank: u32,
        receive: u32,
        message: u32,
        end: u64,
    ) -> Result<(), SimError> {
        let record = *self.records.at(message);
        let now = self.now;
        if record.part() == MessageKind::Rts {
            self.records.at_mut(message).tag = receive;
            return self.depart(rank, message, MessageKind::Cts);
        }
        if record.part() == MessageKind::Whole
            && self.settings.rendezvous == Rendezvous::Instant
            && self.prices.between(rank, record.peer, record.amount)?.costs.rendezvous
        {
            self.release_sender(rank, message)?;
        }
        if let Some(done) = self.done.get_mut(rank as usize) {
            *done = (*done).max(end);
        }
        self.satisfy(rank, receive, Reached::end(end.max(now)));
        Ok(())
    }

    /// The send of `message` to `receiver` is done at the instant of its match, not
    /// before its processor is done with it.
    fn release_sender(&mut self, receiver: u32, message: u32) -> Result<(), SimError> {
        let now = self.now;
        let record = *self.records.at(message);
        let sender = record.peer;
        let price = self.prices.between(sender, receiver, record.amount)?;
        let (sent, length) = (Picos(record.created), Picos(price.costs.overhead));
        let noise = self.noise.lost(sender, sent, length).0;
        let end = price.sent(record.created, noise)?;
        let cpu = self.cpu_mut(sender, record.cpu());
        *cpu = (*cpu).max(now);
        let out = self.out_mut(sender, record.nic());
        *out = (*out).max(now);
        self.observer.resumed(&Resumed {
            rank: sender,
            op: message,
            cpu: cpu_index(record.cpu()),
            nic: cpu_index(record.nic()),
            time: Picos(now),
        });
        self.satisfy(sender, message, Reached::end(end.max(now)));
        self.changed(sender);
        Ok(())
    }

    /// Lets the next message of a handshake wait to leave from `rank`.
    fn depart(&mut self, rank: u32, op: u32, part: MessageKind) -> Result<(), SimError> {
        let seq = self.draw()?;
        let now = self.now;
        let record = self.records.at_mut(op);
        record.set_part(part);
        record.created = now;
        record.seq = seq;
        let at = if part == MessageKind::Cts { record.tag } else { op };
        let cpu = cpu_index(self.records.at(at).cpu());
        self.observer.released(&Released { rank, op, cpu });
        self.enlist(rank, Class::Sends, op);
        Ok(())
    }
}
