//! Simulation of a program, with either driver.

use core::fmt;
use core::num::NonZeroU64;

use super::driver::{Driver, Stamps};
use super::error::ImplicitError;
use super::pool::{NONE, Node, Pool};
use super::program::{Extent, Program, Release};
use super::rank::{Rank, RankState, UNSTARTED};
use super::windows::Windows;
use crate::sim::hooks::{NoNoise, Noise, Silent};
use crate::sim::outcome::SimError;
use crate::sim::parameters::{EVERYWHERE, Parameters};
use crate::sim::rank::charge::Charges;
use crate::sim::rank::price::{Price, Prices};
use crate::units::Picos;

/// Result of a complete run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ProgramFinished {
    /// Finishing time of the last rank.
    pub makespan: Picos,
    /// Rank that finished last; the lowest of several.
    pub last_rank: u32,
    /// Operations released plus messages created.
    pub events: u64,
    /// Messages created.
    pub messages: u64,
    /// Messages matched.
    pub matched: u64,
    /// Receives posted.
    pub receives: u64,
    /// Ties that were decided by rank number. If 0, the result equals that of the stored schedule.
    pub open_ties: u64,
}

impl ProgramFinished {
    /// Adds the result of parts with higher ranks.
    pub fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.messages += other.messages;
        self.matched += other.matched;
        self.receives += other.receives;
        self.open_ties += other.open_ties;
        if other.makespan > self.makespan {
            (self.makespan, self.last_rank) = (other.makespan, other.last_rank);
        }
    }

    /// This result, if it is that of a complete run.
    ///
    /// # Errors
    ///
    /// [`ImplicitError::Unreceived`] and [`ImplicitError::Waiting`].
    pub const fn complete(self) -> Result<Self, ImplicitError> {
        let Self { messages, matched, receives, .. } = self;
        if messages > matched {
            return Err(ImplicitError::Unreceived { messages: messages - matched });
        }
        if receives > matched {
            return Err(ImplicitError::Waiting { receives: receives - matched });
        }
        Ok(self)
    }
}

/// Kinds of operations in a node.
pub(super) mod kind {
    pub(in super::super) const SENDS: u32 = 1;
    pub(in super::super) const RECEIVES: u32 = 2;
    pub(in super::super) const CALCS: u32 = 3;
}

/// Creation time in the form that is compared: 0 for operations without dependencies, otherwise the
/// instant plus 1.
pub(super) const fn created(time: u64) -> u64 {
    time.wrapping_add(1)
}

/// Creation time of operations without dependencies.
const AT_START: u64 = 0;

/// The next event of a rank.
#[derive(Clone, Copy)]
pub(super) struct Next {
    pub(super) time: u64,
    /// Preceding node in its list.
    pub(super) before: u32,
    pub(super) item: Node,
    /// True if a tie with an event of another rank was decided by rank number.
    pub(super) open: bool,
}

/// Checks that `program` can be computed with `parameters`.
///
/// # Errors
///
/// As [`Simulation::new`], without [`ImplicitError::Memory`].
pub fn check<P: Program>(program: &P, parameters: &Parameters<'_>) -> Result<(), ImplicitError> {
    eager_price(parameters, program.extent().sizes).map(drop)
}

/// Price of the longest of messages of these sizes. All of them must have one protocol, be eager,
/// and have o + L > 0.
pub(super) fn eager_price(
    parameters: &Parameters<'_>,
    [shortest, longest]: [u64; 2],
) -> Result<Price, ImplicitError> {
    let overflow = SimError::Overflow { rank: 0 };
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

/// Simulation of one program.
pub struct Simulation<'m, 'p, P: Program, N = NoNoise, D = Windows<'m>> {
    pub(super) program: &'p P,
    pub(super) extent: Extent,
    /// Prices under one parameter set for all pairs of ranks.
    pub(super) charges: Charges<'p, N, Silent>,
    /// o + L: time from the start of a send to the arrival of its message, ps.
    pub(super) delay: NonZeroU64,
    /// Rank of the first element of `ranks`.
    pub(super) first: u32,
    pub(super) ranks: &'m mut [RankState<P::State>],
    pub(super) pool: Pool<'m>,
    pub(super) driver: D,
    /// True if the operations without dependencies were released.
    pub(super) begun: bool,
    /// Result so far.
    pub(super) so_far: ProgramFinished,
}

impl<P: Program, N, D> fmt::Debug for Simulation<'_, '_, P, N, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("ranks", &self.ranks.len())
            .field("so_far", &self.so_far)
            .finish_non_exhaustive()
    }
}

#[allow(private_bounds, reason = "both drivers are here")]
impl<'m, 'p, P: Program, N: Noise, D: Driver> Simulation<'m, 'p, P, N, D> {
    /// Initial state, with a driver for this o + L.
    pub(super) fn driven(
        program: &'p P,
        parameters: Parameters<'p>,
        noise: N,
        ranks: &'m mut [RankState<P::State>],
        nodes: &'m mut [Node],
        driver: impl FnOnce(NonZeroU64) -> D,
    ) -> Result<Self, ImplicitError> {
        let extent = program.extent();
        let price = eager_price(&parameters, extent.sizes)?;
        let delay = price.delay()?;
        let delay = NonZeroU64::new(delay).ok_or(ImplicitError::NoLookahead)?;
        Ok(Self {
            program,
            extent,
            charges: Charges { prices: Prices::new(parameters), noise, observer: Silent },
            delay,
            first: 0,
            ranks,
            pool: Pool::new(nodes),
            driver: driver(delay),
            begun: false,
            so_far: ProgramFinished::default(),
        })
    }

