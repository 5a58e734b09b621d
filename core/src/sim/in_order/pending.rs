//! Pending records of a rank whose classes are not lists: with several processors or interfaces, or
//! with overlap, the members of a class have different times.
//!
//! A record with an earliest time in the future waits in the heap `later`, by time and stamp. Any
//! other record waits for a clock (a processor or one side of an interface): of the one or two that
//! it needs, the one that is free later. Records that need the same clocks form a group, a heap by
//! stamp. The groups of a clock are a heap by the stamps of their first members. The clocks for
//! which something waits are a heap for each rank, by the time at which they are free and the stamp
//! of their first record. If a clock is free, but the other clock of its first group is not, the
//! whole group moves to the other clock and joins the group with the same need there. An event
//! therefore costs time logarithmic in the number of pending records.
//!
//! A message needs the processor and the interface of the receive that it will match, or those of
//! its send if no receive is posted. If all receives of a rank and all sends to it name the same
//! ones, they are known in advance. On other ranks a message that waits for a processor claims the
//! receive that it finds, if all messages that this receive takes fit the same receives: it has no
//! wildcard, or no receive of the rank names what its wildcard leaves open. Later messages that find
//! the same receive follow the claiming message, and the first of them makes its attempt when that
//! one has had its turn. Any other message makes an attempt when the clocks of its last attempt are
//! free, because the matching receive may have changed: on a rank on several processors or
//! interfaces whose receives are partly with wildcards, partly without, messages take quadratic time
//! altogether.
//!
//! The link of a group's first member is the heap of the others; the link of a message with a
//! planned attempt is the heap of its followers.

use crate::goal::{ANY, ANY_TAG};
use crate::halves::{halves, whole};
use crate::sim::hooks::MessageKind;
use crate::sim::in_order::event::{Candidate, WaitsIn};
use crate::sim::in_order::rank::Rank;
use crate::sim::in_order::ranks::Ranks;
use crate::sim::parameters::Receive;
use crate::sim::queues::heap::Heaps;
use crate::sim::queues::queue::Entry;
use crate::sim::rank::dependencies::Operations;
use crate::sim::rank::matching::Envelope;
use crate::sim::rank::{Class, Clock, Need, Units};
use crate::sim::record::{Mark, NONE, Record};
use crate::sim::records::Records;

/// Planned attempt of a message to be received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) time: u64,
    pub(super) class: Class,
    /// Posted receive that matches the message.
    pub(super) receive: Option<u32>,
    /// Heap of the messages that follow this one.
    pub(super) followers: u32,
}

impl Attempt {
    pub(super) const fn at(time: u64, class: Class) -> Self {
        Self { time, class, receive: None, followers: NONE }
    }
}

/// Counts of different pairs of processor and interface that messages for a rank may need: [`NONE`]
/// for none yet, one, or several.
const ONE: u32 = 1;
const DIFFERENT: u32 = 2;

/// Bits that are set as long as no receive of a rank names its sender, or its tag.
const SENDERS: u32 = 1;
const TAGS: u32 = 2;

/// Words in `lists` of a rank whose classes are not lists.
impl Rank {
    /// Number of clocks for which something waits.
    pub(super) const fn waited_for(&mut self) -> &mut u32 {
        let [waited_for, ..] = &mut self.lists;
        waited_for
    }

    /// Root of the heap of records that wait for a time.
    const fn later(&mut self) -> &mut u32 {
        let [_, later, ..] = &mut self.lists;
        later
    }

    /// Notes a processor and an interface that messages for this rank may need.
    pub(in crate::sim) fn note_units(&mut self, noted: Units) {
        let [_, _, units, many, ..] = &mut self.lists;
        let noted = noted.wide();
        *many = match *many {
            NONE => ONE,
            _ if *units == noted => *many,
            _ => DIFFERENT,
        };
        *units = noted;
    }

