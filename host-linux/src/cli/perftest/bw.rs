//! `loggap bw`: bandwidth and message rate, as ib_send_bw, ib_write_bw and
//! ib_read_bw print them.

use std::time::Duration;

use loggap_core::measure::{Experiment, Quantity, SessionError};
use loggap_core::stats::Sorted;
use loggap_core::units::Picos;
use serde::Serialize;

use super::connections::Connections;
use super::flags::RefusedByBandwidth;
use super::rounds::{Repetitions, Rounds, Values};
use super::{About, Measured, TestArgs, remarks, round_trip, run_test, shown};
use crate::cli::{CliError, Console, Exit, parse};
use crate::link::{LinkError, Transport};
use crate::machine::clock::Deadline;
use crate::machine::environment::LinkFingerprint;

/// Bandwidth and message rate of given sizes, with the columns of perftest.
///
/// Messages are sent in bursts, of which the last is answered; with -b each
/// is. What a message takes is how much longer a burst takes, from the first
/// post to the last reply, than a single message, divided by the others: the
/// gap. The average column is that of the median burst, the peak column that
/// of the fastest. With -q a burst is one of each queue pair at the same time,
/// which takes as long as the slowest of them; with -b messages of both
/// directions count. MB are 2^20 bytes, as in perftest, Mpps 10^6 messages a
/// second. Without HOST, the responder is started here, and the link to it on
/// this machine is measured. For parameters of the link with their intervals:
/// `loggap measure`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap bw                                     TCP on this machine, 64 KiB
  loggap bw node7 --transport verbs             as ib_send_bw
  loggap bw node7 --transport verbs --op write -a
  loggap bw node7 -q 4                          where `loggap serve --clients 4` runs
  loggap bw node7 -b -s 4K -D 10                both directions, for 10 s")]
pub(in crate::cli) struct Args {
    // First, as it looks at options that others take.
    #[command(flatten)]
    refused: RefusedByBandwidth,
    #[command(flatten)]
    test: TestArgs,
    /// Rounds before those that count.
    #[arg(long, value_name = "N", default_value_t = 20)]
    warmup: u32,
    /// Messages of each size and connection, in 20 bursts; in fewer where these
    /// would be shorter than 32 messages, in more where longer than 1000.
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

/// Messages of one size, of all connections and directions. What was not
/// measured is `None`.
#[derive(Clone, Copy, Debug, Serialize)]
struct Rate {
    size_bytes: u32,
    messages: u64,
    /// Bursts that count, and messages of each connection and direction in one.
    bursts: u64,
    burst_messages: u32,
    /// Messages under way at most, over RDMA verbs.
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u16>,
    /// Bursts of which a message was lost.
    lost: u64,
    /// Time a message, `None` where bursts take no longer than a message.
    gap_s: Option<f64>,
    fastest_gap_s: Option<f64>,
    /// How much bursts differ: half of the interquartile range of their gaps,
    /// divided by the median. `None` for fewer than four bursts.
    spread: Option<f64>,
    bandwidth_bytes_per_s: Option<f64>,
    peak_bytes_per_s: Option<f64>,
    messages_per_s: Option<f64>,
}

/// Bursts of each size, where there are enough messages.
const BURSTS: u32 = 20;
/// Messages in a burst, at most.
const LONGEST_BURST: u32 = 1_000;
/// Messages in a burst, at least, where there are as many: of fewer, what the
/// first and the last take is most of a burst.
const SHORTEST_BURST: u32 = 32;
/// Round trips that tell how long a single message takes.
const SINGLES: u32 = 20;
/// Fewer messages under way are pointed out.
const ENOUGH_UNDER_WAY: u32 = 8;
/// Bursts of several connections that are shorter are pointed out, in seconds.
const BRIEF_S: f64 = 1e-3;
/// Bursts that differ by more are pointed out.
const LARGE_SPREAD: f64 = 0.1;

/// Bytes that either end of a link through sockets takes while nobody reads
/// them: in both directions at the same time no more are under way, as
/// otherwise both ends could wait for the other to read.
const UNREAD: u32 = 64 << 10;
/// The same of shared memory: half of its ring.
const UNREAD_OF_RING: u32 = 512 << 10;
/// Messages without an answer, at most.
const MOST_UNANSWERED: u32 = 64;

impl Args {
    /// What the test does at each size, if it can.
    fn plan(&self, sizes: &[u32]) -> Result<Plan, CliError> {
        let (bursts, burst) = bursts_of(self.iters);
        if self.bidirectional {
            self.check_both_ways(sizes)?;
        }
        Ok(Plan {
            burst,
            bursts,
            time: self.duration,
            warmup: self.warmup,
            connections: self.queue_pairs,
            both_ways: self.bidirectional,
        })
    }

