//! Per-size table: values computed from the samples of each size, and the points that lines are
//! fitted to.

use super::interval::{BlockSums, median_step};
use super::ranges::SizeSpan;
use super::store::value_in;
use crate::fit::{Point, mark_outliers};
use crate::measure::{AssessOptions, Quantity, SampleStore};
use crate::model::{Curve, Estimate, Mark};
use crate::number::{larger, smaller, sqrt};
use crate::slice::insert_first;
use crate::stats::Sorted;
use crate::units::{Bytes, Picos, SignedPicos};
use crate::wide::times;

impl Curve {
    /// Quantity with the curve's median, and true if the median round trip is subtracted.
    pub(in crate::measure) const fn parts(self) -> (Quantity, bool) {
        match self {
            Self::HalfRtt => (Quantity::RoundTrip, false),
            Self::Gap => (Quantity::Gap, true),
            Self::SendOverhead => (Quantity::Paced, true),
            Self::RecvOverhead => (Quantity::Receive, false),
        }
    }
}

/// One row of the per-size table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SizeRow {
    /// Message size.
    pub size: Bytes,
    /// `PRTT(1,0,s)/2`.
    pub half_rtt: Option<Estimate<SignedPicos>>,
    /// `G_all`.
    pub gap: Option<Estimate<SignedPicos>>,
    /// `o_s`; also `None` if the delay was too short.
    pub send_overhead: Option<Estimate<SignedPicos>>,
    /// `o_r`.
    pub recv_overhead: Option<Estimate<SignedPicos>>,
    /// Shortest delay of the paced rounds.
    pub delay: Option<Picos>,
    /// Number of samples of each [`Quantity`], in the order of [`Quantity::ALL`].
    pub samples: [usize; 4],
}

impl SizeRow {
    /// Value of `curve`, if measured.
    #[must_use]
    pub const fn value(&self, curve: Curve) -> Option<&Estimate<SignedPicos>> {
        match curve {
            Curve::Gap => self.gap.as_ref(),
            Curve::HalfRtt => self.half_rtt.as_ref(),
            Curve::SendOverhead => self.send_overhead.as_ref(),
            Curve::RecvOverhead => self.recv_overhead.as_ref(),
        }
    }
}

