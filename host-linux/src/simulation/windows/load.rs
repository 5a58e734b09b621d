//! Loads schedules for runs in windows.

use loggap_core::sim::windows::{Builder, Requirements, Schedule, Unsuitable};
use loggap_core::sim::{BuildError, Parameters, Settings, Survey};

use super::WindowMemory;
use crate::simulation::{Limit, LoadError, Needs, Source};

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

/// Division of the ranks into partitions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Split {
    /// Suitable for this number of threads.
    Threads(usize),
    /// A single partition, so that observers see causes before effects.
    Whole,
}

impl Split {
    /// log₂ of the number of ranks in a partition.
    fn shift(self, ranks: u32) -> u32 {
        match self {
            Self::Threads(threads) => partition_shift(ranks, threads),
            Self::Whole => u32::BITS - ranks.leading_zeros(),
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
    let prepare = |survey: &Survey| Loader::new(survey, parameters, settings, limit, split);
    let guess = source.guess().map(|survey| prepare(&survey));
    let loader = match guess {
        Some(Ok(Ok(loader))) => loader,
        // The estimate may have been too high.
        Some(Ok(Err(_)) | Err(_)) | None => {
            let mut survey = Survey::default();
            source.feed(&mut survey)?;
            match prepare(&survey)? {
                Ok(loader) => loader,
                Err(why) => return Ok(Err(why)),
            }
        }
    };
    let mut memory = WindowMemory::new(&loader.requirements).map_err(LoadError::Pages)?;
    let mut builder = Builder::new(memory.lend(), loader.requirements, parameters)?;
    let schedule = match source.feed(&mut builder) {
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
        split: Split,
    ) -> Result<Result<Self, Unsuitable>, LoadError> {
        // A typical number: one message from each rank in a window.
        const EACH_RANK: u64 = 64;
        let shift = split.shift(survey.ranks());
        let requirements = match Requirements::of(survey, &parameters, settings, shift) {
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