    /// Whether messages of all `sizes` can be under way in both directions.
    fn check_both_ways(&self, sizes: &[u32]) -> Result<(), CliError> {
        let link = &self.test.ends.link;
        if link.is_read() {
            return Err(CliError::usage(
                "--op read takes no -b: the other end has no part in a read; start a second test there",
            ));
        }
        let transport = link.transport;
        let longest = match transport {
            // A receiver has places for as many messages as are under way.
            Transport::Verbs => u32::MAX,
            Transport::Shm => UNREAD_OF_RING,
            _ => UNREAD,
        };
        match sizes.iter().copied().max() {
            Some(largest) if largest > longest => Err(CliError::usage(format_args!(
                "-b takes messages of up to {longest} bytes over {transport}, not {largest}: longer ones do not fit between two ends that both send; use smaller sizes, or leave -b out"
            ))),
            _ => Ok(()),
        }
    }
}

/// How many bursts, of how many messages, make so many messages or a few more.
fn bursts_of(messages: u32) -> (u32, u32) {
    let bursts = (messages / SHORTEST_BURST).clamp(1, BURSTS);
    let burst = messages.div_ceil(bursts).min(LONGEST_BURST);
    (messages.div_ceil(burst), burst)
}

/// Messages of `size` bytes that may be without an answer where both ends
/// send. `places` are those of a link of RDMA verbs, half of which may be
/// taken; other links take a number of bytes.
fn window(size: u32, places: Option<u16>) -> u32 {
    let most = match places {
        Some(places) => u32::from(places) / 2,
        None => (UNREAD / size.max(1)).max(2),
    };
    most.clamp(1, MOST_UNANSWERED)
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
    /// Whether each message is answered by one as long.
    both_ways: bool,
}

impl Plan {
    /// What the values are, in words.
    fn quantity(&self) -> String {
        let ways = if self.both_ways { "both ways" } else { "one way" };
        let all = match self.connections {
            1 => String::new(),
            many => format!(", {many} connections together"),
        };
        format!("{ways}, gap between messages of a burst{all}")
    }

    /// Messages that a burst counts for each that one connection sends.
    fn times(&self) -> u32 {
        self.connections * if self.both_ways { 2 } else { 1 }
    }

    fn measure(
        &self,
        connections: &mut Connections<'_>,
        link: &LinkFingerprint,
        size: u32,
    ) -> Result<Measured<Rate>, SessionError<LinkError>> {
        let depth = link.verbs.as_ref().map(|verbs| verbs.depth);
        let window = window(size, depth);
        let bursts = |session: &mut dyn Rounds, repetitions: Repetitions| match self.both_ways {
            true => session.repeat_both_ways(size, (self.burst, window), repetitions),
            false => session.repeat(self.experiment(size), repetitions),
        };
        connections.together(|session| session.repeat(round_trip(size), (self.warmup, None)))?;
        let Some(first) = connections.first() else {
            return Ok((self.rate(size, Values::default(), Values::default()), None));
        };
        let single = first.repeat(round_trip(size), (SINGLES, None))?;
        let mut values = match self.connections {
            1 => bursts(first, (self.bursts, self.time))?,
            _ => self.together(connections, bursts)?,
        };
        let failure = values.failure.take();
        Ok((Rate { depth, ..self.rate(size, single, values) }, failure))
    }

