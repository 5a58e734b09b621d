//! What a rank does next, and the doing of it.

use core::cmp::Ordering;

use super::incoming;
use super::mail::{END, Letter, Mail, Outbox};
use super::matching;
use super::partition::Partition;
use super::rank::WindowRank;
use super::record::{BY_ARRIVAL, BY_MATCH};
use super::shared::Element;
use crate::sim::chain::Chain;
use crate::sim::charge;
use crate::sim::hooks::{Calculated, Handled, Matched, MessageKind, Noise, Observer, Sent, Turn};
use crate::sim::price::{Handling, Leaving};
use crate::sim::record::NONE;
use crate::sim::release::Reached;
use crate::units::{Overflow, Picos};

/// The list that something waits in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Class {
    Sends,
    Receives,
    Calcs,
    /// Messages that came in earlier windows, or that the interface takes
    /// before the processor handles them.
    Waiting,
    /// Messages that the interface has taken.
    Taken,
    /// Messages in the mail.
    Incoming,
}

impl Class {
    pub(super) const fn turn(self) -> Turn {
        match self {
            Self::Calcs => Turn::Calculation,
            Self::Sends => Turn::Send,
            Self::Receives => Turn::Receive,
            Self::Waiting | Self::Taken | Self::Incoming => Turn::Message,
        }
    }
}

/// The next event of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) time: u64,
    pub(super) class: Class,
    /// The record before it in its list; of an incoming message its place in
    /// the mail.
    pub(super) before: u32,
    /// The operation, or the send of the message.
    pub(super) op: u32,
}

impl Next {
    /// What happens.
    pub(super) const fn element(&self) -> Element {
        match self.class {
            Class::Sends | Class::Receives | Class::Calcs => Element::Op(self.op),
            Class::Waiting | Class::Taken | Class::Incoming => Element::Message(self.op),
        }
    }
}

