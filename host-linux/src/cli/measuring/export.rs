//! Results of a measurement: files first, then standard output.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use loggap_core::measure::{AssessError, Conclusion, Quantity, SizeRow, Warning as LinkWarning};
use loggap_core::model::{Change, Parameter, Profile};
use loggap_core::units::Picos;

use super::{MeasureArgs, ProtocolLimit};
use crate::cli::named_files::NamedFiles;
use crate::cli::report::{self, Strictness};
use crate::cli::{CliError, Console, Exit};
use crate::link::VerbsRecord;
use crate::machine::environment::Fingerprint;
use crate::machine::placement::Cpu;
use crate::machine::warning::{self, Warning};
use crate::measure::next::{self, LaunchValues};
use crate::measure::{AnalysisError, History, MeasureError, Measured, RunOptions};
use crate::output::{FileError, PendingFile, warnings};
use crate::profile::{
    CanaryRecord, ChangeRecord, ProfileDocument, RangeRecord, RoundRecord, SCHEMA_VERSION,
    SizeRecord, Stopped, Verdict,
};
use crate::samples::{self, TimedSample};

/// Requested files, opened before the measurement.
#[derive(Debug)]
pub(super) struct Files {
    profile: Option<PendingFile>,
    samples: Option<PendingFile>,
    plot: Option<PendingFile>,
    /// Copy of the profile in the history folder.
    history: Option<PendingFile>,
    /// True if one of them is standard output, which then holds nothing else.
    on_standard_output: bool,
}

impl Files {
    pub(super) fn open(args: &MeasureArgs) -> Result<Self, CliError> {
        let mut files = NamedFiles::default();
        files.written("-o", args.output.as_deref(), &["json"]);
        files.written("--samples", args.samples.as_deref(), &["csv"]);
        args.report.name_files(&mut files);
        files.check()?;
        let create = |path: &Option<PathBuf>| -> Result<_, FileError> {
            path.as_ref().map(PendingFile::create).transpose()
        };
        let name = format!("{}-{}.json", unix_seconds(), std::process::id());
        Ok(Self {
            profile: create(&args.output)?,
            samples: create(&args.samples)?,
            plot: args.report.open_plot()?,
            on_standard_output: files.take_standard_output(),
            history: create(&args.history.as_ref().map(|folder| folder.join(name)))?,
        })
    }
}

/// Result of a measurement with its circumstances.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) measured: Measured,
    /// Error that ended the run early.
    pub(super) failure: Option<CliError>,
    pub(super) history: History,
    pub(super) host: Fingerprint,
    pub(super) warnings: Vec<Warning>,
    pub(super) canaries: Vec<CanaryRecord>,
    /// Time from the start of the command to the end of the last session.
    pub(super) wall: Picos,
    pub(super) options: RunOptions,
    /// Settings that may explain changes of protocol.
    pub(super) limits: Vec<ProtocolLimit>,
}

impl Taken {
    /// Why the link cannot be assessed, as its ends had too little of a processor: there is no
    /// range, or the round trip is unknown to within 50%.
    fn unusable(&self) -> Option<String> {
        const KNOWN: f64 = 0.5;
        let ranges = self.measured.assessment.as_ref().map(|found| &found.profile.ranges[..]);
        let first = ranges.ok().and_then(<[_]>::first);
        let is_read = self.host.link.verbs.as_ref().is_some_and(is_read);
        let line = first.and_then(|range| if is_read { Some(range.gap) } else { range.half_rtt });
        let is_known = line.is_some_and(|line| {
            let [value, low, high] =
                [line.at_one.value, line.at_one.low, line.at_one.high].map(|time| time.seconds());
            value > 0.0 && (high - value).max(value - low) <= KNOWN * value
        });
        if is_known {
            return None;
        }
        if let Some(cpu) = self.shared_processor() {
            return Some(format!("both ends share processor {cpu}; --cpu A,B, or --block"));
        }
        self.warnings.iter().find_map(|warning| match warning {
            Warning::Busy { load, cpus, waiting, .. } => {
                let remedy = warning::busy_remedy(*waiting);
                Some(format!("processors are busy (load {load} on {cpus}); {remedy}"))
            }
            _ => None,
        })
    }

