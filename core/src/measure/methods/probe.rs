//! Probes: the runs of messages that the LogP signature and pLogP time, and their medians.

use core::hash::Hash;

use crate::measure::{Experiment, Quantity};
use crate::model::{Estimate, Mark};
use crate::number::{hypotenuse, larger, smaller};
use crate::units::{Picos, SignedPicos};
use crate::wire::{ReplyPolicy, Round};

/// Messages of a [`Probe`], and the part of their time that counts.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ProbeKind {
    /// Messages back to back and one reply of their size, `PRTT(n, 0, s)`: until the reply.
    Train,
    /// Messages back to back and one reply of a byte: all send calls.
    Flood,
    /// A message of a byte, and after the delay a reply: the receive call, or the send call without
    /// a delay.
    Receive,
    /// Requests with a computation of the delay after each, every one answered: `T(M, Δ)`, until
    /// the end of the last computation.
    Issue {
        /// Most unanswered requests.
        window: u32,
        /// Bytes in a reply.
        reply: u32,
        /// Computation of the responder after each reply but the last, as of a request's handler.
        handler: Picos,
    },
}

/// A run of messages that is timed alone, as the unit of measuring of the LogP signature and of
/// pLogP.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Probe {
    /// Bytes in a message; of [`ProbeKind::Receive`] in the reply.
    pub size: u32,
    /// Messages and timed part.
    pub kind: ProbeKind,
    /// Number of messages or requests, `M`.
    pub messages: u32,
    /// Computation after each request, `Δ`, or idle time before the receive.
    pub delay: Picos,
}

impl Probe {
    /// The round trip `PRTT(1, 0, s)`.
    #[must_use]
    pub const fn round_trip(size: u32) -> Self {
        Self { size, kind: ProbeKind::Train, messages: 1, delay: Picos::ZERO }
    }

    /// The PRTT experiment that a train is.
    #[must_use]
    pub const fn experiment(&self) -> Option<Experiment> {
        let Self { size, kind: ProbeKind::Train, messages, .. } = *self else { return None };
        let quantity = if messages < 2 { Quantity::RoundTrip } else { Quantity::Gap };
        Some(Experiment { quantity, messages, delay: Picos::ZERO, size })
    }

    /// Announcement of `repeats` repetitions.
    pub(in crate::measure) const fn round(&self, repeats: u16) -> Round {
        let Self { size, kind, messages, .. } = *self;
        let plain = Round { repeats, ..Round::plain(messages, size) };
        match kind {
            ProbeKind::Train => plain,
            ProbeKind::Flood => Round { reply_size: 1, ..plain },
            ProbeKind::Receive => Round { size: 1, reply_size: size, ..plain },
            ProbeKind::Issue { reply, handler, .. } => {
                let policy = ReplyPolicy::AfterEach;
                Round { policy, reply_size: reply, pause: handler, ..plain }
            }
        }
    }
}

/// One timing of a probe, without the costs of readings and empty polls; negative where these
/// exceed it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ProbeTime {
    /// Part of the run that the probe's kind names.
    pub time: SignedPicos,
    /// From the first send to the end of the last receive.
    pub whole: SignedPicos,
    /// Requests without a reply at the end of the last issue.
    pub unanswered: u32,
}

/// Medians of a probe's timings, with their intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ProbeRow {
    /// The probe.
    pub probe: Probe,
    /// Median of [`ProbeTime::time`].
    pub time: Estimate<SignedPicos>,
    /// Median of [`ProbeTime::whole`].
    pub whole: Estimate<SignedPicos>,
    /// Median of [`ProbeTime::unanswered`].
    pub unanswered: u32,
    /// Number of timings.
    pub samples: usize,
}

/// Number of timings below which a median decides nothing: its 95% interval is unbounded.
pub(super) const FEWEST: usize = 6;

/// Largest relative difference of two values that wide intervals excuse.
const UNCERTAIN: f64 = 0.2;

/// A value with half of its interval, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread {
    pub(super) value: f64,
    pub(super) half: f64,
}

impl Spread {
    pub(super) fn of(estimate: &Estimate<SignedPicos>) -> Self {
        let [value, low, high] =
            [estimate.value, estimate.low, estimate.high].map(|end| end.0 as f64);
        Self { value, half: larger(high - value, value - low) }
    }

    /// Sum of independent values.
    pub(super) fn plus(self, other: Self) -> Self {
        Self { value: self.value + other.value, half: hypotenuse(self.half, other.half) }
    }

    /// Product with a constant.
    pub(super) fn times(self, factor: f64) -> Self {
        let half = self.half * factor;
        Self { value: self.value * factor, half: larger(half, -half) }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.plus(other.times(-1.0))
    }

    /// True if the values differ by no more than `share` of this one or, up to [`UNCERTAIN`], than
    /// their intervals allow.
    pub(super) fn agrees(self, other: Self, share: f64) -> bool {
        let Self { value, half } = self.minus(other);
        let allowed = smaller(half, UNCERTAIN * self.value.abs());
        value.abs() <= larger(share * self.value.abs(), allowed)
    }

    /// The value with its interval, converged if half of that is at most `share` of it.
    pub(super) fn estimate(self, share: f64) -> Estimate<SignedPicos> {
        let Self { value, half } = self;
        let is_known = half <= share * value.abs();
        let mark = if is_known { Mark::Converged } else { Mark::BudgetSpent };
        let [value, low, high] = [value, value - half, value + half].map(SignedPicos::from_f64);
        Estimate { value, low, high, mark }
    }
}
