//! Posted receives and unexpected messages of a streamed schedule, by rank, sender and tag.
//!
//! A hash table whose buckets are lists, the oldest record first. The key replaces `seq`, which a
//! waiting record no longer needs. It mixes the rank with sender and tag such that the rank can be
//! recovered from the three: records with equal key, sender and tag are on the same rank.
//!
//! A schedule with wildcards uses lists of its ranks instead.

use super::buckets::Buckets;
use crate::sim::lent::Checked;
use crate::sim::matching::slots::Found;
use crate::sim::matching::{Envelope, Matching, OnRank, first_message};
use crate::sim::queues::chain::Chain;
use crate::sim::rank::Rank;
use crate::sim::record::{Kind, NONE};
use crate::sim::records::Records;
use crate::sim::release::Operations;

/// Odd multiplier, and its inverse modulo 2³².
const ODD: u32 = 0x85eb_ca6b;
const INVERSE: u32 = 0xa5cb_9243;
const _: () = assert!(ODD.wrapping_mul(INVERSE) == 1, "ranks are told from keys");

const fn key(rank: u32, envelope: Envelope) -> u32 {
    rank.wrapping_mul(ODD) ^ envelope.hash()
}

const fn rank_of(key: u32, envelope: Envelope) -> u32 {
    (key ^ envelope.hash()).wrapping_mul(INVERSE)
}

/// Hash table of a schedule without wildcards.
#[derive(Debug)]
pub(in crate::sim) struct WaitingTable<'m> {
    buckets: Buckets<'m>,
}

impl WaitingTable<'_> {
    /// Oldest record of a kind on `rank` with this sender and tag; its slot is its predecessor.
    #[inline]
    fn find(
        &self,
        records: &Records<'_>,
        kind: Kind,
        rank: u32,
        envelope: Envelope,
    ) -> Option<Found> {
        let key = key(rank, envelope);
        let (slot, op) = records.walk(self.buckets.of(key)).find(|&(_, at)| {
            let record = records.at(at);
            record.seq == key && record.kind() == kind && record.envelope() == envelope
        })?;
        Some(Found { slot, op })
    }

    /// Adds a receive or a message of `rank`.
    #[inline]
    fn push(&mut self, records: &mut Records<'_>, rank: u32, at: u32) {
        records.at_mut(at).seq = key(rank, records.envelope(at));
        push(&mut self.buckets, records, at);
    }

    /// Removes a record that [`find`](Self::find) returned.
    #[inline]
    fn take(&mut self, records: &mut Records<'_>, found: Found) {
        let key = records.at(found.op).seq;
        let mut last = self.buckets.of(key);
        records.remove(&mut last, found.slot, found.op);
        self.buckets.replace(key, last);
    }

    /// Doubles the number of buckets when there are more records.
    #[inline]
    fn grow(&mut self, records: &mut Records<'_>, records_used: u32) {
        if self.buckets.are_few(records_used) {
            self.buckets.double(|buckets, last| {
                each(records, last, |records, at| push(buckets, records, at));
            });
        }
    }

    /// Moves all records to the lists of their ranks, in no particular order.
    fn list(&mut self, records: &mut Records<'_>, ranks: &mut Checked<'_, Rank>) {
        self.buckets.drain(|last| {
            each(records, last, |records, at| {
                let rank = rank_of(records.at(at).seq, records.envelope(at));
                let Rank { receives, unexpected, .. } = ranks.at_mut(rank);
                let receive = records.at(at).kind() == Kind::Receive;
                records.push(if receive { receives } else { unexpected }, at);
            });
        });
    }
}

/// Matching of a streamed schedule.
#[derive(Debug)]
pub(in crate::sim) enum StreamedMatching<'m> {
    Table(WaitingTable<'m>),
    /// With wildcards: records are in lists of their ranks.
    Lists,
}

impl<'m> StreamedMatching<'m> {
    pub(super) const fn without_wildcards(buckets: Buckets<'m>) -> Self {
        Self::Table(WaitingTable { buckets })
    }

    /// Doubles the number of buckets when there are more records.
    #[inline]
    pub(super) fn grow(&mut self, records: &mut Records<'_>, records_used: u32) {
        if let Self::Table(table) = self {
            table.grow(records, records_used);
        }
    }
}

