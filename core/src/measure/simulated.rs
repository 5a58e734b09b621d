//! A link on virtual time whose parameters are known: what a measurement
//! finds on it can be compared with the truth.
//!
//! [`Simulated`] is clock and link at once, and holds the far end too: a
//! [`Mirror`] that answers what is sent. Time advances only by what the
//! calls cost under the model of Eq. 1 to 3 (Hoefler et al., "`LogGP` in
//! Theory and Practice", section 2):
//!
//! - a send keeps the processor for `o_s + (s − 1)·O_s`; the network takes
//!   the next message no sooner than `g + (s − 1)·G` after the last;
//! - its last byte arrives `o_s + L + (s − 1)·G` after the network took it;
//! - a receive keeps the processor for `o_r + (s − 1)·O_r`.
//!
//! The clock reads time exactly and each reading costs what it says.

use core::cell::{Cell, RefCell};
use core::convert::Infallible;

use super::{Clock, Link, LinkProperties, Mirror};
use crate::units::{Bytes, PerByte, Picos};
use crate::wire::{Bounds, FRAME_LEN};

/// The parameters of one protocol, valid from its first size on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Truth {
    /// First message size of this protocol, in bytes.
    pub first_size: u32,
    /// Latency, `L`.
    pub latency: Picos,
    /// Send overhead of one byte, `o_s`.
    pub send_overhead: Picos,
    /// Send overhead of each further byte.
    pub send_overhead_per_byte: PerByte,
    /// Receive overhead of one byte, `o_r`.
    pub recv_overhead: Picos,
    /// Receive overhead of each further byte.
    pub recv_overhead_per_byte: PerByte,
    /// Gap, `g`.
    pub gap: Picos,
    /// Gap per byte, `G`.
    pub gap_per_byte: PerByte,
}

/// What spoils a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Disturbance {
    /// Seed of every random choice.
    pub seed: u64,
    /// Standard deviation of each send, travel and receive, as a fraction of
    /// its duration.
    pub noise: f64,
    /// Probability that a round is an outlier.
    pub outliers: f64,
    /// Probability that a message of either direction is lost.
    pub losses: f64,
}

/// Messages of the far end on their way back.
const IN_FLIGHT: usize = 64;
/// Memory of the far end: its longest reply.
const LONGEST: usize = 1 << 16;

/// One end of a simulated link, the clock beside it, and the far end.
#[derive(Debug)]
pub struct Simulated<'t> {
    now: Cell<u64>,
    read_cost: u64,
    truth: &'t [Truth],
    disturbance: Disturbance,
    random: Random,
    mirror: Mirror,
    /// When the network takes the next message.
    network_free: u64,
    /// When the far processor is free.
    far_free: u64,
    /// Factor of the round under way, 1 unless it is an outlier.
    outlier: f64,
    /// No message of the round has been sent yet.
    round_begins: bool,
    replies: heapless::Deque<Reply, IN_FLIGHT>,
    /// The control frame among them: there is one at a time.
    control: [u8; FRAME_LEN],
    /// Looks for a message in a row that found none.
    polls: u32,
    /// Lengths are all that the far end looks at, beside control frames.
    far: [u8; 512],
}

/// A message on its way back.
#[derive(Clone, Copy, Debug)]
struct Reply {
    arrives: u64,
    length: usize,
    /// First byte of a data message; a control frame has none.
    tag: Option<u8>,
}

impl<'t> Simulated<'t> {
    /// A link that follows `truth`, protocols by ascending first size, under
    /// `disturbance`; reading its clock costs `read_cost`.
    #[must_use]
    pub fn new(truth: &'t [Truth], disturbance: Disturbance, read_cost: Picos) -> Self {
        let reliable = disturbance.losses <= 0.0;
        let properties = LinkProperties { max_message: Bytes(LONGEST as u64), reliable };
        let bounds = Bounds::default().with_message_at_most(properties.max_message);
        Self {
            now: Cell::new(0),
            read_cost: read_cost.0,
            truth,
            disturbance,
            random: Random(disturbance.seed),
            mirror: Mirror::new(bounds, properties),
            network_free: 0,
            far_free: 0,
            outlier: 1.0,
            round_begins: true,
            replies: heapless::Deque::new(),
            control: [0; FRAME_LEN],
            polls: 0,
            far: [0; 512],
        }
    }

    /// The parameters in force for messages of `size` bytes.
    #[must_use]
    pub fn truth(&self, size: usize) -> Truth {
        let rules = |truth: &&Truth| truth.first_size as usize <= size.max(1);
        self.truth.iter().rev().find(rules).copied().unwrap_or_default()
    }

    fn advance(&self, picos: u64) {
        self.now.set(self.now.get().saturating_add(picos));
    }

    /// `base + (size − 1)·per_byte` with noise.
    fn cost(&mut self, base: Picos, per_byte: PerByte, size: usize) -> u64 {
        let rest = per_byte.times(Bytes(size as u64).after_first()).unwrap_or(Picos::MAX);
        let exact = base.0.saturating_add(rest.0);
        self.random.around(exact, self.disturbance.noise)
    }

    /// From the network's taking a message to its last byte's arrival.
    fn travel(&mut self, truth: &Truth, size: usize) -> u64 {
        let travel = self.cost(truth.latency, truth.gap_per_byte, size);
        scale(travel, self.outlier)
    }

