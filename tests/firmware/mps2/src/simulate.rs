//! Predictions by simulation, on static memory.

use loggap_core::goal::pattern::{Options, Pattern, generate};
use loggap_core::model::LogGops;
use loggap_core::sim::{
    Builder, Engine, Entry, Finished, Memory as Lent, Parameters, Rank, Record, Schedule, Settings,
    Slot, Survey,
};
use loggap_core::units::Picos;

use crate::lend;

const RANKS: usize = 64;
/// Operations of a dissemination over 64 ranks: six rounds of a send and a
/// receive each.
const OPS: usize = RANKS * 12;

/// Memory for a simulation of 64 ranks.
pub struct Memory(Lent<'static>);

impl Memory {
    /// The memory, once.
    pub fn take() -> Option<Self> {
        Some(Self(Lent {
            records: lend!(Record, OPS),
            edges: lend!(u32, 2 * OPS),
            ranks: lend!(Rank, RANKS),
            firsts: lend!(u32, RANKS + 1),
            slots: lend!(Slot, OPS / 2),
            queue: lend!(Entry, RANKS),
            places: lend!(u32, RANKS),
            scratch: lend!([u32; 2], 16),
            ..Lent::default()
        }))
    }

    fn lend(&mut self) -> Lent<'_> {
        let all = &mut self.0;
        Lent {
            records: all.records,
            edges: all.edges,
            ranks: all.ranks,
            firsts: all.firsts,
            slots: all.slots,
            queue: all.queue,
            places: all.places,
            scratch: all.scratch,
            ..Lent::default()
        }
    }
}

/// What a simulation said.
pub struct Predicted {
    /// When the last rank is done.
    pub makespan: Picos,
    /// Operations released and messages created.
    pub events: u64,
    /// Operations.
    pub ops: u64,
    /// Memory that was needed, in bytes.
    pub bytes: u64,
}

/// A dissemination barrier.
pub fn barrier(memory: &mut Memory, link: LogGops, ranks: u32) -> Option<Predicted> {
    run(memory, link, Pattern::Dissemination, Options::new(ranks, 1))
}

/// A binomial broadcast of `size` bytes.
pub fn broadcast(memory: &mut Memory, link: LogGops, ranks: u32, size: u64) -> Option<Predicted> {
    run(memory, link, Pattern::BinomialBroadcast, Options::new(ranks, size))
}

fn run(
    memory: &mut Memory,
    link: LogGops,
    pattern: Pattern,
    options: Options,
) -> Option<Predicted> {
    let (schedule, ops, bytes) = build(memory, pattern, options)?;
    let mut engine = Engine::new(schedule, Parameters::one(link), Settings::default());
    let Finished { makespan, events, .. } = engine.run().ok()?;
    Some(Predicted { makespan, events, ops, bytes })
}

/// The schedule of a pattern, its operations and the bytes that it needs.
pub fn build(
    memory: &mut Memory,
    pattern: Pattern,
    options: Options,
) -> Option<(Schedule<'_>, u64, u64)> {
    let mut survey = Survey::default();
    generate(pattern, &options, &mut [], &mut survey).ok()?;
    let requirements = survey.requirements(Settings::default()).ok()?;
    let mut builder = Builder::new(memory.lend(), requirements).ok()?;
    generate(pattern, &options, &mut [], &mut builder).ok()?;
    Some((builder.finish().ok()?, survey.ops(), requirements.bytes()))
}
