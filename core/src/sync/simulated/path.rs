//! The network between two ranks.

use crate::random::Random;
use crate::units::Picos;

/// Phases in which a rank shares its processor with another process, as every
/// rank does where there are more ranks than processors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Contention {
    /// Probability that a phase begins with a ping.
    pub probability: f64,
    /// Mean length of a phase, exponentially distributed.
    pub phase: Picos,
    /// Mean delay of a ping within a phase, exponentially distributed: of all
    /// its pings before the peer's reading, where the peer waits for its
    /// processor, or of all after it, where the own rank does. Each is as
    /// likely.
    pub delay: Picos,
}

/// What a ping takes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Path {
    /// The least that one way takes, with the asymmetry as the mean of both.
    pub one_way: Picos,
    /// The way to the peer takes this much more than the mean and the way
    /// back this much less, in percent of it: at most 100, less where
    /// negative.
    pub asymmetry_percent: i8,
    /// Mean of what comes on top of each way, exponentially distributed.
    pub jitter: Picos,
    /// From one reading of a clock to what is done next.
    pub reading: Picos,
    /// When processors are shared.
    pub contention: Contention,
}

impl Path {
    /// Both ways take `one_way` and a tenth of it as mean jitter; readings
    /// take 20 ns.
    #[must_use]
    pub fn of(one_way: Picos) -> Self {
        Self {
            one_way,
            asymmetry_percent: 0,
            jitter: Picos(one_way.0 / 10),
            reading: Picos(20_000),
            contention: Contention::default(),
        }
    }

    /// The same path with the directions exchanged, or as it is, as `random`
    /// decides.
    #[must_use]
    pub const fn turned(self, random: &mut Random) -> Self {
        let turns = random.draw() & 1 == 0;
        let percent =
            if turns { self.asymmetry_percent } else { self.asymmetry_percent.saturating_neg() };
        Self { asymmetry_percent: percent, ..self }
    }

    /// The least that a ping takes.
    #[must_use]
    pub fn round_trip(&self) -> Picos {
        let ways = self.one_way.0.saturating_mul(2);
        Picos(ways.saturating_add(self.reading.0.saturating_mul(2)))
    }

    /// What one way takes this time.
    pub(in crate::sync) fn draw(&self, way: Way, random: &mut Random) -> u64 {
        let more = i64::from(self.asymmetry_percent.clamp(-100, 100));
        let percent = match way {
            Way::There => 100_u64.saturating_add_signed(more),
            Way::Back => 100_u64.saturating_sub_signed(more),
        };
        let least = self.one_way.0 / 100 * percent + self.one_way.0 % 100 * percent / 100;
        least.saturating_add(exponential(random, self.jitter))
    }
}

/// One of the two directions of an edge.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::sync) enum Way {
    There,
    Back,
}

/// An exponentially distributed time with this mean, in ps.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive random number; the cast saturates"
)]
pub(in crate::sync) fn exponential(random: &mut Random, mean: Picos) -> u64 {
    if mean == Picos::ZERO {
        return 0;
    }
    (random.exponential() * mean.0 as f64) as u64
}
