//! Windows of length o + L, and the ranks in them one after the other.

use core::fmt;
use core::num::NonZeroU64;

use super::driver::{Driver, Outgoing};
use super::error::ImplicitError;
use super::memory::{Memory, Needs};
use super::pool::{Item, NONE, Node, Pool};
use super::program::Program;
use super::rank::{Rank, RankState};
use crate::sim::chain::Chain;
use crate::sim::hooks::{NoNoise, Noise};
use crate::sim::network::NetworkStopped;
use crate::sim::parameters::{EVERYWHERE, Parameters};
use crate::sim::price::{Price, Prices, sum};
use crate::sim::wheel::{Due, Wheel};
use crate::units::{Overflow, Picos};

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Outcome {
    /// When the last rank was done.
    pub makespan: Picos,
    /// The rank that was last, the lowest of several.
    pub last_rank: u32,
    /// Operations released and messages created.
    pub events: u64,
    /// Messages created.
    pub messages: u64,
    /// Ties that were decided by rank; without any, the result is exactly
    /// that of the stored schedule.
    pub open_ties: u64,
}

/// What the operations of a node are.
pub(super) mod kind {
    pub(in super::super) const SENDS: u32 = 1;
    pub(in super::super) const RECEIVES: u32 = 2;
    pub(in super::super) const CALCS: u32 = 3;
}

/// A creation time as it is compared: what waits for nothing is created
/// before the first instant, everything else after its instant.
pub(super) const fn created(time: u64) -> u64 {
    time.wrapping_add(1)
}

/// The creation time of what waits for nothing.
const AT_START: u64 = 0;

/// The next event of a rank.
#[derive(Clone, Copy)]
pub(super) struct Next {
    pub(super) time: u64,
    /// The node before it in its list.
    pub(super) before: u32,
    pub(super) item: Item,
    /// Whether a tie with an event of another rank was not decided.
    pub(super) open: bool,
}

/// Why a rank could not go on; the rank is filled in where it is known.
pub(super) enum Stop {
    Overflow,
    Nodes,
    Peer(u32),
    /// Too many stamps at this instant.
    AtOnce(u64),
    Network(NetworkStopped),
}

impl From<NetworkStopped> for Stop {
    fn from(stopped: NetworkStopped) -> Self {
        Self::Network(stopped)
    }
}

impl From<Overflow> for Stop {
    fn from(_: Overflow) -> Self {
        Self::Overflow
    }
}

/// The price of the longest of messages of these sizes, which all have one
/// protocol, are eager, and take time to arrive.
pub(super) fn eager_price(
    parameters: &Parameters<'_>,
    [shortest, longest]: [u64; 2],
) -> Result<Price, ImplicitError> {
    let overflow = ImplicitError::Overflow { rank: 0 };
    let price = Price::of(parameters, EVERYWHERE, longest).map_err(|_| overflow)?;
    let least = parameters.costs(EVERYWHERE, shortest).map_err(|_| overflow)?;
    if price.costs.protocol != least.protocol || parameters.levels() > 0 {
        return Err(ImplicitError::Protocols);
    }
    if price.costs.rendezvous {
        return Err(ImplicitError::Rendezvous { size: longest });
    }
    price.check().map_err(|_| overflow)?;
    if price.delay() == Ok(0) {
        return Err(ImplicitError::NoLookahead);
    }
    Ok(price)
}

/// The driver in windows: every rank by itself to the end of the window.
#[derive(Debug)]
pub struct Windows<'m> {
    pub(super) wheel: Wheel<'m>,
    /// End of the window.
    pub(super) end: u64,
}

impl Driver for Windows<'_> {
    const SHARED: bool = false;

    #[inline]
    fn stamps(now: u64, parent: u64) -> (u64, u64) {
        (created(now), parent)
    }

    #[inline]
    fn draw(&mut self, stamps: (u64, u64), _count: u32) -> Result<(u64, u64), Stop> {
        Ok(stamps)
    }

    #[inline]
    fn deliver<P: Program, N: Noise>(
        simulation: &mut Simulation<'_, '_, P, N, Self>,
        own: &mut Rank<P::State>,
        message: &Outgoing,
    ) -> Result<(), Stop> {
        // One picosecond is left for creation times.
        sum(message.arrival, 1)?;
        let to = message.transfer.to;
        simulation.deliver(message.source, own, to, message.item(message.source))?;
        let window = simulation.window_of(message.arrival);
        simulation.driver.wheel.add(to, window);
        Ok(())
    }
}

