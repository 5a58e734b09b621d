//! The signature of a link, as Figures 4 to 7 of Culler et al. 1996: the cost of a message over the
//! number of requests, a curve per delay, with the regimes of the lowest one.

use super::super::{heading, methods, number};
use super::axis::{self, Axis, Labelled};
use super::canvas::{
    Align, BLUE, Canvas, Dashes, GREEN, GREY, ORANGE, PURPLE, SKY, Sheet, TITLE, VERMILION, black,
    grey,
};
use super::{PLOT_HEIGHT, PlotError, WIDTH, frame};
use crate::profile::{PointRecord, ProfileDocument, SignatureRecord};
use number::Unit;
use plotters::style::RGBColor;

/// Colours of the curves, in turn.
const COLORS: [RGBColor; 6] = [BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY];

/// Room for the names of the curves, pixels.
const NAMES: i32 = 110;

/// Draws the curves of the smallest size of `signature`.
pub(super) fn svg(
    document: &ProfileDocument,
    signature: &SignatureRecord,
) -> Result<String, PlotError> {
    let size = signature.sizes.first().ok_or(PlotError::Nothing)?.found.size;
    let points: Vec<&PointRecord> =
        signature.points.iter().filter(|point| point.size_bytes == size).collect();
    let most = points.iter().map(|point| point.cost_s).fold(0.0, f64::max);
    let last = points.iter().map(|point| point.in_flight).max().ok_or(PlotError::Nothing)?;
    if most <= 0.0 {
        return Err(PlotError::Nothing);
    }
    let unit = Unit::fitting(number::TIME, most, 1.0);
    let lines = methods::parameters(document);
    let foot = frame::foot_height(lines.len())?;
    let sheet = Sheet {
        size: (WIDTH, PLOT_HEIGHT.saturating_add(foot)),
        units: 1,
        bleed: 0,
        margins: (80, NAMES, 84, foot.saturating_add(56)),
    };
    sheet.draw(|canvas| {
        let plot = canvas.plot_area();
        let across = Axis::new(0.9, f64::from(last) * 1.1, plot.across);
        let up = Axis::linear(0.0, most / unit.size * 1.05, plot.up);
        let head = format!(
            "{}: LogP signature at {}",
            heading::title(document),
            number::size(size.into())
        );
        canvas.text(&head, (plot.across.low, 22), black(TITLE), Align::Left)?;
        let ends = heading::ends(document).join("; ");
        canvas.text(&ends, (plot.across.low, 48), grey(14), Align::Left)?;
        let (counts, costs) = (across.binary_ticks(), up.decimal_ticks());
        let cost = format!("cost of a message T(M, delay)/M [{}]", unit.name);
        axis::draw(
            canvas,
            &Labelled { axis: &across, ticks: counts, name: "requests M" },
            &Labelled { axis: &up, ticks: costs, name: &cost },
        )?;
        let curves = Curves { canvas, across, up, unit };
        let of_delay = points.chunk_by(|a, b| a.delay_s.total_cmp(&b.delay_s).is_eq());
        if let Some(lowest) = of_delay.clone().next() {
            curves.regimes(lowest)?;
        }
        for (curve, color) in of_delay.zip(COLORS.into_iter().cycle()) {
            curves.draw(curve, color)?;
        }
        frame::draw_foot(canvas, &lines)
    })
}

/// Axes and canvas; costs are in `unit`.
struct Curves<'a, 'c> {
    canvas: &'a Canvas<'c>,
    across: Axis,
    up: Axis,
    unit: Unit,
}

impl Curves<'_, '_> {
    fn height(&self, seconds: f64) -> i32 {
        self.up.place(seconds / self.unit.size)
    }

    /// Draws the points of one delay with their intervals, and the delay beside the last.
    fn draw(&self, curve: &[&PointRecord], color: RGBColor) -> Result<(), PlotError> {
        let place = |point: &PointRecord| {
            (self.across.place(f64::from(point.in_flight)), self.height(point.cost_s))
        };
        let path: Vec<_> = curve.iter().map(|point| place(point)).collect();
        self.canvas.line(path, color, 2)?;
        for point in curve {
            let (x, y) = place(point);
            let whisker = vec![(x, self.height(point.lo)), (x, self.height(point.hi))];
            self.canvas.line(whisker, color, 1)?;
            self.canvas.dot((x, y), color)?;
        }
        let Some(last) = curve.last() else { return Ok(()) };
        let (x, y) = place(last);
        let name = format!("delay {}", self.unit.with_name(last.delay_s));
        let name = if last.delay_s > 0.0 { name } else { "no delay".to_owned() };
        self.canvas.text(&name, (x + 10, y), super::canvas::Font { size: 14, color }, Align::Left)
    }

    /// Draws where the regimes of one curve meet, with their names.
    fn regimes(&self, curve: &[&PointRecord]) -> Result<(), PlotError> {
        let plot = self.canvas.plot_area();
        let (bottom, top) = (plot.up.low, plot.up.high);
        let mut begin = plot.across.low;
        let regimes: Vec<_> = curve.chunk_by(|a, b| a.regime == b.regime).collect();
        for (index, regime) in regimes.iter().enumerate() {
            let (Some(first), Some(last)) = (regime.first(), regime.last()) else { continue };
            let next = regimes.get(index + 1).and_then(|next| next.first());
            let between = |next: &&PointRecord| {
                (f64::from(last.in_flight) * f64::from(next.in_flight)).sqrt()
            };
            let end = next.map_or(plot.across.high, |next| self.across.place(between(next)));
            if next.is_some() {
                let dashes = Dashes { length: 6, gap: 6 };
                self.canvas.dashed(vec![(end, top), (end, bottom)], dashes, GREY, 1)?;
            }
            let name = first.regime.replace('_', " ");
            self.canvas.text(&name, (begin.midpoint(end), top + 6), grey(13), Align::Below)?;
            begin = end;
        }
        Ok(())
    }
}
