//! Linearity of clock drift: the slides' 50,000 offsets, one a second for 14 hours ("yes, the
//! clocks drift! But linearly"), on virtual clocks or as recorded by `sync --record`.

use std::convert::Infallible;

use loggap_core::fit::{GrowingLine, Point};
use loggap_core::random::Random;
use loggap_core::stats::Sorted;
use loggap_core::sync::{ClockModel, Offset, Pinger as _, SeriesError, stop_after};
use loggap_core::units::{Picos, SignedPicos};
use serde::Serialize;

use super::clock::{ClockTruth, VirtualClock};
use super::errors::Errors;
use super::path::Path;
use super::pinger::VirtualPinger;
use super::{SECOND, seconds};

/// Largest ratio of the residuals' root mean square to their noise for a drift that counts as
/// linear.
const LINEAR: f64 = 2.0;
/// Least noise, in ps: the granularity of the clocks.
const LEAST_NOISE: f64 = 1_000.0;
/// Least percentage of the windows of a span in which drift has to be linear.
const LINEAR_PERCENT: usize = 95;
/// Fewest offsets in a window: ten intervals, of which two may be missing.
const LEAST_OFFSETS: usize = 8;

/// Drift of a clock, and how far its offsets lie from a line.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DriftStudy {
    /// Number of offsets, without those left out.
    pub offsets: usize,
    /// Number of disturbed offsets, which are left out.
    pub left_out: usize,
    /// Time from the first offset to the last.
    #[serde(rename = "span_s", serialize_with = "seconds")]
    pub span: Picos,
    /// Slope of the line, or the mean drift nearest to it that the bounds allow, 10⁻⁶.
    pub drift_ppm: f64,
    /// Lower bound of the mean drift, by half of the round trips of the first and the last offset;
    /// `None` if a clock was set.
    pub drift_ppm_lo: Option<f64>,
    /// Upper bound of the mean drift.
    pub drift_ppm_hi: Option<f64>,
    /// True if the drift is linear over the whole span.
    pub linear: bool,
    /// Longest of `spans` in which the drift is linear; zero without one.
    #[serde(rename = "linear_for_s", serialize_with = "seconds")]
    pub linear_for: Picos,
    /// Spans of 1, 10, 100 s and so on, and the whole one.
    pub spans: Vec<SpanRow>,
}

/// Lines fitted to offsets, one for each window of a length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SpanRow {
    /// Length of a window.
    #[serde(rename = "span_s", serialize_with = "seconds")]
    pub span: Picos,
    /// Number of windows with a line.
    pub windows: usize,
    /// Root mean square of the residuals.
    #[serde(rename = "residual_rms_s", serialize_with = "seconds")]
    pub residual_rms: Picos,
    /// Largest magnitude of a residual.
    #[serde(rename = "residual_max_s", serialize_with = "seconds")]
    pub residual_max: Picos,
    /// True if the root mean square is at most twice the noise in 95 percent of the windows.
    pub linear: bool,
    /// Errors of lines that are extrapolated to the end of the next window; `None` for one window.
    pub extrapolated: Option<Errors>,
}

/// Drift of virtual clocks.
#[derive(Clone, Debug, Serialize)]
pub struct WanderRow {
    /// Wander of the clocks, 10⁻⁹ in a second.
    pub wander_ppb: f64,
    /// Result.
    #[serde(flatten)]
    pub study: DriftStudy,
}

