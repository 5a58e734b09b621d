//! Simulation of programs that are looked up during the run: binary files, and extrapolated traces.

use std::io;

use loggap_core::goal::Sink as _;
use loggap_core::goal::binary::{EdgeSpan, LookupMemory};
use loggap_core::sim::streamed::{Builder, Memory, Requirements, Streamed};
use loggap_core::sim::{BuildError, Schedule, Settings, SimError, Survey};

use super::{Hints, Limit, LoadError, Needs, OwnedMemory, RunError};
use crate::schedule::{Form, NumberedLookup, ScheduleFile};
use crate::sys::pages::Pages;
use crate::trace::extrapolate::{ExtrapolatedLookup, Extrapolation, UnderWay};

/// A schedule whose operations are looked up.
pub type StreamedSchedule<'m> = Schedule<'m, Streamed<'m, NumberedLookup<'m>>>;

/// Owner of the parts of [`Memory`] and [`LookupMemory`].
#[derive(Debug)]
pub(super) struct Owned {
    simulation: OwnedMemory,
    buckets: Pages<u32>,
    released: Pages<u64>,
    spans: Pages<EdgeSpan>,
    first_spans: Pages<u32>,
}

impl Owned {
    /// Parts for a simulation, with room for `spans` of a file.
    pub(super) fn new(requirements: &Requirements, spans: u64) -> io::Result<Self> {
        let spans = usize::try_from(spans).map_err(|_| io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            simulation: OwnedMemory::new(&requirements.simulation)?,
            buckets: Pages::zeroed(requirements.buckets)?,
            released: Pages::zeroed(requirements.released)?,
            spans: Pages::zeroed(spans)?,
            first_spans: Pages::zeroed(requirements.simulation.firsts)?,
        })
    }

    pub(super) fn lend(&mut self) -> (Memory<'_>, LookupMemory<'_>) {
        let Self { simulation, buckets, released, spans, first_spans } = self;
        let memory = Memory { simulation: simulation.lend(), buckets, released };
        (memory, LookupMemory { spans, firsts: first_spans })
    }
}

/// Memory of the program besides the simulation, bytes.
struct Besides {
    /// During the run.
    lookups: u64,
    /// Before it.
    reading: u64,
    tags: u64,
}

impl Besides {
    fn of(file: &ScheduleFile) -> Self {
        let extent = file.extent();
        let lookups = file
            .lookup_spans()
            .saturating_mul(size_of::<EdgeSpan>() as u64)
            .saturating_add(u64::from(extent.ranks) * size_of::<u32>() as u64);
        // Reading LogGOPSim's format needs memory too, but before the simulation.
        let reading = if file.form() == Form::Reference { 4 * extent.ops_most as u64 } else { 0 };
        Self { lookups, reading, tags: file.tags().bytes() }
    }
}

/// Requirements for a simulation within the limit, with as many records as fit; their pages are
/// touched only when used.
fn requirements(
    besides: &Besides,
    survey: &Survey,
    settings: Settings,
    limit: &Limit<'_>,
) -> Result<(Requirements, Needs), LoadError> {
    let bytes = |records| Requirements::of(survey, settings, records).map(|needs| needs.bytes());
    let each = bytes(2)?.saturating_sub(bytes(1)?).max(1);
    let fixed = bytes(0)?.saturating_add(besides.lookups).max(besides.reading);
    let needs = Needs { each, ..Needs::of(survey, fixed) };
    let least = Needs { bytes: fixed.saturating_add(each), ..needs };
    let least = least.with_tags(besides.tags);
    let taken = least.within(limit)?.bytes.saturating_add((limit.besides)(&needs));
    let records = 1 + limit.bytes.saturating_sub(taken) / each;
    Ok((Requirements::of(survey, settings, records)?, needs))
}

