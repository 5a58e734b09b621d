//! What fits into how much memory.

use loggap_core::goal::Sink;
use loggap_core::goal::pattern::{GenerateError, Options, Pattern, generate};
use loggap_core::model::Preset;
use loggap_core::sim::{
    BuildError, Builder, Engine, Entry, Memory, Parameters, Rank, Record, Settings, Slot, Survey,
};
use loggap_core::units::Picos;

const RANKS: usize = 64;
/// Six rounds of a send and a receive each.
const OPS: usize = RANKS * 12;
/// All sends but the first wait for the receive before.
const EDGES: usize = RANKS * 5;

/// All memory of a simulation.
struct Block {
    records: [Record; OPS],
    edges: [u32; 2 * EDGES],
    ranks: [Rank; RANKS],
    firsts: [u32; RANKS + 1],
    slots: [Slot; OPS / 2],
    queue: [Entry; RANKS],
    places: [u32; RANKS],
    scratch: [[u32; 2]; EDGES / RANKS],
}

const _: () = assert!(size_of::<Block>() <= 64 << 10, "a microcontroller has no more to lend");

fn dissemination<S: Sink<Error = BuildError>>(
    sink: &mut S,
) -> Result<(), GenerateError<BuildError>> {
    generate(Pattern::Dissemination, &Options::new(64, 1), &mut [], sink)
}

#[test]
fn a_dissemination_over_64_ranks_runs_in_64_kib() {
    let mut survey = Survey::default();
    dissemination(&mut survey).unwrap();
    let needs = survey.requirements(Settings::default()).unwrap();
    assert!(needs.bytes() <= 64 << 10, "{} bytes", needs.bytes());
    let mut block = Box::new(Block {
        records: [Record::default(); OPS],
        edges: [0; 2 * EDGES],
        ranks: [Rank::default(); RANKS],
        firsts: [0; RANKS + 1],
        slots: [Slot::default(); OPS / 2],
        queue: [Entry::default(); RANKS],
        places: [0; RANKS],
        scratch: [[0; 2]; EDGES / RANKS],
    });
    let memory = Memory {
        records: &mut block.records,
        edges: &mut block.edges,
        ranks: &mut block.ranks,
        firsts: &mut block.firsts,
        slots: &mut block.slots,
        queue: &mut block.queue,
        places: &mut block.places,
        scratch: &mut block.scratch,
        ..Memory::default()
    };
    let mut builder = Builder::new(memory, needs).unwrap();
    dissemination(&mut builder).unwrap();
    let preset: Preset = "loggopsim".parse().unwrap();
    let parameters = Parameters::per_protocol(preset.protocols).unwrap();
    let mut engine = Engine::new(builder.finish().unwrap(), parameters, Settings::default());
    let finished = engine.run().unwrap();
    // (2o + L)·log2(64).
    assert_eq!(finished.makespan, Picos(6 * 5_500_000));
    assert_eq!(finished.events, 3 * 64 * 6);
    engine.unfinished(|left| panic!("{left}"));
}
