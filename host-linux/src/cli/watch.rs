//! `loggap watch`: measures a link for hours with little traffic, and tells when it changes.

use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use loggap_core::model::Curve;

use super::measure::EndArgs;
use crate::assertion::Assertion;
use crate::drive::perftest::watch::{self, Event, Interval, State, WatchOptions};
use crate::flags::parse;
use crate::output::exposition::Exposition;
use crate::output::openmetrics::Metrics;
use crate::output::{PendingFile, Versioned, number};
use crate::terminal::{CliError, Console, Exit, NamedFiles};

/// Watch a link for hours with little traffic, and tell when it changes.
///
/// Each interval a new connection to 'loggap serve' at HOST measures half the round trip of a short
/// message and the gap of long ones, and prints a line. Steps and slow drift are reported as they are
/// found, at most one false one a day of stationary noise; so are the loss of the responder and its
/// return. This end always sleeps while it waits: latency includes the wake-ups.
///
/// Ends with Ctrl-C (130), after --for (0), or when an assertion has failed for --hold (3).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap watch node7
  loggap watch node7 --assert 'half_rtt<50us@8' --assert 'gap<40us@4K' --hold 1min
  loggap watch node7 --for 24h -J > node7.jsonl
  loggap watch node7 --openmetrics 9464
  loggap watch node7 --openmetrics /var/lib/node_exporter/loggap.prom")]
pub(super) struct Args {
    #[command(flatten)]
    ends: EndArgs,
    /// Part of the link's rate to use, as measured at the start.
    #[arg(long, value_name = "PERCENT", default_value = "0.1%", value_parser = parse::percent)]
    budget: u32,
    /// Time between measurements; longer where the budget is too small for one.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse::duration)]
    interval: Duration,
    /// Time after which to end [default: never].
    #[arg(long = "for", value_name = "TIME", value_parser = parse::duration)]
    time: Option<Duration>,
    /// Limit of half_rtt or gap, as 'half_rtt<20us@1K'; one size for each.
    #[arg(long = "assert", value_name = "LIMIT")]
    assertions: Vec<Assertion>,
    /// Time for which a limit has to be broken to end with 3.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse::duration)]
    hold: Duration,
    /// Show the latest values as OpenMetrics text, over HTTP or in a file.
    ///
    /// A port of 127.0.0.1, or IP:PORT, answers at /metrics; FILE.prom is replaced each interval.
    #[arg(long, value_name = "PORT|FILE", value_parser = MetricsTarget::parse)]
    openmetrics: Option<MetricsTarget>,
    /// Print one JSON document a line, in SI units.
    #[arg(short = 'J', long)]
    json: bool,
}

/// Place of the metrics.
#[derive(Clone, Debug)]
enum MetricsTarget {
    Address(SocketAddr),
    File(PathBuf),
}

impl MetricsTarget {
    fn parse(text: &str) -> Result<Self, String> {
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let port = text.parse().ok().filter(|port: &u16| *port > 0);
            let port = port.ok_or("a port is 1 to 65535")?;
            return Ok(Self::Address((Ipv4Addr::LOCALHOST, port).into()));
        }
        Ok(text.parse().map_or_else(|_| Self::File(text.into()), Self::Address))
    }
}

/// The metrics and where they go.
struct Published<'a> {
    metrics: Metrics,
    exposition: Option<Exposition>,
    file: Option<&'a PathBuf>,
}

impl<'a> Published<'a> {
    fn start(target: Option<&'a MetricsTarget>, metrics: Metrics) -> Result<Self, CliError> {
        let mut published = Self { metrics, exposition: None, file: None };
        match target {
            None => {}
            Some(MetricsTarget::File(path)) => {
                PendingFile::create(path)?;
                published.file = Some(path);
            }
            Some(MetricsTarget::Address(address)) => {
                let exposition = Exposition::start(*address).map_err(|error| {
                    let text = format!("--openmetrics {address}: {error}; choose another");
                    match error.kind() {
                        ErrorKind::PermissionDenied => CliError::refused(text),
                        ErrorKind::AddrNotAvailable => CliError::usage(text),
                        _ => CliError::failed(text),
                    }
                })?;
                exposition.show(published.metrics.text().map_err(CliError::failed)?);
                published.exposition = Some(exposition);
            }
        }
        Ok(published)
    }

