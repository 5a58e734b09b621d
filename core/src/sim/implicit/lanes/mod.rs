//! One program under several parameters in one simulation.
//!
//! [`Lanes`] is a program around another one. The simulation runs it with the
//! first parameters and decides the order of events; the wrapper computes
//! beside it when each event would begin with the other parameters, a lane
//! each. That is what a simulation with those would find as long as every rank
//! has the same events in the same order. In each lane, for every event of a
//! rank,
//!
//! - a message must have arrived after the event before it began, or after
//!   the message before it;
//! - it must begin before sends that wait, and no calculation may wait;
//! - sends and calculations must not wait beside each other, and no message
//!   for a receive that is posted later.
//!
//! Then each event was the only next one: begins of a rank never descend, so
//! that what arrives after one was no choice at those before. All comparisons
//! are strict, so that ties, which stamps would decide, do not arise. Where one
//! of this fails, [`Lanes::makespans`] has nothing to say; the program may
//! need a run for each of the parameters.

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

/// What a rank has to remember, besides its program's.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaneState<S> {
    state: S,
    /// Sends and calculations that wait.
    sends: u32,
    calcs: u32,
    /// Whether it had an event.
    begun: bool,
    /// Whether a message was handled whose receive has not got it yet.
    unmatched: bool,
}

/// A program under the parameters of the simulation, which is one without
/// noise, and beside it under others.
#[derive(Debug)]
pub struct Lanes<'p, P, const K: usize> {
    program: &'p P,
    parameters: [Parameters<'p>; K],
    shared: RefCell<Shared<'p, K>>,
}

impl<'p, P: Program, const K: usize> Lanes<'p, P, K> {
    /// `program` beside a simulation of it with other parameters.
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::new`](super::Simulation::new) with these
    /// parameters.
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

    /// After a simulation that came to its end: the makespan in each lane;
    /// `None` where the order of events is not known to be the same.
    #[must_use]
    pub fn makespans(&self) -> Option<[Picos; K]> {
        let shared = self.shared.try_borrow().ok()?;
        (!shared.apart).then(|| shared.makespans.map(Picos))
    }

    /// Notes what an event releases.
    #[inline]
    fn released(state: &mut LaneState<P::State>, release: Release) -> Release {
        let Release { sends, calcs, .. } = &release;
        state.sends = state.sends.wrapping_add(sends.end.saturating_sub(sends.start));
        state.calcs = state.calcs.wrapping_add(calcs.end.saturating_sub(calcs.start));
        release
    }

    /// What messages of `size` bytes cost.
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

    /// A send of `size` bytes begins; `None` where lent memory is too short.
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

    /// A message of `size` bytes is handled; `None` where lent memory is too
    /// short.
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

    /// A calculation begins; `None` where lent memory is too short.
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

    /// Lanes that could not be followed are of no further use.
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

    /// The simulation asks for the transfer of a send, and then at once what
    /// the send releases.
    #[inline]
    fn transfer(&self, rank: u32, send: u32) -> Transfer {
        let transfer = self.program.transfer(rank, send);
        // To no rank: ends the simulation, which is of no use any more.
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
        // Right after it was handled: anything else in between was noticed.
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
