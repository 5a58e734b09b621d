//! Event loop: executes one event after the other, in the order of (time, stamp).

use core::mem::{replace, take};

use super::waiting::listed;
use crate::sim::hooks::{NoNoise, Noise, Observer, Silent};
use crate::sim::in_order::order::{Due, Order};
use crate::sim::in_order::ranks::Ranks;
use crate::sim::in_order::release::Touched;
use crate::sim::memory::Requirements;
use crate::sim::network::{Flat, Network};
use crate::sim::origin::Origin;
use crate::sim::outcome::{Finished, SimError};
use crate::sim::parameters::{Parameters, Settings};
use crate::sim::queues::queue::{Entry, Queue};
use crate::sim::rank::charge::Charges;
use crate::sim::rank::price::Prices;
use crate::sim::record::{Kind, NONE};
use crate::sim::schedule::Schedule;
use crate::sim::storage::{Storage, Stored};
use crate::sim::unfinished::{Left, Unfinished};
use crate::units::Picos;

/// Simulation of one schedule in global order.
#[derive(Debug)]
pub struct Engine<'m, 'p, N = NoNoise, O = Silent, W = Flat, S = Stored<'m>> {
    pub(in crate::sim) ranks: Ranks<'m>,
    pub(super) storage: S,
    pub(super) firsts: &'m [u32],
    pub(super) order: Order<'m, W>,
    pub(super) charges: Charges<'p, N, O>,
    pub(super) settings: Settings,
    events: u64,
    /// The ranks that the event touches: its own, and at most one other.
    pub(super) touched: [Touched; 2],
    /// Record that may be that of the next event.
    pub(super) soon: u32,
    pub(super) started: bool,
}

impl<'m, 'p> Engine<'m, 'p> {
    /// Simulation without noise or observer.
    #[must_use]
    pub fn new(schedule: Schedule<'m>, parameters: Parameters<'p>, settings: Settings) -> Self {
        Engine::with(schedule, parameters, settings, NoNoise, Silent)
    }
}

impl<'m, 'p, N: Noise, O: Observer, S: Storage> Engine<'m, 'p, N, O, Flat, S> {
    /// Simulation with noise and an observer.
    #[must_use]
    pub fn with(
        schedule: Schedule<'m, S>,
        parameters: Parameters<'p>,
        settings: Settings,
        noise: N,
        observer: O,
    ) -> Self {
        Engine::on_network(schedule, parameters, settings, noise, observer, Flat::default())
    }
}

impl<'m, 'p, N: Noise, O: Observer, W: Network, S: Storage> Engine<'m, 'p, N, O, W, S> {
    /// Simulation with noise, an observer and a network between the ranks.
    #[must_use]
    pub fn on_network(
        schedule: Schedule<'m, S>,
        parameters: Parameters<'p>,
        settings: Settings,
        noise: N,
        observer: O,
        network: W,
    ) -> Self {
        let Schedule { mut memory, waiting, storage, firsts, first_rank, requirements, .. } =
            schedule;
        let Requirements { cpus, nics, .. } = requirements;
        let queue = Queue::new(take(&mut memory.queue), &mut [], take(&mut memory.places));
        Self {
            ranks: Ranks::new(memory, first_rank, waiting, [cpus, nics], settings.receive),
            storage,
            firsts,
            order: Order::new(queue, network),
            charges: Charges { prices: Prices::new(parameters), noise, observer },
            settings,
            events: 0,
            touched: [Touched::default(); 2],
            soon: NONE,
            started: false,
        }
    }

    /// Runs until no event is left. [`Engine::unfinished`] reports operations that did not
    /// complete.
    ///
    /// # Errors
    ///
    /// [`SimError`]; the engine cannot be used after it.
    pub fn run(&mut self) -> Result<Finished, SimError> {
        self.start()?;
        while self.step()? {}
        self.finished()
    }

    /// Runs for at most `turns` turns of the loop, so that the caller can show progress or stop;
    /// `None` if events are left. A turn executes an operation, or lets a message arrive or be
    /// handled.
    ///
    /// # Errors
    ///
    /// As [`Engine::run`].
    pub fn run_some(&mut self, turns: u64) -> Result<Option<Finished>, SimError> {
        self.start()?;
        for _ in 0..turns {
            if !self.step()? {
                return self.finished().map(Some);
            }
        }
        Ok(None)
    }

