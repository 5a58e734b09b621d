//! State that all partitions share: records, edges, parameters; and the order of elements that were
//! created at the same instant.

use core::cmp::Ordering;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::foreign::{Away, End, Foreign};
use super::record::{BY_ARRIVAL, BY_MATCH, WindowRecord};
use crate::sim::hooks::MessageKind;
use crate::sim::parameters::Parameters;
use crate::sim::queues::chain::Chain;
use crate::sim::queues::heap::Heaps;
use crate::sim::rank::Units;
use crate::sim::rank::dependencies::Operations;
use crate::sim::rank::rules::Letter;
use crate::sim::record::{Kind, NONE, Successors};

/// Heaps of waiting records; with overlap.
pub(super) type HeapLinks<'s> = Heaps<&'s [AtomicU64]>;

/// An operation that was released, or a message that was sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Element {
    Op(u32),
    /// Message of this send.
    Message(u32),
}

/// What partitions share besides the records: no run changes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'s> {
    pub(super) edges: &'s [u32],
    /// Index of each rank's first operation, then the number of operations.
    pub(super) firsts: &'s [u32],
    pub(super) parameters: Parameters<'s>,
    /// First additional record of handshakes. Each handshake has three: the departure of the CTS,
    /// that of the data, and the state of both.
    pub(super) further: u32,
    /// First record of the sends of other processes, and the end of these.
    pub(super) first_foreign: u32,
    pub(super) end_foreign: u32,
    pub(super) away: Away,
    /// First rank of this process.
    pub(super) first_rank: u32,
    /// See [`Builder::named`](super::Builder::named).
    pub(super) names: &'s [u32],
}

impl<'s> Frame<'s> {
    /// Before the schedule is built.
    pub(super) const fn new(parameters: Parameters<'s>) -> Self {
        let (edges, firsts, names): (_, _, &[u32]) = (&[], &[], &[]);
        let (further, first_foreign, end_foreign) = (NONE, NONE, NONE);
        let (away, first_rank) = (Away::FEW, 0);
        Self {
            edges,
            firsts,
            parameters,
            further,
            first_foreign,
            end_foreign,
            away,
            first_rank,
            names,
        }
    }
}

/// State that all partitions share.
#[derive(Debug)]
pub(in crate::sim) struct Shared<'s> {
    pub(super) records: &'s [WindowRecord],
    /// See [`Operations::time_of`]; empty without overlap.
    pub(super) times: &'s [AtomicU64],
    pub(super) frame: Frame<'s>,
    /// Number of records of sends of other processes that are taken, and the summaries of these.
    pub(super) taken: Option<&'s AtomicU32>,
    pub(super) foreign: &'s [Foreign],
    pub(super) ends: &'s [End],
    pub(super) sentinel: WindowRecord,
}

impl<'s> Shared<'s> {
    pub(super) fn new(
        records: &'s [WindowRecord],
        times: &'s [AtomicU64],
        frame: Frame<'s>,
    ) -> Self {
        let (taken, foreign, ends) = (None, &[][..], &[][..]);
        Self { records, times, frame, taken, foreign, ends, sentinel: WindowRecord::default() }
    }

    /// State of the handshake that the departure of a CTS or of data belongs to: the receive, the
    /// time at which the RTS was matched, and the time at which the CTS was handled.
    #[inline]
    pub(super) fn handshake(&self, departure: u32) -> &WindowRecord {
        debug_assert!(departure >= self.frame.further, "{departure} is of no handshake");
        let place = departure.wrapping_sub(self.frame.further) % 3;
        self.at(departure.wrapping_add(2 - place))
    }

    /// Message stored in the record of a send.
    #[inline]
    pub(super) fn kept(&self, send: u32) -> Letter {
        let record = self.at(send);
        Letter {
            created: record.time.get(),
            send,
            source: record.peer.get(),
            tag: record.tag.get(),
            size: record.next.get().into(),
        }
    }

    /// Record of an operation. Every index in a list, an edge or a slot is valid; an invalid one
    /// would read the sentinel, so that no index can panic. Debug builds assert.
    #[inline]
    pub(super) fn at(&self, op: u32) -> &WindowRecord {
        debug_assert!((op as usize) < self.records.len(), "no record {op}");
        self.records.get(op as usize).unwrap_or(&self.sentinel)
    }

