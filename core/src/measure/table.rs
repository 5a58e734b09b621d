//! From sample values to one number per size: the per-size table and the
//! points that lines are fitted to.

use super::samples::{insert_first, unordered};
use super::{Quantity, SampleStore};
use crate::fit::Point;
use crate::model::{Estimate, Mark};
use crate::number::{hypotenuse, larger, smaller, sqrt};
use crate::stats::{Confidence, Difference, MedianInterval, Sorted};
use crate::units::{Bytes, Picos, SignedPicos};

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

/// One value of a curve, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Derived {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// Standard error.
    pub(super) sigma: f64,
    /// Whether the samples sufficed for the confidence asked for.
    pub(super) reached: bool,
}

impl Derived {
    fn of_median(median: &MedianInterval<u64>, sigma: f64, convert: impl Fn(u64) -> f64) -> Self {
        let (low, high) = (convert(median.low), convert(median.high));
        Self { value: convert(median.median), low, high, sigma, reached: median.reached }
    }

    fn of_difference(difference: &Difference, sigma: f64) -> Self {
        let Difference { value, low, high, reached, .. } = *difference;
        Self { value, low, high, sigma, reached }
    }

    /// As a point of a sweep. A single sample has no standard error: its
    /// whole value is in doubt.
    fn point(&self, size: u32) -> Option<Point> {
        let sigma = if self.sigma.is_finite() { self.sigma } else { larger(self.value.abs(), 1.0) };
        Point::new(u64::from(size), self.value, sigma).ok()
    }

    fn estimate(&self, relative_error_ppm: u32) -> Estimate<SignedPicos> {
        let half_width = 0.5 * (self.high - self.low);
        let wanted = self.value.abs() * f64::from(relative_error_ppm) * 1e-6;
        let converged = self.reached && half_width <= wanted;
        Estimate {
            value: SignedPicos::from_f64(self.value),
            low: SignedPicos::from_f64(self.low),
            high: SignedPicos::from_f64(self.high),
            mark: if converged { Mark::Converged } else { Mark::BudgetSpent },
        }
    }
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
            self.derive(row, curve, confidence).map(|derived| derived.estimate(relative_error_ppm))
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

    /// The value of `curve` at one row; `None` where samples are missing, or
    /// the delay of the paced rounds was below the gap.
    pub(super) fn derive(
        &self,
        row: usize,
        curve: Curve,
        confidence: Confidence,
    ) -> Option<Derived> {
        if curve == Curve::SendOverhead {
            self.delay_exceeds_gap(row)?.then_some(())?;
        }
        let (quantity, minus_round_trip) = curve.parts();
        if minus_round_trip && !self.holds_gaps() {
            return self.excess(row, quantity, confidence);
        }
        let median = self.median(row, quantity, confidence)?;
        let sigma = self.standard_error(row, quantity)?;
        Some(match curve {
            Curve::HalfRtt => Derived::of_median(&median, sigma / 2.0, |time| time as f64 / 2.0),
            Curve::Gap => Derived::of_median(&median, sigma, |gap| unordered(gap).0 as f64),
            _ => Derived::of_median(&median, sigma, |time| time as f64),
        })
    }

    /// (median of `quantity` − median round trip)/(n − 1).
    fn excess(&self, row: usize, quantity: Quantity, confidence: Confidence) -> Option<Derived> {
        let many = self.median(row, quantity, confidence)?;
        let one = self.median(row, Quantity::RoundTrip, confidence)?;
        let rest = self.messages()?.checked_sub(1)?;
        let difference = Difference::of(&many, &one, rest)?;
        let errors =
            (self.standard_error(row, quantity)?, self.standard_error(row, Quantity::RoundTrip)?);
        let sigma = hypotenuse(errors.0, errors.1) / f64::from(rest);
        Some(Derived::of_difference(&difference, sigma))
    }

    /// The standard error of a cell's median, from the median absolute
    /// deviation: `√(π/2) · 1.4826 · m/(m − 0.8) · MAD / √m`, the correction
    /// for small m after Croux and Rousseeuw (COMPSTAT '92). What weights are made of must
    /// not depend on whether an outlier happens to stand at the end of an
    /// order-statistic interval. Infinite for a single sample.
    fn standard_error(&self, row: usize, quantity: Quantity) -> Option<f64> {
        let sorted = Sorted::from_ascending(self.cell(row, quantity))?;
        let deviation = sorted.median_absolute_deviation()?;
        let count = sorted.as_slice().len() as f64;
        let error = MEDIAN_ERROR * deviation as f64 * sqrt(count) / (count - 0.8);
        Some(if count > 1.0 { error } else { f64::INFINITY })
    }

