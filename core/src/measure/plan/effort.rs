//! Choice of the cells whose next sample narrows the parameters most, relative to its cost.
//!
//! A parameter of a range is a weighted sum of its points, `θ = Σ pᵢyᵢ`, so its variance is `Σ
//! pᵢ²σᵢ²`. One more sample at a point with mᵢ samples lowers it by about `pᵢ²σᵢ²/mᵢ`. That,
//! divided by the share of the budget that the round takes, ranks the cells for a parameter whose
//! interval is still too wide.

use super::budget::Left;
use super::planner::{Planner, round};
use super::warmup::Warmup;
use crate::fit::{Line, Point};
use crate::measure::assess::ranges::{Fitted, LatencySum, Ranges, SizeSpan};
use crate::measure::{Quantity, SampleStore};
use crate::model::Curve;
use crate::number::larger;

/// Least benefit of a cell, relative to the best one at the same cost, for it to be measured too: a
/// sweep over many cells is more robust against drift of the machine than repeating one cell.
const WORTHWHILE: f64 = 0.2;

/// Share of the wanted interval available to noise; the rest is for scatter beyond it.
const NOISE_SHARE: f64 = 0.8;

/// Derivative of a line's parameter with respect to a point's value.
type Pull = fn(&Line, &Point) -> f64;

impl<const N: usize> Planner<'_, N> {
    /// Marks the cells that narrow intervals that are too wide, given the budget `left`.
    pub(in crate::measure) fn want_by_effort<const M: usize>(
        &mut self,
        ranges: &Ranges<M>,
        left: Left,
    ) {
        for header in self.store.rows_mut() {
            header.plan.want_nothing();
        }
        let mut widest = 0.0;
        let mut is_wide = |noise: f64, wanted: f64| {
            // The ratio is NaN, and thus not wide, if both are infinite (unknown) or zero.
            let ratio = noise / wanted;
            widest = larger(widest, ratio);
            ratio > NOISE_SHARE
        };
        for span in ranges.spans() {
            let mut latency = LatencySum::default();
            for &curve in &Curve::ALL {
                let points = self.store.points(curve, span, self.memory.points);
                let options = &self.options.assess;
                let fitted = Fitted::new(&self.store, curve, points, span, options);
                let Some(fitted) = fitted else { continue };
                latency.add(&fitted);
                let (at_one, slope) = (fitted.at_one, fitted.slope);
                if is_wide(at_one.noise, at_one.wanted) {
                    self.want(&[curve], span, Line::pull_at_one, left);
                }
                if is_wide(slope.noise, slope.wanted) {
                    self.want(&[curve], span, Line::pull_slope, left);
                }
            }
            // A latency hidden by overheads is not measured further.
            if let Some((value, width)) = latency.width(&self.store, &self.options.assess)
                && value > 0.0
                && is_wide(width.noise, width.wanted)
            {
                let parts = [Curve::HalfRtt, Curve::SendOverhead, Curve::RecvOverhead];
                self.want(&parts, span, Line::pull_at_one, left);
            }
        }
        self.widest = Some(widest);
    }

    /// Marks the cells of `curves` whose samples narrow the parameter with derivative `pull`.
    fn want(&mut self, curves: &[Curve], span: SizeSpan, pull: Pull, left: Left) {
        let mut most = 0.0;
        for marking in [false, true] {
            for &curve in curves {
                let points = self.store.points(curve, span, self.memory.points);
                let Some(line) = Line::fit(points) else { continue };
                for point in &*points {
                    let row = self.store.row_of(point);
                    let moved = pull(&line, point);
                    let gain = gain(&self.store, &self.warmup, row, curve, moved, left);
                    if !marking {
                        most = larger(most, gain);
                    } else if gain > 0.0 && gain >= WORTHWHILE * most {
                        let (quantity, minus_round_trip) = curve.parts();
                        let Some(header) = self.store.header_mut(row) else { continue };
                        header.plan.want(quantity);
                        if minus_round_trip {
                            header.plan.want(Quantity::RoundTrip);
                        }
                    }
                }
            }
        }
    }
}

/// Reduction of a parameter's variance by one more sample, per share of the budget `left`; 0 if the
/// cell takes no sample.
fn gain(
    store: &SampleStore<'_>,
    warmup: &Warmup,
    row: usize,
    curve: Curve,
    pull: f64,
    left: Left,
) -> f64 {
    let (quantity, _) = curve.parts();
    let round = round(store, warmup, row, quantity);
    let Some((experiment, length)) = round.filter(|_| store.takes_more(row, quantity, 0)) else {
        return 0.0;
    };
    let cost = left.share(length.0, u64::from(experiment.messages) + 1).max(1);
    let count = store.count(row, quantity).max(1);
    pull * pull * store.variance(row, curve) / (count as f64 * cost as f64)
}
