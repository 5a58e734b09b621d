//! Runs with other parameters, after one as given.

use loggap_core::sim::network::Taper;

use super::Args;
use super::monte_carlo::MonteCarlo;
use super::report::Report;
use super::sensitivity::Sensitivities;
use super::sweep::SweepJob;
use crate::cli::failures::Failures;
use crate::cli::runs_progress::RunsLine;
use crate::cli::{CliError, Console, Interrupt};
use crate::sensitivity::{Runs, Tolerance, differences, runs as sensitivity_runs};
use crate::simulation::{Outcome, ParameterSets, Plan, Source, least_taper};

/// What further runs begin with.
pub(super) struct Further<'a> {
    pub(super) args: &'a Args,
    pub(super) sets: &'a ParameterSets,
    pub(super) source: &'a Source,
    pub(super) plan: Plan<'a>,
    /// Of the run as given.
    pub(super) outcome: &'a Outcome,
    pub(super) interrupt: &'a Interrupt,
}

impl Further<'_> {
    /// From which taper on the links of a network would decide, where none is.
    pub(super) fn taper(&self) -> Result<Option<Taper>, CliError> {
        let Self { sets, source, plan, outcome, .. } = *self;
        if plan.network.is_some() || !sets.levels.is_empty() {
            return Ok(None);
        }
        let Outcome { ranks, ops, finished, .. } = outcome;
        let taper = least_taper(source, sets.parameters()?, *ranks, *ops, finished.makespan);
        taper.map_err(CliError::usage)
    }

    /// From the causes of events, or without them by further runs; of the parameters that
    /// `sweep` tells apart.
    pub(super) fn sensitivities(
        &self,
        sweep: Option<&SweepJob>,
        console: &Console,
    ) -> Result<Sensitivities, CliError> {
        let Self { source, plan, outcome, .. } = self;
        let sets = &sweep.map_or_else(|| self.sets.clone(), SweepJob::given);
        let causes = outcome.causes.as_ref().filter(|_| outcome.network.is_none());
        let most = if causes.is_some() { Tolerance::MOST_RUNS } else { sensitivity_runs(sets) };
        let line = RunsLine::new(console, most);
        let runs = Runs { source, plan, note: &|| line.advance() };
        if let Some(causes) = causes {
            return Sensitivities::of(causes, outcome.finished.makespan, sets, &runs);
        }
        let flows = outcome.network.as_ref().map_or(0, |network| network.flows);
        Ok(Sensitivities::by_differences(differences(&runs, sets, flows)?, sets))
    }

    /// Adds draws and sweeps to `report`. From here on Ctrl-C leaves the runs that are done.
    pub(super) fn run(
        &self,
        monte_carlo: Option<MonteCarlo>,
        sweep: Option<SweepJob>,
        report: &mut Report,
        failures: &mut Failures,
        console: &mut Console,
    ) {
        if monte_carlo.is_some() || sweep.is_some() {
            self.interrupt.listen();
        }
        if let Some(monte_carlo) = monte_carlo
            && let Some(drawn) = monte_carlo.run(self, failures, console)
        {
            report.add_monte_carlo(drawn);
        }
        if let Some(sweep) = sweep {
            let swept = sweep.run(self, report.sensitivities(), console);
            if let Some(mut swept) = failures.add(swept) {
                swept.write_files(self.args, failures);
                report.add_sweep(swept.report);
            }
        }
    }
}
