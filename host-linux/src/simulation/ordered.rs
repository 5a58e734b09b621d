//! Runs of computed patterns on a network with shared links: the events of all ranks in order of
//! time; a single run, or several points in parallel.

use loggap_core::sim::implicit::{
    ImplicitError, Node, OrderedMemory, PatternProgram, Program, ProgramFinished, RankState,
    Requirements, Simulation,
};
use loggap_core::sim::{Entry, Noise, Parameters, SimError};
use loggap_core::units::Picos;
use loggap_core::with_program;

use super::implicit::{more, needs_of, settled, steps_of};
use super::network::{MORE_MESSAGES, usual_messages};
use super::noise::{PhasedNoise, with_noise};
use super::points::{Batch, Completed, Ended, of_one_point};
use super::simulate::{Progress, WATCHED_ON_NETWORK, Watch};
use super::{Computed, LoadError, NetworkPlan, NetworkUse, PatternError, RunError, Source};
use crate::side_by_side::side_by_side;
use crate::sys::pages::{Integers, Pages};

/// Parameters, network and limits of a run.
#[derive(Clone, Copy)]
pub(super) struct OnNetwork<'a> {
    pub(super) parameters: Parameters<'a>,
    pub(super) plan: &'a NetworkPlan,
    /// Memory limit, bytes.
    pub(super) most_bytes: u64,
    /// Callback for the progress.
    pub(super) watch: Watch<'a>,
}

impl OnNetwork<'_> {
    /// Runs `program` with `noise`, and calls `each` with every rank and its finishing time. `None`
    /// if the pattern must be stored because of the message costs.
    ///
    /// # Errors
    ///
    /// [`RunError`].
    pub(super) fn compute(
        &self,
        program: &PatternProgram,
        noise: Option<PhasedNoise<'_>>,
        each: impl FnMut(u32, Picos),
    ) -> Result<Option<Computed>, RunError> {
        settled(with_noise!(noise, noise => self.run_pattern(program, noise, each)))
    }

    fn run_pattern<N: Noise + Copy>(
        &self,
        program: &PatternProgram,
        noise: N,
        each: impl FnMut(u32, Picos),
    ) -> Result<Computed, RunError> {
        with_program!(program, program => self.run(program, noise, each))
    }

    /// Repeats the run with more memory if more messages wait, or are in flight, than estimated.
    fn run<P: Program<State: Integers>, N: Noise + Copy>(
        &self,
        program: &P,
        noise: N,
        mut each: impl FnMut(u32, Picos),
    ) -> Result<Computed, RunError> {
        let needs = Requirements::of(program);
        let (mut nodes, mut messages) = (needs.nodes, usual_messages(needs.ranks));
        loop {
            // Messages in flight are included in those that wait.
            messages = messages.min(needs.nodes_most);
            let network = self.plan.bytes(program.ranks(), messages);
            let memory_bytes = needs.ordered_bytes_with(nodes).saturating_add(network);
            if memory_bytes > self.most_bytes {
                let allowed = self.most_bytes;
                return Err(RunError::Load(LoadError::Memory { needed: memory_bytes, allowed }));
            }
            let lent = Lent { needs: &needs, nodes, messages };
            match self.try_run(program, noise, &lent, &mut each) {
                Err(RunError::Pattern(PatternError::Stopped(error))) => match error {
                    ImplicitError::Nodes { .. } if nodes < needs.nodes_most => {
                        nodes = more(nodes).min(needs.nodes_most);
                    }
                    ImplicitError::Stopped(SimError::NetworkFull { .. })
                        if messages < needs.nodes_most =>
                    {
                        messages = messages.saturating_mul(MORE_MESSAGES);
                    }
                    error => return Err(stopped(error)),
                },
                result => {
                    let (outcome, network) = result?;
                    let network = Some(network);
                    let (threads, parts) = (1, 1);
                    let computed =
                        Computed { outcome, memory_bytes, threads, parts, ..Computed::default() };
                    return Ok(Computed { network, ..computed });
                }
            }
        }
    }

    fn try_run<P: Program<State: Integers>, N: Noise>(
        &self,
        program: &P,
        noise: N,
        lent: &Lent<'_>,
        each: &mut impl FnMut(u32, Picos),
    ) -> Result<(ProgramFinished, NetworkUse), RunError> {
        let Lent { needs, nodes, messages } = *lent;
        let bytes = needs.ordered_bytes_with(nodes);
        let refused = |error| RunError::Pattern(PatternError::Memory { bytes, error });
        let mut placed = self.plan.place(program.ranks(), 1, messages)?;
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
        let mut simulation = Simulation::on_network(program, self.parameters, noise, flows, memory)
            .map_err(stopped)?;
        let of = steps_of(program);
        let outcome = loop {
            if let Some(outcome) = simulation.run_some(WATCHED_ON_NETWORK).map_err(stopped)? {
                break outcome;
            }
            (self.watch)(Progress { done: simulation.progress(), of, time: None });
        };
        simulation.finishes().for_each(|(rank, time)| each(rank, time));
        let network = NetworkUse::of(simulation.network(), outcome.makespan.0);
        Ok((outcome, network))
    }
}

impl Batch<'_> {
    /// Results of points of a pattern on the network `plan`. Empty, or `None` for a point, if the
    /// schedule must be stored.
    pub(super) fn computed_on_network(
        &self,
        source: &Source,
        plan: &NetworkPlan,
        points: &[usize],
    ) -> Result<Vec<Option<Ended>>, RunError> {
        let program = source.program(self.plan.settings.receive);
        let Some(program) = program else { return Ok(Vec::new()) };
        let (needs, ranks) = (needs_of(&program), source.ranks());
        let kept = self.kept(ranks);
        let network = plan.bytes(ranks, usual_messages(needs.ranks).min(needs.nodes_most));
        let each = needs.ordered_bytes_with(needs.nodes).saturating_add(network);
        let threads = self.threads(each, kept, points.len())?;
        let most_bytes = self.plan.most_bytes.saturating_sub(kept) / threads as u64;
        side_by_side(
            threads,
            points,
            || Ok(()),
            |(), at| {
                if self.plan.is_stopped() {
                    return Ok(None);
                }
                let point = (self.point)(at);
                let parameters = point.sets.parameters()?;
                let mut finish = Vec::new();
                let run = OnNetwork { parameters, plan, most_bytes, watch: &|_| {} }.compute(
                    &program,
                    self.noise(&point),
                    |_, time| {
                        if at < self.plan.finish {
                            finish.push(time);
                        }
                    },
                );
                let ended = match of_one_point(run)? {
                    Ok(None) => return Ok(None),
                    Ok(Some(run)) => Ok(Completed { makespan: run.outcome.makespan, finish }),
                    Err(error) => Err(error),
                };
                (self.note)();
                Ok(Some(ended))
            },
        )
    }
}

/// Sizes of the memory lent to a run.
struct Lent<'n> {
    needs: &'n Requirements,
    nodes: usize,
    messages: usize,
}

fn stopped(error: ImplicitError) -> RunError {
    RunError::Pattern(PatternError::Stopped(error))
}
