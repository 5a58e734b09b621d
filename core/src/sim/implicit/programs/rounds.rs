//! Rounds in which every rank sends and receives once: dissemination, ring allreduce, recursive
//! halving and doubling.

use super::place::Place;
use crate::sim::implicit::{Extent, Program, Release, Transfer};
use crate::units::Picos;

/// Partner and size of the messages of a round.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Round {
    /// To the rank 2ᵏ above, in round k.
    Dissemination,
    /// To the next rank.
    Ring,
    /// With the rank that differs in bit k; the size is halved in each round.
    Halving,
    /// As `Halving`, in reverse order.
    Doubling,
}

/// Sequence of rounds; a send waits for the receive of the preceding round. If there are two
/// halves, an empty calculation (the join) between them waits for all of the first.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    pub(super) halves: [Option<Round>; 2],
    pub(super) place: Place,
    pub(super) size: u64,
    /// Number of rounds of each half.
    pub(super) rounds: u32,
    /// Duration of a calculation between a receive and the send that waits for it.
    pub(super) compute: Option<Picos>,
}

impl Rounds {
    /// Kind of round `number`, counted over both halves, and its number within its half.
    #[inline]
    const fn round(&self, number: u32) -> (Round, u32) {
        let [first, second] = self.halves;
        match (first, second) {
            (_, Some(second)) if number >= self.rounds => (second, number - self.rounds),
            (Some(first), _) => (first, number),
            (None, _) => (Round::Ring, number),
        }
    }

    const fn in_halves(&self) -> bool {
        matches!(self.halves, [_, Some(_)])
    }

    /// Number of the join among the calculations.
    const fn join(&self) -> u32 {
        self.rounds.saturating_mul(2)
    }

    fn bytes(&self, number: u32) -> u64 {
        let half = |bit: u32| self.size.checked_shr(bit.saturating_add(1)).unwrap_or(0);
        match self.round(number) {
            (Round::Dissemination, _) => self.size,
            (Round::Ring, _) => self.size.checked_div(u64::from(self.place.ranks)).unwrap_or(0),
            (Round::Halving, round) => half(round),
            (Round::Doubling, round) => half(self.rounds.saturating_sub(1).saturating_sub(round)),
        }
    }

    /// Fulfils one dependency of the join.
    fn part_done(&self, state: &mut u32) -> Release {
        *state = state.saturating_sub(1);
        if *state == 0 { Release::calc(self.join()) } else { Release::NOTHING }
    }

    /// Operations that wait for the end of a round.
    #[inline]
    fn after(&self, state: &mut u32, round: u32) -> Release {
        let next = round.saturating_add(1);
        if next == self.rounds {
            return if self.in_halves() { self.part_done(state) } else { Release::NOTHING };
        }
        if self.in_halves() && next == self.join() {
            return Release::NOTHING;
        }
        Release::send(next)
    }
}

impl Program for Rounds {
    /// Number of unfulfilled dependencies of the join.
    type State = u32;

    fn extent(&self) -> Extent {
        let (ranks, rounds) = (self.place.ranks, u64::from(self.rounds));
        let ends = [0, self.rounds.saturating_sub(1)].map(|round| self.bytes(round));
        let halves = self.halves.iter().flatten().count() as u64;
        Extent {
            ranks,
            sizes: [ends[0].min(ends[1]), ends[0].max(ends[1])],
            waiting: u64::from(ranks).saturating_mul(rounds.saturating_mul(4).saturating_add(4)),
            messages: u64::from(ranks).saturating_mul(rounds.saturating_mul(halves)),
            busy: ranks,
            interchangeable: false,
        }
    }

    #[inline]
    fn start(&self, _rank: u32, state: &mut u32) -> Release {
        if self.rounds == 0 {
            return if self.in_halves() { Release::calc(self.join()) } else { Release::NOTHING };
        }
        // Every send of the first half, and its last receive.
        *state = self.rounds.saturating_add(1);
        Release::send(0).and_receives(self.rounds)
    }

    #[inline]
    fn sent(&self, _rank: u32, state: &mut u32, send: u32) -> Release {
        let counts = self.in_halves() && send < self.rounds;
        if counts { self.part_done(state) } else { Release::NOTHING }
    }

    #[inline]
    fn received(&self, _rank: u32, state: &mut u32, receive: u32) -> Release {
        match self.compute {
            Some(_) => Release::calc(receive),
            None => self.after(state, receive),
        }
    }

    fn calculated(&self, _rank: u32, state: &mut u32, calc: u32) -> Release {
        if calc != self.join() || !self.in_halves() {
            return self.after(state, calc);
        }
        if self.rounds == 0 {
            return Release::NOTHING;
        }
        Release::send(self.rounds).and_receives(self.rounds)
    }

    #[inline]
    fn transfer(&self, rank: u32, send: u32) -> Transfer {
        let bit = |bit: u32| 1u32.checked_shl(bit).unwrap_or(0);
        let to = match self.round(send) {
            (Round::Dissemination, round) => self.place.above(rank, bit(round)),
            (Round::Ring, _) => self.place.above(rank, 1),
            (Round::Halving, round) => rank ^ bit(round),
            (Round::Doubling, round) => rank ^ bit(self.rounds - 1 - round),
        };
        Transfer { to, receive: send, size: self.bytes(send) }
    }

    #[inline]
    fn expected(&self, _rank: u32, receive: u32) -> u64 {
        self.bytes(receive)
    }

    fn calc(&self, _rank: u32, calc: u32) -> Picos {
        let join = self.in_halves() && calc == self.join();
        if join { Picos::ZERO } else { self.compute.unwrap_or_default() }
    }
}