    /// Notes what a receive of this rank names.
    pub(in crate::sim) const fn note_receive(&mut self, peer: u32, tag: u64) {
        let [.., open] = &mut self.lists;
        if peer != ANY {
            *open &= !SENDERS;
        }
        if tag != ANY_TAG {
            *open &= !TAGS;
        }
    }

    /// True if all messages that a receive of this rank takes fit the same receives.
    const fn takes_alike(&self, receive: Envelope) -> bool {
        let [.., open] = self.lists;
        (receive.sender != ANY || open & SENDERS != 0) && (receive.tag != ANY || open & TAGS != 0)
    }

    /// Processor and interface of all receives of this rank and all sends to it; `None` if they
    /// differ.
    const fn unit(&self) -> Option<Units> {
        let [_, _, units, many, ..] = self.lists;
        match many {
            DIFFERENT => None,
            NONE => Some(Units { cpu: 0, nic: 0 }),
            _ => Some(Units::of_wide(units)),
        }
    }
}

impl Heaps<&mut [u64]> {
    fn push_by_stamp(&mut self, records: &Records<'_>, root: &mut u32, at: u32) {
        self.push(root, at, |a, b| records.at(a).stamp() < records.at(b).stamp());
    }

    fn pop_by_stamp(&mut self, records: &Records<'_>, root: &mut u32) {
        self.pop(root, |a, b| records.at(a).stamp() < records.at(b).stamp());
    }

    fn join_by_stamp(&mut self, records: &Records<'_>, a: u32, b: u32) -> u32 {
        self.join(a, b, |a, b| records.at(a).stamp() < records.at(b).stamp())
    }
}

