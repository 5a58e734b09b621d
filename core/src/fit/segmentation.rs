//! The optimal piecewise-linear fit of a stored sweep.

use core::fmt;

use super::node::MIN_POINTS;
use super::noise::Noise;
use super::report::report;
use super::{Cell, Change, Detector, Node, Point, Segment};
use crate::stats::Confidence;

/// Most segments that a fit may have.
pub(super) const MAX_SEGMENTS: usize = 16;

/// What a fit is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Config {
    /// Level of the intervals.
    pub confidence: Confidence,
    /// A change that moves the line nowhere by this fraction of its value is
    /// not a protocol change, however significant: real links are never
    /// quite straight. 0 reports every significant change.
    pub tolerance: f64,
    /// Resolution of the values in ps: what a value may be off by when
    /// nothing is noisy.
    pub resolution: f64,
    /// Most changes to look for, at most 15.
    pub max_changes: usize,
    /// How to look for them.
    pub detector: Detector,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            confidence: Confidence::P95,
            tolerance: 0.05,
            resolution: 1.0,
            max_changes: 7,
            detector: Detector::optimal(),
        }
    }
}

/// How much memory a fit needs lent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Requirements {
    /// Elements of the `nodes` slice.
    pub nodes: usize,
    /// Elements of the `cells` slice.
    pub cells: usize,
    /// Elements of the `segments` slice.
    pub segments: usize,
}

/// Why a sweep cannot be fitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum FitError {
    /// Fewer than three points (how many there are).
    TooFewPoints(usize),
    /// The size at this index is not larger than the one before.
    Order {
        /// Index of the offending point.
        index: usize,
        /// Its size in bytes.
        size: u64,
    },
    /// The lent memory is too small; this is what is needed.
    Memory(Requirements),
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewPoints(count) => write!(
                f,
                "a line needs values at {MIN_POINTS} message sizes or more, there are {count}: \
                 measure more sizes"
            ),
            Self::Order { index, size } => write!(
                f,
                "point {index} ({size} B) is not larger than the one before: sort the points by \
                 size and merge equal sizes"
            ),
            Self::Memory(needed) => write!(
                f,
                "the fit needs {} nodes, {} cells and {} segments of memory",
                needed.nodes, needed.cells, needed.segments
            ),
        }
    }
}

impl core::error::Error for FitError {}

/// Optimal piecewise-linear fit on lent memory.
#[derive(Debug)]
pub struct Segmentation<'m> {
    nodes: &'m mut [Node],
    cells: &'m mut [Cell],
    segments: &'m mut [Segment],
}

/// The outcome of a fit.
#[derive(Clone, Copy, Debug)]
pub struct Fit<'f> {
    segments: &'f [Segment],
    nodes: &'f [Node],
}

impl<'f> Fit<'f> {
    /// The protocols by ascending size; at least one.
    #[must_use]
    pub const fn segments(&self) -> &'f [Segment] {
        self.segments
    }

    /// The protocol changes by ascending size: one less than segments.
    pub fn changes(&self) -> impl ExactSizeIterator<Item = Change> + 'f {
        self.segments.iter().skip(1).map(|segment| segment.begins)
    }

    /// Whether the point at `index` was left out of its segment's line as an
    /// outlier. Worth measuring again.
    #[must_use]
    pub fn is_outlier(&self, index: usize) -> bool {
        self.nodes.get(index).is_some_and(|node| node.dropped)
    }
}

impl<'m> Segmentation<'m> {
    /// What to lend for sweeps of up to `points` sizes and `max_changes`
    /// changes.
    #[must_use]
    pub const fn requirements(points: usize, max_changes: usize) -> Requirements {
        let changes = if max_changes < MAX_SEGMENTS { max_changes } else { MAX_SEGMENTS - 1 };
        Requirements {
            nodes: points,
            cells: points.saturating_mul(changes + 1),
            segments: changes + 1,
        }
    }

    /// A segmentation on lent memory; its contents do not matter.
    #[must_use]
    pub const fn new(
        nodes: &'m mut [Node],
        cells: &'m mut [Cell],
        segments: &'m mut [Segment],
    ) -> Self {
        Self { nodes, cells, segments }
    }

    /// Fits `points`, which ascend strictly by size.
    ///
    /// # Errors
    ///
    /// [`FitError`] for too few or unordered points or too little memory; the
    /// segmentation stays usable.
    pub fn run(&mut self, points: &[Point], config: &Config) -> Result<Fit<'_>, FitError> {
        let Self { nodes, cells, segments } = self;
        check(points)?;
        let needed = Self::requirements(points.len(), config.max_changes);
        let nodes = nodes.get_mut(..points.len()).ok_or(FitError::Memory(needed))?;
        if cells.len() < needed.cells || segments.len() < needed.segments {
            return Err(FitError::Memory(needed));
        }
        let noise = Noise::weigh(points, nodes, config);
        let selection = (config.detector.select)(nodes, cells, noise, config);
        let segments = report(points, nodes, &selection, config, segments);
        Ok(Fit { segments, nodes })
    }
}

fn check(points: &[Point]) -> Result<(), FitError> {
    if points.len() < MIN_POINTS {
        return Err(FitError::TooFewPoints(points.len()));
    }
    let unordered = points.windows(2).position(|pair| match pair {
        [a, b] => a.size() >= b.size(),
        _ => false,
    });
    match unordered.and_then(|before| Some((before + 1, points.get(before + 1)?.size()))) {
        Some((index, size)) => Err(FitError::Order { index, size }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn an_exact_change_is_found_exactly() {
        let sizes: Vec<u64> = (0..16).flat_map(|e| [(1 << e) - 1, 1 << e, (1 << e) + 1]).collect();
        let mut sizes: Vec<u64> = sizes.into_iter().filter(|&s| s > 0).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let points: Vec<Point> = sizes
            .iter()
            .map(|&s| {
                let value = if s < 4096 { 300_000 + 80 * (s - 1) } else { 900_000 + 40 * (s - 1) };
                Point::new(s, value as f64, 0.0).unwrap()
            })
            .collect();
        let needed = Segmentation::requirements(points.len(), 7);
        let (mut nodes, mut cells, mut segments) = (
            vec![Node::default(); needed.nodes],
            vec![Cell::default(); needed.cells],
            vec![Segment::default(); needed.segments],
        );
        let mut segmentation = Segmentation::new(&mut nodes, &mut cells, &mut segments);
        let fit = segmentation.run(&points, &Config::default()).unwrap();
        let changes: Vec<Change> = fit.changes().collect();
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!((changes[0].at, changes[0].low), (4096, 4096));
        assert!((fit.segments()[0].gap.value - 300_000.0).abs() < 1e-3);
        assert!((fit.segments()[1].gap_per_byte.value - 40.0).abs() < 1e-6);
    }
}
