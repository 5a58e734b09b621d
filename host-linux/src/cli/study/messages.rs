//! `loggap study messages`: number of messages that a round of a measurement needs.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use loggap_core::stats::Sorted;
use loggap_core::units::{Picos, SignedPicos};
use serde::{Serialize, Serializer};

use crate::cli::measure::EndArgs;
use crate::drive::perftest::messages::{Bell, FEWEST_SIZES, MessagesTest, SizeGaps};
use crate::drive::perftest::{self, TestSizes};
use crate::flags::parse::{self, Sizes};
use crate::link::LinkFingerprint;
use crate::machine::clock::Deadline;
use crate::output::{Fields, PendingFile, number};
use crate::study::messages::{Deviations, plogp_messages};
use crate::terminal::{CliError, Console, Exit, Failures, NamedFiles};

/// How many messages does a round of a measurement need?
///
/// Measures the gap, (PRTT(n,0,s) - PRTT(1,0,s))/(n - 1), with each n at each size, interleaved,
/// and shows how far it lies from its lines over the size: the mean square deviation lsq (Eq. 6),
/// averaged over the ranges, as Fig. 4 of "LogGP in Theory and Practice". The n to take is the
/// smallest within the interval of the least deviation.
///
/// Below: the messages that pLogP's gap takes, and the send overhead of the smallest size by the
/// method of Bell et al., the smallest delay that lengthens a round, beside Eq. 4.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loggap study messages
  loggap study messages node7 --plot fig4.svg
  loggap study messages --transport shm -n 2,10,64 -s 1:4K -J")]
pub(super) struct Args {
    #[command(flatten)]
    ends: EndArgs,
    /// Numbers of messages, from 2 to 4096.
    #[arg(short = 'n', long = "messages", value_name = "LIST", value_delimiter = ',',
          default_value = "2,3,4,6,8,10,12,16,24,32,48,64",
          value_parser = clap::value_parser!(u32).range(2..=4096))]
    counts: Vec<u32>,
    /// Message sizes: 1,64,4K, 1:64K or @FILE [default: 1:64K, two an octave].
    #[arg(short, long = "size", value_name = "BYTES", value_parser = parse::message_sizes)]
    sizes: Option<Sizes>,
    /// Time limit: seconds, or with a unit. The link is busy throughout.
    ///
    /// Sizes for which six repetitions do not fit are left out, beyond the first three.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse::session_time)]
    max_time: Duration,
    /// Seed of the order of rounds; decimal or 0x hexadecimal.
    #[arg(long, value_name = "SEED", default_value = "1", value_parser = parse::seed)]
    seed: u64,
    /// Plot the deviation over n, as SVG.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Print one JSON document, in SI units.
    #[arg(short = 'J', long)]
    json: bool,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let mut files = NamedFiles::default();
    files.written("--plot", args.plot.as_deref(), &["svg"]);
    files.check()?;
    let plot = args.plot.as_ref().map(PendingFile::create).transpose()?;
    if args.sizes().len() < FEWEST_SIZES {
        return Err(CliError::usage(format_args!(
            "a line's deviation needs {FEWEST_SIZES} sizes or more: -s 1:4K"
        )));
    }
    let test = MessagesTest { is_watched: console.is_watched(), ..args.test() };
    let sizes = TestSizes::Listed(args.sizes());
    let silent = &mut |_: &LinkFingerprint, _: &SizeGaps, _: &mut Console| Ok(());
    let tested = perftest::run(&test, args.ends.options()?, &sizes, console, silent)?;
    if tested.results.is_empty() {
        return tested.exit();
    }
    if !tested.is_stopped {
        tell_left_out(&tested.results, &test.sizes, console);
    }
    let found = Deviations::of(&tested.results, &test.counts).map_err(CliError::failed)?;
    let report = Report::new(&tested.results, found, tested.link.as_ref());
    let mut failures = Failures::default();
    let chart = report.deviations.chart(&report.transport);
    let drawn = plot.map_or(Ok(()), |file| file.commit(|out| chart.write(1, out)));
    failures.add(drawn.map_err(CliError::from));
    if files.take_standard_output() {
        console.leave_standard_output();
    }
    let printed = console.report(args.json, &report, |out| report.write(out));
    failures.add(printed.map_err(CliError::from));
    Ok(failures.end(tested.exit()?, console))
}

