use loggap_core::goal::Sink;
use loggap_core::model::LogGops;
use loggap_core::random::Random;
use loggap_core::sim::{Builder, Engine, Parameters, Receive, Rendezvous, Settings, Survey};
use loggap_core::units::{Bytes, PerByte, Picos};
use std::collections::BTreeMap;

use super::*;
use crate::simulation::OwnedMemory;

fn call(shape: Shape, ranks: u32, size: u64) -> Call {
    Call { shape, ranks, size, segment: 0, combine: PerByte::ZERO }
}

/// Every algorithm with each rank count for which its condition holds.
fn all(most_ranks: u32) -> impl Iterator<Item = (&'static Algorithm, u32)> {
    ALGORITHMS.iter().flat_map(move |algorithm| {
        let ranks = (2..=most_ranks).filter(|&ranks| algorithm.condition.holds(ranks));
        ranks.map(move |ranks| (algorithm, ranks))
    })
}

/// Bytes and number of all messages.
fn volume(call: &Call) -> [u64; 2] {
    let mut total = [0, 0];
    for round in (0..call.ranks).flat_map(|rank| call.rounds(rank)) {
        for message in round.sends {
            total = [total[0] + message.size, total[1] + 1];
        }
    }
    total
}

/// Messages between two ranks arrive in the order in which they were sent.
#[test]
fn every_send_has_its_receive_in_order() {
    for (algorithm, ranks) in all(20) {
        for (size, segment) in [(0, 0), (1, 0), (7, 0), (1_000, 0), (1_000, 300)] {
            let call = Call { segment, ..call(algorithm.shape, ranks, size) };
            assert_matched(ranks, |rank| call.rounds(rank));
        }
    }
}

/// Messages between two ranks are received in the order in which they are sent, with their sizes;
/// returns their bytes.
pub(super) fn assert_matched(ranks: u32, rounds: impl Fn(u32) -> Vec<Round>) -> u64 {
    let mut sent: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    let mut received = sent.clone();
    for rank in 0..ranks {
        for round in rounds(rank) {
            for Message { peer, size } in round.sends {
                assert!(peer < ranks && peer != rank);
                sent.entry((rank, peer)).or_default().push(size);
            }
            for Message { peer, size } in round.receives {
                received.entry((peer, rank)).or_default().push(size);
            }
        }
    }
    assert_eq!(sent, received);
    sent.values().flatten().sum()
}

/// In a broadcast every rank but the root receives the vector exactly once; in an allgather every
/// rank receives each other block once.
#[test]
fn ranks_get_what_they_need_and_no_more() {
    const SIZE: u64 = 1_009;
    for (algorithm, ranks) in all(20) {
        let call = call(algorithm.shape, ranks, SIZE);
        let gets = |rank: u32| -> u64 {
            let rounds = call.rounds(rank);
            rounds.iter().flat_map(|round| &round.receives).map(|message| message.size).sum()
        };
        for rank in 0..ranks {
            let expected = match algorithm.operation {
                Operation::Allgather => SIZE * u64::from(ranks - 1),
                Operation::Bcast if !algorithm.wants_elements => {
                    if rank == 0 {
                        0
                    } else {
                        SIZE
                    }
                }
                Operation::Alltoall if algorithm.shape != Shape::AlltoallBruck => {
                    SIZE * u64::from(ranks - 1)
                }
                Operation::Barrier => 0,
                _ => continue,
            };
            assert_eq!(gets(rank), expected, "{} of {ranks}, rank {rank}", algorithm.name);
        }
    }
}