impl<N: Noise, O: Observer> Partition<'_, N, O> {
    /// The next event of a rank. Asked for once an event, and out of line by
    /// itself 2% slower.
    #[allow(clippy::inline_always, reason = "measured")]
    #[inline(always)]
    pub(super) fn next_of(
        &mut self,
        (rank, state): (u32, &mut WindowRank),
        inbox: &Mail<'_>,
    ) -> Option<Next> {
        if self.overlap {
            return self.next_overlapping((rank, state));
        }
        let mut best = None;
        if state.waiting != NONE {
            best = self.next_waiting((rank, state));
        } else if let Some(letter) = inbox.message(state.incoming) {
            let arrival = letter.created.get().saturating_add(self.wheel.width.get());
            best = Some(Next {
                time: state.cpu.max(state.into).max(arrival),
                class: Class::Incoming,
                before: state.incoming,
                op: letter.send.get(),
            });
        }
        let classes = [
            (Class::Sends, state.sends, state.cpu.max(state.out)),
            (Class::Receives, state.receives, 0),
            (Class::Calcs, state.calcs, state.cpu),
        ];
        for (class, before, time) in classes {
            if before == NONE {
                continue;
            }
            let op = self.shared.at(before).link.get();
            let time = if class == Class::Receives { self.shared.at(op).time.get() } else { time };
            let next = Next { time, class, before, op };
            if best.is_none_or(|best| self.comes_before(&next, &best)) {
                best = Some(next);
            }
        }
        best
    }

    /// The next of the messages that came in earlier windows: the oldest of
    /// those that can be handled first.
    #[inline]
    fn next_waiting(&self, (rank, state): (u32, &WindowRank)) -> Option<Next> {
        let free = state.cpu.max(state.into);
        let class = Class::Waiting;
        if !self.several {
            let op = self.shared.at(state.waiting).link.get();
            let arrival = self.shared.at(op).time.get().saturating_add(self.wheel.width.get());
            return Some(Next { time: free.max(arrival), class, before: state.waiting, op });
        }
        let mut best: Option<Next> = None;
        for (before, op) in self.shared.walk(state.waiting) {
            let record = self.shared.at(op);
            let time = free.max(self.arrival(rank, (op, record.time.get())));
            if best.is_none_or(|best| time < best.time) {
                best = Some(Next { time, class, before, op });
            }
            if time == free {
                break;
            }
        }
        best
    }

    /// Which of two events of a rank comes first.
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
        (rank, state): (u32, &mut WindowRank),
        next: &Next,
        (inbox, outbox): (&Mail<'_>, &mut Outbox<'_>),
    ) -> Result<(), Overflow> {
        if self.overlap {
            self.leave_heap((rank, state), next);
        } else {
            self.leave_list(state, next);
        }
        match next.class {
            Class::Sends => self.send((rank, state), (next.op, next.time), outbox),
            Class::Receives => {
                self.receive((rank, state), next.op);
                Ok(())
            }
            Class::Calcs => self.calculate((rank, state), (next.op, next.time)),
            Class::Waiting if self.overlap => self.take((rank, state), next),
            Class::Waiting | Class::Taken => {
                let record = self.shared.at(next.op);
                let letter = Letter {
                    created: record.time.get(),
                    send: next.op,
                    source: record.peer.get(),
                    target: rank,
                    tag: record.tag.get(),
                    size: record.next.get(),
                };
                self.handle((rank, state), &letter, next)
            }
            Class::Incoming => {
                let Some(message) = inbox.message(next.before) else {
                    debug_assert!(false, "it was in the mail just now");
                    return Ok(());
                };
                state.incoming = message.link.get();
                self.handle((rank, state), &message.read(), next)
            }
        }
    }

    /// Takes what an event is about out of its list.
    #[inline]
    fn leave_list(&mut self, state: &mut WindowRank, next: &Next) {
        let last = match next.class {
            Class::Sends => &mut state.sends,
            Class::Receives => &mut state.receives,
            Class::Calcs => &mut state.calcs,
            Class::Waiting | Class::Taken => &mut state.waiting,
            Class::Incoming => return,
        };
        self.shared.remove(last, next.before, next.op);
    }

    fn calculate(
        &mut self,
        (rank, state): (u32, &mut WindowRank),
        (op, now): (u32, u64),
    ) -> Result<(), Overflow> {
        let record = self.shared.at(op);
        let (start, work) = (Picos(now), Picos(record.time.get()));
        let told = Calculated { rank, op, start, work, ..Calculated::default() };
        state.cpu = charge::calculate(&self.noise, &mut self.observer, told)?;
        self.shared.at(op).time.set(now);
        let reached = Reached { start: Some(now), end: Some(state.cpu) };
        self.satisfy((rank, state), (op, op), reached);
        Ok(())
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the builder refuses longer messages")]
    fn send(
        &mut self,
        (rank, state): (u32, &mut WindowRank),
        (op, now): (u32, u64),
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Overflow> {
        let part = self.shared.part(op);
        let record = self.shared.at(op);
        // That of an RTS says where its other records are.
        let size = record.time.get();
        let priced = if part == MessageKind::Rts { 1 } else { size };
        let price = self.prices.between(rank, record.peer.get(), priced)?;
        if part == MessageKind::Data {
            record.tag.set(self.shared.handshake(op).met().0);
        }
        let (target, tag) = (record.peer.get(), record.tag.get());
        let told = Sent {
            rank,
            to: target,
            op: self.shared.send_of(op),
            part,
            size: priced,
            tag,
            start: Picos(now),
            ..Sent::default()
        };
        let Leaving { cpu, out, .. } = charge::send(price, &self.noise, &mut self.observer, told)?;
        (state.cpu, state.out) = (cpu, out);
        record.time.set(now);
        let letter =
            Letter { created: now, send: op, source: rank, target, tag, size: size as u32 };
        let place = outbox.send(target >> self.shift);
        if let Some(place) = place {
            place.write(&letter);
        }
        self.events += 1;
        let start = (part != MessageKind::Data).then_some(now);
        let end = (part != MessageKind::Rts).then_some(state.cpu);
        self.satisfy((rank, state), (op, op), Reached { start, end });
        if place.is_none() {
            // The record is of no further use to its own rank.
            let record = self.shared.at(op);
            record.keep(target, letter.size);
            if matches!(part, MessageKind::Cts | MessageKind::Data) {
                self.shared.handshake(op).link.set(rank);
            }
            record.link.set(outbox.spill(target >> self.shift, op).unwrap_or(END));
        }
        Ok(())
    }

    /// A receive is posted, or finds its message.
    fn receive(&mut self, (rank, state): (u32, &mut WindowRank), op: u32) {
        let receive = self.shared.at(op);
        let found = if state.unexpected == NONE {
            None
        } else {
            matching::unexpected(&self.shared, state, receive, &mut self.steps)
        };
        let now = receive.time.get();
        let mut reached = Reached::start(now);
        if let Some((before, send)) = found {
            self.shared.remove(&mut state.unexpected, before, send);
            let end = self.shared.time_of(send);
            let time = Picos(now);
            self.note_match(Matched { rank, send, receive: op, time, unexpected: true });
            if self.shared.part(send) == MessageKind::Rts {
                self.answer((rank, state), (send, op), (op, now));
            } else {
                reached.end = Some(now.max(end));
                self.note_done(rank, end);
            }
        } else {
            self.slots.post(&self.shared, state, op);
        }
        self.satisfy((rank, state), (op, op), reached);
    }

    /// The processor handles a message.
    #[inline]
    fn handle(
        &mut self,
        (rank, state): (u32, &mut WindowRank),
        letter: &Letter,
        next: &Next,
    ) -> Result<(), Overflow> {
        let now = next.time;
        let part = self.shared.part(letter.send);
        let size = if part == MessageKind::Rts { 1 } else { letter.size.into() };
        let price = self.prices.between(rank, letter.source, size)?;
        let noise = self.noise.lost(rank, Picos(now), Picos(price.costs.receive_overhead)).0;
        let mut taken = now;
        let handling = if self.overlap {
            taken = self.shared.time_of(letter.send);
            price.handle_taken(now, taken, noise)?
        } else {
            state.into = price.take(now)?;
            price.handle(now, noise)?
        };
        let Handling { cpu, done, .. } = handling;
        state.cpu = cpu;
        let told = Handled {
            rank,
            from: letter.source,
            op: self.shared.send_of(letter.send),
            part,
            sent: Picos(letter.created),
            taken: Picos(taken),
            start: Picos(now),
            noise: Picos(noise),
            ..Handled::default()
        };
        charge::note_handled(price, &mut self.observer, handling, told);
        self.shared.set_time_of(letter.send, done);
        let receive = match part {
            MessageKind::Cts => {
                self.resume((rank, state), letter.send, (now, done));
                return Ok(());
            }
            // It has been found before.
            MessageKind::Data => Some(letter.tag),
            MessageKind::Whole | MessageKind::Rts => {
                let from = (letter.source, letter.tag);
                self.slots.take(&self.shared, state, from, &mut self.steps)
            }
        };
        if next.class == Class::Incoming && (receive.is_none() || part == MessageKind::Rts) {
            self.shared.at(letter.send).keep(letter.source, letter.size);
        }
        if let Some(receive) = receive {
            let (send, time) = (letter.send, Picos(now));
            self.note_match(Matched { rank, send, receive, time, unexpected: false });
            if part == MessageKind::Rts {
                self.answer((rank, state), (letter.send, receive), (letter.send | BY_ARRIVAL, now));
                return Ok(());
            }
            self.note_done(rank, done);
            self.satisfy((rank, state), (receive, receive | BY_MATCH), Reached::end(done));
            self.shared.at(receive).meet(letter.send, now);
            return Ok(());
        }
        self.shared.push(&mut state.unexpected, letter.send);
        Ok(())
    }

    /// Tells that a message and a receive have met.
    #[inline]
    fn note_match(&mut self, matched: Matched) {
        let send = self.shared.send_of(matched.send);
        self.observer.matched(&Matched { send, ..matched });
    }

    /// Notes that a message for a receive of `rank` was all there at `time`.
    #[inline]
    fn note_done(&mut self, rank: u32, time: u64) {
        if let Some(receiving) = self.receiving.get_mut(rank.wrapping_sub(self.first) as usize) {
            receiving.done = receiving.done.max(time);
        }
    }

    /// Keeps what has not been handled of the mail beyond the window.
    pub(super) fn keep(&mut self, (rank, state): (u32, &mut WindowRank), inbox: &Mail<'_>) {
        while let Some(message) = inbox.message(state.incoming) {
            let letter = message.read();
            state.incoming = message.link.get();
            self.shared.at(letter.send).keep(letter.source, letter.size);
            self.await_handling((rank, &mut *state), letter.send);
        }
        state.incoming = END;
    }

    /// Takes a message among those that wait; they come in the order of their
    /// stamps.
    #[inline]
    fn await_handling(&mut self, (rank, state): (u32, &mut WindowRank), send: u32) {
        if self.overlap {
            self.await_interface((rank, state), send);
        } else {
            self.shared.push(&mut state.waiting, send);
        }
    }

    /// Takes the messages that found no room in the mail among those that
    /// wait, and all others that came with them.
    #[cold]
    pub(super) fn keep_spilled(&mut self, (rank, state): (u32, &mut WindowRank), inbox: &Mail<'_>) {
        while let Some(message) = inbox.message(state.incoming) {
            let letter = message.read();
            state.incoming = message.link.get();
            let record = self.shared.at(letter.send);
            record.keep(letter.source, letter.size);
            record.link.set(core::mem::replace(&mut state.spilled, letter.send));
        }
        let first = core::mem::replace(&mut state.spilled, END);
        let mut next = incoming::sort_kept(&mut self.shared, first, &mut self.steps);
        while next != END {
            let send = next;
            next = self.shared.at(send).link.get();
            self.await_handling((rank, &mut *state), send);
        }
    }
}