/// A simulation of one program.
pub struct Simulation<'m, 'p, P: Program, N = NoNoise, D = Windows<'m>> {
    pub(super) program: &'p P,
    pub(super) prices: Prices<'p>,
    /// o, the sender's.
    pub(super) overhead: u64,
    /// o, the receiver's.
    pub(super) receive_overhead: u64,
    /// o + L: from the start of a send to the arrival of its message.
    pub(super) delay: NonZeroU64,
    pub(super) ranks: &'m mut [RankState<P::State>],
    pub(super) pool: Pool<'m>,
    pub(super) driver: D,
    /// Operations released and messages created.
    pub(super) events: u64,
    /// Messages created, and matched; receives posted.
    pub(super) sent: u64,
    pub(super) matched: u64,
    pub(super) receives: u64,
    pub(super) open_ties: u64,
    pub(super) noise: N,
}

impl<P: Program, N, D> fmt::Debug for Simulation<'_, '_, P, N, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("ranks", &self.ranks.len())
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

impl<'m, 'p, P: Program, N: Noise> Simulation<'m, 'p, P, N> {
    /// A simulation of `program` with `noise`, in the lent `memory`.
    ///
    /// # Errors
    ///
    /// [`ImplicitError::NoLookahead`], [`ImplicitError::Rendezvous`] and
    /// [`ImplicitError::Protocols`] where the program cannot be run with
    /// these parameters, [`ImplicitError::Memory`] where there is not enough
    /// of it, [`ImplicitError::Overflow`] where one message is past 2⁶⁴ ps.
    pub fn new(
        program: &'p P,
        parameters: Parameters<'p>,
        noise: N,
        memory: Memory<'m, P::State>,
    ) -> Result<Self, ImplicitError> {
        let needs = Needs::of(program);
        let Memory { ranks, words, nodes } = memory;
        let ranks = ranks.get_mut(..needs.ranks).ok_or(ImplicitError::Memory)?;
        let words = words.get_mut(..needs.words).ok_or(ImplicitError::Memory)?;
        Self::driven(program, (parameters, noise), (ranks, nodes), |delay| Windows {
            wheel: Wheel::new(words, needs.ranks),
            end: delay.get(),
        })
    }

    /// Runs to the end.
    ///
    /// # Errors
    ///
    /// [`ImplicitError`]; the simulation is of no further use then.
    pub fn run(&mut self) -> Result<Outcome, ImplicitError> {
        for rank in 0..self.program.ranks() {
            if self.begin(rank)? {
                self.turn(rank)?;
            }
        }
        loop {
            match self.driver.wheel.advance() {
                Due::Nothing => return self.outcome(),
                Due::Run(slot) => {
                    self.driver.end =
                        self.driver.wheel.now.saturating_add(1).saturating_mul(self.delay.get());
                    let mut sweep = self.driver.wheel.sweep(slot);
                    while let Some(rank) = self.driver.wheel.take(&mut sweep) {
                        self.turn(rank)?;
                    }
                }
                Due::Spread(slot) => {
                    let mut sweep = self.driver.wheel.sweep(slot);
                    while let Some(rank) = self.driver.wheel.take(&mut sweep) {
                        self.schedule(rank);
                    }
                }
                Due::Far => {
                    self.driver.wheel.now = self.first_window();
                    let mut sweep = self.driver.wheel.far();
                    while let Some(rank) = self.driver.wheel.take(&mut sweep) {
                        self.schedule(rank);
                    }
                }
            }
        }
    }

    /// The window of the first event of all ranks.
    fn first_window(&self) -> u64 {
        let first = (0..self.program.ranks()).filter_map(|rank| self.due(rank)).min();
        first.unwrap_or_default() / self.delay
    }

    /// When `rank` has to be run, or earlier.
    fn due(&self, rank: u32) -> Option<u64> {
        let state = self.ranks.get(rank as usize)?.load();
        let next = self.next(rank, &state).map(|next| next.time);
        let mut first = next;
        let mut node = state.incoming;
        while node != NONE {
            node = self.pool.next(node);
            let arrival = self.arrival(&self.pool.item(node));
            first = Some(first.map_or(arrival, |first| first.min(arrival)));
            if node == state.incoming {
                break;
            }
        }
        first
    }

    /// Sees to it that `rank` is run when it is due.
    fn schedule(&mut self, rank: u32) {
        if let Some(time) = self.due(rank) {
            self.driver.wheel.add(rank, time / self.delay);
        }
    }
}

