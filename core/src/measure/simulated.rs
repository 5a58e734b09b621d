//! Simulated link with known parameters, on virtual time, to compare the result of a measurement
//! with the truth.
//!
//! [`Simulated`] is clock and link at once, and includes the far end: a [`ResponderState`] that
//! answers messages. Time advances only by the cost of calls under the model of Eq. 1 to 3 (Hoefler
//! et al., "`LogGP` in Theory and Practice", section 2):
//!
//! - a send occupies the processor for `o_s + (s − 1)·O_s`; the network accepts the next message no
//!   sooner than `g + (s − 1)·G` after the last;
//! - its last byte arrives `o_s + L + (s − 1)·G` after the network accepted it;
//! - a receive occupies the processor for `o_r + (s − 1)·O_r`.
//!
//! Readings of the clock are exact, and each costs the stated time.

mod disturbance;
mod truth;

use core::cell::{Cell, RefCell};
use core::convert::Infallible;

use super::{Clock, Link, LinkProperties, ResponderState};
use crate::units::{Bytes, Picos};
use crate::wire::{Bounds, FRAME_LEN};

pub use disturbance::{
    Bursts, Correlation, Disturbance, Drift, Preemptions, RoundNoise, TwoSpeeds,
};
pub use truth::{Bend, Truth};

use disturbance::{Process, times};
use truth::Truths;

/// Most messages of the far end in flight.
const IN_FLIGHT: usize = 64;
/// Longest message of the link, in bytes.
const LONGEST: usize = 1 << 16;

/// One end of a simulated link, with its clock and the far end.
#[derive(Debug)]
pub struct Simulated<'t> {
    now: Cell<u64>,
    read_cost: u64,
    truths: Truths<'t>,
    process: Process,
    /// Draws the factor of a round. A function pointer set only by [`Simulated::with_rounds`], so
    /// that a device without round noise does not link its code.
    round_factor: fn(&mut Process, u64) -> f64,
    /// Waits until the network has room for another message. A function pointer as `round_factor`.
    stall: fn(&mut Self),
    /// Most messages without a reply that the network holds.
    capacity: usize,
    mirror: ResponderState,
    /// Time at which the network accepts the next message.
    network_free: u64,
    /// Time at which the far processor is free.
    far_free: u64,
    /// Factor of all durations in the current round.
    factor: f64,
    /// Factor of the current round's travel and receive times, 1 unless it is an outlier.
    outlier: f64,
    preemptions: Preemptions,
    /// Time of the next preemption; 0 before it was drawn.
    preempted_at: u64,
    /// Number of preemptions that the clock reports.
    interruptions: u64,
    /// True if no message of the round was sent yet.
    round_begins: bool,
    replies: heapless::Deque<Reply, IN_FLIGHT>,
    /// The control frame among the replies: at most one at a time.
    control: [u8; FRAME_LEN],
    /// Number of consecutive polls without a message.
    polls: u32,
    /// Memory of the far end, which evaluates only the lengths of data messages.
    far: [u8; 512],
}

/// A message from the far end in flight.
#[derive(Clone, Copy, Debug)]
struct Reply {
    arrives: u64,
    length: usize,
    /// First byte of a data message; `None` for a control frame.
    tag: Option<u8>,
}

impl<'t> Simulated<'t> {
    /// Link with the parameters `truth`, protocols by ascending first size, under `disturbance`; a
    /// reading of its clock costs `read_cost`.
    #[must_use]
    pub fn new(truth: &'t [Truth], disturbance: Disturbance, read_cost: Picos) -> Self {
        Self {
            now: Cell::new(0),
            read_cost: read_cost.0,
            truths: Truths { protocols: truth, bend: Bend::default() },
            process: Process::new(disturbance),
            round_factor: |_, _| 1.0,
            stall: |_| {},
            capacity: IN_FLIGHT,
            mirror: responder(properties(&disturbance)),
            network_free: 0,
            far_free: 0,
            factor: 1.0,
            outlier: 1.0,
            preemptions: Preemptions::default(),
            preempted_at: 0,
            interruptions: 0,
            round_begins: true,
            replies: heapless::Deque::new(),
            control: [0; FRAME_LEN],
            polls: 0,
            far: [0; 512],
        }
    }

    /// Adds noise that acts on whole rounds.
    #[must_use]
    pub fn with_rounds(mut self, noise: RoundNoise) -> Self {
        self.process.rounds = noise;
        self.round_factor = Process::round_factor;
        self
    }

    /// Limits the network's capacity to `messages` messages whose replies have not arrived: a send
    /// beyond them stalls, so that a round trip without `o_r` carries `messages` messages.
    #[must_use]
    pub fn with_capacity(mut self, messages: usize) -> Self {
        (self.capacity, self.stall) = (messages.max(1), Self::stall);
        self
    }

