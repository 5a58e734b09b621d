//! Runs of extrapolated traces in parts of the ranks, on several threads or processes.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use loggap_core::sim::implicit::RankRange;
use loggap_core::sim::mail::Block;
use loggap_core::sim::streamed::{self, Builder, GivenUp, Part, Requirements};
use loggap_core::sim::{BuildError, Finished, Noise, Parameters, Settings, SimError, Survey};

use super::load::blocks;
use super::memory::{MailRoom, Mails, chains};
use super::parts::{Border, InWindows, Ran, Reached, WindowLimits, run_parts};
use super::run::Resources;
use crate::schedule::NumberedLookup;
use crate::simulation::simulate::{Job, Method, Outcome, Stopwatch, Stuck, Watch};
use crate::simulation::streamed::Owned;
use crate::simulation::{LoadError, Processes, RunError, agreed};
use crate::trace::extrapolate::{ExtrapolatedLookup, Extrapolation, UnderWay};

/// Share of the memory limit for messages between parts, and for operations under way: one part of
/// this many.
const MAIL_SHARE: u64 = 4;

/// A part of the ranks.
struct StreamedPart<'m, 'p, N> {
    part: Part<'m, 'p, N, NumberedLookup<'m>>,
    stopped: Option<SimError>,
}

impl<'m, N: Noise + Send> InWindows<'m> for StreamedPart<'m, '_, N> {
    type Message = streamed::Message;

    fn next(&self) -> Option<u64> {
        self.part.next_window()
    }

    fn run(
        &mut self,
        window: u64,
        _free_steps: u64,
        inbox: &streamed::Mail<'m>,
        outbox: &mut streamed::Outbox<'m>,
    ) -> Ran {
        let before = self.part.events();
        self.stopped = self.part.run_window(window, inbox, outbox).err();
        let aborts = self.stopped.is_some() || self.part.given_up().is_some();
        Ran { events: self.part.events() - before, steps: 0, aborts }
    }
}

/// Division of an extrapolated trace.
struct Division<'e> {
    program: &'e Extrapolation,
    /// Sends, receives and calculations of each rank.
    counts: &'e [[u32; 3]],
    shift: u32,
    block: Block,
    /// Parts of this process.
    parts: Range<u32>,
    threads: usize,
}

impl<'e> Division<'e> {
    fn of(program: &'e Extrapolation, counts: &'e [[u32; 3]], job: &Job<'_>) -> Self {
        let ranks = program.ranks();
        let (shift, block) = blocks(ranks, job.threads, job.processes);
        let all = ranks.div_ceil(1 << shift);
        let end = block.first.saturating_add(block.each).min(all);
        let parts = block.first.min(all)..end;
        let threads = job.threads.clamp(1, parts.len().max(1));
        Self { program, counts, shift, block, parts, threads }
    }

    /// Ranks of a part, and their operations.
    fn ranks(&self, part: u32) -> (Range<u32>, &[[u32; 3]]) {
        let first = part << self.shift;
        let end = first.saturating_add(1 << self.shift).min(self.program.ranks());
        (first..end, self.counts.get(first as usize..end as usize).unwrap_or_default())
    }

    fn survey(&self, part: u32) -> Survey {
        let (ranks, counts) = self.ranks(part);
        let ops = |counts: &[u32; 3]| counts.iter().map(|count| u64::from(*count)).sum::<u64>();
        let all = counts.iter().map(ops).sum();
        let most = counts.iter().map(ops).max().unwrap_or(0);
        Survey::bound(ranks.end - ranks.start, [all, most], [0, 0])
    }

