use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use quickcheck::{TestResult, quickcheck};

use super::*;
use crate::goal::testing::{Program, Rank, with_rank_memory};
use crate::goal::{ANY_TAG, RankNode};
use crate::units::Picos;

/// Findings and statistics of a check.
fn check(program: &Program) -> (Vec<Finding>, Checked) {
    let mut findings = vec![];
    let mut messages = [Message::default(); 256];
    let checked = with_rank_memory(|rank| {
        let mut checker = Checker::new(rank, Some(&mut messages), |finding| findings.push(finding));
        program.feed(&mut checker).unwrap();
        checker.finish().unwrap()
    });
    (findings, checked)
}

fn send(peer: u32, tag: u64, size: u64) -> Op {
    Op { kind: OpKind::Send { peer, size, tag }, cpu: 0, nic: 0 }
}

fn receive(peer: u32, tag: u64, size: u64) -> Op {
    Op { kind: OpKind::Receive { peer, size, tag }, cpu: 0, nic: 0 }
}

fn calcs(count: usize, edges: &[(u32, u32)]) -> Rank {
    let calc = Op { kind: OpKind::Calc { duration: Picos::ZERO }, cpu: 0, nic: 0 };
    let edges = edges.iter().map(|&(op, on)| Edge { op, on, start: op % 2 == 1 }).collect();
    Rank { ops: vec![calc; count], edges }
}

/// One receiving rank, 0, with `receives`; ranks 1 and 2 with `sends`.
fn incast(receives: &[Op], sends: [&[Op]; 2]) -> Program {
    let rank = |ops: &[Op]| Rank { ops: ops.to_vec(), edges: vec![] };
    Program::new(vec![rank(receives), rank(sends[0]), rank(sends[1])])
}

fn texts(program: &Program) -> Vec<String> {
    let describe = |finding: &Finding| {
        let severity = if finding.severity() == Severity::Error { "error" } else { "warning" };
        std::format!("{}: {severity}: {finding}", finding.place())
    };
    check(program).0.iter().map(describe).collect()
}

#[test]
fn a_receive_with_any_tag_that_can_take_a_collectives_message_is_warned_of() {
    let takes = |receives: &[Op]| {
        texts(&incast(receives, [&[send(0, 7, 8), send(0, 1_000_003, 8)], &[send(0, 5, 8)]]))
    };
    let warning = |wild: u32, other: u32| {
        std::format!(
            "rank 0, operation {wild}: warning: this receive with any tag can take a collective's \
             message, for which operation {other} waits (messages from rank 1 to rank 0 with tag \
             1000003): give it a tag"
        )
    };
    let collective = receive(1, 1_000_003, 8);
    assert_eq!(takes(&[receive(2, 5, 8), collective, receive(1, ANY_TAG, 8)]), [warning(2, 1)]);
    assert_eq!(takes(&[receive(ANY, ANY_TAG, 8), receive(2, 5, 8), collective]), [warning(0, 2)]);
    // Not from a rank that sends no message of the collective, nor with a tag.
    let other = takes(&[receive(2, ANY_TAG, 8), receive(1, 7, 8), collective]);
    assert_eq!(other, [""; 0]);
    assert_eq!(takes(&[receive(ANY, 7, 8), receive(2, 5, 8), collective]), [""; 0]);
}

#[test]
fn peers_that_do_not_exist_are_found() {
    let program = incast(&[send(3, 0, 1), receive(ANY - 1, 0, 1)], [&[], &[]]);
    assert_eq!(
        texts(&program),
        [
            "rank 0, operation 0: error: peer 3 does not exist: there are 3 ranks",
            "rank 0, operation 1: error: peer 4294967294 does not exist: there are 3 ranks",
        ]
    );
}

#[test]
fn circles_are_found_with_their_operations() {
    let program = Program::new(vec![
        calcs(6, &[(1, 0), (2, 1), (3, 2), (1, 3), (4, 3), (5, 4)]),
        calcs(1, &[(0, 0)]),
        calcs(12, &(0..12).map(|k| (k, (k + 1) % 12)).collect::<Vec<_>>()),
    ]);
    assert_eq!(
        texts(&program),
        [
            "rank 0, operation 1: error: operations wait for each other: 1 -> 3 -> 2 -> 1; 5 never run",
            "rank 1, operation 0: error: operations wait for each other: 0 -> 0; 1 never run",
            "rank 2, operation 0: error: operations wait for each other: 0 -> 1 -> 2 -> 3 -> 4 -> 5 \
             -> 6 -> 7 -> ... (12 in all) -> 0; 12 never run",
        ]
    );
}

