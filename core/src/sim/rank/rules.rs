//! Rules of a rank at an event, as in `docs/simulating.md`, for stored schedules: shared by the
//! driver in global order and the one in windows.

use crate::sim::hooks::{
    Calculated, Handled, Matched, MessageKind, Noise, Observed, Observer, Sent, Taken,
};
use crate::sim::rank::charge::{Charges, Received};
use crate::sim::rank::dependencies::{Operations, Reached};
use crate::sim::rank::matching::slots::Found;
use crate::sim::rank::price::{Leaving, Reception};
use crate::sim::rank::{Clock, Units};
use crate::sim::record::widen;
use crate::units::{Overflow, Picos};

/// Contents of a message.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Letter {
    /// Time at which it was sent, ps.
    pub(in crate::sim) created: u64,
    /// Record of the send.
    pub(in crate::sim) send: u32,
    /// Rank that sent it.
    pub(in crate::sim) source: u32,
    /// Tag; for the data of a handshake, the receive.
    pub(in crate::sim) tag: u32,
    /// Bytes of the send; for an RTS in windows, the record of its CTS.
    pub(in crate::sim) size: u64,
}

/// Cause of a release.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) enum Creator {
    /// The operation that is executed.
    Op(u32),
    /// The match, at `time`, of the message of `send` with the posted `receive`.
    Match { receive: u32, send: u32, time: u64 },
    /// The arrival of a message of a handshake.
    Arrival(u32),
}

/// A message and the receive that it is matched with.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Match {
    pub(in crate::sim) send: u32,
    pub(in crate::sim) message_kind: MessageKind,
    pub(in crate::sim) receive: u32,
    /// Time of the match, ps.
    pub(in crate::sim) time: u64,
    /// True if the message was handled before the receive was posted.
    pub(in crate::sim) unexpected: bool,
}

