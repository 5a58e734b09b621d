//! Noise, schedules and their simulation.

use super::basics::SET;
use super::{Vector, digest};
use crate::goal::pattern::{Options, Pattern, generate};
use crate::goal::text::{Block, LabelMemory, TextMemory, TextWriter, read};
use crate::goal::{SliceOutput, text};
use crate::noise::{Detour, Trace};
use crate::sim::{
    Builder, Engine, Entry, Memory, Parameters, Rank, Record, Settings, Slot, Survey,
};
use crate::units::Picos;

pub(super) const VECTORS: &[Vector] = &[
    // 10 at 100 and 20 at 500 of every 1000: from 450 to 2450 there are two of
    // each.
    Vector { name: "noise: detours stretch an operation", compute: noise, answer: 60 },
    Vector { name: "goal: text counts its operations", compute: survey, answer: 4 },
    Vector { name: "goal: text survives a way through the reader", compute: rewritten, answer: 1 },
    Vector { name: "goal: a wrong line is refused", compute: refused, answer: 2 },
    // o + L + 7·G + o, alone: LogGOPSim's own figure for 8 bytes.
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
    Vector { name: "sim: a deadlock ends the run", compute: deadlock, answer: 0 },
];

const TWO: &[u8] =
    b"num_ranks 2\nrank 0 {\ns: send 8b to 1 tag 5\n}\nrank 1 {\nr: recv 8b from 0 tag 5\n}\n";
const FOUR: &[u8] = b"num_ranks 2\nrank 0 {\na: calc 10\nb: send 8b to 1 tag 5\nb requires a\n}\nrank 1 {\na: recv 8b from 0 tag 5\nb: calc 20 cpu 1\nb irequires a\n}\n";
const WRONG: &[u8] = b"num_ranks 1\nrank 0 [\n}\n";
const ALONE: &[u8] = b"num_ranks 2\nrank 0 {\nr: recv 8b from 1 tag 5\n}\nrank 1 {\n}\n";

fn noise() -> Option<u64> {
    let detours = [
        Detour { start: Picos(100), duration: Picos(10) },
        Detour { start: Picos(500), duration: Picos(20) },
    ];
    let trace = Trace::new(&detours, Some(Picos(1_000))).ok()?;
    Some(trace.lost(Picos::ZERO, Picos(450), Picos(2_000)).0)
}

fn survey() -> Option<u64> {
    Some(text::Survey::of(FOUR).ok()?.ops() as u64)
}

/// Feeds `text` into `sink`.
fn feed<S: crate::goal::Sink>(text: &[u8], sink: &mut S) -> Option<()> {
    let survey = text::Survey::of(text).ok()?;
    let (mut entries, mut buckets) = ([[0; 2]; 4], [0; 4]);
    let labels = LabelMemory { entries: &mut entries, buckets: &mut buckets, seed: 0 };
    let memory = TextMemory { blocks: &mut [Block::default(); 4], labels };
    read(text, &survey, memory, sink).ok()
}

fn rewritten() -> Option<u64> {
    let written = |text: &[u8], room: &mut [u8; 512]| {
        let mut writer = TextWriter::new(SliceOutput::new(room));
        feed(text, &mut writer)?;
        Some(writer.finish().ok()?.written().len())
    };
    let (mut first, mut second) = ([0; 512], [0; 512]);
    let length = written(FOUR, &mut first)?;
    let again = written(first.get(..length)?, &mut second)?;
    let same = digest(first.get(..length)?) == digest(second.get(..again)?);
    Some(u64::from(same && length > 0))
}

/// The line at fault.
fn refused() -> Option<u64> {
    let error = text::Survey::of(WRONG).err()?;
    Some(text::line_and_column(WRONG, error.at).0 as u64)
}

const RANKS: usize = 8;
const OPS: usize = 64;

/// Memory for a few operations.
#[derive(Default)]
struct Small {
    edges: [u32; 32],
    ranks: [Rank; RANKS],
    firsts: [u32; RANKS + 1],
    slots: [Slot; 32],
    queue: [Entry; 32],
    wakes: [Entry; RANKS],
    scratch: [[u32; 2]; 16],
}

/// Builds what `play` feeds to a sink and runs it; the time of its end and
/// the number of operations that never ended.
fn run(play: impl Fn(&mut Builder<'_>) -> Option<()>, survey: &Survey) -> Option<(u64, u64)> {
    let mut records = [Record::default(); OPS];
    let mut small = Small::default();
    let memory = Memory {
        records: &mut records,
        edges: &mut small.edges,
        ranks: &mut small.ranks,
        firsts: &mut small.firsts,
        slots: &mut small.slots,
        clocks: &mut [],
        times: &mut [],
        tries: &mut [],
        done: &mut [],
        queue: &mut small.queue,
        wakes: &mut small.wakes,
        scratch: &mut small.scratch,
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

/// The time of a receive that nobody sends to: none.
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
