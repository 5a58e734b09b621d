//! `loggap bw`: bandwidth and message rate, as ib_send_bw, ib_write_bw and
//! ib_read_bw print them.

use std::time::Duration;

use loggap_core::measure::{Experiment, Quantity, SessionError};
use loggap_core::stats::Sorted;
use loggap_core::units::Picos;
use serde::Serialize;

use super::connections::Connections;
use super::flags::RefusedByBandwidth;
use super::rounds::{Rounds, Values};
use super::{Document, TestArgs, remarks, round_trip, run_test};
use crate::cli::{CliError, Console, Exit, parse};
use crate::link::{LinkError, Transport};

/// Bandwidth and message rate of given sizes, with the columns of perftest.
///
/// Messages are sent in bursts, of which the last is answered. What a message
/// takes is how much longer a burst takes than a single message, divided by
/// the others: the gap. The average column is its median over the bursts, the
/// peak column the fastest burst. With several queue pairs, and in both
/// directions, all messages are counted together, answers included, over five
/// parts of the test: the average column is the median part, the peak column
/// the fastest one. MB are 2^20 bytes, as in perftest, Mpps 10^6 messages a
/// second. For parameters of the link with their intervals: `loggap measure`.
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
    /// Messages of each size and connection, in bursts of up to 1000.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(5..))]
    iters: u32,
    /// Measure each size for so long instead: seconds, or with a unit.
    #[arg(short = 'D', long, value_name = "TIME", conflicts_with = "iters", value_parser = parse::duration)]
    duration: Option<Duration>,
    /// Queue pairs, or connections of other transports, at the same time, each
    /// with a thread of its own: the rate is of all together. The responder
    /// has to run as `loggap serve --clients N`.
    #[arg(short = 'q', long = "qp", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    queue_pairs: u32,
    /// Both directions at the same time: each message is answered by one as
    /// long, while others are under way. The rate is that of both directions.
    #[arg(short, long)]
    bidirectional: bool,
    /// Print Gb/s, of 10^9 bits, instead of MB/s.
    #[arg(long, alias = "report_gbits")]
    report_gbits: bool,
    #[command(flatten)]
    refused: RefusedByBandwidth,
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

/// Messages of one size, of all connections and directions.
#[derive(Clone, Copy, Debug, Serialize)]
struct Rate {
    size_bytes: u32,
    messages: u64,
    /// Bursts of which a message was lost.
    lost: u64,
    /// Time a message, `None` where bursts take no longer than a message.
    gap_s: Option<f64>,
    fastest_gap_s: Option<f64>,
    bandwidth_bytes_per_s: Option<f64>,
    peak_bytes_per_s: Option<f64>,
    messages_per_s: Option<f64>,
}

/// Bursts of each size, at least; parts of the test of several connections.
const BURSTS: u32 = 5;
/// Messages in a burst, at most.
const LONGEST_BURST: u32 = 1_000;
/// Round trips that tell how long a single message takes.
const SINGLES: u32 = 20;

/// Bytes that either end of a link takes while nobody reads them, as far as
/// every link does: in both directions at the same time no more are under way,
/// as otherwise both ends could wait for the other to read.
const UNREAD: u32 = 64 << 10;
/// Messages without an answer, at most.
const MOST_UNANSWERED: u32 = 64;

impl Args {
    /// What the test does at each size, if it can.
    fn plan(&self, sizes: &[u32]) -> Result<Plan, CliError> {
        let burst = (self.iters / BURSTS).clamp(2, LONGEST_BURST);
        let bursts = self.iters.div_ceil(burst).max(BURSTS);
        let (directions, window) =
            if self.bidirectional { (2, Some(self.window(sizes)?)) } else { (1, None) };
        Ok(Plan {
            burst,
            bursts,
            time: self.duration,
            warmup: self.test.warmup,
            connections: self.queue_pairs,
            directions,
            window,
        })
    }

