//! Runs of computed patterns in partitions on several threads.

use loggap_core::sim::Noise;
use loggap_core::sim::implicit::{
    Extent, ImplicitError, Mail, Message, Node, Outbox, Program, ProgramFinished, RankRange,
    Requirements, Simulation, check,
};
use loggap_core::sim::mail::Block;
use loggap_core::units::Picos;

use super::Resources;
use super::load::blocks;
use super::memory::{MailRoom, Mails, chains};
use super::parts::{Border, InWindows, Ran, Reached, WindowLimits, run_parts};
use crate::simulation::implicit::{PatternMemory, steps_of};
use crate::simulation::{Computed, Job, Processes, RunError, Watch, agreed};
use crate::sys::pages::Integers;

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

/// Division of the ranks into partitions, those of this process, and their memory.
struct Division {
    shift: u32,
    /// Requirements of one partition.
    needs: Requirements,
    /// Partitions of all processes, of each process, and of this one.
    all: u32,
    block: Block,
    parts: usize,
    threads: usize,
    /// Nodes of a partition.
    nodes: usize,
    /// Memory for messages to other partitions in a window: at most the messages that can wait in
    /// the whole program, each in two places if its times are
    /// far.
    mail: MailRoom,
}

impl Division {
    /// `None` if a single thread of a single process is as fast, or if memory is insufficient.
    fn of<P: Program>(program: &P, job: &Job<'_>, nodes: usize) -> Option<Self> {
        let Extent { ranks, messages, busy, .. } = program.extent();
        let processes = job.processes;
        let enough = messages >= job.least_messages && busy >= LEAST_BUSY;
        let threads = if enough { job.threads } else { 1 };
        if threads < 2 && processes.count() < 2 {
            return None;
        }
        let (shift, block) = blocks(ranks, threads, processes);
        let needs = Requirements::of_ranks(program, 1 << shift);
        let all = ranks.div_ceil(1 << shift);
        let parts = all.saturating_sub(block.first).min(block.each) as usize;
        let messages = u32::try_from(needs.nodes_most.saturating_mul(2)).unwrap_or(u32::MAX);
        let mail = MailRoom { messages, bytes: 0 };
        let division = Self { shift, needs, all, block, parts, threads, nodes: 0, mail };
        let half = job.most_bytes.checked_sub(division.fixed_bytes())? / 2;
        // Unused memory costs only address space.
        let each = u64::from(all.min(block.each));
        let most = half / (each * size_of::<Node>() as u64);
        let usual = needs.nodes_most.min(needs.nodes.saturating_mul(nodes));
        let nodes = usual.min(usize::try_from(most).unwrap_or(usize::MAX));
        (nodes >= needs.nodes).then_some(Self {
            nodes,
            mail: MailRoom { messages, bytes: half },
            ..division
        })
    }

    /// Memory of a process that is independent of the number of nodes, bytes: the same for all.
    fn fixed_bytes(&self) -> u64 {
        self.needs.bytes_with(0).saturating_mul(self.all.min(self.block.each).into())
    }
}

/// Runs `program` in partitions on several threads or processes. The outcome is that of all
/// processes. `None` if a single thread is as fast, or if memory is insufficient.
///
/// # Errors
///
/// [`RunError`].
pub(in crate::simulation) fn run_in_parts<P, N>(
    program: &P,
    job: &Job<'_>,
    noise: N,
    watch: Watch<'_>,
) -> Result<Option<Computed>, RunError>
where
    P: Program<State: Send + Integers> + Sync,
    N: Noise + Copy + Send,
{
    let mut nodes = NODES;
    loop {
        let Some(division) = Division::of(program, job, nodes) else { return Ok(None) };
        if let Some(computed) = division.run(program, job, noise, watch)? {
            return Ok(Some(computed));
        }
        // A single process runs on one thread.
        if job.processes.count() == 1 || division.nodes >= division.needs.nodes_most {
            return Ok(None);
        }
        nodes = nodes.saturating_mul(NODES);
    }
}

