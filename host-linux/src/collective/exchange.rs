//! Rounds of allgather, all-to-all and barriers.

use super::call::Call;
use super::rounds::{Message, Round, doubled};

impl Call {
    /// Round that sends `blocks` blocks to rank `to` and receives as many from rank `from`.
    fn around(&self, to: u32, from: u32, blocks: u64) -> Round {
        let size = self.size.saturating_mul(blocks);
        let message = |peer| Message { peer, size };
        debug_assert!(to < self.ranks && from < self.ranks);
        Round::exchange(message(to), message(from))
    }

    pub(super) fn allgather_bruck(&self, rank: u32) -> Vec<Round> {
        let round = |distance: u32| {
            let blocks = distance.min(self.ranks - distance);
            let (to, from) = (self.below(rank, distance), self.above(rank, distance));
            self.around(to, from, blocks.into())
        };
        doubled(self.ranks).map(round).collect()
    }

    /// Recursive doubling, for powers of two.
    pub(super) fn allgather_doubling(&self, rank: u32) -> Vec<Round> {
        let round = |distance: u32| self.around(rank ^ distance, rank ^ distance, distance.into());
        doubled(self.ranks).map(round).collect()
    }

    pub(super) fn allgather_ring(&self, rank: u32) -> Vec<Round> {
        let (to, from) = (self.above(rank, 1), self.below(rank, 1));
        (1..self.ranks).map(|_| self.around(to, from, 1)).collect()
    }

    /// Neighbour exchange, for even rank counts: one block with the first neighbour, then two
    /// blocks with the other and the first alternately.
    pub(super) fn allgather_neighbour(&self, rank: u32) -> Vec<Round> {
        let [above, below] = [self.above(rank, 1), self.below(rank, 1)];
        let round = |step: u32| {
            let up = rank.is_multiple_of(2) == step.is_multiple_of(2);
            let peer = if up { above } else { below };
            self.around(peer, peer, if step == 0 { 1 } else { 2 })
        };
        (0..self.ranks / 2).map(round).collect()
    }

    pub(super) fn alltoall_linear(&self, rank: u32) -> Vec<Round> {
        let message = |peer| Message { peer, size: self.size };
        let sends = (1..self.ranks).map(|step| message(self.below(rank, step))).collect();
        let receives = (1..self.ranks).map(|step| message(self.above(rank, step))).collect();
        vec![Round { sends, receives, ..Round::default() }]
    }

    pub(super) fn alltoall_pairwise(&self, rank: u32) -> Vec<Round> {
        let round = |step| self.around(self.above(rank, step), self.below(rank, step), 1);
        (1..self.ranks).map(round).collect()
    }

    /// Bruck's algorithm: the round of distance 2ᵏ carries the blocks whose number has bit k.
    pub(super) fn alltoall_bruck(&self, rank: u32) -> Vec<Round> {
        let round = |distance: u32| {
            let (to, from) = (self.above(rank, distance), self.below(rank, distance));
            self.around(to, from, with_bit(self.ranks, distance))
        };
        doubled(self.ranks).map(round).collect()
    }

    pub(super) fn barrier_linear(&self, rank: u32) -> Vec<Round> {
        if rank > 0 {
            return vec![Round::send(0, 0), Round::receive(0, 0)];
        }
        let mut rounds = self.root_receives(rank, 0);
        rounds.extend(self.root_sends(rank, 0));
        rounds
    }

    pub(super) fn barrier_double_ring(&self, rank: u32) -> Vec<Round> {
        let (from, to) = (self.below(rank, 1), self.above(rank, 1));
        let (receive, send) = (Round::receive(from, 0), Round::send(to, 0));
        if rank == 0 {
            return vec![send.clone(), receive.clone(), send, receive];
        }
        vec![receive.clone(), send.clone(), receive, send]
    }

    /// Recursive doubling. Ranks beyond the largest power of two only take part before and after.
    pub(super) fn barrier_doubling(&self, rank: u32) -> Vec<Round> {
        let core = super::rounds::power_of_two(self.ranks);
        if rank >= core {
            return vec![Round::send(rank - core, 0), Round::receive(rank - core, 0)];
        }
        let extra = rank.checked_add(core).filter(|&extra| extra < self.ranks);
        let mut rounds: Vec<Round> =
            extra.map(|extra| Round::receive(extra, 0)).into_iter().collect();
        rounds
            .extend(doubled(core).map(|distance| self.around(rank ^ distance, rank ^ distance, 0)));
        rounds.extend(extra.map(|extra| Round::send(extra, 0)));
        rounds
    }

    pub(super) fn barrier_dissemination(&self, rank: u32) -> Vec<Round> {
        let round =
            |distance| self.around(self.above(rank, distance), self.below(rank, distance), 0);
        doubled(self.ranks).map(round).collect()
    }

    /// As `ompi_coll_base_barrier_intra_tree`.
    pub(super) fn barrier_tree(&self, rank: u32) -> Vec<Round> {
        let partner = |distance: u32| {
            let other = rank ^ distance;
            (other & (distance - 1) == 0 && other < self.ranks).then_some(other)
        };
        let up = |distance| {
            let other = partner(distance)?;
            Some(if other > rank { Round::receive(other, 0) } else { Round::send(other, 0) })
        };
        let down = |distance| {
            let other = partner(distance)?;
            Some(if other > rank { Round::send(other, 0) } else { Round::receive(other, 0) })
        };
        let distances = doubled(self.ranks);
        distances.filter_map(up).chain(doubled(self.ranks).rev().filter_map(down)).collect()
    }
}

/// Number of integers below `end` that have the bit `bit`.
fn with_bit(end: u32, bit: u32) -> u64 {
    let (end, bit) = (u64::from(end), u64::from(bit));
    let whole = end / (2 * bit) * bit;
    whole + (end % (2 * bit)).saturating_sub(bit)
}
