//! What waits on a rank, where lists do not do: with several processors or
//! interfaces, or with overlap, the members of a class have different times.
//!
//! What has to wait for a time of its own is in one heap, by time and stamp.
//! What waits only until what it needs is free is in a heap with all that
//! needs the same, by stamp: of those the oldest is next, whenever that is. So
//! an event costs time logarithmic in all that waits, and linear in the pairs
//! of processor and interface that something waits for.
//!
//! A message needs the processor and the interface of the receive that it will
//! meet, or of its send where there is none. Where all receives of a rank, and
//! all sends to it, name the same ones, that is known beforehand. On other
//! ranks a message that waits for a processor claims the receive that it finds,
//! if that names its sender and tag and no other message claims it: nobody
//! takes it before, as a rule. Any other message tries when what it needed the
//! last time is free, since its receive may be another one by then; these tries
//! are linear in their number.
//!
//! The roots of the heaps of a rank form a chain through the links of their
//! records.

use super::clocks::Clock;
use super::engine::Engine;
use super::event::{Candidate, WaitsIn};
use super::hooks::{MessageKind, Noise, Observer};
use super::network::Network;
use super::parameters::Receive;
use super::queues::chain::Chain;
use super::queues::heap::Heaps;
use super::rank::{Class, Rank};
use super::record::{Mark, NONE};
use super::records::Records;
use super::release::Operations;
use super::rules::Units;
use super::storage::Storage;
use crate::goal::ANY;

/// What a record needs to be free.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Need {
    class: Class,
    /// 0 where the class needs none.
    cpu: u16,
    nic: u16,
}

/// How many pairs of a processor and an interface messages for a rank may need, beside
/// [`NONE`]: one, or several.
const ONE: u32 = 1;
const DIFFERENT: u32 = 2;

