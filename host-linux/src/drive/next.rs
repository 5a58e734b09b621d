//! Prediction intervals: where another run on this link and machine would fall.
//!
//! A run's own confidence interval only covers its own samples. Another run has another connection,
//! another placement and a machine in another state. Evidence of that variation are the launches of
//! this run, and earlier runs if there are any. For each parameter of each range:
//!
//! 1. The values `v₁ … v_K` of the launches, each fitted alone within the
//!    range, have a mean square deviation `s²` with `K − 1` degrees of
//!    freedom.
//! 2. The launches of one run share the states of the machine that last for
//!    seconds to minutes, so `s²` alone is too small. It is drawn towards a
//!    prior, a relative standard deviation `ρ` of `prior` that weighs
//!    as much as `ν₀` degrees of freedom (the scaled inverse χ² prior of a
//!    normal variance):
//!
//!    `σ² = (ν₀·(ρ·x)² + (K − 1)·s²) / (ν₀ + K − 1)`
//!
//! 3. Without history the interval about the run's value `x` is Student's
//!    prediction interval `x ± t(ν₀ + K − 1)·σ·√(1 + 1/K)`.
//! 4. With `H` earlier runs their values and `x` show the variance between
//!    runs itself, `r²` with `H` degrees of freedom about their mean `m`.
//!    The estimate `σ²` from the launches is then the prior, with at most `FROM_LAUNCHES` degrees
//!    of freedom `ν`:
//!
//!    `σ² = (ν·σ² + H·r²) / (ν + H)`, `m ± t(ν + H)·σ·√(1 + 1/(H + 1))`
//!
//! The interval is widened to include `x` and this run's own interval, and cut off at 0. With fewer
//! than two launches and fewer than two earlier runs there is no interval.

use std::collections::BTreeMap;

use loggap_core::measure::{AssessOptions, SizeRow};
use loggap_core::model::{Coefficient, Curve, Estimate, Profile, Range};
use loggap_core::stats::{Confidence, Moments};

use super::Analysis;
use super::history::same_ranges;
use crate::profile::{ProfileDocument, to_si};
use crate::samples::TimedSample;

/// Prediction intervals of one range: both ends in seconds (per byte).
pub type Intervals = BTreeMap<Coefficient, [f64; 2]>;

/// Weight of the priors in degrees of freedom, `ν₀`.
const PRIOR_DEGREES: u32 = 3;
/// Largest weight of the launches beside earlier runs, in degrees of freedom.
const FROM_LAUNCHES: u32 = 2;

/// Prior of a coefficient's variation: the relative standard deviation of the difference of two
/// runs, √2 times the variation of single runs. Between runs of half a second round trips vary by
/// 60 to 70% from end to end, the cost of a system call by 12% and of a copy of 64 KiB by 16%
/// (coefficients of variation on a shared virtual machine); L is a small difference of larger
/// numbers.
const fn prior(of: Coefficient) -> f64 {
    match of {
        Coefficient::Latency => 0.40,
        Coefficient::AtOne(Curve::HalfRtt) => 0.17,
        Coefficient::AtOne(_) => 0.20,
        Coefficient::PerByte(Curve::HalfRtt | Curve::Gap) => 0.22,
        Coefficient::PerByte(_) => 0.25,
    }
}

/// Observations of one parameter.
#[derive(Clone, Copy, Debug)]
struct Evidence<'a> {
    /// This run's value.
    value: f64,
    /// This run's own interval, if bounded.
    own: Option<[f64; 2]>,
    /// Values of this run's launches.
    launches: &'a [f64],
    /// Values of earlier runs.
    history: &'a [f64],
    relative_sd: f64,
}

impl Evidence<'_> {
    /// Prediction interval; `None` without evidence.
    fn interval(&self, confidence: Confidence) -> Option<[f64; 2]> {
        let Self { value, own, launches, history, relative_sd } = *self;
        if launches.len() < 2 && history.len() < 2 {
            return None;
        }
        // Values clamped to 0 carry no information about the variation.
        if launches.iter().chain(history).chain([&value]).all(|found| *found <= 0.0) {
            return None;
        }
        let prior = (relative_sd * value).powi(2);
        let within = Spread::of(launches.iter().copied());
        let between = Spread::of(history.iter().copied().chain([value]));
        let (variance, degrees) = within.combined_with(prior, PRIOR_DEGREES);
        let (centre, count, variance, degrees) = if history.is_empty() {
            (value, launches.len(), variance, degrees)
        } else {
            let (variance, degrees) = between.combined_with(variance, degrees.min(FROM_LAUNCHES));
            (between.mean, history.len() + 1, variance, degrees)
        };
        #[allow(clippy::cast_precision_loss, reason = "few launches and runs")]
        let one_more = 1.0 + 1.0 / count as f64;
        let half = confidence.student(degrees) * (variance * one_more).sqrt();
        let [low, high] = own.unwrap_or([value; 2]);
        let ends =
            [(centre - half).min(value).min(low).max(0.0), (centre + half).max(value).max(high)];
        ends.iter().all(|end| end.is_finite()).then_some(ends)
    }
}

