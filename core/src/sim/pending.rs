//! What waits on a rank, where lists do not do: with several processors or
//! interfaces, or with overlap, the members of a class have different times.
//!
//! What has to wait for a time of its own is in one heap, by time and stamp.
//! What waits only until what it needs is free waits for a clock, that of a
//! processor or of one side of an interface: of the two that it needs for the
//! one that is free later. Those that need the same two make groups, which are
//! heaps by stamp; the groups of a clock are a heap by the stamps of their first
//! members, and the clocks of a rank for which something waits are a heap by the
//! time when they are free and the stamp of what is first there. When a clock is
//! free and the other one of its first group is not, the whole group waits for
//! that, and joins the group that needs the same there. So an event costs time
//! logarithmic in all that waits.
//!
//! A message needs the processor and the interface of the receive that it will
//! meet, or of its send where there is none. Where all receives of a rank, and
//! all sends to it, name the same ones, that is known beforehand. On other
//! ranks a message that waits for a processor claims the receive that it finds,
//! if that names its sender and tag: nobody takes it before, as a rule. Later
//! messages that find the same receive follow the one that claims it, and when
//! that has its turn the first of them tries in its place. Any other message
//! tries when what it needed the last time is free, since its receive may be
//! another one by then; these tries are linear in their number.
//!
//! The first member of a group has a link to the heap of the others, a message that
//! is going to try one to the heap of those that follow it.

use super::clocks::Clock;
use super::engine::Engine;
use super::event::{Candidate, WaitsIn};
use super::hooks::{MessageKind, Noise, Observer};
use super::network::Network;
use super::parameters::Receive;
use super::queues::chain::Chain;
use super::queues::heap::Heaps;
use super::queues::queue::Entry;
use super::rank::{Class, Rank};
use super::record::{Mark, NONE, Record};
use super::records::Records;
use super::release::Operations;
use super::rules::Units;
use super::storage::Storage;
use crate::goal::ANY;

/// The clocks that have to be free for a record; the same twice where it is one.
type Need = [Clock; 2];

/// When a message tries to be received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) time: u64,
    pub(super) class: Class,
    /// The receive that it has found.
    pub(super) receive: Option<u32>,
    /// The heap of those that follow it.
    pub(super) followers: u32,
}

impl Attempt {
    pub(super) const fn at(time: u64, class: Class) -> Self {
        Self { time, class, receive: None, followers: NONE }
    }
}

/// How many pairs of a processor and an interface messages for a rank may need, beside
/// [`NONE`]: one, or several.
const ONE: u32 = 1;
const DIFFERENT: u32 = 2;

/// The words of a rank's lists, where they are none.
impl Rank {
    /// How many of its clocks something waits for.
    pub(super) const fn waited_for(&mut self) -> &mut u32 {
        let [waited_for, ..] = &mut self.lists;
        waited_for
    }

    /// The root of the heap of those that wait for their time.
    const fn later(&mut self) -> &mut u32 {
        let [_, later, ..] = &mut self.lists;
        later
    }

    /// Notes a processor and an interface that messages for this rank may
    /// need.
    pub(super) fn note_units(&mut self, noted: Units) {
        let [_, _, units, many, ..] = &mut self.lists;
        let noted = noted.wide();
        *many = match *many {
            NONE => ONE,
            _ if *units == noted => *many,
            _ => DIFFERENT,
        };
        *units = noted;
    }

    /// Processor and interface of all receives and of all sends to this rank;
    /// `None` where there are several.
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

impl<N: Noise, O: Observer, W: Network, S: Storage> Engine<'_, '_, N, O, W, S> {
    /// Lets an operation wait on `rank`.
    #[inline]
    pub(super) fn enlist(&mut self, rank: u32, class: Class, op: u32) {
        if self.single {
            let state = self.ranks.at_mut(rank);
            self.records.push(state.list_mut(class), op);
        } else {
            self.await_turn(rank, class, op);
        }
    }

