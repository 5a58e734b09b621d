//! Progressive filling from what has changed: all rates rise together from 0,
//! and a flow stops where one of its links is full. A change shows first at
//! the rate at which a link is full earlier or later than before, and moves on
//! to higher rates only, over links of flows whose rates do change. So one
//! pass over the links concerned, by rate, finds all new rates, and what it
//! does not reach keeps its own.
//!
//! Within a pass a flow keeps its rate until it is found to have to change
//! (kept), has none yet (open), or has its next one (fixed). A link is full at
//! the rate x for which
//!
//! ```text
//! sum of fixed rates + x · open flows + sum of min(rate, x) of kept flows = capacity
//! ```
//!
//! and its kept flows that it held back have to be opened when x is above
//! their rate. Each link counts what some of its flows leave of it, and how many
//! others share that: open flows, kept ones that it held back, and kept ones
//! faster than a bound. What is left divided by that number is x if no kept flow
//! is between x and the bound, and never more than x. A link begins with an
//! infinite bound, for which the sum of rates is enough; only when the rate that
//! results is reached, its flows are surveyed with a bound below x. A flow that
//! is opened, cut or fixed tells its links, at most twice a pass.

use super::memory::{Flow, Hop, Link, NONE, Share};
use super::rates::route_of;
use crate::sim::array_heap::{self, Keyed};

/// Rates that differ by less, as a share, are the same: sums of doubles do not
/// tell them apart. What is compared with closed forms and SimGrid is off by
/// 10⁻⁹ at most.
const SAME: f64 = 1e-12;

/// The pace of an open flow.
pub(super) const OPEN: f64 = f64::INFINITY;

impl Keyed for Share {
    #[inline]
    fn before(&self, other: &Self) -> bool {
        self.rate < other.rate || self.rate <= other.rate && self.link < other.link
    }
}

/// Whether a rate is above another, and not the same.
#[inline]
fn above(rate: f64, other: f64) -> bool {
    rate > other + other * SAME
}

/// One pass.
pub(super) struct Filling<'a> {
    pub(super) links: &'a mut [Link],
    pub(super) hops: &'a [Hop],
    pub(super) flows: &'a mut [Flow],
    /// Links that may be full soon, by a rate below which they are not; and how
    /// many.
    pub(super) queue: &'a mut [Share],
    pub(super) queued: usize,
    /// Flows that are not kept.
    pub(super) affected: &'a mut [u32],
    pub(super) found: usize,
    pub(super) solution: u64,
    /// The most links of a flow.
    pub(super) width: u32,
    /// The rate up to which all is decided.
    pub(super) level: f64,
}

impl Link {
    /// The rate of the flows that it holds back and that may be faster now;
    /// infinite without.
    #[inline]
    const fn held(&self) -> f64 {
        if self.holds > 0 && !self.released { self.held_rate } else { f64::INFINITY }
    }

    /// Begins to count in this pass, from what it carried before.
    #[inline]
    fn count(&mut self, solution: u64) {
        if self.counted != solution {
            self.left = self.unused() + self.held_rate * f64::from(self.holds);
            (self.sharing, self.bound, self.counted) = (self.holds, f64::INFINITY, solution);
        }
    }

    /// Counts a kept flow no longer; `link` is its own number.
    #[inline]
    fn drop_kept(&mut self, flow: Kept, link: u32) {
        if flow.held_by == link || flow.rate > self.bound {
            self.sharing -= 1;
        } else {
            self.left += flow.rate;
        }
    }
}

/// What a flow was before this pass changed it.
#[derive(Clone, Copy)]
struct Kept {
    rate: f64,
    held_by: u32,
}

impl Flow {
    /// Whether it has not been opened or fixed in this pass.
    #[inline]
    fn is_kept(&self) -> bool {
        self.pace >= 0.0 && self.pace < OPEN
    }
}