    /// Runs to the end; requires a simulation of all ranks.
    ///
    /// # Errors
    ///
    /// [`ImplicitError`]; the simulation cannot be used after it.
    pub fn run(&mut self) -> Result<ProgramFinished, ImplicitError> {
        loop {
            if let Some(outcome) = self.run_some(u64::MAX)? {
                return Ok(outcome);
            }
        }
    }

    /// Runs to the end, or for about `events` events; `None` if events are left.
    ///
    /// # Errors
    ///
    /// As [`Simulation::run`].
    pub fn run_some(&mut self, events: u64) -> Result<Option<ProgramFinished>, ImplicitError> {
        let until = self.so_far.events.saturating_add(events);
        self.begin_once()?;
        while self.so_far.events < until {
            if !D::advance(self)? {
                return Self::outcome_of([&*self]).complete().map(Some);
            }
        }
        Ok(None)
    }

    /// Releases the operations without dependencies, the first time.
    #[inline]
    pub(super) fn begin_once(&mut self) -> Result<(), ImplicitError> {
        if core::mem::replace(&mut self.begun, true) { Ok(()) } else { D::begin_all(self) }
    }

    /// Result of the run of `parts` of a program, in the order of their ranks.
    pub fn outcome_of<'a>(parts: impl IntoIterator<Item = &'a Self>) -> ProgramFinished
    where
        Self: 'a,
    {
        let mut outcome = ProgramFinished::default();
        parts.into_iter().for_each(|part| outcome.add(&part.so_far));
        outcome
    }

    /// State of `rank`, which may be that before its first event; `None` if it is in another part.
    #[inline]
    pub(super) fn state(&self, rank: u32) -> Option<Rank<P::State>> {
        let mut state = self.ranks.get(rank.wrapping_sub(self.first) as usize)?.load();
        if state.posted == UNSTARTED {
            self.start(rank, &mut state);
        }
        Some(state)
    }

    /// Posts the receives without dependencies, as no message can arrive before; returns the other
    /// operations without dependencies.
    #[inline]
    fn start(&self, rank: u32, state: &mut Rank<P::State>) -> Release {
        let release = self.program.start(rank, &mut state.state);
        state.posted = release.receives;
        release.and_receives(0)
    }

    /// Sends executed plus receives posted plus messages matched so far; at the end three times
    /// [`Extent::messages`].
    #[must_use]
    pub const fn progress(&self) -> u64 {
        let ProgramFinished { messages, receives, matched, .. } = self.so_far;
        messages.saturating_add(receives).saturating_add(matched)
    }

    /// Number of nodes ever in use; the others were never touched.
    #[must_use]
    pub const fn nodes_used(&self) -> u32 {
        self.pool.used()
    }

    /// Finishing times of the ranks in this part.
    pub fn finishes(&self) -> impl Iterator<Item = (u32, Picos)> {
        (self.first..).zip(self.ranks.iter().map(|state| Picos(state.cpu())))
    }
}

#[allow(private_bounds, reason = "both drivers are here")]
impl<P: Program, N: Noise, D: Driver> Simulation<'_, '_, P, N, D> {
    /// Releases the operations of `rank` that have no dependencies. True if it has an event before
    /// any message arrives; otherwise its state is not touched before the first one does.
    #[inline]
    pub(super) fn begin(&mut self, rank: u32) -> Result<bool, ImplicitError> {
        let mut new = RankState::default().load();
        let release = self.start(rank, &mut new);
        self.so_far.receives += u64::from(new.posted);
        self.so_far.events += u64::from(new.posted);
        if release == Release::NOTHING {
            return Ok(false);
        }
        // Ranks before it may have sent messages.
        let Some(mut state) = self.state(rank) else { return Ok(false) };
        let at_start = Stamps { created: AT_START, parent: AT_START };
        let result = self.release(&mut state, release, at_start);
        self.put(rank, &state, result)?;
        Ok(state.work != NONE)
    }

    /// Stores the new state of `rank`, and names the rank in an error.
    #[inline]
    pub(super) fn put(
        &mut self,
        rank: u32,
        state: &Rank<P::State>,
        result: Result<(), ImplicitError>,
    ) -> Result<(), ImplicitError> {
        if let Some(place) = self.ranks.get_mut(rank.wrapping_sub(self.first) as usize) {
            place.store(state);
        }
        let Picos(last) = self.so_far.makespan;
        let cpu = state.free.cpu;
        if cpu > last || cpu == last && rank < self.so_far.last_rank {
            (self.so_far.makespan, self.so_far.last_rank) = (Picos(cpu), rank);
        }
        result.map_err(|error| error.on(rank))
    }
}
