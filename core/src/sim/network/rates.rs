//! Rates: max-min fair shares of links (Bertsekas and Gallager, Data Networks,
//! §6.5.2). A flow is never faster than one interface, 1, so that a link with
//! no more flows than its capacity holds nobody back. Changes of one instant
//! are computed once, by [`Filling`], for the flows that they affect.

use super::NetworkStopped;
use super::fabric::Fabric;
use super::filling::{Filling, OPEN};
use super::memory::{Flow, Hop, Link, NONE, Share};
use super::told::{FlowObserver, FlowRate};
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
    /// When flows end; those of one instant in the order in which they began.
    ends: Agenda<'m>,
    shares: &'m mut [Share],
    /// Flows that began, then all that are affected.
    affected: &'m mut [u32],
    begun: usize,
    /// Links that a flow has left.
    relieved: &'m mut [u32],
    left: usize,
    /// The most links of a flow.
    width: u32,
    /// The first free flow, or [`NONE`]; and the first that was never taken, so
    /// that memory that is not needed is not touched.
    free: u32,
    fresh: u32,
    solution: u64,
    pub(super) usage: Option<Usage<'m>>,
    observer: T,
}

/// Which way a flow goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route<'t, F> {
    pub(super) fabric: &'t F,
    pub(super) source: u32,
    pub(super) target: u32,
    pub(super) seed: u64,
}

/// The parts of [`Rates`].
pub(super) struct Parts<'m, T> {
    pub(super) links: &'m mut [Link],
    pub(super) hops: &'m mut [Hop],
    pub(super) flows: &'m mut [Flow],
    pub(super) ends: Agenda<'m>,
    pub(super) shares: &'m mut [Share],
    pub(super) affected: &'m mut [u32],
    pub(super) relieved: &'m mut [u32],
    pub(super) usage: Option<Usage<'m>>,
    pub(super) observer: T,
}

impl Flow {
    /// By how much it is slower than an interface; not yet if it has just
    /// begun.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "rates are at most 1")]
    fn slower(&self) -> i64 {
        if self.rate > 0.0 { ((1.0 - self.rate) * Link::UNITS) as i64 } else { 0 }
    }

    /// The entry for its end.
    #[inline]
    const fn ends_at(&self, time: u64, at: u32) -> Entry {
        Entry { time, created: self.created, seq: self.seq, rank: at }
    }
}

impl Link {
    /// Units of a host's link. Whole ones keep sums free of rounding.
    const UNITS: f64 = (1u64 << 40) as f64;

    /// What its flows leave of it, where those that have just begun take 1
    /// each; or slightly less.
    #[inline]
    pub(super) fn unused(&self) -> f64 {
        self.capacity - f64::from(self.flows) + self.slower as f64 / Self::UNITS
    }

