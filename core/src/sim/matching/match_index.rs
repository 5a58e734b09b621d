//! What a rank with many receives keeps of those that wait.

use super::Envelope;
use super::wildcards::{self, Wildcards};
use crate::sim::record::NONE;
use crate::sim::records::Records;

/// How many receives or messages a search may look at before it has them
/// indexed.
pub(in crate::sim) const SHORT: u32 = 100;

/// The receives of a rank.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Receives {
    pub(in crate::sim) count: u64,
    /// Whether one of them has a wildcard.
    pub(in crate::sim) wild: bool,
}

/// Words of [`Memory::index_words`](crate::sim::Memory::index_words) for a rank with that many
/// receives: buckets, and the log of messages; and if some have a wildcard,
/// [`Wildcards`].
pub(in crate::sim) const fn index_words(receives: Receives) -> u64 {
    let Receives { count, wild } = receives;
    let buckets = buckets(count);
    let tables = if wild { wildcards::words(count, buckets) } else { 0 };
    buckets.saturating_add(count).saturating_add(tables)
}

/// Not less than [`index_words`] of any ranks with that many receives in all,
/// none of which has a wildcard.
pub(in crate::sim) const fn index_words_most(receives: u64) -> u64 {
    receives.saturating_mul(2)
}

/// Buckets for a rank with that many receives: a power of two, of about half
/// as many.
const fn buckets(receives: u64) -> u64 {
    (receives / 2).next_power_of_two()
}

/// What a rank with more than a hundred receives finds receives and messages by, where
/// many wait.
///
/// Content on entry to a simulation does not matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct MatchIndex {
    /// Its first word, the first of the buckets.
    buckets: u32,
    /// The first word of the log.
    log_begin: u32,
    /// One past the last word of the log, and the first of [`Wildcards`].
    log_end: u32,
    /// One past its words.
    end: u32,
    /// Whether the buckets were emptied once, after which they are empty
    /// whenever nothing waits.
    ready: bool,
    /// Whether posted receives are indexed.
    pub(in crate::sim) posted: bool,
    /// Whether messages are indexed and logged; those after them, for which
    /// the log has no room, are in the rank's list.
    pub(in crate::sim) logged: bool,
    /// Whether messages are found by tag or sender alone as well, and whether
    /// those buckets were emptied once.
    by_one: bool,
    prepared: bool,
    /// Posted receives with a wildcard among those indexed.
    pub(in crate::sim) wild: u32,
    /// Where in the log messages may wait.
    pub(in crate::sim) log: LogRange,
    /// Messages of the log that wait.
    pub(in crate::sim) waiting: u32,
    /// Of them with a wildcard for a tag.
    pub(in crate::sim) any_tag: u32,
}

/// Words of a log.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sim) struct LogRange {
    /// That of the first message that may wait.
    pub(in crate::sim) first: u32,
    /// One past that of the newest message.
    pub(in crate::sim) end: u32,
}

impl MatchIndex {
    /// For a rank with such receives, with words from `first` on; `None` where
    /// they are not counted in 32 bits.
    pub(in crate::sim) fn new(first: u32, receives: Receives) -> Option<Self> {
        let log_begin = u64::from(first) + buckets(receives.count);
        let log_end = u32::try_from(log_begin + receives.count).ok()?;
        let end = u64::from(first).checked_add(index_words(receives))?;
        let (log_begin, end) = (u32::try_from(log_begin).ok()?, u32::try_from(end).ok()?);
        let log = LogRange { first: log_begin, end: log_begin };
        Some(Self { buckets: first, log_begin, log_end, end, log, ..Self::default() })
    }

    /// One past the words of this rank.
    pub(in crate::sim) const fn end(&self) -> u32 {
        self.end
    }

