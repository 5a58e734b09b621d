//! Pseudo-random numbers from a seed, the same on every machine.

/// SplitMix64 (Steele, Lea, Flood, OOPSLA '14): 64 bits of state, period
/// 2⁶⁴, equidistributed; for schedules, phases and tests, not for secrets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Random(u64);

impl Random {
    /// Generator with this seed. There are no weak seeds.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Generator of stream number `stream` of `seed`: one independent generator for each rank,
    /// created in any order.
    #[must_use]
    pub const fn stream(seed: u64, stream: u64) -> Self {
        let mut outer = Self(seed);
        let mut inner = Self(outer.draw() ^ stream);
        Self(inner.draw())
    }

    /// The next 64 bits.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`, each equally likely (Lemire's rejection);
    /// 0 when `bound` is 0.
    #[allow(clippy::cast_possible_truncation, reason = "the halves of a 128-bit product")]
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let unfair = bound.wrapping_neg() % bound;
        loop {
            let product = self.draw() as u128 * bound as u128;
            if product as u64 >= unfair {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number in [0, 1), a multiple of 2⁻⁵³.
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    pub const fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Exponentially distributed with mean 1.
    pub fn exponential(&mut self) -> f64 {
        // 1 − unit() is in (0, 1].
        -libm::log(1.0 - self.unit())
    }

    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(core::f64::consts::TAU * self.unit())
    }

    /// Puts `items` into a random order, each equally likely (Fisher and
    /// Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        let mut items = items;
        while let Some((last, rest)) = items.split_last_mut() {
            if rest.is_empty() {
                return;
            }
            // `rest.len()` as index stands for `last` itself, which then stays in place.
            let other = usize::try_from(self.below(rest.len() as u64 + 1));
            if let Some(other) = other.ok().and_then(|other| rest.get_mut(other)) {
                core::mem::swap(last, other);
            }
            items = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Moments;

    #[test]
    fn the_published_sequence_of_seed_1234567_comes_out() {
        let mut random = Random::new(1_234_567);
        let first: [u64; 3] = core::array::from_fn(|_| random.draw());
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, published);
    }

    #[test]
    fn numbers_below_a_bound_stay_below_and_reach_all() {
        let mut random = Random::new(7);
        let mut seen = [0u32; 5];
        for _ in 0..10_000 {
            seen[usize::try_from(random.below(5)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&count| (1_800..2_200).contains(&count)), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn a_shuffle_puts_every_item_in_every_place_about_equally_often() {
        let mut random = Random::new(7);
        let mut counts = [[0_u32; 5]; 5];
        for _ in 0..10_000 {
            let mut items = [0, 1, 2, 3, 4];
            random.shuffle(&mut items);
            for (place, &item) in items.iter().enumerate() {
                counts[place][item] += 1;
            }
        }
        assert!(counts.iter().flatten().all(|&c| (1_850..=2_150).contains(&c)), "{counts:?}");
        random.shuffle::<u64>(&mut []);
    }

    #[test]
    fn distributions_have_their_means_and_variances() {
        const COUNT: u32 = 100_000;
        let mut random = Random::new(5);
        let (mut normal, mut exponential) = (Moments::default(), Moments::default());
        let mut hits = 0;
        for _ in 0..COUNT {
            assert!(normal.add(random.normal()) && exponential.add(random.exponential()));
            hits += u32::from(random.chance(0.02));
        }
        let near = |value: Option<f64>, expected: f64| (value.unwrap() - expected).abs() < 0.03;
        assert!(near(normal.mean(), 0.0) && near(normal.variance(), 1.0), "{normal:?}");
        assert!(near(exponential.mean(), 1.0) && near(exponential.variance(), 1.0));
        assert!((1_850..2_150).contains(&hits), "{hits}");
        assert!(!random.chance(0.0) && random.chance(1.0));
    }

    #[test]
    fn streams_of_a_seed_differ() {
        assert_ne!(Random::stream(1, 0).draw(), Random::stream(1, 1).draw());
        assert_eq!(Random::stream(1, 5), Random::stream(1, 5));
    }
}
