//! Network path between two ranks.

use loggap_core::random::Random;
use loggap_core::units::Picos;

/// Phases in which a rank shares its processor with another process, as all ranks do if there are
/// more ranks than processors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Contention {
    /// Probability that a ping begins a phase.
    pub(super) probability: f64,
    /// Mean length of a phase, exponentially distributed.
    pub(super) phase: Picos,
    /// Mean delay of a ping within a phase, exponentially distributed. In half of the phases the
    /// peer waits for its processor, which delays all of its readings; in the others the own rank
    /// does, which delays the end of its pings.
    pub(super) delay: Picos,
}

/// Delays of a ping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Path {
    /// Least delay of one direction, as the mean of both.
    pub(super) one_way: Picos,
    /// Excess of the delay to the peer over the mean, in percent; the way back is shorter by the
    /// same. From −100 to 100.
    pub(super) asymmetry_percent: i8,
    /// Mean additional delay of each direction, exponentially distributed.
    pub(super) jitter: Picos,
    /// Time from one reading of a clock to the next action.
    pub(super) reading: Picos,
    /// Sharing of processors.
    pub(super) contention: Contention,
}

impl Path {
    /// Path with `one_way` and a mean jitter of a tenth of it in both directions; readings take 20
    /// ns.
    pub(super) fn of(one_way: Picos) -> Self {
        Self {
            one_way,
            asymmetry_percent: 0,
            jitter: Picos(one_way.0 / 10),
            reading: Picos(20_000),
            contention: Contention::default(),
        }
    }

    /// Path of the published schemes: 1 us one way, and as much jitter.
    pub(super) fn jittery() -> Self {
        let one_way = Picos(1_000_000);
        Self { jitter: one_way, ..Self::of(one_way) }
    }

    /// This path, with its directions exchanged with probability one half.
    pub(super) const fn turned(self, random: &mut Random) -> Self {
        if random.draw() & 1 == 0 { self } else { self.reversed() }
    }

    /// This path as the peer sees it.
    pub(super) const fn reversed(self) -> Self {
        Self { asymmetry_percent: -self.asymmetry_percent, ..self }
    }

    /// Least duration of a ping.
    pub(super) const fn round_trip(&self) -> Picos {
        Picos(2 * (self.one_way.0 + self.reading.0))
    }

    /// Random delay of a message to the peer, in ps.
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        let percent = 100_u64.saturating_add_signed(self.asymmetry_percent.into());
        self.one_way.0 * percent / 100 + exponential(random, self.jitter)
    }
}

/// Exponentially distributed time with this mean, in ps.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive random number; the cast saturates"
)]
pub(super) fn exponential(random: &mut Random, mean: Picos) -> u64 {
    if mean == Picos::ZERO {
        return 0;
    }
    (random.exponential() * mean.0 as f64) as u64
}
