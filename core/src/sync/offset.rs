//! Offset of two clocks, from pings.

use core::fmt;

use super::{ClockModel, SECOND};
use crate::stats::{Confidence, MedianInterval, Sorted};
use crate::units::{Picos, SignedPicos};
use crate::wide::scaled;

/// One exchange of messages between two ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Ping {
    /// Own clock, read at or before the send.
    pub sent: Picos,
    /// Peer's clock, read between its receive and its answer.
    pub stamped: Picos,
    /// Own clock, read at or after the receive of the answer.
    pub received: Picos,
}

/// Reasons why a ping is invalid. The estimator is unchanged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PingError {
    /// The answer was received this much before the ping was sent, by more than the
    /// [resolution](OffsetOptions::resolution).
    Backwards(Picos),
    /// The clocks differ by more than 2⁶² ps, that is, 53 days; let each count from a time near its
    /// start.
    TooFarApart,
}

impl fmt::Display for PingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backwards(by) => {
                write!(f, "the own clock went back by {by} during a ping: use a monotonic one")
            }
            Self::TooFarApart => f.write_str(
                "the clocks are more than 53 days apart: count from the program's start",
            ),
        }
    }
}

impl core::error::Error for PingError {}

/// Criteria for the end of a series of pings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OffsetOptions {
    /// Consecutive pings without narrower bounds after which the series ends.
    pub patience: u32,
    /// Half-width of the bounds at which the series ends at once.
    pub target: Picos,
    /// Half-width of the bounds above which the series does not end for lack of progress: if a rank
    /// was descheduled in every ping, the bounds are wide.
    pub widest: Picos,
    /// Most pings.
    pub most: u32,
    /// Largest drift of the clocks, in millionths: the rate at which the bounds of earlier pings
    /// widen with time.
    pub drift_ppm: u32,
    /// Error bound of the difference of two clocks' readings: the coarser granularity, plus twice
    /// the jitter if readings scatter. Widens the bounds on each side.
    pub resolution: Picos,
}

impl Default for OffsetOptions {
    /// 20 pings without progress, at most 1,000; no target, no limit of the width; 200 ppm; exact
    /// readings.
    fn default() -> Self {
        Self {
            patience: 20,
            target: Picos::ZERO,
            widest: Picos::MAX,
            most: 1_000,
            drift_ppm: 200,
            resolution: Picos::ZERO,
        }
    }
}

impl OffsetOptions {
    /// Defaults for clocks of this resolution. The series continues while the half-width exceeds
    /// `round_trip` plus `resolution`, where `round_trip` is the fastest known for such a pair; one
    /// undisturbed ping gives half of that.
    #[must_use]
    pub fn expecting(round_trip: Picos, resolution: Picos) -> Self {
        let widest = Picos(round_trip.0.saturating_add(resolution.0));
        Self { widest, resolution, ..Self::default() }
    }
}

/// Difference of the own clock and a peer's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Offset {
    /// Own reading at which it holds.
    pub at: Picos,
    /// Own minus peer's reading: midpoint of the bounds.
    pub value: SignedPicos,
    /// Half the width of the bounds: error bound of `value`, as long as the clocks keep to
    /// [`OffsetOptions::drift_ppm`].
    pub half_width: Picos,
    /// Fastest round trip.
    pub round_trip: Picos,
    /// Number of pings.
    pub pings: u32,
    /// Number of pings that contradicted all before: a clock was set, or drifts faster than
    /// allowed. The earlier pings were dropped.
    pub contradictions: u32,
}

impl Offset {
    /// Offset before the first ping.
    pub(super) const NONE: Self = Self {
        at: Picos::ZERO,
        value: SignedPicos(0),
        half_width: Picos::ZERO,
        round_trip: Picos::ZERO,
        pings: 0,
        contradictions: 0,
    };

    /// True if the bounds contain zero, as those of clocks of one domain have to.
    #[must_use]
    pub const fn allows_zero(&self) -> bool {
        self.value.0.unsigned_abs() <= self.half_width.0
    }

    /// Offset of the same clock against the reference of the peer, whose model is `peer`. The
    /// half-width is the sum of this one and the peer's [`ClockModel::error_at`] at that time.
    ///
    /// Equivalent for the child to a peer that answers with the global time (`HCA3`: Hunold and
    /// Carpen-Amarie 2018). But this peer answers with its own reading and sends its model once, so
    /// that nothing is computed between receive and answer, and the bounds depend on the clocks'
    /// own drift only.
    #[must_use]
    pub fn against(&self, peer: &ClockModel) -> Self {
        let reading = Picos(self.at.0.saturating_sub_signed(self.value.0));
        let value = self.value.0.saturating_add(peer.offset_at(reading).0);
        // `reading` has the error of the offset, and the peer's model changes by its slope over
        // that time; `reference_at` and the slope round by 1 ps each.
        let slope = peer.drift.unsigned_abs().saturating_add(peer.drift_error);
        let moved = scaled(self.half_width.0, slope, SECOND).saturating_add(2);
        let half_width = self.half_width.0.saturating_add(peer.error_at(reading).0);
        Self {
            value: SignedPicos(value),
            half_width: Picos(half_width.saturating_add(moved)),
            ..*self
        }
    }
}

/// Bounds of the offset at one own reading, `low <= high`.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    at: Picos,
    low: i64,
    high: i64,
}

