//! Segments and their intervals from where they begin.

use super::Point;
use super::growing::GrowingLine;
use super::node::Node;
use super::segment::{Change, Estimate, Segment};
use super::segmentation::Config;
use super::select::Selection;
use crate::number::sqrt;

/// Writes one segment for each start of `selection`; returns those written.
pub(super) fn report<'s>(
    points: &[Point],
    nodes: &[Node],
    selection: &Selection,
    config: &Config,
    segments: &'s mut [Segment],
) -> &'s [Segment] {
    let mut starts = selection.starts().iter().copied().peekable();
    let mut written = 0;
    for place in &mut *segments {
        let Some(first) = starts.next() else { break };
        let end = starts.peek().copied().unwrap_or(nodes.len());
        let Some(run) = nodes.get(first..end) else { break };
        let Some([head, .., tail]) = points.get(first..end) else { break };
        let before = first.checked_sub(1).and_then(|index| points.get(index));
        *place = Segment {
            first,
            last: end - 1,
            first_size: head.size(),
            last_size: tail.size(),
            begins: Change {
                index: first,
                at: head.size(),
                low: before.map_or(head.size(), |point| point.size() + 1),
                high: head.size(),
            },
            outliers: run.len(),
            ..Segment::default()
        };
        fit(run, selection.scale, config, place);
        written += 1;
    }
    segments.get(..written).unwrap_or(&[])
}

/// Fills in the line through what is not dropped of `run`.
fn fit(run: &[Node], scale: f64, config: &Config, segment: &mut Segment) {
    let mut line = GrowingLine::default();
    for node in run.iter().filter(|node| !node.dropped) {
        line.accumulate(node.x, node.value, node.weight);
        segment.points += 1;
    }
    segment.outliers -= segment.points;
    let free = segment.points.saturating_sub(2).max(1);
    for node in run.iter().filter(|node| !node.dropped) {
        let residual = node.residual(&line);
        segment.residual_mean_square += residual * residual / free as f64;
    }
    let quantile = config.confidence.student(u32::try_from(free).unwrap_or(u32::MAX));
    let estimate = |value, variance| Estimate::symmetric(value, quantile * sqrt(scale * variance));
    segment.centre = line.centre;
    segment.gap = estimate(line.at(0.0), line.variance_at(0.0));
    segment.gap_per_byte = estimate(line.slope, 1.0 / line.spread);
    segment.level = estimate(line.level, 1.0 / line.weight);
}
