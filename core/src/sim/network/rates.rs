//! Rates: max-min fair shares of links (Bertsekas and Gallager, Data Networks,
//! §6.5.2). A flow is never faster than one interface, 1. Changes of one instant
//! are computed once, by [`Rates::fill`], for the links that they concern.

use super::NetworkStopped;
use super::fabric::{Fabric, Route};
use super::memory::{Delivery, Flow, Hop, Link, Memory, NONE, Share};
use super::observer::{FlowObserver, FlowRate};
use super::order::Order;
use super::usage::Usage;
use crate::sim::agenda::Agenda;
use crate::sim::queue::Entry;
use crate::units::Overflow;

/// Links, the flows on them, and when these end.
#[derive(Debug)]
pub(super) struct Rates<'m, T> {
    pub(super) links: &'m mut [Link],
    pub(super) hops: &'m mut [Hop],
    pub(super) flows: &'m mut [Flow],
    /// When the first of the flows ends that a link holds back, by the link; and
    /// when one ends that nothing holds back, by the number of links and its own.
    pub(super) ends: Agenda<'m>,
    /// Links to be filled, by a rate below which nothing changes there; and how
    /// many.
    pub(super) queue: &'m mut [Share],
    pub(super) queued: usize,
    /// Links whose flows have changed since rates were computed; and how many.
    pub(super) changed: &'m mut [u32],
    pub(super) touched: usize,
    /// Flows that nothing holds back since then, whose ends are not noted yet; and
    /// how many.
    pub(super) unheld: &'m mut [u32],
    pub(super) unheld_flows: usize,
    /// The most links of a flow.
    pub(super) width: u32,
    pub(super) order: Order<'m>,
    pub(super) solution: u64,
    /// The rate below which all are final.
    pub(super) level: f64,
    pub(super) usage: Option<Usage<'m>>,
    pub(super) observer: T,
}

impl Flow {
    /// When one as fast with so much left ends.
    #[inline]
    fn end(&self, remaining: f64) -> Result<u64, Overflow> {
        self.since.checked_add(time_left(remaining, self.rate)).ok_or(Overflow)
    }

    /// What the queue says of its end: for it, or for the link that holds it back.
    #[inline]
    const fn ends_at(&self, time: u64, rank: u32) -> Entry {
        Entry { time, created: self.created, seq: self.seq, rank }
    }

    /// Whether one as fast with so much left has ended by `now`.
    #[inline]
    fn is_past(&self, remaining: f64, now: u64) -> bool {
        // Without a division for most.
        remaining <= self.rate * (real(now - self.since) + 1.0)
            && self.end(remaining).is_ok_and(|end| end <= now)
    }
}

#[allow(clippy::cast_precision_loss, reason = "times are far below 2^53 ps, or lose the last bits")]
pub(super) const fn real(time: u64) -> f64 {
    time as f64
}

/// The time that `remaining` takes at `rate`, to the nearest ps, at least one.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both are positive; the cast saturates, which the caller notices"
)]
fn time_left(remaining: f64, rate: f64) -> u64 {
    ((remaining / rate + 0.5) as u64).max(1)
}

impl<'m, T: FlowObserver> Rates<'m, T> {
    /// Without flows, on the links of `fabric`.
    pub(super) fn new(memory: Memory<'m>, fabric: &impl Fabric, observer: T) -> Self {
        for (link, state) in (0..).zip(memory.links.iter_mut()) {
            let capacity = fabric.capacity(link);
            *state = Link {
                capacity,
                spare: capacity,
                first: NONE,
                leader: NONE,
                end: NONE,
                place: NONE,
                ..Link::default()
            };
        }
        Self {
            links: memory.links,
            hops: memory.hops,
            flows: memory.flows,
            ends: Agenda::new(memory.ends, memory.ends_in_order),
            queue: memory.shares,
            queued: 0,
            changed: memory.changed,
            touched: 0,
            unheld: memory.unheld,
            unheld_flows: 0,
            width: fabric.longest_route(),
            order: Order::new(memory.deliveries, memory.buckets),
            solution: 0,
            level: 0.0,
            usage: None,
            observer,
        }
    }

    /// When the first flow ends; those that began at this instant may not be
    /// among them before [`Rates::solve`].
    #[inline]
    pub(super) fn first_end(&self) -> Option<u64> {
        self.ends.first().map(|end| end.time)
    }

    /// The number among ends of the first flow, which follows those of links.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "links and flows together are below 2^32")]
    const fn first_flow(&self) -> u32 {
        self.links.len() as u32
    }

    /// Whether rates have to be computed before time goes on.
    #[inline]
    pub(super) const fn is_stale(&self) -> bool {
        self.touched > 0
    }

