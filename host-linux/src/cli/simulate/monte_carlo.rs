//! `--monte-carlo`: distribution of the makespan.

use std::io::{self, Write};
use std::path::Path;

use loggap_core::random::Random;
use loggap_core::stats::Sorted;
use loggap_core::units::{Bytes, Picos};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::Args;
use super::further::Further;
use crate::cli::digits::Digits;
use crate::profile::{ProfileDocument, ProfileDraws};
use crate::simulation::{Ended, ParameterSets, Point, RunError, run_each_point};
use crate::study::sweep::{MOST_POINTS, Sweep};
use crate::terminal::{CliError, Console, Failures, RunsLine, interrupted};

/// Runs with parameters drawn from the intervals of a profile.
pub(super) struct MonteCarlo {
    draws: u32,
    seed: u64,
    parameters: ProfileDraws,
    eager_limit: Bytes,
    /// Measured parameter sets, without variation.
    measured: ParameterSets,
    /// 5% and 95% of the makespans, once all draws were run and completed.
    as_given: Option<[Picos; 2]>,
}

/// Outcome of the draws.
pub(super) struct Drawn {
    /// `None` if no run completed.
    pub(super) distribution: Option<Distribution>,
    /// Why draws are missing, if any are.
    pub(super) interrupted: Option<String>,
}

/// Part of the report for `--monte-carlo`.
#[derive(Serialize)]
pub(super) struct Distribution {
    /// Number of draws for which the schedule completed.
    draws: u32,
    /// Number of draws for which it did not.
    stopped: u32,
    seed: u64,
    /// Least, 5%, median, 95%, greatest and mean makespan.
    #[serde(flatten, serialize_with = "makespans")]
    makespans: [Picos; 6],
}

/// The makespans in seconds, then in picoseconds.
fn makespans<S: Serializer>(all: &[Picos; 6], serializer: S) -> Result<S::Ok, S::Error> {
    let names = ["min", "p05", "median", "p95", "max", "mean"];
    let seconds =
        names.into_iter().zip(all).map(|(name, time)| (name, "_s", time.seconds().into()));
    let picos = names.into_iter().zip(all).map(|(name, time)| (name, "_ps", time.0.into()));
    let all = seconds
        .chain(picos)
        .map(|(name, unit, value): (_, _, Value)| (format!("{name}{unit}"), value));
    serializer.collect_map(all)
}

impl MonteCarlo {
    /// Creates the draws that `args` request, for the sets `measured` of `profile`; `None` without
    /// --monte-carlo.
    pub(super) fn new(
        args: &Args,
        profile: Option<&ProfileDocument>,
        measured: &ParameterSets,
    ) -> Result<Option<Self>, CliError> {
        let Some(draws) = args.monte_carlo else { return Ok(None) };
        let profile = profile.ok_or_else(|| {
            CliError::usage(
                "--monte-carlo draws from measured intervals, which only --profile has; 'loggap \
                 measure -o FILE' makes one",
            )
        })?;
        let parameters = ProfileDraws::new(profile).map_err(|error| {
            let path = args.parameters.profile().unwrap_or(Path::new("")).display();
            CliError::usage(format_args!("'{path}': {error}, or leave --monte-carlo out"))
        })?;
        let eager_limit = args.parameters.eager_limit(Some(profile));
        let measured = measured.clone();
        let (seed, as_given) = (args.pattern.seed, None);
        Ok(Some(Self { draws, seed, parameters, eager_limit, measured, as_given }))
    }

    /// Makespans of all draws. Draws for which the schedule does not complete are added to
    /// `failures`.
    pub(super) fn run(
        &mut self,
        further: &Further<'_>,
        failures: &mut Failures,
        console: &mut Console,
    ) -> Option<Drawn> {
        let Further { args, source, plan, .. } = further;
        if self.parameters.is_exact() && plan.noise.is_none() {
            console.warn(
                "no interval of the profile has a width, so that all draws are equal; measure \
                 with 'loggap measure -o'",
            );
        }
        let line = RunsLine::new(console, self.draws.into());
        let point = |at: usize| self.point(at, args);
        let draws = self.draws as usize;
        let ended = run_each_point(source, draws, &point, plan, &|| line.advance());
        drop(line);
        let mut ended = failures.add(ended.map_err(CliError::from))?;
        self.as_given = spread(&ended);
        ended.retain(|ended| !matches!(ended, Err(RunError::Interrupted)));
        let interrupted = interrupted(ended.len(), self.draws as usize, "draws");
        let makespans = ended.iter().flatten().map(|run| run.makespan.0).collect();
        let stopped = ended.iter().filter(|ended| ended.is_err()).count();
        failures.add(failure(&ended).map_or(Ok(()), Err));
        let stopped = u32::try_from(stopped).unwrap_or(u32::MAX);
        Some(Drawn { distribution: Distribution::of(makespans, stopped, self.seed), interrupted })
    }

    /// Checks that the draws at each point of a sweep are not too many.
    pub(super) fn check(&self, sweep: &Sweep) -> Result<(), CliError> {
        let all = sweep.count().saturating_mul(self.draws as usize);
        if all <= MOST_POINTS {
            return Ok(());
        }
        Err(CliError::usage(format_args!(
            "{} draws at each of {} points are more than {MOST_POINTS} runs; take fewer of either",
            self.draws,
            sweep.count()
        )))
    }

