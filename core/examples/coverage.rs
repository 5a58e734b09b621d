//! How often the 95% intervals of a default run hold the truth, on a link on
//! virtual time: the tables of `docs/lab/performance.md`.
//!
//! Kinds of noise, on links of one protocol, of two, and with a gap that
//! bends without a change. A range is judged by the protocol that its first
//! and its last size belong to, and not at all where these differ. A change
//! is found where its interval holds the true first size, and false where it
//! holds none. Where the machine drifts, a second row judges by the median
//! of the drift during the run.
//!
//! `cargo run --release -p loggap-core --example coverage -- 200 [NOISE]`

#![allow(
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a program that prints its table; indices and casts are within what it makes itself"
)]

use std::env;
use std::error::Error;
use std::thread;

use loggap_core::measure::{Bend, Disturbance, Simulated};
use loggap_core::model::{Change, Profile, Prtt, Range};
use loggap_core::random::Random;
use loggap_core::units::{Bytes, Picos};

use measured::judged::{PARAMETERS, intervals, values};
use measured::kinds::{Link, links, noises};
use measured::{LARGEST, Measured, Noise, Setup};

#[path = "../tests/measured/mod.rs"]
mod measured;

/// Rounds predicted after each run.
const PREDICTIONS: usize = 60;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let seeds: u64 = arguments.next().map_or(Ok(100), |argument| argument.parse())?;
    let only = arguments.next().unwrap_or_default();
    let mut rows = vec![];
    for (name, noise) in noises() {
        if !name.contains(&only) {
            continue;
        }
        for link in links() {
            let name = format!("{name}; {}", link.name);
            rows.push((name, Tally::of_seeds(&link, noise, seeds)));
        }
    }
    println!("Shares of 95% intervals that hold the truth, in percent, {seeds} runs a row\n");
    print_coverage(&rows);
    println!("\nMedian half width of these intervals, in percent of the value\n");
    print_widths(&rows);
    println!("\nChanges, predictions of PRTT(n, d, s) at unseen n, d, s, and virtual seconds\n");
    print_rest(&rows);
    Ok(())
}

/// A parameter's interval and its truth, in ps.
struct Judged {
    parameter: usize,
    low: f64,
    high: f64,
    truth: f64,
}

/// What came of the runs of one row.
#[derive(Default)]
struct Tally {
    runs: u64,
    judged: Vec<Judged>,
    /// The same, with the truth of the run.
    judged_of_run: Vec<Judged>,
    /// Runs in which a change was reported where there is none.
    false_changes: u64,
    /// True changes, and those of them that were found.
    changes: u64,
    found: u64,
    /// Ranges that hold sizes of two protocols.
    mixed: u64,
    negative: u64,
    errors: Vec<f64>,
    seconds: Vec<f64>,
}

