//! Windows of length o + L, and the ranks in them one after the other.

use super::driver::{Driver, Outgoing, Stamps};
use super::error::ImplicitError;
use super::mail::{Mail, Outbox};
use super::memory::{Memory, Requirements};
use super::pool::{Item, NONE};
use super::program::Program;
use super::rank::Rank;
use super::runner::{Simulation, created};
use crate::sim::hooks::Noise;
use crate::sim::mail;
use crate::sim::parameters::Parameters;
use crate::sim::price::sum;
use crate::sim::queues::wheel::Wheel;

/// A range of ranks, which a [`Simulation::part`] has: those from `index` · 2^`shift`
/// on, 2^`shift` of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RankRange {
    /// Which of the parts, from 0.
    pub index: u32,
    /// Binary logarithm of the ranks of a part, at most 32.
    pub shift: u32,
}

impl RankRange {
    /// All ranks.
    pub const WHOLE: Self = Self { index: 0, shift: 32 };

    /// The number of the part that has `rank`.
    #[allow(clippy::cast_possible_truncation, reason = "at most the rank")]
    const fn of(self, rank: u32) -> u32 {
        (rank as u64 >> self.shift) as u32
    }

    /// Its first rank and how many there are, of so many in all.
    fn extent(self, ranks: u32) -> (u32, usize) {
        let first = u64::from(self.index) << self.shift;
        let first = u32::try_from(first).unwrap_or(u32::MAX).min(ranks);
        let count = u64::from(ranks - first).min(1 << self.shift);
        (first, usize::try_from(count).unwrap_or(usize::MAX))
    }
}

/// The driver in windows: every rank by itself to the end of the window.
#[derive(Debug)]
pub struct Windows<'m> {
    pub(super) wheel: Wheel<'m>,
    part: RankRange,
    /// For messages to other parts.
    outbox: Outbox<'m>,
}

impl Windows<'_> {
    /// Sends a message to a rank of another part.
    #[cfg_attr(target_os = "none", inline(never))]
    fn post(&mut self, to: u32, message: &Item) -> Result<(), ImplicitError> {
        self.outbox.send(self.part.of(to)).ok_or(ImplicitError::Mail)?.write(to, message);
        Ok(())
    }
}

impl Driver for Windows<'_> {
    const SHARED: bool = false;

    #[inline]
    fn stamps(now: u64, parent: u64) -> Stamps {
        Stamps { created: created(now), parent }
    }

    #[inline]
    fn draw(&mut self, stamps: Stamps, _count: u32) -> Result<Stamps, ImplicitError> {
        Ok(stamps)
    }

    #[inline]
    fn deliver<P: Program, N: Noise>(
        simulation: &mut Simulation<'_, '_, P, N, Self>,
        own: &mut Rank<P::State>,
        message: &Outgoing,
    ) -> Result<(), ImplicitError> {
        // One picosecond is left for creation times.
        sum(message.arrival, 1)?;
        let (to, item) = (message.transfer.to, message.item(message.source));
        let local = to.wrapping_sub(simulation.first);
        let incoming = if to == message.source {
            &mut own.incoming
        } else if let Some(state) = simulation.ranks.get_mut(local as usize) {
            state.incoming_mut()
        } else {
            let exists = to < simulation.program.ranks();
            return if exists {
                simulation.driver.post(to, &item)
            } else {
                Err(ImplicitError::Peer { rank: message.source, peer: to })
            };
        };
        simulation.pool.push(incoming, item)?;
        simulation.driver.wheel.add_at(local, message.arrival);
        Ok(())
    }

    fn begin_all<P: Program, N: Noise>(
        simulation: &mut Simulation<'_, '_, P, N, Self>,
    ) -> Result<(), ImplicitError> {
        for (rank, _) in (simulation.first..).zip(0..simulation.ranks.len()) {
            if simulation.begin(rank)? {
                simulation.turn(rank)?;
            }
        }
        Ok(())
    }

    fn advance<P: Program, N: Noise>(
        simulation: &mut Simulation<'_, '_, P, N, Self>,
    ) -> Result<bool, ImplicitError> {
        let Some(window) = simulation.next_window() else { return Ok(false) };
        simulation.go_to(window);
        simulation.run_due()?;
        Ok(true)
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
    /// of it, [`SimError::Overflow`](crate::sim::SimError::Overflow) where one message is past 2⁶⁴ ps.
    pub fn new(
        program: &'p P,
        parameters: Parameters<'p>,
        noise: N,
        memory: Memory<'m, P::State>,
    ) -> Result<Self, ImplicitError> {
        Self::part(program, parameters, noise, memory, RankRange::WHOLE)
    }

    /// The part of a simulation that has some of the ranks; [`Requirements::of_ranks`]
    /// says how much memory it wants.
    ///
    /// # Errors
    ///
    /// As [`Simulation::new`].
    pub fn part(
        program: &'p P,
        parameters: Parameters<'p>,
        noise: N,
        memory: Memory<'m, P::State>,
        part: RankRange,
    ) -> Result<Self, ImplicitError> {
        let (first, count) = part.extent(program.ranks());
        let needs = Requirements::of_ranks(program, count);
        let Memory { ranks, words, nodes } = memory;
        let ranks = ranks.get_mut(..needs.ranks).ok_or(ImplicitError::Memory)?;
        let words = words.get_mut(..needs.words).ok_or(ImplicitError::Memory)?;
        let nowhere = Outbox::new(mail::Mail::new(&[], &[], &[], 1), 0, [0; 2]);
        let whole = Self::driven(program, parameters, noise, ranks, nodes, |delay| Windows {
            wheel: Wheel::new(words, needs.ranks, delay),
            part,
            outbox: nowhere,
        })?;
        Ok(Self { first, ..whole })
    }
}

