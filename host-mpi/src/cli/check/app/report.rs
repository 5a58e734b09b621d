//! Report of a program's measured and predicted run time.

use std::io::{self, Write};

use loggap::check::Verdict;
use loggap::output::number;
use loggap::terminal::command_line;
use loggap_core::model::Estimate;
use loggap_core::stats::{Confidence, Sorted};
use loggap_core::units::{Picos, SignedPicos};
use serde::Serialize;

use super::{AppArgs, Runs};
use crate::application::{Prediction, RankTime};
use crate::progress;

/// Largest error of a prediction that agrees, unless the measured interval is wider.
const BOUND: f64 = 0.05;
/// Times by which the error of the free network has to exceed that of the prediction for the
/// prediction to say anything about the network.
const EVIDENCE: f64 = 3.0;
/// Share of the run that a free network lacks where the network decides; twice the error of the
/// prediction is enough there.
const DECIDES: f64 = 0.5;

/// Where the time of a rank went, medians over the traced runs, in seconds.
#[derive(Debug, Serialize)]
struct RankRecord {
    rank: usize,
    compute_s: f64,
    predicted_compute_s: f64,
    mpi_s: f64,
    /// Part of `mpi_s` inside of blocking collective operations, making communicators among them.
    collective_s: f64,
    /// Time of the tracer, part of neither `compute_s` nor `mpi_s`.
    tracer_s: f64,
    predicted_mpi_s: f64,
    predicted_collective_s: f64,
    /// Part of `predicted_mpi_s` in which the rank sends and receives; it waits in the rest.
    predicted_busy_s: f64,
}

/// Result.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    loggap_version: &'static str,
    command: Vec<String>,
    launcher: String,
    trace_launcher: Option<String>,
    program: Vec<String>,
    ranks: usize,
    runs: usize,
    measured_s: f64,
    measured_s_lo: f64,
    measured_s_hi: f64,
    /// Median of the runs that were traced.
    traced_s: f64,
    /// Each run, without tracing and with it.
    runs_s: Vec<f64>,
    traced_runs_s: Vec<f64>,
    predicted_s: f64,
    predicted_s_lo: f64,
    /// Of the traces, and of the parameters of the profile.
    predicted_s_hi: f64,
    /// Half of the relative interval that follows from the profile's.
    profile_half: f64,
    /// Prediction less measurement, relative to the measurement.
    difference: f64,
    /// Prediction with a network that costs nothing, and its difference.
    free_network_s: f64,
    free_network_difference: f64,
    /// Rules of the simulation, as 'loggap simulate' names them.
    receive: &'static str,
    rendezvous: &'static str,
    /// Longest message whose send does not wait for its receive; `None` if none of up to 1 MiB waits.
    eager_limit_bytes: Option<u32>,
    /// Memory through which the buffers of the profile rotated; `None` for one buffer.
    rotated_bytes: Option<u64>,
    /// Largest difference that agrees.
    bound: f64,
    verdict: Verdict,
    /// True if the free network predicts nearly as well: the run says little about the network.
    compute_only: bool,
    /// Where the difference comes from: time of the rank that ends last, as shares of the run.
    /// `None` if the runs were traced elsewhere.
    causes: Option<Causes>,
    approximated_share: f64,
    refused_share: f64,
    by_rank: Vec<RankRecord>,
    pub(super) warnings: Vec<String>,
    #[serde(skip)]
    pub(super) estimates: (Estimate<Picos>, Estimate<Picos>),
}

/// Parts of the difference, relative to the measured time. They add up to it, but for the beginning
/// and the end of ranks; noise is how far runs differ.
#[derive(Clone, Copy, Debug, Serialize)]
struct Causes {
    /// Traced runs less those that were not, and less `tracer`.
    tracing: f64,
    /// Time of the tracer in traced runs, which is taken out of computing on both sides.
    tracer: f64,
    /// Predicted less traced computation, both without that of the tracer.
    compute: f64,
    /// Predicted less traced time in calls of MPI that are not collective: messages and waiting.
    waiting: f64,
    /// Predicted less traced time in collective operations.
    collectives: f64,
    /// Half of the spread of computation between runs.
    noise: f64,
}

/// Verdicts of a comparison.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Judgement {
    verdict: Verdict,
    /// The run says little about the network: a free one is as good a prediction.
    compute_only: bool,
}