    /// Messages that may be without an answer.
    fn window(&self, sizes: &[u32]) -> Result<u32, CliError> {
        if self.test.is_read() {
            return Err(CliError::usage(
                "--op read takes no -b: the other end has no part in a read; start a second test there",
            ));
        }
        let link = &self.test.ends.link;
        let transport = link.transport;
        let longest = match transport {
            // A receiver has places for as many messages as are under way.
            Transport::Verbs => u32::MAX,
            // Half of its ring.
            Transport::Shm => 512 << 10,
            _ => UNREAD,
        };
        let largest = sizes.iter().copied().max().unwrap_or(1);
        if largest > longest {
            return Err(CliError::usage(format_args!(
                "-b takes messages of up to {longest} bytes over {transport}, not {largest}: longer ones do not fit between two ends that both send; use smaller sizes, or leave -b out"
            )));
        }
        let places = if transport == Transport::Verbs { link.verbs.depth() / 2 } else { u32::MAX };
        Ok((UNREAD / largest).clamp(2, MOST_UNANSWERED).min(places.max(1)))
    }
}

/// What the test does at each size.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Messages in a burst.
    burst: u32,
    bursts: u32,
    /// How long instead of how many bursts.
    time: Option<Duration>,
    warmup: u32,
    connections: u32,
    /// Messages for each that is counted as sent.
    directions: u32,
    /// Messages that may be without an answer; `None` where only the last of a
    /// burst has one.
    window: Option<u32>,
}

impl Plan {
    /// What the values are, in words.
    fn quantity(&self) -> String {
        let ways = if self.directions == 2 { ", both directions" } else { "" };
        match (self.connections, self.directions) {
            (1, 1) => "one way, gap between messages of a burst".to_owned(),
            (1, _) => format!("all messages by the time they take{ways}"),
            (many, _) => format!("all messages of {many} connections by the time they take{ways}"),
        }
    }

    fn measure(
        &self,
        connections: &mut Connections<'_>,
        size: u32,
    ) -> Result<Rate, SessionError<LinkError>> {
        match connections.first() {
            Some(session) if (self.connections, self.directions) == (1, 1) => {
                self.measure_gap(session, size)
            }
            _ => self.measure_together(connections, size),
        }
    }

    fn measure_gap(
        &self,
        session: &mut dyn Rounds,
        size: u32,
    ) -> Result<Rate, SessionError<LinkError>> {
        session.repeat(round_trip(size), (self.warmup, None))?;
        let single = session.repeat(round_trip(size), (SINGLES, None))?;
        let values = session.repeat(self.experiment(size), (self.bursts, self.time))?;
        Ok(Rate::of((size, self.burst), single, values))
    }

    fn measure_together(
        &self,
        connections: &mut Connections<'_>,
        size: u32,
    ) -> Result<Rate, SessionError<LinkError>> {
        connections.together(|session| session.repeat(round_trip(size), (self.warmup, None)))?;
        let repetitions = (self.bursts.div_ceil(BURSTS), self.time.map(|time| time / BURSTS));
        let mut parts = Vec::new();
        for _ in 0..BURSTS {
            let (values, took) = connections.together(|session| match self.window {
                None => session.repeat(self.experiment(size), repetitions),
                Some(window) => session.repeat_both_ways(size, (self.burst, window), repetitions),
            })?;
            let bursts: usize = values.iter().map(|values| values.elapsed.len()).sum();
            let lost = values.iter().map(|values| values.lost).sum();
            let messages = bursts as u64 * u64::from(self.burst) * u64::from(self.directions);
            parts.push(Part { messages, lost, took });
        }
        Ok(Rate::of_parts(size, &parts))
    }

    const fn experiment(&self, size: u32) -> Experiment {
        Experiment { quantity: Quantity::Gap, messages: self.burst, ..round_trip(size) }
    }
}

/// Messages of all connections in a part of the test.
#[derive(Clone, Copy, Debug)]
struct Part {
    messages: u64,
    /// Bursts of which a message was lost.
    lost: u64,
    took: Picos,
}

