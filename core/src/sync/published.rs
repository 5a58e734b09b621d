//! Published synchronisation schemes, for comparison: the smallest round trip of a series that
//! stops after N pings without a smaller one, the linear scheme of `SKaMPI`, and the binomial tree
//! of Netgauge, which merges differences (Hoefler, Schneider, Lumsdaine, "Accurately Measuring
//! Collective Operations at Massive Scale", 2008).
//!
//! None of them bounds its error, considers the width of its result, or models drift.

use super::exchange::{Pinger, SeriesError};
use super::{Offset, Ping, PingError};
use crate::units::{Picos, SignedPicos};

/// Offset estimator based on the fastest ping: assumes that both directions take half of its round
/// trip.
#[derive(Clone, Copy, Debug)]
pub struct MinRoundTrip {
    patience: u32,
    most: u32,
    best: Option<Offset>,
    pings: u32,
    idle: u32,
}

impl MinRoundTrip {
    /// Estimator that stops after `patience` consecutive pings without a smaller round trip, or
    /// after `most` pings. Netgauge uses 100 and no limit.
    #[must_use]
    pub const fn new(patience: u32, most: u32) -> Self {
        Self { patience, most, best: None, pings: 0, idle: 0 }
    }

    /// Adds one exchange.
    ///
    /// # Errors
    ///
    /// [`PingError::Backwards`]; the exchange is then ignored.
    pub fn handle(&mut self, ping: &Ping) -> Result<(), PingError> {
        if ping.received < ping.sent {
            return Err(PingError::Backwards(ping.sent.since(ping.received)));
        }
        self.pings = self.pings.saturating_add(1);
        let round_trip = ping.received.since(ping.sent);
        if self.best.is_some_and(|best| best.round_trip <= round_trip) {
            self.idle = self.idle.saturating_add(1);
            return Ok(());
        }
        self.idle = 0;
        let at = Picos(ping.sent.0.midpoint(ping.received.0));
        self.best = Some(Offset {
            at,
            value: SignedPicos(at.signed_difference(ping.stamped)),
            half_width: Picos(round_trip.0.div_ceil(2)),
            round_trip,
            pings: self.pings,
            contradictions: 0,
        });
        Ok(())
    }

    /// True if the series should end.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.idle >= self.patience && self.pings > 0 || self.pings >= self.most
    }

    /// Own minus peer's clock at the midpoint of the fastest ping. The half-width is half of its
    /// round trip, which the published schemes do not state.
    #[must_use]
    pub fn offset(&self) -> Option<Offset> {
        Some(Offset { pings: self.pings, ..self.best? })
    }
}

/// Exchanges pings until `patience` consecutive ones had no smaller round trip.
///
/// # Errors
///
/// [`SeriesError`].
pub fn stop_after<P: Pinger>(
    pinger: &mut P,
    patience: u32,
    most: u32,
) -> Result<Offset, SeriesError<P::Error>> {
    let mut smallest = MinRoundTrip::new(patience, most);
    while !smallest.is_done() {
        let ping = pinger.ping().map_err(SeriesError::Exchange)?;
        smallest.handle(&ping).map_err(SeriesError::Ping)?;
    }
    smallest.offset().ok_or(SeriesError::NoPing)
}

/// Scheme that synchronises all ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Scheme {
    /// The root pings one rank after the other (`SKaMPI`, as described in the slides). O(p).
    Linear,
    /// Binomial tree from the leaves up: in the round of distance d = 1, 2, 4… every rank that is a
    /// multiple of 2d pings the rank d after it and adds the difference to all those received from
    /// it; ranks beyond the largest power of two come last (Netgauge's `ng_sync.c`). O(log p).
    Binomial,
}

/// Exchange of two ranks in a published scheme.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MergeStep {
    /// Rank that pings and receives the differences known to the other.
    pub client: u32,
    /// Rank that answers.
    pub server: u32,
    /// Number of ranks, from `server` on, to whose differences the new one is added; 1 is the
    /// server alone.
    pub merged: u32,
}

impl Scheme {
    /// All exchanges of `ranks` ranks, in a valid sequential order. Exchanges of the tree with
    /// equal `merged` run concurrently. A rank beyond the largest power of two learns the
    /// difference of its client to the root and adds its own.
    pub fn steps(self, ranks: u32) -> impl Iterator<Item = MergeStep> {
        let linear = if self == Self::Linear { ranks } else { 0 };
        let tree = if self == Self::Binomial { ranks } else { 0 };
        let power = tree.checked_ilog2().map_or(0, |log| 1_u32 << log);
        let linear = (1..linear).map(|server| MergeStep { client: 0, server, merged: 1 });
        let rounds = (0..power.max(1).trailing_zeros()).flat_map(move |round| {
            let distance = 1_u32 << round;
            let clients = (0..power).step_by(usize::try_from(distance).unwrap_or(1) * 2);
            clients.map(move |client| MergeStep {
                client,
                server: client + distance,
                merged: distance,
            })
        });
        let extra = (power..tree).map(move |server| MergeStep {
            client: server - power,
            server,
            merged: 1,
        });
        linear.chain(rounds).chain(extra)
    }

    /// Applies the difference between `step`'s client and server to `offsets`, the corrections to
    /// add to each rank's clock, which start at zero.
    pub fn merge(step: &MergeStep, difference: SignedPicos, offsets: &mut [SignedPicos]) {
        let (Ok(client), Ok(server), Ok(merged)) = (
            usize::try_from(step.client),
            usize::try_from(step.server),
            usize::try_from(step.merged),
        ) else {
            return;
        };
        // Zero within the tree: the client itself is merged later.
        let known = offsets.get(client).copied().unwrap_or_default();
        for offset in offsets.iter_mut().skip(server).take(merged) {
            offset.0 = offset.0.saturating_add(difference.0).saturating_add(known.0);
        }
    }
}
