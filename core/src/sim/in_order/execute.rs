//! Execution of events in global order, and transport of messages.

use crate::sim::hooks::{Arrived, Begun, MessageKind, Noise, Observed, Observer};
use crate::sim::in_order::engine::Engine;
use crate::sim::in_order::event::Candidate;
use crate::sim::in_order::pending::Attempt;
use crate::sim::in_order::ranks::Ranks;
use crate::sim::network::{Departure, Network};
use crate::sim::outcome::SimError;
use crate::sim::parameters::{Receive, Rendezvous};
use crate::sim::rank::Class;
use crate::sim::rank::price::Leaving;
use crate::sim::rank::rules::{Letter, Rules};
use crate::sim::record::{NONE, Record};
use crate::sim::storage::Storage;
use crate::units::Picos;

impl<N: Noise, O: Observer, W: Network, S: Storage> Engine<'_, '_, N, O, W, S> {
    /// Executes the next event of `rank`, which is due now.
    #[inline]
    pub(super) fn execute(&mut self, mut rank: u32, next: Candidate) -> Result<(), SimError> {
        self.ranks.leave(rank, &next);
        let (op, now) = (next.at, self.ranks.now);
        let turn = next.class.turn();
        let begun = Begun { rank, op: self.op_number(op), turn, time: Picos(now) };
        self.charges.observer.observe(Observed::Begun(&begun));
        match next.class {
            Class::Calcs => {
                self.calculate(&mut rank, op, now)?;
                self.retire(op);
            }
            Class::Sends => self.send(rank, op)?,
            Class::Receives => self.receive(&mut rank, op, now)?,
            Class::Arrived | Class::Taken | Class::Mailed => self.message(rank, next)?,
        }
        Ok(())
    }

    /// Sends the message of a send, or a CTS or data message. A send above the limit starts a
    /// handshake in that mode.
    fn send(&mut self, mut rank: u32, op: u32) -> Result<(), SimError> {
        let record = self.ranks.records.at(op);
        let (peer, amount) = (record.peer, record.amount);
        if record.message_kind() == MessageKind::Whole
            && self.settings.rendezvous == Rendezvous::Handshake
            && self.charges.prices.between(rank, peer, amount)?.costs.rendezvous
        {
            self.ranks.records.at_mut(op).set_message_kind(MessageKind::Rts);
        }
        let leaving = self.leave(&mut rank, op, self.ranks.now)?;
        let record = self.ranks.records.at_mut(op);
        if record.message_kind() == MessageKind::Whole && !leaving.rendezvous {
            S::note_sender(record, rank);
        }
        self.launch(rank, op, &leaving)
    }

    /// Puts a message in flight.
    #[inline]
    fn launch(&mut self, source: u32, op: u32, leaving: &Leaving) -> Result<(), SimError> {
        let (now, seq) = (self.ranks.now, self.draw()?);
        self.ranks.records.stamp(op, now, seq);
        let departure = Departure {
            op,
            source,
            target: self.ranks.records.at(op).peer,
            now,
            seq,
            volume: leaving.volume,
            delay: leaving.arrival - now,
        };
        Ok(self.order.network.launch(&departure, &mut self.ranks.records)?)
    }

    /// Delivers a message, which waits on its rank from now on.
    pub(super) fn arrive(&mut self, op: u32) -> u32 {
        let rank = self.ranks.records.at(op).peer;
        let source = self.storage.sender(&self.ranks.records, self.firsts, op);
        self.ranks.records.at_mut(op).peer = source;
        if W::SHARED {
            let (number, time) = (self.op_number(op), Picos(self.ranks.now));
            let arrived = Arrived { rank, op: number, time };
            self.charges.observer.observe(Observed::Arrived(&arrived));
        }
        self.ranks.wait(rank, op, &Attempt::at(self.ranks.now, Class::Arrived));
        rank
    }

    /// The interface takes a message, or the processor handles it.
    pub(super) fn message(&mut self, mut rank: u32, next: Candidate) -> Result<(), SimError> {
        let (op, now) = (next.at, self.ranks.now);
        let followers = self.ranks.disclaim(op);
        let record = *self.ranks.records.at(op);
        let found = match record.message_kind() {
            MessageKind::Whole | MessageKind::Rts => {
                let message = record.envelope();
                let Ranks { records, states, waiting, .. } = &mut self.ranks;
                waiting.find_posted(records, rank, states.at_mut(rank), message)
            }
            MessageKind::Cts | MessageKind::Data => None,
        };
        let place = match record.message_kind() {
            MessageKind::Data => record.tag,
            _ => found.map_or(op, |found| found.op),
        };
        let units = self.ranks.records.units_of(place);
        let free = self.ranks.free(rank, next.class.needs(units, self.settings.receive));
        let receive = found.map(|found| found.op);
        if free > now {
            debug_assert!(!self.ranks.single, "its turn had come");
            let again = Attempt { receive, followers, ..Attempt::at(free, next.class) };
            self.ranks.wait(rank, op, &again);
            return Ok(());
        }
        let Record { created, peer: source, tag, amount: size, .. } = record;
        let message = Letter { created, send: op, source, tag, size };
        if next.class == Class::Arrived && self.settings.receive == Receive::Overlap {
            self.take(&mut rank, &message, units.nic, now)?;
            self.ranks.wait(rank, op, &Attempt { receive, ..Attempt::at(now, Class::Taken) });
            return Ok(());
        }
        self.handle(&mut rank, &message, found, units, now)?;
        if followers != NONE {
            self.ranks.promote(rank, followers);
        }
        Ok(())
    }
}
