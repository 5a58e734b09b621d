//! How many changes a sweep has.
//!
//! Evidence for a change is the log likelihood ratio of Gaussian noise: the
//! fall of the cost when the noise is known, ν·ln of its ratio when the noise
//! comes from the residuals themselves. Thresholds are
//!
//! ```text
//! step of g alone:      2 ln n + STEP
//! new g and G:          2 ln n + FREE
//! each change further:  2 ln n + MORE
//! ```
//!
//! 2 ln n is what the largest of n such ratios grows by, so that the chance
//! of any false change in a sweep does not depend on its length; the
//! constants were set by simulation so that this chance is below 1 percent
//! (see `docs/fit.md` and the tests in `rates`).

use super::node::{Node, Trimmed};
use super::noise::Noise;
use super::partition::{Cell, Partition};
use super::segmentation::{Config, MAX_SEGMENTS};
use super::split::Split;
use super::{ChangeDetector, Detected, LookAhead, Point};
use crate::number::{larger, log, nearest, sqrt};

/// Price of an outlier in units of the noise variance.
pub(super) const OUTLIER_PRICE: f64 = 9.0;

const STEP: f64 = 6.0;
const FREE: f64 = 13.0;
const MORE: f64 = 1.0;

/// Degrees of freedom that the trimming and the search for the best split
/// cost the estimate of the noise.
const SEARCHED: usize = 2;

/// Where the segments of a sweep begin, and the noise about their lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection {
    starts: [usize; MAX_SEGMENTS],
    count: usize,
    /// Variance of a point of weight 1.
    pub(super) scale: f64,
}

/// How to judge a fall of the cost.
#[derive(Clone, Copy, Debug)]
struct Judge {
    noise: Noise,
    points: usize,
}

impl Judge {
    /// Twice the log likelihood ratio of two fits, `after` leaving `free`
    /// degrees of freedom.
    fn evidence(&self, before: f64, after: f64, free: usize) -> f64 {
        let spare = free as f64;
        if self.noise.known && after <= spare + sqrt(2.0 * spare) {
            return before - after;
        }
        let least = spare * self.noise.floor;
        let ratio = larger(before, least) / larger(after, least);
        free.saturating_sub(SEARCHED) as f64 * log(ratio)
    }

    /// Degrees of freedom left by `segments` free segments and `steps` more
    /// that only have a g of their own.
    const fn free(&self, segments: usize) -> usize {
        self.points.saturating_sub(2 * segments)
    }

    fn growth(&self) -> f64 {
        2.0 * log(self.points as f64)
    }
}

impl Selection {
    /// Where the segments begin; the first begins at 0.
    pub(super) fn starts(&self) -> &[usize] {
        self.starts.get(..self.count).unwrap_or(&[])
    }

    pub(super) fn find(
        nodes: &mut [Node],
        cells: &mut [Cell],
        noise: Noise,
        config: &Config,
    ) -> Self {
        let judge = Judge { noise, points: nodes.len() };
        let rows = (config.max_changes + 1).min(MAX_SEGMENTS);
        let mut found = Self { starts: [0; MAX_SEGMENTS], count: 1, scale: noise.scale };
        for _ in 0..3 {
            let price = OUTLIER_PRICE * found.scale;
            let table = Partition::fill(cells, nodes, rows, price);
            found.count = judge.count(&table);
            if let Some(starts) = found.starts.get_mut(..found.count) {
                table.trace(starts);
            }
            let mut cost = table.total(found.count - 1);
            while found.count < rows && found.add_step(nodes, &judge, &mut cost) {}
            let scale = found.scatter(nodes, &judge);
            let settled = (scale / found.scale - 1.0).abs() < 0.1;
            found.scale = scale;
            if settled {
                break;
            }
        }
        found.merge(nodes, config.tolerance);
        found.scale = found.scatter(nodes, &judge);
        found.mark(nodes);
        found
    }

    /// Takes out the changes that hardly matter, the least first: where one
    /// line for both sides lies nowhere further than `tolerance` of the value
    /// from their own.
    fn merge(&mut self, nodes: &mut [Node], tolerance: f64) {
        while let Some((order, distance)) = self.least_change(nodes) {
            if distance >= tolerance {
                return;
            }
            let Some(rest) = self.starts.get_mut(order..self.count) else { return };
            let mut next = 0;
            for start in rest.iter_mut().rev() {
                core::mem::swap(start, &mut next);
            }
            self.count -= 1;
        }
    }

    /// The change whose removal moves the lines least, and how far, relative
    /// to the values.
    fn least_change(&self, nodes: &mut [Node]) -> Option<(usize, f64)> {
        let price = OUTLIER_PRICE * self.scale;
        let mut least: Option<(usize, f64)> = None;
        for order in 1..self.count {
            let (first, _) = self.run(nodes, order - 1)?;
            let (middle, run) = self.run(nodes, order)?;
            let end = middle + run.len();
            let both = nodes.get_mut(first..end)?;
            let one = Trimmed::through(both, price).line;
            let (left, right) = both.split_at_mut_checked(middle - first)?;
            let mut distance = 0.0_f64;
            for side in [left, right] {
                let own = Trimmed::through(side, price).line;
                for node in side.first().into_iter().chain(side.last()) {
                    let value = own.at(node.x);
                    let moved = (one.at(node.x) - value).abs() / larger(value.abs(), 1.0);
                    distance = larger(distance, moved);
                }
            }
            if least.is_none_or(|(_, known)| distance < known) {
                least = Some((order, distance));
            }
        }
        least
    }