    /// The far end gets a message that arrives at `arrives`.
    fn deliver(&mut self, arrives: u64, message: &[u8]) {
        let truth = self.truth(message.len());
        let received = self.far_free.max(arrives).saturating_add(self.cost(
            truth.recv_overhead,
            truth.recv_overhead_per_byte,
            message.len(),
        ));
        self.far_free = received;
        let reply = self.mirror.reply_length();
        self.mirror.handle(Picos(received), message);
        while let Some(length) = self.mirror.poll_transmit(&mut self.far) {
            // A data reply may be longer than the far end's memory: its length is what counts.
            let data = self.far.first().is_some_and(|first| *first < 128);
            self.send_back(if data { reply } else { length });
        }
    }

    /// The far end sends what stands at the front of its memory.
    fn send_back(&mut self, length: usize) {
        if length == 0 {
            return;
        }
        let truth = self.truth(length);
        let overhead = self.cost(truth.send_overhead, truth.send_overhead_per_byte, length);
        self.far_free = self.far_free.saturating_add(overhead);
        let arrives = self.far_free.saturating_add(self.travel(&truth, length));
        let tag = self.far.first().copied().filter(|first| *first < 128);
        if tag.is_none() {
            for (slot, byte) in self.control.iter_mut().zip(&self.far) {
                *slot = *byte;
            }
        }
        if !self.random.chance(self.disturbance.losses) {
            // Full only if the initiator never looks: then the newest is lost.
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
}

/// Looks in a row that cost nothing; from then on the link waits inside.
const PATIENT_POLLS: u32 = 64;
/// Time passes this fast for who waits in vain.
const EMPTY_POLL: u64 = 1_000_000_000;

impl Link for Simulated<'_> {
    type Error = Infallible;

    fn properties(&self) -> LinkProperties {
        let reliable = self.disturbance.losses <= 0.0;
        LinkProperties { max_message: Bytes(LONGEST as u64), reliable }
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Infallible> {
        let size = message.len();
        let truth = self.truth(size);
        self.polls = 0;
        if core::mem::take(&mut self.round_begins) {
            let hit = self.random.chance(self.disturbance.outliers);
            self.outlier = if hit { 10.0 + 90.0 * self.random.fraction() } else { 1.0 };
        }
        let overhead = self.cost(truth.send_overhead, truth.send_overhead_per_byte, size);
        let taken = self.now.get().max(self.network_free);
        let gap = self.cost(truth.gap, truth.gap_per_byte, size);
        self.network_free = taken.saturating_add(gap);
        self.advance(overhead);
        let travel = self.travel(&truth, size);
        if !self.random.chance(self.disturbance.losses) {
            self.deliver(taken.saturating_add(overhead).saturating_add(travel), message);
        }
        Ok(())
    }

    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Infallible> {
        self.round_begins = true;
        let now = self.now.get();
        let arrived = self.replies.front().is_some_and(|reply| reply.arrives <= now);
        self.polls += 1;
        if !arrived && self.polls < PATIENT_POLLS {
            return Ok(None);
        }
        // Who keeps looking waits until something arrives, or a while.
        let Some(reply) = self.replies.pop_front() else {
            self.advance(EMPTY_POLL);
            return Ok(None);
        };
        self.polls = 0;
        let truth = self.truth(reply.length);
        self.now.set(self.now.get().max(reply.arrives));
        let overhead = self.cost(truth.recv_overhead, truth.recv_overhead_per_byte, reply.length);
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

/// Clock and link of one session: both are the same simulation. While its
/// owner has borrowed the simulation for changing it, time stands still,
/// what is sent is lost and nothing arrives.
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
}

impl Link for Shared<'_, '_> {
    type Error = Infallible;

    fn properties(&self) -> LinkProperties {
        let absent = LinkProperties { max_message: Bytes(0), reliable: true };
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

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "disturbed times are inexact anyway, and the cast saturates"
)]
fn scale(picos: u64, factor: f64) -> u64 {
    if factor > 1.0 { (picos as f64 * factor) as u64 } else { picos }
}

/// Splitmix64 (Steele, Lea, Flood, OOPSLA '14) and what is drawn from it.
#[derive(Clone, Copy, Debug)]
struct Random(u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    #[allow(clippy::cast_precision_loss, reason = "53 bits are a double's own")]
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.fraction() < probability
    }

    /// Standard normal, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.fraction()));
        radius * libm::cos(2.0 * core::f64::consts::PI * self.fraction())
    }

    /// `exact` with relative normal noise, never less than a tenth of it.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "disturbed times are inexact anyway, and the cast saturates"
    )]
    fn around(&mut self, exact: u64, noise: f64) -> u64 {
        if noise <= 0.0 {
            return exact;
        }
        let factor = (1.0 + noise * self.normal()).max(0.1);
        libm::round(exact as f64 * factor) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Buffers, Experiment, Initiator, Outcome, Quantity, SessionOptions};
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
        let noisy = Disturbance { seed: 3, noise: 0.05, outliers: 0.02, losses: 0.0 };
        let experiments = vec![experiment(Quantity::Gap, 10, 0, 64); 50];
        let first = outcomes(noisy, &experiments);
        assert_eq!(first, outcomes(noisy, &experiments));
        assert_ne!(first, outcomes(Disturbance { seed: 4, ..noisy }, &experiments));
    }
}
