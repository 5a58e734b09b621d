//! The interval of the median of repetitions that follow one another.
//!
//! They are not independent: what disturbs one, and what the machine does at
//! all, goes on for many of them. Order statistics for independent values are
//! then too near to the median. Here the series, in order of time, is cut into
//! batches: how much the share of values above the median differs from batch to
//! batch says how many independent values it is worth (batch means, Law and
//! Kelton), and the order statistics are taken for so many. That share, and not
//! the mean of a batch, as a single pause would outweigh everything in that.
//!
//! What lasts longer than a batch, and what differs between launches, no series
//! can see: the interval is that of this launch in this while.

use loggap_core::stats::{Confidence, Sorted};
use loggap_core::units::Picos;

/// A median and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesInterval {
    /// The median.
    pub median: Picos,
    /// The ends, where there are enough values for any.
    pub ends: Option<(Picos, Picos)>,
    /// Independent values that the series is worth.
    pub effective: u64,
}

/// Batches of a series.
const BATCHES: u16 = 16;

/// The level, in percent. A series is looked at again and again, each time it
/// is half as long again, until the interval is narrow enough. That at none of
/// 22 looks (30 to 200,000 values) the median lies outside takes 2.92 standard
/// errors for 95% in all, not 1.96: what a single look would have for 99.65%.
const LEVEL: f64 = 99.65;

/// By how much a series grows from look to look.
#[must_use]
pub(super) const fn next_look(count: usize) -> usize {
    count + count.div_ceil(2)
}

/// Of `times`, in the order in which they were measured; `sorted` is memory.
/// `None` without any.
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

/// How many values that depend on each other tell as much as one that does
/// not; 1 at least. `None` where there are too few to say.
fn dependence(times: &[Picos], median: Picos) -> Option<f64> {
    let batches = usize::from(BATCHES);
    let size = times.len() / batches;
    if size < 2 {
        return None;
    }
    // The remainder at the begin is left out.
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

    /// A series in which each value keeps `memory` of the one before it, around
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

    /// Of so many series, those whose interval holds the median.
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
        // As a series is stopped: within 2% at a look.
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
