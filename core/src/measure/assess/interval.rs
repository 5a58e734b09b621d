//! Confidence intervals of all results, from the influence of each sample.
//!
//! Every result is a weighted sum of medians `Σ wᵢ·mᵢ`: a value of a curve depends on the medians
//! of its rounds, a parameter on the points of its line, and `L` on three such parameters. A sample
//! shifts a median by `±1/(2·f·n)`, up if it lies above and down if below, where `f` is the density
//! at the median (its influence function; Huber, "Robust Statistics", section 3.2). Here `1/(2f)`
//! is estimated from the distance of the order statistics on both sides of the median (McKean and
//! Schrader, Communications in Statistics B 13, 1984). With few samples these lie far apart and
//! cover the slower of two speeds; with many they are close to the median, whose density matters.
//!
//! The shifts are summed by blocks of time. With `d_b` the sum over block `b` and all medians, and
//! `e_b = d_b + d_{b+1}`, the squared standard error of the result is `B²/(2(B−1)(B−2))·Σ e_b²`,
//! with `3B/4 − 1` degrees of freedom: overlapping batch means (Meketon and Schmeiser, WSC 1984) of
//! the shifts, with the samples of one block as a cluster (Liang and Zeger, Biometrika 73, 1986).
//! Two lower bounds apply: three quarters of the single blocks' estimate, `B/(B−1)·Σ d_b²`, since
//! few blocks may alternate by chance; and half of the sum of the squared shifts of all samples,
//! which is the variance for independent noise, since shifts cancel if all samples of a size fall
//! into one block. So noise that lasts for several rounds, and noise common to several sizes,
//! quantities or parameters, has its correct effect; independent noise gives the usual standard
//! error.

use super::store::{BLOCKS, SampleStore, block_of, value_in};
use crate::measure::Quantity;
use crate::model::Curve;
use crate::number::{larger, sqrt};
use crate::stats::Confidence;

/// Normal quantile of the order statistics from which the error of a median is estimated. With 1.5
/// the error is hardly too large for few normal samples, and still shows two speeds.
const QUANTILE: f64 = 1.5;

/// Lower bounds of the variance, as a share of the single blocks' estimate, and of independent
/// noise. Shares of 1 would make intervals too wide: the larger of two estimates of one variance is
/// biased.
const LEAST_OF_BLOCKS: f64 = 0.75;
const LEAST_OF_INDEPENDENT: f64 = 0.5;

/// Fewest samples of a median whose error can be estimated.
const FEWEST: usize = 2;

/// Shift of a result by the samples of each block of time, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::measure) struct BlockSums {
    sums: [f64; BLOCKS],
    /// Sum of the squared shifts of all samples.
    independent: f64,
    /// True if a median of a single sample contributes.
    unknown: bool,
}

impl BlockSums {
    /// Adds `weight` times the value of `curve` at `row`.
    pub(in crate::measure) fn add(
        &mut self,
        store: &SampleStore<'_>,
        row: usize,
        curve: Curve,
        weight: f64,
    ) {
        let (quantity, minus_round_trip) = curve.parts();
        let weight = weight / store.divisor(row, curve);
        self.add_median(store, row, quantity, weight);
        if minus_round_trip && !store.holds_gaps() {
            self.add_median(store, row, Quantity::RoundTrip, -weight);
        }
    }

    /// Adds `sign` times the shifts of `other`.
    pub(in crate::measure) fn include(&mut self, other: &Self, sign: f64) {
        for (sum, more) in self.sums.iter_mut().zip(other.sums) {
            *sum += sign * more;
        }
        self.independent += other.independent;
        self.unknown |= other.unknown;
    }

    fn add_median(&mut self, store: &SampleStore<'_>, row: usize, quantity: Quantity, weight: f64) {
        let cell = store.cell(row, quantity);
        self.unknown |= cell.len() < FEWEST && weight != 0.0;
        let step = weight * median_step(store, row, quantity);
        self.independent += cell.len() as f64 * step * step;
        let (lower, upper) = (cell.len() / 2, cell.len().div_ceil(2));
        for (index, &kept) in cell.iter().enumerate() {
            if let Some(sum) = self.sums.get_mut(block_of(kept) as usize) {
                if index < lower {
                    *sum -= step;
                } else if index >= upper {
                    *sum += step;
                }
            }
        }
    }

