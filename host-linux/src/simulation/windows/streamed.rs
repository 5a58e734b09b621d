//! Runs of programs that are looked up, in parts of the ranks, on several threads or processes.

use std::ops::Range;

use loggap_core::sim::implicit::RankRange;
use loggap_core::sim::mail::Block;
use loggap_core::sim::streamed::{self, Builder, GivenUp, Part};
use loggap_core::sim::{BuildError, Finished, Noise, Receive, Requirements, Settings, SimError};
use loggap_core::units::Picos;

use super::load::blocks;
use super::memory::{MailRoom, Mails, chains};
use super::parts::{Border, InWindows, Ran, Reached, WindowLimits, run_parts};
use super::run::Resources;
use crate::schedule::NumberedLookup;
use crate::simulation::simulate::{Job, Method, Outcome, Stopwatch, Stuck, Watch};
use crate::simulation::streamed::{Besides, Lookups, build, survey_of};
use crate::simulation::{
    Limit, LoadError, LookedUp, OwnedMemory, RunError, StreamedSchedule, agreed,
};

/// Messages between parts get the memory limit divided by this, operations under way the rest.
const MAIL_SHARE: u64 = 4;

/// log₂ of the largest number of ranks in a part of one process: what is under way on them fits into
/// a second-level cache.
const MOST_SHIFT: u32 = 10;

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

/// Division of a program.
struct Division<'e> {
    program: LookedUp<'e>,
    counts: &'e [[u32; 3]],
    /// Number of sends of all ranks.
    sends: u64,
    shift: u32,
    block: Block,
    /// Parts of this process.
    parts: Range<u32>,
    threads: usize,
}

impl<'e> Division<'e> {
    fn of(program: LookedUp<'e>, counts: &'e [[u32; 3]], job: &Job<'_>) -> Self {
        let ranks = program.ranks();
        let (shift, block) = blocks(ranks, job.threads, job.processes);
        let shift = if block == Block::ALL { shift.min(MOST_SHIFT) } else { shift };
        let all = ranks.div_ceil(1 << shift);
        let end = block.first.saturating_add(block.each).min(all);
        let parts = block.first.min(all)..end;
        let threads = job.threads.clamp(1, parts.len().max(1));
        let sends = counts.iter().map(|[sends, ..]| u64::from(*sends)).sum();
        Self { program, counts, sends, shift, block, parts, threads }
    }

    /// Ranks of a part, and their operations.
    fn ranks(&self, part: u32) -> (Range<u32>, &[[u32; 3]]) {
        let first = part << self.shift;
        let end = first.saturating_add(1 << self.shift).min(self.program.ranks());
        (first..end, self.counts.get(first as usize..end as usize).unwrap_or_default())
    }

    /// Requirements of each part, of which all have as many records as fit.
    fn requirements(
        &self,
        settings: Settings,
        most_bytes: u64,
    ) -> Result<(Vec<Requirements>, Memory), LoadError> {
        let of = |part, records| {
            survey_of(self.ranks(part).1).streamed_part(settings, records, self.sends)
        };
        let Besides { lookups, reading, tags } = self.program.besides();
        let (mut fixed, mut each) = (lookups.saturating_add(tags), 1);
        for part in self.parts.clone() {
            let [none, one, two] = [of(part, 0)?, of(part, 1)?, of(part, 2)?].map(|n| n.bytes());
            fixed = fixed.saturating_add(none);
            each = each.max(two.saturating_sub(one));
        }
        let fixed = fixed.max(reading);
        let rest = most_bytes.saturating_sub(fixed);
        let mail = rest / MAIL_SHARE;
        let records = (rest - mail) / (each * self.parts.len().max(1) as u64);
        if records == 0 {
            let needed = fixed.saturating_add(each);
            return Err(LoadError::Memory { needed, allowed: most_bytes });
        }
        let all = self.parts.clone().map(|part| of(part, records));
        Ok((all.collect::<Result<_, _>>()?, Memory { fixed, each, mail }))
    }

