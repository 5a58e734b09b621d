//! Experiment (one round to be timed) and sample (its result).

use crate::units::{Bytes, PerByte, Picos};

/// Quantity measured by a round of messages.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Quantity {
    /// `PRTT(1, 0, s)`: one message there, one back (Eq. 1).
    RoundTrip,
    /// `PRTT(n, 0, s)`: n messages back to back, one reply (Eq. 2).
    Gap,
    /// `PRTT(n, d, s)` with `d` beyond the gap, for the send overhead
    /// (Eq. 4).
    Paced,
    /// The receive call alone, for a reply that arrived while the initiator was idle for `d`: the
    /// receive overhead.
    Receive,
}

/// One round of messages to be timed: the `PRTT(n, d, s)` of Hoefler et al.,
/// "`LogGP` in Theory and Practice", section 2.2.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Experiment {
    /// Quantity to measure.
    pub quantity: Quantity,
    /// Number of messages, `n`.
    pub messages: u32,
    /// Busy wait between two sends, `d`; for [`Quantity::Receive`] the wait
    /// between the send and the timed receive.
    pub delay: Picos,
    /// Bytes in each message and in the reply, `s`.
    pub size: u32,
}

/// Approximate size of a message's headers on the link, in bytes.
pub(in crate::measure) const HEADERS: u32 = 64;

impl Experiment {
    /// Time for the messages of one direction to pass a link that takes `sustained` per byte.
    pub(in crate::measure) fn passing(&self, sustained: PerByte) -> Picos {
        let message = u64::from(self.size) + u64::from(HEADERS);
        let bytes = Bytes(message.saturating_mul(self.messages.into()));
        sustained.times(bytes).unwrap_or(Picos::MAX)
    }
}

/// Result of one round.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Sample {
    /// Experiment that was run.
    pub experiment: Experiment,
    /// Measured delay, averaged over the n − 1 waits: at least the one requested, more if the clock
    /// is coarse.
    pub delay: Picos,
    /// Timed span without the clock's own cost: the whole `PRTT`, or the receive call alone for
    /// [`Quantity::Receive`].
    pub elapsed: Picos,
}
