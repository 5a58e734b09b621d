//! The three simulations on owned memory, with results in one form.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "test support: a wrong assumption should end the test"
)]

use std::sync::atomic::AtomicU32;

use loggap_core::goal::OpKind;
use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::sim::implicit::{
    self, ImplicitError, Node, PatternProgram, RankRange, RankState, Simulation,
};
use loggap_core::sim::mail::{Block, CHUNK, ChunkList, Chunks};
use loggap_core::sim::network::Network;
use loggap_core::sim::windows::{self, Away, Mail, Message, Outbox, Partition, Unsuitable};
use loggap_core::sim::{
    BuildError, Builder, Engine, Memory, Noise, Observer, Parameters, Rendezvous, Schedule,
    Settings, Silent, SimError, Survey, Unfinished,
};
use loggap_core::units::Picos;
use loggap_core::{with_memory_parts, with_program, with_window_memory_parts};

use crate::program::Program;

/// What a run gave.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// When each rank was done.
    pub finish: Vec<u64>,
    /// Events.
    pub events: u64,
    /// What never came to its end, as text, in one order.
    pub unfinished: Vec<String>,
}

impl Outcome {
    fn note(&mut self, left: Unfinished) {
        self.unfinished.push(format!("{left:?}"));
        self.unfinished.sort_unstable();
    }
}