    /// Creation time and creator of an element; `None` for operations without dependencies, which
    /// precede everything else.
    #[inline]
    pub(super) fn origin(&self, element: Element) -> Option<(u64, Element)> {
        match element {
            Element::Message(send) => Some((self.at(send).time.get(), Element::Op(send))),
            Element::Op(op) => {
                let record = self.at(op);
                if record.is_root() {
                    return None;
                }
                let creator = record.creator.get();
                if creator & (BY_MATCH | BY_ARRIVAL) == BY_ARRIVAL {
                    let known = self.handshake(op);
                    let time = if self.message_kind(op) == MessageKind::Cts {
                        known.met().1
                    } else {
                        known.time.get()
                    };
                    return Some((time, Element::Message(creator & !BY_ARRIVAL)));
                }
                if creator & BY_MATCH == 0 {
                    return Some((self.at(creator).time.get(), Element::Op(creator)));
                }
                let (send, time) = self.at(creator & !BY_MATCH).met();
                Some((time, Element::Message(send)))
            }
        }
    }

    /// Order of creation of two elements, which breaks ties at equal times: by creation time; then
    /// by the order of their creators, recursively; of the same creator first the message, then the
    /// released operations in the order of their release. Operations without dependencies precede
    /// everything else, rank by rank. Adds the number of steps to `steps`.
    #[inline]
    pub(super) fn order(&self, a: Element, b: Element, steps: &mut u64) -> Ordering {
        let (mut a, mut b) = (a, b);
        loop {
            *steps += 1;
            if let Element::Op(op) = a
                && self.is_foreign(op)
            {
                return self.order_foreign(a, b, steps);
            }
            if let Element::Op(op) = b
                && self.is_foreign(op)
            {
                return self.order_foreign(a, b, steps);
            }
            let (first, second) = match (self.origin(a), self.origin(b)) {
                (None, None) => return self.order_roots(a, b),
                (None, Some(_)) => return Ordering::Less,
                (Some(_), None) => return Ordering::Greater,
                (Some(first), Some(second)) => (first, second),
            };
            if first.0 != second.0 {
                return first.0.cmp(&second.0);
            }
            if first.1 == second.1 {
                return match (a, b) {
                    (Element::Op(a), Element::Op(b)) => {
                        self.at(a).number().cmp(&self.at(b).number())
                    }
                    (Element::Message(_), Element::Op(_)) => Ordering::Less,
                    (Element::Op(_), Element::Message(_)) => Ordering::Greater,
                    // An operation creates at most one message.
                    (Element::Message(_), Element::Message(_)) => Ordering::Equal,
                };
            }
            (a, b) = (first.1, second.1);
        }
    }

    fn order_roots(&self, a: Element, b: Element) -> Ordering {
        let (Element::Op(a), Element::Op(b)) = (a, b) else {
            debug_assert!(false, "a message was created by a send");
            return Ordering::Equal;
        };
        self.at(a).creator.get().cmp(&self.at(b).creator.get())
    }
}

impl Chain for Shared<'_> {
    const END: u32 = NONE;

    #[inline]
    fn next(&self, at: u32) -> u32 {
        self.at(at).link.get()
    }

    #[inline]
    fn set_next(&mut self, at: u32, next: u32) {
        self.at(at).link.set(next);
    }
}

impl Shared<'_> {
    /// Operation of a record: for a CTS or data message, its send.
    #[inline]
    pub(super) fn send_of(&self, record: u32) -> u32 {
        if record < self.frame.further { record } else { self.handshake(record).creator.get() }
    }
}

impl Operations for Shared<'_> {
    #[inline]
    fn kind(&self, op: u32) -> Kind {
        self.at(op).kind()
    }

    #[inline]
    fn successors(&self, op: u32) -> Successors {
        self.at(op).successors()
    }

    #[inline]
    fn successor(&self, op: u32) -> u32 {
        self.at(op).next.get()
    }

    #[inline]
    fn message_kind(&self, send: u32) -> MessageKind {
        if self.frame.further == NONE {
            return MessageKind::Whole;
        }
        match send.checked_sub(self.frame.further) {
            None if self.at(send).is_handshake() => MessageKind::Rts,
            None => MessageKind::Whole,
            Some(place) if place % 3 == 0 => MessageKind::Cts,
            Some(_) => MessageKind::Data,
        }
    }

    #[inline]
    fn units(&self, _op: u32) -> Units {
        Units::default()
    }

    #[inline]
    fn peer(&self, op: u32) -> u32 {
        self.at(op).peer.get()
    }

    #[inline]
    fn tag(&self, op: u32) -> u32 {
        self.at(op).tag.get()
    }

    /// For an RTS, the first additional record of its handshake.
    #[inline]
    fn amount(&self, op: u32) -> u64 {
        self.at(op).time.get()
    }

    #[inline]
    fn time_of(&self, op: u32) -> u64 {
        self.times.get(op as usize).map_or(0, |time| time.load(Relaxed))
    }

    #[inline]
    fn set_time(&mut self, op: u32, time: u64) {
        if let Some(place) = self.times.get(op as usize) {
            place.store(time, Relaxed);
        }
    }
}
