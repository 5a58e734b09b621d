//! How busy links are over time: a row a link, the busiest first.

use plotters::style::RGBColor;

use super::canvas::{Align, BLACK, GREY, Sheet, TITLE};
use super::heat::on_scale;
use super::{PlotError, Unit};
use crate::simulation::{BusyLink, NetworkUse};

/// Height of a row, and width of the part that time takes.
const ROW: i32 = 22;
const ACROSS: i32 = 820;
const LEFT: i32 = 240;
const TOP: i32 = 76;
/// From idle to full.
const SCALE: [RGBColor; 3] =
    [RGBColor(247, 247, 247), RGBColor(253, 174, 97), RGBColor(165, 0, 38)];

/// Draws the busiest links of a network that was watched.
///
/// # Errors
///
/// [`PlotError::Nothing`] where no link carried anything, or none was watched.
pub fn svg(usage: &NetworkUse) -> Result<String, PlotError> {
    let step = usage.step.ok_or(PlotError::Nothing)?;
    let steps = usage.busiest.iter().map(|link| link.over_time.len()).max().unwrap_or_default();
    let steps = i32::try_from(steps).ok().filter(|steps| *steps > 0).ok_or(PlotError::Nothing)?;
    let rows = i32::try_from(usage.busiest.len()).map_err(|_| PlotError::Backend)?;
    let size = (LEFT + ACROSS + 90, TOP + rows * ROW + 80);
    let sheet = Sheet { size, units: 1, bleed: 0, margins: (LEFT, 90, TOP, 80) };
    #[allow(clippy::cast_precision_loss, reason = "a label of few digits")]
    let whole = step as f64 * f64::from(steps);
    sheet.draw(|canvas| {
        canvas.text("How busy links are", (LEFT, 24), (TITLE, BLACK), Align::Left)?;
        let subtitle = format!("the busiest {rows} of {} links", usage.links);
        canvas.text(&subtitle, (LEFT, 50), (14, GREY), Align::Left)?;
        for (row, link) in (0..rows).zip(&usage.busiest) {
            let top = TOP + row * ROW;
            let middle = top + ROW / 2;
            canvas.text(&link.name, (LEFT - 8, middle), (13, BLACK), Align::Right)?;
            let share = percent(link.utilization);
            canvas.text(&share, (LEFT + ACROSS + 8, middle), (13, GREY), Align::Left)?;
            draw_row(canvas, link, (top, steps))?;
        }
        let unit = Unit::of(whole / 8.0);
        for tick in 0..=8 {
            let x = LEFT + ACROSS * tick / 8;
            let label = format!("{:.4}", whole * f64::from(tick) / 8.0 / unit.picos);
            let label = label.trim_end_matches('0').trim_end_matches('.');
            canvas.text(label, (x, TOP + rows * ROW + 6), (12, GREY), Align::Below)?;
        }
        let caption = format!(
            "time [{}]; white: idle, dark red: full; right: share of the whole run",
            unit.name
        );
        canvas.text(&caption, (LEFT, TOP + rows * ROW + 48), (15, BLACK), Align::Left)
    })
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// One bar for neighbours of one colour.
fn draw_row(
    canvas: &super::canvas::Canvas<'_>,
    link: &BusyLink,
    (top, steps): (i32, i32),
) -> Result<(), PlotError> {
    let mut at = 0;
    while at < steps {
        let share = |at: i32| {
            let step = usize::try_from(at).ok().and_then(|at| link.over_time.get(at));
            step.copied().unwrap_or_default().clamp(0.0, 1.0)
        };
        let first = share(at);
        let shade = on_scale(SCALE, first);
        let mut end = at + 1;
        while end < steps && on_scale(SCALE, share(end)) == shade {
            end += 1;
        }
        let place = |step: i32| LEFT + ACROSS * step / steps;
        let corners = [(place(at), top), (place(end), top + ROW - 2)];
        canvas.bar(corners, shade, 1.0)?;
        canvas.tooltip(&format!("{}: {}", link.name, percent(first)))?;
        at = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_link_is_dark_red_and_named_and_nothing_is_no_picture() {
        let link = BusyLink {
            name: "leaf 0 out".into(),
            capacity: 2.0,
            utilization: 0.625,
            over_time: vec![0.0, 1.0, 1.0, 0.5],
        };
        let usage = NetworkUse { hosts: 16, links: 36, step: Some(1_000_000), busiest: vec![link] };
        let svg = svg(&usage).unwrap();
        assert!(svg.contains("leaf 0 out: 100.0%") && svg.contains("62.5%"), "{svg}");
        assert!(svg.to_lowercase().contains("#a50026") && svg.contains("time [ns]"), "{svg}");
        assert_eq!(super::svg(&NetworkUse::default()), Err(PlotError::Nothing));
    }
}
