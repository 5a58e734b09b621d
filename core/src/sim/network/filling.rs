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
//! their rate. Every flow is opened and fixed at most once a pass, each time
//! with a look at its links, which bounds the work.

use super::heap::{self, Keyed};
use super::memory::{Flow, Hop, Link, NONE, Share};
use super::rates::route_of;

/// Rates that differ by less, as a share, are the same: sums of doubles do not
/// tell them apart. What is compared with closed forms and SimGrid is off by
/// 10⁻⁹ at most.
const SAME: f64 = 1e-12;

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

/// What the flows of a link say.
struct Look {
    /// The rate at which it is full; infinite where it never is.
    full: f64,
    /// The least rate of a kept flow that it held back; infinite without.
    held: f64,
}

impl Flow {
    /// Whether it has no rate yet in this pass.
    #[inline]
    fn is_open(&self) -> bool {
        self.next_rate < 0.0
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
                self.look_again(link, 0.0);
            } else {
                self.release(link);
            }
        }
    }

    /// Fills links until all rates are decided.
    pub(super) fn fill(&mut self) {
        while let Some(&first) = self.queue.first().filter(|_| self.queued > 0) {
            let Look { full, held } = self.look(first.link);
            let rate = full.min(held);
            if rate > first.rate {
                if rate >= 1.0 {
                    self.unqueue_first();
                } else {
                    let Self { links, queue, queued, .. } = self;
                    if let Some(queue) = queue.get_mut(..*queued) {
                        heap::sink(queue, 0, Share { rate, ..first }, |s, at| note(links, s, at));
                    }
                }
                continue;
            }
            self.level = self.level.max(rate);
            if above(full, held) {
                self.release(first.link);
            } else {
                self.unqueue_first();
                self.fix(first.link);
            }
        }
    }

    /// When a link is full, from its flows as they are now.
    fn look(&self, link: u32) -> Look {
        let none = Look { full: f64::INFINITY, held: f64::INFINITY };
        let Some(state) = self.links.get(link as usize) else { return none };
        let mut held = f64::INFINITY;
        // From below: with each rate more flows turn out to take less.
        let mut full = self.level - self.level * SAME;
        loop {
            let (mut left, mut sharing, mut slowest) = (state.capacity, 0u32, f64::INFINITY);
            let mut at = state.first;
            while let Some(&Hop { flow, next, .. }) = self.hops.get(at as usize) {
                at = next;
                let Some(flow) = self.flows.get(flow as usize) else { break };
                if flow.solution == self.solution {
                    if flow.is_open() {
                        sharing += 1;
                    } else {
                        left -= flow.next_rate;
                    }
                    continue;
                }
                if flow.held_by == link {
                    held = held.min(flow.rate);
                }
                if flow.rate > full {
                    sharing += 1;
                    slowest = slowest.min(flow.rate);
                } else {
                    left -= flow.rate;
                }
            }
            if sharing == 0 {
                return Look { full: f64::INFINITY, held };
            }
            let share = left / f64::from(sharing);
            if share <= full {
                return Look { full, held };
            }
            if share >= 1.0 {
                return Look { full: f64::INFINITY, held };
            }
            full = share;
            if slowest > share {
                return Look { full, held };
            }
        }
    }

    /// Opens the kept flows that a link held back.
    fn release(&mut self, link: u32) {
        let mut at = self.links.get(link as usize).map_or(NONE, |state| state.first);
        while let Some(&Hop { flow, next, .. }) = self.hops.get(at as usize) {
            at = next;
            let kept = |state: &Flow| state.solution != self.solution && state.held_by == link;
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
            let kept = state.solution != self.solution;
            if kept && above(state.rate, self.level) {
                state.next_rate = self.level;
                let before = core::mem::replace(&mut state.held_by, link);
                self.let_go(before);
                self.affect(flow);
                // What it leaves may let others grow.
                self.look_at_links(flow, link);
                holds += 1;
            } else if !kept && state.is_open() {
                (state.next_rate, state.held_by) = (self.level, link);
                holds += 1;
            }
        }
        if let Some(state) = self.links.get_mut(link as usize) {
            state.holds += holds;
        }
    }

    fn let_go(&mut self, link: u32) {
        if let Some(link) = self.links.get_mut(link as usize) {
            debug_assert!(link.holds > 0, "it held a flow back");
            link.holds -= 1;
        }
    }

    /// Takes its rate from a flow: up to that its links are as full as before.
    fn open(&mut self, flow: u32) {
        let Some(state) = self.flows.get_mut(flow as usize) else { return };
        if state.solution == self.solution {
            return;
        }
        let before = core::mem::replace(&mut state.held_by, NONE);
        state.next_rate = -1.0;
        let (rate, route) = (state.rate, route_of(flow, state, self.width));
        self.let_go(before);
        self.affect(flow);
        for hop in route {
            let Some(&Hop { link, .. }) = self.hops.get(hop) else { continue };
            let Some(state) = self.links.get(link as usize) else { continue };
            if state.is_tight() {
                // No link is full before all its flows have an equal share.
                let least = state.capacity / f64::from(state.flows);
                self.look_again(link, rate.max(least));
            }
        }
    }

    /// Lists a flow that is kept no longer.
    fn affect(&mut self, flow: u32) {
        if let Some(state) = self.flows.get_mut(flow as usize) {
            state.solution = self.solution;
        }
        debug_assert!(self.found < self.affected.len(), "there is a place for every flow");
        if let Some(place) = self.affected.get_mut(self.found) {
            *place = flow;
            self.found += 1;
        }
    }

    /// Has the links of a flow, but one, looked at, of which it takes less now.
    fn look_at_links(&mut self, flow: u32, but: u32) {
        let Some(state) = self.flows.get(flow as usize) else { return };
        for hop in route_of(flow, state, self.width) {
            let Some(&Hop { link, .. }) = self.hops.get(hop) else { continue };
            if link != but && self.links.get(link as usize).is_some_and(|state| state.holds > 0) {
                self.look_again(link, self.level);
            }
        }
    }

    /// Puts a link into the queue: below `rate` nothing happens there.
    fn look_again(&mut self, link: u32, rate: f64) {
        let share = Share { rate: rate.max(self.level), link };
        let Self { links, queue, queued, .. } = self;
        let place = links.get(link as usize).map_or(NONE, |state| state.place) as usize;
        if place >= *queued {
            *queued += 1;
            heap::rise(queue, *queued - 1, share, |s, at| note(links, s, at));
        } else if queue.get(place).is_some_and(|old| share.before(old)) {
            heap::rise(queue, place, share, |s, at| note(links, s, at));
        }
    }

    fn unqueue_first(&mut self) {
        let Self { links, queue, queued, .. } = self;
        if let Some(state) = queue.first().and_then(|first| links.get_mut(first.link as usize)) {
            state.place = NONE;
        }
        if let Some(queue) = queue.get_mut(..*queued) {
            heap::remove_first(queue, |s, at| note(links, s, at));
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
