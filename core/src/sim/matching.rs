//! Which message meets which receive.
//!
//! A posted receive is a slot with a hash of its sender and tag; slots of a
//! rank stand in the order of posting, and the first one that matches is
//! taken. The hash of an exact receive differs from that of most messages,
//! so that few records are looked at; a wildcard's is 0 and fits all.
//! Messages that wait are a list in the order in which they were handled.
//!
//! Once a search on a rank has looked at more than [`SHORT`] of them, they
//! are indexed by sender and tag as well ([`super::index`]), until none is
//! left. Receives with a wildcard then form a list of their own, in which
//! the slot says whether one was posted before the receive that the index
//! gives; messages are logged in their order, for receives with a wildcard.
//! So exact receives and messages meet in constant time however many wait.

use super::crowd::{Crowd, SHORT};
use super::index::{self, Key};
use super::list::Records;
use super::rank::Rank;
use super::record::{Kind, NONE, Record, Slot};
use crate::goal::ANY;

/// The key of receives, and of messages, that need a closer look.
pub(super) const WILD: u32 = 0;

/// A hash of sender and tag that is never [`WILD`].
#[inline]
pub(super) const fn key(peer: u32, tag: u32) -> u32 {
    if peer == ANY || tag == ANY {
        return WILD;
    }
    let mixed = peer.wrapping_mul(0x9e37_79b1) ^ tag.wrapping_mul(0x85eb_ca77).rotate_left(15);
    mixed | 1
}

/// The rule, of a receive's peer and tag: sender equal or a wildcard, and tag
/// likewise on either side.
#[inline]
pub(super) const fn fits((peer, wanted): (u32, u32), sender: u32, tag: u32) -> bool {
    (peer == ANY || peer == sender) && (wanted == tag || wanted == ANY || tag == ANY)
}

/// Whether a receive takes a message from `sender` with `tag`.
#[inline]
const fn matches(receive: &Record, sender: u32, tag: u32) -> bool {
    fits((receive.peer, receive.tag), sender, tag)
}

/// Whether a receive takes any sender or any tag.
const fn is_wild(receive: &Record) -> bool {
    receive.peer == ANY || receive.tag == ANY
}

/// A posted receive that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) slot: u32,
    pub(super) op: u32,
}

/// What waits on all ranks: the receives that are posted, and what ranks
/// with many receives keep to find things by.
#[derive(Debug)]
pub(super) struct Waiting<'m> {
    slots: &'m mut [Slot],
    crowds: &'m mut [Crowd],
    index: &'m mut [u32],
    /// Receives, messages and lists of them that were looked at.
    #[cfg(test)]
    pub(super) looks: core::cell::Cell<u64>,
}

impl<'m> Waiting<'m> {
    pub(super) fn new(
        slots: &'m mut [Slot],
        crowds: &'m mut [Crowd],
        index: &'m mut [u32],
    ) -> Self {
        Self {
            slots,
            crowds,
            index,
            #[cfg(test)]
            looks: core::cell::Cell::new(0),
        }
    }

    #[inline]
    #[cfg_attr(not(test), allow(clippy::unused_self, reason = "counts in tests"))]
    fn look(&self, _count: u32) {
        #[cfg(test)]
        self.looks.set(self.looks.get() + u64::from(_count));
    }

    /// The crowd of a rank, where its posted receives are indexed.
    #[inline]
    fn indexed(&self, rank: &Rank) -> Option<&Crowd> {
        if rank.crowd == NONE {
            return None;
        }
        self.crowds.get(rank.crowd as usize).filter(|crowd| crowd.posted)
    }
}

