//! LogGOPSim's network `simple`: links of one byte per ns, shared by counting messages.
//!
//! A message of s bytes occupies all links of its route from its send until it has left the
//! network. Its bytes advance at 1 B/ns divided by its congestion, the largest number of messages
//! on any of its links. The remaining bytes are counted in 1/10,000 byte, and updated when the
//! congestion may change and when the message is polled: first o + L after its send, then after the
//! time that the remaining bytes would take alone, in whole ns. It leaves the network at the first
//! poll that finds nothing left.
//! `docs/networks.md` has the rules, and the differences from LogGOPSim's.
//!
//! A message costs O(messages on its links × longest route) when it enters and when it leaves, and
//! O(c·log s) polls, with c its congestion.

use super::build_error::NetworkBuildError;
use super::fabric::{Fabric, PlacedFabric, Tenants};
use super::free_list::FreeList;
use super::memory::{Hop, Link, NONE};
use super::rates::{enlist, unlink};
use super::{Departure, Network, NetworkStopped};
use crate::sim::lent::lent_memory;
use crate::sim::queues::agenda::Agenda;
use crate::sim::queues::queue::Entry;

/// Units per byte, in which the remaining bytes of a message are counted.
const UNITS: u64 = 10_000;
/// Units that a link carries in a picosecond: 1 B/ns.
const PACE: u64 = 10;
const PICOS_PER_NANO: u64 = 1000;

/// A message that has not arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transmission {
    /// Units left at `since`.
    left: u64,
    since: u64,
    /// Stamp and record of the message.
    created: u64,
    seq: u32,
    op: u32,
    /// Number of links that it occupies; 0 once it has left the network.
    hops: u32,
    /// For a free element, the next free one.
    next_free: u32,
}

lent_memory! {
    parts {
        /// Links.
        links: Link,
        /// Hops of messages on links.
        hops: Hop,
        /// Messages that have not arrived.
        transmissions: Transmission,
        /// Next poll of each message.
        polls: Entry,
        /// Time at which each message would have left alone.
        alone: Entry,
    }
    further {}
}

impl Requirements {
    /// Requirements for at most `messages` messages under way at a time; saturating.
    #[must_use]
    pub fn new(fabric: &impl Fabric, messages: usize) -> Self {
        Self {
            links: fabric.links() as usize,
            hops: messages.saturating_mul(fabric.longest_route() as usize),
            transmissions: messages,
            polls: messages,
            alone: messages,
        }
    }
}

/// Network in which messages slow each other down by their number, as LogGOPSim's `simple`.
#[derive(Debug)]
pub struct Simple<'m, F> {
    fabric: PlacedFabric<'m, F>,
    links: &'m mut [Link],
    /// Hops: the length of the longest route for each transmission.
    hops: &'m mut [Hop],
    longest: usize,
    transmissions: &'m mut [Transmission],
    /// Entries of `polls` and `alone` have transmissions in place of ranks.
    polls: Agenda<'m>,
    alone: Agenda<'m>,
    free: FreeList,
    begun: u64,
    now: u64,
}

impl<'m, F: Fabric> Simple<'m, F> {
    /// Creates a network on `fabric` with a placement of ranks. Link capacities have no effect.
    ///
    /// # Errors
    ///
    /// [`NetworkBuildError`].
    pub fn new(
        fabric: &'m F,
        tenants: Tenants<'m>,
        memory: Memory<'m>,
    ) -> Result<Self, NetworkBuildError> {
        let needs = Requirements::new(fabric, tenants.messages);
        let numbers = needs.hops.max(needs.transmissions);
        let is_small = u32::try_from(numbers).is_ok_and(|most| most < NONE);
        let memory = memory.cut(&needs).filter(|_| is_small).ok_or(NetworkBuildError::Full)?;
        let placed = PlacedFabric::new(fabric, &tenants)?;
        memory.links.fill(Link { first: NONE, ..Link::default() });
        Ok(Self {
            links: memory.links,
            hops: memory.hops,
            longest: fabric.longest_route() as usize,
            transmissions: memory.transmissions,
            fabric: placed,
            polls: Agenda::new(memory.polls, &mut []),
            alone: Agenda::new(memory.alone, &mut []),
            free: FreeList::new(),
            begun: 0,
            now: 0,
        })
    }

