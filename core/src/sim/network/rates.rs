//! Rates: max-min fair shares of links (Bertsekas and Gallager, Data Networks, §6.5.2). A flow is
//! at most as fast as one interface, 1. All changes of one instant are computed at once, by
//! [`Rates::fill`], for the links that they concern.

use super::NetworkStopped;
use super::fabric::{Fabric, Route};
use super::memory::{Delivery, Flow, Hop, Link, Memory, NONE, QueuedLink};
use super::observer::{FlowRate, Watch};
use super::order::Order;
use crate::sim::queues::agenda::Agenda;
use crate::sim::queues::queue::Entry;
use crate::units::Overflow;

/// Links, the flows on them, and the ends of these.
#[derive(Debug)]
pub(super) struct Rates<'m> {
    pub(super) links: &'m mut [Link],
    pub(super) hops: &'m mut [Hop],
    pub(super) flows: &'m mut [Flow],
    /// Queue of ends: for each link that limits flows the first end of one, under the link's
    /// number; and the ends of flows without a bottleneck, under the number of links plus that of
    /// the flow.
    pub(super) ends: Agenda<'m>,
    /// Heap of links to be filled, and its length.
    pub(super) link_queue: &'m mut [QueuedLink],
    pub(super) link_queue_length: usize,
    /// Links whose flows have changed since rates were computed, and their number.
    pub(super) changed: &'m mut [u32],
    pub(super) changed_count: usize,
    /// Flows without a bottleneck since then, whose ends are not queued yet, and their number.
    pub(super) unlimited: &'m mut [u32],
    pub(super) unlimited_count: usize,
    /// Largest number of links of a flow.
    pub(super) longest_route: u32,
    pub(super) order: Order<'m>,
    /// Number of passes.
    pub(super) pass: u64,
    /// Level of the current pass: all rates below it are final.
    pub(super) level: f64,
    pub(super) watch: Option<Watch<'m>>,
}

impl Flow {
    /// End of a flow that has `remaining` left at `since`, at its present rate, ps.
    #[inline]
    fn end(&self, remaining: f64) -> Result<u64, Overflow> {
        self.since.checked_add(time_left(remaining, self.rate)).ok_or(Overflow)
    }

    /// Queue entry of its end, under its own number or that of its bottleneck.
    #[inline]
    const fn end_entry(&self, time: u64, index: u32) -> Entry {
        Entry { time, created: self.created, seq: self.seq, index }
    }

    /// True if a flow that has `remaining` left at `since`, at its present rate, has ended by
    /// `now`.
    #[inline]
    fn has_ended(&self, remaining: f64, now: u64) -> bool {
        // Avoids the division for most flows.
        remaining <= self.rate * (real(now - self.since) + 1.0)
            && self.end(remaining).is_ok_and(|end| end <= now)
    }
}

#[allow(clippy::cast_precision_loss, reason = "times are far below 2^53 ps, or lose the last bits")]
pub(super) const fn real(time: u64) -> f64 {
    time as f64
}

/// Time that `remaining` takes at `rate`, rounded to ps, at least 1.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both are positive; the cast saturates, which the caller notices"
)]
fn time_left(remaining: f64, rate: f64) -> u64 {
    ((remaining / rate + 0.5) as u64).max(1)
}

impl<'m> Rates<'m> {
    /// State without flows, on the links of `fabric`.
    pub(super) fn new(memory: Memory<'m>, fabric: &impl Fabric) -> Self {
        for (link, state) in (0..).zip(memory.links.iter_mut()) {
            let capacity = fabric.capacity(link);
            *state = Link {
                capacity,
                spare: capacity,
                first: NONE,
                leader: NONE,
                end_position: NONE,
                queue_position: NONE,
                ..Link::default()
            };
        }
        Self {
            links: memory.links,
            hops: memory.hops,
            flows: memory.flows,
            ends: Agenda::new(memory.ends, memory.ends_in_order),
            link_queue: memory.link_queue,
            link_queue_length: 0,
            changed: memory.changed,
            changed_count: 0,
            unlimited: memory.unlimited,
            unlimited_count: 0,
            longest_route: fabric.longest_route(),
            order: Order::new(memory.deliveries, memory.buckets),
            pass: 0,
            level: 0.0,
            watch: None,
        }
    }

