//! Ranges of a sweep and their lines.

use super::assessment::{AssessMemory, AssessOptions, AssessRequirements};
use super::interval::BlockSums;
use super::warning::AssessError;
use crate::fit::{self, Bound, Config, FitError, Line, Point};
use crate::measure::SampleStore;
use crate::model::{Change, Curve, Estimate, Mark, SizeLine};
use crate::number::{hypotenuse, larger, nearest, sqrt};
use crate::units::{Bytes, PerByte, Picos, SignedPerByte, SignedPicos};

/// First and last size of a range.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SizeSpan {
    /// First size.
    pub first: u32,
    /// Last size.
    pub last: u32,
}

/// The ranges of a sweep, at most `N`, and the jumps of its curves.
#[derive(Clone, Debug)]
pub(in crate::measure) struct Ranges<const N: usize> {
    /// Jumps, ascending by size.
    pub(in crate::measure) changes: heapless::Vec<Change, N>,
    /// Smallest size of each range, ascending.
    starts: heapless::Vec<u64, N>,
    /// Largest size of the sweep.
    last: u32,
}

impl<const N: usize> Ranges<N> {
    /// Finds the ranges of the samples in `store`.
    pub(in crate::measure) fn find(
        store: &SampleStore<'_>,
        options: &AssessOptions,
        memory: &mut AssessMemory<'_>,
    ) -> Result<Self, AssessError> {
        let needed = AssessRequirements::new(store.len());
        let mut rest = &mut *memory.points;
        let mut curves: [&[Point]; 4] = [&[]; 4];
        for (&curve, points) in Curve::ALL.iter().zip(&mut curves) {
            let lent = rest.len();
            let part = rest.split_off_mut(..store.len().min(lent)).unwrap_or_default();
            if part.len() < store.len() {
                return Err(AssessError::Memory(needed));
            }
            *points = store.points(curve, SizeSpan { first: 0, last: u32::MAX }, part);
        }
        let [gaps, ..] = curves;
        let (Some(first), Some(last)) = (gaps.first(), gaps.last()) else {
            return Err(AssessError::NoSamples);
        };
        let mut found = Self {
            changes: heapless::Vec::new(),
            starts: heapless::Vec::new(),
            last: narrow(last.size()),
        };
        let AssessOptions { confidence, detector, tolerance_ppm, max_changes, .. } = *options;
        let tolerance = f64::from(tolerance_ppm) * 1e-6;
        let config = Config { confidence, tolerance, max_changes, detector, ..Config::default() };
        let mut changes = heapless::Vec::<fit::Change, N>::new();
        match fit::find_ranges(&curves, &config, memory.nodes, &mut changes, &mut found.starts) {
            Ok(()) => {}
            Err(FitError::Memory(_)) => return Err(AssessError::Memory(needed)),
            // Points are in ascending order; too few of them are fitted as one range.
            Err(_) => found.starts.clear(),
        }
        for change in &changes {
            let _ = found.changes.push(of_model(change)); // as many fit
        }
        if found.starts.is_empty() {
            let _ = found.starts.push(first.size());
        }
        Ok(found)
    }

    /// Removes changes without sufficient evidence. A change is kept if, on each side, its two
    /// nearest sizes have the samples of [`floor::CHANGE`] and their values in its curve are known
    /// to [`KNOWN`]. Of changes that are [`NEAR`] each other only the largest is kept, since no
    /// protocol covers so few sizes.
    ///
    /// [`floor::CHANGE`]: super::floor::CHANGE
    pub(super) fn keep_founded(&mut self, store: &SampleStore<'_>, options: &AssessOptions) {
        self.retain(&|change| is_founded(store, change, options));
        let founded = self.changes.clone();
        self.retain(&|change| !founded.iter().any(|other| hides(other, change)));
    }

    /// Removes changes, and the ranges that begin there.
    fn retain(&mut self, keep: &dyn Fn(&Change) -> bool) {
        let starts = &mut self.starts;
        self.changes.retain(|change| {
            let is_kept = keep(change);
            if !is_kept && change.splits && starts.first() != Some(&change.at.0) {
                starts.retain(|start| *start != change.at.0);
            }
            is_kept
        });
    }

    /// First and last size of each range.
    pub(in crate::measure) fn spans(&self) -> impl Iterator<Item = SizeSpan> {
        let ends = self.starts.iter().skip(1).map(|&next| narrow(next).saturating_sub(1));
        let ends = ends.chain(core::iter::once(self.last));
        let firsts = self.starts.iter().map(|&first| narrow(first));
        firsts.zip(ends).map(|(first, last)| SizeSpan { first, last })
    }
}

