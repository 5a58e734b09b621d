//! Hierarchical timing wheel of bitmaps: the time window of fixed length in which each rank is next
//! due.
//!
//! A slot is a set of ranks. A slot of the first level stands for one window, of the second for 16,
//! of the third for 256; the last slot holds all later ranks. A rank may be in several slots: an
//! early visit costs time but changes nothing. Sets are visited in ascending order, for sequential
//! memory access.

use core::num::NonZeroU64;

/// Slots of a level.
const SLOTS: u64 = 16;
/// Slot of the ranks beyond all levels.
const FAR: u32 = 48;
/// Number of bitmaps, one for each slot.
const BITMAPS: usize = 49;

/// Timing wheel.
#[derive(Debug)]
pub(in crate::sim) struct Wheel<'m> {
    words: &'m mut [u64],
    /// Words of a bitmap, of its summary, and of the summary's summary.
    shape: [usize; 3],
    /// Bitmap of slots that are not empty.
    used: u64,
    /// Earliest window of the ranks in the far slot.
    far_first: u64,
    /// Length of a window, ps.
    pub(in crate::sim) width: NonZeroU64,
    /// Number of the current window.
    now: u64,
    /// Last instant of the current window, ps.
    pub(in crate::sim) last: u64,
}

/// Iteration over a slot that empties it.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Sweep {
    /// First word of the bitmap.
    base: usize,
    /// Unvisited bits of the current word of each level, and the positions of these words.
    bits: [u64; 3],
    at: [usize; 2],
    /// Next word of the top level.
    next: usize,
}

/// Words of one bitmap for `ranks` ranks, level by level.
const fn shape(ranks: usize) -> [usize; 3] {
    let leaves = ranks.div_ceil(64);
    let middle = leaves.div_ceil(64);
    [leaves, middle, middle.div_ceil(64)]
}

/// Words to lend for `ranks` ranks.
pub(in crate::sim) const fn words(ranks: usize) -> usize {
    let [leaves, middle, top] = shape(ranks);
    BITMAPS * (leaves + middle + top)
}

impl<'m> Wheel<'m> {
    /// Empty wheel in at least [`words`] words, in window 0.
    pub(in crate::sim) fn new(words: &'m mut [u64], ranks: usize, width: NonZeroU64) -> Self {
        words.fill(0);
        let (shape, last) = (shape(ranks), width.get() - 1);
        Self { words, shape, used: 0, far_first: u64::MAX, width, now: 0, last }
    }

    /// Advances to a later window.
    pub(in crate::sim) fn go_to(&mut self, window: u64) {
        debug_assert!(window >= self.now, "windows ascend");
        let width = self.width.get();
        self.now = window;
        self.last = window.saturating_mul(width).saturating_add(width - 1);
    }

    /// Notes that `rank` is due at `time`, usually in the next window.
    #[inline]
    pub(in crate::sim) fn add_at(&mut self, rank: u32, time: u64) {
        // Wraps for times up to the last instant of this window.
        let later = time.wrapping_sub(self.last).wrapping_sub(1);
        let next = later < self.width.get();
        self.add(rank, if next { self.now + 1 } else { time / self.width });
    }

    /// Notes that `rank` is due in the current window.
    #[inline]
    pub(in crate::sim) fn add_now(&mut self, rank: u32) {
        self.add(rank, self.now);
    }

    const fn base(&self, slot: u32) -> usize {
        let [leaves, middle, top] = self.shape;
        slot as usize * (leaves + middle + top)
    }

    /// Notes that `rank` is due in `window`, which is not before the current one.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the number of a slot is small")]
    fn add(&mut self, rank: u32, window: u64) {
        let distance = window ^ self.now;
        let slot = if distance < SLOTS {
            (window % SLOTS) as u32
        } else if distance < SLOTS * SLOTS {
            16 + (window / SLOTS % SLOTS) as u32
        } else if distance < SLOTS * SLOTS * SLOTS {
            32 + (window / (SLOTS * SLOTS) % SLOTS) as u32
        } else {
            self.far_first = self.far_first.min(window);
            FAR
        };
        self.used |= 1 << slot;
        let mut base = self.base(slot);
        let mut index = rank as usize;
        for length in self.shape {
            debug_assert!(base + index / 64 < self.words.len(), "no rank {rank}");
            let Some(word) = self.words.get_mut(base + index / 64) else { return };
            let before = *word;
            *word |= 1 << (index % 64);
            if before != 0 {
                return;
            }
            base += length;
            index /= 64;
        }
    }

    /// A window between the current one and the first in which a rank is due, both included; `None`
    /// if no rank is due.
    pub(in crate::sim) const fn next(&self) -> Option<u64> {
        let first = self.used.trailing_zeros();
        let number = first as u64 % SLOTS;
        match first / 16 {
            0 => Some(self.now / SLOTS * SLOTS + number),
            1 => Some(self.now / (SLOTS * SLOTS) * (SLOTS * SLOTS) + number * SLOTS),
            2 => {
                const LAST: u64 = SLOTS * SLOTS * SLOTS;
                Some(self.now / LAST * LAST + number * SLOTS * SLOTS)
            }
            3 => Some(self.far_first),
            _ => None,
        }
    }