impl Ranks<'_> {
    /// Inserts a record into the heap for its time or its clocks.
    pub(super) fn await_turn(&mut self, rank: u32, class: Class, at: u32) {
        self.records.at_mut(at).set_class(class);
        match self.need(rank, at) {
            Some(need) if self.due(at) <= self.free(rank, need).max(self.now) => {
                self.await_clocks(rank, need, at);
            }
            _ => {
                let Self { records, heaps, states, next_attempts, .. } = self;
                let key = |at| (due(records, at, next_attempts), records.at(at).stamp());
                heaps.push(states.at_mut(rank).later(), at, |a, b| key(a) < key(b));
            }
        }
    }

    /// Plans a message's next attempt, or lets it wait for the clocks of the receive that it
    /// claims. With overlap there is no claim while it waits for the interface, because the
    /// interface leaves the receive to other messages.
    pub(super) fn await_attempt(&mut self, rank: u32, message: u32, next: &Attempt) {
        let &Attempt { time, class, receive, followers } = next;
        self.records.at_mut(message).set_class(class);
        let by_interface = class == Class::Arrived && self.receive == Receive::Overlap;
        let claims = receive
            .is_some_and(|receive| !by_interface && self.claim(rank, message, receive, followers));
        if !claims {
            self.try_at(rank, message, time, NONE);
            if followers != NONE {
                self.promote(rank, followers);
            }
        }
    }

    /// Clocks that a record needs; `None` for a receive, which needs none, and for a message whose
    /// receive is unknown.
    fn need(&self, rank: u32, at: u32) -> Option<Need> {
        let record = self.records.at(at);
        let (class, records) = (record.class(), &self.records);
        let units = match class {
            Class::Receives => return None,
            Class::Sends | Class::Calcs => records.units(at),
            Class::Arrived | Class::Taken | Class::Mailed => match record.message_kind() {
                MessageKind::Data => records.units_of(record.tag),
                MessageKind::Cts => records.units_of(at),
                MessageKind::Whole | MessageKind::Rts if record.is(Mark::Claimed) => {
                    records.units_of(self.claim_of(at)[0])
                }
                MessageKind::Whole | MessageKind::Rts => self.rank(rank).unit()?,
            },
        };
        Some(class.needs(units, self.receive))
    }

    /// Time at which both clocks are free.
    pub(super) fn free(&self, rank: u32, [one, other]: Need) -> u64 {
        self.clock_of(rank, one).max(self.clock_of(rank, other))
    }

    fn due(&self, at: u32) -> u64 {
        due(&self.records, at, self.next_attempts)
    }

    /// Queues a record, as a group of its own, until its clocks are free.
    fn await_clocks(&mut self, rank: u32, need: Need, at: u32) {
        self.records.at_mut(at).link = NONE;
        self.bind(rank, need, at);
    }

    /// Queues a group at the clock that is free later.
    fn bind(&mut self, rank: u32, need: Need, group: u32) {
        let [one, other] = need;
        let first = self.clock_of(rank, one) >= self.clock_of(rank, other);
        let clock = if first { one } else { other };
        let newest = self.clock_queue(rank, clock).newest;
        if newest != NONE
            && self.need(rank, newest) == Some(need)
            && self.records.at(newest).stamp() < self.records.at(group).stamp()
        {
            self.join(newest, group);
        } else {
            self.push_group(rank, clock, group);
        }
    }

    /// Merges two groups with the same need.
    fn join(&mut self, group: u32, younger: u32) {
        let Self { records, heaps, .. } = self;
        let (mut others, rest) = (records.at(group).link, records.at(younger).link);
        heaps.push_by_stamp(records, &mut others, younger);
        let others = heaps.join_by_stamp(records, others, rest);
        records.at_mut(group).link = others;
    }

    fn push_group(&mut self, rank: u32, clock: Clock, group: u32) {
        let Some(place) = self.clock_place(rank, clock) else { return };
        let Self { records, heaps, clock_queues, .. } = self;
        if let Some(queue) = clock_queues.get_mut(place) {
            heaps.push_by_stamp(records, &mut queue.groups, group);
            queue.newest = group;
        }
        self.refresh_clock(rank, clock);
    }

    /// Removes the first group of a clock.
    fn pop_group(&mut self, rank: u32, clock: Clock) {
        let Some(place) = self.clock_place(rank, clock) else { return };
        let Self { records, heaps, clock_queues, .. } = self;
        if let Some(queue) = clock_queues.get_mut(place) {
            if queue.newest == queue.groups {
                queue.newest = NONE;
            }
            heaps.pop_by_stamp(records, &mut queue.groups);
        }
    }

    /// Removes the first member of a group and returns the rest; [`NONE`] if it was the only one.
    fn others_of(&mut self, group: u32) -> u32 {
        let Self { records, heaps, .. } = self;
        let first = core::mem::replace(&mut records.at_mut(group).link, NONE);
        if first != NONE {
            let mut rest = first;
            heaps.pop_by_stamp(records, &mut rest);
            records.at_mut(first).link = rest;
        }
        first
    }

    /// Receive that a message claims, and the heap of its followers.
    fn claim_of(&self, message: u32) -> [u32; 2] {
        self.next_attempts.get(message as usize).map_or([NONE; 2], |claim| halves(*claim))
    }

    /// Stores the receive that a message claims, and the heap of its followers.
    fn set_claim(&mut self, message: u32, receive: u32, followers: u32) {
        if let Some(place) = self.next_attempts.get_mut(message as usize) {
            *place = whole([receive, followers]);
        }
    }

    /// Lets a message, with its followers, claim a posted receive of `rank` or follow the message
    /// that claims it. True if it does; its clocks are then known until it is handled.
    fn claim(&mut self, rank: u32, message: u32, receive: u32, followers: u32) -> bool {
        let wanted = self.records.at(receive);
        let alike =
            self.rank(rank).takes_alike(wanted.envelope()) && self.records.at(message).tag != ANY;
        if !alike || self.next_attempts.is_empty() || self.rank(rank).unit().is_some() {
            return false;
        }
        if wanted.is(Mark::Claimed) {
            let first = claimed_through(wanted);
            return self.follow(first, message, followers);
        }
        let wanted = self.records.at_mut(receive);
        wanted.mark(Mark::Claimed);
        wanted.created = u64::from(message);
        let class = {
            let message = self.records.at_mut(message);
            message.mark(Mark::Claimed);
            message.class()
        };
        self.set_claim(message, receive, followers);
        self.await_turn(rank, class, message);
        true
    }

    /// Adds a message to the followers of the claiming message `first`; false if it is older than
    /// that.
    fn follow(&mut self, first: u32, message: u32, followers: u32) -> bool {
        let [receive, mut all] = self.claim_of(first);
        let Self { records, heaps, .. } = self;
        if records.at(message).stamp() < records.at(first).stamp() {
            return false;
        }
        heaps.push_by_stamp(records, &mut all, message);
        let all = heaps.join_by_stamp(records, all, followers);
        self.set_claim(first, receive, all);
        true
    }

    /// Ends the claim of a message whose attempt is due. Returns its followers.
    #[inline]
    pub(super) fn disclaim(&mut self, message: u32) -> u32 {
        if self.single {
            return NONE;
        }
        if !self.records.at(message).is(Mark::Claimed) {
            return self.records.at(message).link;
        }
        let [receive, followers] = self.claim_of(message);
        self.records.at_mut(receive).unmark(Mark::Claimed);
        self.records.at_mut(message).unmark(Mark::Claimed);
        followers
    }

    /// Plans an attempt of the first follower for now; the others follow it.
    pub(super) fn promote(&mut self, rank: u32, followers: u32) {
        let Self { records, heaps, .. } = self;
        let (first, mut others) = (followers, followers);
        heaps.pop_by_stamp(records, &mut others);
        self.try_at(rank, first, self.now, others);
    }

    /// Plans an attempt of a message at `time`, with its followers.
    fn try_at(&mut self, rank: u32, message: u32, time: u64, followers: u32) {
        if let Some(next) = self.next_attempts.get_mut(message as usize) {
            *next = time;
        }
        let record = self.records.at_mut(message);
        record.link = followers;
        let class = record.class();
        self.await_turn(rank, class, message);
    }

    /// Ends the claim on a receive that another message takes, usually an older one of the same
    /// sender. The clocks of the receive were free until now, so the claiming message tries again
    /// now.
    pub(super) fn dispossess(&mut self, rank: u32, receive: u32) {
        let message = claimed_through(self.records.at(receive));
        let Some(need) = self.need(rank, message) else { return };
        self.leave_groups(rank, need, message);
        let followers = self.disclaim(message);
        self.try_at(rank, message, self.now, followers);
    }

    /// Removes a record from the groups with its need, whichever of them it is in.
    fn leave_groups(&mut self, rank: u32, need: Need, at: u32) {
        for clock in need {
            let Some(place) = self.clock_place(rank, clock) else { return };
            let (mut kept, mut found) = (NONE, false);
            while !found && let Some(group) = self.first_group(place) {
                self.pop_group(rank, clock);
                let mut left = group;
                if group == at {
                    left = self.others_of(group);
                    found = true;
                } else if self.need(rank, group) == Some(need) {
                    found = self.leave_group(group, at);
                }
                if left != NONE {
                    self.heaps.push_by_stamp(&self.records, &mut kept, left);
                }
            }
            let Self { records, heaps, clock_queues, .. } = self;
            if let Some(queue) = clock_queues.get_mut(place) {
                queue.groups = heaps.join_by_stamp(records, queue.groups, kept);
            }
            self.refresh_clock(rank, clock);
            if found {
                return;
            }
        }
        debug_assert!(false, "it waits in a heap");
    }

    /// Removes a record from a group, unless it is the first member. True if it was found.
    fn leave_group(&mut self, group: u32, at: u32) -> bool {
        let Self { records, heaps, .. } = self;
        let (mut rest, mut kept, mut found) = (records.at(group).link, NONE, false);
        while rest != NONE && !found {
            let least = rest;
            heaps.pop_by_stamp(records, &mut rest);
            found = least == at;
            if !found {
                heaps.push_by_stamp(records, &mut kept, least);
            }
        }
        records.at_mut(group).link = heaps.join_by_stamp(records, rest, kept);
        found
    }

    fn first_group(&self, place: usize) -> Option<u32> {
        self.clock_queues.get(place).map(|queue| queue.groups).filter(|&group| group != NONE)
    }

    /// Removes the record of an event from its heap.
    pub(super) fn leave_heap(&mut self, rank: u32, next: &Candidate) {
        let WaitsIn::Group { clock } = next.from else { return self.pop_later(rank) };
        self.pop_group(rank, clock);
        let others = self.others_of(next.at);
        if others == NONE {
            self.refresh_clock(rank, clock);
        } else {
            self.push_group(rank, clock, others);
        }
    }

    fn pop_later(&mut self, rank: u32) {
        let Self { records, heaps, states, next_attempts, .. } = self;
        let key = |at| (due(records, at, next_attempts), records.at(at).stamp());
        heaps.pop(states.at_mut(rank).later(), |a, b| key(a) < key(b));
    }

    /// The next event of `rank`.
    pub(super) fn first_pending(&mut self, rank: u32) -> Option<Candidate> {
        let later = self.first_later(rank);
        let group = self.first_ready(rank);
        match (later, group) {
            (Some(later), Some(group)) if later.entry.before(&group.entry) => Some(later),
            (later, group) => group.or(later),
        }
    }

    /// First record that waits for a time; records whose time is reached move to their clocks.
    fn first_later(&mut self, rank: u32) -> Option<Candidate> {
        loop {
            let at = *self.states.at_mut(rank).later();
            if at == NONE {
                return None;
            }
            let time = self.due(at);
            match self.need(rank, at) {
                Some(need) if time <= self.free(rank, need).max(self.now) => {
                    self.pop_later(rank);
                    self.await_clocks(rank, need, at);
                }
                _ => {
                    debug_assert!(time >= self.now, "everything happens at its time");
                    return Some(self.waits(rank, at, time, WaitsIn::Later));
                }
            }
        }
    }

    /// First record that waits for clocks; groups whose other clock is free later move to it.
    fn first_ready(&mut self, rank: u32) -> Option<Candidate> {
        loop {
            let Entry { time, index, .. } = self.first_clock(rank)?;
            let clock = self.clock_at(index);
            self.heaps.look();
            if time < self.clock_of(rank, clock).max(self.now) {
                self.refresh_clock(rank, clock);
                continue;
            }
            let group = self.clock_queue(rank, clock).groups;
            match self.need(rank, group) {
                Some(need) if time < self.free(rank, need) => {
                    self.pop_group(rank, clock);
                    self.refresh_clock(rank, clock);
                    self.bind(rank, need, group);
                }
                _ => return Some(self.waits(rank, group, time, WaitsIn::Group { clock })),
            }
        }
    }

    fn waits(&self, rank: u32, at: u32, time: u64, from: WaitsIn) -> Candidate {
        let record = self.records.at(at);
        Candidate { entry: record.entry(time, rank), class: record.class(), from, at }
    }
}

/// Message that claims a receive.
const fn claimed_through(receive: &Record) -> u32 {
    halves(receive.created)[0]
}

/// Earliest time of a waiting record, ps.
fn due(records: &Records<'_>, at: u32, next_attempts: &[u64]) -> u64 {
    let record = records.at(at);
    match record.class() {
        Class::Receives => record.amount,
        Class::Sends | Class::Calcs => records.time_of(at),
        Class::Arrived | Class::Taken | Class::Mailed if record.is(Mark::Claimed) => 0,
        Class::Arrived | Class::Taken | Class::Mailed => {
            next_attempts.get(at as usize).copied().unwrap_or_default()
        }
    }
}
