//! Execution of one event of one rank.

use super::driver::{Driver, Outgoing, Stamps};
use super::error::ImplicitError;
use super::pool::{NONE, Node, Pool};
use super::program::{Program, Release};
use super::rank::Rank;
use super::runner::{Next, Simulation, kind};
use crate::sim::hooks::{Calculated, Handled, Noise, Sent};
use crate::sim::parameters::Receive;
use crate::sim::queues::chain::Chain;
use crate::sim::rank::Class;
use crate::sim::rank::price::{Leaving, Reception};
use crate::units::Picos;

#[allow(private_bounds, reason = "both drivers are here")]
impl<P: Program, N: Noise, D: Driver> Simulation<'_, '_, P, N, D> {
    /// Appends released operations to the list of their rank.
    #[inline]
    pub(super) fn release(
        &mut self,
        state: &mut Rank<P::State>,
        release: Release,
        stamps: Stamps,
    ) -> Result<(), ImplicitError> {
        let Release { sends, receives, calcs } = release;
        let lists = [(kind::SENDS, sends), (kind::RECEIVES, 0..receives), (kind::CALCS, calcs)];
        for (kind, range) in lists {
            if range.is_empty() {
                continue;
            }
            let count = range.end - range.start;
            self.so_far.events += u64::from(count);
            let Stamps { created, parent } = self.driver.draw(stamps, count)?;
            let item =
                Node { next: NONE, first: range.start, last: range.end, kind, created, parent };
            let item =
                if kind == kind::RECEIVES { D::receives(item, state.free.cpu) } else { item };
            self.pool.push(&mut state.work, item)?;
        }
        Ok(())
    }

    /// Removes the first operation of its node.
    #[cfg_attr(target_os = "none", inline)]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn started(&mut self, state: &mut Rank<P::State>, next: &Next) {
        let first = next.item.first + 1;
        if first == next.item.last {
            self.pool.remove_after(&mut state.work, next.before);
        } else {
            let node = self.pool.next(next.before);
            self.pool.set_first(node, first);
        }
    }

    /// Executes the next event of a rank.
    #[inline]
    pub(super) fn execute(
        &mut self,
        rank: u32,
        state: &mut Rank<P::State>,
        next: &Next,
    ) -> Result<(), ImplicitError> {
        match next.item.kind {
            kind::SENDS => self.send(rank, state, next),
            kind::RECEIVES => self.post(rank, state, next),
            kind::CALCS => self.calculate(rank, state, next),
            _ => self.handle(rank, state, next),
        }
    }

    #[inline]
    fn send(
        &mut self,
        rank: u32,
        state: &mut Rank<P::State>,
        next: &Next,
    ) -> Result<(), ImplicitError> {
        let (now, send) = (next.time, next.item.first);
        debug_assert!(now >= begin(state, Class::Sends), "its turn had come");
        self.started(state, next);
        let transfer = self.program.transfer(rank, send);
        let event = Sent {
            rank,
            size: transfer.size,
            to: transfer.to,
            start: Picos(now),
            ..Sent::default()
        };
        let Leaving { cpu, out, arrival, volume, .. } = self.charges.send(event)?;
        (state.free.cpu, state.free.out) = (cpu, out);
        let stamps = D::stamps(now, next.item.created);
        let drawn = self.driver.draw(stamps, 1)?;
        let message = Outgoing { source: rank, transfer, stamps: drawn, arrival, volume };
        D::deliver(self, state, &message)?;
        self.so_far.messages += 1;
        self.so_far.events += 1;
        let release = self.program.sent(rank, &mut state.state, send);
        self.release(state, release, stamps)
    }

    #[inline]
    fn handle(
        &mut self,
        rank: u32,
        state: &mut Rank<P::State>,
        next: &Next,
    ) -> Result<(), ImplicitError> {
        let now = next.time;
        self.pool.remove_after(&mut state.inbox, next.before);
        let size = self.program.expected(rank, next.item.last);
        let how = Reception { overlap: false, last: D::SHARED };
        // One price for all pairs of ranks, so the sender does not matter.
        let event = Handled {
            rank,
            from: rank,
            start: Picos(now),
            taken: Picos(now),
            ..Handled::default()
        };
        let received = self.charges.handle(event, size, state.free.cpu, how)?;
        state.free.cpu = received.cpu;
        if let Some(into) = received.into {
            state.free.into = into;
        }
        let receive = self.program.met(rank, &mut state.state, next.item.last);
        if receive >= state.posted {
            let message = Node { last: receive, ..next.item };
            return self.pool.push(&mut state.unexpected, message);
        }
        self.meet(rank, state, receive, D::stamps(now, next.item.created))
    }

    /// A receive is matched.
    #[inline]
    fn meet(
        &mut self,
        rank: u32,
        state: &mut Rank<P::State>,
        receive: u32,
        stamps: Stamps,
    ) -> Result<(), ImplicitError> {
        self.so_far.matched += 1;
        let release = self.program.received(rank, &mut state.state, receive);
        self.release(state, release, stamps)
    }

    /// Posts the next receive.
    fn post(
        &mut self,
        rank: u32,
        state: &mut Rank<P::State>,
        next: &Next,
    ) -> Result<(), ImplicitError> {
        self.started(state, next);
        let receive = state.posted;
        state.posted += 1;
        self.so_far.receives += 1;
        let mut before = state.unexpected;
        while before != NONE {
            let node = self.pool.next(before);
            if self.pool.item(node).last == receive {
                self.pool.remove_after(&mut state.unexpected, before);
                let stamps = D::stamps(next.time, next.item.created);
                return self.meet(rank, state, receive, stamps);
            }
            if node == state.unexpected {
                break;
            }
            before = node;
        }
        Ok(())
    }

    fn calculate(
        &mut self,
        rank: u32,
        state: &mut Rank<P::State>,
        next: &Next,
    ) -> Result<(), ImplicitError> {
        let (now, calc) = (next.time, next.item.first);
        self.started(state, next);
        let work = self.program.calc(rank, calc);
        let event =
            Calculated { rank, op: calc, cpu: 0, start: Picos(now), work, noise: Picos::ZERO };
        state.free.cpu = self.charges.calculate(event)?;
        let release = self.program.calculated(rank, &mut state.state, calc);
        self.release(state, release, D::stamps(now, next.item.created))
    }
}

/// Time at which processor and interface are free for an event of a class.
#[inline]
pub(super) fn begin<S>(state: &Rank<S>, class: Class) -> u64 {
    state.free.begin(class, Receive::Hold)
}

/// Next of the released operations: the earliest among the oldest of each kind.
#[inline]
pub(super) fn next_work<S>(pool: &Pool<'_>, state: &Rank<S>) -> Option<Next> {
    let mut before = state.work;
    if before == NONE {
        return None;
    }
    let mut best: Option<Next> = None;
    let mut seen = 0u32;
    loop {
        let node = pool.next(before);
        let item = pool.item(node);
        if seen & 1 << item.kind == 0 {
            seen |= 1 << item.kind;
            let time = match item.kind {
                kind::SENDS => begin(state, Class::Sends),
                kind::RECEIVES => item.parent,
                _ => begin(state, Class::Calcs),
            };
            if best.is_none_or(|best| time < best.time) {
                best = Some(Next { time, before, item, open: false });
            }
        }
        if node == state.work {
            return best;
        }
        before = node;
    }
}