    /// The makespans of draws at each point of a sweep: the same draws at all points, and
    /// factors are of what is drawn. Those of [`MonteCarlo::run`] are not repeated at the point
    /// that changes nothing.
    pub(super) fn over(
        &self,
        sweep: &Sweep,
        further: &Further<'_>,
        console: &Console,
    ) -> Result<Spread, CliError> {
        let Further { args, source, plan, .. } = further;
        let draws = self.draws as usize;
        let changes_nothing = |at: &usize| {
            let mut drawn = (0..draws).map(|draw| self.point(draw, args).sets);
            drawn.all(|sets| sweep.sets_around(&sets, *at) == sets)
        };
        let known = self.as_given.and_then(|_| (0..sweep.count()).find(changes_nothing));
        let open: Vec<usize> = (0..sweep.count()).filter(|at| Some(*at) != known).collect();
        let count = open.len() * draws;
        let line = RunsLine::new(console, count as u64);
        let point = |at: usize| {
            let Point { sets, phases } = self.point(at % draws, args);
            let swept = open.get(at / draws).copied().unwrap_or_default();
            Point { sets: sweep.sets_around(&sets, swept), phases }
        };
        let ended = run_each_point(source, count, &point, plan, &|| line.advance())?;
        let done = ended.iter().filter(|ended| !matches!(ended, Err(RunError::Interrupted)));
        let mut points: Vec<_> = ended.chunks(draws).map(spread).collect();
        if let Some(at) = known {
            points.insert(at, self.as_given);
        }
        Ok(Spread {
            points,
            interrupted: interrupted(done.count(), count, "draws at points of the sweep"),
            failure: failure(&ended),
        })
    }

    /// Draw number `at`, independent of other draws.
    fn point(&self, at: usize, args: &Args) -> Point {
        let mut random = Random::stream(self.seed, at as u64);
        let phases = args.noise.phases(random.draw());
        let ranges = self.parameters.draw(&mut random);
        let sets = ParameterSets::of_ranges(
            &ranges,
            self.eager_limit,
            args.settings.settings().rendezvous,
        );
        debug_assert!(sets.is_ok(), "drawn ranges are as usable as measured ones: {sets:?}");
        Point { sets: sets.unwrap_or_else(|_| self.measured.clone()), phases }
    }
}

/// Draws at the points of a sweep.
#[derive(Default)]
pub(super) struct Spread {
    /// 5% and 95% of the makespans at each point; `None` where a run did not complete.
    pub(super) points: Vec<Option<[Picos; 2]>>,
    /// Why draws are missing, if any are.
    pub(super) interrupted: Option<String>,
    /// Draws for which the schedule does not complete.
    pub(super) failure: Option<CliError>,
}

/// Tells of the draws that did not come to an end, if there are any.
fn failure(ended: &[Ended]) -> Option<CliError> {
    let failed =
        |ended: &&Ended| matches!(ended, Err(error) if !matches!(error, RunError::Interrupted));
    let stopped = ended.iter().filter(failed).count();
    let first = ended.iter().find(failed)?.as_ref().err()?;
    let all = ended.len();
    Some(CliError::failed(format_args!(
        "{stopped} of {all} draws of --monte-carlo did not come to an end, the first of them with: \
         {first}"
    )))
}

/// 5% and 95% of makespans; `None` if one is missing.
fn spread(ended: &[Ended]) -> Option<[Picos; 2]> {
    let makespan = |ended: &Ended| ended.as_ref().ok().map(|run| run.makespan.0);
    let mut makespans: Vec<_> = ended.iter().map(makespan).collect::<Option<_>>()?;
    let sorted = Sorted::new(&mut makespans);
    Some([sorted.quantile(5, 100)?, sorted.quantile(95, 100)?].map(Picos))
}

impl Distribution {
    /// Distribution of `makespans` in ps, where `stopped` further draws did not complete; `None`
    /// without any makespan.
    fn of(mut makespans: Vec<u64>, stopped: u32, seed: u64) -> Option<Self> {
        let draws = u32::try_from(makespans.len()).ok()?;
        let sum: u128 = makespans.iter().map(|&makespan| u128::from(makespan)).sum();
        let mean = (sum + u128::from(draws) / 2).checked_div(draws.into())?;
        let mean = u64::try_from(mean).ok()?;
        let sorted = Sorted::new(&mut makespans);
        let [min, p05, p95, max] = [0, 5, 95, 100].map(|percent| sorted.quantile(percent, 100));
        let (min, p05, p95, max) = (min?, p05?, p95?, max?);
        let median = sorted.median()?;
        Some(Self {
            draws,
            stopped,
            seed,
            makespans: [min, p05, median, p95, max, mean].map(Picos),
        })
    }

    pub(super) fn write(&self, out: &mut dyn Write, digits: Digits) -> io::Result<()> {
        writeln!(
            out,
            "# makespan of {} draws from the profile's intervals, seed {}",
            self.draws, self.seed
        )?;
        let heads = ["min", "5%", "median", "95%", "max", "mean"];
        let heads = heads.map(|name| format!("{:>15}", digits.head(name)));
        writeln!(out, "#{}", heads.join("  "))?;
        let columns = self.makespans.map(|Picos(picos)| format!("{:>16}", digits.cell(picos)));
        writeln!(out, "{}", columns.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_definition() {
        let found = Distribution::of((1..=100).rev().collect(), 3, 7).unwrap();
        assert_eq!((found.draws, found.stopped, found.seed), (100, 3, 7));
        // The mean is 50.5, rounded.
        assert_eq!(found.makespans, [1, 5, 50, 95, 100, 51].map(Picos));
        assert!(Distribution::of(Vec::new(), 2, 7).is_none());
    }

    #[test]
    fn a_single_draw_is_all_of_its_distribution() {
        let found = Distribution::of(vec![u64::MAX], 0, 0).unwrap();
        assert_eq!(found.makespans, [Picos(u64::MAX); 6]);
    }
}
