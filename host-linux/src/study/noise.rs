//! Slowdown of collectives by noise of the operating system, over the number of ranks: the figures
//! of the talk on `LogGOPSim` (Hoefler, Schneider and Lumsdaine, LSAP'10, "Influence on
//! Collectives").

use loggap_core::stats::{Confidence, Moments};
use loggap_core::units::Picos;

use super::{Axes, Chart, Coordinates, Interval, Series};
use crate::output::number;

/// Fewest draws that noise hits for an interval.
const FEWEST_HIT: usize = 10;

/// Makespans of a collective with noise, over that without.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowdown {
    /// Mean over the draws of phases.
    pub mean: f64,
    /// Ends of the 95% interval of the mean; `None` if noise hits fewer than ten draws, since rare hits
    /// say little about their mean.
    pub interval: Option<[f64; 2]>,
    /// The largest of the draws.
    pub largest: f64,
}

impl Slowdown {
    /// Slowdown of the makespans `noisy`; `None` if there are none, or nothing takes time.
    #[must_use]
    pub fn of(quiet: Picos, noisy: &[Picos]) -> Option<Self> {
        let factor = |makespan: &Picos| makespan.seconds() / quiet.seconds();
        let mut moments = Moments::default();
        for makespan in noisy {
            moments.add(factor(makespan));
        }
        let mean = moments.mean().filter(|mean| mean.is_finite())?;
        let hit = noisy.iter().filter(|makespan| **makespan != quiet).count();
        let least = noisy.iter().map(factor).fold(f64::INFINITY, f64::min);
        let freedom = u32::try_from(noisy.len()).unwrap_or(u32::MAX).saturating_sub(1);
        let interval = moments.variance().filter(|_| hit >= FEWEST_HIT).map(|variance| {
            let error = (variance / f64::from(freedom + 1)).sqrt();
            let half = Confidence::P95.student(freedom) * error;
            [(mean - half).max(least), mean + half]
        });
        Some(Self { mean, interval, largest: noisy.iter().map(factor).fold(0.0, f64::max) })
    }
}

/// Slowdown of a collective with a number of ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Name of the pattern, or `trace`.
    pub pattern: &'static str,
    /// Number of ranks.
    pub ranks: u32,
    /// Makespan without noise.
    pub quiet: Picos,
    /// Slowdown; `None` where nothing takes time.
    pub slowdown: Option<Slowdown>,
}

/// Slowdown over the number of ranks, a line for each pattern; `lost` is the share of the time that
/// the noise takes.
#[must_use]
pub fn chart(rows: &[Row], lost: f64) -> Chart {
    let series = rows.chunk_by(|a, b| a.pattern == b.pattern).map(|rows| {
        let (mut points, mut intervals) = (Vec::new(), Vec::new());
        for row in rows {
            let Some(Slowdown { mean, interval, .. }) = row.slowdown else { continue };
            let x = f64::from(row.ranks);
            points.push(Coordinates { x, y: mean });
            intervals.extend(interval.map(|[low, high]| Interval { x, low, high }));
        }
        let label = rows.first().map_or_else(String::new, |row| row.pattern.to_owned());
        Series::new(label, points).with_intervals(intervals)
    });
    Chart {
        title: format!(
            "Slowdown by noise that takes {}% of the time",
            number::significant(lost * 100.0)
        ),
        x_label: "ranks".into(),
        y_label: "time with noise / without".into(),
        axes: Axes::Logarithmic,
        series: series.collect(),
        nested: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slowdown_is_the_mean_of_the_draws_with_its_interval() {
        let ten = [110, 130, 120, 110, 130, 120, 110, 130, 110, 130].map(Picos);
        let found = Slowdown::of(Picos(100), &ten).unwrap();
        assert!((found.mean - 1.2).abs() < 1e-12 && (found.largest - 1.3).abs() < 1e-12);
        // t(0.975, 9) = 2.262; 2.262 · 0.0943 / √10.
        let [low, high] = found.interval.unwrap();
        assert!((high - 1.267).abs() < 1e-3 && (low - 1.133).abs() < 1e-3, "{low} {high}");
        // Noise that hits nine draws only, and an end below the least of them.
        let nine = [&ten[..9], &[Picos(100)]].concat();
        assert_eq!(Slowdown::of(Picos(100), &nine).unwrap().interval, None);
        let skewed = [&[Picos(9_000)][..], &[Picos(110); 9]].concat();
        let [low, _] = Slowdown::of(Picos(100), &skewed).unwrap().interval.unwrap();
        assert!((low - 1.1).abs() < 1e-12, "{low}");
        assert_eq!(Slowdown::of(Picos(100), &[]), None);
        assert_eq!(Slowdown::of(Picos(0), &[Picos(0)]), None);
    }

    #[test]
    fn each_pattern_is_a_line() {
        let slowdown = Slowdown::of(Picos(100), &[110, 130].map(Picos));
        let row = |pattern, ranks| Row { pattern, ranks, quiet: Picos(100), slowdown };
        let rows = [row("gather", 2), row("gather", 4), row("scatter", 2)];
        let chart = chart(&rows, 0.0125);
        assert!(chart.title.ends_with("1.25% of the time"), "{}", chart.title);
        let lines: Vec<usize> = chart.series.iter().map(|series| series.points.len()).collect();
        assert_eq!(lines, [2, 1]);
        assert_eq!(chart.series[1].label, "scatter");
    }
}