    fn publish(&self, interval: &Interval, console: &mut Console) {
        self.metrics.set(interval);
        let text = self.metrics.text().unwrap_or_default();
        if let Some(path) = self.file {
            // A full disk may be free again at the next interval.
            let file = PendingFile::create(path);
            let written = file.and_then(|file| file.commit(|out| out.write_all(text.as_bytes())));
            if let Err(error) = written {
                console.warn(error);
            }
        }
        if let Some(exposition) = &self.exposition {
            exposition.show(text);
        }
    }
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let ends = args.ends.options()?;
    if args.ends.link.is_read() {
        return Err(CliError::usage("--op read has no gap to watch; --op write has"));
    }
    check(&args.assertions)?;
    let mut files = NamedFiles::default();
    if let Some(MetricsTarget::File(path)) = &args.openmetrics {
        files.written("--openmetrics", Some(path), &["prom"]);
    }
    files.check()?;
    let options = WatchOptions {
        budget: f64::from(args.budget) / 1e6,
        interval: args.interval,
        time: args.time,
        assertions: args.assertions.clone(),
        hold: args.hold,
    };
    let peer = args.ends.peer_name();
    let metrics = Metrics::new(ends.transport.name(), &peer);
    let published = Published::start(args.openmetrics.as_ref(), metrics)?;
    let mut has_head = args.json;
    watch::watch(ends, &options, console, &mut |interval, console| {
        published.publish(interval, console);
        let out = console.data();
        if !std::mem::replace(&mut has_head, true) {
            write_head(out, interval)?;
        }
        if args.json {
            serde_json::to_writer(&mut *out, &Versioned::new(interval)).map_err(io::Error::from)?;
            writeln!(out)?;
        } else {
            write(out, interval)?;
        }
        Ok(console.flush()?)
    })
}

/// Refuses assertions about what is not watched, and different sizes for one value.
fn check(assertions: &[Assertion]) -> Result<(), CliError> {
    for assertion in assertions {
        let curve = assertion.curve();
        if !matches!(curve, Curve::HalfRtt | Curve::Gap) {
            return Err(CliError::usage(format_args!(
                "--assert '{assertion}': half_rtt and gap are watched"
            )));
        }
        let other = assertions
            .iter()
            .find(|other| other.curve() == curve && other.size() != assertion.size());
        if let Some(other) = other {
            return Err(CliError::usage(format_args!(
                "--assert '{assertion}' and '{other}': each value is watched at one size"
            )));
        }
    }
    Ok(())
}

fn write_head(out: &mut dyn Write, interval: &Interval) -> io::Result<()> {
    let (half_rtt, gap) = (interval.half_rtt_size_bytes, interval.gap_size_bytes);
    let [half_rtt, gap] = [half_rtt, gap].map(|size| number::size(size.into()));
    writeln!(out, "# half_rtt of {half_rtt}, gap of {gap}")?;
    writeln!(out, "# time UTC  half_rtt[us]      gap[us]  lost  state")
}

/// Writes a line for an interval and one for each event.
fn write(out: &mut dyn Write, interval: &Interval) -> io::Result<()> {
    let state = match interval.state {
        State::Learning => "learning",
        State::Watching => "watching",
        State::Lost => "lost",
    };
    writeln!(
        out,
        "{:<10} {:>13} {:>12} {:>5}  {state}",
        time_of_day(interval.time_unix_s),
        number::micros(interval.half_rtt_s),
        number::micros(interval.gap_s),
        interval.lost_rounds
    )?;
    for event in &interval.events {
        writeln!(out, "# {}", in_words(event))?;
    }
    interval.failing.iter().try_for_each(|failing| writeln!(out, "# fails: {failing}"))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds since 1970")]
fn time_of_day(unix_s: f64) -> String {
    let seconds = unix_s as u64 % (24 * 3_600);
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

fn in_words(event: &Event) -> String {
    let name = event.kind.name();
    let (Some(parameter), Some(before), Some(after)) =
        (event.parameter, event.before_s, event.after_s)
    else {
        return format!("{name}: the responder");
    };
    let time = |seconds| number::in_units(seconds, number::TIME);
    let change = number::signed_percent(after / before - 1.0);
    format!("{name}: {parameter} {} -> {} ({change})", time(before), time(after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::perftest::watch::EventKind;

    #[test]
    fn an_interval_is_a_line_with_its_events_below() {
        let step = Event {
            kind: EventKind::Step,
            parameter: Some("gap"),
            before_s: Some(1.31e-4),
            after_s: Some(2.62e-4),
        };
        let back = Event { kind: EventKind::Back, parameter: None, before_s: None, after_s: None };
        let interval = Interval {
            time_unix_s: 86_400.0 + 3_723.5,
            state: State::Watching,
            half_rtt_s: Some(2e-5),
            half_rtt_size_bytes: 8,
            gap_s: None,
            gap_size_bytes: 16 << 10,
            lost_rounds: 11,
            events: vec![step, back],
            failing: vec!["gap<1us@16K".to_owned()],
        };
        let mut out = Vec::new();
        write_head(&mut out, &interval).unwrap();
        write(&mut out, &interval).unwrap();
        let expected = "\
# half_rtt of 8 B, gap of 16 KiB
# time UTC  half_rtt[us]      gap[us]  lost  state
01:02:03          20.000            -    11  watching
# step: gap 131 us -> 262 us (+100%)
# back: the responder
# fails: gap<1us@16K
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
