//! From sample values to one number per size: the per-size table and the
//! points that lines are fitted to.

use super::ranges::Span;
use super::samples::{insert_first, unordered};
use super::{Quantity, SampleStore};
use crate::fit::Point;
use crate::model::{Estimate, Mark};
use crate::number::{larger, smaller, sqrt};
use crate::stats::{Confidence, Difference, MedianInterval, Sorted};
use crate::units::{Bytes, Picos, SignedPicos};
use crate::wide::times;

/// What is derived from the samples of one size.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Curve {
    /// `PRTT(1,0,s)/2`, half the median round trip.
    HalfRtt,
    /// `G_all = (PRTT(n,0,s) − PRTT(1,0,s))/(n − 1)`, Eq. 5.
    Gap,
    /// `o_s = (PRTT(n,d,s) − PRTT(1,0,s))/(n − 1) − d`, Eq. 4.
    SendOverhead,
    /// The median time of the receive call for a reply that is there.
    RecvOverhead,
}

impl Curve {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::HalfRtt, Self::Gap, Self::SendOverhead, Self::RecvOverhead];

    /// The quantity whose median counts positively, and whether the round
    /// trip's is taken off.
    pub(super) const fn parts(self) -> (Quantity, bool) {
        match self {
            Self::HalfRtt => (Quantity::RoundTrip, false),
            Self::Gap => (Quantity::Gap, true),
            Self::SendOverhead => (Quantity::Paced, true),
            Self::RecvOverhead => (Quantity::Receive, false),
        }
    }
}

/// A value in picoseconds and how far it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    pub(super) value: f64,
    /// The square of its standard error.
    pub(super) variance: f64,
}

/// One row of the per-size table.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SizeRow {
    /// Message size.
    pub size: Bytes,
    /// `PRTT(1,0,s)/2`.
    pub half_rtt: Option<Estimate<SignedPicos>>,
    /// `G_all`.
    pub gap: Option<Estimate<SignedPicos>>,
    /// `o_s`; `None` also where the delay was too short to show it.
    pub send_overhead: Option<Estimate<SignedPicos>>,
    /// `o_r`.
    pub recv_overhead: Option<Estimate<SignedPicos>>,
    /// The shortest delay of the paced rounds.
    pub delay: Option<Picos>,
    /// Samples of each [`Quantity`], in the order of [`Quantity::ALL`].
    pub samples: [usize; 4],
}

