//! Choice of n, the number of messages in a round: mean square deviation of the gap from its lines
//! over n (Fig. 4 of "LogGP in Theory and Practice").

use loggap_core::fit::{GrowingLine, Point};
use loggap_core::measure::AssessOptions;
use loggap_core::stats::{Confidence, Sorted};
use loggap_core::units::SignedPicos;
use serde::Serialize;

use super::{Axes, Chart, Coordinates, Interval, Series};
use crate::drive::perftest::messages::SizeGaps;
use crate::drive::{Analysis, AnalysisError};
use crate::profile::mean_square;
use crate::samples::Row;

/// Units of a deviation in a square second: squares of 100 ps, which saturate at 0.4 s.
const SQUARE_SECOND: f64 = 1e20;

/// Sizes described by one line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Span {
    pub(crate) first_bytes: u64,
    pub(crate) last_bytes: u64,
}

/// Deviation with one number of messages: median of the blocks' mean over the ranges, with its
/// interval; `None` if rounds of a size were lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Deviation {
    pub(crate) messages: u32,
    pub(crate) gap_lsq_s2: Option<f64>,
    pub(crate) gap_lsq_s2_lo: Option<f64>,
    pub(crate) gap_lsq_s2_hi: Option<f64>,
}

/// Deviations over the number of messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Deviations {
    /// Ranges of sizes, found from the gaps of all numbers of messages together.
    pub(crate) ranges: Vec<Span>,
    #[serde(rename = "messages")]
    pub(crate) rows: Vec<Deviation>,
    /// Smallest number of messages within the interval of the least deviation; `None` if that is
    /// too wide to say.
    #[serde(rename = "chosen_messages")]
    pub(crate) chosen: Option<u32>,
}

/// Ratio of an interval's ends from which on it is too wide to choose by.
const WIDE: f64 = 10.0;

impl Deviations {
    /// Deviations of `sizes`, ascending, measured with `counts` messages.
    ///
    /// # Errors
    ///
    /// [`AnalysisError`] if there are no gaps.
    pub(crate) fn of(sizes: &[SizeGaps], counts: &[u32]) -> Result<Self, AnalysisError> {
        let ranges = ranges(sizes)?;
        let blocks = sizes.iter().map(|size| size.blocks.len()).min().unwrap_or(0);
        let row = |(index, &messages): (usize, &u32)| {
            let each = (0..blocks).map(|block| deviation(sizes, &ranges, block, index));
            // Blocks with a loss have none.
            let mut each: Vec<u64> = each.flatten().collect();
            let found = Sorted::new(&mut each).median_interval(Confidence::P95);
            #[allow(clippy::cast_precision_loss, reason = "a deviation of few digits")]
            let square_seconds = |units: u64| units as f64 / SQUARE_SECOND;
            Deviation {
                messages,
                gap_lsq_s2: found.map(|found| square_seconds(found.median)),
                gap_lsq_s2_lo: found.map(|found| square_seconds(found.low)),
                gap_lsq_s2_hi: found.map(|found| square_seconds(found.high)),
            }
        };
        let rows: Vec<Deviation> = counts.iter().enumerate().map(row).collect();
        Ok(Self { ranges, chosen: chosen(&rows), rows })
    }

    /// Fig. 4.
    pub(crate) fn chart(&self, transport: &str) -> Chart {
        let micros = |square_seconds: f64| square_seconds * 1e12;
        let (mut points, mut intervals) = (Vec::new(), Vec::new());
        for row in &self.rows {
            let x = f64::from(row.messages);
            points.push(Coordinates { x, y: row.gap_lsq_s2.map_or(f64::NAN, micros) });
            if let (Some(low), Some(high)) = (row.gap_lsq_s2_lo, row.gap_lsq_s2_hi) {
                intervals.push(Interval { x, low: micros(low), high: micros(high) });
            }
        }
        let chosen = self.chosen.map(|n| format!("; n = {n} suffices")).unwrap_or_default();
        let label = format!("{transport}, mean of the ranges");
        Chart {
            title: format!("Least squares deviation of the gap{chosen}"),
            x_label: "messages n".into(),
            y_label: "lsq (Eq. 6) [µs²]".into(),
            axes: Axes::Powers,
            nested: false,
            series: vec![Series::new(label, points).with_intervals(intervals)],
        }
    }
}

/// Ranges of the median gaps over all numbers of messages, a value a block.
fn ranges(sizes: &[SizeGaps]) -> Result<Vec<Span>, AnalysisError> {
    let mut rows = Vec::new();
    for SizeGaps { size, blocks, .. } in sizes {
        for block in blocks {
            let mut gaps: Vec<SignedPicos> = block.gaps.iter().flatten().copied().collect();
            let gap = Sorted::new(&mut gaps).median();
            rows.extend(gap.map(|gap| Row::Gap { size: *size, gap }));
        }
    }
    let analysis = Analysis::of(&rows, &AssessOptions::default())?;
    let ranges = analysis.assessment.profile.ranges.iter();
    Ok(ranges.map(|range| Span { first_bytes: range.first.0, last_bytes: range.last.0 }).collect())
}

/// Mean of Eq. 6 over the ranges in one block, in (100 ps)²; `None` if a size has no gap, or no range three
/// sizes.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a square, positive and saturating"
)]
fn deviation(sizes: &[SizeGaps], ranges: &[Span], block: usize, index: usize) -> Option<u64> {
    let mut lines = vec![GrowingLine::new(); ranges.len()];
    for size in sizes {
        let bytes = u64::from(size.size);
        let gap = size.blocks.get(block)?.gaps.get(index).copied()??;
        let of =
            ranges.iter().position(|span| (span.first_bytes..=span.last_bytes).contains(&bytes));
        let line = of.and_then(|at| lines.get_mut(at));
        if let (Some(line), Ok(point)) = (line, Point::new(bytes, gap.0 as f64, 0.0)) {
            line.add(point);
        }
    }
    let each: Vec<f64> = lines.iter().filter_map(mean_square).collect();
    let mean = each.iter().sum::<f64>() / each.len() as f64;
    mean.is_finite().then_some((mean * SQUARE_SECOND) as u64)
}