impl Filling<'_> {
    /// Opens the first so many affected flows, which have just begun, and looks
    /// at links that flows have left.
    pub(super) fn begin(&mut self, begun: usize, relieved: &[u32]) {
        self.found = 0;
        for place in 0..begun {
            let Some(&flow) = self.affected.get(place) else { break };
            self.open(flow);
        }
        for &link in relieved {
            let Some(state) = self.links.get_mut(link as usize) else { continue };
            state.relieved = false;
            if state.is_tight() {
                state.count(self.solution);
                let held = state.held();
                self.queue_link(link, held);
            } else {
                self.release(link);
            }
        }
    }

    /// Fills links until all rates are decided.
    pub(super) fn fill(&mut self) {
        while let Some(&first) = self.queue.first().filter(|_| self.queued > 0) {
            let full = self.full(first.link);
            let held = self.links.get(first.link as usize).map_or(f64::INFINITY, Link::held);
            let rate = full.min(held);
            if rate > first.rate {
                if rate >= 1.0 {
                    self.unqueue_first();
                    continue;
                }
                if !self.stays_first(Share { rate, ..first }) {
                    continue;
                }
            }
            self.level = self.level.max(rate);
            if above(full, held) {
                self.release(first.link);
                if let Some(state) = self.links.get_mut(first.link as usize) {
                    state.released = true;
                }
            } else {
                self.unqueue_first();
                self.fix(first.link);
            }
        }
    }

    /// Moves the first link of the queue to a higher rate; whether it is still
    /// the first.
    fn stays_first(&mut self, share: Share) -> bool {
        let Self { links, queue, queued, .. } = self;
        let Some(queue) = queue.get_mut(..*queued) else { return false };
        array_heap::sink(queue, 0, share, |share, at| note(links, share, at));
        queue.first().is_some_and(|first| first.link == share.link)
    }

    /// The rate at which a queued link is full; infinite where it never is, and
    /// any that is above that of the flows that it holds back where it is.
    fn full(&mut self, link: u32) -> f64 {
        let Some(state) = self.links.get(link as usize) else { return f64::INFINITY };
        let share = state.left / f64::from(state.sharing);
        if state.sharing > 0 && above(share, state.held()) {
            return share;
        }
        if share < state.bound {
            self.survey(link, self.level - self.level * SAME);
        }
        // From below: with each rate more flows turn out to take less.
        while let Some(state) = self.links.get(link as usize).filter(|state| state.sharing > 0) {
            let share = state.left / f64::from(state.sharing);
            if share <= state.bound {
                return state.bound;
            }
            if share >= 1.0 {
                break;
            }
            if state.slowest > share || above(share, state.held()) {
                return share;
            }
            self.survey(link, share);
        }
        f64::INFINITY
    }

    /// Counts what the flows of a link take of it, where its kept flows take
    /// their rates up to `bound` and share alike above.
    fn survey(&mut self, link: u32, bound: f64) {
        let Some(state) = self.links.get_mut(link as usize) else { return };
        let (mut left, mut sharing, mut slowest) = (state.capacity, 0u32, f64::INFINITY);
        let mut at = state.first;
        while let Some(&Hop { flow, next, .. }) = self.hops.get(at as usize) {
            at = next;
            let Some(flow) = self.flows.get(flow as usize) else { break };
            // Without branches, as what is next cannot be predicted.
            let held = flow.held_by == link && flow.pace >= 0.0;
            let shares = held || flow.pace > bound;
            left -= if shares { 0.0 } else { flow.pace.abs() };
            sharing += u32::from(shares);
            let rate = if shares && !held { flow.pace } else { OPEN };
            slowest = if rate < slowest { rate } else { slowest };
        }
        (state.left, state.sharing, state.slowest) = (left, sharing, slowest);
        state.bound = bound;
    }

    /// Opens the kept flows that a link held back.
    fn release(&mut self, link: u32) {
        let mut at = self.links.get(link as usize).map_or(NONE, |state| state.first);
        while let Some(&Hop { flow, next, .. }) = self.hops.get(at as usize) {
            at = next;
            let kept = |state: &Flow| state.held_by == link && state.is_kept();
            if self.flows.get(flow as usize).is_some_and(kept) {
                self.open(flow);
            }
        }
    }

    /// Lets a full link hold back its flows that would be faster.
    fn fix(&mut self, link: u32) {
        let mut at = self.links.get(link as usize).map_or(NONE, |state| state.first);
        let mut holds = 0;
        while let Some(&Hop { flow, next, .. }) = self.hops.get(at as usize) {
            at = next;
            let Some(state) = self.flows.get_mut(flow as usize) else { break };
            if !above(state.pace, self.level) {
                continue;
            }
            let rate = core::mem::replace(&mut state.pace, -self.level);
            let held_by = core::mem::replace(&mut state.held_by, link);
            if rate < OPEN {
                self.cut(flow, Kept { rate, held_by }, link);
            } else {
                self.close(flow);
            }
            holds += 1;
        }
        if let Some(state) = self.links.get_mut(link as usize).filter(|_| holds > 0) {
            // Those that it held back before are as fast, but for rounding.
            let before = if state.holds > 0 { state.held_rate } else { f64::INFINITY };
            state.held_rate = self.level.min(before);
            state.holds += holds;
        }
    }

    /// Takes its rate from a flow: up to that its links are as full as before.
    fn open(&mut self, flow: u32) {
        let Some(state) = self.flows.get_mut(flow as usize) else { return };
        state.pace = OPEN;
        let held_by = core::mem::replace(&mut state.held_by, NONE);
        let (rate, route) = (state.rate, route_of(flow, state, self.width));
        // As unused() counts one that has just begun.
        let kept = Kept { rate: if rate > 0.0 { rate } else { 1.0 }, held_by };
        for &Hop { link, .. } in self.hops.get(route).unwrap_or_default() {
            let Some(state) = self.links.get_mut(link as usize) else { continue };
            if !state.is_tight() {
                continue;
            }
            state.count(self.solution);
            state.drop_kept(kept, link);
            state.sharing += 1;
            // No link is full before all its flows have an equal share.
            let equal = state.capacity / f64::from(state.flows);
            let least = (state.left / f64::from(state.sharing)).max(equal).max(rate);
            if least < 1.0 {
                self.queue_link(link, least);
            }
        }
        self.affect(flow, held_by);
    }

    /// Tells the links of a flow that `by` has taken some of its rate, which may
    /// let others grow.
    fn cut(&mut self, flow: u32, kept: Kept, by: u32) {
        let Some(state) = self.flows.get(flow as usize) else { return };
        let route = route_of(flow, state, self.width);
        for &Hop { link, .. } in self.hops.get(route).unwrap_or_default() {
            let Some(state) = self.links.get_mut(link as usize) else { continue };
            if state.holds > 0 {
                state.count(self.solution);
            }
            if state.counted == self.solution {
                state.drop_kept(kept, link);
                state.left -= self.level;
            }
            let held = state.held();
            if held < f64::INFINITY && link != by {
                self.queue_link(link, held);
            }
        }
        self.affect(flow, kept.held_by);
    }

    /// Tells the links of an open flow that it is fixed.
    fn close(&mut self, flow: u32) {
        let Some(state) = self.flows.get(flow as usize) else { return };
        let route = route_of(flow, state, self.width);
        for &Hop { link, .. } in self.hops.get(route).unwrap_or_default() {
            let Some(state) = self.links.get_mut(link as usize) else { continue };
            if state.counted == self.solution {
                state.sharing -= 1;
                state.left -= self.level;
            }
        }
    }

    /// Lists a flow that is kept no longer, and that a link held back.
    fn affect(&mut self, flow: u32, held_by: u32) {
        if let Some(link) = self.links.get_mut(held_by as usize) {
            debug_assert!(link.holds > 0, "it held a flow back");
            link.holds -= 1;
        }
        debug_assert!(self.found < self.affected.len(), "there is a place for every flow");
        if let Some(place) = self.affected.get_mut(self.found) {
            *place = flow;
            self.found += 1;
        }
    }

    /// Puts a link into the queue: below `rate` nothing happens there.
    fn queue_link(&mut self, link: u32, rate: f64) {
        let share = Share { rate: rate.max(self.level), link };
        let Self { links, queue, queued, .. } = self;
        let place = links.get(link as usize).map_or(NONE, |state| state.place) as usize;
        if place >= *queued {
            *queued += 1;
            array_heap::rise(queue, *queued - 1, share, |s, at| note(links, s, at));
        } else if queue.get(place).is_some_and(|old| share.before(old)) {
            array_heap::rise(queue, place, share, |s, at| note(links, s, at));
        }
    }

    fn unqueue_first(&mut self) {
        let Self { links, queue, queued, .. } = self;
        if let Some(state) = queue.first().and_then(|first| links.get_mut(first.link as usize)) {
            (state.place, state.released) = (NONE, false);
        }
        if let Some(queue) = queue.get_mut(..*queued) {
            array_heap::remove_first(queue, |s, at| note(links, s, at));
        }
        *queued -= 1;
    }
}

/// Notes where in the queue a link is.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "at most one place a link")]
fn note(links: &mut [Link], share: &Share, at: usize) {
    if let Some(link) = links.get_mut(share.link as usize) {
        link.place = at as u32;
    }
}
