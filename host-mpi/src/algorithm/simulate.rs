//! What a program takes under LogGOPS, by the simulator.

use loggap::simulation::OwnedMemory;
use loggap_core::goal::{Op, OpKind, Sink};
use loggap_core::sim::{
    BuildError, Builder, Engine, NoNoise, Noise, Parameters, Requirements, Settings, Silent,
    SimError, Survey,
};
use loggap_core::units::Picos;

use super::program::{Message, Program};

/// Why there is no prediction.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// The rounds make no schedule.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The run stopped.
    #[error(transparent)]
    Stopped(#[from] SimError),
    /// There is no memory for it.
    #[error("there is no memory for the simulation: {0}")]
    Memory(#[from] std::io::Error),
}

/// A program, and memory for its simulation that serves run after run.
pub(super) struct Simulation<'a> {
    program: &'a Program,
    requirements: Requirements,
    memory: OwnedMemory,
}

impl<'a> Simulation<'a> {
    pub(super) fn new(program: &'a Program) -> Result<Self, PredictError> {
        let mut survey = Survey::default();
        feed(program, &mut survey)?;
        let requirements = survey.requirements(Settings::default())?;
        Ok(Self { program, requirements, memory: OwnedMemory::new(&requirements)? })
    }

    /// When the last rank is done, where all begin at once.
    pub(super) fn makespan<N: Noise>(
        &mut self,
        parameters: Parameters<'_>,
        noise: N,
    ) -> Result<Picos, PredictError> {
        let mut builder = Builder::new(self.memory.lend(), self.requirements)?;
        feed(self.program, &mut builder)?;
        let options = (parameters, Settings::default());
        Ok(Engine::with(builder.finish()?, options, noise, Silent).run()?.makespan)
    }
}

/// When the last rank is done, where all begin at once and nothing disturbs
/// them.
///
/// # Errors
///
/// [`PredictError`].
pub fn makespan(program: &Program, parameters: Parameters<'_>) -> Result<Picos, PredictError> {
    Simulation::new(program)?.makespan(parameters, NoNoise)
}

/// Plays the program into `sink`: an operation of a round waits for all of the
/// round before.
fn feed<S: Sink>(program: &Program, sink: &mut S) -> Result<(), S::Error> {
    sink.ranks(program.ranks)?;
    for rank in 0..program.ranks {
        sink.begin_rank(rank)?;
        let mut before: Vec<u32> = Vec::new();
        for round in program.rounds(rank) {
            if round.calc > Picos::ZERO {
                let kind = OpKind::Calc { duration: round.calc };
                before = vec![add(sink, kind, &before)?];
            }
            let mut own = Vec::new();
            for &Message { peer, size } in &round.sends {
                own.push(add(sink, OpKind::Send { peer, size, tag: 0 }, &before)?);
            }
            for &Message { peer, size } in &round.receives {
                own.push(add(sink, OpKind::Receive { peer, size, tag: 0 }, &before)?);
            }
            if !own.is_empty() {
                before = own;
            }
        }
        sink.end_rank()?;
    }
    Ok(())
}

fn add<S: Sink>(sink: &mut S, kind: OpKind, before: &[u32]) -> Result<u32, S::Error> {
    let operation = sink.op(Op { kind, cpu: 0, nic: 0 })?;
    for &on in before {
        sink.requires(operation, on)?;
    }
    Ok(operation)
}
