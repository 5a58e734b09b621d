//! Where one more sample narrows the parameters most.
//!
//! A parameter of a range is a weighted sum of its points, `θ = Σ pᵢyᵢ`, so
//! its variance is `Σ pᵢ²σᵢ²`. One more sample at a point that has mᵢ lowers
//! that by about `pᵢ²σᵢ²/mᵢ`: divided by what the round costs, this says
//! which cells are worth measuring for a parameter that is not yet known well
//! enough.

use super::ranges::{self, Ranges};
use super::{Curve, Planner, Quantity, RowPlan, SampleStore};
use crate::fit::{MisfitLine, Point};
use crate::number::{hypotenuse, larger};

/// Cells that narrow a parameter at least this fraction as well as the best
/// one are measured too: a sweep over many cells is worth more than the same
/// cell again, should the machine drift.
const WORTHWHILE: f64 = 0.2;

/// Share of the wanted interval that noise may take: the rest is for what the
/// points scatter beyond it.
const NOISE_SHARE: f64 = 0.8;

/// One parameter of a line that is still too uncertain.
#[derive(Clone, Copy)]
enum Wide {
    AtOne,
    Slope,
}

/// What a sample is to narrow.
struct Aim<'l> {
    line: &'l MisfitLine,
    wide: Wide,
    quantity: Quantity,
}

impl Aim<'_> {
    /// The row of `point`, and by how much one more sample there would lower
    /// the variance; `None` where no more samples can be taken.
    fn gain(
        &self,
        store: &SampleStore<'_>,
        plans: &[RowPlan],
        point: &Point,
    ) -> Option<(usize, f64)> {
        let pull = match self.wide {
            Wide::AtOne => self.line.pull_at_one(point),
            Wide::Slope => self.line.pull_slope(point),
        };
        let row = store.find(u32::try_from(point.size()).ok()?).ok()?;
        let count = store.count(row, self.quantity);
        let room = count < store.cell_capacity() && plans.get(row)?.takes_rounds(self.quantity);
        let moved = pull * point.sigma().unwrap_or(0.0);
        room.then_some((row, moved * moved / count.max(1) as f64))
    }
}

impl<const N: usize> Planner<'_, N> {
    /// Marks the cells that narrow what is too wide.
    pub(super) fn want_by_effort(&mut self, ranges: &Ranges<N>) {
        for plan in self.plans.iter_mut() {
            plan.want_nothing();
        }
        self.widest_ppm = Some(0);
        for &span in &ranges.spans {
            for curve in Curve::ALL {
                self.want_for_line(curve, span);
            }
            self.want_for_latency(span);
        }
    }

    fn want_for_line(&mut self, curve: Curve, span: (u64, u64)) {
        let Some((line, [at_one, slope])) = self.noise(curve, span) else { return };
        let wanted = ranges::targets(&line, span, &self.options.assess);
        for (noise, wanted, wide) in
            [(at_one, wanted[0], Wide::AtOne), (slope, wanted[1], Wide::Slope)]
        {
            self.note_width(noise, wanted);
            if noise > NOISE_SHARE * wanted {
                self.want_cells(curve, span, &line, wide);
            }
        }
    }

    /// `L = PRTT(1,0,1)/2 − o_s − o_r`: its parts that contribute most have to
    /// be known better than they would need to be themselves.
    fn want_for_latency(&mut self, span: (u64, u64)) {
        let curves = [Curve::HalfRtt, Curve::SendOverhead, Curve::RecvOverhead];
        let parts = curves.map(|curve| self.noise(curve, span));
        let [Some(half_rtt), Some(send), Some(recv)] = parts else { return };
        let latency = half_rtt.0.at_one() - send.0.at_one() - recv.0.at_one();
        if latency <= 0.0 {
            return;
        }
        let wanted = latency * f64::from(self.options.assess.relative_error_ppm) * 1e-6;
        let noises = [half_rtt.1[0], send.1[0], recv.1[0]];
        let noise = noises.iter().copied().fold(0.0, hypotenuse);
        self.note_width(noise, wanted);
        if noise <= NOISE_SHARE * wanted {
            return;
        }
        for ((curve, (line, _)), part) in curves.into_iter().zip([half_rtt, send, recv]).zip(noises)
        {
            if part > 0.5 * noise {
                self.want_cells(curve, span, &line, Wide::AtOne);
            }
        }
    }

    /// A curve's line in a range with the half intervals at size 1 and of the
    /// slope as far as more samples would reduce them: where the points
    /// scatter about the line for other reasons than noise, only the part
    /// that comes from noise.
    fn noise(&mut self, curve: Curve, span: (u64, u64)) -> Option<(MisfitLine, [f64; 2])> {
        let assess = &self.options.assess;
        let points = self.store.points(curve, span, assess.confidence, self.memory.points);
        let line = MisfitLine::fit(points)?;
        let quantile = line.quantile(assess.confidence);
        let errors = if line.misfits {
            [line.at_one_noise(points), line.slope_noise(points)]
        } else {
            [line.at_one_error(), line.slope_error()]
        };
        // A single size has no slope, however often it is measured.
        let slope = if line.has_slope() { errors[1] } else { 0.0 };
        Some((line, [quantile * errors[0], quantile * slope]))
    }

    /// Marks the cells of `curve` that narrow its line in `span`.
    fn want_cells(&mut self, curve: Curve, span: (u64, u64), line: &MisfitLine, wide: Wide) {
        let confidence = self.options.assess.confidence;
        let points = self.store.points(curve, span, confidence, self.memory.points);
        let (quantity, minus_round_trip) = curve.parts();
        let aim = Aim { line, wide, quantity };
        let gain = |plans: &[RowPlan], point| aim.gain(&self.store, plans, point);
        let gains = points.iter().filter_map(|point| gain(self.plans, point));
        let enough = WORTHWHILE * gains.map(|(_, gain)| gain).fold(0.0, larger);
        for point in points.iter() {
            let Some((row, gain)) = gain(self.plans, point) else { continue };
            if let Some(plan) = self.plans.get_mut(row).filter(|_| gain >= enough && gain > 0.0) {
                plan.want(quantity);
                if minus_round_trip {
                    plan.want(Quantity::RoundTrip);
                }
            }
        }
    }

    fn note_width(&mut self, noise: f64, wanted: f64) {
        let ratio = if wanted > 0.0 { 1e6 * noise / wanted } else { f64::INFINITY };
        let ratio = ranges::whole(ratio);
        self.widest_ppm = Some(self.widest_ppm.unwrap_or(0).max(ratio));
    }
}
