//! Lanes: one program under several parameters in one simulation.
//!
//! [`Lanes`] wrap a program. The simulation runs it with the first parameters and decides the order
//! of events; beside it the wrapper computes when each event begins under the other parameters, one
//! lane each. This equals a simulation with those parameters provided that every rank has the same
//! sequence of events. The conditions for that, in each lane and for every event of a rank, are:
//!
//! - a message arrives after the preceding event of the rank began, or after the preceding message;
//! - it begins before waiting sends, and no calculation waits;
//! - sends and calculations do not wait at the same time, and neither waits beside a handled
//!   message whose receive is posted later.
//!
//! Then each event was the only possible next one: the start times of a rank's events never
//! descend, so a message that arrives after one event was no alternative at earlier ones. All
//! comparisons are strict, so no tie has to be decided by stamps. If a condition fails,
//! [`Lanes::makespans`] returns
//! `None`, and the program has to be run once for each of the parameters.

mod shared;

use core::cell::RefCell;

pub use self::shared::LaneMemory;
use self::shared::{Clocks, LanePrices, NO_PLACE, Shared, Times, held, message};
use super::error::ImplicitError;
use super::program::{Program, Release, Transfer};
use super::runner::eager_price;
use crate::sim::engine::SimError;
use crate::sim::parameters::Parameters;
use crate::units::Picos;

/// State of a rank, including that of its program.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaneState<S> {
    state: S,
    /// Number of waiting sends and of waiting calculations.
    sends: u32,
    calcs: u32,
    /// True if the rank had an event.
    begun: bool,
    /// True if a message was handled that is not matched yet.
    unmatched: bool,
}

/// A program under the parameters of the simulation, which must be without noise, and under `K`
/// others beside it.
#[derive(Debug)]
pub struct Lanes<'p, P, const K: usize> {
    program: &'p P,
    parameters: [Parameters<'p>; K],
    shared: RefCell<Shared<'p, K>>,
}

impl<'p, P: Program, const K: usize> Lanes<'p, P, K> {
    /// Wraps `program`, for a simulation with other parameters than these.
    ///
    /// # Errors
    ///
    /// Errors of [`Simulation::new`](super::Simulation::new) with these parameters.
    pub fn new(
        program: &'p P,
        parameters: [Parameters<'p>; K],
        memory: LaneMemory<'p>,
    ) -> Result<Self, ImplicitError> {
        let sizes = program.sizes();
        for parameters in &parameters {
            eager_price(parameters, sizes)?;
        }
        let overflow = SimError::Overflow { rank: 0 };
        let LaneMemory { clocks, messages } = memory;
        let shared = Shared {
            prices: LanePrices::of(&parameters, sizes[1]).ok_or(overflow)?,
            clocks,
            messages,
            fresh: 0,
            free: NO_PLACE,
            sending: 0,
            makespans: [0; K],
            apart: false,
        };
        Ok(Self { program, parameters, shared: RefCell::new(shared) })
    }

    /// Makespan of each lane, after a complete simulation; `None` if the order of events may differ
    /// in a lane.
    #[must_use]
    pub fn makespans(&self) -> Option<[Picos; K]> {
        let shared = self.shared.try_borrow().ok()?;
        (!shared.apart).then(|| shared.makespans.map(Picos))
    }

    /// Counts the operations that an event releases.
    #[inline]
    fn released(state: &mut LaneState<P::State>, release: Release) -> Release {
        let Release { sends, calcs, .. } = &release;
        state.sends = state.sends.wrapping_add(sends.end.saturating_sub(sends.start));
        state.calcs = state.calcs.wrapping_add(calcs.end.saturating_sub(calcs.start));
        release
    }

    /// Prices of messages of `size` bytes.
    #[inline]
    fn price(&self, shared: &mut Shared<'_, K>, size: u64) -> LanePrices<K> {
        if shared.prices.size != size {
            match LanePrices::of(&self.parameters, size) {
                Some(prices) => shared.prices = prices,
                None => shared.apart = true,
            }
        }
        shared.prices
    }

    /// Starts a send of `size` bytes in each lane; `None` if lent memory is too short.
    #[inline]
    fn leave(&self, rank: u32, state: &mut LaneState<P::State>, size: u64) -> Option<()> {
        let shared = &mut *self.shared.try_borrow_mut().ok()?;
        let price = self.price(shared, size);
        let (arrival, _) = message::<K>(shared.messages, shared.sending)?;
        let Clocks { cpu, out, after, .. } = Clocks::of(shared.clocks, rank, &mut state.begun)?;
        let clocks = cpu.iter_mut().zip(&mut *out).zip(after);
        let costs = price.send.iter().zip(&price.gap).zip(&price.delay);
        for ((((cpu, out), after), ((send, gap), delay)), arrival) in clocks.zip(costs).zip(arrival)
        {
            let now = (*cpu).max(*out);
            *cpu = now.saturating_add(*send);
            *out = now.saturating_add(*gap);
            *arrival = now.saturating_add(*delay);
            *after = now.saturating_add(1);
        }
        state.sends = state.sends.wrapping_sub(1);
        shared.apart |= state.calcs > 0 || state.unmatched;
        shared.apart |= held(&mut shared.makespans, cpu, out);
        Some(())
    }

    /// Handles a message of `size` bytes in each lane; `None` if lent memory is too short.
    #[inline]
    fn handle(
        &self,
        rank: u32,
        state: &mut LaneState<P::State>,
        arrival: &Times<K>,
        size: u64,
    ) -> Option<()> {
        let shared = &mut *self.shared.try_borrow_mut().ok()?;
        let price = self.price(shared, size);
        let mut next = state.calcs == 0 && !state.unmatched;
        let Clocks { cpu, out, into, after } = Clocks::of(shared.clocks, rank, &mut state.begun)?;
        let clocks = cpu.iter_mut().zip(out).zip(into.iter_mut().zip(after));
        let costs = price.receive.iter().zip(&price.gap);
        for ((((cpu, out), (into, after)), (receive, gap)), arrival) in
            clocks.zip(costs).zip(arrival)
        {
            let now = (*arrival).max(*cpu).max(*into);
            next &= *arrival >= *after;
            next &= state.sends == 0 || now < (*cpu).max(*out);
            *cpu = now.saturating_add(*receive);
            *into = now.saturating_add(*gap);
            *after = arrival.saturating_add(1);
        }
        state.unmatched = true;
        shared.apart |= !next;
        shared.apart |= held(&mut shared.makespans, cpu, into);
        Some(())
    }

    /// Starts a calculation in each lane; `None` if lent memory is too short.
    fn calculate(&self, rank: u32, state: &mut LaneState<P::State>, work: Picos) -> Option<()> {
        let shared = &mut *self.shared.try_borrow_mut().ok()?;
        let Clocks { cpu, out, after, .. } = Clocks::of(shared.clocks, rank, &mut state.begun)?;
        for (cpu, after) in cpu.iter_mut().zip(after) {
            *after = cpu.saturating_add(1);
            *cpu = cpu.saturating_add(work.0);
        }
        state.calcs = state.calcs.wrapping_sub(1);
        shared.apart |= state.sends > 0 || state.unmatched;
        shared.apart |= held(&mut shared.makespans, cpu, out);
        Some(())
    }

    /// Marks the lanes as diverged if `followed` is `None`.
    #[inline]
    fn follow(&self, followed: Option<()>) {
        if let (None, Ok(mut shared)) = (followed, self.shared.try_borrow_mut()) {
            shared.apart = true;
        }
    }
}

impl<P: Program, const K: usize> Program for Lanes<'_, P, K> {
    type State = LaneState<P::State>;

