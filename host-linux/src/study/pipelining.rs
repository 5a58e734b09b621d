//! Effect of pipelining on the measurement of collective operations.
//!
//! Section 4.2 of "LogGP in Theory and Practice": a broadcast is measured by repeating it n times
//! in a loop and dividing the time by n. Repetitions overlap, so the quotient is below the time of
//! one broadcast. Moving the root by one rank each repetition is said to prevent that. This study
//! compares both schemes with the time of a single broadcast that all ranks start together.

use std::fmt;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::model::LogGops;
use loggap_core::units::Picos;

use super::{Axes, Chart, Coordinates, Series};

/// A broadcast algorithm of the study.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, ValueEnum)]
pub enum Algorithm {
    /// Binomial tree.
    #[value(name = "binomial")]
    Tree,
    /// Pipeline along all ranks.
    Pipeline,
    /// The root sends to each other rank.
    Linear,
}

impl Algorithm {
    /// Schedule pattern used to simulate it.
    #[must_use]
    pub const fn pattern(self) -> Pattern {
        match self {
            Self::Tree => Pattern::BinomialBroadcast,
            Self::Pipeline => Pattern::PipelinedRing,
            Self::Linear => Pattern::Scatter,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.to_possible_value().as_ref().map_or("", PossibleValue::get_name))
    }
}

/// Parameters of the study.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Question {
    /// LogGP parameters for messages of this size.
    pub parameters: LogGops,
    /// Bytes of the broadcast.
    pub size: u64,
    /// Bytes of a segment of the pipeline; the whole message if `None`.
    pub segment: Option<u64>,
    /// Repetitions, n.
    pub repetitions: u32,
}

/// Times of one algorithm for one rank count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Row {
    /// Number of ranks.
    pub ranks: u32,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Time of one broadcast that all ranks start together.
    pub synchronised: Picos,
    /// Time of n broadcasts in a loop, divided by n.
    pub looped: Picos,
    /// Time of n broadcasts with a moving root, divided by n.
    pub rotated: Picos,
}

impl Row {
    /// Error of the loop, in seconds: time of one broadcast minus the measured one. Negative if the
    /// loop measures too much.
    #[must_use]
    pub fn loop_error_s(&self) -> f64 {
        self.synchronised.seconds() - self.looped.seconds()
    }

    /// Error of the moving root, in seconds: time of one broadcast minus the measured one.
    #[must_use]
    pub fn rotated_error_s(&self) -> f64 {
        self.synchronised.seconds() - self.rotated.seconds()
    }
}

impl Question {
    /// Pattern options for `repetitions` broadcasts on `ranks` ranks.
    #[must_use]
    pub const fn options(&self, ranks: u32, repetitions: u32) -> Options {
        let options = Options::new(ranks, self.size);
        Options { segment: self.segment, repeat: repetitions, ..options }
    }

    /// Times of one algorithm for one rank count; `simulate` returns the makespan of a schedule.
    ///
    /// # Errors
    ///
    /// Errors of `simulate`.
    pub fn answer<E>(
        &self,
        algorithm: Algorithm,
        ranks: u32,
        mut simulate: impl FnMut(Pattern, &Options, &LogGops) -> Result<Picos, E>,
    ) -> Result<Row, E> {
        let mut time = |options: Options| simulate(algorithm.pattern(), &options, &self.parameters);
        let mean = |total: Picos| Picos(total.0 / u64::from(self.repetitions.max(1)));
        let many = self.options(ranks, self.repetitions);
        Ok(Row {
            ranks,
            algorithm,
            synchronised: time(self.options(ranks, 1))?,
            looped: mean(time(many)?),
            rotated: mean(time(Options { rotate_root: true, ..many })?),
        })
    }
}

/// Fastest algorithm according to each scheme.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Winners {
    /// Number of ranks.
    pub ranks: u32,
    /// According to one synchronised broadcast, the correct result.
    pub synchronised: Algorithm,
    /// According to the loop.
    pub looped: Algorithm,
}

/// Fastest algorithms at every rank count for which `rows`, in its order, has several. Of equally
/// fast ones the first counts.
#[must_use]
pub fn winners(rows: &[Row]) -> Vec<Winners> {
    let at_one_count = rows.chunk_by(|a, b| a.ranks == b.ranks).filter(|rows| rows.len() > 1);
    let winners = at_one_count.filter_map(|rows| {
        let fastest =
            |time: fn(&Row) -> Picos| Some(rows.iter().min_by_key(|row| time(row))?.algorithm);
        Some(Winners {
            ranks: rows.first()?.ranks,
            synchronised: fastest(|row| row.synchronised)?,
            looped: fastest(|row| row.looped)?,
        })
    });
    winners.collect()
}

/// Growth of an error with the number of ranks: residuals of the least-squares lines over P and
/// over log₂ P.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Share of the variance that a line over P leaves unexplained.
    pub linear_residual: f64,
    /// Share of the variance that a line over log₂ P leaves unexplained.
    pub logarithmic_residual: f64,
}

