//! `loggap lat`: latency of messages, with the columns of ib_send_lat, ib_write_lat and
//! ib_read_lat.

use std::io::{self, Write};
use std::time::Duration;

use super::{Columns, TestArgs, run_test};
use crate::drive::EndOptions;
use crate::drive::perftest::Budget;
use crate::drive::perftest::lat::{Latency, LatencyTest, places_in_cache};
use crate::flags::parse;
use crate::output::number::micros;
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
    /// Round trips per size; 99% needs 200, 99.9% needs 2,000.
    #[arg(short = 'n', long, value_name = "ROUNDS", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=33_554_432))]
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

pub(in crate::cli) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let ends = &args.test.ends;
    let (quantity, share) = match (ends.link.is_read(), args.rtt) {
        (true, _) => ("from the post of a read to its completion", 1.0),
        (false, true) => ("round trip", 1.0),
        (false, false) => ("half of a round trip", 0.5),
    };
    let budget = args.duration.map_or(Budget::Times(args.iters), Budget::For);
    let plan = LatencyTest { share, warmup: args.warmup, budget };
    let columns = LatencyColumns { quantity, is_timed: args.duration.is_some() };
    let depth_of = (!ends.link.verbs.has_depth()).then_some(places_in_cache as fn(u32) -> u16);
    let ends = ends.options().map(|ends| EndOptions { depth_of, ..ends });
    run_test(&plan, &columns, &args.test, ends, &args.test.sizes(2), console)?.exit()
}

/// Columns of latencies.
struct LatencyColumns {
    quantity: &'static str,
    /// True if the time per size was given.
    is_timed: bool,
}

impl Columns<Latency> for LatencyColumns {
    const COMMAND: &'static str = "lat";

    fn quantity(&self) -> &str {
        self.quantity
    }

    fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "# values: {}", self.quantity)?;
        writeln!(out, "{HEAD}")
    }

    fn row(&self, out: &mut dyn Write, latency: &Latency) -> io::Result<()> {
        let (size, lost) = (latency.size_bytes, latency.lost);
        writeln!(
            out,
            "{size:<8} {:>11} {:>12} {:>12} {:>16} {:>12} {:>14} {:>10} {:>12}",
            latency.iterations,
            micros(latency.min_s),
            micros(latency.max_s),
            micros(latency.median_s),
            micros(latency.mean_s),
            micros(latency.stdev_s),
            micros(latency.p99_s),
            micros(latency.p999_s)
        )?;
        if lost > 0 {
            writeln!(out, "# {lost} rounds of {size} B were lost")?;
        }
        if self.is_timed && latency.is_cut_short() {
            writeln!(out, "# {size} B: ended early, as no more values are kept")?;
        }
        Ok(())
    }
}

const HEAD: &str = "#bytes   #iterations  t_min[usec]  t_max[usec]  t_typical[usec]  t_avg[usec]  t_stdev[usec]  99%[usec]  99.9%[usec]";