    /// Puts a record into the heap where it belongs.
    pub(super) fn await_turn(&mut self, rank: u32, class: Class, at: u32) {
        self.records.at_mut(at).set_class(class);
        match self.need(rank, at) {
            Some(need) if self.due(at) <= self.free(rank, need).max(self.now) => {
                self.await_clocks(rank, need, at);
            }
            _ => {
                let Self { records, heaps, ranks, next_attempts, .. } = self;
                let key = |at| (due(records, at, next_attempts), records.at(at).stamp());
                heaps.push(ranks.at_mut(rank).later(), at, |a, b| key(a) < key(b));
            }
        }
    }

    /// Lets a message wait for its next attempt, or until what the receive that it claims
    /// names is free. An interface that takes messages by itself leaves their receives to
    /// others: no claim then.
    pub(super) fn await_attempt(&mut self, rank: u32, message: u32, next: &Attempt) {
        let &Attempt { time, class, receive, followers } = next;
        self.records.at_mut(message).set_class(class);
        let by_interface = class == Class::Arrived && self.settings.receive == Receive::Overlap;
        let claims = receive
            .is_some_and(|receive| !by_interface && self.claim(rank, message, receive, followers));
        if !claims {
            self.try_at(rank, message, time, NONE);
            if followers != NONE {
                self.promote(rank, followers);
            }
        }
    }

    /// What a record needs; `None` for a receive, which needs nothing, and for a message
    /// that will find out.
    fn need(&self, rank: u32, at: u32) -> Option<Need> {
        let record = self.records.at(at);
        let (class, records) = (record.class(), &self.records);
        let Units { cpu, nic } = match class {
            Class::Receives => return None,
            Class::Sends | Class::Calcs => records.units(at),
            Class::Arrived | Class::Taken => match record.message_kind() {
                MessageKind::Data => records.units_of(record.tag),
                MessageKind::Cts => records.units_of(at),
                MessageKind::Whole | MessageKind::Rts if record.is(Mark::Claimed) => {
                    records.units_of(self.claimed_by(at))
                }
                MessageKind::Whole | MessageKind::Rts => self.rank(rank).unit()?,
            },
        };
        let (cpu, into) = (Clock::Cpu(cpu), Clock::Into(nic));
        Some(match class {
            Class::Sends => [cpu, Clock::Out(nic)],
            Class::Arrived if self.settings.receive == Receive::Overlap => [into; 2],
            Class::Arrived => [cpu, into],
            Class::Receives | Class::Calcs | Class::Taken => [cpu; 2],
        })
    }

    /// When that is free.
    fn free(&self, rank: u32, [one, other]: Need) -> u64 {
        self.clock_of(rank, one).max(self.clock_of(rank, other))
    }

    fn due(&self, at: u32) -> u64 {
        due(&self.records, at, self.next_attempts)
    }

    /// Lets a record wait by itself until what it needs is free.
    fn await_clocks(&mut self, rank: u32, need: Need, at: u32) {
        self.records.at_mut(at).link = NONE;
        self.bind(rank, need, at);
    }

    /// Lets a group wait for the clock that is free later.
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

    /// Makes one group of two that need the same.
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

    /// Takes the first group of a clock out.
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

    /// The group without its first member; [`NONE`] if there is no other.
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

    /// The receive that a message claims.
    #[allow(clippy::cast_possible_truncation, reason = "a record's index was put there")]
    fn claimed_by(&self, message: u32) -> u32 {
        self.next_attempts.get(message as usize).map_or(NONE, |receive| *receive as u32)
    }

    /// Notes the receive that a message claims, and the heap of those that follow it.
    fn set_claim(&mut self, message: u32, receive: u32, followers: u32) {
        if let Some(place) = self.next_attempts.get_mut(message as usize) {
            *place = u64::from(receive) | u64::from(followers) << 32;
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "the upper half of a word")]
    fn followers_of(&self, message: u32) -> u32 {
        self.next_attempts.get(message as usize).map_or(NONE, |claim| (*claim >> 32) as u32)
    }