    /// Standard error, and the Student quantile that turns it into an interval; infinite if too
    /// little was measured.
    pub(in crate::measure) fn error(
        &self,
        store: &SampleStore<'_>,
        confidence: Confidence,
    ) -> (f64, f64) {
        let blocks = store.blocks();
        if self.unknown || blocks < 3 {
            return (f64::INFINITY, 1.0);
        }
        let (mut alone, mut pairs) = (0.0, 0.0);
        for (one, next) in self.sums.iter().zip(self.sums.iter().skip(1)).take(blocks as usize - 1)
        {
            alone += one * one;
            pairs += (one + next) * (one + next);
        }
        let last = self.sums.get(blocks as usize - 1).copied().unwrap_or(0.0);
        alone += last * last;
        let freedom = (3 * blocks / 4 - 1).max(1);
        let blocks = f64::from(blocks);
        let batches = pairs * blocks * blocks / (2.0 * (blocks - 1.0) * (blocks - 2.0));
        let alone = alone * blocks / (blocks - 1.0);
        let least = larger(LEAST_OF_BLOCKS * alone, LEAST_OF_INDEPENDENT * self.independent);
        (sqrt(larger(batches, least)), confidence.student(freedom))
    }

    /// Half-width of the interval at `confidence`.
    pub(in crate::measure) fn half_width(
        &self,
        store: &SampleStore<'_>,
        confidence: Confidence,
    ) -> f64 {
        let (error, quantile) = self.error(store, confidence);
        error * quantile
    }
}

/// Shift of a cell's median by one sample, in picoseconds: the standard error of the median over
/// the square root of the number of samples. That error is the distance of the order statistics
/// that enclose the median with [`QUANTILE`], over twice that quantile.
pub(super) fn median_step(store: &SampleStore<'_>, row: usize, quantity: Quantity) -> f64 {
    let cell = store.cell(row, quantity);
    if cell.len() < FEWEST {
        return 0.0;
    }
    let count = cell.len() as f64;
    let last = count - 1.0;
    let low = larger(0.5 * (last - QUANTILE * sqrt(count)), 0.0);
    let distance = at_rank(cell, last - low) - at_rank(cell, low);
    distance / (2.0 * QUANTILE * sqrt(count))
}

/// Value at a rank (from 0), interpolated between two samples.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank is neither negative nor beyond the samples"
)]
fn at_rank(cell: &[u64], rank: f64) -> f64 {
    let below = rank as usize;
    let part = rank - below as f64;
    let value = |index| cell.get(index).map_or(0.0, |&kept| value_in(kept) as f64);
    let above = if part > 0.0 { below + 1 } else { below };
    value(below) + part * (value(above) - value(below))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Experiment, RowHeader, Sample, StoreRequirements};
    use crate::random::Random;
    use crate::units::Picos;
    use std::vec;

    /// Share of intervals that contain the true mean of half round trips at `rows` sizes, measured
    /// in `sweeps`. `common` is the standard deviation of noise that all rounds of `lasting` sweeps
    /// share.
    fn covered(rows: u32, sweeps: u32, common: f64, lasting: u32) -> f64 {
        let (mut inside, runs) = (0, 300);
        for seed in 0..runs {
            let mut random = Random::new(seed);
            let needed = StoreRequirements::new(rows as usize, sweeps as usize).unwrap();
            let (mut headers, mut values) =
                (vec![RowHeader::default(); needed.rows], vec![0; needed.values]);
            let mut store = SampleStore::new(&mut headers, &mut values);
            let mut shared = 0.0;
            for sweep in 0..sweeps {
                if sweep % lasting == 0 {
                    shared = common * random.normal();
                }
                for size in 1..=rows {
                    let noise = 0.05 * random.normal() + shared;
                    let (quantity, delay) = (Quantity::RoundTrip, Picos::ZERO);
                    let experiment = Experiment { quantity, messages: 1, delay, size };
                    let elapsed = Picos(crate::number::nearest(1e9 * (1.0 + noise)).unsigned_abs());
                    store.insert(&Sample { experiment, delay, elapsed }).unwrap();
                }
            }
            let (mut sums, mut value) = (BlockSums::default(), 0.0);
            for row in 0..rows as usize {
                sums.add(&store, row, Curve::HalfRtt, 1.0 / f64::from(rows));
                value += store.level(row, Curve::HalfRtt).unwrap() / f64::from(rows);
            }
            let ratio = (value - 5e8) / sums.half_width(&store, Confidence::P95);
            inside += u32::from(ratio.abs() <= 1.0);
        }
        f64::from(inside) / runs as f64
    }

    /// Independent noise, noise common to all sizes of a sweep, and noise that lasts for several
    /// sweeps. The standard deviation of 300 runs with a share of 0.95 is 0.013.
    #[test]
    fn intervals_hold_the_truth_in_95_of_100_runs() {
        for (rows, sweeps, common, lasting) in [
            (1, 40, 0.0, 1),
            (20, 40, 0.0, 1),
            (20, 12, 0.0, 1),
            (20, 40, 0.05, 1),
            (20, 160, 0.05, 8),
        ] {
            let share = covered(rows, sweeps, common, lasting);
            let said = (rows, sweeps, common, lasting);
            assert!((0.93..=0.985).contains(&share), "{said:?}: {share}");
        }
    }
}
