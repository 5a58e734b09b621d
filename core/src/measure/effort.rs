//! Where one more sample narrows the parameters most.
//!
//! A parameter of a range is a weighted sum of its points, `θ = Σ pᵢyᵢ`, so
//! its variance is `Σ pᵢ²σᵢ²`. One more sample at a point that has mᵢ lowers
//! that by about `pᵢ²σᵢ²/mᵢ`: divided by what the round costs, this says
//! which cells are worth measuring for a parameter that is not yet known well
//! enough.

use super::ranges::{self, Fitted, Span, Width};
use super::{Curve, Planner, Quantity, SampleStore};
use crate::fit::{MisfitLine, Point};
use crate::model::Change;
use crate::number::{hypotenuse, larger};

/// Cells that narrow a parameter at least this fraction as well as the best
/// one are measured too: a sweep over many cells is worth more than the same
/// cell again, should the machine drift.
const WORTHWHILE: f64 = 0.2;

/// Share of the wanted interval that noise may take: the rest is for what the
/// points scatter beyond it.
const NOISE_SHARE: f64 = 0.8;

/// By how much a point's value moves a parameter of its line.
type Pull = fn(&MisfitLine, &Point) -> f64;

impl<const N: usize> Planner<'_, N> {
    /// Marks the cells that narrow what is too wide.
    pub(super) fn want_by_effort(&mut self, changes: &[Change], ends: Span) {
        for header in self.store.rows_mut() {
            header.plan.want_nothing();
        }
        let mut widest = 0.0;
        for span in ranges::spans(changes, ends) {
            let much = self.latency_part(span, &mut widest);
            for &curve in &Curve::ALL {
                self.want_for_line(curve, span, much, &mut widest);
            }
        }
        self.widest = Some(widest);
    }

    /// `L = PRTT(1,0,1)/2 − o_s − o_r`: where it is too uncertain, its parts
    /// that contribute most have to be known better than they would need to
    /// be themselves. What is much for a part; infinite where `L` suffices.
    fn latency_part(&mut self, span: Span, widest: &mut f64) -> f64 {
        let (mut latency, mut noise) = (0.0, 0.0);
        for &curve in &[Curve::HalfRtt, Curve::SendOverhead, Curve::RecvOverhead] {
            let points = self.store.points(curve, span, self.memory.points);
            let fitted = Fitted::new(points, span, &self.options.assess);
            let Some(fitted) = fitted else { return f64::INFINITY };
            let at_one = fitted.line.at_one();
            latency += if curve == Curve::HalfRtt { at_one } else { -at_one };
            noise = hypotenuse(noise, fitted.at_one.noise);
        }
        let wanted = latency * f64::from(self.options.assess.relative_error_ppm) * 1e-6;
        if latency > 0.0 && is_wide(widest, noise, wanted) { 0.5 * noise } else { f64::INFINITY }
    }

    /// Marks the cells that narrow the line of `curve`, for its own sake or
    /// because its value at size 1 takes `much` of the latency's interval.
    fn want_for_line(&mut self, curve: Curve, span: Span, much: f64, widest: &mut f64) {
        let points = self.store.points(curve, span, self.memory.points);
        let fitted = Fitted::new(points, span, &self.options.assess);
        let Some(Fitted { points, line, at_one, slope, .. }) = fitted else { return };
        let pulls: [(Width, f64, Pull); 2] = [
            (
                at_one,
                if curve == Curve::Gap { f64::INFINITY } else { much },
                MisfitLine::pull_at_one,
            ),
            (slope, f64::INFINITY, MisfitLine::pull_slope),
        ];
        for (Width { noise, wanted, .. }, much, pull) in &pulls {
            if is_wide(widest, *noise, *wanted) || noise > much {
                want_cells(&mut self.store, curve, points, |point| pull(&line, point));
            }
        }
    }
}

/// Whether noise takes too much of what is wanted; `widest` is the largest
/// ratio of both.
fn is_wide(widest: &mut f64, noise: f64, wanted: f64) -> bool {
    // Not a number, and not wide, where nothing can be known, or all is.
    let ratio = noise / wanted;
    *widest = larger(*widest, ratio);
    ratio > NOISE_SHARE
}

/// Marks the cells of `curve` that narrow what its `points` pull at.
fn want_cells(
    store: &mut SampleStore<'_>,
    curve: Curve,
    points: &[Point],
    pull: impl Fn(&Point) -> f64,
) {
    let (quantity, minus_round_trip) = curve.parts();
    // By how much one more sample would lower the variance; 0 where none can be taken.
    let gain = |store: &SampleStore<'_>, point: &Point| {
        let row = store.row_of(point);
        let moved = pull(point) * point.sigma().unwrap_or(0.0);
        let count = store.count(row, quantity).max(1) as f64;
        if store.takes_more(row, quantity, 0) { moved * moved / count } else { 0.0 }
    };
    let mut most = 0.0;
    for point in points {
        most = larger(most, gain(store, point));
    }
    for point in points {
        let gain = gain(store, point);
        if gain > 0.0
            && gain >= WORTHWHILE * most
            && let Some(header) = store.header_mut(store.row_of(point))
        {
            header.plan.want(quantity);
            if minus_round_trip {
                header.plan.want(Quantity::RoundTrip);
            }
        }
    }
}