/// Largest ratio of half-width to value at the sizes next to a change.
const KNOWN: f64 = 0.25;

/// Least span of a protocol: one part in this many of its first size. Bisection measures many sizes
/// around a change, and chance causes steps of some percent there.
const NEAR: u64 = 16;

/// True if `other` is a larger change at about the same size as `change`.
fn hides(other: &Change, change: &Change) -> bool {
    let near = other.at.0.abs_diff(change.at.0) < other.at.0.max(change.at.0) / NEAR;
    near && other.jump_ppm.unsigned_abs() > change.jump_ppm.unsigned_abs()
}

/// See [`Ranges::keep_founded`].
fn is_founded(store: &SampleStore<'_>, change: &Change, options: &AssessOptions) -> bool {
    if store.least_of_change() == 0 {
        return true;
    }
    let curve = Curve::of(change.parameter);
    let (quantity, _) = curve.parts();
    let at = store.find(narrow(change.at.0)).unwrap_or_else(|row| row);
    let measured = |row: &usize| store.level(*row, curve).is_some();
    let is_known = |row: usize| {
        let mut sums = BlockSums::default();
        sums.add(store, row, curve, 1.0);
        let half = sums.half_width(store, options.confidence);
        store.level(row, curve).is_some_and(|value| half <= KNOWN * value)
    };
    let is_enough = |sizes: [Option<usize>; 2]| {
        let samples = sizes.iter().flatten().map(|row| store.count(*row, quantity)).sum::<usize>();
        sizes.iter().all(|row| row.is_some_and(is_known)) && samples >= store.least_of_change()
    };
    let mut before = (0..at).rev().filter(measured);
    let mut behind = (at..store.len()).filter(measured);
    is_enough([before.next(), before.next()]) && is_enough([behind.next(), behind.next()])
}

fn of_model(change: &fit::Change) -> Change {
    let fit::Change { at, low, high, curve, jump_ppm, splits } = *change;
    let parameter = Curve::ALL.get(curve).copied().unwrap_or(Curve::Gap).parameter();
    let [at, low, high] = [at, low, high].map(Bytes);
    Change { at, low, high, parameter, jump_ppm, splits }
}

/// Converts a size of the store, which fits into 32 bits.
pub(in crate::measure) fn narrow(size: u64) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

/// [`SignedPerByte`] of one picosecond per byte.
const SLOPE_UNITS: f64 = (1 << PerByte::FRACTION_BITS) as f64;

/// Half-widths of a number's interval, by cause.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::measure) struct Width {
    /// Half-width up to which the number counts as converged.
    pub(in crate::measure) wanted: f64,
    /// Part caused by noise, which more samples would reduce.
    pub(in crate::measure) noise: f64,
    /// Part caused by points that deviate from the line.
    pub(in crate::measure) misfit: f64,
}

impl Width {
    pub(in crate::measure) fn total(&self) -> f64 {
        hypotenuse(self.noise, self.misfit)
    }

    /// Estimate of a non-negative `value` with this half-width, multiplied by `parts` (fractions of
    /// a unit).
    #[cfg_attr(target_os = "none", inline(never))]
    pub(in crate::measure) fn around(&self, value: f64, parts: f64) -> Estimate<i64> {
        let total = self.total();
        let mark = if total <= self.wanted {
            Mark::Converged
        } else if self.noise <= self.wanted {
            Mark::Misfit
        } else {
            Mark::BudgetSpent
        };
        let [value, low, high] = [value, value - total, value + total]
            .map(|number| nearest(larger(number, 0.0) * parts));
        Estimate { value, low, high, mark }
    }
}

/// Line of a curve in a range.
#[derive(Clone, Debug)]
pub(in crate::measure) struct Fitted<'p> {
    pub(in crate::measure) curve: Curve,
    pub(in crate::measure) points: &'p [Point],
    pub(in crate::measure) line: Line,
    pub(in crate::measure) at_one: Width,
    pub(in crate::measure) slope: Width,
    centre: Width,
    /// Shifts of the value at size 1 by the blocks of time.
    pub(in crate::measure) at_one_sums: BlockSums,
}

/// Share of the line's requested accuracy that suffices for a parameter with little influence on
/// the line.
const SLACK: f64 = 0.25;

