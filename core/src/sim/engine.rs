//! The loop: one event after the other, in the order of (time, stamp).

use core::fmt;

use super::charge::Charges;
use super::clocks::{Clock, ClockQueue};
use super::hooks::{NoNoise, Noise, Observer, Silent};
use super::lent::Checked;
use super::memory::{Memory, Requirements};
use super::network::{Flat, Network, NetworkStopped};
use super::parameters::{Parameters, Receive, Settings};
use super::price::Prices;
use super::queues::chain::Chain;
use super::queues::heap::Heaps;
use super::queues::queue::{Entry, Queue};
use super::rank::Rank;
use super::record::NONE;
use super::records::Records;
use super::release::ReadyOn;
use super::schedule::Schedule;
use super::storage::{Storage, Stored};
use crate::units::{Overflow, Picos};

/// Why a run stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SimError {
    /// A time past 2⁶⁴ ps, on this rank or on its way from it.
    Overflow {
        /// The rank.
        rank: u32,
    },
    /// More than 2³² operations and messages were created at one instant.
    TooManyAtOnce {
        /// The instant.
        time: Picos,
    },
    /// More messages are under way than the network has memory for; run again
    /// with more.
    NetworkFull {
        /// The memory is for so many.
        messages: usize,
    },
    /// More operations of a [streamed](super::streamed) schedule are under way than there
    /// is memory for.
    RecordsFull {
        /// The memory is for so many.
        records: usize,
    },
    /// An operation of a streamed schedule is not as it was.
    Unreadable {
        /// The rank.
        rank: u32,
        /// The operation, counted on its rank.
        op: u32,
    },
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow { rank: NONE } => write!(
                f,
                "in the network a time passes 2^64 ps (213 days); make messages or parameters \
                 smaller, or links wider"
            ),
            Self::Overflow { rank } => write!(
                f,
                "on rank {rank} a time passes 2^64 ps (213 days); make calculations, messages or \
                 parameters smaller"
            ),
            Self::TooManyAtOnce { time } => {
                write!(f, "more than 2^32 operations become ready at {time}")
            }
            Self::NetworkFull { messages } => {
                write!(
                    f,
                    "more than {messages} messages are under way; lend the network more memory"
                )
            }
            Self::RecordsFull { records } => write!(
                f,
                "more than {records} operations are under way at once, for which there is no memory"
            ),
            Self::Unreadable { rank, op } => write!(
                f,
                "operation {op} of rank {rank} is not what it was before the run: another program \
                 wrote to the file"
            ),
        }
    }
}

impl core::error::Error for SimError {}

impl From<Overflow> for SimError {
    /// The rank is filled in by the loop, which knows it.
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

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Finished {
    /// When the last rank was done.
    pub makespan: Picos,
    /// The rank that was last, the lowest of several.
    pub last_rank: u32,
    /// Operations released and messages created; the second and third of a
    /// handshake count twice, as they want to leave and as they are on their
    /// way.
    pub events: u64,
}

impl Finished {
    /// After so many events, of ranks and when each was done.
    pub(super) fn of(events: u64, ranks: impl Iterator<Item = (u32, Picos)>) -> Self {
        let mut finished = Self { events, ..Self::default() };
        for (rank, finish) in ranks {
            if finish > finished.makespan {
                (finished.makespan, finished.last_rank) = (finish, rank);
            }
        }
        finished
    }
}

/// A simulation of one schedule.
#[derive(Debug)]
pub struct Engine<'m, 'p, N = NoNoise, O = Silent, W = Flat, S = Stored<'m>> {
    pub(super) records: Records<'m>,
    pub(super) storage: S,
    pub(super) ranks: Checked<'m, Rank>,
    pub(super) firsts: &'m [u32],
    /// Of each rank its processors but the first, then the sending and the
    /// receiving sides of its interfaces but the first.
    pub(super) clocks: &'m mut [u64],
    /// Of each rank the same, with the first ones, where they wait in heaps.
    pub(super) clock_queues: &'m mut [ClockQueue],
    /// Of each rank a heap of those clocks that something waits for.
    pub(super) clock_heap: &'m mut [Entry],
    /// Of each message, when it next tries to be received, or the receive that it claims
    /// and the heap of those that follow it.
    pub(super) next_attempts: &'m mut [u64],
    pub(super) done: &'m mut [u64],
    queue: Queue<'m>,
    pub(super) cpus: usize,
    pub(super) nics: usize,
    /// Whether all that waits in a class has the same time, so that lists do;
    /// everything else waits in heaps.
    pub(super) single: bool,
    pub(super) heaps: Heaps<&'m mut [u64]>,
    pub(super) charges: Charges<'p, N, O>,
    pub(super) settings: Settings,
    pub(super) network: W,
    /// Messages on their way, by protocol, and how long they travel.
    pub(super) flights: [(u32, u64); Parameters::MOST],
    pub(super) now: u64,
    /// The second part of the next stamp, counted within an instant.
    seq: u32,
    events: u64,
    pub(super) released: [ReadyOn; 2],
    /// Ranks whose next event may have changed.
    touched: [u32; 2],
    started: bool,
}