    fn stall(&mut self) {
        let now = self.now.get();
        let under_way = || self.replies.iter().filter(|reply| reply.arrives > now);
        let excess = (under_way().count() + 1).saturating_sub(self.capacity);
        let room = under_way().take(excess).last().map_or(now, |reply| reply.arrives);
        self.now.set(room);
    }

    /// Adds preemptions of the processors.
    #[must_use]
    pub const fn with_preemptions(mut self, preemptions: Preemptions) -> Self {
        self.preemptions = preemptions;
        self
    }

    /// Adds a bend of the gap.
    #[must_use]
    pub const fn bent(mut self, bend: Bend) -> Self {
        self.truths.bend = bend;
        self
    }

    /// Parameters for messages of `size` bytes.
    #[must_use]
    pub fn truth(&self, size: usize) -> Truth {
        self.truths.of(size)
    }

    /// True `G_all` of `size` bytes: `g + (s − 1)·G` plus the bend.
    #[must_use]
    pub fn gap(&self, size: usize) -> Picos {
        self.truths.gap(size)
    }

    /// True `o_s` of `size` bytes.
    #[must_use]
    pub fn send_overhead(&self, size: usize) -> Picos {
        self.truths.send_overhead(size)
    }

    /// True `PRTT(1,0,s)/2` of `size` bytes.
    #[must_use]
    pub fn half_rtt(&self, size: usize) -> Picos {
        let ends =
            self.truths.send_overhead(size).0.saturating_add(self.truths.recv_overhead(size).0);
        Picos(ends.saturating_add(self.truths.travel(size).0))
    }

    /// Current factor of all durations due to [`RoundNoise::drift`].
    #[must_use]
    pub fn drift_factor(&self) -> f64 {
        self.process.drift_factor(self.now.get())
    }

    /// Advances time without sending.
    pub fn idle(&self, duration: Picos) {
        self.advance(duration.0);
    }

    fn advance(&self, picos: u64) {
        self.now.set(self.now.get().saturating_add(picos));
    }

    /// Preempts this end if a preemption is due. Called when it sends or polls, not while it plans.
    fn preempt(&mut self) {
        let Preemptions { interval, length, told } = self.preemptions;
        let now = self.now.get();
        if length.0 == 0 || now < self.preempted_at {
            return;
        }
        if self.preempted_at > 0 {
            self.advance(length.0);
            self.interruptions += u64::from(told);
        }
        let next = self.process.pause(interval).max(1);
        self.preempted_at = self.now.get().saturating_add(next);
    }

    /// Duration in the current round of an operation that takes `exact` without disturbance.
    fn cost(&mut self, exact: Picos) -> u64 {
        let exact = scale(exact.0, self.factor);
        self.process.around(exact)
    }

    /// Time from the network's acceptance of a message to the arrival of its last byte.
    fn travel(&mut self, size: usize) -> u64 {
        let travel = self.cost(self.truths.travel(size));
        scale(travel, self.outlier)
    }

    /// Delivers a message that arrives at `arrives` to the far end.
    fn deliver(&mut self, arrives: u64, message: &[u8]) {
        let overhead = self.cost(self.truths.recv_overhead(message.len()));
        let free = self.far_free.saturating_add(self.mirror.awaited().pause.0);
        let received = free.max(arrives).saturating_add(overhead);
        self.far_free = received;
        // As repeated calls of `serve`: one session after the other.
        if self.mirror.ending().is_some() {
            self.mirror = responder(self.properties());
        }
        let reply = self.mirror.reply_length();
        self.mirror.handle(Picos(received), message);
        while let Some(length) = self.mirror.poll_transmit(&mut self.far) {
            // A data reply may be longer than the far end's memory; only its length matters.
            let data = self.far.first().is_some_and(|first| *first < 128);
            self.send_back(if data { reply } else { length });
        }
    }

    /// Sends the message in the far end's memory.
    fn send_back(&mut self, length: usize) {
        if length == 0 {
            return;
        }
        let overhead = self.cost(self.truths.send_overhead(length));
        self.far_free = self.far_free.saturating_add(overhead);
        let arrives = self.far_free.saturating_add(self.travel(length));
        let tag = self.far.first().copied().filter(|first| *first < 128);
        if tag.is_none() {
            for (slot, byte) in self.control.iter_mut().zip(&self.far) {
                *slot = *byte;
            }
        }
        if !self.process.loses() {
            // Full only if the initiator never polls: the newest message is then lost.
            let _ = self.replies.push_back(Reply { arrives, length, tag });
        }
    }
}

