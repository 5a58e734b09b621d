//! Surroundings of the curves: title, legend, changes, parameters.

use loggap_core::model::{Coefficient, Curve};

use super::super::quantity;
use super::super::{heading, number};
use super::axis::Axis;
use super::canvas::{Align, Canvas, Dashes, Extent, GREY, TITLE, black, grey};
use super::curve::color;
use super::{PLOT_HEIGHT, PlotError};
use crate::profile::{ChangeRecord, ProfileDocument, RangeRecord, SizeRecord};

/// Height of a line of small text, pixels.
const LINE: i32 = 20;

/// Height of `lines` lines below a picture.
pub(super) fn foot_height(lines: usize) -> Result<i32, PlotError> {
    let lines = i32::try_from(lines).map_err(|_| PlotError::Backend)?;
    Ok(lines.saturating_mul(LINE))
}

/// Draws title, subtitle and legend.
pub(super) fn draw_head(
    canvas: &Canvas<'_>,
    document: &ProfileDocument,
    curves: &[Curve],
) -> Result<(), PlotError> {
    let left = canvas.plot_area().across.low;
    let subtitle = [heading::ends(document), vec![heading::effort(document)]].concat().join("; ");
    canvas.text(&heading::title(document), (left, 22), black(TITLE), Align::Left)?;
    canvas.text(&subtitle, (left, 48), grey(14), Align::Left)?;
    let y = 80;
    let mut x = left;
    for curve in curves {
        let label = match curve {
            Curve::Gap => "gap g + (s-1)G".to_owned(),
            _ => quantity::label(Coefficient::AtOne(*curve)),
        };
        canvas.line(vec![(x, y), (x + 28, y)], color(*curve), 2)?;
        canvas.dot((x + 14, y), color(*curve))?;
        canvas.text(&label, (x + 36, y), black(15), Align::Left)?;
        x += 60 + 8 * i32::try_from(label.chars().count()).unwrap_or(0);
    }
    Ok(())
}

/// Draws a dashed line at the first size of each new protocol, and shades the uncertainty of that
/// size.
#[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
pub(super) fn draw_changes(
    canvas: &Canvas<'_>,
    across: &Axis,
    changes: &[ChangeRecord],
) -> Result<(), PlotError> {
    let Extent { low: bottom, high: top } = canvas.plot_area().up;
    for (row, change) in (0..4).cycle().zip(changes) {
        let place = |size: u64| across.place(size as f64);
        let (low, high) = (place(change.lo_bytes), place(change.hi_bytes));
        if high > low {
            canvas.shade(vec![(low, top), (high, top), (high, bottom), (low, bottom)], GREY)?;
        }
        let x = place(change.at_bytes);
        canvas.dashed(vec![(x, top), (x, bottom)], Dashes { length: 6, gap: 6 }, GREY, 1)?;
        let kind = if change.splits { "change of protocol" } else { "small change" };
        let label = format!("{kind} at {}", number::size(change.at_bytes));
        // Labels of neighbouring changes are in different rows, inside the frame.
        let right = canvas.plot_area().across.high;
        let align = if x > right - 190 { Align::Right } else { Align::Left };
        let beside = if x > right - 190 { x - 6 } else { x + 6 };
        canvas.text(&label, (beside, top + 14 + row * LINE), black(13), align)?;
    }
    Ok(())
}

/// Lines of the foot: legend of signs, percentiles at the smallest and largest size, and the
/// parameters of each range.
pub(super) fn foot(document: &ProfileDocument) -> Vec<String> {
    let level = document.requested.confidence_percent;
    let mut lines =
        vec![format!("{level}% intervals of this run; rings, ?: not converged; ~: not on a line")];
    let mut measured = document.sizes.iter().filter(|record| record.rounds.is_some());
    let (first, last) = (measured.next(), measured.next_back());
    if first.is_some() {
        lines.push(
            "single round trips: band from p50 to p99 (p90 of fewer than 200), thin line p99.9, \
             dashes the longest, bars their histogram"
                .to_owned(),
        );
    }
    lines.extend(first.into_iter().chain(last).map(percentiles));
    lines.extend(document.ranges.iter().map(parameters));
    lines
}

pub(super) fn draw_foot(canvas: &Canvas<'_>, lines: &[String]) -> Result<(), PlotError> {
    let left = canvas.plot_area().across.low;
    let places = (0..).map(|row| PLOT_HEIGHT + LINE / 2 - 8 + row * LINE);
    for (line, y) in lines.iter().zip(places) {
        canvas.text(line, (left, y), black(14), Align::Left)?;
    }
    Ok(())
}

fn percentiles(record: &SizeRecord) -> String {
    let names = ["p50", "p90", "p99", "p99.9", "max"];
    let values = record.rounds.iter().flat_map(|rounds| rounds.percentiles);
    let parts = names
        .iter()
        .zip(values)
        .filter_map(|(name, seconds)| Some((name, seconds?)))
        .map(|(name, seconds)| format!("{name} {}", number::in_units(seconds, number::TIME)));
    let size = number::size(record.row.size.0);
    format!("RTT/2 at {size}: {}", parts.collect::<Vec<_>>().join(", "))
}

fn parameters(record: &RangeRecord) -> String {
    let is_shown = |of: &Coefficient| !of.is_per_byte() || *of == Coefficient::PerByte(Curve::Gap);
    let parts = Coefficient::ALL.into_iter().filter(is_shown).filter_map(|of| {
        let quantity = record.at_one(of)?;
        let value = quantity::unit(of, quantity.value.abs()).with_name(quantity.value);
        Some(format!("{} {value}{}", of.symbol(), quantity.mark.symbol()))
    });
    let (first, last) = (number::size(record.range.first.0), number::size(record.range.last.0));
    format!("{first} to {last}, at 1 B:  {}", parts.collect::<Vec<_>>().join(",  "))
}
