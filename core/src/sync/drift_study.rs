//! Whether clocks drift linearly: the slides' 50,000 offsets, one a second for
//! 14 hours ("yes, the clocks drift! But linearly"; Hoefler, Schneider,
//! Lumsdaine, 2008), on any pair of clocks or from a record.

use super::exchange::{Pinger, SeriesError};
use super::published::stop_after;
use super::{DriftError, SECOND};
use crate::fit::{GrowingLine, Point};
use crate::number::{larger, nearest, sqrt};
use crate::units::{Picos, SignedPicos};

/// The residuals' root mean square is at most so many times their noise where
/// a line holds.
const LINEAR: f64 = 2.0;
/// Noise is taken as at least this, in ps: the granularity of the clocks that
/// records usually come from.
const LEAST_NOISE: f64 = 1_000.0;
/// A line holds over a span if it does in so many percent of all parts of that
/// span.
const MOST_PARTS: usize = 95;
/// Fewest offsets in a part.
const LEAST_OFFSETS: usize = 16;

/// An offset of two clocks, and when it was measured.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TimedOffset {
    /// The own clock.
    pub at: Picos,
    /// Own minus peer's clock.
    pub offset: SignedPicos,
}

/// A line through offsets, and what it leaves.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DriftStudy {
    /// From the first offset to the last.
    pub span: Picos,
    /// Slope of the line, in ps per second, which is 10⁻⁶ ppm.
    pub drift: i64,
    /// Its standard error, as far as residuals are independent.
    pub drift_error: u64,
    /// Root mean square of the residuals.
    pub residual_rms: Picos,
    /// Largest magnitude of a residual.
    pub residual_max: Picos,
    /// Root mean square of what the line would leave if the drift were
    /// constant: from second differences, which a slow change of the drift
    /// does not touch.
    pub noise: Picos,
    /// The longest span, out of the whole, its half, quarter and so on, over
    /// which a line leaves no more than twice the noise (in 95 percent of
    /// the parts, each with a line of its own); zero where none does.
    pub linear_for: Picos,
}

impl DriftStudy {
    /// Whether one line holds for the whole.
    #[must_use]
    pub fn is_linear(&self) -> bool {
        self.linear_for == self.span
    }
}

/// Fills `samples` with one offset every `every` of the own clock, each the
/// smallest round trip of a series that stops after `patience` pings without
/// a smaller one; 0 is a single ping.
///
/// # Errors
///
/// [`SeriesError`]; `samples` is filled up to there.
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

/// Fits a line to `samples`, which are in the order of time.
///
/// # Errors
///
/// [`DriftError::NoOffsets`] below three, [`DriftError::Order`],
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

/// The longest span over which lines hold.
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

/// A line and what it leaves, in ps.
struct Fit {
    line: GrowingLine,
    rms: f64,
    max: f64,
    noise: f64,
}

impl Fit {
    /// `None` below three samples.
    fn of(samples: &[TimedOffset]) -> Option<Self> {
        let first = samples.first()?;
        let place = |sample: &TimedOffset| {
            // The line is one of gaps over bytes, whose first byte costs nothing:
            // size 1 stands for no time passed.
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
        // A second difference of independent values has 1 + 4 + 1 variances.
        let noise = sqrt(bends / (6.0 * f64::from(counted)));
        Some(Self { line, rms: sqrt(squares / f64::from(counted + 2)), max, noise })
    }

    fn is_linear(&self) -> bool {
        self.rms <= LINEAR * larger(self.noise, LEAST_NOISE)
    }
}
