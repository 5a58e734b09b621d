//! `loggap lat`: latency of messages, with the columns of ib_send_lat, ib_write_lat and
//! ib_read_lat.

use std::time::Duration;

use loggap_core::measure::SessionError;
use loggap_core::stats::{Moments, Sorted};
use loggap_core::units::Picos;
use serde::Serialize;

use super::connections::Connections;
use super::rounds::{MOST_VALUES, Repetitions, Values};
use super::{About, Measured, Missing, SizeTest, TestArgs, round_trip, run_test, shown};
use crate::flags::parse;
use crate::link::LinkError;
use crate::machine::environment::LinkFingerprint;
use crate::terminal::{CliError, Console, Exit};

/// Latency of messages of given sizes, with the columns of perftest.
///
/// Round trips follow one another without a pause. Each value is half a round trip, as in
/// ib_send_lat and ib_write_lat; for reads, which have no reply, the whole, as in ib_read_lat.
/// Without HOST both ends run on this machine. 'loggap measure' gives link parameters with
/// confidence intervals.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap lat                                    TCP on this machine, 2 B
  loggap lat node7 --transport verbs            as ib_send_lat
  loggap lat node7 --transport verbs --op write -s 1:64K
  loggap lat node7 --transport verbs --op read -D 10")]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    test: TestArgs,
    /// Warm-up rounds.
    #[arg(short, long, value_name = "ROUNDS", default_value_t = 20)]
    warmup: u32,
    /// Round trips per size.
    #[arg(short = 'n', long, value_name = "ROUNDS", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=33_554_432))]
    iters: u32,
    /// Time per size, in place of -n: seconds, or with a unit.
    ///
    /// At most 33,554,432 values; a line below the row says if that cut it
    /// short. All columns are printed; perftest prints only the average.
    #[arg(short = 'D', long, value_name = "SECONDS", conflicts_with = "iters", value_parser = parse::session_time)]
    duration: Option<Duration>,
    /// Print whole round trips instead of halves.
    #[arg(long)]
    rtt: bool,
}

/// Latency at one size. Unknown values are `None`.
#[derive(Clone, Copy, Debug, Serialize)]
struct Latency {
    size_bytes: u32,
    /// Most messages in flight, over RDMA verbs.
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u16>,
    iterations: u64,
    lost: u64,
    min_s: Option<f64>,
    max_s: Option<f64>,
    median_s: Option<f64>,
    mean_s: Option<f64>,
    /// `None` also for a single value.
    stdev_s: Option<f64>,
    p99_s: Option<f64>,
    p999_s: Option<f64>,
}

/// Number of message slots for `size` bytes when one message is in flight: few enough to stay in a
/// core's private cache, as in perftest.
fn places_in_cache(size: u32) -> u16 {
    /// Bytes used for each direction: a part of the cache.
    const IN_CACHE: u32 = 256 << 10;
    const FEWEST: u16 = 4;
    u16::try_from(IN_CACHE / size.max(1)).unwrap_or(u16::MAX).max(FEWEST)
}

/// Plan of the test for each size.
struct Plan {
    quantity: &'static str,
    /// Factor from the duration of a round to a value: 1/2 for halves of round trips.
    share: f64,
    warmup: u32,
    repetitions: Repetitions,
}

pub(in crate::cli) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let mut test = args.test.clone();
    test.ends.link.verbs = test.ends.link.verbs.with_depth_of(places_in_cache);
    let is_read = test.ends.link.is_read();
    let (quantity, share) = match (is_read, args.rtt) {
        (true, _) => ("from the post of a read to its completion", 1.0),
        (false, true) => ("round trip", 1.0),
        (false, false) => ("half of a round trip", 0.5),
    };
    let repetitions = args.duration.map_or(Repetitions::Times(args.iters), Repetitions::For);
    let plan = Plan { quantity, share, warmup: args.warmup, repetitions };
    let about = About { command: "lat", quantity: quantity.to_owned(), connections: 1 };
    run_test(&plan, (&test, &about), &test.sizes(2), console)?.outcome
}

impl SizeTest for Plan {
    type Row = Latency;

    fn measure(
        &self,
        connections: &mut Connections<'_>,
        link: &LinkFingerprint,
        size: u32,
    ) -> Result<Measured<Latency>, SessionError<LinkError>> {
        let Some(session) = connections.first() else {
            return Ok(Measured { row: None, failure: None });
        };
        session.warm_up(round_trip(size), self.warmup)?;
        let mut values = session.repeat(round_trip(size), self.repetitions)?;
        let failure = values.failure.take();
        let is_row = !values.elapsed.is_empty() || values.lost > 0;
        let depth = link.verbs.as_ref().map(|verbs| verbs.depth);
        let row = is_row.then(|| Latency { depth, ..Latency::of(size, values, self.share) });
        Ok(Measured { row, failure })
    }