impl<'m, 'p> Engine<'m, 'p> {
    /// A simulation without noise or observer.
    #[must_use]
    pub fn new(schedule: Schedule<'m>, parameters: Parameters<'p>, settings: Settings) -> Self {
        Engine::with(schedule, parameters, settings, NoNoise, Silent)
    }
}

impl<'m, 'p, N: Noise, O: Observer, S: Storage> Engine<'m, 'p, N, O, Flat, S> {
    /// A simulation with noise and an observer.
    #[must_use]
    pub fn with(
        schedule: Schedule<'m, S>,
        parameters: Parameters<'p>,
        settings: Settings,
        noise: N,
        observer: O,
    ) -> Self {
        Engine::on_network(schedule, parameters, settings, noise, observer, Flat)
    }
}

impl<'m, 'p, N: Noise, O: Observer, W: Network, S: Storage> Engine<'m, 'p, N, O, W, S> {
    /// A simulation with noise, an observer and a network between the ranks.
    #[must_use]
    pub fn on_network(
        schedule: Schedule<'m, S>,
        parameters: Parameters<'p>,
        settings: Settings,
        noise: N,
        observer: O,
        network: W,
    ) -> Self {
        let Schedule { memory, storage, firsts, requirements, .. } = schedule;
        let Memory { records, times, units, ranks, .. } = memory;
        let Memory {
            clocks,
            clock_queues,
            clock_heap,
            next_attempts,
            links,
            done,
            queue,
            places,
            ..
        } = memory;
        let Requirements { cpus, nics, .. } = requirements;
        let mut flights = [(NONE, 0); Parameters::MOST];
        for (flight, delay) in flights.iter_mut().zip(parameters.delays()) {
            flight.1 = delay;
        }
        Self {
            records: Records::new(records, times, units),
            storage,
            ranks: Checked::new(ranks),
            firsts,
            clocks,
            clock_queues,
            clock_heap,
            next_attempts,
            done,
            queue: Queue::new(queue, &mut [], places),
            cpus,
            nics,
            single: cpus == 1 && nics == 1 && settings.receive == Receive::Hold,
            heaps: Heaps::new(links),
            charges: Charges { prices: Prices::new(parameters), noise, observer },
            settings,
            network,
            flights,
            now: 0,
            seq: 0,
            events: 0,
            released: [ReadyOn::default(); 2],
            touched: [NONE; 2],
            started: false,
        }
    }

    /// Runs to the end, which is when nothing can happen any more; whether
    /// everything has happened, [`Engine::unfinished`] tells.
    ///
    /// # Errors
    ///
    /// [`SimError`]; the engine is of no further use then.
    pub fn run(&mut self) -> Result<Finished, SimError> {
        self.start()?;
        while self.step()? {}
        Ok(self.finished())
    }

    /// Runs for at most so many `turns` of the loop, so that the caller can show
    /// progress or stop; `None` if it is not over then. A turn executes an operation, or
    /// lets a message arrive or be handled.
    ///
    /// # Errors
    ///
    /// As [`Engine::run`].
    pub fn run_some(&mut self, turns: u64) -> Result<Option<Finished>, SimError> {
        self.start()?;
        for _ in 0..turns {
            if !self.step()? {
                return Ok(Some(self.finished()));
            }
        }
        Ok(None)
    }

    /// Operations released and messages created until now.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Releases the operations that wait for nothing, rank by rank; once.
    fn start(&mut self) -> Result<(), SimError> {
        if core::mem::replace(&mut self.started, true) {
            return Ok(());
        }
        for rank in 0..self.rank_count() {
            if !self.single {
                *self.ranks.at_mut(rank).waited_for() = 0;
            }
            self.release_roots(rank)?;
            self.refresh_touched();
        }
        Ok(())
    }

