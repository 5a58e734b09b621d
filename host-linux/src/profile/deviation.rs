//! Mean square deviation of the gap from a line: lsq, Eq. 6 of "LogGP in Theory and Practice".

use loggap_core::fit::{GrowingLine, Point};
use loggap_core::model::Range;

use super::SizeRecord;

/// Square seconds in a square picosecond.
const SQUARE_PICO: f64 = 1e-24;

/// The gap curve, ascending by size; sizes without a gap are left out.
#[allow(clippy::cast_precision_loss, reason = "exact below two hours")]
pub(crate) fn gap_points(sizes: &[SizeRecord]) -> Vec<Point> {
    let point = |record: &SizeRecord| {
        let gap = record.row.gap?.value.0 as f64;
        Point::new(record.row.size.0, gap, 0.0).ok()
    };
    sizes.iter().filter_map(point).collect()
}

/// Mean square deviation of the gap of `range` from its least-squares line, s²; `None` for fewer
/// than three sizes. The divisor is their number less 2.
pub(crate) fn gap_deviation(sizes: &[SizeRecord], range: &Range) -> Option<f64> {
    let mut line = GrowingLine::new();
    for point in gap_points(sizes) {
        if (range.first.0..=range.last.0).contains(&point.size()) {
            line.add(point);
        }
    }
    mean_square(&line)
}

/// Mean square deviation of the points of `line`, s².
pub(crate) fn mean_square(line: &GrowingLine) -> Option<f64> {
    line.residual_mean_square().map(|square| square * SQUARE_PICO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::measure::SizeRow;
    use loggap_core::model::Estimate;
    use loggap_core::units::{Bytes, SignedPicos};

    fn record(size: u64, gap: Option<i64>) -> SizeRecord {
        let gap = gap.map(|gap| Estimate::exact(SignedPicos(gap)));
        SizeRecord::from(SizeRow { size: Bytes(size), gap, ..SizeRow::default() })
    }

    #[test]
    fn the_divisor_is_the_number_of_sizes_less_two() {
        // The line through these is 1000; residuals 10, -10, -10, 10.
        let gaps = [(1, Some(1_010)), (2, Some(990)), (3, Some(990)), (4, Some(1_010))];
        let mut sizes: Vec<_> = gaps.into_iter().map(|(size, gap)| record(size, gap)).collect();
        sizes.push(record(5, None));
        sizes.push(record(6, Some(5_000)));
        let range = |last| Range { first: Bytes(1), last: Bytes(last), ..Range::default() };
        let found = gap_deviation(&sizes, &range(5)).unwrap();
        assert!((found / (400.0 / 2.0 * 1e-24) - 1.0).abs() < 1e-9, "{found}");
        assert_eq!(gap_deviation(&sizes, &range(2)), None);
    }
}
