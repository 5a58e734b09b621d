//! Runs of stored schedules in time windows.

use loggap_core::measure::Clock;
use loggap_core::sim::windows::Schedule;
use loggap_core::sim::{NoNoise, Noise, TraceNoise};

use super::job::{EngineUsed, Job, Outcome, Stopwatch, Stuck};
use super::progress::ProgressLine;
use crate::cli::{CliError, Console};
use crate::machine::clock::HostClock;
use crate::simulation::windows::{Resources, WindowError, load, run};
use crate::simulation::{Limit, LoadError, Needs, Source};

/// Runs a schedule in windows, or says why it has to be run event by event.
pub(super) fn in_windows(
    job: &Job<'_>,
    source: &Source,
    (clock, started): Stopwatch,
    console: &Console,
) -> Result<Result<Outcome, String>, CliError> {
    if job.wanted.observed() {
        return Ok(Err("what happens is recorded in the order in which it happens".to_owned()));
    }
    let limit = Limit { bytes: job.most_bytes, besides: &|needs| job.besides(needs) };
    let with = (job.parameters, job.settings);
    let ran = load(source, with, &limit, job.threads, |schedule, needs, mail_bytes| {
        let load = Job::since((clock, started));
        let loaded = Loaded { job, needs, clock, mail_bytes };
        let outcome = match job.noise {
            None => loaded.run(schedule, NoNoise, console)?,
            Some((source, phases)) => {
                let trace = source.trace().map_err(CliError::usage)?;
                loaded.run(schedule, TraceNoise { trace, phases }, console)?
            }
        };
        Ok(outcome.map(|outcome| Outcome { load, ..outcome }))
    });
    match ran {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(why)) => Ok(Err(why.to_string())),
        Err(error @ (LoadError::Memory { .. } | LoadError::Pages(_))) => {
            Err(CliError::failed(error))
        }
        Err(error) => Err(CliError::usage(error)),
    }
}

/// A run that is about to begin.
struct Loaded<'a> {
    job: &'a Job<'a>,
    needs: &'a Needs,
    clock: HostClock,
    mail_bytes: u64,
}

impl Loaded<'_> {
    fn run<N: Noise + Clone + Send>(
        &self,
        schedule: Schedule<'_>,
        noise: N,
        console: &Console,
    ) -> Result<Result<Outcome, String>, CliError> {
        let Self { job, needs, clock, mail_bytes } = *self;
        let stored = schedule.bytes();
        let progress = ProgressLine::new(console, schedule.events());
        let started = clock.now();
        let resources = Resources { threads: job.threads, mail_bytes, small: Resources::SMALL };
        let ended = match run(schedule, noise, &resources, &mut |events| progress.show(events)) {
            Err(error @ WindowError::Steps) => return Ok(Err(error.to_string())),
            other => other.map_err(CliError::failed)?,
        };
        drop(progress);
        let run = Job::since((clock, started));
        let mut stuck = Stuck::default();
        ended.unfinished(|left| stuck.add(left));
        let memory_bytes = stored + ended.mail_bytes() + job.besides(needs);
        Ok(Ok(Outcome {
            ranks: needs.ranks,
            ops: needs.ops,
            memory_bytes,
            finished: ended.finished(),
            stuck,
            run,
            finish: job.wanted.finish.then(|| ended.finish().collect()),
            engine: EngineUsed::windows(ended.threads(), ended.partitions()),
            ..Outcome::default()
        }))
    }
}
