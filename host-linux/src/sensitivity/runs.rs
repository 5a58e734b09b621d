//! Further runs of a schedule with other parameters.

use loggap_core::noise::Phases;
use loggap_core::units::Picos;

use crate::simulation::{Ended, ParameterSets, Plan, Point, RunError, Source, run_each_point};

/// Settings common to further runs.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "a function has nothing to show")]
pub struct Runs<'a> {
    /// The schedule.
    pub source: &'a Source,
    /// How to simulate.
    pub plan: &'a Plan<'a>,
    /// Called after each run.
    pub note: &'a (dyn Fn() + Sync),
}

impl Runs<'_> {
    /// Results of runs with each of the parameter sets; [`RunError::Interrupted`] if some were not
    /// run.
    pub(super) fn of(&self, all: &[ParameterSets]) -> Result<Vec<Ended>, RunError> {
        let point = |at: usize| Point {
            sets: all.get(at).cloned().unwrap_or_default(),
            phases: Phases::Together { seed: 0 },
        };
        let ended = run_each_point(self.source, all.len(), &point, self.plan, self.note)?;
        if ended.iter().any(|ended| matches!(ended, Err(RunError::Interrupted))) {
            return Err(RunError::Interrupted);
        }
        Ok(ended)
    }

    /// Makespans with all latencies of `sets` increased by each of `growths`; `None` where the
    /// schedule does not complete.
    ///
    /// # Errors
    ///
    /// [`RunError`] that does not concern a single run; [`RunError::Interrupted`] if some were not
    /// run.
    pub fn with_latencies(
        &self,
        sets: &ParameterSets,
        growths: &[Picos],
    ) -> Result<Vec<Option<Picos>>, RunError> {
        let with = |growth: &Picos| {
            let mut grown = sets.clone();
            for protocol in &mut grown.protocols {
                let latency = &mut protocol.parameters.latency;
                *latency = Picos(latency.0.saturating_add(growth.0));
            }
            grown
        };
        let all: Vec<_> = growths.iter().map(with).collect();
        let makespan = |ended: Ended| ended.ok().map(|completed| completed.makespan);
        Ok(self.of(&all)?.into_iter().map(makespan).collect())
    }
}
