//! One operation, and what is left of it once it was executed, in 32 bytes.
//!
//! The words are atomic because any partition may look at the history of any
//! operation. Each word has one writer at a time: the rank of the operation,
//! and from the window after the send on, for the words that keep a waiting
//! message, the rank that it went to. What others read was written before
//! the last exchange between windows, so relaxed accesses see it.

use crate::goal::OpKind;
use crate::sim::draft::Dependent;
use crate::sim::record::{Content, Kind, Successors};
use crate::sim::word::{Word32, Word64};

/// An operation of a schedule for windows.
#[derive(Clone, Debug, Default)]
#[repr(C, align(32))]
pub struct WindowRecord {
    /// Calc: its length. Send: bytes; one that begins a handshake: its first further
    /// record. Released receive: when it is posted.
    /// After the execution of any of them: when that was.
    pub(super) time: Word64,
    /// What released it: the operation executed, or with [`BY_MATCH`] the
    /// receive that a message met. Of what waits for nothing, its place in
    /// the order in which all of that is released. Of what is known of a
    /// handshake, its send.
    pub(super) creator: Word32,
    /// Kind, successors, whether it waits for nothing, whether it is
    /// released, and as which of its rank.
    meta: Word32,
    /// Peer. A met receive: the send. A waiting message: its sender.
    pub(super) peer: Word32,
    /// Tag. A met receive: low half of the time.
    pub(super) tag: Word32,
    /// The operation after this one, or where its edges begin. A met
    /// receive: high half of the time. A waiting message: bytes; a
    /// waiting RTS: the record of its CTS.
    pub(super) next: Word32,
    /// Before the release, how many operations it waits for; then the next
    /// in the list. A message that waits in a heap: its number.
    pub(super) link: Word32,
}

const _: () = assert!(size_of::<WindowRecord>() == 32, "two in a cache line");

/// Marks a creator that is a message meeting a posted receive.
pub(super) const BY_MATCH: u32 = 1 << 31;

/// Marks a creator that is a message which let a handshake go on.
pub(super) const BY_ARRIVAL: u32 = 1 << 30;

/// The most records, for the marks to be free.
pub(super) const MOST: u64 = BY_ARRIVAL as u64 - 1;

const RELEASED: u32 = 1 << 4;
const ROOT: u32 = 1 << 5;
const HANDSHAKE: u32 = 1 << 6;
const NUMBER_SHIFT: u32 = 8;

/// The most operations of one rank: its releases, which with those of
/// handshakes can be twice as many, are counted in 24 bits.
pub(super) const MOST_OF_RANK: u32 = 1 << (31 - NUMBER_SHIFT);

impl WindowRecord {
    /// Sets all of it, while the schedule is built.
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

    /// Notes who released it, and as which of its rank.
    #[inline]
    pub(super) fn release(&self, creator: u32, number: u32) {
        self.creator.set(creator);
        let meta = self.meta.get() & (0xf | HANDSHAKE);
        self.meta.set(meta | RELEASED | number << NUMBER_SHIFT);
    }

    /// The same for what waits for nothing, which has its place in the order
    /// of all of that.
    pub(super) fn release_root(&self, place: u32, number: u32) {
        self.release(place, number);
        self.meta.set(self.meta.get() | ROOT);
    }

    /// Makes a send the beginning of a handshake, whose other records begin
    /// at `further`.
    pub(super) fn set_handshake(&mut self, further: u32) {
        *self.meta.get_mut() |= HANDSHAKE;
        *self.time.get_mut() = further.into();
    }

    /// Of what is known of a handshake: whose it is.
    pub(super) fn set_send(&mut self, send: u32) {
        *self.creator.get_mut() = send;
    }

    /// Whether a send begins a handshake.
    #[inline]
    pub(super) fn is_handshake(&self) -> bool {
        self.meta.get() & HANDSHAKE != 0
    }

    /// Whether it waited for nothing.
    #[inline]
    pub(super) fn is_root(&self) -> bool {
        self.meta.get() & ROOT != 0
    }

    #[inline]
    pub(super) fn released(&self) -> bool {
        self.meta.get() & RELEASED != 0
    }

    /// As which of its rank it was released.
    #[inline]
    pub(super) fn number(&self) -> u32 {
        self.meta.get() >> NUMBER_SHIFT
    }

    /// A posted receive has met the message of `send` at `time`.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the halves of a word")]
    pub(super) fn meet(&self, send: u32, time: u64) {
        self.peer.set(send);
        self.tag.set(time as u32);
        self.next.set((time >> 32) as u32);
    }

    /// Of a met receive: the send, and the time.
    #[inline]
    pub(super) fn met(&self) -> (u32, u64) {
        let time = u64::from(self.tag.get()) | u64::from(self.next.get()) << 32;
        (self.peer.get(), time)
    }

    /// Keeps a message that waits at its receiver in the record of its send.
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
