//! Outlier tests for the ends and the pairs of a network: which of them are slower than the rest.
//!
//! Every pair of ends has one value, the logarithm of a time: `y(i, j) = a(i) + a(j) + e(i, j)`,
//! with an effect `a` of each end and a deviation `e` of each pair. An end is slow if its `a` is an
//! outlier among the effects of the ends; a pair, if its `e` is an outlier among the deviations of
//! the pairs.
//!
//! Effects are estimated by least squares. Their spread contains the differences between ends and
//! the noise of pairs. An end is compared with the mean of the other ends by Student's t with `n -
//! 2` degrees of freedom and the variance of the others, so that one slow end neither hides itself
//! nor makes others look slow. If every end was measured with every other, the test is exact for
//! normally distributed effects and noise (effects are then equally correlated). The slowest pair
//! of an end is excluded from the end's effect, so that one slow pair does not make its ends look
//! slow; for an end with fewer pairs than others the noise of pairs is added.
//!
//! A pair is compared with the sum of its ends' effects, using the variance of the other pairs'
//! residuals: `p` pairs and `n` ends give `p - n - 1` degrees of freedom. An end with a single pair
//! has no effect of its own; its deviation counts as the pair's.
//!
//! The probability of a false report is at most `error`, which is divided among all candidates
//! (Bonferroni). A reported end or pair is excluded and the rest is tested again.
//!
//! That holds for steady noise. A machine that is disturbed for a while slows the pairs that are
//! measured at that time, and may make one of their ends an outlier. So the measurements of each
//! pair are split into two halves of the time, and a finding has to show in each half: its factor
//! there is at least `least_factor`, and above 1 at the probability `error`, which is not divided,
//! since there is a single candidate.

use loggap_core::stats::{Moments, student_upper};

/// Measurement of one pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairValue {
    /// The two ends, each an index below the number of ends.
    pub ends: [usize; 2],
    /// Natural logarithm of the time.
    pub value: f64,
    /// Logarithms of the times measured in the first and in the second half of the time.
    pub halves: [f64; 2],
    /// True once the pair or one of its ends was reported.
    pub named: bool,
}

/// A reported end or pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slower {
    /// Index of the end or of the pair.
    pub which: usize,
    /// Its time divided by that of the others: above 1.
    pub factor: f64,
    /// Lower bound of the factor at the given error probability.
    pub factor_low: f64,
}

/// Thresholds for a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowerOptions {
    /// Probability of a false report of an end, and likewise of a pair.
    pub error: f64,
    /// Smallest factor that is reported.
    pub least_factor: f64,
    /// Lower bound for the standard deviation of a value, that is, the accuracy of one measurement:
    /// a few pairs may agree by chance.
    pub least_deviation: f64,
}

impl Default for SlowerOptions {
    /// 1% false reports, factors from 1.1 on, a standard deviation of at least 2%.
    fn default() -> Self {
        Self { error: 0.01, least_factor: 1.1, least_deviation: 0.02 }
    }
}

/// Estimated effect of one end; working memory of [`slowest_end`] and [`slowest_pair`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EndEffect {
    /// Number of its pairs that are included.
    pairs: u32,
    /// Its effect on the values of its pairs, relative to half of the overall mean.
    effect: f64,
    /// Sum, over its pairs, of the value less the mean and the other end's effect.
    sum: f64,
    /// Largest term of that sum.
    largest: f64,
}

/// Fewest ends among which a slow one can be found: three would leave one degree of freedom.
pub const LEAST_ENDS: usize = 4;
/// Fewest pairs of an end with an effect of its own.
const LEAST_PAIRS: u32 = 2;

/// Finds the slowest end that is an outlier and marks its pairs as named; `None` if no end is slow.
/// `effects` has an element for every end.
#[must_use]
pub fn slowest_end(
    pairs: &mut [PairValue],
    effects: &mut [EndEffect],
    options: &SlowerOptions,
) -> Option<Slower> {
    let slowest = slowest(slow_ends, pairs, effects, options)?;
    for pair in pairs.iter_mut().filter(|pair| pair.ends.contains(&slowest.which)) {
        pair.named = true;
    }
    Some(slowest)
}

/// Finds the slowest pair that is an outlier given its ends' effects and marks it as named; `None`
/// if no pair is slow. Call it once no end is slow any more. `effects` has an element for every
/// end.
#[must_use]
pub fn slowest_pair(
    pairs: &mut [PairValue],
    effects: &mut [EndEffect],
    options: &SlowerOptions,
) -> Option<Slower> {
    let slowest = slowest(slow_pairs, pairs, effects, options)?;
    if let Some(pair) = pairs.get_mut(slowest.which) {
        pair.named = true;
    }
    Some(slowest)
}

