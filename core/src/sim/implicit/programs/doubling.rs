//! Recursive halving and doubling on any number of ranks: with Q the largest power of two not above
//! P, each rank from Q on sends its data to the rank Q below first, and receives the result at the
//! end.

use super::place::Place;
use crate::sim::implicit::{Extent, Program, Release, Transfer};
use crate::units::Picos;

/// Allreduce by recursive halving and doubling.
#[derive(Clone, Copy, Debug)]
pub struct Doubling {
    pub(super) place: Place,
    pub(super) size: u64,
    /// Duration of a calculation that replaces the dependency of each send on a receive.
    pub(super) compute: Option<Picos>,
}

impl Doubling {
    /// log₂ Q.
    fn bits(&self) -> u32 {
        self.place.ranks.checked_ilog2().unwrap_or(0)
    }

    fn lower(&self) -> u32 {
        1 << self.bits()
    }

    fn exchanges(&self) -> u32 {
        2 * self.bits()
    }

    /// True if a rank below Q has a partner above.
    fn serves(&self, rank: u32) -> bool {
        rank < self.place.ranks - self.lower()
    }

    /// Bit in which the ranks of the two partners of an exchange differ.
    fn bit(&self, exchange: u32) -> u32 {
        let bits = self.bits();
        if exchange < bits { exchange } else { (2 * bits).wrapping_sub(1 + exchange) }
    }

    fn bytes(&self, exchange: u32) -> u64 {
        let bits = self.bits();
        if exchange < bits {
            return self.size >> (exchange + 1);
        }
        (self.size >> bits) << (exchange - bits)
    }
}

impl Program for Doubling {
    /// One bit for each partner: set when its first message was handled.
    type State = u32;

    fn extent(&self) -> Extent {
        let (bits, ranks) = (self.bits(), self.place.ranks);
        let power = self.lower() == ranks;
        let exchanges = u64::from(self.exchanges());
        let (lower, all) = (u64::from(self.lower()), u64::from(ranks));
        Extent {
            ranks,
            sizes: [self.size >> bits, if power { self.size >> bits.min(1) } else { self.size }],
            waiting: all.saturating_mul(2 * exchanges + 8),
            messages: lower * exchanges + 2 * all.saturating_sub(lower),
            busy: ranks,
            interchangeable: false,
        }
    }

    fn start(&self, rank: u32, _state: &mut u32) -> Release {
        if rank >= self.lower() {
            return Release::send(0).and_receives(1);
        }
        let (exchanges, serves) = (self.exchanges(), self.serves(rank));
        let first = u32::from(!serves && exchanges > 0);
        let calcs = if self.compute.is_some() { first..exchanges } else { 0..0 };
        Release { calcs, ..Release::sends(0, first) }.and_receives(exchanges + u32::from(serves))
    }

    fn received(&self, rank: u32, _state: &mut u32, receive: u32) -> Release {
        if rank >= self.lower() {
            return Release::NOTHING;
        }
        let serves = self.serves(rank);
        // The next exchange.
        let next = receive + u32::from(!serves);
        if next == self.exchanges() {
            return if serves { Release::send(next) } else { Release::NOTHING };
        }
        if self.compute.is_some() { Release::NOTHING } else { Release::send(next) }
    }

    fn calculated(&self, _rank: u32, _state: &mut u32, calc: u32) -> Release {
        Release::send(calc)
    }

    fn transfer(&self, rank: u32, send: u32) -> Transfer {
        let lower = self.lower();
        if rank >= lower {
            return Transfer { to: rank - lower, receive: 0, size: self.size };
        }
        if send == self.exchanges() {
            return Transfer { to: rank.wrapping_add(lower), receive: 0, size: self.size };
        }
        let to = rank ^ 1u32.wrapping_shl(self.bit(send));
        let receive = send + u32::from(self.serves(to));
        Transfer { to, receive, size: self.bytes(send) }
    }

    /// A rank exchanges twice with each partner, and may send its second message first, because its
    /// partner above Q can delay its first exchanges.
    fn met(&self, rank: u32, state: &mut u32, receive: u32) -> u32 {
        let serves = u32::from(self.serves(rank));
        if rank >= self.lower() || receive < serves {
            return receive;
        }
        let bit = self.bit(receive - serves);
        let first = *state & 1u32.wrapping_shl(bit) == 0;
        *state |= 1u32.wrapping_shl(bit);
        serves + if first { bit } else { self.exchanges().wrapping_sub(1 + bit) }
    }

    fn expected(&self, rank: u32, receive: u32) -> u64 {
        match (rank >= self.lower(), self.serves(rank), receive) {
            (true, ..) | (_, true, 0) => self.size,
            (_, serves, _) => self.bytes(receive - u32::from(serves)),
        }
    }

    fn calc(&self, _rank: u32, _calc: u32) -> Picos {
        self.compute.unwrap_or_default()
    }
}