impl Growth {
    /// Growth of the loop's error for `algorithm`; `None` with fewer than three rank counts, or if
    /// it changes by less than a hundredth.
    #[must_use]
    pub fn of_loop_error(rows: &[Row], algorithm: Algorithm) -> Option<Self> {
        let rows = rows.iter().filter(|row| row.algorithm == algorithm);
        let point = |row: &Row| Coordinates { x: f64::from(row.ranks), y: row.loop_error_s() };
        let points: Vec<_> = rows.map(point).collect();
        let highest = points.iter().map(|point| point.y).fold(f64::NEG_INFINITY, f64::max);
        let lowest = points.iter().map(|point| point.y).fold(f64::INFINITY, f64::min);
        if highest - lowest < 0.01 * highest.abs() {
            return None;
        }
        let logarithmic = |&Coordinates { x, y }: &Coordinates| Coordinates { x: x.log2(), y };
        let logarithmic: Vec<_> = points.iter().map(logarithmic).collect();
        Some(Self {
            linear_residual: unexplained(&points)?,
            logarithmic_residual: unexplained(&logarithmic)?,
        })
    }

    /// True if the line over P fits better than that over log₂ P.
    #[must_use]
    pub fn is_linear(&self) -> bool {
        self.linear_residual < self.logarithmic_residual
    }
}

/// Unexplained share of the variance, 1 − R², of the least-squares line through `points`.
#[allow(clippy::cast_precision_loss, reason = "a few points")]
fn unexplained(points: &[Coordinates]) -> Option<f64> {
    if points.len() < 3 {
        return None;
    }
    let count = points.len() as f64;
    let mean = |of: fn(&Coordinates) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x_mean, y_mean) = (mean(|point| point.x), mean(|point| point.y));
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for Coordinates { x, y } in points {
        let (x, y) = (x - x_mean, y - y_mean);
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    (xx > 0.0 && yy > 0.0).then(|| (1.0 - xy * xy / (xx * yy)).max(0.0))
}

/// The two plots of the paper's Fig. 9 for one link: times, and errors.
#[must_use]
pub fn charts(link: &str, rows: &[Row]) -> [Chart; 2] {
    let micros = |seconds: f64| seconds * 1e6;
    let mut times = Vec::new();
    let mut errors = Vec::new();
    let is_present = |algorithm: &Algorithm| rows.iter().any(|row| row.algorithm == *algorithm);
    for algorithm in Algorithm::value_variants().iter().filter(|one| is_present(one)) {
        let of = |value: &dyn Fn(&Row) -> f64| {
            let rows = rows.iter().filter(|row| row.algorithm == *algorithm);
            rows.map(|row| Coordinates { x: f64::from(row.ranks), y: value(row) }).collect()
        };
        let label = |scheme: &str| format!("{algorithm}, {scheme}");
        times.push(Series::new(
            label("synchronised"),
            of(&|row| micros(row.synchronised.seconds())),
        ));
        times.push(Series::new(label("loop"), of(&|row| micros(row.looped.seconds()))));
        times.push(Series::new(label("root moves"), of(&|row| micros(row.rotated.seconds()))));
        errors.push(Series::new(label("loop"), of(&|row| micros(row.loop_error_s()))));
        errors.push(Series::new(label("root moves"), of(&|row| micros(row.rotated_error_s()))));
    }
    let chart = |title: &str, quantity: &str, series| Chart {
        title: format!("{link}: {title}"),
        x_label: "ranks".into(),
        y_label: format!("{quantity} [µs]"),
        axes: Axes::Powers,
        nested: false,
        series,
    };
    [
        chart("time of a broadcast as measured", "time", times),
        chart("error, time of one broadcast less time as measured", "error", errors),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ranks: u32, algorithm: Algorithm, [synchronised, looped, rotated]: [u64; 3]) -> Row {
        let time = |micros| Picos(micros * 1_000_000);
        Row {
            ranks,
            algorithm,
            synchronised: time(synchronised),
            looped: time(looped),
            rotated: time(rotated),
        }
    }

    #[test]
    fn a_linear_error_is_told_from_a_logarithmic_one() {
        let mut rows = Vec::new();
        for power in 1..=10u32 {
            let ranks = 1u64 << power;
            let pipeline = [50 * ranks, ranks, ranks];
            rows.push(row(1 << power, Algorithm::Pipeline, pipeline));
            rows.push(row(1 << power, Algorithm::Tree, [50 * u64::from(power), 0, 0]));
        }
        let growth = |algorithm| Growth::of_loop_error(&rows, algorithm).unwrap();
        assert!(growth(Algorithm::Pipeline).is_linear());
        assert!(!growth(Algorithm::Tree).is_linear());
        assert!(growth(Algorithm::Pipeline).linear_residual < 1e-9);
        assert_eq!(Growth::of_loop_error(&rows[..4], Algorithm::Tree), None);
    }

    #[test]
    fn winners_differ_where_the_scheme_misleads() {
        let rows = [
            row(64, Algorithm::Tree, [300, 30, 50]),
            row(64, Algorithm::Pipeline, [3_000, 20, 90]),
        ];
        let expected =
            Winners { ranks: 64, synchronised: Algorithm::Tree, looped: Algorithm::Pipeline };
        assert_eq!(winners(&rows), [expected]);
        assert_eq!(winners(&rows[..1]), []);
    }
}
