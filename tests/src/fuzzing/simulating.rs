//! The simulator on any small program.

use super::Numbers;
use crate::engine;
use crate::program::{Edge, Program, RankProgram};
use crate::shadow::{self, Receive, Rendezvous, Settings};
use loggap_core::goal::{ANY, Op, OpKind};
use loggap_core::model::LogGops;
use loggap_core::units::{Bytes, PerByte, Picos};

/// Ranks and operations of a program at most.
const RANKS: u8 = 5;
const OPS: usize = 40;
/// Events of an operation at most: release, arrival, request, answer and
/// their turns back into the queue while a processor or interface is busy.
const EVENTS: u64 = 8;

/// What a program may hold.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Shape {
    /// One chain of operations a rank, on one processor; receives name their
    /// source.
    Plain,
    /// Everything there is.
    Wild,
}

/// Any program ends, in a bounded number of events and as the plain model
/// says; where nothing but data is waited for, longer work ends no earlier.
pub fn simulator(data: &[u8]) {
    let mut input = Numbers(data);
    let settings = settings(&mut input);
    let shape = if input.byte() & 1 == 0 { Shape::Plain } else { Shape::Wild };
    let program = program(&mut input, shape);
    let outcome = engine::run(&program, &settings, None);
    let model = shadow::run(&program, &settings, None);
    assert_eq!(outcome.finish, model.finish);
    assert_eq!(outcome.events, model.events);
    assert!(outcome.events <= EVENTS * (program.ops() as u64 + 1));
    if shape == Shape::Plain {
        monotone(&program, &settings, u64::from(input.short()));
    }
}

fn settings(input: &mut Numbers<'_>) -> Settings {
    let mut nanos = |bound| u64::from(input.below(bound)) * 1_000;
    let set = LogGops {
        latency: Picos(nanos(9)),
        overhead: Picos(nanos(5)),
        gap: Picos(nanos(5)),
        gap_per_byte: PerByte(nanos(4) << 16),
        overhead_per_byte: PerByte(nanos(4) << 16),
        eager_limit: Bytes(nanos(12) / 1_000),
    };
    let flags = input.byte();
    Settings {
        receive: if flags & 1 == 0 { Receive::Hold } else { Receive::Overlap },
        rendezvous: if flags & 2 == 0 { Rendezvous::Instant } else { Rendezvous::Handshake },
        ..Settings::new(set)
    }
}

/// Dependencies point backwards, so that there are no cycles.
fn program(input: &mut Numbers<'_>, shape: Shape) -> Program {
    let ranks = 1 + input.below(RANKS);
    let mut program = Program::default();
    program.ranks.resize(usize::from(ranks), RankProgram::default());
    for _ in 0..OPS {
        if input.is_empty() {
            break;
        }
        let rank = usize::from(input.below(ranks));
        let op = op(input, ranks, shape);
        let part = &mut program.ranks[rank];
        let index = part.ops.len() as u32;
        part.ops.push(op);
        if shape == Shape::Plain && index > 0 {
            part.edges.push(Edge { op: index, on: index - 1, start: false });
        } else if shape == Shape::Wild {
            for _ in 0..input.below(3) {
                let on = u32::from(input.byte());
                if on < index {
                    part.edges.push(Edge { op: index, on, start: input.byte() & 1 == 1 });
                }
            }
        }
    }
    program
}

fn op(input: &mut Numbers<'_>, ranks: u8, shape: Shape) -> Op {
    let peer = u32::from(input.below(ranks));
    let (size, tag) = (u64::from(input.below(16)), u32::from(input.below(3)));
    let wild = if shape == Shape::Plain { 0 } else { input.byte() };
    let kind = match input.below(3) {
        0 => OpKind::Send { peer, size, tag },
        1 => OpKind::Receive {
            peer: if wild & 1 == 1 { ANY } else { peer },
            size,
            tag: if wild & 2 == 2 { ANY } else { tag },
        },
        _ => OpKind::Calc { duration: Picos(u64::from(input.short()) * 1_000) },
    };
    let bit = |at: u8| wild >> at & 1;
    let nic = if matches!(kind, OpKind::Calc { .. }) { 0 } else { bit(5) };
    Op { kind, cpu: bit(4), nic }
}

/// In chains without competition for processors and interfaces, and with
/// messages that name their source, every time is a maximum of sums.
fn monotone(program: &Program, settings: &Settings, more: u64) {
    let free = LogGops {
        latency: settings.parameters[0].1.latency,
        overhead: Picos::ZERO,
        gap: Picos::ZERO,
        gap_per_byte: PerByte(0),
        overhead_per_byte: PerByte(0),
        eager_limit: Bytes(u64::MAX),
    };
    let free = Settings::new(free);
    let before = engine::run(program, &free, None).finish;
    let mut longer = program.clone();
    for op in longer.ranks.iter_mut().flat_map(|rank| &mut rank.ops) {
        if let OpKind::Calc { duration } = &mut op.kind {
            duration.0 += more * 1_000;
        }
    }
    let after = engine::run(&longer, &free, None).finish;
    assert!(before.iter().zip(&after).all(|(before, after)| before <= after));
}
