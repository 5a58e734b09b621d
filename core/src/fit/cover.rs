//! The fewest lines that describe every point within a tolerance.
//!
//! A line `g + G·(s − 1)` with `g ≥ 0` and `G ≥ 0` passes every point k within
//! eₖ when there is a slope G at which all intervals [yₖ − eₖ − G·xₖ,
//! yₖ + eₖ − G·xₖ] have a point in common. Intervals of the real line do when
//! each two of them do (Helly), and two do for the slopes between
//! (lₖ − hⱼ)/(xₖ − xⱼ) and (hₖ − lⱼ)/(xₖ − xⱼ), l and h being their ends at
//! slope 0: so a point more costs one comparison with each of the others. The
//! bound on g is an interval from 0 to infinity at x = 0.
//!
//! Dynamic programming over the sizes gives the fewest ranges; of equally few,
//! those with the smallest sum of squared residuals in units of eₖ. Along a slow
//! bend that sum hardly tells one boundary from the next, so that noise would
//! decide: there a boundary at a rounder size costs less, and repeats from run
//! to run.

use core::num::NonZeroUsize;

use super::growing::GrowingLine;
use super::line::Bounded;
use super::ranges::Config;
use super::{Change, Point};
use crate::number::{larger, smaller};
use crate::stats::distribution::normal_upper;

/// Cells of neighbouring sizes that ranges are made of, at most.
pub(super) const MAX_CELLS: usize = 256;
/// Curves that the lines of a range have to describe: the gap and half the
/// round trip.
const DESCRIBED: usize = 2;
/// The last size of a range is at least this many times its first.
const LEAST_SPAN: u64 = 2;

/// What a step of roundness may cost, in squared residuals of a point whose
/// residual is all that is tolerated.
const UNROUND: f64 = 1.0;

/// Memory of a fit: the best way to describe all sizes before one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Node {
    /// Sum of squared residuals in units of the tolerated ones.
    cost: f64,
    /// Ranges, each that does not describe all of its sizes counted twice.
    ranges: u32,
    /// Cell at which the last of these ranges begins.
    from: u32,
    /// Whether a range begins here.
    pub(super) begins: bool,
}

impl Node {
    const UNREACHED: Self = Self { cost: 0.0, ranges: u32::MAX, from: 0, begins: false };
}

/// The sizes at which ranges may begin, in cells, and what lies in them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis<'p> {
    curves: [&'p [Point]; DESCRIBED],
    sizes: &'p [Point],
    /// Sizes in a cell.
    width: NonZeroUsize,
    config: &'p Config,
    /// Standard errors in half an interval that holds for all points at once.
    quantile: f64,
}

impl<'p> Axis<'p> {
    /// `None` without points.
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

    /// First size of a cell; `None` behind the last.
    pub(super) fn size(&self, cell: usize) -> Option<u64> {
        self.sizes.get(cell * self.width.get()).map(Point::size)
    }

    /// Cell in which a range begins that is to begin at `size`.
    fn cell_of(&self, size: u64) -> usize {
        let index = self.sizes.partition_point(|point| point.size() < size);
        (index + self.width.get() / 2) / self.width
    }

    /// The point of a curve that stands for a cell.
    fn point(&self, curve: usize, cell: usize) -> Option<&'p Point> {
        let points = self.curves.get(curve)?;
        let (first, end) = (self.size(cell)?, self.size(cell + 1));
        // Mostly all curves have the same sizes.
        let guess = cell * self.width.get();
        let begin = match points.get(guess) {
            Some(point) if point.size() == first => guess,
            _ => points.partition_point(|point| point.size() < first),
        };
        let here = points.get(begin..)?.iter();
        here.take_while(|point| end.is_none_or(|end| point.size() < end))
            .find(|point| !point.is_outlier())
    }

    /// Whether cells from `first` up to `end` are enough for a range.
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

    /// How far the line of a range may lie from a point: another range needs
    /// evidence that the true value is not within the tolerance of it.
    fn tolerated(&self, point: &Point) -> f64 {
        let noise = self.quantile * point.sigma().unwrap_or(0.0);
        let allowed = self.config.tolerance * point.value().abs() + noise;
        larger(allowed, larger(self.config.resolution, 0.5))
    }

    /// What beginning a range at `cell` costs.
    fn unroundness(&self, cell: usize) -> f64 {
        UNROUND * f64::from(unroundness(self.size(cell).unwrap_or_default()))
    }
}

/// How far a size is from round: 0 for powers of four, 1 for other powers of
/// two, 2 between these.
const fn unroundness(size: u64) -> u32 {
    if size.is_power_of_two() { size.trailing_zeros() % 2 } else { 2 }
}

/// A range that grows by a cell at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Growing {
    lines: [GrowingLine; DESCRIBED],
    /// Slopes that pass all points of a curve within what is tolerated.
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
                // Sizes 0 and 1 count the same.
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

/// Marks the nodes of the cells at which ranges begin: at the changes that
/// split, and between these as seldom as possible.
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

/// Leaves ranges between the changes that split wide enough: of two that are
/// too close, the smaller splits no longer.
fn separate(axis: &Axis<'_>, changes: &mut [Change]) {
    loop {
        let (mut first, mut before, mut narrow) = (0, None, None);
        let splits = changes.iter().enumerate().filter(|(_, change)| change.splits);
        let ends = splits.map(|(index, change)| (axis.cell_of(change.at), Some(index)));
        for (end, index) in ends.chain([(axis.cells(), None)]) {
            // Where the sweep begins and ends is not the link's.
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

/// Fills in the best descriptions of the cells from `first` up to each cell
/// until `end`.
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
        // Cells of the shortest range that may begin here.
        let mut shortest = None;
        for cell in begin..end {
            range.add(axis, begin, cell);
            let (cells, whole) = (cell + 1 - begin, begin == first && cell + 1 == end);
            let wide = axis.is_wide(begin, cell + 1) || whole;
            if wide && shortest.is_none() {
                shortest = Some(cells);
            }
            let described = range.is_described();
            // A range that describes too little is as short as can be: two of
            // the shortest leave none over.
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

/// Joins ranges until there are at most `most`, each time those two that this
/// costs least.
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

/// Sum of squared residuals of the cells from `first` up to `end` as one range.
fn cost(axis: &Axis<'_>, first: usize, end: usize) -> f64 {
    let mut range = Growing::default();
    for cell in first..end {
        // Only the lines matter.
        range.add(axis, cell, cell);
    }
    range.cost()
}
