//! Order of operations and messages with equal creation times, in a [`Part`](super::streamed::Part).
//!
//! They are ordered as the events that created them. In global order these are executed one after the
//! other, so that the creation time and a counter order all. A part does not know the events of other
//! parts. But events of one time are executed in the order of their own creation, and so on back to
//! the operations without dependencies, which are released by rank. So the order of two follows from
//! their ancestors: the events that created them, the events that created those, and so on.

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
    /// That event in the history; [`START`] for an operation without dependencies.
    pub(super) creator: u64,
}

impl Default for Origin {
    fn default() -> Self {
        Self::of_root(NONE)
    }
}

impl Origin {
    /// Origin of the operations of `rank` without dependencies.
    pub(super) const fn of_root(rank: u32) -> Self {
        Self { arrival: 0, by: rank, creator: START }
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
    /// Event that created it; [`START`] for an operation without dependencies.
    pub(super) creator: u64,
}

/// Number of an event that is not known; no event of the history has it.
pub(super) const BEYOND: u64 = START - 1;

/// Number in place of an event for what is released at the start.
pub(super) const START: u64 = u64::MAX;

/// The events of a part that were executed last: a ring.
#[derive(Debug)]
pub(super) struct History<'m> {
    events: &'m mut [Ancestor],
    /// Number of events so far.
    count: u64,
}

impl<'m> History<'m> {
    /// Events that are kept for each rank, on average.
    const EACH: usize = 64;

    /// Size of the history of `ranks` ranks.
    pub(super) const fn size(ranks: usize) -> usize {
        (ranks.saturating_mul(Self::EACH)).next_power_of_two()
    }

    /// Empty history; the size is a power of two, or 0.
    pub(super) const fn new(events: &'m mut [Ancestor]) -> Self {
        Self { events, count: 0 }
    }

    #[allow(clippy::cast_possible_truncation, reason = "reduced to the length")]
    const fn place(&self, number: u64) -> usize {
        (number & (self.events.len() as u64).wrapping_sub(1)) as usize
    }

    /// Adds an event; returns its number.
    #[inline]
    pub(super) fn add(&mut self, event: Ancestor) -> u64 {
        let number = self.count;
        let place = self.place(number);
        if let Some(place) = self.events.get_mut(place) {
            *place = event;
        }
        self.count += 1;
        number
    }

    /// An event; `None` if it is not kept any more.
    pub(super) fn at(&self, number: u64) -> Option<&Ancestor> {
        let age = self.count.wrapping_sub(number);
        let kept = number < self.count && age <= self.events.len() as u64;
        self.events.get(self.place(number)).filter(|_| kept)
    }

    /// An event, that which created it, and so on, as far as they are kept.
    pub(super) fn back_from(&self, number: u64) -> impl Iterator<Item = Ancestor> {
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
                [START, START] => return Some(a.by.cmp(&b.by)),
                [START, _] => return Some(Ordering::Less),
                [_, START] => return Some(Ordering::Greater),
                [one, other] => (a, b) = (*self.at(one)?, *self.at(other)?),
            }
        }
    }
}