    /// The next event; `false` when there is none.
    #[inline]
    fn step(&mut self) -> Result<bool, SimError> {
        let queued = self.queue.first();
        let flight = if W::SHARED {
            self.network.first(queued.map_or(u64::MAX, |entry| entry.time))?.map(|first| (0, first))
        } else {
            self.next_flight()
        };
        match (queued, flight) {
            (None, None) => return Ok(false),
            (Some(entry), flight) if flight.is_none_or(|(_, first)| entry.before(&first)) => {
                self.advance(entry.time);
                match self.candidate(entry.index) {
                    Some(next) => {
                        self.execute(entry.index, next).map_err(|error| error.on(entry.index))?;
                    }
                    None => self.queue.drop(entry.index),
                }
            }
            (_, Some((protocol, first))) => {
                self.advance(first.time);
                if self.network.postpone(self.receiver_free(first.index))? {
                    return Ok(true);
                }
                self.land(protocol);
                let rank = self.arrive(first.index);
                self.changed(rank);
            }
            (Some(_), None) => {}
        }
        self.refresh_touched();
        Ok(true)
    }

    fn advance(&mut self, time: u64) {
        debug_assert!(time >= self.now, "time goes on");
        if time > self.now {
            self.now = time;
            self.seq = 0;
        }
    }

    /// Draws the second part of a stamp.
    #[inline]
    pub(super) fn draw(&mut self) -> Result<u32, SimError> {
        let seq = self.seq;
        self.seq = seq.checked_add(1).ok_or(SimError::TooManyAtOnce { time: Picos(self.now) })?;
        self.events += 1;
        Ok(seq)
    }

    /// The message that arrives next: its protocol, and its arrival as an
    /// entry that has the record in place of the rank.
    #[inline]
    fn next_flight(&self) -> Option<(usize, Entry)> {
        let mut next: Option<(usize, Entry)> = None;
        for (protocol, &(last, delay)) in self.flights.iter().enumerate() {
            if last == NONE {
                continue;
            }
            let first = self.records.at(last).link;
            let record = self.records.at(first);
            // The sum was checked when the message left.
            let arrival = record.entry(record.created.wrapping_add(delay), first);
            if next.is_none_or(|(_, next)| arrival.before(&next)) {
                next = Some((protocol, arrival));
            }
        }
        next
    }

    /// Takes the first message of a protocol off its way.
    #[inline]
    fn land(&mut self, protocol: usize) {
        if W::SHARED {
            return self.network.land();
        }
        if let Some((last, _)) = self.flights.get_mut(protocol) {
            let (before, first) = (*last, self.records.at(*last).link);
            self.records.remove(last, before, first);
        }
    }

    /// Notes that the next event of a rank may be another now.
    #[inline]
    pub(super) fn changed(&mut self, rank: u32) {
        let [own, other] = &mut self.touched;
        if *own == NONE || *own == rank {
            *own = rank;
        } else {
            debug_assert!(*other == NONE || *other == rank, "an event touches two ranks");
            *other = rank;
        }
    }

    #[inline]
    fn refresh_touched(&mut self) {
        for rank in core::mem::replace(&mut self.touched, [NONE; 2]) {
            if rank != NONE {
                self.refresh(rank);
            }
        }
    }

    /// Sees to it that the queue knows a rank's next event.
    #[inline]
    fn refresh(&mut self, rank: u32) {
        match self.candidate(rank) {
            Some(next) => self.queue.set(next.entry),
            None => self.queue.drop(rank),
        }
    }

    fn finished(&self) -> Finished {
        let ranks = (0..self.rank_count()).map(|rank| (rank, self.finish(rank)));
        Finished::of(self.events, ranks)
    }

    /// Number of ranks.
    #[allow(clippy::cast_possible_truncation, reason = "ranks were counted in a u32")]
    pub(super) const fn rank_count(&self) -> u32 {
        self.firsts.len().saturating_sub(1) as u32
    }

    /// When `rank` was done: its processors, and the messages that it
    /// received.
    #[must_use]
    pub fn finish(&self, rank: u32) -> Picos {
        let processors =
            (0..=u16::MAX).take(self.cpus).map(|cpu| self.clock_of(rank, Clock::Cpu(cpu))).max();
        let done = self.done.get(rank as usize).copied().unwrap_or_default();
        Picos(processors.unwrap_or_default().max(done))
    }

    /// The observer, with what it has seen.
    pub fn into_observer(self) -> O {
        self.charges.observer
    }

    /// The most operations that were under way at a time, where only these have records.
    pub fn most_records(&self) -> Option<u32> {
        self.storage.most_records()
    }

    /// The network, with what it has carried.
    pub const fn network(&self) -> &W {
        &self.network
    }
}

impl SimError {
    /// The same where `rank` is known to have caused it.
    pub(super) const fn on(self, rank: u32) -> Self {
        match self {
            Self::Overflow { .. } => Self::Overflow { rank },
            other => other,
        }
    }
}
