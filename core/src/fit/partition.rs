//! The optimal partition of a sweep into 1, 2, 3 … segments.

use super::node::{Node, Trimmed};

/// One entry of the table of optimal partitions. Lent by the caller, contents
/// are the segmentation's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    /// Least cost of the points up to this one in this many segments.
    cost: f64,
    /// Where the last of these segments begins.
    from: u32,
}

/// The table: row k, column j is the best way to put points 0..=j into k + 1
/// segments (segment neighbourhood search, Auger and Lawrence, Bulletin of
/// Mathematical Biology 51, 1989).
///
/// Every segment is a [`Trimmed`] line. Time O(n²) line updates, plus O(n²)
/// looks for outliers; memory n cells a row.
#[derive(Debug)]
pub(super) struct Partition<'a> {
    cells: &'a mut [Cell],
    points: usize,
    rows: usize,
}

impl<'a> Partition<'a> {
    /// Fills the table for `nodes` with at most `rows` segments; fewer where
    /// `cells` does not hold as many. Marks in `nodes` are left undefined.
    pub(super) fn fill(cells: &'a mut [Cell], nodes: &mut [Node], rows: usize, price: f64) -> Self {
        let points = nodes.len();
        let rows = rows.min(cells.len().checked_div(points).unwrap_or(0));
        let mut table = Self { cells, points, rows };
        for last in 0..points {
            table.fill_column(nodes, last, price);
        }
        table
    }

    fn fill_column(&mut self, nodes: &mut [Node], last: usize, price: f64) {
        for row in 0..self.rows {
            self.set(row, last, Cell { cost: f64::INFINITY, from: 0 });
        }
        let mut segment = Trimmed::new(price);
        for first in (0..=last).rev() {
            let Some(run) = nodes.get_mut(first..=last) else { return };
            segment.extend(run);
            let cost = segment.cost();
            let Ok(from) = u32::try_from(first) else { continue };
            let Some(before) = first.checked_sub(1) else {
                self.set(0, last, Cell { cost, from });
                continue;
            };
            for row in 1..self.rows {
                let total = self.cost(row - 1, before) + cost;
                if total < self.cost(row, last) {
                    self.set(row, last, Cell { cost: total, from });
                }
            }
        }
    }

    /// Rows, that is, the most segments that were tried.
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    /// Least cost of all points in `row` + 1 segments; infinite where there
    /// are too few points for that many.
    pub(super) fn total(&self, row: usize) -> f64 {
        match self.points.checked_sub(1) {
            Some(last) => self.cost(row, last),
            None => f64::INFINITY,
        }
    }

    /// Writes where the segments of the best partition into
    /// `starts.len()` segments begin; the first begins at 0.
    pub(super) fn trace(&self, starts: &mut [usize]) {
        let mut end = self.points;
        for (row, start) in starts.iter_mut().enumerate().rev() {
            let from = end.checked_sub(1).map_or(0, |last| self.get(row, last).from);
            end = from as usize;
            *start = end;
        }
    }

    fn cost(&self, row: usize, last: usize) -> f64 {
        self.get(row, last).cost
    }

    fn get(&self, row: usize, last: usize) -> Cell {
        let outside = Cell { cost: f64::INFINITY, from: 0 };
        self.cells.get(row * self.points + last).copied().unwrap_or(outside)
    }

    fn set(&mut self, row: usize, last: usize, cell: Cell) {
        if let Some(place) = self.cells.get_mut(row * self.points + last) {
            *place = cell;
        }
    }
}
