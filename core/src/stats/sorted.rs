//! Order statistics of one sample.

use super::Confidence;
use super::distribution::median_ranks;
use super::heap_sort::heap_sort;
use crate::units::{Picos, SignedPicos};
use crate::wide::divide;

/// A quantity with exact midpoints and distances, as medians need them.
pub trait Measure: Copy + Ord {
    /// Midpoint of both, rounded towards zero.
    #[must_use]
    fn halfway(self, other: Self) -> Self;

    /// Absolute difference, saturating.
    #[must_use]
    fn distance(self, other: Self) -> u64;

    /// The nearest `f64`.
    #[must_use]
    fn to_f64(self) -> f64;
}

impl Measure for u64 {
    fn halfway(self, other: Self) -> Self {
        self.midpoint(other)
    }

    fn distance(self, other: Self) -> u64 {
        self.abs_diff(other)
    }

    fn to_f64(self) -> f64 {
        self as f64
    }
}

impl Measure for i64 {
    fn halfway(self, other: Self) -> Self {
        self.midpoint(other)
    }

    fn distance(self, other: Self) -> u64 {
        self.abs_diff(other)
    }

    fn to_f64(self) -> f64 {
        self as f64
    }
}

impl Measure for SignedPicos {
    fn halfway(self, other: Self) -> Self {
        Self(self.0.midpoint(other.0))
    }

    fn distance(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }

    fn to_f64(self) -> f64 {
        self.0 as f64
    }
}

impl Measure for Picos {
    fn halfway(self, other: Self) -> Self {
        Self(self.0.midpoint(other.0))
    }

    fn distance(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }

    fn to_f64(self) -> f64 {
        self.0 as f64
    }
}

/// A sample in ascending order.
#[derive(Clone, Copy, Debug)]
pub struct Sorted<'a, T>(&'a [T]);

/// A median with the order statistics that enclose it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MedianInterval<T> {
    /// Middle element, or the midpoint of the two middle ones (rounded towards zero to the sample's
    /// unit).
    pub median: T,
    /// Lower end of the interval.
    pub low: T,
    /// Upper end of the interval.
    pub high: T,
    /// P(low ≤ true median ≤ high) for any continuous distribution. At least the requested level,
    /// unless the sample is too small.
    pub coverage: f64,
    /// False if even the whole sample, which is then the interval, does not reach the level: fewer
    /// than 6 elements for 95 percent.
    pub reached: bool,
}

impl<'a, T: Measure> Sorted<'a, T> {
    /// Sorts `sample` in place, without further memory.
    #[must_use]
    pub fn new(sample: &'a mut [T]) -> Self {
        heap_sort(sample);
        Self(sample)
    }

    /// Wraps `sample`; `None` if it is not in ascending order.
    #[must_use]
    pub fn from_ascending(sample: &'a [T]) -> Option<Self> {
        let ascending = sample.iter().zip(sample.iter().skip(1)).all(|(a, b)| a <= b);
        ascending.then_some(Self(sample))
    }

    /// The elements in ascending order.
    #[must_use]
    pub const fn as_slice(&self) -> &'a [T] {
        self.0
    }

    /// Middle element, or the midpoint of the two middle ones; `None` for an empty sample.
    #[must_use]
    pub fn median(&self) -> Option<T> {
        let upper = self.0.len() / 2;
        let lower = self.0.len().checked_sub(1)? / 2;
        Some(self.0.get(lower)?.halfway(*self.0.get(upper)?))
    }

    /// Smallest element such that at least `numerator`/`denominator` of the sample are no larger
    /// (nearest rank): 1/4 is the lower quartile, 0 the minimum. `None` for an empty sample, a zero
    /// denominator or a fraction above 1.
    #[must_use]
    pub fn quantile(&self, numerator: u32, denominator: u32) -> Option<T> {
        if numerator > denominator {
            return None;
        }
        let (whole, rest) = divide(self.0.len() as u64, numerator.into(), denominator.into())?;
        let rank = if rest > 0 { whole + 1 } else { whole };
        self.0.get(usize::try_from(rank).ok()?.saturating_sub(1)).copied()
    }

    /// Distribution-free interval of the median: order statistics whose ranks come from the
    /// binomial distribution. `None` for an empty sample.
    #[must_use]
    pub fn median_interval(&self, confidence: Confidence) -> Option<MedianInterval<T>> {
        let median = self.median()?;
        let ranks = median_ranks(self.0.len(), confidence.tail());
        let last = self.0.len().checked_sub(1)?;
        Some(MedianInterval {
            median,
            low: *self.0.get(ranks.outside)?,
            high: *self.0.get(last.checked_sub(ranks.outside)?)?,
            coverage: ranks.coverage,
            reached: ranks.coverage >= confidence.probability() - 1e-9,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;
    use std::vec::Vec;

    #[test]
    fn the_median_is_the_middle_element_or_halfway_between_two() {
        assert_eq!(Sorted::new(&mut [3u64, 1, 2]).median(), Some(2));
        assert_eq!(Sorted::new(&mut [4i64, -3, 2, 9]).median(), Some(3));
        assert_eq!(Sorted::new(&mut [u64::MAX, u64::MAX - 2]).median(), Some(u64::MAX - 1));
        assert_eq!(Sorted::new(&mut [7u64]).median(), Some(7));
        assert_eq!(Sorted::<u64>::new(&mut []).median(), None);
    }

    #[test]
    fn quantiles_are_elements_of_the_sample() {
        let mut sample = [50u64, 10, 30, 20, 40];
        let sorted = Sorted::new(&mut sample);
        assert_eq!(sorted.quantile(0, 1), Some(10));
        assert_eq!(sorted.quantile(1, 4), Some(20));
        assert_eq!(sorted.quantile(1, 2), Some(30));
        assert_eq!(sorted.quantile(1, 1), Some(50));
        assert_eq!(sorted.quantile(2, 1), None);
        assert_eq!(sorted.quantile(0, 0), None);
    }

    #[test]
    fn a_sample_too_small_for_the_level_gives_its_ends_and_says_so() {
        let mut five = [1u64, 2, 3, 4, 5];
        let interval = Sorted::new(&mut five).median_interval(Confidence::P95).unwrap();
        assert_eq!((interval.low, interval.median, interval.high), (1, 3, 5));
        assert!(!interval.reached);
        let mut ten: Vec<u64> = (1..=10).collect();
        let interval = Sorted::new(&mut ten).median_interval(Confidence::P95).unwrap();
        assert_eq!((interval.low, interval.high), (2, 9));
        assert!(interval.reached);
        let single = Sorted::new(&mut [5u64]).median_interval(Confidence::P95).unwrap();
        assert_eq!((single.low, single.high, single.reached), (5, 5, false));
    }

    quickcheck! {
        fn the_interval_encloses_the_median(sample: Vec<u64>, percent: u8) -> bool {
            let mut sample = sample;
            let confidence = Confidence::from_percent(f64::from(percent % 99 + 1)).unwrap();
            match Sorted::new(&mut sample).median_interval(confidence) {
                None => sample.is_empty(),
                Some(i) => i.low <= i.median && i.median <= i.high,
            }
        }
    }
}
