//! `loggap noise`: measures the time that the system takes from a program.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use loggap_core::noise;
use loggap_core::units::Picos;
use serde::Serialize;

use crate::flags::parse;
use crate::link::LinkFingerprint;
use crate::machine::clock::HostClock;
use crate::machine::environment::Fingerprint;
use crate::machine::noise::{MeasuredNoise, Next, NoiseOptions, NoiseRecord, THRESHOLD, observe};
use crate::machine::placement::{self, Cpu, Placement, Topology};
use crate::machine::warning;
use crate::output::{PendingFile, number};
use crate::terminal::{CliError, Console, Exit, Interrupt, NamedFiles, ProgressLine, command_line};

/// Measure operating-system noise: time taken from a program.
///
/// A loop on one processor reads the clock and does nothing else (the selfish detour benchmark, as
/// in netgauge). Where two readings are further apart than the smallest gap by more than
/// --threshold, the processor was taken away: a detour. -o writes the detours as a trace, to which
/// 'loggap simulate --noise' exposes every rank.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap noise
  loggap noise --duration 60s --cpu 3 -o noise.txt
  loggap simulate --pattern allreduce --ranks 1K -s 8 --noise noise.txt")]
pub(super) struct Args {
    /// Duration of the measurement: seconds, or with a unit such as 500ms, 2min.
    #[arg(long, value_name = "SECONDS", default_value = "10s", value_parser = parse::duration)]
    duration: Duration,
    /// Processor to measure on [default: as 'loggap measure' chooses].
    #[arg(long, value_name = "CPU")]
    cpu: Option<Cpu>,
    /// Shortest detour that counts: seconds, or with a unit [default: 1us].
    ///
    /// Below 1us, virtual machines show jitter of clock reads, which is not
    /// noise.
    #[arg(long, value_name = "SECONDS", value_parser = parse::duration)]
    threshold: Option<Duration>,
    /// Write the detours as a noise trace.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(short = 'J', long)]
    json: bool,
}

/// Most detours that are kept.
const ROOM: usize = 1 << 20;

/// Machine and clock of the measurement.
#[derive(Serialize)]
struct Host {
    hostname: String,
    cpu_model: Option<String>,
    /// Observed processor; `None` if pinning failed.
    cpu: Option<Cpu>,
    hypervisor: Option<String>,
    kernel: String,
    clock: String,
}

impl Host {
    fn of(clock: &HostClock, cpu: Option<Cpu>) -> Self {
        let all = Fingerprint::take(clock, LinkFingerprint::default(), cpu);
        let Fingerprint { hostname, cpu_model, cpu, hypervisor, kernel, clock, .. } = all;
        Self { hostname, cpu_model, cpu, hypervisor, kernel, clock }
    }
}

#[derive(Serialize)]
struct Document {
    loggap_version: &'static str,
    command: Vec<String>,
    host: Host,
    requested_s: f64,
    #[serde(flatten)]
    noise: NoiseRecord,
    /// Time that the kept detours cover, seconds.
    trace_length_s: f64,
    warnings: Vec<String>,
    incomplete: Option<&'static str>,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let options = args.options()?;
    let interrupt = Interrupt::catch().map_err(CliError::failed)?;
    interrupt.listen();
    let mut files = NamedFiles::default();
    files.written("-o", args.output.as_deref(), &["txt"]);
    files.check()?;
    let file = args.output.as_ref().map(PendingFile::create).transpose()?;
    let (cpu, pinned) = args.pin()?;
    let clock = HostClock::calibrated();
    let before = cpu.map(|cpu| warning::before_run_alone(cpu, &clock, &pinned));
    let found = watched(&clock, &options, &interrupt, console);
    let before = before.iter().flatten().map(ToString::to_string);
    let warnings = before.chain(dropped(&found)).collect();
    let document = Document {
        loggap_version: env!("CARGO_PKG_VERSION"),
        command: command_line(),
        host: Host::of(&clock, cpu.filter(|_| pinned.is_ok())),
        requested_s: options.duration.seconds(),
        noise: found.record(),
        trace_length_s: found.length.seconds(),
        warnings,
        incomplete: (found.summary.observed < options.duration).then_some("interrupted"),
    };
    let written = file.map_or(Ok(()), |file| write_trace(file, &found, &document));
    document.warnings.iter().for_each(|warning| console.warn(warning));
    console.report(args.json, &document, |out| table(out, &document))?;
    written?;
    Ok(if document.incomplete.is_some() { Exit::Interrupted } else { Exit::Done })
}