    /// Requirements of each part, of which all have as many records as fit.
    fn requirements(
        &self,
        settings: Settings,
        most_bytes: u64,
    ) -> Result<(Vec<Requirements>, Memory), LoadError> {
        let of = |part, records| {
            Requirements::of(&self.survey(part), settings, records).map(Requirements::in_part)
        };
        let (mut fixed, mut each) = (self.program.bytes(), 1);
        for part in self.parts.clone() {
            let [none, one, two] = [of(part, 0)?, of(part, 1)?, of(part, 2)?].map(|n| n.bytes());
            fixed = fixed.saturating_add(none);
            each = each.max(two.saturating_sub(one));
        }
        let tags = self.program.tags().bytes();
        let taken = fixed.saturating_add(tags);
        let rest = most_bytes.saturating_sub(taken);
        let mail = rest / MAIL_SHARE;
        let records = (rest - mail) / (each * self.parts.len().max(1) as u64);
        if records == 0 {
            return Err(LoadError::Memory { needed: taken.saturating_add(each), allowed: most_bytes });
        }
        let all = self.parts.clone().map(|part| of(part, records));
        Ok((all.collect::<Result<_, _>>()?, Memory { fixed: taken, each, mail }))
    }

    /// Part of a simulation in `memory`.
    fn part<'m, 'p, N: Noise>(
        &self,
        index: u32,
        needs: Requirements,
        (memory, under_way): (&'m mut Owned, &'m UnderWay),
        (parameters, settings, noise): (Parameters<'p>, Settings, N),
    ) -> Result<Result<Part<'m, 'p, N, NumberedLookup<'m>>, GivenUp>, BuildError>
    where
        'e: 'm,
    {
        let (memory, _) = memory.lend();
        let mut builder = Builder::new(memory, needs)?;
        let (ranks, counts) = self.ranks(index);
        builder.part(self.program.ranks(), ranks.clone())?;
        for (rank, counts) in ranks.zip(counts) {
            builder.counted_rank(rank, *counts)?;
        }
        let lookup = ExtrapolatedLookup::new(self.program, under_way);
        let schedule = builder.finish(NumberedLookup::Extrapolated(lookup))?;
        let range = RankRange { index, shift: self.shift, block: self.block };
        Ok(Part::new(schedule, parameters, settings, noise, range))
    }
}

/// Memory of a run in parts, bytes.
#[derive(Clone, Copy)]
struct Memory {
    /// Without operations under way.
    fixed: u64,
    /// Of an operation under way.
    each: u64,
    /// Limit on messages between parts.
    mail: u64,
}

/// Why a run in parts was given up.
const fn reason(why: GivenUp) -> &'static str {
    match why {
        GivenUp::Tie => {
            "the order of simultaneous events depends on what happened long before on other ranks"
        }
        GivenUp::Rendezvous => "a message above S ends its send when it is received",
        GivenUp::Unsuitable => {
            "ranks have several processors or interfaces, or receive with overlap, or o + L is 0"
        }
    }
}