impl SampleStore<'_> {
    /// Row `row` of the per-size table, counted in ascending order of size,
    /// with intervals at `confidence`. Numbers whose half interval exceeds
    /// `relative_error_ppm` millionths of their value are marked.
    #[must_use]
    pub fn row(
        &self,
        row: usize,
        confidence: Confidence,
        relative_error_ppm: u32,
    ) -> Option<SizeRow> {
        let size = Bytes(u64::from(self.size(row)?));
        let estimate = |curve| {
            let ([value, low, high], reached) = self.interval(row, curve, confidence)?;
            let wanted = value.abs() * f64::from(relative_error_ppm) * 1e-6;
            let converged = reached && 0.5 * (high - low) <= wanted;
            let [value, low, high] = [value, low, high].map(SignedPicos::from_f64);
            let mark = if converged { Mark::Converged } else { Mark::BudgetSpent };
            Some(Estimate { value, low, high, mark })
        };
        Some(SizeRow {
            size,
            half_rtt: estimate(Curve::HalfRtt),
            gap: estimate(Curve::Gap),
            send_overhead: estimate(Curve::SendOverhead),
            recv_overhead: estimate(Curve::RecvOverhead),
            delay: self.shortest_delay(row),
            samples: Quantity::ALL.map(|quantity| self.count(row, quantity)),
        })
    }

    /// The median of one cell with its interval; `None` for an empty cell.
    #[must_use]
    pub fn median(
        &self,
        row: usize,
        quantity: Quantity,
        confidence: Confidence,
    ) -> Option<MedianInterval<u64>> {
        Sorted::from_ascending(self.cell(row, quantity))?.median_interval(confidence)
    }

    /// Value, lower and upper end of `curve` at one row, and whether the samples
    /// sufficed for `confidence`; `None` where there is no value.
    fn interval(
        &self,
        row: usize,
        curve: Curve,
        confidence: Confidence,
    ) -> Option<([f64; 3], bool)> {
        self.shows(row, curve).then_some(())?;
        let (quantity, minus_round_trip) = curve.parts();
        let median = self.median(row, quantity, confidence)?;
        if minus_round_trip && !self.holds_gaps() {
            let one = self.median(row, Quantity::RoundTrip, confidence)?;
            let difference = Difference::of(&median, &one, self.messages()?.checked_sub(1)?)?;
            let Difference { value, low, high, reached, .. } = difference;
            return Some(([value, low, high], reached));
        }
        let part = if curve == Curve::HalfRtt { 0.5 } else { 1.0 };
        let ends = [median.median, median.low, median.high];
        Some((ends.map(|end| part * self.signed(end)), median.reached))
    }

    /// The middle of one cell; `None` for an empty one.
    pub(super) fn middle(&self, row: usize, quantity: Quantity) -> Option<u64> {
        Sorted::from_ascending(self.cell(row, quantity))?.median()
    }

    /// A value of a cell as a number.
    fn signed(&self, value: u64) -> f64 {
        if self.holds_gaps() { unordered(value).0 as f64 } else { value as f64 }
    }

    /// The value of `curve` at one row; `None` where samples are missing, or
    /// the delay of the paced rounds was below the gap.
    pub(super) fn level(&self, row: usize, curve: Curve) -> Option<Level> {
        self.shows(row, curve).then_some(())?;
        let (quantity, minus_round_trip) = curve.parts();
        let mut level = self.cell_level(row, quantity)?;
        let mut divisor = if curve == Curve::HalfRtt { 2.0 } else { 1.0 };
        if minus_round_trip && !self.holds_gaps() {
            let round_trip = self.cell_level(row, Quantity::RoundTrip)?;
            level.value -= round_trip.value;
            level.variance += round_trip.variance;
            divisor = f64::from(self.messages()?.checked_sub(1).filter(|&rest| rest > 0)?);
        }
        level.value /= divisor;
        level.variance /= divisor * divisor;
        Some(level)
    }

    /// The median of a cell. Its standard error comes from the median absolute
    /// deviation: `√(π/2) · 1.4826 · m/(m − 0.8) · MAD / √m`, the correction
    /// for small m after Croux and Rousseeuw (COMPSTAT '92). What weights are made of must
    /// not depend on whether an outlier happens to stand at the end of an
    /// order-statistic interval. A single sample has none: its whole value is
    /// in doubt.
    fn cell_level(&self, row: usize, quantity: Quantity) -> Option<Level> {
        let sorted = Sorted::from_ascending(self.cell(row, quantity))?;
        let value = self.signed(sorted.median()?);
        let count = sorted.as_slice().len() as f64;
        let error = if count > 1.0 {
            MEDIAN_ERROR * sorted.median_absolute_deviation()? as f64 / (count - 0.8)
        } else {
            larger(value.abs(), 1.0)
        };
        Some(Level { value, variance: count * error * error })
    }

    /// Whether what there is of a row's samples shows the value of `curve`.
    fn shows(&self, row: usize, curve: Curve) -> bool {
        curve != Curve::SendOverhead || self.delay_exceeds_gap(row) == Some(true)
    }

    /// Whether the paced rounds of a row show the send overhead; `None`
    /// without paced rounds.
    pub(super) fn delay_exceeds_gap(&self, row: usize) -> Option<bool> {
        let delay = self.shortest_delay(row)?.0;
        let rest = self.messages()?.saturating_sub(1);
        let beyond = self.round_trip_and_beyond(row).map_or(0, |(_, beyond)| beyond);
        Some(times(delay, rest.into()) > beyond)
    }

    /// The median round trip of a row and what a burst takes beyond it.
    pub(super) fn round_trip_and_beyond(&self, row: usize) -> Option<(u64, u64)> {
        let round_trip = self.middle(row, Quantity::RoundTrip)?;
        let burst = self.middle(row, Quantity::Gap)?;
        Some((round_trip, burst.saturating_sub(round_trip)))
    }

    /// Writes the points of `curve` at the sizes of `span` to the front
    /// of `points`, in ascending order of size, and returns that
    /// part. Points that do not fit are left out: lend one per row.
    ///
    /// A handful of samples may agree by chance: the variance of a single
    /// sample is largely taken from the neighbours where there are few.
    pub(super) fn points<'p>(
        &self,
        curve: Curve,
        span: Span,
        points: &'p mut [Point],
    ) -> &'p mut [Point] {
        let mut count = 0;
        for row in self.rows_in(span) {
            let (Some(size), Some(level)) = (self.size(row), self.level(row, curve)) else {
                continue;
            };
            let point = Point::new(size.into(), level.value, sqrt(level.variance));
            if let (Ok(point), Some(place)) = (point, points.get_mut(count)) {
                *place = point;
                count += 1;
            }
        }
        let points = points.get_mut(..count).unwrap_or_default();
        smooth(points, |point| self.count(self.row_of(point), curve.parts().0) as f64);
        points
    }
}

