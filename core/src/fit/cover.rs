//! Fewest lines that describe every point within a tolerance.
//!
//! A line `g + G·(s − 1)` with `g ≥ 0` and `G ≥ 0` that passes every point k within eₖ exists if
//! there is a slope G at which all intervals [yₖ − eₖ − G·xₖ, yₖ + eₖ − G·xₖ] have a common point.
//! Intervals of the real line have one if every two of them do (Helly), and two do for the slopes
//! between (lₖ − hⱼ)/(xₖ − xⱼ) and (hₖ − lⱼ)/(xₖ − xⱼ), where l and h are their ends at slope 0. So
//! each further point costs one comparison with each of the others. The bound on g is an interval
//! from 0 to infinity at x = 0.
//!
//! Dynamic programming over the sizes gives the fewest ranges and, among equally few, those with
//! the smallest sum of squared residuals in units of eₖ. Along a slow bend that sum is nearly the
//! same for neighbouring boundaries, and noise would decide between them; a penalty for boundaries
//! at sizes that are not round makes the result repeat from run to run.

use core::num::NonZeroUsize;

use super::growing::GrowingLine;
use super::line::Bounded;
use super::ranges::Config;
use super::{Change, Point};
use crate::number::{larger, smaller};
use crate::stats::distribution::normal_upper;

/// Most cells (groups of neighbouring sizes) from which ranges are built.
pub(super) const MAX_CELLS: usize = 256;
/// Number of curves that the lines of a range have to describe: the gap and half the round trip.
const DESCRIBED: usize = 2;
/// Least ratio of a range's last size to its first.
const LEAST_SPAN: u64 = 2;

/// Penalty for each step of [`unroundness`], in squared residuals of a point at the edge of its
/// tolerance.
const UNROUND: f64 = 1.0;

/// Working memory of a fit, one element per cell and one for the end: the best description of all
/// sizes before the cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Node {
    /// Sum of squared residuals in units of the tolerated ones, plus penalties.
    cost: f64,
    /// Number of ranges; a range that does not describe all of its sizes counts twice.
    ranges: u32,
    /// Cell at which the last of these ranges begins.
    from: u32,
    /// True if a range begins here.
    pub(super) begins: bool,
}

impl Node {
    const UNREACHED: Self = Self { cost: 0.0, ranges: u32::MAX, from: 0, begins: false };
}

/// Sizes at which ranges may begin, grouped into cells, and the points of each cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis<'p> {
    curves: [&'p [Point]; DESCRIBED],
    sizes: &'p [Point],
    /// Number of sizes in a cell.
    width: NonZeroUsize,
    config: &'p Config,
    /// Half-width, in standard errors, of an interval that holds for all points simultaneously.
    quantile: f64,
}

impl<'p> Axis<'p> {
    /// Groups the sizes of the longest curve into cells; `None` if there are no points.
    pub(super) fn of(curves: &[&'p [Point]], config: &'p Config) -> Option<Self> {
        let described = [0, 1].map(|index| curves.get(index).copied().unwrap_or_default());
        let longest = |a: &'p [Point], b: &'p [Point]| if b.len() > a.len() { b } else { a };
        let mut sizes = described.into_iter().fold(Default::default(), longest);
        if sizes.is_empty() {
            sizes = curves.iter().copied().fold(sizes, longest);
        }
        let width = NonZeroUsize::new(sizes.len().div_ceil(MAX_CELLS))?;
        let quantile = normal_upper(config.confidence.tail() / larger(sizes.len() as f64, 1.0));
        Some(Self { curves: described, sizes, width, config, quantile })
    }

    pub(super) fn cells(&self) -> usize {
        (self.sizes.len() + self.width.get() - 1) / self.width
    }

    /// First size of a cell; `None` past the last.
    pub(super) fn size(&self, cell: usize) -> Option<u64> {
        self.sizes.get(cell * self.width.get()).map(Point::size)
    }

    /// Cell whose beginning is nearest to `size`.
    fn cell_of(&self, size: u64) -> usize {
        let index = self.sizes.partition_point(|point| point.size() < size);
        (index + self.width.get() / 2) / self.width
    }

    /// First point of a curve in a cell that is no outlier; it represents the cell.
    fn point(&self, curve: usize, cell: usize) -> Option<&'p Point> {
        let points = self.curves.get(curve)?;
        let (first, end) = (self.size(cell)?, self.size(cell + 1));
        // Usually all curves have the same sizes.
        let guess = cell * self.width.get();
        let begin = match points.get(guess) {
            Some(point) if point.size() == first => guess,
            _ => points.partition_point(|point| point.size() < first),
        };
        let here = points.get(begin..)?.iter();
        here.take_while(|point| end.is_none_or(|end| point.size() < end))
            .find(|point| !point.is_outlier())
    }