    /// Whether it may hold a flow back.
    #[inline]
    pub(super) fn is_tight(&self) -> bool {
        f64::from(self.flows) > self.capacity
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
    /// Without flows; `width` is the most links of a route.
    pub(super) fn new(parts: Parts<'m, T>, width: u32) -> Self {
        let Parts { links, hops, flows, ends, shares, affected, relieved, usage, observer } = parts;
        Self {
            links,
            hops,
            flows,
            ends,
            shares,
            affected,
            begun: 0,
            relieved,
            left: 0,
            width,
            free: NONE,
            fresh: 0,
            solution: 0,
            usage,
            observer,
        }
    }

    /// When the first flow ends; those that began at this instant are not
    /// among them before [`Rates::solve`].
    #[inline]
    pub(super) fn first_end(&self) -> Option<u64> {
        self.ends.first().map(|end| end.time)
    }

    /// Whether rates have to be computed before time goes on.
    #[inline]
    pub(super) const fn is_stale(&self) -> bool {
        self.begun > 0 || self.left > 0
    }

    /// Begins a flow `now` over the links of `route`.
    ///
    /// # Errors
    ///
    /// [`NetworkStopped`] where all flows are taken, or it would end past
    /// 2⁶⁴ ps.
    pub(super) fn begin(
        &mut self,
        flow: Flow,
        now: u64,
        route: &Route<'_, impl Fabric>,
    ) -> Result<(), NetworkStopped> {
        let full = NetworkStopped::Full { messages: self.flows.len() };
        let at = self.take().ok_or(full)?;
        let place = self.flows.get_mut(at as usize).ok_or(full)?;
        *place = Flow {
            remaining: real(flow.volume),
            rate: 0.0,
            since: now,
            pace: OPEN,
            place: NONE,
            held_by: NONE,
            behind: NONE,
            hops: 0,
            ..flow
        };
        let (links, hops) = (&mut *self.links, &mut *self.hops);
        let (mut taken, width, first) = (0, self.width, at as usize * self.width as usize);
        let mut tight = false;
        route.fabric.route(route.source, route.target, route.seed, |link| {
            debug_assert!(taken < width, "no route is longer than the longest");
            let hop = first + taken as usize;
            tight |= enlist(links, hops, (link, at), hop);
            taken += 1;
        });
        place.hops = taken;
        if tight {
            *self.affected.get_mut(self.begun).ok_or(full)? = at;
            self.begun += 1;
            return Ok(());
        }
        // Nobody else is affected, and who comes later at this instant finds it.
        (place.rate, place.pace) = (1.0, 1.0);
        let time = now.checked_add(place.volume).ok_or(NetworkStopped::Overflow)?;
        let end = place.ends_at(time, at);
        let Self { ends, flows, .. } = self;
        ends.add(end, |end, at| note(flows, end, at));
        Ok(())
    }

    /// Takes out the first of the flows that have ended by `now`, and calls
    /// `through` with the messages that are through by that; `None` where none
    /// has ended.
    pub(super) fn end(&mut self, now: u64, through: impl FnMut(&Flow)) -> Option<()> {
        let end = self.ends.first().filter(|end| end.time <= now)?;
        let Self { ends, flows, .. } = self;
        ends.remove_first(|end, at| note(flows, end, at));
        let at = end.rank;
        let flow = *self.flows.get(at as usize)?;
        let route = route_of(at, &flow, self.width);
        if let Some(usage) = &mut self.usage {
            usage.add_flow(self.hops, route.clone(), &flow, now);
        }
        self.observer.changed(&FlowRate::of(&flow, 0.0, now));
        let older = self.hops.get(route.start).map_or(NONE, |hop| hop.next);
        let earlier = self.earlier(older, flow.pair);
        for hop in route {
            self.leave(hop, &flow);
        }
        if let Some(link) = self.links.get_mut(flow.held_by as usize) {
            link.holds -= 1;
        }
        match earlier {
            Some(earlier) => self.hold(at, earlier),
            None => self.let_through(at, through),
        }
        Some(())
    }

    /// Takes a free flow.
    pub(super) fn take(&mut self) -> Option<u32> {
        let at = if self.free == NONE { self.fresh } else { self.free };
        let place = self.flows.get(at as usize)?;
        if self.free == NONE {
            self.fresh += 1;
        } else {
            self.free = place.place;
        }
        Some(at)
    }

    pub(super) fn free(&mut self, at: u32) {
        if let Some(place) = self.flows.get_mut(at as usize) {
            place.place = self.free;
            self.free = at;
        }
    }

    /// Takes a flow off a link.
    fn leave(&mut self, at: usize, flow: &Flow) {
        let Some(&Hop { link, .. }) = self.hops.get(at) else { return };
        let Some(state) = self.links.get_mut(link as usize) else { return };
        state.carried += real(flow.volume);
        if state.holds > 0 && !state.relieved && self.left < self.relieved.len() {
            state.relieved = true;
            if let Some(place) = self.relieved.get_mut(self.left) {
                *place = link;
                self.left += 1;
            }
        }
        state.slower -= flow.slower();
        unlink(self.links, self.hops, at);
    }

    /// Computes the rates that have changed, as of `now`.
    ///
    /// # Errors
    ///
    /// [`Overflow`] when a flow ends past 2⁶⁴ ps.
    pub(super) fn solve(&mut self, now: u64) -> Result<(), Overflow> {
        self.solution += 1;
        let mut filling = Filling {
            links: self.links,
            hops: self.hops,
            flows: self.flows,
            queue: self.shares,
            queued: 0,
            affected: self.affected,
            found: self.begun,
            solution: self.solution,
            width: self.width,
            level: 0.0,
        };
        filling.begin(self.begun, self.relieved.get(..self.left).unwrap_or_default());
        filling.fill();
        let found = filling.found;
        (self.begun, self.left) = (0, 0);
        for place in 0..found {
            let Some(&flow) = self.affected.get(place) else { break };
            self.apply(flow, now)?;
        }
        // A few are enough, and all would take the square of their number.
        #[cfg(debug_assertions)]
        for place in 0..found.min(32) {
            self.check(self.affected.get(place).copied().unwrap_or_default());
        }
        Ok(())
    }

    /// Asserts what max-min fairness is: no link of a flow carries more than it
    /// can, and on the one that holds it back, which is full, nobody is faster.
    #[cfg(debug_assertions)]
    fn check(&self, at: u32) {
        const OFF: f64 = 1e-9;
        let Some(flow) = self.flows.get(at as usize) else { return };
        let mut held = flow.rate >= 1.0;
        for hop in route_of(at, flow, self.width) {
            let Some(&Hop { link, .. }) = self.hops.get(hop) else { continue };
            let Some(state) = self.links.get(link as usize) else { continue };
            let (mut sum, mut fastest, mut at) = (0.0, 0.0f64, state.first);
            while let Some(&Hop { flow, next, .. }) = self.hops.get(at as usize) {
                let rate = self.flows.get(flow as usize).map_or(0.0, |flow| flow.rate);
                (sum, fastest, at) = (sum + rate, fastest.max(rate), next);
            }
            assert!(sum <= state.capacity * (1.0 + OFF), "link {link} carries {sum}");
            held |= flow.held_by == link
                && sum >= state.capacity * (1.0 - OFF)
                && flow.rate >= fastest * (1.0 - OFF);
        }
        assert!(held, "flow {at} could be faster than {}", flow.rate);
    }

    /// Lets a flow go on with its next rate.
    fn apply(&mut self, at: u32, now: u64) -> Result<(), Overflow> {
        let Some(flow) = self.flows.get_mut(at as usize) else { return Ok(()) };
        // Nothing holds it back.
        let rate = if flow.pace == OPEN { 1.0 } else { flow.pace.abs() };
        flow.pace = rate;
        debug_assert!(rate > 0.0 && rate <= 1.0, "every flow goes on, and none too fast");
        self.observer.changed(&FlowRate::of(flow, rate, now));
        if rate.to_bits() == flow.rate.to_bits() {
            return Ok(());
        }
        if let Some(usage) = &mut self.usage {
            usage.add_flow(self.hops, route_of(at, flow, self.width), flow, now);
        }
        flow.remaining = (flow.remaining - flow.rate * real(now - flow.since)).max(0.0);
        let before = flow.slower();
        (flow.since, flow.rate) = (now, rate);
        let slower = flow.slower() - before;
        for hop in self.hops.get(route_of(at, flow, self.width)).unwrap_or_default() {
            if let Some(link) = self.links.get_mut(hop.link as usize) {
                link.slower += slower;
            }
        }
        let time = now.checked_add(time_left(flow.remaining, rate)).ok_or(Overflow)?;
        let end = flow.ends_at(time, at);
        let place = flow.place as usize;
        let Self { ends, flows, .. } = self;
        ends.set(place, end, |end, at| note(flows, end, at));
        Ok(())
    }
}

/// Notes where in the queue a flow's end is.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "at most one place a flow")]
fn note(flows: &mut [Flow], end: &Entry, at: usize) {
    if let Some(flow) = flows.get_mut(end.rank as usize) {
        flow.place = at as u32;
    }
}

/// Hops of a flow.
#[inline]
pub(super) const fn route_of(at: u32, flow: &Flow, width: u32) -> core::ops::Range<usize> {
    let first = at as usize * width as usize;
    first..first + flow.hops as usize
}

/// Puts a flow on a link, and says whether that may hold it back now.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the caller lends at most 2^32 - 1 hops")]
pub(super) fn enlist(
    links: &mut [Link],
    hops: &mut [Hop],
    (link, flow): (u32, u32),
    at: usize,
) -> bool {
    let Some(state) = links.get_mut(link as usize) else { return false };
    let next = state.first;
    if let Some(hop) = hops.get_mut(at) {
        *hop = Hop { link, flow, next, before: NONE };
        state.first = at as u32;
        state.flows += 1;
        if let Some(hop) = hops.get_mut(next as usize) {
            hop.before = at as u32;
        }
    }
    state.is_tight()
}

/// Takes a flow off the link of one of its hops.
#[inline]
pub(super) fn unlink(links: &mut [Link], hops: &mut [Hop], at: usize) {
    let Some(&Hop { link, next, before, .. }) = hops.get(at) else { return };
    let Some(state) = links.get_mut(link as usize) else { return };
    debug_assert!(state.flows > 0, "what leaves a link was on it");
    state.flows = state.flows.saturating_sub(1);
    match hops.get_mut(before as usize) {
        Some(before) => before.next = next,
        None => state.first = next,
    }
    if let Some(next) = hops.get_mut(next as usize) {
        next.before = before;
    }
}
