//! What a rank with many receives keeps of those that wait.

use super::record::NONE;

/// How many receives or messages a search may look at before it has them
/// indexed.
pub(super) const SHORT: u32 = 100;

/// Words of [`Memory::index`](super::Memory::index) for a rank with that many
/// receives: buckets, and the log of messages.
pub(super) const fn index_words(receives: u64) -> u64 {
    buckets(receives).saturating_add(receives)
}

/// Not less than [`index_words`] of any ranks with that many receives in all.
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
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// First word of the buckets, one word past them, and one past the log.
    words: [u32; 3],
    /// Whether the buckets were emptied once, after which they are empty
    /// whenever nothing waits.
    pub(super) ready: bool,
    /// Whether posted receives are indexed.
    pub(super) posted: bool,
    /// Whether messages are indexed and logged; those after them, for which
    /// the log has no room, are in the rank's list.
    pub(super) logged: bool,
    /// Indexed: the last posted receive with a wildcard, of a circular list.
    pub(super) wild: u32,
    /// The log: its first message that may wait, and its end.
    pub(super) log: [u32; 2],
    /// Messages of the log that wait.
    pub(super) waiting: u32,
    /// Of them with a wildcard for a tag.
    pub(super) any_tag: u32,
}

impl Default for Crowd {
    fn default() -> Self {
        Self {
            words: [0; 3],
            ready: false,
            posted: false,
            logged: false,
            wild: NONE,
            log: [0; 2],
            waiting: 0,
            any_tag: 0,
        }
    }
}

impl Crowd {
    /// For a rank with that many receives, with words from `first` on;
    /// `None` where they are not counted in 32 bits.
    pub(super) fn new(first: u32, receives: u32) -> Option<Self> {
        let middle = u64::from(first) + buckets(u64::from(receives));
        let end = u32::try_from(middle + u64::from(receives)).ok()?;
        let middle = u32::try_from(middle).ok()?;
        Some(Self { words: [first, middle, end], log: [middle; 2], ..Self::default() })
    }

    /// One past the words of this rank.
    pub(super) const fn end(&self) -> u32 {
        self.words[2]
    }

    /// Its buckets.
    pub(super) fn buckets<'i>(&self, index: &'i [u32]) -> &'i [u32] {
        let [first, middle, _] = self.words;
        index.get(first as usize..middle as usize).unwrap_or_default()
    }

    /// Its buckets.
    pub(super) fn buckets_mut<'i>(&self, index: &'i mut [u32]) -> &'i mut [u32] {
        let [first, middle, _] = self.words;
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
    pub(super) const fn clear_log(&mut self) {
        self.log = [self.words[1]; 2];
        self.logged = false;
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
