//! Parametrised `LogP`: Kielmann, Bal and Verstoep, "Fast Measurement of
//! `LogP` Parameters for Message Passing Platforms", IPDPS 2000.
//!
//! For each size `m` one repetition measures
//!
//! - `o_s(m)`: the duration of the send call for a message of `m` bytes that is answered by one
//!   byte;
//! - `o_r(m)`: the duration of the receive call for a reply of `m` bytes that arrived while the
//!   sender was idle for longer than the round trip;
//! - `g(m) = RTT(m) − RTT(1) + g(1)`, with `RTT(m)` the round trip of `m` bytes there and one back,
//!   and `g(1)` from a long burst of one-byte messages with a single acknowledgement;
//! - the round trip of `m` bytes both ways.
//!
//! The smallest message is 1 byte, since a stream carries no empty one.

use crate::measure::methods::samples::{Repetition, windows};
use crate::measure::session::kernel::without_reading;
use crate::measure::{
    Clock, Deadline, Experiment, Initiator, Link, MethodOptions, MethodSamples, Quantity,
    SessionError,
};
use crate::units::Picos;
use crate::wire::Round;

/// Length of the burst of one-byte messages, relative to that of other bursts.
const SATURATION: u32 = 8;

/// Durations of the parts of a round.
#[derive(Clone, Copy)]
struct Parts {
    /// All send calls.
    send: Picos,
    /// Time from the first send to the end of the reply, or of the receive call only if the sender
    /// was idle before it.
    rest: Picos,
}

impl<C: Clock, L: Link> Initiator<'_, C, L> {
    /// Runs one repetition of pLogP at `size`; `None` if a message was lost.
    ///
    /// # Errors
    ///
    /// As [`Initiator::run`].
    pub fn plogp(
        &mut self,
        size: u32,
        options: &MethodOptions,
    ) -> Result<Option<MethodSamples>, SessionError<L::Error>> {
        let quantity = Quantity::RoundTrip;
        let trip = Experiment { quantity, messages: 1, delay: Picos::ZERO, size };
        let Some(round_trip) = self.elapsed(&trip)? else { return Ok(None) };
        let zero = Picos::ZERO;
        let round = Round { reply_size: 1, ..Round::plain(1, size) };
        let Some(there) = self.parts(round, zero)? else { return Ok(None) };
        let Some(shortest) = self.parts(Round::plain(1, 1), zero)? else { return Ok(None) };
        let many = options.messages.saturating_mul(SATURATION).max(2);
        let Some(row) = self.parts(Round::plain(many, 1), zero)? else { return Ok(None) };
        let idle = Picos(round_trip.0.saturating_mul(2));
        let round = Round { reply_size: size, ..Round::plain(1, 1) };
        let Some(back) = self.parts(round, idle)? else { return Ok(None) };
        // The burst's reply comes one round trip after its last message; the rest are gaps.
        let gap_of_one = row.rest.signed_difference(shortest.rest) / i64::from(many - 1);
        let gap = there.rest.signed_difference(shortest.rest).saturating_add(gap_of_one);
        let signed = |time: Picos| i64::try_from(time.0).unwrap_or(i64::MAX);
        let (send, receive) = (signed(there.send), signed(back.rest));
        let repetition = Repetition { size, round_trip, send, receive, gap };
        Ok(Some(repetition.samples(options.messages)))
    }

    /// Sends the messages of `round`, is idle for `idle`, and receives the reply.
    fn parts(
        &mut self,
        round: Round,
        idle: Picos,
    ) -> Result<Option<Parts>, SessionError<L::Error>> {
        let Round { messages, size, reply_size, .. } = round;
        let Some(limit) = self.begin_round(round, idle)? else { return Ok(None) };
        let ticks = self.clock.ticks(idle);
        let Self { clock, link, buffers, poller, .. } = self;
        let (message, reply) = windows(buffers, size, reply_size);
        let (times, first) = link
            .train(message, |link| {
                link.receive_after(reply, |link| {
                    let started = clock.now();
                    for _ in 0..messages {
                        link.send(message)?;
                    }
                    let sent = clock.now();
                    let idle = ticks > 0;
                    let from =
                        if idle { until(clock, sent.saturating_add(ticks)) } else { started };
                    Ok((started, sent, from))
                })
            })
            .map_err(SessionError::Link)?;
        let (started, sent, from) = times;
        let deadline = Deadline { since: started, limit };
        let arrived = match first {
            Some(length) => Some(length),
            None => poller.receive(clock, link, reply, deadline).map_err(SessionError::Link)?,
        };
        let ended = clock.now();
        if arrived.is_none() {
            return self.lose_round(messages, 0).map(|()| None);
        }
        let send = without_reading(clock, sent.saturating_sub(started));
        // Without an idle time, the span includes the reading between sends and receive.
        let rest = without_reading(clock, ended.saturating_sub(from));
        let rest = if ticks > 0 { rest } else { rest.since(clock.read_cost()) };
        self.end_round(messages, 1, ended.saturating_sub(started));
        Ok(Some(Parts { send, rest }))
    }
}

