//! Ranges of a sweep: divided at jumps, and where a curve bends into the fewest lines.

use core::fmt;

use super::cover::{self, Axis};
use super::{Change, Detector, Node, Point};
use crate::stats::Confidence;

/// Most curves that are fitted together.
pub const MAX_CURVES: usize = 4;

/// Settings of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Config {
    /// Confidence with which a point outside its tolerance deviates from the line by more than its
    /// noise, for all sizes simultaneously.
    pub confidence: Confidence,
    /// Largest distance of a point from its range's line, relative to its value; smaller jumps
    /// divide no range.
    pub tolerance: f64,
    /// Resolution of the values in ps: their error without noise.
    pub resolution: f64,
    /// Most changes; ranges are at most one more. 0 disables the search.
    pub max_changes: usize,
    /// Fewest sizes of a range, unless the whole sweep has fewer.
    pub min_sizes: usize,
    /// Method of finding changes.
    pub detector: Detector,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            confidence: Confidence::P95,
            tolerance: 0.06,
            resolution: 1.0,
            max_changes: 15,
            min_sizes: 4,
            detector: Detector::optimal(),
        }
    }
}

/// Memory that a fit needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Requirements {
    /// Length of the slice of [`Node`].
    pub nodes: usize,
}

impl Requirements {
    /// Requirements of curves with up to `sizes` sizes each.
    #[must_use]
    pub const fn new(sizes: usize) -> Self {
        let cells = if sizes < cover::MAX_CELLS { sizes } else { cover::MAX_CELLS };
        Self { nodes: cells + 1 }
    }
}

/// Reasons why a sweep cannot be fitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum FitError {
    /// No curve has a point.
    NoPoints,
    /// A point's size does not exceed that of the point before.
    Order {
        /// Index of the curve.
        curve: usize,
        /// Index of the offending point.
        index: usize,
        /// Its size in bytes.
        size: u64,
    },
    /// The lent memory is too small, or there is no room for a single range.
    Memory(Requirements),
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPoints => f.write_str("there are no values to fit: measure some sizes"),
            Self::Order { index, size, .. } => write!(
                f,
                "point {index} ({size} B) is not larger than the one before: sort the points by \
                 size and merge equal sizes"
            ),
            Self::Memory(needed) => {
                write!(f, "the fit needs {} nodes of memory and a place for a range", needed.nodes)
            }
        }
    }
}

impl core::error::Error for FitError {}

/// Finds the protocol changes of `curves`, and ranges of sizes in which every curve is a line.
///
/// The curves are, in this order, the gap, half the round trip, the send and the receive overhead;
/// any may be empty or missing at the end. Changes are searched in all of them; the lines of a
/// range have to describe the first two. Points ascend strictly by size; outliers among them
/// ([`mark_outliers`](super::mark_outliers)) are ignored.
///
/// Writes the changes to `changes` and the first sizes of the ranges to `starts`, both ascending.
/// If there are more than `N` changes, the most significant are kept; if there are more than `N`
/// ranges, those whose sum of squares increases least are joined.
///
/// The changes take O(n) for n sizes, at most N + 1 times; the ranges take O(c³) for c = min(n,
/// 256) cells of neighbouring sizes. With more than 256 sizes ranges begin at cells only, and the
/// first point of a cell represents it.
///
/// # Errors
///
/// [`FitError`] if there are no points, they are not in order, or there is too little memory.
pub fn find_ranges<const N: usize>(
    curves: &[&[Point]],
    config: &Config,
    memory: &mut [Node],
    changes: &mut heapless::Vec<Change, N>,
    starts: &mut heapless::Vec<u64, N>,
) -> Result<(), FitError> {
    find(curves, config, memory, changes, starts)
}

fn find(
    curves: &[&[Point]],
    config: &Config,
    memory: &mut [Node],
    changes: &mut heapless::VecView<Change>,
    starts: &mut heapless::VecView<u64>,
) -> Result<(), FitError> {
    changes.clear();
    starts.clear();
    let curves = curves.get(..MAX_CURVES).unwrap_or(curves);
    check(curves)?;
    let axis = Axis::of(curves, config).ok_or(FitError::NoPoints)?;
    let needed = Requirements { nodes: axis.cells() + 1 };
    let nodes = memory.get_mut(..needed.nodes).ok_or(FitError::Memory(needed))?;
    let most = starts.capacity().min(config.max_changes.saturating_add(1));
    if most == 0 {
        return Err(FitError::Memory(needed));
    }
    if most > 1 {
        (config.detector.find)(curves, config, changes);
    }
    cover::cover(&axis, changes, nodes);
    cover::join(&axis, most, nodes);
    for (cell, _) in nodes.iter().enumerate().filter(|(_, node)| node.begins) {
        // There are at most as many as fit.
        let _ = starts.push(axis.size(cell).unwrap_or_default());
    }
    for change in changes {
        change.splits &= starts.contains(&change.at);
    }
    Ok(())
}