/// Standard error of the median of a normal sample, in median absolute
/// deviations over the root of its size: √(π/2)/0.6745.
const MEDIAN_ERROR: f64 = 1.858_142_4;

/// Points on each side whose errors a point's own is averaged with.
const NEIGHBOURS: usize = 3;

/// Samples at which a size's own variance counts as much as its
/// neighbours'. The variance from m samples has a relative error of about
/// 2/√m, and a line's chi-square needs it better than that.
const OWN_WEIGHT: f64 = 32.0;

/// Replaces the variance of a single sample of each point by a mean of itself
/// and the typical one of its neighbourhood, weighted by the number of
/// `samples`.
fn smooth(points: &mut [Point], samples: impl Fn(&Point) -> f64) {
    // Variances of the point in the middle, of those behind it before and of
    // those before it, overwritten by now, after it.
    let mut window = [0.0; 2 * NEIGHBOURS + 1];
    for ahead in 0..points.len() + NEIGHBOURS {
        let next = points.get(ahead).map_or(0.0, |point| {
            let sigma = point.sigma().unwrap_or(0.0);
            samples(point) * sigma * sigma
        });
        insert_first(&mut window, next);
        // How many of the window are beyond the last point.
        let beyond = (ahead + 1).saturating_sub(points.len());
        let neighbours = window.get(beyond..window.len().min(ahead + 1)).unwrap_or_default();
        let typical = typical_value(neighbours);
        let middle = ahead.checked_sub(NEIGHBOURS).and_then(|index| points.get_mut(index));
        if let (Some(point), Some(own)) = (middle, window.get(NEIGHBOURS)) {
            let count = samples(point);
            let both = count * own + OWN_WEIGHT * typical;
            let sigma = sqrt(both / (count * (count + OWN_WEIGHT)));
            *point = Point::new(point.size(), point.value(), sigma).unwrap_or(*point);
        }
    }
}

/// The mean of `values`, none of them negative, without the largest and the
/// smallest where there are more than two.
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
    use crate::measure::{Experiment, RowHeader, Sample};

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
        let row = store.row(0, Confidence::P95, 50_000).unwrap();
        assert_eq!(row.half_rtt, Some(Estimate::exact(SignedPicos(3_500))));
        assert_eq!(row.gap, Some(Estimate::exact(SignedPicos(900))));
        assert_eq!(row.send_overhead, Some(Estimate::exact(SignedPicos(300))));
        assert_eq!(row.recv_overhead, Some(Estimate::exact(SignedPicos(250))));
        assert_eq!((row.samples, row.delay), ([6; 4], Some(Picos(7_000))));
        assert_eq!(store.row(1, Confidence::P95, 50_000), None);
    }

    #[test]
    fn a_delay_below_the_gap_shows_no_overhead() {
        let (mut rows, mut values) = ([RowHeader::default(); 1], [0; 64]);
        let mut store = SampleStore::new(&mut rows, &mut values);
        insert(&mut store, Quantity::RoundTrip, 0, 7_000);
        insert(&mut store, Quantity::Gap, 0, 7_000 + 9 * 9_000);
        insert(&mut store, Quantity::Paced, 7_000, 7_000 + 9 * 9_000);
        let row = store.row(0, Confidence::P95, 50_000).unwrap();
        assert_eq!(row.send_overhead, None);
        assert_eq!(row.gap.map(|gap| (gap.value.0, gap.mark)), Some((9_000, Mark::BudgetSpent)));
    }

    #[test]
    fn gap_values_are_taken_as_they_are() {
        let (mut rows, mut values) = ([RowHeader::default(); 1], [0; 64]);
        let mut store = SampleStore::new(&mut rows, &mut values);
        for gap in [-3, 5, -1] {
            store.insert_gap(8, SignedPicos(gap)).unwrap();
        }
        let gap = store.row(0, Confidence::P95, 50_000).and_then(|row| row.gap).unwrap();
        assert_eq!(
            (gap.value, gap.low, gap.high),
            (SignedPicos(-1), SignedPicos(-3), SignedPicos(5))
        );
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
    fn the_typical_value_ignores_the_extremes() {
        let cases: [(&[f64], f64); 4] =
            [(&[], 0.0), (&[9.0], 9.0), (&[1.0, 9.0], 5.0), (&[9e5, 1.0, 4.0, 16.0], 10.0)];
        for (values, expected) in cases {
            assert!((typical_value(values) - expected).abs() < 1e-6, "{values:?}");
        }
    }
}