    /// End of the first flow; flows that began at this instant may be missing before
    /// [`Rates::solve`].
    #[inline]
    pub(super) fn first_end(&self) -> Option<u64> {
        self.ends.first().map(|end| end.time)
    }

    /// Number of the first flow in the queue of ends, after the links.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "links and flows together are below 2^32")]
    const fn first_flow(&self) -> u32 {
        self.links.len() as u32
    }

    /// True if rates have to be computed before time advances.
    #[inline]
    pub(super) const fn is_stale(&self) -> bool {
        self.changed_count > 0
    }

    /// Begins a flow at its creation, over the links of `route`.
    ///
    /// # Errors
    ///
    /// [`NetworkStopped`] if all flows are in use, or the end exceeds 2⁶⁴ ps.
    pub(super) fn begin(
        &mut self,
        flow: Flow,
        delivery: Delivery,
        route: &Route<'_, impl Fabric>,
    ) -> Result<(), NetworkStopped> {
        let full = NetworkStopped::Full { messages: self.flows.len() };
        let now = flow.created;
        // End of the flow on unshared links, the earliest possible.
        let time = now.checked_add(flow.volume).ok_or(NetworkStopped::Overflow)?;
        let at = self.order.begin(delivery).ok_or(full)?;
        let state = self.flows.get_mut(at as usize).ok_or(full)?;
        *state = Flow {
            remaining: real(flow.volume),
            rate: 1.0,
            since: now,
            end_position: NONE,
            bottleneck: NONE,
            hops: 0,
            ..flow
        };
        let longest_route = self.longest_route;
        let first = at as usize * longest_route as usize;
        let Self { links, hops, .. } = self;
        let (mut taken, mut overfull) = (0, false);
        route.each_link(|link| {
            debug_assert!(taken < longest_route, "no route is longer than the longest");
            let hop = Hop { link, flow: at, ..Hop::default() };
            overfull |= enlist(links, hops, hop, first + taken as usize);
            taken += 1;
        });
        state.hops = taken;
        if overfull {
            for hop in first..first + taken as usize {
                let link = self.hops.get(hop).map_or(NONE, |hop| hop.link);
                if self.links.get(link as usize).is_some_and(Link::is_overfull) {
                    self.mark_changed(link);
                }
            }
            self.list_unlimited(at);
            return Ok(());
        }
        self.note_flow_end(at, time);
        Ok(())
    }

    /// Ends the flows of the first entry of the queue of ends, if it is due by `now`; calls
    /// `through` with the messages that are complete then. `None` if no entry is due.
    pub(super) fn end(
        &mut self,
        now: u64,
        mut through: impl FnMut(&Flow, &Delivery),
    ) -> Option<()> {
        let end = self.ends.first().filter(|end| end.time <= now)?;
        let Self { ends, flows, links, .. } = self;
        ends.remove_first(|end, at| note_position(links, flows, end, at));
        let after_links = end.index.wrapping_sub(self.first_flow());
        let Some(link) = self.links.get_mut(end.index as usize) else {
            self.end_flow(after_links, now, &mut through);
            return Some(());
        };
        link.end_position = NONE;
        let (leader, second) = (link.leader, link.second_remaining);
        if !self.flows.get(leader as usize).is_some_and(|flow| flow.has_ended(second, now)) {
            self.end_flow(leader, now, &mut through);
            return Some(());
        }
        let mut at = link.first;
        while let Some(&Hop { flow, next, .. }) = self.hops.get(at as usize) {
            at = next;
            let ended =
                |flow: &Flow| flow.bottleneck == end.index && flow.has_ended(flow.remaining, now);
            if self.flows.get(flow as usize).is_some_and(ended) {
                self.end_flow(flow, now, &mut through);
            }
        }
        Some(())
    }

