//! Which ends of a network, and which of its pairs, are slower than the rest.
//!
//! Every pair of ends has one value, the logarithm of a time: a slow end adds
//! to the values of all its pairs, a slow pair to its own. Whoever is to be
//! named is compared with all pairs that it has no part in: by Student's t of
//! two means with the variance of the others, so that one slow end hides
//! neither itself nor makes others look slow. The slowest pair of an end does
//! not count for the end, so that one slow pair does not make its ends look
//! slow. The probability to name anybody
//! where nobody is slow is at most `error`, as it is shared by all that are
//! tried (Bonferroni); who is named is left out, and the rest tried again.

use super::Moments;
use super::distribution::student_upper;

/// One pair and what was measured between its ends.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PairValue {
    /// The ends, each a number below the number of ends.
    pub ends: [usize; 2],
    /// Natural logarithm of the time.
    pub value: f64,
    /// Set when the pair, or one of its ends, was named.
    pub named: bool,
}

/// Who is slower.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Slower {
    /// The end, or the index of the pair.
    pub which: usize,
    /// The times of the others, times this, are its own: above 1.
    pub factor: f64,
    /// The least factor at the error asked for.
    pub factor_low: f64,
}

/// What it takes to be named.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SlowerOptions {
    /// Probability to name any end, or any pair, where none is slow.
    pub error: f64,
    /// A smaller factor is not worth naming.
    pub least_factor: f64,
    /// Smallest standard deviation of a value that is believed: how exactly
    /// one pair is measured. Few pairs may agree by chance.
    pub least_deviation: f64,
}

impl Default for SlowerOptions {
    /// Wrong in 1%, from a tenth on, values no more exact than 2%.
    fn default() -> Self {
        Self { error: 0.01, least_factor: 1.1, least_deviation: 0.02 }
    }
}

/// Fewest other pairs that tell how values vary.
const LEAST_OTHERS: u64 = 3;

/// The slowest of `ends` ends that is slower than what has no part in it, and
/// marks its pairs; `None` when there is none.
#[must_use]
pub fn slowest_end(
    pairs: &mut [PairValue],
    ends: usize,
    options: &SlowerOptions,
) -> Option<Slower> {
    let slowest =
        slowest(0..ends, ends, options, |end| split(pairs, |pair| pair.ends.contains(&end)))?;
    for pair in pairs.iter_mut().filter(|pair| pair.ends.contains(&slowest.which)) {
        pair.named = true;
    }
    Some(slowest)
}

/// The slowest pair that is slower than all others, and marks it; `None` when
/// there is none. To be called when no end is slow any more.
#[must_use]
pub fn slowest_pair(pairs: &mut [PairValue], options: &SlowerOptions) -> Option<Slower> {
    let tried = pairs.iter().filter(|pair| !pair.named).count();
    let slowest = slowest(0..pairs.len(), tried, options, |index| {
        let own = pairs.get(index).filter(|pair| !pair.named)?.value;
        let mut others = Moments::default();
        let rest = pairs.iter().enumerate().filter(|(at, pair)| *at != index && !pair.named);
        rest.for_each(|(_, pair)| _ = others.add(pair.value));
        let mut alone = Moments::default();
        alone.add(own).then_some((alone, others))
    })?;
    if let Some(pair) = pairs.get_mut(slowest.which) {
        pair.named = true;
    }
    Some(slowest)
}

/// The values of pairs that are `own`, but the largest, and of those that are
/// not; `None` for less than two own pairs.
fn split(pairs: &[PairValue], own: impl Fn(&PairValue) -> bool) -> Option<(Moments, Moments)> {
    let (mut mine, mut others) = (Moments::default(), Moments::default());
    let mut largest: Option<f64> = None;
    for pair in pairs.iter().filter(|pair| !pair.named) {
        // What is not finite does not count.
        if !own(pair) {
            others.add(pair.value);
        } else if let Some(known) = largest {
            mine.add(known.min(pair.value));
            largest = Some(known.max(pair.value));
        } else {
            largest = Some(pair.value);
        }
    }
    (mine.count() > 0).then_some((mine, others))
}

/// The one of `candidates` with the largest least factor that is slow.
fn slowest(
    candidates: core::ops::Range<usize>,
    tried: usize,
    options: &SlowerOptions,
    values: impl Fn(usize) -> Option<(Moments, Moments)>,
) -> Option<Slower> {
    let tail = options.error / tried.max(1) as f64;
    let mut slowest: Option<Slower> = None;
    for which in candidates {
        let compared =
            values(which).and_then(|(own, others)| compare(&own, &others, tail, options));
        let Some((factor, factor_low)) = compared else { continue };
        if slowest.is_none_or(|known| factor_low > known.factor_low) {
            slowest = Some(Slower { which, factor, factor_low });
        }
    }
    slowest
}