/// A slot here is the predecessor of the receive's record.
impl Matching for StreamedMatching<'_> {
    fn find_posted(
        &mut self,
        records: &mut Records<'_>,
        number: u32,
        rank: &Rank,
        message: Envelope,
    ) -> Option<Found> {
        match self {
            Self::Table(table) => table.find(records, Kind::Receive, number, message),
            Self::Lists => {
                let takes = |receive| records.envelope(receive).takes(message);
                let mut receives = records.walk(rank.receives);
                let (slot, op) = receives.find(|&(_, receive)| takes(receive))?;
                Some(Found { slot, op })
            }
        }
    }

    fn post(&mut self, records: &mut Records<'_>, on: OnRank, rank: &mut Rank) {
        match self {
            Self::Table(table) => table.push(records, on.rank, on.op),
            Self::Lists => records.push(&mut rank.receives, on.op),
        }
    }

    fn take_posted(&mut self, records: &mut Records<'_>, rank: &mut Rank, found: Found) {
        match self {
            Self::Table(table) => table.take(records, found),
            Self::Lists => records.remove(&mut rank.receives, found.slot, found.op),
        }
    }

    fn await_receive(&mut self, records: &mut Records<'_>, on: OnRank, rank: &mut Rank) {
        match self {
            Self::Table(table) => table.push(records, on.rank, on.op),
            Self::Lists => records.push(&mut rank.unexpected, on.op),
        }
    }

    fn take_message(
        &mut self,
        records: &mut Records<'_>,
        number: u32,
        rank: &mut Rank,
        receive: Envelope,
    ) -> Option<u32> {
        match self {
            Self::Table(table) => {
                let found = table.find(records, Kind::Send, number, receive)?;
                table.take(records, found);
                Some(found.op)
            }
            Self::Lists => {
                let (before, message) = first_message(records, rank.unexpected, receive).0?;
                records.remove(&mut rank.unexpected, before, message);
                Some(message)
            }
        }
    }

    fn prepare_lists(&mut self, records: &mut Records<'_>, ranks: &mut Checked<'_, Rank>) {
        if let Self::Table(table) = self {
            table.list(records, ranks);
        }
    }

    fn messages(&self, records: &Records<'_>, rank: &Rank) -> impl Iterator<Item = u32> {
        records.walk(rank.unexpected).map(|(_, message)| message)
    }

    fn receives(&self, records: &Records<'_>, rank: &Rank) -> impl Iterator<Item = u32> {
        records.walk(rank.receives).map(|(_, receive)| receive)
    }
}

/// Calls `take` with each record of a circular list; `take` may link it into another one.
fn each(records: &mut Records<'_>, last: u32, mut take: impl FnMut(&mut Records<'_>, u32)) {
    if last == NONE {
        return;
    }
    let mut at = records.next(last);
    loop {
        let after = records.next(at);
        take(records, at);
        if at == last {
            return;
        }
        at = after;
    }
}

fn push(buckets: &mut Buckets<'_>, records: &mut Records<'_>, at: u32) {
    let key = records.at(at).seq;
    let mut last = buckets.of(key);
    records.push(&mut last, at);
    buckets.replace(key, last);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::{Op, OpKind};
    use crate::random::Random;
    use crate::sim::record::Record;
    use std::collections::{BTreeMap, VecDeque};
    use std::vec;
    use std::vec::Vec;

    const RANKS: u32 = 5;
    const RECEIVES: u32 = 20_000;

    fn receive(random: &mut Random, tags: u64) -> Op {
        let peer = u32::try_from(random.below(RANKS.into())).unwrap();
        let tag = u32::try_from(random.below(tags)).unwrap();
        Op { kind: OpKind::Receive { peer, size: 1, tag: tag.into() }, cpu: 0, nic: 0 }
    }

    /// Posts receives and removes them again, the oldest of each rank, sender and tag first;
    /// returns the largest number of members of a bucket at the end.
    fn compare(tags: u64) -> usize {
        let mut random = Random::new(tags);
        let mut all = vec![Record::default(); RECEIVES as usize];
        let mut records = Records::new(&mut all, &mut [], &mut []);
        let mut words = vec![7; RECEIVES.next_power_of_two() as usize];
        let mut table = WaitingTable { buckets: Buckets::new(&mut words) };
        let mut expected: BTreeMap<(u32, u32, u32), VecDeque<u32>> = BTreeMap::new();
        for at in 0..RECEIVES {
            *records.at_mut(at) = Record::new(receive(&mut random, tags));
            let rank = u32::try_from(random.below(RANKS.into())).unwrap();
            table.grow(&mut records, at + 1);
            table.push(&mut records, rank, at);
            let Envelope { sender, tag } = records.envelope(at);
            expected.entry((rank, sender, tag)).or_default().push_back(at);
            if random.below(3) == 0 {
                let rank = u32::try_from(random.below(RANKS.into())).unwrap();
                let other = Record::new(receive(&mut random, tags)).envelope();
                let oldest = expected
                    .get_mut(&(rank, other.sender, other.tag))
                    .and_then(VecDeque::pop_front);
                let found = table.find(&records, Kind::Receive, rank, other);
                assert_eq!(found.map(|found| found.op), oldest);
                assert!(table.find(&records, Kind::Send, rank, other).is_none());
                found.into_iter().for_each(|found| table.take(&mut records, found));
            }
        }
        let most = (0..u32::MAX).step_by(65_537).map(|key| table.buckets.of(key));
        let most = most.map(|last| records.walk(last).count()).max().unwrap();

        let mut ranks = vec![Rank::default(); RANKS as usize];
        let mut ranks = Checked::new(&mut ranks);
        table.list(&mut records, &mut ranks);
        for rank in 0..RANKS {
            let mut listed: Vec<u32> =
                records.walk(ranks.at(rank).receives).map(|(_, at)| at).collect();
            listed.sort_unstable();
            let of_rank = expected.iter().filter(|(key, _)| key.0 == rank);
            let mut left: Vec<u32> = of_rank.flat_map(|(_, left)| left.iter().copied()).collect();
            left.sort_unstable();
            assert_eq!(listed, left);
        }
        most
    }

    #[test]
    fn the_oldest_of_a_rank_a_sender_and_a_tag_is_found_among_few() {
        assert!(compare(3) > 100, "few keys have many members");
        let most = compare(1 << 20);
        assert!(most < 16, "{most} in a bucket");
    }
}
