//! Driver in global order: one event after the other, by (time, stamp), on a network with shared
//! links.

use super::driver::{Driver, Outgoing, Stamps};
use super::error::ImplicitError;
use super::memory::OrderedMemory;
use super::pool::{NONE, Node};
use super::program::Program;
use super::rank::Rank;
use super::runner::{Next, Simulation, kind};
use super::step::{begin, next_work};
use crate::sim::hooks::Noise;
use crate::sim::in_order::order::{Due, Order};
use crate::sim::network::{Departure, Network};
use crate::sim::parameters::Parameters;
use crate::sim::queues::queue::{Entry, Queue};
use crate::sim::rank::Class;

/// Driver in global order. Stamps are those of the [`Engine`](crate::sim::Engine): the instant, and
/// a number counted within it. The instant is `Node::created` of a node. The number is
/// `Node::parent`; for receives, which have their time there, it is `Node::first`. A node of
/// several
/// operations has the stamp of the first; their stamps are consecutive.
#[derive(Debug)]
pub struct Ordered<'m, W> {
    order: Order<'m, W>,
}

impl<W: Network> Driver for Ordered<'_, W> {
    const SHARED: bool = true;

    #[inline]
    fn stamps(now: u64, _parent: u64) -> Stamps {
        Stamps { created: now, parent: 0 }
    }

    #[inline]
    fn draw(&mut self, stamps: Stamps, count: u32) -> Result<Stamps, ImplicitError> {
        Ok(Stamps { parent: self.order.draw(count)?.into(), ..stamps })
    }

    #[inline]
    fn receives(item: Node, time: u64) -> Node {
        let first = number(item.parent);
        Node { first, last: first.wrapping_add(item.last), parent: time, ..item }
    }

    #[inline]
    fn deliver<P: Program, N: Noise>(
        simulation: &mut Simulation<'_, '_, P, N, Self>,
        _own: &mut Rank<P::State>,
        message: &Outgoing,
    ) -> Result<(), ImplicitError> {
        let target = message.transfer.to;
        if target as usize >= simulation.ranks.len() {
            return Err(ImplicitError::Peer { rank: message.source, peer: target });
        }
        let op = simulation.pool.keep(message.item(target))?;
        let Stamps { created: now, parent: seq } = message.stamps;
        let departure = Departure {
            op,
            source: message.source,
            target,
            now,
            seq: number(seq),
            volume: message.volume,
            delay: simulation.delay.get(),
        };
        Ok(simulation.driver.order.network.launch(&departure, &mut ())?)
    }

    fn begin_all<P: Program, N: Noise>(
        simulation: &mut Simulation<'_, '_, P, N, Self>,
    ) -> Result<(), ImplicitError> {
        for rank in 0..simulation.extent.ranks {
            if simulation.begin(rank)?
                && let Some(state) = simulation.state(rank)
            {
                simulation.refresh(rank, &state);
            }
        }
        Ok(())
    }

    #[inline]
    fn advance<P: Program, N: Noise>(
        simulation: &mut Simulation<'_, '_, P, N, Self>,
    ) -> Result<bool, ImplicitError> {
        let Some(due) = simulation.driver.order.next(&mut ())? else { return Ok(false) };
        let queued = match due {
            Due::Event(queued) => queued,
            Due::Arrival(landing) => {
                simulation.land(landing)?;
                return Ok(true);
            }
        };
        let Some(mut state) = simulation.state(queued.index) else { return Ok(false) };
        let result = simulation.next_in_order(&state).map_or(Ok(()), |next| {
            debug_assert_eq!(entry(queued.index, &next), queued, "the queue knows it");
            simulation.execute_next(queued.index, &mut state, &next)
        });
        simulation.put(queued.index, &state, result)?;
        Ok(true)
    }
}

/// Number of a stamp, in 32 bits.
#[allow(clippy::cast_possible_truncation, reason = "drawn as a u32")]
const fn number(seq: u64) -> u32 {
    seq as u32
}

/// Queue entry of a rank's next event.
#[inline]
const fn entry(rank: u32, next: &Next) -> Entry {
    let Node { first, kind, created, parent, .. } = next.item;
    let seq = if kind == kind::RECEIVES { first } else { number(parent) };
    Entry { time: next.time, created, seq, index: rank }
}

impl<'m, 'p, P: Program, N: Noise, W: Network> Simulation<'m, 'p, P, N, Ordered<'m, W>> {
    /// Simulation of `program` with `noise` on a network with shared links, in the lent `memory`.
    /// All ties are decided as by the engine.
    ///
    /// # Errors
    ///
    /// As [`Simulation::new`].
    pub fn on_network(
        program: &'p P,
        parameters: Parameters<'p>,
        noise: N,
        network: W,
        memory: OrderedMemory<'m, P::State>,
    ) -> Result<Self, ImplicitError> {
        const { assert!(W::SHARED, "receivers are charged for bytes in windows or in order") };
        let count = program.extent().ranks as usize;
        let OrderedMemory { ranks, queue, places, nodes } = memory;
        let ranks = ranks.get_mut(..count).ok_or(ImplicitError::Memory)?;
        let (queue, ring) = queue.split_at_mut_checked(count).ok_or(ImplicitError::Memory)?;
        let ring = ring.get_mut(..count).ok_or(ImplicitError::Memory)?;
        let places = places.get_mut(..count).ok_or(ImplicitError::Memory)?;
        let queue = Queue::new(queue, ring, places);
        Self::driven(program, parameters, noise, ranks, nodes, |_| Ordered {
            order: Order::new(queue, network),
        })
    }
}

impl<P: Program, N: Noise, W: Network> Simulation<'_, '_, P, N, Ordered<'_, W>> {
    /// The network, with its statistics.
    pub const fn network(&self) -> &W {
        &self.driver.order.network
    }

    /// Delivers a message, which waits on its rank from now on.
    #[inline]
    fn land(&mut self, landing: Entry) -> Result<(), ImplicitError> {
        let node = landing.index;
        let rank = self.pool.item(node).first;
        let Some(mut state) = self.state(rank) else { return Ok(()) };
        self.pool.insert(&mut state.inbox, node);
        let result = match self.next_in_order(&state) {
            // No other event is earlier.
            Some(next) if entry(node, &next) == landing => {
                self.execute_next(rank, &mut state, &next)
            }
            Some(next) => {
                self.driver.order.queue.set(entry(rank, &next));
                Ok(())
            }
            None => Ok(()),
        };
        self.put(rank, &state, result)
    }

    #[inline]
    fn execute_next(
        &mut self,
        rank: u32,
        state: &mut Rank<P::State>,
        next: &Next,
    ) -> Result<(), ImplicitError> {
        self.execute(rank, state, next)?;
        self.refresh(rank, state);
        Ok(())
    }

    /// Updates the queue entry of a rank.
    #[inline]
    fn refresh(&mut self, rank: u32, state: &Rank<P::State>) {
        match self.next_in_order(state) {
            Some(next) => self.driver.order.queue.set(entry(rank, &next)),
            None => self.driver.order.queue.drop(rank),
        }
    }

    /// The next event of a rank, at or after the current time.
    #[inline]
    fn next_in_order(&self, state: &Rank<P::State>) -> Option<Next> {
        let work = next_work(&self.pool, state);
        if state.inbox == NONE {
            return work;
        }
        let item = self.pool.item(self.pool.first(state.inbox));
        let time = begin(state, Class::Arrived).max(self.driver.order.now);
        let message = Next { time, before: state.inbox, item, open: false };
        work.filter(|work| entry(0, work).before(&entry(0, &message))).or(Some(message))
    }
}
