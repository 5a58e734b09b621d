//! How the makespan depends on the parameters, as text and JSON.

use std::io::{self, Write};

use loggap_core::units::Picos;
use serde::Serialize;

use super::explanation::nanos;
use crate::cli::CliError;
use crate::sensitivity::{
    Analysis, Differences, Runs, Sensitivity, Tolerance, Units, tolerances_found_by_runs,
};
use crate::simulation::ParameterSets;
use crate::timeline::causes::Causes;

/// How slopes were found.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Method {
    /// From the causes of events; intervals are proved.
    Causes,
    /// By runs at other values, which is all that is known of the intervals.
    Differences,
}

/// What `--sensitivity` adds.
#[derive(Serialize)]
pub(super) struct Sensitivities {
    sensitivity_method: Method,
    sensitivity: Vec<SensitivityDocument>,
    latency_tolerance: Vec<ToleranceDocument>,
    #[serde(skip)]
    levels: usize,
    #[serde(skip)]
    found: Vec<Sensitivity>,
}

#[derive(Serialize)]
struct SensitivityDocument {
    parameter: &'static str,
    first_bytes: u64,
    /// Of nearness, the nearest being 0.
    level: usize,
    /// Seconds, or seconds per byte, as `low` and `high`.
    value: f64,
    slope: u64,
    slope_error: u64,
    low: f64,
    /// Null where there is no end.
    high: Option<f64>,
}

#[derive(Serialize)]
struct ToleranceDocument {
    growth_percent: u32,
    /// By how much L may grow; null where the makespan does not depend on it.
    latency_s: Option<f64>,
    /// Whether that is proved, as the order of events stays; otherwise runs found it.
    order_stays: bool,
    /// Of the growths that were tried, the least with which the makespan grows by more.
    exceeded_at_s: Option<f64>,
    #[serde(skip)]
    found: Tolerance,
}

impl SensitivityDocument {
    fn new(found: &Sensitivity) -> Self {
        Self {
            parameter: found.parameter.symbol(),
            first_bytes: found.first_bytes,
            level: found.level,
            value: found.value.seconds(),
            slope: found.slope,
            slope_error: found.slope_error,
            low: found.low.seconds(),
            high: found.high.map(Units::seconds),
        }
    }
}

impl ToleranceDocument {
    fn new(found: &Tolerance) -> Self {
        Self {
            growth_percent: found.percent,
            latency_s: found.latency.map(Picos::seconds),
            order_stays: found.proved,
            exceeded_at_s: found.exceeded.map(Picos::seconds),
            found: *found,
        }
    }
}

impl Sensitivities {
    /// Of a run with these parameter sets that took `makespan`. Tolerances that cannot
    /// be proved are found by further `runs`.
    ///
    /// # Errors
    ///
    /// Those of the runs.
    pub(super) fn of(
        causes: &Causes,
        makespan: Picos,
        sets: &ParameterSets,
        runs: &Runs<'_>,
    ) -> Result<Self, CliError> {
        let analysis = Analysis::new(causes, sets)?;
        let (sensitivities, estimates) = (analysis.sensitivities(), analysis.tolerances());
        drop(analysis);
        let tolerances = tolerances_found_by_runs(makespan, &estimates, |growths| {
            runs.with_latencies(sets, growths)
        })?;
        Ok(Self::new(Method::Causes, sets, sensitivities, &tolerances))
    }

    /// By runs with other parameters.
    pub(super) fn by_differences(differences: Differences, sets: &ParameterSets) -> Self {
        let Differences { sensitivities, tolerances } = differences;
        Self::new(Method::Differences, sets, sensitivities, &tolerances)
    }

    fn new(
        method: Method,
        sets: &ParameterSets,
        found: Vec<Sensitivity>,
        tolerances: &[Tolerance],
    ) -> Self {
        Self {
            sensitivity_method: method,
            sensitivity: found.iter().map(SensitivityDocument::new).collect(),
            latency_tolerance: tolerances.iter().map(ToleranceDocument::new).collect(),
            levels: sets.levels.len(),
            found,
        }
    }

    pub(super) fn found(&self) -> &[Sensitivity] {
        &self.found
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let until = match self.sensitivity_method {
            Method::Causes => "from where to where it does",
            Method::Differences => "between which of the values that were tried it does",
        };
        writeln!(out, "# by how much the makespan grows with each parameter, and {until}")?;
        let level = if self.levels > 0 { " level" } else { "" };
        writeln!(
            out,
            "#  parameter{level} first[B]        slope        value[ns]          from[ns]            to[ns]"
        )?;
        for found in &self.found {
            let slope = match found.slope_error {
                0 => found.slope.to_string(),
                error => format!("{}±{error}", found.slope),
            };
            let high = found.high.map_or_else(|| "-".to_owned(), Units::nanos);
            let level = match self.levels {
                0 => String::new(),
                _ => format!(" {:>5}", found.level),
            };
            writeln!(
                out,
                "{:>12}{level} {:>8} {slope:>12} {:>16} {:>17} {high:>17}",
                label(found),
                found.first_bytes,
                found.value.nanos(),
                found.low.nanos(),
            )?;
        }
        writeln!(out, "# L may grow until the makespan has grown\n#   by[%]  growth of L[ns]")?;
        for ToleranceDocument { found, .. } in &self.latency_tolerance {
            let latency = found.latency.map_or_else(|| "-".to_owned(), |Picos(ps)| nanos(ps));
            write!(out, "{:>9} {latency:>16}", found.percent)?;
            if let Some(Picos(exceeded)) = found.exceeded {
                write!(out, "  found by runs; with {} it has grown by more", nanos(exceeded))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

fn label(found: &Sensitivity) -> String {
    let unit = if found.parameter.is_per_byte() { " (per B)" } else { "" };
    format!("{}{unit}", found.parameter.symbol())
}
