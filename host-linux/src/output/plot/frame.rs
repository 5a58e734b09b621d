//! Everything around the curves: title, legend, axes, changes, parameters.

use loggap_core::model::{Change, Estimate, Profile, Range};
use loggap_core::units::SignedPicos;

use super::super::number;
use super::axis::Axis;
use super::canvas::{Align, BLACK, Canvas, GREY, LIGHT, LINE};
use super::curve::Curve;
use super::{Figure, PlotError};

/// Title, subtitle and legend.
pub(super) fn draw_head(
    canvas: &Canvas<'_>,
    figure: &Figure<'_>,
    curves: &[Curve],
) -> Result<(), PlotError> {
    let left = canvas.plot_area().across.0;
    canvas.text(figure.title, (left, 22), (22, BLACK), Align::Left)?;
    canvas.text(figure.subtitle, (left, 48), (14, GREY), Align::Left)?;
    let y = 80;
    let mut x = left;
    for curve in curves {
        canvas.line(vec![(x, y), (x + 28, y)], curve.color(), 2)?;
        canvas.dot((x + 14, y), curve.color())?;
        canvas.text(curve.label(), (x + 36, y), (15, BLACK), Align::Left)?;
        x += 60 + 8 * i32::try_from(curve.label().chars().count()).unwrap_or(0);
    }
    let note = format!(
        "{}% intervals; rings, ?: not converged; ~: not on a line",
        figure.confidence_percent
    );
    let right = canvas.plot_area().across.1;
    canvas.text(&note, (right, y), (13, GREY), Align::Right)
}

/// Grid, labels and names of both axes, across and up.
pub(super) fn draw_axes(
    canvas: &Canvas<'_>,
    (across, up): (&Axis, &Axis),
    unit: &str,
) -> Result<(), PlotError> {
    let plot = canvas.plot_area();
    let ((left, right), (bottom, top)) = (plot.across, plot.up);
    for tick in across.binary_ticks() {
        let x = across.place(tick.value);
        let length = if tick.label.is_some() { 6 } else { 3 };
        if let Some(label) = &tick.label {
            canvas.line(vec![(x, top), (x, bottom)], LIGHT, 1)?;
            canvas.text(label, (x, bottom + 9), (15, BLACK), Align::Below)?;
        }
        canvas.line(vec![(x, bottom), (x, bottom + length)], BLACK, 1)?;
    }
    for tick in up.decimal_ticks() {
        let y = up.place(tick.value);
        let length = if tick.label.is_some() { 6 } else { 3 };
        if let Some(label) = &tick.label {
            canvas.line(vec![(left, y), (right, y)], LIGHT, 1)?;
            canvas.text(label, (left - 10, y), (15, BLACK), Align::Right)?;
        }
        canvas.line(vec![(left - length, y), (left, y)], BLACK, 1)?;
    }
    canvas.edge([(left, top), (right, bottom)], BLACK)?;
    let centre = left.midpoint(right);
    canvas.text("message size s [bytes]", (centre, bottom + 30), (16, BLACK), Align::Below)?;
    let time = format!("time [{unit}]");
    canvas.text(&time, (22, bottom.midpoint(top)), (16, BLACK), Align::Upwards)
}

/// A dashed line at the first size of each new protocol, shaded where it may
/// begin.
#[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
pub(super) fn draw_changes(
    canvas: &Canvas<'_>,
    across: &Axis,
    changes: &[Change],
) -> Result<(), PlotError> {
    let (bottom, top) = canvas.plot_area().up;
    for (row, change) in (0..4).cycle().zip(changes) {
        let place = |size: u64| across.place(size as f64);
        let (low, high) = (place(change.low.0), place(change.high.0));
        if high > low {
            canvas.shade(vec![(low, top), (high, top), (high, bottom), (low, bottom)], GREY)?;
        }
        let x = place(change.at.0);
        canvas.dashes(x, (top, bottom), GREY)?;
        let label = format!("change at {} B", change.at.0);
        // Labels of neighbours stand below each other, inside the frame.
        let right = canvas.plot_area().across.1;
        let align = if x > right - 140 { Align::Right } else { Align::Left };
        let beside = if x > right - 140 { x - 6 } else { x + 6 };
        canvas.text(&label, (beside, top + 14 + row * LINE), (13, BLACK), align)?;
    }
    Ok(())
}

/// A line of parameters per range.
pub(super) fn draw_foot(canvas: &Canvas<'_>, profile: &Profile) -> Result<(), PlotError> {
    let mut y = canvas.foot_start();
    for range in profile.ranges.iter() {
        if y < canvas.bottom() {
            let left = canvas.plot_area().across.0;
            canvas.text(&parameters(range), (left, y), (14, BLACK), Align::Left)?;
        }
        y += LINE;
    }
    Ok(())
}

fn parameters(range: &Range) -> String {
    let micros = |name: &str, estimate: Estimate<SignedPicos>| {
        let value = number::plain(estimate.value.seconds() * 1e6);
        format!("{name} {value}{} us", estimate.mark.symbol())
    };
    let mut parts = Vec::new();
    parts.extend(range.half_rtt.map(|line| micros("RTT/2", line.at_one)));
    parts.extend(range.latency.map(|latency| micros("L", latency)));
    parts.extend(range.send_overhead.map(|line| micros("o_s", line.at_one)));
    parts.extend(range.recv_overhead.map(|line| micros("o_r", line.at_one)));
    parts.push(micros("g", range.gap.at_one));
    if range.gap.has_slope() {
        let slope = range.gap.per_byte;
        let per_byte = number::plain(slope.value.seconds() * 1e9);
        parts.push(format!("G {per_byte}{} ns/B", slope.mark.symbol()));
    }
    format!("{} to {} B:  {}", range.first.0, range.last.0, parts.join(",  "))
}
