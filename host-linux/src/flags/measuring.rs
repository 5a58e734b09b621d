//! Measuring as flags say: from the command line to files and standard output.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use loggap_core::measure::{MAX_DELTAS, MOST_IN_FLIGHT, PlogpOptions, SignatureOptions};
use loggap_core::stats::Confidence;
use loggap_core::units::Picos;
use serde::Serialize;

use super::judging::{Judge, JudgeArgs, Judgement, MOST_RUNS, RUNS};
use super::parse::{self, NumberError, Sizes};
use super::{ExactArgs, ReportArgs, draw};
use crate::compare::ProfileFile;
use crate::drive::{
    Assessed, Ends, Finished, Measurement, Method, ONE_OF_MANY, Options, Series, SizePlan,
    unix_seconds,
};
use crate::output::{FileError, PendingFile};
use crate::profile::{ProfileDocument, SCHEMA_VERSION, Verdict, logp_test};
use crate::samples::{self, TimedSample};
use crate::terminal::{CliError, Console, Exit, Failures, Interrupt, NamedFiles, command_line};

/// Flags of a measurement.
#[derive(Clone, Debug, clap::Args)]
pub struct MeasureArgs {
    /// Measurement method.
    ///
    /// prtt: parametrised round trips; signature: Culler et al.; plogp:
    /// Kielmann et al.; all: the three beside each other, compared.
    #[arg(long, value_name = "METHOD", default_value = "prtt", value_parser = method_parser())]
    method: Method,
    /// Message sizes: 8, 1,64,4K, 1:64K or @FILE [default: 1:64K].
    ///
    /// 1:64K (sizes chosen automatically), 1:64K:x2 (powers of two),
    /// 1:64K:+1024 (steps of 1024 B). K, M, G are powers of 1024.
    #[arg(short, long = "size", value_name = "BYTES", value_parser = parse::message_sizes)]
    sizes: Option<Sizes>,
    /// Messages in a burst [default: 10; up to 64 from 2 KiB on].
    #[arg(short = 'n', long, value_name = "MESSAGES", value_parser = clap::value_parser!(u32).range(2..=4096))]
    messages: Option<u32>,
    #[command(flatten)]
    exact: ExactArgs,
    /// Time limit: seconds, or with a unit such as 500ms, 2min [default: 2.5s].
    ///
    /// At most 3000 s. Launches are spread over this time, because the speed of a machine changes
    /// from one moment to the next.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = max_time)]
    max_time: Option<Picos>,
    /// Message limit, counting both directions.
    ///
    /// Default of prtt: 34000, or 54400 per second of --max-time.
    #[arg(long, value_name = "MESSAGES", value_parser = clap::value_parser!(u64).range(1..))]
    max_messages: Option<u64>,
    /// Number of launches, to measure variation between runs [default: 5].
    ///
    /// Each launch is a fresh connection and, without HOST, a fresh process on
    /// other processors. The default grows with --max-time, and shrinks on slow
    /// links.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    launches: Option<u32>,
    /// Folder of earlier profiles of this link; this run's is added.
    ///
    /// Variation between those runs widens the intervals for the next run.
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    /// Seed of the order of rounds; decimal or 0x hexadecimal.
    #[arg(long, value_name = "SEED", default_value = "1", value_parser = parse::seed)]
    seed: u64,
    /// Write the profile, for simulate and best; `-` is standard output.
    #[arg(short, long, value_name = "PROFILE.json")]
    output: Option<PathBuf>,
    /// Write every timed round, as CSV for `loggap fit`.
    #[arg(long, value_name = "FILE.csv")]
    samples: Option<PathBuf>,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    signature: SignatureArgs,
    #[command(flatten)]
    plogp: PlogpArgs,
}

