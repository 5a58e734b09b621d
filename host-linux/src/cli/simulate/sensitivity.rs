//! How the makespan depends on the parameters, as text and JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::explanation::nanos;
use crate::sensitivity::{Analysis, Sensitivity, Tolerance, Units};
use crate::simulation::ParameterSets;
use crate::timeline::causes::Causes;

/// What `--sensitivity` adds.
#[derive(Serialize)]
pub(super) struct Sensitivities {
    sensitivity: Vec<SensitivityDocument>,
    latency_tolerance: Vec<ToleranceDocument>,
    #[serde(skip)]
    found: Vec<Sensitivity>,
}

#[derive(Serialize)]
struct SensitivityDocument {
    parameter: &'static str,
    first_bytes: u64,
    /// Of nearness; one network has the level 0 alone.
    level: u32,
    /// Seconds, or seconds per byte, as `low` and `high`.
    value: f64,
    slope: u64,
    low: f64,
    /// Null where there is no end.
    high: Option<f64>,
}

#[derive(Serialize)]
struct ToleranceDocument {
    growth_percent: u32,
    /// By how much L may grow; null where the makespan does not depend on it.
    latency_s: Option<f64>,
    #[serde(skip)]
    latency_ps: Option<u64>,
    order_stays: bool,
}

impl SensitivityDocument {
    fn new(found: &Sensitivity) -> Self {
        Self {
            parameter: found.parameter.symbol(),
            first_bytes: found.first_bytes,
            level: 0,
            value: found.value.seconds(),
            slope: found.slope,
            low: found.low.seconds(),
            high: found.high.map(Units::seconds),
        }
    }
}

impl ToleranceDocument {
    fn new(found: &Tolerance) -> Self {
        Self {
            growth_percent: found.percent,
            latency_s: found.latency.map(loggap_core::units::Picos::seconds),
            latency_ps: found.latency.map(|latency| latency.0),
            order_stays: found.proved,
        }
    }
}

impl Sensitivities {
    /// Of a run with these parameter sets.
    pub(super) fn of(causes: &Causes, sets: &ParameterSets) -> Self {
        let analysis = Analysis::new(causes, &sets.protocols, &sets.receive);
        let found = analysis.sensitivities();
        let tolerances = analysis.tolerances();
        Self {
            sensitivity: found.iter().map(SensitivityDocument::new).collect(),
            latency_tolerance: tolerances.iter().map(ToleranceDocument::new).collect(),
            found,
        }
    }

    pub(super) fn found(&self) -> &[Sensitivity] {
        &self.found
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "# by how much the makespan grows with each parameter, and from where to where it does"
        )?;
        writeln!(
            out,
            "#  parameter first[B]        slope        value[ns]          from[ns]            to[ns]"
        )?;
        for found in &self.found {
            let high = found.high.map_or_else(|| "-".to_owned(), Units::nanos);
            writeln!(
                out,
                "{:>12} {:>8} {:>12} {:>16} {:>17} {high:>17}",
                label(found),
                found.first_bytes,
                found.slope,
                found.value.nanos(),
                found.low.nanos(),
            )?;
        }
        writeln!(out, "# L may grow until the makespan has grown\n#   by[%]  growth of L[ns]")?;
        for tolerance in &self.latency_tolerance {
            let latency = tolerance.latency_ps.map_or_else(|| "-".to_owned(), nanos);
            let note = if tolerance.order_stays || tolerance.latency_ps.is_none() {
                ""
            } else {
                "  if messages still meet in the present order"
            };
            writeln!(out, "{:>9} {latency:>16}{note}", tolerance.growth_percent)?;
        }
        Ok(())
    }
}

fn label(found: &Sensitivity) -> String {
    let unit = if found.parameter.is_per_byte() { " (per B)" } else { "" };
    format!("{}{unit}", found.parameter.symbol())
}