impl<'p> Fitted<'p> {
    /// Fits the line through `points`, which lie in `span`; `None` if there are none.
    ///
    /// The accuracy of the value at size 1 and of the slope is judged relative to their own values.
    /// But a slope near zero has no relative accuracy, nor has a value at size 1 that is
    /// extrapolated to about zero from larger sizes. So it suffices, too, if the contribution of
    /// the slope over the range, or the value at size 1, is known to [`SLACK`] of the accuracy
    /// requested for the line's value in the range. With a single size the slope is unknown and is
    /// not waited for; the value at size 1 is then that at the size, with its error.
    pub(in crate::measure) fn new(
        store: &SampleStore<'_>,
        curve: Curve,
        points: &'p [Point],
        span: SizeSpan,
        options: &AssessOptions,
    ) -> Option<Self> {
        let line = Line::fit(points)?;
        let relative = f64::from(options.relative_error_ppm) * 1e-6;
        let slack = |size: u32| SLACK * line.at(f64::from(size.saturating_sub(1))).abs();
        let student = line.quantile(options.confidence);
        let width = |wanted, error, noise, pull: &dyn Fn(&Point) -> f64| {
            let mut sums = BlockSums::default();
            for point in points {
                sums.add(store, store.row_of(point), curve, pull(point));
            }
            let noise_width = sums.half_width(store, options.confidence);
            // Error caused by scatter in addition to the points' own noise.
            let beyond = sqrt(larger(error * error - noise * noise, 0.0));
            let misfit = if line.misfits() { student * beyond } else { 0.0 };
            (Width { wanted, noise: noise_width, misfit }, sums)
        };
        let mut fitted = Self {
            curve,
            points,
            line,
            at_one: Width::default(),
            slope: Width { wanted: f64::INFINITY, noise: f64::INFINITY, misfit: 0.0 },
            centre: Width::default(),
            at_one_sums: BlockSums::default(),
        };
        let wanted = relative * larger(line.at_one().abs(), slack(span.first));
        let (error, noise) = (line.at_one_error(), line.at_one_noise(points));
        (fitted.at_one, fitted.at_one_sums) =
            width(wanted, error, noise, &|point| line.pull_at_one(point));
        let centre = line.centre();
        (fitted.centre, _) =
            width(0.0, line.centre_error(), 0.0, &|point| line.pull_at(centre, point));
        if line.has_slope() {
            let length = f64::from(span.last.saturating_sub(span.first).max(1));
            let wanted = relative * larger(line.slope().abs(), slack(span.last) / length);
            let (error, noise) = (line.slope_error(), line.slope_noise(points));
            (fitted.slope, _) = width(wanted, error, noise, &|point| line.pull_slope(point));
        }
        fitted.widen_bound(student);
        fitted.widen_bend(student);
        Some(fitted)
    }

    /// Widens the interval of a parameter at its bound. It does not respond to any point, but may
    /// be as large as the error of the unconstrained line.
    fn widen_bound(&mut self, quantile: f64) {
        let bound = self.line.bound();
        if matches!(bound, Bound::Gap | Bound::Both) {
            self.at_one.misfit = larger(self.at_one.misfit, quantile * self.line.at_one_error());
        }
        if matches!(bound, Bound::Slope | Bound::Both) && self.line.has_slope() {
            self.slope.misfit = larger(self.slope.misfit, quantile * self.line.slope_error());
        }
    }

    /// Widens the interval of the value at the range's beginning if the curve bends and the line
    /// misses the first point: by the distance from it.
    fn widen_bend(&mut self, quantile: f64) {
        let first = self.points.iter().find(|point| !point.is_outlier());
        let Some((point, sigma)) = first.and_then(|point| Some((point, point.sigma()?))) else {
            return;
        };
        let beside = (self.line.at(point.after_first()) - point.value()).abs();
        if beside > quantile * sigma {
            self.at_one.misfit = larger(self.at_one.misfit, beside);
        }
    }