/// Options of `--method signature`.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Signature (--method signature)")]
struct SignatureArgs {
    /// Most requests of a point, M [default: until the curve is flat].
    #[arg(long, value_name = "MESSAGES", value_parser = clap::value_parser!(u32).range(4..=i64::from(MOST_IN_FLIGHT)))]
    max_in_flight: Option<u32>,
    /// Computations after each request, besides 0 [default: by the round trip].
    ///
    /// Such as 2us,4us,8us. The receive overhead needs three that are longer than the sender's idle
    /// time.
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = parse::duration)]
    delta: Vec<Duration>,
    /// Computation of the responder for each request, up to 1 ms [default: none].
    #[arg(long, value_name = "TIME", value_parser = parse::handler_time)]
    handler_time: Option<Duration>,
    /// Bulk transfers: requests of the size with replies of a byte, and gets.
    #[arg(long)]
    bulk: bool,
}

/// Options of `--method plogp`, named as those of LogP/MPI.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "pLogP (--method plogp)")]
struct PlogpArgs {
    /// Half of an interval over its value that ends repeating [default: 3%].
    #[arg(long, value_name = "PERCENT", value_parser = parse::percent)]
    eps: Option<u32>,
    /// Confidence of these intervals [default: 90%].
    #[arg(long, value_name = "PERCENT", value_parser = parse::percent)]
    conf_int: Option<u32>,
    /// Fewest repetitions at a size [default: 6].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=2_000))]
    min_its: Option<u16>,
    /// Most repetitions at a size [default: 18].
    ///
    /// Twice as many up to 64 KiB, four times up to 1 KiB.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=500))]
    max_its: Option<u16>,
    /// Difference from the extrapolation that adds a size [default: 20%].
    #[arg(long, value_name = "PERCENT", value_parser = parse::percent)]
    max_diff: Option<u32>,
    /// Measure the gap of every size by messages in a row.
    #[arg(long)]
    flood: bool,
    /// Write the parameters as logp_test of LogP/MPI does.
    ///
    /// `show` and `--profile` read such files, too.
    #[arg(long, value_name = "FILE")]
    logp_test: Option<PathBuf>,
}

impl SignatureArgs {
    fn options(&self) -> Result<SignatureOptions, CliError> {
        let defaults = SignatureOptions::default();
        let mut deltas = [Picos::ZERO; MAX_DELTAS];
        if self.delta.len() > MAX_DELTAS {
            let told = format_args!("--delta takes up to {MAX_DELTAS} times");
            return Err(CliError::usage(told));
        }
        for (slot, delta) in deltas.iter_mut().zip(&self.delta) {
            *slot = Picos::from_duration(*delta);
        }
        let max_in_flight = self.max_in_flight.unwrap_or(defaults.max_in_flight);
        let handler = Picos::from_duration(self.handler_time.unwrap_or_default());
        Ok(SignatureOptions { max_in_flight, deltas, bulk: self.bulk, handler, ..defaults })
    }

    /// First of these options that is given.
    fn given(&self) -> Option<&'static str> {
        let given = [
            (self.max_in_flight.is_some(), "--max-in-flight"),
            (!self.delta.is_empty(), "--delta"),
            (self.bulk, "--bulk"),
            (self.handler_time.is_some(), "--handler-time"),
        ];
        given.into_iter().find_map(|(is_given, name)| is_given.then_some(name))
    }
}

impl PlogpArgs {
    fn options(&self) -> PlogpOptions {
        let defaults = PlogpOptions::default();
        let share = |percent: Option<u32>| percent.map(|percent| f64::from(percent) / 1e6);
        PlogpOptions {
            eps: share(self.eps).unwrap_or(defaults.eps),
            min_its: self.min_its.map_or(defaults.min_its, usize::from),
            max_its: self.max_its.map_or(defaults.max_its, usize::from),
            max_diff: share(self.max_diff).unwrap_or(defaults.max_diff),
            flood: self.flood,
            ..defaults
        }
    }

    fn confidence(&self) -> Result<Confidence, CliError> {
        let Some(percent) = self.conf_int else { return Ok(Confidence::P90) };
        let percent = f64::from(percent) / 1e4;
        Confidence::from_percent(percent).filter(|_| (50.0..=99.9).contains(&percent)).ok_or_else(
            || CliError::usage(format_args!("--conf-int takes from 50% to 99.9%, not {percent}%")),
        )
    }

