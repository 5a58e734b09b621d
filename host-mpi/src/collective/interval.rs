//! Confidence interval of the median of a series of repetitions.
//!
//! Consecutive repetitions depend on each other: a disturbance, or a state of
//! the machine, lasts for many of them. Order statistics for independent values
//! then give too narrow an interval. So the series, in order of time, is cut
//! into batches: the variance between batches of the share of values above the
//! median gives the effective sample size (batch means, Law and Kelton), for
//! which the order statistics are taken. It is that share, and not the mean of
//! a batch, because a single pause would dominate the mean.
//!
//! Effects that last longer than a batch, and differences between launches, do
//! not show in a series: the interval is that of this launch at this time.

use loggap_core::stats::{Confidence, Measure, Sorted};
use loggap_core::units::Picos;

/// A median and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesInterval {
    /// Median.
    pub median: Picos,
    /// Ends of the interval; `None` with too few values.
    pub ends: Option<(Picos, Picos)>,
    /// Effective sample size: independent values that the series is worth.
    pub effective: u64,
}

/// Number of batches of a series.
const BATCHES: u16 = 16;

/// Level in percent. The interval of a series is computed whenever the series
/// has grown by half, until it is narrow enough. For a probability of 95% that
/// none of 22 such intervals (30 to 200,000 values) misses the median, each
/// needs 2.92 standard errors instead of 1.96: a single interval has 99.65%
/// then.
const LEVEL: f64 = 99.65;

/// Length of the series at which its interval is computed next.
#[must_use]
pub(super) const fn next_look(count: usize) -> usize {
    count + count.div_ceil(2)
}

/// Median of `values`; `None` without any.
pub fn median<T: Measure>(values: impl IntoIterator<Item = T>) -> Option<T> {
    Sorted::new(&mut values.into_iter().collect::<Vec<T>>()).median()
}

/// Interval of `times`, in the order in which they were measured; `sorted` is
/// scratch memory. `None` without values.
#[must_use]
pub(super) fn of(times: &[Picos], sorted: &mut Vec<Picos>) -> Option<SeriesInterval> {
    sorted.clear();
    sorted.extend_from_slice(times);
    let sorted = Sorted::new(sorted);
    let median = sorted.median()?;
    let level = Confidence::from_percent(LEVEL).unwrap_or_default();
    let worth = dependence(times, median);
    let factor = worth.map_or_else(|| level.normal(), |_| level.student(u32::from(BATCHES) - 1));
    let dependence = worth.unwrap_or(1.0);
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let count = times.len() as f64;
    let rank = (count - factor * (count * dependence).sqrt()) / 2.0;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and not above the count"
    )]
    let (rank, effective) = (rank.max(0.0) as usize, (count / dependence) as u64);
    let values = sorted.as_slice();
    let low = rank.checked_sub(1).and_then(|at| values.get(at));
    let high = values.len().checked_sub(rank).and_then(|at| values.get(at));
    let ends = low.copied().zip(high.copied());
    Some(SeriesInterval { median, ends, effective })
}

/// Number of dependent values that are worth one independent value; at least 1.
/// `None` with too few values to estimate it.
fn dependence(times: &[Picos], median: Picos) -> Option<f64> {
    let batches = usize::from(BATCHES);
    let size = times.len() / batches;
    if size < 2 {
        return None;
    }
    // The remainder at the start is left out.
    let used = times.get(times.len() - size * batches..)?;
    let side = |time: &Picos| match time.cmp(&median) {
        std::cmp::Ordering::Less => -1_i32,
        std::cmp::Ordering::Equal => 0,
        std::cmp::Ordering::Greater => 1,
    };
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let (size_f, used_f) = (size as f64, used.len() as f64);
    let mean = |part: &[Picos]| f64::from(part.iter().map(side).sum::<i32>()) / size_f;
    let means: Vec<f64> = used.chunks(size).map(mean).collect();
    let off_median = f64::from(used.iter().map(|time| side(time).abs()).sum::<i32>()) / used_f;
    if off_median == 0.0 {
        return Some(1.0);
    }
    let average = means.iter().sum::<f64>() / f64::from(BATCHES);
    let variance =
        means.iter().map(|mean| (mean - average).powi(2)).sum::<f64>() / (f64::from(BATCHES) - 1.0);
    Some((size_f * variance / off_median).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::random::Random;
    use loggap_core::units::SignedPicos;

    /// A series with the autocorrelation `memory` of consecutive values, around
    /// a median of 1,000.
    fn series(seed: u64, count: usize, memory: f64) -> Vec<Picos> {
        let mut random = Random::new(seed);
        let mut value = random.normal();
        let mut next = || {
            value = memory * value + (1.0 - memory * memory).sqrt() * random.normal();
            SignedPicos::from_f64(1_000.0 + 100.0 * value).picos().unwrap_or_default()
        };
        (0..count).map(|_| next()).collect()
    }

    const SERIES: u64 = 300;

    /// Number of series, of [`SERIES`], whose interval covers the median.
    fn covered(count: usize, memory: f64) -> usize {
        let holds = |seed| {
            let found = of(&series(seed, count, memory), &mut Vec::new()).unwrap();
            found.ends.is_none_or(|(low, high)| low.0 <= 1_000 && 1_000 <= high.0)
        };
        (0..SERIES).filter(|seed| holds(*seed)).count()
    }

    #[test]
    fn the_interval_holds_the_median_however_much_repetitions_depend_on_each_other() {
        for (count, memory) in [(40, 0.0), (500, 0.0), (500, 0.8), (4_000, 0.97)] {
            let covered = covered(count, memory);
            assert!(covered >= 288, "{count} values, memory {memory}: {covered} of 300");
        }
    }

    #[test]
    fn looking_until_it_is_narrow_still_holds_the_median() {
        // Stopped like a real series, when the interval is within 2%.
        let holds = |seed| {
            let times = series(seed, 4_000, 0.8);
            let mut count = 30;
            loop {
                let part = times.get(..count).unwrap_or(&times);
                let found = of(part, &mut Vec::new()).unwrap();
                let narrow = found.ends.is_some_and(|(low, high)| high.0 - low.0 <= 40);
                if narrow || part.len() == times.len() {
                    return found.ends.is_none_or(|(low, high)| low.0 <= 1_000 && 1_000 <= high.0);
                }
                count = next_look(count);
            }
        };
        let held = (0..SERIES).filter(|seed| holds(*seed)).count();
        assert!(held >= 285, "{held} of 300");
    }

    #[test]
    fn what_depends_on_each_other_is_worth_less() {
        let worth = |memory| of(&series(7, 4_000, memory), &mut Vec::new()).unwrap().effective;
        assert!(worth(0.0) > 2_000, "{}", worth(0.0));
        assert!(worth(0.9) < 1_000, "{}", worth(0.9));
    }

    #[test]
    fn equal_values_have_a_narrow_interval_and_few_have_none() {
        let found = of(&[Picos(5); 64], &mut Vec::new()).unwrap();
        assert_eq!((found.median, found.ends), (Picos(5), Some((Picos(5), Picos(5)))));
        let found = of(&[Picos(5); 8], &mut Vec::new()).unwrap();
        assert_eq!((found.median, found.ends), (Picos(5), None));
        assert_eq!(of(&[], &mut Vec::new()), None);
    }
}