fn check(curves: &[&[Point]]) -> Result<(), FitError> {
    for (curve, points) in curves.iter().enumerate() {
        for (index, pair) in points.windows(2).enumerate() {
            if let [before, point] = pair
                && before.size() >= point.size()
            {
                return Err(FitError::Order { curve, index: index + 1, size: point.size() });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn sweep(sizes: impl Iterator<Item = u64>, value: impl Fn(f64) -> f64) -> Vec<Point> {
        sizes.map(|size| Point::new(size, value((size - 1) as f64), 0.0).unwrap()).collect()
    }

    fn starts<const N: usize>(points: &[Point], config: &Config) -> Vec<u64> {
        let mut nodes = vec![Node::default(); Requirements::new(points.len()).nodes];
        let (mut changes, mut starts) =
            (heapless::Vec::<_, N>::new(), heapless::Vec::<_, N>::new());
        find_ranges(&[points], config, &mut nodes, &mut changes, &mut starts).unwrap();
        starts.to_vec()
    }

    /// 1, 2, 4 ... 2^20.
    fn powers() -> impl Iterator<Item = u64> {
        (0..=20).map(|exponent| 1 << exponent)
    }

    #[test]
    fn a_bend_begins_a_range_and_more_than_asked_for_are_joined() {
        let bent = |x: f64| 1e6 + 80.0 * x + 800.0 * (x - 4_000.0).max(0.0);
        let points = sweep(powers(), bent);
        let found = starts::<16>(&points, &Config::default());
        assert!(found.len() > 1 && found[0] == 1, "{found:?}");
        for pair in found.windows(2) {
            assert!(pair[1] >= 2 * pair[0] && pair[1] >= 16 * pair[0].min(1), "{found:?}");
        }
        assert_eq!(starts::<1>(&points, &Config::default()), [1]);
        let one = Config { max_changes: 0, ..Config::default() };
        assert_eq!(starts::<16>(&points, &one), [1]);
    }

    #[test]
    fn thousands_of_sizes_are_thinned() {
        let points = sweep((0..8_192).map(|i| 1 + 128 * i), |x| 1e6 + 80.0 * x);
        assert_eq!(Requirements::new(8_192).nodes, cover::MAX_CELLS + 1);
        assert_eq!(starts::<16>(&points, &Config::default()), [1]);
    }

    #[test]
    fn few_points_are_one_range_and_none_are_an_error() {
        for count in 1..=3 {
            let points = sweep(powers().take(count), |x| 1e6 + 1e9 * x * x);
            assert_eq!(starts::<16>(&points, &Config::default()), [1]);
        }
        let (mut changes, mut starts) =
            (heapless::Vec::<_, 4>::new(), heapless::Vec::<_, 4>::new());
        let mut find = |curves: &[&[Point]], nodes: &mut [Node]| {
            find_ranges(curves, &Config::default(), nodes, &mut changes, &mut starts)
        };
        assert_eq!(find(&[&[], &[]], &mut []), Err(FitError::NoPoints));
        let points = sweep(powers(), |x| 1e6 + x);
        let needed = Requirements::new(points.len());
        assert_eq!(find(&[&points], &mut [Node::default(); 3]), Err(FitError::Memory(needed)));
        let twice = [points[3], points[3]];
        let order = Err(FitError::Order { curve: 1, index: 1, size: 8 });
        assert_eq!(find(&[&points, &twice], &mut []), order);
    }

    /// Sweep of a small device: three sizes beyond a change.
    #[test]
    fn a_change_before_the_last_three_sizes_is_found() {
        let sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 1_200];
        let value = |x: f64| if x < 511.0 { 2e6 + 3_000.0 * x } else { 3.6e6 + 1_000.0 * x };
        let points = sweep(sizes.into_iter(), value);
        assert_eq!(starts::<4>(&points, &Config::default()), [1, 512]);
        let told = points.iter().map(|p| Point::new(p.size(), p.value(), 2_000.0).unwrap());
        let mut told: Vec<Point> = told.collect();
        super::super::mark_outliers(&mut told);
        assert!(told.iter().all(|point| !point.is_outlier()));
        assert_eq!(starts::<4>(&told, &Config::default()), [1, 512]);
    }
}