    /// First of these options that is given.
    fn given(&self) -> Option<&'static str> {
        let given = [
            (self.eps.is_some(), "--eps"),
            (self.conf_int.is_some(), "--conf-int"),
            (self.min_its.is_some(), "--min-its"),
            (self.max_its.is_some(), "--max-its"),
            (self.max_diff.is_some(), "--max-diff"),
            (self.flood, "--flood"),
            (self.logp_test.is_some(), "--logp-test"),
        ];
        given.into_iter().find_map(|(is_given, name)| is_given.then_some(name))
    }
}

fn method_parser() -> impl TypedValueParser<Value = Method> {
    PossibleValuesParser::new(Method::ALL.map(Method::name))
        .try_map(|name| Method::from_name(&name).ok_or_else(|| format!("'{name}' is no method")))
}

fn max_time(text: &str) -> Result<Picos, NumberError> {
    parse::session_time(text).map(Picos::from_duration)
}

/// Measures between the ends that `ends` makes, given the longest message in bytes, over the
/// transport of this name, and writes the results requested by `args`.
///
/// # Errors
///
/// [`CliError`] for invalid options, a link that cannot be opened, or a failure during the run; the
/// files then hold the samples until it.
pub fn run<E: Ends>(
    args: &MeasureArgs,
    transport: &str,
    ends: impl FnMut(u32) -> Result<E, CliError>,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Exit, CliError> {
    if args.report.json {
        interrupt.write_at_end(failure(INTERRUPTED));
    }
    let outcome = measure(args, transport, ends, interrupt, console);
    interrupt.write_at_end("");
    let is_interrupted = interrupt.is_requested();
    match outcome {
        Ok(measured) => Ok(measured.export(args, interrupt, console)),
        Err(error) => {
            let text = if is_interrupted { INTERRUPTED.to_owned() } else { error.to_string() };
            if args.report.json {
                console.data().write_all(failure(&text).as_bytes())?;
            }
            if is_interrupted { Ok(Exit::Interrupted) } else { Err(error) }
        }
    }
}

/// A measurement with what was asked of it.
struct Measured<'a> {
    document: ProfileDocument,
    failures: Failures,
    /// True if a file is standard output.
    on_standard_output: bool,
    judge: Judge<'a>,
    judgement: Judgement,
}

fn measure<'a, E: Ends>(
    args: &'a MeasureArgs,
    transport: &str,
    mut ends: impl FnMut(u32) -> Result<E, CliError>,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Measured<'a>, CliError> {
    let plan = args.size_plan();
    let sizes = u64::from(plan.smallest())..=u64::from(plan.largest());
    let judge = args.judge.prepare(transport, args.method, sizes, console)?;
    let measurement = Measurement::prepare(args.options()?)?;
    let mut files = Files::open(args)?;
    let on_standard_output = files.on_standard_output;
    let mut run = |measurement: Measurement, console: &mut Console| {
        measurement.run(ends(args.longest_message())?, interrupt, console)
    };
    let first = match run(measurement, console) {
        Ok(first) => first,
        Err(error) => return Err(judge.failed(error)),
    };
    let Finished { document, samples, series, failure } = first.finish();
    let mut failures = Failures::default();
    let is_whole = failure.is_none();
    failures.add(failure.map_or(Ok(()), Err));
    if let Some(path) = files.keep_usable(&document) {
        let path = path.display();
        console.warn(format_args!("{path} keeps its usable profile of an earlier run"));
    }
    for written in files.write(&document, &samples, &series) {
        failures.add(written);
    }
    if args.report.json {
        let text = serde_json::to_string_pretty(&document);
        interrupt.write_at_end(text.unwrap_or_default() + "\n");
    }
    let is_judged = is_whole && document.is_usable();
    let mut runs: Vec<_> = is_judged.then(|| this_run(document.clone())).into_iter().collect();
    let more = |console: &mut Console| run(Measurement::prepare(args.options()?)?, console);
    let judgement = judge_runs(&judge, &mut runs, more, &mut failures, interrupt, console);
    Ok(Measured { document, failures, on_standard_output, judge, judgement })
}