#[test]
fn volumes_are_their_closed_forms() {
    const S: u64 = 960;
    for ranks in [4_u64, 8, 16, 32] {
        let (others, log) = (ranks - 1, u64::from(ranks.ilog2()));
        let block = S / ranks;
        let scatter = [block * ranks / 2 * log, others];
        let around = [ranks * others * S, ranks * others];
        let expected = [
            (Shape::BroadcastLinear, [others * S, others]),
            (Shape::BroadcastChains { chains: 1 }, [others * S, others]),
            (Shape::BroadcastBinary, [others * S, others]),
            (Shape::BroadcastBinomial, [others * S, others]),
            (
                Shape::BroadcastScatterDoubling,
                [scatter[0] + ranks * others * block, scatter[1] + ranks * log],
            ),
            (
                Shape::BroadcastScatterRing,
                [scatter[0] + ranks * others * block, scatter[1] + ranks * others],
            ),
            (Shape::AllreduceLinear, [2 * others * S, 2 * others]),
            (Shape::AllreduceDoubling, [ranks * log * S, ranks * log]),
            (Shape::AllreduceRing, [2 * others * S, 2 * others * ranks]),
            (Shape::AllreduceRabenseifner, [2 * others * S, 2 * ranks * log]),
            (Shape::AllgatherBruck, [around[0], ranks * log]),
            (Shape::AllgatherDoubling, [around[0], ranks * log]),
            (Shape::AllgatherRing, around),
            (Shape::AllgatherNeighbour, [around[0], ranks * ranks / 2]),
            (Shape::AlltoallLinear, around),
            (Shape::AlltoallPairwise, around),
            (Shape::AlltoallBruck, [ranks * log * ranks / 2 * S, ranks * log]),
            (Shape::BarrierLinear, [0, 2 * others]),
            (Shape::BarrierDoubleRing, [0, 2 * ranks]),
            (Shape::BarrierDoubling, [0, ranks * log]),
            (Shape::BarrierDissemination, [0, ranks * log]),
            (Shape::BarrierTree, [0, 2 * others]),
            (Shape::GatherLinear, [others * S, others]),
            (Shape::GatherBinomial, [ranks / 2 * log * S, others]),
            (Shape::ScatterLinear, [others * S, others]),
            (Shape::ScatterBinomial, [ranks / 2 * log * S, others]),
        ];
        let ranks = u32::try_from(ranks).unwrap();
        for (shape, expected) in expected {
            assert_eq!(volume(&call(shape, ranks, S)), expected, "{shape:?} {ranks}");
        }
    }
}

/// With 5 = 4 + 1 ranks, the extra rank passes on its part before the main rounds and receives the
/// result after them.
#[test]
fn ranks_beyond_a_power_of_two_take_part_before_and_after() {
    assert_eq!(volume(&call(Shape::AllreduceDoubling, 5, 10)), [(2 + 8) * 10, 10]);
    // Before: halves both ways and a half back; after: the whole vector; then 2·3·10 bytes among
    // four.
    assert_eq!(volume(&call(Shape::AllreduceRabenseifner, 5, 8)), [12 + 8 + 48, 4 + 16]);
    assert_eq!(volume(&call(Shape::BarrierDoubling, 5, 0)), [0, 10]);
    assert_eq!(volume(&call(Shape::BarrierDissemination, 5, 0)), [0, 15]);
    assert_eq!(volume(&call(Shape::AllgatherBruck, 5, 3)), [5 * 4 * 3, 15]);
    // Bits of 1, 2, 3, 4: the lower two bits are set in two numbers each, the third in one.
    assert_eq!(volume(&call(Shape::AlltoallBruck, 5, 3)), [5 * 5 * 3, 15]);
}

#[test]
fn segments_are_cut_and_the_last_may_be_shorter() {
    for shape in [
        Shape::BroadcastChains { chains: 1 },
        Shape::BroadcastChains { chains: 4 },
        Shape::BroadcastBinary,
        Shape::BroadcastBinomial,
    ] {
        let call = Call { segment: 300, ..call(shape, 7, 1_000) };
        assert_eq!(volume(&call), [6 * 1_000, 6 * 4], "{shape:?}");
        let last = call.rounds(0).pop().unwrap();
        assert!(last.sends.iter().all(|message| message.size == 100), "{shape:?}");
    }
}

