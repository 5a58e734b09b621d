//! Segments and their intervals from where they begin.

use super::line::Line;
use super::node::Node;
use super::segment::{Change, Estimate, Segment};
use super::segmentation::Config;
use super::select::Selection;
use crate::number::sqrt;

/// Writes one segment for each start of `selection`; returns those written.
pub(super) fn report<'s>(
    nodes: &[Node],
    selection: &Selection,
    config: &Config,
    segments: &'s mut [Segment],
) -> &'s [Segment] {
    let starts = selection.starts();
    let mut written = 0;
    for (order, place) in segments.iter_mut().take(starts.len()).enumerate() {
        let Some(segment) = describe(nodes, selection, config, order) else { break };
        *place = segment;
        written += 1;
    }
    segments.get(..written).unwrap_or(&[])
}

fn describe(
    nodes: &[Node],
    selection: &Selection,
    config: &Config,
    order: usize,
) -> Option<Segment> {
    let starts = selection.starts();
    let first = *starts.get(order)?;
    let end = starts.get(order + 1).copied().unwrap_or(nodes.len());
    let run = nodes.get(first..end)?;
    let mut line = Line::new();
    let kept = run.iter().filter(|node| !node.dropped);
    kept.clone().for_each(|node| line.accumulate(node.size, node.value, node.weight));
    let solved = line.solve()?;
    let points = kept.clone().count();
    let squares: f64 = kept.map(|node| node.residual(&solved) * node.residual(&solved)).sum();
    let free = points.saturating_sub(2).max(1);
    let quantile = config.confidence.student(u32::try_from(free).unwrap_or(u32::MAX));
    let half = |variance: f64| quantile * sqrt(selection.scale * variance);
    let head = run.first()?;
    let previous = first.checked_sub(1).and_then(|index| nodes.get(index));
    Some(Segment {
        first,
        last: end.checked_sub(1)?,
        first_size: head.size,
        last_size: run.last()?.size,
        begins: Change {
            index: first,
            at: head.size,
            low: previous.map_or(head.size, |node| node.size + 1),
            high: head.size,
        },
        gap: Estimate::symmetric(solved.gap, half(solved.variance_at(0.0))),
        gap_per_byte: Estimate::symmetric(solved.slope, half(1.0 / solved.spread)),
        residual_mean_square: squares / free as f64,
        points,
        outliers: run.len() - points,
        centre: solved.centre,
        level: Estimate::symmetric(solved.level, half(1.0 / solved.weight)),
    })
}
