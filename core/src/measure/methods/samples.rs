//! What the methods beside PRTT share.
//!
//! Each repetition of another method ends in one value a parameter. They are
//! handed on as the [`Sample`]s that a link with these parameters would show
//! to the PRTT method (Eq. 1, 3, 4), so that statistics, fit and reports are
//! the same for all methods and only what is measured differs.

use crate::measure::session::batch::beyond;
use crate::measure::{
    Buffers, Clock, Experiment, Initiator, Link, Outcome, Quantity, Sample, SessionError,
};
use crate::units::Picos;
use crate::wire::{Round, tag_of};

/// What a method beside PRTT is asked to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MethodOptions {
    /// Messages in a run.
    pub messages: u32,
    /// Most bytes of a run on their way at once: neither side may block on
    /// the other.
    pub run_bytes: u32,
}

impl Default for MethodOptions {
    /// 10 messages, 256 KiB.
    fn default() -> Self {
        Self { messages: 10, run_bytes: 1 << 18 }
    }
}

/// One repetition's values at one size as samples of the PRTT method.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MethodSamples {
    samples: [Sample; 4],
}

impl MethodSamples {
    /// From the round trip, and send overhead, receive overhead and gap in
    /// picoseconds; values that noise turned negative beyond the round trip
    /// count as far as zero.
    pub(in crate::measure) fn new(
        size: u32,
        messages: u32,
        round_trip: Picos,
        (send, receive, gap): (i64, i64, i64),
    ) -> Self {
        let sample = |quantity, (messages, delay), elapsed: Picos| Sample {
            experiment: Experiment { quantity, messages, delay, size },
            delay,
            elapsed,
        };
        let (messages, zero) = (messages.max(2), Picos::ZERO);
        let burst = |delay: Picos, each: i64| {
            let each = each.saturating_add_unsigned(delay.0);
            let more = each.saturating_mul(i64::from(messages - 1));
            Picos(round_trip.0.saturating_add_signed(more))
        };
        // Eq. 3 shows the overhead only when paced beyond the gap.
        let beyond_gap = u64::try_from(gap).unwrap_or_default().saturating_mul(2);
        let delay = Picos(round_trip.0.max(beyond_gap).saturating_add(1));
        let receive = Picos(u64::try_from(receive).unwrap_or_default());
        Self {
            samples: [
                sample(Quantity::RoundTrip, (1, zero), round_trip),
                sample(Quantity::Gap, (messages, zero), burst(zero, gap)),
                sample(Quantity::Paced, (messages, delay), burst(delay, send)),
                sample(Quantity::Receive, (1, delay), receive),
            ],
        }
    }

    /// The samples, one a quantity.
    #[must_use]
    pub const fn as_slice(&self) -> &[Sample] {
        &self.samples
    }
}

/// The front of both buffers.
pub(in crate::measure) fn windows<'b>(
    buffers: &'b mut Buffers<'_>,
    message: u32,
    reply: u32,
) -> (&'b mut [u8], &'b mut [u8]) {
    let length = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
    let (message, reply) = (length(message), length(reply));
    (
        buffers.outgoing.get_mut(..message).unwrap_or_default(),
        buffers.incoming.get_mut(..reply).unwrap_or_default(),
    )
}

impl<C: Clock, L: Link> Initiator<'_, C, L> {
    /// The elapsed time of one experiment.
    pub(in crate::measure) fn elapsed(
        &mut self,
        experiment: &Experiment,
    ) -> Result<Option<Picos>, SessionError<L::Error>> {
        Ok(match self.measure(experiment)? {
            Outcome::Sample(sample) => Some(sample.elapsed),
            Outcome::Late(_) | Outcome::Lost(_) => None,
        })
    }

    /// Announces `round`, in which the initiator waits `idle` a message, and
    /// gives the limit of its time in ticks; `None` when the responder did
    /// not answer on a datagram link.
    pub(in crate::measure) fn begin_round(
        &mut self,
        round: Round,
        idle: Picos,
    ) -> Result<Option<u64>, SessionError<L::Error>> {
        self.agreed.check(&[round]).map_err(beyond)?;
        if !self.announce(&[round])? {
            self.synchronise()?;
            return Ok(None);
        }
        let tag = tag_of(self.sequence);
        if let Some(first) = self.buffers.outgoing.first_mut() {
            *first = tag;
        }
        let messages = u64::from(round.messages) + u64::from(round.replies());
        let bytes = u64::from(round.messages) * u64::from(round.size)
            + u64::from(round.replies()) * u64::from(round.reply_size);
        let waits = self.clock.ticks(idle).saturating_mul(u64::from(round.messages));
        Ok(Some(self.timeout.limit(messages, bytes).saturating_add(waits)))
    }

    /// Counts a round that came to its end after `whole` ticks.
    pub(in crate::measure) fn end_round(&mut self, sent: u32, received: u32, whole: u64) {
        self.sequence = self.sequence.wrapping_add(1);
        self.traffic.data_sent += u64::from(sent);
        self.traffic.data_received += u64::from(received);
        self.traffic.rounds += 1;
        let whole = self.clock.duration(whole);
        self.traffic.in_rounds = Picos(self.traffic.in_rounds.0.saturating_add(whole.0));
    }

    /// Gives up a round whose replies did not come.
    pub(in crate::measure) fn lose_round(
        &mut self,
        (sent, received): (u32, u32),
    ) -> Result<(), SessionError<L::Error>> {
        self.sequence = self.sequence.wrapping_add(1);
        self.traffic.data_sent += u64::from(sent);
        self.traffic.data_received += u64::from(received);
        if !self.datagrams {
            return Err(self.silent(crate::measure::Phase::Round, self.timeout.longest));
        }
        self.traffic.rounds_lost += 1;
        self.timeout.on_loss();
        self.synchronise()
    }
}
