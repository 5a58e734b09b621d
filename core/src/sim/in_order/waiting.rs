//! Posted receives and unexpected messages.
//!
//! Once a search on a rank has inspected more than [`SHORT`] of them, they move to
//! a hash table by rank, sender and tag ([`Waiting`]), whose buckets are lists, the oldest first.
//! The key lacks the sender or the tag on ranks that have a receive with that wildcard, so that
//! each list has all that may match. Matching therefore takes constant time however many wait; on
//! ranks with wildcards, time linear in the older receives or messages with the same key. The ranks
//! of [streamed](crate::sim::streamed) schedules use the table from the beginning.

use super::rank::Rank;
use super::ranks::States;
use crate::goal::ANY;
use crate::sim::queues::chain::Chain;
use crate::sim::rank::matching::slots::{Found, Slots};
use crate::sim::rank::matching::{Envelope, first_message};
use crate::sim::record::{Kind, NONE, Slot};
use crate::sim::records::Records;

/// Operation of a rank.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct OnRank {
    /// Its rank.
    pub(in crate::sim) rank: u32,
    /// Its record.
    pub(in crate::sim) op: u32,
}

/// Number of receives or messages that a search may inspect before they move to the table.
pub(in crate::sim) const SHORT: u32 = 100;

/// Wildcards of the receives of a rank, which leave sender or tag open in all keys there.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sim) struct Wildcards {
    sender: bool,
    tag: bool,
}

impl Wildcards {
    /// Adds the wildcards of a receive, or of a message.
    pub(in crate::sim) const fn add(&mut self, Envelope { sender, tag }: Envelope) {
        self.sender |= sender == ANY;
        self.tag |= tag == ANY;
    }

    /// Leaves the tag open.
    pub(in crate::sim) const fn add_tag(&mut self) {
        self.tag = true;
    }

    #[inline]
    const fn open(self, Envelope { sender, tag }: Envelope) -> Envelope {
        Envelope {
            sender: if self.sender { ANY } else { sender },
            tag: if self.tag { ANY } else { tag },
        }
    }
}

/// Part of the table that a rank uses.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sim) struct Part {
    /// First bucket.
    first: u32,
    /// Binary logarithm of the number of buckets.
    log: u8,
    pub(in crate::sim) wildcards: Wildcards,
    state: PartState,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum PartState {
    /// The rank has no buckets, because it has few receives.
    #[default]
    None,
    /// Few wait, in slots and a list.
    Unused,
    Used,
}

impl Part {
    /// Number of buckets for a rank with `receives` receives.
    pub(in crate::sim) const fn count(receives: u64) -> u64 {
        if receives > SHORT as u64 { receives.div_ceil(2).next_power_of_two() } else { 0 }
    }

    /// Part for a rank with `receives` receives, with buckets from `first` on, and their end; `None`
    /// if that exceeds 32 bits.
    #[allow(clippy::cast_possible_truncation, reason = "a logarithm")]
    pub(in crate::sim) fn new(
        first: u32,
        receives: u32,
        wildcards: Wildcards,
    ) -> Option<(Self, u32)> {
        let count = u32::try_from(Self::count(receives.into())).ok()?;
        let state = if count > 0 { PartState::Unused } else { PartState::None };
        let log = count.max(1).ilog2() as u8;
        Some((Self { first, log, wildcards, state }, first.checked_add(count)?))
    }

    /// Part of a rank that shares all buckets.
    pub(in crate::sim) fn shared(wildcards: Wildcards) -> Self {
        Self { wildcards, state: PartState::Used, ..Self::default() }
    }
}

/// Odd multiplier, and its inverse modulo 2³².
const ODD: u32 = 0x85eb_ca6b;
const INVERSE: u32 = 0xa5cb_9243;
const _: () = assert!(ODD.wrapping_mul(INVERSE) == 1, "a key tells its rank");

/// Key of a receive or of a message (whose record is a send) on a rank.
#[inline]
const fn key(kind: Kind, rank: u32, envelope: Envelope) -> u32 {
    rank.wrapping_mul(ODD) ^ envelope.mixed() ^ kind as u32
}

/// Initial number of shared buckets.
const LEAST: usize = 64;

/// Posted receives and unexpected messages of all ranks, in global order.
///
/// The `seq` of a record in the table, which it no longer needs, is its key.
#[derive(Debug)]
pub(in crate::sim) struct Waiting<'m> {
    slots: Slots<'m>,
    buckets: &'m mut [u32],
    /// Number of buckets in use, a power of two, if the ranks share them; 0 if each has its own.
    shared: usize,
    /// Number of records in shared buckets.
    count: usize,
    /// Number of records inspected.
    #[cfg(test)]
    pub(in crate::sim) looks: core::cell::Cell<u64>,
}