pub(in crate::cli) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let test = &args.test;
    let sizes = test.sizes(64 << 10);
    let plan = args.plan(&sizes)?;
    let mut results = Vec::new();
    let json = test.json;
    let unit = if args.report_gbits { Unit::Gigabits } else { Unit::Mebibytes };
    let quantity = plan.quantity();
    let (exit, link) = run_test(
        test,
        (&sizes, plan.connections),
        console,
        |connections, size| plan.measure(connections, size),
        |console, first, rate| {
            results.push(rate);
            if json {
                return Ok(());
            }
            if let Some(link) = first {
                remarks(console, link)?;
                let name = unit.name();
                writeln!(console.data(), "# values: {quantity}")?;
                writeln!(
                    console.data(),
                    "#bytes   #iterations  BW peak[{name}]  BW average[{name}]  MsgRate[Mpps]"
                )?;
            }
            rate.row(console, unit)
        },
    )?;
    if json {
        console.json(&Document::of(("bw", &quantity, plan.connections), link, results))?;
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
        let gaps = (gap(sorted.median()), gap(sorted.quantile(0, 1)));
        Self::with_gaps(size_bytes, (messages, bursts.lost), gaps)
    }

    /// Of parts in which messages went over several connections, or both
    /// ways: the median part, and the fastest. Parts in which all bursts were
    /// lost say nothing.
    fn of_parts(size_bytes: u32, parts: &[Part]) -> Self {
        let messages = parts.iter().map(|part| part.messages).sum();
        let lost = parts.iter().map(|part| part.lost).sum();
        let mut each: Vec<Picos> = parts
            .iter()
            .filter_map(|part| part.took.0.checked_div(part.messages).map(Picos))
            .collect();
        let sorted = Sorted::new(&mut each);
        let gaps = (sorted.median(), sorted.quantile(0, 1));
        let seconds = |gap: Option<Picos>| gap.map(Picos::seconds).filter(|gap| *gap > 0.0);
        Self::with_gaps(size_bytes, (messages, lost), (seconds(gaps.0), seconds(gaps.1)))
    }

    fn with_gaps(
        size_bytes: u32,
        (messages, lost): (u64, u64),
        (gap_s, fastest_gap_s): (Option<f64>, Option<f64>),
    ) -> Self {
        let bandwidth = |gap: Option<f64>| Some(f64::from(size_bytes) / gap?);
        Self {
            size_bytes,
            messages,
            lost,
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

    #[test]
    fn parts_of_several_connections_count_all_messages_by_the_time_they_take() {
        let part =
            |messages, micros: u64| Part { messages, lost: 0, took: Picos(micros * 1_000_000) };
        let lost = Part { messages: 0, lost: 3, took: Picos(1) };
        // 2, 1, 4, 2 and no microseconds a message.
        let parts = [part(100, 200), part(100, 100), part(50, 200), part(100, 200), lost];
        let rate = Rate::of_parts(1_000, &parts);
        assert_eq!((rate.messages, rate.lost), (350, 3));
        assert!((rate.messages_per_s.unwrap() - 500_000.0).abs() < 1.0, "{rate:?}");
        assert!((rate.peak_bytes_per_s.unwrap() - 1e9).abs() < 1_000.0, "{rate:?}");
        assert_eq!(Rate::of_parts(1, &[lost]).messages_per_s, None);
    }

    #[derive(Debug, clap::Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn window(words: &str) -> Result<Option<u32>, String> {
        let words = ["test"].into_iter().chain(words.split_whitespace());
        let args = <Command as clap::Parser>::try_parse_from(words).unwrap().args;
        let plan = args.plan(&args.test.sizes(64 << 10)).map_err(|error| format!("{error:?}"))?;
        Ok(plan.window)
    }

    #[test]
    fn no_more_is_under_way_both_ways_than_a_link_takes_unread() {
        assert_eq!(window("-s 1K"), Ok(None));
        for (words, most) in [("-b -s 1", 64), ("-b -s 4K", 16), ("-b", 2), ("-b -s 1,64K", 2)] {
            assert_eq!(window(words), Ok(Some(most)), "{words}");
        }
        assert_eq!(window("-b --transport verbs -s 8 --depth 8"), Ok(Some(4)));
        assert_eq!(window("-b --transport verbs -s 1M"), Ok(Some(2)));
        assert!(window("-b -s 65537").unwrap_err().contains("up to 65536 bytes over tcp"));
        assert!(window("-b -s 1M --transport shm").unwrap_err().contains("524288 bytes over shm"));
        assert!(window("-b --transport verbs --op read").unwrap_err().contains("takes no -b"));
    }
}