    /// True if the cells from `first` to `end` (exclusive) are wide enough for a range.
    fn is_wide(&self, first: usize, end: usize) -> bool {
        let least = self.size(first).unwrap_or_default().max(1).saturating_mul(LEAST_SPAN);
        let beyond = match self.size(end) {
            Some(size) => size,
            None => self.sizes.last().map_or(0, Point::size),
        };
        let width = self.width.get();
        let sizes = self.sizes.len().min(end * width).saturating_sub(first * width);
        sizes >= self.config.min_sizes && beyond >= least
    }

    /// Largest distance of a point from its range's line. Beyond it there is evidence that the true
    /// value differs from the line by more than the tolerance.
    fn tolerated(&self, point: &Point) -> f64 {
        let noise = self.quantile * point.sigma().unwrap_or(0.0);
        let allowed = self.config.tolerance * point.value().abs() + noise;
        larger(allowed, larger(self.config.resolution, 0.5))
    }

    /// Penalty for a range that begins at `cell`.
    fn unroundness(&self, cell: usize) -> f64 {
        UNROUND * f64::from(unroundness(self.size(cell).unwrap_or_default()))
    }
}

/// Penalty steps of a size: 0 for powers of four, 1 for other powers of two, 2 for all others.
const fn unroundness(size: u64) -> u32 {
    if size.is_power_of_two() { size.trailing_zeros() % 2 } else { 2 }
}

/// A range that is extended cell by cell.
#[derive(Clone, Copy, Debug, Default)]
struct Growing {
    lines: [GrowingLine; DESCRIBED],
    /// Slopes of lines that pass all points of a curve within their tolerances.
    slopes: [Slopes; DESCRIBED],
    /// s − 1 of each line's first size.
    firsts: [f64; DESCRIBED],
}

#[derive(Clone, Copy, Debug)]
struct Slopes {
    least: f64,
    largest: f64,
}

impl Default for Slopes {
    fn default() -> Self {
        Self { least: 0.0, largest: f64::INFINITY }
    }
}

impl Growing {
    /// Adds cell `cell` to the range that begins at cell `first`. O(cells).
    fn add(&mut self, axis: &Axis<'_>, first: usize, cell: usize) {
        let curves = self.lines.iter_mut().zip(&mut self.slopes).zip(&mut self.firsts).enumerate();
        for (curve, ((line, slopes), begins)) in curves {
            let Some(point) = axis.point(curve, cell) else { continue };
            let (x, y, e) = (point.after_first(), point.value(), axis.tolerated(point));
            if line.count() == 0 {
                *begins = x;
            }
            line.accumulate(x, y, 1.0 / (e * e));
            if y + e < 0.0 {
                slopes.largest = -1.0;
            }
            if !slopes.are_any() {
                continue;
            }
            for other in (first..cell).filter_map(|cell| axis.point(curve, cell)) {
                let (away, allowed) = (x - other.after_first(), e + axis.tolerated(other));
                // Sizes 0 and 1 are equivalent.
                let away = larger(away, f64::MIN_POSITIVE);
                slopes.least = larger(slopes.least, (y - other.value() - allowed) / away);
                slopes.largest = smaller(slopes.largest, (y - other.value() + allowed) / away);
            }
        }
    }

    fn is_described(&self) -> bool {
        self.slopes.iter().all(|slopes| slopes.are_any())
    }

    fn cost(&self) -> f64 {
        let lines = self.lines.iter().zip(self.firsts);
        lines.map(|(line, first)| Bounded::of(line, first).squares).sum()
    }
}

impl Slopes {
    fn are_any(self) -> bool {
        self.least <= self.largest
    }
}

/// Marks the nodes at which ranges begin: at the changes that split, and at as few cells as
/// possible between them.
pub(super) fn cover(axis: &Axis<'_>, changes: &mut [Change], nodes: &mut [Node]) {
    separate(axis, changes);
    let cells = axis.cells();
    let splits = |change: &&Change| change.splits;
    let mut first = 0;
    for end in changes.iter().filter(splits).map(|change| axis.cell_of(change.at)).chain([cells]) {
        if end <= first {
            continue;
        }
        describe(axis, first, end, nodes);
        let mut begin = end;
        while begin > first {
            let from = nodes.get(begin).map_or(0, |node| node.from as usize);
            begin = from.clamp(first, begin - 1);
            if let Some(node) = nodes.get_mut(begin) {
                node.begins = true;
            }
        }
        first = end;
    }
    if let Some(node) = nodes.get_mut(cells) {
        node.begins = false;
    }
}

