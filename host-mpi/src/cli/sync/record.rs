//! Offsets over time: `sync --record`, and the evaluation of its file.

use std::fs::File;
use std::io::{BufReader, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use loggap::output::number;
use loggap::output::{FileError, PendingFile, Versioned};
use loggap::study::{Axes, Chart, Coordinates, Series};
use loggap::terminal::{CliError, Console, Exit};
use loggap_core::sync::Offset;
use mpi::topology::Communicator as _;
use serde::Serialize;

use super::super::selftest::{PATIENCE_COLUMNS, SPAN_COLUMNS, patience_line, span_line};
use super::super::{Session, create};
use super::{Args, goes_on_after};
use crate::clocks::record::{HEADER, RankRecording, Recording, Row};
use crate::clocks::study::{DriftStudy, Fit, PatienceRow, knee, resampled, undisturbed};
use crate::clocks::{Ends, GlobalClock};
use crate::job::CONTROLLER;
use crate::library;

/// Evaluation of a recording.
#[derive(Debug, Serialize)]
struct Document {
    loggap_version: &'static str,
    file: String,
    ranks: Vec<RankRecord>,
    /// The smallest N worth its pings, for series that end after N pings without a smaller round
    /// trip.
    patience: Option<u32>,
    patience_rows: Vec<PatienceRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<&'static str>,
}

/// Clock of a rank against rank 0's.
#[derive(Debug, Serialize)]
struct RankRecord {
    rank: u32,
    /// First offset.
    offset_s: f64,
    #[serde(flatten)]
    study: DriftStudy,
}

/// Output files besides the recording.
struct Files {
    document: Option<PendingFile>,
    plot: Option<PendingFile>,
}

impl Files {
    fn create(args: &Args) -> Result<Self, FileError> {
        Ok(Self { document: create(args.output.as_ref())?, plot: create(args.plot.as_ref())? })
    }
}

/// Records until the time is over or Ctrl-C, and evaluates. All ranks call this together.
pub(super) fn run(
    args: &Args,
    path: &Path,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    let job = session.job;
    let ranks = usize::try_from(job.size()).unwrap_or(0);
    if ranks < 2 {
        return Err(CliError::usage(
            "offsets take two ranks: mpirun -n 2 loggap-mpi sync --record FILE.csv",
        ));
    }
    let leads = job.leads();
    let opened = leads.then(|| Ok((Files::create(args)?, open(path, ranks)?))).transpose();
    let mut output = session.agreed::<_, CliError>(opened)?;
    let clock = args.clock(args.domains, job);
    let interval = args.interval.max(Duration::from_millis(1));
    let count = args.record_for.map_or(u128::MAX, |time| time.as_nanos() / interval.as_nanos());
    let mut recording = Recording::default();
    #[allow(clippy::disallowed_methods, reason = "when to take the next offset")]
    let started = Instant::now();
    let (mut number, mut goes_on) = (0, true);
    let mut next = Duration::ZERO;
    while goes_on && number <= count {
        goes_on = goes_on_after(next.saturating_sub(started.elapsed()), session);
        if goes_on {
            let rows = rows(&clock, session);
            let file = output.as_mut().map(|(_, file)| file);
            session.agreed(file.map_or(Ok(()), |file| write(file, path, &rows)))?;
            // The clock of rank 0 goes forward.
            rows.iter().for_each(|row| drop(recording.push(row)));
        }
        (number, next) = (number + 1, next.saturating_add(interval));
    }
    let Some((files, _)) = output else { return Ok(Exit::Done) };
    job.sharing().warnings().iter().for_each(|warning| console.warn(warning));
    let incomplete = (!goes_on && args.record_for.is_some()).then_some("interrupted");
    report(args, path, &recording, incomplete, files, console)?;
    Ok(if goes_on { Exit::Done } else { Exit::Interrupted })
}

/// Evaluates the file of --from.
pub(super) fn read(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let Some(path) = &args.from else { return Ok(Exit::Done) };
    let files = Files::create(args)?;
    let refused = |error: &dyn std::fmt::Display| {
        CliError::usage(format_args!("'{}': {error}", path.display()))
    };
    let file = File::open(path).map_err(|error| refused(&error))?;
    let recording = Recording::read(BufReader::new(file)).map_err(|error| refused(&error))?;
    report(args, path, &recording, None, files, console)?;
    Ok(Exit::Done)
}

/// Creates the recording, with its header.
fn open(path: &Path, ranks: usize) -> Result<File, CliError> {
    let head = format!(
        "# loggap-mpi {} sync --record, {}, {ranks} ranks\n{HEADER}\n",
        env!("CARGO_PKG_VERSION"),
        library::version()
    );
    let created = File::create(path).and_then(|mut file| {
        file.write_all(head.as_bytes())?;
        Ok(file)
    });
    created.map_err(|error| {
        CliError::usage(format_args!("cannot write '{}': {error}", path.display()))
    })
}

/// Offsets of all ranks now, at rank 0; none elsewhere.
fn rows(clock: &GlobalClock, session: &Session<'_>) -> Vec<Row> {
    let (job, waiting) = (session.job, session.job.waiting());
    let ends = |rank| Ends { clock, peer: job.control().process_at_rank(rank), waiting };
    if !job.leads() {
        ends(CONTROLLER).answer();
        return Vec::new();
    }
    let row = |rank: i32| {
        let mut ends = ends(rank);
        let Ok(row) = Row::measured(rank.unsigned_abs(), &mut ends);
        ends.end();
        row
    };
    job.others().filter_map(row).collect()
}

/// Writes the lines in one piece and unbuffered: none is lost with the process.
fn write(file: &mut File, path: &Path, rows: &[Row]) -> Result<(), CliError> {
    let lines: String = rows.iter().map(Row::line).collect();
    file.write_all(lines.as_bytes()).map_err(|error| {
        CliError::failed(format_args!("cannot write '{}': {error}", path.display()))
    })
}

fn report(
    args: &Args,
    path: &Path,
    recording: &Recording,
    incomplete: Option<&'static str>,
    files: Files,
    console: &mut Console,
) -> Result<(), CliError> {
    let record = |(&rank, recorded): (&u32, &RankRecording)| RankRecord {
        rank,
        offset_s: recorded.offsets.first().map_or(0.0, |first| first.value.seconds()),
        study: DriftStudy::of(&recorded.offsets),
    };
    let pools: Vec<&RankRecording> = recording.ranks.values().collect();
    let patience_rows = resampled(&pools, args.seed).unwrap_or_default();
    let document = Document {
        loggap_version: env!("CARGO_PKG_VERSION"),
        file: path.display().to_string(),
        ranks: recording.ranks.iter().map(record).collect(),
        patience: knee(&patience_rows),
        patience_rows,
        incomplete,
    };
    if let Some(file) = files.document {
        file.commit_json(&Versioned::new(&document))?;
    }
    if let Some(file) = files.plot {
        file.commit(|out| chart(recording).write(1, out))?;
    }
    Ok(console.report(args.json, &document, |out| out.write_all(text(&document).as_bytes()))?)
}

fn text(document: &Document) -> String {
    let mut text = format!(
        "# {}: clocks minus rank 0's; lo and hi bound the mean drift; left out: \
         round trips above four times the median\n\
         #rank offsets left_out span[s] offset[us] drift[ppm] lo[ppm] hi[ppm] linear_for[s]\n",
        document.file
    );
    for RankRecord { rank, offset_s, study } in &document.ranks {
        let [low, high] =
            [study.drift_ppm_lo, study.drift_ppm_hi].map(|bound| number::decimal(bound, 5));
        text += &format!(
            "{rank:>5} {:>7} {:>8} {:>7.0} {:>10.3} {:>10.5} {low:>9} {high:>9} {:>8.0}\n",
            study.offsets,
            study.left_out,
            study.span.seconds(),
            offset_s * 1e6,
            study.drift_ppm,
            study.linear_for.seconds()
        );
        if study.offsets > 2 && study.drift_ppm_lo.is_none() {
            text += "# a clock was set: no bounds of its drift\n";
        }
    }
    text +=
        "# lines over windows of a span, and their errors at the end of the next window\n#rank ";
    text += SPAN_COLUMNS;
    for RankRecord { rank, study, .. } in &document.ranks {
        text.extend(study.spans.iter().map(|row| format!("{rank:>5} {}", span_line(row))));
    }
    text += "# series drawn from the recorded pings that end after N without a smaller round trip; \
             error: half of the excess over the smallest\n";
    text += PATIENCE_COLUMNS;
    text.extend(document.patience_rows.iter().map(patience_line));
    if let Some(patience) = document.patience {
        text += &format!("# knee: N = {patience}\n");
    }
    if let Some(why) = document.incomplete {
        text += &format!("# INCOMPLETE: {why}\n");
    }
    text
}

/// Chart of the offsets' distances from each rank's line, over time.
fn chart(recording: &Recording) -> Chart {
    /// Most points of a line.
    const MOST: usize = 1_000;
    let line = |(rank, recorded): (&u32, &RankRecording)| {
        let offsets = undisturbed(&recorded.offsets);
        let fit = Fit::of(&offsets)?;
        let point = |offset: &Offset| Coordinates {
            x: offset.at.seconds(),
            y: fit.residual(offset) * 1e-6,
        };
        let points = offsets.iter().step_by(offsets.len().div_ceil(MOST)).map(point).collect();
        Some(Series::line(format!("rank {rank}"), points))
    };
    Chart {
        title: "Clocks against rank 0's: distance of offsets from a line".to_owned(),
        x_label: "time [s]".to_owned(),
        y_label: "offset less line [us]".to_owned(),
        axes: Axes::Linear,
        series: recording.ranks.iter().filter_map(line).collect(),
        nested: false,
    }
}
