//! The simulator on any small program.

use super::Numbers;
use crate::engine::{self, Cut, Stopped, run_in_windows};
use crate::program::{Edge, Program, RankProgram};
use crate::shadow::{self, Level, Outcome, Receive, Rendezvous, Settings};
use crate::streamed;
use loggap::schedule::Form;
use loggap::simulation::OwnedMemory;
use loggap::simulation::windows::WindowError;
use loggap_core::goal::{ANY, ANY_TAG, Op, OpKind};
use loggap_core::model::LogGops;
use loggap_core::sim::{Builder, Engine, NoNoise, Silent, Survey};
use loggap_core::units::{Bytes, PerByte, Picos};

/// Ranks and operations of a program at most.
const RANKS: u8 = 5;
const OPS: usize = 40;
/// Turns that no program of this size takes; one that did would loop.
const TURNS: u64 = 1_000_000;

/// What a program may hold.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Shape {
    /// One chain of operations a rank, on one processor; receives name their
    /// source.
    Plain,
    /// Everything there is, cycles of dependencies included.
    Wild,
    /// The same, with any sizes and durations.
    Huge,
}

/// Any program ends, in a bounded number of events and as the plain model
/// says, also in windows and read from a file; where nothing but data is waited for, longer work
/// ends no earlier.
pub fn simulator(data: &[u8]) {
    let mut input = Numbers(data);
    let settings = settings(&mut input);
    let shape = if input.byte() & 1 == 0 { Shape::Plain } else { Shape::Wild };
    let more = u64::from(input.short());
    let program = program(&mut input, shape);
    let outcome = engine::run(&program, &settings, None);
    let model = shadow::run(&program, &settings, None);
    assert_eq!(outcome.common(), model.common());
    assert!(outcome.events <= events_most(&program, &settings));
    in_windows(&program, &settings, &model, more);
    for form in [Form::Native, Form::Reference] {
        let hooks = (None, Silent);
        let streamed = streamed::run_observed((&program, form), &settings, NoNoise, hooks);
        if let Some(streamed) = streamed {
            assert_eq!(streamed.expect("memory for all").0.common(), model.common());
        }
    }
    if shape == Shape::Plain {
        monotone(&program, &settings, more);
    }
}

/// Where windows are possible they end as the model does.
fn in_windows(program: &Program, settings: &Settings, model: &Outcome, choice: u64) {
    let mail_bytes = if choice & 1 == 0 { u64::MAX } else { 0 };
    let shift = u32::from(choice & 2 != 0);
    match run_in_windows(program, settings, None, Cut { shift, threads: 1, mail_bytes }) {
        Ok(outcome) => {
            let outcome = outcome.common();
            let model = model.common();
            assert_eq!((outcome.finish, outcome.events), (model.finish, model.events));
            assert_eq!(outcome.unexpected, model.unexpected);
            assert_eq!(outcome.posted, model.posted);
            assert_eq!(outcome.never_ready, model.never_ready);
        }
        Err(Stopped::Unsuitable(_) | Stopped::GivenUp(WindowError::Steps)) => {}
        Err(stopped) => panic!("{stopped:?}"),
    }
}

/// Each operation is released once; a send makes one message, or the three of
/// a handshake, the last two of which wait for their turn to leave.
fn events_most(program: &Program, settings: &Settings) -> u64 {
    let ops = program.ranks.iter().flat_map(|rank| &rank.ops);
    let sends = ops.filter(|op| matches!(op.kind, OpKind::Send { .. })).count() as u64;
    let messages = if settings.rendezvous == Rendezvous::Handshake { 5 } else { 1 };
    program.ops() as u64 + messages * sends
}

