//! Runs of patterns that are computed instead of stored.

use std::{fmt, io};

use loggap_core::sim::implicit::{
    ImplicitError, Memory, Node, PatternProgram, Program, ProgramFinished, RankState, Requirements,
    Simulation,
};
use loggap_core::sim::{Noise, Parameters};
use loggap_core::units::Picos;
use loggap_core::with_program;

use super::noise::{PhasedNoise, with_noise};
use super::simulate::{Progress, WATCHED, Watch};
use super::windows::run_in_parts;
use super::{NetworkUse, RunError};
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

/// What the run of a pattern may take, and who is told how far it is.
#[derive(Clone, Copy)]
pub struct Means<'w> {
    /// Threads, at least one.
    pub threads: usize,
    /// Runs of fewer messages are left to one of them.
    pub least_messages: u64,
    /// Bytes of memory.
    pub most_bytes: u64,
    /// Who is told.
    pub watch: Watch<'w>,
}

impl fmt::Debug for Means<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, least_messages, most_bytes, .. } = self;
        f.debug_struct("Means")
            .field("threads", threads)
            .field("least_messages", least_messages)
            .field("most_bytes", most_bytes)
            .finish_non_exhaustive()
    }
}

impl Means<'_> {
    /// One thread, and as much memory as there is; nobody is told.
    pub const ONE_THREAD: Self = Self {
        threads: 1,
        least_messages: Self::LEAST_MESSAGES,
        most_bytes: u64::MAX,
        watch: &|_| {},
    };

    /// As a rule, fewer messages are simulated before other threads are of use.
    pub const LEAST_MESSAGES: u64 = 1 << 17;
}

