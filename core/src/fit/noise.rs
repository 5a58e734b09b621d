//! How far points scatter, before any line is known.

use super::node::Node;
use super::{Config, Point};
use crate::number::{larger, sqrt};
use crate::stats::Sorted;

/// Points on both sides whose sigmas a point's own is compared with.
const NEIGHBOURS: usize = 3;

/// Ratio of the median absolute deviation of a normal variable to its
/// standard deviation.
const NORMAL_MAD: f64 = 0.674_489_750_196_081_7;

/// How far the points of one protocol may lie beside their line, as a part of
/// what makes a change.
const WITHIN: f64 = 0.4;

/// Relative error of a value from its own double and the sums it came from.
const RELATIVE_FLOOR: f64 = 1e-12;

/// The noise of a sweep, as far as known before fitting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    /// Whether the points' weights are 1/variance; otherwise all are 1 and
    /// the scale has to be estimated.
    pub(super) known: bool,
    /// Variance of a point of weight 1: 1 when known, a robust estimate
    /// otherwise.
    pub(super) scale: f64,
    /// What `scale` never falls below.
    pub(super) floor: f64,
}

impl Noise {
    /// Fills `nodes` from `points`, as many as both hold.
    ///
    /// A sigma is trusted only as far as its neighbourhood supports it: a
    /// handful of samples may agree by chance, so a point counts with the
    /// larger of its own sigma and the median of its neighbours'. Where
    /// fewer than half of the points have one, all weigh the same.
    pub(super) fn weigh(points: &[Point], nodes: &mut [Node], config: &Config) -> Self {
        let floor = floor_of(points, config);
        let with_sigma = points.iter().filter(|p| p.sigma().is_some()).count();
        let known = 2 * with_sigma >= points.len();
        for (index, (node, point)) in nodes.iter_mut().zip(points).enumerate() {
            let weight = if known {
                let sigma = larger(point.sigma().unwrap_or(0.0), typical_sigma(points, index));
                let bend = WITHIN * config.tolerance * point.value();
                1.0 / (sigma * sigma + floor + bend * bend)
            } else {
                1.0
            };
            *node = Node::new(*point, weight);
        }
        if known {
            Self { known, scale: 1.0, floor: 1.0 }
        } else {
            Self { known, scale: larger(local_variance(nodes), floor), floor }
        }
    }
}

/// Variance from the clock's resolution and from rounding, in ps².
fn floor_of(points: &[Point], config: &Config) -> f64 {
    let largest = points.iter().fold(0.0_f64, |most, p| larger(most, p.value().abs()));
    let rounding = RELATIVE_FLOOR * largest;
    let resolution = larger(config.resolution, 1e-3);
    resolution * resolution / 12.0 + rounding * rounding
}

/// Median of the known sigmas around a point; 0 when there are none.
fn typical_sigma(points: &[Point], index: usize) -> f64 {
    // Doubles that are not negative are ordered as their bits are.
    let mut window = [0; 2 * NEIGHBOURS + 1];
    let mut count = 0;
    let known = points
        .iter()
        .skip(index.saturating_sub(NEIGHBOURS))
        .take(index.min(NEIGHBOURS) + 1 + NEIGHBOURS)
        .filter_map(Point::sigma);
    for (place, sigma) in window.iter_mut().zip(known) {
        *place = sigma.to_bits();
        count += 1;
    }
    let window = Sorted::new(window.get_mut(..count).unwrap_or_default());
    window.as_slice().get(count / 2).map_or(0.0, |&bits| f64::from_bits(bits))
}

/// Variance of a point of weight 1 from how far each point lies from the
/// straight line between its neighbours: the median of these distances, so
/// that neither a change nor an outlier (three distances each) matters.
fn local_variance(nodes: &[Node]) -> f64 {
    let deviation = median_by_counting(nodes.len().saturating_sub(2), |visit| {
        for triple in nodes.windows(3) {
            let [before, node, after] = triple else { continue };
            visit(local_deviation(before, node, after));
        }
    });
    let sigma = deviation / NORMAL_MAD;
    sigma * sigma
}

fn local_deviation(before: &Node, node: &Node, after: &Node) -> f64 {
    let reach = after.x - before.x;
    if reach <= 0.0 {
        return 0.0;
    }
    let share = (node.x - before.x) / reach;
    let predicted = before.value + (after.value - before.value) * share;
    let variance = 1.0 / node.weight
        + (1.0 - share) * (1.0 - share) / before.weight
        + share * share / after.weight;
    (node.value - predicted).abs() / sqrt(variance)
}

/// The upper median of `count` non-negative numbers that `each` visits, found
/// by halving the range of doubles, so that no memory is needed.
fn median_by_counting(count: usize, each: impl Fn(&mut dyn FnMut(f64))) -> f64 {
    // Non-negative doubles are ordered as their bits are.
    let (mut low, mut high) = (0, f64::MAX.to_bits());
    while low < high {
        let middle = low + (high - low) / 2;
        let mut below = 0;
        each(&mut |value| below += usize::from(value.to_bits() <= middle));
        if 2 * below > count {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    f64::from_bits(low)
}
