//! `loggap bw`: bandwidth and message rate, with the columns of ib_send_bw, ib_write_bw and
//! ib_read_bw.

use std::io::{self, Write};
use std::time::Duration;

use super::{Columns, TestArgs, run_test};
use crate::drive::perftest::bw::{BandwidthTest, Bursts, bursts_of, longest_both_ways};
use crate::drive::perftest::rate::{Rate, STRETCH, warnings};
use crate::drive::perftest::{Budget, TestSizes};
use crate::flags::parse;
use crate::output::number::decimal;
use crate::terminal::{CliError, Console, Exit};

/// Bandwidth and message rate of given sizes, with the columns of perftest.
///
/// Messages are sent in bursts of n, timed from the first post to the last reply; only the last
/// message is answered, with -b each one. Time per message = (burst - single) / (n - 1). The
/// average column is the median burst, the peak column the fastest 5 bursts in a row. With -q all
/// queue pairs send a burst at the same time; with -b messages of both directions count. MB are
/// 2^20 bytes, as in perftest, Mpps 10^6 messages per second. Without HOST both ends run on this
/// machine. 'loggap measure' gives link parameters with confidence intervals.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap bw                                     TCP on this machine, 64 KiB
  loggap bw node7 --transport verbs             as ib_send_bw
  loggap bw node7 --transport verbs --op write -a
  loggap bw node7 -q 4                          where `loggap serve --clients 4` runs
  loggap bw node7 -b -s 4K -D 10                both directions, for 10 s")]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    test: TestArgs,
    /// Warm-up rounds.
    #[arg(long, value_name = "ROUNDS", default_value_t = 20)]
    warmup: u32,
    /// Messages per size and connection.
    ///
    /// Sent in 20 bursts; in fewer or more to keep bursts between 32 and 1000
    /// messages.
    #[arg(short = 'n', long, value_name = "MESSAGES", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(5..))]
    iters: u32,
    /// Time per size, in place of -n: seconds, or with a unit.
    #[arg(short = 'D', long, value_name = "SECONDS", conflicts_with = "iters", value_parser = parse::session_time)]
    duration: Option<Duration>,
    /// Queue pairs or connections; needs `serve --clients COUNT`.
    ///
    /// Each has a thread of its own; the rate is of all together.
    #[arg(short = 'q', long = "qp", value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    queue_pairs: u32,
    /// Both directions at the same time; the rate is their sum.
    #[arg(short, long)]
    bidirectional: bool,
    /// Print Gb/s (10^9 bits per second) instead of MB/s.
    #[arg(long, alias = "report_gbits")]
    report_gbits: bool,
}

impl Args {
    /// Bandwidth of each size.
    fn plan(&self) -> BandwidthTest {
        let Bursts { count, messages } = bursts_of(self.iters);
        BandwidthTest {
            burst: messages,
            budget: self.duration.map_or(Budget::Times(count), Budget::For),
            warmup: self.warmup,
            connections: self.queue_pairs,
            both_ways: self.bidirectional,
        }
    }

    fn columns(&self) -> RateColumns {
        let ways = if self.bidirectional { "both ways" } else { "one way" };
        let all = match self.queue_pairs {
            1 => String::new(),
            many => format!(", {many} connections together"),
        };
        // 2²⁰ bytes are what perftest calls MB.
        let (unit, bytes_per_unit) =
            if self.report_gbits { ("Gb", 1e9 / 8.0) } else { ("MB", 1_048_576.0) };
        let quantity = format!("{ways}, gap between messages of a burst{all}");
        RateColumns { quantity, unit, bytes_per_unit }
    }