    /// Bursts of all connections that begin at the same time. Each takes as
    /// long as its slowest connection does, without what comes before the first
    /// post, and counts where no connection lost any.
    fn together(
        &self,
        connections: &mut Connections<'_>,
        bursts: impl Fn(&mut dyn Rounds, Repetitions) -> Result<Values, SessionError<LinkError>> + Sync,
    ) -> Result<Values, SessionError<LinkError>> {
        let deadline = self.time.map(Deadline::after);
        let mut all = Values::default();
        let mut done = 0;
        loop {
            let each = match connections.together(|session| bursts(session, (1, None))) {
                Err(error) if !all.elapsed.is_empty() => {
                    return Ok(Values { failure: Some(error), ..all });
                }
                each => each?,
            };
            let lost: u64 = each.iter().map(|values| values.lost).sum();
            // None of a connection whose burst was lost, or that was told to stop.
            let slowest = each.iter().map(|values| values.elapsed.first().copied());
            let slowest: Option<Vec<Picos>> = slowest.collect();
            let slowest = slowest.and_then(|each| each.into_iter().max());
            all.lost += lost;
            all.elapsed.extend(slowest);
            done += 1;
            let over = deadline.map_or(done >= self.bursts, Deadline::expired);
            if over || (slowest.is_none() && lost == 0) {
                return Ok(all);
            }
        }
    }

    const fn experiment(&self, size: u32) -> Experiment {
        Experiment { quantity: Quantity::Gap, messages: self.burst, ..round_trip(size) }
    }

    fn rate(&self, size_bytes: u32, mut single: Values, mut bursts: Values) -> Rate {
        let single = Sorted::new(&mut single.elapsed).median();
        let count = bursts.elapsed.len() as u64;
        let sorted = Sorted::new(&mut bursts.elapsed);
        let others = self.burst.saturating_sub(1).max(1) * self.times();
        let gap = |burst_took: Option<Picos>| {
            let more = burst_took?.0.checked_sub(single?.0).filter(|more| *more > 0)?;
            Some(Picos(more).seconds() / f64::from(others))
        };
        let (gap_s, fastest_gap_s) = (gap(sorted.median()), gap(sorted.quantile(0, 1)));
        let quartiles = (gap(sorted.quantile(1, 4)), gap(sorted.quantile(3, 4)));
        let spread = match (quartiles, gap_s) {
            ((Some(lower), Some(upper)), Some(gap)) if count >= 4 => {
                Some((upper - lower) / 2.0 / gap)
            }
            _ => None,
        };
        let bandwidth = |gap: Option<f64>| Some(f64::from(size_bytes) / gap?);
        Rate {
            size_bytes,
            messages: count * u64::from(self.burst) * u64::from(self.times()),
            bursts: count,
            burst_messages: self.burst,
            depth: None,
            lost: bursts.lost,
            gap_s,
            fastest_gap_s,
            spread,
            bandwidth_bytes_per_s: bandwidth(gap_s),
            peak_bytes_per_s: bandwidth(fastest_gap_s),
            messages_per_s: gap_s.map(|gap| 1.0 / gap),
        }
    }
}

pub(in crate::cli) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let test = &args.test;
    let sizes = test.sizes(64 << 10);
    let plan = args.plan(&sizes)?;
    let unit = if args.report_gbits { Unit::Gigabits } else { Unit::Mebibytes };
    let quantity = plan.quantity();
    let about = About { command: "bw", quantity, connections: plan.connections };
    let tested = run_test(
        (test, &about),
        &sizes,
        console,
        |connections, link, size| plan.measure(connections, link, size),
        |console, first, rate| {
            if let Some(link) = first {
                remarks(console, link)?;
                let name = unit.name();
                let quantity = &about.quantity;
                writeln!(
                    console.data(),
                    "# values: {quantity}; average: the median burst, peak: the fastest"
                )?;
                writeln!(
                    console.data(),
                    "#bytes   #iterations  BW peak[{name}]  BW average[{name}]  MsgRate[Mpps]"
                )?;
            }
            rate.row(console, unit)
        },
    )?;
    if !test.json && !tested.results.is_empty() {
        for warning in warnings(&plan, &tested.results) {
            writeln!(console.data(), "# warning: {warning}")?;
        }
    }
    tested.outcome
}

