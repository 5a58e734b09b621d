//! `loggap bw`: bandwidth and message rate, with the columns of ib_send_bw, ib_write_bw and
//! ib_read_bw.

use std::ops::ControlFlow;
use std::time::Duration;

use loggap_core::measure::{Experiment, Quantity, SessionError};
use loggap_core::units::Picos;

use super::connections::Connections;
use super::rate::{Rate, STRETCH, Unit, warnings};
use super::rounds::{BothWays, Repetitions, Rounds, Values};
use super::{About, Measured, Missing, SizeTest, TestArgs, round_trip, run_test};
use crate::flags::parse;
use crate::link::{LinkError, Transport};
use crate::machine::clock::Deadline;
use crate::machine::environment::LinkFingerprint;
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

/// Number of bursts per size, if there are enough messages.
pub(super) const BURSTS: u32 = 20;
/// Most messages in a burst.
pub(super) const LONGEST_BURST: u32 = 1_000;
/// Fewest messages in a burst, if as many are requested: a shorter burst consists mostly of the
/// cost of its first and last message.
pub(super) const SHORTEST_BURST: u32 = 32;
/// Round trips that determine the time of a single message.
const SINGLES: u32 = 20;
/// Bytes that a socket link buffers at either end while the application does not read. With traffic
/// in both directions no more may be in flight, as both ends could otherwise wait for the other to
/// read.
const UNREAD: u32 = 64 << 10;
/// As [`UNREAD`], for shared memory: half of its ring.
const UNREAD_OF_RING: u32 = 512 << 10;
/// Most unacknowledged messages.
const MOST_UNANSWERED: u32 = 64;

impl Args {
    /// Plan of the test for each size.
    fn plan(&self) -> Plan {
        let Bursts { count, messages } = bursts_of(self.iters);
        Plan {
            burst: messages,
            repetitions: self.duration.map_or(Repetitions::Times(count), Repetitions::For),
            warmup: self.warmup,
            connections: self.queue_pairs,
            both_ways: self.bidirectional,
            unit: if self.report_gbits { Unit::Gigabits } else { Unit::Mebibytes },
        }
    }

    /// Sizes to measure; with -b, only those whose messages fit into both ends' buffers at once.
    fn sizes(&self, console: &mut Console) -> Result<Vec<u32>, CliError> {
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
        let longest = match transport {
            // The receiver posts as many receives as there are messages in flight.
            Transport::Verbs => u32::MAX,
            Transport::Shm => UNREAD_OF_RING,
            _ => UNREAD,
        };
        let too_long = sizes.iter().copied().max().filter(|largest| *largest > longest);
        match too_long {
            None => {}
            Some(_) if self.test.all => {
                sizes.retain(|size| *size <= longest);
                console.note(format_args!(
                    "-a ends at {longest} B: longer messages do not fit between two ends that both send over {transport}"
                ));
            }
            Some(largest) => {
                return Err(CliError::usage(format_args!(
                    "-b takes messages of up to {longest} bytes over {transport}, not {largest}: longer ones do not fit between two ends that both send; use smaller sizes, or leave -b out"
                )));
            }
        }
        Ok(sizes)
    }
}

/// Number and length of bursts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Bursts {
    count: u32,
    messages: u32,
}

/// Bursts for `messages` messages or slightly more.
fn bursts_of(messages: u32) -> Bursts {
    let count = (messages / SHORTEST_BURST).clamp(1, BURSTS);
    let burst = messages.div_ceil(count).min(LONGEST_BURST);
    Bursts { count: messages.div_ceil(burst), messages: burst }
}

/// Messages of `size` bytes that may be unacknowledged when both ends send: half of the `places` of
/// a link over RDMA verbs; on other links as many as fit into the buffers.
fn window(size: u32, places: Option<u16>) -> u32 {
    let most = match places {
        Some(places) => u32::from(places) / 2,
        None => (UNREAD / size.max(1)).max(2),
    };
    most.clamp(1, MOST_UNANSWERED)
}

/// Plan of the test for each size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Messages in a burst.
    pub(super) burst: u32,
    /// Number or duration of the bursts.
    pub(super) repetitions: Repetitions,
    pub(super) warmup: u32,
    pub(super) connections: u32,
    /// True if each message is answered by one of the same size.
    pub(super) both_ways: bool,
    /// Unit of bandwidth.
    pub(super) unit: Unit,
}

impl Plan {
    /// Meaning of the values, in words.
    fn quantity(&self) -> String {
        let ways = if self.both_ways { "both ways" } else { "one way" };
        let all = match self.connections {
            1 => String::new(),
            many => format!(", {many} connections together"),
        };
        format!("{ways}, gap between messages of a burst{all}")
    }

    /// Messages that count in a burst, per message that one connection sends.
    pub(super) fn times(&self) -> u32 {
        self.connections * if self.both_ways { 2 } else { 1 }
    }

