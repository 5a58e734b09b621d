//! Rounds of operations with a size for each rank: the v and w forms.

use loggap_core::units::{Bytes, PerByte, Picos};

use super::rounds::{Message, Round, around, doubled};

/// Bytes to or from each rank, by rank.
type Sizes<'a> = &'a [u64];

fn size(sizes: Sizes<'_>, rank: u32) -> u64 {
    sizes.get(rank as usize).copied().unwrap_or(0)
}

/// Bytes of the `count` ranks from `first` on, around the ring.
fn blocks(sizes: Sizes<'_>, first: u32, count: u32, ranks: u32) -> u64 {
    let each = (0..count).map(|step| size(sizes, around(first, step, ranks)));
    each.fold(0, u64::saturating_add)
}

/// All messages at once, except empty ones and those of a rank to itself (`Alltoallw`, and the
/// roots of `Gatherv` and `Scatterv`).
#[must_use]
pub fn linear(rank: u32, sent: Sizes<'_>, received: Sizes<'_>) -> Vec<Round> {
    let messages = |sizes: Sizes<'_>| {
        let all = (0..).zip(sizes).map(|(peer, &size)| Message { peer, size });
        all.filter(|message| message.size > 0 && message.peer != rank).collect()
    };
    vec![Round { sends: messages(sent), receives: messages(received), calc: Picos::ZERO }]
}

/// One exchange a round, at increasing distances (`Alltoallv`).
#[must_use]
pub fn all_to_all(rank: u32, ranks: u32, sent: Sizes<'_>, received: Sizes<'_>) -> Vec<Round> {
    let round = |step| {
        let (to, from) = (around(rank, step, ranks), around(rank, ranks - step, ranks));
        let send = Message { peer: to, size: size(sent, to) };
        Round::exchange(send, Message { peer: from, size: size(received, from) })
    };
    (1..ranks).map(round).collect()
}

/// Twice as many blocks each round if they are small together, else a block a round along the ring
/// (`Allgatherv`).
#[must_use]
pub fn allgather(rank: u32, ranks: u32, sizes: Sizes<'_>) -> Vec<Round> {
    let back = |distance: u32| around(rank, ranks - distance % ranks.max(1), ranks);
    if blocks(sizes, 0, ranks, ranks) < 50_000 {
        let round = |distance: u32| {
            let (count, from) = (distance.min(ranks - distance), around(rank, distance, ranks));
            let send = Message { peer: back(distance), size: blocks(sizes, rank, count, ranks) };
            Round::exchange(send, Message { peer: from, size: blocks(sizes, from, count, ranks) })
        };
        return doubled(ranks).map(round).collect();
    }
    let round = |step: u32| {
        let send = Message { peer: around(rank, 1, ranks), size: size(sizes, back(step - 1)) };
        Round::exchange(send, Message { peer: back(1), size: size(sizes, back(step)) })
    };
    (1..ranks).map(round).collect()
}

/// Recursive halving for powers of two and up to 256 KiB, else a block a round along the ring;
/// `combine` is the time to combine a byte (`Reduce_scatter`).
#[must_use]
pub fn reduce_scatter(rank: u32, ranks: u32, sizes: Sizes<'_>, combine: PerByte) -> Vec<Round> {
    let combined = |to, sent, from, received| {
        let (to, from) = (Message { peer: to, size: sent }, Message { peer: from, size: received });
        let calc = combine.times(Bytes(received)).unwrap_or(Picos(u64::MAX));
        [Round::exchange(to, from), Round::compute(calc)]
    };
    if ranks.is_power_of_two() && blocks(sizes, 0, ranks, ranks) <= 256 << 10 {
        let round = |half: u32| {
            let (own, peer) = (rank & !(half - 1), rank ^ half);
            let (sent, kept) = (peer & !(half - 1), own);
            let [sent, kept] = [sent, kept].map(|first| blocks(sizes, first, half, ranks));
            combined(peer, sent, peer, kept)
        };
        return doubled(ranks).rev().flat_map(round).collect();
    }
    let back = |distance: u32| around(rank, ranks - distance % ranks.max(1), ranks);
    let round = |step: u32| {
        let [sent, received] = [step, step + 1].map(|distance| size(sizes, back(distance)));
        combined(around(rank, 1, ranks), sent, back(1), received)
    };
    (1..ranks).flat_map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_matched;
    use super::*;

    #[test]
    fn each_rank_gets_the_blocks_of_all_others() {
        for ranks in 2..20 {
            for scale in [1, 10_000] {
                let sizes: Vec<u64> = (0..ranks).map(|rank| u64::from(rank) * scale).collect();
                let total: u64 = sizes.iter().sum();
                let all = assert_matched(ranks, |rank| allgather(rank, ranks, &sizes));
                assert_eq!(all, total * u64::from(ranks - 1), "{ranks} {scale}");
                // Each block is sent as often when it is combined on its way.
                let all = assert_matched(ranks, |rank| {
                    reduce_scatter(rank, ranks, &sizes, PerByte::ZERO)
                });
                let halved = ranks.is_power_of_two() && total <= 256 << 10;
                assert!(!halved || all == total * u64::from(ranks - 1), "{ranks} {scale}");
            }
        }
    }

    #[test]
    fn each_pair_exchanges_its_own_sizes() {
        let of = |from: u32, to: u32| u64::from((from * 7 + to * 3) % 5);
        for ranks in 2..12 {
            let lists = |rank| {
                let sent: Vec<u64> = (0..ranks).map(|to| of(rank, to)).collect();
                let received: Vec<u64> = (0..ranks).map(|from| of(from, rank)).collect();
                (sent, received)
            };
            let total = |rank| (0..ranks).filter(move |&to| to != rank).map(move |to| of(rank, to));
            let expected: u64 = (0..ranks).flat_map(total).sum();
            let all = assert_matched(ranks, |rank| {
                let (sent, received) = lists(rank);
                all_to_all(rank, ranks, &sent, &received)
            });
            assert_eq!(all, expected);
            let all = assert_matched(ranks, |rank| {
                let (sent, received) = lists(rank);
                linear(rank, &sent, &received)
            });
            assert_eq!(all, expected);
        }
    }
}
