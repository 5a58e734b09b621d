//! Curves of a plot: measured points and fitted lines, each with intervals.

use loggap_core::model::{Curve, Range, SizeLine};
use loggap_core::units::{Bytes, Picos, SignedPicos};
use plotters::style::RGBColor;

use super::PlotError;
use super::axis::Axis;
use super::canvas::{BLUE, Canvas, GREEN, GREY, MIDDLE, Pixel, VERMILION};
use crate::profile::{RoundRecord, SizeRecord};

/// Colour of `curve`.
pub(super) const fn color(curve: Curve) -> RGBColor {
    match curve {
        Curve::HalfRtt => GREY,
        Curve::Gap => BLUE,
        Curve::SendOverhead => VERMILION,
        Curve::RecvOverhead => GREEN,
    }
}

/// Accessor of a percentile; `None` if unknown.
type Percentile = fn(&RoundRecord) -> Option<f64>;

/// Axes and canvas of the curves; times are seconds.
pub(super) struct Drawing<'a, 'c> {
    pub(super) canvas: &'a Canvas<'c>,
    pub(super) across: Axis,
    pub(super) up: Axis,
}

impl Drawing<'_, '_> {
    /// Draws the fitted line within its range, with the interval of its values.
    pub(super) fn line(&self, curve: Curve, range: &Range) -> Result<(), PlotError> {
        const PIECES: u32 = 48;
        let Some(line) = range.line(curve) else { return Ok(()) };
        let (first, last) = (in_pixels(range.first), in_pixels(range.last));
        let sizes: Vec<f64> = Axis::steps(first, last, PIECES).collect();
        let upper = sizes.iter().map(|&size| self.on_line(line, size, 1.0));
        let lower = sizes.iter().rev().map(|&size| self.on_line(line, size, -1.0));
        if line.half_width(range.last) < UNBOUNDED && line.half_width(range.first) < UNBOUNDED {
            self.canvas.shade(upper.chain(lower).collect(), color(curve))?;
        }
        // A logarithmic axis has no place for values of zero or less.
        let visible =
            sizes.iter().filter(|&&size| self.up.contains(line.at(whole(size)).seconds()));
        let path = visible.map(|&size| self.on_line(line, size, 0.0)).collect();
        self.canvas.line(path, color(curve), 2)
    }

    /// Draws points with their intervals; rings if not converged.
    pub(super) fn points(&self, curve: Curve, sizes: &[SizeRecord]) -> Result<(), PlotError> {
        for record in sizes {
            let Some(point) = record.row.value(curve) else { continue };
            let x = self.across.place(in_pixels(record.row.size));
            let height = |time: SignedPicos| self.up.place(time.seconds());
            if !self.up.contains(point.value.seconds()) {
                continue;
            }
            if point.low.0 > i64::MIN && point.high.0 < i64::MAX {
                let whisker = vec![(x, height(point.low)), (x, height(point.high))];
                self.canvas.line(whisker, color(curve), 1)?;
            }
            let centre = (x, height(point.value));
            if point.mark.converged() {
                self.canvas.dot(centre, color(curve))?;
            } else {
                self.canvas.ring(centre, color(curve))?;
            }
        }
        Ok(())
    }

    /// Draws the distribution of single round trips: a band from p50 to p99 (to p90 if p99 is
    /// unknown), lines at p99.9 and at the maximum, and a histogram at each size.
    pub(super) fn rounds(&self, sizes: &[SizeRecord]) -> Result<(), PlotError> {
        let measured: Vec<(Bytes, &RoundRecord)> = sizes
            .iter()
            .filter_map(|record| Some((record.row.size, record.rounds.as_ref()?)))
            .collect();
        let path = |percentile: Percentile| -> Vec<Pixel> {
            let places = measured.iter().filter_map(|(size, rounds)| {
                let seconds = percentile(rounds)?;
                Some((self.across.place(in_pixels(*size)), self.up.place(seconds)))
            });
            places.collect()
        };
        let percentiles: [Percentile; 4] = [
            |rounds| rounds.percentiles[0],
            |rounds| rounds.percentiles[2].or(rounds.percentiles[1]),
            |rounds| rounds.percentiles[3],
            |rounds| rounds.percentiles[4],
        ];
        let [p50, far, p999, largest] = percentiles.map(path);
        let band = p50.into_iter().chain(far.into_iter().rev()).collect();
        self.canvas.shade(band, color(Curve::HalfRtt))?;
        self.canvas.line(p999, MIDDLE, 1)?;
        for (x, y) in largest {
            self.canvas.line(vec![(x - 3, y), (x + 3, y)], MIDDLE, 1)?;
        }
        for (size, rounds) in &measured {
            self.histogram(self.across.place(in_pixels(*size)), rounds)?;
        }
        Ok(())
    }

    /// Draws a bar per bin, with a length proportional to the square root of its count, so that
    /// small counts are visible.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "a pixel is coarser, and bars are short"
    )]
    fn histogram(&self, x: i32, rounds: &RoundRecord) -> Result<(), PlotError> {
        const LONGEST: f64 = 10.0;
        let bins = &rounds.histogram;
        let most = bins.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
        for (upper, count) in bins.iter().filter(|(upper, _)| self.up.contains(*upper)) {
            let y = self.up.place(*upper);
            let length = (LONGEST * (*count as f64 / most as f64).sqrt()).ceil() as i32;
            self.canvas.line(vec![(x - length, y), (x + length, y)], GREY, 1)?;
        }
        Ok(())
    }

    /// Point on the line at `size`, raised by `half_widths` half widths of its interval.
    fn on_line(&self, line: &SizeLine, size: f64, half_widths: f64) -> Pixel {
        let half_width = line.half_width(whole(size)).seconds();
        let height = line.at(whole(size)).seconds() + half_widths * half_width;
        (self.across.place(size), self.up.place(height))
    }
}

/// Half width that counts as unbounded: 10⁵ s, as a run takes less than an hour.
const UNBOUNDED: Picos = Picos(100_000_000_000_000_000);

#[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
fn in_pixels(size: Bytes) -> f64 {
    size.0.max(1) as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes, positive")]
fn whole(size: f64) -> Bytes {
    Bytes(size.round() as u64)
}
