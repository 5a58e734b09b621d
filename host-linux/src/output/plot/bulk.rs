//! Bulk transfers over their length, as Figures 9 and 12 of Culler et al. 1996: times of stores and
//! gets, send overhead and gap.

use loggap_core::measure::Signature;
use loggap_core::model::Estimate;
use loggap_core::units::SignedPicos;
use plotters::style::RGBColor;

use super::super::number::{self, Unit};
use super::super::{heading, methods};
use super::axis::{self, Axis, Labelled};
use super::canvas::{Align, BLUE, GREEN, ORANGE, Sheet, TITLE, VERMILION, black, grey};
use super::{PLOT_HEIGHT, PlotError, WIDTH, frame};
use crate::profile::{ProfileDocument, SignatureSize};

/// A curve: its name, colour, and values.
struct Quantity {
    name: &'static str,
    color: RGBColor,
    of: fn(&Signature) -> Option<Estimate<SignedPicos>>,
}

const QUANTITIES: [Quantity; 4] = [
    Quantity { name: "store T(n)", color: BLUE, of: |one| Some(one.round_trip) },
    Quantity { name: "get", color: GREEN, of: |one| one.get },
    Quantity { name: "send overhead o(n)", color: VERMILION, of: |one| Some(one.send_overhead) },
    Quantity { name: "gap g(n)", color: ORANGE, of: |one| one.gap },
];

impl Quantity {
    /// Value at a size with its interval, seconds, if it has a place on a logarithmic axis.
    fn seconds(&self, SignatureSize { found }: &SignatureSize) -> Option<Estimate<f64>> {
        let seconds = (self.of)(found)?.map(SignedPicos::seconds);
        (seconds.value > 0.0).then_some(seconds)
    }
}

/// Draws the times of bulk transfers over the length on logarithmic axes.
pub(super) fn svg(document: &ProfileDocument, bulk: &[SignatureSize]) -> Result<String, PlotError> {
    let times =
        bulk.iter().flat_map(|one| QUANTITIES.iter().filter_map(|curve| curve.seconds(one)));
    let times: Vec<f64> = times.map(|time| time.value).collect();
    let low = times.iter().copied().reduce(f64::min).ok_or(PlotError::Nothing)? / 1.5;
    let high = times.iter().copied().fold(0.0, f64::max) * 1.5;
    let sizes = || bulk.iter().map(|one| f64::from(one.found.size.max(1)));
    let first = sizes().reduce(f64::min).ok_or(PlotError::Nothing)? / 1.25;
    let last = sizes().fold(0.0, f64::max) * 1.25;
    let unit = Unit::fitting(number::TIME, (low * high).sqrt(), 1.0);
    let lines = methods::bulk_line(document);
    let foot = frame::foot_height(lines.len())?;
    let sheet = Sheet {
        size: (WIDTH, PLOT_HEIGHT.saturating_add(foot)),
        units: 1,
        bleed: 0,
        margins: (80, 30, 104, foot.saturating_add(56)),
    };
    sheet.draw(|canvas| {
        let plot = canvas.plot_area();
        let left = plot.across.low;
        let across = Axis::new(first, last, plot.across);
        let up = Axis::new(low / unit.size, high / unit.size, plot.up);
        let head = format!("{}: bulk transfers", heading::title(document));
        canvas.text(&head, (left, 22), black(TITLE), Align::Left)?;
        canvas.text(&heading::ends(document).join("; "), (left, 48), grey(14), Align::Left)?;
        let time = format!("time [{}]", unit.name);
        axis::draw(
            canvas,
            &Labelled { axis: &across, ticks: across.binary_ticks(), name: "length n [bytes]" },
            &Labelled { axis: &up, ticks: up.decimal_ticks(), name: &time },
        )?;
        let is_known = |curve: &&Quantity| bulk.iter().any(|one| curve.seconds(one).is_some());
        for (curve, x) in QUANTITIES.iter().filter(is_known).zip((left..).step_by(190)) {
            canvas.line(vec![(x, 80), (x + 28, 80)], curve.color, 2)?;
            canvas.text(curve.name, (x + 36, 80), black(15), Align::Left)?;
            let mut path = Vec::new();
            for one in bulk {
                let Some(time) = curve.seconds(one) else { continue };
                let x = across.place(f64::from(one.found.size.max(1)));
                let place = |time: f64| (x, up.place(time.clamp(low, high) / unit.size));
                canvas.line(vec![place(time.low), place(time.high)], curve.color, 1)?;
                canvas.dot(place(time.value), curve.color)?;
                path.push(place(time.value));
            }
            canvas.line(path, curve.color, 2)?;
        }
        frame::draw_foot(canvas, &lines)
    })
}