/// Judges `runs`, with more by `measure` as long as there is doubt and fewer than [`RUNS`] count.
fn judge_runs(
    judge: &Judge<'_>,
    runs: &mut Vec<ProfileFile>,
    mut measure: impl FnMut(&mut Console) -> Result<Assessed, CliError>,
    failures: &mut Failures,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Judgement {
    let (mut judgement, mut compared) = judge.judge(runs);
    for number in 2..=MOST_RUNS {
        let doubt = judgement.doubt().filter(|_| !interrupt.is_requested());
        let Some(doubt) = doubt.filter(|_| !runs.is_empty()) else { break };
        console.note(format_args!("measuring again, since {doubt}: run {number}"));
        match measure(console).and_then(Assessed::profile) {
            Ok(_) if interrupt.is_requested() => break,
            Ok(profile) if profile.is_usable() => runs.push(this_run(profile)),
            Ok(profile) => {
                let reason = profile.reason.unwrap_or_default();
                console.warn(format_args!("run {number} is unusable: {reason}"));
            }
            Err(error) => {
                failures.add(Err::<(), _>(error));
                break;
            }
        }
        (judgement, compared) = judge.judge(runs);
    }
    if let Some(counted) = judgement.withdraw() {
        console.warn(format_args!(
            "{counted} of {RUNS} runs can be judged: nothing is said to fail or to be slower by fewer"
        ));
    }
    failures.add(compared.map_err(CliError::from));
    judgement
}

fn this_run(profile: ProfileDocument) -> ProfileFile {
    ProfileFile { path: "this run".into(), profile }
}

impl MeasureArgs {
    /// Options of the driver.
    ///
    /// # Errors
    ///
    /// [`CliError`] if values contradict each other.
    pub fn options(&self) -> Result<Options, CliError> {
        let defaults = Options::default();
        let others = [
            self.signature.given().map(|option| (Method::Signature, option)),
            self.plogp.given().map(|option| (Method::Plogp, option)),
        ];
        let is_alien = |of: &(Method, _)| !self.method.includes(of.0);
        if let Some((method, option)) = others.into_iter().flatten().find(is_alien) {
            let told = format_args!("{option} needs --method {}", method.name());
            return Err(CliError::usage(told));
        }
        Ok(Options {
            method: self.method,
            signature: self.signature.options()?,
            plogp: self.plogp.options(),
            plogp_confidence: self.plogp.confidence()?,
            sizes: self.size_plan(),
            messages: self.messages,
            assess: self.exact.options()?,
            busy_error_ppm: self.exact.rel_err.unwrap_or(defaults.busy_error_ppm),
            max_time: self.max_time,
            max_messages: self.max_messages,
            launches: self.launches,
            history: self.history.clone(),
            seed: self.seed,
        })
    }

    fn size_plan(&self) -> SizePlan {
        let whole = |size: &u64| u32::try_from(*size).unwrap_or(u32::MAX); // at most 1 GiB by the parser
        match &self.sizes {
            None => SizePlan::default(),
            Some(Sizes::Span { first, last }) => {
                SizePlan::Span { first: whole(first), last: whole(last), shrink: false }
            }
            Some(Sizes::Listed(sizes)) => SizePlan::Listed(sizes.iter().map(whole).collect()),
        }
    }

    /// Largest size that is measured, bytes.
    #[must_use]
    pub fn longest_message(&self) -> u32 {
        let (method, sizes) = (self.method, self.size_plan());
        Options { method, sizes, ..Options::default() }.longest_message()
    }

    /// Duration of the measurement of one of many links.
    #[must_use]
    pub fn time_of_one_of_many(&self) -> Duration {
        Duration::from_nanos(self.max_time.unwrap_or(ONE_OF_MANY).0 / 1_000)
    }

    /// File of the profile.
    #[must_use]
    pub fn output(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    /// An option that needs a single link and was given.
    #[must_use]
    pub fn for_one_link(&self) -> Option<&'static str> {
        self.judge.given()
    }

    /// True if the method needs a reply to each message.
    #[must_use]
    pub fn needs_answers(&self) -> bool {
        self.method != Method::Prtt
    }

    /// True if the result is printed as JSON.
    #[must_use]
    pub const fn json(&self) -> bool {
        self.report.json
    }

    /// Seed of the order of rounds.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }
}

const INTERRUPTED: &str = "interrupted before anything was measured";

/// JSON document of a run without any result.
fn failure(error: &str) -> String {
    let document = serde_json::json!({
        "schema_version": SCHEMA_VERSION,
        "loggap_version": env!("CARGO_PKG_VERSION"),
        "command": command_line(),
        "error": error,
    });
    format!("{document:#}\n")
}

/// Requested files, opened before the measurement.
#[derive(Debug)]
struct Files {
    profile: Option<PendingFile>,
    samples: Option<PendingFile>,
    plot: Option<PendingFile>,
    /// File of `logp_test`.
    logp_test: Option<PendingFile>,
    /// Copy of the profile in the history folder.
    history: Option<PendingFile>,
    /// True if one of them is standard output, which then holds nothing else.
    on_standard_output: bool,
}

impl Files {
    fn open(args: &MeasureArgs) -> Result<Self, CliError> {
        let mut files = NamedFiles::default();
        files.written("-o", args.output.as_deref(), &["json"]);
        files.written("--samples", args.samples.as_deref(), &["csv"]);
        args.judge.name_files(&mut files);
        files.written("--logp-test", args.plogp.logp_test.as_deref(), &[]);
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
            logp_test: create(&args.plogp.logp_test)?,
            on_standard_output: files.take_standard_output(),
            history: create(&args.history.as_ref().map(|folder| folder.join(name)))?,
        })
    }

    /// Keeps the usable profile of an earlier run where `document` is unusable: its file, whose path
    /// is returned, is then not written.
    fn keep_usable(&mut self, document: &ProfileDocument) -> Option<PathBuf> {
        let path = self.profile.as_ref()?.path().to_owned();
        // A pipe would have to be waited for.
        let is_kept =
            || path.is_file() && ProfileDocument::read(&path).is_ok_and(|old| old.is_usable());
        if document.is_usable() || !is_kept() {
            return None;
        }
        self.profile = None;
        Some(path)
    }

    fn write(
        self,
        document: &ProfileDocument,
        samples: &[TimedSample],
        series: &[Series],
    ) -> [Result<(), CliError>; 5] {
        let profile = |file: PendingFile| file.commit_json(document).map_err(CliError::from);
        let timed = |file: PendingFile| {
            file.commit(|out| samples::write(out, samples, series)).map_err(CliError::from)
        };
        let logp_test = |file: PendingFile| {
            file.commit(|out| logp_test::write(out, document)).map_err(CliError::from)
        };
        // Incomplete or unusable runs must not influence predictions of later ones.
        let is_whole = document.incomplete.is_none() && document.verdict == Verdict::Usable;
        let history = self.history.filter(|_| is_whole);
        // As for the profile, a usable file of an earlier run is worth more.
        let parameters = self.logp_test.filter(|_| document.is_usable());
        [
            self.profile.map_or(Ok(()), profile),
            self.samples.map_or(Ok(()), timed),
            self.plot.map_or(Ok(()), |file| draw(document, file)),
            parameters.map_or(Ok(()), logp_test),
            history.map_or(Ok(()), profile),
        ]
    }
}

/// Document of `--json`: the profile and what was asked of it.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    profile: &'a ProfileDocument,
    #[serde(flatten)]
    judgement: &'a Judgement,
}

impl Measured<'_> {
    /// Prints the result and writes the outcomes.
    fn export(self, args: &MeasureArgs, interrupt: &Interrupt, console: &mut Console) -> Exit {
        let Self { document, mut failures, on_standard_output, judge, judgement } = self;
        if on_standard_output {
            console.leave_standard_output();
        }
        let json = Document { profile: &document, judgement: &judgement };
        failures.add(args.report.print(&document, &json, console));
        failures.add(args.report.remark(&judgement.text(), console));
        judgement.annotate(console);
        let written = judge.write(&judgement, failures.first());
        failures.add(written);
        let is_unusable = document.verdict == Verdict::Unusable;
        let is_open = !document.converged || judgement.is_open();
        let done = if interrupt.is_requested() {
            Exit::Interrupted
        } else if judgement.fails() {
            Exit::Differs
        } else if is_unusable || args.exact.strict && is_open {
            Exit::NotConverged
        } else {
            Exit::Done
        };
        failures.end(done, console)
    }
}
