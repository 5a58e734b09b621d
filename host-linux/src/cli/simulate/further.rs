//! Further runs with other parameters, after the run with the given ones.

use super::Args;
use super::monte_carlo::MonteCarlo;
use super::report::Report;
use super::sensitivity::Sensitivities;
use super::sweep::SweepJob;
use crate::sensitivity::{Analysis, Runs, Tolerance, differences, runs as sensitivity_runs};
use crate::simulation::{Outcome, ParameterSets, Plan, RunError, Source};
use crate::terminal::{CliError, Console, Failures, Interrupt, RunsLine};

/// Common inputs of further runs.
pub(super) struct Further<'a> {
    pub(super) args: &'a Args,
    pub(super) sets: &'a ParameterSets,
    pub(super) source: &'a Source,
    pub(super) plan: Plan<'a>,
    /// Outcome of the run with the given parameters.
    pub(super) outcome: &'a Outcome,
    pub(super) interrupt: &'a Interrupt,
}

impl Further<'_> {
    /// Sensitivities of the parameters that `sweep` distinguishes: from the causes of events where
    /// these prove the range of validity, otherwise by further runs. Ctrl-C stops the runs; `None`
    /// if nothing was found until then.
    pub(super) fn sensitivities(
        &self,
        sweep: Option<&SweepJob>,
        console: &Console,
    ) -> Result<Option<Sensitivities>, CliError> {
        self.interrupt.listen();
        let Self { source, plan, outcome, .. } = self;
        let sets = &sweep.map_or_else(|| self.sets.clone(), SweepJob::given);
        let causes = outcome.causes.as_ref().filter(|_| outcome.network.is_none());
        let analysis =
            causes.map(|causes| Analysis::new(causes, sets, self.interrupt.flag())).transpose()?;
        let analysis = analysis.filter(Analysis::proves);
        let most = if analysis.is_some() { Tolerance::MOST_RUNS } else { sensitivity_runs(sets) };
        let line = RunsLine::new(console, most);
        let runs = Runs { source, plan, note: &|| line.advance() };
        if let Some(analysis) = analysis {
            return Sensitivities::of(analysis, outcome.finished.makespan, sets, &runs).map(Some);
        }
        let messages = outcome.finished.events.saturating_sub(outcome.ops);
        let rounded = outcome.network.as_ref().map_or(messages, |network| network.flows);
        match differences(&runs, sets, rounded) {
            Ok(found) => {
                let makespan = outcome.finished.makespan;
                Ok(Some(Sensitivities::by_differences(found, makespan, sets)))
            }
            Err(RunError::Interrupted) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds draws and sweeps to `report`. Ctrl-C stops them and keeps the completed runs.
    pub(super) fn run(
        &self,
        mut monte_carlo: Option<MonteCarlo>,
        sweep: Option<SweepJob>,
        report: &mut Report,
        failures: &mut Failures,
        console: &mut Console,
    ) {
        if monte_carlo.is_some() || sweep.is_some() {
            self.interrupt.listen();
        }
        if let Some(monte_carlo) = &mut monte_carlo
            && let Some(drawn) = monte_carlo.run(self, failures, console)
        {
            report.add_monte_carlo(drawn);
        }
        if let Some(sweep) = sweep {
            let swept = sweep.run(self, report.sensitivities(), monte_carlo.as_ref(), console);
            if let Some(mut swept) = failures.add(swept) {
                swept.write_files(self.args, failures);
                report.add_sweep(swept.report);
            }
        }
    }
}