    fn head(&self, console: &mut Console) -> Result<(), CliError> {
        writeln!(console.data(), "# values: {}", self.quantity)?;
        Ok(writeln!(console.data(), "{HEAD}")?)
    }

    fn missing(latency: &Latency) -> Option<Missing> {
        (latency.iterations == 0).then_some(Missing::Messages)
    }

    fn show(&self, latency: &Latency, console: &mut Console) -> Result<(), CliError> {
        latency.row(console)?;
        let is_timed = matches!(self.repetitions, Repetitions::For(_));
        if is_timed && latency.iterations >= MOST_VALUES as u64 {
            let size = latency.size_bytes;
            writeln!(console.data(), "# {size} B: ended early, as no more values are kept")?;
        }
        Ok(())
    }
}

const HEAD: &str = "#bytes   #iterations  t_min[usec]  t_max[usec]  t_typical[usec]  t_avg[usec]  t_stdev[usec]  99%[usec]  99.9%[usec]";

impl Latency {
    /// Statistics of `values`, each multiplied by `share`.
    fn of(size_bytes: u32, mut values: Values, share: f64) -> Self {
        let mut moments = Moments::default();
        for value in &values.elapsed {
            moments.add(value.seconds() * share);
        }
        let sorted = Sorted::new(&mut values.elapsed);
        let seconds = |value: Option<Picos>| value.map(|value| value.seconds() * share);
        Self {
            size_bytes,
            depth: None,
            iterations: moments.count(),
            lost: values.lost,
            min_s: seconds(sorted.quantile(0, 1)),
            max_s: seconds(sorted.quantile(1, 1)),
            median_s: seconds(sorted.median()),
            mean_s: moments.mean(),
            stdev_s: moments.variance().map(f64::sqrt),
            p99_s: seconds(sorted.quantile(99, 100)),
            p999_s: seconds(sorted.quantile(999, 1_000)),
        }
    }

    fn row(&self, console: &mut Console) -> Result<(), CliError> {
        let micros = |seconds: Option<f64>| shown(seconds.map(|seconds| seconds * 1e6), 3);
        writeln!(
            console.data(),
            "{:<8} {:>11} {:>12} {:>12} {:>16} {:>12} {:>14} {:>10} {:>12}",
            self.size_bytes,
            self.iterations,
            micros(self.min_s),
            micros(self.max_s),
            micros(self.median_s),
            micros(self.mean_s),
            micros(self.stdev_s),
            micros(self.p99_s),
            micros(self.p999_s)
        )?;
        if self.lost > 0 {
            writeln!(console.data(), "# {} rounds of {} B were lost", self.lost, self.size_bytes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_of_all_values() {
        let elapsed = (1..=1_000).map(|us| Picos(us * 2_000_000)).collect();
        let latency = Latency::of(2, Values { elapsed, ..Values::default() }, 0.5);
        let micros = |seconds: Option<f64>| (seconds.unwrap() * 1e9).round() / 1e3;
        assert_eq!((latency.iterations, micros(latency.min_s)), (1_000, 1.0));
        assert_eq!((micros(latency.max_s), micros(latency.median_s)), (1_000.0, 500.5));
        assert_eq!((micros(latency.p99_s), micros(latency.p999_s)), (990.0, 999.0));
        assert!((latency.mean_s.unwrap() - 500.5e-6).abs() < 1e-9, "{latency:?}");
        assert!((latency.stdev_s.unwrap() - 288.82e-6).abs() < 1e-8, "{latency:?}");
    }

    #[test]
    fn messages_one_at_a_time_stay_in_the_cache() {
        let sizes = [1, 2 << 10, 16 << 10, 64 << 10, 8 << 20];
        assert_eq!(sizes.map(places_in_cache), [u16::MAX, 128, 16, 4, 4]);
    }

    #[test]
    fn what_was_not_measured_is_no_zero() {
        let none = Latency::of(2, Values { lost: 5, ..Values::default() }, 0.5);
        let text = serde_json::to_value(none).unwrap();
        for key in ["min_s", "max_s", "median_s", "mean_s", "stdev_s", "p99_s", "p999_s"] {
            assert!(text[key].is_null(), "{key}: {text}");
        }
        assert_eq!((&text["iterations"], &text["lost"]), (&0.into(), &5.into()));
        assert_eq!(
            (shown(none.min_s, 3), shown(Some(1.0), 3)),
            ("-".to_owned(), "1.000".to_owned())
        );
        let one = Latency::of(2, Values { elapsed: vec![Picos(8)], ..Values::default() }, 0.5);
        assert!(one.mean_s.is_some() && one.stdev_s.is_none(), "{one:?}");
    }
}
