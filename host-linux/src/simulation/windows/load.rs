//! Loads schedules for runs in windows.

use std::ops::Range;
use std::sync::Mutex;

use loggap_core::goal::{Edge, Op, Sink};
use loggap_core::sim::mail::Block;
use loggap_core::sim::windows::{Builder, BuiltPart, Requirements, Schedule, Unsuitable};
use loggap_core::sim::{BuildError, Parameters, Settings, Survey};

use super::WindowMemory;
use super::parts::lock;
use crate::schedule::Extent;
use crate::simulation::{Hints, Limit, LoadError, Needs, Processes, Source, agreed, side_by_side};

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
pub enum Split<'p> {
    /// Suitable for this number of threads.
    Threads(usize),
    /// A single partition, so that observers see causes before effects.
    Whole,
    /// Suitable for this number of threads on each of several processes.
    Processes(usize, &'p dyn Processes),
}

impl Split<'_> {
    /// log₂ of the number of ranks in a partition, and the partitions of this process.
    fn of(self, ranks: u32) -> (u32, Block) {
        match self {
            Self::Threads(threads) => (partition_shift(ranks, threads), Block::ALL),
            Self::Whole => (u32::BITS - ranks.leading_zeros(), Block::ALL),
            Self::Processes(threads, processes) => blocks(ranks, threads, processes),
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
    split: Split<'_>,
    run: impl FnOnce(Schedule<'_>, &Needs, u64) -> T,
) -> Result<Result<T, Unsuitable>, LoadError> {
    let prepare = |survey: &Survey| Loader::new(survey, parameters, settings, limit, split);
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
    let parts = loader.build_parts(source, parameters, limit, split, &mut memory);
    let mut builder = Builder::new(memory.lend(), loader.requirements, parameters)?;
    let schedule = if let Some(parts) = parts {
        builder.join(parts)?
    } else {
        match source.feed(&mut builder, limit.hints) {
            Err(
                LoadError::Schedule { error: BuildError::Unsuitable(why), .. }
                | LoadError::Build(BuildError::Unsuitable(why)),
            ) => return Ok(Err(why)),
            fed => fed.and_then(|()| Ok(builder.finish()?))?,
        }
    };
    let tags = source.tag_bytes();
    loader.needs.with_tags(tags).within(limit)?;
    Ok(Ok(run(schedule, &loader.needs, loader.mail_bytes.saturating_sub(tags))))
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
    (threads, processes): (usize, &dyn Processes),
    run: impl FnOnce(Schedule<'_>, &Needs, u64) -> T,
) -> Result<T, LoadError> {
    let split = Split::Processes(threads, processes);
    let (shift, block) = split.of(source.ranks());
    let own = || block.ranks(shift, source.ranks());
    let prepare = || -> Result<_, LoadError> {
        let mut survey = Survey::default();
        source.feed(&mut OwnRanks::new(&mut survey, own()), None)?;
        let loader = Loader::new(&survey, parameters, settings, limit, split)?;
        let loader = loader.map_err(|why| LoadError::OneProcess(why.to_string()))?;
        let memory = WindowMemory::new(&loader.requirements).map_err(LoadError::Pages)?;
        Ok((loader, memory))
    };
    let (loader, mut memory) = agreed(processes, prepare())?;
    let lent = memory.lend();
    let build = || -> Result<_, LoadError> {
        let mut builder = Builder::new(lent, loader.requirements, parameters)?;
        source.feed(&mut OwnRanks::new(&mut builder, own()), limit.hints)?;
        loader.needs.with_tags(source.tag_bytes()).within(limit)?;
        Ok(builder.finish()?)
    };
    let built = build().map_err(|error| match error {
        LoadError::Schedule { error: BuildError::Unsuitable(why), .. }
        | LoadError::Build(BuildError::Unsuitable(why)) => LoadError::OneProcess(why.to_string()),
        error => error,
    });
    let schedule = agreed(processes, built)?;
    Ok(run(schedule, &loader.needs, loader.mail_bytes.saturating_sub(source.tag_bytes())))
}

/// Passes on the operations of some ranks.
struct OwnRanks<'s, S> {
    sink: &'s mut S,
    own: Range<u32>,
    /// True if the open rank is one of them; otherwise the number of its operations counts.
    is_own: bool,
    ops: u32,
}

impl<'s, S> OwnRanks<'s, S> {
    const fn new(sink: &'s mut S, own: Range<u32>) -> Self {
        Self { sink, own, is_own: false, ops: 0 }
    }
}

impl<S: Sink> Sink for OwnRanks<'_, S> {
    type Error = S::Error;

    fn ranks(&mut self, ranks: u32) -> Result<(), S::Error> {
        self.sink.ranks(ranks)
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), S::Error> {
        (self.is_own, self.ops) = (self.own.contains(&rank), 0);
        if self.is_own { self.sink.begin_rank(rank) } else { Ok(()) }
    }

    fn op(&mut self, op: Op) -> Result<u32, S::Error> {
        if self.is_own {
            return self.sink.op(op);
        }
        self.ops += 1;
        Ok(self.ops - 1)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), S::Error> {
        if self.is_own { self.sink.edge(edge) } else { Ok(()) }
    }

    fn end_rank(&mut self) -> Result<(), S::Error> {
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
        split: Split<'_>,
    ) -> Result<Result<Self, Unsuitable>, LoadError> {
        // A typical number: one message from each rank in a window.
        const EACH_RANK: u64 = 64;
        let (shift, block) = split.of(survey.ranks());
        let requirements = Requirements::of_block(survey, &parameters, settings, shift, block);
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

    /// Builds the parts of a text on several threads. `None` if it has to be read as a whole: as one
    /// of its parts is refused, or to note hints.
    fn build_parts(
        &self,
        source: &Source,
        parameters: Parameters<'_>,
        limit: &Limit<'_>,
        split: Split<'_>,
        memory: &mut WindowMemory,
    ) -> Option<Vec<BuiltPart>> {
        let (Source::File(file), Split::Threads(threads)) = (source, split) else { return None };
        let parts = file.parts();
        if parts.is_empty() || limit.hints.is_some() && self.needs.ops <= Hints::MOST_OPS {
            return None;
        }
        let mut whole = Builder::new(memory.lend(), self.requirements, parameters).ok()?;
        let builders = parts.iter().map(|part| {
            let Extent { ops, edges, edges_most, .. } = Extent::from(part);
            let ranks = u32::try_from(part.own_ranks().len()).ok()?;
            Some(Mutex::new(Some(whole.split_off(ranks, [ops, edges, edges_most])?)))
        });
        let builders = builders.collect::<Option<Vec<_>>>()?;
        let points: Vec<usize> = (0..parts.len()).collect();
        let build = |at: usize| {
            let (part, builder) = parts.get(at).zip(builders.get(at))?;
            let mut builder = lock(builder).take()?;
            file.feed_part(part, &mut builder)?;
            builder.end().ok()
        };
        let built = side_by_side(threads, &points, || Ok(()), |(), at| build(at).ok_or(())).ok()?;
        file.unchanged().ok().map(|()| built)
    }
}
