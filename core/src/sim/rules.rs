//! What a rank does at an event of a stored schedule: the rules of
//! `docs/simulating.md`, for the driver in global order and the one in windows.

use super::charge::{Charges, Received};
use super::clocks::Clock;
use super::hooks::{Calculated, Handled, Matched, MessageKind, Noise, Observer, Sent, Taken};
use super::matching::slots::Found;
use super::price::{Leaving, Reception};
use super::record::widen;
use super::release::{Operations, Reached};
use crate::units::{Overflow, Picos};

/// A processor and an interface of a rank.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Units {
    pub(super) cpu: u16,
    pub(super) nic: u16,
}

impl Units {
    /// Both in 16 bits, 8 for each, where they fit; 0 only for the first of both.
    pub(super) const fn packed(self) -> u16 {
        let ([cpu, cpu_high], [nic, nic_high]) = (self.cpu.to_le_bytes(), self.nic.to_le_bytes());
        if cpu_high | nic_high == 0 { u16::from_le_bytes([cpu, nic]) } else { u16::MAX }
    }

    /// Unpacks units that fitted into [`Units::packed`].
    pub(super) const fn of_packed(packed: u16) -> Self {
        let [cpu, nic] = packed.to_le_bytes();
        Self { cpu: cpu as u16, nic: nic as u16 }
    }

    /// Both in 32 bits.
    pub(super) const fn wide(self) -> u32 {
        self.cpu as u32 | (self.nic as u32) << 16
    }

    /// Unpacks [`Units::wide`].
    pub(super) const fn of_wide(wide: u32) -> Self {
        let [a, b, c, d] = wide.to_le_bytes();
        Self { cpu: u16::from_le_bytes([a, b]), nic: u16::from_le_bytes([c, d]) }
    }
}

/// What a message says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letter {
    /// When it was sent.
    pub(super) created: u64,
    /// The send.
    pub(super) send: u32,
    /// The rank that sent it.
    pub(super) source: u32,
    /// The tag; of the data of a handshake, the receive.
    pub(super) tag: u32,
    /// Bytes of the send; of an RTS in windows, the record of its CTS.
    pub(super) size: u64,
}

/// Through what something is released.
#[derive(Clone, Copy, Debug)]
pub(super) enum Creator {
    /// An operation that is executed.
    Op(u32),
    /// The message of `send`, which meets the posted `receive` at `time`.
    Match { receive: u32, send: u32, time: u64 },
    /// The message of a handshake, which arrives.
    Arrival(u32),
}

/// A receive and a message that meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub(super) send: u32,
    pub(super) message_kind: MessageKind,
    pub(super) receive: u32,
    /// When they meet.
    pub(super) time: u64,
    /// Whether the message was there first.
    pub(super) unexpected: bool,
}

/// The rules, over what each driver does in its way.
pub(super) trait Rules<'p, N: Noise, O: Observer, E: From<Overflow>>: Sized {
    type Ops: Operations;
    /// A rank, with what of it is at hand.
    type Rank;

    /// Whether `satisfy` releases what is ready at once, not at the end of the event: then
    /// start and end of an operation are reported in one call.
    const AT_ONCE: bool;

    fn rank_number(rank: &Self::Rank) -> u32;
    fn ops(&mut self) -> &mut Self::Ops;

    /// The operation of a record, of a message its send, as observers are told of it:
    /// counted over the whole schedule.
    fn op_number(&self, op: u32) -> u32;

    fn charges(&mut self) -> &mut Charges<'p, N, O>;
    fn reception(&self) -> Reception;
    fn clock(&self, rank: &Self::Rank, clock: Clock) -> u64;
    fn set_clock(&mut self, rank: &mut Self::Rank, clock: Clock, time: u64);

    /// Lets those that wait for `on` know what it has `reached`; they are released
    /// through `by`.
    fn satisfy(&mut self, rank: &mut Self::Rank, on: u32, by: Creator, reached: Reached);

    /// Takes the oldest message that waits for a receive like this one.
    fn take_message(&mut self, rank: &mut Self::Rank, receive: u32) -> Option<u32>;
    fn post(&mut self, rank: &mut Self::Rank, receive: u32);

    /// Takes a posted receive, which has its message.
    fn take_posted(&mut self, rank: &mut Self::Rank, found: Found);

    /// Lets a message that was handled wait for its receive.
    fn await_receive(&mut self, rank: &mut Self::Rank, message: &Letter);

    /// An RTS has met its receive: the CTS may leave.
    fn answer(&mut self, rank: &mut Self::Rank, pair: &Match, by: Creator) -> Result<(), E>;

    /// A CTS was handled from `time` until `done`: the data may leave.
    fn resume(&mut self, rank: &mut Self::Rank, cts: u32, time: u64, done: u64) -> Result<(), E>;

    /// A message sent as a whole has met its receive, which may be what its sender
    /// waits for.
    #[inline]
    fn release_sender(&mut self, _rank: &mut Self::Rank, _pair: &Match) -> Result<(), E> {
        Ok(())
    }

    /// Notes when a message for a receive was all there.
    fn note_done(&mut self, rank: &Self::Rank, time: u64);

    /// Nothing is to come of an operation, nor of its message.
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

    /// A send, or a later message of a handshake, leaves; the driver hands it on.
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
        // What is above the limit and no handshake is done when it meets its receive.
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

    /// A receive is posted, or finds its message.
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

    /// The interface takes a message by itself.
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

    /// A processor handles a message, which meets the receive that was `found`.
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
        self.charges().observer.matched(&Matched { rank, send, receive, time, unexpected });
    }

    /// A receive and a message that was all there at `end` have met. When the
    /// receive is done, unless that is for later messages to say.
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