impl Bounds {
    fn of(ping: &Ping, options: &OffsetOptions) -> Result<Self, PingError> {
        let Ping { sent, stamped, received } = *ping;
        if sent.since(received) > options.resolution {
            return Err(PingError::Backwards(sent.since(received)));
        }
        let bounds = Self {
            at: received,
            low: sent.signed_difference(stamped),
            high: received.signed_difference(stamped),
        };
        let limit = 1 << 62;
        if bounds.low < -limit || bounds.high > limit {
            return Err(PingError::TooFarApart);
        }
        let bounds = Self {
            low: bounds.low.saturating_sub_unsigned(options.resolution.0),
            high: bounds.high.saturating_add_unsigned(options.resolution.0),
            ..bounds
        };
        // The peer may have read its clock at any time during the ping.
        Ok(bounds.widened(received.since(sent), options.drift_ppm))
    }

    const fn width(&self) -> u64 {
        self.high.abs_diff(self.low)
    }

    /// These bounds, widened by the largest drift over `time`.
    fn widened(self, time: Picos, drift_ppm: u32) -> Self {
        let moved = scaled(time.0, drift_ppm.into(), 1_000_000);
        let moved = if drift_ppm == 0 { 0 } else { moved.saturating_add(1) };
        let low = self.low.saturating_sub_unsigned(moved);
        Self { low, high: self.high.saturating_add_unsigned(moved), ..self }
    }

    /// Intersection with `later` bounds, at their time; `None` if it is empty.
    fn and(self, later: Self, drift_ppm: u32) -> Option<Self> {
        let earlier = self.widened(later.at.since(self.at), drift_ppm);
        let (low, high) = (earlier.low.max(later.low), earlier.high.min(later.high));
        (low <= high).then_some(Self { at: later.at, low, high })
    }
}

/// Estimator that narrows the bounds of an offset ping by ping.
///
/// A state machine without I/O: until [`OffsetEstimator::is_done`], exchange a ping and pass it to
/// [`OffsetEstimator::handle`].
#[derive(Debug)]
pub struct OffsetEstimator<'m> {
    options: OffsetOptions,
    bounds: Option<Bounds>,
    /// Narrowest width so far, in ps.
    narrowest: u64,
    round_trip: Picos,
    pings: u32,
    idle: u32,
    contradictions: u32,
    /// Midpoints of single pings, up to the length of the lent memory.
    middles: &'m mut [SignedPicos],
    kept: usize,
}

impl<'m> OffsetEstimator<'m> {
    /// Estimator without pings. `middles` is memory for [`OffsetEstimator::median`], an element per
    /// ping; it may be empty.
    #[must_use]
    pub const fn new(options: OffsetOptions, middles: &'m mut [SignedPicos]) -> Self {
        Self {
            options,
            bounds: None,
            narrowest: u64::MAX,
            round_trip: Picos::MAX,
            pings: 0,
            idle: 0,
            contradictions: 0,
            middles,
            kept: 0,
        }
    }

    /// Adds one exchange.
    ///
    /// # Errors
    ///
    /// [`PingError`]; the exchange is then ignored.
    pub fn handle(&mut self, ping: &Ping) -> Result<(), PingError> {
        let drift_ppm = self.options.drift_ppm;
        let new = Bounds::of(ping, &self.options)?;
        let narrowed = match self.bounds.map(|known| known.and(new, drift_ppm)) {
            Some(Some(both)) => both,
            Some(None) => {
                self.contradictions = self.contradictions.saturating_add(1);
                (self.narrowest, self.kept) = (u64::MAX, 0);
                new
            }
            None => new,
        };
        self.idle = if narrowed.width() < self.narrowest { 0 } else { self.idle.saturating_add(1) };
        self.narrowest = self.narrowest.min(narrowed.width());
        self.bounds = Some(narrowed);
        self.pings = self.pings.saturating_add(1);
        self.round_trip = self.round_trip.min(ping.received.since(ping.sent));
        if let Some(place) = self.middles.get_mut(self.kept) {
            *place = SignedPicos(new.low.midpoint(new.high));
            self.kept += 1;
        }
        Ok(())
    }

    /// True if the series should end.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let OffsetOptions { patience, target, widest, most, .. } = self.options;
        let Some(bounds) = self.bounds else { return self.pings >= most };
        let half_width = Picos(bounds.width().div_ceil(2));
        let settled = self.idle >= patience && half_width <= widest;
        settled || half_width <= target || self.pings >= most
    }

    /// Current bounds of the offset; `None` before the first ping.
    #[must_use]
    pub fn offset(&self) -> Option<Offset> {
        let bounds = self.bounds?;
        Some(Offset {
            at: bounds.at,
            value: SignedPicos(bounds.low.midpoint(bounds.high)),
            half_width: Picos(bounds.width().div_ceil(2)),
            round_trip: self.round_trip,
            pings: self.pings,
            contradictions: self.contradictions,
        })
    }

    /// Median of the midpoints of single pings, for comparison: a large difference from
    /// [`Offset::value`] means that the two directions take different times. `None` without lent
    /// memory.
    #[must_use]
    pub fn median(&mut self, confidence: Confidence) -> Option<MedianInterval<SignedPicos>> {
        let middles = self.middles.get_mut(..self.kept)?;
        Sorted::new(middles).median_interval(confidence)
    }
}