/// Time span whose values are compared.
#[derive(Clone, Copy)]
enum Part {
    Whole,
    Half(usize),
}

impl PairValue {
    fn of(&self, part: Part) -> f64 {
        match part {
            Part::Whole => self.value,
            Part::Half(half) => self.halves.get(half).copied().unwrap_or(f64::NAN),
        }
    }
}

/// Tests all ends, or all pairs, on the values of one time span, and calls the last argument with
/// each candidate, its factor and the factor's lower bound.
type Search = fn(Part, &[PairValue], &mut [EndEffect], &SlowerOptions, &mut dyn FnMut(Slower));

/// Slowest candidate of `search` over the whole time that is confirmed in both halves.
fn slowest(
    search: Search,
    pairs: &[PairValue],
    effects: &mut [EndEffect],
    options: &SlowerOptions,
) -> Option<Slower> {
    let is_slow = |found: &Slower| found.factor_low > 1.0 && found.factor >= options.least_factor;
    let mut below = f64::INFINITY;
    loop {
        let mut candidate: Option<Slower> = None;
        search(Part::Whole, pairs, effects, options, &mut |found| {
            let is_slower = candidate.is_none_or(|known| found.factor_low > known.factor_low);
            if is_slow(&found) && found.factor_low < below && is_slower {
                candidate = Some(found);
            }
        });
        let candidate = candidate?;
        let is_again = |half: usize, effects: &mut [EndEffect]| {
            let mut is_again = false;
            search(Part::Half(half), pairs, effects, options, &mut |found| {
                is_again |= found.which == candidate.which && is_slow(&found);
            });
            is_again
        };
        if is_again(0, effects) && is_again(1, effects) {
            return Some(candidate);
        }
        // Slow in one half only: try the next slowest.
        below = candidate.factor_low;
    }
}

/// Error probability of one candidate. Over the whole time `tried` candidates share the error; in a
/// half only the candidate found there is tested.
fn error_of_one(part: Part, tried: usize, options: &SlowerOptions) -> f64 {
    match part {
        Part::Whole => options.error / tried.max(1) as f64,
        Part::Half(_) => options.error,
    }
}

fn slow_ends(
    part: Part,
    pairs: &[PairValue],
    effects: &mut [EndEffect],
    options: &SlowerOptions,
    keep: &mut dyn FnMut(Slower),
) {
    let fit = Fit::of(part, pairs, effects);
    let counts = |end: &&EndEffect| end.pairs >= LEAST_PAIRS;
    let tried = effects.iter().filter(counts).count();
    if tried < LEAST_ENDS {
        return;
    }
    let degrees = u32::try_from(tried - 2).unwrap_or(u32::MAX);
    let quantile = student_upper(error_of_one(part, tried, options), degrees);
    for (which, own) in effects.iter().enumerate().filter(|(_, end)| counts(end)) {
        let (mut others, mut inverse) = (Moments::default(), Moments::default());
        for (_, end) in effects.iter().enumerate().filter(|(at, end)| *at != which && counts(end)) {
            others.add(end.effect);
            inverse.add(1.0 / f64::from(end.pairs));
        }
        let least_variance = options.least_deviation * options.least_deviation;
        let (Some(mean), Some(variance), Some(inverse)) =
            (others.mean(), others.variance(), inverse.mean())
        else {
            continue;
        };
        let own_pairs = f64::from(own.pairs);
        // Its effect without the slowest pair.
        let effect = (own.sum - own.largest) / (own_pairs - 1.0);
        let noise = (1.0 / own_pairs - inverse).max(0.0) * fit.variance.unwrap_or(0.0);
        let variance = variance.max(least_variance / own_pairs) + noise;
        let error = (variance * (1.0 + 1.0 / others.count() as f64)).sqrt();
        keep(slower(which, effect - mean, quantile * error));
    }
}

fn slow_pairs(
    part: Part,
    pairs: &[PairValue],
    effects: &mut [EndEffect],
    options: &SlowerOptions,
    keep: &mut dyn FnMut(Slower),
) {
    let fit = Fit::of(part, pairs, effects);
    let Some(degrees) = fit.degrees.checked_sub(1) else { return };
    let degrees = u32::try_from(degrees).unwrap_or(u32::MAX);
    let quantile = student_upper(error_of_one(part, fit.pairs, options), degrees);
    // Average share of a pair's variance that remains after the effects are fitted.
    let left = fit.degrees as f64 / fit.pairs.max(1) as f64;
    for (which, pair) in counting(pairs, effects.len()) {
        let residual = fit.residual(pair, effects);
        let others = (fit.squares - residual * residual / left) / f64::from(degrees.max(1));
        let least_variance = options.least_deviation * options.least_deviation;
        let error = (others.max(least_variance) / left).sqrt();
        keep(slower(which, residual / left, quantile * error));
    }
}

