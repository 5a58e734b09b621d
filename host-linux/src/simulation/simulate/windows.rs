//! Runs of stored schedules in windows, with separate observers for each partition.

use std::sync::Arc;

use loggap_core::sim::windows::{Away, Schedule};
use loggap_core::sim::{Counters, Noise, Observer, RankCounters, Silent};

use super::{Job, Method, Outcome, SHARED_LINKS, Stopwatch, Stuck, Watch};
use crate::simulation::noise::with_noise;
use crate::simulation::windows::{
    Across, Ended, Reached, Resources, Split, WindowError, load, load_across, run, run_streamed,
};
use crate::simulation::{LoadError, LookedUp, Needs, RunError, Source};
use crate::timeline::Recorder;
use crate::timeline::causes::CauseRecorder;

/// Largest summaries of histories of messages between processes.
const MOST_CREATORS: u32 = 3 * 16 * 16;
/// Number of ranks below which a second thread does not help where operations are looked up.
const LEAST_RANKS: u32 = 1 << 9;
/// Largest room for messages that are not received.
const MOST_SPARE: u32 = 1 << 24;

impl Job<'_> {
    /// Runs a schedule in windows, or returns the reason why it must be run in order.
    pub(super) fn in_windows(
        &self,
        source: &Source,
        watch: Watch<'_>,
    ) -> Result<Result<Outcome, String>, RunError> {
        let besides = |needs: &Needs| self.besides(needs);
        let ran = load(
            source,
            self.parameters,
            self.settings,
            &self.limit(&besides),
            if self.wanted.causes { Split::Whole } else { Split::Threads(self.threads) },
            self.loaded(watch),
        );
        match ran {
            Ok(ran) => Ok(ran?.map_err(|why| why.to_string())),
            // A run in order may need less memory, or reports how much it needs.
            Err(LoadError::Memory { needed, allowed }) => Ok(Err(format!(
                "windows would take {needed} bytes of memory, of {allowed} allowed"
            ))),
            Err(error) => error.unsuitable().map(|why| Err(why.to_string())).ok_or(error.into()),
        }
    }

    /// Runs the ranks of this process in windows, again with longer histories or more room if these
    /// do not suffice.
    pub(super) fn own_in_windows(
        &self,
        source: &Source,
        watch: Watch<'_>,
    ) -> Result<Outcome, RunError> {
        let mut away = Away::FEW;
        loop {
            let why = match self.own_with(source, away, watch)? {
                Ok(outcome) => return Ok(outcome),
                Err(why) => why,
            };
            match why {
                WindowError::Unknown if away.creators < MOST_CREATORS => away = away.longer(),
                WindowError::Room if away.spare < MOST_SPARE => away.spare *= 64,
                why => return Err(LoadError::OneProcess(why.to_string()).into()),
            }
        }
    }

    /// Looks up the ranks of this process, in windows; `why` the program is not stored. `Err` in the
    /// result if it must run in order, and why.
    pub(super) fn streamed_in_windows(
        &self,
        program: LookedUp<'_>,
        why: &str,
        watch: Watch<'_>,
    ) -> Result<Result<Outcome, &'static str>, RunError> {
        if self.network.is_some() {
            return Ok(Err(SHARED_LINKS));
        }
        if self.processes.count() == 1 && self.threads < 2 {
            return Ok(Err("one thread is as fast so, and takes less memory"));
        }
        if self.processes.count() == 1 && program.ranks() < LEAST_RANKS {
            return Ok(Err("looked up, windows of fewer than 512 ranks are not faster"));
        }
        if self.wanted.observed() {
            return Ok(Err("what happens is observed in the order in which it does"));
        }
        match with_noise!(self.noise, noise => run_streamed(self, program, why, noise, watch)) {
            Err(RunError::Load(
                LoadError::Memory { .. } | LoadError::UnderWay { .. } | LoadError::Pages(_),
            )) if self.processes.count() == 1 => {
                Ok(Err("windows would take more memory than allowed"))
            }
            ran => ran,
        }
    }

    fn own_with(&self, source: &Source, away: Away, watch: Watch<'_>) -> Ended<Outcome> {
        let besides = |needs: &Needs| self.besides(needs);
        let &Self { parts, threads, processes, .. } = self;
        let across = Across { parts, threads, processes, away };
        load_across(
            source,
            self.parameters,
            self.settings,
            &self.limit(&besides),
            &across,
            self.loaded(watch),
        )?
    }

    /// Runs the schedule that is loaded after this call.
    fn loaded<'a>(
        &'a self,
        watch: Watch<'a>,
    ) -> impl FnOnce(Schedule<'_>, &Needs, u64) -> Ended<Outcome> + 'a {
        let loading = Stopwatch::start();
        move |schedule, needs, mail_bytes| {
            let load = loading.read();
            let outcome = Loaded { job: self, needs, mail_bytes }.run(schedule, watch)?;
            Ok(outcome.map(|outcome| Outcome { load, ..outcome }))
        }
    }
}