/// Checks all of `file`, prepares it for reading during the run, lends it to `run` and returns the
/// result of that.
///
/// # Errors
///
/// [`LoadError`] if preparing failed or `run` had not enough memory; errors of `run`.
pub fn stream<T>(
    file: &ScheduleFile,
    settings: Settings,
    limit: &Limit<'_>,
    run: impl FnOnce(StreamedSchedule<'_>, &Needs) -> Result<T, RunError>,
) -> Result<T, RunError> {
    if file.form() == Form::Text {
        return Err(RunError::Load(LoadError::Text { name: file.name().to_owned() }));
    }
    let refused = |error: LoadError| RunError::Load(error);
    let mut survey = Survey::default();
    file.feed_numbered(&mut survey).map_err(|error| refused(error.into()))?;
    let (requirements, needs) =
        requirements(&Besides::of(file), &survey, settings, limit).map_err(refused)?;
    let owned = Owned::new(&requirements, file.lookup_spans());
    let mut owned = owned.map_err(|error| refused(LoadError::Pages(error)))?;
    let (memory, lookup) = owned.lend();
    let built = |error: BuildError| refused(error.into());
    let mut builder = Builder::new(memory, requirements).map_err(built)?;
    file.feed_numbered(&mut Hints::noting(limit.hints, &mut builder))
        .map_err(|error| refused(error.into()))?;
    let tags = file.tags();
    let lookup = file.lookup(lookup, &tags).map_err(|error| refused(LoadError::Input(error)))?;
    let schedule = builder.finish(lookup).map_err(built)?;
    file.advise_lookups();
    let ran = run(schedule, &needs);
    file.unchanged().map_err(|error| refused(LoadError::Input(error)))?;
    told(ran, limit)
}

/// As [`stream`], for an extrapolated trace.
///
/// # Errors
///
/// As [`stream`].
pub fn stream_extrapolated<T>(
    program: &Extrapolation,
    settings: Settings,
    limit: &Limit<'_>,
    run: impl FnOnce(StreamedSchedule<'_>, &Needs) -> Result<T, RunError>,
) -> Result<T, RunError> {
    let refused = |error: LoadError| RunError::Load(error);
    let least = program.bytes();
    if least > limit.bytes {
        return Err(refused(LoadError::Memory { needed: least, allowed: limit.bytes }));
    }
    let no_memory = |error| refused(LoadError::Pages(error));
    let counts = program.counts().map_err(no_memory)?;
    let survey = match &counts {
        Some(counts) => {
            let ops = |counts: &[u32; 3]| counts.iter().map(|count| u64::from(*count)).sum::<u64>();
            let all = counts.iter().map(ops).sum();
            let most = counts.iter().map(ops).max().unwrap_or(0);
            // Dependencies are looked up.
            Survey::bound(program.ranks(), [all, most], [0, 0])
        }
        None => {
            let mut survey = Survey::default();
            program.feed_numbered(&mut survey).map_err(|error| refused(error.into()))?;
            survey
        }
    };
    let besides = Besides { lookups: program.bytes(), reading: 0, tags: program.tags().bytes() };
    let (requirements, needs) =
        requirements(&besides, &survey, settings, limit).map_err(refused)?;
    let mut owned = Owned::new(&requirements, 0).map_err(no_memory)?;
    let (memory, _) = owned.lend();
    let built = |error: BuildError| refused(error.into());
    let mut builder = Builder::new(memory, requirements).map_err(built)?;
    match counts {
        Some(counts) => {
            builder.ranks(program.ranks()).map_err(built)?;
            for (rank, counts) in (0..).zip(counts) {
                builder.counted_rank(rank, counts).map_err(built)?;
            }
        }
        None => program.feed_numbered(&mut builder).map_err(|error| refused(error.into()))?,
    }
    if limit.hints.is_some() && survey.ops() <= Hints::MOST_OPS {
        program
            .feed_numbered(&mut Hints::noting(limit.hints, &mut Survey::default()))
            .map_err(|error| refused(error.into()))?;
    }
    let under_way = UnderWay::new(program, 0..program.ranks()).map_err(no_memory)?;
    let lookup = NumberedLookup::Extrapolated(ExtrapolatedLookup::new(program, &under_way));
    let schedule = builder.finish(lookup).map_err(built)?;
    told(run(schedule, &needs), limit)
}

/// Result of a run, with the limit if memory was insufficient.
fn told<T>(ran: Result<T, RunError>, limit: &Limit<'_>) -> Result<T, RunError> {
    match ran {
        Err(RunError::Stopped(SimError::RecordsFull { records })) => {
            Err(RunError::Load(LoadError::UnderWay { records, allowed: limit.bytes }))
        }
        other => other,
    }
}
