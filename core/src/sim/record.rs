//! Record of an operation, and of the message that it becomes, in 40 bytes.

use super::hooks::MessageKind;
use super::queues::queue::Entry;
use super::rank::matching::Envelope;
use super::rank::{Class, Units};
use crate::goal::{ANY_TAG, Op, OpKind};
use crate::units::Picos;

/// Sentinel: no record, no rank, end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// Kind of an operation, in the order in which one event releases them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Send = 0,
    Receive = 1,
    Calc = 2,
}

impl Kind {
    /// Kind from the lowest two bits of a record's `meta`.
    #[inline]
    pub(super) const fn of(meta: u32) -> Self {
        match meta & 3 {
            0 => Self::Send,
            1 => Self::Receive,
            _ => Self::Calc,
        }
    }
}

/// Storage form of an operation's successors, the operations that wait for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Successors {
    None = 0,
    /// One, which waits for the end of this one.
    Ends = 1,
    /// One, which waits for the start of this one.
    Starts = 2,
    /// A list of edges: the count of those that wait for the end, the count of those that wait for
    /// the start, then the operations.
    Listed = 3,
}

impl Successors {
    /// Form from bits 2 and 3 of a record's `meta`.
    #[inline]
    pub(super) const fn of(meta: u32) -> Self {
        match meta >> 2 & 3 {
            0 => Self::None,
            1 => Self::Ends,
            2 => Self::Starts,
            _ => Self::Listed,
        }
    }

    /// `meta` with these bits set.
    pub(super) const fn put(self, meta: u32) -> u32 {
        meta & !(3 << 2) | (self as u32) << 2
    }
}

/// Tag in 32 bits; the wildcard becomes [`ANY`](crate::goal::ANY). Builders refuse all other tags
/// that do not fit.
#[allow(clippy::cast_possible_truncation, reason = "the wildcards are all ones")]
const fn narrow(tag: u64) -> u32 {
    tag as u32
}

/// Inverse of [`narrow`].
pub(super) const fn widen(tag: u32) -> u64 {
    if tag == crate::goal::ANY { ANY_TAG } else { tag as u64 }
}

/// Fields of a record that describe its operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content {
    pub(super) kind: Kind,
    /// Send and receive: bytes; calculation: picoseconds.
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

/// Record of an operation of a schedule.
///
/// A record is in at most one list at a time, so it has one link. The record of a send is first the
/// operation, then its message.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Record {
    /// Send and receive: bytes; calculation: picoseconds. Released receive: the time at which it is
    /// posted.
    pub(super) amount: u64,
    /// First part of the stamp: creation time of the operation or message. Claimed receive: the
    /// message that claims it.
    pub(super) created: u64,
    /// Send: the receiver, until the message arrives; then the sender. Receive: the sender.
    pub(super) peer: u32,
    /// Send and receive: tag. Handshake after the match: the receive.
    pub(super) tag: u32,
    /// The only successor, or the place of the list of edges. Eager message: the sender. Streamed
    /// schedule: index of the operation in the whole schedule, or in the part; of a message of another
    /// part, on its rank.
    pub(super) next: u32,
    /// Before the release: number of unfulfilled dependencies. After it: next record of the list.
    pub(super) link: u32,
    /// Second part of the stamp. In a hash table: the key (`matching::Waiting`) or the next record
    /// (`streamed::partly`).
    pub(super) seq: u32,
    /// Bit fields: kind, successors, kind of message, processor and interface, and the class of a
    /// record that waits in a heap.
    pub(super) meta: u32,
}

const _: () = assert!(size_of::<Record>() == 40, "docs/lab/performance.md assumes it");

/// Slot of a posted receive, in windows.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Hash of sender and tag; see [`super::matching`].
    pub(super) key: u32,
    /// Record of the receive; [`NONE`] once it is matched.
    pub(super) op: u32,
}

impl Default for Slot {
    fn default() -> Self {
        Self { key: 0, op: NONE }
    }
}

const CLASS_SHIFT: u32 = 24;

/// Flags in a record's `meta`.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum Mark {
    /// The operation has been released; in a streamed schedule: the send is complete.
    Started = 1 << 6,
    /// A posted receive claimed by a message, or the message that claims it; see
    /// [`super::pending`].
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

    /// Message of the send that this record is at present.
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

    /// Class in which the record waits in a heap.
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

    /// Processor and interface, as [`Units::packed`].
    #[inline]
    pub(super) const fn packed_units(&self) -> u16 {
        let [_, cpu, nic, _] = self.meta.to_le_bytes();
        u16::from_le_bytes([cpu, nic])
    }

    /// Envelope of a receive, or of a message after its arrival.
    #[inline]
    pub(super) const fn envelope(&self) -> Envelope {
        Envelope { sender: self.peer, tag: self.tag }
    }

    pub(super) const fn stamp(&self) -> (u64, u32) {
        (self.created, self.seq)
    }

    /// Queue entry for this record's stamp: its event on a rank, or the arrival of its message.
    #[inline]
    pub(super) const fn entry(&self, time: u64, index: u32) -> Entry {
        Entry { time, created: self.created, seq: self.seq, index }
    }
}
