//! `loggap bw`: bandwidth and message rate, as ib_send_bw, ib_write_bw and
//! ib_read_bw print them.

use loggap_core::measure::{Experiment, Quantity};
use loggap_core::stats::Sorted;
use loggap_core::units::Picos;
use serde::Serialize;

use super::{Document, TestArgs, Values, remarks, round_trip, run_test};
use crate::cli::{CliError, Console, Exit};

/// Bandwidth and message rate of given sizes, with the columns of perftest.
///
/// Messages are sent in bursts, of which the last is answered. What a message
/// takes is how much longer a burst takes than a single message, divided by
/// the others: the gap. The average column is its median over the bursts, the
/// peak column the fastest burst. MB are 2^20 bytes, as in perftest, Mpps
/// 10^6 messages a second. For parameters of the link with their intervals:
/// `loggap measure`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap bw                                     TCP on this machine, 64 KiB
  loggap bw node7 --transport verbs             as ib_send_bw
  loggap bw node7 --transport verbs --op write -a")]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    test: TestArgs,
    /// Messages of each size, in bursts of up to 1000.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(5..))]
    iters: u32,
    /// Print Gb/s, of 10^9 bits, instead of MB/s.
    #[arg(long)]
    report_gbits: bool,
}

/// What bandwidth is printed in.
#[derive(Clone, Copy)]
enum Unit {
    /// 2²⁰ bytes a second, which perftest calls MB.
    Mebibytes,
    /// 10⁹ bits a second.
    Gigabits,
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Self::Mebibytes => "MB/sec",
            Self::Gigabits => "Gb/sec",
        }
    }

    const fn bytes_per_second(self) -> f64 {
        match self {
            Self::Mebibytes => 1_048_576.0,
            Self::Gigabits => 1e9 / 8.0,
        }
    }
}

/// Messages of one size.
#[derive(Clone, Copy, Debug, Serialize)]
struct Rate {
    size_bytes: u32,
    messages: u64,
    lost: u64,
    /// Time a message, `None` where bursts take no longer than a message.
    gap_s: Option<f64>,
    fastest_gap_s: Option<f64>,
    bandwidth_bytes_per_s: Option<f64>,
    peak_bytes_per_s: Option<f64>,
    messages_per_s: Option<f64>,
}

/// Bursts of each size, at least.
const BURSTS: u32 = 5;
/// Messages in a burst, at most.
const LONGEST_BURST: u32 = 1_000;
/// Round trips that tell how long a single message takes.
const SINGLES: u32 = 20;

pub(in crate::cli) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let test = &args.test;
    let burst = (args.iters / BURSTS).clamp(2, LONGEST_BURST);
    let bursts = args.iters.div_ceil(burst).max(BURSTS);
    let mut results = Vec::new();
    let json = test.json;
    let unit = if args.report_gbits { Unit::Gigabits } else { Unit::Mebibytes };
    let (exit, link) = run_test(
        test,
        &test.sizes(64 << 10),
        console,
        |session, size| {
            session.repeat(round_trip(size), (test.warmup, None))?;
            let single = session.repeat(round_trip(size), (SINGLES, None))?;
            let experiment =
                Experiment { quantity: Quantity::Gap, messages: burst, ..round_trip(size) };
            let values = session.repeat(experiment, (bursts, None))?;
            Ok(Rate::of((size, burst), single, values))
        },
        |console, first, rate| {
            results.push(rate);
            if json {
                return Ok(());
            }
            if let Some(link) = first {
                remarks(console, link)?;
                let name = unit.name();
                writeln!(
                    console.data(),
                    "#bytes   #iterations  BW peak[{name}]  BW average[{name}]  MsgRate[Mpps]"
                )?;
            }
            rate.row(console, unit)
        },
    )?;
    if json {
        console.json(&Document::of(("bw", "gap between messages of a burst"), link, results))?;
    }
    Ok(exit)
}

impl Rate {
    fn of((size_bytes, burst): (u32, u32), mut single: Values, mut bursts: Values) -> Self {
        let single = Sorted::new(&mut single.elapsed).median();
        let messages = bursts.elapsed.len() as u64 * u64::from(burst);
        let sorted = Sorted::new(&mut bursts.elapsed);
        let gap = |burst_took: Option<Picos>| {
            let more = burst_took?.0.checked_sub(single?.0).filter(|more| *more > 0)?;
            Some(Picos(more).seconds() / f64::from(burst - 1))
        };
        let (gap_s, fastest_gap_s) = (gap(sorted.median()), gap(sorted.quantile(0, 1)));
        let bandwidth = |gap: Option<f64>| Some(f64::from(size_bytes) / gap?);
        Self {
            size_bytes,
            messages,
            lost: bursts.lost,
            gap_s,
            fastest_gap_s,
            bandwidth_bytes_per_s: bandwidth(gap_s),
            peak_bytes_per_s: bandwidth(fastest_gap_s),
            messages_per_s: gap_s.map(|gap| 1.0 / gap),
        }
    }

    fn row(&self, console: &mut Console, unit: Unit) -> Result<(), CliError> {
        let shown = |bytes: Option<f64>| {
            let in_unit = bytes.map(|bytes| bytes / unit.bytes_per_second());
            in_unit.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
        };
        let rate =
            self.messages_per_s.map_or_else(|| "-".to_owned(), |rate| format!("{:.6}", rate / 1e6));
        writeln!(
            console.data(),
            "{:<8} {:>11} {:>16} {:>19} {rate:>14}",
            self.size_bytes,
            self.messages,
            shown(self.peak_bytes_per_s),
            shown(self.bandwidth_bytes_per_s)
        )?;
        if self.lost > 0 {
            writeln!(console.data(), "# {} bursts of {} B were lost", self.lost, self.size_bytes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(micros: &[u64]) -> Values {
        Values { elapsed: micros.iter().map(|us| Picos(us * 1_000_000)).collect(), lost: 0 }
    }

    #[test]
    fn a_gap_is_what_the_others_of_a_burst_add() {
        let rate = Rate::of((1_000, 11), values(&[20, 22, 18]), values(&[120, 130, 110]));
        assert!((rate.gap_s.unwrap() - 10e-6).abs() < 1e-12, "{rate:?}");
        assert!((rate.peak_bytes_per_s.unwrap() - 1_000.0 / 9e-6).abs() < 1.0, "{rate:?}");
        assert_eq!(rate.messages, 33);
    }

    #[test]
    fn a_burst_that_takes_no_longer_than_a_message_has_no_rate() {
        let rate = Rate::of((1, 2), values(&[20]), values(&[20]));
        assert_eq!((rate.gap_s, rate.messages_per_s), (None, None));
    }
}
