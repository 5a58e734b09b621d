//! Matching of messages and receives.
//!
//! Posted receives are searched in the order of posting, in their [`slots`]. Unexpected messages
//! are a list in the order in which they were handled.
//!
//! Once a search on a rank has inspected more than [`SHORT`] of them, they are also indexed by
//! (sender, tag) in a hash table ([`index`]), until none is left. A receive with a wildcard is
//! indexed under that; a message looks up four keys, and the slots tell which receive was posted
//! first. Messages are logged in order, and indexed by sender alone and by tag alone for receives
//! with one wildcard ([`wildcards`]). Matching therefore takes constant time however many wait. The
//! exception is messages with a wildcard tag, which only LogGOPSim's schedules have: they are
//! searched linearly.

pub(super) mod index;
pub(super) mod match_index;
pub(super) mod slots;
mod wildcards;

use crate::goal::ANY;
use crate::sim::lent::Checked;
use crate::sim::queues::chain::Chain;
use crate::sim::rank::Rank;
use crate::sim::record::{Kind, Mark, NONE, Slot};
use crate::sim::records::Records;
use crate::sim::release::Operations;
use index::{Key, Keyed};
use match_index::{LogRange, MatchIndex, SHORT};
use slots::{Found, SlotRange, Slots, WILD};

/// Sender and tag of a message, or those that a receive accepts; [`ANY`] is a wildcard.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::sim) struct Envelope {
    pub(in crate::sim) sender: u32,
    pub(in crate::sim) tag: u32,
}

impl Envelope {
    /// Matching rule: the receive's sender is equal or a wildcard; the tags are equal, or either is
    /// a wildcard.
    #[inline]
    pub(in crate::sim) const fn takes(self, message: Self) -> bool {
        (self.sender == ANY || self.sender == message.sender)
            && (self.tag == message.tag || self.tag == ANY || message.tag == ANY)
    }

    /// True if sender or tag is a wildcard.
    #[inline]
    pub(in crate::sim) const fn is_wild(self) -> bool {
        self.sender == ANY || self.tag == ANY
    }

    /// Hash of sender and tag; [`WILD`] if and only if one is a wildcard.
    #[inline]
    pub(in crate::sim) const fn hash(self) -> u32 {
        let Self { sender, tag } = self;
        if self.is_wild() {
            return WILD;
        }
        let mixed =
            sender.wrapping_mul(0x9e37_79b1) ^ tag.wrapping_mul(0x85eb_ca77).rotate_left(15);
        mixed | 1
    }
}

/// Oldest matching message of a list that ends with `last`, with its predecessor; and the number of
/// messages inspected.
#[inline]
pub(in crate::sim) fn first_message(
    ops: &impl Operations,
    last: u32,
    receive: Envelope,
) -> (Option<(u32, u32)>, u32) {
    let mut looks = 0;
    let found = ops.walk(last).find(|&(_, message)| {
        looks += 1;
        receive.takes(ops.envelope(message))
    });
    (found, looks)
}

/// Operation of a rank.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct OnRank {
    /// Its rank.
    pub(in crate::sim) rank: u32,
    /// Its record.
    pub(in crate::sim) op: u32,
}

/// Posted receives and unexpected messages of all ranks.
pub(in crate::sim) trait Matching {
    /// First posted receive of a rank that matches a message.
    fn find_posted(
        &mut self,
        records: &mut Records<'_>,
        number: u32,
        rank: &Rank,
        message: Envelope,
    ) -> Option<Found>;

