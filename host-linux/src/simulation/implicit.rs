//! Runs of patterns that are computed instead of stored.

use std::mem;

use loggap_core::sim::Noise;
use loggap_core::sim::implicit::{
    ImplicitError, Memory, Node, PatternProgram, Program, ProgramFinished, RankState, Requirements,
    Simulation,
};
use loggap_core::units::Picos;
use loggap_core::with_program;

use super::simulate::{Job, Progress, WATCHED, Watch};
use super::windows::run_in_parts;
use super::{NetworkUse, RunError};
use crate::sys::pages::{Integers, Pages};

/// Number of steps of a run of `program`, three for each message: send, arrival and receive.
pub(super) fn steps_of<P: Program>(program: &P) -> u64 {
    program.extent().messages.saturating_mul(3)
}

/// Result of a computed run.
#[derive(Clone, Debug, Default)]
pub struct Computed {
    /// Makespan and counts.
    pub outcome: ProgramFinished,
    /// Memory in use, bytes.
    pub memory_bytes: u64,
    /// Number of threads.
    pub threads: usize,
    /// Number of partitions of the ranks.
    pub parts: usize,
    /// Messages between processes.
    pub crossing: u64,
    /// Utilization of the links, for networks with shared links.
    pub network: Option<NetworkUse>,
    /// Finishing time of each rank of this process; empty unless requested.
    pub finish: Vec<Picos>,
}

/// Estimated memory for a run of `program`, bytes.
#[must_use]
pub fn bytes_needed(program: &PatternProgram) -> u64 {
    needs_of(program).bytes()
}

/// Memory requirements of a run of `program`.
pub(super) fn needs_of(program: &PatternProgram) -> Requirements {
    with_program!(program, program => Requirements::of(program))
}

/// Converts the result of a computed run; `None` if the pattern must be stored.
pub(super) fn settled(result: Result<Computed, RunError>) -> Result<Option<Computed>, RunError> {
    match result {
        Ok(computed) => Ok(Some(computed).filter(|computed| computed.outcome.open_ties == 0)),
        Err(RunError::Pattern(error)) if error.wants_storing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Runs `program` with `noise` in place of the job's. If more messages wait than estimated, the run
/// is repeated with more memory.
///
/// # Errors
///
/// [`RunError`].
pub fn run_pattern<N: Noise + Copy + Send>(
    program: &PatternProgram,
    job: &Job<'_>,
    noise: N,
    watch: Watch<'_>,
) -> Result<Computed, RunError> {
    with_program!(program, program => run(program, job, noise, watch))
}

fn run<P: Program<State: Send + Integers> + Sync, N: Noise + Copy + Send>(
    program: &P,
    job: &Job<'_>,
    noise: N,
    watch: Watch<'_>,
) -> Result<Computed, RunError> {
    if let Some(computed) = run_in_parts(program, job, noise, watch)? {
        return Ok(computed);
    }
    if job.processes.count() > 1 {
        return Err(ImplicitError::Memory.into());
    }
    let needs = Requirements::of(program);
    PatternMemory::new(needs, 1, needs.nodes)?.run(program, job, noise, watch)
}

/// Memory for runs of programs with this rank state, reusable for several runs: for `parts`
/// partitions of the ranks, or for all ranks as one.
#[derive(Debug)]
pub(super) struct PatternMemory<S> {
    /// Requirements of one partition.
    needs: Requirements,
    parts: usize,
    ranks: Pages<RankState<S>>,
    /// True if `ranks` are those of a run.
    used: bool,
    words: Pages<u64>,
    nodes: Pages<Node>,
}

impl<S: Copy + Default + Integers> PatternMemory<S> {
    /// Allocates what each partition needs, with `nodes` nodes each.
    ///
    /// # Errors
    ///
    /// [`RunError::PatternMemory`].
    pub(super) fn new(needs: Requirements, parts: usize, nodes: usize) -> Result<Self, RunError> {
        let bytes = needs.bytes_with(nodes).saturating_mul(parts as u64);
        let refused = |error| RunError::PatternMemory { bytes, error };
        // Zeroed memory costs nothing before it is used.
        let ranks = Pages::zeroed(parts * needs.ranks).map_err(refused)?;
        let words = Pages::zeroed(parts * needs.words).map_err(refused)?;
        let nodes =
            if parts > 1 { Pages::zeroed_sparse(parts * nodes) } else { Pages::zeroed(nodes) };
        let nodes = nodes.map_err(refused)?;
        Ok(Self { needs, parts, ranks, used: false, words, nodes })
    }

    /// Lends each partition its share.
    pub(super) fn lend(&mut self) -> impl Iterator<Item = Memory<'_, S>> {
        let Self { needs, parts, ranks, used, words, nodes } = self;
        if mem::replace(used, true) {
            ranks.fill(RankState::default());
        }
        let nodes_each = (nodes.len() / (*parts).max(1)).max(1);
        let ranks = ranks.chunks_mut(needs.ranks);
        let lent = ranks.zip(words.chunks_mut(needs.words)).zip(nodes.chunks_mut(nodes_each));
        lent.map(|((ranks, words), nodes)| Memory { ranks, words, nodes })
    }

    /// As [`run_pattern`], for a program that fits this memory, as one partition.
    ///
    /// # Errors
    ///
    /// [`RunError`].
    pub(super) fn run<P: Program<State = S>, N: Noise + Copy>(
        &mut self,
        program: &P,
        job: &Job<'_>,
        noise: N,
        watch: Watch<'_>,
    ) -> Result<Computed, RunError> {
        let (of, needs) = (steps_of(program), self.needs);
        loop {
            let lent = self.nodes.len();
            let memory = self.lend().next().ok_or(ImplicitError::Memory)?;
            let mut simulation = Simulation::new(program, job.parameters, noise, memory)?;
            let next = more(lent).min(needs.nodes_most);
            let result = loop {
                match simulation.run_some(WATCHED) {
                    Ok(None) => watch(Progress { done: simulation.progress(), of, time: None }),
                    Ok(Some(outcome)) => break Ok(outcome),
                    Err(error) => break Err(error),
                }
            };
            match result {
                Err(ImplicitError::Nodes { .. })
                    if lent < next && needs.bytes_with(next) <= job.most_bytes =>
                {
                    self.lend_nodes(next)?;
                }
                result => {
                    let outcome = result?;
                    let finish = job.finish_of(needs.ranks, simulation.finishes());
                    let used = usize::try_from(simulation.nodes_used()).unwrap_or(lent);
                    let memory_bytes = needs.bytes_with(used);
                    return Ok(Computed {
                        outcome,
                        memory_bytes,
                        finish,
                        threads: 1,
                        parts: 1,
                        ..Computed::default()
                    });
                }
            }
        }
    }

    /// Replaces the nodes by this number of new ones.
    fn lend_nodes(&mut self, nodes: usize) -> Result<(), RunError> {
        let bytes = self.needs.bytes_with(nodes);
        let refused = |error| RunError::PatternMemory { bytes, error };
        // Free the old ones first, because both together may not fit.
        self.nodes = Pages::zeroed(0).map_err(refused)?;
        self.nodes = Pages::zeroed(nodes).map_err(refused)?;
        Ok(())
    }
}

/// Number of nodes to allocate after `lent` were too few.
pub(super) const fn more(lent: usize) -> usize {
    lent.saturating_mul(4)
}
