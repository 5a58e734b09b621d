//! `--sweep`: makespan over ranges of parameters.

use std::io::{self, Write};
use std::path::PathBuf;

use loggap_core::units::Picos;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::Args;
use super::further::Further;
use super::monte_carlo::{MonteCarlo, Spread};
use super::sensitivity::{Sensitivities, slope_text};
use crate::cli::digits::Digits;
use crate::flags::parse;
use crate::output::{Fields, FileError, PendingFile, csv};
use crate::simulation::{Ended, ParameterSets, Point, RunError, run_each_point};
use crate::study::sweep::{Axis, Form, MOST_AXES, Spacing, Sweep, Tangent, chart};
use crate::terminal::{CliError, Console, Failures, NamedFiles, RunsLine, interrupted};

/// Options of sweeps.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Further runs")]
pub(super) struct SweepArgs {
    /// Makespan over a parameter, as L=1us:100us:20.
    ///
    /// PARAM is L, o, g, G, O, S, or one end's o_s, o_r, O_s, O_r. Values are
    /// 800ns, 1.5us, 80ps/B (without a unit in ns) or, for S, 64K; or factors on
    /// the given value, 0.5x:2x, which profiles and presets of several ranges of
    /// sizes need. :log after POINTS spaces values by equal factors. Several
    /// sweeps make a grid of at most a million points.
    #[arg(long, value_name = "PARAM=FROM:TO:POINTS", value_parser = parse::axis,
          conflicts_with_all = super::ONE_RUN)]
    pub(super) sweep: Vec<Axis>,

    /// Write the points of the sweeps as CSV.
    #[arg(long, value_name = "FILE.csv", requires = "sweep")]
    sweep_csv: Option<PathBuf>,

    /// Plot the makespan over the sweep.
    ///
    /// With a curve for each value of a second sweep; with --sensitivity and one
    /// sweep also the tangent at the given parameters; with --monte-carlo where
    /// 90% of the draws fall.
    #[arg(long, value_name = "FILE.svg", requires = "sweep")]
    sweep_plot: Option<PathBuf>,
}

/// A sweep to run, with its files, opened before the work.
pub(super) struct SweepJob {
    sweep: Sweep,
    csv: Option<PendingFile>,
    plot: Option<PendingFile>,
}

/// A completed sweep, with its files to be written.
pub(super) struct Swept {
    pub(super) report: SweepReport,
    csv: Option<PendingFile>,
    plot: Option<PendingFile>,
}

/// Part of the report for `--sweep`.
#[derive(Serialize)]
pub(super) struct SweepReport {
    parameters: Vec<Fields>,
    points: Points,
}

/// All points, in the order of the grid.
struct Points {
    sweep: Sweep,
    /// Results by point; [interrupted](RunError::Interrupted) ones after Ctrl-C.
    ended: Vec<Ended>,
    /// Draws at the points, with --monte-carlo.
    spread: Spread,
    tangent: Option<Tangent>,
}

/// Fields of a swept parameter.
fn fields(axis: &Axis) -> Fields {
    let spacing = match axis.span().spacing {
        Spacing::Linear => "linear",
        Spacing::Logarithmic => "logarithmic",
    };
    Fields(vec![
        ("parameter", axis.swept.symbol().into()),
        // Key of its value in each point.
        ("key", axis.key().into()),
        ("points", axis.span().points.into()),
        ("spacing", spacing.into()),
        // True if values are factors of the given ones.
        ("factors", (axis.form == Form::Factor).into()),
    ])
}

impl SweepArgs {
    /// Adds the files of these options.
    pub(super) fn name_files(&self, files: &mut NamedFiles) {
        files.written("--sweep-csv", self.sweep_csv.as_deref(), &["csv"]);
        files.written("--sweep-plot", self.sweep_plot.as_deref(), &["svg"]);
    }

    /// Creates the sweep around `given` and opens its files, so that a wrong path is reported
    /// before the work; `None` without a sweep.
    pub(super) fn open(
        &self,
        given: &ParameterSets,
        monte_carlo: Option<&MonteCarlo>,
    ) -> Result<Option<SweepJob>, CliError> {
        if self.sweep.is_empty() {
            return Ok(None);
        }
        if self.sweep_plot.is_some() && self.sweep.len() > MOST_AXES {
            return Err(CliError::usage(format_args!(
                "--sweep-plot draws one or two sweeps, and there are {}; leave some out, or use \
                 --sweep-csv",
                self.sweep.len()
            )));
        }
        let sweep = Sweep::new(self.sweep.clone(), given).map_err(CliError::usage)?;
        monte_carlo.map_or(Ok(()), |draws| draws.check(&sweep))?;
        let open = |path: &Option<PathBuf>| path.as_deref().map(PendingFile::create).transpose();
        let csv = open(&self.sweep_csv).map_err(CliError::failed)?;
        let plot = open(&self.sweep_plot).map_err(CliError::failed)?;
        Ok(Some(SweepJob { sweep, csv, plot }))
    }
}

