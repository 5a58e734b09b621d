//! Rings: pipelined broadcast, and a message in each direction.

use super::place::Place;
use crate::sim::implicit::{Extent, Program, Release, Transfer};

/// Traffic around the ring.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum RingKind {
    /// A broadcast in segments.
    Pipelined,
    /// As `Pipelined`, but a rank posts the receive of a segment when it has forwarded the last
    /// one.
    PipelinedBlocking,
    /// A message in each direction.
    Double,
}

/// Ring pattern.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    pub(super) kind: RingKind,
    pub(super) place: Place,
    pub(super) size: u64,
    /// Size of a segment, at least 1, bytes.
    pub(super) segment: u64,
    /// Number of segments.
    pub(super) segments: u32,
}

impl Ring {
    /// True if a rank forwards its segments.
    fn passes(&self, rank: u32) -> bool {
        self.place.swapped(rank).saturating_add(1) < self.place.ranks
    }

    fn bytes(&self, segment: u32) -> u64 {
        if self.kind == RingKind::Double {
            return self.size;
        }
        let before = u64::from(segment).saturating_mul(self.segment);
        self.size.saturating_sub(before).min(self.segment)
    }
}

impl Program for Ring {
    type State = ();

    fn extent(&self) -> Extent {
        let (ranks, all) = (self.place.ranks, u64::from(self.place.ranks));
        let (first, last) = (self.bytes(0), self.bytes(self.segments.saturating_sub(1)));
        let segments = u64::from(self.segments);
        let (messages, travelling) = match self.kind {
            RingKind::Double => (2 * all, 2),
            _ => (all.saturating_sub(1).saturating_mul(segments), self.segments),
        };
        Extent {
            ranks,
            sizes: [last.min(first), last.max(first)],
            waiting: all.saturating_mul(segments.saturating_mul(2).saturating_add(4)),
            messages,
            busy: travelling.min(ranks),
            interchangeable: false,
        }
    }

    fn start(&self, rank: u32, _state: &mut ()) -> Release {
        if self.kind == RingKind::Double {
            let sends = if rank == 0 { 2 } else { 0 };
            return Release::sends(0, sends).and_receives(2);
        }
        let passes = self.passes(rank);
        match (self.place.swapped(rank), self.kind) {
            (0, _) if passes => Release::sends(0, self.segments),
            (0, _) => Release::NOTHING,
            (_, RingKind::PipelinedBlocking) if passes => Release::receives(self.segments.min(1)),
            _ => Release::receives(self.segments),
        }
    }

    #[inline]
    fn sent(&self, rank: u32, _state: &mut (), send: u32) -> Release {
        let blocking = self.kind == RingKind::PipelinedBlocking && self.place.swapped(rank) > 0;
        let more = send.saturating_add(1) < self.segments;
        Release::receives(u32::from(blocking && more))
    }

    #[inline]
    fn received(&self, rank: u32, _state: &mut (), receive: u32) -> Release {
        let passes = match self.kind {
            RingKind::Double => rank > 0,
            _ => self.passes(rank),
        };
        if passes { Release::send(receive) } else { Release::NOTHING }
    }

    #[inline]
    fn transfer(&self, rank: u32, send: u32) -> Transfer {
        let to = match self.kind {
            RingKind::Double if send == 0 => self.place.above(rank, 1),
            RingKind::Double => self.place.below(rank, 1),
            _ => self.place.swapped(self.place.swapped(rank).saturating_add(1)),
        };
        Transfer { to, receive: send, size: self.bytes(send) }
    }

    #[inline]
    fn expected(&self, _rank: u32, receive: u32) -> u64 {
        self.bytes(receive)
    }
}
