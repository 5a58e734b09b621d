//! Order of what was created at one time, where ranks run apart.
//!
//! What is created at one time is ordered as the events that created it. In global order they were
//! executed one after the other, so that a stamp of the time and a count within it tells all. A part
//! of the ranks does not know what others created at that time; but events of one time were
//! executed in the order of their own creation, and so on back to the operations without
//! dependencies, which are released by rank.

use core::cmp::Ordering;
use core::iter;

use super::record::NONE;

/// Origin of an operation or message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Origin {
    /// Message on its way: its arrival, ps.
    pub(super) arrival: u64,
    /// Rank of the event that created it.
    pub(super) by: u32,
    /// That event in the history; [`NONE`] for an operation without dependencies.
    pub(super) creator: u32,
}

impl Default for Origin {
    fn default() -> Self {
        Self::of_root(NONE)
    }
}

impl Origin {
    /// Origin of the operations of `rank` without dependencies.
    pub(super) const fn of_root(rank: u32) -> Self {
        Self { arrival: 0, by: rank, creator: NONE }
    }
}

/// An event that was executed, by the operation or message of which it was one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Ancestor {
    /// Time at which the operation or message was created, ps.
    pub(super) created: u64,
    /// Second part of its stamp, counted on the rank that created it.
    pub(super) seq: u32,
    /// Rank that created it.
    pub(super) by: u32,
    /// Event that created it; [`NONE`] for an operation without dependencies.
    pub(super) creator: u32,
}

/// An event that is not known. It is never kept, as it is the last number before [`NONE`].
pub(super) const BEYOND: u32 = NONE - 1;

/// The events of a part that were executed last: a ring.
#[derive(Debug)]
pub(super) struct History<'m> {
    events: &'m mut [Ancestor],
    /// Number of events so far, without [`BEYOND`] and [`NONE`].
    count: u32,
}

impl<'m> History<'m> {
    /// Events of a rank that are kept.
    const EACH: usize = 64;

    /// Size of the history of `ranks` ranks.
    pub(super) const fn size(ranks: usize) -> usize {
        (ranks.saturating_mul(Self::EACH)).next_power_of_two()
    }

    /// Empty history; the size is a power of two, or 0.
    pub(super) const fn new(events: &'m mut [Ancestor]) -> Self {
        Self { events, count: 0 }
    }

    const fn place(&self, number: u32) -> usize {
        number as usize & self.events.len().wrapping_sub(1)
    }

    /// Adds an event; returns its number.
    #[inline]
    pub(super) fn add(&mut self, event: Ancestor) -> u32 {
        let number = self.count;
        let place = self.place(number);
        if let Some(place) = self.events.get_mut(place) {
            *place = event;
        }
        self.count = if number + 1 == BEYOND { 0 } else { number + 1 };
        number
    }

    /// An event; `None` if it is not kept any more.
    pub(super) fn at(&self, number: u32) -> Option<&Ancestor> {
        let age = self.count.wrapping_sub(number) as usize;
        let kept = age <= self.events.len() && number < BEYOND;
        self.events.get(self.place(number)).filter(|_| kept)
    }

    /// An event, that which created it, and so on, as far as they are kept.
    pub(super) fn back_from(&self, number: u32) -> impl Iterator<Item = Ancestor> {
        iter::successors(self.at(number).copied(), |event| self.at(event.creator).copied())
    }

    /// Order of two operations or messages that were created at one time; `None` if it is not known.
    pub(super) fn compare(&self, mut a: Ancestor, mut b: Ancestor) -> Option<Ordering> {
        loop {
            if a.created != b.created {
                return Some(a.created.cmp(&b.created));
            }
            if a.by == b.by {
                // A rank has its own events in order.
                return Some(a.seq.cmp(&b.seq));
            }
            match [a.creator, b.creator] {
                [NONE, NONE] => return Some(a.by.cmp(&b.by)),
                [NONE, _] => return Some(Ordering::Less),
                [_, NONE] => return Some(Ordering::Greater),
                [one, other] => (a, b) = (*self.at(one)?, *self.at(other)?),
            }
        }
    }
}
