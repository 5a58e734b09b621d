//! Runs of stored schedules in time windows.

use loggap_core::sim::windows::Schedule;
use loggap_core::sim::{NoNoise, Noise};

use super::{Driver, Job, Outcome, Progress, Stopwatch, Stuck, Watch};
use crate::simulation::windows::{Resources, WindowError, load, run};
use crate::simulation::{LoadError, Needs, RunError, Source, trace_noise};

impl Job<'_> {
    /// Runs a schedule in windows, or says why it has to be run event by event.
    pub(super) fn in_windows(
        &self,
        source: &Source,
        watch: Watch<'_>,
    ) -> Result<Result<Outcome, String>, RunError> {
        if self.wanted.observed() {
            return Ok(Err("what happens is recorded in the order in which it happens".to_owned()));
        }
        let besides = |needs: &Needs| self.besides(needs);
        let with = (self.parameters, self.settings);
        let loading = Stopwatch::start();
        let ran = load(
            source,
            with,
            &self.limit(&besides),
            self.threads,
            |schedule, needs, mail_bytes| {
                let load = loading.read();
                let loaded = Loaded { job: self, needs, mail_bytes };
                let outcome = match self.noise {
                    None => loaded.run(schedule, NoNoise, watch)?,
                    Some(noise) => loaded.run(schedule, trace_noise(noise)?, watch)?,
                };
                Ok(outcome.map(|outcome| Outcome { load, ..outcome }))
            },
        );
        match ran.map_err(RunError::Load)? {
            Ok(outcome) => outcome,
            Err(why) => Ok(Err(why.to_string())),
        }
    }
}

/// A run that is about to begin.
struct Loaded<'a> {
    job: &'a Job<'a>,
    needs: &'a Needs,
    mail_bytes: u64,
}

impl Loaded<'_> {
    fn run<N: Noise + Clone + Send>(
        &self,
        schedule: Schedule<'_>,
        noise: N,
        watch: Watch<'_>,
    ) -> Result<Result<Outcome, String>, RunError> {
        let Self { job, needs, mail_bytes } = *self;
        let (stored, of) = (schedule.bytes(), schedule.events());
        let running = Stopwatch::start();
        let resources = Resources { threads: job.threads, mail_bytes, small: Resources::SMALL };
        let mut told = |events| watch(Progress { events, of });
        let ended = match run(schedule, noise, &resources, &mut told) {
            Ok(ended) => ended,
            Err(error @ WindowError::Steps) => return Ok(Err(error.to_string())),
            Err(WindowError::Stopped(error)) => return Err(RunError::Stopped(error)),
            Err(WindowError::Memory(error)) => {
                return Err(RunError::Load(LoadError::Pages(error)));
            }
        };
        let run = running.read();
        let mut stuck = Stuck::default();
        ended.unfinished(|left| stuck.add(left));
        Ok(Ok(Outcome {
            ranks: needs.ranks,
            ops: needs.ops,
            memory_bytes: stored + ended.mail_bytes() + job.besides(needs),
            finished: ended.finished(),
            stuck,
            run,
            finish: job.wanted.finish.then(|| ended.finish().collect()),
            driver: Driver::Windows { threads: ended.threads(), partitions: ended.partitions() },
            ..Outcome::default()
        }))
    }
}