/// The rules; required methods are the parts in which the drivers differ.
pub(in crate::sim) trait Rules<'p, N: Noise, O: Observer, E: From<Overflow>>:
    Sized
{
    type Ops: Operations;
    /// Handle of a rank: its number, or its state.
    type Rank;

    /// True if `satisfy` releases ready operations immediately, not at the end of the event; then
    /// the start and the end of an operation are passed in one call.
    const AT_ONCE: bool;

    fn rank_number(rank: &Self::Rank) -> u32;
    fn ops(&mut self) -> &mut Self::Ops;

    /// Index in the whole schedule of the operation of a record, or of the send of a message, as
    /// observers see it.
    fn op_number(&self, op: u32) -> u32;

    fn charges(&mut self) -> &mut Charges<'p, N, O>;
    fn reception(&self) -> Reception;
    fn clock(&self, rank: &Self::Rank, clock: Clock) -> u64;
    fn set_clock(&mut self, rank: &mut Self::Rank, clock: Clock, time: u64);

    /// Fulfils the dependencies on `on`, which has `reached` its start, its end or both; `by` is
    /// the cause of the releases.
    fn satisfy(&mut self, rank: &mut Self::Rank, on: u32, by: Creator, reached: Reached);

    /// Removes the oldest unexpected message that matches a receive.
    fn take_message(&mut self, rank: &mut Self::Rank, receive: u32) -> Option<u32>;
    fn post(&mut self, rank: &mut Self::Rank, receive: u32);

    /// Removes a posted receive that is matched.
    fn take_posted(&mut self, rank: &mut Self::Rank, found: Found);

    /// Queues a handled message as unexpected.
    fn await_receive(&mut self, rank: &mut Self::Rank, message: &Letter);

    /// Lets the CTS leave after an RTS is matched.
    fn answer(&mut self, rank: &mut Self::Rank, pair: &Match, by: Creator) -> Result<(), E>;

    /// Lets the data leave after a CTS was handled from `time` until `done`.
    fn resume(&mut self, rank: &mut Self::Rank, cts: u32, time: u64, done: u64) -> Result<(), E>;

    /// Called when an eager or instant message is matched; may end its send.
    #[inline]
    fn release_sender(&mut self, _rank: &mut Self::Rank, _pair: &Match) -> Result<(), E> {
        Ok(())
    }

    /// Notes when the message of a receive was complete.
    fn note_done(&mut self, rank: &Self::Rank, time: u64);

    /// Releases the record of an operation that is complete, its message included.
    #[inline]
    fn retire(&mut self, _op: u32) {}

    fn calculate(&mut self, rank: &mut Self::Rank, op: u32, now: u64) -> Result<(), E> {
        let ops = self.ops();
        let (Units { cpu, .. }, work) = (ops.units(op), Picos(ops.amount(op)));
        let (rank_number, start) = (Self::rank_number(rank), Picos(now));
        let number = self.op_number(op);
        let event =
            Calculated { rank: rank_number, op: number, cpu, start, work, noise: Picos::ZERO };
        let end = self.charges().calculate(event)?;
        self.set_clock(rank, Clock::Cpu(cpu), end);
        let reached = Reached { start: Some(now), end: Some(end) };
        self.satisfy(rank, op, Creator::Op(op), reached);
        Ok(())
    }

    /// Sends a message: that of a send, or a CTS or data message. The driver transports it.
    #[inline]
    fn leave(&mut self, rank: &mut Self::Rank, op: u32, now: u64) -> Result<Leaving, E> {
        let number = self.op_number(op);
        let ops = self.ops();
        let (message_kind, Units { cpu, nic }) = (ops.message_kind(op), ops.units(op));
        let event = Sent {
            rank: Self::rank_number(rank),
            to: ops.peer(op),
            op: number,
            message_kind,
            cpu,
            nic,
            size: message_kind.bytes(ops.amount(op)),
            tag: widen(ops.tag(op)),
            start: Picos(now),
            ..Sent::default()
        };
        let leaving = self.charges().send(event)?;
        self.set_clock(rank, Clock::Cpu(cpu), leaving.cpu);
        self.set_clock(rank, Clock::Out(nic), leaving.out);
        // A send above the limit without a handshake ends when it is matched.
        let reached = match message_kind {
            MessageKind::Whole if leaving.rendezvous => Reached::start(now),
            MessageKind::Whole => Reached { start: Some(now), end: Some(leaving.cpu) },
            MessageKind::Rts => Reached::start(now),
            MessageKind::Cts => Reached::default(),
            MessageKind::Data => Reached::end(leaving.cpu),
        };
        self.satisfy(rank, op, Creator::Op(op), reached);
        Ok(leaving)
    }

    /// Posts a receive, or matches it with an unexpected message.
    fn receive(&mut self, rank: &mut Self::Rank, receive: u32, time: u64) -> Result<(), E> {
        let mut reached = Reached::start(time);
        let creator = Creator::Op(receive);
        let mut met = None;
        if !Self::AT_ONCE {
            self.satisfy(rank, receive, creator, core::mem::take(&mut reached));
        }
        if let Some(send) = self.take_message(rank, receive) {
            let ops = self.ops();
            let (message_kind, end) = (ops.message_kind(send), ops.time_of(send));
            let pair = Match { send, message_kind, receive, time, unexpected: true };
            self.note_match(rank, &pair);
            reached.end = self.meet(rank, &pair, creator, end)?;
            met = reached.end.map(|_| send);
        } else {
            self.post(rank, receive);
        }
        self.satisfy(rank, receive, creator, reached);
        if let Some(send) = met {
            self.retire(send);
            self.retire(receive);
        }
        Ok(())
    }

    /// The interface takes a message, without the processor.
    fn take(
        &mut self,
        rank: &mut Self::Rank,
        message: &Letter,
        nic: u16,
        time: u64,
    ) -> Result<(), E> {
        let (how, op) = (self.reception(), self.op_number(message.send));
        let ops = self.ops();
        let bytes = ops.message_kind(message.send).bytes(message.size);
        ops.set_time(message.send, time);
        let event = Taken { rank: Self::rank_number(rank), op, nic, time: Picos(time) };
        let free = self.charges().take(&event, message.source, bytes, how)?;
        self.set_clock(rank, Clock::Into(nic), free);
        Ok(())
    }

    /// A processor handles a message, which matches the receive in `found`, if any.
    #[inline]
    fn handle(
        &mut self,
        rank: &mut Self::Rank,
        message: &Letter,
        found: Option<Found>,
        Units { cpu, nic }: Units,
        time: u64,
    ) -> Result<(), E> {
        let (how, send) = (self.reception(), message.send);
        let number = self.op_number(send);
        let ops = self.ops();
        let message_kind = ops.message_kind(send);
        let taken = if how.overlap { ops.time_of(send) } else { time };
        let event = Handled {
            rank: Self::rank_number(rank),
            from: message.source,
            op: number,
            message_kind,
            sent: Picos(message.created),
            cpu,
            nic,
            taken: Picos(taken),
            start: Picos(time),
            ..Handled::default()
        };
        let free = self.clock(rank, Clock::Cpu(cpu));
        let Received { cpu: until, into, done } =
            self.charges().handle(event, message_kind.bytes(message.size), free, how)?;
        self.set_clock(rank, Clock::Cpu(cpu), until);
        if let Some(into) = into {
            self.set_clock(rank, Clock::Into(nic), into);
        }
        self.ops().set_time(send, done);
        let receive = match (message_kind, found) {
            (MessageKind::Cts, _) => return self.resume(rank, send, time, done),
            (MessageKind::Data, _) => message.tag,
            (_, Some(found)) => {
                self.take_posted(rank, found);
                found.op
            }
            (_, None) => {
                self.await_receive(rank, message);
                return Ok(());
            }
        };
        let pair = Match { send, message_kind, receive, time, unexpected: false };
        self.note_match(rank, &pair);
        if let Some(end) = self.meet(rank, &pair, Creator::Arrival(send), done)? {
            let creator = Creator::Match { receive, send, time };
            self.satisfy(rank, receive, creator, Reached::end(end));
            self.retire(send);
            self.retire(receive);
        }
        Ok(())
    }

    #[inline]
    fn note_match(&mut self, rank: &Self::Rank, pair: &Match) {
        let &Match { send, receive, time, unexpected, .. } = pair;
        let (rank, time) = (Self::rank_number(rank), Picos(time));
        let (send, receive) = (self.op_number(send), self.op_number(receive));
        let matched = Matched { rank, send, receive, time, unexpected };
        self.charges().observer.observe(Observed::Matched(&matched));
    }

    /// Completes a match with a message that was complete at `end`. Returns the end of the receive;
    /// `None` if the data of a handshake is still to follow.
    #[inline]
    fn meet(
        &mut self,
        rank: &mut Self::Rank,
        pair: &Match,
        creator: Creator,
        end: u64,
    ) -> Result<Option<u64>, E> {
        match pair.message_kind {
            MessageKind::Rts => {
                self.answer(rank, pair, creator)?;
                return Ok(None);
            }
            MessageKind::Whole => self.release_sender(rank, pair)?,
            MessageKind::Cts | MessageKind::Data => {}
        }
        self.note_done(rank, end);
        Ok(Some(end.max(pair.time)))
    }
}
