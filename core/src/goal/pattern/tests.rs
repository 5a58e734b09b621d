#![allow(clippy::cast_possible_truncation, reason = "counts of small schedules")]

use super::*;
use crate::goal::testing::{Program, Rank, edge};
use crate::goal::{Edge, Op, OpKind};
use crate::units::Picos;
use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

/// Operations and dependencies of each rank.
fn written(pattern: Pattern, options: &Options) -> Vec<Rank> {
    let mut scratch = vec![0; scratch_words(pattern, options).unwrap()];
    let mut program = Program::default();
    generate(pattern, options, &mut scratch, &mut program).unwrap();
    assert!(program.is_finished());
    let mut edges = program.ranks.iter().flat_map(|rank| &rank.edges);
    assert!(edges.all(|edge| edge.op != edge.on && !edge.start), "no pattern waits for a start");
    program.ranks
}

/// Options with every option set, which all patterns accept.
fn all_options(ranks: u32, root: u32) -> Options {
    Options { root, ways: 2, segment: Some(300), skew: 10, ..Options::new(ranks, 1_000) }
}

#[test]
fn every_message_has_both_its_ends() {
    for description in Pattern::all() {
        for ranks in [2, 3, 4, 7, 8, 13, 16] {
            for root in [0, ranks / 2, ranks - 1] {
                let options = all_options(ranks, root);
                let ranks = written(description.pattern, &options);
                let mut balance: BTreeMap<(u32, u32, u64, u64), i64> = BTreeMap::new();
                for (rank, content) in (0u32..).zip(&ranks) {
                    for op in &content.ops {
                        match op.kind {
                            OpKind::Send { peer, size, tag } => {
                                assert!((peer as usize) < ranks.len());
                                *balance.entry((rank, peer, tag, size)).or_default() += 1;
                            }
                            OpKind::Receive { peer, size, tag } => {
                                *balance.entry((peer, rank, tag, size)).or_default() -= 1;
                            }
                            OpKind::Calc { .. } => {}
                        }
                    }
                }
                assert!(balance.values().all(|&n| n == 0), "{} {options:?}", description.name);
            }
        }
    }
}

/// Checks the pattern repeated twice: the operations of the first repetition that nothing in it
/// follows are exactly those that the join requires, and those of the second that nothing in it
/// precedes are those that require it.
#[test]
fn a_repetition_waits_for_exactly_the_ends_of_the_one_before() {
    for description in Pattern::all() {
        for ranks in [2, 3, 5, 8] {
            let once = written(description.pattern, &all_options(ranks, 0));
            let twice =
                written(description.pattern, &Options { repeat: 2, ..all_options(ranks, 0) });
            for (rank, (once, twice)) in once.iter().zip(twice).enumerate() {
                let join = once.ops.len() as u32;
                assert_eq!(twice.ops.len() as u32, 2 * join + 1);
                let all = || 0..join;
                let ends = all().filter(|&op| !once.edges.iter().any(|edge| edge.on == op));
                let starts = all().filter(|&op| !once.edges.iter().any(|edge| edge.op == op));
                let shifted = once.edges.iter().map(|e| edge(e.op + join + 1, e.on + join + 1));
                let mut expected = once.edges.clone();
                expected.extend(ends.map(|op| edge(join, op)).chain(shifted));
                expected.extend(starts.map(|op| edge(op + join + 1, join)));
                let sorted = |mut edges: Vec<Edge>| {
                    edges.sort_unstable_by_key(|edge| (edge.op, edge.on));
                    edges
                };
                let name = description.name;
                assert_eq!(sorted(twice.edges), sorted(expected), "{name} P={ranks} rank {rank}");
            }
        }
    }
}

#[test]
fn groups_are_copies_with_shifted_ranks() {
    let one = written(Pattern::DoubleRing, &Options::new(5, 8));
    let three = written(Pattern::DoubleRing, &Options { groups: 3, ..Options::new(5, 8) });
    assert_eq!(three.len(), 15);
    for (rank, content) in three.iter().enumerate() {
        let shift = (rank / 5 * 5) as u32;
        let expected: Vec<Op> = one[rank % 5]
            .ops
            .iter()
            .map(|op| {
                let kind = match op.kind {
                    OpKind::Send { peer, size, tag } => {
                        OpKind::Send { peer: peer + shift, size, tag }
                    }
                    OpKind::Receive { peer, size, tag } => {
                        OpKind::Receive { peer: peer + shift, size, tag }
                    }
                    calc @ OpKind::Calc { .. } => calc,
                };
                Op { kind, ..*op }
            })
            .collect();
        assert_eq!(content.ops, expected);
    }
}