    /// The processor that both ends run on, and take from each other.
    fn shared_processor(&self) -> Option<Cpu> {
        self.warnings.iter().find_map(|warning| match warning {
            Warning::OneProcessor { cpu } => Some(*cpu),
            _ => None,
        })
    }

    /// Error of the analysis, if it counts as a failure: after an early end too few samples are no
    /// failure.
    fn refusal(&self) -> Option<MeasureError> {
        if self.unusable().is_some() {
            return None;
        }
        let error = *self.measured.assessment.as_ref().err()?;
        let is_short = self.failure.is_some() || self.measured.conclusion == Conclusion::Stopped;
        let is_refusal = !(is_short && error == AssessError::NoSamples);
        is_refusal.then_some(MeasureError::Analysis(AnalysisError::Assess(error)))
    }
}

/// JSON document of a run without any result.
pub(super) fn failure(error: &str) -> String {
    let document = serde_json::json!({
        "schema_version": SCHEMA_VERSION,
        "loggap_version": env!("CARGO_PKG_VERSION"),
        "command": command(),
        "error": error,
    });
    format!("{document:#}\n")
}

/// Writes all results. A file that fails prevents neither the others nor standard output; the first
/// failure determines the exit code.
pub(super) fn export(
    args: &MeasureArgs,
    mut taken: Taken,
    (files, console): (Files, &mut Console),
) -> Result<Exit, CliError> {
    let failure = taken.failure.take();
    let failure = failure.or_else(|| taken.refusal().map(CliError::from));
    let incomplete = match &failure {
        Some(error) => Some(error.to_string()),
        None if taken.measured.conclusion == Conclusion::Stopped => Some("interrupted".to_owned()),
        None => None,
    };
    let document = document(args, &taken, incomplete);
    let mut outcome = failure.map_or(Ok(()), Err);
    if files.on_standard_output {
        console.leave_standard_output();
    }
    for written in write_files(files, &document, &taken) {
        outcome = merge(outcome, written, console);
    }
    let printed = args.report.print(&document, &document, console);
    merge(outcome, printed, console)?;
    if document.verdict == Verdict::Unusable {
        return Ok(Exit::NotConverged);
    }
    let unknown = Profile::default();
    let is_read = taken.host.link.verbs.as_ref().is_some_and(is_read);
    let profile = taken.measured.assessment.as_ref().map_or(&unknown, |found| &found.profile);
    let profile = if is_read { &without_one_way_times(profile) } else { profile };
    let strictness = if args.exact.strict { Strictness::Strict } else { Strictness::Lenient };
    Ok(report::exit(strictness, profile))
}

/// Returns the first failure, and reports a second one at once.
fn merge(
    first: Result<(), CliError>,
    second: Result<(), CliError>,
    console: &mut Console,
) -> Result<(), CliError> {
    if let (Err(_), Err(error)) = (&first, &second) {
        console.note(format_args!("error: {error}"));
    }
    first.and(second)
}

fn write_files(
    files: Files,
    document: &ProfileDocument,
    taken: &Taken,
) -> [Result<(), CliError>; 4] {
    let profile = |file: PendingFile| file.commit_json(document).map_err(CliError::from);
    let method = taken.options.method;
    let timed = |timed: &&TimedSample| method.times(timed.sample.experiment.quantity);
    let samples = |file: PendingFile| {
        let samples = taken.measured.samples.iter().filter(timed);
        file.commit(|out| samples::write(out, samples)).map_err(CliError::from)
    };
    // Incomplete or unusable runs must not influence predictions of later ones.
    let is_whole = document.incomplete.is_none() && document.verdict == Verdict::Usable;
    let history = files.history.filter(|_| is_whole);
    [
        files.profile.map_or(Ok(()), profile),
        files.samples.map_or(Ok(()), samples),
        files.plot.map_or(Ok(()), |file| report::draw(document, file)),
        history.map_or(Ok(()), profile),
    ]
}