/// How much slower `own` is than `others`, and at least, when that is certain
/// but for a probability of `tail`, and enough.
fn compare(
    own: &Moments,
    others: &Moments,
    tail: f64,
    options: &SlowerOptions,
) -> Option<(f64, f64)> {
    if others.count() < LEAST_OTHERS {
        return None;
    }
    let more = own.mean()? - others.mean()?;
    let variance = others.variance()?.max(options.least_deviation * options.least_deviation);
    let error = libm::sqrt(variance * (1.0 / own.count() as f64 + 1.0 / others.count() as f64));
    let degrees = u32::try_from(others.count() - 1).unwrap_or(u32::MAX);
    let least = more - student_upper(tail, degrees) * error;
    let factor = libm::exp(more);
    (least > 0.0 && factor >= options.least_factor).then(|| (factor, libm::exp(least)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::vec::Vec;

    /// All pairs of `ends` ends at 10 us with a noise of so much.
    fn pairs(ends: usize, noise: f64, random: &mut Random) -> Vec<PairValue> {
        let all = (0..ends).flat_map(|one| (one + 1..ends).map(move |other| [one, other]));
        let value = |random: &mut Random| libm::log(1e-5) + noise * random.normal();
        all.map(|ends| PairValue { ends, value: value(random), named: false }).collect()
    }

    #[test]
    fn nobody_is_named_where_nobody_is_slow_in_98_of_100() {
        let options = SlowerOptions { least_factor: 1.0, ..SlowerOptions::default() };
        for ends in [4, 8] {
            let mut random = Random::new(7);
            let named = (0..500).filter(|_| {
                let mut pairs = pairs(ends, 0.05, &mut random);
                slowest_end(&mut pairs, ends, &options).is_some()
                    | slowest_pair(&mut pairs, &options).is_some()
            });
            let named = named.count();
            assert!(
                named <= 30,
                "{named} of 1000 with {ends} ends: at most 1% for ends, 1% for pairs"
            );
        }
    }

    #[test]
    fn a_slow_end_is_found_and_nobody_else() {
        let options = SlowerOptions::default();
        for (ends, factor) in [(4, 3.0), (8, 1.3), (16, 1.2)] {
            for seed in 0..20 {
                let mut random = Random::new(seed);
                let mut pairs = pairs(ends, 0.03, &mut random);
                let slow = usize::try_from(seed).unwrap() % ends;
                for pair in pairs.iter_mut().filter(|pair| pair.ends.contains(&slow)) {
                    pair.value += libm::log(factor);
                }
                let found = slowest_end(&mut pairs, ends, &options).unwrap();
                assert_eq!(found.which, slow, "{ends} {seed}");
                assert!((found.factor / factor - 1.0).abs() < 0.1 && found.factor_low > 1.0);
                assert_eq!(slowest_end(&mut pairs, ends, &options), None, "{ends} {seed}");
                assert!(slowest_pair(&mut pairs, &options).is_none_or(|pair| pair.factor < 1.3));
            }
        }
    }

    #[test]
    fn a_slow_pair_is_no_slow_end() {
        let options = SlowerOptions::default();
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut pairs = pairs(8, 0.03, &mut random);
            pairs[11].value += libm::log(2.0);
            assert_eq!(slowest_end(&mut pairs, 8, &options), None, "{seed}");
            let found = slowest_pair(&mut pairs, &options).unwrap();
            assert_eq!(found.which, 11, "{seed}");
            assert!(pairs[11].named);
        }
    }

    #[test]
    fn a_few_pairs_that_agree_by_chance_name_nobody() {
        let values = [1.0, 1.0, 1.0, 1.0, 1.0, 1.02];
        let ends = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
        let pair = |(ends, value): ([usize; 2], f64)| PairValue { ends, value, named: false };
        let mut pairs: Vec<_> = ends.into_iter().zip(values).map(pair).collect();
        assert_eq!(slowest_end(&mut pairs, 4, &SlowerOptions::default()), None);
        assert_eq!(slowest_pair(&mut pairs, &SlowerOptions::default()), None);
        assert_eq!(slowest_end(&mut [], 0, &SlowerOptions::default()), None);
    }
}
