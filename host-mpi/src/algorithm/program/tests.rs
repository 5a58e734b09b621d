use loggap::collective::Message;
use loggap::simulation::{Job, Source};
use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::model::LogGops;
use loggap_core::sim::{Parameters, Settings};
use loggap_core::units::Bytes;

use super::super::simulate::makespan;
use super::*;

const O: u64 = 1_500;
const L: u64 = 2_500;
const SIZE: u64 = 9;
/// Time of the bytes after the first.
const BYTES: u64 = (SIZE - 1) * 6;

/// A gap below the overhead, so that the processor sets the pace.
const SET: LogGops = LogGops {
    latency: Picos(L),
    overhead: Picos(O),
    gap: Picos(1_000),
    gap_per_byte: PerByte(6 << PerByte::FRACTION_BITS),
    overhead_per_byte: PerByte::ZERO,
    eager_limit: Bytes(u64::MAX),
};

fn program(shape: Shape, ranks: u32) -> Program {
    Program {
        shape,
        ranks,
        size: SIZE,
        local: Picos::ZERO,
        combine: Picos::ZERO,
        post: Picos::ZERO,
    }
}

fn time(program: &Program) -> u64 {
    makespan(program, Parameters::one(SET)).unwrap().0
}

const SHAPES: [Shape; 12] = [
    Shape::Tuned(Tuned::BroadcastBinomial),
    Shape::BroadcastFarFirst,
    Shape::Tuned(Tuned::ReduceBinomial),
    Shape::Tuned(Tuned::AllreduceDoubling),
    Shape::Tuned(Tuned::BarrierDissemination),
    Shape::Tuned(Tuned::GatherBinomial),
    Shape::GatherSmallCopy,
    Shape::Tuned(Tuned::ScatterBinomial),
    Shape::ScatterFarFirst,
    Shape::Tuned(Tuned::AllgatherDoubling),
    Shape::Tuned(Tuned::AllgatherRing),
    Shape::Tuned(Tuned::AlltoallPairwise),
];

#[test]
fn every_send_has_its_receive() {
    for shape in SHAPES {
        for ranks in 1..20_u32 {
            if shape == Shape::Tuned(Tuned::AllgatherDoubling) && !ranks.is_power_of_two() {
                continue;
            }
            let program = program(shape, ranks);
            let (mut sent, mut received) = (Vec::new(), Vec::new());
            for rank in 0..ranks {
                for round in program.rounds(rank) {
                    sent.extend(round.sends.iter().map(|m| (rank, m.peer, m.size)));
                    received.extend(round.receives.iter().map(|m| (m.peer, rank, m.size)));
                }
            }
            sent.sort_unstable();
            received.sort_unstable();
            assert_eq!(sent, received, "{shape:?} {ranks}");
            assert!(sent.iter().all(|&(from, to, _)| from != to && to < ranks), "{shape:?}");
        }
    }
}

#[test]
fn a_tree_reaches_every_rank_once() {
    for shape in [
        Shape::Tuned(Tuned::BroadcastBinomial),
        Shape::BroadcastFarFirst,
        Shape::Tuned(Tuned::ScatterBinomial),
        Shape::ScatterFarFirst,
    ] {
        for ranks in 1..40 {
            let program = program(shape, ranks);
            let receives = |rank| -> usize {
                program.rounds(rank).iter().map(|round| round.receives.len()).sum()
            };
            assert!((0..ranks).all(|rank| receives(rank) == usize::from(rank > 0)), "{shape:?}");
        }
    }
}

#[test]
fn scatter_hands_each_subtree_its_blocks() {
    for (shape, blocks) in [
        (Shape::ScatterFarFirst, [(4, 2), (2, 2), (1, 1)]),
        (Shape::Tuned(Tuned::ScatterBinomial), [(1, 1), (2, 2), (4, 2)]),
    ] {
        let rounds = |rank: u32| program(shape, 6).rounds(rank);
        let sends = rounds(0).into_iter().flat_map(|round| round.sends);
        let sizes: Vec<_> = sends.map(|m| (m.peer, m.size / SIZE)).collect();
        assert_eq!(sizes, blocks);
        assert_eq!(rounds(4)[0].receives, [Message { peer: 0, size: 2 * SIZE }]);
    }
}

