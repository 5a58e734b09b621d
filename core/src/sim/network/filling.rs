//! Rates after a change: links are filled in the order of the rates to which they limit flows.
//!
//! A link limits the flows whose bottleneck it is. All of these have the same rate, and every flow
//! without a bottleneck has the rate of an interface. A change is therefore computed link by link:
//! if a link has spare capacity, the flows that it limits become faster until it is full; if its
//! flows exceed it, it becomes the bottleneck of those above the rate at which it is full. Both
//! change the spare capacity of other links, which are filled after it.
//!
//! Links leave the queue by the lowest rate that filling them could change (the level). All rates
//! below the level are final, because a step replaces only rates at or above the level, by rates at
//! or above it.
//!
//! A pass terminates regardless of rounding. A step that slows flows gives them the rate of the
//! level, below which nothing falls later, and their link does not let them be faster again in this
//! pass (`Link::filled_in`); so each flow is slowed at most once. Between two such steps each link
//! lets its flows be faster once, after which it is full and other links can only take capacity
//! from it.

use super::memory::{Flow, Hop, Link, NONE, QueuedLink};
use super::observer::FlowRate;
use super::rates::{Rates, hops_of, note_position, real};
use crate::sim::queues::array_heap::{self, Precedes};

/// Relative difference below which two rates count as equal, because sums of doubles do not
/// separate them. Results agree with closed forms and SimGrid to 10⁻⁹.
const SAME: f64 = 1e-12;

/// Number of changed links, and of flows on each, that are checked after a pass; all would take
/// time quadratic in their number.
#[cfg(debug_assertions)]
pub(super) const CHECKED: usize = if cfg!(any(test, fuzzing)) { usize::MAX } else { 8 };

impl Precedes for QueuedLink {
    #[inline]
    fn before(&self, other: &Self) -> bool {
        self.rate < other.rate || self.rate <= other.rate && self.link < other.link
    }
}

/// True if a rate exceeds another by more than rounding.
#[inline]
fn above(rate: f64, other: f64) -> bool {
    rate > other + other * SAME
}

/// Rate at which a link is full.
#[derive(Clone, Copy)]
struct Full {
    /// Infinite if it never is.
    rate: f64,
    /// True if the flows that it limits become faster.
    rises: bool,
    /// True if it becomes the bottleneck of faster flows.
    limits_faster: bool,
}

/// Limit that a link imposes on its flows.
#[derive(Clone, Copy)]
struct Limit {
    link: u32,
    /// Rate of the flows that it limits from now on.
    rate: f64,
    /// True if it becomes the bottleneck of faster flows.
    limits_faster: bool,
    now: u64,
}

/// Number of steps of a pass.
#[derive(Clone, Copy, Default)]
struct Steps {
    /// Steps in which flows became slower.
    slower: usize,
    /// Steps in which flows became faster, after the last that made flows slower.
    faster: usize,
}

impl Link {
    /// True if its flows exceed its capacity.
    #[inline]
    pub(super) fn is_overfull(&self) -> bool {
        self.spare < -self.capacity * SAME
    }

    /// Removes a flow whose bottleneck it was.
    #[inline]
    pub(super) fn release(&mut self, flow: u32) {
        debug_assert!(self.limited_flows > 0, "it was the bottleneck of the flow");
        self.limited_flows = self.limited_flows.saturating_sub(1);
        if self.leader == flow {
            self.leader = NONE;
        }
    }

    /// Rate below which nothing changes on the link; `None` if nothing changes at all.
    #[inline]
    fn first_change(&self) -> Option<f64> {
        let overfull = self.is_overfull();
        if self.limited_flows == 0 {
            return overfull.then(|| self.capacity / f64::from(self.flows));
        }
        if !overfull {
            // Flows that left and flows that began may have taken equal amounts at different rates.
            let changes = self.spare > self.capacity * SAME
                || self.leader == NONE
                || above(self.fastest, self.limited_rate);
            return changes.then_some(self.limited_rate);
        }
        // Its flows become slower; if others have left, those that it limits may still become
        // faster.
        let equal = self.capacity / f64::from(self.flows);
        let least = (self.limited_rate + self.spare / f64::from(self.limited_flows)).max(equal);
        Some(least.min(self.limited_rate))
    }
}