/// Receives.
impl Waiting<'_> {
    /// The first posted receive of `rank` that a message from `sender` with
    /// `tag` meets.
    #[inline]
    pub(super) fn posted(
        &mut self,
        records: &mut Records<'_>,
        rank: &Rank,
        (sender, tag): (u32, u32),
    ) -> Option<Found> {
        if tag != ANY
            && let Some(crowd) = self.indexed(rank)
        {
            return self.posted_indexed(records, crowd, (sender, tag));
        }
        let found = self.posted_in_order(records, rank, (sender, tag));
        let [first, end] = rank.posted;
        if found.map_or(end, |found| found.slot) - first > SHORT && rank.crowd != NONE {
            self.index_posted(records, rank);
        }
        found
    }

    #[inline]
    fn posted_in_order(
        &self,
        records: &Records<'_>,
        rank: &Rank,
        (sender, tag): (u32, u32),
    ) -> Option<Found> {
        let [first, end] = rank.posted;
        let wanted = key(sender, tag);
        let live = self.slots.get(first as usize..end as usize)?;
        for (slot, at) in live.iter().zip(first..) {
            self.look(1);
            let candidate = slot.key == wanted || slot.key == WILD || wanted == WILD;
            if candidate && slot.op != NONE && matches(records.at(slot.op), sender, tag) {
                return Some(Found { slot: at, op: slot.op });
            }
        }
        None
    }

    /// An indexed receive has the number of its slot for an amount.
    #[allow(clippy::cast_possible_truncation, reason = "slots are counted in 32 bits")]
    fn posted_indexed(
        &self,
        records: &Records<'_>,
        crowd: &Crowd,
        (sender, tag): (u32, u32),
    ) -> Option<Found> {
        let key = Key { kind: Kind::Receive, sender, tag };
        let (place, looks) = index::find(records, crowd.buckets(self.index), key);
        self.look(looks);
        let found = |op| Found { slot: records.at(op).amount as u32, op };
        let exact = place.first(records).map(found);
        for (_, op) in records.iter(crowd.wild) {
            self.look(1);
            let wild = found(op);
            if exact.is_some_and(|exact| exact.slot < wild.slot) {
                break;
            }
            if matches(records.at(op), sender, tag) {
                return Some(wild);
            }
        }
        exact
    }

    /// Posts a receive of `rank`.
    #[inline]
    pub(super) fn post(&mut self, records: &mut Records<'_>, rank: &mut Rank, op: u32) {
        let receive = records.at(op);
        let [_, end] = &mut rank.posted;
        let newest = *end;
        let Some(slot) = self.slots.get_mut(newest as usize) else { return };
        *slot = Slot { key: key(receive.peer, receive.tag), op };
        *end += 1;
        rank.unmatched += 1;
        if self.indexed(rank).is_some() {
            self.index_receive(records, rank.crowd, (newest, op));
        }
    }

    /// Indexes the posted receives of a rank with many, if they are not.
    #[cold]
    #[inline(never)]
    fn index_posted(&mut self, records: &mut Records<'_>, rank: &Rank) {
        let Some(crowd) = self.crowds.get_mut(rank.crowd as usize) else { return };
        if core::mem::replace(&mut crowd.posted, true) {
            return;
        }
        crowd.prepare(self.index);
        let [first, end] = rank.posted;
        for at in first..end {
            let slot = self.slots.get(at as usize).copied().unwrap_or_default();
            if slot.op != NONE {
                self.index_receive(records, rank.crowd, (at, slot.op));
            }
        }
    }

    fn index_receive(&mut self, records: &mut Records<'_>, crowd: u32, (slot, op): (u32, u32)) {
        let Some(crowd) = self.crowds.get_mut(crowd as usize) else { return };
        let receive = records.at_mut(op);
        receive.amount = u64::from(slot);
        if is_wild(receive) {
            records.push(&mut crowd.wild, op);
            return;
        }
        let buckets = crowd.buckets_mut(self.index);
        let (place, _) = index::find(records, buckets, Key::of(records, op));
        place.append(records, buckets, op);
    }

    /// Takes a matched receive out.
    #[inline]
    pub(super) fn take(&mut self, records: &mut Records<'_>, rank: &mut Rank, found: Found) {
        if let Some(slot) = self.slots.get_mut(found.slot as usize) {
            *slot = Slot { key: 1, op: NONE };
        }
        if self.indexed(rank).is_some() {
            self.take_indexed(records, rank.crowd, found.op);
        }
        rank.unmatched = rank.unmatched.saturating_sub(1);
        let [first, end] = &mut rank.posted;
        while *first < *end && self.slots.get(*first as usize).is_none_or(|slot| slot.op == NONE) {
            *first += 1;
        }
        if *first == *end
            && rank.crowd != NONE
            && let Some(crowd) = self.crowds.get_mut(rank.crowd as usize)
        {
            crowd.posted = false;
        }
    }

    fn take_indexed(&mut self, records: &mut Records<'_>, crowd: u32, op: u32) {
        let Some(crowd) = self.crowds.get_mut(crowd as usize) else { return };
        if is_wild(records.at(op)) {
            let found = records.iter(crowd.wild).find(|&(_, at)| at == op);
            if let Some((before, op)) = found {
                records.remove(&mut crowd.wild, before, op);
            }
            return;
        }
        let buckets = crowd.buckets_mut(self.index);
        let (place, _) = index::find(records, buckets, Key::of(records, op));
        place.remove_first(records, buckets);
    }
}