impl<'m, P: Program, N: Noise> Simulation<'_, '_, P, N, Windows<'m>> {
    /// A window not after the first in which a rank has an event without further
    /// messages; `None` where all ranks wait for messages, or are done.
    #[must_use]
    pub const fn next_window(&self) -> Option<u64> {
        if self.begun { self.driver.wheel.next() } else { Some(0) }
    }

    /// Runs a window: later than those before, not after any that
    /// [`Simulation::next_window`] named, and the very next if there is mail.
    /// Reads what other parts sent from `inbox`, sends with `outbox`.
    ///
    /// # Errors
    ///
    /// [`ImplicitError`]; the simulation is of no further use then. Of several
    /// parts that fail in a window, the first says what the whole fails with.
    pub fn run_window(
        &mut self,
        window: u64,
        inbox: &Mail<'_>,
        outbox: &mut Outbox<'m>,
    ) -> Result<(), ImplicitError> {
        core::mem::swap(&mut self.driver.outbox, outbox);
        let result = self.run_with_mail(window, inbox);
        core::mem::swap(&mut self.driver.outbox, outbox);
        result
    }

    fn run_with_mail(&mut self, window: u64, inbox: &Mail<'_>) -> Result<(), ImplicitError> {
        self.begin_once()?;
        self.go_to(window);
        self.collect(inbox)?;
        self.run_due()
    }

    /// Moves on to a window.
    fn go_to(&mut self, window: u64) {
        self.driver.wheel.go_to(window);
        while let Some(mut sweep) = self.driver.wheel.nearer() {
            while let Some(local) = self.driver.wheel.take(&mut sweep) {
                self.schedule(local);
            }
        }
    }

    /// Gives every rank what has come for it.
    fn collect(&mut self, inbox: &Mail<'_>) -> Result<(), ImplicitError> {
        let Self { driver, ranks, pool, first, .. } = self;
        let mut result = Ok(());
        inbox.collect(driver.part.index, |_, message| {
            let local = message.target().wrapping_sub(*first);
            debug_assert!((local as usize) < ranks.len(), "it came to the wrong part");
            let Some(state) = ranks.get_mut(local as usize) else { return };
            // What one rank sent comes from the last to the first.
            if let Err(full) = pool.push_first(state.incoming_mut(), message.read()) {
                result = Err(full);
            }
            driver.wheel.add_now(local);
        });
        result
    }

    /// Runs the ranks that are due in this window.
    fn run_due(&mut self) -> Result<(), ImplicitError> {
        let mut sweep = self.driver.wheel.due();
        while let Some(local) = self.driver.wheel.take(&mut sweep) {
            self.turn(self.first.wrapping_add(local))?;
        }
        Ok(())
    }

    /// Sees to it that a rank is run when it is due.
    fn schedule(&mut self, local: u32) {
        if let Some(time) = self.due(self.first.wrapping_add(local)) {
            self.driver.wheel.add_at(local, time);
        }
    }

    /// When `rank` has to be run, or earlier.
    fn due(&self, rank: u32) -> Option<u64> {
        let state = self.state(rank)?;
        let mut first = self.next(rank, &state).map(|next| next.time);
        let mut node = state.incoming;
        while node != NONE {
            node = self.pool.first(node);
            let arrival = self.arrival(&self.pool.item(node));
            first = Some(first.map_or(arrival, |first| first.min(arrival)));
            if node == state.incoming {
                break;
            }
        }
        first
    }

    /// Runs `rank` to the end of the window.
    #[inline]
    fn turn(&mut self, rank: u32) -> Result<(), ImplicitError> {
        let Some(mut state) = self.state(rank) else { return Ok(()) };
        let result = self.run_rank(rank, &mut state);
        self.put(rank, &state, result)
    }

    #[inline]
    fn run_rank(&mut self, rank: u32, state: &mut Rank<P::State>) -> Result<(), ImplicitError> {
        self.receive(rank, state);
        while let Some(next) = self.next(rank, state) {
            if next.time > self.driver.wheel.last {
                self.driver.wheel.add_at(rank.wrapping_sub(self.first), next.time);
                break;
            }
            self.open_ties += u64::from(next.open);
            self.execute(rank, state, &next)?;
        }
        Ok(())
    }
}