/// Any parameters, sizes and durations: times that are too long are an error,
/// and nothing loops.
pub fn overflow(data: &[u8]) {
    let mut input = Numbers(data);
    let mut settings = settings(&mut input);
    for (_, set) in &mut settings.parameters {
        *set = LogGops {
            latency: Picos(huge(&mut input)),
            overhead: Picos(huge(&mut input)),
            gap: Picos(huge(&mut input)),
            gap_per_byte: PerByte(huge(&mut input)),
            overhead_per_byte: PerByte(huge(&mut input)),
            eager_limit: Bytes(huge(&mut input)),
        };
    }
    let program = program(&mut input, Shape::Huge);
    let mut survey = Survey::default();
    program.replay(&mut survey).expect("few operations");
    let sets = engine::sets(&settings);
    let parameters = sets.parameters().expect("one set");
    let switches = engine::settings(&settings);
    let requirements = survey.requirements(switches).expect("few operations");
    let mut memory = OwnedMemory::new(&requirements).unwrap();
    let mut builder = Builder::new(memory.lend(), requirements).expect("what was asked for");
    if program.replay(&mut builder).is_err() {
        return;
    }
    let schedule = builder.finish().expect("as surveyed");
    let mut engine = Engine::with(schedule, parameters, switches, NoNoise, Silent);
    let Ok(finished) = engine.run_some(TURNS) else { return };
    let finished = finished.expect("a bounded number of turns");
    assert!(finished.events <= events_most(&program, &settings));
    let last = (0..survey.ranks()).map(|rank| engine.finish(rank)).max();
    assert_eq!(last, Some(finished.makespan));
}

/// Nothing, little, or any number.
fn huge(input: &mut Numbers<'_>) -> u64 {
    match input.below(6) {
        0 => 0,
        1 => u64::MAX,
        2 => input.long(),
        3 => u64::from(input.word()) << 24,
        _ => u64::from(input.short()),
    }
}

fn settings(input: &mut Numbers<'_>) -> Settings {
    let set = set(input);
    let flags = input.byte();
    let levels = match flags & 4 {
        0 => Vec::new(),
        _ => vec![Level { places: 2, parameters: vec![(u64::MAX, self::set(input))] }],
    };
    Settings {
        receive: if flags & 1 == 0 { Receive::Hold } else { Receive::Overlap },
        rendezvous: if flags & 2 == 0 { Rendezvous::Instant } else { Rendezvous::Handshake },
        levels,
        ..Settings::new(set)
    }
}

fn set(input: &mut Numbers<'_>) -> LogGops {
    let mut nanos = |bound| u64::from(input.below(bound)) * 1_000;
    LogGops {
        latency: Picos(nanos(9)),
        overhead: Picos(nanos(5)),
        gap: Picos(nanos(5)),
        gap_per_byte: PerByte(nanos(4) << 16),
        overhead_per_byte: PerByte(nanos(4) << 16),
        eager_limit: Bytes(nanos(12) / 1_000),
    }
}

fn program(input: &mut Numbers<'_>, shape: Shape) -> Program {
    let ranks = 1 + input.below(RANKS);
    let mut program = Program::default();
    program.ranks.resize(usize::from(ranks), RankProgram::default());
    for _ in 0..OPS {
        if input.is_empty() {
            break;
        }
        let part = &mut program.ranks[usize::from(input.below(ranks))];
        let op = op(input, ranks, shape);
        let index = part.ops.len() as u32;
        part.ops.push(op);
        if shape == Shape::Plain {
            let before = index.checked_sub(1);
            part.edges.extend(before.map(|on| Edge { op: index, on, start: false }));
            continue;
        }
        for _ in 0..input.below(3) {
            let (on, start) = (u32::from(input.byte()), input.byte() & 1 == 1);
            part.edges.push(Edge { op: index, on, start });
        }
    }
    for rank in &mut program.ranks {
        let ops = rank.ops.len() as u32;
        rank.edges.retain(|edge| edge.on < ops);
    }
    program
}

fn op(input: &mut Numbers<'_>, ranks: u8, shape: Shape) -> Op {
    let peer = u32::from(input.below(ranks));
    let size = if shape == Shape::Huge { huge(input) } else { u64::from(input.below(16)) };
    let tag = u64::from(input.below(3));
    let wild = if shape == Shape::Plain { 0 } else { input.byte() };
    let kind = match input.below(3) {
        0 => OpKind::Send { peer, size, tag },
        1 => OpKind::Receive {
            peer: if wild & 1 == 1 { ANY } else { peer },
            size,
            tag: if wild & 2 == 2 { ANY_TAG } else { tag },
        },
        _ if shape == Shape::Huge => OpKind::Calc { duration: Picos(huge(input)) },
        _ => OpKind::Calc { duration: Picos(u64::from(input.short()) * 1_000) },
    };
    let bit = |at: u8| u16::from(wild >> at & 1);
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
