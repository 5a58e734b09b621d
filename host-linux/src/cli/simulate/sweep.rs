//! `--sweep`: the makespan over ranges of parameters.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use loggap_core::units::Picos;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::Args;
use super::explanation::nanos;
use super::sensitivity::Sensitivities;
use crate::cli::runs_progress::RunsLine;
use crate::cli::{CliError, Console, parse};
use crate::output::PendingFile;
use crate::simulation::{ParameterSets, Plan, Point, Source, run_points};
use crate::study::sweep::{Axis, Form, MOST_AXES, Spacing, Sweep, Tangent, chart};

/// The makespan over ranges of parameters.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Sweep")]
pub(super) struct SweepArgs {
    /// Simulate once more at each of POINTS values from FROM to TO of a
    /// parameter, and print the makespans.
    ///
    /// PARAM is L, o, g, G, O, one end's o_s, o_r, O_s, O_r, or S. Values are
    /// written like 800ns, 1.5us, 80ps/B or, for S, 64K, without a unit in ns;
    /// or all as factors of what is given, 0.5x:2x, as they have to be for
    /// profiles and presets of several ranges of sizes. With :log behind POINTS
    /// values are apart by equal factors. Several sweeps make a grid, of at most
    /// a million points.
    #[arg(long, value_name = "PARAM=FROM:TO:POINTS", value_parser = parse::axis,
          conflicts_with_all = super::ONE_RUN, conflicts_with = "monte_carlo")]
    pub(super) sweep: Vec<Axis>,

    /// Write the points of the sweeps to FILE, a row each.
    #[arg(long, value_name = "FILE.csv", requires = "sweep")]
    sweep_csv: Option<PathBuf>,

    /// Draw the makespan over the first sweep, with a curve for each value of
    /// the second; with --sensitivity and one sweep also its tangent at the
    /// given parameters.
    #[arg(long, value_name = "FILE.svg", requires = "sweep")]
    sweep_plot: Option<PathBuf>,
}

/// A sweep to run, and files that are open for it.
pub(super) struct SweepJob {
    sweep: Sweep,
    csv: Option<PendingFile>,
    plot: Option<PendingFile>,
}

/// What `--sweep` adds.
#[derive(Serialize)]
pub(super) struct SweepReport {
    parameters: Vec<AxisDocument>,
    points: Points,
}

/// A swept parameter.
#[derive(Serialize)]
struct AxisDocument {
    parameter: &'static str,
    /// The name of its value in each point.
    key: String,
    points: u32,
    spacing: &'static str,
    /// Whether values are factors of what was given.
    factors: bool,
}

/// All points, in the order of the grid.
struct Points {
    sweep: Sweep,
    makespans: Vec<Picos>,
    tangent: Option<Tangent>,
}

impl AxisDocument {
    fn new(axis: &Axis) -> Self {
        Self {
            parameter: axis.swept.symbol(),
            key: axis.key(),
            points: axis.span().points,
            spacing: match axis.span().spacing {
                Spacing::Linear => "linear",
                Spacing::Logarithmic => "logarithmic",
            },
            factors: axis.form == Form::Factor,
        }
    }
}

impl SweepArgs {
    /// What is to be swept around `given`, with files opened before the work,
    /// so that a bad path is found early; `None` without a sweep.
    pub(super) fn open(&self, given: &ParameterSets) -> Result<Option<SweepJob>, CliError> {
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
        let open = |path: &Option<PathBuf>| path.as_deref().map(PendingFile::create).transpose();
        let csv = open(&self.sweep_csv).map_err(CliError::failed)?;
        let plot = open(&self.sweep_plot).map_err(CliError::failed)?;
        Ok(Some(SweepJob { sweep, csv, plot }))
    }
}

impl SweepJob {
    /// The files while they are not complete.
    pub(super) fn temporaries(&self) -> impl Iterator<Item = PathBuf> {
        let files = self.csv.iter().chain(&self.plot);
        files.filter_map(PendingFile::temporary).map(Path::to_owned)
    }

    /// The parameters whose sensitivities belong to the sweep.
    pub(super) fn given(&self) -> ParameterSets {
        self.sweep.given()
    }