/// Messages.
impl Waiting<'_> {
    /// Lets a message wait on `rank` for its receive.
    #[inline]
    pub(super) fn wait(&mut self, records: &mut Records<'_>, rank: &mut Rank, op: u32) {
        if rank.crowd != NONE
            && rank.unexpected == NONE
            && let Some(crowd) = self.crowds.get(rank.crowd as usize)
            && crowd.logged
            && crowd.has_room()
        {
            self.log(records, rank.crowd, op);
        } else {
            records.push(&mut rank.unexpected, op);
        }
    }

    /// Moves messages from the list of a rank with many receives to the log,
    /// as far as that has room.
    #[cold]
    #[inline(never)]
    fn log_list(&mut self, records: &mut Records<'_>, rank: &mut Rank) {
        while rank.unexpected != NONE
            && let Some(crowd) = self.crowds.get_mut(rank.crowd as usize)
            && crowd.has_room()
        {
            crowd.logged = true;
            crowd.prepare(self.index);
            let (last, first) = (rank.unexpected, records.at(rank.unexpected).link);
            records.remove(&mut rank.unexpected, last, first);
            self.log(records, rank.crowd, first);
        }
    }

    /// Appends a message to the log of `crowd`, which has room.
    fn log(&mut self, records: &mut Records<'_>, crowd: u32, op: u32) {
        let Some(crowd) = self.crowds.get_mut(crowd as usize) else { return };
        let [_, end] = &mut crowd.log;
        if let Some(word) = self.index.get_mut(*end as usize) {
            *word = op;
        }
        *end += 1;
        crowd.waiting += 1;
        if records.at(op).tag == ANY {
            crowd.any_tag += 1;
            return;
        }
        let buckets = crowd.buckets_mut(self.index);
        let (place, _) = index::find(records, buckets, Key::of(records, op));
        place.append(records, buckets, op);
    }

    /// Takes out the oldest message of `rank` that `receive` meets.
    #[inline]
    pub(super) fn meet(
        &mut self,
        records: &mut Records<'_>,
        rank: &mut Rank,
        receive: &Record,
    ) -> Option<u32> {
        if rank.crowd != NONE
            && let Some(op) = self.meet_logged(records, rank, receive)
        {
            return Some(op);
        }
        self.meet_listed(records, rank, receive)
    }

    fn meet_logged(
        &mut self,
        records: &mut Records<'_>,
        rank: &Rank,
        receive: &Record,
    ) -> Option<u32> {
        let crowd = self.crowds.get(rank.crowd as usize).filter(|crowd| crowd.logged)?;
        let op = if is_wild(receive) || crowd.any_tag > 0 {
            self.oldest_logged(records, rank.crowd, receive)?
        } else {
            let key = Key { kind: Kind::Send, sender: receive.peer, tag: receive.tag };
            let (place, looks) = index::find(records, crowd.buckets(self.index), key);
            self.look(looks);
            place.first(records)?
        };
        self.take_logged(records, rank.crowd, op);
        Some(op)
    }

    #[inline]
    fn meet_listed(
        &mut self,
        records: &mut Records<'_>,
        rank: &mut Rank,
        receive: &Record,
    ) -> Option<u32> {
        let mut looks = 0;
        let found = records.iter(rank.unexpected).find(|(_, message)| {
            looks += 1;
            let message = records.at(*message);
            matches(receive, message.peer, message.tag)
        });
        self.look(looks);
        if let Some((before, message)) = found {
            records.remove(&mut rank.unexpected, before, message);
        }
        if looks > SHORT && rank.crowd != NONE {
            self.log_list(records, rank);
        }
        found.map(|(_, message)| message)
    }

    /// The oldest message of the log that `receive` meets.
    fn oldest_logged(
        &mut self,
        records: &Records<'_>,
        crowd: u32,
        receive: &Record,
    ) -> Option<u32> {
        let crowd = self.crowds.get_mut(crowd as usize)?;
        let waits = |op| !records.at(op).is_met();
        crowd.advance(self.index, waits);
        let [first, end] = crowd.log;
        if (end - first) / 2 > crowd.waiting.max(SHORT) {
            crowd.compact(self.index, waits);
        }
        let [first, end] = crowd.log;
        let log = self.index.get(first as usize..end as usize)?;
        log.iter().copied().find(|&op| {
            self.look(1);
            let message = records.at(op);
            !message.is_met() && matches(receive, message.peer, message.tag)
        })
    }

    /// Takes a message out of the log and the index.
    fn take_logged(&mut self, records: &mut Records<'_>, crowd: u32, op: u32) {
        let Some(crowd) = self.crowds.get_mut(crowd as usize) else { return };
        records.at_mut(op).set_met();
        crowd.waiting -= 1;
        if records.at(op).tag == ANY {
            crowd.any_tag -= 1;
        } else {
            let buckets = crowd.buckets_mut(self.index);
            let (place, _) = index::find(records, buckets, Key::of(records, op));
            place.remove_first(records, buckets);
        }
        if crowd.waiting == 0 {
            crowd.clear_log();
        }
    }

    /// Every message that waits on `rank`, the oldest first.
    pub(super) fn messages<'r>(
        &'r self,
        records: &'r Records<'_>,
        rank: &Rank,
    ) -> impl Iterator<Item = u32> + 'r {
        let crowd = self.crowds.get(rank.crowd as usize).filter(|crowd| crowd.logged);
        let [first, end] = crowd.map_or([0; 2], |crowd| crowd.log);
        let log = self.index.get(first as usize..end as usize).unwrap_or_default();
        let logged = log.iter().copied().filter(|&op| !records.at(op).is_met());
        logged.chain(records.iter(rank.unexpected).map(|(_, op)| op))
    }

    /// Every receive that is posted on `rank`, in the order of posting.
    pub(super) fn receives(&self, rank: &Rank) -> impl Iterator<Item = u32> + '_ {
        let [first, end] = rank.posted;
        let slots = self.slots.get(first as usize..end as usize).unwrap_or_default();
        slots.iter().map(|slot| slot.op).filter(|&op| op != NONE)
    }
}

