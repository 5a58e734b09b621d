//! Driver in windows of length o + L, which runs one rank after the other in each.

use core::cmp::Ordering;

use super::driver::{Driver, Outgoing, Stamps};
use super::error::ImplicitError;
use super::mail::{Mail, Message, Outbox, Reader, Received};
use super::memory::Memory;
use super::pool::{NONE, Node};
use super::program::Program;
use super::rank::Rank;
use super::runner::{Next, Simulation, created, kind};
use super::step::{begin, next_work};
use crate::sim::hooks::Noise;
use crate::sim::mail::{self, Block, Chunks};
use crate::sim::parameters::Parameters;
use crate::sim::queues::chain::{self, Chain};
use crate::sim::queues::wheel::{self, Wheel};
use crate::sim::rank::Class;
use crate::sim::rank::price::sum;

/// Range of the ranks of a [`Simulation::part`]: 2^`shift` ranks from `index` · 2^`shift` on.
///
/// Parts of other processes are in `block`s of equal size. The mail of a process has a chain for each
/// part of its own, then one for each process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RankRange {
    /// Index of the part.
    pub index: u32,
    /// Binary logarithm of the ranks of a part, at most 32.
    pub shift: u32,
    /// Parts of this process.
    pub block: Block,
}

impl RankRange {
    /// All ranks.
    pub const WHOLE: Self = Self { index: 0, shift: 32, block: Block::ALL };

    /// Chain of the mail for `rank`.
    #[allow(clippy::cast_possible_truncation, reason = "at most the rank")]
    pub(in crate::sim) const fn chain(self, rank: u32) -> u32 {
        self.block.chain((rank as u64 >> self.shift) as u32)
    }

    /// Chain of the mail for this part.
    pub(in crate::sim) const fn own_chain(self) -> u32 {
        self.block.chain(self.index)
    }

    /// First rank and number of ranks, if the program has `ranks` ranks.
    fn extent(self, ranks: u32) -> (u32, usize) {
        let first = u64::from(self.index) << self.shift;
        let first = u32::try_from(first).unwrap_or(u32::MAX).min(ranks);
        let count = u64::from(ranks - first).min(1 << self.shift);
        (first, usize::try_from(count).unwrap_or(usize::MAX))
    }
}

/// Driver in windows: runs each rank by itself until the end of the window.
#[derive(Debug)]
pub struct Windows<'m> {
    pub(super) wheel: Wheel<'m>,
    part: RankRange,
    /// Outbox for messages to other parts.
    outbox: Outbox<'m>,
}