/// Warns of `sizes` without results, for lack of time.
fn tell_left_out(results: &[SizeGaps], sizes: &[u32], console: &mut Console) {
    let has = |size: &u32| results.iter().any(|found| found.size == *size);
    if let Some(first) = sizes.iter().copied().find(|size| !has(size)) {
        let size = number::size(first.into());
        console.warn(format_args!("no time for messages of {size} or more: --max-time"));
    }
}

impl Args {
    /// Two sizes an octave unless given.
    fn sizes(&self) -> Vec<u32> {
        let Some(sizes) = &self.sizes else {
            let octave = |power: u32| [1 << power, 3 << power >> 1];
            let mut sizes: Vec<u32> =
                (0..=16).flat_map(octave).filter(|s| *s <= 64 << 10).collect();
            sizes.dedup();
            return sizes;
        };
        // At most 1 GiB by the parser.
        sizes.list().into_iter().filter_map(|size| u32::try_from(size).ok()).collect()
    }

    fn test(&self) -> MessagesTest {
        let mut counts = self.counts.clone();
        counts.sort_unstable();
        counts.dedup();
        MessagesTest {
            counts,
            max_time: Picos::from_duration(self.max_time),
            end: Deadline::after(self.max_time),
            sizes: self.sizes(),
            seed: self.seed,
            is_watched: false,
        }
    }
}

/// Results, for all forms of output.
#[derive(Serialize)]
struct Report {
    study: &'static str,
    transport: String,
    peer: String,
    sizes: usize,
    #[serde(rename = "repetitions")]
    blocks: usize,
    #[serde(flatten)]
    deviations: Deviations,
    /// Half round trip and gap of the smallest size, s.
    smallest: Smallest,
    #[serde(serialize_with = "fields")]
    bell: Option<Bell>,
}

/// Values of the smallest size.
#[derive(Clone, Copy, Serialize)]
struct Smallest {
    size_bytes: u32,
    half_rtt_s: Option<f64>,
    /// Gap with the number of messages that is chosen, or the most.
    gap_s: Option<f64>,
    /// Messages that pLogP's gap takes to be known to 1%.
    plogp_messages: Option<u64>,
}

impl Smallest {
    /// Values of `gaps` with the number of messages at `index`.
    fn of(gaps: &SizeGaps, index: Option<usize>) -> Self {
        let mut trips: Vec<Picos> = gaps.blocks.iter().map(|block| block.round_trip).collect();
        let each = gaps.blocks.iter().filter_map(|block| *block.gaps.get(index?)?);
        let mut each: Vec<SignedPicos> = each.collect();
        let half_rtt_s = Sorted::new(&mut trips).median().map(|trip| trip.seconds() / 2.0);
        let gap_s = Sorted::new(&mut each).median().map(SignedPicos::seconds);
        let plogp_messages =
            half_rtt_s.zip(gap_s).and_then(|(half, gap)| plogp_messages(half, gap));
        Self { size_bytes: gaps.size, half_rtt_s, gap_s, plogp_messages }
    }
}

