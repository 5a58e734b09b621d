//! Loads schedules for runs in windows.

use std::ops::Range;

use loggap_core::goal::{ANY, Edge, Op, OpKind, Sink};
use loggap_core::sim::mail::Block;
use loggap_core::sim::windows::{Away, Builder, Requirements, Schedule, Unsuitable};
use loggap_core::sim::{BuildError, Parameters, Settings, Survey};

use super::WindowMemory;
use crate::simulation::{Limit, LoadError, Needs, Parts, Processes, Source, agreed};

/// log₂ of the largest number of ranks in a partition: their states fit into a second-level cache.
const MOST_SHIFT: u32 = 13;
/// log₂ of the smallest number of ranks in a partition, so that messages outnumber partitions.
const LEAST_SHIFT: u32 = 4;
/// Partitions for each thread, so that the load is balanced.
const EACH: u32 = 8;

/// log₂ of the number of ranks in a partition, for a run on `threads` threads.
#[must_use]
pub fn partition_shift(ranks: u32, threads: usize) -> u32 {
    if threads < 2 {
        return MOST_SHIFT;
    }
    let parts = u32::try_from(threads).unwrap_or(u32::MAX).saturating_mul(EACH);
    (ranks / parts).max(1).ilog2().clamp(LEAST_SHIFT, MOST_SHIFT)
}

/// log₂ of the number of ranks in a partition, and the partitions of this process, for a run on
/// several processes with `threads` threads each.
pub(super) fn blocks(ranks: u32, threads: usize, processes: &dyn Processes) -> (u32, Block) {
    let count = processes.count();
    if count < 2 {
        return (partition_shift(ranks, threads), Block::ALL);
    }
    // Every process gets some.
    let most = (ranks / count).max(1).ilog2();
    let shift = partition_shift(ranks, threads.saturating_mul(count as usize)).min(most);
    let each = ranks.div_ceil(1 << shift).div_ceil(count).max(1);
    (shift, Block { first: processes.index() * each, each })
}

/// Division of the ranks into partitions.
#[derive(Clone, Copy, Debug)]
pub enum Split {
    /// Suitable for this number of threads.
    Threads(usize),
    /// A single partition, so that observers see causes before effects.
    Whole,
    /// log₂ of the number of ranks in a partition, and the partitions of this process.
    Given(u32, Block),
}

impl Split {
    /// log₂ of the number of ranks in a partition, and the partitions of this process.
    fn of(self, ranks: u32) -> (u32, Block) {
        match self {
            Self::Threads(threads) => (partition_shift(ranks, threads), Block::ALL),
            Self::Whole => (u32::BITS - ranks.leading_zeros(), Block::ALL),
            Self::Given(shift, block) => (shift, block),
        }
    }
}

/// Loads `source`, and lends the schedule to `run` with its needs and the memory limit for its
/// messages in bytes; returns the result of that, or the reason why the schedule cannot run in
/// windows.
///
/// # Errors
///
/// [`LoadError`]; `run` was not called in this case.
pub fn load<T>(
    source: &Source,
    parameters: Parameters<'_>,
    settings: Settings,
    limit: &Limit<'_>,
    split: Split,
    run: impl FnOnce(Schedule<'_>, &Needs, u64) -> T,
) -> Result<Result<T, Unsuitable>, LoadError> {
    let prepare =
        |survey: &Survey| Loader::new(survey, parameters, settings, limit, (split, Away::FEW));
    let guess = source.guess().map(|survey| prepare(&survey));
    let loader = match guess {
        Some(Ok(Ok(loader))) => loader,
        // The estimate may have been too high.
        Some(Ok(Err(_)) | Err(_)) | None => {
            let mut survey = Survey::default();
            source.feed(&mut survey, None)?;
            match prepare(&survey)? {
                Ok(loader) => loader,
                Err(why) => return Ok(Err(why)),
            }
        }
    };
    let mut memory = WindowMemory::new(&loader.requirements).map_err(LoadError::Pages)?;
    let mut builder = Builder::new(memory.lend(), loader.requirements, parameters)?;
    let schedule = match source.feed(&mut builder, limit.hints) {
        Err(
            LoadError::Schedule { error: BuildError::Unsuitable(why), .. }
            | LoadError::Build(BuildError::Unsuitable(why)),
        ) => return Ok(Err(why)),
        fed => fed.and_then(|()| Ok(builder.finish()?))?,
    };
    let tags = source.tag_bytes();
    loader.needs.with_tags(tags).within(limit)?;
    Ok(Ok(run(schedule, &loader.needs, loader.mail_bytes.saturating_sub(tags))))
}

/// Division of a schedule among processes.
#[derive(Clone, Copy, Debug)]
pub struct Across<'a> {
    /// Ranks of each process; by default blocks.
    pub parts: Option<&'a Parts>,
    /// Threads of each process.
    pub threads: usize,
    /// Processes that share the ranks.
    pub processes: &'a dyn Processes,
    /// Room for messages of other processes.
    pub away: Away,
}

