//! Runs of computed patterns on a network with shared links: the events of all ranks in order of
//! time.

use loggap_core::sim::implicit::{
    ImplicitError, Node, OrderedMemory, PatternProgram, Program, RankState, Requirements,
    Simulation,
};
use loggap_core::sim::{Entry, Noise, SimError};
use loggap_core::with_program;

use super::implicit::{more, steps_of};
use super::network::{MORE_MESSAGES, usual_messages};
use super::simulate::{Job, Progress, WATCHED_ON_NETWORK, Watch};
use super::{Computed, LoadError, NetworkPlan, NetworkUse, RunError};
use crate::sys::pages::{Integers, Pages};

/// A run on a network.
#[derive(Clone, Copy)]
pub(super) struct OnNetwork<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) plan: &'a NetworkPlan,
    pub(super) watch: Watch<'a>,
}

impl OnNetwork<'_> {
    /// Runs `program` with `noise`.
    ///
    /// # Errors
    ///
    /// [`RunError`].
    pub(super) fn compute<N: Noise + Copy>(
        &self,
        program: &PatternProgram,
        noise: N,
    ) -> Result<Computed, RunError> {
        with_program!(program, program => self.run(program, noise))
    }

    /// Repeats the run with more memory if more messages wait, or are in flight, than estimated.
    fn run<P: Program<State: Integers>, N: Noise + Copy>(
        &self,
        program: &P,
        noise: N,
    ) -> Result<Computed, RunError> {
        let needs = Requirements::of(program);
        let (mut nodes, mut messages) = (needs.nodes, usual_messages(needs.ranks));
        loop {
            // Messages in flight are included in those that wait.
            messages = messages.min(needs.nodes_most);
            let network = self.plan.bytes(program.extent().ranks, messages);
            let memory_bytes = needs.ordered_bytes_with(nodes).saturating_add(network);
            let allowed = self.job.most_bytes;
            if memory_bytes > allowed {
                return Err(LoadError::Memory { needed: memory_bytes, allowed }.into());
            }
            match self.try_run(program, noise, &needs, nodes, messages) {
                Err(RunError::Pattern(error)) => match error {
                    ImplicitError::Nodes { .. } if nodes < needs.nodes_most => {
                        nodes = more(nodes).min(needs.nodes_most);
                    }
                    ImplicitError::Stopped(SimError::NetworkFull { .. })
                        if messages < needs.nodes_most =>
                    {
                        messages = messages.saturating_mul(MORE_MESSAGES);
                    }
                    error => return Err(error.into()),
                },
                result => return Ok(Computed { memory_bytes, ..result? }),
            }
        }
    }

    fn try_run<P: Program<State: Integers>, N: Noise>(
        &self,
        program: &P,
        noise: N,
        needs: &Requirements,
        nodes: usize,
        messages: usize,
    ) -> Result<Computed, RunError> {
        let bytes = needs.ordered_bytes_with(nodes);
        let refused = |error| RunError::PatternMemory { bytes, error };
        let mut placed = self.plan.place(program.extent().ranks, 1, messages)?;
        let mut ranks = Pages::<RankState<P::State>>::zeroed(needs.ranks).map_err(refused)?;
        let mut queue = Pages::<Entry>::zeroed(2 * needs.ranks).map_err(refused)?;
        let mut places = Pages::<u32>::zeroed(needs.ranks).map_err(refused)?;
        let mut nodes = Pages::<Node>::zeroed(nodes).map_err(refused)?;
        let memory = OrderedMemory {
            ranks: &mut ranks,
            queue: &mut queue,
            places: &mut places,
            nodes: &mut nodes,
        };
        let flows = placed.lend()?;
        let mut simulation =
            Simulation::on_network(program, self.job.parameters, noise, flows, memory)?;
        let of = steps_of(program);
        let outcome = loop {
            if let Some(outcome) = simulation.run_some(WATCHED_ON_NETWORK)? {
                break outcome;
            }
            (self.watch)(Progress { done: simulation.progress(), of, time: None });
        };
        let network = Some(NetworkUse::of(simulation.network(), outcome.makespan.0));
        let finish = self.job.finish_of(needs.ranks, simulation.finishes());
        Ok(Computed { outcome, network, finish, threads: 1, parts: 1, ..Computed::default() })
    }
}
