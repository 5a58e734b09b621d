//! Match index of a rank with many receives.

use super::Envelope;
use super::wildcards::{self, Wildcards};
use crate::sim::record::NONE;
use crate::sim::records::Records;

/// Number of receives or messages that a search may inspect before they are indexed.
pub(in crate::sim) const SHORT: u32 = 100;

/// Number and kind of a rank's receives.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Receives {
    pub(in crate::sim) count: u64,
    /// True if one of them has a wildcard.
    pub(in crate::sim) wild: bool,
}

/// Words of [`Memory::index_words`](crate::sim::Memory::index_words) for a rank with these
/// receives: buckets, the log of messages and, with wildcards, [`Wildcards`].
pub(in crate::sim) const fn index_words(receives: Receives) -> u64 {
    let Receives { count, wild } = receives;
    let buckets = buckets(count);
    let tables = if wild { wildcards::words(count, buckets) } else { 0 };
    buckets.saturating_add(count).saturating_add(tables)
}

/// Upper bound of the sum of [`index_words`] over any ranks with `receives` receives in all, none
/// of which has a wildcard.
pub(in crate::sim) const fn index_words_most(receives: u64) -> u64 {
    receives.saturating_mul(2)
}

/// Buckets for a rank with `receives` receives: a power of two, about half as many.
const fn buckets(receives: u64) -> u64 {
    (receives / 2).next_power_of_two()
}

/// Match index of a rank with more than a hundred receives: finds receives and messages in constant
/// time where many wait.
///
/// The content on entry to a simulation does not matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct MatchIndex {
    /// First word of the index, and of its buckets.
    buckets: u32,
    /// First word of the log.
    log_begin: u32,
    /// One past the last word of the log; first word of [`Wildcards`].
    log_end: u32,
    /// One past the last word of the index.
    end: u32,
    /// True if the buckets were cleared once; from then on they are empty whenever nothing waits.
    ready: bool,
    /// True if posted receives are indexed.
    pub(in crate::sim) posted: bool,
    /// True if messages are indexed and logged. Later messages, for which the log has no room, are
    /// in the rank's list.
    pub(in crate::sim) logged: bool,
    /// True if messages are also indexed by tag and sender alone; `prepared`: those buckets were
    /// cleared once.
    by_one: bool,
    prepared: bool,
    /// Number of indexed receives with a wildcard.
    pub(in crate::sim) wild: u32,
    /// Range of the log that may have waiting messages.
    pub(in crate::sim) log: LogRange,
    /// Number of waiting messages in the log.
    pub(in crate::sim) waiting: u32,
    /// Number of these with a wildcard tag.
    pub(in crate::sim) any_tag: u32,
}

/// Range of words of a log.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sim) struct LogRange {
    /// Word of the oldest message that may wait.
    pub(in crate::sim) first: u32,
    /// One past the word of the newest message.
    pub(in crate::sim) end: u32,
}

impl MatchIndex {
    /// Index for a rank with these receives, in the words from `first` on; `None` if they exceed 32
    /// bits.
    pub(in crate::sim) fn new(first: u32, receives: Receives) -> Option<Self> {
        let log_begin = u64::from(first) + buckets(receives.count);
        let log_end = u32::try_from(log_begin + receives.count).ok()?;
        let end = u64::from(first).checked_add(index_words(receives))?;
        let (log_begin, end) = (u32::try_from(log_begin).ok()?, u32::try_from(end).ok()?);
        let log = LogRange { first: log_begin, end: log_begin };
        Some(Self { buckets: first, log_begin, log_end, end, log, ..Self::default() })
    }

    /// One past the last word of the index.
    pub(in crate::sim) const fn end(&self) -> u32 {
        self.end
    }

    /// Tables of messages by tag and by sender alone; `None` if no receive has a wildcard.
    fn wildcards<'i>(&self, words: &'i mut [u32]) -> Option<Wildcards<'i>> {
        let log = (self.log_end - self.log_begin) as usize;
        let words = words.get_mut(self.log_begin as usize..self.end as usize)?;
        let (log, words) = words.split_at_mut_checked(log)?;
        Wildcards::new(log, words, (self.log_begin - self.buckets) as usize)
    }

    /// Oldest message of the log that matches a receive with one wildcard, and the number of
    /// messages inspected. The log must have a message, and none with a wildcard tag.
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

    /// Indexes the newest message of the log, which has no wildcard.
    pub(in crate::sim) fn note_logged(&self, words: &mut [u32], records: &Records<'_>) {
        if self.by_one
            && let Some(mut wildcards) = self.wildcards(words)
        {
            wildcards.append(records, self.log.end - 1 - self.log_begin);
        }
    }

    /// Buckets of the index.
    pub(in crate::sim) fn buckets<'i>(&self, words: &'i [u32]) -> &'i [u32] {
        words.get(self.buckets as usize..self.log_begin as usize).unwrap_or_default()
    }

    /// Buckets of the index.
    pub(in crate::sim) fn buckets_mut<'i>(&self, words: &'i mut [u32]) -> &'i mut [u32] {
        words.get_mut(self.buckets as usize..self.log_begin as usize).unwrap_or_default()
    }

    /// Clears the buckets, the first time.
    pub(in crate::sim) fn prepare(&mut self, words: &mut [u32]) {
        if !core::mem::replace(&mut self.ready, true) {
            self.buckets_mut(words).fill(NONE);
        }
    }

    /// True if the log has room for another message.
    pub(in crate::sim) const fn has_room(&self) -> bool {
        self.log.end < self.log_end
    }

    /// Clears the log, in which no message waits.
    pub(in crate::sim) fn clear_log(&mut self, words: &mut [u32]) {
        self.forget_by_one(words);
        self.log = LogRange { first: self.log_begin, end: self.log_begin };
        self.logged = false;
    }

    /// Stops indexing messages by tag and sender alone.
    fn forget_by_one(&mut self, words: &mut [u32]) {
        if core::mem::replace(&mut self.by_one, false)
            && let Some(mut wildcards) = self.wildcards(words)
        {
            wildcards.clear(self.log.end - self.log_begin);
        }
    }

    /// Advances the beginning of the log to the first waiting message.
    pub(in crate::sim) fn advance(&mut self, words: &[u32], waits: impl Fn(u32) -> bool) {
        let LogRange { first, end } = &mut self.log;
        while *first < *end && words.get(*first as usize).is_none_or(|&op| !waits(op)) {
            *first += 1;
        }
    }

    /// Removes messages that no longer wait from the log.
    pub(in crate::sim) fn compact(&mut self, words: &mut [u32], waits: impl Fn(u32) -> bool) {
        // The tables refer to positions in the log.
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
