//! How many changes a sweep has.

use super::node::{Node, Trimmed};
use super::noise::Noise;
use super::partition::{Cell, Partition};
use super::segmentation::{Config, MAX_SEGMENTS};

/// Price of an outlier in units of the noise variance.
pub(super) const OUTLIER_PRICE: f64 = 9.0;

/// Where the segments of a sweep begin, and the noise about their lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection {
    starts: [usize; MAX_SEGMENTS],
    count: usize,
    /// Variance of a point of weight 1.
    pub(super) scale: f64,
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
        let rows = config.max_changes + 1;
        let mut scale = noise.scale;
        let mut count = 1;
        let points = nodes.len();
        for _ in 0..3 {
            let table = Partition::fill(cells, nodes, rows, OUTLIER_PRICE * scale);
            count = 1;
            for more in 2..=table.rows() {
                let Some(free) = points.checked_sub(2 * more).filter(|&f| f > 0) else { break };
                let variance = (table.total(more - 1) / free as f64).max(noise.floor);
                let gain = table.total(count - 1) - table.total(more - 1);
                if gain > variance * 20.0 * (more - count) as f64 {
                    count = more;
                }
            }
            let free = points.saturating_sub(2 * count).max(1);
            scale = (table.total(count - 1) / free as f64).max(noise.floor);
        }
        let table = Partition::fill(cells, nodes, rows, OUTLIER_PRICE * scale);
        let mut starts = [0; MAX_SEGMENTS];
        if let Some(starts) = starts.get_mut(..count) {
            table.trace(starts);
        }
        let found = Self { starts, count, scale };
        found.mark(nodes);
        found
    }

    fn mark(&self, nodes: &mut [Node]) {
        for (order, &first) in self.starts().iter().enumerate() {
            let end = self.starts().get(order + 1).copied().unwrap_or(nodes.len());
            if let Some(run) = nodes.get_mut(first..end) {
                Trimmed::through(run, OUTLIER_PRICE * self.scale);
            }
        }
    }
}