impl Clock for Simulated<'_> {
    fn now(&self) -> u64 {
        let now = self.now.get();
        self.advance(self.read_cost);
        now
    }

    fn duration(&self, ticks: u64) -> Picos {
        Picos(ticks)
    }

    fn ticks(&self, duration: Picos) -> u64 {
        duration.0
    }

    fn read_cost(&self) -> Picos {
        Picos(self.read_cost)
    }

    fn interruptions(&self) -> u64 {
        self.interruptions
    }
}

const fn properties(disturbance: &Disturbance) -> LinkProperties {
    LinkProperties {
        reliable: disturbance.losses <= 0.0,
        ..LinkProperties::reliable(Bytes(LONGEST as u64))
    }
}

/// State of the far end before a session.
fn responder(properties: LinkProperties) -> ResponderState {
    ResponderState::new(Bounds::default().with_message_at_most(properties.max_message), properties)
}

/// Number of consecutive polls without cost; later ones block.
const PATIENT_POLLS: u32 = 64;
/// Duration of a blocking poll without a message, in ps.
const EMPTY_POLL: u64 = 1_000_000_000;

impl Link for Simulated<'_> {
    type Error = Infallible;

    fn properties(&self) -> LinkProperties {
        properties(&self.process.disturbance)
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Infallible> {
        let size = message.len();
        self.preempt();
        (self.stall)(self);
        self.polls = 0;
        if core::mem::take(&mut self.round_begins) {
            self.outlier = self.process.outlier();
            self.factor = (self.round_factor)(&mut self.process, self.now.get());
        }
        let overhead = self.cost(self.truths.send_overhead(size));
        let taken = self.now.get().max(self.network_free);
        let gap = self.cost(self.truths.gap(size));
        self.network_free = taken.saturating_add(gap);
        self.advance(overhead);
        let travel = self.travel(size);
        if !self.process.loses() {
            self.deliver(taken.saturating_add(overhead).saturating_add(travel), message);
        }
        Ok(())
    }

    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Infallible> {
        self.round_begins = true;
        self.preempt();
        let now = self.now.get();
        let arrived = self.replies.front().is_some_and(|reply| reply.arrives <= now);
        self.polls += 1;
        if !arrived && self.polls < PATIENT_POLLS {
            return Ok(None);
        }
        // Repeated polls block until a message arrives, or for a while.
        let Some(reply) = self.replies.pop_front() else {
            self.advance(EMPTY_POLL);
            return Ok(None);
        };
        self.polls = 0;
        self.now.set(self.now.get().max(reply.arrives));
        let overhead = self.cost(self.truths.recv_overhead(reply.length));
        self.advance(scale(overhead, self.outlier));
        let length = reply.length.min(buffer.len());
        match reply.tag {
            Some(tag) => buffer.iter_mut().take(1).for_each(|first| *first = tag),
            None => buffer.iter_mut().zip(&self.control).for_each(|(slot, byte)| *slot = *byte),
        }
        Ok(Some(length))
    }

    fn discard(&mut self) -> Result<(), Infallible> {
        while let Some(reply) = self.replies.pop_front() {
            self.now.set(self.now.get().max(reply.arrives));
        }
        Ok(())
    }
}

/// Clock and link of one session, which share one simulation. While the owner has borrowed the
/// simulation mutably, time stands still, sent messages are lost and none arrive.
#[derive(Clone, Copy, Debug)]
pub struct Shared<'a, 't>(pub &'a RefCell<Simulated<'t>>);

impl Clock for Shared<'_, '_> {
    fn now(&self) -> u64 {
        self.0.try_borrow().map_or(0, |simulated| simulated.now())
    }

    fn duration(&self, ticks: u64) -> Picos {
        Picos(ticks)
    }

    fn ticks(&self, duration: Picos) -> u64 {
        duration.0
    }

    fn read_cost(&self) -> Picos {
        self.0.try_borrow().map_or(Picos::ZERO, |simulated| simulated.read_cost())
    }

    fn interruptions(&self) -> u64 {
        self.0.try_borrow().map_or(0, |simulated| simulated.interruptions())
    }
}

impl Link for Shared<'_, '_> {
    type Error = Infallible;