    /// Line in the form of the profile.
    pub(in crate::measure) fn size_line(&self) -> SizeLine {
        let scatter_ppm = 1e6 * self.line.scatter();
        let centre = whole(self.line.centre());
        let at_one = self.at_one.around(self.line.at_one(), 1.0);
        let slope = self.slope.around(self.line.slope(), SLOPE_UNITS);
        // The slope of a single size is unknown.
        let lowest = if self.line.has_slope() { slope.low } else { i64::MIN };
        SizeLine {
            at_one: Estimate {
                value: SignedPicos(at_one.value),
                low: SignedPicos(at_one.low),
                high: SignedPicos(at_one.high),
                mark: at_one.mark,
            },
            per_byte: Estimate {
                value: SignedPerByte(slope.value),
                low: SignedPerByte(lowest),
                high: SignedPerByte(slope.high),
                mark: slope.mark,
            },
            centre: Bytes(centre.saturating_add(1)),
            at_centre: SignedPicos(nearest(self.line.at(centre as f64))),
            centre_half_width: Picos(whole(self.centre.total())),
            scatter_ppm: u32::try_from(whole(scatter_ppm)).unwrap_or(u32::MAX),
        }
    }
}

/// `L = PRTT(1,0,1)/2 − o_s − o_r`, summed from the lines' values at size 1. The terms share round
/// trips and noise, so their shifts are summed by blocks of time before the interval is computed.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::measure) struct LatencySum {
    parts: u32,
    value: f64,
    misfit: f64,
    sums: BlockSums,
}

impl LatencySum {
    pub(in crate::measure) fn add(&mut self, fitted: &Fitted<'_>) {
        let sign = match fitted.curve {
            Curve::Gap => return,
            Curve::HalfRtt => 1.0,
            Curve::SendOverhead | Curve::RecvOverhead => -1.0,
        };
        self.value += sign * larger(fitted.line.at_one(), 0.0);
        self.misfit = hypotenuse(self.misfit, fitted.at_one.misfit);
        self.sums.include(&fitted.at_one_sums, sign);
        self.parts += 1;
    }

    /// Value and half-width; `None` if a term was not measured.
    pub(in crate::measure) fn width(
        &self,
        store: &SampleStore<'_>,
        options: &AssessOptions,
    ) -> Option<(f64, Width)> {
        let wanted = larger(self.value, 0.0) * f64::from(options.relative_error_ppm) * 1e-6;
        let noise = self.sums.half_width(store, options.confidence);
        (self.parts == 3).then_some((self.value, Width { wanted, noise, misfit: self.misfit }))
    }
}

/// Nearest non-negative integer, saturating at 2⁶³ − 1.
pub(in crate::measure) fn whole(value: f64) -> u64 {
    u64::try_from(nearest(value)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Experiment, Quantity, RowHeader, Sample, floor};
    use crate::model::Parameter;

    /// True if a change at 64 B counts, with `counts` round trips of 16, 32, 64 and 128 B that
    /// differ by `spread` percent to both sides, of `least` that are required.
    fn counts(counts: [usize; 4], spread: u64, least: usize) -> bool {
        let (mut rows, mut values) = ([RowHeader::default(); 4], [0; 4 * 4 * 80]);
        let mut store = SampleStore::new(&mut rows, &mut values);
        store.claim_from(floor::VALUE, least);
        let experiment =
            |size| Experiment { quantity: Quantity::RoundTrip, messages: 1, delay: Picos(0), size };
        for (size, count) in [16, 32, 64, 128].into_iter().zip(counts) {
            for index in 0..count as u64 {
                let elapsed = Picos(10_000 * (100 - spread + spread * (index % 3)));
                let experiment = experiment(size);
                store.insert(&Sample { experiment, delay: Picos(0), elapsed }).unwrap();
            }
        }
        let at = Bytes(64);
        let parameter = Parameter::HalfRtt;
        let change = Change { at, low: at, high: at, parameter, jump_ppm: 500_000, splits: true };
        is_founded(&store, &change, &AssessOptions::default())
    }

    #[test]
    fn a_change_takes_the_samples_of_two_sizes_on_each_side() {
        for (least, half) in [(floor::CHANGE, 4), (floor::CHANGE_ON_BUSY, 40)] {
            assert!(counts([half; 4], 0, least));
            assert!(!counts([half, half - 1, half, half], 0, least));
            assert!(!counts([half, half, half - 1, half], 0, least));
            assert!(!counts([0, 2 * half, half, half], 0, least), "one size is no side");
        }
        assert_eq!([floor::CHANGE, floor::CHANGE_ON_BUSY], [8, 80]);
        assert!(counts([1; 4], 0, 0), "samples of a file cannot be extended");
    }

    #[test]
    fn values_beside_a_change_are_known_within_a_quarter() {
        assert!(counts([12; 4], 10, floor::CHANGE));
        assert!(!counts([12; 4], 80, floor::CHANGE));
    }
}
