//! Lane state in lent memory: clocks of ranks, and messages under way.

use crate::sim::parameters::{EVERYWHERE, Parameters};
use crate::sim::price::{Leaving, Price, Reception};

/// A time in each lane, ps.
pub(super) type Times<const K: usize> = [u64; K];

/// Clocks of a rank in each lane.
const CLOCKS: usize = 4;

/// Clocks of a rank in each lane, in lent memory that is not touched before the rank's first event.
pub(super) struct Clocks<'a, const K: usize> {
    /// Time at which the processor is free, and the interface to send and to receive.
    pub(super) cpu: &'a mut Times<K>,
    pub(super) out: &'a mut Times<K>,
    pub(super) into: &'a mut Times<K>,
    /// Earliest instant at which the next message may arrive.
    pub(super) after: &'a mut Times<K>,
}

impl<'a, const K: usize> Clocks<'a, K> {
    #[inline]
    pub(super) fn of(clocks: &'a mut [u64], rank: u32, begun: &mut bool) -> Option<Self> {
        let start = (rank as usize).checked_mul(CLOCKS * K)?;
        let own = clocks.get_mut(start..start.checked_add(CLOCKS * K)?)?;
        if !core::mem::replace(begun, true) {
            own.fill(0);
        }
        let (cpu, rest) = own.split_first_chunk_mut()?;
        let (out, rest) = rest.split_first_chunk_mut()?;
        let (into, rest) = rest.split_first_chunk_mut()?;
        Some(Self { cpu, out, into, after: rest.first_chunk_mut()? })
    }
}

/// Memory of [`Lanes`](super::Lanes). The content on entry does not matter.
#[derive(Debug)]
pub struct LaneMemory<'m> {
    /// Four words for each lane of each rank.
    pub clocks: &'m mut [u64],
    /// For each node lent to the simulation: one word for each lane, and one more.
    pub messages: &'m mut [u64],
}

/// Prices of messages of one size in each lane, ps.
#[derive(Clone, Copy, Debug)]
pub(super) struct LanePrices<const K: usize> {
    pub(super) size: u64,
    pub(super) send: Times<K>,
    pub(super) gap: Times<K>,
    pub(super) receive: Times<K>,
    /// o + L: time from the start of a send to the arrival of its message.
    pub(super) delay: Times<K>,
}

impl<const K: usize> LanePrices<K> {
    /// Prices of messages of `size` bytes; `None` past 2⁶⁴ ps.
    pub(super) fn of(parameters: &[Parameters<'_>; K], size: u64) -> Option<Self> {
        let zero = [0; K];
        let mut prices = Self { size, send: zero, gap: zero, receive: zero, delay: zero };
        let places = prices.send.iter_mut().zip(&mut prices.gap);
        let places = places.zip(prices.receive.iter_mut().zip(&mut prices.delay));
        for (parameters, ((send, gap), (receive, delay))) in parameters.iter().zip(places) {
            let price = Price::of(parameters, EVERYWHERE, size).ok()?;
            let Leaving { cpu, out, arrival, .. } = price.leave(0, 0).ok()?;
            (*send, *gap, *delay) = (cpu, out, arrival);
            let how = Reception { overlap: false, last: false };
            *receive = price.handle(how, 0, 0, 0).ok()?.cpu;
        }
        Some(prices)
    }
}

/// State that all ranks share.
#[derive(Debug)]
pub(super) struct Shared<'m, const K: usize> {
    pub(super) prices: LanePrices<K>,
    pub(super) clocks: &'m mut [u64],
    /// Messages under way: arrival time in each lane, and the receive; for a free place, the next
    /// one of the free list.
    pub(super) messages: &'m mut [u64],
    /// First place that was never used, and first place of the free list.
    pub(super) fresh: u32,
    pub(super) free: u32,
    /// Place of the message that is being sent.
    pub(super) sending: u32,
    pub(super) makespans: Times<K>,
    /// True if the lanes have diverged: the order of events or a time is unknown in one of them.
    pub(super) apart: bool,
}

/// Sentinel: end of the free list.
pub(super) const NO_PLACE: u32 = u32::MAX;

#[allow(clippy::cast_possible_truncation, reason = "a u32 was put there")]
pub(super) const fn narrow(word: u64) -> u32 {
    word as u32
}

/// Words of a message: its arrival times, and its receive.
#[inline]
pub(super) fn message<const K: usize>(
    messages: &mut [u64],
    place: u32,
) -> Option<(&mut Times<K>, &mut u64)> {
    let start = (place as usize).checked_mul(K + 1)?;
    let (arrival, rest) = messages.get_mut(start..)?.split_first_chunk_mut()?;
    Some((arrival, rest.first_mut()?))
}

impl<const K: usize> Shared<'_, K> {
    /// Takes a place for a message to this receive; `None` if all are in use.
    pub(super) fn take(&mut self, receive: u32) -> Option<u32> {
        let place = if self.free == NO_PLACE { self.fresh } else { self.free };
        let word = message::<K>(self.messages, place)?.1;
        let next = core::mem::replace(word, receive.into());
        if self.free == NO_PLACE {
            self.fresh = self.fresh.checked_add(1)?;
        } else {
            self.free = narrow(next);
        }
        Some(place)
    }

    /// Receive that a message is addressed to.
    #[inline]
    pub(super) fn receive(&mut self, place: u32) -> Option<u32> {
        message::<K>(self.messages, place).map(|(_, receive)| narrow(*receive))
    }

    /// Removes a message; returns its arrival times and the receive that it is addressed to.
    pub(super) fn remove(&mut self, place: u32) -> Option<(Times<K>, u32)> {
        let next = self.free.into();
        let (&mut arrival, word) = message(self.messages, place)?;
        let receive = narrow(core::mem::replace(word, next));
        self.free = place;
        Some((arrival, receive))
    }
}

/// Updates the makespans after an event. True if a time reached the end, 2⁶⁴ − 1 ps, which leaves
/// one ps for [`Clocks::after`].
#[inline]
pub(super) fn held<const K: usize>(
    makespans: &mut Times<K>,
    cpu: &Times<K>,
    interface: &Times<K>,
) -> bool {
    let mut ended = false;
    for (last, (cpu, interface)) in makespans.iter_mut().zip(cpu.iter().zip(interface)) {
        *last = (*last).max(*cpu);
        ended |= (*cpu).max(*interface) == u64::MAX;
    }
    ended
}
