//! What a rank with many receives keeps of those that wait.

use super::matching::Envelope;
use super::record::NONE;
use super::records::Records;
use super::wildcards::{self, Wildcards};

/// How many receives or messages a search may look at before it has them
/// indexed.
pub(super) const SHORT: u32 = 100;

/// The receives of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receives {
    pub(super) count: u64,
    /// Whether one of them has a wildcard.
    pub(super) wild: bool,
}

/// Words of [`Memory::index`](super::Memory::index) for a rank with that many
/// receives: buckets, and the log of messages; and if some have a wildcard,
/// [`Wildcards`].
pub(super) const fn index_words(receives: Receives) -> u64 {
    let Receives { count, wild } = receives;
    let buckets = buckets(count);
    let tables = if wild { wildcards::words(count, buckets) } else { 0 };
    buckets.saturating_add(count).saturating_add(tables)
}

/// Not less than [`index_words`] of any ranks with that many receives in all,
/// none of which has a wildcard.
pub(super) const fn index_words_most(receives: u64) -> u64 {
    receives.saturating_mul(2)
}

/// Buckets for a rank with that many receives: a power of two, of about half
/// as many.
const fn buckets(receives: u64) -> u64 {
    (receives / 2).next_power_of_two()
}

/// The queues of a rank that has more than a hundred receives.
///
/// Content on entry to a simulation does not matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crowd {
    /// First word of the buckets, one word past them, one past the log, and one
    /// past all.
    words: [u32; 4],
    /// Whether the buckets were emptied once, after which they are empty
    /// whenever nothing waits.
    pub(super) ready: bool,
    /// Whether posted receives are indexed.
    pub(super) posted: bool,
    /// Whether messages are indexed and logged; those after them, for which
    /// the log has no room, are in the rank's list.
    pub(super) logged: bool,
    /// Whether messages are found by tag or sender alone as well, and whether
    /// those buckets were emptied once.
    by_one: bool,
    prepared: bool,
    /// Posted receives with a wildcard among those indexed.
    pub(super) wild: u32,
    /// The log: its first message that may wait, and its end.
    pub(super) log: [u32; 2],
    /// Messages of the log that wait.
    pub(super) waiting: u32,
    /// Of them with a wildcard for a tag.
    pub(super) any_tag: u32,
}

impl Crowd {
    /// For a rank with such receives, with words from `first` on; `None` where
    /// they are not counted in 32 bits.
    pub(super) fn new(first: u32, receives: Receives) -> Option<Self> {
        let middle = u64::from(first) + buckets(receives.count);
        let log_end = u32::try_from(middle + receives.count).ok()?;
        let end = u64::from(first).checked_add(index_words(receives))?;
        let (middle, end) = (u32::try_from(middle).ok()?, u32::try_from(end).ok()?);
        Some(Self { words: [first, middle, log_end, end], log: [middle; 2], ..Self::default() })
    }

    /// One past the words of this rank.
    pub(super) const fn end(&self) -> u32 {
        self.words[3]
    }

    /// Messages by tag and by sender alone; `None` without receives that have
    /// wildcards.
    fn wildcards<'i>(&self, index: &'i mut [u32]) -> Option<Wildcards<'i>> {
        let [first, middle, log_end, end] = self.words;
        let words = index.get_mut(middle as usize..end as usize)?;
        let (log, words) = words.split_at_mut_checked((log_end - middle) as usize)?;
        Wildcards::new(log, words, (middle - first) as usize)
    }

    /// The oldest message of the log that a receive meets that has a wildcard,
    /// and how many were looked at. The log has a message, and none of any
    /// tag.
    pub(super) fn oldest_by_one(
        &mut self,
        index: &mut [u32],
        records: &Records<'_>,
        receive: Envelope,
    ) -> Option<(Option<u32>, u32)> {
        let [begin, end] = [self.words[1], self.log[1]];
        let first = self.log[0];
        let mut wildcards = self.wildcards(index)?;
        let mut looks = 0u32;
        if !self.by_one {
            self.by_one = true;
            if !core::mem::replace(&mut self.prepared, true) {
                wildcards.prepare();
            }
            for at in first..end {
                wildcards.append(records, at - begin);
                looks += 1;
            }
        }
        let (found, more) = wildcards.oldest(records, receive);
        Some((found, looks + more))
    }

    /// Notes the newest message of the log, which has a tag.
    pub(super) fn note_logged(&self, index: &mut [u32], records: &Records<'_>) {
        if self.by_one
            && let Some(mut wildcards) = self.wildcards(index)
        {
            wildcards.append(records, self.log[1] - 1 - self.words[1]);
        }
    }

    /// Its buckets.
    pub(super) fn buckets<'i>(&self, index: &'i [u32]) -> &'i [u32] {
        let [first, middle, ..] = self.words;
        index.get(first as usize..middle as usize).unwrap_or_default()
    }

    /// Its buckets.
    pub(super) fn buckets_mut<'i>(&self, index: &'i mut [u32]) -> &'i mut [u32] {
        let [first, middle, ..] = self.words;
        index.get_mut(first as usize..middle as usize).unwrap_or_default()
    }

    /// Empties the buckets, the first time.
    pub(super) fn prepare(&mut self, index: &mut [u32]) {
        if !core::mem::replace(&mut self.ready, true) {
            self.buckets_mut(index).fill(NONE);
        }
    }

    /// Whether the log has room for one more.
    pub(super) const fn has_room(&self) -> bool {
        self.log[1] < self.words[2]
    }

    /// Forgets the log, in which nothing waits.
    pub(super) fn clear_log(&mut self, index: &mut [u32]) {
        self.forget_by_one(index);
        self.log = [self.words[1]; 2];
        self.logged = false;
    }

    /// Finds messages no longer by tag or sender alone.
    fn forget_by_one(&mut self, index: &mut [u32]) {
        if core::mem::replace(&mut self.by_one, false)
            && let Some(mut wildcards) = self.wildcards(index)
        {
            wildcards.clear(self.log[1] - self.words[1]);
        }
    }

    /// Moves the beginning of the log up to what still waits.
    pub(super) fn advance(&mut self, index: &[u32], waits: impl Fn(u32) -> bool) {
        let [first, end] = &mut self.log;
        while *first < *end && index.get(*first as usize).is_none_or(|&op| !waits(op)) {
            *first += 1;
        }
    }

    /// Drops from the log what does not wait any more.
    pub(super) fn compact(&mut self, index: &mut [u32], waits: impl Fn(u32) -> bool) {
        // They are found by their places in it.
        self.forget_by_one(index);
        let [first, end] = &mut self.log;
        let mut kept = *first;
        for at in *first..*end {
            let op = index.get(at as usize).copied().unwrap_or(NONE);
            if waits(op) {
                if let Some(word) = index.get_mut(kept as usize) {
                    *word = op;
                }
                kept += 1;
            }
        }
        *end = kept;
    }
}