#[allow(private_bounds, reason = "both drivers are here")]
impl<'m, 'p, P: Program, N: Noise, D: Driver> Simulation<'m, 'p, P, N, D> {
    /// At the start, with the driver for this o + L.
    pub(super) fn driven(
        program: &'p P,
        (parameters, noise): (Parameters<'p>, N),
        (ranks, nodes): (&'m mut [RankState<P::State>], &'m mut [Node]),
        driver: impl FnOnce(NonZeroU64) -> D,
    ) -> Result<Self, ImplicitError> {
        let price = eager_price(&parameters, program.sizes())?;
        let delay = price.delay().map_err(|_| ImplicitError::Overflow { rank: 0 })?;
        let delay = NonZeroU64::new(delay).ok_or(ImplicitError::NoLookahead)?;
        Ok(Self {
            program,
            prices: Prices::new(parameters),
            overhead: price.costs.overhead,
            receive_overhead: price.costs.receive_overhead,
            delay,
            ranks,
            pool: Pool::new(nodes),
            driver: driver(delay),
            events: 0,
            sent: 0,
            matched: 0,
            receives: 0,
            open_ties: 0,
            noise,
        })
    }

    pub(super) fn outcome(&self) -> Result<Outcome, ImplicitError> {
        if self.sent > self.matched {
            return Err(ImplicitError::Unreceived { messages: self.sent - self.matched });
        }
        if self.receives > self.matched {
            return Err(ImplicitError::Waiting { receives: self.receives - self.matched });
        }
        let (events, messages, open_ties) = (self.events, self.sent, self.open_ties);
        let mut outcome = Outcome { events, messages, open_ties, ..Outcome::default() };
        for (rank, state) in (0u32..).zip(self.ranks.iter()) {
            if state.cpu() > outcome.makespan.0 {
                outcome.makespan = Picos(state.cpu());
                outcome.last_rank = rank;
            }
        }
        Ok(outcome)
    }

    /// When `rank` was done.
    #[must_use]
    pub fn finish(&self, rank: u32) -> Picos {
        Picos(self.ranks.get(rank as usize).map_or(0, RankState::cpu))
    }
}

impl<P: Program, N: Noise> Simulation<'_, '_, P, N, Windows<'_>> {
    /// Runs `rank` to the end of the window.
    #[inline]
    fn turn(&mut self, rank: u32) -> Result<(), ImplicitError> {
        let Some(state) = self.ranks.get(rank as usize) else { return Ok(()) };
        let mut state = state.load();
        let result = self.run_rank(rank, &mut state);
        self.put(rank, &state, result)
    }
}

#[allow(private_bounds, reason = "both drivers are here")]
impl<P: Program, N: Noise, D: Driver> Simulation<'_, '_, P, N, D> {
    /// Releases what waits for nothing on `rank`; whether it can do something
    /// at once.
    #[inline]
    pub(super) fn begin(&mut self, rank: u32) -> Result<bool, ImplicitError> {
        let Some(state) = self.ranks.get(rank as usize) else { return Ok(false) };
        let mut state = state.load();
        let release = self.program.start(rank, &mut state.state);
        // Nothing can arrive before all of them are posted.
        state.posted = release.receives;
        self.receives += u64::from(release.receives);
        self.events += u64::from(release.receives);
        let result = self.release(&mut state, release.and_receives(0), (AT_START, AT_START));
        self.put(rank, &state, result)?;
        Ok(state.work != NONE)
    }

    /// Keeps the new state of `rank`, and names the rank in an error.
    #[inline]
    pub(super) fn put(
        &mut self,
        rank: u32,
        state: &Rank<P::State>,
        result: Result<(), Stop>,
    ) -> Result<(), ImplicitError> {
        if let Some(place) = self.ranks.get_mut(rank as usize) {
            place.store(state);
        }
        result.map_err(|stop| match stop {
            Stop::Overflow => ImplicitError::Overflow { rank },
            Stop::Nodes => ImplicitError::Nodes { lent: self.pool.len() },
            Stop::Peer(peer) => ImplicitError::Peer { rank, peer },
            Stop::AtOnce(time) => ImplicitError::TooManyAtOnce { time: Picos(time) },
            Stop::Network(stopped) => ImplicitError::from(stopped).on(rank),
        })
    }
}

impl<P: Program, N: Noise> Simulation<'_, '_, P, N, Windows<'_>> {
    #[inline]
    fn run_rank(&mut self, rank: u32, state: &mut Rank<P::State>) -> Result<(), Stop> {
        self.receive(rank, state);
        while let Some(next) = self.next(rank, state) {
            if next.time >= self.driver.end {
                self.driver.wheel.add(rank, self.window_of(next.time));
                break;
            }
            self.open_ties += u64::from(next.open);
            match next.item.kind {
                kind::SENDS => self.send(rank, state, &next)?,
                kind::RECEIVES => self.post(rank, state, &next)?,
                kind::CALCS => self.calculate(rank, state, &next)?,
                _ => self.handle(rank, state, &next)?,
            }
        }
        Ok(())
    }
}
