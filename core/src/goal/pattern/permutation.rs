//! Permutations: each rank sends a message to one other, and receives one.

use super::script::{Place, Script};
use crate::goal::Sink;
use crate::random::Random;

/// Rounds of the Feistel network.
const ROUNDS: u64 = 8;

/// A permutation of the ranks that leaves none in its place, with its inverse.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Permutation {
    /// Each rank sends to the one at this distance above it on the ring.
    Shift(u32),
    /// Each rank sends to the next one in a random order of all: a Feistel network that is repeated
    /// until it leads to a rank (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002,
    /// method 2).
    Random {
        /// Seed of the network's keys.
        seed: u64,
    },
}

impl Permutation {
    /// Half of the way around the ring less one, but to another rank: Dally and Towles, "Principles
    /// and Practices of Interconnection Networks", 3.2.
    #[must_use]
    pub const fn tornado(ranks: u32) -> Self {
        let half = ranks.div_ceil(2).saturating_sub(1);
        Self::Shift(if half == 0 { 1 } else { half })
    }

    /// Rank that `rank` of `ranks` sends to; itself only if it is alone.
    #[must_use]
    pub fn to(self, rank: u32, ranks: u32) -> u32 {
        self.moved(rank, ranks, |distance| distance)
    }

    /// Rank that `rank` of `ranks` receives from.
    #[must_use]
    pub fn from(self, rank: u32, ranks: u32) -> u32 {
        self.moved(rank, ranks, |distance| ranks.saturating_sub(distance))
    }

    fn moved(self, rank: u32, ranks: u32, by: impl Fn(u32) -> u32) -> u32 {
        match self {
            Self::Shift(distance) => on_ring(rank, by(distance), ranks),
            Self::Random { seed } => {
                rank_at(seed, on_ring(place_of(seed, rank, ranks), by(1), ranks), ranks)
            }
        }
    }
}

/// Place of `rank` in the random order.
fn place_of(seed: u64, rank: u32, ranks: u32) -> u32 {
    walk(rank, ranks, |half, pair| {
        (0..ROUNDS)
            .fold(pair, |[left, right], round| [right, left ^ mixed(seed, round, right, half)])
    })
}

/// Rank at `place` of the random order.
fn rank_at(seed: u64, place: u32, ranks: u32) -> u32 {
    walk(place, ranks, |half, pair| {
        (0..ROUNDS)
            .rev()
            .fold(pair, |[left, right], round| [right ^ mixed(seed, round, left, half), left])
    })
}

#[allow(clippy::cast_possible_truncation, reason = "a remainder of a u32 fits")]
fn on_ring(rank: u32, distance: u32, ranks: u32) -> u32 {
    ((u64::from(rank) + u64::from(distance)) % u64::from(ranks.max(1))) as u32
}

/// Random number of `half` bits.
#[allow(clippy::cast_possible_truncation, reason = "half of 32 bits at most")]
fn mixed(seed: u64, round: u64, value: u32, half: u32) -> u32 {
    let drawn = Random::stream(seed, round << 32 | u64::from(value)).draw();
    (drawn >> (64 - half)) as u32
}

/// Applies `network` to both halves of `rank` until they are a rank again.
fn walk(rank: u32, ranks: u32, network: impl Fn(u32, [u32; 2]) -> [u32; 2]) -> u32 {
    let bits = u32::BITS - ranks.saturating_sub(1).leading_zeros();
    let half = bits.div_ceil(2).max(1);
    let mut at = rank;
    loop {
        let [left, right] = network(half, [at >> half, at & ((1 << half) - 1)]);
        at = left << half | right;
        if at < ranks || rank >= ranks {
            return at;
        }
    }
}

/// Emits the message that a rank sends and the one that it receives.
pub(super) fn permutation<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    permutation: Permutation,
) -> Result<(), S::Error> {
    let to = permutation.to(at.rank, at.ranks);
    if to == at.rank {
        return Ok(());
    }
    out.send_alone(to, at.size)?;
    out.receive_alone(permutation.from(at.rank, at.ranks), at.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn every_rank_is_met_once_and_the_inverse_leads_back() {
        for ranks in [1, 2, 3, 7, 16, 100, 1_025] {
            let random = |seed| Permutation::Random { seed };
            for permutation in [random(0), random(1), Permutation::tornado(ranks)] {
                let mut met = vec![false; ranks as usize];
                for rank in 0..ranks {
                    let to = permutation.to(rank, ranks);
                    assert!(!core::mem::replace(&mut met[to as usize], true), "{ranks} {rank}");
                    assert_eq!(permutation.from(to, ranks), rank, "{permutation:?} of {ranks}");
                }
            }
        }
        assert_eq!(Permutation::tornado(8), Permutation::Shift(3));
        assert_eq!(Permutation::tornado(9), Permutation::Shift(4));
        assert_eq!(Permutation::tornado(2), Permutation::Shift(1));
    }

    #[test]
    fn random_targets_are_spread_like_a_permutation_s() {
        // On average one rank sends to its neighbour, one keeps its place in the order, and one pair of
        // neighbours has neighbours as targets.
        let ranks = 1_000;
        let [mut kept, mut near, mut together] = [0; 3];
        for seed in 0..100 {
            let to = |rank| Permutation::Random { seed }.to(rank, ranks);
            kept += (0..ranks).filter(|&rank| place_of(seed, rank, ranks) == rank).count();
            near += (0..ranks).filter(|&rank| to(rank) == rank + 1).count();
            together += (1..ranks).filter(|&rank| to(rank) == to(rank - 1) + 1).count();
            assert!((0..ranks).all(|rank| to(rank) != rank));
        }
        for count in [kept, near, together] {
            assert!((70..=130).contains(&count), "{kept} {near} {together}");
        }
    }
}