/// Steps of a run of `program`: a send, its message and its receive.
pub(super) fn steps_of<P: Program>(program: &P) -> u64 {
    program.messages().saturating_mul(3)
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Computed {
    /// How it ended.
    pub outcome: ProgramFinished,
    /// Bytes of memory that it took.
    pub memory_bytes: u64,
    /// Threads.
    pub threads: usize,
    /// Parts of the ranks.
    pub parts: usize,
    /// Which links were busy, where messages shared them.
    pub network: Option<NetworkUse>,
}

/// Bytes that a run of `program` needs, as far as can be foreseen.
#[must_use]
pub fn bytes_needed(program: &PatternProgram) -> u64 {
    needs_of(program).bytes()
}

/// What a run of `program` needs.
pub(super) fn needs_of(program: &PatternProgram) -> Requirements {
    with_program!(program, program => Requirements::of(program))
}

/// Runs `program` with `noise`, and calls `each` with every rank and when it was
/// done; `None` where the pattern has to be stored, to decide ties or because of
/// what messages cost.
///
/// # Errors
///
/// [`RunError`].
pub fn compute(
    program: &PatternProgram,
    parameters: Parameters<'_>,
    noise: Option<PhasedNoise<'_>>,
    means: &Means<'_>,
    each: impl FnMut(u32, Picos),
) -> Result<Option<Computed>, RunError> {
    let result = with_noise!(noise, noise => {
        run_pattern(program, parameters, noise, means, each)
    });
    settled(result.map_err(RunError::Pattern))
}

/// What came of a computed run; `None` where the pattern has to be stored.
pub(super) fn settled(result: Result<Computed, RunError>) -> Result<Option<Computed>, RunError> {
    match result {
        Ok(computed) => Ok(Some(computed).filter(|computed| computed.outcome.open_ties == 0)),
        Err(RunError::Pattern(PatternError::Stopped(error))) if error.wants_storing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Runs `program`, and calls `each` with every rank and when it was done.
/// Where more waits than was foreseen, it begins anew with more memory.
///
/// # Errors
///
/// [`PatternError`].
pub fn run_pattern<N: Noise + Copy + Send>(
    program: &PatternProgram,
    parameters: Parameters<'_>,
    noise: N,
    means: &Means<'_>,
    each: impl FnMut(u32, Picos),
) -> Result<Computed, PatternError> {
    with_program!(program, program => run(program, parameters, noise, means, each))
}

fn run<P: Program<State: Send> + Sync, N: Noise + Copy + Send>(
    program: &P,
    parameters: Parameters<'_>,
    noise: N,
    means: &Means<'_>,
    mut each: impl FnMut(u32, Picos),
) -> Result<Computed, PatternError> {
    if let Some(computed) = run_in_parts(program, parameters, noise, means, &mut each)? {
        return Ok(computed);
    }
    let needs = Requirements::of(program);
    PatternMemory::new(needs, 1, needs.nodes)?.run(program, parameters, noise, means, each)
}

/// The memory of runs of a program with this state of a rank, used again for
/// each: of so many parts of its ranks, or of all together as one.
#[derive(Debug)]
pub(super) struct PatternMemory<S> {
    /// Of a part.
    needs: Requirements,
    parts: usize,
    ranks: Vec<RankState<S>>,
    words: Pages<u64>,
    nodes: Pages<Node>,
}

impl<S: Copy + Default> PatternMemory<S> {
    /// As much as each part needs, and so many nodes for each.
    ///
    /// # Errors
    ///
    /// [`PatternError::Memory`].
    pub(super) fn new(
        needs: Requirements,
        parts: usize,
        nodes: usize,
    ) -> Result<Self, PatternError> {
        let bytes = needs.bytes_with(nodes).saturating_mul(parts as u64);
        let refused = |error| PatternError::Memory { bytes, error };
        let mut ranks = Vec::new();
        let reserved = ranks.try_reserve_exact(parts * needs.ranks);
        reserved.map_err(|error| refused(io::Error::other(error)))?;
        // Zeroed memory costs nothing before it is used.
        let words = Pages::zeroed(parts * needs.words).map_err(refused)?;
        let nodes =
            if parts > 1 { Pages::zeroed_sparse(parts * nodes) } else { Pages::zeroed(nodes) };
        let nodes = nodes.map_err(refused)?;
        Ok(Self { needs, parts, ranks, words, nodes })
    }

    /// What each part has of it.
    pub(super) fn lend(&mut self) -> impl Iterator<Item = Memory<'_, S>> {
        let Self { needs, parts, ranks, words, nodes } = self;
        ranks.clear();
        ranks.resize(*parts * needs.ranks, RankState::default());
        let nodes_each = nodes.len() / *parts;
        let ranks = ranks.chunks_mut(needs.ranks);
        let lent = ranks.zip(words.chunks_mut(needs.words)).zip(nodes.chunks_mut(nodes_each));
        lent.map(|((ranks, words), nodes)| Memory { ranks, words, nodes })
    }

    /// As [`run_pattern`] a program that the memory was made for, as one part.
    ///
    /// # Errors
    ///
    /// [`PatternError`].
    pub(super) fn run<P: Program<State = S>, N: Noise + Copy>(
        &mut self,
        program: &P,
        parameters: Parameters<'_>,
        noise: N,
        means: &Means<'_>,
        mut each: impl FnMut(u32, Picos),
    ) -> Result<Computed, PatternError> {
        let (of, needs) = (steps_of(program), self.needs);
        loop {
            let lent = self.nodes.len();
            let memory = self.lend().next().ok_or(ImplicitError::Memory)?;
            let mut simulation = Simulation::new(program, parameters, noise, memory)?;
            let next = more(lent).min(needs.nodes_most);
            let result = loop {
                match simulation.run_some(WATCHED) {
                    Ok(None) => (means.watch)(Progress { done: simulation.progress(), of }),
                    Ok(Some(outcome)) => break Ok(outcome),
                    Err(error) => break Err(error),
                }
            };
            match result {
                Err(ImplicitError::Nodes { .. })
                    if lent < next && needs.bytes_with(next) <= means.most_bytes =>
                {
                    self.lend_nodes(next)?;
                }
                result => {
                    let outcome = result?;
                    simulation.finishes().for_each(|(rank, time)| each(rank, time));
                    let used = usize::try_from(simulation.nodes_used()).unwrap_or(lent);
                    let memory_bytes = needs.bytes_with(used);
                    return Ok(Computed {
                        outcome,
                        memory_bytes,
                        threads: 1,
                        parts: 1,
                        network: None,
                    });
                }
            }
        }
    }

    /// Takes so many nodes in place of those that there are.
    fn lend_nodes(&mut self, nodes: usize) -> Result<(), PatternError> {
        let bytes = self.needs.bytes_with(nodes);
        let refused = |error| PatternError::Memory { bytes, error };
        // Both together may be more than there is.
        self.nodes = Pages::zeroed(0).map_err(refused)?;
        self.nodes = Pages::zeroed(nodes).map_err(refused)?;
        Ok(())
    }
}

/// The number of nodes to lend after `lent` were too few.
pub(super) const fn more(lent: usize) -> usize {
    lent.saturating_mul(4)
}