    /// Lets a message, with those that follow it, claim a posted receive of `rank`, or
    /// follow the message that does; whether it can. Then what it needs is known until it is
    /// handled.
    fn claim(&mut self, rank: u32, message: u32, receive: u32, followers: u32) -> bool {
        let wanted = self.records.at(receive);
        let exact = wanted.peer != ANY && wanted.tag != ANY && self.records.at(message).tag != ANY;
        if !exact || self.next_attempts.is_empty() || self.rank(rank).unit().is_some() {
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

    /// Lets a message follow the one that claims what it found, unless that is younger.
    fn follow(&mut self, first: u32, message: u32, followers: u32) -> bool {
        let (mut all, receive) = (self.followers_of(first), self.claimed_by(first));
        let Self { records, heaps, .. } = self;
        if records.at(message).stamp() < records.at(first).stamp() {
            return false;
        }
        heaps.push_by_stamp(records, &mut all, message);
        let all = heaps.join_by_stamp(records, all, followers);
        self.set_claim(first, receive, all);
        true
    }

    /// Ends the claim of a message that has its turn. Returns those that follow it.
    #[inline]
    pub(super) fn disclaim(&mut self, message: u32) -> u32 {
        if self.single {
            return NONE;
        }
        if !self.records.at(message).is(Mark::Claimed) {
            return self.records.at(message).link;
        }
        let (receive, followers) = (self.claimed_by(message), self.followers_of(message));
        self.records.at_mut(receive).unmark(Mark::Claimed);
        self.records.at_mut(message).unmark(Mark::Claimed);
        followers
    }

    /// Lets the first of some that followed a message try, the others after it.
    pub(super) fn promote(&mut self, rank: u32, followers: u32) {
        let Self { records, heaps, .. } = self;
        let (first, mut others) = (followers, followers);
        heaps.pop_by_stamp(records, &mut others);
        self.try_at(rank, first, self.now, others);
    }

    /// Lets a message try at a time, before those that follow it.
    fn try_at(&mut self, rank: u32, message: u32, time: u64, followers: u32) {
        if let Some(next) = self.next_attempts.get_mut(message as usize) {
            *next = time;
        }
        let record = self.records.at_mut(message);
        record.link = followers;
        let class = record.class();
        self.await_turn(rank, class, message);
    }

    /// Another message takes a claimed receive, an older one of the same
    /// sender as a rule. What it names was free until then, so the one that
    /// claims it tries again now.
    pub(super) fn dispossess(&mut self, rank: u32, receive: u32) {
        let message = claimed_through(self.records.at(receive));
        let Some(need) = self.need(rank, message) else { return };
        self.leave_groups(rank, need, message);
        let followers = self.disclaim(message);
        self.try_at(rank, message, self.now, followers);
    }

    /// Takes a record out of the heap of those that need the same, wherever in
    /// it that is.
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

    /// Takes a record out of a group, if it is there, not as the first member.
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

    /// Takes the record of an event out of its heap.
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
        let Self { records, heaps, ranks, next_attempts, .. } = self;
        let key = |at| (due(records, at, next_attempts), records.at(at).stamp());
        heaps.pop(ranks.at_mut(rank).later(), |a, b| key(a) < key(b));
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

    /// The first of those that wait for a time of their own; those of which the time has
    /// come wait for their clocks.
    fn first_later(&mut self, rank: u32) -> Option<Candidate> {
        loop {
            let at = *self.ranks.at_mut(rank).later();
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

    /// The first of those that wait for clocks; groups whose other clock is free later
    /// wait for that.
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

/// The message that claims a receive.
#[allow(clippy::cast_possible_truncation, reason = "a record's index was put there")]
const fn claimed_through(receive: &Record) -> u32 {
    receive.created as u32
}

/// The earliest time for a record that waits.
fn due(records: &Records<'_>, at: u32, next_attempts: &[u64]) -> u64 {
    let record = records.at(at);
    match record.class() {
        Class::Receives => record.amount,
        Class::Sends | Class::Calcs => records.time_of(at),
        Class::Arrived | Class::Taken if record.is(Mark::Claimed) => 0,
        Class::Arrived | Class::Taken => {
            next_attempts.get(at as usize).copied().unwrap_or_default()
        }
    }
}