/// Slots and lists of few, or the table.
impl<'m> Waiting<'m> {
    /// Each rank has slots, and buckets of its own.
    pub(in crate::sim) const fn new(slots: &'m mut [Slot], buckets: &'m mut [u32]) -> Self {
        Self {
            slots: Slots::new(slots, 0),
            buckets,
            shared: 0,
            count: 0,
            #[cfg(test)]
            looks: core::cell::Cell::new(0),
        }
    }

    /// All ranks share the buckets, a power of two, of which as many are used as records wait. All
    /// ranks have the same wildcards.
    pub(in crate::sim) fn shared(buckets: &'m mut [u32]) -> Self {
        let shared = buckets.len().min(LEAST);
        buckets.iter_mut().take(shared).for_each(|bucket| *bucket = NONE);
        Self { shared, ..Self::new(&mut [], buckets) }
    }

    /// Copies the receives of another instance, before its run.
    pub(in crate::sim) fn copy_from(&mut self, other: &Waiting<'_>) {
        self.slots.copy_from(&other.slots);
    }

    #[inline]
    #[cfg_attr(not(test), allow(clippy::unused_self, reason = "counts in tests"))]
    fn look(&self, _count: u32) {
        #[cfg(test)]
        self.looks.set(self.looks.get() + u64::from(_count));
    }

    /// First posted receive of a rank that takes a message.
    #[inline]
    pub(in crate::sim) fn find_posted(
        &mut self,
        records: &mut Records<'_>,
        number: u32,
        rank: &mut Rank,
        message: Envelope,
    ) -> Option<Found> {
        if rank.part.state == PartState::Used {
            return self.find(records, Kind::Receive, number, rank, message);
        }
        let found = self.slots.find(records, rank.posted, message);
        let looked = rank.posted.looked_at(found);
        self.look(looked + u32::from(found.is_some()));
        if looked > SHORT && rank.part.state == PartState::Unused {
            self.use_table(records, number, rank);
            return self.find(records, Kind::Receive, number, rank, message);
        }
        found
    }

    /// Posts a receive.
    #[inline]
    pub(in crate::sim) fn post(&mut self, records: &mut Records<'_>, on: OnRank, rank: &mut Rank) {
        if rank.part.state == PartState::Used {
            return self.push(records, on, rank);
        }
        self.slots.post(records, &mut rank.posted, on.op);
    }

    /// Removes a posted receive that was found for a message.
    #[inline]
    pub(in crate::sim) fn take_posted(
        &mut self,
        records: &mut Records<'_>,
        rank: &mut Rank,
        found: Found,
    ) {
        if rank.part.state == PartState::Used {
            return self.take(records, rank, found);
        }
        self.slots.take(&mut rank.posted, found);
    }

    /// Queues a message as unexpected.
    #[inline]
    pub(in crate::sim) fn await_receive(
        &mut self,
        records: &mut Records<'_>,
        on: OnRank,
        rank: &mut Rank,
    ) {
        if rank.part.state == PartState::Used {
            return self.push(records, on, rank);
        }
        records.push(&mut rank.unexpected, on.op);
    }

    /// Removes the oldest unexpected message of a rank that a receive takes.
    #[inline]
    pub(in crate::sim) fn take_message(
        &mut self,
        records: &mut Records<'_>,
        number: u32,
        rank: &mut Rank,
        receive: Envelope,
    ) -> Option<u32> {
        if rank.part.state != PartState::Used {
            let (found, looks) = first_message(records, rank.unexpected, receive);
            self.look(looks);
            if looks <= SHORT || rank.part.state == PartState::None {
                let (before, message) = found?;
                records.remove(&mut rank.unexpected, before, message);
                return Some(message);
            }
            self.use_table(records, number, rank);
        }
        let found = self.find(records, Kind::Send, number, rank, receive)?;
        self.take(records, rank, found);
        Some(found.op)
    }

    /// Moves the receives and messages of a rank to the table.
    #[cold]
    #[inline(never)]
    fn use_table(&mut self, records: &mut Records<'_>, number: u32, rank: &mut Rank) {
        let first = rank.part.first as usize;
        let buckets = self.buckets.get_mut(first..first + (1 << rank.part.log));
        buckets.unwrap_or_default().fill(NONE);
        rank.part.state = PartState::Used;
        for slot in rank.posted.first..rank.posted.end {
            let op = self.slots.at(slot).map_or(NONE, |slot| slot.op);
            if op != NONE {
                self.push(records, OnRank { rank: number, op }, rank);
            }
        }
        rank.posted.first = rank.posted.end;
        let messages = core::mem::replace(&mut rank.unexpected, NONE);
        each(records, messages, |records, op| {
            self.push(records, OnRank { rank: number, op }, rank);
        });
    }

