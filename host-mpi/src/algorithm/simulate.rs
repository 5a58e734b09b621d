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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{End, MessageCost, Shape, Tuned, protocols};
    use loggap_core::model::Estimate;

    fn cost(size: u64, one_way: u64, overheads: u64) -> MessageCost {
        let of = |value: u64| Estimate {
            value: Picos(value),
            low: Picos(value - 10),
            high: Picos(value + 10),
            ..Estimate::default()
        };
        MessageCost { size, one_way: of(one_way), overheads: of(overheads), gap: of(100) }
    }

    #[test]
    fn a_message_takes_half_a_round_trip_whatever_overheads_are() {
        let program = Program {
            shape: Shape::Tuned(Tuned::BroadcastBinomial),
            ranks: 2,
            size: 8,
            local: Picos::ZERO,
            combine: Picos::ZERO,
            post: Picos::ZERO,
        };
        for overheads in [100, 400, 900] {
            for (end, time) in [(End::Low, 390), (End::Value, 400), (End::High, 410)] {
                let costs = [cost(0, 300, 50), cost(8, 400, overheads)];
                let sets = protocols(&costs, end);
                let parameters = Parameters::per_protocol(&sets).unwrap();
                assert_eq!(makespan(&program, parameters).unwrap(), Picos(time), "{overheads}");
            }
        }
    }

    #[test]
    fn who_exchanges_posts_a_receive_before_it_sends() {
        let program = |shape| Program {
            shape,
            ranks: 4,
            size: 8,
            local: Picos::ZERO,
            combine: Picos::ZERO,
            post: Picos(50),
        };
        let sets = protocols(&[cost(8, 400, 100)], End::Value);
        let parameters = Parameters::per_protocol(&sets).unwrap();
        let time = |shape| makespan(&program(shape), parameters).unwrap();
        // Two rounds of exchanges; in a tree receives are posted meanwhile.
        assert_eq!(time(Shape::Tuned(Tuned::AllreduceDoubling)), Picos(2 * (50 + 400)));
        let tree = program(Shape::BroadcastFarFirst);
        let free = Program { post: Picos::ZERO, ..tree };
        assert_eq!(makespan(&tree, parameters).unwrap(), makespan(&free, parameters).unwrap());
    }
}