/// Job and memory of a schedule that is loaded.
pub(in crate::simulation) struct Loaded<'a> {
    pub(in crate::simulation) job: &'a Job<'a>,
    pub(in crate::simulation) needs: &'a Needs,
    pub(in crate::simulation) mail_bytes: u64,
}

impl Loaded<'_> {
    /// Runs the schedule.
    pub(in crate::simulation) fn run(
        &self,
        schedule: Schedule<'_>,
        watch: Watch<'_>,
    ) -> Ended<Outcome> {
        with_noise!(self.job.noise, noise => self.with_noise(schedule, noise, watch))
    }

    fn with_noise<N: Noise + Clone + Send>(
        &self,
        schedule: Schedule<'_>,
        noise: N,
        watch: Watch<'_>,
    ) -> Ended<Outcome> {
        let wanted = &self.job.wanted;
        if !wanted.observed() {
            let silent = |_| Silent;
            return Ok(self.observed(schedule, noise, silent, watch)?.map(|(outcome, _)| outcome));
        }
        let counted = if wanted.counters { schedule.first_ops().len() - 1 } else { 0 };
        let mut ranks = vec![RankCounters::default(); counted];
        let mut parts = ranks.chunks_mut(1 << schedule.shift());
        let first_ops: Arc<[u32]> = schedule.first_ops().into();
        let observe = |first| {
            let counters = parts.next().map(|ranks| Counters::from_rank(first, ranks));
            let recorder =
                wanted.selection.clone().map(|kept| Recorder::new(Arc::clone(&first_ops), kept));
            let causes = wanted.causes.then(|| CauseRecorder::new(&first_ops));
            ((counters, recorder), causes)
        };
        let ended = self.observed(schedule, noise, observe, watch)?;
        Ok(ended.map(|(outcome, observers)| {
            let (told, causes): (Vec<_>, Vec<_>) = observers.into_iter().unzip();
            let (counters, recorders): (Vec<_>, Vec<_>) = told.into_iter().unzip();
            let counted = counters.into_iter().flatten().flat_map(Counters::finish).copied();
            let counters = wanted.counters.then(|| counted.collect());
            let recorders = recorders.into_iter().flatten();
            let timeline = wanted.selection.is_some().then(|| Recorder::join(recorders));
            let causes = causes.into_iter().flatten().next().map(CauseRecorder::finish);
            Outcome { counters, timeline, causes, ..outcome }
        }))
    }

    fn observed<N: Noise + Clone + Send, O: Observer + Send>(
        &self,
        schedule: Schedule<'_>,
        noise: N,
        observe: impl FnMut(u32) -> O,
        watch: Watch<'_>,
    ) -> Ended<(Outcome, Vec<O>)> {
        let Self { job, needs, mail_bytes } = *self;
        let (stored, of) = (schedule.bytes(), schedule.events());
        let running = Stopwatch::start();
        let (threads, processes) = (job.threads, job.processes);
        let resources = Resources { threads, mail_bytes, small: Resources::SMALL, processes };
        let width = job.parameters.lookahead();
        let mut progress = |reached: Reached| watch(reached.progress(of, width));
        let ended = match run(schedule, noise, observe, &resources, &mut progress)? {
            Ok(ended) => ended,
            Err(why) => return Ok(Err(why)),
        };
        let run = running.read();
        let mut stuck = Stuck::default();
        ended.unfinished(|left| stuck.add(left));
        let outcome = Outcome {
            ranks: needs.ranks,
            ops: needs.ops,
            memory_bytes: stored + ended.mail_bytes() + job.besides(needs),
            finished: ended.finished(),
            stuck,
            run,
            finish: job.wanted.finish.then(|| ended.finish().collect()),
            crossing: ended.crossing,
            method: Method::Windows { threads: ended.threads, partitions: ended.partitions() },
            ..Outcome::default()
        };
        Ok(Ok((outcome, ended.into_observers().collect())))
    }
}