/// Factor and lower bound from a logarithm and its half-width.
fn slower(which: usize, more: f64, uncertain: f64) -> Slower {
    Slower { which, factor: more.exp(), factor_low: (more - uncertain).exp() }
}

/// Included pairs with their indices: those with finite values that were not reported.
fn counting(pairs: &[PairValue], ends: usize) -> impl Iterator<Item = (usize, &PairValue)> {
    let is_known = |pair: &PairValue| {
        pair.value.is_finite() && pair.halves.iter().all(|value| value.is_finite())
    };
    pairs.iter().enumerate().filter(move |(_, pair)| {
        !pair.named && is_known(pair) && pair.ends.iter().all(|end| *end < ends)
    })
}

/// Least-squares effects of all ends, and the residuals' variance.
struct Fit {
    part: Part,
    /// Mean of all values.
    mean: f64,
    /// Number of included pairs.
    pairs: usize,
    /// Degrees of freedom: pairs less ends with an effect.
    degrees: usize,
    /// Sum of squared residuals.
    squares: f64,
    /// Variance of one pair's noise; `None` without degrees of freedom.
    variance: Option<f64>,
}

impl Fit {
    fn of(part: Part, pairs: &[PairValue], effects: &mut [EndEffect]) -> Self {
        /// Iterations. Each halves the remaining error. Components that pairs hardly determine,
        /// such as the alternating one of a ring, stay near zero.
        const SWEEPS: u32 = 16;
        effects.fill(EndEffect::default());
        let count = effects.len();
        let mut values = Moments::default();
        for (_, pair) in counting(pairs, count) {
            values.add(pair.of(part));
            ends_of(pair, effects, |end, _| end.pairs += 1);
        }
        let mut fit = Self {
            part,
            mean: values.mean().unwrap_or(0.0),
            pairs: usize::try_from(values.count()).unwrap_or(usize::MAX),
            degrees: 0,
            squares: 0.0,
            variance: None,
        };
        for _ in 0..SWEEPS {
            fit.sum_up(pairs, effects);
            for end in effects.iter_mut().filter(|end| end.pairs >= LEAST_PAIRS) {
                end.effect = 0.5 * (end.effect + end.sum / f64::from(end.pairs));
            }
        }
        fit.sum_up(pairs, effects);
        for (_, pair) in counting(pairs, count) {
            let residual = fit.residual(pair, effects);
            fit.squares += residual * residual;
        }
        let with_effect = effects.iter().filter(|end| end.pairs >= LEAST_PAIRS).count();
        fit.degrees = fit.pairs.saturating_sub(with_effect);
        fit.variance = (fit.degrees > 0).then(|| fit.squares / fit.degrees as f64);
        fit
    }

    /// Computes `sum` and `largest` of every end.
    fn sum_up(&self, pairs: &[PairValue], effects: &mut [EndEffect]) {
        for end in effects.iter_mut() {
            (end.sum, end.largest) = (0.0, f64::NEG_INFINITY);
        }
        for (_, pair) in counting(pairs, effects.len()) {
            let more = pair.of(self.part) - self.mean;
            ends_of(pair, effects, |end, other| {
                let left = more - other;
                end.sum += left;
                end.largest = end.largest.max(left);
            });
        }
    }

    fn residual(&self, pair: &PairValue, effects: &[EndEffect]) -> f64 {
        let effects = pair.ends.iter().filter_map(|end| effects.get(*end));
        pair.of(self.part) - self.mean - effects.map(|end| end.effect).sum::<f64>()
    }
}