impl SampleStore<'_> {
    /// Row `row` of the per-size table, in ascending order of size. Numbers that have not converged
    /// by `options` are marked.
    #[must_use]
    pub fn row(&self, row: usize, options: &AssessOptions) -> Option<SizeRow> {
        let size = Bytes(u64::from(self.size(row)?));
        let estimate = |curve| {
            let value = self.level(row, curve)?;
            let mut sums = BlockSums::default();
            sums.add(self, row, curve, 1.0);
            let half = sums.half_width(self, options.confidence);
            let wanted = value.abs() * f64::from(options.relative_error_ppm) * 1e-6;
            let is_known = half <= wanted && !self.is_at_bound(row, curve);
            let mark = if is_known { Mark::Converged } else { Mark::BudgetSpent };
            // Times are not negative, even if the noise exceeds the value.
            let [value, low, high] = [value, value - half, value + half]
                .map(|end| SignedPicos::from_f64(larger(end, 0.0)));
            Some(Estimate { value, low, high, mark })
        };
        Some(SizeRow {
            size,
            half_rtt: if options.one_sided { None } else { estimate(Curve::HalfRtt) },
            gap: estimate(Curve::Gap),
            send_overhead: estimate(Curve::SendOverhead),
            recv_overhead: estimate(Curve::RecvOverhead),
            delay: self.shortest_delay(row),
            samples: Quantity::ALL.map(|quantity| self.count(row, quantity)),
        })
    }

    /// Median of one cell in picoseconds; `None` if it is empty.
    pub(in crate::measure) fn middle(&self, row: usize, quantity: Quantity) -> Option<i64> {
        Sorted::from_ascending(self.cell(row, quantity))?.median().map(value_in)
    }

    /// Value of `curve` at one row in picoseconds, overheads limited to the round trip; `None` if
    /// samples are missing or the delay of the paced rounds was below the gap.
    pub(in crate::measure) fn level(&self, row: usize, curve: Curve) -> Option<f64> {
        if curve == Curve::SendOverhead && self.delay_exceeds_gap(row) != Some(true) {
            return None;
        }
        let value = self.unbounded(row, curve)?;
        Some(match self.bound_of_overhead(row, curve) {
            Some(bound) => smaller(value, bound),
            None => value,
        })
    }

    /// As [`Self::level`], without the limit and whatever the delay.
    fn unbounded(&self, row: usize, curve: Curve) -> Option<f64> {
        let (quantity, minus_round_trip) = curve.parts();
        let minus_round_trip = minus_round_trip && !self.holds_gaps();
        let has_value = self.has_value(row, quantity);
        if !has_value || minus_round_trip && !self.has_value(row, Quantity::RoundTrip) {
            return None;
        }
        let mut value = self.middle(row, quantity)?;
        if minus_round_trip {
            value = value.saturating_sub(self.middle(row, Quantity::RoundTrip)?);
        }
        Some(value as f64 / self.divisor(row, curve))
    }

    /// Upper bound of an overhead, which is part of the round trip; `None` for other curves.
    fn bound_of_overhead(&self, row: usize, curve: Curve) -> Option<f64> {
        let is_overhead = matches!(curve, Curve::SendOverhead | Curve::RecvOverhead);
        let round_trip = self.middle(row, Quantity::RoundTrip).filter(|_| is_overhead)?;
        Some(round_trip as f64)
    }

    /// True if the samples give a value above the round trip, which is then used instead.
    pub(super) fn is_at_bound(&self, row: usize, curve: Curve) -> bool {
        let value = self.unbounded(row, curve).zip(self.bound_of_overhead(row, curve));
        value.is_some_and(|(value, bound)| value > bound)
    }

    /// Divisor of the times of `curve`, at least 1.
    pub(super) fn divisor(&self, row: usize, curve: Curve) -> f64 {
        match curve {
            _ if self.holds_gaps() => 1.0,
            Curve::HalfRtt => 2.0,
            Curve::RecvOverhead => 1.0,
            Curve::Gap | Curve::SendOverhead => {
                let messages = self.messages(row, curve.parts().0).unwrap_or(2);
                f64::from(messages.saturating_sub(1).max(1))
            }
        }
    }

    /// Variance of [`Self::level`] for independent noise; 0 if unknown, as for a single sample.
    pub(in crate::measure) fn variance(&self, row: usize, curve: Curve) -> f64 {
        let (quantity, minus_round_trip) = curve.parts();
        let of = |quantity| {
            let step = median_step(self, row, quantity);
            self.count(row, quantity) as f64 * step * step
        };
        let both = minus_round_trip && !self.holds_gaps();
        let round_trip = if both { of(Quantity::RoundTrip) } else { 0.0 };
        let divisor = self.divisor(row, curve);
        (of(quantity) + round_trip) / (divisor * divisor)
    }

    /// True if the delay of a row's paced rounds exceeds the gap, so that they show the send
    /// overhead; `None` if there are none.
    pub(in crate::measure) fn delay_exceeds_gap(&self, row: usize) -> Option<bool> {
        let delay = self.shortest_delay(row)?.0;
        let rest = self.messages(row, Quantity::Gap).map_or(0, |messages| messages - 1);
        let beyond = self.round_trip_and_beyond(row).map_or(0, |(_, beyond)| beyond);
        Some(times(delay, rest.into()) > beyond || rest == 0)
    }

    /// Median round trip of a row, and the additional time of a burst, in ps.
    pub(in crate::measure) fn round_trip_and_beyond(&self, row: usize) -> Option<(u64, u64)> {
        let round_trip = self.middle(row, Quantity::RoundTrip)?;
        let burst = self.middle(row, Quantity::Gap)?;
        let positive = |time: i64| u64::try_from(time).unwrap_or(0);
        Some((positive(round_trip), positive(burst.saturating_sub(round_trip))))
    }

    /// Writes the points of `curve` at the sizes of `span` to the front of `points`, in ascending
    /// order of size, and returns that part. Points that do not fit are dropped: lend one per row.
    ///
    /// Outliers are marked. A few samples may agree by chance, so with few samples the variance of
    /// a single one is largely taken from neighbouring sizes.
    pub(in crate::measure) fn points<'p>(
        &self,
        curve: Curve,
        span: SizeSpan,
        points: &'p mut [Point],
    ) -> &'p mut [Point] {
        let mut count = 0;
        for row in self.rows_in(span) {
            let (Some(size), Some(level)) = (self.size(row), self.level(row, curve)) else {
                continue;
            };
            let point = Point::new(size.into(), level, sqrt(self.variance(row, curve)));
            if let (Ok(point), Some(place)) = (point, points.get_mut(count)) {
                *place = point;
                count += 1;
            }
        }
        let points = points.get_mut(..count).unwrap_or_default();
        smooth(points, |point| self.count(self.row_of(point), curve.parts().0) as f64);
        mark_outliers(points);
        points
    }
}

