//! One operation, and the message that it becomes, in 40 bytes.

use super::rank::Class;
use crate::goal::{Op, OpKind};
use crate::units::Picos;

/// No record, no rank, end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// What a record is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Send,
    Receive,
    Calc,
}

/// How the operations after this one are found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Successors {
    None,
    /// One, which waits for the end.
    Ends,
    /// One, which waits for the start.
    Starts,
    /// A list of edges: number for the end, number for the start, then the
    /// operations.
    Listed,
}

/// Which message of a send a record is at the moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    /// The operation itself, or its only message.
    Whole,
    /// Handshake: asks the receiver.
    Rts,
    /// Handshake: tells the sender to go on.
    Cts,
    /// Handshake: the data.
    Data,
}

/// An operation of a schedule.
///
/// A record is in at most one list at a time, so one link is enough: a
/// send's record is first an operation, then the message.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Record {
    /// Send and receive: bytes; calc: picoseconds. A released receive: the
    /// time at which it is posted.
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
    /// message of an eager send, the sender.
    pub(super) next: u32,
    /// Before the release, how many operations it waits for; then the next
    /// in the list.
    pub(super) link: u32,
    /// The second part of its stamp.
    pub(super) seq: u32,
    /// Kind, successors, phase, processor and interface, and of what waits in
    /// a heap its class.
    pub(super) meta: u32,
}

const _: () = assert!(size_of::<Record>() == 40, "the figures of docs/performance.md assume it");

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

const STARTED: u32 = 1 << 6;
const MET: u32 = 1 << 7;
const CLASS_SHIFT: u32 = 24;
const CLAIMED: u32 = 1 << 27;

impl Record {
    pub(super) const fn new(op: Op) -> Self {
        let (kind, amount, peer, tag) = match op.kind {
            OpKind::Send { peer, size, tag } => (0, size, peer, tag),
            OpKind::Receive { peer, size, tag } => (1, size, peer, tag),
            OpKind::Calc { duration: Picos(picos) } => (2, picos, 0, 0),
        };
        let meta = kind | (op.cpu as u32) << 8 | (op.nic as u32) << 16;
        Self { amount, created: 0, peer, tag, next: NONE, link: 0, seq: 0, meta }
    }

    pub(super) const fn kind(&self) -> Kind {
        match self.meta & 3 {
            0 => Kind::Send,
            1 => Kind::Receive,
            _ => Kind::Calc,
        }
    }

    pub(super) const fn successors(&self) -> Successors {
        match self.meta >> 2 & 3 {
            0 => Successors::None,
            1 => Successors::Ends,
            2 => Successors::Starts,
            _ => Successors::Listed,
        }
    }

    pub(super) const fn set_successors(&mut self, successors: Successors, next: u32) {
        self.meta = self.meta & !(3 << 2) | (successors as u32) << 2;
        self.next = next;
    }

    pub(super) const fn phase(&self) -> Phase {
        match self.meta >> 4 & 3 {
            0 => Phase::Whole,
            1 => Phase::Rts,
            2 => Phase::Cts,
            _ => Phase::Data,
        }
    }

    pub(super) const fn set_phase(&mut self, phase: Phase) {
        self.meta = self.meta & !(3 << 4) | (phase as u32) << 4;
    }

    /// Whether it has been released.
    pub(super) const fn started(&self) -> bool {
        self.meta & STARTED != 0
    }

    pub(super) const fn set_started(&mut self) {
        self.meta |= STARTED;
    }

    /// Whether it is a message of the log that has met its receive.
    pub(super) const fn is_met(&self) -> bool {
        self.meta & MET != 0
    }

    pub(super) const fn set_met(&mut self) {
        self.meta |= MET;
    }

    /// Whether it is a posted receive that a message claims, or a message that
    /// claims one; see [`super::pending`].
    pub(super) const fn is_claimed(&self) -> bool {
        self.meta & CLAIMED != 0
    }

    pub(super) const fn set_claimed(&mut self) {
        self.meta |= CLAIMED;
    }

    pub(super) const fn set_unclaimed(&mut self) {
        self.meta &= !CLAIMED;
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

    pub(super) const fn cpu(&self) -> usize {
        (self.meta >> 8 & 0xff) as usize
    }

    pub(super) const fn nic(&self) -> usize {
        (self.meta >> 16 & 0xff) as usize
    }

    pub(super) const fn stamp(&self) -> (u64, u32) {
        (self.created, self.seq)
    }
}
