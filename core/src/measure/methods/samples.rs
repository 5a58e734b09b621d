//! Common parts of the methods other than PRTT.
//!
//! Each repetition of such a method gives one value per parameter. They are converted to the
//! [`Sample`]s that the PRTT method would measure on a link with these parameters (Eq. 1, 3, 4), so
//! that statistics, fit and reports are the same for all methods and only the measurement differs.

use crate::measure::session::batch::beyond;
use crate::measure::{
    Buffers, Clock, Experiment, Initiator, Link, Outcome, Quantity, Sample, SessionError,
};
use crate::units::Picos;
use crate::wire::{Round, tag_of};

/// Options of a method other than PRTT.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MethodOptions {
    /// Number of messages in a run.
    pub messages: u32,
    /// Most bytes of a run in flight, so that the ends do not block each other.
    pub run_bytes: u32,
}

impl Default for MethodOptions {
    /// 10 messages and 256 KiB.
    fn default() -> Self {
        Self { messages: 10, run_bytes: 1 << 18 }
    }
}

/// Values of one repetition at one size. Differences are negative where noise exceeds them.
#[derive(Clone, Copy, Debug)]
pub(in crate::measure) struct Repetition {
    pub(in crate::measure) size: u32,
    pub(in crate::measure) round_trip: Picos,
    /// Send overhead, in picoseconds.
    pub(in crate::measure) send: i64,
    /// Receive overhead, in picoseconds.
    pub(in crate::measure) receive: i64,
    /// Gap, in picoseconds.
    pub(in crate::measure) gap: i64,
}

impl Repetition {
    /// Converts the values to samples of bursts of `messages`. Negative ones count as zero where a
    /// sample cannot represent them.
    pub(in crate::measure) fn samples(self, messages: u32) -> MethodSamples {
        let Self { size, round_trip, send, receive, gap } = self;
        let sample = |quantity, messages, delay, elapsed: Picos| Sample {
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
        // By Eq. 3 only a delay beyond the gap shows the overhead.
        let beyond_gap = u64::try_from(gap).unwrap_or_default().saturating_mul(2);
        let delay = Picos(round_trip.0.max(beyond_gap).saturating_add(1));
        let receive = Picos(u64::try_from(receive).unwrap_or_default());
        MethodSamples {
            samples: [
                sample(Quantity::RoundTrip, 1, zero, round_trip),
                sample(Quantity::Gap, messages, zero, burst(zero, gap)),
                sample(Quantity::Paced, messages, delay, burst(delay, send)),
                sample(Quantity::Receive, 1, delay, receive),
            ],
        }
    }
}

/// Values of one repetition at one size, as samples of the PRTT method.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MethodSamples {
    samples: [Sample; 4],
}

impl MethodSamples {
    /// Samples, one for each quantity.
    #[must_use]
    pub const fn as_slice(&self) -> &[Sample] {
        &self.samples
    }
}

/// Beginnings of both buffers, of the given lengths.
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
    /// Elapsed time of one experiment; `None` if there is no sample.
    pub(in crate::measure) fn elapsed(
        &mut self,
        experiment: &Experiment,
    ) -> Result<Option<Picos>, SessionError<L::Error>> {
        Ok(match self.measure(experiment)? {
            Outcome::Sample(sample) => Some(sample.elapsed),
            Outcome::Late(_) | Outcome::Lost(_) => None,
        })
    }

    /// Announces `round`, in which the initiator waits `idle` for each message, and returns the
    /// time limit of the round in ticks; `None` if the responder did not answer on a datagram link.
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

    /// Counts a completed round that took `whole` ticks.
    pub(in crate::measure) fn end_round(&mut self, sent: u32, received: u32, whole: u64) {
        self.sequence = self.sequence.wrapping_add(1);
        self.traffic.data_sent += u64::from(sent);
        self.traffic.data_received += u64::from(received);
        self.traffic.rounds += 1;
        let whole = self.clock.duration(whole);
        self.traffic.in_rounds = Picos(self.traffic.in_rounds.0.saturating_add(whole.0));
    }

    /// Abandons a round whose replies did not arrive.
    pub(in crate::measure) fn lose_round(
        &mut self,
        sent: u32,
        received: u32,
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