/// Mean and variance of a few values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
    pub(crate) degrees: u32,
}

impl Spread {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut moments = Moments::default();
        let mut count = 0_u32;
        for value in values {
            count = count.saturating_add(u32::from(moments.add(value)));
        }
        let mean = moments.mean().unwrap_or(0.0);
        let variance = moments.variance().unwrap_or(0.0);
        Self { mean, variance, degrees: count.saturating_sub(1) }
    }

    /// Variance shrunk towards `prior`, which has `weight` degrees of freedom, and the total
    /// degrees of freedom.
    pub(crate) fn combined_with(&self, prior: f64, weight: u32) -> (f64, u32) {
        let degrees = self.degrees.saturating_add(weight);
        let sum = f64::from(weight) * prior + f64::from(self.degrees) * self.variance;
        (sum / f64::from(degrees.max(1)), degrees)
    }
}

/// The samples of each launch, of samples in the order of measuring.
fn by_launch(samples: &[TimedSample]) -> impl Iterator<Item = &[TimedSample]> {
    samples.chunk_by(|one, next| one.launch == next.launch)
}

/// The table by size of each launch.
pub(super) fn rows_by_launch(
    samples: &[TimedSample],
    options: &AssessOptions,
) -> Vec<Vec<SizeRow>> {
    let rows = |launch| {
        Analysis::of_launch(launch, 0..=u64::MAX, options).map_or_else(|_| vec![], |all| all.rows)
    };
    by_launch(samples).map(rows).collect()
}

/// Values of one range by launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaunchValues(Vec<BTreeMap<Coefficient, f64>>);

impl LaunchValues {
    /// Fits each launch of `samples` separately within each range of `profile`; a launch with too
    /// few samples in a range has no values.
    #[must_use]
    pub fn of(samples: &[TimedSample], profile: &Profile, options: &AssessOptions) -> Vec<Self> {
        let launches: Vec<&[TimedSample]> = by_launch(samples).collect();
        let of_launch = |range: &Range, launch: &[TimedSample]| {
            let within = range.first.0..=range.last.0;
            let analysis = Analysis::of_launch(launch, within, options).ok()?;
            analysis.assessment.profile.ranges.first().map(values)
        };
        let of_range =
            |range| Self(launches.iter().filter_map(|launch| of_launch(range, launch)).collect());
        profile.ranges.iter().map(of_range).collect()
    }

    fn of_coefficient(&self, of: Coefficient) -> Vec<f64> {
        self.0.iter().filter_map(|launch| launch.get(&of).copied()).collect()
    }
}

/// Prediction intervals of the parameters of `range`, from the launches and from the same range in
/// the runs of `history`.
#[must_use]
pub fn intervals(
    range: &Range,
    launches: &LaunchValues,
    history: &[&ProfileDocument],
    confidence: Confidence,
) -> Intervals {
    let earlier = same_ranges(history, range);
    let earlier: Vec<BTreeMap<_, _>> = earlier.into_iter().map(values).collect();
    let interval = |of| {
        let Found { value, own } = Found::of(range, of)?;
        let launches = launches.of_coefficient(of);
        let history: Vec<f64> = earlier.iter().filter_map(|run| run.get(&of).copied()).collect();
        let evidence =
            Evidence { value, own, launches: &launches, history: &history, relative_sd: prior(of) };
        Some((of, evidence.interval(confidence)?))
    };
    Coefficient::ALL.into_iter().filter_map(interval).collect()
}

/// Known values of a range, in seconds (per byte).
fn values(range: &Range) -> BTreeMap<Coefficient, f64> {
    let all = Coefficient::ALL.into_iter();
    all.filter_map(|of| Some((of, Found::of(range, of)?.value))).collect()
}

/// A value and its interval, if bounded, in seconds (per byte).
#[derive(Clone, Copy, Debug)]
struct Found {
    value: f64,
    own: Option<[f64; 2]>,
}