impl Judgement {
    /// Of the relative differences of the prediction and of that with a free network, and half of
    /// the relative interval of the measurement.
    fn of(difference: f64, free: f64, half: f64) -> Self {
        let bound = half.max(BOUND);
        let verdict = match difference.abs() <= bound {
            _ if half > Verdict::KNOWN => Verdict::CannotTell,
            true => Verdict::Agree,
            false => Verdict::Differ,
        };
        let times = if free <= -DECIDES { 2.0 } else { EVIDENCE };
        let evident = bound.max(times * difference.abs());
        Self { verdict, compute_only: verdict != Verdict::CannotTell && free.abs() < evident }
    }
}

impl Document {
    pub(super) fn new(app: &AppArgs, runs: &Runs, rotated_bytes: Option<u64>) -> Self {
        let measured = estimate(runs.plain.iter().map(|run| run.time));
        let predicted = estimate(runs.predicted.iter().map(|one| one.run.time));
        let predicted = widened(predicted, runs.uncertainty);
        let free = median(runs.predicted.iter().map(|one| one.free));
        let traced = median(runs.traced.iter().map(|run| run.time));
        let difference = relative(predicted.value, measured.value);
        let free_network_difference = relative(free, measured.value);
        let half = measured.high.since(measured.low).seconds() / 2.0 / measured.value.seconds();
        let bound = half.max(BOUND);
        let Judgement { verdict, compute_only } =
            Judgement::of(difference, free_network_difference, half);
        let [receive, rendezvous] = progress::names(runs.rules.settings());
        let by_rank = by_rank(runs);
        let is_here = app.trace_launcher.is_none();
        let most = |of: fn(&Prediction) -> f64| runs.predicted.iter().map(of).fold(0.0, f64::max);
        Self {
            loggap_version: env!("CARGO_PKG_VERSION"),
            command: command_line(),
            launcher: app.launcher.clone(),
            trace_launcher: app.trace_launcher.clone(),
            program: app.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            ranks: by_rank.len(),
            runs: runs.plain.len(),
            measured_s: measured.value.seconds(),
            measured_s_lo: measured.low.seconds(),
            measured_s_hi: measured.high.seconds(),
            traced_s: traced.seconds(),
            runs_s: runs.plain.iter().map(|run| run.time.seconds()).collect(),
            traced_runs_s: runs.traced.iter().map(|run| run.time.seconds()).collect(),
            predicted_s: predicted.value.seconds(),
            predicted_s_lo: predicted.low.seconds(),
            predicted_s_hi: predicted.high.seconds(),
            profile_half: runs.uncertainty,
            difference,
            free_network_s: free.seconds(),
            free_network_difference,
            receive,
            rendezvous,
            eager_limit_bytes: runs.rules.eager_limit,
            rotated_bytes,
            bound,
            verdict,
            compute_only,
            causes: is_here.then(|| Causes::new(runs, &by_rank, traced, measured.value)),
            approximated_share: most(|one| one.approximated),
            refused_share: most(|one| one.refused),
            by_rank,
            warnings: runs.warnings.clone(),
            estimates: (measured, predicted),
        }
    }
}

fn by_rank(runs: &Runs) -> Vec<RankRecord> {
    let ranks = runs.traced.iter().map(|run| run.ranks.len()).min().unwrap_or(0);
    let of = |rank: usize| {
        let measured = |of: fn(&RankTime) -> Picos| {
            median(runs.traced.iter().filter_map(|run| run.ranks.get(rank)).map(of)).seconds()
        };
        let simulated = |of: fn(&RankTime) -> Picos| {
            let all = runs.predicted.iter().filter_map(|one| one.run.ranks.get(rank));
            median(all.map(of)).seconds()
        };
        RankRecord {
            rank,
            compute_s: measured(|time| time.compute),
            predicted_compute_s: simulated(|time| time.compute),
            mpi_s: measured(|time| time.mpi),
            collective_s: measured(|time| time.collective),
            tracer_s: measured(|time| time.tracer),
            predicted_mpi_s: simulated(|time| time.mpi),
            predicted_collective_s: simulated(|time| time.collective),
            predicted_busy_s: simulated(|time| time.busy),
        }
    };
    (0..ranks).map(of).collect()
}

impl Causes {
    fn new(runs: &Runs, by_rank: &[RankRecord], traced: Picos, measured: Picos) -> Self {
        let last = by_rank.iter().max_by(|one, other| {
            let end = |rank: &RankRecord| rank.predicted_compute_s + rank.predicted_mpi_s;
            end(one).total_cmp(&end(other))
        });
        let all = measured.seconds();
        let of = |part: fn(&RankRecord) -> f64| last.map_or(0.0, part) / all;
        let collectives = of(|rank| rank.predicted_collective_s - rank.collective_s);
        let tracer = of(|rank| rank.tracer_s);
        let computing = runs.traced.iter().filter_map(|run| {
            run.ranks.get(last.map_or(0, |last| last.rank)).map(|rank| rank.compute.seconds())
        });
        let least = computing.clone().fold(f64::INFINITY, f64::min);
        let most = computing.fold(0.0, f64::max);
        Self {
            tracing: relative(traced, measured) - tracer,
            tracer,
            compute: of(|rank| rank.predicted_compute_s - rank.compute_s),
            waiting: of(|rank| rank.predicted_mpi_s - rank.mpi_s) - collectives,
            collectives,
            noise: (most - least).max(0.0) / 2.0 / all,
        }
    }
}