/// Studies clocks whose drift is constant, wanders a little, and much.
///
/// # Errors
///
/// [`SeriesError`].
pub fn drift(seed: u64) -> Result<Vec<WanderRow>, SeriesError<Infallible>> {
    let study = |wander_ppb| {
        let truth = ClockTruth { wander_ppb, widest_wander_ppb: 50.0, ..ClockTruth::USUAL };
        let mut clocks = [0, 1].map(|stream| VirtualClock::new(truth, seed, stream));
        let offsets = record(&mut clocks, 50_000, Random::new(seed))?;
        Ok(WanderRow { wander_ppb, study: DriftStudy::of(&offsets) })
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
    /// Studies `offsets`, which are in order of time; no result for fewer than three.
    #[must_use]
    pub fn of(all: &[Offset]) -> Self {
        let offsets = &undisturbed(all)[..];
        let left_out = all.len() - offsets.len();
        let ([first, .., last], Some(whole)) = (offsets, Fit::of(offsets)) else {
            return Self { left_out, ..Self::default() };
        };
        let span = last.at.since(first.at);
        let decades = (0..).map_while(|power| 10_u64.checked_pow(power)?.checked_mul(SECOND));
        let decades = decades.map(Picos).take_while(|length| *length < span);
        let mut spans: Vec<SpanRow> =
            decades.filter_map(|length| SpanRow::of(length, &windows(offsets, length))).collect();
        spans.extend(SpanRow::of(span, &[Window { number: 0, offsets }]));
        let linear_for = spans.iter().rfind(|row| row.linear).map_or(Picos::ZERO, |row| row.span);
        let slope = nearest(whole.slope * SECOND as f64);
        let bounds = ClockModel::between(first, last).ok().map(|model| {
            let error = model.drift_error;
            [model.drift.saturating_sub_unsigned(error), model.drift.saturating_add_unsigned(error)]
        });
        let ppm = |drift: i64| drift as f64 * 1e-6;
        Self {
            offsets: offsets.len(),
            left_out,
            span,
            drift_ppm: ppm(bounds.map_or(slope, |[low, high]| slope.clamp(low, high))),
            drift_ppm_lo: bounds.map(|[low, _]| ppm(low)),
            drift_ppm_hi: bounds.map(|[_, high]| ppm(high)),
            linear: linear_for == span,
            linear_for,
            spans,
        }
    }
}

/// Offsets except those whose round trip exceeds four times the median: a rank lost its processor
/// in every ping.
pub(crate) fn undisturbed(offsets: &[Offset]) -> Vec<Offset> {
    let mut round_trips: Vec<Picos> = offsets.iter().map(|offset| offset.round_trip).collect();
    let median = Sorted::new(&mut round_trips).median().unwrap_or_default();
    let most = Picos(median.0.saturating_mul(4));
    offsets.iter().filter(|offset| offset.round_trip <= most).copied().collect()
}

/// Offsets within a part of the time.
struct Window<'o> {
    /// Number of windows before it, those without offsets included.
    number: u64,
    offsets: &'o [Offset],
}

/// Windows of `length`, except those with too few offsets for a line.
fn windows(offsets: &[Offset], length: Picos) -> Vec<Window<'_>> {
    let begin = offsets.first().map_or(Picos::ZERO, |first| first.at);
    let number = |offset: &Offset| offset.at.since(begin).0 / length.0.max(1);
    offsets
        .chunk_by(|one, next| number(one) == number(next))
        .filter(|offsets| offsets.len() >= LEAST_OFFSETS)
        .filter_map(|offsets| Some(Window { number: number(offsets.first()?), offsets }))
        .collect()
}

impl SpanRow {
    /// Row of `windows` of this length; `None` without a line.
    fn of(span: Picos, windows: &[Window<'_>]) -> Option<Self> {
        let fits: Vec<Fit> = windows.iter().map_while(|one| Fit::of(one.offsets)).collect();
        let ahead = fits.iter().zip(windows.array_windows()).filter_map(|(fit, [one, next])| {
            let last = next.offsets.last().filter(|_| next.number == one.number + 1)?;
            Some(picos(fit.residual(last).abs()))
        });
        let mut ahead: Vec<Picos> = ahead.collect();
        let count = fits.len();
        let linear = fits.iter().filter(|fit| fit.is_linear()).count();
        let squares: f64 = fits.iter().map(|fit| fit.rms * fit.rms).sum();
        (count > 0).then(|| Self {
            span,
            windows: count,
            residual_rms: picos((squares / count as f64).sqrt()),
            residual_max: picos(fits.iter().map(|fit| fit.max).fold(0.0, f64::max)),
            linear: linear * 100 >= count * LINEAR_PERCENT,
            extrapolated: (!ahead.is_empty()).then(|| Errors::of(&mut ahead)),
        })
    }
}

fn nearest(value: f64) -> i64 {
    SignedPicos::from_f64(value).0
}

fn picos(value: f64) -> Picos {
    Picos(nearest(value).unsigned_abs())
}

/// Line with its residuals' statistics, in ps.
pub(crate) struct Fit {
    first: Offset,
    begin: f64,
    slope: f64,
    rms: f64,
    max: f64,
    /// Root mean square of the residuals for a constant drift, estimated from second differences,
    /// which slow changes of the drift hardly affect.
    noise: f64,
}

impl Fit {
    /// Fits a line; `None` for fewer than three offsets.
    pub(crate) fn of(offsets: &[Offset]) -> Option<Self> {
        let first = *offsets.first()?;
        let mut line = GrowingLine::new();
        for offset in offsets {
            // A size of 1 stands for the time 0, as a `GrowingLine` subtracts the first byte.
            let passed = offset.at.since(first.at).0.saturating_add(1);
            line.add(Point::new(passed, moved(offset, &first), 0.0).ok()?);
        }
        let (begin, slope) = (line.gap()?, line.gap_per_byte()?);
        let line = Self { first, begin, slope, rms: 0.0, max: 0.0, noise: 0.0 };
        let residuals: Vec<f64> = offsets.iter().map(|offset| line.residual(offset)).collect();
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
        Some(Self { rms: (squares / (counted + 2) as f64).sqrt(), max, noise, ..line })
    }