/// Number of points on each side whose errors are averaged with a point's own.
const NEIGHBOURS: usize = 3;

/// Number of samples at which a size's own variance counts as much as its neighbours'. The variance
/// of m samples has a relative error of about 2/√m, which is too large for a line's chi-square if m
/// is small.
const OWN_WEIGHT: f64 = 256.0;

/// Smooths the relative variance of a single sample of each point: weighted mean of its own, with
/// the number of `samples`, and the typical one of its neighbourhood. It is relative to the value
/// interpolated from the neighbours. With weights from their own samples alone, low values would
/// have little scatter and pull the line down.
fn smooth(points: &mut [Point], samples: impl Fn(&Point) -> f64) {
    // Relative variances around the centre point, the following points first: those before it are
    // already overwritten in `points`.
    let mut window = [0.0; 2 * NEIGHBOURS + 1];
    for ahead in 0..points.len() + NEIGHBOURS {
        let next = points.get(ahead).map_or(0.0, |point| {
            let sigma = point.sigma().unwrap_or(0.0) / beside(points, ahead);
            samples(point) * sigma * sigma
        });
        insert_first(&mut window, next);
        // Number of entries for points past the end.
        let beyond = (ahead + 1).saturating_sub(points.len());
        let neighbours = window.get(beyond..window.len().min(ahead + 1)).unwrap_or_default();
        let typical = typical_value(neighbours);
        let index = ahead.wrapping_sub(NEIGHBOURS);
        let scale = beside(points, index);
        if let (Some(point), Some(own)) = (points.get_mut(index), window.get(NEIGHBOURS)) {
            let count = samples(point);
            let both = count * own + OWN_WEIGHT * typical;
            let sigma = scale * sqrt(both / (count * (count + OWN_WEIGHT)));
            *point = Point::new(point.size(), point.value(), sigma).unwrap_or(*point);
        }
    }
}

/// Value interpolated from the two neighbours, limited to a factor of two from the point's own; at
/// the ends the own value.
fn beside(points: &[Point], index: usize) -> f64 {
    let own = points.get(index).map_or(1.0, |point| larger(point.value().abs(), 1.0));
    let neighbours = (points.get(index.wrapping_sub(1)), points.get(index.wrapping_add(1)));
    let (Some(point), (Some(before), Some(behind))) = (points.get(index), neighbours) else {
        return own;
    };
    let part = (point.size() - before.size()) as f64 / (behind.size() - before.size()) as f64;
    let between = before.value() + part * (behind.value() - before.value());
    smaller(larger(between, 0.5 * own), 2.0 * own)
}

