//! What is measured at one point, and what came of it.

use crate::units::{Bytes, PerByte, Picos};

/// Which quantity a round of messages is for.
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
    /// The receive call alone, of a reply that has already arrived while the
    /// initiator was idle for `d`: the receive overhead.
    Receive,
}

/// One round of messages to be timed: the `PRTT(n, d, s)` of Hoefler et al.,
/// "`LogGP` in Theory and Practice", section 2.2.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Experiment {
    /// What the round is for.
    pub quantity: Quantity,
    /// Messages in a row, `n`.
    pub messages: u32,
    /// Busy wait between two sends, `d`; for [`Quantity::Receive`] the wait
    /// between the send and the timed receive.
    pub delay: Picos,
    /// Bytes in each message and in the reply, `s`.
    pub size: u32,
}

/// What a message takes of a link beside its payload, about: headers.
pub(in crate::measure) const HEADERS: u32 = 64;

impl Experiment {
    /// How long the messages of one direction take to pass where a byte takes
    /// `sustained`.
    pub(in crate::measure) fn passing(&self, sustained: PerByte) -> Picos {
        let message = u64::from(self.size) + u64::from(HEADERS);
        let bytes = Bytes(message.saturating_mul(self.messages.into()));
        sustained.times(bytes).unwrap_or(Picos::MAX)
    }
}

/// The outcome of one round.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Sample {
    /// What was asked.
    pub experiment: Experiment,
    /// The delay that was really kept, as a mean over the n − 1 waits: at
    /// least what was asked, more where the clock is coarse.
    pub delay: Picos,
    /// The timed span with the clock's own cost taken out: the whole
    /// `PRTT`, or the receive call alone for [`Quantity::Receive`].
    pub elapsed: Picos,
}
