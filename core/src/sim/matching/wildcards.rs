//! Unexpected messages indexed by tag alone and by sender alone, for receives with one wildcard.
//!
//! A message is identified by its position in the log of its rank. A matched message stays in a
//! list until it is the first, and is then skipped.

use super::Envelope;
use super::index::{self, Key, Keyed};
use crate::goal::ANY;
use crate::sim::queues::chain::Chain;
use crate::sim::record::{Kind, Mark, NONE};
use crate::sim::records::Records;

/// The field in which all messages of a list agree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Common {
    Tag,
    Sender,
}

/// One table: its buckets, and three words for each position of the log.
#[derive(Debug)]
struct Table<'i> {
    common: Common,
    buckets: &'i mut [u32],
    places: Places<'i>,
}

/// Positions of the log, linked in the buckets.
#[derive(Debug)]
struct Places<'i> {
    common: Common,
    /// Tag or sender.
    keys: &'i mut [u32],
    links: &'i mut [u32],
    afters: &'i mut [u32],
}

fn word(words: &[u32], at: u32) -> u32 {
    debug_assert!((at as usize) < words.len(), "a place of the log");
    words.get(at as usize).copied().unwrap_or(NONE)
}

fn set_word(words: &mut [u32], at: u32, value: u32) {
    if let Some(word) = words.get_mut(at as usize) {
        *word = value;
    }
}

impl Common {
    const fn key(self, word: u32) -> Key {
        match self {
            Self::Tag => Key { kind: Kind::Send, sender: ANY, tag: word },
            Self::Sender => Key { kind: Kind::Send, sender: word, tag: ANY },
        }
    }

    const fn word(self, sender: u32, tag: u32) -> u32 {
        match self {
            Self::Tag => tag,
            Self::Sender => sender,
        }
    }
}

impl Chain for Places<'_> {
    const END: u32 = NONE;

    fn next(&self, at: u32) -> u32 {
        word(self.links, at)
    }

    fn set_next(&mut self, at: u32, next: u32) {
        set_word(self.links, at, next);
    }
}

impl Keyed for Places<'_> {
    fn key(&self, at: u32) -> Key {
        self.common.key(word(self.keys, at))
    }

    fn after(&self, at: u32) -> u32 {
        word(self.afters, at)
    }

    fn set_after(&mut self, at: u32, after: u32) {
        set_word(self.afters, at, after);
    }
}

impl Table<'_> {
    fn append(&mut self, at: u32, word: u32) {
        set_word(self.places.keys, at, word);
        let (place, _) = index::find(&self.places, self.buckets, self.common.key(word));
        place.append(&mut self.places, self.buckets, at);
    }

    /// Clears the bucket of a position of the log.
    fn forget(&mut self, at: u32) {
        let bucket = self.places.key(at).bucket(self.buckets.len());
        if let Some(bucket) = self.buckets.get_mut(bucket) {
            *bucket = NONE;
        }
    }

    /// Oldest unmatched message of `log` with this key, and the number of messages inspected.
    fn oldest(&mut self, log: &[u32], records: &Records<'_>, key: Key) -> (Option<u32>, u32) {
        let (mut place, mut looks) = index::find(&self.places, self.buckets, key);
        while let Some(at) = place.first(&self.places) {
            let op = word(log, at);
            if !records.at(op).is(Mark::Met) {
                return (Some(op), looks);
            }
            place.remove_first(&mut self.places, self.buckets);
            looks += 1;
        }
        (None, looks)
    }
}

/// Both tables of a rank.
#[derive(Debug)]
pub(in crate::sim) struct Wildcards<'i> {
    log: &'i [u32],
    tables: [Table<'i>; 2],
}

/// Words of both tables for a log of `places` positions.
pub(in crate::sim) const fn words(places: u64, buckets: u64) -> u64 {
    places.saturating_mul(6).saturating_add(buckets.saturating_mul(2))
}

impl<'i> Wildcards<'i> {
    /// Tables in `words`, for this log; `None` if there is no room for them.
    pub(in crate::sim) fn new(
        log: &'i [u32],
        words: &'i mut [u32],
        buckets: usize,
    ) -> Option<Self> {
        let places = log.len();
        let (by_tag, rest) = words.split_at_mut_checked(buckets + 3 * places)?;
        let (by_sender, _) = rest.split_at_mut_checked(buckets + 3 * places)?;
        let table = |common, words: &'i mut [u32]| {
            let (buckets, rest) = words.split_at_mut_checked(buckets)?;
            let (keys, rest) = rest.split_at_mut_checked(places)?;
            let (links, afters) = rest.split_at_mut_checked(places)?;
            Some(Table { common, buckets, places: Places { common, keys, links, afters } })
        };
        let tables = [table(Common::Tag, by_tag)?, table(Common::Sender, by_sender)?];
        Some(Self { log, tables })
    }

    /// Clears the buckets.
    pub(in crate::sim) fn prepare(&mut self) {
        for table in &mut self.tables {
            table.buckets.fill(NONE);
        }
    }

    /// Adds the message at a position of the log, which must have a tag.
    pub(in crate::sim) fn append(&mut self, records: &Records<'_>, at: u32) {
        let message = records.at(word(self.log, at));
        debug_assert!(message.tag != ANY, "it would fit any tag");
        for table in &mut self.tables {
            table.append(at, table.common.word(message.peer, message.tag));
        }
    }

    /// Clears the buckets of the first `places` positions of the log.
    pub(in crate::sim) fn clear(&mut self, places: u32) {
        for table in &mut self.tables {
            for at in 0..places {
                table.forget(at);
            }
        }
    }

    /// Oldest message that matches a receive with one wildcard, and the number of messages
    /// inspected.
    pub(in crate::sim) fn oldest(
        &mut self,
        records: &Records<'_>,
        Envelope { sender, tag }: Envelope,
    ) -> (Option<u32>, u32) {
        let [by_tag, by_sender] = &mut self.tables;
        let table = if sender == ANY { by_tag } else { by_sender };
        table.oldest(self.log, records, Key { kind: Kind::Send, sender, tag })
    }
}