#[test]
fn depth_is_the_longest_chain_and_linked_counts_what_edges_join() {
    let program = Program::new(vec![calcs(5, &[(1, 0), (2, 1), (2, 0), (2, 0)]), calcs(3, &[])]);
    assert_eq!(check(&program), (vec![], Checked { depth: 3, linked: 3 }));
}

#[test]
fn exact_messages_that_do_not_pair_are_found() {
    let program = incast(
        &[receive(1, 7, 8), receive(2, 6, 8), receive(2, 5, 4), receive(2, 4, 9)],
        [&[send(0, 7, 8), send(0, 7, 8)], &[send(0, 5, 5), send(0, 4, 8)]],
    );
    assert_eq!(
        texts(&program),
        [
            "rank 1, operation 1: error: messages from rank 1 to rank 0 with tag 7: 2 sent, 1 received",
            "rank 0, operation 3: warning: messages from rank 2 to rank 0 with tag 4: operation 1 of \
             rank 2 sends 8 B, this receives 9 B",
            "rank 0, operation 2: error: messages from rank 2 to rank 0 with tag 5: operation 0 of \
             rank 2 sends 5 B, this receives 4 B",
            "rank 0, operation 1: error: messages from rank 2 to rank 0 with tag 6: 0 sent, 1 received",
        ]
    );
}

#[test]
fn equal_messages_posted_in_another_order_are_possibly_wrong() {
    let program =
        incast(&[receive(1, 7, 9), receive(1, 7, 8)], [&[send(0, 7, 8), send(0, 7, 9)], &[]]);
    assert_eq!(
        texts(&program),
        ["rank 0, operation 1: warning: possibly: messages from rank 1 to rank 0 with tag 7: \
          operation 1 of rank 1 sends 9 B, this receives 8 B"]
    );
}

#[test]
fn wildcards_that_take_everything_are_decided() {
    let sends: [&[Op]; 2] = [&[send(0, 7, 8)], &[send(0, 7, 8)]];
    assert_eq!(texts(&incast(&[receive(ANY, 7, 8), receive(ANY, 7, 8)], sends)), [""; 0]);
    assert_eq!(
        texts(&incast(&[receive(ANY, ANY_TAG, 8), receive(ANY, ANY_TAG, 8)], sends)),
        [""; 0]
    );
    assert_eq!(
        texts(&incast(&[receive(ANY, 7, 8)], sends)),
        [
            "rank 2, operation 0: error: messages from any rank to rank 0 with tag 7: 2 sent, 1 received"
        ]
    );
    assert_eq!(
        texts(&incast(&[receive(ANY, 7, 8), receive(ANY, 6, 8)], [&[send(0, 7, 8)], &[]])),
        [
            "rank 0, operation 1: error: messages from any rank to rank 0 with tag 6: 0 sent, 1 received"
        ]
    );
}

#[test]
fn wildcards_that_may_take_the_wrong_message_are_possible() {
    let sends: [&[Op]; 2] = [&[send(0, 7, 8)], &[send(0, 7, 8)]];
    assert_eq!(
        texts(&incast(&[receive(ANY, 7, 8), receive(1, 7, 8)], sends)),
        [
            "rank 0, operation 0: warning: possibly unmatched: messages from any rank to rank 0 with \
          tag 7: 2 sent, 2 received"
        ]
    );
    assert_eq!(
        texts(&incast(
            &[receive(1, ANY_TAG, 8), receive(1, 3, 8)],
            [&[send(0, 7, 8), send(0, 6, 8)], &[]]
        )),
        [
            "rank 0, operation 1: error: messages from rank 1 to rank 0 with tag 3: 0 sent, 1 received"
        ]
    );
}

/// True if the messages pair up in this order of arrival, each taking the oldest matching partner.
fn pairs_up(order: &[Op], froms: &[u32]) -> bool {
    let mut waiting: Vec<(bool, u32, u64)> = vec![];
    for (op, &from) in order.iter().zip(froms) {
        let (is_receive, source, tag) = match op.kind {
            OpKind::Receive { peer, tag, .. } => (true, peer, tag),
            OpKind::Send { tag, .. } => (false, from, tag),
            OpKind::Calc { .. } => unreachable!(),
        };
        let fits = |a: u64, b: u64, any: u64| a == b || a == any || b == any;
        let partner = waiting.iter().position(|&(other, other_source, other_tag)| {
            other != is_receive
                && fits(source.into(), other_source.into(), ANY.into())
                && fits(tag, other_tag, ANY_TAG)
        });
        match partner {
            Some(index) => drop(waiting.remove(index)),
            None => waiting.push((is_receive, source, tag)),
        }
    }
    waiting.is_empty()
}

