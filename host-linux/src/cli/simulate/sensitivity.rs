//! Sensitivities of the makespan, as text and JSON.

use std::io::{self, Write};

use loggap_core::units::Picos;
use serde::Serialize;

use crate::cli::digits::Digits;
use crate::output::{Fields, number};
use crate::sensitivity::{
    Analysis, Differences, Runs, Sensitivity, Tolerance, Units, tolerances_found_by_runs,
};
use crate::simulation::{ParameterSets, RunError};
use crate::terminal::CliError;

/// Method that found the slopes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Method {
    /// From the causes of events; intervals are proved.
    Causes,
    /// From runs at other values; intervals only cover these values.
    Differences,
}

/// Part of the report for `--sensitivity`.
#[derive(Serialize)]
pub(super) struct Sensitivities {
    sensitivity_method: Method,
    sensitivity: Vec<Fields>,
    latency_tolerance: Vec<Tolerance>,
    #[serde(skip)]
    levels: usize,
    /// Makespan of the run with the given parameters.
    #[serde(skip)]
    makespan: Picos,
    /// True if tolerances are missing because their runs were stopped.
    #[serde(skip)]
    is_interrupted: bool,
    #[serde(skip)]
    found: Vec<Sensitivity>,
}

/// Fields of a sensitivity: values in seconds, or seconds per byte; nothing is known of the slope if
/// it differs on either side of the value, and `high` is null if unbounded.
fn fields(found: &Sensitivity, makespan: Picos) -> Fields {
    let known = !is_unknown(found);
    Fields(vec![
        ("parameter", found.parameter.symbol().into()),
        ("first_bytes", found.first_bytes.into()),
        ("level", found.level.into()),
        ("value", found.value.seconds().into()),
        ("slope", known.then_some(found.slope).into()),
        ("slope_error", known.then_some(found.slope_error).into()),
        ("makespan_share", share(found, makespan).into()),
        ("low", found.low.seconds().into()),
        ("high", found.high.map(Units::seconds).into()),
    ])
}

impl Sensitivities {
    /// Sensitivities of a run with these parameter sets that took `makespan`. Tolerances that
    /// cannot be proved are found by further `runs`; they are missing if Ctrl-C stopped these.
    ///
    /// # Errors
    ///
    /// Errors of the runs.
    pub(super) fn of(
        analysis: Analysis<'_>,
        makespan: Picos,
        sets: &ParameterSets,
        runs: &Runs<'_>,
    ) -> Result<Self, CliError> {
        let (found, mut estimates) = (analysis.sensitivities(), analysis.tolerances());
        drop(analysis);
        let by_runs = tolerances_found_by_runs(makespan, &estimates, |growths| {
            runs.with_latencies(sets, growths)
        });
        let is_interrupted = matches!(by_runs, Err(RunError::Interrupted));
        let tolerances = if is_interrupted {
            estimates.retain(|estimate| estimate.proved);
            estimates
        } else {
            by_runs?
        };
        let whole = Self::new(
            Method::Causes,
            makespan,
            sets,
            Differences { sensitivities: found, tolerances },
        );
        Ok(Self { is_interrupted, ..whole })
    }

    /// Sensitivities found by runs with other parameters.
    pub(super) fn by_differences(
        differences: Differences,
        makespan: Picos,
        sets: &ParameterSets,
    ) -> Self {
        Self::new(Method::Differences, makespan, sets, differences)
    }

    fn new(
        method: Method,
        makespan: Picos,
        sets: &ParameterSets,
        Differences { sensitivities: found, tolerances }: Differences,
    ) -> Self {
        Self {
            sensitivity_method: method,
            sensitivity: found.iter().map(|found| fields(found, makespan)).collect(),
            latency_tolerance: tolerances,
            levels: sets.levels.len(),
            makespan,
            is_interrupted: false,
            found,
        }
    }

    pub(super) fn found(&self) -> &[Sensitivity] {
        &self.found
    }

    /// Why tolerances are missing, if any are.
    pub(super) fn interrupted(&self) -> Option<String> {
        self.is_interrupted
            .then(|| "interrupted before all latency tolerances were found".to_owned())
    }

