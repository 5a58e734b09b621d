//! Runs of patterns that need not be stored.

use loggap_core::sim::Finished;
use loggap_core::sim::implicit::{PatternProgram, ProgramFinished};
use loggap_core::units::Picos;
use loggap_core::with_program;

use super::{Job, Method, Outcome, Stopwatch, Watch};
use crate::simulation::implicit::settled;
use crate::simulation::noise::with_noise;
use crate::simulation::ordered::OnNetwork;
use crate::simulation::{Computed, Hints, LoadError, RunError, Source, bytes_needed, run_pattern};

impl Job<'_> {
    /// Runs a pattern without storing it. `None` if it must be stored: because of the pattern, of
    /// the requested results, or to resolve ties.
    pub(super) fn computed(
        &self,
        source: &Source,
        watch: Watch<'_>,
    ) -> Result<Option<Outcome>, RunError> {
        if self.wanted.observed() {
            return Ok(None);
        }
        let program = source.program(self.settings.receive);
        let Some(program) = program else { return Ok(None) };
        let loading = Stopwatch::start();
        let ranks = source.ranks();
        let listed = if self.wanted.finish { ranks } else { 0 };
        let listed_bytes = u64::from(listed) * size_of::<Picos>() as u64;
        // On a network, memory grows during the run, which checks the limit itself.
        if self.network.is_none() {
            let needed = bytes_needed(&program) / u64::from(self.processes.count());
            let needed = needed.saturating_add(listed_bytes);
            if needed > self.most_bytes {
                return Err(LoadError::Memory { needed, allowed: self.most_bytes }.into());
            }
        }
        let load = loading.read();
        let running = Stopwatch::start();
        let most_bytes = self.most_bytes.saturating_sub(listed_bytes);
        let computed = Job { most_bytes, ..self.clone() }.compute(&program, watch)?;
        let Some(computed) = computed else { return Ok(None) };
        let Computed { outcome, memory_bytes, threads, parts: partitions, .. } = computed;
        let ProgramFinished { makespan, last_rank, events, messages, .. } = outcome;
        if let Some(hints) = self.hints
            && events - messages <= Hints::MOST_OPS
        {
            with_program!(&program, program => hints.note_program(program));
        }
        Ok(Some(Outcome {
            ranks,
            ops: events - messages,
            memory_bytes: memory_bytes.saturating_add(listed_bytes),
            finished: Finished { makespan, last_rank, events },
            load,
            run: running.read(),
            finish: self.wanted.finish.then(|| self.of_all(computed.finish)),
            method: Method::Computed { threads, partitions },
            network: computed.network,
            crossing: computed.crossing,
            ..Outcome::default()
        }))
    }

    /// Computes `program`. `None` if it must be stored, to resolve ties or because of the message
    /// costs.
    pub(in crate::simulation) fn compute(
        &self,
        program: &PatternProgram,
        watch: Watch<'_>,
    ) -> Result<Option<Computed>, RunError> {
        settled(with_noise!(self.noise, noise => match self.network {
            Some(plan) => OnNetwork { job: self, plan, watch }.compute(program, noise),
            None => run_pattern(program, self, noise, watch),
        }))
    }

    /// Finishing times of `ranks` ranks, if they are to be returned.
    pub(in crate::simulation) fn finish_of(
        &self,
        ranks: usize,
        times: impl Iterator<Item = (u32, Picos)>,
    ) -> Vec<Picos> {
        if !self.wanted.finish {
            return Vec::new();
        }
        let mut finish = Vec::with_capacity(ranks);
        finish.extend(times.map(|(_, time)| time));
        finish
    }
}