/// The words of a rank's lists, where they are none.
impl Rank {
    /// The root of the first heap of those that wait for what they need.
    const fn groups(&mut self) -> &mut u32 {
        let [groups, ..] = &mut self.lists;
        groups
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
                self.join(rank, need, at);
            }
            _ => {
                let Self { records, heaps, ranks, next_attempts, .. } = self;
                let key = |at| (due(records, at, next_attempts), records.at(at).stamp());
                heaps.push(ranks.at_mut(rank).later(), at, |a, b| key(a) < key(b));
            }
        }
    }

    /// What a record needs; `None` for a message that will find out.
    fn need(&self, rank: u32, at: u32) -> Option<Need> {
        let record = self.records.at(at);
        let (class, records) = (record.class(), &self.records);
        let Units { cpu, nic } = match class {
            Class::Receives => Units::default(),
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
        let overlap = self.settings.receive == Receive::Overlap;
        Some(match class {
            Class::Calcs | Class::Taken => Need { class, cpu, nic: 0 },
            Class::Arrived if overlap => Need { class, cpu: 0, nic },
            _ => Need { class, cpu, nic },
        })
    }

    /// When that is free.
    fn free(&self, rank: u32, need: Need) -> u64 {
        let Need { class, cpu, nic } = need;
        match class {
            Class::Receives => 0,
            Class::Calcs | Class::Taken => self.clock_of(rank, Clock::Cpu(cpu)),
            Class::Sends => {
                self.clock_of(rank, Clock::Cpu(cpu)).max(self.clock_of(rank, Clock::Out(nic)))
            }
            Class::Arrived if self.settings.receive == Receive::Overlap => {
                self.clock_of(rank, Clock::Into(nic))
            }
            Class::Arrived => {
                self.clock_of(rank, Clock::Cpu(cpu)).max(self.clock_of(rank, Clock::Into(nic)))
            }
        }
    }

    fn due(&self, at: u32) -> u64 {
        due(&self.records, at, self.next_attempts)
    }

    /// The root of the heap of those that need this, and the root before it.
    fn group(&mut self, rank: u32, need: Need) -> (u32, u32) {
        let mut before = NONE;
        let mut root = *self.ranks.at_mut(rank).groups();
        while root != NONE && self.need(rank, root) != Some(need) {
            before = root;
            root = self.records.at(root).link;
            self.heaps.look();
        }
        (before, root)
    }

    /// Puts a record into the heap of those that need the same.
    fn join(&mut self, rank: u32, need: Need, at: u32) {
        let (before, mut root) = self.group(rank, need);
        let after = if root == NONE { NONE } else { self.records.at(root).link };
        self.heaps.push_by_stamp(&self.records, &mut root, at);
        self.hang(rank, before, root, after);
    }

    /// The receive that a message claims.
    #[allow(clippy::cast_possible_truncation, reason = "a record's index was put there")]
    fn claimed_by(&self, message: u32) -> u32 {
        self.next_attempts.get(message as usize).map_or(NONE, |receive| *receive as u32)
    }

    /// Lets a message claim a posted receive of `rank`, if it can: then what
    /// it needs is known until it is handled.
    pub(super) fn claim(&mut self, rank: u32, message: u32, receive: u32) {
        let wanted = self.records.at(receive);
        let exact = wanted.peer != ANY && wanted.tag != ANY && self.records.at(message).tag != ANY;
        if !exact
            || wanted.is(Mark::Claimed)
            || self.next_attempts.is_empty()
            || self.rank(rank).unit().is_some()
        {
            return;
        }
        let wanted = self.records.at_mut(receive);
        wanted.mark(Mark::Claimed);
        wanted.created = u64::from(message);
        self.records.at_mut(message).mark(Mark::Claimed);
        if let Some(place) = self.next_attempts.get_mut(message as usize) {
            *place = u64::from(receive);
        }
    }

    /// Ends the claim of a message that has its turn.
    pub(super) fn disclaim(&mut self, message: u32) {
        if self.records.at(message).is(Mark::Claimed) {
            let receive = self.claimed_by(message);
            self.records.at_mut(receive).unmark(Mark::Claimed);
            self.records.at_mut(message).unmark(Mark::Claimed);
        }
    }

    /// Another message takes a claimed receive, an older one of the same
    /// sender as a rule. What it names was free until then, so the one that
    /// claims it tries again now.
    pub(super) fn dispossess(&mut self, rank: u32, receive: u32) {
        let Ok(message) = u32::try_from(self.records.at(receive).created) else { return };
        let class = self.records.at(message).class();
        let Some(need) = self.need(rank, message) else { return };
        self.leave_group(rank, need, message);
        self.disclaim(message);
        if let Some(next) = self.next_attempts.get_mut(message as usize) {
            *next = self.now;
        }
        self.await_turn(rank, class, message);
    }

    /// Takes a record out of the heap of those that need the same, wherever in
    /// it that is.
    fn leave_group(&mut self, rank: u32, need: Need, at: u32) {
        let (before, mut root) = self.group(rank, need);
        debug_assert!(root != NONE, "it waits in a heap");
        let after = if root == NONE { NONE } else { self.records.at(root).link };
        let Self { records, heaps, .. } = self;
        let mut others = NONE;
        while root != NONE {
            let least = root;
            heaps.pop_by_stamp(records, &mut root);
            if least == at {
                break;
            }
            heaps.push_by_stamp(records, &mut others, least);
        }
        root = heaps.join(root, others, |a, b| records.at(a).stamp() < records.at(b).stamp());
        self.hang(rank, before, root, after);
    }

    /// Makes `root`, unless its heap is empty, the one that follows `before` in the
    /// chain of heaps, and `after` the next.
    fn hang(&mut self, rank: u32, before: u32, root: u32, after: u32) {
        let root = if root == NONE {
            after
        } else {
            self.records.at_mut(root).link = after;
            root
        };
        if before == NONE {
            *self.ranks.at_mut(rank).groups() = root;
        } else {
            self.records.at_mut(before).link = root;
        }
    }

    /// Takes the record of an event out of its heap.
    pub(super) fn leave_heap(&mut self, rank: u32, next: &Candidate) {
        match next.from {
            WaitsIn::Group { before } => {
                let mut root = next.at;
                let after = self.records.at(root).link;
                self.heaps.pop_by_stamp(&self.records, &mut root);
                self.hang(rank, before, root, after);
            }
            WaitsIn::Later | WaitsIn::List { .. } => self.pop_later(rank),
        }
    }

    fn pop_later(&mut self, rank: u32) {
        let Self { records, heaps, ranks, next_attempts, .. } = self;
        let key = |at| (due(records, at, next_attempts), records.at(at).stamp());
        heaps.pop(ranks.at_mut(rank).later(), |a, b| key(a) < key(b));
    }

    /// The next event of `rank`.
    pub(super) fn first_pending(&mut self, rank: u32) -> Option<Candidate> {
        let mut best: Option<Candidate> = None;
        loop {
            let at = *self.ranks.at_mut(rank).later();
            if at == NONE {
                break;
            }
            let time = self.due(at);
            match self.need(rank, at) {
                Some(need) if time <= self.free(rank, need).max(self.now) => {
                    self.pop_later(rank);
                    self.join(rank, need, at);
                }
                _ => {
                    debug_assert!(time >= self.now, "everything happens at its time");
                    best = Some(self.waits(rank, at, time, WaitsIn::Later));
                    break;
                }
            }
        }
        let mut before = NONE;
        let mut root = *self.ranks.at_mut(rank).groups();
        while root != NONE {
            let free = self.need(rank, root).map_or(0, |need| self.free(rank, need));
            let found = self.waits(rank, root, free.max(self.now), WaitsIn::Group { before });
            if best.is_none_or(|best| found.entry.before(&best.entry)) {
                best = Some(found);
            }
            before = root;
            root = self.records.at(root).link;
            self.heaps.look();
        }
        best
    }

    fn waits(&self, rank: u32, at: u32, time: u64, from: WaitsIn) -> Candidate {
        let record = self.records.at(at);
        Candidate { entry: record.entry(time, rank), class: record.class(), from, at }
    }
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