    /// Meaning of the slope at other values of a parameter, for headings.
    pub(super) const fn slopes_told(&self) -> &'static str {
        match self.sensitivity_method {
            Method::Causes => "where it is proved to be that of the given parameters",
            Method::Differences => {
                "of the given parameters by differences of runs, between values that were tried"
            }
        }
    }

    pub(super) fn write(&self, out: &mut dyn Write, digits: Digits) -> io::Result<()> {
        writeln!(
            out,
            "# slope = d(makespan)/d(parameter), valid in [from, to]{}",
            match self.sensitivity_method {
                Method::Causes => "",
                Method::Differences => ", the values tried by runs",
            }
        )?;
        let level = if self.levels > 0 { " level" } else { "" };
        let (width, share) = widths(digits);
        writeln!(
            out,
            "#  parameter{level} first[B]        slope {:>width$} {:>end$} {:>end$} {:>4} {:>share$}",
            "value",
            "from",
            "to",
            if digits == Digits::Exact { "unit" } else { "" },
            if digits == Digits::Exact { "share of makespan[%]" } else { "share[%]" },
            end = width + 1,
        )?;
        for found in &self.found {
            self.write_row(out, digits, found)?;
        }
        writeln!(
            out,
            "# L may grow until the makespan has grown\n#   by[%] {:>16}",
            digits.head("growth of L")
        )?;
        for found in &self.latency_tolerance {
            let latency = found.latency.map_or_else(|| "-".to_owned(), |Picos(ps)| digits.cell(ps));
            write!(out, "{:>9} {latency:>16}", found.percent)?;
            if let Some(Picos(exceeded)) = found.exceeded {
                write!(
                    out,
                    "  found by runs; with {} it has grown by more",
                    digits.time(exceeded)
                )?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn write_row(
        &self,
        out: &mut dyn Write,
        digits: Digits,
        found: &Sensitivity,
    ) -> io::Result<()> {
        let units =
            if found.parameter.is_per_byte() { number::TIME_PER_BYTE } else { number::TIME };
        // Rounded values include their units.
        let unit = match (digits, found.parameter.is_per_byte()) {
            (Digits::Rounded, _) => "",
            (Digits::Exact, true) => "ns/B",
            (Digits::Exact, false) => "ns",
        };
        let unknown = || "?".to_owned();
        let [slope, low, high] = if is_unknown(found) {
            [unknown(), unknown(), unknown()]
        } else {
            [
                slope_text(found.slope, found.slope_error),
                digits.parameter(found.low, units),
                found.high.map_or_else(|| "-".to_owned(), |high| digits.parameter(high, units)),
            ]
        };
        let share = share(found, self.makespan);
        let share = share.map_or_else(unknown, |share| format!("{:.2}", share * 100.0));
        let (width, share_width) = widths(digits);
        let level = match self.levels {
            0 => String::new(),
            _ => format!(" {:>5}", found.level),
        };
        writeln!(
            out,
            "{:>12}{level} {:>8} {slope:>12} {:>width$} {low:>end$} {high:>end$} {:>4} {share:>share_width$}",
            found.parameter.symbol(),
            found.first_bytes,
            digits.parameter(found.value, units),
            unit,
            end = width + 1,
        )
    }
}

/// Widths of a value and of the share of the makespan, columns.
const fn widths(digits: Digits) -> (usize, usize) {
    match digits {
        Digits::Exact => (16, 20),
        Digits::Rounded => (12, 9),
    }
}

/// Slope with its error.
pub(super) fn slope_text(slope: u64, error: u64) -> String {
    match error {
        0 => slope.to_string(),
        error => format!("{slope}±{error}"),
    }
}

/// True if the slope is unknown on either side of the value.
fn is_unknown(found: &Sensitivity) -> bool {
    found.low == found.value && found.high == Some(found.value)
}

/// Slope times value, as a fraction of `makespan`; `None` if the slope is unknown.
#[allow(clippy::cast_precision_loss, reason = "a share of few digits")]
fn share(found: &Sensitivity, makespan: Picos) -> Option<f64> {
    let known = makespan > Picos::ZERO && !is_unknown(found);
    known.then(|| found.slope as f64 * found.value.seconds() / makespan.seconds())
}