    /// Lookups of each part, or those of all.
    fn lookups(&self) -> Result<Vec<Lookups<'e>>, LoadError> {
        match self.program {
            LookedUp::File(_) => Ok(vec![Lookups::new(self.program, 0..self.program.ranks())?]),
            LookedUp::Extrapolated(_) => {
                let of = |part| Lookups::new(self.program, self.ranks(part).0);
                self.parts.clone().map(of).collect()
            }
        }
    }

    /// Schedule of a part, in `memory`.
    fn schedule<'m>(
        &self,
        index: u32,
        needs: Requirements,
        memory: &'m mut OwnedMemory,
        lookup: NumberedLookup<'m>,
    ) -> Result<StreamedSchedule<'m>, BuildError> {
        let mut builder = Builder::new(memory.lend(), needs)?;
        let (ranks, counts) = self.ranks(index);
        build(&mut builder, self.program.ranks(), ranks, counts)?;
        builder.finish(lookup)
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
        GivenUp::Rendezvous => "a message above S waits for its receiver",
        GivenUp::Room => "there is no room for the messages between parts of the ranks",
        GivenUp::Unsuitable => {
            "ranks have several processors or interfaces, or receive with overlap, or o + L is 0"
        }
    }
}

/// Runs `program` in parts; the outcome is that of the ranks of this process, with `why` it is not
/// stored. `Err` in the result if it must run in order, and why.
///
/// # Errors
///
/// [`RunError`].
pub(in crate::simulation) fn run_streamed<N: Noise + Clone + Send>(
    job: &Job<'_>,
    program: LookedUp<'_>,
    why: &str,
    noise: N,
    watch: Watch<'_>,
) -> Result<Result<Outcome, &'static str>, RunError> {
    // A process without parts knows it, too.
    if job.parameters.lookahead() == Picos::ZERO || job.settings.receive == Receive::Overlap {
        return Ok(Err(reason(GivenUp::Unsuitable)));
    }
    let processes = job.processes;
    let loading = Stopwatch::start();
    let limit = Limit { hints: job.hints, bytes: job.most_bytes, ..Limit::none() };
    let counts = agreed(processes, program.counts(&limit).map_err(RunError::Load))?;
    // Files of other processes may differ.
    let are_plain = processes.all(&[counts.is_some().into()]).into_iter().all(|plain| plain != 0);
    let Some(counts) = counts.filter(|_| are_plain) else { return Ok(Err(NOT_PLAIN)) };
    let division = Division::of(program, &counts, job);
    let besides = if job.wanted.finish { u64::from(program.ranks()) * 8 } else { 0 };
    let besides = besides.saturating_add(size_of_val(&*counts) as u64);
    let prepare = || -> Result<_, LoadError> {
        let most_bytes = job.most_bytes.saturating_sub(besides);
        let (needs, memory) = division.requirements(job.settings, most_bytes)?;
        let owned = needs.iter().map(OwnedMemory::new).collect::<Result<Vec<_>, _>>();
        let owned = owned.map_err(LoadError::Pages)?;
        Ok((needs, memory, owned, division.lookups()?))
    };
    let prepared = agreed(processes, prepare().map_err(RunError::Load))?;
    let (needs, memory, mut owned, mut lookups) = prepared;
    let build = || -> Result<Vec<_>, LoadError> {
        let lent = lookups.iter_mut().map(Lookups::lend);
        let lent = lent.collect::<Result<Vec<_>, _>>()?;
        let lent = lent.iter().cycle();
        (division.parts.clone().zip(needs).zip(owned.iter_mut().zip(lent)))
            .map(|((index, needs), (owned, lookup))| {
                let schedule = division.schedule(index, needs, owned, *lookup)?;
                let Division { shift, block, .. } = division;
                let range = RankRange { index, shift, block };
                Part::new(schedule, job.parameters, job.settings, noise.clone(), range)
                    .map_err(|why| LoadError::OneProcess(reason(why).to_owned()))
            })
            .collect()
    };
    let parts = agreed(processes, build().map_err(RunError::Load))?;
    let load = loading.read();
    let memory = Memory { fixed: memory.fixed + besides, ..memory };
    let ran = division.run(parts, memory, job, watch)?;
    let program_reason = why.to_owned();
    Ok(ran.map_err(reason).map(|(outcome, parts)| {
        let method = Method::Streamed { reason: program_reason, in_order: None, parts };
        Outcome { load, method, ..outcome }
    }))
}