/// Keeps the ranges between changes wide enough: of two changes that are too close, the smaller one
/// no longer splits.
fn separate(axis: &Axis<'_>, changes: &mut [Change]) {
    loop {
        let (mut first, mut before, mut narrow) = (0, None, None);
        let splits = changes.iter().enumerate().filter(|(_, change)| change.splits);
        let ends = splits.map(|(index, change)| (axis.cell_of(change.at), Some(index)));
        for (end, index) in ends.chain([(axis.cells(), None)]) {
            // The sweep's ends are no properties of the link, so a narrow range is allowed there.
            let inner = before.is_some() && index.is_some();
            if inner && !axis.is_wide(first, end) {
                let jump = |index: usize| {
                    changes.get(index).map_or(0, |change| change.jump_ppm.unsigned_abs())
                };
                let both = [before, index].into_iter().flatten();
                narrow = both.min_by_key(|&index| jump(index));
                break;
            }
            (first, before) = (end, index);
        }
        match narrow.and_then(|index: usize| changes.get_mut(index)) {
            Some(change) => change.splits = false,
            None => break,
        }
    }
}

/// Computes, for each cell from `first` to `end`, the best description of the cells from `first` up
/// to it.
fn describe(axis: &Axis<'_>, first: usize, end: usize, nodes: &mut [Node]) {
    let Some(section) = nodes.get_mut(first..=end) else { return };
    section.fill(Node::UNREACHED);
    if let Some(node) = section.first_mut() {
        *node = Node::default();
    }
    for begin in first..end {
        let Some(before) = section.get(begin - first).copied() else { break };
        if before.ranges == u32::MAX {
            continue;
        }
        let mut range = Growing::default();
        // Number of cells of the shortest range that may begin here.
        let mut shortest = None;
        for cell in begin..end {
            range.add(axis, begin, cell);
            let (cells, whole) = (cell + 1 - begin, begin == first && cell + 1 == end);
            let wide = axis.is_wide(begin, cell + 1) || whole;
            if wide && shortest.is_none() {
                shortest = Some(cells);
            }
            let described = range.is_described();
            // A range that exceeds the tolerance need not reach twice the shortest length: it could
            // be divided.
            if !described && shortest.is_some_and(|shortest| cells >= 2 * shortest) {
                break;
            }
            if let Some(node) = section.get_mut(cell + 1 - first)
                && wide
            {
                let ranges = before.ranges + 1 + u32::from(!described);
                let cost = before.cost + range.cost() + axis.unroundness(begin);
                if ranges < node.ranges || ranges == node.ranges && cost < node.cost {
                    let from = u32::try_from(begin).unwrap_or(u32::MAX);
                    *node = Node { cost, ranges, from, begins: false };
                }
            }
        }
    }
}

/// Joins neighbouring ranges until at most `most` remain, each time the two whose sum of squares
/// increases least.
pub(super) fn join(axis: &Axis<'_>, most: usize, nodes: &mut [Node]) {
    while nodes.iter().filter(|node| node.begins).count() > most {
        let (mut cheapest, mut least) = (None, f64::INFINITY);
        let (mut first, mut middle) = (0, None);
        let begins = |cell: &usize| nodes.get(*cell).is_some_and(|node| node.begins);
        for end in (1..axis.cells()).filter(begins).chain([axis.cells()]) {
            if let Some(middle) = middle {
                let joined = cost(axis, first, end);
                let apart = cost(axis, first, middle) + cost(axis, middle, end);
                if joined - apart < least {
                    (cheapest, least) = (Some(middle), joined - apart);
                }
                first = middle;
            }
            middle = Some(end);
        }
        match cheapest.and_then(|cell| nodes.get_mut(cell)) {
            Some(node) => node.begins = false,
            None => break,
        }
    }
}

/// Sum of squared residuals of the cells from `first` to `end` (exclusive) as one range.
fn cost(axis: &Axis<'_>, first: usize, end: usize) -> f64 {
    let mut range = Growing::default();
    for cell in first..end {
        // Adds the point to the line only; the slopes are not needed.
        range.add(axis, cell, cell);
    }
    range.cost()
}
