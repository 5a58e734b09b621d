//! Runs of patterns that are computed instead of stored.

use std::io;

use loggap_core::noise::Phases;
use loggap_core::sim::implicit::{
    ImplicitError, Memory, Needs, Node, Outcome, PatternProgram, Program, RankState, Simulation,
};
use loggap_core::sim::{NoNoise, Noise, Parameters};
use loggap_core::units::Picos;

use super::noise::trace_noise;
use super::{NoiseSource, RunError};

use crate::sys::pages::Pages;

/// Why a pattern was not run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// The simulation stopped.
    #[error(transparent)]
    Stopped(#[from] ImplicitError),
    /// The kernel has no memory for so many bytes.
    #[error(
        "there is no memory for the {bytes} bytes of the simulation: {error}; take fewer ranks"
    )]
    Memory {
        /// Bytes.
        bytes: u64,
        /// The kernel's error.
        error: io::Error,
    },
}

/// Bytes that a run of `program` needs, as far as can be foreseen.
#[must_use]
pub fn bytes_needed(program: &PatternProgram) -> u64 {
    match program {
        PatternProgram::Tree(program) => Needs::of(program),
        PatternProgram::Reduction(program) => Needs::of(program),
        PatternProgram::Linear(program) => Needs::of(program),
        PatternProgram::Ring(program) => Needs::of(program),
        PatternProgram::Rounds(program) => Needs::of(program),
        PatternProgram::Doubling(program) => Needs::of(program),
    }
    .bytes()
}

/// Runs `program` with `noise`, and calls `each` with every rank and when it was
/// done; `None` where the pattern has to be stored, to decide ties or because of
/// what messages cost. Takes up to `most_bytes`.
///
/// # Errors
///
/// [`RunError`].
pub fn compute(
    program: &PatternProgram,
    (parameters, noise): (Parameters<'_>, Option<(&NoiseSource, Phases)>),
    most_bytes: u64,
    each: impl FnMut(u32, Picos),
) -> Result<Option<Outcome>, RunError> {
    let result = match noise {
        None => run_pattern(program, (parameters, NoNoise), most_bytes, each),
        Some(noise) => run_pattern(program, (parameters, trace_noise(noise)?), most_bytes, each),
    };
    match result {
        Ok(outcome) => Ok(Some(outcome).filter(|outcome| outcome.open_ties == 0)),
        Err(PatternError::Stopped(
            ImplicitError::NoLookahead
            | ImplicitError::Rendezvous { .. }
            | ImplicitError::Protocols,
        )) => Ok(None),
        Err(error) => Err(RunError::Pattern(error)),
    }
}

/// Runs `program`, and calls `each` with every rank and when it was done.
/// Where more waits than was foreseen, it begins anew with more memory, up to
/// `most_bytes`.
///
/// # Errors
///
/// [`PatternError`].
pub fn run_pattern<N: Noise + Copy>(
    program: &PatternProgram,
    (parameters, noise): (Parameters<'_>, N),
    most_bytes: u64,
    each: impl FnMut(u32, Picos),
) -> Result<Outcome, PatternError> {
    match program {
        PatternProgram::Tree(program) => run(program, (parameters, noise), most_bytes, each),
        PatternProgram::Reduction(program) => run(program, (parameters, noise), most_bytes, each),
        PatternProgram::Linear(program) => run(program, (parameters, noise), most_bytes, each),
        PatternProgram::Ring(program) => run(program, (parameters, noise), most_bytes, each),
        PatternProgram::Rounds(program) => run(program, (parameters, noise), most_bytes, each),
        PatternProgram::Doubling(program) => run(program, (parameters, noise), most_bytes, each),
    }
}

fn run<P: Program, N: Noise + Copy>(
    program: &P,
    (parameters, noise): (Parameters<'_>, N),
    most_bytes: u64,
    mut each: impl FnMut(u32, Picos),
) -> Result<Outcome, PatternError> {
    let needs = Needs::of(program);
    let mut lent = needs.nodes;
    loop {
        let refused = |error| PatternError::Memory { bytes: needs.bytes_with(lent), error };
        let mut ranks = Vec::new();
        ranks.try_reserve_exact(needs.ranks).map_err(|error| refused(io::Error::other(error)))?;
        ranks.resize(needs.ranks, RankState::default());
        // Zeroed memory costs nothing before it is used.
        let mut words = Pages::<u64>::zeroed(needs.words).map_err(refused)?;
        let mut nodes = Pages::<Node>::zeroed(lent).map_err(refused)?;
        let memory = Memory { ranks: &mut ranks, words: &mut words, nodes: &mut nodes };
        let mut simulation = Simulation::new(program, parameters, noise, memory)?;
        match simulation.run() {
            Err(ImplicitError::Nodes { .. })
                if lent < needs.nodes_most && needs.bytes_with(more(lent)) <= most_bytes =>
            {
                lent = more(lent).min(needs.nodes_most);
            }
            result => {
                let outcome = result?;
                for rank in 0..program.ranks() {
                    each(rank, simulation.finish(rank));
                }
                return Ok(outcome);
            }
        }
    }
}

/// The number of nodes to lend after `lent` were too few.
const fn more(lent: usize) -> usize {
    lent.saturating_mul(4)
}
