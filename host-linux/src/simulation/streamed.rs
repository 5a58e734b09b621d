//! Simulation of programs that are looked up during the run: binary files, and extrapolated traces.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use loggap_core::goal::binary::{EdgeSpan, LookupMemory};
use loggap_core::goal::{ANY, ANY_TAG, Op, OpKind, Sink};
use loggap_core::sim::streamed::{Builder, Streamed};
use loggap_core::sim::{BuildError, Requirements, Schedule, Settings, SimError, Survey};

use super::{Hints, Limit, LoadError, Needs, OwnedMemory, RunError, Source};
use crate::schedule::{EachOp, Form, NumberedLookup, ScheduleFile, TagNumbers};
use crate::sys::pages::Pages;
use crate::trace::extrapolate::{ExtrapolatedLookup, Extrapolation, UnderWay, count};

/// A schedule whose operations are looked up.
pub type StreamedSchedule<'m> = Schedule<'m, Streamed<'m, NumberedLookup<'m>>>;

/// A program whose operations are looked up during the run.
#[derive(Clone, Copy, Debug)]
pub enum LookedUp<'a> {
    /// A binary file.
    File(&'a ScheduleFile),
    /// An extrapolated trace.
    Extrapolated(&'a Extrapolation),
}

/// Sends, receives and calculations of each rank.
pub(super) type Counts = Vec<[u32; 3]>;

/// Memory of a program besides the simulation, bytes.
#[derive(Clone, Copy)]
pub(super) struct Besides {
    /// During the run.
    pub(super) lookups: u64,
    /// Before it.
    pub(super) reading: u64,
    pub(super) tags: u64,
}

impl<'a> LookedUp<'a> {
    /// The program of `source`.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if it cannot be looked up.
    pub(super) fn of(source: &'a Source) -> Result<Self, LoadError> {
        match (source, source.extrapolation()) {
            (_, Some(program)) => Ok(Self::Extrapolated(program)),
            (Source::File(file), _) if file.form() == Form::Text => {
                Err(LoadError::Text { name: file.name().to_owned() })
            }
            (Source::File(file), _) => Ok(Self::File(file)),
            _ => Err(LoadError::NoFile),
        }
    }

    /// Number of ranks.
    pub(super) fn ranks(self) -> u32 {
        match self {
            Self::File(file) => file.extent().ranks,
            Self::Extrapolated(program) => program.ranks(),
        }
    }

    pub(super) fn besides(self) -> Besides {
        let file = match self {
            Self::File(file) => file,
            Self::Extrapolated(program) => {
                let (lookups, tags) = (program.bytes(), program.tags().bytes());
                return Besides { lookups, reading: 0, tags };
            }
        };
        let extent = file.extent();
        let lookups = file
            .lookup_spans()
            .saturating_mul(size_of::<EdgeSpan>() as u64)
            .saturating_add(u64::from(extent.ranks) * size_of::<u32>() as u64);
        // Reading LogGOPSim's format needs memory too, but before the simulation.
        let reading = if file.form() == Form::Reference { 4 * extent.ops_most as u64 } else { 0 };
        Besides { lookups, reading, tags: file.tags().bytes() }
    }

    /// Reports that the file was written to during the run.
    pub(super) fn unchanged(self) -> Result<(), LoadError> {
        match self {
            Self::File(file) => file.unchanged().map_err(LoadError::Input),
            Self::Extrapolated(_) => Ok(()),
        }
    }

    /// Writes the program into `sink`, and notes `hints`.
    fn feed<S: Sink<Error = BuildError>>(
        self,
        sink: &mut S,
        hints: Option<&Hints<'_>>,
    ) -> Result<(), LoadError> {
        let most_ops = if let Self::Extrapolated(_) = self { u64::MAX } else { Hints::MOST_OPS };
        let sink = &mut Hints::noting(hints, most_ops, sink);
        match self {
            Self::File(file) => Ok(file.feed_numbered(sink)?),
            Self::Extrapolated(program) => Ok(program.feed_numbered(sink)?),
        }
    }

    /// Reads all of the program, notes hints, and counts the operations of each rank. `None` if one is
    /// not on the first processor and interface, or has a wildcard. Of long extrapolated programs only
    /// the sizes of messages are noted.
    pub(super) fn counts(self, limit: &Limit<'_>) -> Result<Option<Counts>, LoadError> {
        let ranks = self.ranks();
        let needed = self.besides().lookups.saturating_add(u64::from(ranks) * 12);
        if needed > limit.bytes {
            return Err(LoadError::Memory { needed, allowed: limit.bytes });
        }
        if let Self::Extrapolated(program) = self {
            let counts = Hints::note_sizes(limit.hints, |note| program.counts(note));
            let counts = counts.map_err(LoadError::Pages)?;
            let of = |counts: &Counts| counts.iter().flatten().map(|n| u64::from(*n)).sum::<u64>();
            let are_few = counts.as_ref().is_some_and(|counts| of(counts) <= Hints::MOST_OPS);
            if limit.hints.is_some() && are_few {
                self.feed(&mut Survey::default(), limit.hints)?;
            }
            return Ok(counts);
        }
        let mut counts = Counts::new();
        let room = counts.try_reserve_exact(ranks as usize);
        room.map_err(|_| LoadError::Pages(io::ErrorKind::OutOfMemory.into()))?;
        counts.resize(ranks as usize, [0; 3]);
        let mut is_plain = true;
        let mut survey = Survey::default();
        let counting = &mut EachOp::new(&mut survey, |rank, op: Op| {
            let counts = counts.get_mut(rank as usize).ok_or(BuildError::Full)?;
            if let OpKind::Send { peer, tag, .. } | OpKind::Receive { peer, tag, .. } = op.kind {
                let is_any = peer == ANY && matches!(op.kind, OpKind::Receive { .. });
                if peer >= ranks && !is_any {
                    return Err(BuildError::Peer { rank, op: counts.iter().sum(), peer });
                }
                is_plain &= !is_any && tag != ANY_TAG;
            }
            is_plain &= op.cpu == 0 && op.nic == 0;
            count(op.kind, counts);
            Ok(op)
        });
        self.feed(counting, limit.hints)?;
        Ok(Some(counts).filter(|_| is_plain))
    }
}

/// Survey of ranks with these operations, whose dependencies are looked up.
pub(super) fn survey_of(counts: &[[u32; 3]]) -> Survey {
    let ops = |counts: &[u32; 3]| counts.iter().map(|count| u64::from(*count)).sum::<u64>();
    let all = counts.iter().map(ops).sum();
    let most = counts.iter().map(ops).max().unwrap_or(0);
    Survey::bound(u32::try_from(counts.len()).unwrap_or(u32::MAX), [all, most], [0, 0])
}

/// Adds the ranks `own` of all `ranks`, which have these operations.
pub(super) fn build(
    builder: &mut Builder<'_>,
    ranks: u32,
    own: Range<u32>,
    counts: &[[u32; 3]],
) -> Result<(), BuildError> {
    builder.part(ranks, own.clone())?;
    own.zip(counts).try_for_each(|(rank, counts)| builder.counted_rank(rank, *counts))
}

/// Owner of what lookups on some of the ranks need.
#[derive(Debug)]
pub(super) enum Lookups<'a> {
    File(&'a ScheduleFile, Pages<EdgeSpan>, Pages<u32>, Arc<TagNumbers>),
    Extrapolated(&'a Extrapolation, UnderWay),
}

impl<'a> Lookups<'a> {
    /// For `ranks` of `program`, which was read.
    pub(super) fn new(program: LookedUp<'a>, ranks: Range<u32>) -> Result<Self, LoadError> {
        let file = match program {
            LookedUp::File(file) => file,
            LookedUp::Extrapolated(program) => {
                let under_way = UnderWay::new(program, ranks).map_err(LoadError::Pages)?;
                return Ok(Self::Extrapolated(program, under_way));
            }
        };
        let no_memory = |_| LoadError::Pages(io::ErrorKind::OutOfMemory.into());
        let spans = usize::try_from(file.lookup_spans()).map_err(no_memory)?;
        let spans = Pages::zeroed(spans).map_err(LoadError::Pages)?;
        let firsts = Pages::zeroed(file.extent().ranks as usize + 1).map_err(LoadError::Pages)?;
        Ok(Self::File(file, spans, firsts, file.tags()))
    }

    /// View of the program.
    pub(super) fn lend(&mut self) -> Result<NumberedLookup<'_>, LoadError> {
        match self {
            Self::File(file, spans, firsts, tags) => {
                let lookup = file.lookup(LookupMemory { spans, firsts }, tags);
                file.advise_lookups();
                lookup.map_err(LoadError::Input)
            }
            Self::Extrapolated(program, under_way) => {
                Ok(NumberedLookup::Extrapolated(ExtrapolatedLookup::new(program, under_way)))
            }
        }
    }
}

/// Requirements for a simulation within the limit, with as many records as fit; their pages are
/// touched only when used.
fn requirements(
    besides: Besides,
    survey: &Survey,
    settings: Settings,
    limit: &Limit<'_>,
) -> Result<(Requirements, Needs), LoadError> {
    let bytes = |records| survey.streamed(settings, records).map(|needs| needs.bytes());
    let each = bytes(2)?.saturating_sub(bytes(1)?).max(1);
    let fixed = bytes(0)?.saturating_add(besides.lookups).max(besides.reading);
    let needs = Needs { each, ..Needs::of(survey, fixed) };
    let least = Needs { bytes: fixed.saturating_add(each), ..needs };
    let least = least.with_tags(besides.tags);
    let taken = least.within(limit)?.bytes.saturating_add((limit.besides)(&needs));
    let records = 1 + limit.bytes.saturating_sub(taken) / each;
    Ok((survey.streamed(settings, records)?, needs))
}

/// Checks all of `program`, prepares it for lookups during the run, lends it to `run` and returns the
/// result of that.
///
/// # Errors
///
/// [`LoadError`] if preparing failed or `run` had not enough memory; errors of `run`.
pub fn stream<T>(
    program: LookedUp<'_>,
    settings: Settings,
    limit: &Limit<'_>,
    run: impl FnOnce(StreamedSchedule<'_>, &Needs) -> Result<T, RunError>,
) -> Result<T, RunError> {
    let least = program.besides().lookups;
    if least > limit.bytes {
        return Err(LoadError::Memory { needed: least, allowed: limit.bytes }.into());
    }
    // Feeding all ranks of a large program would take longer than counting their operations.
    let counts = match program {
        LookedUp::File(_) => None,
        LookedUp::Extrapolated(_) => program.counts(limit)?,
    };
    let mut survey = Survey::default();
    match &counts {
        Some(counts) => survey = survey_of(counts),
        None => program.feed(&mut survey, None)?,
    }
    let (requirements, needs) = requirements(program.besides(), &survey, settings, limit)?;
    let mut owned = OwnedMemory::new(&requirements).map_err(LoadError::Pages)?;
    let mut builder = Builder::new(owned.lend(), requirements).map_err(LoadError::from)?;
    match &counts {
        Some(counts) => build(&mut builder, program.ranks(), 0..program.ranks(), counts)
            .map_err(LoadError::from)?,
        None => program.feed(&mut builder, limit.hints)?,
    }
    let mut lookups = Lookups::new(program, 0..program.ranks())?;
    let lookup = lookups.lend()?;
    let schedule = builder.finish(lookup).map_err(LoadError::from)?;
    let ran = run(schedule, &needs);
    program.unchanged()?;
    ran.map_err(|error| error.of_records(limit.bytes, 1))
}

impl RunError {
    /// The error, with the memory limit if memory was insufficient for one of `parts` equal ones.
    pub(super) fn of_records(self, allowed: u64, parts: usize) -> Self {
        match self {
            Self::Stopped(SimError::RecordsFull { records }) => {
                Self::Load(LoadError::UnderWay { records: records.saturating_mul(parts), allowed })
            }
            other => other,
        }
    }
}