impl Division {
    /// As [`run_in_parts`]; `None` if there are too few nodes, or too little room for messages.
    fn run<P, N>(
        &self,
        program: &P,
        job: &Job<'_>,
        noise: N,
        watch: Watch<'_>,
    ) -> Result<Option<Computed>, RunError>
    where
        P: Program<State: Send + Integers> + Sync,
        N: Noise + Copy + Send,
    {
        let &Self { shift, needs, block, parts, nodes, .. } = self;
        let processes = job.processes;
        // Also where there are no parts: all processes go on, or none.
        check(program, &job.parameters)?;
        let senders = self.threads.clamp(1, parts.max(1));
        let memory = PatternMemory::new(needs, parts, nodes);
        let chains = chains(parts, block, processes);
        let mails = Mails::new(senders, chains, self.mail);
        let [mut fits] = [u64::from(memory.is_ok() && mails.is_ok())];
        fits = processes.all(&[fits]).into_iter().min().unwrap_or(fits);
        let (Ok(mut memory), Ok(mails), 1) = (memory, mails, fits) else { return Ok(None) };
        let parts = memory.lend().zip(block.first..).map(|(memory, index)| {
            let ranks = RankRange { index, shift, block };
            let simulation = Simulation::part(program, job.parameters, noise, memory, ranks)?;
            Ok(ComputedPart { simulation, stopped: None })
        });
        let parts = parts.collect::<Result<Vec<_>, RunError>>();
        let parts = agreed(processes, parts)?;
        let of = steps_of(program);
        let width = job.parameters.lookahead();
        let mut watch = |reached: Reached| watch(reached.progress(of, width));
        let mut border = Border::new(processes, block, shift);
        let windows = WindowLimits { small: Resources::SMALL, sparse: SPARSE };
        let (parts, ran) = run_parts(parts, &mails, windows, &mut border, &mut watch);
        let stopped = match parts.iter().find_map(|part| part.stopped) {
            None | Some(ImplicitError::Nodes { .. } | ImplicitError::Mail) => Ok(()),
            Some(error) => Err(RunError::from(error)),
        };
        agreed(processes, stopped)?;
        let Some(threads) = ran else { return Ok(None) };
        let (simulations, ranks) =
            (|| parts.iter().map(|part| &part.simulation), parts.len() << shift);
        let own = Simulation::outcome_of(simulations());
        let mut memory_bytes = self.fixed_bytes().saturating_add(mails.bytes());
        for simulation in simulations() {
            memory_bytes += u64::from(simulation.nodes_used()) * size_of::<Node>() as u64;
        }
        let finish = job.finish_of(ranks, simulations().flat_map(Simulation::finishes));
        let own = Computed {
            outcome: own,
            memory_bytes,
            crossing: border.received,
            ..Computed::default()
        };
        let together = together(processes, &own);
        let outcome = together.outcome.complete()?;
        let parts = self.all as usize;
        Ok(Some(Computed { outcome, threads, parts, finish, ..together }))
    }
}

/// Outcome, memory and messages between processes, of all processes.
fn together(processes: &dyn Processes, own: &Computed) -> Computed {
    let ProgramFinished { makespan, last_rank, events, messages, matched, receives, open_ties } =
        own.outcome;
    let numbers = [
        own.memory_bytes,
        own.crossing,
        makespan.0,
        last_rank.into(),
        events,
        messages,
        matched,
        receives,
        open_ties,
    ];
    let mut all = Computed::default();
    for &[memory, crossing, makespan, rank, events, messages, matched, receives, open_ties] in
        processes.all(&numbers).as_chunks().0
    {
        all.memory_bytes += memory;
        all.crossing += crossing;
        all.outcome.add(&ProgramFinished {
            makespan: Picos(makespan),
            last_rank: u32::try_from(rank).unwrap_or(u32::MAX),
            events,
            messages,
            matched,
            receives,
            open_ties,
        });
    }
    all
}