    /// The changes that looking ahead finds; trimmed lines between them.
    pub(super) fn look_ahead(
        nodes: &mut [Node],
        _: &mut [Cell],
        noise: Noise,
        config: &Config,
    ) -> Self {
        let settings = config.detector.settings().unwrap_or_default();
        let most = (config.max_changes + 1).min(MAX_SEGMENTS);
        let mut detector = ChangeDetector::new(LookAhead {
            resolution: larger(settings.resolution, config.resolution),
            ..settings
        });
        let mut found = Self { starts: [0; MAX_SEGMENTS], count: 1, scale: noise.scale };
        for node in nodes.iter() {
            let size = nearest(node.x).unsigned_abs() + 1;
            let sigma = if noise.known { sqrt(1.0 / node.weight) } else { 0.0 };
            let Ok(point) = Point::new(size, node.value, sigma) else { continue };
            found.begin(detector.push(point), most);
        }
        found.begin(detector.finish(), most);
        let judge = Judge { noise, points: nodes.len() };
        found.scale = found.scatter(nodes, &judge);
        found.mark(nodes);
        found
    }

    fn begin(&mut self, change: Option<Detected>, most: usize) {
        if let Some(change) = change.filter(|_| self.count < most) {
            self.insert(change.index);
        }
    }

    /// Adds the most convincing step of g within a segment, if any convinces.
    fn add_step(&mut self, nodes: &mut [Node], judge: &Judge, cost: &mut f64) -> bool {
        let price = OUTLIER_PRICE * self.scale;
        let free = judge.free(self.count).saturating_sub(1);
        let mut best: Option<(usize, f64, f64)> = None;
        for order in 0..self.count {
            let Some((first, run)) = self.run(nodes, order) else { continue };
            let whole = Trimmed::through(run, price).cost();
            let Some(split) = Split::best(run, price, |s| s.step) else { continue };
            let evidence = judge.evidence(*cost, *cost - whole + split.step, free);
            if evidence > judge.growth() + STEP && best.is_none_or(|(_, e, _)| evidence > e) {
                best = Some((first + split.index, evidence, *cost - whole + split.free));
            }
        }
        let Some((start, _, after)) = best else { return false };
        *cost = after;
        self.insert(start)
    }

    fn insert(&mut self, start: usize) -> bool {
        let Some(starts) = self.starts.get_mut(..=self.count) else { return false };
        let mut largest = start;
        for place in starts.iter_mut().take(self.count).filter(|place| **place > start) {
            core::mem::swap(place, &mut largest);
        }
        if let Some(place) = starts.last_mut() {
            *place = largest;
        }
        self.count += 1;
        true
    }

    /// The nodes of one segment and where it begins.
    fn run<'n>(&self, nodes: &'n mut [Node], order: usize) -> Option<(usize, &'n mut [Node])> {
        let first = *self.starts().get(order)?;
        let end = self.starts().get(order + 1).copied().unwrap_or(nodes.len());
        Some((first, nodes.get_mut(first..end)?))
    }

    /// Marks the outliers of each segment.
    fn mark(&self, nodes: &mut [Node]) {
        self.scatter_of(nodes);
    }

    /// Mean square of the residuals of what is no outlier; what was paid for
    /// outliers does not count, or they would raise their own price.
    fn scatter(&self, nodes: &mut [Node], judge: &Judge) -> f64 {
        let (squares, kept) = self.scatter_of(nodes);
        let free = kept.saturating_sub(2 * self.count).max(1);
        larger(squares / free as f64, judge.noise.floor)
    }

    fn scatter_of(&self, nodes: &mut [Node]) -> (f64, usize) {
        let mut sums = (0.0, 0);
        for order in 0..self.count {
            let Some((_, run)) = self.run(nodes, order) else { continue };
            let trimmed = Trimmed::through(run, OUTLIER_PRICE * self.scale);
            sums.0 += trimmed.line.squares;
            sums.1 += trimmed.kept();
        }
        sums
    }
}

impl Judge {
    /// Segments that the table gives evidence for.
    fn count(&self, table: &Partition<'_>) -> usize {
        let mut count = 1;
        'grow: loop {
            for more in 1..=table.rows().saturating_sub(count) {
                let (before, after) = (table.total(count - 1), table.total(count + more - 1));
                let free = self.free(count + more);
                if !after.is_finite() || free == 0 {
                    break;
                }
                let further = (more - 1) as f64 * (self.growth() + MORE);
                if self.evidence(before, after, free) > self.growth() + FREE + further {
                    count += more;
                    continue 'grow;
                }
            }
            return count;
        }
    }
}