impl Args {
    fn options(&self) -> Result<NoiseOptions, CliError> {
        let duration = Picos::from_duration(self.duration);
        let threshold = self.threshold.map_or(THRESHOLD, Picos::from_duration);
        if threshold >= duration {
            return Err(CliError::usage(format_args!(
                "a --threshold of {} is not below the --duration of {}",
                time(threshold.seconds()),
                time(duration.seconds())
            )));
        }
        Ok(NoiseOptions { duration, threshold, room: ROOM })
    }

    /// Pins this thread to the processor of `--cpu`, or to a chosen one. Only the former must
    /// succeed.
    fn pin(&self) -> Result<(Option<Cpu>, Result<(), placement::PlacementError>), CliError> {
        if let Some(cpu) = self.cpu {
            placement::pin(cpu)?;
            return Ok((Some(cpu), Ok(())));
        }
        let allowed = placement::allowed();
        let chosen = Placement::choose(&allowed, &Topology::of(&allowed));
        let cpu = chosen.map(|chosen| chosen.initiator);
        Ok((cpu, cpu.map_or(Ok(()), placement::pin)))
    }
}

/// Observes with a progress line, and stops at Ctrl-C.
fn watched(
    clock: &HostClock,
    options: &NoiseOptions,
    interrupt: &Interrupt,
    console: &Console,
) -> MeasuredNoise {
    let mut line = ProgressLine::new(console);
    let whole = options.duration.seconds();
    observe(clock, options, |observed| {
        if interrupt.is_requested() {
            return Next::End;
        }
        let observed = observed.seconds();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share between 0 and 1; the cast saturates"
        )]
        let done_ppm = (observed / whole * 1e6) as u32;
        let drawn = line.show(done_ppm, |_| format!("{:.1} s left", whole - observed));
        // The time of drawing is excluded.
        if drawn { Next::ObserveFromNow } else { Next::Observe }
    })
}

fn dropped(found: &MeasuredNoise) -> Option<String> {
    let summary = &found.summary;
    (summary.dropped > 0).then(|| {
        format!(
            "{} of {} detours were not kept, as there is room for {}: the trace ends after {}; \
             raise --threshold or take a shorter --duration",
            number::count(summary.dropped),
            number::count(summary.detours),
            number::count(ROOM as u64),
            time(found.length.seconds())
        )
    })
}

/// Writes the trace, followed by statistics as comments, as netgauge does.
fn write_trace(
    file: PendingFile,
    found: &MeasuredNoise,
    document: &Document,
) -> Result<(), CliError> {
    let Document { host, noise, .. } = document;
    if found.detours.is_empty() {
        return Err(CliError::failed(format_args!(
            "no detour longer than {} in {}, so that there is no trace and '{}' is not written; \
             measure longer, or lower --threshold",
            time(noise.threshold_s),
            time(noise.observed_s),
            file.path().display()
        )));
    }
    let mut text = String::new();
    noise::write(&mut text, &found.detours, found.length).map_err(CliError::failed)?;
    let cpu = host.cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.to_string());
    // A line break in the name would begin a line of data.
    let name = host.hostname.replace(char::is_control, "?");
    let _strings_take_all = write!(
        text,
        "# Host: {name}, cpu {cpu}, clock {}\n# Smallest gap [ns]: {:.3}\n# Threshold [ns]: {:.3}\n\
         # CPU overhead due to noise: {:.4}%\n",
        host.clock,
        noise.smallest_gap_s * 1e9,
        noise.threshold_s * 1e9,
        noise.lost_share * 1e2
    );
    Ok(file.commit(|out| out.write_all(text.as_bytes()))?)
}

fn time(seconds: f64) -> String {
    number::in_units(seconds, number::TIME)
}

fn table(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    let Document { host, noise, loggap_version, .. } = document;
    let cpu = host.cpu.map_or_else(|| "any cpu".to_owned(), |cpu| format!("cpu {cpu}"));
    writeln!(
        out,
        "# loggap {loggap_version} noise, {cpu}, {} observed, clock {}, smallest gap {}{}",
        time(noise.observed_s),
        host.clock,
        time(noise.smallest_gap_s),
        document.incomplete.map_or_else(String::new, |why| format!(", {why}"))
    )?;
    writeln!(out, "# detours: longer than {}", time(noise.threshold_s))?;
    writeln!(
        out,
        "#{:>9} {:>10} {:>9} {:>12} {:>12} {:>12}",
        "detours", "rate[1/s]", "lost[%]", "median[us]", "p99[us]", "longest[us]"
    )?;
    writeln!(
        out,
        "{:>10} {:>10.1} {:>9.4} {:>12} {:>12} {:>12}",
        noise.detours,
        noise.rate_per_s,
        noise.lost_share * 1e2,
        number::micros(noise.median_s),
        number::micros(noise.p99_s),
        number::micros(noise.longest_s)
    )
}
