//! A picture.

use loggap::study::{Chart, Series};

use super::{Document, ResultRecord};

/// Medians over size with the ends of their intervals.
#[must_use]
pub fn chart(document: &Document) -> Chart {
    let mut operations: Vec<&str> = Vec::new();
    for result in &document.results {
        if !operations.contains(&result.op.as_str()) {
            operations.push(&result.op);
        }
    }
    let line = |op: &str, of: fn(&ResultRecord) -> Option<f64>| {
        let results = document.results.iter().filter(|result| result.op == op);
        #[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
        let points = results.filter_map(|r| Some((r.size_bytes.max(1) as f64, of(r)? * 1e6)));
        points.collect::<Vec<_>>()
    };
    let series = operations.iter().flat_map(|op| {
        [
            Series::new((*op).to_owned(), line(op, |r| r.median_s)),
            Series::new(format!("{op}: low end, 95%"), line(op, |r| r.median_s_lo)),
            Series::new(format!("{op}: high end, 95%"), line(op, |r| r.median_s_hi)),
        ]
    });
    let scheme = document.results.first().map_or("", |result| &result.scheme);
    Chart {
        title: format!("Collectives, {} ranks, {}, {scheme}", document.ranks, document.library),
        x_label: "size [bytes]".to_owned(),
        y_label: "median of the last exit [us]".to_owned(),
        series: series.collect(),
    }
}

/// Lines of a chart that share a colour.
pub const LINES_OF_ONE: usize = 3;

#[cfg(test)]
mod tests {
    use super::super::tests::document;
    use super::*;

    #[test]
    fn the_picture_has_medians_and_ends() {
        assert_eq!(chart(&document()).series.len(), LINES_OF_ONE);
    }
}