    /// Operations released and messages created so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Releases the operations without dependencies, rank by rank. Does nothing when called again.
    pub(super) fn start(&mut self) -> Result<(), SimError> {
        if replace(&mut self.started, true) {
            return Ok(());
        }
        for rank in self.ranks.states.ranks() {
            if !self.ranks.single {
                *self.ranks.states.at_mut(rank).waited_for() = 0;
            }
            let Self { storage, ranks, .. } = self;
            ranks.records.origin = Origin::of_root(rank);
            let ready = storage.roots(&mut ranks.records, self.firsts, rank);
            storage.check()?;
            self.release(Touched { rank, ready })?;
            self.refresh(rank);
        }
        self.order.started();
        Ok(())
    }

    /// Executes the next event; `false` at the end of the run.
    #[inline]
    fn step(&mut self) -> Result<bool, SimError> {
        let Some(due) = self.order.next(&mut self.ranks.records)? else { return Ok(false) };
        self.ranks.now = self.order.now;
        match due {
            Due::Event(Entry { index, .. }) => {
                let rank = self.ranks.states.rank(index);
                match self.ranks.candidate(rank) {
                    Some(next) => {
                        self.prefetch_events();
                        Touched::note(&mut self.touched, rank);
                        self.execute(rank, next).map_err(|error| error.on(rank))?;
                        self.release_touched()?;
                    }
                    None => self.order.queue.drop(index),
                }
            }
            Due::Arrival(Entry { index: message, .. }) => {
                self.prefetch_arrivals(message);
                let rank = self.arrive(message);
                self.refresh(rank);
            }
        }
        Ok(true)
    }

    /// Draws the second part of a stamp.
    #[inline]
    pub(super) fn draw(&mut self) -> Result<u32, SimError> {
        self.events += 1;
        self.order.draw(1)
    }

    /// Releases the ready operations of the touched ranks, in ascending order of ranks, and updates
    /// their entries in the queue.
    #[inline]
    fn release_touched(&mut self) -> Result<(), SimError> {
        self.storage.check()?;
        let [own, other] = take(&mut self.touched);
        let (first, second) = if other.rank < own.rank { (other, own) } else { (own, other) };
        for on in [first, second] {
            if on.rank != NONE {
                self.release(on)?;
                self.refresh(on.rank);
            }
        }
        Ok(())
    }

    /// Updates a rank's entry in the queue.
    #[inline]
    pub(super) fn refresh(&mut self, rank: u32) {
        let index = self.ranks.states.place(rank);
        match self.ranks.candidate(rank) {
            Some(next) => self.order.queue.set(Entry { index, ..next.entry }),
            None => self.order.queue.drop(index),
        }
    }

    pub(super) fn finished(&self) -> Result<Finished, SimError> {
        if self.ranks.records.lost() || self.ranks.states.lost() {
            return Err(SimError::Defect);
        }
        let mut finished = Finished { events: self.events, ..Finished::default() };
        for rank in self.ranks.states.ranks() {
            finished.add(rank, self.finish(rank));
        }
        Ok(finished)
    }

    /// Finishing time of `rank`: when its processors are free and its last message is complete.
    #[must_use]
    pub fn finish(&self, rank: u32) -> Picos {
        self.ranks.finish(rank)
    }

    /// Calls `tell` with everything that did not complete, by rank: unmatched messages, unmatched
    /// receives, then operations that never became ready. After a successful run there are none.
    pub fn unfinished(&mut self, mut tell: impl FnMut(Unfinished)) {
        let Ranks { records, states, waiting, .. } = &mut self.ranks;
        waiting.list(records, states);
        let first_rank = self.ranks.states.ranks().start;
        for rank in self.ranks.states.ranks() {
            let Self { storage, ranks: Ranks { records, states, waiting, .. }, .. } = &*self;
            let number = |op| storage.number(records, op);
            let mut left = Left {
                ops: records,
                firsts: self.firsts,
                first_rank,
                rank,
                number,
                tell: &mut tell,
            };
            let state = states.at(rank);
            left.unreceived(listed(records, state, Kind::Send));
            waiting.receives(records, state).for_each(|op| left.waiting(op));
            left.never_ready(|number| storage.is_released(records, number));
        }
    }

    /// The observer, with its results.
    pub fn into_observer(self) -> O {
        self.charges.observer
    }

    /// Largest number of records in use at a time; `None` if every operation has a record.
    pub fn most_records(&self) -> Option<u32> {
        self.storage.most_records()
    }

    /// The network, with its statistics.
    pub const fn network(&self) -> &W {
        &self.order.network
    }
}
