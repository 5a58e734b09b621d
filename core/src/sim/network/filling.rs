//! Rates after a change: links are filled in the order of the rates of the flows
//! that they hold back.
//!
//! All flows that a link holds back have one rate, and every flow that nothing
//! holds back is as fast as an interface. So a change is found link by link: where
//! flows leave a link something, those that it holds back become faster until it is
//! full; where they do not fit, those above the rate at which it is full are held
//! back by it. Either changes what is left of other links, which are filled after
//! it.
//!
//! Links leave the queue by the lowest rate that filling them could change. All
//! rates below that level are final, because a step at a level replaces only rates
//! at or above it, by rates at or above it. A link that was full at a level does
//! not let its flows be faster again in the same pass (`Link::filled`), and no flow
//! is taken from the same link twice; so the pass ends.

use super::memory::{Flow, Hop, Link, NONE, Share};
use super::observer::{FlowObserver, FlowRate};
use super::rates::{Rates, note, real, route_of};
use crate::sim::array_heap::{self, Keyed};

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

/// At which rate a link is full.
#[derive(Clone, Copy)]
struct Full {
    /// Infinite where it never is.
    rate: f64,
    /// Whether the flows that it holds back become faster.
    rises: bool,
    /// Whether it also holds back flows that are faster than that.
    takes: bool,
}

/// What becomes of a link.
#[derive(Clone, Copy)]
struct Filled {
    link: u32,
    /// The rate of the flows that it holds back from now on.
    rate: f64,
    /// Whether it holds back those that are faster as well.
    takes: bool,
    now: u64,
}

impl Link {
    /// Whether its flows do not fit it.
    #[inline]
    pub(super) fn is_overfull(&self) -> bool {
        self.spare < -self.capacity * SAME
    }

    /// Holds a flow back no longer.
    #[inline]
    pub(super) fn release(&mut self, flow: u32) {
        debug_assert!(self.holds > 0, "it held the flow back");
        self.holds = self.holds.saturating_sub(1);
        if self.leader == flow {
            self.leader = NONE;
        }
    }

    /// A rate below which nothing changes there; `None` where nothing does.
    #[inline]
    fn first_change(&self) -> Option<f64> {
        let overfull = self.is_overfull();
        if self.holds == 0 {
            return overfull.then(|| self.capacity / f64::from(self.flows));
        }
        if !overfull {
            // What left and what began may be as much, and not as fast.
            let changes = self.spare > self.capacity * SAME
                || self.leader == NONE
                || above(self.fastest, self.held_rate);
            return changes.then_some(self.held_rate);
        }
        let equal = self.capacity / f64::from(self.flows);
        Some((self.held_rate + self.spare / f64::from(self.holds)).max(equal))
    }
}

