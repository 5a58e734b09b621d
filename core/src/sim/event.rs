//! What a rank does next.

use super::clocks::Clock;
use super::engine::Engine;
use super::hooks::{Noise, Observer};
use super::network::Network;
use super::parameters::Receive;
use super::queues::queue::Entry;
use super::rank::Class;
use super::record::NONE;
use super::rules::Units;
use super::storage::Storage;

/// The next event of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// When, and the stamp of what happens.
    pub(super) entry: Entry,
    pub(super) class: Class,
    /// Where its record waits.
    pub(super) from: WaitsIn,
    /// Its record.
    pub(super) at: u32,
}

/// Where a record waits.
#[derive(Clone, Copy, Debug)]
pub(super) enum WaitsIn {
    /// In the list of its class, after this record.
    List { before: u32 },
    /// In the heap of what has to wait for its time.
    Later,
    /// In a group, the first of those that wait for this clock.
    Group { clock: Clock },
}

/// The order in which lists are looked at.
const CLASSES: [Class; 5] =
    [Class::Sends, Class::Receives, Class::Calcs, Class::Arrived, Class::Taken];

impl<N: Noise, O: Observer, W: Network, S: Storage> Engine<'_, '_, N, O, W, S> {
    /// The next event of `rank`, not before now.
    #[inline]
    pub(super) fn candidate(&mut self, rank: u32) -> Option<Candidate> {
        if self.single { self.first_listed(rank) } else { self.first_pending(rank) }
    }

    #[inline]
    fn first_listed(&self, rank: u32) -> Option<Candidate> {
        let mut best: Option<Candidate> = None;
        for (class, last) in CLASSES.into_iter().zip(self.rank(rank).lists) {
            if last == NONE {
                continue;
            }
            let found = self.first_of(rank, class, last);
            if best.is_none_or(|best| found.entry.before(&best.entry)) {
                best = Some(found);
            }
        }
        best
    }

    /// All of a list have the same time, so that the first, which is the
    /// oldest, comes first.
    #[inline]
    fn first_of(&self, rank: u32, class: Class, last: u32) -> Candidate {
        let at = self.records.at(last).link;
        let record = self.records.at(at);
        let state = self.rank(rank);
        let time = match class {
            Class::Sends => state.cpu.max(state.out),
            Class::Receives => record.amount,
            Class::Calcs | Class::Taken => state.cpu,
            // A message cannot be handled before it arrives.
            Class::Arrived => state.cpu.max(state.into).max(self.now),
        };
        let from = WaitsIn::List { before: last };
        Candidate { entry: record.entry(time, rank), class, from, at }
    }

    /// When the receiver of a message on its way is free, by the processor and
    /// interface that its send names.
    pub(super) fn receiver_free(&self, op: u32) -> u64 {
        let send = self.records.at(op);
        self.free_to_receive(send.peer, Class::Arrived, self.records.units_of(op))
    }

    /// When the processor or interface that a message of `class` waits for is free.
    pub(super) fn free_to_receive(&self, rank: u32, class: Class, units: Units) -> u64 {
        let Units { cpu, nic } = units;
        match (class, self.settings.receive) {
            (Class::Taken, _) => self.clock_of(rank, Clock::Cpu(cpu)),
            (_, Receive::Overlap) => self.clock_of(rank, Clock::Into(nic)),
            _ => self.clock_of(rank, Clock::Cpu(cpu)).max(self.clock_of(rank, Clock::Into(nic))),
        }
    }
}