#[cfg(test)]
mod tests {
    use crate::goal::ANY;
    use crate::goal::{Op, OpKind, Sink};
    use crate::model::Preset;
    use crate::sim::{
        BuildError, Builder, Crowd, Engine, Entry, Memory, Parameters, Rank, Record, Settings,
        Slot, Survey,
    };
    use std::vec;
    use std::vec::Vec;

    const MANY: u32 = 100_000;

    /// When the receives are posted, and of whom.
    #[derive(Clone, Copy, Debug)]
    enum Posted {
        First,
        AfterTheMessages,
        /// The newest of any sender, then in the order of the messages.
        OldestOfAnyone,
        /// Those with odd tags of any sender, the others then of rank 1.
        OddOfAnyone,
    }

    /// Peer and tag of each receive, in order.
    fn receives(posted: Posted, many: u32) -> Vec<(u32, u32)> {
        let up = 0..many;
        match posted {
            Posted::First | Posted::AfterTheMessages => up.map(|tag| (1, tag)).collect(),
            Posted::OldestOfAnyone => {
                [0].into_iter().chain((1..many).rev()).map(|tag| (ANY, tag)).collect()
            }
            Posted::OddOfAnyone => {
                let odd = up.clone().filter(|tag| tag % 2 == 1).map(|tag| (ANY, tag));
                odd.chain(up.step_by(2).map(|tag| (1, tag))).collect()
            }
        }
    }

