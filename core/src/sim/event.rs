//! What a rank does next.

use super::engine::Engine;
use super::hooks::{Noise, Observer};
use super::parameters::Receive;
use super::rank::Class;
use super::record::{Kind, NONE, Phase, Record};

/// The next event of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) time: u64,
    /// The stamp of what happens.
    pub(super) stamp: (u64, u32),
    pub(super) class: Class,
    /// The record before it in its list.
    pub(super) before: u32,
    /// Its record.
    pub(super) at: u32,
}

impl Candidate {
    const fn comes_before(&self, other: &Self) -> bool {
        if self.time != other.time {
            return self.time < other.time;
        }
        if self.stamp.0 != other.stamp.0 {
            return self.stamp.0 < other.stamp.0;
        }
        self.stamp.1 < other.stamp.1
    }
}

/// The order in which lists are looked at.
const CLASSES: [Class; 5] =
    [Class::Sends, Class::Receives, Class::Calcs, Class::Arrived, Class::Taken];

impl<N: Noise, O: Observer> Engine<'_, '_, N, O> {
    /// The next event of `rank`, not before `now`.
    #[inline]
    pub(super) fn candidate(&self, rank: u32, now: u64) -> Option<Candidate> {
        let mut best: Option<Candidate> = None;
        for class in CLASSES {
            let last = self.rank(rank).list(class);
            if last == NONE {
                continue;
            }
            let found = if self.single {
                self.first_of(rank, class, last)
            } else {
                self.least_of(rank, class, (last, now))
            };
            if let Some(found) = found
                && best.is_none_or(|best| found.comes_before(&best))
            {
                best = Some(found);
            }
        }
        best
    }

    /// With one processor and one interface all of a list have the same
    /// time, so that the first, which is the oldest, comes first.
    #[inline]
    fn first_of(&self, rank: u32, class: Class, last: u32) -> Option<Candidate> {
        let at = self.records.at(last).link;
        let record = self.records.at(at);
        let state = self.rank(rank);
        let time = match class {
            Class::Sends => state.cpu.max(state.out),
            Class::Receives => record.amount,
            Class::Calcs | Class::Taken => state.cpu,
            Class::Arrived if self.settings.receive == Receive::Overlap => state.into,
            Class::Arrived => state.cpu.max(state.into),
        };
        // A message cannot be handled before it arrives.
        let time = if matches!(class, Class::Arrived) { time.max(self.now) } else { time };
        Some(Candidate { time, stamp: record.stamp(), class, before: last, at })
    }

    /// With several, every member of the list is looked at.
    fn least_of(&self, rank: u32, class: Class, (last, now): (u32, u64)) -> Option<Candidate> {
        let mut best: Option<Candidate> = None;
        for (before, at) in self.records.iter(last) {
            let record = self.records.at(at);
            let time = self.free_at(rank, class, at, record).max(now);
            let found = Candidate { time, stamp: record.stamp(), class, before, at };
            if best.is_none_or(|best| found.comes_before(&best)) {
                best = Some(found);
            }
        }
        best
    }

    /// When what a record needs is free, on any number of resources.
    fn free_at(&self, rank: u32, class: Class, at: u32, record: &Record) -> u64 {
        let own = |record: &Record| (record.cpu(), record.nic());
        match class {
            Class::Receives => record.amount,
            Class::Calcs => self.cpu(rank, record.cpu()).max(self.time_of(at)),
            Class::Sends => {
                let (cpu, nic) = match (record.kind(), record.phase()) {
                    (Kind::Send, Phase::Ready) => own(self.records.at(record.tag)),
                    _ => own(record),
                };
                self.cpu(rank, cpu).max(self.out(rank, nic)).max(self.time_of(at))
            }
            Class::Arrived | Class::Taken => match self.tries.get(at as usize) {
                Some(next) => *next,
                None => self.free_to_receive(rank, class, record),
            },
        }
    }

    /// When the processor or interface of `place` that a message of `class`
    /// waits for is free.
    pub(super) fn free_to_receive(&self, rank: u32, class: Class, place: &Record) -> u64 {
        let (cpu, nic) = (place.cpu(), place.nic());
        match (class, self.settings.receive) {
            (Class::Taken, _) => self.cpu(rank, cpu),
            (_, Receive::Overlap) => self.arrivals(rank, nic),
            _ => self.cpu(rank, cpu).max(self.arrivals(rank, nic)),
        }
    }
}
