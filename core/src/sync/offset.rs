//! The offset of two clocks, from pings.

use core::fmt;

use super::{ClockModel, SECOND};
use crate::stats::{Confidence, MedianInterval, Sorted};
use crate::units::{Picos, SignedPicos};
use crate::wide::scaled;

/// One exchange of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Ping {
    /// The own clock at or before the send.
    pub sent: Picos,
    /// The peer's clock between its receive and its answer.
    pub stamped: Picos,
    /// The own clock at or after the receive of the answer.
    pub received: Picos,
}

/// Why a ping says nothing. The estimator is unchanged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PingError {
    /// The answer was received this much before the ping was sent, which is
    /// more than the [resolution](OffsetOptions::resolution).
    Backwards(Picos),
    /// The clocks are further apart than 2⁶² ps, which is 53 days: count each
    /// from a time of its own.
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

/// When a series of pings is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OffsetOptions {
    /// Pings in a row that narrow nothing after which the series is over.
    pub patience: u32,
    /// The series is over as soon as half the bounds' width is at most this.
    pub target: Picos,
    /// It goes on while half the width exceeds this: a rank that lost its
    /// processor in every ping so far says little.
    pub widest: Picos,
    /// Most pings.
    pub most: u32,
    /// How fast the clocks may move apart, in millionths: bounds of earlier
    /// pings widen by it as time goes by.
    pub drift_ppm: u32,
    /// What the difference of a reading of one clock and one of the other may
    /// be off by: the coarser clock's granularity, and twice its jitter where
    /// readings scatter. Bounds are wider by it on each side.
    pub resolution: Picos,
}

impl Default for OffsetOptions {
    /// 20 pings that narrow nothing, at most 1,000; no target, no limit of
    /// the width; 200 ppm; readings are exact.
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
    /// The defaults for clocks of this resolution, going on while half the
    /// width exceeds what `round_trip` and it give, where `round_trip` is the
    /// quickest that such a pair is known to have: one undisturbed ping gives
    /// half of it.
    #[must_use]
    pub fn expecting(round_trip: Picos, resolution: Picos) -> Self {
        let widest = Picos(round_trip.0.saturating_add(resolution.0));
        Self { widest, resolution, ..Self::default() }
    }
}

/// How far the own clock is ahead of the peer's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Offset {
    /// The own reading at which it holds.
    pub at: Picos,
    /// Own minus peer's reading: the middle of the bounds.
    pub value: SignedPicos,
    /// Half the width of the bounds: what `value` is off by at most, as long
    /// as the clocks kept to [`OffsetOptions::drift_ppm`].
    pub half_width: Picos,
    /// The quickest round trip.
    pub round_trip: Picos,
    /// Pings so far.
    pub pings: u32,
    /// Times that a ping contradicted all before: a clock was set, or moves
    /// faster than allowed. Those before were dropped.
    pub contradictions: u32,
}

impl Offset {
    /// Of no pings.
    pub(super) const NONE: Self = Self {
        at: Picos::ZERO,
        value: SignedPicos(0),
        half_width: Picos::ZERO,
        round_trip: Picos::ZERO,
        pings: 0,
        contradictions: 0,
    };

    /// Whether the clocks may agree, which those of one domain have to.
    #[must_use]
    pub const fn allows_zero(&self) -> bool {
        self.value.0.unsigned_abs() <= self.half_width.0
    }

    /// The same clock against the reference of the peer, whose model is
    /// `peer`. The half widths add: here and to the peer's
    /// [`ClockModel::error_at`] at that time.
    ///
    /// A peer that answers with its own reading and hands its model over once
    /// is to the child what one is that answers with the global time (`HCA3`:
    /// Hunold and Carpen-Amarie 2018), but nothing is computed between
    /// receive and answer, and the bounds hold with the clocks' own drift.
    #[must_use]
    pub fn against(&self, peer: &ClockModel) -> Self {
        let reading = Picos(self.at.0.saturating_sub_signed(self.value.0));
        let value = self.value.0.saturating_add(peer.offset_at(reading).0);
        // `reading` is off by as much as the offset, by which the peer's model
        // moves at its slope; `reference_at` and the slope round by 1 ps each.
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

/// Bounds of the offset at one own reading, with `low <= high`.
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
        // The peer's reading may be as old as the ping.
        Ok(bounds.widened(received.since(sent), options.drift_ppm))
    }

    const fn width(&self) -> u64 {
        self.high.abs_diff(self.low)
    }

    /// The bounds with what the clocks may have moved in `time`.
    fn widened(self, time: Picos, drift_ppm: u32) -> Self {
        let moved = scaled(time.0, drift_ppm.into(), 1_000_000);
        let moved = if drift_ppm == 0 { 0 } else { moved.saturating_add(1) };
        let low = self.low.saturating_sub_unsigned(moved);
        Self { low, high: self.high.saturating_add_unsigned(moved), ..self }
    }

    /// What these and `later` ones allow, at the time of the later ones;
    /// `None` where that is nothing.
    fn and(self, later: Self, drift_ppm: u32) -> Option<Self> {
        let earlier = self.widened(later.at.since(self.at), drift_ppm);
        let (low, high) = (earlier.low.max(later.low), earlier.high.min(later.high));
        (low <= high).then_some(Self { at: later.at, low, high })
    }
}

/// Narrows the offset down, ping by ping.
///
/// A state machine without I/O: until [`OffsetEstimator::is_done`], exchange
/// a ping and hand it to [`OffsetEstimator::handle`].
#[derive(Debug)]
pub struct OffsetEstimator<'m> {
    options: OffsetOptions,
    bounds: Option<Bounds>,
    /// Width of the narrowest bounds so far.
    narrowest: u64,
    round_trip: Picos,
    pings: u32,
    idle: u32,
    contradictions: u32,
    /// Middles of single pings, as many as memory was lent for.
    middles: &'m mut [SignedPicos],
    kept: usize,
}

impl<'m> OffsetEstimator<'m> {
    /// An estimator. `middles` is for [`OffsetEstimator::median`], an element
    /// a ping; it may be empty.
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

    /// Takes one exchange.
    ///
    /// # Errors
    ///
    /// [`PingError`]; it does not count then.
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

    /// Whether more pings are not worth their time.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let OffsetOptions { patience, target, widest, most, .. } = self.options;
        let Some(bounds) = self.bounds else { return self.pings >= most };
        let half_width = Picos(bounds.width().div_ceil(2));
        let settled = self.idle >= patience && half_width <= widest;
        settled || half_width <= target || self.pings >= most
    }

    /// The offset as far as it is known; `None` before the first ping.
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

    /// The median of the middles of single pings, to compare with: far from
    /// [`Offset::value`], the two ways take different times. `None` where no
    /// memory was lent.
    #[must_use]
    pub fn median(&mut self, confidence: Confidence) -> Option<MedianInterval<SignedPicos>> {
        let middles = self.middles.get_mut(..self.kept)?;
        Sorted::new(middles).median_interval(confidence)
    }
}