impl Tally {
    /// Measures with the seeds 1 to `seeds`, on all processors.
    fn of_seeds(link: &Link, noise: Noise, seeds: u64) -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let part = |first: usize| {
            let mut tally = Self::default();
            for seed in (first as u64 + 1..=seeds).step_by(threads) {
                let noise = Noise { calls: Disturbance { seed, ..noise.calls }, ..noise };
                let setup = Setup::of_the_command(&link.truths, link.bend, noise);
                tally.add(link, &setup.link(), &setup.measure(), seed);
            }
            tally
        };
        let mut all = Self::default();
        thread::scope(|scope| {
            let part = &part;
            let parts: Vec<_> =
                (0..threads).map(|first| scope.spawn(move || part(first))).collect();
            for part in parts {
                all.append(part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
        });
        all
    }

    fn append(&mut self, mut other: Self) {
        self.runs += other.runs;
        self.judged.append(&mut other.judged);
        self.judged_of_run.append(&mut other.judged_of_run);
        self.false_changes += other.false_changes;
        self.changes += other.changes;
        self.found += other.found;
        self.mixed += other.mixed;
        self.negative += other.negative;
        self.errors.append(&mut other.errors);
        self.seconds.append(&mut other.seconds);
    }

    fn add(&mut self, link: &Link, simulated: &Simulated<'_>, measured: &Measured, seed: u64) {
        let profile = &measured.assessment.profile;
        self.runs += 1;
        self.seconds.push(measured.seconds);
        let boundaries: Vec<Bytes> =
            link.truths.iter().skip(1).map(|truth| Bytes(truth.first_size.into())).collect();
        let holds = |change: &Change, at: Bytes| change.low <= at && at <= change.high;
        let is_false = |change: &Change| !boundaries.iter().any(|at| holds(change, *at));
        self.false_changes += u64::from(profile.changes.iter().any(is_false));
        self.changes += boundaries.len() as u64;
        let is_found = |at: &&Bytes| profile.changes.iter().any(|change| holds(change, **at));
        self.found += boundaries.iter().filter(is_found).count() as u64;
        for range in &profile.ranges {
            self.judge(link, simulated, range, measured.drift);
        }
        self.predict(simulated, profile, seed);
    }

    fn judge(&mut self, link: &Link, simulated: &Simulated<'_>, range: &Range, drift: f64) {
        let truth = simulated.truth(range.first.0 as usize);
        let intervals = intervals(range);
        self.negative +=
            intervals.iter().flatten().filter(|(_, value, _)| *value < 0.0).count() as u64;
        if truth != simulated.truth(range.last.0 as usize) {
            self.mixed += 1;
            return;
        }
        let bends = link.bend != Bend::default();
        for (parameter, (interval, truth)) in intervals.into_iter().zip(values(&truth)).enumerate()
        {
            // On a bending link gap and round trip lie on no line; at size 1 they are known.
            let straight = PARAMETERS[parameter].starts_with(['o', 'O']);
            let at_one = ["g", "RTT/2", "L"].contains(&PARAMETERS[parameter]);
            let one_value = !bends || straight || (at_one && range.first <= Bytes(1));
            let Some((low, _, high)) = interval.filter(|_| one_value) else { continue };
            self.judged.push(Judged { parameter, low, high, truth });
            self.judged_of_run.push(Judged { parameter, low, high, truth: truth * drift });
        }
    }

    fn predict(&mut self, simulated: &Simulated<'_>, profile: &Profile, seed: u64) {
        let mut random = Random::stream(seed, 2);
        for _ in 0..PREDICTIONS {
            let octave = random.below(LARGEST.ilog2().into());
            let size = (1 << octave) + random.below(1 << octave);
            let messages = 3 + random.below(38) as u32;
            let gap = simulated.gap(size as usize);
            let delay = Picos(gap.0 / 4 * random.below(17));
            let asked = Prtt { messages, delay, size: Bytes(size) };
            let send = simulated.send_overhead(size as usize);
            let each = (send.0 + delay.0).max(gap.0);
            let whole = 2 * simulated.half_rtt(size as usize).0 + u64::from(messages - 1) * each;
            let error = profile
                .predict_prtt(asked)
                .map_or(f64::INFINITY, |predicted| predicted.value.0 as f64 / whole as f64 - 1.0);
            self.errors.push(error.abs());
        }
    }

    /// Share of the intervals of a parameter that hold the truth, in percent.
    fn covered(judged: &[Judged], parameter: usize) -> Option<f64> {
        let own = || judged.iter().filter(|one| one.parameter == parameter);
        let inside = own().filter(|one| one.low <= one.truth && one.truth <= one.high).count();
        (own().count() > 0).then(|| 100.0 * inside as f64 / own().count() as f64)
    }

    fn half_width(&self, parameter: usize) -> Option<f64> {
        let own = self.judged.iter().filter(|one| one.parameter == parameter);
        let mut widths: Vec<f64> = own.map(|one| 50.0 * (one.high - one.low) / one.truth).collect();
        quantile(&mut widths, 0.5)
    }
}

fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let at = (share * values.len() as f64) as usize;
    values.get(at.min(values.len().saturating_sub(1))).copied()
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

fn header(columns: &[&str]) {
    println!("| noise; link | {} |", columns.join(" | "));
    println!("|---|{}", "---:|".repeat(columns.len()));
}

fn print_coverage(rows: &[(String, Tally)]) {
    header(&PARAMETERS);
    let line = |name: &str, judged: &[Judged]| {
        let cells: Vec<String> =
            (0..PARAMETERS.len()).map(|p| cell(Tally::covered(judged, p))).collect();
        println!("| {name} | {} |", cells.join(" | "));
    };
    for (name, tally) in rows {
        line(name, &tally.judged);
        if name.contains("drift") {
            line(&format!("{name}; median drift of the run"), &tally.judged_of_run);
        }
    }
}

fn print_widths(rows: &[(String, Tally)]) {
    header(&PARAMETERS);
    for (name, tally) in rows {
        let cells: Vec<String> = (0..PARAMETERS.len()).map(|p| cell(tally.half_width(p))).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
}

fn print_rest(rows: &[(String, Tally)]) {
    header(&[
        "runs with false changes, %",
        "changes found, %",
        "mixed ranges",
        "negative values",
        "error p50, %",
        "p95, %",
        "seconds, median",
    ]);
    for (name, tally) in rows {
        let percent =
            |part: u64, whole: u64| cell((whole > 0).then(|| 100.0 * part as f64 / whole as f64));
        let mut errors: Vec<f64> = tally.errors.iter().map(|error| 100.0 * error).collect();
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} |",
            percent(tally.false_changes, tally.runs),
            percent(tally.found, tally.changes),
            tally.mixed,
            tally.negative,
            cell(quantile(&mut errors, 0.5)),
            cell(quantile(&mut errors, 0.95)),
            cell(quantile(&mut tally.seconds.clone(), 0.5)),
        );
    }
}