    /// Messages by tag and by sender alone; `None` without receives that have
    /// wildcards.
    fn wildcards<'i>(&self, words: &'i mut [u32]) -> Option<Wildcards<'i>> {
        let log = (self.log_end - self.log_begin) as usize;
        let words = words.get_mut(self.log_begin as usize..self.end as usize)?;
        let (log, words) = words.split_at_mut_checked(log)?;
        Wildcards::new(log, words, (self.log_begin - self.buckets) as usize)
    }

    /// The oldest message of the log that a receive meets that has a wildcard,
    /// and how many were looked at. The log has a message, and none of any
    /// tag.
    pub(in crate::sim) fn oldest_by_one(
        &mut self,
        words: &mut [u32],
        records: &Records<'_>,
        receive: Envelope,
    ) -> Option<(Option<u32>, u32)> {
        let LogRange { first, end } = self.log;
        let mut wildcards = self.wildcards(words)?;
        let mut looks = 0u32;
        if !self.by_one {
            self.by_one = true;
            if !core::mem::replace(&mut self.prepared, true) {
                wildcards.prepare();
            }
            for at in first..end {
                wildcards.append(records, at - self.log_begin);
                looks += 1;
            }
        }
        let (found, more) = wildcards.oldest(records, receive);
        Some((found, looks + more))
    }

    /// Notes the newest message of the log, which has a tag.
    pub(in crate::sim) fn note_logged(&self, words: &mut [u32], records: &Records<'_>) {
        if self.by_one
            && let Some(mut wildcards) = self.wildcards(words)
        {
            wildcards.append(records, self.log.end - 1 - self.log_begin);
        }
    }

    /// Its buckets.
    pub(in crate::sim) fn buckets<'i>(&self, words: &'i [u32]) -> &'i [u32] {
        words.get(self.buckets as usize..self.log_begin as usize).unwrap_or_default()
    }

    /// Its buckets.
    pub(in crate::sim) fn buckets_mut<'i>(&self, words: &'i mut [u32]) -> &'i mut [u32] {
        words.get_mut(self.buckets as usize..self.log_begin as usize).unwrap_or_default()
    }

    /// Empties the buckets, the first time.
    pub(in crate::sim) fn prepare(&mut self, words: &mut [u32]) {
        if !core::mem::replace(&mut self.ready, true) {
            self.buckets_mut(words).fill(NONE);
        }
    }

    /// Whether the log has room for one more.
    pub(in crate::sim) const fn has_room(&self) -> bool {
        self.log.end < self.log_end
    }

    /// Forgets the log, in which nothing waits.
    pub(in crate::sim) fn clear_log(&mut self, words: &mut [u32]) {
        self.forget_by_one(words);
        self.log = LogRange { first: self.log_begin, end: self.log_begin };
        self.logged = false;
    }

    /// Finds messages no longer by tag or sender alone.
    fn forget_by_one(&mut self, words: &mut [u32]) {
        if core::mem::replace(&mut self.by_one, false)
            && let Some(mut wildcards) = self.wildcards(words)
        {
            wildcards.clear(self.log.end - self.log_begin);
        }
    }

    /// Moves the beginning of the log up to what still waits.
    pub(in crate::sim) fn advance(&mut self, words: &[u32], waits: impl Fn(u32) -> bool) {
        let LogRange { first, end } = &mut self.log;
        while *first < *end && words.get(*first as usize).is_none_or(|&op| !waits(op)) {
            *first += 1;
        }
    }

    /// Drops from the log what does not wait any more.
    pub(in crate::sim) fn compact(&mut self, words: &mut [u32], waits: impl Fn(u32) -> bool) {
        // They are found by their places in it.
        self.forget_by_one(words);
        let LogRange { first, end } = &mut self.log;
        let mut kept = *first;
        for at in *first..*end {
            let op = words.get(at as usize).copied().unwrap_or(NONE);
            if waits(op) {
                if let Some(word) = words.get_mut(kept as usize) {
                    *word = op;
                }
                kept += 1;
            }
        }
        *end = kept;
    }
}