/// Send overhead by both methods, with intervals, seconds.
fn seconds(Bell { gap, stays, leaves, eq_4, .. }: &Bell) -> [(&'static str, f64); 8] {
    [
        ("gap_s", gap.median.seconds()),
        ("delay_s_lo", stays.seconds()),
        ("delay_s_hi", leaves.seconds()),
        ("send_overhead_s_lo", gap.low.seconds() - leaves.seconds()),
        ("send_overhead_s_hi", gap.high.seconds() - stays.seconds()),
        ("eq4_send_overhead_s", eq_4.median.seconds()),
        ("eq4_send_overhead_s_lo", eq_4.low.seconds()),
        ("eq4_send_overhead_s_hi", eq_4.high.seconds()),
    ]
}

fn fields<S: Serializer>(bell: &Option<Bell>, serializer: S) -> Result<S::Ok, S::Error> {
    let fields = bell.as_ref().map(|bell| {
        let mut fields = vec![("size_bytes", bell.size.into()), ("messages", bell.messages.into())];
        fields.extend(seconds(bell).map(|(key, seconds)| (key, seconds.into())));
        Fields(fields)
    });
    fields.serialize(serializer)
}

impl Report {
    fn new(results: &[SizeGaps], deviations: Deviations, link: Option<&LinkFingerprint>) -> Self {
        // Without a choice the gap is that of the most messages.
        let chosen = deviations.chosen.or(deviations.rows.last().map(|row| row.messages));
        let chosen = deviations.rows.iter().position(|row| Some(row.messages) == chosen);
        let none = SizeGaps::default();
        Self {
            study: "messages",
            transport: link.map(|link| link.transport.clone()).unwrap_or_default(),
            peer: link.map(|link| link.peer.clone()).unwrap_or_default(),
            sizes: results.len(),
            blocks: results.iter().map(|size| size.blocks.len()).min().unwrap_or(0),
            smallest: Smallest::of(results.first().unwrap_or(&none), chosen),
            bell: results.iter().find_map(|size| size.bell),
            deviations,
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { transport, peer, sizes, blocks, deviations, .. } = self;
        let ranges = deviations.ranges.iter().map(|span| {
            format!("{} to {}", number::size(span.first_bytes), number::size(span.last_bytes))
        });
        let ranges = ranges.collect::<Vec<_>>().join(", ");
        writeln!(
            out,
            "# {transport} to {peer}: {sizes} sizes, {blocks} repetitions; ranges: {ranges}"
        )?;
        writeln!(
            out,
            "# lsq: mean square deviation of the gap from its line (Eq. 6), mean of the ranges; \
             median, 95% interval"
        )?;
        writeln!(out, "#{:>9} {:>12} {:>12} {:>12}", "messages", "lsq[us2]", "lo", "hi")?;
        for row in &deviations.rows {
            let cell = |square_seconds: Option<f64>| {
                square_seconds.map_or_else(|| "-".to_owned(), |s2| format!("{:.3e}", s2 * 1e12))
            };
            let [lsq, low, high] = [row.gap_lsq_s2, row.gap_lsq_s2_lo, row.gap_lsq_s2_hi].map(cell);
            writeln!(out, "{:>10} {lsq:>12} {low:>12} {high:>12}", row.messages)?;
        }
        self.conclude(out)
    }

    fn conclude(&self, out: &mut dyn Write) -> io::Result<()> {
        let time = |seconds: f64| number::in_units(seconds, number::TIME);
        match self.deviations.chosen {
            Some(messages) => writeln!(
                out,
                "# n = {messages}: the smallest within the interval of the least deviation"
            )?,
            None if self.deviations.rows.iter().all(|row| row.gap_lsq_s2.is_none()) => {
                writeln!(out, "# no n is chosen: too few sizes were measured without losses")?;
            }
            None => writeln!(
                out,
                "# no n is chosen: the interval of the least deviation is too wide; more \
                 --max-time, or a quieter machine"
            )?,
        }
        let Smallest { size_bytes, half_rtt_s, gap_s, plogp_messages } = self.smallest;
        if let (Some(half_rtt), Some(gap), Some(count)) = (half_rtt_s, gap_s, plogp_messages) {
            writeln!(
                out,
                "# pLogP's gap at {}: at least {} messages for 1%, (2L + g)/(0.01 g) with \
                 L = RTT/2 = {}, g = {}",
                number::size(size_bytes.into()),
                number::count(count),
                time(half_rtt),
                time(gap)
            )?;
        }
        let Some(bell) = &self.bell else { return Ok(()) };
        let [gap, stays, leaves, low, high, eq_4, eq_4_low, eq_4_high] =
            seconds(bell).map(|(_, seconds)| time(seconds));
        writeln!(
            out,
            "# o_s at {} by Bell et al.: {low} to {high} (G_all {gap}, left between d = {stays} and \
             {leaves}); by Eq. 4: {eq_4} ({eq_4_low} to {eq_4_high})",
            number::size(bell.size.into())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::messages::Deviation;

    #[test]
    fn too_few_sizes_are_no_matter_of_time() {
        let row = |gap_lsq_s2| Deviation {
            messages: 2,
            gap_lsq_s2,
            gap_lsq_s2_lo: gap_lsq_s2,
            gap_lsq_s2_hi: gap_lsq_s2,
        };
        let text = |gap_lsq_s2| {
            let rows = vec![row(gap_lsq_s2), row(None)];
            let deviations = Deviations { ranges: Vec::new(), rows, chosen: None };
            let mut out = Vec::new();
            Report::new(&[], deviations, None).write(&mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(text(None).ends_with("too few sizes were measured without losses\n"));
        assert!(text(Some(1e-12)).contains("more --max-time"));
    }
}