    /// Begins a flow when it was created, over the links of `route`.
    ///
    /// # Errors
    ///
    /// [`NetworkStopped`] where all flows are taken, or it would end past
    /// 2⁶⁴ ps.
    pub(super) fn begin(
        &mut self,
        flow: Flow,
        delivery: Delivery,
        route: &Route<'_, impl Fabric>,
    ) -> Result<(), NetworkStopped> {
        let full = NetworkStopped::Full { messages: self.flows.len() };
        let at = self.order.begin(delivery).ok_or(full)?;
        let now = flow.created;
        let place = self.flows.get_mut(at as usize).ok_or(full)?;
        *place = Flow {
            remaining: real(flow.volume),
            rate: 1.0,
            since: now,
            place: NONE,
            held_by: NONE,
            hops: 0,
            ..flow
        };
        let (mut taken, width, first) = (0, self.width, at as usize * self.width as usize);
        let Self { links, hops, .. } = self;
        let mut overfull = false;
        route.each_link(|link| {
            debug_assert!(taken < width, "no route is longer than the longest");
            let hop = Hop { link, flow: at, ..Hop::default() };
            overfull |= enlist(links, hops, hop, first + taken as usize);
            taken += 1;
        });
        place.hops = taken;
        if overfull {
            for hop in first..first + taken as usize {
                let link = self.hops.get(hop).map_or(NONE, |hop| hop.link);
                if self.links.get(link as usize).is_some_and(Link::is_overfull) {
                    self.touch(link);
                }
            }
            self.let_go(at);
            return Ok(());
        }
        // Who comes later at this instant finds it.
        let time = now.checked_add(flow.volume).ok_or(NetworkStopped::Overflow)?;
        self.note_end(at, time);
        Ok(())
    }

    /// Takes out the flows that are the first to have ended by `now`, and calls
    /// `through` with the messages that are through by that; `None` where none
    /// has ended.
    pub(super) fn end(
        &mut self,
        now: u64,
        mut through: impl FnMut(&Flow, &Delivery),
    ) -> Option<()> {
        let end = self.ends.first().filter(|end| end.time <= now)?;
        let Self { ends, flows, links, .. } = self;
        ends.remove_first(|end, at| note(links, flows, end, at));
        let after_links = end.rank.wrapping_sub(self.first_flow());
        let Some(link) = self.links.get_mut(end.rank as usize) else {
            self.end_flow(after_links, now, &mut through);
            return Some(());
        };
        link.end = NONE;
        let (leader, second) = (link.leader, link.second);
        if !self.flows.get(leader as usize).is_some_and(|flow| flow.is_past(second, now)) {
            self.end_flow(leader, now, &mut through);
            return Some(());
        }
        let mut at = link.first;
        while let Some(&Hop { flow, next, .. }) = self.hops.get(at as usize) {
            at = next;
            let ended = |flow: &Flow| flow.held_by == end.rank && flow.is_past(flow.remaining, now);
            if self.flows.get(flow as usize).is_some_and(ended) {
                self.end_flow(flow, now, &mut through);
            }
        }
        Some(())
    }