/// Finds if some and if all orders of `ops` pair up.
fn some_and_all(ops: &mut Vec<(Op, u32)>, from: usize, found: &mut (bool, bool)) {
    if from == ops.len() {
        let (order, froms): (Vec<Op>, Vec<u32>) = ops.iter().copied().unzip();
        let fine = pairs_up(&order, &froms);
        *found = (found.0 || fine, found.1 && fine);
        return;
    }
    for next in from..ops.len() {
        ops.swap(from, next);
        some_and_all(ops, from + 1, found);
        ops.swap(from, next);
    }
}

quickcheck! {
    /// Compared with every order in which the messages can arrive.
    fn certain_is_certain_and_silence_is_sound(codes: Vec<(u8, u8)>) -> TestResult {
        let codes = &codes[..codes.len().min(6)];
        let mut ranks = [vec![], vec![], vec![]];
        let mut ops = vec![];
        for &(what, tag) in codes {
            let tag = [0, 1, 0, 1, 0, ANY_TAG][usize::from(tag % 6)];
            let (rank, op) = match what % 8 {
                0..2 => (1, send(0, tag, 1)),
                2..4 => (2, send(0, tag, 1)),
                4 => (0, receive(1, tag, 1)),
                5 => (0, receive(2, tag, 1)),
                _ => (0, receive(ANY, tag, 1)),
            };
            ranks[rank].push(op);
            ops.push((op, u32::try_from(rank).unwrap()));
        }
        let program = incast(&ranks[0], [&ranks[1], &ranks[2]]);
        let mut found = (false, true);
        some_and_all(&mut ops, 0, &mut found);
        let (findings, _) = check(&program);
        let certain = findings.iter().any(|f| f.severity() == Severity::Error);
        let right = match (certain, findings.is_empty()) {
            (true, _) => !found.0,
            (false, true) => found.1,
            (false, false) => true,
        };
        if right {
            TestResult::passed()
        } else {
            TestResult::error(std::format!("{found:?} but {findings:?} for {program:?}"))
        }
    }

    fn any_program_is_checked(program: Program) -> () {
        let (findings, checked) = check(&program);
        let ops: usize = program.ranks.iter().map(|rank| rank.ops.len()).sum();
        assert!(checked.linked <= ops as u64);
        for finding in findings {
            assert!(!finding.to_string().is_empty());
            let place = finding.place();
            assert!((place.op as usize) < program.ranks[place.rank as usize].ops.len());
        }
    }

    fn blocked_operations_are_those_that_never_become_free(program: Program) -> () {
        let (findings, _) = check(&program);
        for (index, rank) in program.ranks.iter().enumerate() {
            let mut ran = vec![false; rank.ops.len()];
            for _ in 0..=rank.ops.len() {
                let waits = |op: usize| rank.edges.iter().any(|e| e.op as usize == op && !ran[e.on as usize]);
                let free: Vec<usize> = (0..ran.len()).filter(|&op| !waits(op)).collect();
                free.into_iter().for_each(|op| ran[op] = true);
            }
            let blocked = ran.iter().filter(|ran| !**ran).count();
            let found = findings.iter().find_map(|finding| match finding {
                Finding::Cycle { place, cycle, blocked } if place.rank as usize == index => {
                    let ops = cycle.ops();
                    let next = |k: usize| ops[(k + 1) % ops.len()];
                    let whole = cycle.length() as usize == ops.len();
                    assert!(!whole || ops.iter().enumerate().all(|(k, &op)| {
                        rank.edges.iter().any(|e| (e.op, e.on) == (op, next(k)))
                    }));
                    Some(*blocked as usize)
                }
                _ => None,
            });
            assert_eq!(found.unwrap_or(0), blocked);
        }
    }
}

#[test]
fn memory_that_is_too_small_is_named() {
    let program = incast(&[receive(1, 0, 1)], [&[send(0, 0, 1)], &[]]);
    let rank = RankMemory { nodes: &mut [], edges: &mut [], successors: &mut [] };
    let mut messages = [];
    let mut checker = Checker::new(rank, Some(&mut messages), |_| ());
    assert_eq!(program.feed(&mut checker), Err(CheckError::RankMemory { rank: 0 }));
    let mut nodes = [RankNode::EMPTY; 1];
    let rank = RankMemory { nodes: &mut nodes, edges: &mut [], successors: &mut [] };
    let mut messages = [Message::default(); 1];
    let mut checker = Checker::new(rank, Some(&mut messages), |_| ());
    assert_eq!(program.feed(&mut checker), Err(CheckError::MessageMemory));
}
