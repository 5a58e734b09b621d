//! Operations: calculations, sends, receives.

use super::chain::Chain;
use super::charge;
use super::clocks::Clock;
use super::engine::{Engine, SimError};
use super::event::{Candidate, From};
use super::hooks::{Begun, Calculated, Matched, MessageKind, Noise, Observer, Sent, Turn};
use super::network::{Departure, Network};
use super::parameters::Rendezvous;
use super::price::{Leaving, Price};
use super::rank::Class;
use super::record::Successors;
use super::release::Reached;
use crate::units::Picos;

impl Class {
    const fn turn(self) -> Turn {
        match self {
            Self::Calcs => Turn::Calculation,
            Self::Sends => Turn::Send,
            Self::Receives => Turn::Receive,
            Self::Arrived | Self::Taken => Turn::Message,
        }
    }
}

impl<N: Noise, O: Observer, W: Network> Engine<'_, '_, N, O, W> {
    /// Executes the next event of `rank`, whose time has come.
    #[inline]
    pub(super) fn execute(&mut self, rank: u32, next: Candidate) -> Result<(), SimError> {
        match next.from {
            From::List { before } => {
                let state = self.ranks.at_mut(rank);
                self.records.remove(state.list_mut(next.class), before, next.at);
            }
            _ => self.leave(rank, &next),
        }
        let (op, turn, time) = (next.at, next.class.turn(), Picos(self.now));
        self.observer.begun(&Begun { rank, op, turn, time });
        match next.class {
            Class::Calcs => self.calculate(rank, next.at)?,
            Class::Sends => self.send(rank, next.at)?,
            Class::Receives => self.receive(rank, next.at)?,
            Class::Arrived | Class::Taken => self.message(rank, next)?,
        }
        self.release()?;
        self.changed(rank);
        Ok(())
    }

    fn calculate(&mut self, rank: u32, op: u32) -> Result<(), SimError> {
        let now = self.now;
        let record = *self.records.at(op);
        let (start, work) = (Picos(now), Picos(record.amount));
        let cpu = record.cpu();
        let told = Calculated { rank, op, cpu, start, work, ..Calculated::default() };
        let end = charge::calculate(&self.noise, &mut self.observer, told)?;
        *self.clock_mut(rank, Clock::Cpu(record.cpu())) = end;
        self.satisfy(rank, op, Reached { start: Some(now), end: Some(end) });
        Ok(())
    }

    /// A send, or a later message of a handshake, leaves.
    fn send(&mut self, rank: u32, op: u32) -> Result<(), SimError> {
        let now = self.now;
        let record = *self.records.at(op);
        match record.part() {
            MessageKind::Whole | MessageKind::Rts => {
                let price = *self.prices.between(rank, record.peer, record.amount)?;
                let rendezvous = price.costs.rendezvous;
                let handshake = rendezvous && self.settings.rendezvous == Rendezvous::Handshake;
                self.satisfy(rank, op, Reached::start(now));
                if handshake {
                    self.records.at_mut(op).set_part(MessageKind::Rts);
                    let price = *self.prices.between(rank, record.peer, 1)?;
                    self.transmit(rank, (op, op), &price)?;
                    return Ok(());
                }
                let end = self.transmit(rank, (op, op), &price)?;
                if !rendezvous {
                    self.satisfy(rank, op, Reached::end(end));
                    self.records.at_mut(op).set_successors(Successors::None, rank);
                }
            }
            MessageKind::Cts => {
                let price = *self.prices.between(rank, record.peer, 1)?;
                self.transmit(rank, (op, record.tag), &price)?;
            }
            MessageKind::Data => {
                let price = *self.prices.between(rank, record.peer, record.amount)?;
                let end = self.transmit(rank, (op, op), &price)?;
                self.satisfy(rank, op, Reached::end(end));
            }
        }
        Ok(())
    }

    /// Charges the message of `op` to the processor and interface of `at`,
    /// which are free, and puts it on its way. Returns when the processor is
    /// done.
    fn transmit(
        &mut self,
        rank: u32,
        (op, at): (u32, u32),
        price: &Price,
    ) -> Result<u64, SimError> {
        let now = self.now;
        let (cpu, nic) = (self.records.at(at).cpu(), self.records.at(at).nic());
        let record = self.records.at(op);
        let (target, part) = (record.peer, record.part());
        let told = Sent {
            rank,
            to: target,
            op,
            part,
            cpu,
            nic,
            size: part.bytes(record.amount),
            tag: record.tag,
            start: Picos(now),
            ..Sent::default()
        };
        let Leaving { cpu: end, out, .. } =
            charge::send(price, &self.noise, &mut self.observer, told)?;
        *self.clock_mut(rank, Clock::Cpu(cpu)) = end;
        *self.clock_mut(rank, Clock::Out(nic)) = out;
        let seq = self.draw()?;
        let record = self.records.at_mut(op);
        record.created = now;
        record.seq = seq;
        if W::SHARED {
            let departure = Departure {
                op,
                source: rank,
                target,
                now,
                seq,
                bytes: told.size,
                volume: price.costs.gap_bytes,
                delay: price.delay()?,
            };
            self.network.launch(&departure)?;
        } else {
            self.launch(op, price.costs.protocol);
        }
        Ok(end)
    }

    /// A receive is posted, or finds its message.
    fn receive(&mut self, rank: u32, op: u32) -> Result<(), SimError> {
        let now = self.now;
        self.satisfy(rank, op, Reached::start(now));
        let receive = *self.records.at(op);
        let state = self.ranks.at_mut(rank);
        let Some(message) = self.waiting.meet(&mut self.records, state, &receive) else {
            self.waiting.post(&mut self.records, state, op);
            return Ok(());
        };
        let end = self.records.time_of(message);
        self.observer.matched(&Matched {
            rank,
            send: message,
            receive: op,
            time: Picos(now),
            unexpected: true,
        });
        self.meet(rank, op, message, end)
    }
}