impl SweepJob {
    /// See [`Sweep::has_hidden_latency`].
    pub(super) fn has_hidden_latency(&self) -> bool {
        self.sweep.has_hidden_latency()
    }

    /// Parameter sets whose sensitivities belong to the sweep.
    pub(super) fn given(&self) -> ParameterSets {
        self.sweep.given()
    }

    /// Runs all points, after the run with the given parameters.
    pub(super) fn run(
        self,
        further: &Further<'_>,
        sensitivities: Option<&Sensitivities>,
        monte_carlo: Option<&MonteCarlo>,
        console: &mut Console,
    ) -> Result<Swept, CliError> {
        let Self { sweep, csv, plot } = self;
        let Further { args, source, plan, outcome, .. } = further;
        let makespan = outcome.finished.makespan;
        let phases = args.noise.phases(args.pattern.seed);
        let line = RunsLine::new(console, sweep.count() as u64);
        let point = |at: usize| Point { sets: sweep.sets(at), phases };
        let ended = run_each_point(source, sweep.count(), &point, plan, &|| line.advance())?;
        drop(line);
        let spread = match monte_carlo {
            Some(draws) => draws.over(&sweep, further, console)?,
            None => Spread::default(),
        };
        let tangent =
            sensitivities.and_then(|sensitivities| sweep.tangent(sensitivities.found(), makespan));
        if sensitivities.is_some() && tangent.is_none() && plot.is_some() {
            console.note(
                "note: no tangent is drawn; that takes one sweep of L, o, g, G or O, one range of \
                 sizes, and a sensitivity that is known",
            );
        }
        let parameters = sweep.axes().iter().map(fields).collect();
        let points = Points { sweep, ended, spread, tangent };
        Ok(Swept { report: SweepReport { parameters, points }, csv, plot })
    }
}

impl Swept {
    /// Writes the files, and records points without a makespan as failures.
    pub(super) fn write_files(&mut self, args: &Args, failures: &mut Failures) {
        let points = &self.report.points;
        let incomplete = if points.interrupted().is_some() { " (incomplete)" } else { "" };
        let schedule = args.schedule() + incomplete;
        let csv = self.csv.take().map(|csv| csv.commit(|out| points.write_csv(out)));
        let plot = self.plot.take().and_then(|plot| points.draw(plot, &schedule));
        for written in [csv, plot].into_iter().flatten() {
            failures.add(written.map_err(CliError::failed));
        }
        failures.add(points.failure().map_or(Ok(()), Err));
        failures.add(self.report.points.spread.failure.take().map_or(Ok(()), Err));
    }
}

impl Points {
    /// Completed points in order, each with its index.
    fn run(&self) -> impl Iterator<Item = (usize, &Ended)> {
        let all = self.ended.iter().enumerate();
        all.filter(|(_, ended)| !matches!(ended, Err(RunError::Interrupted)))
    }

    /// Why points are missing, if any are.
    fn interrupted(&self) -> Option<String> {
        let points = interrupted(self.run().count(), self.ended.len(), "points");
        points.or_else(|| self.spread.interrupted.clone())
    }

    /// Makespan of each point, if it has one.
    fn makespans(&self) -> impl ExactSizeIterator<Item = Option<Picos>> {
        self.ended.iter().map(|ended| ended.as_ref().ok().map(|completed| completed.makespan))
    }

    /// Draws the chart, if it can show this number of axes.
    fn draw(&self, file: PendingFile, schedule: &str) -> Option<Result<(), FileError>> {
        let makespans: Vec<_> = self.makespans().collect();
        let chart =
            chart(&self.sweep, &makespans, &self.spread.points, self.tangent.as_ref(), schedule)?;
        Some(file.commit(|out| chart.write(1, out)))
    }