    /// Ends a flow.
    fn end_flow(&mut self, at: u32, now: u64, mut through: impl FnMut(&Flow, &Delivery)) {
        let Some(&flow) = self.flows.get(at as usize) else { return };
        let route = route_of(at, &flow, self.width);
        if let Some(usage) = &mut self.usage {
            usage.add_flow(self.hops, route.clone(), &flow, now);
        }
        self.observer.changed(&FlowRate::of(&flow, 0.0, now));
        for hop in route {
            self.leave(hop, &flow);
        }
        if let Some(link) = self.links.get_mut(flow.held_by as usize) {
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

    /// Lets a message without bytes wait until earlier ones of its pair of ranks are
    /// through; `false` where there are none.
    pub(super) fn wait_in_order(&mut self, flow: Flow, delivery: Delivery) -> bool {
        let Some(earlier) = self.order.newest(delivery.pair) else { return false };
        let Some(at) = self.order.add(delivery) else { return false };
        if let Some(place) = self.flows.get_mut(at as usize) {
            *place = flow;
        }
        self.order.wait(at, earlier);
        true
    }

    /// Takes a flow off a link.
    fn leave(&mut self, at: usize, flow: &Flow) {
        let Some(&Hop { link, .. }) = self.hops.get(at) else { return };
        let Some(state) = self.links.get_mut(link as usize) else { return };
        state.carried += real(flow.volume);
        state.spare += flow.rate;
        if state.holds > 0 {
            self.touch(link);
        }
        unlink(self.links, self.hops, at);
    }

    /// Lists a link whose flows have changed.
    #[inline]
    pub(super) fn touch(&mut self, link: u32) {
        let Some(state) = self.links.get_mut(link as usize).filter(|link| !link.touched) else {
            return;
        };
        if let Some(place) = self.changed.get_mut(self.touched) {
            *place = link;
            state.touched = true;
            self.touched += 1;
        }
    }

    /// Lists a flow that nothing holds back.
    #[inline]
    pub(super) fn let_go(&mut self, flow: u32) {
        debug_assert!(self.unheld_flows < self.unheld.len(), "a flow is let go once");
        if let Some(place) = self.unheld.get_mut(self.unheld_flows) {
            *place = flow;
            self.unheld_flows += 1;
        }
    }

    /// Computes the rates that have changed, as of `now`.
    ///
    /// # Errors
    ///
    /// [`Overflow`] when a flow ends past 2⁶⁴ ps.
    pub(super) fn solve(&mut self, now: u64) -> Result<(), Overflow> {
        self.fill(now);
        let (touched, unheld_flows) = (self.touched, self.unheld_flows);
        (self.touched, self.unheld_flows) = (0, 0);
        // Those first that have no end any more: there is room for one a flow.
        for place in 0..touched {
            let Some(&link) = self.changed.get(place) else { break };
            if self.links.get(link as usize).is_some_and(|link| link.leader == NONE) {
                self.note_ends(link)?;
            }
        }
        for place in 0..unheld_flows {
            let Some(&at) = self.unheld.get(place) else { break };
            let Some(flow) = self.flows.get(at as usize) else { break };
            if flow.held_by == NONE && flow.place == NONE {
                let time = flow.end(flow.remaining)?;
                self.note_end(at, time);
            }
        }
        for place in 0..touched {
            let Some(&link) = self.changed.get(place) else { break };
            self.note_ends(link)?;
        }
        // A few are enough, and all would take the square of their number.
        #[cfg(debug_assertions)]
        for place in 0..touched.min(8) {
            self.check(self.changed.get(place).copied().unwrap_or_default());
        }
        Ok(())
    }

    /// Notes when a flow ends that nothing holds back.
    fn note_end(&mut self, at: u32, time: u64) {
        let Some(flow) = self.flows.get(at as usize) else { return };
        let end = flow.ends_at(time, self.first_flow().wrapping_add(at));
        let Self { ends, flows, links, .. } = self;
        ends.add(end, |end, at| note(links, flows, end, at));
    }

    /// Notes when the first flow ends that a link holds back.
    fn note_ends(&mut self, link: u32) -> Result<(), Overflow> {
        let Some(state) = self.links.get_mut(link as usize) else { return Ok(()) };
        state.touched = false;
        let place = state.end as usize;
        debug_assert_eq!(state.holds == 0, state.leader == NONE, "one of the flows ends first");
        let Some(flow) = self.flows.get(state.leader as usize) else {
            if core::mem::replace(&mut state.end, NONE) != NONE {
                let Self { ends, flows, links, .. } = self;
                ends.remove(place, |end, at| note(links, flows, end, at));
            }
            return Ok(());
        };
        let end = flow.ends_at(flow.end(flow.remaining)?, link);
        let Self { ends, flows, links, .. } = self;
        ends.set(place, end, |end, at| note(links, flows, end, at));
        Ok(())
    }
}

/// Notes where in the queue of ends one is.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "at most one place a flow")]
pub(super) fn note(links: &mut [Link], flows: &mut [Flow], end: &Entry, at: usize) {
    let flow = (end.rank as usize).wrapping_sub(links.len());
    if let Some(link) = links.get_mut(end.rank as usize) {
        link.end = at as u32;
    } else if let Some(flow) = flows.get_mut(flow) {
        flow.place = at as u32;
    }
}

/// Hops of a flow.
#[inline]
pub(super) const fn route_of(at: u32, flow: &Flow, width: u32) -> core::ops::Range<usize> {
    let first = at as usize * width as usize;
    first..first + flow.hops as usize
}

/// Puts a flow on the link of one of its hops, where it takes all that an
/// interface can; whether that is too much.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the caller lends at most 2^32 - 1 hops")]
pub(super) fn enlist(links: &mut [Link], hops: &mut [Hop], hop: Hop, at: usize) -> bool {
    let Some(state) = links.get_mut(hop.link as usize) else { return false };
    let next = state.first;
    if let Some(place) = hops.get_mut(at) {
        *place = Hop { next, before: NONE, ..hop };
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

/// Takes a flow off the link of one of its hops.
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
