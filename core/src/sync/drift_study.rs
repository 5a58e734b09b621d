//! Test of the linearity of clock drift: repeats the slides' 50,000 offsets, one a second for 14
//! hours ("yes, the clocks drift! But linearly"; Hoefler, Schneider, Lumsdaine, 2008), on any pair
//! of clocks or from a record.

use super::exchange::{Pinger, SeriesError};
use super::published::stop_after;
use super::{DriftError, SECOND};
use crate::fit::{GrowingLine, Point};
use crate::number::{larger, nearest, sqrt};
use crate::units::{Picos, SignedPicos};

/// Largest ratio of the residuals' root mean square to their noise for a drift that counts as
/// linear.
const LINEAR: f64 = 2.0;
/// Least noise, in ps: the usual granularity of clocks in records.
const LEAST_NOISE: f64 = 1_000.0;
/// Least percentage of the parts of a span in which drift has to be linear.
const MOST_PARTS: usize = 95;
/// Fewest offsets in a part.
const LEAST_OFFSETS: usize = 16;

/// Offset of two clocks at a time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TimedOffset {
    /// Time on the own clock.
    pub at: Picos,
    /// Own minus peer's clock.
    pub offset: SignedPicos,
}

/// Line fitted to offsets, and its residuals.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DriftStudy {
    /// Time from the first offset to the last.
    pub span: Picos,
    /// Slope of the line, in ps per second, which is 10⁻⁶ ppm.
    pub drift: i64,
    /// Standard error of the drift, in ps per second, if residuals are independent.
    pub drift_error: u64,
    /// Root mean square of the residuals.
    pub residual_rms: Picos,
    /// Largest magnitude of a residual.
    pub residual_max: Picos,
    /// Root mean square of the residuals for a constant drift, estimated from second differences,
    /// which slow changes of the drift hardly affect.
    pub noise: Picos,
    /// Longest span (the whole, its half, quarter and so on) over which a line leaves at most twice
    /// the noise, in 95 percent of the parts, each with its own line; zero if no span qualifies.
    pub linear_for: Picos,
}

impl DriftStudy {
    /// True if the drift is linear over the whole span.
    #[must_use]
    pub fn is_linear(&self) -> bool {
        self.linear_for == self.span
    }
}

/// Fills `samples` with an offset every `every` of the own clock, each the one with the smallest
/// round trip of a series that stops after `patience` pings without a smaller one; a patience of 0
/// is a single ping.
///
/// # Errors
///
/// [`SeriesError`]; earlier samples remain valid.
pub fn record_drift<P: Pinger>(
    pinger: &mut P,
    every: Picos,
    patience: u32,
    samples: &mut [TimedOffset],
) -> Result<(), SeriesError<P::Error>> {
    let mut next = pinger.now();
    for sample in samples {
        pinger.wait_until(next);
        let offset = stop_after(pinger, patience, u32::MAX)?;
        *sample = TimedOffset { at: offset.at, offset: offset.value };
        next = Picos(next.0.saturating_add(every.0));
    }
    Ok(())
}

/// Fits a line to `samples`, which are in order of time.
///
/// # Errors
///
/// [`DriftError::NoOffsets`] for fewer than three, [`DriftError::Order`],
/// [`DriftError::Implausible`].
pub fn study_drift(samples: &[TimedOffset]) -> Result<DriftStudy, DriftError> {
    for (first, second) in samples.iter().zip(samples.iter().skip(1)) {
        if first.at >= second.at {
            return Err(DriftError::Order { first: first.at, second: second.at });
        }
    }
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return Err(DriftError::NoOffsets);
    };
    let fit = Fit::of(samples).ok_or(DriftError::NoOffsets)?;
    let slopes = (fit.line.gap_per_byte(), fit.line.gap_per_byte_error());
    let (Some(slope), Some(error)) = slopes else { return Err(DriftError::NoOffsets) };
    let drift = nearest(slope * SECOND as f64);
    super::model::plausible(drift)?;
    let picos = |value: f64| Picos(nearest(value).unsigned_abs());
    let span = last.at.since(first.at);
    Ok(DriftStudy {
        span,
        drift,
        drift_error: nearest(error * SECOND as f64).unsigned_abs(),
        residual_rms: picos(fit.rms),
        residual_max: picos(fit.max),
        noise: picos(fit.noise),
        linear_for: linear_for(samples, span),
    })
}

/// Longest span over which the drift is linear.
fn linear_for(samples: &[TimedOffset], span: Picos) -> Picos {
    let mut halvings = 0;
    let mut part = samples.len();
    while part >= LEAST_OFFSETS.min(samples.len()) {
        let fits = || samples.chunks_exact(part).filter_map(Fit::of);
        let linear = fits().filter(Fit::is_linear).count();
        if linear * 100 >= fits().count() * MOST_PARTS && linear > 0 {
            return Picos(span.0 >> halvings);
        }
        halvings += 1;
        part /= 2;
    }
    Picos::ZERO
}

/// A line with its residuals' statistics, in ps.
struct Fit {
    line: GrowingLine,
    rms: f64,
    max: f64,
    noise: f64,
}

impl Fit {
    /// Fits a line; `None` for fewer than three samples.
    fn of(samples: &[TimedOffset]) -> Option<Self> {
        let first = samples.first()?;
        let place = |sample: &TimedOffset| {
            // A size of 1 stands for the time 0, as a `GrowingLine` subtracts the first byte.
            let passed = sample.at.since(first.at).0.saturating_add(1);
            let moved = sample.offset.0.saturating_sub(first.offset.0);
            Point::new(passed, moved as f64, 0.0).ok()
        };
        let mut line = GrowingLine::new();
        samples.iter().filter_map(place).for_each(|point| line.add(point));
        let (begin, slope) = (line.gap()?, line.gap_per_byte()?);
        let residuals = samples.iter().filter_map(place).map(|point| {
            let passed = point.size().saturating_sub(1) as f64;
            point.value() - (begin + slope * passed)
        });
        let (mut squares, mut max, mut bends, mut counted) = (0.0, 0.0, 0.0, 0_u32);
        let mut last: [Option<f64>; 2] = [None; 2];
        for residual in residuals {
            squares += residual * residual;
            max = larger(max, residual.abs());
            if let [Some(before), Some(middle)] = last {
                let bend = before - 2.0 * middle + residual;
                bends += bend * bend;
                counted += 1;
            }
            last = [last[1], Some(residual)];
        }
        if counted == 0 {
            return None;
        }
        // A second difference of independent values has 1 + 4 + 1 times their variance.
        let noise = sqrt(bends / (6.0 * f64::from(counted)));
        Some(Self { line, rms: sqrt(squares / f64::from(counted + 2)), max, noise })
    }

    fn is_linear(&self) -> bool {
        self.rms <= LINEAR * larger(self.noise, LEAST_NOISE)
    }
}