/// Mean of non-negative `values`, without the largest and the smallest if there are more than two.
fn typical_value(values: &[f64]) -> f64 {
    let (mut sum, mut largest, mut smallest) = (0.0, 0.0, f64::INFINITY);
    for &value in values {
        sum += value;
        largest = larger(largest, value);
        smallest = smaller(smallest, value);
    }
    let count = values.len() as f64;
    if count < 3.0 {
        return sum / larger(count, 1.0);
    }
    larger(sum - largest - smallest, 0.0) / (count - 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Experiment, RowHeader, Sample, floor};

    fn insert(store: &mut SampleStore<'_>, quantity: Quantity, delay: u64, elapsed: u64) {
        let messages = if matches!(quantity, Quantity::Gap | Quantity::Paced) { 10 } else { 1 };
        let experiment = Experiment { quantity, messages, delay: Picos(delay), size: 8 };
        store.insert(&Sample { experiment, delay: Picos(delay), elapsed: Picos(elapsed) }).unwrap();
    }

    #[test]
    fn a_row_solves_the_equations() {
        let (mut rows, mut values) = ([RowHeader::default(); 1], [0; 64]);
        let mut store = SampleStore::new(&mut rows, &mut values);
        for _ in 0..6 {
            insert(&mut store, Quantity::RoundTrip, 0, 7_000);
            insert(&mut store, Quantity::Gap, 0, 7_000 + 9 * 900);
            insert(&mut store, Quantity::Paced, 7_000, 7_000 + 9 * 7_300);
            insert(&mut store, Quantity::Receive, 14_000, 250);
        }
        let row = store.row(0, &AssessOptions::default()).unwrap();
        assert_eq!(row.half_rtt, Some(Estimate::exact(SignedPicos(3_500))));
        assert_eq!(row.gap, Some(Estimate::exact(SignedPicos(900))));
        assert_eq!(row.send_overhead, Some(Estimate::exact(SignedPicos(300))));
        assert_eq!(row.recv_overhead, Some(Estimate::exact(SignedPicos(250))));
        assert_eq!((row.samples, row.delay), ([6; 4], Some(Picos(7_000))));
        assert_eq!(store.row(1, &AssessOptions::default()), None);
    }

    #[test]
    fn a_delay_below_the_gap_shows_no_overhead() {
        let (mut rows, mut values) = ([RowHeader::default(); 1], [0; 64]);
        let mut store = SampleStore::new(&mut rows, &mut values);
        insert(&mut store, Quantity::RoundTrip, 0, 7_000);
        insert(&mut store, Quantity::Gap, 0, 7_000 + 9 * 9_000);
        insert(&mut store, Quantity::Paced, 7_000, 7_000 + 9 * 9_000);
        let row = store.row(0, &AssessOptions::default()).unwrap();
        assert_eq!(row.send_overhead, None);
        assert_eq!(row.gap.map(|gap| (gap.value.0, gap.mark)), Some((9_000, Mark::BudgetSpent)));
    }

    #[test]
    fn an_overhead_is_a_part_of_the_round_trip_and_a_value_takes_three_samples() {
        let (mut rows, mut values) = ([RowHeader::default(); 1], [0; 64]);
        let mut store = SampleStore::new(&mut rows, &mut values);
        store.claim_from(floor::VALUE, floor::CHANGE);
        for count in 1..=3 {
            insert(&mut store, Quantity::RoundTrip, 0, 7_000);
            insert(&mut store, Quantity::Gap, 0, 7_000 + 9 * 900);
            insert(&mut store, Quantity::Paced, 7_000, 7_000 + 9 * 7_300);
            insert(&mut store, Quantity::Receive, 14_000, 3_000_000);
            let row = store.row(0, &AssessOptions::default()).unwrap();
            assert_eq!(row.half_rtt.is_some(), count == 3);
            assert_eq!([row.gap.is_some(), row.recv_overhead.is_some()], [count == 3; 2]);
        }
        let row = store.row(0, &AssessOptions::default()).unwrap();
        let overhead = row.recv_overhead.unwrap();
        assert_eq!((overhead.value, overhead.mark), (SignedPicos(7_000), Mark::BudgetSpent));
        assert!(store.is_at_bound(0, Curve::RecvOverhead));
        assert!(!store.is_at_bound(0, Curve::SendOverhead));
        assert_eq!(row.send_overhead.map(|found| found.value), Some(SignedPicos(300)));
    }

    #[test]
    fn gap_values_are_taken_as_they_are() {
        let (mut rows, mut values) = ([RowHeader::default(); 1], [0; 64]);
        let mut store = SampleStore::new(&mut rows, &mut values);
        for gap in [9_000, 9_040, 8_960, 9_020, 8_980, 9_000] {
            store.insert_gap(8, SignedPicos(gap)).unwrap();
        }
        let gap = store.row(0, &AssessOptions::default()).and_then(|row| row.gap).unwrap();
        assert_eq!(gap.value, SignedPicos(9_000));
        // Ranks (5 ∓ 1.5 · √6)/2 are 0.66 and 4.34: 8,973.2 and 9,026.8, whose distance over 2 ·
        // 1.5 gives a standard error of 17.9. Six blocks multiply it by √(6/5), and Student's
        // quantile of three degrees of freedom by 3.18: 62. These blocks alternate, so the lower
        // bound applies: √¾ of that.
        let half = (gap.high.0 - gap.low.0) / 2;
        assert!((52..=56).contains(&half), "{half}");
    }

    #[test]
    fn a_time_is_never_negative() {
        let (mut rows, mut values) = ([RowHeader::default(); 1], [0; 64]);
        let mut store = SampleStore::new(&mut rows, &mut values);
        for gap in [-3, 5, -1] {
            store.insert_gap(8, SignedPicos(gap)).unwrap();
        }
        let gap = store.row(0, &AssessOptions::default()).and_then(|row| row.gap).unwrap();
        assert!(gap.value == SignedPicos(0) && gap.low == SignedPicos(0) && gap.high.0 > 0);
    }

    #[test]
    fn a_point_is_not_trusted_more_than_its_neighbours_allow() {
        let sigmas = [10.0, 0.0, 10.0, 10.0, 200.0, 10.0, 10.0, 10.0, 10.0];
        let mut points: std::vec::Vec<Point> = sigmas
            .iter()
            .zip(1..)
            .map(|(&sigma, size)| Point::new(size, 1.0, sigma).unwrap())
            .collect();
        smooth(&mut points, |_| OWN_WEIGHT);
        let smoothed: std::vec::Vec<f64> =
            points.iter().map(|point| point.sigma().unwrap()).collect();
        assert!((smoothed[1] - 10.0 / 2.0_f64.sqrt()).abs() < 1e-9, "{smoothed:?}");
        assert!((smoothed[4] - (0.5 * (200.0_f64.powi(2) + 100.0)).sqrt()).abs() < 1e-9);
        assert!((smoothed[8] - 10.0).abs() < 1e-9 && (smoothed[0] - 10.0).abs() < 1e-9);
    }

    #[test]
    fn noise_in_proportion_to_the_value_stays_so_on_a_steep_line() {
        let mut points: std::vec::Vec<Point> = (1..=9)
            .map(|size| Point::new(100 * size, 500.0 * size as f64, 5.0 * size as f64).unwrap())
            .collect();
        smooth(&mut points, |_| OWN_WEIGHT);
        for point in &points[1..8] {
            let relative = point.sigma().unwrap() / point.value();
            assert!((relative - 0.01).abs() < 1e-9, "{point:?}");
        }
    }

    #[test]
    fn the_typical_value_ignores_the_extremes() {
        let cases: [(&[f64], f64); 4] =
            [(&[], 0.0), (&[9.0], 9.0), (&[1.0, 9.0], 5.0), (&[9e5, 1.0, 4.0, 16.0], 10.0)];
        for (values, expected) in cases {
            assert!((typical_value(values) - expected).abs() < 1e-6, "{values:?}");
        }
    }
}
