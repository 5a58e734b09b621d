//! A small seeded generator for the order of experiments.

/// `SplitMix64` (Steele, Lea, Flood, OOPSLA '14): one addition and a mix of
/// its bits. Good enough to shuffle, and the same on every machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, 0 for a bound of 0: the high half of the
    /// product of 32 random bits, whose bias of bound/2³² no shuffle shows.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the high half of a product below 2^32 · bound"
    )]
    pub(super) const fn below(&mut self, bound: usize) -> usize {
        ((self.next() >> 32).wrapping_mul(bound as u64) >> 32) as usize
    }

    /// Puts `items` into a random order (Fisher and Yates).
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        let mut items = items;
        while let Some((last, rest)) = items.split_last_mut() {
            // One beyond the rest: it stays where it is.
            if let Some(other) = rest.get_mut(self.below(rest.len() + 1)) {
                core::mem::swap(last, other);
            }
            items = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_gets_every_item_about_equally_often() {
        let mut random = Random::new(7);
        let mut counts = [[0_u32; 5]; 5];
        for _ in 0..10_000 {
            let mut items = [0, 1, 2, 3, 4];
            random.shuffle(&mut items);
            for (place, &item) in items.iter().enumerate() {
                counts[place][item] += 1;
            }
        }
        assert!(
            counts.iter().flatten().all(|&count| (1_850..=2_150).contains(&count)),
            "{counts:?}"
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_order() {
        let mut twice = [Random::new(3), Random::new(3)].map(|mut random| random.next());
        assert_eq!(twice[0], twice[1]);
        Random::new(3).shuffle::<u64>(&mut []);
        Random::new(3).shuffle(&mut twice);
        assert_eq!(Random::new(3).below(0), 0);
    }
}
