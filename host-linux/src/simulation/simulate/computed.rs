//! Runs of patterns that need not be stored.

use loggap_core::sim::Finished;
use loggap_core::sim::implicit::{self, PatternProgram};
use loggap_core::units::Picos;

use super::{Driver, Job, Outcome, Stopwatch, Watch};
use crate::simulation::ordered::{NetworkRun, OnNetwork};
use crate::simulation::{
    Computed, LoadError, Means, NetworkPlan, RunError, Source, bytes_needed, compute,
};

impl Job<'_> {
    /// Runs a pattern without storing it; `None` where the pattern has to be
    /// stored, because of what it is or of what is to be known, or to decide
    /// ties.
    pub(super) fn computed(
        &self,
        source: &Source,
        watch: Watch<'_>,
    ) -> Result<Option<Outcome>, RunError> {
        if self.wanted.observed() {
            return Ok(None);
        }
        let Some(program) = source.program(self.settings.receive) else { return Ok(None) };
        let ranks = source.ranks();
        if let Some(plan) = self.network {
            return self.computed_on_network(&program, (ranks, plan), watch);
        }
        let loading = Stopwatch::start();
        let mut finish = Vec::new();
        let listed = if self.wanted.finish { ranks } else { 0 };
        let listed_bytes = u64::from(listed) * size_of::<Picos>() as u64;
        let needed = bytes_needed(&program).saturating_add(listed_bytes);
        if needed > self.most_bytes {
            let error = LoadError::Memory { needed, allowed: self.most_bytes };
            return Err(RunError::Load(error));
        }
        finish.reserve_exact(listed as usize);
        let load = loading.read();
        let running = Stopwatch::start();
        let most_bytes = self.most_bytes - listed_bytes;
        let means = Means { threads: self.threads, most_bytes, watch, ..Means::ONE_THREAD };
        let computed = compute(&program, (self.parameters, self.noise), &means, |rank, time| {
            if rank < listed {
                finish.push(time);
            }
        })?;
        let Some(Computed { outcome, memory_bytes, threads, parts: partitions }) = computed else {
            return Ok(None);
        };
        let implicit::Outcome { makespan, last_rank, events, messages, .. } = outcome;
        Ok(Some(Outcome {
            ranks,
            ops: events - messages,
            memory_bytes: memory_bytes.saturating_add(listed_bytes),
            finished: Finished { makespan, last_rank, events },
            load,
            run: running.read(),
            finish: self.wanted.finish.then_some(finish),
            driver: Driver::Computed { threads, partitions },
            ..Outcome::default()
        }))
    }

    /// The same where messages share links.
    fn computed_on_network(
        &self,
        program: &PatternProgram,
        (ranks, plan): (u32, &NetworkPlan),
        watch: Watch<'_>,
    ) -> Result<Option<Outcome>, RunError> {
        let listed = if self.wanted.finish { ranks } else { 0 };
        let listed_bytes = u64::from(listed) * size_of::<Picos>() as u64;
        // Grows as ranks come: whether there is room is found by the run.
        let mut finish = Vec::new();
        let running = Stopwatch::start();
        let most_bytes = self.most_bytes.saturating_sub(listed_bytes);
        let on_network = OnNetwork { parameters: self.parameters, plan, most_bytes, watch };
        let computed = on_network.compute(program, self.noise, |rank, time| {
            if rank < listed {
                finish.push(time);
            }
        })?;
        let Some(NetworkRun { outcome, network, memory_bytes }) = computed else { return Ok(None) };
        let implicit::Outcome { makespan, last_rank, events, messages, .. } = outcome;
        Ok(Some(Outcome {
            ranks,
            ops: events - messages,
            memory_bytes: memory_bytes.saturating_add(listed_bytes),
            finished: Finished { makespan, last_rank, events },
            run: running.read(),
            finish: self.wanted.finish.then_some(finish),
            driver: Driver::COMPUTED,
            network: Some(network),
            ..Outcome::default()
        }))
    }
}