/// Additional rounds due to the quotient of two double-precision logarithms of the GNU C library,
/// as (ranks, ways, rounds).
const EXTRA_ROUNDS: [(u32, u32, u32); 12] = [
    (125, 4, 4),
    (15_625, 4, 7),
    (244_140_625, 4, 13),
    (216, 5, 4),
    (46_656, 5, 7),
    (16_807, 6, 6),
    (2_097_152, 7, 8),
    (5_832, 17, 4),
    (15_625, 24, 4),
    (59_319, 38, 4),
    (103_823, 46, 4),
    (656_356_768, 57, 6),
];

#[test]
fn the_nway_rounds_have_schedgens_rounding() {
    for (ranks, ways, rounds) in EXTRA_ROUNDS {
        assert_eq!(dissemination::nway_rounds(ranks, ways), rounds, "{ranks} {ways}");
    }
    for (ranks, ways, rounds) in [(1, 1, 0), (2, 1, 1), (27, 2, 3), (343, 6, 3), (1_000, 9, 3)] {
        assert_eq!(dissemination::nway_rounds(ranks, ways), rounds, "{ranks} {ways}");
    }
}

#[test]
fn random_pairs_depend_on_the_seed_alone_and_drop_an_odd_rank() {
    let with_seed = |seed| written(Pattern::RandomPairs, &Options { seed, ..Options::new(101, 8) });
    assert_eq!(with_seed(3).len(), 100);
    assert_eq!(with_seed(3), with_seed(3));
    assert_ne!(with_seed(3), with_seed(4));
    assert!(with_seed(5).iter().all(|rank| rank.ops.len() == 1));
}

#[test]
fn background_calculations_form_a_chain_of_whole_pieces() {
    let background = Background { duration: Picos(10_000), poll: Some(Picos(3_000)), cpu: 1 };
    let options = Options { background: Some(background), ..Options::new(4, 8) };
    let ranks = written(Pattern::Dissemination, &options);
    let calc = Op { kind: OpKind::Calc { duration: Picos(3_000) }, cpu: 1, nic: 0 };
    assert_eq!(ranks[2].ops[..4], [calc; 4]);
    assert_eq!(ranks[2].edges[..3], [edge(1, 0), edge(2, 1), edge(3, 2)]);
}

fn refused(pattern: Pattern, options: &Options, scratch: &mut [u32]) -> OptionError {
    match generate(pattern, options, scratch, &mut Program::default()) {
        Err(GenerateError::Options(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn options_that_make_no_schedule_are_refused_before_anything_is_written() {
    let base = Options::new(8, 100);
    let barrier = Pattern::Dissemination;
    let none = &mut [][..];
    assert_eq!(refused(barrier, &Options { ranks: 0, ..base }, none), OptionError::Nothing);
    assert_eq!(refused(barrier, &Options { repeat: 0, ..base }, none), OptionError::Nothing);
    assert_eq!(
        refused(barrier, &Options { root: 8, ..base }, none),
        OptionError::Root { root: 8, ranks: 8 }
    );
    assert_eq!(
        refused(barrier, &Options { ranks: 1 << 20, groups: 1 << 12, ..base }, none),
        OptionError::TooLarge
    );
    let pipeline = Options { size: 1 << 40, segment: Some(1), ..base };
    assert_eq!(refused(Pattern::PipelinedRing, &pipeline, none), OptionError::TooLarge);
    assert_eq!(refused(barrier, &Options { segment: Some(0), ..base }, none), OptionError::Zero);
    assert_eq!(
        refused(Pattern::AllToAllSkewed, &Options { skew: 101, ..base }, none),
        OptionError::Skew { skew: 101, size: 100 }
    );
    assert_eq!(
        refused(Pattern::AllToAllSkewed, &base, &mut [0; 63]),
        OptionError::Scratch { needed: 64, given: 63 }
    );
    let allgather = Pattern::Mpi(Collective::Allgather);
    let doubling = Options { ranks: 6, algorithm: Algorithm::RecursiveDoubling, ..base };
    assert_eq!(refused(allgather, &doubling, none), OptionError::PowerOfTwo { ranks: 6 });
    let tree = Options { algorithm: Algorithm::BinomialTree, ..base };
    assert!(matches!(refused(allgather, &tree, none), OptionError::Algorithm { .. }));
}
