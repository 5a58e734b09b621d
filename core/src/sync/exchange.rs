//! A series of pings over one edge. A host exchanges them and reads the clocks
//! ([`Pinger`]); here is decided when to stop and what follows.

use core::fmt;

use super::{Offset, OffsetEstimator, OffsetOptions, Ping, PingError};
use crate::stats::{Confidence, MedianInterval};
use crate::units::{Picos, SignedPicos};
use crate::wide::scaled;

/// The own end of an edge between two ranks, whose other end answers.
pub trait Pinger {
    /// Why an exchange failed.
    type Error;

    /// The own clock.
    fn now(&mut self) -> Picos;

    /// One exchange with the peer.
    ///
    /// # Errors
    ///
    /// The peer is gone or the network failed.
    fn ping(&mut self) -> Result<Ping, Self::Error>;

    /// Returns once the own clock has reached `own`. Spins, unless the
    /// implementor has a better way.
    fn wait_until(&mut self, own: Picos) {
        while self.now() < own {}
    }
}

/// How a series of pings is made.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SeriesOptions {
    /// When the bounds are narrow enough.
    pub offset: OffsetOptions,
    /// No ping begins later than this after the first one.
    pub longest: Picos,
}

impl Default for SeriesOptions {
    /// [`OffsetOptions::default`], one second.
    fn default() -> Self {
        Self { offset: OffsetOptions::default(), longest: Picos(super::SECOND) }
    }
}

impl SeriesOptions {
    /// The defaults with these options of the offset.
    #[must_use]
    pub fn of(offset: OffsetOptions) -> Self {
        Self { offset, ..Self::default() }
    }
}

/// Why a series ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SeriesEnd {
    /// Further pings would hardly narrow the bounds, which are no wider than
    /// [`OffsetOptions::widest`].
    Settled,
    /// After [`OffsetOptions::most`] pings; the bounds hold, but are wide.
    MostPings,
    /// After [`SeriesOptions::longest`]; the bounds hold, but are wide.
    OutOfTime,
}

/// What came of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Series {
    /// Own minus peer's clock.
    pub offset: Offset,
    /// Median of the middles of single pings, with its 95% interval, where
    /// memory was lent.
    pub median: Option<MedianInterval<SignedPicos>>,
    /// The median lies outside of the bounds, which hold: most pings were
    /// slower one way than the other.
    pub median_outside: bool,
    /// Why it ended.
    pub end: SeriesEnd,
    /// What it took, on the own clock.
    pub took: Picos,
}

/// Why a series gave nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SeriesError<E> {
    /// The exchange failed.
    Exchange(E),
    /// A ping cannot be: the clocks are not fit for it.
    Ping(PingError),
    /// The options allow no ping.
    NoPing,
}

impl<E: fmt::Display> fmt::Display for SeriesError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exchange(error) => error.fmt(f),
            Self::Ping(error) => error.fmt(f),
            Self::NoPing => f.write_str("no ping was allowed: raise the most pings of a series"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for SeriesError<E> {}

/// Exchanges pings until the offset is known well enough, or time is up.
///
/// The bounds decide, and a rank that lost its processor in every ping so far
/// goes on pinging ([`OffsetOptions::widest`]). `middles` is for the median,
/// an element a ping; it may be empty.
///
/// # Errors
///
/// [`SeriesError`].
pub fn measure_offset<P: Pinger>(
    pinger: &mut P,
    options: &SeriesOptions,
    middles: &mut [SignedPicos],
) -> Result<Series, SeriesError<P::Error>> {
    let mut estimator = OffsetEstimator::new(options.offset, middles);
    let began = pinger.now();
    let mut took = Picos::ZERO;
    while !estimator.is_done() && took < options.longest {
        let ping = pinger.ping().map_err(SeriesError::Exchange)?;
        estimator.handle(&ping).map_err(SeriesError::Ping)?;
        took = ping.received.since(began);
    }
    let offset = estimator.offset().ok_or(SeriesError::NoPing)?;
    let median = estimator.median(Confidence::P95);
    let median_outside = median.is_some_and(|median| {
        // The middles are as old as the series.
        let moved = scaled(took.0, options.offset.drift_ppm.into(), 1_000_000);
        let allowed = offset.half_width.0.saturating_add(moved);
        median.median.0.abs_diff(offset.value.0) > allowed
    });
    let end = if !estimator.is_done() {
        SeriesEnd::OutOfTime
    } else if offset.half_width <= options.offset.widest {
        SeriesEnd::Settled
    } else {
        SeriesEnd::MostPings
    };
    Ok(Series { offset, median, median_outside, end, took })
}