    /// Runs all points, after one run as given that took `makespan`, and writes
    /// the files.
    pub(super) fn run(
        self,
        args: &Args,
        (source, plan): (&Source, &Plan<'_>),
        (makespan, sensitivities): (Picos, Option<&Sensitivities>),
        console: &mut Console,
    ) -> Result<SweepReport, CliError> {
        let Self { sweep, csv, plot } = self;
        let phases = args.noise.phases(args.pattern.seed);
        let line = RunsLine::new(console, sweep.count() as u64);
        let point = |at: usize| Point { sets: sweep.sets(at), phases };
        let runs = (sweep.count(), &point as &(dyn Fn(usize) -> Point + Sync));
        let runs = run_points(source, runs, plan, &|| line.advance())?;
        drop(line);
        let tangent =
            sensitivities.and_then(|sensitivities| sweep.tangent(sensitivities.found(), makespan));
        if sensitivities.is_some() && tangent.is_none() && plot.is_some() {
            console.note(
                "note: no tangent is drawn; that takes one sweep of L, o, g, G or O, one range of \
                 sizes, and a sensitivity that is known",
            );
        }
        let parameters = sweep.axes().iter().map(AxisDocument::new).collect();
        let makespans = runs.iter().map(|run| run.makespan).collect();
        let points = Points { sweep, makespans, tangent };
        if let Some(csv) = csv {
            csv.commit(|out| points.write_csv(out)).map_err(CliError::failed)?;
        }
        let drawn = || {
            let schedule = args.pattern.schedule(args.input.as_deref());
            chart(&points.sweep, &points.makespans, points.tangent.as_ref(), &schedule)
        };
        if let Some((plot, chart)) = plot.and_then(|plot| Some((plot, drawn()?))) {
            plot.commit(|out| chart.write(1, out)).map_err(CliError::failed)?;
        }
        Ok(SweepReport { parameters, points })
    }
}

impl Points {
    fn rows(&self) -> impl ExactSizeIterator<Item = (usize, &Picos)> {
        self.makespans.iter().enumerate()
    }

    fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        let axes = self.sweep.axes();
        let makespan = ["makespan_s", "makespan_ps"].map(str::to_owned);
        writer.write_record(axes.iter().map(Axis::key).chain(makespan))?;
        for (at, makespan) in self.rows() {
            let values = axes.iter().zip(self.sweep.at(at));
            let values = values.map(|(axis, raw)| axis.reading(raw).to_string());
            let makespan = [makespan.seconds().to_string(), makespan.0.to_string()];
            writer.write_record(values.chain(makespan))?;
        }
        writer.flush()
    }
}

impl Serialize for Points {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut points = serializer.serialize_seq(Some(self.makespans.len()))?;
        for (at, &makespan) in self.rows() {
            points.serialize_element(&PointDocument { sweep: &self.sweep, at, makespan })?;
        }
        points.end()
    }
}

/// One point.
struct PointDocument<'a> {
    sweep: &'a Sweep,
    at: usize,
    makespan: Picos,
}

impl Serialize for PointDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut point = serializer.serialize_map(None)?;
        for (axis, raw) in self.sweep.axes().iter().zip(self.sweep.at(self.at)) {
            point.serialize_entry(&axis.key(), &axis.reading(raw))?;
        }
        point.serialize_entry("makespan_s", &self.makespan.seconds())?;
        point.serialize_entry("makespan_ps", &self.makespan.0)?;
        point.end()
    }
}

impl SweepReport {
    /// The most rows of a table; of more points some are left out.
    const MOST_ROWS: usize = 40;

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Points { sweep, makespans, tangent } = &self.points;
        let symbols: Vec<&str> = self.parameters.iter().map(|axis| axis.parameter).collect();
        write!(out, "# makespan over {}, {} points", symbols.join(" and "), sweep.count())?;
        if tangent.is_some() {
            write!(out, "; slope: where it is proved to be that of the given parameters")?;
        }
        write!(out, "\n#")?;
        for (index, axis) in sweep.axes().iter().enumerate() {
            let head = format!("{}[{}]", axis.swept.symbol(), axis.unit());
            let width = if index == 0 { 15 } else { 16 };
            write!(out, "{head:>width$} ")?;
        }
        let slope = if tangent.is_some() { "        slope" } else { "" };
        writeln!(out, "{:>16}{slope}", "makespan[ns]")?;
        let rows = makespans.len().min(Self::MOST_ROWS);
        for row in 0..rows {
            // Both ends, and the others evenly between them.
            let at = row * (makespans.len() - 1) / (rows - 1).max(1);
            for (axis, raw) in sweep.axes().iter().zip(sweep.at(at)) {
                write!(out, "{:>16} ", axis.text(raw))?;
            }
            let makespan = makespans.get(at).copied().unwrap_or_default();
            write!(out, "{:>16}", nanos(makespan.0))?;
            if let Some(tangent) = tangent {
                let holds = sweep.at(at).all(|raw| tangent.holds(raw));
                let slope = if holds { tangent.slope().to_string() } else { "-".to_owned() };
                write!(out, " {slope:>12}")?;
            }
            writeln!(out)?;
        }
        if rows < makespans.len() {
            writeln!(out, "# {rows} of {} points; all: -J or --sweep-csv FILE", makespans.len())?;
        }
        Ok(())
    }
}