impl Found {
    fn of(range: &Range, of: Coefficient) -> Option<Self> {
        let Estimate { value, low, high, .. } = range.estimate(of)?.map(|units| to_si(units, of));
        Some(Self { value: value?, own: low.zip(high).map(|(low, high)| [low, high]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::random::Random;

    /// A run with relative standard deviations `state` of the machine's state, which all launches
    /// share, and `launch` of the launches around it.
    fn run(random: &mut Random, state: f64, launch: f64) -> (f64, Vec<f64>) {
        let state = 5e-6 * (1.0 + state * random.normal());
        let launches: Vec<f64> = (0..5).map(|_| state * (1.0 + launch * random.normal())).collect();
        (launches.iter().sum::<f64>() / 5.0, launches)
    }

    /// Coverage: how often the interval of a run with `earlier` runs of history contains the value
    /// of another run; and its relative half width.
    fn coverage(state: f64, launch: f64, earlier: usize) -> (f64, f64) {
        const RUNS: u32 = 2_000;
        let mut random = Random::new(11);
        let (mut held, mut width) = (0, 0.0);
        for _ in 0..RUNS {
            let history: Vec<f64> =
                (0..earlier).map(|_| run(&mut random, state, launch).0).collect();
            let (value, launches) = run(&mut random, state, launch);
            let relative_sd = prior(Coefficient::AtOne(Curve::HalfRtt));
            let evidence =
                Evidence { value, own: None, launches: &launches, history: &history, relative_sd };
            let [low, high] = evidence.interval(Confidence::P95).unwrap();
            let (other, _) = run(&mut random, state, launch);
            held += u32::from((low..=high).contains(&other));
            width += (high - low) / (2.0 * value) / f64::from(RUNS);
        }
        (f64::from(held) / f64::from(RUNS), width)
    }

    #[test]
    fn the_interval_holds_another_run_on_machines_as_they_are() {
        // Quiet machine; states as the prior expects; states twice as strong, which only earlier
        // runs can reveal; launches that differ more than runs.
        for (state, launch, least) in
            [(0.02, 0.02, 0.99), (0.12, 0.05, 0.88), (0.24, 0.05, 0.55), (0.05, 0.3, 0.95)]
        {
            let (held, width) = coverage(state, launch, 0);
            assert!(held >= least, "states {state}, launches {launch}: {held}, ±{width:.3}");
        }
        for (state, launch, least) in [(0.12, 0.05, 0.93), (0.24, 0.05, 0.89)] {
            let (held, width) = coverage(state, launch, 5);
            assert!(held >= least, "states {state}, launches {launch}: {held}, ±{width:.3}");
        }
    }

    #[test]
    fn quiet_history_narrows_the_interval_and_wild_history_widens_it() {
        let launches = [1.0, 1.02, 0.98, 1.01, 0.99];
        let interval = |history: &[f64]| {
            let evidence =
                Evidence { value: 1.0, own: None, launches: &launches, history, relative_sd: 0.17 };
            let [low, high] = evidence.interval(Confidence::P95).unwrap();
            high - low
        };
        let without = interval(&[]);
        assert!(interval(&[1.0, 1.01, 0.99, 1.0, 1.01, 0.99]) < 0.8 * without);
        assert!(interval(&[1.5, 0.6, 1.4, 0.7]) > 1.5 * without);
    }

    #[test]
    fn one_launch_without_history_says_nothing_and_no_end_is_negative() {
        let of = |launches: &[f64], history: &[f64]| {
            let evidence = Evidence { value: 1.0, own: None, launches, history, relative_sd: 0.17 };
            evidence.interval(Confidence::P95)
        };
        assert_eq!(of(&[1.0], &[1.1]), None);
        assert!(of(&[1.0], &[1.1, 0.9]).is_some());
        let [low, high] = of(&[0.1, 1.9, 1.0], &[]).unwrap();
        assert!(low.abs() < 1e-12 && high > 2.0, "{low} {high}");
    }

    #[test]
    fn no_interval_is_narrower_than_what_this_run_knows() {
        let launches = [1.0, 1.0, 1.0, 1.0, 1.0];
        let own = Some([0.2, 3.0]);
        let evidence =
            Evidence { value: 1.0, own, launches: &launches, history: &[], relative_sd: 0.1 };
        assert_eq!(evidence.interval(Confidence::P95), own);
    }

    #[test]
    fn the_students_prediction_interval_is_the_textbooks() {
        // 4 degrees of freedom from the launches and 3 from the prior, all with s = 0.1:
        // t(0.975, 7) = 2.3646.
        let launches = [0.9, 0.9, 1.0, 1.1, 1.1];
        let evidence =
            Evidence { value: 1.0, own: None, launches: &launches, history: &[], relative_sd: 0.1 };
        let [low, high] = evidence.interval(Confidence::P95).unwrap();
        let half = 2.3646 * 0.1 * 1.2_f64.sqrt();
        assert!((low - (1.0 - half)).abs() < 1e-4 && (high - (1.0 + half)).abs() < 1e-4, "{low}");
    }
}
