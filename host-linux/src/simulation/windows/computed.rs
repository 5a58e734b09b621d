//! Runs of computed patterns in partitions on several threads.

use std::sync::{Mutex, PoisonError};

use loggap_core::sim::implicit::{
    ImplicitError, Mail, Message, Node, Outbox, Program, RankRange, Requirements, Simulation,
};
use loggap_core::sim::{Noise, Parameters};
use loggap_core::units::Picos;

use super::memory::{MailRoom, Mails};
use super::parts::{InWindows, Ran, WindowLimits, run_parts};
use super::{Resources, partition_shift};
use crate::simulation::Progress;
use crate::simulation::implicit::{Computed, Means, PatternError, PatternMemory, steps_of};

/// Limit on the nodes of a partition, as a multiple of the estimate.
const NODES: usize = 16;

/// Number of windows with almost no events after which a run continues on one thread.
const SPARSE: u64 = 1 << 14;

/// Number of simultaneously busy ranks below which further threads do not help.
const LEAST_BUSY: u32 = 1 << 9;

/// A partition of the ranks of a program.
struct ComputedPart<'m, 'p, P: Program, N> {
    simulation: Simulation<'m, 'p, P, N>,
    stopped: Option<ImplicitError>,
}

impl<'m, P, N> InWindows<'m> for ComputedPart<'m, '_, P, N>
where
    P: Program<State: Send> + Sync,
    N: Noise + Send,
{
    type Message = Message;

    fn next(&self) -> Option<u64> {
        self.simulation.next_window()
    }

    fn run(
        &mut self,
        window: u64,
        _free_steps: u64,
        inbox: &Mail<'m>,
        outbox: &mut Outbox<'m>,
    ) -> Ran {
        let before = self.simulation.progress();
        self.stopped = self.simulation.run_window(window, inbox, outbox).err();
        let events = self.simulation.progress() - before;
        Ran { events, steps: 0, aborts: self.stopped.is_some() }
    }
}

/// Division of the ranks into partitions, and its memory.
struct Division {
    shift: u32,
    /// Requirements of one partition.
    needs: Requirements,
    parts: usize,
    /// Nodes of a partition.
    nodes: usize,
    /// Memory for messages to other partitions in a window: at most the messages that can wait in
    /// the whole program, each in two places if its times are
    /// far.
    mail: MailRoom,
}

impl Division {
    /// `None` if a single thread is as fast, or if memory is insufficient.
    fn of<P: Program>(program: &P, means: &Means<'_>) -> Option<Self> {
        let ranks = program.ranks();
        let enough = program.messages() >= means.least_messages && program.busy() >= LEAST_BUSY;
        if means.threads < 2 || !enough {
            return None;
        }
        let shift = partition_shift(ranks, means.threads);
        let needs = Requirements::of_ranks(program, 1 << shift);
        let parts = (ranks as usize).div_ceil(1 << shift);
        let messages = u32::try_from(needs.nodes_most.saturating_mul(2)).unwrap_or(u32::MAX);
        let mail = MailRoom { messages, bytes: 0 };
        let division = Self { shift, needs, parts, nodes: 0, mail };
        let half = means.most_bytes.checked_sub(division.fixed_bytes())? / 2;
        // Unused memory costs only address space.
        let most = half / (parts * size_of::<Node>()) as u64;
        let usual = needs.nodes_most.min(needs.nodes.saturating_mul(NODES));
        let nodes = usual.min(usize::try_from(most).unwrap_or(usize::MAX));
        (nodes >= needs.nodes).then_some(Self {
            nodes,
            mail: MailRoom { messages, bytes: half },
            ..division
        })
    }

    /// Memory independent of the number of nodes, bytes.
    const fn fixed_bytes(&self) -> u64 {
        self.needs.bytes_with(0).saturating_mul(self.parts as u64)
    }
}

/// Runs `program` in partitions on several threads, and calls `each` with every rank and its
/// finishing time. `None` if a single thread is as fast, or if memory is insufficient.
///
/// # Errors
///
/// [`PatternError`].
pub(in crate::simulation) fn run_in_parts<P, N>(
    program: &P,
    parameters: Parameters<'_>,
    noise: N,
    means: &Means<'_>,
    mut each: impl FnMut(u32, Picos),
) -> Result<Option<Computed>, PatternError>
where
    P: Program<State: Send> + Sync,
    N: Noise + Copy + Send,
{
    let Some(division) = Division::of(program, means) else { return Ok(None) };
    let Division { shift, needs, parts, nodes, .. } = division;
    let Ok(mut memory) = PatternMemory::new(needs, parts, nodes) else { return Ok(None) };
    let Ok(mails) = Mails::new(means.threads.min(parts), parts, division.mail) else {
        return Ok(None);
    };
    let parts = memory.lend().zip(0..).map(|(memory, index)| {
        let ranks = RankRange { index, shift };
        let simulation = Simulation::part(program, parameters, noise, memory, ranks)?;
        Ok(Mutex::new(ComputedPart { simulation, stopped: None }))
    });
    let parts = parts.collect::<Result<Vec<_>, ImplicitError>>()?;
    let of = steps_of(program);
    let mut watch = |done| (means.watch)(Progress { done, of });
    let ran = run_parts(
        &parts,
        &mails,
        WindowLimits { small: Resources::SMALL, sparse: SPARSE },
        &mut watch,
    );
    let parts: Vec<_> = (parts.into_iter())
        .map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect();
    let threads = match (parts.iter().find_map(|part| part.stopped), ran) {
        (Some(ImplicitError::Nodes { .. } | ImplicitError::Mail), _) => return Ok(None),
        (Some(error), _) => return Err(error.into()),
        (None, None) => return Ok(None),
        (None, Some(threads)) => threads,
    };
    let simulations = || parts.iter().map(|part| &part.simulation);
    let outcome = Simulation::outcome_of(simulations())?;
    let mut memory_bytes = division.fixed_bytes().saturating_add(mails.bytes());
    for simulation in simulations() {
        memory_bytes += u64::from(simulation.nodes_used()) * size_of::<Node>() as u64;
        simulation.finishes().for_each(|(rank, time)| each(rank, time));
    }
    Ok(Some(Computed { outcome, memory_bytes, threads, parts: division.parts, network: None }))
}
