//! Linearity of clock drift: repeats the slides' 50,000 offsets, one a second for 14 hours ("yes,
//! the clocks drift! But linearly").

use std::convert::Infallible;

use loggap_core::fit::{GrowingLine, Point};
use loggap_core::random::Random;
use loggap_core::sync::{Offset, Pinger as _, SeriesError, stop_after};
use loggap_core::units::{Picos, SignedPicos};
use serde::Serialize;

use super::clock::{ClockTruth, VirtualClock};
use super::path::Path;
use super::pinger::VirtualPinger;
use super::{SECOND, seconds};

/// Largest ratio of the residuals' root mean square to their noise for a drift that counts as
/// linear.
const LINEAR: f64 = 2.0;
/// Least noise, in ps: the granularity of the clocks.
const LEAST_NOISE: f64 = 1_000.0;
/// Least percentage of the parts of a span in which drift has to be linear.
const LINEAR_PERCENT: usize = 95;
/// Fewest offsets in a part.
const LEAST_OFFSETS: usize = 16;

/// Line fitted to offsets over time, and its residuals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DriftStudy {
    /// Wander of the clocks, 10⁻⁹ in a second.
    pub wander_ppb: f64,
    /// Time from the first offset to the last.
    #[serde(rename = "span_s", serialize_with = "seconds")]
    pub span: Picos,
    /// Slope of the line, 10⁻⁶.
    pub drift_ppm: f64,
    /// Root mean square of the residuals.
    #[serde(rename = "residual_rms_s", serialize_with = "seconds")]
    pub residual_rms: Picos,
    /// Largest magnitude of a residual.
    #[serde(rename = "residual_max_s", serialize_with = "seconds")]
    pub residual_max: Picos,
    /// True if the drift is linear over the whole span.
    pub linear: bool,
    /// Longest span (the whole, its half, quarter and so on) over which a line leaves at most twice
    /// the noise, in 95 percent of the parts, each with its own line; zero if no span qualifies.
    #[serde(rename = "linear_for_s", serialize_with = "seconds")]
    pub linear_for: Picos,
}

/// Studies clocks whose drift is constant, wanders a little, and much.
///
/// # Errors
///
/// [`SeriesError`].
pub fn drift(seed: u64) -> Result<Vec<DriftStudy>, SeriesError<Infallible>> {
    let study = |wander_ppb| {
        let truth = ClockTruth { wander_ppb, widest_wander_ppb: 50.0, ..ClockTruth::USUAL };
        let mut clocks = [0, 1].map(|stream| VirtualClock::new(truth, seed, stream));
        let offsets = record(&mut clocks, 50_000, Random::new(seed))?;
        Ok(DriftStudy { wander_ppb, ..DriftStudy::of(&offsets) })
    };
    [0.0, 1.0, 20.0].into_iter().map(study).collect()
}

/// Offsets of the first of `clocks` to the second, one a second, each that of the smallest round
/// trip of a series that stops after five pings without a smaller one.
fn record(
    clocks: &mut [VirtualClock],
    count: u64,
    random: Random,
) -> Result<Vec<Offset>, SeriesError<Infallible>> {
    let path = Path::of(Picos(1_000_000));
    let mut pinger = VirtualPinger::new(clocks, path, Picos::ZERO, random);
    let first = pinger.now().0;
    let offset = |second| {
        pinger.wait_until(Picos(first + second * SECOND));
        stop_after(&mut pinger, 5, u32::MAX)
    };
    (0..count).map(offset).collect()
}

impl DriftStudy {
    /// Fits a line to `offsets`, which are in order of time.
    fn of(offsets: &[Offset]) -> Self {
        let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
            return Self::default();
        };
        let Some(fit) = Fit::of(offsets) else { return Self::default() };
        let picos = |value: f64| Picos(nearest(value).unsigned_abs());
        let span = last.at.since(first.at);
        let linear_for = linear_for(offsets, span);
        Self {
            wander_ppb: 0.0,
            span,
            drift_ppm: nearest(fit.slope * SECOND as f64) as f64 * 1e-6,
            residual_rms: picos(fit.rms),
            residual_max: picos(fit.max),
            linear: linear_for == span,
            linear_for,
        }
    }
}

fn nearest(value: f64) -> i64 {
    SignedPicos::from_f64(value).0
}

/// Longest span over which the drift is linear.
fn linear_for(offsets: &[Offset], span: Picos) -> Picos {
    let mut halvings = 0;
    let mut part = offsets.len();
    while part >= LEAST_OFFSETS.min(offsets.len()) {
        let fits = || offsets.chunks_exact(part).filter_map(Fit::of);
        let linear = fits().filter(Fit::is_linear).count();
        if linear * 100 >= fits().count() * LINEAR_PERCENT && linear > 0 {
            return Picos(span.0 >> halvings);
        }
        halvings += 1;
        part /= 2;
    }
    Picos::ZERO
}