pub(super) fn document(
    args: &MeasureArgs,
    taken: &Taken,
    incomplete: Option<String>,
) -> ProfileDocument {
    let Taken { measured, host, warnings, canaries, wall, options, .. } = taken;
    let assessment = measured.assessment.as_ref().ok();
    let is_read = host.link.verbs.as_ref().is_some_and(is_read);
    let about_link = link_warnings(taken);
    let choice = if host.link.mpi.is_some() { "mpirun's options" } else { warnings::BY_OPTIONS };
    let mut warnings = warnings.clone();
    if taken.shared_processor().is_some() {
        // Each end is the other's other process.
        warnings
            .retain(|warning| !matches!(warning, Warning::Preempted { .. } | Warning::Busy { .. }));
    }
    let mut warning_details = warnings::ranked(&warnings, &about_link, choice);
    let places = host.link.verbs.as_ref().and_then(|verbs| {
        warnings::few_places(&verbs.operation, verbs.depth, options.plan.messages)
    });
    warning_details.extend(places);
    warning_details.sort_by_key(|record| record.severity);
    let changes = assessment.map_or(&[][..], |found| &found.profile.changes);
    let limits: Vec<_> = taken
        .limits
        .iter()
        .cloned()
        .chain(host.link.verbs.as_ref().and_then(inline_limit))
        .collect();
    let wall_s = wall.seconds();
    let mut document = ProfileDocument {
        schema_version: SCHEMA_VERSION,
        loggap_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command(),
        started_unix_s: unix_seconds().saturating_sub(wall.0 / 1_000_000_000_000),
        seed: options.plan.seed,
        host: host.clone(),
        transport: host.link.transport.clone(),
        method: options.method.name().to_owned(),
        requested: args.exact.requested(&measured.exact),
        changes: changes.iter().map(|change| named(*change, &limits)).collect(),
        sizes: sizes(&measured.rows, &measured.samples),
        messages_sent: measured.traffic.messages(),
        messages_lost: measured.traffic.messages_lost,
        wall_s,
        link_busy_share: (measured.traffic.in_rounds.seconds() / wall_s).clamp(0.0, 1.0),
        stopped: stopped(measured.conclusion, incomplete.as_ref()),
        converged: assessment.is_some_and(|found| match is_read {
            true => report::is_converged(&without_one_way_times(&found.profile)),
            false => report::is_converged(&found.profile),
        }),
        warnings: warning_details.iter().map(warnings::text).collect(),
        warning_details,
        launches: measured.launches,
        incomplete,
        responder: measured.responder.clone(),
        canaries: canaries.clone(),
        ..ProfileDocument::default()
    };
    if let Some(verbs) = &mut document.host.link.verbs {
        verbs.calls.clone_from(&measured.calls);
    }
    add_verdict(&mut document, taken);
    add_ranges(&mut document, taken);
    if is_read {
        leave_out_one_way_times(&mut document);
    }
    document
}

/// Warnings of the analysis, without those about one-way times if the messages are reads, and
/// without those about omitted sizes if the path carries none of them.
fn link_warnings(Taken { measured, host, .. }: &Taken) -> Vec<LinkWarning> {
    let is_read = host.link.verbs.as_ref().is_some_and(is_read);
    let all = measured.assessment.as_ref().map_or(&[][..], |found| &found.warnings);
    let applies = |warning: &&LinkWarning| match warning {
        LinkWarning::SizesLeftOut(..) => measured.reached.is_none(),
        warning => !(is_read && is_one_way(warning)),
    };
    all.iter().filter(applies).copied().collect()
}

fn is_read(verbs: &VerbsRecord) -> bool {
    verbs.operation == "read"
}

/// True for a warning about one-way times, which reads lack.
const fn is_one_way(warning: &LinkWarning) -> bool {
    use Parameter::{HalfRtt, Latency};
    matches!(
        warning,
        LinkWarning::Bound(HalfRtt | Latency, _)
            | LinkWarning::Misfit(HalfRtt | Latency, ..)
            | LinkWarning::Overlap(_)
    )
}

/// Profile without one-way times, which reads lack, to be assessed.
fn without_one_way_times(profile: &Profile) -> Profile {
    let mut profile = profile.clone();
    for range in &mut profile.ranges {
        (range.half_rtt, range.latency) = (None, None);
    }
    profile
}

/// Removes one-way times: an RDMA read has no reply whose half would be one, and no receiver
/// (`docs/verbs.md`). Costs of posting and polling, and the gap, remain.
fn leave_out_one_way_times(document: &mut ProfileDocument) {
    for record in &mut document.ranges {
        (record.range.half_rtt, record.range.latency) = (None, None);
        record
            .next
            .retain(|of, _| !matches!(of.parameter(), Parameter::HalfRtt | Parameter::Latency));
    }
    for record in &mut document.sizes {
        (record.row.half_rtt, record.rounds) = (None, None);
    }
}