    /// Distance of `offset` from the line, in ps.
    pub(crate) fn residual(&self, offset: &Offset) -> f64 {
        let passed = offset.at.signed_difference(self.first.at) as f64;
        moved(offset, &self.first) - (self.begin + self.slope * passed)
    }

    fn is_linear(&self) -> bool {
        self.rms <= LINEAR * self.noise.max(LEAST_NOISE)
    }
}

/// Change from one offset to another, in ps.
fn moved(to: &Offset, from: &Offset) -> f64 {
    to.value.0.saturating_sub(from.value.0) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: u64 = 1_000_000;

    /// Study of `count` offsets, and the true drift on the own clock, 10⁻⁶.
    fn studied(truth: ClockTruth, count: u64) -> (DriftStudy, f64) {
        let mut clocks = [0, 1].map(|stream| VirtualClock::new(truth, 10, stream));
        let mut ahead = clocks;
        let mut at = |now: u64| ahead.each_mut().map(|clock| clock.exact_at(Picos(now)));
        let ([own, peer], [own_end, peer_end]) = (at(0), at(count * SECOND));
        let gained = own_end.signed_difference(peer_end) - own.signed_difference(peer);
        let drift = gained as f64 / own_end.since(own).seconds() * 1e-6;
        let offsets = record(&mut clocks, count, Random::new(2)).unwrap();
        (DriftStudy::of(&offsets), drift)
    }

    #[test]
    fn fifty_thousand_seconds_of_constant_drift_are_a_line() {
        let (study, drift) = studied(ClockTruth::USUAL, 50_000);
        assert!((study.drift_ppm - drift).abs() < 0.001 + drift.abs() * 1e-4, "{study:?} {drift}");
        assert!(study.linear, "{study:?}");
        assert!(study.span.0.abs_diff(49_999 * SECOND) < 2 * SECOND, "{study:?}");
        let spans: Vec<u64> = study.spans.iter().map(|row| row.span.0 / SECOND).collect();
        assert!(spans.starts_with(&[10, 100, 1_000, 10_000]) && spans.len() == 5, "{spans:?}");
        for row in &study.spans {
            assert!(row.linear && row.residual_rms.0 < MICROSECOND / 10, "{row:?}");
            assert!(row.residual_max >= row.residual_rms);
            let ahead = row.extrapolated.map(|errors| errors.mean.0 < MICROSECOND / 5);
            assert_eq!(ahead, (row.span < study.span).then_some(true), "{row:?}");
        }
        let bounds = [study.drift_ppm_lo, study.drift_ppm_hi].map(Option::unwrap);
        assert!(bounds[0] <= drift && drift <= bounds[1], "{study:?} {drift}");
        assert!(bounds[1] - bounds[0] < 1e-4, "{study:?}");
    }

    #[test]
    fn a_wandering_drift_is_a_line_for_a_while_only() {
        let truth = ClockTruth { wander_ppb: 1.0, widest_wander_ppb: 50.0, ..ClockTruth::USUAL };
        let (study, drift) = studied(truth, 20_000);
        assert!(!study.linear, "{study:?}");
        assert!((10 * SECOND..2_000 * SECOND).contains(&study.linear_for.0), "{study:?}");
        assert!((study.drift_ppm - drift).abs() < 0.1, "{study:?} {drift}");
        let [ten, .., whole] = &study.spans[..] else { panic!("{study:?}") };
        assert!(whole.residual_max.0 > 20 * MICROSECOND, "{study:?}");
        let thousand = study.spans[2].extrapolated.unwrap();
        assert!(thousand.mean.0 > 20 * ten.extrapolated.unwrap().mean.0, "{study:?}");
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
        let most = |study: &DriftStudy| study.spans.last().unwrap().residual_max;
        assert_eq!((study.drift_ppm, most(&study), study.linear), (3.0, Picos(0), true));
        assert_eq!(DriftStudy::of(&offsets[..2]), DriftStudy::default());
        offsets[60].value.0 += 90_000_000;
        let study = DriftStudy::of(&offsets);
        assert!(most(&study).0.abs_diff(90_000_000) < 2_000_000, "{study:?}");
        // In a longer round trip than the others'.
        offsets[60].round_trip = Picos(1);
        let study = DriftStudy::of(&offsets);
        assert_eq!((study.offsets, study.left_out, most(&study)), (99, 1, Picos(0)));
        // A clock that is set by 1 s.
        offsets[60..].iter_mut().for_each(|offset| offset.value.0 += SECOND.cast_signed());
        assert_eq!(DriftStudy::of(&offsets).drift_ppm_lo, None);
    }
}