impl RankRecord {
    fn head(out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "# sim: as simulated; collective is a part of MPI; busy: sending and receiving, a part of MPI's sim"
        )?;
        writeln!(
            out,
            "#{:>4} {:>10} {:>12} {:>10} {:>12} {:>13} {:>12} {:>10}",
            "rank",
            "compute[s]",
            "sim[s]",
            "MPI[s]",
            "sim[s]",
            "collective[s]",
            "sim[s]",
            "busy[s]"
        )
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let column = |value| number::decimal(Some(value), 6);
        writeln!(
            out,
            "{:>5} {:>10} {:>12} {:>10} {:>12} {:>13} {:>12} {:>10}",
            self.rank,
            column(self.compute_s),
            column(self.predicted_compute_s),
            column(self.mpi_s),
            column(self.predicted_mpi_s),
            column(self.collective_s),
            column(self.predicted_collective_s),
            column(self.predicted_busy_s)
        )
    }
}

impl Causes {
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let percent = number::signed_percent;
        let Self { tracing, tracer, compute, waiting, collectives, noise } = *self;
        writeln!(
            out,
            "# difference: computing {}, messages and waiting {}, collectives {}, tracing {} beside its \
             {} that is taken out; runs compute differently by {}",
            percent(compute),
            percent(waiting),
            percent(collectives),
            percent(tracing),
            percent(tracer),
            number::plus_minus(noise)
        )
    }
}

pub(super) fn print(out: &mut dyn Write, all: &Document) -> io::Result<()> {
    let percent = number::signed_percent;
    writeln!(out, "# {} {}", all.launcher, all.program.join(" "))?;
    if let Some(elsewhere) = &all.trace_launcher {
        writeln!(out, "# traced with {elsewhere}: times of ranks below are from there")?;
    }
    let buffers = if all.rotated_bytes.is_some() { "beyond" } else { "in" };
    writeln!(
        out,
        "# {} runs with and without tracing, in turn; medians, 95% intervals; profile with buffers \
         {buffers} the caches",
        all.runs
    )?;
    let line = |out: &mut dyn Write, name: &str, [value, low, high]: [f64; 3], rest: &str| {
        let [value, low, high] = [value, low, high].map(number::significant);
        writeln!(out, "{name:<13} {value} s  [{low}, {high}]{rest}")
    };
    let measured = [all.measured_s, all.measured_s_lo, all.measured_s_hi];
    line(out, "measured", measured, "")?;
    let verdict = format!(
        "  {}: {}, bound {}",
        percent(all.difference),
        all.verdict.name(),
        number::plus_minus(all.bound)
    );
    line(out, "predicted", [all.predicted_s, all.predicted_s_lo, all.predicted_s_hi], &verdict)?;
    let evidence = match all.verdict {
        Verdict::CannotTell => {
            "measured runs scatter too much to tell what it says: take more, with --runs, on a quiet \
             machine"
        }
        _ if all.compute_only => "compute only, the run says little about the network",
        _ => "the network matters",
    };
    write!(
        out,
        "# as messages move here: --receive {} --rendezvous {}",
        all.receive, all.rendezvous
    )?;
    writeln!(out, " -S {}", all.eager_limit_bytes.unwrap_or(progress::LONGEST))?;
    let (free, difference) = (all.free_network_s, percent(all.free_network_difference));
    writeln!(
        out,
        "{:<13} {} s  {difference}: {evidence}",
        "free network",
        number::significant(free)
    )?;
    if let Some(causes) = &all.causes {
        causes.print(out)?;
    }
    if all.approximated_share + all.refused_share > 0.0 {
        writeln!(
            out,
            "# of the time, {:.1}% is in calls that the schedule approximates, {:.1}% in calls that it \
             lacks: loggap goal from-trace lists them",
            100.0 * all.approximated_share,
            100.0 * all.refused_share
        )?;
    }
    RankRecord::head(out)?;
    all.by_rank.iter().try_for_each(|rank| rank.print(out))
}