#[test]
fn trees_are_those_of_the_library() {
    let tree = |call: Call, place: fn(&Call, u32) -> Place| -> Vec<Vec<u32>> {
        (0..call.ranks).map(|rank| place(&call, rank).children).collect()
    };
    let binary = tree(call(Shape::BroadcastBinary, 8, 1), |call, rank| call.binary_place(rank));
    let expected: [&[u32]; 8] = [&[1, 2], &[3, 5], &[4, 6], &[7], &[], &[], &[], &[]];
    assert_eq!(binary, expected);
    let chains = call(Shape::BroadcastChains { chains: 4 }, 8, 1);
    let chains = tree(chains, |call, rank| call.chains_place(rank, 4));
    // Seven ranks in chains of 2, 2, 2 and 1.
    let expected: [&[u32]; 8] = [&[1, 3, 5, 7], &[2], &[], &[4], &[], &[6], &[], &[]];
    assert_eq!(chains, expected);
    for ranks in 2..40 {
        for chains in [1, 2, 4] {
            for place in [
                |call: &Call, rank, chains| call.chains_place(rank, chains),
                |call: &Call, rank, _| call.binary_place(rank),
                |call: &Call, rank, _| call.binomial_place(rank),
            ] {
                let call = call(Shape::BroadcastBinary, ranks, 1);
                for rank in 0..ranks {
                    for child in place(&call, rank, chains).children {
                        assert_eq!(place(&call, child, chains).parent, Some(rank));
                    }
                }
                let children = (0..ranks).map(|rank| place(&call, rank, chains).children.len());
                assert_eq!(children.sum::<usize>(), ranks as usize - 1);
            }
        }
    }
}

/// Simulate all ranks, or one in place of equal ones.
#[derive(Clone, Copy)]
enum Ranks {
    All,
    Least,
}

fn play<S: Sink>(call: &Call, ranks: Ranks, sink: &mut S) -> Result<(), S::Error> {
    match ranks {
        Ranks::All => call.feed_all(sink),
        Ranks::Least => call.feed(sink),
    }
}

fn makespan(call: &Call, ranks: Ranks, parameters: Parameters<'_>, settings: Settings) -> Picos {
    let mut survey = Survey::default();
    play(call, ranks, &mut survey).unwrap();
    let requirements = survey.requirements(settings).unwrap();
    let mut memory = OwnedMemory::new(&requirements).unwrap();
    let mut builder = Builder::new(memory.lend(), requirements).unwrap();
    play(call, ranks, &mut builder).unwrap();
    let mut engine = Engine::new(builder.finish().unwrap(), parameters, settings);
    let makespan = engine.run().unwrap().makespan;
    engine.unfinished(|left| panic!("{call:?}: {left}"));
    makespan
}

/// Costs without equal times; in half of the cases with messages above the eager limit.
fn parameters(random: &mut Random) -> LogGops {
    let mut time = |most: u64| Picos(random.below(most) + 1);
    let (latency, overhead, gap) = (time(5_000_000), time(1_000_000), time(2_000_000));
    let mut per_byte = |most: u64| PerByte(random.below(most << PerByte::FRACTION_BITS));
    let (gap_per_byte, overhead_per_byte) = (per_byte(3_000), per_byte(1_000));
    let eager_limit = Bytes([100, u64::MAX][usize::from(random.chance(0.5))]);
    LogGops { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager_limit }
}

/// For a symmetric call, one rank that sends to itself has the same makespan as all ranks together;
/// every algorithm completes under all rules.
#[test]
fn one_of_ranks_that_all_do_the_same_takes_as_long_as_all() {
    let mut random = Random::new(3);
    let mut symmetric = 0;
    for (algorithm, ranks) in all(17) {
        for size in [1, 1_000] {
            for receive in [Receive::Hold, Receive::Overlap] {
                for rendezvous in [Rendezvous::Instant, Rendezvous::Handshake] {
                    let set = parameters(&mut random);
                    let combine = PerByte(random.below(1_000 << PerByte::FRACTION_BITS));
                    let call = Call { combine, ..call(algorithm.shape, ranks, size) };
                    let settings = Settings { receive, rendezvous };
                    let parameters = Parameters::one(set);
                    let least = makespan(&call, Ranks::Least, parameters, settings);
                    let whole = makespan(&call, Ranks::All, parameters, settings);
                    assert_eq!(least, whole, "{call:?} {set:?} {settings:?}");
                    symmetric += u32::from(call.is_symmetric());
                }
            }
        }
    }
    assert!(symmetric > 500, "{symmetric}");
}
