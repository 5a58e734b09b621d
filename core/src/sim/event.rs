//! Selection of a rank's next event.

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
    /// Time and stamp of the event.
    pub(super) entry: Entry,
    pub(super) class: Class,
    /// Container of its record.
    pub(super) from: WaitsIn,
    /// Its record.
    pub(super) at: u32,
}

/// Container in which a record waits.
#[derive(Clone, Copy, Debug)]
pub(super) enum WaitsIn {
    /// The list of its class, after the record `before`.
    List { before: u32 },
    /// The heap of records that wait for a time.
    Later,
    /// First group that waits for `clock`; the record is the first of the group.
    Group { clock: Clock },
}

/// Order in which the lists are searched.
const CLASSES: [Class; 5] =
    [Class::Sends, Class::Receives, Class::Calcs, Class::Arrived, Class::Taken];

impl<N: Noise, O: Observer, W: Network, S: Storage> Engine<'_, '_, N, O, W, S> {
    /// The next event of `rank`, at or after the current time.
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

    /// The first of a list. All its members have the same time, so the oldest is first.
    #[inline]
    fn first_of(&self, rank: u32, class: Class, last: u32) -> Candidate {
        let at = self.records.at(last).link;
        let record = self.records.at(at);
        let state = self.rank(rank);
        let time = match class {
            Class::Sends => state.cpu.max(state.out),
            Class::Receives => record.amount,
            Class::Calcs | Class::Taken => state.cpu,
            // A message is not handled before it arrives.
            Class::Arrived => state.cpu.max(state.into).max(self.now),
        };
        let from = WaitsIn::List { before: last };
        Candidate { entry: record.entry(time, rank), class, from, at }
    }

    /// Time at which the processor or interface that a message of `class` waits for is free.
    pub(super) fn free_to_receive(&self, rank: u32, class: Class, units: Units) -> u64 {
        let Units { cpu, nic } = units;
        match (class, self.settings.receive) {
            (Class::Taken, _) => self.clock_of(rank, Clock::Cpu(cpu)),
            (_, Receive::Overlap) => self.clock_of(rank, Clock::Into(nic)),
            _ => self.clock_of(rank, Clock::Cpu(cpu)).max(self.clock_of(rank, Clock::Into(nic))),
        }
    }
}