    /// Keys and values of a point: those of the axes, its makespan and, of what 90% of the draws
    /// give, both ends; null where a run did not complete.
    fn values(&self, at: usize, ended: &Ended) -> Vec<(String, Value)> {
        let axes = self.sweep.axes().iter().zip(self.sweep.at(at));
        let mut values: Vec<_> = axes.map(|(axis, raw)| (axis.key(), axis.reading(raw))).collect();
        let mut add = |[seconds, picos]: [&str; 2], time: Option<Picos>| {
            values.push((seconds.to_owned(), time.map(Picos::seconds).into()));
            values.push((picos.to_owned(), time.map(|time| time.0).into()));
        };
        add(["makespan_s", "makespan_ps"], ended.as_ref().ok().map(|run| run.makespan));
        if let Some(spread) = self.spread.points.get(at) {
            let [low, high] = spread.map_or([None; 2], |ends| ends.map(Some));
            add(["p05_s", "p05_ps"], low);
            add(["p95_s", "p95_ps"], high);
        }
        values
    }

    fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let unknown = Err(RunError::Interrupted);
        let heads = self.values(0, &unknown).into_iter().map(|(key, _)| key);
        let record = |(at, ended): (usize, &Ended)| {
            self.values(at, ended).into_iter().map(|(_, value)| csv::number(&value))
        };
        csv::table(out, heads, self.run().map(record), self.interrupted().as_deref())
    }

    /// Describes a point: `L = 1 ns and S = 50 B`.
    fn named(&self, at: usize) -> String {
        let values = self.sweep.axes().iter().zip(self.sweep.at(at));
        values.map(|(axis, raw)| axis.label(raw)).collect::<Vec<_>>().join(" and ")
    }

    /// Why points have no makespan, if any has none.
    fn failure(&self) -> Option<CliError> {
        let stopped = || self.run().filter(|(_, ended)| ended.is_err());
        let (at, first) = stopped().next()?;
        let count = stopped().count();
        let first = first.as_ref().err()?;
        let others = if count > 1 { ", the first of them" } else { "" };
        Some(CliError::failed(format_args!(
            "{count} of {} points of the sweep did not come to an end{others} at {}: {first}",
            self.sweep.count(),
            self.named(at)
        )))
    }
}

impl Serialize for Points {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut points = serializer.serialize_seq(Some(self.run().count()))?;
        for (at, ended) in self.run() {
            let mut values = self.values(at, ended);
            let error = ended.as_ref().err();
            values.extend(error.map(|error| ("error".to_owned(), error.to_string().into())));
            points.serialize_element(&Fields(values))?;
        }
        points.end()
    }
}

impl SweepReport {
    /// Why points are missing, if any are.
    pub(super) fn interrupted(&self) -> Option<String> {
        self.points.interrupted()
    }

    /// Most rows of a table; further points are left out.
    const MOST_ROWS: usize = 40;

    pub(super) fn write(
        &self,
        out: &mut dyn Write,
        digits: Digits,
        sensitivities: Option<&Sensitivities>,
    ) -> io::Result<()> {
        let Points { sweep, spread, tangent, .. } = &self.points;
        let count = self.points.run().count();
        let last = self.points.run().last().map_or(0, |(at, _)| at);
        let shown = Shown::of(sweep.axes(), last, Self::MOST_ROWS);
        let rows: Vec<_> = self.points.run().filter(|&(at, _)| shown.has(at)).collect();
        let symbols: Vec<&str> = sweep.axes().iter().map(|axis| axis.swept.symbol()).collect();
        write!(out, "# makespan over {}, {count} points", symbols.join(" and "))?;
        if rows.len() < count {
            write!(out, ", of which {} are shown", rows.len())?;
        }
        if tangent.is_some() {
            let told = sensitivities.map_or("", Sensitivities::slopes_told);
            write!(out, "; slope: {told}")?;
        }
        write!(out, "\n#")?;
        for (index, axis) in sweep.axes().iter().enumerate() {
            let head = format!("{}[{}]", axis.swept.symbol(), axis.unit());
            let width = if index == 0 { 15 } else { 16 };
            write!(out, "{head:>width$} ")?;
        }
        let slope = if tangent.is_some() { "        slope" } else { "" };
        write!(out, "{:>16}{slope}", digits.head("makespan"))?;
        if !spread.points.is_empty() {
            write!(out, " {:>16} {:>16}", digits.head("5%"), digits.head("95%"))?;
        }
        writeln!(out)?;
        for &(at, ended) in &rows {
            for (axis, raw) in sweep.axes().iter().zip(sweep.at(at)) {
                write!(out, "{:>16} ", axis.text(raw))?;
            }
            let completed = ended.as_ref().ok();
            let cell = |time: Option<Picos>| {
                time.map_or_else(|| "-".to_owned(), |time| digits.cell(time.0))
            };
            write!(out, "{:>16}", cell(completed.map(|run| run.makespan)))?;
            if let Some(spread) = spread.points.get(at) {
                let [low, high] = spread.map_or([None; 2], |ends| ends.map(Some)).map(cell);
                write!(out, " {low:>16} {high:>16}")?;
            }
            if let Some(tangent) = tangent {
                let holds = completed.is_some() && sweep.at(at).all(|raw| tangent.holds(raw));
                let slope = if holds {
                    slope_text(tangent.slope(), tangent.slope_error())
                } else {
                    "-".to_owned()
                };
                write!(out, " {slope:>12}")?;
            }
            writeln!(out)?;
        }
        if rows.len() < count {
            writeln!(out, "# {} of {count} points; all: -J or --sweep-csv FILE", rows.len())?;
        }
        Ok(())
    }
}

