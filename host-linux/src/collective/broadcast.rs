//! Rounds of broadcasts.

use super::call::Call;
use super::rounds::{Binomial, Message, Place, Round, doubled};

impl Call {
    /// Rank 0 sends `size` bytes to each other rank, all in one round.
    pub(super) fn root_sends(&self, rank: u32, size: u64) -> Vec<Round> {
        if rank > 0 {
            return vec![Round::receive(0, size)];
        }
        let sends = (1..self.ranks).map(|peer| Message { peer, size }).collect();
        vec![Round { sends, ..Round::default() }]
    }

    /// Segments down a tree: a rank forwards one to all its children while it receives the next
    /// (`ompi_coll_base_bcast_intra_generic`).
    pub(super) fn broadcast_segments(&self, place: Place) -> Vec<Round> {
        let lengths = self.segment_lengths();
        let sends = |size: u64| place.children.iter().map(|&peer| Message { peer, size }).collect();
        let Some(parent) = place.parent else {
            let whole = lengths.map(|size| Round { sends: sends(size), ..Round::default() });
            return whole.collect();
        };
        let mut rounds = Vec::new();
        let mut held = None;
        for size in lengths {
            let sends = held.map(sends).unwrap_or_default();
            rounds.push(Round { sends, ..Round::receive(parent, size) });
            held = Some(size);
        }
        if let (Some(size), false) = (held, place.children.is_empty()) {
            rounds.push(Round { sends: sends(size), ..Round::default() });
        }
        rounds
    }

    /// Bytes of each segment; a single one if the message is not cut.
    pub(super) fn segment_lengths(&self) -> impl Iterator<Item = u64> {
        let size = self.size;
        let segment = if self.segment == 0 { size.max(1) } else { self.segment };
        let count = size.div_ceil(segment).max(1);
        (0..count).map(move |index| (size - index * segment).min(segment))
    }

    /// Place of `rank` in chains of about equal length, longer ones first
    /// (`ompi_coll_base_topo_build_chain`).
    pub(super) fn chains_place(&self, rank: u32, chains: u32) -> Place {
        let others = self.ranks.saturating_sub(1);
        let chains = chains.clamp(1, others.max(1));
        let (length, longer) = (others / chains, others % chains);
        let head = |chain: u32| 1 + chain * length + chain.min(longer);
        let Some(index) = rank.checked_sub(1) else {
            let heads = (0..chains).map(head).filter(|&head| head < self.ranks);
            return Place { parent: None, children: heads.collect() };
        };
        let in_longer = longer * (length + 1);
        let chain = match index.checked_sub(in_longer) {
            None => index / (length + 1),
            Some(rest) => longer + rest.checked_div(length).unwrap_or(0),
        };
        let parent = if rank == head(chain) { 0 } else { rank - 1 };
        let next = Some(rank + 1).filter(|&next| next < head(chain + 1) && next < self.ranks);
        Place { parent: Some(parent), children: next.into_iter().collect() }
    }

    /// Place of `rank` in a binary tree: rank r of level l has the children r + 2ˡ and r + 2ˡ⁺¹
    /// (`ompi_coll_base_topo_build_tree` with fan-out 2).
    pub(super) fn binary_place(&self, rank: u32) -> Place {
        let reach = 1u64 << (u64::from(rank) + 1).ilog2();
        let own = u64::from(rank);
        let child = |rank: u64| u32::try_from(rank).ok().filter(|&child| child < self.ranks);
        let children = [own + reach, own + 2 * reach].into_iter().filter_map(child).collect();
        if rank == 0 {
            return Place { parent: None, children };
        }
        // The last rank of the level above is 2ˡ − 2.
        let near = own - reach / 2;
        let parent = if near + 2 <= reach { near } else { own - reach };
        Place { parent: u32::try_from(parent).ok(), children }
    }

    pub(super) fn binomial_place(&self, rank: u32) -> Place {
        Binomial::Near.place(rank, self.ranks)
    }

    /// Place of `rank` in a tree whose levels are four times as many ranks
    /// (`ompi_coll_base_topo_build_kmtree` with radix 4).
    pub(super) fn knomial_place(&self, rank: u32) -> Place {
        const RADIX: u64 = 4;
        let (own, ranks) = (u64::from(rank), u64::from(self.ranks));
        let mut reach = 1;
        while reach < ranks && own % (RADIX * reach) == 0 {
            reach *= RADIX;
        }
        let parent = own - own % (RADIX * reach);
        let parent = u32::try_from(parent).ok().filter(|_| rank > 0);
        let mut children = Vec::new();
        while reach > 1 {
            reach /= RADIX;
            let all = (1..RADIX).map(|step| own + step * reach).filter(|child| *child < ranks);
            children.extend(all.filter_map(|child| u32::try_from(child).ok()));
        }
        Place { parent, children }
    }

    /// Scatter down a binomial tree: a rank receives its own block and those of its subtree, and
    /// sends the largest subtree first.
    fn scatter_blocks(&self, rank: u32) -> Vec<Round> {
        let place = Binomial::Far.place(rank, self.ranks);
        let size = |rank| self.blocks(rank, Binomial::subtree(rank, self.ranks));
        // Empty messages are not sent.
        let parent = place.parent.filter(|_| size(rank) > 0);
        let mut rounds: Vec<Round> =
            parent.map(|parent| Round::receive(parent, size(rank))).into_iter().collect();
        let children = place.children.iter().filter(|&&child| size(child) > 0);
        rounds.extend(children.map(|&child| Round::send(child, size(child))));
        rounds
    }

    pub(super) fn broadcast_scatter_doubling(&self, rank: u32) -> Vec<Round> {
        let mut rounds = self.scatter_blocks(rank);
        for distance in doubled(self.ranks) {
            let first = rank & !(distance - 1);
            let to = Message { peer: rank ^ distance, size: self.blocks(first, distance) };
            let from = Message { size: self.blocks(first ^ distance, distance), ..to };
            rounds.push(Round::exchange(to, from));
        }
        rounds
    }

    pub(super) fn broadcast_scatter_ring(&self, rank: u32) -> Vec<Round> {
        let mut rounds = self.scatter_blocks(rank);
        for step in 1..self.ranks {
            let [sent, received] =
                [step - 1, step].map(|back| self.blocks(self.below(rank, back), 1));
            let to = Message { peer: self.above(rank, 1), size: sent };
            let from = Message { peer: self.below(rank, 1), size: received };
            rounds.push(Round::exchange(to, from));
        }
        rounds
    }
}