/// Largest size that is sent inline, as the cause of a change of protocol.
fn inline_limit(verbs: &VerbsRecord) -> Option<ProtocolLimit> {
    let last = u64::from(verbs.inline_bytes);
    (last > 0 && !is_read(verbs)).then(|| ProtocolLimit {
        setting: format!("--inline {last}: the last size within the work request"),
        first_bytes: last + 1..=last + 1,
    })
}

/// Converts a change, with the setting that causes it.
fn named(change: Change, limits: &[ProtocolLimit]) -> ChangeRecord {
    let record = ChangeRecord::from(change);
    let limit = limits.iter().find(|limit| limit.explains(&record));
    ChangeRecord { setting: limit.map(|limit| limit.setting.clone()), ..record }
}

/// Adds the verdict and the numbers of rounds.
fn add_verdict(document: &mut ProfileDocument, taken: &Taken) {
    document.reason = taken.unusable();
    if document.reason.is_some() {
        document.verdict = Verdict::Unusable;
    }
    (document.rounds, document.rounds_left_out) =
        (taken.measured.traffic.rounds, taken.measured.left_out);
}

/// Adds the ranges, with predictions of another run.
fn add_ranges(document: &mut ProfileDocument, taken: &Taken) {
    let Taken { measured, history, options, .. } = taken;
    let Ok(assessment) = &measured.assessment else { return };
    let (profile, exact) = (&assessment.profile, &options.plan.assess);
    let earlier = history.of_same_link(document);
    // Launches over MPI are sessions of the same processes, so they say nothing about another run.
    let launches = if taken.host.link.mpi.is_some() {
        vec![LaunchValues::default(); profile.ranges.len()]
    } else {
        LaunchValues::of(&measured.samples, profile, exact)
    };
    let records = profile.ranges.iter().zip(&launches).map(|(range, launches)| RangeRecord {
        next: next::intervals(range, launches, &earlier, exact.confidence),
        ..RangeRecord::from(*range)
    });
    document.ranges = records.collect();
    document.history_runs = u32::try_from(earlier.len()).unwrap_or(u32::MAX);
}

/// Table by size, with the distribution of single rounds.
fn sizes(rows: &[SizeRow], samples: &[TimedSample]) -> Vec<SizeRecord> {
    let record = |row: &SizeRow| {
        let rounds = samples.iter().map(|timed| &timed.sample).filter(|sample| {
            let experiment = &sample.experiment;
            experiment.quantity == Quantity::RoundTrip && u64::from(experiment.size) == row.size.0
        });
        let rounds = RoundRecord::of(rounds.map(|sample| Picos(sample.elapsed.0 / 2)));
        SizeRecord { rounds, ..SizeRecord::from(*row) }
    };
    rows.iter().map(record).collect()
}

fn stopped(conclusion: Conclusion, incomplete: Option<&String>) -> Stopped {
    match (conclusion, incomplete) {
        (Conclusion::Stopped, _) | (_, None) => Stopped::from(conclusion),
        (_, Some(_)) => Stopped::Failed,
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn command() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use loggap_core::units::Bytes;

    use super::*;

    #[test]
    fn a_change_where_inline_data_end_is_named() {
        let verbs = VerbsRecord { inline_bytes: 220, ..VerbsRecord::default() };
        let limits: Vec<_> = inline_limit(&verbs).into_iter().collect();
        let change_at = |first: u64| Change {
            at: Bytes(first),
            low: Bytes(first),
            high: Bytes(first),
            parameter: Parameter::HalfRtt,
            jump_ppm: 100_000,
            splits: true,
        };
        let setting = named(change_at(221), &limits).setting;
        assert!(setting.as_ref().is_some_and(|setting| setting.contains("220")), "{setting:?}");
        assert_eq!(named(change_at(220), &limits).setting, None);
        assert_eq!(inline_limit(&VerbsRecord::default()), None);
        let read = VerbsRecord { operation: "read".into(), ..verbs };
        assert_eq!(inline_limit(&read), None);
    }
}
