//! Selection of a rank's next event.

use crate::sim::in_order::pending::Attempt;
use crate::sim::in_order::ranks::Ranks;
use crate::sim::parameters::Receive;
use crate::sim::queues::chain::Chain;
use crate::sim::queues::queue::Entry;
use crate::sim::rank::{Class, Clock};
use crate::sim::record::NONE;

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

impl Ranks<'_> {
    /// The next event of `rank`, at or after the current time.
    #[inline]
    pub(super) fn candidate(&mut self, rank: u32) -> Option<Candidate> {
        if !self.single {
            return self.first_pending(rank);
        }
        if self.records.are_stamped() {
            return self.first_listed(rank, |one, other| one.entry.before(&other.entry));
        }
        self.first_apart(rank)
    }

    #[inline]
    fn first_listed(
        &self,
        rank: u32,
        before: impl Fn(&Candidate, &Candidate) -> bool,
    ) -> Option<Candidate> {
        let mut best: Option<Candidate> = None;
        for (class, last) in CLASSES.into_iter().zip(self.rank(rank).lists) {
            if last == NONE {
                continue;
            }
            let found = self.first_of(rank, class, last);
            if best.is_none_or(|best| before(&found, &best)) {
                best = Some(found);
            }
        }
        best
    }

    /// As `first_listed`, where ranks run apart.
    fn first_apart(&self, rank: u32) -> Option<Candidate> {
        self.first_listed(rank, |one, other| {
            one.entry.time < other.entry.time
                || one.entry.time == other.entry.time && self.records.is_older(one.at, other.at)
        })
    }

    /// The first of a list. All its members have the same time, so the oldest is first.
    #[inline]
    fn first_of(&self, rank: u32, class: Class, last: u32) -> Candidate {
        let at = self.records.at(last).link;
        let record = self.records.at(at);
        let due = match class {
            Class::Receives => record.amount,
            // A message is not handled before it arrives.
            Class::Arrived => self.now,
            _ => 0,
        };
        let time = self.rank(rank).free.begin(class, Receive::Hold).max(due);
        let from = WaitsIn::List { before: last };
        Candidate { entry: record.entry(time, rank), class, from, at }
    }

    /// Removes the record of an event of `rank` from its container.
    #[inline]
    pub(super) fn leave(&mut self, rank: u32, next: &Candidate) {
        match next.from {
            WaitsIn::List { before } => {
                let last = self.states.at_mut(rank).list_mut(next.class);
                self.records.remove(last, before, next.at);
            }
            _ => self.leave_heap(rank, next),
        }
    }

    /// Queues an operation on `rank`.
    #[inline]
    pub(super) fn enlist(&mut self, rank: u32, class: Class, op: u32) {
        if self.single {
            self.records.push(self.states.at_mut(rank).list_mut(class), op);
        } else {
            self.await_turn(rank, class, op);
        }
    }

    /// Queues a message on its rank.
    #[inline]
    pub(super) fn wait(&mut self, rank: u32, op: u32, next: &Attempt) {
        if self.single {
            let last = self.states.at_mut(rank).list_mut(next.class);
            self.records.insert_by_stamp(last, op);
        } else {
            self.await_attempt(rank, op, next);
        }
    }
}