    fn properties(&self) -> LinkProperties {
        let absent = LinkProperties::reliable(Bytes(0));
        self.0.try_borrow().map_or(absent, |simulated| simulated.properties())
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Infallible> {
        self.0.try_borrow_mut().map_or(Ok(()), |mut simulated| simulated.send(message))
    }

    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Infallible> {
        self.0.try_borrow_mut().map_or(Ok(None), |mut simulated| simulated.poll_receive(buffer))
    }

    fn discard(&mut self) -> Result<(), Infallible> {
        self.0.try_borrow_mut().map_or(Ok(()), |mut simulated| simulated.discard())
    }
}

/// `factor` times `picos`; exactly `picos` for a factor of 1.
fn scale(picos: u64, factor: f64) -> u64 {
    if (factor - 1.0).abs() > 0.0 { times(picos, factor) } else { picos }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Buffers, Experiment, Initiator, Outcome, Quantity, SessionOptions};
    use crate::units::PerByte;
    use core::ops::ControlFlow;
    use std::vec;

    const TRUTH: Truth = Truth {
        first_size: 1,
        latency: Picos(5_000_000),
        send_overhead: Picos(700_000),
        send_overhead_per_byte: PerByte(30 << 16),
        recv_overhead: Picos(900_000),
        recv_overhead_per_byte: PerByte(20 << 16),
        gap: Picos(1_500_000),
        gap_per_byte: PerByte(80 << 16),
    };

    fn outcomes(disturbance: Disturbance, experiments: &[Experiment]) -> vec::Vec<Outcome> {
        let simulated = RefCell::new(Simulated::new(&[TRUTH], disturbance, Picos(20_000)));
        let (mut outgoing, mut incoming) = (vec![0; LONGEST], vec![0; LONGEST]);
        let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
        let (clock, link) = (Shared(&simulated), Shared(&simulated));
        let options = SessionOptions::default();
        let mut session =
            Initiator::connect(clock, link, buffers, options, |_| ControlFlow::Continue(()))
                .unwrap();
        let mut outcomes = vec![];
        session.run(experiments, |outcome| outcomes.push(outcome)).unwrap();
        outcomes
    }

    fn experiment(quantity: Quantity, messages: u32, delay: u64, size: u32) -> Experiment {
        Experiment { quantity, messages, delay: Picos(delay), size }
    }

    /// Eq. 1 to 3, in picoseconds.
    fn prtt(n: u64, d: u64, s: u64) -> u64 {
        let w = s - 1;
        let send = 700_000 + 30 * w;
        let one = 2 * (5_000_000 + send + 900_000 + 20 * w + 80 * w);
        one + (n - 1) * (send + d).max(1_500_000 + 80 * w)
    }

    #[test]
    fn without_noise_every_round_takes_what_the_equations_say() {
        let mut experiments = vec![];
        for size in [1, 2, 100, 4_096, 65_536] {
            experiments.push(experiment(Quantity::RoundTrip, 1, 0, size));
            experiments.push(experiment(Quantity::Gap, 10, 0, size));
            experiments.push(experiment(Quantity::Paced, 10, 50_000_000, size));
            experiments.push(experiment(Quantity::Receive, 1, 100_000_000, size));
        }
        let outcomes = outcomes(Disturbance::default(), &experiments);
        assert_eq!(outcomes.len(), experiments.len());
        for outcome in outcomes {
            let Outcome::Sample(sample) = outcome else { panic!("lost without losses") };
            let Experiment { quantity, messages, size, .. } = sample.experiment;
            let expected = match quantity {
                Quantity::Receive => 900_000 + 20 * (u64::from(size) - 1),
                _ => prtt(u64::from(messages), sample.delay.0, u64::from(size)),
            };
            assert_eq!(sample.elapsed, Picos(expected), "{:?}", sample.experiment);
            assert!(sample.delay >= sample.experiment.delay);
        }
    }

    #[test]
    fn lost_messages_cost_their_round_and_nothing_else() {
        let disturbance = Disturbance { seed: 7, losses: 0.01, ..Disturbance::default() };
        let experiments = vec![experiment(Quantity::Gap, 10, 0, 64); 300];
        let outcomes = outcomes(disturbance, &experiments);
        assert_eq!(outcomes.len(), experiments.len());
        let lost = outcomes.iter().filter(|o| matches!(o, Outcome::Lost(_))).count();
        assert!((10..100).contains(&lost), "{lost} of 300 rounds of 11 messages lost at 1 percent");
        for outcome in outcomes {
            if let Outcome::Sample(sample) = outcome {
                assert_eq!(sample.elapsed, Picos(prtt(10, 0, 64)));
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_values() {
        let noisy = Disturbance { seed: 3, noise: 0.05, outliers: 0.02, ..Disturbance::default() };
        let experiments = vec![experiment(Quantity::Gap, 10, 0, 64); 50];
        let first = outcomes(noisy, &experiments);
        assert_eq!(first, outcomes(noisy, &experiments));
        assert_ne!(first, outcomes(Disturbance { seed: 4, ..noisy }, &experiments));
    }
}