    /// Runs bursts that all connections start at about the same time. A burst counts if no
    /// connection lost a message in it.
    fn together(
        &self,
        connections: &mut Connections<'_>,
        burst: impl Fn(&mut dyn Rounds) -> Result<Values, SessionError<LinkError>> + Sync,
    ) -> Result<Values, SessionError<LinkError>> {
        let deadline = match self.repetitions {
            Repetitions::Times(_) => None,
            Repetitions::For(time) | Repetitions::Within(_, time) => Some(Deadline::after(time)),
        };
        let (mut all, mut done) = (Values::default(), 0);
        connections.in_step(burst, |outcomes| {
            let each: Vec<Values> = match outcomes.into_iter().collect() {
                Ok(each) => each,
                Err(error) => {
                    all.failure = Some(error);
                    return ControlFlow::Break(());
                }
            };
            let (lost, took) = (each.iter().map(|values| values.lost).sum::<u64>(), span(&each));
            all.lost += lost;
            all.elapsed.extend(took);
            done += 1;
            let over = match self.repetitions {
                Repetitions::Times(times) | Repetitions::Within(times, _) if done >= times => true,
                _ => deadline.is_some_and(Deadline::expired),
            };
            let was_stopped = took.is_none() && lost == 0;
            if over || was_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match all.failure.take_if(|_| all.elapsed.is_empty()) {
            Some(error) => Err(error),
            None => Ok(all),
        }
    }

    const fn singles(&self) -> Repetitions {
        match self.connections {
            1 => Repetitions::Times(SINGLES),
            // Limited in time: other connections are silent meanwhile, and a responder ends a
            // silent session.
            _ => Repetitions::Within(SINGLES, Duration::from_secs(1)),
        }
    }

    const fn experiment(&self, size: u32) -> Experiment {
        Experiment { quantity: Quantity::Gap, messages: self.burst, ..round_trip(size) }
    }
}

/// Duration of a burst over all connections, from the first post to the last reply of any. `None`
/// if a connection lost its burst or was stopped.
fn span(each: &[Values]) -> Option<Picos> {
    let (mut first_post, mut last_reply) = (Picos::MAX, Picos::ZERO);
    for values in each {
        let (ended, elapsed) = (*values.ended.first()?, *values.elapsed.first()?);
        first_post = first_post.min(ended.since(elapsed));
        last_reply = last_reply.max(ended);
    }
    Some(last_reply.since(first_post))
}

impl SizeTest for Plan {
    type Row = Rate;

    fn measure(
        &self,
        connections: &mut Connections<'_>,
        link: &LinkFingerprint,
        size: u32,
    ) -> Result<Measured<Rate>, SessionError<LinkError>> {
        let places = link.verbs.as_ref().map(|verbs| verbs.depth);
        let window = window(size, places);
        let messages = self.burst;
        let bursts = |session: &mut dyn Rounds, repetitions: Repetitions| match self.both_ways {
            true => session.repeat_both_ways(BothWays { size, messages, window }, repetitions),
            false => session.repeat(self.experiment(size), repetitions),
        };
        connections.together(|session| session.warm_up(round_trip(size), self.warmup))?;
        let Some(first) = connections.first() else {
            return Ok(Measured { row: None, failure: None });
        };
        let single = first.repeat(round_trip(size), self.singles())?;
        let mut values = match self.connections {
            1 => bursts(first, self.repetitions)?,
            _ => self.together(connections, |session| bursts(session, Repetitions::Times(1)))?,
        };
        let failure = values.failure.take();
        let is_row = !values.elapsed.is_empty() || values.lost > 0;
        let under_way = u16::try_from(window).ok().filter(|_| self.both_ways);
        let depth = places.map(|places| under_way.unwrap_or(places));
        let row = is_row.then(|| Rate::of(self, size, single, values).with_depth(depth));
        Ok(Measured { row, failure })
    }

    fn head(&self, console: &mut Console) -> Result<(), CliError> {
        let (quantity, name) = (self.quantity(), self.unit.name());
        let data = console.data();
        writeln!(
            data,
            "# values: {quantity}; average: the median burst, peak: the fastest {STRETCH} in a row"
        )?;
        writeln!(data, "#bytes   #iterations  BW peak[{name}]  BW average[{name}]  MsgRate[Mpps]")?;
        Ok(())
    }

    fn missing(rate: &Rate) -> Option<Missing> {
        rate.missing()
    }

    fn show(&self, rate: &Rate, console: &mut Console) -> Result<(), CliError> {
        rate.row(console, self.unit)
    }
}

pub(in crate::cli) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let plan = args.plan();
    let sizes = args.sizes(console)?;
    let (quantity, connections) = (plan.quantity(), plan.connections);
    let about = About { command: "bw", quantity, connections };
    let tested = run_test(&plan, (&args.test, &about), &sizes, console)?;
    if !args.test.json && !tested.results.is_empty() {
        for warning in warnings(&plan, &tested.results) {
            writeln!(console.data(), "# warning: {warning}")?;
        }
    }
    tested.outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_several_lasts_from_the_first_post_to_the_last_reply() {
        let burst = |posted: u64, replied: u64| Values {
            elapsed: vec![Picos(replied - posted)],
            ended: vec![Picos(replied)],
            ..Values::default()
        };
        // The longest burst takes 60; the first begins 30 before it, the last ends 5 after it.
        let each = [burst(100, 150), burst(130, 190), burst(160, 195)];
        assert_eq!(span(&each), Some(Picos(95)));
        assert_eq!(span(&each[..1]), Some(Picos(50)));
        let lost = Values { lost: 1, ..Values::default() };
        assert_eq!(span(&[burst(100, 150), lost]), None);
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
            let Bursts { count, messages: burst } = bursts_of(messages);
            assert_eq!((count, burst), bursts, "{messages}");
        }
    }

    #[derive(Debug, clap::Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn planned(words: &str) -> Result<Vec<u32>, String> {
        let words = ["test"].into_iter().chain(words.split_whitespace());
        let args = <Command as clap::Parser>::try_parse_from(words).unwrap().args;
        args.sizes(&mut Console::standard()).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn no_more_is_under_way_both_ways_than_a_link_takes_unread() {
        for (size, most) in [(1, 64), (4 << 10, 16), (64 << 10, 2), (512 << 10, 2)] {
            assert_eq!(window(size, None), most, "{size}");
        }
        for (places, most) in [(2, 1), (8, 4), (32, 16), (4_096, 64)] {
            assert_eq!(window(1 << 20, Some(places)), most, "{places}");
        }
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