/// What makes numbers of the table doubtful.
fn warnings(plan: &Plan, results: &[Rate]) -> Vec<String> {
    let mut warnings = Vec::new();
    let short = plan.burst;
    if short < SHORTEST_BURST {
        let enough = SHORTEST_BURST * BURSTS;
        warnings.push(format!(
            "bursts of {short} messages are too short to trust; -n {enough} makes {BURSTS} of {SHORTEST_BURST}"
        ));
    }
    let least = results.iter().filter_map(|rate| Some((rate.depth?, rate.size_bytes))).min();
    if let Some((depth, size)) = least.filter(|(depth, _)| u32::from(*depth) < ENOUGH_UNDER_WAY) {
        warnings.push(format!(
            "{depth} messages of {size} B are under way at most: --depth, or the memory that both ends may lock (`ulimit -l`)"
        ));
    }
    let brief = results.iter().find(|rate| {
        let took = rate.gap_s.map(|gap| gap * f64::from(plan.burst * plan.times()));
        plan.connections > 1 && took.is_some_and(|took| took < BRIEF_S)
    });
    if let Some(rate) = brief {
        warnings.push(format!(
            "bursts of {} B last less than 1 ms, as long as connections may begin one after the other: the rate may be too high; larger -n makes them longer, up to {LONGEST_BURST} messages",
            rate.size_bytes
        ));
    }
    let differing = results.iter().filter_map(|rate| Some((rate.spread?, rate.size_bytes)));
    let differing: Vec<_> = differing.filter(|(spread, _)| *spread > LARGE_SPREAD).collect();
    let most = differing.iter().copied().max_by(|one, other| one.0.total_cmp(&other.0));
    if let Some((spread, size)) = most {
        let percent = spread * 100.0;
        let others = match differing.len() {
            1 => String::new(),
            many => format!(", the most of {many} such sizes"),
        };
        warnings.push(format!(
            "bursts differ by {percent:.0}% at {size} B{others}; -D measures for longer"
        ));
    }
    warnings
}