    /// Rank 1 sends with tags counting down to rank 0, and at last a message
    /// for which rank 0 waits with its other receives, unless they are first.
    fn play(
        (posted, many): (Posted, u32),
        sink: &mut impl Sink<Error = BuildError>,
    ) -> Result<(), BuildError> {
        let op = |kind| Op { kind, cpu: 0, nic: 0 };
        sink.ranks(2)?;
        sink.begin_rank(0)?;
        let last = sink.op(op(OpKind::Receive { peer: 1, size: 1, tag: many }))?;
        for (peer, tag) in receives(posted, many) {
            let receive = sink.op(op(OpKind::Receive { peer, size: 1, tag }))?;
            if !matches!(posted, Posted::First) {
                sink.requires(receive, last)?;
            }
        }
        sink.end_rank()?;
        sink.begin_rank(1)?;
        for tag in (0..many).rev().chain([many]) {
            sink.op(op(OpKind::Send { peer: 0, size: 1, tag }))?;
        }
        sink.end_rank()
    }

    /// Looks of a run, in which every message meets a receive.
    fn looks(program: (Posted, u32)) -> u64 {
        let mut survey = Survey::default();
        play(program, &mut survey).unwrap();
        let needs = survey.requirements(Settings::default()).unwrap();
        let memory = Memory {
            records: &mut vec![Record::default(); needs.records],
            edges: &mut vec![0; needs.edges],
            ranks: &mut vec![Rank::default(); needs.ranks],
            firsts: &mut vec![0; needs.firsts],
            slots: &mut vec![Slot::default(); needs.slots],
            crowds: &mut vec![Crowd::default(); needs.crowds],
            index: &mut vec![7; needs.index],
            queue: &mut vec![Entry::default(); needs.queue],
            places: &mut vec![0; needs.places],
            scratch: &mut vec![[0; 2]; needs.scratch],
            ..Memory::default()
        };
        let mut builder = Builder::new(memory, needs).unwrap();
        play(program, &mut builder).unwrap();
        let preset: Preset = "loggopsim".parse().unwrap();
        let parameters = Parameters::per_protocol(preset.protocols).unwrap();
        let schedule = builder.finish().unwrap();
        let mut engine = Engine::new(schedule, parameters, Settings::default());
        assert_eq!(engine.run().unwrap().events, u64::from(3 * (program.1 + 1)));
        engine.unfinished(|left| panic!("{left}"));
        engine.waiting.looks.get()
    }

    #[test]
    fn exact_receives_and_the_oldest_messages_meet_in_constant_time_however_many_wait() {
        for posted in [Posted::First, Posted::AfterTheMessages, Posted::OldestOfAnyone] {
            let each = looks((posted, MANY)) / u64::from(MANY);
            assert!(each <= 4, "{each} looks a message, receives posted {posted:?}");
        }
    }

    #[test]
    fn a_receive_of_anyone_takes_no_message_with_another_tag_however_many_wait() {
        assert!(looks((Posted::OddOfAnyone, 4_000)) > 4_000);
    }
}
