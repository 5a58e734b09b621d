//! Predictions by simulation, on static memory.

use loggap_core::goal::pattern::{Options, Pattern, generate};
use loggap_core::model::LogGops;
use loggap_core::sim::{
    Builder, Engine, Entry, Memory as Lent, Parameters, Rank, Record, Settings, Slot, Survey,
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
    let mut survey = Survey::default();
    generate(pattern, &options, &mut [], &mut survey).ok()?;
    let requirements = survey.requirements(Settings::default()).ok()?;
    let mut builder = Builder::new(memory.lend(), requirements).ok()?;
    generate(pattern, &options, &mut [], &mut builder).ok()?;
    let schedule = builder.finish().ok()?;
    let mut engine = Engine::new(schedule, Parameters::one(link), Settings::default());
    let finished = engine.run().ok()?;
    Some(Predicted {
        makespan: finished.makespan,
        events: finished.events,
        ops: survey.ops(),
        bytes: requirements.bytes(),
    })
}