/// Smallest number of messages whose deviation lies within the interval of the least one.
fn chosen(rows: &[Deviation]) -> Option<u32> {
    let known = rows.iter().filter_map(|row| Some((row, row.gap_lsq_s2?)));
    let (least, _) = known.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let bound = least
        .gap_lsq_s2_hi
        .filter(|high| least.gap_lsq_s2_lo.is_some_and(|low| *high <= WIDE * low))?;
    let is_within = |row: &&Deviation| row.gap_lsq_s2.is_some_and(|value| value <= bound);
    rows.iter().find(is_within).map(|row| row.messages)
}

/// Fewest messages with which the gap of pLogP is known to 1%, n > (2L + g)/(0.01·g): section 1.1 of "LogGP
/// in Theory and Practice", which takes half a round trip for L. `None` for a gap of 0 or less.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive by the filter, and saturating"
)]
pub(crate) fn plogp_messages(half_rtt_s: f64, gap_s: f64) -> Option<u64> {
    let count = (2.0 * half_rtt_s + gap_s) / (0.01 * gap_s);
    Some(count).filter(|count| *count > 0.0 && count.is_finite()).map(|count| count as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::perftest::messages::Block;
    use loggap_core::random::Random;
    use loggap_core::units::Picos;

    /// Gaps of 2 µs and 100 ps a byte; noise of 40 ns for one message in between, which
    /// divides by n − 1.
    #[allow(clippy::cast_possible_truncation, reason = "nanoseconds of noise")]
    fn sizes(counts: &[u32]) -> Vec<SizeGaps> {
        let mut random = Random::new(3);
        let mut gap = |size: u32, messages: u32| {
            let noise = 40_000.0 * random.normal() / f64::from(messages - 1);
            Some(SignedPicos(2_000_000 + 100 * i64::from(size) + noise as i64))
        };
        let block = |gaps| Block { round_trip: Picos(20_000_000), gaps };
        let of_size = |power: u32| {
            let size = 1 << power;
            let blocks = (0..12)
                .map(|_| block(counts.iter().map(|&messages| gap(size, messages)).collect()));
            SizeGaps { size, blocks: blocks.collect(), bell: None }
        };
        (0..17).map(of_size).collect()
    }

    #[test]
    fn deviations_fall_with_the_square_of_n_less_one() {
        let counts = [2, 5, 9, 33];
        let found = Deviations::of(&sizes(&counts), &counts).unwrap();
        assert_eq!(found.ranges, [Span { first_bytes: 1, last_bytes: 65_536 }]);
        assert_eq!(found.chosen, Some(33));
        for (row, messages) in found.rows.iter().zip(counts) {
            let expected = (40e-9 / f64::from(messages - 1)).powi(2);
            let lsq = row.gap_lsq_s2.unwrap();
            assert!((0.5..2.0).contains(&(lsq / expected)), "{messages}: {lsq} {expected}");
            assert!(row.gap_lsq_s2_lo.unwrap() <= lsq && lsq <= row.gap_lsq_s2_hi.unwrap());
        }
        let mut out = Vec::new();
        found.chart("tcp").write(1, &mut out).unwrap();
        let picture = String::from_utf8(out).unwrap();
        assert!(picture.contains("n = 33 suffices") && picture.matches("<circle").count() == 4);
    }

    #[test]
    fn the_smallest_n_within_the_interval_of_the_least_deviation_is_chosen() {
        let row = |messages, value: f64| Deviation {
            messages,
            gap_lsq_s2: Some(value),
            gap_lsq_s2_lo: Some(0.5 * value),
            gap_lsq_s2_hi: Some(1.5 * value),
        };
        let mut rows = [row(2, 9.0), row(4, 1.4), row(8, 1.0), row(16, 1.2)];
        assert_eq!(chosen(&rows), Some(4));
        rows[1].gap_lsq_s2 = None;
        assert_eq!(chosen(&rows), Some(8));
        assert_eq!(chosen(&[]), None);
        rows[2].gap_lsq_s2_lo = Some(0.1);
        assert_eq!(chosen(&rows), None, "an interval from 0.1 to 1.5");
    }

    #[test]
    fn lost_rounds_leave_a_number_of_messages_without_a_value() {
        let counts = [2, 9];
        let mut sizes = sizes(&counts);
        sizes[4].blocks[7].gaps[1] = None;
        let found = Deviations::of(&sizes, &counts).unwrap();
        assert!(found.rows[1].gap_lsq_s2.is_some(), "the other repetitions have one");
        sizes[4].blocks.iter_mut().for_each(|block| block.gaps[1] = None);
        let found = Deviations::of(&sizes, &counts).unwrap();
        assert!(found.rows[0].gap_lsq_s2.is_some() && found.rows[1].gap_lsq_s2.is_none());
        assert_eq!(found.chosen, Some(2));
        assert!(Deviations::of(&[], &counts).is_err());
    }

    #[test]
    fn messages_of_plogp_follow_from_table_2() {
        assert_eq!(plogp_messages(45.74e-6, 0.915e-6), Some(10_098));
        assert_eq!(plogp_messages(45.74e-6, 0.0), None);
    }
}
