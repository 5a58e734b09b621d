//! Computation that an immediate operation hides.
//!
//! `t_b` is the time of the operation when it is waited for at once. Then
//! computation of a quarter to four times `t_b` is put between start and wait,
//! in slices with calls of `MPI_Test` between them, as some libraries make
//! progress only inside of their calls.

use std::hint::black_box;

use loggap_core::units::Picos;
use serde::{Deserialize, Serialize};

use super::calls::{Computing, compute};
use super::interval;
use super::operation::Cell;
use super::run::{Bench, Body, CollectiveError};
use super::series::Measured;
use super::stop::StopRule;

/// Computation as a share of `t_b`, in percent.
const SHARES: [u64; 7] = [25, 50, 75, 100, 150, 200, 400];
/// Numbers of calls of `MPI_Test`.
const TESTS: [u32; 4] = [0, 1, 4, 16];

/// A point of the sweep.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Point {
    /// Measured computation between start and wait.
    pub compute_s: f64,
    /// Number of calls of `MPI_Test` in between.
    pub tests: u32,
    /// Median from the common start to the last exit; `None` if no repetition counted.
    pub time_s: Option<f64>,
    /// Cost that remains of the operation: time less computation.
    pub overhead_s: Option<f64>,
    /// Number of repetitions that counted.
    pub reps: u64,
}

/// Result of a sweep.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Overlap {
    /// `t_b`: time of start and wait with nothing in between.
    pub blocking_s: f64,
    /// Longest computation that, like all shorter ones, does not prolong the
    /// operation; 0 if the shortest one does, `None` if unknown.
    pub injectable_s: Option<f64>,
    /// Number of calls of `MPI_Test` with which it was found.
    pub injectable_tests: u32,
    /// Ratio of `injectable_s` to `blocking_s`.
    pub share: Option<f64>,
    /// Points of the sweep over computation and tests.
    pub points: Vec<Point>,
}

/// Factor on `t_b`, or on the upper end of its interval, above which a time
/// counts as longer.
const LONGER: f64 = 1.05;

/// Finds the longest computation that is hidden.
#[must_use]
pub fn evaluate(blocking_s: f64, blocking_hi_s: Option<f64>, points: Vec<Point>) -> Overlap {
    let limit = blocking_hi_s.unwrap_or(blocking_s).max(blocking_s) * LONGER;
    let mut best: Option<(f64, u32)> = None;
    for tests in TESTS {
        let of_tests = || points.iter().filter(|point| point.tests == tests);
        // No repetition counted with the least computation: unknown.
        if of_tests().next().is_none_or(|least| least.time_s.is_none()) {
            continue;
        }
        let is_hidden = |point: &&Point| point.time_s.is_some_and(|time| time <= limit);
        let most = of_tests().take_while(is_hidden).last().map_or(0.0, |point| point.compute_s);
        // Of equal ones, that with fewer tests.
        if best.is_none_or(|(so_far, _)| most > so_far) {
            best = Some((most, tests));
        }
    }
    let injectable_s = best.map(|(most, _)| most);
    let share = injectable_s.map(|most| if blocking_s > 0.0 { most / blocking_s } else { 0.0 });
    let injectable_tests = best.map_or(0, |(_, tests)| tests);
    Overlap { blocking_s, injectable_s, injectable_tests, share, points }
}

/// Computing speed of this rank.
#[derive(Clone, Copy, Debug)]
struct Pace {
    turns: u64,
    time: Picos,
}

impl Pace {
    /// Median of several tries while all ranks compute, as they do in the
    /// sweep: threads of one core slow each other down.
    fn measure(bench: &Bench<'_>) -> Self {
        const TURNS: u64 = 20_000;
        const TRIES: usize = 101;
        let clock = bench.clock();
        let try_once = || {
            let begin = clock.read();
            compute(black_box(TURNS));
            clock.local(clock.read()).since(clock.local(begin))
        };
        bench.meet();
        let time = interval::median((0..TRIES).map(|_| try_once())).unwrap_or(Picos(1));
        Self { turns: TURNS, time }
    }

    fn turns(self, time: Picos) -> u64 {
        let turns = u128::from(time.0) * u128::from(self.turns) / u128::from(self.time.0.max(1));
        u64::try_from(turns).unwrap_or(u64::MAX)
    }
}

/// Sweeps computation and tests over `cell`, whose own result the leader has in
/// `alone`. `Some` at the leader if that has an interval to compare with.
///
/// # Errors
///
/// [`CollectiveError`].
pub fn sweep(
    bench: &mut Bench<'_>,
    cell: Cell,
    alone: Option<&Measured>,
) -> Result<Option<Overlap>, CollectiveError> {
    // Without an interval there is nothing to compare with.
    let known = alone.filter(|alone| alone.interval.is_some());
    let known = known.and_then(|alone| alone.median).map_or(0, |median| median.0);
    let blocking = bench.share(known);
    if blocking == 0 {
        return Ok(None);
    }
    let blocking = Picos(blocking);
    let pace = Pace::measure(bench);
    let rule = bench.plan.rule;
    let points = (SHARES.len() * TESTS.len()) as u64;
    let rule = StopRule { max_time: Picos(rule.max_time.0 / points), ..rule };
    let mut found = Vec::new();
    for (share, tests) in SHARES.iter().flat_map(|share| TESTS.map(|tests| (*share, tests))) {
        let time = Picos(blocking.0.saturating_mul(share) / 100);
        let body = Body::With(Computing { turns: pace.turns(time), tests });
        if bench.is_halted() {
            break;
        }
        let measured = bench.series(cell, body, rule)?;
        let time_s = measured.as_ref().and_then(|found| found.median).map(Picos::seconds);
        let computed = measured.as_ref().and_then(|found| found.computed);
        let compute_s = computed.unwrap_or(time).seconds();
        let overhead_s = time_s.map(|time| time - compute_s);
        let reps = measured.map_or(0, |found| found.valid);
        found.push(Point { compute_s, tests, time_s, overhead_s, reps });
    }
    let high = alone.and_then(|alone| alone.interval).map(|(_, high)| high.seconds());
    Ok(bench.leads().then(|| evaluate(blocking.seconds(), high, found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(compute_s: f64, tests: u32, time_s: Option<f64>) -> Point {
        let overhead_s = time_s.map(|time| time - compute_s);
        Point { compute_s, tests, time_s, overhead_s, reps: 9 }
    }

    #[test]
    fn the_most_that_does_not_make_it_longer_is_found() {
        let points = vec![
            point(0.5, 0, Some(1.02)),
            point(0.5, 4, Some(1.01)),
            point(0.75, 0, Some(1.3)),
            point(0.75, 4, Some(1.04)),
            // Hidden by luck, as less computation is not.
            point(1.0, 0, Some(1.0)),
            point(1.0, 4, None),
            point(4.0, 4, Some(1.0)),
        ];
        let found = evaluate(1.0, None, points);
        assert_eq!((found.injectable_s, found.injectable_tests), (Some(0.75), 4));
        assert!((found.share.unwrap() - 0.75).abs() < 1e-12);
    }

    #[test]
    fn a_library_that_hides_nothing_has_nothing_to_inject() {
        let found = evaluate(1.0, Some(1.1), vec![point(0.25, 0, Some(1.25))]);
        assert_eq!((found.injectable_s, found.share), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn where_nothing_counted_nothing_is_known() {
        let found = evaluate(1.0, Some(1.1), vec![point(0.25, 0, None), point(0.25, 4, None)]);
        assert_eq!((found.injectable_s, found.share), (None, None));
    }
}