    /// Posted receives of a rank, once the table is [listed](Self::list).
    pub(in crate::sim) fn receives(
        &self,
        records: &Records<'_>,
        rank: &Rank,
    ) -> impl Iterator<Item = u32> {
        self.slots.receives(rank.posted).chain(listed(records, rank, Kind::Receive))
    }
}

/// Members of a kind of the list of a rank.
pub(in crate::sim) fn listed(
    records: &Records<'_>,
    rank: &Rank,
    kind: Kind,
) -> impl Iterator<Item = u32> {
    let all = records.walk(rank.unexpected).map(|(_, op)| op);
    all.filter(move |&op| records.at(op).kind() == kind)
}

/// Calls `put` with each record of a circular list, oldest first; `put` may link it into another.
fn each<'r>(records: &mut Records<'r>, last: u32, mut put: impl FnMut(&mut Records<'r>, u32)) {
    let mut next = if last == NONE { NONE } else { records.next(last) };
    while next != NONE {
        let at = next;
        next = if at == last { NONE } else { records.next(at) };
        put(records, at);
    }
}

/// The table.
impl Waiting<'_> {
    /// Bucket of a key.
    #[inline]
    fn place(&self, key: u32, rank: &Rank) -> usize {
        if self.shared > 0 {
            let mixed = key.wrapping_mul(0x9e37_79b1);
            return (mixed ^ mixed >> 15) as usize & (self.shared - 1);
        }
        // Consecutive senders are in different buckets.
        let Part { first, log, .. } = rank.part;
        first as usize + (key as usize & ((1 << log) - 1))
    }

    #[inline]
    fn bucket(&mut self, key: u32, rank: &Rank) -> Option<&mut u32> {
        let place = self.place(key, rank);
        debug_assert!(place < self.buckets.len(), "no bucket {place}");
        self.buckets.get_mut(place)
    }

    /// Oldest receive of a rank that takes a message (`kind` of a receive), or oldest message that
    /// a receive takes (of a send). The slot is its predecessor.
    #[inline]
    fn find(
        &self,
        records: &Records<'_>,
        kind: Kind,
        number: u32,
        rank: &Rank,
        envelope: Envelope,
    ) -> Option<Found> {
        let key = key(kind, number, rank.part.wildcards.open(envelope));
        let last = self.buckets.get(self.place(key, rank)).copied().unwrap_or(NONE);
        let (slot, op) = records.walk(last).find(|&(_, at)| {
            self.look(1);
            let record = records.at(at);
            let [receive, message] = match kind {
                Kind::Receive => [record.envelope(), envelope],
                _ => [envelope, record.envelope()],
            };
            record.seq == key && record.kind() == kind && receive.takes(message)
        })?;
        Some(Found { slot, op })
    }

    /// Adds a posted receive or an unexpected message.
    #[inline]
    fn push(&mut self, records: &mut Records<'_>, on: OnRank, rank: &Rank) {
        if self.shared > 0 {
            self.count += 1;
            if self.count > self.shared && self.shared < self.buckets.len() {
                self.double(records);
            }
        }
        let record = records.at_mut(on.op);
        let key = key(record.kind(), on.rank, rank.part.wildcards.open(record.envelope()));
        record.seq = key;
        if let Some(last) = self.bucket(key, rank) {
            records.push(last, on.op);
        }
    }

    /// Removes a record that [`find`](Self::find) returned.
    #[inline]
    fn take(&mut self, records: &mut Records<'_>, rank: &Rank, found: Found) {
        self.count = self.count.saturating_sub(1);
        if let Some(last) = self.bucket(records.at(found.op).seq, rank) {
            records.remove(last, found.slot, found.op);
        }
    }

    #[cold]
    fn double(&mut self, records: &mut Records<'_>) {
        let before = self.shared;
        self.shared *= 2;
        self.buckets.get_mut(before..self.shared).unwrap_or_default().fill(NONE);
        for bucket in 0..before {
            let last = self.empty(bucket);
            each(records, last, |records, at| {
                if let Some(last) = self.bucket(records.at(at).seq, &Rank::default()) {
                    records.push(last, at);
                }
            });
        }
    }

    /// Moves the table to the lists of the ranks, in no particular order.
    pub(in crate::sim) fn list(&mut self, records: &mut Records<'_>, states: &mut States<'_>) {
        let wildcards = states.at(states.ranks().start).part.wildcards;
        for bucket in 0..self.shared {
            let last = self.empty(bucket);
            each(records, last, |records, at| {
                let record = records.at(at);
                let rest = key(record.kind(), 0, wildcards.open(record.envelope()));
                let rank = (record.seq ^ rest).wrapping_mul(INVERSE);
                records.push(&mut states.at_mut(rank).unexpected, at);
            });
        }
        let ranks = if self.shared > 0 { 0..0 } else { states.ranks() };
        for rank in ranks {
            let rank = states.at_mut(rank);
            if rank.part.state == PartState::Used {
                for bucket in (rank.part.first as usize..).take(1 << rank.part.log) {
                    let last = self.empty(bucket);
                    each(records, last, |records, at| records.push(&mut rank.unexpected, at));
                }
            }
        }
    }

    /// Empties a bucket, and returns the last record of its list.
    fn empty(&mut self, bucket: usize) -> u32 {
        self.buckets.get_mut(bucket).map_or(NONE, |last| core::mem::replace(last, NONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::{ANY_TAG, Op, OpKind};
    use crate::random::Random;
    use crate::sim::rank::dependencies::Operations;
    use crate::sim::rank::matching::slots::SlotRange;
    use crate::sim::record::Record;
    use std::vec;
    use std::vec::Vec;

    const RANKS: u32 = 5;
    const RECEIVES: u32 = 8_000;

    struct Draw {
        /// True if ranks share buckets.
        shared: bool,
        tags: u64,
        /// Of this many receives one has any sender, and one any tag; 0 without wildcards.
        wild: u64,
    }

    fn receive(random: &mut Random, &Draw { tags, wild, .. }: &Draw) -> Record {
        let mut is_wild = || wild > 0 && random.below(wild) == 0;
        let [any_sender, any_tag] = [is_wild(), is_wild()];
        let peer = u32::try_from(random.below(RANKS.into())).unwrap();
        let tag = random.below(tags);
        let peer = if any_sender { ANY } else { peer };
        let tag = if any_tag { ANY_TAG } else { tag };
        Record::new(Op { kind: OpKind::Receive { peer, size: 1, tag }, cpu: 0, nic: 0 })
    }

    /// Posts receives and takes them by messages, compared with lists of the ranks; returns the
    /// number of records inspected.
    fn compare(draw: &Draw) -> u64 {
        let mut random = Random::new(draw.tags);
        let mut all = vec![Record::default(); RECEIVES as usize];
        let mut records = Records::new(&mut all, &mut [], &mut [], &mut [], &mut []);
        let mut words = vec![7; 2 * RECEIVES.next_power_of_two() as usize];
        let mut slots = vec![Slot::default(); (RANKS * RECEIVES) as usize];
        let mut wildcards = Wildcards::default();
        if draw.wild > 0 {
            wildcards.add(Envelope { sender: ANY, tag: ANY });
        }
        let mut states = vec![Rank::default(); RANKS as usize];
        let mut first = 0;
        for (rank, state) in (0..).zip(&mut states) {
            state.posted = SlotRange::at(rank * RECEIVES);
            (state.part, first) = Part::new(first, RECEIVES / RANKS, wildcards).unwrap();
            if draw.shared {
                state.part = Part::shared(wildcards);
            }
        }
        let mut states = States::new(&mut states, 0);
        let mut table = if draw.shared {
            Waiting::shared(&mut words)
        } else {
            Waiting::new(&mut slots, &mut words)
        };
        let mut expected = vec![Vec::<u32>::new(); RANKS as usize];
        for op in 0..RECEIVES {
            *records.at_mut(op) = receive(&mut random, draw);
            let rank = u32::try_from(random.below(RANKS.into())).unwrap();
            table.post(&mut records, OnRank { rank, op }, states.at_mut(rank));
            expected[rank as usize].push(op);
            if random.below(3) == 0 {
                let rank = u32::try_from(random.below(RANKS.into())).unwrap();
                let message = receive(&mut random, &Draw { wild: 0, ..*draw }).envelope();
                let posted = &mut expected[rank as usize];
                let oldest = posted.iter().position(|&op| records.envelope(op).takes(message));
                let oldest = oldest.map(|at| posted.remove(at));
                let state = states.at_mut(rank);
                let found = table.find_posted(&mut records, rank, state, message);
                assert_eq!(found.map(|found| found.op), oldest);
                assert!(table.take_message(&mut records, rank, state, message).is_none());
                found.into_iter().for_each(|found| table.take_posted(&mut records, state, found));
            }
        }
        let looks = table.looks.get();
        table.list(&mut records, &mut states);
        for (rank, mut left) in (0..).zip(expected) {
            let mut listed: Vec<u32> = table.receives(&records, states.at(rank)).collect();
            listed.sort_unstable();
            left.sort_unstable();
            assert_eq!(listed, left);
        }
        looks
    }

    #[test]
    fn the_oldest_receive_that_takes_a_message_is_found_among_few() {
        for shared in [false, true] {
            compare(&Draw { shared, tags: 3, wild: 0 });
            compare(&Draw { shared, tags: 100, wild: 5 });
            let looks = compare(&Draw { shared, tags: 1 << 20, wild: 0 });
            assert!(looks < 3 * u64::from(RECEIVES), "{looks}");
        }
    }
}