/// Runs `program` in parts; the outcome is that of the ranks of this process. `Err` in the result if
/// it must run in order, and why.
///
/// # Errors
///
/// [`RunError`].
pub(in crate::simulation) fn run_streamed<N: Noise + Clone + Send>(
    job: &Job<'_>,
    program: &Extrapolation,
    noise: N,
    watch: Watch<'_>,
) -> Result<Result<Outcome, &'static str>, RunError> {
    let processes = job.processes;
    let loading = Stopwatch::start();
    let no_memory = |error: io::Error| RunError::from(LoadError::Pages(error));
    let counts = program.counts().map_err(no_memory)?;
    let Some(counts) = counts else { return Ok(Err("it receives from any rank, or any tag")) };
    let division = Division::of(program, &counts, job);
    let listed = if job.wanted.finish { u64::from(program.ranks()) * 8 } else { 0 };
    let prepare = || -> Result<_, RunError> {
        let most_bytes = job.most_bytes.saturating_sub(listed);
        let (needs, memory) = division.requirements(job.settings, most_bytes)?;
        let owned = needs.iter().map(|needs| Owned::new(needs, 0)).collect::<Result<Vec<_>, _>>();
        let state = |part| UnderWay::new(program, division.ranks(part).0);
        let states = division.parts.clone().map(state).collect::<Result<Vec<_>, _>>();
        Ok((needs, memory, owned.map_err(no_memory)?, states.map_err(no_memory)?))
    };
    let (needs, memory, mut owned, states) = agreed(processes, prepare())?;
    let costs = (job.parameters, job.settings, noise);
    let built = (division.parts.clone().zip(needs).zip(owned.iter_mut().zip(&states)))
        .map(|((index, needs), memory)| division.part(index, needs, memory, costs.clone()))
        .collect::<Result<Result<Vec<_>, _>, _>>();
    let built = built.map_err(|error| RunError::Load(error.into()));
    let built = agreed(processes, built)?;
    // All processes have the same settings.
    let parts = match built {
        Ok(parts) => parts,
        Err(why) => return Ok(Err(reason(why))),
    };
    let parts: Vec<_> =
        parts.into_iter().map(|part| Mutex::new(StreamedPart { part, stopped: None })).collect();
    let sends = counts.iter().map(|[sends, ..]| u64::from(*sends)).sum::<u64>();
    let room = MailRoom { messages: u32::try_from(sends.saturating_mul(streamed::PLACES)).unwrap_or(u32::MAX), bytes: memory.mail };
    let chains = chains(parts.len(), division.block, processes);
    let mails = agreed(processes, Mails::new(division.threads, chains, room).map_err(no_memory))?;
    let load = loading.read();
    let running = Stopwatch::start();
    let ops = counts.iter().flatten().map(|count| u64::from(*count)).sum::<u64>();
    let width = job.parameters.lookahead();
    let mut progress = |reached: Reached| watch(reached.progress(ops + sends, width));
    let windows = WindowLimits { small: Resources::SMALL, sparse: u64::MAX };
    let mut border = Border::new(processes, division.block, division.shift);
    let ran = run_parts(&parts, &mails, windows, &mut border, &mut progress);
    let run = running.read();
    let mut parts: Vec<_> = (parts.into_iter())
        .map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect();
    if let Some(why) = given_up(processes, &parts, job.most_bytes)? {
        return Ok(Err(reason(why)));
    }
    // A part that stops says why, so that here all processes got to the end.
    let threads = ran.unwrap_or(1);
    let mut finished = Finished::default();
    let mut stuck = Stuck::default();
    for StreamedPart { part, .. } in &mut parts {
        finished.join(&part.finished()?);
        part.unfinished(|left| stuck.add(left));
    }
    let most: u32 = parts.iter().map(|part| part.part.most_records()).sum();
    let finish = || parts.iter().flat_map(|part| part.part.finishes()).collect();
    let own = division.parts.clone().flat_map(|part| division.ranks(part).1);
    Ok(Ok(Outcome {
        ranks: program.ranks(),
        ops: own.flatten().map(|count| u64::from(*count)).sum(),
        memory_bytes: memory.fixed + u64::from(most) * memory.each + mails.bytes() + listed,
        most_under_way: Some(most),
        finished,
        load,
        run,
        stuck,
        finish: job.wanted.finish.then(finish),
        crossing: border.received,
        method: Method::Streamed {
            reason: EXTRAPOLATED.to_owned(),
            in_order: None,
            parts: [threads, parts.len()],
        },
        ..Outcome::default()
    }))
}

/// Why an extrapolated trace is not stored.
pub(in crate::simulation) const EXTRAPOLATED: &str = "it is extrapolated from a trace";

/// Why a process gave a run up, if one did.
fn given_up<N: Noise + Send>(
    processes: &dyn Processes,
    parts: &[StreamedPart<'_, '_, N>],
    allowed: u64,
) -> Result<Option<GivenUp>, RunError> {
    let stopped = match parts.iter().find_map(|part| part.stopped) {
        None => Ok(()),
        Some(SimError::RecordsFull { records }) => {
            Err(LoadError::UnderWay { records: records * parts.len(), allowed }.into())
        }
        Some(error) => Err(RunError::Stopped(error)),
    };
    agreed(processes, stopped)?;
    let all = [None, Some(GivenUp::Tie), Some(GivenUp::Rendezvous)];
    let own = parts.iter().find_map(|part| part.part.given_up());
    let own = all.iter().position(|why| *why == own).unwrap_or_default();
    let most = processes.all(&[own as u64]).into_iter().max().unwrap_or_default();
    Ok(usize::try_from(most).ok().and_then(|most| all.get(most).copied().flatten()))
}
