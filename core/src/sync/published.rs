//! The schemes that others use, to compare with: the smallest round trip of a
//! series that stops after N pings without a smaller one, the linear scheme of
//! `SKaMPI` and the binomial tree of Netgauge with merged differences
//! (Hoefler, Schneider, Lumsdaine, "Accurately Measuring Collective Operations
//! at Massive Scale", 2008).
//!
//! None of them bounds its error, looks at the width of what it found, or
//! knows drift.

use super::exchange::{Pinger, SeriesError};
use super::{Offset, Ping, PingError};
use crate::units::{Picos, SignedPicos};

/// Half of the round trip subtracted from the quickest ping so far.
#[derive(Clone, Copy, Debug)]
pub struct MinRoundTrip {
    patience: u32,
    most: u32,
    best: Option<Offset>,
    pings: u32,
    idle: u32,
}

impl MinRoundTrip {
    /// Stops after `patience` pings in a row with no smaller round trip, or
    /// after `most`. Netgauge has 100 and no limit.
    #[must_use]
    pub const fn new(patience: u32, most: u32) -> Self {
        Self { patience, most, best: None, pings: 0, idle: 0 }
    }

    /// Takes one exchange.
    ///
    /// # Errors
    ///
    /// [`PingError::Backwards`]; it does not count then.
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

    /// Whether N pings brought no smaller round trip.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.idle >= self.patience && self.pings > 0 || self.pings >= self.most
    }

    /// Own minus peer's clock in the middle of the quickest ping; half of its
    /// round trip as the half width, which the published schemes do not give.
    #[must_use]
    pub fn offset(&self) -> Option<Offset> {
        Some(Offset { pings: self.pings, ..self.best? })
    }
}

/// Pings until N in a row had no smaller round trip.
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

/// A scheme of synchronising all ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Scheme {
    /// The root pings one rank after the other (`SKaMPI`, as the slides have
    /// it). O(p).
    Linear,
    /// A binomial tree from the leaves up: in the round of distance d = 1, 2,
    /// 4… every rank that is a multiple of 2d pings the one d after it, and
    /// adds the difference to all that it gets from there; ranks beyond the
    /// largest power of two come last (Netgauge's `ng_sync.c`). O(log p).
    Binomial,
}

/// What two ranks do in a published scheme.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MergeStep {
    /// Pings, and gets the differences that the other knows.
    pub client: u32,
    /// Answers.
    pub server: u32,
    /// So many ranks, from the server on, are known to the server, and the
    /// difference is added to theirs: 1 is itself alone.
    pub merged: u32,
}

impl Scheme {
    /// All steps of `ranks` ranks, in an order in which they may be done one
    /// after the other. Steps of the tree with equal `merged` go on at the
    /// same time; a rank beyond the largest power of two is told the
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

    /// Takes the difference of `step`'s client and server into `offsets`, of
    /// which each is a rank's: what to add to its clock, zero at first.
    pub fn merge(step: &MergeStep, difference: SignedPicos, offsets: &mut [SignedPicos]) {
        let (Ok(client), Ok(server), Ok(merged)) = (
            usize::try_from(step.client),
            usize::try_from(step.server),
            usize::try_from(step.merged),
        ) else {
            return;
        };
        // Zero within the tree, where the client is not merged itself yet.
        let known = offsets.get(client).copied().unwrap_or_default();
        for offset in offsets.iter_mut().skip(server).take(merged) {
            offset.0 = offset.0.saturating_add(difference.0).saturating_add(known.0);
        }
    }
}