    /// Sizes to measure; with -b, only those whose messages fit into both ends' buffers at once.
    fn sizes(&self, console: &mut Console) -> Result<TestSizes, CliError> {
        let mut sizes = self.test.sizes(64 << 10);
        let link = &self.test.ends.link;
        if !self.bidirectional {
            return Ok(sizes);
        }
        if link.is_read() {
            return Err(CliError::usage(
                "--op read takes no -b: the other end has no part in a read; start a second test there",
            ));
        }
        let transport = link.transport;
        let longest = longest_both_ways(transport);
        let largest = sizes.list().into_iter().max().filter(|largest| *largest > longest);
        match (&mut sizes, largest) {
            (_, None) => {}
            (TestSizes::All(sizes), Some(_)) => {
                sizes.retain(|size| *size <= longest);
                console.note(format_args!(
                    "-a ends at {longest} B: longer messages do not fit between two ends that both send over {transport}"
                ));
            }
            (_, Some(largest)) => {
                return Err(CliError::usage(format_args!(
                    "-b takes messages of up to {longest} bytes over {transport}, not {largest}: longer ones do not fit between two ends that both send; use smaller sizes, or leave -b out"
                )));
            }
        }
        Ok(sizes)
    }
}

pub(in crate::cli) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let (plan, ends) = (args.plan(), args.test.ends.options());
    let sizes = args.sizes(console)?;
    let tested = run_test(&plan, &args.columns(), &args.test, ends, &sizes, console)?;
    if !args.test.json && !tested.results.is_empty() {
        for warning in warnings(&plan, &tested.results) {
            writeln!(console.data(), "# warning: {warning}")?;
        }
    }
    tested.exit()
}

/// Columns of bandwidth and message rate.
struct RateColumns {
    quantity: String,
    unit: &'static str,
    bytes_per_unit: f64,
}

impl Columns<Rate> for RateColumns {
    const COMMAND: &'static str = "bw";

    fn quantity(&self) -> &str {
        &self.quantity
    }

    fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { quantity, unit, .. } = self;
        writeln!(
            out,
            "# values: {quantity}; average: the median burst, peak: the fastest {STRETCH} in a row"
        )?;
        writeln!(
            out,
            "#bytes   #iterations  BW peak[{unit}/sec]  BW average[{unit}/sec]  MsgRate[Mpps]"
        )
    }

    fn row(&self, out: &mut dyn Write, rate: &Rate) -> io::Result<()> {
        let bandwidth =
            |bytes: Option<f64>| decimal(bytes.map(|bytes| bytes / self.bytes_per_unit), 3);
        let (size, lost) = (rate.size_bytes, rate.lost);
        writeln!(
            out,
            "{size:<8} {:>11} {:>16} {:>19} {:>14}",
            rate.messages,
            bandwidth(rate.peak_bytes_per_s),
            bandwidth(rate.bandwidth_bytes_per_s),
            decimal(rate.messages_per_s.map(|rate| rate / 1e6), 6)
        )?;
        if lost > 0 {
            let all = lost + rate.bursts;
            writeln!(out, "# {lost} of {all} bursts of {size} B lost messages and do not count")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn planned(words: &str) -> Result<Vec<u32>, String> {
        let words = ["test"].into_iter().chain(words.split_whitespace());
        let args = <Command as clap::Parser>::try_parse_from(words).unwrap().args;
        args.sizes(&mut Console::standard())
            .map(|sizes| sizes.list())
            .map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn sizes_fit_between_two_ends_that_both_send() {
        assert_eq!(planned("-s 1K"), Ok(vec![1 << 10]));
        assert_eq!(planned("-b -s 1,64K"), Ok(vec![1, 64 << 10]));
        assert_eq!(planned("-b --transport verbs -s 1M"), Ok(vec![1 << 20]));
        assert_eq!(
            planned("-b -a").map(|sizes| (sizes.len(), sizes.last().copied())),
            Ok((16, Some(64 << 10)))
        );
        assert_eq!(planned("-a").map(|sizes| sizes.len()), Ok(23));
        assert!(planned("-b -s 65537").unwrap_err().contains("up to 65536 bytes over tcp"));
        assert!(planned("-b -s 1M --transport shm").unwrap_err().contains("524288 bytes over shm"));
        assert!(planned("-b --transport verbs --op read").unwrap_err().contains("takes no -b"));
    }
}