#[test]
fn times_are_those_of_the_closed_forms() {
    for rounds in 1..6_u64 {
        let ranks = 1 << rounds;
        let one = 2 * O + L + BYTES;
        assert_eq!(time(&program(Shape::Tuned(Tuned::BroadcastBinomial), ranks)), rounds * one);
        assert_eq!(time(&program(Shape::BroadcastFarFirst, ranks)), rounds * one);
        assert_eq!(time(&program(Shape::Tuned(Tuned::ReduceBinomial), ranks)), rounds * one);
        assert_eq!(time(&program(Shape::Tuned(Tuned::AllreduceDoubling), ranks)), rounds * one);
        assert_eq!(
            time(&program(Shape::Tuned(Tuned::BarrierDissemination), ranks)),
            rounds * (2 * O + L)
        );
        let others = u64::from(ranks) - 1;
        assert_eq!(time(&program(Shape::Tuned(Tuned::AllgatherRing), ranks)), others * one);
        assert_eq!(time(&program(Shape::Tuned(Tuned::AlltoallPairwise), ranks)), others * one);
        // Bytes after the first one of each message, over all rounds.
        let blocks = others * SIZE - rounds;
        let all = rounds * (2 * O + L) + blocks * 6;
        assert_eq!(time(&program(Shape::Tuned(Tuned::AllgatherDoubling), ranks)), all);
        assert_eq!(time(&program(Shape::Tuned(Tuned::GatherBinomial), ranks)), all);
    }
}

#[test]
fn broadcast_and_reduction_are_cores_patterns() {
    for (shape, pattern) in [
        (Shape::Tuned(Tuned::BroadcastBinomial), Pattern::BinomialBroadcast),
        (Shape::Tuned(Tuned::ReduceBinomial), Pattern::BinomialReduce),
        (Shape::Tuned(Tuned::AllreduceDoubling), Pattern::Dissemination),
    ] {
        for ranks in [2, 4, 8, 16] {
            let source = Source::Pattern(pattern, Options::new(ranks, SIZE));
            let job = Job::new(Parameters::one(SET), Settings::default());
            let core = loggap::simulation::makespan(&source, &job);
            assert_eq!(time(&program(shape, ranks)), core.unwrap().0, "{shape:?} {ranks}");
        }
    }
}

#[test]
fn computation_lies_on_the_way() {
    let program = Program {
        local: Picos(70),
        combine: Picos(30),
        ..program(Shape::Tuned(Tuned::AllreduceDoubling), 8)
    };
    let without = Program { local: Picos::ZERO, combine: Picos::ZERO, ..program };
    assert_eq!(time(&program), time(&without) + 70 + 3 * 30);
    assert_eq!((program.exchanges(), program.busiest()), (3, 3));
}

#[test]
fn blocks_are_copied_where_the_libraries_copy_them() {
    const COPY: u64 = 70;
    let copies = |shape, ranks, size| {
        let without = Program { size, ..program(shape, ranks) };
        time(&Program { local: Picos(COPY), ..without }) - time(&without)
    };
    // The root's copy takes less than the wait for the message.
    assert_eq!(copies(Shape::Tuned(Tuned::ReduceBinomial), 2, SIZE), 0);
    assert_eq!(copies(Shape::Tuned(Tuned::GatherBinomial), 2, SIZE), 0);
    // Rank 2 copies while rank 3's message is under way, unless rank 3 has to
    // copy before it sends.
    assert_eq!(copies(Shape::Tuned(Tuned::GatherBinomial), 4, SIZE), 0);
    assert_eq!(copies(Shape::GatherSmallCopy, 4, SIZE), COPY);
    assert_eq!(copies(Shape::GatherSmallCopy, 4, SMALL_BLOCK), 0);
    // At the root before anything is sent, and at rank 2 before rank 3 gets its block.
    assert_eq!(copies(Shape::Tuned(Tuned::ScatterBinomial), 2, SIZE), COPY);
    assert_eq!(copies(Shape::Tuned(Tuned::ScatterBinomial), 4, SIZE), 2 * COPY);
    assert_eq!(copies(Shape::ScatterFarFirst, 2, SIZE), 0);
    assert_eq!(copies(Shape::ScatterFarFirst, 4, SIZE), 0);
    assert_eq!(copies(Shape::Tuned(Tuned::AlltoallPairwise), 2, SIZE), COPY);
}

#[test]
fn sizes_of_messages_are_found_wherever_they_are() {
    assert_eq!(
        program(Shape::Tuned(Tuned::GatherBinomial), 8).message_sizes(),
        [SIZE, 2 * SIZE, 4 * SIZE]
    );
    assert_eq!(program(Shape::Tuned(Tuned::BarrierDissemination), 3).message_sizes(), [0]);
}
