//! Runs of patterns that need not be stored.

use loggap_core::sim::{Finished, implicit};
use loggap_core::units::Picos;
use loggap_core::with_program;

use super::{Job, Method, Outcome, Stopwatch, Watch};
use crate::simulation::ordered::OnNetwork;
use crate::simulation::{
    Computed, Hints, LoadError, Means, RunError, Source, bytes_needed, compute,
};

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
        let processes = self.processes.count();
        let listed = if self.wanted.finish { ranks } else { 0 };
        let listed_bytes = u64::from(listed) * size_of::<Picos>() as u64;
        let mut finish = Vec::new();
        // On a network, memory grows during the run, which checks the limit itself.
        if self.network.is_none() {
            let needed = bytes_needed(&program) / u64::from(processes);
            let needed = needed.saturating_add(listed_bytes);
            if needed > self.most_bytes {
                let error = LoadError::Memory { needed, allowed: self.most_bytes };
                return Err(RunError::Load(error));
            }
            finish.reserve_exact(listed.div_ceil(processes) as usize);
        }
        let load = loading.read();
        let running = Stopwatch::start();
        let most_bytes = self.most_bytes.saturating_sub(listed_bytes);
        let each = |rank, time| {
            if rank < listed {
                finish.push(time);
            }
        };
        let parameters = self.parameters;
        let computed = if let Some(plan) = self.network {
            let on_network = OnNetwork { parameters, plan, most_bytes, watch };
            on_network.compute(&program, self.noise, each)?
        } else {
            let Self { threads, processes, .. } = *self;
            let means = Means { threads, most_bytes, watch, processes, ..Means::ONE_THREAD };
            compute(&program, parameters, self.noise, &means, each)?
        };
        let Some(computed) = computed else { return Ok(None) };
        let Computed { outcome, memory_bytes, threads, parts: partitions, network, crossing } =
            computed;
        let implicit::ProgramFinished { makespan, last_rank, events, messages, .. } = outcome;
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
            finish: self.wanted.finish.then(|| self.of_all(finish)),
            method: Method::Computed { threads, partitions },
            network,
            crossing,
            ..Outcome::default()
        }))
    }
}