/// As [`load`], for the ranks of this process; `run` is called if all processes can run the schedule.
///
/// # Errors
///
/// [`LoadError`]; `run` was not called in this case.
pub fn load_across<T>(
    source: &Source,
    parameters: Parameters<'_>,
    settings: Settings,
    limit: &Limit<'_>,
    across: &Across<'_>,
    run: impl FnOnce(Schedule<'_>, &Needs, u64) -> T,
) -> Result<T, LoadError> {
    let &Across { parts, threads, processes, away } = across;
    let ranks = source.ranks();
    let (shift, block) =
        parts.map_or_else(|| blocks(ranks, threads, processes), |parts| parts.divided);
    let split = Split::Given(shift, block);
    let own = parts.map_or_else(|| block.ranks(shift, ranks), |_| block.ranks(shift, u32::MAX));
    let prepare = || -> Result<_, LoadError> {
        let mut survey = Survey::default();
        let mut sink = OwnRanks::new(&mut survey, own.clone(), parts);
        source.feed(&mut sink, None)?;
        sink.fill()?;
        let loader = Loader::new(&survey, parameters, settings, limit, (split, away))?;
        let loader = loader.map_err(one_process)?;
        let memory = WindowMemory::new(&loader.requirements).map_err(LoadError::Pages)?;
        Ok((loader, memory))
    };
    let (loader, mut memory) = agreed(processes, prepare())?;
    let lent = memory.lend();
    let build = || -> Result<_, LoadError> {
        let names = parts.map_or(&[][..], Parts::ranks);
        let mut builder = Builder::new(lent, loader.requirements, parameters)?.named(names);
        let mut sink = OwnRanks::new(&mut builder, own.clone(), parts);
        source.feed(&mut sink, limit.hints)?;
        sink.fill()?;
        loader.needs.with_tags(source.tag_bytes()).within(limit)?;
        Ok(builder.finish()?)
    };
    let built = build().map_err(|error| match error {
        LoadError::Schedule { error: BuildError::Unsuitable(why), .. }
        | LoadError::Build(BuildError::Unsuitable(why)) => one_process(why),
        error => error,
    });
    let schedule = agreed(processes, built)?;
    Ok(run(schedule, &loader.needs, loader.mail_bytes.saturating_sub(source.tag_bytes())))
}

fn one_process(why: Unsuitable) -> LoadError {
    LoadError::OneProcess(match why {
        Unsuitable::Rendezvous { .. } => format!("{why}, unless --rendezvous is handshake"),
        why => why.to_string(),
    })
}

/// Passes on the operations of some ranks, by the numbers of these.
struct OwnRanks<'s, S> {
    sink: &'s mut S,
    own: Range<u32>,
    parts: Option<&'s Parts>,
    /// True if the open rank is one of them; otherwise the number of its operations counts.
    is_own: bool,
    ops: u32,
    /// Number that comes next.
    next: u32,
    /// The open rank.
    rank: u32,
}