    /// Whether the paced rounds of a row show the send overhead; `None`
    /// without paced rounds.
    pub(super) fn delay_exceeds_gap(&self, row: usize) -> Option<bool> {
        let delay = self.shortest_delay(row)?.0 as f64;
        let gap = self.excess(row, Quantity::Gap, Confidence::P95);
        Some(gap.is_none_or(|gap| delay > gap.value))
    }

    /// Writes the points of `curve` at the sizes from `first` to `last` to
    /// the front of `points`, in ascending order of size, and returns that
    /// part. Points that do not fit are left out: lend one per row.
    ///
    /// A handful of samples may agree by chance: the variance of a single
    /// sample is largely taken from the neighbours where there are few.
    pub(super) fn points<'p>(
        &self,
        curve: Curve,
        (first, last): (u64, u64),
        confidence: Confidence,
        points: &'p mut [Point],
    ) -> &'p mut [Point] {
        let mut count = 0;
        for row in 0..self.len() {
            let Some(size) = self.size(row).filter(|&size| (first..=last).contains(&size.into()))
            else {
                continue;
            };
            let samples = self.count(row, curve.parts().0) as f64;
            let point = self.derive(row, curve, confidence).and_then(|derived| derived.point(size));
            let point = point.map(|point| rescaled(point, sqrt(samples)));
            if let (Some(point), Some(place)) = (point, points.get_mut(count)) {
                *place = point;
                count += 1;
            }
        }
        let points = points.get_mut(..count).unwrap_or_default();
        let samples = |point: &Point| {
            let row = u32::try_from(point.size()).map(|size| self.find(size));
            row.map_or(0, |row| self.count(row.unwrap_or(usize::MAX), curve.parts().0)) as f64
        };
        smooth(points, samples);
        for point in points.iter_mut() {
            *point = rescaled(*point, 1.0 / sqrt(samples(point)));
        }
        points
    }
}

/// Standard error of the median of a normal sample, in median absolute
/// deviations over the root of its size: √(π/2)/0.6745.
const MEDIAN_ERROR: f64 = 1.858_142_4;

/// Points on each side whose errors a point's own is averaged with.
const NEIGHBOURS: usize = 3;

/// `point` with its standard error times `factor`.
fn rescaled(point: Point, factor: f64) -> Point {
    let sigma = point.sigma().unwrap_or(0.0) * factor;
    Point::new(point.size(), point.value(), sigma).unwrap_or(point)
}

/// Samples at which a size's own variance counts as much as its
/// neighbours'. The variance from m samples has a relative error of about
/// 2/√m, and a line's chi-square needs it better than that.
const OWN_WEIGHT: f64 = 32.0;

/// Replaces the variance of each point by a mean of itself and the typical
/// variance of its neighbourhood, weighted by the number of `samples`.
fn smooth(points: &mut [Point], samples: impl Fn(&Point) -> f64) {
    // The original errors of this point and those before it, which are overwritten.
    let mut before = [0.0; NEIGHBOURS + 1];
    for index in 0..points.len() {
        let own = points.get(index).and_then(Point::sigma).unwrap_or(0.0);
        insert_first(&mut before, own);
        let mut window = [0.0; 2 * NEIGHBOURS + 1];
        let behind = before.iter().take(index + 1).copied();
        let ahead = points.iter().skip(index + 1).take(NEIGHBOURS);
        let ahead = ahead.map(|point| point.sigma().unwrap_or(0.0));
        let mut count = 0;
        for (place, sigma) in window.iter_mut().zip(behind.chain(ahead)) {
            *place = sigma;
            count += 1;
        }
        let typical = typical_square(window.get(..count).unwrap_or_default());
        if let Some(point) = points.get_mut(index) {
            let share = samples(point) / (samples(point) + OWN_WEIGHT);
            let sigma = sqrt(share * own * own + (1.0 - share) * typical);
            *point = Point::new(point.size(), point.value(), sigma).unwrap_or(*point);
        }
    }
}

/// The mean of the squares without the largest and the smallest, where there
/// are more than two; at most a handful of values.
fn typical_square(values: &[f64]) -> f64 {
    let squares = || values.iter().map(|value| value * value);
    let (sum, count) = (squares().sum::<f64>(), values.len() as f64);
    if count < 3.0 {
        return sum / larger(count, 1.0);
    }
    let largest = squares().fold(0.0, larger);
    let smallest = squares().fold(f64::INFINITY, smaller);
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
    fn the_typical_square_ignores_the_extremes() {
        let cases: [(&[f64], f64); 4] =
            [(&[], 0.0), (&[3.0], 9.0), (&[1.0, 3.0], 5.0), (&[900.0, 1.0, 2.0, 4.0], 10.0)];
        for (values, expected) in cases {
            assert!((typical_square(values) - expected).abs() < 1e-6, "{values:?}");
        }
    }
}
