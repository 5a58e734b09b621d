//! The curves: measured points with their intervals, fitted lines with
//! theirs.

use loggap_core::measure::SizeRow;
use loggap_core::model::{Estimate, Range, SizeLine};
use loggap_core::units::{Bytes, SignedPicos};
use plotters::style::RGBColor;

use super::axis::Axis;
use super::canvas::{Canvas, Pixel};
use super::{Figure, PlotError, Unit};

/// One of the measured times.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Curve {
    HalfRtt,
    Gap,
    SendOverhead,
    RecvOverhead,
}

impl Curve {
    pub(super) const ALL: [Self; 4] =
        [Self::HalfRtt, Self::Gap, Self::SendOverhead, Self::RecvOverhead];

    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::HalfRtt => "PRTT(1,0,s)/2",
            Self::Gap => "gap g + (s-1)G",
            Self::SendOverhead => "send overhead o_s",
            Self::RecvOverhead => "receive overhead o_r",
        }
    }

    /// Colours that the colour-blind tell apart (Okabe and Ito).
    pub(super) const fn color(self) -> RGBColor {
        match self {
            Self::HalfRtt => RGBColor(110, 110, 110),
            Self::Gap => RGBColor(0, 114, 178),
            Self::SendOverhead => RGBColor(213, 94, 0),
            Self::RecvOverhead => RGBColor(0, 158, 115),
        }
    }

    pub(super) const fn point(self, row: &SizeRow) -> Option<Estimate<SignedPicos>> {
        match self {
            Self::HalfRtt => row.half_rtt,
            Self::Gap => row.gap,
            Self::SendOverhead => row.send_overhead,
            Self::RecvOverhead => row.recv_overhead,
        }
    }

    pub(super) const fn line(self, range: &Range) -> Option<&SizeLine> {
        match self {
            Self::HalfRtt => range.half_rtt.as_ref(),
            Self::Gap => Some(&range.gap),
            Self::SendOverhead => range.send_overhead.as_ref(),
            Self::RecvOverhead => range.recv_overhead.as_ref(),
        }
    }

    pub(super) fn is_present(self, figure: &Figure<'_>) -> bool {
        figure.rows.iter().any(|row| self.point(row).is_some())
            || figure.profile.ranges.iter().any(|range| self.line(range).is_some())
    }
}

/// Where curves are drawn.
pub(super) struct Drawing<'a, 'c> {
    pub(super) canvas: &'a Canvas<'c>,
    pub(super) across: Axis,
    pub(super) up: Axis,
    pub(super) unit: Unit,
}

impl Drawing<'_, '_> {
    /// The fitted line within its range, and the interval of its values.
    pub(super) fn line(&self, curve: Curve, range: &Range) -> Result<(), PlotError> {
        const PIECES: u32 = 48;
        let Some(line) = curve.line(range) else { return Ok(()) };
        let (first, last) = (in_pixels(range.first), in_pixels(range.last));
        let sizes: Vec<f64> = Axis::steps(first, last, PIECES).collect();
        let upper = sizes.iter().map(|&size| self.on_line(line, size, 1.0));
        let lower = sizes.iter().rev().map(|&size| self.on_line(line, size, -1.0));
        self.canvas.shade(upper.chain(lower).collect(), curve.color())?;
        // What is not positive has no place on a logarithmic axis.
        let visible = sizes.iter().filter(|&&size| self.up.contains(self.value(line, size)));
        let path = visible.map(|&size| self.on_line(line, size, 0.0)).collect();
        self.canvas.line(path, curve.color(), 2)
    }

    /// Points with their intervals; rings where they did not converge.
    pub(super) fn points(&self, curve: Curve, rows: &[SizeRow]) -> Result<(), PlotError> {
        for row in rows {
            let Some(point) = curve.point(row) else { continue };
            let x = self.across.place(in_pixels(row.size));
            let height = |time: SignedPicos| self.up.place(self.in_unit(time));
            if !self.up.contains(self.in_unit(point.value)) {
                continue;
            }
            let whisker = vec![(x, height(point.low)), (x, height(point.high))];
            self.canvas.line(whisker, curve.color(), 1)?;
            let centre = (x, height(point.value));
            if point.mark.converged() {
                self.canvas.dot(centre, curve.color())?;
            } else {
                self.canvas.ring(centre, curve.color())?;
            }
        }
        Ok(())
    }

    /// The line at `size`, so many half widths of its interval above it.
    fn on_line(&self, line: &SizeLine, size: f64, half_widths: f64) -> Pixel {
        let half_width = picos(line.half_width(whole(size)).0) / self.unit.picos;
        let height = self.value(line, size) + half_widths * half_width;
        (self.across.place(size), self.up.place(height))
    }

    fn value(&self, line: &SizeLine, size: f64) -> f64 {
        self.in_unit(line.at(whole(size)))
    }

    #[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
    fn in_unit(&self, time: SignedPicos) -> f64 {
        time.0 as f64 / self.unit.picos
    }
}

#[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
fn picos(time: u64) -> f64 {
    time as f64
}

#[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
fn in_pixels(size: Bytes) -> f64 {
    size.0.max(1) as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes, positive")]
fn whole(size: f64) -> Bytes {
    Bytes(size.round() as u64)
}