impl<'s, S: Sink<Error = BuildError>> OwnRanks<'s, S> {
    const fn new(sink: &'s mut S, own: Range<u32>, parts: Option<&'s Parts>) -> Self {
        let next = own.start;
        Self { sink, own, parts, is_own: false, ops: 0, next, rank: 0 }
    }

    /// Adds empty ranks for the numbers that no rank has.
    fn fill(mut self) -> Result<(), BuildError> {
        let all = if self.parts.is_some() { self.own.end } else { self.next };
        while self.next < all {
            self.sink.begin_rank(self.next)?;
            self.sink.end_rank()?;
            self.next += 1;
        }
        Ok(())
    }

    /// An operation with the number of its peer.
    fn numbered(&self, parts: &Parts, op: Op) -> Result<Op, BuildError> {
        let mut op = op;
        match &mut op.kind {
            OpKind::Send { peer, .. } | OpKind::Receive { peer, .. } if *peer != ANY => {
                let error = BuildError::Peer { rank: self.rank, op: self.ops, peer: *peer };
                *peer = parts.number(*peer).ok_or(error)?;
            }
            _ => {}
        }
        Ok(op)
    }
}

impl<S: Sink<Error = BuildError>> Sink for OwnRanks<'_, S> {
    type Error = BuildError;

    fn ranks(&mut self, ranks: u32) -> Result<(), BuildError> {
        let numbers = |parts: &Parts| u32::try_from(parts.ranks().len()).unwrap_or(u32::MAX);
        self.sink.ranks(self.parts.map_or(ranks, numbers))
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), BuildError> {
        let number = self.parts.map_or(Some(rank), |parts| parts.number(rank));
        (self.rank, self.ops) = (rank, 0);
        self.is_own = number.is_some_and(|number| self.own.contains(&number));
        if !self.is_own {
            return Ok(());
        }
        self.next = number.unwrap_or(rank) + 1;
        self.sink.begin_rank(number.unwrap_or(rank))
    }

    fn op(&mut self, op: Op) -> Result<u32, BuildError> {
        let op = self.parts.map_or(Ok(op), |parts| self.numbered(parts, op))?;
        self.ops += 1;
        if self.is_own { self.sink.op(op) } else { Ok(self.ops - 1) }
    }

    fn edge(&mut self, edge: Edge) -> Result<(), BuildError> {
        if self.is_own { self.sink.edge(edge) } else { Ok(()) }
    }

    fn end_rank(&mut self) -> Result<(), BuildError> {
        if self.is_own { self.sink.end_rank() } else { Ok(()) }
    }
}

/// Requirements and limits, known before a schedule is built.
struct Loader {
    requirements: Requirements,
    needs: Needs,
    mail_bytes: u64,
}

impl Loader {
    fn new(
        survey: &Survey,
        parameters: Parameters<'_>,
        settings: Settings,
        limit: &Limit<'_>,
        (split, away): (Split, Away),
    ) -> Result<Result<Self, Unsuitable>, LoadError> {
        // A typical number: one message from each rank in a window.
        const EACH_RANK: u64 = 64;
        let divided = split.of(survey.ranks());
        let requirements = Requirements::of_block(survey, &parameters, settings, divided, away);
        let requirements = match requirements {
            Ok(requirements) => requirements,
            Err(why) => return Ok(Err(why)),
        };
        let mail = survey.ops().min(u64::from(survey.ranks())).saturating_mul(EACH_RANK);
        let bytes = requirements.bytes();
        let needs = Needs::of(survey, bytes.saturating_add(mail)).within(limit)?;
        let taken = bytes.saturating_add((limit.besides)(&needs));
        Ok(Ok(Self { requirements, needs, mail_bytes: limit.bytes - taken }))
    }
}
