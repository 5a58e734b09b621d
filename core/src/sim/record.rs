//! One operation, and the message that it becomes, in 40 bytes.

use super::hooks::MessageKind;
use super::matching::Envelope;
use super::queues::queue::Entry;
use super::rank::Class;
use super::rules::Units;
use crate::goal::{ANY_TAG, Op, OpKind};
use crate::units::Picos;

/// No record, no rank, end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// What an operation is, in the order in which one event releases them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Send = 0,
    Receive = 1,
    Calc = 2,
}

impl Kind {
    /// As the lowest two bits of a record's `meta`.
    #[inline]
    pub(super) const fn of(meta: u32) -> Self {
        match meta & 3 {
            0 => Self::Send,
            1 => Self::Receive,
            _ => Self::Calc,
        }
    }
}

/// How the operations after this one are found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Successors {
    None = 0,
    /// One, which waits for the end.
    Ends = 1,
    /// One, which waits for the start.
    Starts = 2,
    /// A list of edges: number for the end, number for the start, then the
    /// operations.
    Listed = 3,
}

impl Successors {
    /// As the next two bits of a record's `meta`.
    #[inline]
    pub(super) const fn of(meta: u32) -> Self {
        match meta >> 2 & 3 {
            0 => Self::None,
            1 => Self::Ends,
            2 => Self::Starts,
            _ => Self::Listed,
        }
    }

    /// Sets them in `meta`.
    pub(super) const fn put(self, meta: u32) -> u32 {
        meta & !(3 << 2) | (self as u32) << 2
    }
}

/// A tag in 32 bits, [`ANY`](crate::goal::ANY) for the wildcard. Builders refuse others
/// that do not fit.
#[allow(clippy::cast_possible_truncation, reason = "the wildcards are all ones")]
const fn narrow(tag: u64) -> u32 {
    tag as u32
}

/// The tag whose [`narrow`] form this is.
pub(super) const fn widen(tag: u32) -> u64 {
    if tag == crate::goal::ANY { ANY_TAG } else { tag as u64 }
}

/// What a record says of its operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content {
    pub(super) kind: Kind,
    /// Bytes, or picoseconds.
    pub(super) amount: u64,
    pub(super) peer: u32,
    pub(super) tag: u32,
}

impl Content {
    pub(super) const fn of(op: OpKind) -> Self {
        let (kind, amount, peer, tag) = match op {
            OpKind::Send { peer, size, tag } => (Kind::Send, size, peer, narrow(tag)),
            OpKind::Receive { peer, size, tag } => (Kind::Receive, size, peer, narrow(tag)),
            OpKind::Calc { duration: Picos(picos) } => (Kind::Calc, picos, 0, 0),
        };
        Self { kind, amount, peer, tag }
    }
}

/// An operation of a schedule.
///
/// A record is in at most one list at a time, so one link is enough: a
/// send's record is first an operation, then the message.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Record {
    /// Send and receive: bytes; calc: picoseconds. A released receive: the
    /// time at which it is posted. An indexed receive: its slot.
    pub(super) amount: u64,
    /// When it, or its message, was created: the first part of its stamp. Of a
    /// claimed receive: the message that claims it.
    pub(super) created: u64,
    /// Send: the receiver, then the sender once the message is there.
    /// Receive: the sender.
    pub(super) peer: u32,
    /// Send and receive: tag. A matched handshake: the receive.
    pub(super) tag: u32,
    /// The operation after this one, or where its edges begin; in the
    /// message of an eager send, the sender. Of a streamed schedule: the operation,
    /// counted over the whole schedule.
    pub(super) next: u32,
    /// Before the release, how many operations it waits for; then the next
    /// in the list.
    pub(super) link: u32,
    /// The second part of its stamp. What waits in a hash table: the list after it, or
    /// its key.
    pub(super) seq: u32,
    /// Kind, successors, kind of message, processor and interface, and of what waits in
    /// a heap its class.
    pub(super) meta: u32,
}

const _: () = assert!(size_of::<Record>() == 40, "docs/lab/performance.md assumes it");

/// A posted receive.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Hash of sender and tag; see [`super::matching`].
    pub(super) key: u32,
    /// The receive; [`NONE`] once it is matched.
    pub(super) op: u32,
}

impl Default for Slot {
    fn default() -> Self {
        Self { key: 0, op: NONE }
    }
}

const CLASS_SHIFT: u32 = 24;

/// What is marked in a record.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum Mark {
    /// It has been released.
    Started = 1 << 6,
    /// It is a message of the log that has met its receive.
    Met = 1 << 7,
    /// It is a posted receive that a message claims, or a message that claims one;
    /// see [`super::pending`].
    Claimed = 1 << 27,
}

impl Record {
    pub(super) const fn new(op: Op) -> Self {
        let Content { kind, amount, peer, tag } = Content::of(op.kind);
        let units = Units { cpu: op.cpu, nic: op.nic };
        let meta = kind as u32 | (units.packed() as u32) << 8;
        Self { amount, created: 0, peer, tag, next: NONE, link: 0, seq: 0, meta }
    }

    pub(super) const fn kind(&self) -> Kind {
        Kind::of(self.meta)
    }

    pub(super) const fn successors(&self) -> Successors {
        Successors::of(self.meta)
    }

    pub(super) const fn set_successors(&mut self, successors: Successors, next: u32) {
        self.meta = successors.put(self.meta);
        self.next = next;
    }

    /// Which message of its send it is at the moment.
    pub(super) const fn message_kind(&self) -> MessageKind {
        match self.meta >> 4 & 3 {
            0 => MessageKind::Whole,
            1 => MessageKind::Rts,
            2 => MessageKind::Cts,
            _ => MessageKind::Data,
        }
    }

    pub(super) const fn set_message_kind(&mut self, message_kind: MessageKind) {
        self.meta = self.meta & !(3 << 4) | (message_kind as u32) << 4;
    }

    pub(super) const fn is(&self, mark: Mark) -> bool {
        self.meta & mark as u32 != 0
    }

    pub(super) const fn mark(&mut self, mark: Mark) {
        self.meta |= mark as u32;
    }

    pub(super) const fn unmark(&mut self, mark: Mark) {
        self.meta &= !(mark as u32);
    }

    /// As what it waits, where that is kept in heaps.
    pub(super) const fn class(&self) -> Class {
        match self.meta >> CLASS_SHIFT & 7 {
            0 => Class::Sends,
            1 => Class::Receives,
            2 => Class::Calcs,
            3 => Class::Arrived,
            _ => Class::Taken,
        }
    }

    pub(super) const fn set_class(&mut self, class: Class) {
        self.meta = self.meta & !(7 << CLASS_SHIFT) | (class as u32) << CLASS_SHIFT;
    }

    /// Its processor and interface as [`Units::packed`].
    #[inline]
    pub(super) const fn packed_units(&self) -> u16 {
        let [_, cpu, nic, _] = self.meta.to_le_bytes();
        u16::from_le_bytes([cpu, nic])
    }

    /// Of a message, once it is there, or of a receive.
    #[inline]
    pub(super) const fn envelope(&self) -> Envelope {
        Envelope { sender: self.peer, tag: self.tag }
    }

    pub(super) const fn stamp(&self) -> (u64, u32) {
        (self.created, self.seq)
    }

    /// What a queue says of it: that it is due on a rank, or arrives.
    #[inline]
    pub(super) const fn entry(&self, time: u64, index: u32) -> Entry {
        Entry { time, created: self.created, seq: self.seq, index }
    }
}