impl<T: FlowObserver> Rates<'_, T> {
    /// Fills links until all rates are final.
    pub(super) fn fill(&mut self, now: u64) {
        self.solution += 1;
        self.level = 0.0;
        for place in 0..self.touched {
            let Some(&link) = self.changed.get(place) else { break };
            self.review(link);
        }
        while let Some(&first) = self.queue.first().filter(|_| self.queued > 0) {
            let link = first.link;
            let Some(full) = self.full(link) else { break };
            let Some(state) = self.links.get(link as usize) else { break };
            let (held_rate, led) = (state.held_rate, state.holds == 0 || state.leader != NONE);
            let rises = full.rises && state.filled != self.solution;
            let rests = !rises && !full.takes && !above(held_rate, full.rate.max(self.level));
            if rests {
                self.unqueue_first();
                if !led {
                    self.hold(Filled { link, rate: held_rate, takes: false, now });
                }
                continue;
            }
            let rate = if rises { held_rate } else { full.rate }.max(self.level);
            if rate > first.rate && !self.stays_first(Share { rate, link }) {
                continue;
            }
            self.level = rate;
            self.unqueue_first();
            let rate = if rises { full.rate.min(1.0) } else { rate };
            self.hold(Filled { link, rate, takes: !rises, now });
            self.review(link);
        }
    }

    /// At which rate a link is full, where the flows that it holds back share what
    /// others leave, and others take their rates up to the same.
    fn full(&mut self, link: u32) -> Option<Full> {
        let state = *self.links.get(link as usize)?;
        let found = |rate: f64, takes| {
            let rises = state.holds > 0 && above(rate, state.held_rate);
            Some(Full { rate, rises, takes })
        };
        let mut bound = state.capacity / f64::from(state.flows);
        if state.holds > 0 {
            let rate = state.held_rate + state.spare / f64::from(state.holds);
            if !above(state.fastest, rate) {
                return found(rate, false);
            }
            bound = bound.max(rate - rate * SAME);
        } else if !state.is_overfull() {
            return found(f64::INFINITY, false);
        }
        // From below: with each rate more flows turn out to take less.
        loop {
            let (mut left, mut sharing) = (state.capacity, 0u32);
            let (mut slowest, mut fastest) = (f64::INFINITY, 0.0);
            self.each_flow(&state, |flow| {
                // Without branches, as what is next cannot be predicted.
                let held = flow.held_by == link;
                let shares = held || flow.rate > bound;
                left -= if shares { 0.0 } else { flow.rate };
                sharing += u32::from(shares);
                let rate = if shares && !held { flow.rate } else { f64::INFINITY };
                slowest = if rate < slowest { rate } else { slowest };
                let rate = if held { 0.0 } else { flow.rate };
                fastest = if rate > fastest { rate } else { fastest };
            });
            self.links.get_mut(link as usize)?.fastest = fastest;
            if sharing == 0 {
                return found(f64::INFINITY, false);
            }
            let rate = left / f64::from(sharing);
            if rate <= slowest || rate <= bound {
                return found(rate, slowest < f64::INFINITY);
            }
            bound = rate;
        }
    }

    /// Calls `each` with the flows of a link, the newest first.
    #[inline]
    pub(super) fn each_flow(&self, link: &Link, mut each: impl FnMut(&Flow)) {
        let mut at = link.first;
        while let Some(&Hop { flow, next, .. }) = self.hops.get(at as usize) {
            at = next;
            let Some(flow) = self.flows.get(flow as usize) else { break };
            each(flow);
        }
    }

    /// Lets a link hold back flows at a rate, and tells their other links; at 1 it
    /// lets them go.
    fn hold(&mut self, filled: Filled) {
        let Filled { link, rate, takes, now } = filled;
        let Some(state) = self.links.get(link as usize) else { return };
        let (mut spare, mut at) = (state.capacity, state.first);
        let (mut holds, mut leader, mut fastest) = (0u32, NONE, 0.0);
        let (mut least, mut second) = (f64::INFINITY, f64::INFINITY);
        while let Some(&Hop { flow: number, next, .. }) = self.hops.get(at as usize) {
            at = next;
            let Some(flow) = self.flows.get_mut(number as usize) else { break };
            let held_by = flow.held_by;
            if held_by != link && !(takes && above(flow.rate, rate)) {
                spare -= flow.rate;
                fastest = if flow.rate > fastest { flow.rate } else { fastest };
                continue;
            }
            let route = route_of(number, flow, self.width);
            if let Some(usage) = &mut self.usage {
                usage.add_flow(self.hops, route.clone(), flow, now);
            }
            let slower = flow.rate - rate;
            flow.remaining = (flow.remaining - flow.rate * real(now - flow.since)).max(0.0);
            (flow.since, flow.rate) = (now, rate);
            flow.held_by = if rate < 1.0 { link } else { NONE };
            self.observer.changed(&FlowRate::of(flow, rate, now));
            if flow.remaining <= least {
                (second, least, leader) = (least, flow.remaining, number);
            } else if flow.remaining < second {
                second = flow.remaining;
            }
            holds += 1;
            if held_by != link {
                self.take_from(held_by, number);
            }
            if rate >= 1.0 {
                self.let_go(number);
            }
            if slower != 0.0 {
                for hop in route {
                    self.tell(hop, link, slower, rate);
                }
            }
        }
        if let Some(state) = self.links.get_mut(link as usize) {
            state.spare = spare - rate * f64::from(holds);
            (state.held_rate, state.second) = (rate, second);
            if takes {
                state.filled = self.solution;
            }
            (state.holds, state.leader, state.fastest) =
                if rate < 1.0 { (holds, leader, fastest) } else { (0, NONE, 1.0) };
        }
        self.touch(link);
    }

    /// A flow is no longer held back by this link, or none.
    #[inline]
    fn take_from(&mut self, held_by: u32, number: u32) {
        if let Some(state) = self.links.get_mut(held_by as usize) {
            state.release(number);
            return self.touch(held_by);
        }
        let Self { ends, flows, links, .. } = self;
        let Some(flow) = flows.get_mut(number as usize) else { return };
        let place = core::mem::replace(&mut flow.place, NONE);
        if place != NONE {
            ends.remove(place as usize, |end, at| note(links, flows, end, at));
        }
    }

    /// Tells the link of a hop, unless it is `by`, that its flow is slower.
    #[inline]
    fn tell(&mut self, hop: usize, by: u32, slower: f64, rate: f64) {
        let Some(&Hop { link, .. }) = self.hops.get(hop) else { return };
        let Some(state) = self.links.get_mut(link as usize).filter(|_| link != by) else { return };
        state.spare += slower;
        state.fastest = if rate > state.fastest { rate } else { state.fastest };
        // What is queued for a lower rate stays.
        if (slower < 0.0 || state.place == NONE) && (state.holds > 0 || state.spare < 0.0) {
            self.review(link);
        }
    }

    /// Puts a link whose flows have to change into the queue.
    #[inline]
    fn review(&mut self, link: u32) {
        let Some(state) = self.links.get(link as usize) else { return };
        let Some(rate) = state.first_change() else { return };
        let (share, place) = (Share { rate: rate.max(self.level), link }, state.place as usize);
        let Self { links, queue, queued, .. } = self;
        if place >= *queued {
            *queued += 1;
            array_heap::rise(queue, *queued - 1, share, |s, at| note_share(links, s, at));
        } else if queue.get(place).is_some_and(|old| share.before(old)) {
            array_heap::rise(queue, place, share, |s, at| note_share(links, s, at));
        }
    }

    /// Moves the first link of the queue to a higher rate; whether it is still
    /// the first.
    fn stays_first(&mut self, share: Share) -> bool {
        let Self { links, queue, queued, .. } = self;
        let Some(queue) = queue.get_mut(..*queued) else { return false };
        array_heap::sink(queue, 0, share, |share, at| note_share(links, share, at));
        queue.first().is_some_and(|first| first.link == share.link)
    }

    fn unqueue_first(&mut self) {
        let Self { links, queue, queued, .. } = self;
        if let Some(state) = queue.first().and_then(|first| links.get_mut(first.link as usize)) {
            state.place = NONE;
        }
        if let Some(queue) = queue.get_mut(..*queued) {
            array_heap::remove_first(queue, |s, at| note_share(links, s, at));
        }
        *queued -= 1;
    }

    /// Asserts what max-min fairness is for the flows of a link: no link of theirs
    /// carries more than it can, and on the one that holds one back, which is full,
    /// nobody is faster.
    #[cfg(debug_assertions)]
    pub(super) fn check(&self, link: u32) {
        let mut at = self.links.get(link as usize).map_or(NONE, |link| link.first);
        for _ in 0..8 {
            let Some(&Hop { flow, next, .. }) = self.hops.get(at as usize) else { return };
            self.check_flow(flow);
            at = next;
        }
    }

    #[cfg(debug_assertions)]
    fn check_flow(&self, at: u32) {
        const OFF: f64 = 1e-9;
        let Some(flow) = self.flows.get(at as usize) else { return };
        let mut held = flow.rate >= 1.0;
        for hop in route_of(at, flow, self.width) {
            let Some(&Hop { link, .. }) = self.hops.get(hop) else { continue };
            let Some(state) = self.links.get(link as usize) else { continue };
            let (mut sum, mut fastest) = (0.0, 0.0f64);
            self.each_flow(state, |flow| {
                (sum, fastest) = (sum + flow.rate, fastest.max(flow.rate));
            });
            assert!(sum <= state.capacity * (1.0 + OFF), "link {link} carries {sum}");
            assert!(
                (state.capacity - sum - state.spare).abs() <= state.capacity * OFF,
                "link {link} spares {}",
                state.spare
            );
            held |= flow.held_by == link
                && sum >= state.capacity * (1.0 - OFF)
                && flow.rate >= fastest * (1.0 - OFF);
        }
        assert!(held, "flow {at} could be faster than {}", flow.rate);
    }
}

/// Notes where in the queue a link is.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "at most one place a link")]
fn note_share(links: &mut [Link], share: &Share, at: usize) {
    if let Some(link) = links.get_mut(share.link as usize) {
        link.place = at as u32;
    }
}