/// Calls `work` for each end of `pair`, with the effect of the other end.
fn ends_of(pair: &PairValue, effects: &mut [EndEffect], work: impl Fn(&mut EndEffect, f64)) {
    let [one, other] = pair.ends;
    for (own, other) in [(one, other), (other, one)] {
        let other = effects.get(other).map_or(0.0, |end| end.effect);
        if let Some(own) = effects.get_mut(own) {
            work(own, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::random::Random;

    /// All pairs of `ends` ends at 10 us, with the given standard deviations of ends and of pairs.
    fn pairs(ends: usize, (of_ends, noise): (f64, f64), random: &mut Random) -> Vec<PairValue> {
        let effects: Vec<f64> = (0..ends).map(|_| of_ends * random.normal()).collect();
        let all = (0..ends).flat_map(|one| (one + 1..ends).map(move |other| [one, other]));
        let value = |ends: [usize; 2], random: &mut Random| {
            let both: f64 = ends.iter().map(|end| effects[*end]).sum();
            // The noise is the pair's own in part, and in part that of each measurement.
            let own = 1e-5_f64.ln() + both + noise * random.normal() * SHARE;
            let half = |random: &mut Random| own + noise * random.normal();
            measured(ends, [half(random), half(random)])
        };
        all.map(|ends| value(ends, random)).collect()
    }

    /// Pair's own share of the noise: with that of two halves the total is as requested.
    const SHARE: f64 = core::f64::consts::FRAC_1_SQRT_2;

    fn measured(ends: [usize; 2], halves: [f64; 2]) -> PairValue {
        PairValue { ends, value: (halves[0] + halves[1]) / 2.0, halves, named: false }
    }

    fn slow_down(pair: &mut PairValue, factor: f64) {
        let more = factor.ln();
        pair.value += more;
        pair.halves.iter_mut().for_each(|half| *half += more);
    }

    fn slow_end(pairs: &mut [PairValue], ends: usize, options: &SlowerOptions) -> Option<Slower> {
        slowest_end(pairs, &mut vec![EndEffect::default(); ends], options)
    }

    fn slow_pair(pairs: &mut [PairValue], ends: usize, options: &SlowerOptions) -> Option<Slower> {
        slowest_pair(pairs, &mut vec![EndEffect::default(); ends], options)
    }

    /// Number of 1,000 random networks in which an end, and a pair, is reported.
    fn named(
        options: &SlowerOptions,
        seed: u64,
        mut matrix: impl FnMut(&mut Random) -> (usize, Vec<PairValue>),
    ) -> [usize; 2] {
        let mut random = Random::new(seed);
        let mut named = [0; 2];
        for _ in 0..1_000 {
            let (ends, mut pairs) = matrix(&mut random);
            named[0] += usize::from(slow_end(&mut pairs, ends, options).is_some());
            named[1] += usize::from(slow_pair(&mut pairs, ends, options).is_some());
        }
        named
    }

    /// Both errors are 1%, so at most 20 of 1,000 reports are false; only the error decides.
    #[test]
    fn nobody_is_named_where_nobody_stands_out_in_98_of_100() {
        let options = SlowerOptions { least_factor: 1.0, ..SlowerOptions::default() };
        for ends in [4, 5, 6, 8, 16, 32] {
            for of_ends in [0.0, 0.02, 0.05] {
                let [end, pair] =
                    named(&options, 7, |random| (ends, pairs(ends, (of_ends, 0.05), random)));
                std::println!("{ends} ends, {of_ends}: {end} ends and {pair} pairs of 1000");
                assert!(end + pair <= 20, "{end} and {pair} with {ends} ends, {of_ends}");
            }
        }
    }

    /// All pairs of one end take twice as long in one half of the time: it looks slow in that half
    /// and over the whole.
    #[test]
    fn nobody_is_named_on_a_machine_that_is_disturbed_for_half_of_the_time() {
        let options = SlowerOptions { error: 0.005, ..SlowerOptions::default() };
        for ends in [5, 6, 8, 16] {
            for half in [0, 1] {
                let (mut named, mut looks_slow) = (0, 0);
                for seed in 0..500 {
                    let mut random = Random::new(seed);
                    let mut pairs = pairs(ends, (0.0, 0.03), &mut random);
                    for pair in pairs.iter_mut().filter(|pair| pair.ends.contains(&3)) {
                        pair.halves[half] += 2.0_f64.ln();
                        pair.value += 2.0_f64.ln() / 2.0;
                    }
                    let mut blind = pairs.clone();
                    blind.iter_mut().for_each(|pair| pair.halves = [pair.value; 2]);
                    looks_slow += usize::from(slow_end(&mut blind, ends, &options).is_some());
                    named += usize::from(slow_end(&mut pairs, ends, &options).is_some());
                }
                assert!(named <= 5 && looks_slow > 250, "{ends}: {named}, {looks_slow} of 500");
            }
        }
    }

    /// Every end with its four nearest on both sides, and a ring.
    #[test]
    fn nobody_is_named_where_only_some_pairs_were_measured() {
        let options = SlowerOptions { least_factor: 1.0, ..SlowerOptions::default() };
        for (ends, nearest) in [(9, 1), (16, 1), (16, 4), (33, 4)] {
            for of_ends in [0.0, 0.05] {
                let [end, pair] = named(&options, 3, |random| {
                    let mut some = pairs(ends, (of_ends, 0.05), random);
                    some.retain(|pair| {
                        let apart = pair.ends[1] - pair.ends[0];
                        apart.min(ends - apart) <= nearest
                    });
                    (ends, some)
                });
                std::println!("{ends} ends, {nearest} nearest, {of_ends}: {end} and {pair}");
                assert!(end + pair <= 20, "{end} and {pair} with {ends} ends, {of_ends}");
            }
        }
    }

    #[test]
    fn one_end_slowed_by_half_is_found_in_98_of_100() {
        // `matrix` divides 2% among four tests: two quantities, ranks and pairs.
        let options = SlowerOptions { error: 0.005, ..SlowerOptions::default() };
        for ends in [6, 8, 16, 32] {
            let mut random = Random::new(11);
            let mut found = 0;
            for run in 0..1_000 {
                let mut pairs = pairs(ends, (0.0, 0.05), &mut random);
                let slow = run % ends;
                for pair in pairs.iter_mut().filter(|pair| pair.ends.contains(&slow)) {
                    slow_down(pair, 1.5);
                }
                let end = slow_end(&mut pairs, ends, &options);
                found += usize::from(end.is_some_and(|end| end.which == slow));
            }
            std::println!("{ends} ends: {found} of 1000");
            assert!(found >= 980, "{found} of 1000 with {ends} ends");
        }
    }

    #[test]
    fn a_slow_end_is_found_and_nobody_else() {
        let options = SlowerOptions::default();
        for (ends, factor) in [(4, 4.0), (8, 1.3), (16, 1.2)] {
            for seed in 0..20 {
                let mut random = Random::new(seed);
                let mut pairs = pairs(ends, (0.0, 0.03), &mut random);
                let slow = usize::try_from(seed).unwrap() % ends;
                for pair in pairs.iter_mut().filter(|pair| pair.ends.contains(&slow)) {
                    slow_down(pair, factor);
                }
                let found = slow_end(&mut pairs, ends, &options).unwrap();
                assert_eq!(found.which, slow, "{ends} {seed}");
                assert!((found.factor / factor - 1.0).abs() < 0.1 && found.factor_low > 1.0);
                assert_eq!(slow_end(&mut pairs, ends, &options), None, "{ends} {seed}");
                let pair = slow_pair(&mut pairs, ends, &options);
                assert!(pair.is_none_or(|pair| pair.factor < 1.3), "{pair:?}");
            }
        }
    }

    #[test]
    fn a_slow_pair_is_no_slow_end() {
        let options = SlowerOptions::default();
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut pairs = pairs(8, (0.02, 0.03), &mut random);
            slow_down(&mut pairs[11], 2.0);
            assert_eq!(slow_end(&mut pairs, 8, &options), None, "{seed}");
            let found = slow_pair(&mut pairs, 8, &options).unwrap();
            assert!(found.which == 11 && (found.factor / 2.0 - 1.0).abs() < 0.2, "{found:?}");
            assert!(pairs[11].named);
        }
    }

    #[test]
    fn of_one_end_with_many_others_a_slow_pair_is_named() {
        let options = SlowerOptions::default();
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut star = pairs(9, (0.02, 0.03), &mut random);
            star.retain(|pair| pair.ends[0] == 0);
            slow_down(&mut star[3], 2.0);
            assert_eq!(slow_end(&mut star, 9, &options), None, "{seed}");
            assert_eq!(slow_pair(&mut star, 9, &options).unwrap().which, 3, "{seed}");
        }
    }

    #[test]
    fn a_few_pairs_that_agree_by_chance_name_nobody() {
        let values = [1.0, 1.0, 1.0, 1.0, 1.0, 1.02];
        let ends = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
        let pair = |(ends, value): ([usize; 2], f64)| measured(ends, [value; 2]);
        let mut pairs: Vec<_> = ends.into_iter().zip(values).map(pair).collect();
        assert_eq!(slow_end(&mut pairs, 4, &SlowerOptions::default()), None);
        assert_eq!(slow_pair(&mut pairs, 4, &SlowerOptions::default()), None);
        assert_eq!(slow_end(&mut [], 0, &SlowerOptions::default()), None);
        assert_eq!(slow_pair(&mut [], 0, &SlowerOptions::default()), None);
    }
}