    /// Ends a flow.
    fn end_flow(&mut self, at: u32, now: u64, mut through: impl FnMut(&Flow, &Delivery)) {
        let Some(&flow) = self.flows.get(at as usize) else { return };
        let route = hops_of(at, &flow, self.longest_route);
        if let Some(watch) = &mut self.watch {
            let ended = FlowRate { op: flow.op, now, rate: 0.0, bottleneck: None };
            watch.note(self.hops, route.clone(), &flow, &ended);
        }
        for hop in route {
            self.leave(hop, &flow);
        }
        if let Some(link) = self.links.get_mut(flow.bottleneck as usize) {
            link.release(at);
        }
        if let Some(earlier) = self.order.end(at) {
            return self.order.wait(at, earlier);
        }
        let flows = &self.flows;
        self.order.let_through(at, |at, delivery| {
            if let Some(flow) = flows.get(at as usize) {
                through(flow, delivery);
            }
        });
    }

    /// Lets a message without bytes wait until earlier ones of its pair of ranks are complete;
    /// `false` if there are none.
    pub(super) fn wait_in_order(&mut self, flow: Flow, delivery: Delivery) -> bool {
        let Some(earlier) = self.order.newest(delivery.pair) else { return false };
        let Some(at) = self.order.add(delivery) else { return false };
        if let Some(slot) = self.flows.get_mut(at as usize) {
            *slot = flow;
        }
        self.order.wait(at, earlier);
        true
    }

    /// Removes a flow from a link.
    fn leave(&mut self, at: usize, flow: &Flow) {
        let Some(&Hop { link, .. }) = self.hops.get(at) else { return };
        let Some(state) = self.links.get_mut(link as usize) else { return };
        state.carried += real(flow.volume);
        state.spare += flow.rate;
        if state.limited_flows > 0 {
            self.mark_changed(link);
        }
        unlink(self.links, self.hops, at);
    }

    /// Lists a link whose flows have changed.
    #[inline]
    pub(super) fn mark_changed(&mut self, link: u32) {
        let Some(state) = self.links.get_mut(link as usize).filter(|link| !link.is_changed) else {
            return;
        };
        if let Some(slot) = self.changed.get_mut(self.changed_count) {
            *slot = link;
            state.is_changed = true;
            self.changed_count += 1;
        }
    }

    /// Lists a flow without a bottleneck.
    #[inline]
    pub(super) fn list_unlimited(&mut self, flow: u32) {
        debug_assert!(self.unlimited_count < self.unlimited.len(), "a flow is listed once a pass");
        if let Some(slot) = self.unlimited.get_mut(self.unlimited_count) {
            *slot = flow;
            self.unlimited_count += 1;
        }
    }

    /// Computes the rates that have changed, as of `now`.
    ///
    /// # Errors
    ///
    /// [`Overflow`] if the end of a flow exceeds 2⁶⁴ ps.
    pub(super) fn solve(&mut self, now: u64) -> Result<(), Overflow> {
        self.fill(now);
        let (changed_count, unlimited_count) = (self.changed_count, self.unlimited_count);
        (self.changed_count, self.unlimited_count) = (0, 0);
        // Removals first: the queue has room for one end for each flow.
        for index in 0..changed_count {
            let Some(&link) = self.changed.get(index) else { break };
            if self.links.get(link as usize).is_some_and(|link| link.leader == NONE) {
                self.note_link_end(link)?;
            }
        }
        for index in 0..unlimited_count {
            let Some(&at) = self.unlimited.get(index) else { break };
            let Some(flow) = self.flows.get(at as usize) else { break };
            if flow.bottleneck == NONE && flow.end_position == NONE {
                let time = flow.end(flow.remaining)?;
                self.note_flow_end(at, time);
            }
        }
        for index in 0..changed_count {
            let Some(&link) = self.changed.get(index) else { break };
            self.note_link_end(link)?;
        }
        #[cfg(debug_assertions)]
        for &link in self.changed.iter().take(changed_count).take(super::filling::CHECKED) {
            self.check(link);
        }
        Ok(())
    }

