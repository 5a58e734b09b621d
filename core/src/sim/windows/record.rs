//! Record of an operation and of its history, in 32 bytes.
//!
//! The words are atomic because any partition may follow the history of any operation. Each word
//! has one writer at a time: the rank of the operation; for the words that store a waiting message,
//! from the window after the send on, the receiving rank. Readers see what was written before the
//! last exchange between windows, so relaxed accesses suffice.

use crate::goal::OpKind;
use crate::halves::{halves, whole};
use crate::sim::draft::Dependent;
use crate::sim::hooks::MessageKind;
use crate::sim::rank::rules::Letter;
use crate::sim::record::{Content, Kind, Successors};
use crate::sim::word::{Word32, Word64};

/// Record of an operation of a schedule in windows.
#[derive(Clone, Debug, Default)]
#[repr(C, align(32))]
pub struct WindowRecord {
    /// Calculation: its duration. Send: bytes; with a handshake: its first additional record.
    /// Released receive: the time at which it is posted. After the execution of any of them: the
    /// time of that.
    pub(super) time: Word64,
    /// Cause of the release: the executed operation, or with [`BY_MATCH`] the receive that was
    /// matched, or with [`BY_ARRIVAL`] the message that arrived. Operation without dependencies:
    /// its number among all of these. Third record of a handshake: its send.
    pub(super) creator: Word32,
    /// Bit fields: kind, successors, [`ROOT`], [`RELEASED`], [`HANDSHAKE`],
    /// [`FOREIGN`], and the number of the
    /// release on its rank.
    meta: Word32,
    /// Peer. Matched receive: the send. Waiting message: its sender.
    pub(super) peer: Word32,
    /// Tag. Matched receive: low half of the time of the match.
    pub(super) tag: Word32,
    /// The only successor, or the place of the list of edges. Matched receive: high half of the
    /// time of the match. Waiting message: bytes; for an RTS the record of its CTS.
    pub(super) next: Word32,
    /// Before the release: number of unfulfilled dependencies. After it: next record of the list.
    /// Message in a heap: its number.
    pub(super) link: Word32,
}

const _: () = assert!(size_of::<WindowRecord>() == 32, "two in a cache line");

/// Flag of a creator: a message that matched a posted receive.
pub(super) const BY_MATCH: u32 = 1 << 31;

/// Flag of a creator: an RTS or CTS whose arrival continued its handshake.
pub(super) const BY_ARRIVAL: u32 = 1 << 30;

/// Largest number of records; their indices leave the flags free.
pub(super) const MOST: u64 = BY_ARRIVAL as u64 - 1;

const RELEASED: u32 = 1 << 4;
const ROOT: u32 = 1 << 5;
const HANDSHAKE: u32 = 1 << 6;
const FOREIGN: u32 = 1 << 7;
const NUMBER_SHIFT: u32 = 8;

/// Largest number of operations of one rank. Its releases, up to twice as many with handshakes, are
/// counted in 24 bits.
pub(super) const MOST_OF_RANK: u32 = 1 << (31 - NUMBER_SHIFT);

impl WindowRecord {
    /// Initialises the record while the schedule is built.
    pub(super) fn set(&mut self, op: OpKind) {
        let Content { kind, amount, peer, tag } = Content::of(op);
        *self = Self {
            time: amount.into(),
            meta: (kind as u32).into(),
            peer: peer.into(),
            tag: tag.into(),
            ..Self::default()
        };
    }

    #[inline]
    pub(super) fn kind(&self) -> Kind {
        Kind::of(self.meta.get())
    }

    #[inline]
    pub(super) fn successors(&self) -> Successors {
        Successors::of(self.meta.get())
    }

    /// Stores the cause of the release, and its number on the rank.
    #[inline]
    pub(super) fn release(&self, creator: u32, number: u32) {
        self.creator.set(creator);
        let meta = self.meta.get() & (0xf | HANDSHAKE);
        self.meta.set(meta | RELEASED | number << NUMBER_SHIFT);
    }

    /// As `release`, for an operation without dependencies: `place` is its number among all of
    /// these.
    pub(super) fn release_root(&self, place: u32, number: u32) {
        self.release(place, number);
        self.meta.set(self.meta.get() | ROOT);
    }

    /// Marks a send as the start of a handshake with additional records from `further` on.
    pub(super) fn set_handshake(&mut self, further: u32) {
        *self.meta.get_mut() |= HANDSHAKE;
        *self.time.get_mut() = further.into();
    }

    /// Stores the send in an additional record of its handshake.
    pub(super) fn set_send(&mut self, send: u32) {
        *self.creator.get_mut() = send;
    }

    /// True if a send starts a handshake.
    #[inline]
    pub(super) fn is_handshake(&self) -> bool {
        self.meta.get() & HANDSHAKE != 0
    }

    /// True if the operation has no dependencies.
    #[inline]
    pub(super) fn is_root(&self) -> bool {
        self.meta.get() & ROOT != 0
    }

    #[inline]
    pub(super) fn released(&self) -> bool {
        self.meta.get() & RELEASED != 0
    }

    /// Number of the release on its rank.
    #[inline]
    pub(super) fn number(&self) -> u32 {
        self.meta.get() >> NUMBER_SHIFT
    }

    /// Stores the match of a posted receive with the message of `send` at `time`.
    #[inline]
    pub(super) fn meet(&self, send: u32, time: u64) {
        self.peer.set(send);
        let [low, high] = halves(time);
        self.tag.set(low);
        self.next.set(high);
    }

    /// Send and time of the match of a receive.
    #[inline]
    pub(super) fn met(&self) -> (u32, u64) {
        (self.peer.get(), whole([self.tag.get(), self.next.get()]))
    }

    /// Makes the record that of a send of another process. Its creator is its index on its rank.
    pub(super) fn stand_for(&self, letter: &Letter, number: u32, message_kind: MessageKind) {
        self.time.set(letter.created);
        let flag = if message_kind == MessageKind::Rts { HANDSHAKE } else { 0 };
        self.meta.set(Kind::Send as u32 | flag);
        self.release(letter.send, number);
        self.meta.set(self.meta.get() | FOREIGN);
        self.tag.set(letter.tag);
        self.keep(letter.source, letter.size);
    }

    /// Makes the record that of the departure of a CTS to `peer`, of one byte.
    pub(super) fn leave_to(&self, peer: u32) {
        self.time.set(1);
        self.meta.set(Kind::Send as u32);
        self.peer.set(peer);
    }

    /// True for the send of another process.
    pub(super) fn is_foreign(&self) -> bool {
        self.meta.get() & FOREIGN != 0
    }

    /// Stores a message that waits at its receiver in the record of its send.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the builder refuses longer messages")]
    pub(super) fn keep(&self, source: u32, size: u64) {
        self.peer.set(source);
        self.next.set(size as u32);
    }
}

impl Dependent for WindowRecord {
    fn waits(&mut self) -> &mut u32 {
        self.link.get_mut()
    }

    fn counts(&mut self) -> [&mut u32; 2] {
        [self.next.get_mut(), self.creator.get_mut()]
    }

    fn successors(&self) -> Successors {
        self.successors()
    }

    fn set_successors(&mut self, successors: Successors, next: u32) {
        let meta = self.meta.get_mut();
        *meta = successors.put(*meta);
        *self.next.get_mut() = next;
    }
}
