//! The detector of protocol changes of "LogGP in Theory and Practice" (section 2.6), as printed.
//!
//! For comparison with [`ChangeDetector`](loggap_core::fit::ChangeDetector), whose documentation
//! lists the corrections.

use loggap_core::fit::{GrowingLine, Point};
use serde::{Deserialize, Serialize};

use super::mean_square;

/// Settings of the detector as printed.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct LiteralSettings {
    /// `pfact`: a change is assumed where the mean square deviation rises by more than this.
    pub pfact: f64,
    /// `x`: points to look ahead, all of which have to raise it.
    pub lookahead: usize,
}

impl Default for LiteralSettings {
    /// The paper's pfact, and the largest x that it names.
    fn default() -> Self {
        Self { pfact: 2.0, lookahead: 5 }
    }
}

/// Sizes between two changes, with their least-squares line.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct LiteralRange {
    /// First size, bytes.
    pub first_bytes: u64,
    /// Last size, bytes.
    pub last_bytes: u64,
    /// g, the line's value at 1 B; `None` for a single size.
    pub gap_s: Option<f64>,
    /// G, the slope; `None` for a single size.
    pub gap_per_byte_s: Option<f64>,
    /// Eq. 6; `None` for fewer than four sizes.
    pub gap_lsq_literal_s2: Option<f64>,
}

/// Result of the detector as printed.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Literal {
    /// Its settings.
    #[serde(flatten)]
    pub settings: LiteralSettings,
    /// Sizes between the changes.
    pub ranges: Vec<LiteralRange>,
}

impl Literal {
    /// Ranges of the gap curve `points`, ascending by size.
    #[must_use]
    pub fn of(points: &[Point], settings: LiteralSettings) -> Self {
        let mut ranges = Vec::new();
        let (mut line, mut first) = (GrowingLine::new(), None);
        for (current, &point) in points.iter().enumerate() {
            line.add(point);
            let first_bytes = *first.get_or_insert(point.size());
            let ahead = points.get(current + 1..).unwrap_or_default();
            if ahead.is_empty() || settings.is_change(line, ahead) {
                ranges.push(LiteralRange::of(&line, first_bytes, point.size()));
                (line, first) = (GrowingLine::new(), None);
            }
        }
        Self { settings, ranges }
    }
}

impl LiteralSettings {
    /// True if a change follows the points of `line`: each of the next x points, together with
    /// those before it, raises the deviation.
    fn is_change(&self, mut line: GrowingLine, ahead: &[Point]) -> bool {
        let (Some(before), Some(ahead)) = (lsq(&line), ahead.get(..self.lookahead)) else {
            return false;
        };
        ahead.iter().all(|&point| {
            line.add(point);
            lsq(&line).is_some_and(|lsq| lsq > before * self.pfact)
        })
    }
}

impl LiteralRange {
    fn of(line: &GrowingLine, first_bytes: u64, last_bytes: u64) -> Self {
        const PICO: f64 = 1e-12;
        Self {
            first_bytes,
            last_bytes,
            gap_s: line.gap().map(|gap| gap * PICO),
            gap_per_byte_s: line.gap_per_byte().map(|slope| slope * PICO),
            gap_lsq_literal_s2: lsq(line),
        }
    }
}

/// lsq(k, l) of Eq. 6, s²; `None` for fewer than four points, as the divisor l − k − 2 is their
/// number less 3.
#[allow(clippy::cast_precision_loss, reason = "counts of sizes")]
fn lsq(line: &GrowingLine) -> Option<f64> {
    let divisor = line.count().checked_sub(3).filter(|divisor| *divisor > 0)? as f64;
    Some(mean_square(line)? * (divisor + 1.0) / divisor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::fit::{ChangeDetector, LookAhead};
    use loggap_core::random::Random;

    /// Gaps in ps at 1, 2, 3… bytes.
    fn points(gaps: &[f64]) -> Vec<Point> {
        (1..).zip(gaps).map(|(size, gap)| Point::new(size, *gap, 0.0).unwrap()).collect()
    }

    fn spans(gaps: &[f64], settings: LiteralSettings) -> Vec<[u64; 2]> {
        let found = Literal::of(&points(gaps), settings);
        found.ranges.iter().map(|range| [range.first_bytes, range.last_bytes]).collect()
    }

    /// A line of 100 ps and 10 ps a byte with a wobble of 1 ps, and a step of 500 ps behind `at`.
    fn step(count: u32, at: u32) -> Vec<f64> {
        let wobble = |size: u32| if size.is_multiple_of(2) { 1.0 } else { -1.0 };
        let gap = |size: u32| {
            100.0 + 10.0 * f64::from(size) + wobble(size) + if size > at { 500.0 } else { 0.0 }
        };
        (1..=count).map(gap).collect()
    }

    #[test]
    fn lsq_divides_by_the_number_of_points_less_three() {
        let four =
            Literal::of(&points(&[1_010.0, 990.0, 990.0, 1_010.0]), LiteralSettings::default());
        let lsq = four.ranges[0].gap_lsq_literal_s2.unwrap();
        assert!((lsq / 400e-24 - 1.0).abs() < 1e-9, "{lsq}");
        let three = Literal::of(&points(&[1.0, 2.0, 4.0]), LiteralSettings::default());
        assert_eq!(three.ranges[0].gap_lsq_literal_s2, None);
    }

    #[test]
    fn a_step_is_found_behind_the_last_point_of_the_old_protocol() {
        let settings = LiteralSettings::default();
        assert_eq!(spans(&step(20, 10), settings), [[1, 10], [11, 20]]);
        // x points have to follow, and four to precede.
        assert_eq!(spans(&step(15, 10), settings), [[1, 10], [11, 15]]);
        assert_eq!(spans(&step(14, 10), settings), [[1, 14]]);
        assert_eq!(spans(&step(20, 20), settings), [[1, 20]]);
    }

    #[test]
    fn one_outlier_is_a_change_as_printed() {
        let mut gaps = step(30, 30);
        gaps[9] += 300.0;
        let found = spans(&gaps, LiteralSettings::default());
        assert_eq!(found[0], [1, 9], "every interval ahead contains the outlier: {found:?}");
    }

    /// Changes in 100 sweeps over Table 2's TCP with 3% of noise: as printed, and corrected.
    #[test]
    fn noise_is_a_change_as_printed_and_none_when_corrected() {
        let (mut printed, mut corrected) = (0, 0);
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let sizes = (0..=16).flat_map(|power| [1_u64 << power, 3 << power >> 1]).skip(1);
            let point = |size: u64| {
                let gap = 915_000.0 + 8_490.0 * (size - 1) as f64;
                let sigma = 0.03 * gap;
                Point::new(size, gap + sigma * random.normal(), sigma).unwrap()
            };
            let points: Vec<Point> = sizes.map(point).collect();
            let found = Literal::of(&points, LiteralSettings::default());
            printed += found.ranges.len() - 1;
            let mut detector = ChangeDetector::new(LookAhead::default());
            corrected += points.iter().filter(|point| detector.push(**point).is_some()).count();
            corrected += usize::from(detector.finish().is_some());
        }
        assert!(printed > 200 && corrected <= 2, "{printed} {corrected}");
    }

    #[test]
    fn pfact_multiplies_the_mean_square_and_no_point_is_no_range() {
        let bold = LiteralSettings { pfact: 1e9, ..LiteralSettings::default() };
        assert_eq!(spans(&step(20, 10), bold), [[1, 20]]);
        assert_eq!(spans(&[], LiteralSettings::default()), [[0; 2]; 0]);
    }
}
