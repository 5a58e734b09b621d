//! Link loads over time, in steps that grow with the run.

use core::ops::Range;

use super::memory::{Flow, Hop};
use super::rates::real;

/// Recorder of the load of each link in each step of time. When time passes the last step, the
/// length of a step is doubled.
#[derive(Debug)]
pub struct Usage<'m> {
    /// Load by link, then by step, in ps of a host's link.
    carried: &'m mut [f64],
    steps: usize,
    step: u64,
}

impl<'m> Usage<'m> {
    /// Recorder in `carried`, with `steps` elements for each link; `None` with less than two steps
    /// or for no link.
    #[must_use]
    pub fn new(carried: &'m mut [f64], steps: usize) -> Option<Self> {
        if steps < 2 || carried.len() < steps {
            return None;
        }
        carried.fill(0.0);
        Some(Self { carried, steps, step: 1 })
    }

    /// Length of a step, ps.
    #[must_use]
    pub const fn step(&self) -> u64 {
        self.step
    }

    /// Load of a link in each step, in ps of a host's link.
    #[must_use]
    pub fn of_link(&self, link: u32) -> &[f64] {
        let first = (link as usize).saturating_mul(self.steps);
        self.carried.get(first..first.saturating_add(self.steps)).unwrap_or_default()
    }

    /// Adds the volume that a flow has sent since its rate last changed.
    pub(super) fn add_flow(&mut self, hops: &[Hop], route: Range<usize>, flow: &Flow, now: u64) {
        if flow.rate <= 0.0 || now <= flow.since {
            return;
        }
        while self.at(now - 1) >= self.steps as u64 {
            self.double();
        }
        for hop in hops.get(route).unwrap_or_default() {
            self.add(hop.link, flow.since..now, flow.rate);
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "steps were counted in a usize")]
    fn add(&mut self, link: u32, time: Range<u64>, rate: f64) {
        let first = (link as usize).saturating_mul(self.steps);
        let Range { start: from, end: to } = time;
        let (begin, end) = (self.at(from), self.at(to - 1));
        let Some(row) = self.carried.get_mut(first..first.saturating_add(self.steps)) else {
            return;
        };
        for at in begin..=end {
            let start = (at * self.step).max(from);
            let stop = at.saturating_add(1).saturating_mul(self.step).min(to);
            if let Some(slot) = row.get_mut(at as usize) {
                *slot += rate * real(stop - start);
            }
        }
    }

    /// Step of a time.
    fn at(&self, time: u64) -> u64 {
        debug_assert!(self.step > 0, "steps take time");
        time.checked_div(self.step).unwrap_or_default()
    }

    /// Doubles the length of a step.
    fn double(&mut self) {
        self.step = self.step.saturating_mul(2);
        let steps = self.steps.max(1);
        for row in self.carried.chunks_exact_mut(steps) {
            for at in 0..steps {
                let pair = row.get(2 * at..(2 * at + 2).min(steps)).unwrap_or_default();
                let both = pair.iter().fold(0.0, |sum, part| sum + part);
                if let Some(slot) = row.get_mut(at) {
                    *slot = both;
                }
            }
        }
    }
}
