//! Selection and execution of a rank's next event.

use core::cmp::Ordering;

use super::incoming;
use super::mail::{END, Mail, Outbox};
use super::partition::Partition;
use super::rank::{Active, WindowRank};
use super::shared::Element;
use crate::sim::hooks::{MessageKind, Noise, Observer};
use crate::sim::parameters::Receive;
use crate::sim::queues::chain::Chain;
use crate::sim::rank::dependencies::Operations;
use crate::sim::rank::matching::Envelope;
use crate::sim::rank::rules::{Letter, Rules};
use crate::sim::rank::{Class, Units};
use crate::sim::record::NONE;
use crate::units::Overflow;

/// Contiguous slots that can be inspected in the time of one history step.
const SLOTS_OF_STEP: u64 = 32;

/// The next event of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) time: u64,
    /// [`Class::Arrived`] are messages of earlier windows; with overlap, all messages that the
    /// interface has not taken.
    pub(super) class: Class,
    /// Preceding record in its list, or position in the mail.
    pub(super) before: u32,
    /// Operation, or send of the message.
    pub(super) op: u32,
}

impl Next {
    /// Operation or message of the event.
    pub(super) const fn element(&self) -> Element {
        match self.class {
            Class::Sends | Class::Receives | Class::Calcs => Element::Op(self.op),
            Class::Arrived | Class::Taken | Class::Mailed => Element::Message(self.op),
        }
    }
}