impl Rate {
    fn row(&self, console: &mut Console, unit: Unit) -> Result<(), CliError> {
        let bandwidth =
            |bytes: Option<f64>| shown(bytes.map(|bytes| bytes / unit.bytes_per_second()), 3);
        writeln!(
            console.data(),
            "{:<8} {:>11} {:>16} {:>19} {:>14}",
            self.size_bytes,
            self.messages,
            bandwidth(self.peak_bytes_per_s),
            bandwidth(self.bandwidth_bytes_per_s),
            shown(self.messages_per_s.map(|rate| rate / 1e6), 6)
        )?;
        if self.lost > 0 {
            let (lost, size, all) = (self.lost, self.size_bytes, self.lost + self.bursts);
            writeln!(
                console.data(),
                "# {lost} of {all} bursts of {size} B lost messages and do not count"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(micros: &[u64]) -> Values {
        Values {
            elapsed: micros.iter().map(|us| Picos(us * 1_000_000)).collect(),
            ..Values::default()
        }
    }

    fn plan(burst: u32, connections: u32) -> Plan {
        Plan { burst, bursts: BURSTS, time: None, warmup: 0, connections, both_ways: false }
    }

    #[test]
    fn a_gap_is_what_the_others_of_a_burst_add() {
        let rate = plan(11, 1).rate(1_000, values(&[20, 22, 18]), values(&[120, 130, 110]));
        assert!((rate.gap_s.unwrap() - 10e-6).abs() < 1e-12, "{rate:?}");
        assert!((rate.peak_bytes_per_s.unwrap() - 1_000.0 / 9e-6).abs() < 1.0, "{rate:?}");
        assert_eq!((rate.messages, rate.bursts, rate.spread), (33, 3, None));
    }

    #[test]
    fn the_gap_of_all_is_shared_by_connections_and_directions() {
        for (connections, both_ways, share) in [(1, true, 2_u32), (4, false, 4), (3, true, 6)] {
            let plan = Plan { both_ways, ..plan(11, connections) };
            let rate = plan.rate(1_000, values(&[20]), values(&[120]));
            let gap = 10e-6 / f64::from(share);
            assert!((rate.gap_s.unwrap() - gap).abs() < 1e-12, "{rate:?}");
            assert_eq!(rate.messages, 11 * u64::from(share));
        }
    }

    #[test]
    fn a_burst_that_takes_no_longer_than_a_message_has_no_rate() {
        let rate = plan(2, 1).rate(1, values(&[20]), values(&[20]));
        assert_eq!((rate.gap_s, rate.messages_per_s), (None, None));
    }

    #[test]
    fn bursts_that_differ_are_pointed_out() {
        let plan = plan(101, 1);
        // Gaps of 10 µs, but for quartiles of 8 and 12.
        let differing = plan.rate(8, values(&[20]), values(&[820, 1_020, 1_020, 1_220]));
        assert!((differing.spread.unwrap() - 0.1).abs() < 1e-9, "{differing:?}");
        let worse = plan.rate(64, values(&[20]), values(&[520, 520, 1_020, 1_520]));
        let alike = plan.rate(8, values(&[20]), values(&[1_000, 1_020, 1_020, 1_030]));
        assert_eq!(warnings(&plan, &[alike]), Vec::<String>::new());
        let said = warnings(&plan, &[alike, worse, alike]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("bursts differ by ") && said[0].contains("64 B"), "{said:?}");
    }

    #[test]
    fn messages_are_sent_in_twenty_bursts_where_there_are_enough() {
        for (messages, bursts) in [
            (5_000, (20, 250)),
            (640, (20, 32)),
            (100, (3, 34)),
            (10, (1, 10)),
            (5, (1, 5)),
            (100_000, (100, 1_000)),
        ] {
            assert_eq!(bursts_of(messages), bursts, "{messages}");
        }
        let said = warnings(&plan(10, 1), &[]);
        assert!(said[0].contains("bursts of 10 messages"), "{said:?}");
    }

    #[derive(Debug, clap::Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn planned(words: &str) -> Result<bool, String> {
        let words = ["test"].into_iter().chain(words.split_whitespace());
        let args = <Command as clap::Parser>::try_parse_from(words).unwrap().args;
        let plan = args.plan(&args.test.sizes(64 << 10)).map_err(|error| format!("{error:?}"))?;
        Ok(plan.both_ways)
    }

    #[test]
    fn no_more_is_under_way_both_ways_than_a_link_takes_unread() {
        for (size, most) in [(1, 64), (4 << 10, 16), (64 << 10, 2), (512 << 10, 2)] {
            assert_eq!(window(size, None), most, "{size}");
        }
        for (places, most) in [(2, 1), (8, 4), (32, 16), (4_096, 64)] {
            assert_eq!(window(1 << 20, Some(places)), most, "{places}");
        }
        assert_eq!(planned("-s 1K"), Ok(false));
        assert_eq!(planned("-b -s 1,64K"), Ok(true));
        assert_eq!(planned("-b --transport verbs -s 1M"), Ok(true));
        assert!(planned("-b -s 65537").unwrap_err().contains("up to 65536 bytes over tcp"));
        assert!(planned("-b -s 1M --transport shm").unwrap_err().contains("524288 bytes over shm"));
        assert!(planned("-b --transport verbs --op read").unwrap_err().contains("takes no -b"));
    }
}