/// Busy-waits until the clock shows `when` and returns the last reading.
fn until<C: Clock>(clock: &C, when: u64) -> u64 {
    loop {
        let now = clock.now();
        if now >= when {
            return now;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::{
        Buffers, Disturbance, Experiment, Initiator, MethodOptions, MethodSamples, Quantity,
        SessionOptions, Shared, Simulated, Truth,
    };
    use crate::units::{PerByte, Picos};
    use core::cell::RefCell;
    use core::ops::ControlFlow;
    use std::vec;

    const TRUTH: Truth = Truth {
        first_size: 1,
        latency: Picos(5_000_000),
        send_overhead: Picos(700_000),
        send_overhead_per_byte: PerByte(30 << 16),
        recv_overhead: Picos(900_000),
        recv_overhead_per_byte: PerByte(20 << 16),
        gap: Picos(2_500_000),
        gap_per_byte: PerByte(80 << 16),
    };

    fn by<T>(method: impl Fn(&mut Initiator<'_, Shared<'_, '_>, Shared<'_, '_>>) -> T) -> T {
        let simulated =
            RefCell::new(Simulated::new(&[TRUTH], Disturbance::default(), Picos(20_000)));
        let (mut outgoing, mut incoming) = (vec![0; 65_536], vec![0; 65_536]);
        let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
        let options = SessionOptions::default();
        let on_queue = |_| ControlFlow::Continue(());
        let ends = (Shared(&simulated), Shared(&simulated));
        let mut session = Initiator::connect(ends.0, ends.1, buffers, options, on_queue).unwrap();
        method(&mut session)
    }

    fn burst(samples: MethodSamples, quantity: Quantity) -> u64 {
        let of = |q| samples.as_slice().iter().find(|s| s.experiment.quantity == q).unwrap();
        match quantity {
            Quantity::Receive => of(quantity).elapsed.0,
            _ => {
                let more = of(quantity).elapsed.0 - of(Quantity::RoundTrip).elapsed.0;
                more / 9 - of(quantity).delay.0
            }
        }
    }

    #[test]
    fn parametrised_logp_finds_the_overheads_and_the_gap_of_a_known_link() {
        for size in [1, 1_000, 60_000] {
            let w = u64::from(size) - 1;
            let samples =
                by(|session| session.plogp(size, &MethodOptions::default()).unwrap().unwrap());
            assert_eq!(burst(samples, Quantity::Paced), 700_000 + 30 * w);
            assert_eq!(burst(samples, Quantity::Receive), 900_000 + 20 * w);
            // RTT(m) − RTT(1) includes the slopes of the overheads besides G, by the method's
            // definition.
            assert_eq!(burst(samples, Quantity::Gap), 2_500_000 + (80 + 30 + 20) * w);
        }
    }

    #[test]
    fn the_signature_finds_the_parameters_of_a_known_link() {
        let samples =
            by(|session| session.signature(1, &MethodOptions::default()).unwrap().unwrap());
        let near = |found: u64, truth: u64| found.abs_diff(truth) * 50 <= truth;
        for (quantity, truth) in
            [(Quantity::Paced, 700_000), (Quantity::Receive, 900_000), (Quantity::Gap, 2_500_000)]
        {
            let found = burst(samples, quantity);
            assert!(near(found, truth), "{quantity:?}: {found} instead of {truth}");
        }
    }

    #[test]
    fn messages_both_ways_take_a_round_trip_each_alone_and_a_gap_each_in_a_window() {
        let trip =
            Experiment { quantity: Quantity::RoundTrip, messages: 1, delay: Picos::ZERO, size: 1 };
        let (trip, alone, together) = by(|session| {
            let mut both_ways = |window| session.both_ways(1, 100, window).unwrap().unwrap().0;
            let (alone, together) = (both_ways(1), both_ways(32));
            (session.elapsed(&trip).unwrap().unwrap().0, alone, together)
        });
        let near = |found: u64, truth: u64| found.abs_diff(truth) * 50 <= truth;
        assert!(near(alone, 100 * trip), "{alone} instead of 100 times {trip}");
        // The first message's round trip precedes the steady state.
        let steady = 99 * 2_500_000 + trip;
        assert!(near(together, steady), "{together} instead of {steady}");
    }
}