    /// Iteration over a slot whose ranks have to be added again, after the wheel advanced to a
    /// window up to [`Wheel::next`]; `None` if no such slot is left.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the number of a slot is small")]
    pub(in crate::sim) const fn nearer(&mut self) -> Option<Sweep> {
        const LAST: u64 = SLOTS * SLOTS * SLOTS;
        if self.used >> SLOTS == 0 {
            return None;
        }
        let middle = 16 + (self.now / SLOTS % SLOTS) as u32;
        let last = 32 + (self.now / (SLOTS * SLOTS) % SLOTS) as u32;
        let slot = if self.used >> FAR != 0 && self.far_first / LAST <= self.now / LAST {
            self.far_first = u64::MAX;
            FAR
        } else if self.used >> last & 1 != 0 {
            last
        } else if self.used >> middle & 1 != 0 {
            middle
        } else {
            return None;
        };
        self.used &= !(1 << slot);
        Some(self.sweep(slot))
    }

    /// Iteration over the ranks due in the current window.
    #[allow(clippy::cast_possible_truncation, reason = "the number of a slot is small")]
    pub(in crate::sim) const fn due(&mut self) -> Sweep {
        let slot = (self.now % SLOTS) as u32;
        self.used &= !(1 << slot);
        self.sweep(slot)
    }

    /// Iteration over `slot`.
    const fn sweep(&self, slot: u32) -> Sweep {
        Sweep { base: self.base(slot), bits: [0; 3], at: [0; 2], next: 0 }
    }

    /// Removes and returns the next rank.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "ranks were counted in a u32")]
    pub(in crate::sim) fn take(&mut self, sweep: &mut Sweep) -> Option<u32> {
        let [leaves, middle, top] = self.shape;
        loop {
            let [leaf, summary, last] = &mut sweep.bits;
            if *leaf != 0 {
                let bit = leaf.trailing_zeros();
                *leaf &= *leaf - 1;
                return Some((sweep.at[0] * 64) as u32 + bit);
            }
            if *summary != 0 {
                sweep.at[0] = sweep.at[1] * 64 + summary.trailing_zeros() as usize;
                *summary &= *summary - 1;
                *leaf = empty(self.words, sweep.base + sweep.at[0]);
                continue;
            }
            if *last != 0 {
                sweep.at[1] = (sweep.next - 1) * 64 + last.trailing_zeros() as usize;
                *last &= *last - 1;
                *summary = empty(self.words, sweep.base + leaves + sweep.at[1]);
                continue;
            }
            if sweep.next >= top {
                return None;
            }
            *last = empty(self.words, sweep.base + leaves + middle + sweep.next);
            sweep.next += 1;
        }
    }
}

/// Reads a word and sets it to 0.
#[inline]
fn empty(words: &mut [u64], at: usize) -> u64 {
    words.get_mut(at).map_or(0, core::mem::take)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::BTreeSet;
    use std::vec;

    #[test]
    fn a_time_is_in_the_window_that_it_divides_to() {
        let width = NonZeroU64::new(10).unwrap();
        let mut memory = vec![0; words(1)];
        let mut wheel = Wheel::new(&mut memory, 1, width);
        for window in [0, 1, 7, 400] {
            wheel.go_to(window);
            for time in wheel.last - 9..wheel.last + 40 {
                wheel.add_at(0, time);
                let found = core::iter::successors(Some(window), |window| Some(window + 1)).find(
                    |window| {
                        wheel.go_to(*window);
                        while let Some(mut sweep) = wheel.nearer() {
                            while let Some(rank) = wheel.take(&mut sweep) {
                                wheel.add_at(rank, time);
                            }
                        }
                        let mut sweep = wheel.due();
                        wheel.take(&mut sweep).is_some()
                    },
                );
                assert_eq!(found, Some(time / 10), "{time} in {window}");
                wheel.now = window;
                wheel.last = window * 10 + 9;
            }
        }
    }

    /// Each rank is due in one window; windows without any may lie between.
    #[test]
    fn every_rank_is_there_in_its_window() {
        let mut random = Random::new(4);
        for ranks in [1u32, 64, 700] {
            let mut memory = vec![7; words(ranks as usize)];
            let mut wheel = Wheel::new(&mut memory, ranks as usize, NonZeroU64::MIN);
            let mut due: vec::Vec<u64> = (0..ranks).map(|_| random.below(1 << 14)).collect();
            for (rank, window) in (0u32..).zip(&due) {
                wheel.add(rank, *window);
            }
            let mut left: BTreeSet<(u64, u32)> =
                (0u32..).zip(&due).map(|(rank, window)| (*window, rank)).collect();
            while let Some(next) = wheel.next() {
                assert!(left.first().is_some_and(|first| next <= first.0));
                let window = random.below(next - wheel.now + 1).max(1) + wheel.now;
                wheel.go_to(window.min(next));
                while let Some(mut sweep) = wheel.nearer() {
                    while let Some(rank) = wheel.take(&mut sweep) {
                        wheel.add(rank, due[rank as usize]);
                    }
                }
                let mut sweep = wheel.due();
                while let Some(rank) = wheel.take(&mut sweep) {
                    assert_eq!(left.pop_first(), Some((wheel.now, rank)));
                    if random.below(4) > 0 {
                        let far = 1 + (random.draw() >> random.below(64) >> 40);
                        due[rank as usize] = wheel.now + far;
                        left.insert((wheel.now + far, rank));
                        wheel.add(rank, wheel.now + far);
                    }
                }
            }
            assert!(left.is_empty());
        }
    }
}
