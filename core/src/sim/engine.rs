//! Event loop: executes one event after the other, in the order of (time, stamp).

use core::fmt;
use core::mem::{replace, take};

use super::charge::Charges;
use super::hooks::{NoNoise, Noise, Observer, Silent};
use super::memory::Requirements;
use super::network::{Flat, Network, NetworkStopped};
use super::order::{Due, Order};
use super::parameters::{Parameters, Settings};
use super::price::Prices;
use super::queues::queue::{Entry, Queue};
use super::ranks::Ranks;
use super::record::NONE;
use super::release::Touched;
use super::schedule::Schedule;
use super::storage::{Storage, Stored};
use crate::units::{Overflow, Picos};
use crate::worded::errors;

errors! {
    /// Reason why a run stopped.
    pub enum SimError {
        /// A time exceeds 2⁶⁴ ps, on this rank or for a message that it sent.
        Overflow {
            /// Rank of the event; `u32::MAX` for a time in the network.
            rank: u32,
        } => "{}", TooLate(*rank);
        /// More than 2³² operations and messages were created at one instant.
        TooManyAtOnce {
            /// The instant.
            time: Picos,
        } => "more than 2^32 operations become ready at {time}";
        /// More messages are under way than the network has memory for; run again with more.
        NetworkFull {
            /// Capacity in messages.
            messages: usize,
        } => "more than {messages} messages are under way; lend the network more memory";
        /// More operations of a [streamed](super::streamed) schedule are under way than there are
        /// records.
        RecordsFull {
            /// Capacity in records.
            records: usize,
        } => "more than {records} operations are under way at once, for which there is no memory";
        /// An operation of a streamed schedule has changed in its file.
        Unreadable {
            /// Rank of the operation.
            rank: u32,
            /// Index of the operation on its rank.
            op: u32,
        } => "operation {op} of rank {rank} is not what it was before the run: another program \
              wrote to the file";
        /// A record or rank that does not exist was written, so the results are wrong.
        Defect => "the simulator wrote beyond its memory; this is a defect, please report it";
    }
}

/// Formats an overflow on a rank or in the network.
struct TooLate(u32);

impl fmt::Display for TooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            NONE => f.write_str(
                "in the network a time passes 2^64 ps (213 days); make messages or parameters \
                 smaller, or links wider",
            ),
            rank => write!(
                f,
                "on rank {rank} a time passes 2^64 ps (213 days); make calculations, messages or \
                 parameters smaller"
            ),
        }
    }
}

impl From<Overflow> for SimError {
    /// The event loop fills in the rank.
    fn from(_: Overflow) -> Self {
        Self::Overflow { rank: NONE }
    }
}

impl From<NetworkStopped> for SimError {
    fn from(stopped: NetworkStopped) -> Self {
        match stopped {
            NetworkStopped::Overflow => Self::Overflow { rank: NONE },
            NetworkStopped::Full { messages } => Self::NetworkFull { messages },
        }
    }
}

/// Result of a complete run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Finished {
    /// Finishing time of the last rank.
    pub makespan: Picos,
    /// Rank that finished last; the lowest of several.
    pub last_rank: u32,
    /// Operations released plus messages created. CTS and data messages count twice: when they
    /// become ready to leave, and when they are sent.
    pub events: u64,
}

impl Finished {
    /// Adds the finishing time of the next rank.
    pub(super) fn add(&mut self, rank: u32, finish: Picos) {
        if finish > self.makespan {
            (self.makespan, self.last_rank) = (finish, rank);
        }
    }
}

/// Simulation of one schedule in global order.
#[derive(Debug)]
pub struct Engine<'m, 'p, N = NoNoise, O = Silent, W = Flat, S = Stored<'m>> {
    pub(super) ranks: Ranks<'m>,
    pub(super) storage: S,
    pub(super) firsts: &'m [u32],
    pub(super) order: Order<'m, W>,
    pub(super) charges: Charges<'p, N, O>,
    pub(super) settings: Settings,
    events: u64,
    /// The ranks that the event touches: its own, and at most one other.
    pub(super) touched: [Touched; 2],
    started: bool,
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
        let Schedule { mut memory, waiting, storage, firsts, requirements, .. } = schedule;
        let Requirements { cpus, nics, .. } = requirements;
        let queue = Queue::new(take(&mut memory.queue), &mut [], take(&mut memory.places));
        Self {
            ranks: Ranks::new(memory, waiting, [cpus, nics], settings.receive),
            storage,
            firsts,
            order: Order::new(queue, network),
            charges: Charges { prices: Prices::new(parameters), noise, observer },
            settings,
            events: 0,
            touched: [Touched::default(); 2],
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
    fn start(&mut self) -> Result<(), SimError> {
        if replace(&mut self.started, true) {
            return Ok(());
        }
        for rank in 0..self.rank_count() {
            if !self.ranks.single {
                *self.ranks.states.at_mut(rank).waited_for() = 0;
            }
            let Self { storage, ranks, .. } = self;
            let ready = storage.roots(&mut ranks.records, self.firsts, rank);
            storage.check()?;
            self.release(Touched { rank, ready })?;
        }
        Ok(())
    }

    /// Executes the next event; `false` at the end of the run.
    #[inline]
    fn step(&mut self) -> Result<bool, SimError> {
        let Some(due) = self.order.next(&mut self.ranks.records)? else { return Ok(false) };
        self.ranks.now = self.order.now;
        match due {
            Due::Event(Entry { index: rank, .. }) => match self.ranks.candidate(rank) {
                Some(next) => {
                    Touched::note(&mut self.touched, rank);
                    self.execute(rank, next).map_err(|error| error.on(rank))?;
                    self.release_touched()?;
                }
                None => self.order.queue.drop(rank),
            },
            Due::Arrival(Entry { index: message, .. }) => {
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

    /// Releases the ready operations of the touched ranks, in ascending order of ranks.
    #[inline]
    fn release_touched(&mut self) -> Result<(), SimError> {
        self.storage.check()?;
        let [own, other] = take(&mut self.touched);
        let (first, second) = if other.rank < own.rank { (other, own) } else { (own, other) };
        for on in [first, second] {
            if on.rank != NONE {
                self.release(on)?;
            }
        }
        Ok(())
    }

    /// Updates a rank's entry in the queue.
    #[inline]
    pub(super) fn refresh(&mut self, rank: u32) {
        match self.ranks.candidate(rank) {
            Some(next) => self.order.queue.set(next.entry),
            None => self.order.queue.drop(rank),
        }
    }

    fn finished(&self) -> Result<Finished, SimError> {
        if self.ranks.records.lost() || self.ranks.states.lost() {
            return Err(SimError::Defect);
        }
        let mut finished = Finished { events: self.events, ..Finished::default() };
        for rank in 0..self.rank_count() {
            finished.add(rank, self.finish(rank));
        }
        Ok(finished)
    }

    /// Number of ranks.
    #[allow(clippy::cast_possible_truncation, reason = "ranks were counted in a u32")]
    pub(super) const fn rank_count(&self) -> u32 {
        self.firsts.len().saturating_sub(1) as u32
    }

    /// Finishing time of `rank`: when its processors are free and its last message is complete.
    #[must_use]
    pub fn finish(&self, rank: u32) -> Picos {
        self.ranks.finish(rank)
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

impl SimError {
    /// The error with `rank` as its cause.
    pub(super) const fn on(self, rank: u32) -> Self {
        match self {
            Self::Overflow { .. } => Self::Overflow { rank },
            other => other,
        }
    }
}