impl Rates<'_> {
    /// Fills links until all rates are final.
    pub(super) fn fill(&mut self, now: u64) {
        self.pass += 1;
        self.level = 0.0;
        for index in 0..self.changed_count {
            let Some(&link) = self.changed.get(index) else { break };
            self.enqueue(link);
        }
        let mut steps = Steps::default();
        while let Some(&first) = self.link_queue.first().filter(|_| self.link_queue_length > 0) {
            let link = first.link;
            let Some(full) = self.full(link) else { break };
            let Some(state) = self.links.get(link as usize) else { break };
            let (limited_rate, has_leader) =
                (state.limited_rate, state.limited_flows == 0 || state.leader != NONE);
            let rises = full.rises && state.filled_in != self.pass;
            let fastest = if full.limits_faster { state.fastest } else { 0.0 };
            let rests = !rises && !above(fastest.max(limited_rate), full.rate.max(self.level));
            if rests {
                self.dequeue_first();
                if !has_leader {
                    self.limit(Limit { link, rate: limited_rate, limits_faster: false, now });
                }
                continue;
            }
            let rate = if rises { limited_rate } else { full.rate }.max(self.level);
            if rate > first.rate && !self.stays_first(QueuedLink { rate, link }) {
                continue;
            }
            self.level = rate;
            if rises {
                steps.faster += 1;
            } else {
                steps = Steps { slower: steps.slower + 1, faster: 0 };
            }
            debug_assert!(steps.slower <= self.flows.len(), "a flow became slower twice");
            debug_assert!(steps.faster <= self.links.len(), "a full link let flows be faster");
            self.dequeue_first();
            let rate = if rises { full.rate.min(1.0) } else { rate };
            self.limit(Limit { link, rate, limits_faster: !rises, now });
            self.enqueue(link);
        }
    }

    /// Rate at which a link is full if it limits its flows, and every faster one, to that rate.
    fn full(&mut self, link: u32) -> Option<Full> {
        let state = *self.links.get(link as usize)?;
        let found = |rate: f64, limits_faster| {
            let rises = state.limited_flows > 0 && above(rate, state.limited_rate);
            Some(Full { rate, rises, limits_faster })
        };
        let mut bound = state.capacity / f64::from(state.flows);
        if state.limited_flows > 0 {
            let rate = state.limited_rate + state.spare / f64::from(state.limited_flows);
            if !above(state.fastest, rate) {
                return found(rate, false);
            }
            bound = bound.max(rate - rate * SAME);
        } else if !state.is_overfull() {
            return found(f64::INFINITY, false);
        }
        // From below: at each rate more flows turn out to be slower than it.
        loop {
            let (mut left, mut sharing) = (state.capacity, 0u32);
            let (mut slowest, mut fastest) = (f64::INFINITY, 0.0);
            self.each_flow(&state, |flow| {
                // Branch-free, because the branches would be unpredictable.
                let limited = flow.bottleneck == link;
                let shares = limited || flow.rate > bound;
                left -= if shares { 0.0 } else { flow.rate };
                sharing += u32::from(shares);
                let rate = if shares && !limited { flow.rate } else { f64::INFINITY };
                slowest = if rate < slowest { rate } else { slowest };
                let rate = if limited { 0.0 } else { flow.rate };
                fastest = if rate > fastest { rate } else { fastest };
            });
            self.links.get_mut(link as usize)?.fastest = fastest;
            if sharing == 0 {
                // Summed again, because incremental updates of `spare` drift with many flows.
                self.links.get_mut(link as usize)?.spare = left;
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

    /// Limits the flows of a link to a rate, and updates their other links; at rate 1 they have no
    /// bottleneck any more.
    fn limit(&mut self, limit: Limit) {
        let Limit { link, rate, limits_faster, now } = limit;
        let Some(state) = self.links.get(link as usize) else { return };
        let (mut spare, mut at) = (state.capacity, state.first);
        let (mut limited_flows, mut leader, mut fastest) = (0u32, NONE, 0.0);
        let (mut least, mut second) = (f64::INFINITY, f64::INFINITY);
        while let Some(&Hop { flow: number, next, .. }) = self.hops.get(at as usize) {
            at = next;
            let Some(flow) = self.flows.get_mut(number as usize) else { break };
            let bottleneck = flow.bottleneck;
            if bottleneck != link && !(limits_faster && above(flow.rate, rate)) {
                spare -= flow.rate;
                fastest = if flow.rate > fastest { flow.rate } else { fastest };
                continue;
            }
            let route = hops_of(number, flow, self.longest_route);
            if let Some(watch) = &mut self.watch {
                let bottleneck = (rate < 1.0).then_some(link);
                let changed = FlowRate { op: flow.op, now, rate, bottleneck };
                watch.note(self.hops, route.clone(), flow, &changed);
            }
            let slower = flow.rate - rate;
            flow.remaining = (flow.remaining - flow.rate * real(now - flow.since)).max(0.0);
            (flow.since, flow.rate) = (now, rate);
            flow.bottleneck = if rate < 1.0 { link } else { NONE };
            if flow.remaining <= least {
                (second, least, leader) = (least, flow.remaining, number);
            } else if flow.remaining < second {
                second = flow.remaining;
            }
            limited_flows += 1;
            if bottleneck != link {
                self.leave_bottleneck(bottleneck, number);
            }
            if rate >= 1.0 {
                self.list_unlimited(number);
            }
            if slower != 0.0 {
                for hop in route {
                    self.note_slower(hop, link, slower, rate);
                }
            }
        }
        if let Some(state) = self.links.get_mut(link as usize) {
            state.spare = spare - rate * f64::from(limited_flows);
            (state.limited_rate, state.second_remaining) = (rate, second);
            if limits_faster {
                state.filled_in = self.pass;
            }
            (state.limited_flows, state.leader, state.fastest) =
                if rate < 1.0 { (limited_flows, leader, fastest) } else { (0, NONE, 1.0) };
        }
        self.mark_changed(link);
    }

    /// Removes a flow from its bottleneck, or from the flows without one.
    #[inline]
    fn leave_bottleneck(&mut self, bottleneck: u32, number: u32) {
        if let Some(state) = self.links.get_mut(bottleneck as usize) {
            state.release(number);
            return self.mark_changed(bottleneck);
        }
        let Self { ends, flows, links, .. } = self;
        let Some(flow) = flows.get_mut(number as usize) else { return };
        let position = core::mem::replace(&mut flow.end_position, NONE);
        if position != NONE {
            ends.remove(position as usize, |end, at| note_position(links, flows, end, at));
        }
    }

    /// Updates the link of a hop, unless it is `bottleneck`, after its flow became slower.
    #[inline]
    fn note_slower(&mut self, hop: usize, bottleneck: u32, slower: f64, rate: f64) {
        let Some(&Hop { link, .. }) = self.hops.get(hop) else { return };
        let Some(state) = self.links.get_mut(link as usize).filter(|_| link != bottleneck) else {
            return;
        };
        state.spare += slower;
        state.fastest = if rate > state.fastest { rate } else { state.fastest };
        // A link that is queued by a lower rate stays there.
        if (slower < 0.0 || state.queue_position == NONE)
            && (state.limited_flows > 0 || state.spare < 0.0)
        {
            self.enqueue(link);
        }
    }

    /// Queues a link whose flows have to change.
    #[inline]
    fn enqueue(&mut self, link: u32) {
        let Some(state) = self.links.get(link as usize) else { return };
        let Some(rate) = state.first_change() else { return };
        let (queued, position) =
            (QueuedLink { rate: rate.max(self.level), link }, state.queue_position as usize);
        let Self { links, link_queue, link_queue_length, .. } = self;
        if position >= *link_queue_length {
            *link_queue_length += 1;
            array_heap::rise(link_queue, *link_queue_length - 1, queued, |queued, at| {
                note_queued(links, queued, at)
            });
        } else if link_queue.get(position).is_some_and(|old| queued.before(old)) {
            array_heap::rise(link_queue, position, queued, |queued, at| {
                note_queued(links, queued, at)
            });
        }
    }

    /// Moves the first link of the queue to a higher rate; true if it is still the first.
    fn stays_first(&mut self, queued: QueuedLink) -> bool {
        let Self { links, link_queue, link_queue_length, .. } = self;
        let Some(link_queue) = link_queue.get_mut(..*link_queue_length) else { return false };
        array_heap::sink(link_queue, 0, queued, |queued, at| note_queued(links, queued, at));
        link_queue.first().is_some_and(|first| first.link == queued.link)
    }

    /// Removes the first link of the queue.
    fn dequeue_first(&mut self) {
        let Self { links, link_queue, link_queue_length, .. } = self;
        if let Some(state) = link_queue.first().and_then(|first| links.get_mut(first.link as usize))
        {
            state.queue_position = NONE;
        }
        if let Some(link_queue) = link_queue.get_mut(..*link_queue_length) {
            array_heap::remove_first(link_queue, |queued, at| note_queued(links, queued, at));
        }
        *link_queue_length -= 1;
    }

    /// Asserts max-min fairness of the flows of a link: no link of theirs is overloaded, and their
    /// bottleneck is full and has no faster flow.
    #[cfg(debug_assertions)]
    pub(super) fn check(&self, link: u32) {
        let mut at = self.links.get(link as usize).map_or(NONE, |link| link.first);
        for _ in 0..CHECKED {
            let Some(&Hop { flow, next, .. }) = self.hops.get(at as usize) else { return };
            self.check_flow(flow);
            at = next;
        }
    }

    #[cfg(debug_assertions)]
    fn check_flow(&self, at: u32) {
        const OFF: f64 = 1e-9;
        let Some(flow) = self.flows.get(at as usize) else { return };
        let mut is_fair = flow.rate >= 1.0;
        for hop in hops_of(at, flow, self.longest_route) {
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
            is_fair |= flow.bottleneck == link
                && sum >= state.capacity * (1.0 - OFF)
                && flow.rate >= fastest * (1.0 - OFF);
        }
        assert!(is_fair, "flow {at} could be faster than {}", flow.rate);
    }
}

/// Stores the position of a link in the queue.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "at most one position a link")]
fn note_queued(links: &mut [Link], queued: &QueuedLink, at: usize) {
    if let Some(link) = links.get_mut(queued.link as usize) {
        link.queue_position = at as u32;
    }
}