    fn ranks(&self) -> u32 {
        self.program.ranks()
    }

    fn sizes(&self) -> [u64; 2] {
        self.program.sizes()
    }

    fn waiting(&self) -> u64 {
        self.program.waiting()
    }

    fn messages(&self) -> u64 {
        self.program.messages()
    }

    fn busy(&self) -> u32 {
        self.program.busy()
    }

    fn interchangeable(&self, rank: u32) -> bool {
        self.program.interchangeable(rank)
    }

    #[inline]
    fn start(&self, rank: u32, state: &mut Self::State) -> Release {
        let release = self.program.start(rank, &mut state.state);
        Self::released(state, release)
    }

    /// The simulation calls this for a send, and then immediately `sent`.
    #[inline]
    fn transfer(&self, rank: u32, send: u32) -> Transfer {
        let transfer = self.program.transfer(rank, send);
        // Sends to no rank, which ends the simulation; its result is not needed.
        let ended = Transfer { to: u32::MAX, ..transfer };
        let Ok(mut shared) = self.shared.try_borrow_mut() else { return ended };
        let Some(place) = shared.take(transfer.receive).filter(|_| !shared.apart) else {
            shared.apart = true;
            return ended;
        };
        shared.sending = place;
        Transfer { receive: place, ..transfer }
    }

    #[inline]
    fn sent(&self, rank: u32, state: &mut Self::State, send: u32) -> Release {
        self.follow(self.leave(rank, state, self.program.transfer(rank, send).size));
        let release = self.program.sent(rank, &mut state.state, send);
        Self::released(state, release)
    }

    #[inline]
    fn expected(&self, rank: u32, place: u32) -> u64 {
        let shared = self.shared.try_borrow_mut();
        let receive = shared.ok().and_then(|mut shared| shared.receive(place));
        self.program.expected(rank, receive.unwrap_or_default())
    }

    #[inline]
    fn met(&self, rank: u32, state: &mut Self::State, place: u32) -> u32 {
        let shared = self.shared.try_borrow_mut();
        let message = shared.ok().and_then(|mut shared| shared.remove(place));
        debug_assert!(message.is_some(), "the message was sent");
        let (arrival, receive) = message.unwrap_or(([0; K], 0));
        let size = self.program.expected(rank, receive);
        self.follow(self.handle(rank, state, &arrival, size));
        self.program.met(rank, &mut state.state, receive)
    }

    #[inline]
    fn received(&self, rank: u32, state: &mut Self::State, receive: u32) -> Release {
        // Directly follows `handle`; an event in between has set `apart`.
        state.unmatched = false;
        let release = self.program.received(rank, &mut state.state, receive);
        Self::released(state, release)
    }

    fn calculated(&self, rank: u32, state: &mut Self::State, calc: u32) -> Release {
        self.follow(self.calculate(rank, state, self.program.calc(rank, calc)));
        let release = self.program.calculated(rank, &mut state.state, calc);
        Self::released(state, release)
    }

    fn calc(&self, rank: u32, calc: u32) -> Picos {
        self.program.calc(rank, calc)
    }
}
