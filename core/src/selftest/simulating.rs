//! Checks of the simulation, with stored and with computed schedules.

use super::Vector;
use super::basics::SET;
use super::scheduling::feed;
use crate::goal::pattern::{Options, Pattern, generate};
use crate::sim::{
    Builder, Engine, Entry, Memory, NoNoise, Parameters, Rank, Record, Settings, Slot, Survey,
    implicit,
};

pub(super) const VECTORS: &[Vector] = &[
    // o + L + 7·G + o: LogGOPSim's own figure for one message of 8 bytes.
    Vector {
        name: "sim: one message of 8 bytes",
        compute: || simulate(TWO),
        answer: 2 * 1_500_000 + 2_500_000 + 7 * 6_000,
    },
    // (2o + L)·log2(8).
    Vector {
        name: "sim: a dissemination of 8 ranks",
        compute: || pattern(Pattern::Dissemination, 1),
        answer: 3 * (2 * 1_500_000 + 2_500_000),
    },
    // (2o + L + 99·G)·log2(8).
    Vector {
        name: "sim: a binomial broadcast of 100 bytes to 8 ranks",
        compute: || pattern(Pattern::BinomialBroadcast, 100),
        answer: 3 * (2 * 1_500_000 + 2_500_000 + 99 * 6_000),
    },
    // As above, without a stored schedule.
    Vector {
        name: "sim: a dissemination of 8 ranks, computed",
        compute: computed,
        answer: 3 * (2 * 1_500_000 + 2_500_000),
    },
    Vector { name: "sim: a deadlock ends the run", compute: deadlock, answer: 0 },
];

const TWO: &[u8] =
    b"num_ranks 2\nrank 0 {\ns: send 8b to 1 tag 5\n}\nrank 1 {\nr: recv 8b from 0 tag 5\n}\n";
const ALONE: &[u8] = b"num_ranks 2\nrank 0 {\nr: recv 8b from 1 tag 5\n}\nrank 1 {\n}\n";

const RANKS: usize = 8;
const OPS: usize = 64;

/// Memory for a few operations.
#[derive(Default)]
struct Small {
    edges: [u32; 32],
    ranks: [Rank; RANKS],
    firsts: [u32; RANKS + 1],
    slots: [Slot; 32],
    queue: [Entry; RANKS],
    places: [u32; RANKS],
    scratch: [[u32; 2]; 16],
}

/// Builds and runs the schedule that `play` feeds to a builder; returns the makespan and the number
/// of operations that never completed.
fn run(play: impl Fn(&mut Builder<'_>) -> Option<()>, survey: &Survey) -> Option<(u64, u64)> {
    let mut records = [Record::default(); OPS];
    let mut small = Small::default();
    let memory = Memory {
        records: &mut records,
        edges: &mut small.edges,
        ranks: &mut small.ranks,
        firsts: &mut small.firsts,
        slots: &mut small.slots,
        queue: &mut small.queue,
        places: &mut small.places,
        scratch: &mut small.scratch,
        ..Memory::default()
    };
    let requirements = survey.requirements(Settings::default()).ok()?;
    let mut builder = Builder::new(memory, requirements).ok()?;
    play(&mut builder)?;
    let schedule = builder.finish().ok()?;
    let mut engine = Engine::new(schedule, Parameters::one(SET), Settings::default());
    let makespan = engine.run().ok()?.makespan.0;
    let mut left = 0;
    engine.unfinished(|_| left += 1);
    Some((makespan, left))
}

fn run_text(text: &[u8]) -> Option<(u64, u64)> {
    let mut survey = Survey::default();
    feed(text, &mut survey)?;
    run(|builder| feed(text, builder), &survey)
}

fn simulate(text: &[u8]) -> Option<u64> {
    run_text(text).and_then(|(makespan, left)| (left == 0).then_some(makespan))
}

/// Makespan of a schedule with one unmatched receive: zero.
fn deadlock() -> Option<u64> {
    run_text(ALONE).and_then(|(makespan, left)| (left == 1).then_some(makespan))
}

fn pattern(pattern: Pattern, size: u64) -> Option<u64> {
    let options = Options::new(8, size);
    let mut survey = Survey::default();
    generate(pattern, &options, &mut [], &mut survey).ok()?;
    let play = |builder: &mut Builder<'_>| generate(pattern, &options, &mut [], builder).ok();
    run(play, &survey).and_then(|(makespan, left)| (left == 0).then_some(makespan))
}

/// Makespan of a dissemination simulated without a stored schedule.
fn computed() -> Option<u64> {
    let options = Options::new(8, 1);
    let program = implicit::PatternProgram::new(Pattern::Dissemination, &options).ok()??;
    let implicit::PatternProgram::Rounds(program) = program else { return None };
    let mut ranks: [implicit::RankState<_>; RANKS] = Default::default();
    let (mut words, mut nodes) = ([0; 256], [implicit::Node::default(); 32]);
    let memory = implicit::Memory { ranks: &mut ranks, words: &mut words, nodes: &mut nodes };
    let mut simulation =
        implicit::Simulation::new(&program, Parameters::one(SET), NoNoise, memory).ok()?;
    Some(simulation.run().ok()?.makespan.0)
}
