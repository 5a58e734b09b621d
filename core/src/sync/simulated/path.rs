//! Network path between two ranks.

use crate::random::Random;
use crate::units::Picos;

/// Phases in which a rank shares its processor with another process, as all ranks do if there are
/// more ranks than processors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Contention {
    /// Probability that a ping begins a phase.
    pub probability: f64,
    /// Mean length of a phase, exponentially distributed.
    pub phase: Picos,
    /// Mean delay of a ping within a phase, exponentially distributed. In half of the phases the
    /// peer waits for its processor, which delays all of its readings; in the others the own rank
    /// does, which delays the end of its pings.
    pub delay: Picos,
}

/// Delays of a ping.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Path {
    /// Least delay of one direction, as the mean of both.
    pub one_way: Picos,
    /// Excess of the delay to the peer over the mean, in percent; the way back is shorter by the
    /// same. From −100 to 100.
    pub asymmetry_percent: i8,
    /// Mean additional delay of each direction, exponentially distributed.
    pub jitter: Picos,
    /// Time from one reading of a clock to the next action.
    pub reading: Picos,
    /// Sharing of processors.
    pub contention: Contention,
}

impl Path {
    /// Path with `one_way` and a mean jitter of a tenth of it in both directions; readings take 20
    /// ns.
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

    /// This path, with its directions exchanged with probability one half.
    #[must_use]
    pub const fn turned(self, random: &mut Random) -> Self {
        let turns = random.draw() & 1 == 0;
        let percent =
            if turns { self.asymmetry_percent } else { self.asymmetry_percent.saturating_neg() };
        Self { asymmetry_percent: percent, ..self }
    }

    /// Least duration of a ping.
    #[must_use]
    pub fn round_trip(&self) -> Picos {
        let ways = self.one_way.0.saturating_mul(2);
        Picos(ways.saturating_add(self.reading.0.saturating_mul(2)))
    }

    /// Random delay of one direction, in ps.
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

/// Direction of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::sync) enum Way {
    There,
    Back,
}

/// Exponentially distributed time with this mean, in ps.
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