impl<N: Noise, O: Observer> Partition<'_, N, O> {
    /// The next event of a rank. Called once for each event; 2% slower when not inlined.
    #[allow(clippy::inline_always, reason = "measured")]
    #[inline(always)]
    pub(super) fn next_of(&mut self, rank: &mut Active, inbox: &Mail<'_>) -> Option<Next> {
        if self.overlap {
            return self.next_overlapping(rank);
        }
        let state = &rank.state;
        let mut best = None;
        if state.waiting != NONE {
            best = self.next_waiting(rank);
        } else if let Some(letter) = inbox.message(state.incoming) {
            let arrival = letter.created.get().saturating_add(self.wheel.width.get());
            best = Some(Next {
                time: state.free.begin(Class::Arrived, Receive::Hold).max(arrival),
                class: Class::Mailed,
                before: state.incoming,
                op: letter.send.get(),
            });
        }
        let free = |class| state.free.begin(class, Receive::Hold);
        let classes = [
            (Class::Sends, state.sends, free(Class::Sends)),
            (Class::Receives, state.receives, free(Class::Receives)),
            (Class::Calcs, state.calcs, free(Class::Calcs)),
        ];
        for (class, before, free) in classes {
            if before == NONE {
                continue;
            }
            let op = self.shared.at(before).link.get();
            let time = if class == Class::Receives { self.shared.at(op).time.get() } else { free };
            let next = Next { time, class, before, op };
            if best.is_none_or(|best| self.comes_before(&next, &best)) {
                best = Some(next);
            }
        }
        best
    }

    /// Next message of earlier windows: of those that can be handled first, the oldest.
    #[inline]
    fn next_waiting(&self, rank: &Active) -> Option<Next> {
        let state = &rank.state;
        let class = Class::Arrived;
        let free = state.free.begin(class, Receive::Hold);
        if !self.several {
            let op = self.shared.at(state.waiting).link.get();
            let arrival = self.shared.at(op).time.get().saturating_add(self.wheel.width.get());
            let time = free.max(arrival);
            return Some(Next { time, class, before: state.waiting, op });
        }
        let mut best: Option<Next> = None;
        for (before, op) in self.shared.walk(state.waiting) {
            let time = free.max(self.arrival(rank.number, op));
            if best.is_none_or(|best| time < best.time) {
                best = Some(Next { time, class, before, op });
            }
            if time == free {
                break;
            }
        }
        best
    }

    /// True if event `a` of a rank precedes event `b`.
    #[inline]
    pub(super) fn comes_before(&mut self, a: &Next, b: &Next) -> bool {
        if a.time != b.time {
            return a.time < b.time;
        }
        match (a.element(), b.element()) {
            (Element::Op(a), Element::Op(b)) => {
                self.shared.at(a).number() < self.shared.at(b).number()
            }
            (a, b) => self.shared.order(a, b, &mut self.steps) == Ordering::Less,
        }
    }

    /// Executes the next event of `rank`.
    #[inline]
    pub(super) fn execute(
        &mut self,
        rank: &mut Active,
        next: &Next,
        inbox: &Mail<'_>,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Overflow> {
        if self.overlap {
            self.leave_heap(rank, next);
        } else {
            self.leave_list(&mut rank.state, next);
        }
        let &Next { op, time, .. } = next;
        match next.class {
            Class::Sends => self.send(rank, op, time, outbox),
            Class::Receives => self.receive(rank, op, time),
            Class::Calcs => {
                self.calculate(rank, op, time)?;
                self.shared.at(op).time.set(time);
                Ok(())
            }
            Class::Mailed => {
                let Some(message) = inbox.message(next.before) else {
                    debug_assert!(false, "it was in the mail just now");
                    return Ok(());
                };
                rank.state.incoming = message.link.get();
                let message = message.read();
                // `answer` reads the CTS from this record.
                if self.shared.message_kind(op) == MessageKind::Rts {
                    self.shared.at(op).keep(message.source, message.size);
                }
                self.receive_message(rank, &message, time)
            }
            Class::Arrived if self.overlap => {
                self.take(rank, &self.shared.kept(op), 0, time)?;
                self.await_processor(rank, op);
                Ok(())
            }
            Class::Arrived | Class::Taken => {
                self.receive_message(rank, &self.shared.kept(op), time)
            }
        }
    }

    /// Removes the record of an event from its list.
    #[inline]
    fn leave_list(&mut self, state: &mut WindowRank, next: &Next) {
        let last = match next.class {
            Class::Sends => &mut state.sends,
            Class::Receives => &mut state.receives,
            Class::Calcs => &mut state.calcs,
            Class::Mailed => return,
            Class::Arrived | Class::Taken => &mut state.waiting,
        };
        self.shared.remove(last, next.before, next.op);
    }

    /// Sends the message of a send, or a CTS or data message.
    #[inline]
    fn send(
        &mut self,
        rank: &mut Active,
        op: u32,
        now: u64,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Overflow> {
        let size = self.shared.amount(op);
        self.leave(rank, op, now)?;
        self.events += 1;
        let record = self.shared.at(op);
        record.time.set(now);
        let (target, tag) = (record.peer.get(), record.tag.get());
        let letter = Letter { created: now, send: op, source: rank.number, tag, size };
        if self.is_away(target) {
            self.send_away(target, &letter, outbox);
            return Ok(());
        }
        let chain = self.chain_of(target);
        if let Some(place) = outbox.send(chain) {
            place.write(target, &letter);
            return Ok(());
        }
        // The rank of the send does not use its record any more.
        let record = self.shared.at(op);
        record.keep(target, size);
        if matches!(self.shared.message_kind(op), MessageKind::Cts | MessageKind::Data) {
            self.shared.handshake(op).link.set(rank.number);
        }
        record.link.set(outbox.spill(chain, op).unwrap_or(END));
        Ok(())
    }

    /// The processor handles a message; a CTS or data message needs no posted receive.
    #[inline]
    fn receive_message(
        &mut self,
        rank: &mut Active,
        message: &Letter,
        now: u64,
    ) -> Result<(), Overflow> {
        let message_kind = self.shared.message_kind(message.send);
        let found = if matches!(message_kind, MessageKind::Whole | MessageKind::Rts) {
            let posted = rank.state.posted;
            let envelope = Envelope { sender: message.source, tag: message.tag };
            let found = self.slots.find(&self.shared, posted, envelope);
            self.steps += u64::from(posted.looked_at(found)) / SLOTS_OF_STEP;
            found
        } else {
            None
        };
        self.handle(rank, message, found, Units::default(), now)
    }

    /// Stores the unhandled messages of the mail, for later windows.
    pub(super) fn keep(&mut self, rank: &mut Active, inbox: &Mail<'_>) {
        while let Some(message) = inbox.message(rank.state.incoming) {
            let letter = message.read();
            rank.state.incoming = message.link.get();
            self.shared.at(letter.send).keep(letter.source, letter.size);
            self.await_handling(rank, letter.send);
        }
        rank.state.incoming = END;
    }

    /// Queues a message for handling; called in the order of stamps.
    #[inline]
    fn await_handling(&mut self, rank: &mut Active, send: u32) {
        if self.overlap {
            self.await_interface(rank, send);
        } else {
            self.shared.push(&mut rank.state.waiting, send);
        }
    }

    /// Queues the messages that did not fit in the mail, together with those that did.
    #[cold]
    pub(super) fn keep_spilled(&mut self, rank: &mut Active, inbox: &Mail<'_>) {
        while let Some(message) = inbox.message(rank.state.incoming) {
            let letter = message.read();
            rank.state.incoming = message.link.get();
            let record = self.shared.at(letter.send);
            record.keep(letter.source, letter.size);
            record.link.set(core::mem::replace(&mut rank.state.spilled, letter.send));
        }
        let first = core::mem::replace(&mut rank.state.spilled, END);
        let mut next = incoming::sort_kept(&mut self.shared, first, &mut self.steps);
        while next != END {
            let send = next;
            next = self.shared.at(send).link.get();
            self.await_handling(rank, send);
        }
    }
}