/// Difference relative to `usual`.
pub(super) fn relative(time: Picos, usual: Picos) -> f64 {
    time.seconds() / usual.seconds() - 1.0
}

pub(super) fn median(times: impl Iterator<Item = Picos>) -> Picos {
    let mut times: Vec<_> = times.collect();
    Sorted::new(&mut times).median().unwrap_or_default()
}

/// `estimate` with another, independent source of uncertainty: half of its interval, relative.
fn widened(estimate: Estimate<Picos>, half: f64) -> Estimate<Picos> {
    let Estimate { value, low, high, .. } = estimate;
    let [below, above] = [value.since(low), high.since(value)].map(|side| {
        let side = side.seconds().hypot(half * value.seconds());
        SignedPicos::from_f64(side * 1e12).picos().unwrap_or(value)
    });
    let low = Picos(value.0.saturating_sub(below.0));
    let high = Picos(value.0.saturating_add(above.0));
    Estimate { low, high, ..estimate }
}

/// Median of at least six times with its 95% interval.
fn estimate(times: impl Iterator<Item = Picos>) -> Estimate<Picos> {
    let mut times: Vec<_> = times.collect();
    let interval = Sorted::new(&mut times).median_interval(Confidence::P95);
    interval.map_or_else(Estimate::default, |interval| Estimate {
        value: interval.median,
        low: interval.low,
        high: interval.high,
        ..Estimate::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::Run;
    use crate::progress::Rules;

    /// The parts of a difference add up to it, with their signs.
    #[test]
    fn a_difference_is_split_into_its_parts() {
        let run = |times: [u64; 4]| {
            let [compute, tracer, collective, time] = times.map(Picos);
            let mpi = time.since(compute).since(tracer);
            let ranks = vec![RankTime { compute, mpi, collective, tracer, busy: Picos::ZERO }];
            Run { time, ranks }
        };
        let predicted = Prediction { run: run([600, 0, 500, 1_300]), ..Prediction::default() };
        let runs = Runs {
            plain: vec![run([0, 0, 0, 1_000]); 6],
            traced: [640, 660, 650].map(|compute| run([compute, 30, 100, 1_050])).into(),
            predicted: vec![predicted; 6],
            uncertainty: 0.0,
            last: std::path::PathBuf::new(),
            warnings: Vec::new(),
            rules: Rules::of(&[], None),
        };
        let found = Causes::new(&runs, &by_rank(&runs), Picos(1_050), Picos(1_000));
        let near =
            |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9, "{found:?}");
        near(found.tracing, 0.02);
        near(found.tracer, 0.03);
        near(found.compute, -0.05);
        near(found.collectives, 0.4);
        near(found.waiting, -0.07);
        near(found.noise, 0.01);
        let parts = found.tracing + found.compute + found.collectives + found.waiting;
        near(parts, relative(Picos(1_300), Picos(1_000)));
    }

    #[test]
    fn independent_sources_of_uncertainty_add_up_by_squares() {
        let known = Estimate {
            value: Picos(1000),
            low: Picos(997),
            high: Picos(1004),
            ..Estimate::default()
        };
        let both = widened(known, 0.004);
        assert_eq!((both.low, both.value, both.high), (Picos(995), Picos(1000), Picos(1006)));
        assert_eq!(widened(known, 0.0), known);
        assert_eq!(widened(known, 2.0).low, Picos(0));
    }

    #[test]
    fn a_free_network_has_to_err_much_more_for_a_verdict_on_the_network() {
        use Verdict::{Agree, CannotTell, Differ};
        for ((difference, free, half), (verdict, compute_only)) in [
            ((0.04, -0.30, 0.01), (Agree, false)),
            ((0.04, -0.10, 0.01), (Agree, true)),
            ((0.00, -0.04, 0.01), (Agree, true)),
            ((-0.15, -0.20, 0.01), (Differ, true)),
            ((-0.15, -0.85, 0.17), (Agree, false)),
            ((0.14, -0.88, 0.06), (Differ, false)),
            ((-0.40, -1.00, 0.04), (Differ, false)),
            ((-0.40, -0.70, 0.04), (Differ, true)),
            ((-0.22, -0.52, 0.04), (Differ, false)),
            ((-0.22, -0.48, 0.04), (Differ, true)),
            // Computing alone is longer than the run.
            ((0.62, 0.60, 0.01), (Differ, true)),
            ((0.00, -0.90, 0.30), (CannotTell, false)),
        ] {
            let judged = Judgement::of(difference, free, half);
            assert_eq!(judged, Judgement { verdict, compute_only }, "{difference} {free} {half}");
        }
    }
}