    /// Topology of the network.
    #[must_use]
    pub const fn fabric(&self) -> &'m F {
        self.fabric.fabric
    }

    /// Number of messages.
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// Takes a free transmission.
    fn take(&mut self) -> Option<u32> {
        let next = |at: u32| self.transmissions.get(at as usize).map_or(NONE, |one| one.next_free);
        self.free.take(self.transmissions.len(), next)
    }

    /// Range of the hops of a transmission.
    fn hops_of(&self, at: u32) -> core::ops::Range<usize> {
        let first = (at as usize).saturating_mul(self.longest);
        let count = self.transmissions.get(at as usize).map_or(0, |message| message.hops as usize);
        first..first + count
    }

    /// Congestion: largest number of messages on any link of a transmission, itself included.
    fn congestion(&self, at: u32) -> u64 {
        let hops = self.hops.get(self.hops_of(at)).unwrap_or_default();
        let on = |hop: &Hop| self.links.get(hop.link as usize).map_or(0, |link| link.flows);
        hops.iter().map(on).max().unwrap_or_default().max(1).into()
    }

    /// Updates the remaining bytes of a transmission, at its present congestion.
    fn advance(&mut self, at: u32) {
        let (now, congestion) = (self.now, self.congestion(at));
        let Some(message) = self.transmissions.get_mut(at as usize) else { return };
        debug_assert!(now >= message.since, "time goes on");
        let spent = now - message.since;
        // Past 2⁶⁴ units, 21 days, the remainder of the division is lost.
        let carried = match spent.checked_mul(PACE) {
            Some(units) => units / congestion,
            None => (spent / congestion).saturating_mul(PACE),
        };
        // A time too short for one unit is kept for the next update; otherwise messages on a link
        // with many others would never advance.
        if carried > 0 {
            message.left = message.left.saturating_sub(carried);
            message.since = now;
        }
    }

    /// Updates all messages on the links of a transmission.
    fn advance_neighbours(&mut self, at: u32) {
        for hop in self.hops_of(at) {
            let link = self.hops.get(hop).map_or(NONE, |hop| hop.link);
            let mut next = self.links.get(link as usize).map_or(NONE, |link| link.first);
            while let Some(&Hop { flow, next: after, .. }) = self.hops.get(next as usize) {
                self.advance(flow);
                next = after;
            }
        }
    }

    /// Occupies the links of a transmission, as listed in its hops.
    fn occupy(&mut self, at: u32) {
        self.advance_neighbours(at);
        for own in self.hops_of(at) {
            let link = self.hops.get(own).map_or(NONE, |hop| hop.link);
            enlist(self.links, self.hops, Hop { link, flow: at, ..Hop::default() }, own);
        }
    }

    /// Updates a transmission and removes it from the network if nothing is left; true if removed.
    fn poll(&mut self, at: u32) -> bool {
        self.advance(at);
        if self.transmissions.get(at as usize).is_some_and(|message| message.left > 0) {
            return false;
        }
        self.advance_neighbours(at);
        for own in self.hops_of(at) {
            unlink(self.links, self.hops, own);
        }
        if let Some(message) = self.transmissions.get_mut(at as usize) {
            message.hops = 0;
        }
        true
    }

    /// Polls the messages that would leave now if they had been alone, oldest first, so that a
    /// message that enters now does not share links with them.
    fn poll_alone(&mut self) {
        while let Some(entry) = self.alone.first().filter(|entry| entry.time <= self.now) {
            self.alone.remove_first(|_, _| {});
            let stamp = |message: &Transmission| (message.created, message.seq);
            let found = self.transmissions.get(entry.index as usize).map(stamp);
            if entry.time == self.now && found == Some((entry.created, entry.seq)) {
                self.poll(entry.index);
            }
        }
    }
}

impl<F: Fabric> Network for Simple<'_, F> {
    const SHARED: bool = true;
    const CHARGES: bool = false;

    fn launch(&mut self, departure: &Departure) -> Result<(), NetworkStopped> {
        let Departure { op, now, seq, bytes, delay, .. } = *departure;
        debug_assert!(now >= self.now, "messages leave in the order of time");
        self.now = now;
        self.poll_alone();
        let full = NetworkStopped::Full { messages: self.transmissions.len() };
        let at = self.take().ok_or(full)?;
        let units = bytes.checked_mul(UNITS).ok_or(NetworkStopped::Overflow)?;
        let alone = bytes.checked_mul(PICOS_PER_NANO).and_then(|took| now.checked_add(took));
        let alone = alone.ok_or(NetworkStopped::Overflow)?;
        let arrival = now.checked_add(delay).ok_or(NetworkStopped::Overflow)?;
        self.begun += 1;
        let first = self.hops_of(at).start;
        let mut count = 0;
        self.fabric.route_of(departure).each_link(|link| {
            debug_assert!((count as usize) < self.longest, "no route is longer");
            if let Some(hop) = self.hops.get_mut(first + count as usize) {
                hop.link = link;
                count += 1;
            }
        });
        let transmission = Transmission {
            left: units,
            since: now,
            created: now,
            seq,
            op,
            // A message without bytes occupies no link.
            hops: if bytes > 0 { count } else { 0 },
            next_free: NONE,
        };
        if let Some(message) = self.transmissions.get_mut(at as usize) {
            *message = transmission;
        }
        self.occupy(at);
        self.polls.add(Entry { time: arrival, created: now, seq, index: at }, |_, _| {});
        if bytes > 0 {
            // There is room: entries of messages that have left were polled and removed.
            self.alone.add(Entry { time: alone, created: now, seq, index: at }, |_, _| {});
        }
        Ok(())
    }

    #[inline]
    fn first(&mut self, _next: u64) -> Result<Option<Entry>, NetworkStopped> {
        let op = |at: u32| self.transmissions.get(at as usize).map_or(NONE, |message| message.op);
        Ok(self.polls.first().map(|entry| Entry { index: op(entry.index), ..entry }))
    }

    fn postpone(&mut self, free: u64) -> Result<bool, NetworkStopped> {
        let Some(entry) = self.polls.first() else { return Ok(false) };
        debug_assert!(entry.time >= self.now, "time goes on");
        self.now = entry.time;
        if self.poll(entry.index) {
            return Ok(false);
        }
        let left = self.transmissions.get(entry.index as usize).map_or(0, |message| message.left);
        let wait = left.div_ceil(UNITS).saturating_mul(PICOS_PER_NANO);
        let time = self.now.checked_add(wait).ok_or(NetworkStopped::Overflow)?.max(free);
        debug_assert!(time > self.now, "the next poll is later");
        self.polls.remove_first(|_, _| {});
        self.polls.add(Entry { time, ..entry }, |_, _| {});
        Ok(true)
    }

    fn land(&mut self) {
        let Some(entry) = self.polls.first() else {
            debug_assert!(false, "what lands was under way");
            return;
        };
        self.polls.remove_first(|_, _| {});
        let Some(message) = self.transmissions.get_mut(entry.index as usize) else { return };
        debug_assert!(message.left == 0 && message.hops == 0, "what lands has left the network");
        message.next_free = self.free.give_back(entry.index);
    }
}