    /// Queues the end of a flow without a bottleneck.
    fn note_flow_end(&mut self, at: u32, time: u64) {
        let Some(flow) = self.flows.get(at as usize) else { return };
        let end = flow.end_entry(time, self.first_flow().wrapping_add(at));
        let Self { ends, flows, links, .. } = self;
        ends.add(end, |end, at| note_position(links, flows, end, at));
    }

    /// Updates the end of a link's leader in the queue.
    fn note_link_end(&mut self, link: u32) -> Result<(), Overflow> {
        let Some(state) = self.links.get_mut(link as usize) else { return Ok(()) };
        state.is_changed = false;
        let position = state.end_position as usize;
        debug_assert_eq!(
            state.limited_flows == 0,
            state.leader == NONE,
            "one of the flows ends first"
        );
        let Some(flow) = self.flows.get(state.leader as usize) else {
            if core::mem::replace(&mut state.end_position, NONE) != NONE {
                let Self { ends, flows, links, .. } = self;
                ends.remove(position, |end, at| note_position(links, flows, end, at));
            }
            return Ok(());
        };
        let end = flow.end_entry(flow.end(flow.remaining)?, link);
        let Self { ends, flows, links, .. } = self;
        ends.set(position, end, |end, at| note_position(links, flows, end, at));
        Ok(())
    }
}

/// Stores the position of an end in the queue.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "at most two positions a flow")]
pub(super) fn note_position(links: &mut [Link], flows: &mut [Flow], end: &Entry, at: usize) {
    let flow = (end.index as usize).wrapping_sub(links.len());
    if let Some(link) = links.get_mut(end.index as usize) {
        link.end_position = at as u32;
    } else if let Some(flow) = flows.get_mut(flow) {
        flow.end_position = at as u32;
    }
}

/// Range of the hops of a flow.
#[inline]
pub(super) const fn hops_of(at: u32, flow: &Flow, longest_route: u32) -> core::ops::Range<usize> {
    let first = at as usize * longest_route as usize;
    first..first + flow.hops as usize
}

/// Adds a flow at rate 1 to the link of one of its hops; true if the link is overfull then.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the caller lends at most 2^32 - 1 hops")]
pub(super) fn enlist(links: &mut [Link], hops: &mut [Hop], hop: Hop, at: usize) -> bool {
    let Some(state) = links.get_mut(hop.link as usize) else { return false };
    let next = state.first;
    if let Some(slot) = hops.get_mut(at) {
        *slot = Hop { next, before: NONE, ..hop };
        state.first = at as u32;
        state.flows += 1;
        state.spare -= 1.0;
        state.fastest = 1.0;
        if let Some(hop) = hops.get_mut(next as usize) {
            hop.before = at as u32;
        }
    }
    state.is_overfull()
}

/// Removes a flow from the link of one of its hops.
#[inline]
pub(super) fn unlink(links: &mut [Link], hops: &mut [Hop], at: usize) {
    let Some(&Hop { link, next, before, .. }) = hops.get(at) else { return };
    let Some(state) = links.get_mut(link as usize) else { return };
    debug_assert!(state.flows > 0, "what leaves a link was on it");
    state.flows = state.flows.saturating_sub(1);
    if state.flows == 0 {
        state.spare = state.capacity;
    }
    match hops.get_mut(before as usize) {
        Some(before) => before.next = next,
        None => state.first = next,
    }
    if let Some(next) = hops.get_mut(next as usize) {
        next.before = before;
    }
}