/// Line with its residuals' statistics, in ps.
struct Fit {
    slope: f64,
    rms: f64,
    max: f64,
    /// Root mean square of the residuals for a constant drift, estimated from second differences,
    /// which slow changes of the drift hardly affect.
    noise: f64,
}

impl Fit {
    /// Fits a line; `None` for fewer than three offsets.
    fn of(offsets: &[Offset]) -> Option<Self> {
        let first = offsets.first()?;
        let place = |offset: &Offset| {
            // A size of 1 stands for the time 0, as a `GrowingLine` subtracts the first byte.
            let passed = offset.at.since(first.at).0 + 1;
            Point::new(passed, (offset.value.0 - first.value.0) as f64, 0.0).ok()
        };
        let mut line = GrowingLine::new();
        offsets.iter().filter_map(place).for_each(|point| line.add(point));
        let (begin, slope) = (line.gap()?, line.gap_per_byte()?);
        let residual = |point: Point| point.value() - (begin + slope * (point.size() - 1) as f64);
        let residuals: Vec<f64> = offsets.iter().filter_map(place).map(residual).collect();
        let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
        let max = residuals.iter().fold(0.0, |max: f64, residual| max.max(residual.abs()));
        let bends = residuals.array_windows();
        let bends = bends.map(|[before, middle, after]| (before - 2.0 * middle + after).powi(2));
        let counted = bends.len();
        if counted == 0 {
            return None;
        }
        // A second difference of independent values has 1 + 4 + 1 times their variance.
        let noise = (bends.sum::<f64>() / (6.0 * counted as f64)).sqrt();
        Some(Self { slope, rms: (squares / (counted + 2) as f64).sqrt(), max, noise })
    }

    fn is_linear(&self) -> bool {
        self.rms <= LINEAR * self.noise.max(LEAST_NOISE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: u64 = 1_000_000;

    /// Study of `count` offsets, and the true drift, 10⁻⁶.
    fn studied(truth: ClockTruth, count: u64) -> (DriftStudy, f64) {
        let mut clocks = [0, 1].map(|stream| VirtualClock::new(truth, 10, stream));
        let mut ahead = clocks;
        let mut ahead_at = |now: u64| {
            let [own, peer] = ahead.each_mut().map(|clock| clock.exact_at(Picos(now)));
            own.signed_difference(peer)
        };
        let begin = ahead_at(0);
        let gained = ahead_at(count * SECOND) - begin;
        let offsets = record(&mut clocks, count, Random::new(2)).unwrap();
        (DriftStudy::of(&offsets), gained as f64 / count as f64 * 1e-6)
    }

    #[test]
    fn fifty_thousand_seconds_of_constant_drift_are_a_line() {
        let (study, drift) = studied(ClockTruth::USUAL, 50_000);
        assert!((study.drift_ppm - drift).abs() < 0.001 + drift.abs() * 1e-4, "{study:?} {drift}");
        assert!(study.linear, "{study:?}");
        assert!(study.span.0.abs_diff(49_999 * SECOND) < 2 * SECOND, "{study:?}");
        assert!(study.residual_rms.0 < MICROSECOND / 10, "{study:?}");
        assert!(study.residual_max >= study.residual_rms);
    }

    #[test]
    fn a_wandering_drift_is_a_line_for_a_while_only() {
        let truth = ClockTruth { wander_ppb: 1.0, widest_wander_ppb: 50.0, ..ClockTruth::USUAL };
        let (study, drift) = studied(truth, 20_000);
        assert!(!study.linear, "{study:?}");
        assert!((10 * SECOND..2_000 * SECOND).contains(&study.linear_for.0), "{study:?}");
        assert!((study.drift_ppm - drift).abs() < 0.1, "{study:?} {drift}");
        assert!(study.residual_max.0 > 20 * MICROSECOND, "{study:?}");
    }

    #[test]
    fn one_offset_off_the_line_is_its_largest_residual() {
        let offset = |second: u64| Offset {
            at: Picos(second * SECOND),
            value: SignedPicos(-7_000 + 3_000_000 * second.cast_signed()),
            half_width: Picos::ZERO,
            round_trip: Picos::ZERO,
            pings: 1,
            contradictions: 0,
        };
        let mut offsets: Vec<Offset> = (1..=100).map(offset).collect();
        let study = DriftStudy::of(&offsets);
        assert_eq!((study.drift_ppm, study.residual_max, study.linear), (3.0, Picos(0), true));
        assert_eq!(DriftStudy::of(&offsets[..2]), DriftStudy::default());
        offsets[60].value.0 += 90_000_000;
        let study = DriftStudy::of(&offsets);
        assert!(study.residual_max.0.abs_diff(90_000_000) < 2_000_000, "{study:?}");
    }
}