impl Division<'_> {
    /// Runs `parts` to their end; the outcome is that of these. Also the numbers of threads and of
    /// parts.
    fn run<N: Noise + Send>(
        &self,
        parts: Vec<Part<'_, '_, N, NumberedLookup<'_>>>,
        memory: Memory,
        job: &Job<'_>,
        watch: Watch<'_>,
    ) -> Result<Result<(Outcome, [usize; 2]), GivenUp>, RunError> {
        let processes = job.processes;
        let places = u32::try_from(self.sends.saturating_mul(streamed::PLACES));
        let room = MailRoom { messages: places.unwrap_or(u32::MAX), bytes: memory.mail };
        let chains = chains(parts.len(), self.block, processes);
        let mails = Mails::new(self.threads, chains, room).map_err(LoadError::Pages);
        let mails = agreed(processes, mails.map_err(RunError::Load))?;
        let running = Stopwatch::start();
        let own = || self.parts.clone().flat_map(|part| self.ranks(part).1);
        let own_ops = own().flatten().map(|count| u64::from(*count)).sum::<u64>();
        let of = own().fold(own_ops, |all, [sends, ..]| all + u64::from(*sends));
        let width = job.parameters.lookahead();
        let mut progress = |reached: Reached| watch(reached.progress(of, width));
        let windows = WindowLimits { small: Resources::SMALL, sparse: u64::MAX };
        let mut border = Border::new(processes, self.block, self.shift);
        let parts = parts.into_iter().map(|part| StreamedPart { part, stopped: None });
        let (mut parts, ran) = run_parts(parts, &mails, windows, &mut border, &mut progress);
        let run = running.read();
        agreed(processes, self.program.unchanged().map_err(RunError::Load))?;
        if let Some(why) = given_up(&border, &parts, job.most_bytes)? {
            return Ok(Err(why));
        }
        let mut stuck = Stuck::default();
        let finished = parts.iter_mut().try_fold(Finished::default(), |mut all, part| {
            part.part.unfinished(|left| stuck.add(left));
            all.join(&part.part.finished()?);
            Ok(all)
        });
        let finished = agreed(processes, finished.map_err(RunError::Stopped))?;
        let most = parts.iter().map(|part| u64::from(part.part.most_records())).sum::<u64>();
        let finish = || parts.iter().flat_map(|part| part.part.finishes()).collect();
        let outcome = Outcome {
            ranks: self.program.ranks(),
            ops: own_ops,
            memory_bytes: memory.fixed + most * memory.each + mails.bytes(),
            most_under_way: Some(most),
            finished,
            run,
            stuck,
            finish: job.wanted.finish.then(finish),
            crossing: border.received,
            ..Outcome::default()
        };
        Ok(Ok((outcome, [ran.unwrap_or(1), parts.len()])))
    }
}

/// Why a program is read in order, where that is known from its operations.
const NOT_PLAIN: &str =
    "operations have wildcards, or are on several processors or interfaces of a rank";

/// Why a process gave a run up, if one did.
fn given_up<N: Noise + Send>(
    border: &Border<'_>,
    parts: &[StreamedPart<'_, '_, N>],
    allowed: u64,
) -> Result<Option<GivenUp>, RunError> {
    let all = [None, Some(GivenUp::Room), Some(GivenUp::Tie), Some(GivenUp::Rendezvous)];
    let own = parts.iter().find_map(|part| part.part.given_up());
    let own = own.or(border.full.then_some(GivenUp::Room));
    // In a wrong order a part may stop that does not in the right one.
    let stopped = parts.iter().find_map(|part| part.stopped).filter(|_| own.is_none());
    let own = all.iter().position(|why| *why == own).unwrap_or_default();
    let most = border.processes.all(&[own as u64]).into_iter().max().unwrap_or_default();
    let why = usize::try_from(most).ok().and_then(|most| all.get(most).copied().flatten());
    let stopped = stopped
        .filter(|_| why.is_none())
        .map_or(Ok(()), |error| Err(RunError::Stopped(error).of_records(allowed, parts.len())));
    agreed(border.processes, stopped)?;
    Ok(why)
}