impl Windows<'_> {
    /// Sends a message to a rank of another part.
    #[cfg_attr(target_os = "none", inline(never))]
    fn post(&mut self, to: u32, message: &Node) -> Result<(), ImplicitError> {
        let chain = self.part.chain(to);
        Message::write(|| self.outbox.send(chain), to, message).ok_or(ImplicitError::Mail)
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
        // Creation times are larger than the instant by one picosecond.
        sum(message.arrival, 1)?;
        let (to, item) = (message.transfer.to, message.item(message.source));
        let local = to.wrapping_sub(simulation.first);
        let incoming = if to == message.source {
            &mut own.incoming
        } else if let Some(state) = simulation.ranks.get_mut(local as usize) {
            state.incoming_mut()
        } else {
            let exists = to < simulation.extent.ranks;
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
    /// Simulation of `program` with `noise`, in the lent `memory`.
    ///
    /// # Errors
    ///
    /// [`ImplicitError::NoLookahead`], [`ImplicitError::Rendezvous`] and
    /// [`ImplicitError::Protocols`] if the program cannot be run with these parameters,
    /// [`ImplicitError::Memory`] if a part of the memory is too small,
    /// [`SimError::Overflow`](crate::sim::SimError::Overflow) if a single message exceeds 2⁶⁴ ps.
    pub fn new(
        program: &'p P,
        parameters: Parameters<'p>,
        noise: N,
        memory: Memory<'m, P::State>,
    ) -> Result<Self, ImplicitError> {
        Self::part(program, parameters, noise, memory, RankRange::WHOLE)
    }

    /// Part of a simulation, with the ranks of `part`;
    /// [`Requirements::of_ranks`](super::Requirements::of_ranks) has its memory requirements.
    ///
    /// # Errors
    ///
    /// As [`Simulation::new`].
    // Out of line, so that the copied arguments leave a device's stack before the run.
    #[cfg_attr(target_os = "none", inline(never))]
    pub fn part(
        program: &'p P,
        parameters: Parameters<'p>,
        noise: N,
        memory: Memory<'m, P::State>,
        part: RankRange,
    ) -> Result<Self, ImplicitError> {
        let (first, count) = part.extent(program.extent().ranks);
        let Memory { ranks, words, nodes } = memory;
        let ranks = ranks.get_mut(..count).ok_or(ImplicitError::Memory)?;
        let words = words.get_mut(..wheel::words(count)).ok_or(ImplicitError::Memory)?;
        let nowhere = Outbox::new(mail::Mail::new(&[], &[], &[], 1), 0, Chunks::default());
        let mut simulation = Self::driven(program, parameters, noise, ranks, nodes, |delay| {
            Windows { wheel: Wheel::new(words, count, delay), part, outbox: nowhere }
        })?;
        simulation.first = first;
        Ok(simulation)
    }
}

impl<'m, P: Program, N: Noise> Simulation<'_, '_, P, N, Windows<'m>> {
    /// A window up to the first in which a rank has an event without further messages; `None` if
    /// all ranks wait for messages or are done.
    #[must_use]
    pub const fn next_window(&self) -> Option<u64> {
        if self.begun { self.driver.wheel.next() } else { Some(0) }
    }

    /// Runs a window, which must be later than those before and not later than any named by
    /// [`Simulation::next_window`]; the next one if there is mail. Reads the messages of other
    /// parts from
    /// `inbox` and sends to `outbox`.
    ///
    /// # Errors
    ///
    /// [`ImplicitError`]; the simulation cannot be used after it. If several parts fail in a
    /// window, the error of the first part is that of the run.
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
        self.driver.outbox.release(inbox, self.driver.part.own_chain());
        self.run_due()
    }

    /// Advances to a window.
    fn go_to(&mut self, window: u64) {
        self.driver.wheel.go_to(window);
        while let Some(mut sweep) = self.driver.wheel.nearer() {
            while let Some(local) = self.driver.wheel.take(&mut sweep) {
                self.schedule(local);
            }
        }
    }

    /// Distributes incoming messages to the ranks.
    fn collect(&mut self, inbox: &Mail<'_>) -> Result<(), ImplicitError> {
        let Self { driver, ranks, pool, first, .. } = self;
        let mut result = Ok(());
        let mut reader = Reader::default();
        inbox.collect(driver.part.own_chain(), |_, message| {
            let Some(Received { target, item }) = reader.read(message) else { return };
            let local = target.wrapping_sub(*first);
            debug_assert!((local as usize) < ranks.len(), "it came to the wrong part");
            let Some(state) = ranks.get_mut(local as usize) else { return };
            // The mail has the messages of each sender from last to first.
            if let Err(full) = pool.push_first(state.incoming_mut(), item) {
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

    /// Enters a rank into the wheel for its next event.
    fn schedule(&mut self, local: u32) {
        if let Some(time) = self.due(self.first.wrapping_add(local)) {
            self.driver.wheel.add_at(local, time);
        }
    }

    /// Time at which `rank` is due, or earlier.
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

    /// Runs `rank` until the end of the window.
    #[inline]
    fn turn(&mut self, rank: u32) -> Result<(), ImplicitError> {
        let Some(mut state) = self.state(rank) else { return Ok(()) };
        let result = self.run_rank(rank, &mut state);
        self.put(rank, &state, result)
    }

    #[inline]
    fn run_rank(&mut self, rank: u32, state: &mut Rank<P::State>) -> Result<(), ImplicitError> {
        self.receive(state);
        while let Some(next) = self.next(rank, state) {
            if next.time > self.driver.wheel.last {
                self.driver.wheel.add_at(rank.wrapping_sub(self.first), next.time);
                break;
            }
            self.so_far.open_ties += u64::from(next.open);
            self.execute(rank, state, &next)?;
        }
        Ok(())
    }
}

/// Incoming messages of a rank, and its next event.
impl<P: Program, N: Noise> Simulation<'_, '_, P, N, Windows<'_>> {
    /// The next event of a rank.
    #[cfg_attr(target_os = "none", inline)]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    pub(super) fn next(&self, rank: u32, state: &Rank<P::State>) -> Option<Next> {
        let work = next_work(&self.pool, state);
        if state.inbox == NONE {
            return work;
        }
        let item = self.pool.item(self.pool.next(state.inbox));
        let time = begin(state, Class::Arrived).max(self.arrival(&item));
        let message = Next { time, before: state.inbox, item, open: false };
        let Some(work) = work else { return Some(message) };
        if work.time != time {
            return Some(if work.time < time { work } else { message });
        }
        if work.item.kind == kind::RECEIVES {
            // A receive posted at the instant at which the message is handled matches it at this
            // instant, in either order.
            return Some(if work.item.created <= item.created { work } else { message });
        }
        let (ordering, open) = order(&work.item, rank, &item, item.first);
        Some(if ordering.is_lt() { Next { open, ..work } } else { Next { open, ..message } })
    }

    /// Arrival time of a message; creation times are one more than the instant.
    #[inline]
    pub(super) const fn arrival(&self, message: &Node) -> u64 {
        message.created.wrapping_sub(1).wrapping_add(self.delay.get())
    }

    /// Moves the messages that arrive before the end of the window to the inbox. They were sent in
    /// earlier windows, so all of them are known, and later ones are younger.
    #[inline]
    pub(super) fn receive(&mut self, state: &mut Rank<P::State>) {
        if state.incoming == NONE {
            return;
        }
        let mut chain = self.pool.open(state.incoming);
        state.incoming = NONE;
        let (mut due, mut sorted, mut ties) = (NONE, true, 0u64);
        while chain != NONE {
            let message = self.pool.item(chain);
            if self.arrival(&message) > self.driver.wheel.last {
                chain = self.pool.append(&mut state.incoming, chain);
                continue;
            }
            if due != NONE {
                sorted &= !precedes(&self.pool.item(due), &message, &mut ties);
            }
            chain = self.pool.append(&mut due, chain);
        }
        if due == NONE {
            return;
        }
        let last = due;
        let first = self.pool.open(due);
        let ends = if sorted {
            [first, last]
        } else {
            ties = 0;
            let sorted = chain::sort(&mut self.pool, first, |pool, a, b| {
                precedes(&pool.item(b), &pool.item(a), &mut ties)
            });
            [sorted.first, sorted.last]
        };
        self.pool.splice(&mut state.inbox, ends);
        if ties > 0 && !self.extent.interchangeable {
            self.so_far.open_ties += ties;
        }
    }
}

/// Order of two elements created by events of the ranks `a` and `b`, by creation time, then by that
/// of the creator, then by rank; and true if the rank decided a tie. At the start creation is by
/// rank, so there is no tie.
#[inline]
fn order(one: &Node, a: u32, other: &Node, b: u32) -> (Ordering, bool) {
    let by_time = (one.created, one.parent).cmp(&(other.created, other.parent));
    let open = by_time.is_eq() && a != b && one.parent != 0;
    (by_time.then(a.cmp(&b)), open)
}

/// True if message `b` is handled before `a`; counts open ties.
#[inline]
fn precedes(a: &Node, b: &Node, ties: &mut u64) -> bool {
    let (ordering, open) = order(b, b.first, a, a.first);
    *ties += u64::from(open);
    ordering.is_lt()
}