/// Selection of points for a table: a grid of some values of each axis, evenly spaced and with both
/// ends.
#[derive(Debug, Eq, PartialEq)]
struct Shown {
    /// Number of values of each axis.
    points: Vec<usize>,
    /// Number of values shown of each axis.
    shown: Vec<usize>,
}

impl Shown {
    /// At most `most` points of `axes` up to the point `last`, but at least both ends of each axis.
    fn of(axes: &[Axis], last: usize, most: usize) -> Self {
        let mut points: Vec<_> = axes.iter().map(|axis| axis.span().points as usize).collect();
        // Values of the first axis that the interrupted sweep did not reach are left out.
        if let Some((first, others)) = points.split_first_mut() {
            *first = last / others.iter().product::<usize>().max(1) + 1;
        }
        Self::of_counts(points, most)
    }

    /// Removes a value from the axis with most values, the first of several, until the rest fits.
    fn of_counts(points: Vec<usize>, most: usize) -> Self {
        // A single axis never shows more than `most`.
        let mut shown: Vec<usize> = points.iter().map(|&count| count.min(most)).collect();
        while shown.iter().fold(1, |all: usize, &count| all.saturating_mul(count)) > most {
            let longest = shown.iter().copied().max().unwrap_or_default();
            let Some(count) = shown.iter_mut().find(|count| **count == longest && longest > 2)
            else {
                break;
            };
            *count -= 1;
        }
        Self { points, shown }
    }

    /// True if point `at` is shown; the last axis varies fastest.
    fn has(&self, mut at: usize) -> bool {
        self.points.iter().zip(&self.shown).rev().all(|(&points, &shown)| {
            let index = at % points.max(1);
            at /= points.max(1);
            // The first row whose value is not below this one must have exactly this value.
            let (last, steps) = (points.saturating_sub(1), shown.saturating_sub(1).max(1));
            let row = (index * steps).div_ceil(last.max(1));
            row * last / steps == index
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Indices of the values of each axis that a table shows.
    fn values(points: &[usize], most: usize) -> Vec<Vec<usize>> {
        let shown = Shown::of_counts(points.to_vec(), most);
        let mut values = vec![Vec::new(); points.len()];
        let count: usize = points.iter().product();
        let all: Vec<usize> = (0..count).filter(|&at| shown.has(at)).collect();
        for at in &all {
            let mut rest = *at;
            for (axis, points) in points.iter().enumerate().rev() {
                values[axis].push(rest % points);
                rest /= points;
            }
        }
        for axis in &mut values {
            axis.sort_unstable();
            axis.dedup();
        }
        assert_eq!(all.len(), values.iter().map(Vec::len).product::<usize>(), "it is a grid");
        values
    }

    #[test]
    fn what_is_shown_of_a_grid_is_a_grid_with_all_corners() {
        assert_eq!(values(&[7], 40), [vec![0, 1, 2, 3, 4, 5, 6]]);
        assert_eq!(values(&[9], 3), [vec![0, 4, 8]]);
        assert_eq!(values(&[100], 40)[0].len(), 40);
        let of_two = values(&[20, 4], 40);
        assert_eq!(of_two[0], [0, 2, 4, 6, 8, 10, 12, 14, 16, 19]);
        assert_eq!(of_two[1], [0, 1, 2, 3]);
        for points in [&[1000, 1000][..], &[7, 1, 9], &[4, 4, 4], &[39, 2], &[41], &[1]] {
            let values = values(points, 40);
            for (axis, &points) in values.iter().zip(points) {
                assert_eq!((axis[0], axis[axis.len() - 1]), (0, points - 1));
            }
            assert!(values.iter().map(Vec::len).product::<usize>() <= 40, "{values:?}");
        }
    }

    #[test]
    fn of_many_axes_both_ends_are_shown() {
        assert_eq!(values(&[3; 7], 40), vec![vec![0, 2]; 7]);
    }
}