    /// Posts a receive.
    fn post(&mut self, records: &mut Records<'_>, on: OnRank, rank: &mut Rank);

    /// Removes a posted receive that was found for a message.
    fn take_posted(&mut self, records: &mut Records<'_>, rank: &mut Rank, found: Found);

    /// Queues a message as unexpected.
    fn await_receive(&mut self, records: &mut Records<'_>, on: OnRank, rank: &mut Rank);

    /// Removes the oldest unexpected message of a rank that matches a receive.
    fn take_message(
        &mut self,
        records: &mut Records<'_>,
        number: u32,
        rank: &mut Rank,
        receive: Envelope,
    ) -> Option<u32>;

    /// Prepares `messages` and `receives`, which list the rest by rank.
    #[inline]
    fn prepare_lists(&mut self, _records: &mut Records<'_>, _ranks: &mut Checked<'_, Rank>) {}

    /// Unexpected messages of a rank.
    fn messages(&self, records: &Records<'_>, rank: &Rank) -> impl Iterator<Item = u32>;

    /// Posted receives of a rank.
    fn receives(&self, records: &Records<'_>, rank: &Rank) -> impl Iterator<Item = u32>;
}

/// Matching state of all ranks: slots of posted receives, and match indexes of ranks with many
/// receives.
#[derive(Debug)]
pub(in crate::sim) struct Waiting<'m> {
    slots: Slots<'m>,
    match_indexes: &'m mut [MatchIndex],
    words: &'m mut [u32],
    /// Number of receives, messages and lists inspected.
    #[cfg(test)]
    pub(in crate::sim) looks: core::cell::Cell<u64>,
}

impl<'m> Waiting<'m> {
    pub(in crate::sim) fn new(
        slots: &'m mut [Slot],
        match_indexes: &'m mut [MatchIndex],
        words: &'m mut [u32],
    ) -> Self {
        Self {
            slots: Slots::new(slots, 0),
            match_indexes,
            words,
            #[cfg(test)]
            looks: core::cell::Cell::new(0),
        }
    }

    /// Copies the state of another instance, before its run.
    pub(in crate::sim) fn copy_from(&mut self, other: &Waiting<'_>) {
        self.slots.copy_from(&other.slots);
        self.match_indexes.copy_from_slice(other.match_indexes);
    }

    #[inline]
    #[cfg_attr(not(test), allow(clippy::unused_self, reason = "counts in tests"))]
    fn look(&self, _count: u32) {
        #[cfg(test)]
        self.looks.set(self.looks.get() + u64::from(_count));
    }

    /// [`MatchIndex`] of a rank whose posted receives are indexed.
    #[inline]
    fn indexed(&self, rank: &Rank) -> Option<&MatchIndex> {
        if rank.match_index == NONE {
            return None;
        }
        self.match_indexes.get(rank.match_index as usize).filter(|index| index.posted)
    }
}

impl Matching for Waiting<'_> {
    #[inline]
    fn find_posted(
        &mut self,
        records: &mut Records<'_>,
        _number: u32,
        rank: &Rank,
        message: Envelope,
    ) -> Option<Found> {
        if message.tag != ANY
            && let Some(index) = self.indexed(rank)
        {
            return self.posted_indexed(records, index, message);
        }
        let found = self.slots.find(records, rank.posted, message);
        let looked = rank.posted.looked_at(found);
        self.look(looked + u32::from(found.is_some()));
        if looked > SHORT && rank.match_index != NONE {
            self.index_posted(records, rank);
        }
        found
    }

    #[inline]
    fn post(&mut self, records: &mut Records<'_>, on: OnRank, rank: &mut Rank) {
        let op = on.op;
        let newest = self.slots.post(records, &mut rank.posted, op);
        if self.indexed(rank).is_some() {
            self.index_receive(records, rank.match_index, newest, op);
        }
    }

    #[inline]
    fn take_posted(&mut self, records: &mut Records<'_>, rank: &mut Rank, found: Found) {
        if self.indexed(rank).is_some() {
            self.take_indexed(records, rank.match_index, found.op);
        }
        self.slots.take(&mut rank.posted, found);
        if rank.posted.is_empty()
            && rank.match_index != NONE
            && let Some(index) = self.match_indexes.get_mut(rank.match_index as usize)
        {
            index.posted = false;
        }
    }

    #[inline]
    fn await_receive(&mut self, records: &mut Records<'_>, on: OnRank, rank: &mut Rank) {
        let op = on.op;
        if rank.match_index != NONE
            && rank.unexpected == NONE
            && let Some(index) = self.match_indexes.get(rank.match_index as usize)
            && index.logged
            && index.has_room()
        {
            self.log(records, rank.match_index, op);
        } else {
            records.push(&mut rank.unexpected, op);
        }
    }

    #[inline]
    fn take_message(
        &mut self,
        records: &mut Records<'_>,
        _number: u32,
        rank: &mut Rank,
        receive: Envelope,
    ) -> Option<u32> {
        if rank.match_index != NONE
            && let Some(op) = self.meet_logged(records, rank, receive)
        {
            return Some(op);
        }
        self.meet_listed(records, rank, receive)
    }

    fn messages(&self, records: &Records<'_>, rank: &Rank) -> impl Iterator<Item = u32> {
        let index = self.match_indexes.get(rank.match_index as usize).filter(|index| index.logged);
        let LogRange { first, end } = index.map_or(LogRange::default(), |index| index.log);
        let log = self.words.get(first as usize..end as usize).unwrap_or_default();
        let logged = log.iter().copied().filter(|&op| !records.at(op).is(Mark::Met));
        logged.chain(records.walk(rank.unexpected).map(|(_, op)| op))
    }

    fn receives(&self, _records: &Records<'_>, rank: &Rank) -> impl Iterator<Item = u32> {
        self.slots.receives(rank.posted)
    }
}

/// Receives.
impl Waiting<'_> {
    /// Searches the index. The `amount` of an indexed receive is its slot.
    #[allow(clippy::cast_possible_truncation, reason = "slots are counted in 32 bits")]
    fn posted_indexed(
        &self,
        records: &Records<'_>,
        index: &MatchIndex,
        Envelope { sender, tag }: Envelope,
    ) -> Option<Found> {
        let keys = [(sender, tag), (sender, ANY), (ANY, tag), (ANY, ANY)];
        let of_use = if index.wild > 0 { keys.len() } else { 1 };
        let found = keys.into_iter().take(of_use).filter_map(|(sender, tag)| {
            let key = Key { kind: Kind::Receive, sender, tag };
            let (place, looks) = index::find(records, index.buckets(self.words), key);
            self.look(looks);
            place.first(records).map(|op| Found { slot: records.at(op).amount as u32, op })
        });
        found.min_by_key(|found| found.slot)
    }

    /// Indexes the posted receives of a rank, unless they are.
    #[cold]
    #[inline(never)]
    fn index_posted(&mut self, records: &mut Records<'_>, rank: &Rank) {
        let Some(index) = self.match_indexes.get_mut(rank.match_index as usize) else {
            return;
        };
        if core::mem::replace(&mut index.posted, true) {
            return;
        }
        index.prepare(self.words);
        let SlotRange { first, end } = rank.posted;
        for at in first..end {
            let op = self.slots.at(at).map_or(NONE, |slot| slot.op);
            if op != NONE {
                self.index_receive(records, rank.match_index, at, op);
            }
        }
    }

    fn index_receive(&mut self, records: &mut Records<'_>, match_index: u32, slot: u32, op: u32) {
        let Some(index) = self.match_indexes.get_mut(match_index as usize) else { return };
        let receive = records.at_mut(op);
        receive.amount = u64::from(slot);
        index.wild += u32::from(receive.envelope().is_wild());
        let buckets = index.buckets_mut(self.words);
        let (place, _) = index::find(records, buckets, records.key(op));
        place.append(records, buckets, op);
    }

    fn take_indexed(&mut self, records: &mut Records<'_>, match_index: u32, op: u32) {
        let Some(index) = self.match_indexes.get_mut(match_index as usize) else { return };
        let wild = u32::from(records.envelope(op).is_wild());
        debug_assert!(index.wild >= wild, "what is taken was indexed");
        index.wild = index.wild.saturating_sub(wild);
        let buckets = index.buckets_mut(self.words);
        let (mut place, _) = index::find(records, buckets, records.key(op));
        debug_assert_eq!(place.first(records), Some(op), "the oldest with its key is taken");
        place.remove_first(records, buckets);
    }
}

/// Messages.
impl Waiting<'_> {
    /// Moves unexpected messages of a rank from its list to the log, as far as there is room.
    #[cold]
    #[inline(never)]
    fn log_list(&mut self, records: &mut Records<'_>, rank: &mut Rank) {
        while rank.unexpected != NONE
            && let Some(index) = self.match_indexes.get_mut(rank.match_index as usize)
            && index.has_room()
        {
            index.logged = true;
            index.prepare(self.words);
            let (last, first) = (rank.unexpected, records.at(rank.unexpected).link);
            records.remove(&mut rank.unexpected, last, first);
            self.log(records, rank.match_index, first);
        }
    }

    /// Appends a message to the log of a match index, which must have room.
    fn log(&mut self, records: &mut Records<'_>, match_index: u32, op: u32) {
        let Some(index) = self.match_indexes.get_mut(match_index as usize) else { return };
        debug_assert!(index.has_room(), "it was asked before");
        if let Some(word) = self.words.get_mut(index.log.end as usize) {
            *word = op;
        }
        index.log.end += 1;
        index.waiting += 1;
        if records.at(op).tag == ANY {
            index.any_tag += 1;
            return;
        }
        index.note_logged(self.words, records);
        let buckets = index.buckets_mut(self.words);
        let (place, _) = index::find(records, buckets, records.key(op));
        place.append(records, buckets, op);
    }

    fn meet_logged(
        &mut self,
        records: &mut Records<'_>,
        rank: &Rank,
        receive: Envelope,
    ) -> Option<u32> {
        let index =
            self.match_indexes.get(rank.match_index as usize).filter(|index| index.logged)?;
        let wild = receive.is_wild();
        let one = receive.sender != ANY || receive.tag != ANY;
        let op = if wild && one && index.any_tag == 0 {
            let index = self.match_indexes.get_mut(rank.match_index as usize)?;
            let (found, looks) = index.oldest_by_one(self.words, records, receive)?;
            self.look(looks);
            found?
        } else if wild || index.any_tag > 0 {
            self.oldest_logged(records, rank.match_index, receive)?
        } else {
            let key = Key { kind: Kind::Send, sender: receive.sender, tag: receive.tag };
            let (place, looks) = index::find(records, index.buckets(self.words), key);
            self.look(looks);
            place.first(records)?
        };
        self.take_logged(records, rank.match_index, op);
        Some(op)
    }

    #[inline]
    fn meet_listed(
        &mut self,
        records: &mut Records<'_>,
        rank: &mut Rank,
        receive: Envelope,
    ) -> Option<u32> {
        let (found, looks) = first_message(records, rank.unexpected, receive);
        self.look(looks);
        if let Some((before, message)) = found {
            records.remove(&mut rank.unexpected, before, message);
        }
        if looks > SHORT && rank.match_index != NONE {
            self.log_list(records, rank);
        }
        found.map(|(_, message)| message)
    }

    /// Oldest message of the log that matches `receive`.
    fn oldest_logged(
        &mut self,
        records: &Records<'_>,
        match_index: u32,
        receive: Envelope,
    ) -> Option<u32> {
        let index = self.match_indexes.get_mut(match_index as usize)?;
        let waits = |op| !records.at(op).is(Mark::Met);
        index.advance(self.words, waits);
        let LogRange { first, end } = index.log;
        if (end - first) / 2 > index.waiting.max(SHORT) {
            index.compact(self.words, waits);
        }
        let LogRange { first, end } = index.log;
        let log = self.words.get(first as usize..end as usize)?;
        log.iter().copied().find(|&op| {
            self.look(1);
            let message = records.at(op);
            !message.is(Mark::Met) && receive.takes(message.envelope())
        })
    }

    /// Removes a message from the log and the index.
    fn take_logged(&mut self, records: &mut Records<'_>, match_index: u32, op: u32) {
        let Some(index) = self.match_indexes.get_mut(match_index as usize) else { return };
        records.at_mut(op).mark(Mark::Met);
        index.waiting -= 1;
        if records.at(op).tag == ANY {
            index.any_tag -= 1;
        } else {
            let buckets = index.buckets_mut(self.words);
            let (mut place, _) = index::find(records, buckets, records.key(op));
            debug_assert_eq!(place.first(records), Some(op), "the oldest with its key is taken");
            place.remove_first(records, buckets);
        }
        if index.waiting == 0 {
            index.clear_log(self.words);
        }
    }
}
