//! Duration of a program under LogGOPS, by simulation.

use loggap::collective;
use loggap::simulation::OwnedMemory;
use loggap_core::goal::Sink;
use loggap_core::sim::{
    BuildError, Builder, Engine, NoNoise, Noise, Parameters, Requirements, Settings, Silent,
    SimError, Survey,
};
use loggap_core::units::Picos;

use super::program::Program;

/// Error of a prediction.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// The rounds are not a valid schedule.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The simulation stopped.
    #[error(transparent)]
    Stopped(#[from] SimError),
    /// The memory of the simulation could not be allocated.
    #[error("there is no memory for the simulation: {0}")]
    Memory(#[from] std::io::Error),
}

/// A program, and the memory that its simulations reuse.
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

    /// Finishing time of the last rank, if all ranks begin at once.
    pub(super) fn makespan<N: Noise>(
        &mut self,
        parameters: Parameters<'_>,
        noise: N,
    ) -> Result<Picos, PredictError> {
        let mut builder = Builder::new(self.memory.lend(), self.requirements)?;
        feed(self.program, &mut builder)?;
        let settings = Settings::default();
        Ok(Engine::with(builder.finish()?, parameters, settings, noise, Silent).run()?.makespan)
    }
}

/// Finishing time of the last rank, if all ranks begin at once and without noise.
///
/// # Errors
///
/// [`PredictError`].
pub fn makespan(program: &Program, parameters: Parameters<'_>) -> Result<Picos, PredictError> {
    Simulation::new(program)?.makespan(parameters, NoNoise)
}

fn feed<S: Sink>(program: &Program, sink: &mut S) -> Result<(), S::Error> {
    collective::feed(program.ranks, |rank| program.rounds(rank), sink)
}
