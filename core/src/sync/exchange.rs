//! Series of pings over one edge. The host exchanges the pings and reads the clocks ([`Pinger`]);
//! this module decides when to stop and evaluates them.

use core::fmt;

use super::{Offset, OffsetEstimator, OffsetOptions, Ping, PingError};
use crate::stats::{Confidence, MedianInterval};
use crate::units::{Picos, SignedPicos};
use crate::wide::scaled;

/// Client end of an edge between two ranks; the other end answers pings.
pub trait Pinger {
    /// Error of an exchange.
    type Error;

    /// Reading of the own clock.
    fn now(&mut self) -> Picos;

    /// Exchanges one ping with the peer.
    ///
    /// # Errors
    ///
    /// The peer is gone or the network failed.
    fn ping(&mut self) -> Result<Ping, Self::Error>;
}

/// Options of a series of pings.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SeriesOptions {
    /// Criteria of the offset's accuracy.
    pub offset: OffsetOptions,
    /// Time limit: no ping begins later than this after the first one.
    pub longest: Picos,
}

impl Default for SeriesOptions {
    /// [`OffsetOptions::default`] and one second.
    fn default() -> Self {
        Self { offset: OffsetOptions::default(), longest: Picos(super::SECOND) }
    }
}

impl SeriesOptions {
    /// Default limit with the given criteria.
    #[must_use]
    pub fn of(offset: OffsetOptions) -> Self {
        Self { offset, ..Self::default() }
    }
}

/// Reasons for the end of a series.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SeriesEnd {
    /// Further pings would hardly narrow the bounds, which are at most as wide as
    /// [`OffsetOptions::widest`].
    Settled,
    /// [`OffsetOptions::most`] pings were exchanged; the bounds hold, but are wide.
    MostPings,
    /// [`SeriesOptions::longest`] is over; the bounds hold, but are wide.
    OutOfTime,
}

/// Result of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Series {
    /// Own minus peer's clock.
    pub offset: Offset,
    /// Median of the midpoints of single pings with its 95% interval; `None` without lent memory.
    pub median: Option<MedianInterval<SignedPicos>>,
    /// True if the median lies outside the bounds: most pings took longer in one direction than in
    /// the other.
    pub median_outside: bool,
    /// Reason for the end.
    pub end: SeriesEnd,
    /// Duration on the own clock.
    pub took: Picos,
}

/// Reasons why a series has no result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SeriesError<E> {
    /// The exchange failed.
    Exchange(E),
    /// A ping is impossible: the clocks cannot be synchronised.
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

/// Exchanges pings until the offset is known well enough or the time limit is reached.
///
/// The width of the bounds decides: a rank that was descheduled in every ping so far continues
/// ([`OffsetOptions::widest`]). `middles` is memory for the median, an element per ping; it may be
/// empty.
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
        // The midpoints may be as old as the series.
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
