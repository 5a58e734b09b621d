//! Charts of times over size or ranks.

use loggap::study::{Axes, Chart, Coordinates, Interval, Series};

use super::{Document, ResultRecord};

/// A time and the lower and upper end of its interval, in seconds.
pub type Times = [Option<f64>; 3];

/// Time of an operation, in seconds, and the ends of its interval.
#[derive(Clone, Copy, Debug)]
pub struct TimeAt {
    /// Size in bytes, or number of ranks.
    pub at: u64,
    /// Median or prediction.
    pub value_s: f64,
    /// Lower end.
    pub low_s: Option<f64>,
    /// Upper end.
    pub high_s: Option<f64>,
}

impl TimeAt {
    /// `None` without a time.
    #[must_use]
    pub fn new(at: u64, [value_s, low_s, high_s]: Times) -> Option<Self> {
        Some(Self { at, value_s: value_s?, low_s, high_s })
    }

    #[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
    const fn x(&self) -> f64 {
        if self.at > 0 { self.at as f64 } else { 1.0 }
    }

    /// Line through `times`, with their intervals.
    #[must_use]
    pub fn line(label: String, times: &[Self]) -> Series {
        let point = |time: &Self| Coordinates { x: time.x(), y: time.value_s * 1e6 };
        let points = times.iter().map(point).collect();
        let intervals = times.iter().filter_map(|time| {
            Some(Interval { x: time.x(), low: time.low_s? * 1e6, high: time.high_s? * 1e6 })
        });
        Series::new(label, points).with_intervals(intervals.collect())
    }
}

/// Chart of times over size: the lines that `lines` gives for each of the `results`' operations.
pub fn over_size<'r, R>(
    results: &'r [R],
    op: impl Fn(&R) -> String,
    lines: impl Fn(&str, &[&'r R]) -> Vec<Series>,
) -> Chart {
    let mut rest: Vec<&R> = results.iter().collect();
    let mut series = Vec::new();
    while let Some(first) = rest.first().copied() {
        let (same, others): (Vec<&R>, Vec<&R>) = rest.into_iter().partition(|r| op(r) == op(first));
        series.extend(lines(&op(first), &same));
        rest = others;
    }
    let (title, y_label) = Default::default();
    let x_label = "size [bytes]".to_owned();
    Chart { title, x_label, y_label, axes: Axes::Powers, series, nested: false }
}

/// Chart of the medians over size, with their intervals.
#[must_use]
pub fn chart(document: &Document) -> Chart {
    let time =
        |r: &&ResultRecord| TimeAt::new(r.size_bytes, [r.median_s, r.median_s_lo, r.median_s_hi]);
    let scheme = document.results.first().map_or("", |result| &result.scheme);
    Chart {
        title: format!("Collectives, {} ranks, {}, {scheme}", document.ranks, document.library),
        y_label: "median of the last exit, 95% interval [us]".to_owned(),
        ..over_size(
            &document.results,
            |result| result.op.clone(),
            |op, results| {
                let times: Vec<TimeAt> = results.iter().filter_map(time).collect();
                vec![TimeAt::line(op.to_owned(), &times)]
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::document;
    use super::*;

    #[test]
    fn the_picture_has_medians_and_ends() {
        let mut document = document();
        let result = &mut document.results[0];
        (result.median_s_lo, result.median_s, result.median_s_hi) =
            (Some(2e-6), Some(3e-6), Some(5e-6));
        let label = result.op.clone();
        let [series] = &chart(&document).series[..] else { panic!() };
        assert_eq!((&series.label, series.points[0].y), (&label, 3.0));
        let Interval { low, high, .. } = series.intervals[0];
        assert_eq!((low, high), (2.0, 5.0));
    }
}
