//! Load of links over time: a row per link, the busiest first.

use loggap_core::units::Picos;
use plotters::style::RGBColor;

use super::super::number::{self, Unit};
use super::PlotError;
use super::axis::{Axis, Tick};
use super::canvas::{Align, Canvas, Extent, GREY, Sheet, TITLE, black, grey};
use super::heat::on_scale;
use crate::simulation::{BusyLink, NetworkUse};

/// Height of a row, and width of the time axis, pixels.
const ROW: i32 = 22;
const ACROSS: i32 = 820;
const LEFT: i32 = 240;
const TOP: i32 = 76;
/// Left edge of the title, pixels.
const MARGIN: i32 = 24;
/// Colours from idle to full.
const SCALE: [RGBColor; 3] =
    [RGBColor(247, 247, 247), RGBColor(253, 174, 97), RGBColor(165, 0, 38)];

/// Title of the picture.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LinksTitle {
    /// File or pattern that was simulated.
    pub schedule: String,
    /// Name or file of the topology.
    pub topology: String,
    /// Finishing time of the last rank.
    pub makespan: Picos,
}

/// Draws the busiest links of an observed network; if no link carried anything, the picture is a
/// sentence.
///
/// # Errors
///
/// [`PlotError::Nothing`] if no link was observed.
pub fn svg(usage: &NetworkUse, title: &LinksTitle) -> Result<String, PlotError> {
    let step = usage.step.ok_or(PlotError::Nothing)?;
    let steps = usage.busiest.iter().map(|link| link.over_time.len()).max().unwrap_or_default();
    let steps = i32::try_from(steps).map_err(|_| PlotError::Backend)?;
    let rows = i32::try_from(usage.busiest.len()).map_err(|_| PlotError::Backend)?;
    let size = (LEFT + ACROSS + 90, TOP + rows * ROW + 80);
    let sheet = Sheet { size, units: 1, bleed: 0, margins: (LEFT, 90, TOP, 80) };
    #[allow(clippy::cast_precision_loss, reason = "a label of few digits")]
    let whole = step as f64 * f64::from(steps);
    sheet.draw(|canvas| {
        let LinksTitle { schedule, topology, makespan } = title;
        let head = format!("How busy links are: {schedule} on {topology}");
        canvas.text(&head, (MARGIN, 24), black(TITLE), Align::Left)?;
        let makespan = number::in_units(makespan.seconds(), number::TIME);
        let subtitle = format!("makespan {makespan}; {}", shown(usage));
        canvas.text(&subtitle, (MARGIN, 50), grey(14), Align::Left)?;
        if rows == 0 || steps == 0 {
            return Ok(());
        }
        for (row, link) in (0..rows).zip(&usage.busiest) {
            let top = TOP + row * ROW;
            let middle = top + ROW / 2;
            canvas.text(&link.name, (LEFT - 8, middle), black(13), Align::Right)?;
            let share = percent(link.utilization);
            canvas.text(&share, (LEFT + ACROSS + 8, middle), grey(13), Align::Left)?;
            draw_row(canvas, link, top, steps)?;
        }
        let bottom = TOP + rows * ROW;
        let unit = Unit::fitting(number::TIME, whole / 8.0 * 1e-12, 1.0);
        let picos = (unit.size * 1e12).round();
        let axis = Axis::linear(0.0, whole / picos, Extent { low: LEFT, high: LEFT + ACROSS });
        for Tick { value, label } in axis.decimal_ticks() {
            let x = axis.place(value);
            canvas.line(vec![(x, bottom - 2), (x, bottom + 4)], GREY, 1)?;
            canvas.text(&label.unwrap_or_default(), (x, bottom + 6), grey(12), Align::Below)?;
        }
        let caption = format!(
            "time [{}]; white: idle, dark red: full; right: share of the whole run",
            unit.name
        );
        canvas.text(&caption, (LEFT, bottom + 48), black(15), Align::Left)
    })
}

/// Sentence that says which links are drawn.
fn shown(usage: &NetworkUse) -> String {
    let NetworkUse { busiest, links, as_busy, .. } = usage;
    let tie = match as_busy {
        0 => String::new(),
        1 => ", and one more is as busy as the last".to_owned(),
        more => format!(", and {more} more are as busy as the last"),
    };
    match busiest.len() {
        0 => format!("no link was busy: of {links} links none carried more than first bytes"),
        rows => format!("the busiest {rows} of {links} links{tie}"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// Draws a row; consecutive steps of one colour share a bar.
fn draw_row(canvas: &Canvas<'_>, link: &BusyLink, top: i32, steps: i32) -> Result<(), PlotError> {
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

    fn title() -> LinksTitle {
        LinksTitle {
            schedule: "app.goal".into(),
            topology: "tree:8:4".into(),
            makespan: Picos(3_573_000),
        }
    }

    #[test]
    fn each_row_has_the_steps_of_its_own_link() {
        let link = |name: &str, over_time: [f64; 4]| BusyLink {
            name: name.into(),
            capacity: 1.0,
            utilization: 0.5,
            over_time: over_time.into(),
        };
        let busiest = vec![link("early", [1.0, 1.0, 0.0, 0.0]), link("late", [0.0, 0.0, 0.0, 1.0])];
        let usage = NetworkUse { step: Some(1_000), links: 2, busiest, ..NetworkUse::default() };
        let svg = svg(&usage, &title()).unwrap();
        let attribute = |bar: &str, name: &str| {
            let (_, rest) = bar.split_once(&format!(" {name}=\"")).unwrap();
            rest.split_once('"').unwrap().0.to_lowercase()
        };
        let told = |bar: &str| {
            let (_, rest) = bar.split_once("<title>").unwrap();
            let [x, y, width] = ["x", "y", "width"].map(|name| attribute(bar, name));
            let text = rest.split_once("</title>").unwrap().0;
            format!("{x} {y} {width} {} {text}", attribute(bar, "fill"))
        };
        let bars: Vec<String> =
            svg.lines().filter(|line| line.contains("<title>")).map(told).collect();
        assert_eq!(
            bars,
            [
                "240 76 410 #a50026 early: 100.0%",
                "650 76 410 #f7f7f7 early: 0.0%",
                "240 98 615 #f7f7f7 late: 0.0%",
                "855 98 205 #a50026 late: 100.0%",
            ]
        );
    }

    #[test]
    fn a_full_link_is_dark_red_and_named_and_nothing_is_no_picture() {
        let link = BusyLink {
            name: "leaf 0 out".into(),
            capacity: 2.0,
            utilization: 0.625,
            over_time: vec![0.0, 1.0, 1.0, 0.5],
        };
        let usage = NetworkUse {
            hosts: 16,
            links: 36,
            flows: 8,
            step: Some(1_000_000),
            busiest: vec![link],
            as_busy: 3,
        };
        let title = title();
        let svg = svg(&usage, &title).unwrap();
        assert!(svg.contains("leaf 0 out: 100.0%") && svg.contains("62.5%"), "{svg}");
        assert!(svg.to_lowercase().contains("#a50026") && svg.contains("time [ns]"), "{svg}");
        for part in ["app.goal on tree:8:4", "makespan 3.57 us", "3 more are as busy"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        // Round ticks.
        assert!(svg.contains("\n500\n") && svg.contains("\n3500\n"), "{svg}");
        assert_eq!(super::svg(&NetworkUse::default(), &title), Err(PlotError::Nothing));
        let idle = NetworkUse { busiest: Vec::new(), as_busy: 0, ..usage };
        assert!(super::svg(&idle, &title).unwrap().contains("no link was busy"));
    }
}