/// Memory of these needs.
macro_rules! lend {
    ($needs:ident, $($memory:ident)::+; $($(#[$doc:meta])* $part:ident: $element:ty,)*) => {
        $($memory)::+ { $($part: &mut $crate::engines::zeroed::<$element>($needs.$part),)* }
    };
}

pub fn zeroed<T: Default>(count: usize) -> Vec<T> {
    (0..count).map(|_| T::default()).collect()
}

/// How messages cost and how they are received.
pub type Rules<'r> = (Parameters<'r>, Settings);

/// Calls `then` with `program` as a schedule of the engine that goes event by
/// event.
pub fn with_schedule<T>(
    program: &Program,
    settings: Settings,
    then: impl FnOnce(Schedule<'_>) -> T,
) -> T {
    let mut survey = Survey::default();
    program.replay(&mut survey).unwrap();
    let needs = survey.requirements(settings).unwrap();
    let memory = with_memory_parts!(lend needs, Memory;);
    let mut builder = Builder::new(memory, needs).unwrap();
    program.replay(&mut builder).unwrap();
    then(builder.finish().unwrap())
}

/// What the engine that goes event by event makes of `program`.
pub fn run<O: Observer>(
    program: &Program,
    rules: Rules<'_>,
    noise: impl Noise,
    observer: O,
) -> Result<(Outcome, O), SimError> {
    with_schedule(program, rules.1, |schedule| {
        let engine = Engine::with(schedule, rules.0, rules.1, noise, observer);
        let (outcome, engine) = finish(engine, program)?;
        Ok((outcome, engine.into_observer()))
    })
}

/// Runs `engine` to the end.
pub fn finish<'m, 'p, N: Noise, O: Observer, W: Network>(
    mut engine: Engine<'m, 'p, N, O, W>,
    program: &Program,
) -> Result<(Outcome, Engine<'m, 'p, N, O, W>), SimError> {
    let finished = engine.run()?;
    assert_eq!(engine.events(), finished.events);
    let mut outcome = Outcome { events: finished.events, ..Outcome::default() };
    let ranks = program.ranks.len() as u32;
    outcome.finish = (0..ranks).map(|rank| engine.finish(rank).0).collect();
    assert_eq!(outcome.finish.iter().max().copied().unwrap_or_default(), finished.makespan.0);
    engine.unfinished(|left| outcome.note(left));
    Ok((outcome, engine))
}

/// Why there is no outcome of windows.
#[derive(Debug, Eq, PartialEq)]
pub enum Stopped {
    /// The schedule is for the other engine.
    Unsuitable(Unsuitable),
    /// The run stopped.
    Error(SimError),
}

/// What a run in windows, with 2^`shift` ranks a partition, makes of it.
/// Messages of which `mail` says that there is no room wait in the schedule.
pub fn run_in_windows(
    program: &Program,
    rules: Rules<'_>,
    noise: impl Noise + Clone,
    cut: (u32, u32),
) -> Result<Outcome, Stopped> {
    Ok(observe_in_windows(program, rules, noise, cut, |_| Silent)?.0)
}

/// The same, and the observers that `observe` made for the ranks from a first one
/// on.
pub fn observe_in_windows<O: Observer>(
    program: &Program,
    (parameters, settings): Rules<'_>,
    noise: impl Noise + Clone,
    (shift, mail): (u32, u32),
    observe: impl FnMut(u32) -> O,
) -> Result<(Outcome, Vec<O>), Stopped> {
    let mut survey = Survey::default();
    program.replay(&mut survey).unwrap();
    let needs =
        windows::Requirements::of(&survey, &parameters, settings, (shift, Block::ALL), Away::FEW)
            .map_err(Stopped::Unsuitable)?;
    let memory = with_window_memory_parts!(lend needs, windows::Memory;);
    let mut builder = windows::Builder::new(memory, needs, parameters).unwrap();
    match program.replay(&mut builder) {
        Err(BuildError::Unsuitable(why)) => return Err(Stopped::Unsuitable(why)),
        other => other.unwrap(),
    }
    let schedule = builder.finish().unwrap();
    assert!(schedule.bytes() <= needs.bytes());
    // Handshakes are foreseen of all sends; all else is needed, but a list of the builder.
    let foreseen = if settings.rendezvous == Rendezvous::Handshake { 4 } else { 2 };
    assert!(foreseen * schedule.bytes() > needs.bytes(), "{} bytes", schedule.bytes());
    let (sends, whole) = (schedule.sends(), schedule.events());
    let mut partitions: Vec<_> = schedule.observed(noise, observe).collect();
    let count = partitions.len();
    let chunks = (sends / CHUNK + sends.min(count as u32) + 1).min(mail);
    let messages = zeroed::<Message>((chunks * CHUNK) as usize);
    let before = zeroed::<AtomicU32>(chunks as usize);
    let chains = [zeroed::<ChunkList>(count), zeroed::<ChunkList>(count)];
    let mails = chains.each_ref().map(|chains| Mail::new(&messages, &before, chains, count));
    run_windows(&mut partitions, mails, Chunks::new(0, chunks)).map_err(Stopped::Error)?;
    let mut outcome = Outcome::default();
    for partition in &partitions {
        outcome.finish.extend(partition.finish().map(|(_, time)| time.0));
        outcome.events += partition.finished().events;
        partition.unfinished(|left| outcome.note(left));
    }
    if outcome.unfinished.is_empty() {
        assert_eq!(outcome.events, whole);
    }
    let makespan = partitions.iter().map(|partition| partition.finished().makespan.0).max();
    assert_eq!(outcome.finish.iter().max().copied(), makespan);
    Ok((outcome, partitions.into_iter().map(Partition::into_observer).collect()))
}

/// Window after window; the mails take turns.
fn run_windows<N: Noise, O: Observer>(
    partitions: &mut [Partition<'_, N, O>],
    mut mails: [Mail<'_>; 2],
    mut chunks: Chunks,
) -> Result<(), SimError> {
    let mut window = 0;
    loop {
        let [inbox, sending] = mails;
        let mut outbox = Outbox::new(sending, 0, chunks);
        for (index, partition) in (0..).zip(&mut *partitions) {
            if partition.next().is_some_and(|due| due <= window) || inbox.any(index) {
                partition.run(window, &inbox, &mut outbox);
            }
        }
        if partitions.iter().any(Partition::failed)
            && let Some(error) = Partition::error(&*partitions)
        {
            return Err(error);
        }
        mails.reverse();
        let sent = outbox.sent();
        chunks = outbox.into_chunks();
        let due = partitions.iter().filter_map(Partition::next).min();
        window = match due {
            _ if sent > 0 => window + 1,
            Some(due) => due.max(window + 1),
            None => return Ok(()),
        };
    }
}

/// What the simulation that stores no operations makes of a pattern: outcome,
/// and how many ties its rules leave open. `None` where it is not computed.
pub fn run_computed<N: Noise + Copy>(
    (pattern, options): (Pattern, &Options),
    parameters: Parameters<'_>,
    noise: N,
) -> Option<Result<(Outcome, u64), ImplicitError>> {
    let program = PatternProgram::new(pattern, options).ok()??;
    Some(with_program!(&program, program => compute(program, parameters, noise)))
}

fn compute<P: implicit::Program, N: Noise + Copy>(
    program: &P,
    parameters: Parameters<'_>,
    noise: N,
) -> Result<(Outcome, u64), ImplicitError> {
    let needs = implicit::Requirements::of(program);
    // What is foreseen is all that may wait, unless that is thousands.
    assert_eq!(needs.nodes, needs.nodes_most.min(2 * needs.ranks + 4_096));
    let parts = [
        needs.ranks * size_of::<RankState<P::State>>(),
        needs.words * size_of::<u64>(),
        needs.nodes * size_of::<Node>(),
    ];
    assert_eq!(needs.bytes(), parts.iter().sum::<usize>() as u64);
    let memory = implicit::Memory {
        ranks: &mut vec![RankState::default(); needs.ranks],
        words: &mut vec![0; needs.words],
        nodes: &mut vec![Node::default(); needs.nodes_most],
    };
    let whole = Simulation::new(program, parameters, noise, memory).and_then(|mut simulation| {
        let ended = simulation.run()?;
        Ok((ended, simulation.finishes().map(|(_, time)| time.0).collect()))
    });
    for shift in [0, 1, 3] {
        let parts = compute_in_parts(program, parameters, noise, shift);
        // How many ties are open depends on which of several are compared.
        let decided = |(ended, finish): (implicit::ProgramFinished, Vec<u64>)| {
            (implicit::ProgramFinished { open_ties: ended.open_ties.min(1), ..ended }, finish)
        };
        assert_eq!(parts.map(decided), whole.clone().map(decided), "parts of 2^{shift} ranks");
    }
    let (ended, finish): (implicit::ProgramFinished, _) = whole?;
    assert_eq!(ended.messages, program.extent().messages);
    let outcome = Outcome { finish, events: ended.events, ..Outcome::default() };
    Ok((outcome, ended.open_ties))
}

/// The same in parts of 2^`shift` ranks.
fn compute_in_parts<P: implicit::Program, N: Noise + Copy>(
    program: &P,
    parameters: Parameters<'_>,
    noise: N,
    shift: u32,
) -> Result<(implicit::ProgramFinished, Vec<u64>), ImplicitError> {
    let count = ((program.extent().ranks - 1) >> shift) as usize + 1;
    let needs = implicit::Requirements::of_ranks(program, 1 << shift);
    let mut ranks = vec![RankState::default(); count << shift];
    let mut words = vec![0; needs.words * count];
    let mut nodes = vec![Node::default(); needs.nodes_most * count];
    let chunks = needs.nodes_most as u32 / CHUNK + count as u32;
    let messages = zeroed::<implicit::Message>((chunks * CHUNK) as usize);
    let before = zeroed::<AtomicU32>(chunks as usize);
    let chains = [zeroed::<ChunkList>(count), zeroed::<ChunkList>(count)];
    let mut mails =
        chains.each_ref().map(|chains| implicit::Mail::new(&messages, &before, chains, count));
    let memories = (ranks.chunks_mut(1 << shift))
        .zip(words.chunks_mut(needs.words))
        .zip(nodes.chunks_mut(needs.nodes_most))
        .map(|((ranks, words), nodes)| implicit::Memory { ranks, words, nodes });
    let parts = memories.zip(0..).map(|(memory, index)| {
        let part = RankRange { index, shift, block: Block::ALL };
        Simulation::part(program, parameters, noise, memory, part)
    });
    let mut parts = parts.collect::<Result<Vec<_>, _>>()?;
    let mut chunks = Chunks::new(0, chunks);
    let mut window = 0;
    loop {
        let [inbox, sending] = mails;
        let mut outbox = implicit::Outbox::new(sending, 0, chunks);
        // The last part goes first: they are independent of each other.
        let mut stopped = None;
        for (index, part) in (0..count as u32).zip(&mut parts).rev() {
            if part.next_window().is_some_and(|due| due <= window) || inbox.any(index) {
                stopped = part.run_window(window, &inbox, &mut outbox).err().or(stopped);
            }
        }
        if let Some(error) = stopped {
            return Err(error);
        }
        mails.reverse();
        let sent = outbox.sent();
        chunks = outbox.into_chunks();
        let due = parts.iter().filter_map(Simulation::next_window).min();
        window = match due {
            _ if sent > 0 => window + 1,
            Some(due) => due.max(window + 1),
            None => break,
        };
    }
    let finish = parts.iter().flat_map(Simulation::finishes).map(|(_, time)| time.0);
    Ok((Simulation::outcome_of(&parts).complete()?, finish.collect()))
}

/// Operations of `program` that are sends, and those that are receives.
pub fn messages(program: &Program) -> [usize; 2] {
    let count = |wanted: fn(&OpKind) -> bool| {
        program.ranks.iter().flat_map(|rank| &rank.ops).filter(|op| wanted(&op.kind)).count()
    };
    [
        count(|kind| matches!(kind, OpKind::Send { .. })),
        count(|kind| matches!(kind, OpKind::Receive { .. })),
    ]
}

/// Every third microsecond costs another 500 ns, from a phase of its own.
#[derive(Clone, Copy, Debug)]
pub struct Detours(pub u64);

impl Noise for Detours {
    fn lost(&self, rank: u32, start: Picos, length: Picos) -> Picos {
        let Self(period) = *self;
        let phase = u64::from(rank) * (period / 30 * 7);
        let before = |time: u64| (time + phase) / period * (period / 6);
        Picos(before(start.0 + length.0) - before(start.0))
    }
}
