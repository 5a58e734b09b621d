//! Chart of the results.

use loggap::study::{Axes, Chart, Coordinates, Interval, Series};

use super::{Document, ResultRecord};

/// Chart of the medians over size, with their intervals.
#[must_use]
pub fn chart(document: &Document) -> Chart {
    let mut operations: Vec<&str> = Vec::new();
    for result in &document.results {
        if !operations.contains(&result.op.as_str()) {
            operations.push(&result.op);
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
    let place = |result: &ResultRecord| result.size_bytes.max(1) as f64;
    let micros = |seconds: f64| seconds * 1e6;
    let series = operations.iter().map(|op| {
        let results = || document.results.iter().filter(|result| result.op == *op);
        let points =
            results().filter_map(|r| Some(Coordinates { x: place(r), y: micros(r.median_s?) }));
        let intervals = results().filter_map(|r| {
            let (low, high) = (micros(r.median_s_lo?), micros(r.median_s_hi?));
            Some(Interval { x: place(r), low, high })
        });
        Series::new((*op).to_owned(), points.collect()).with_intervals(intervals.collect())
    });
    let scheme = document.results.first().map_or("", |result| &result.scheme);
    Chart {
        title: format!("Collectives, {} ranks, {}, {scheme}", document.ranks, document.library),
        x_label: "size [bytes]".to_owned(),
        y_label: "median of the last exit, 95% interval [us]".to_owned(),
        axes: Axes::Powers,
        series: series.collect(),
        nested: false,
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
