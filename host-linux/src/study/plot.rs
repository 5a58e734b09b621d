//! Line charts with logarithmic axes, as scalable vector graphics.

use std::io::{self, Write};

use plotters::style::RGBColor;

use crate::output::plot::PlotError;
use crate::output::plot::axis::{self, Axis};
use crate::output::plot::canvas::{
    Align, BLACK, BLUE, Canvas, GREEN, ORANGE, PURPLE, Pixel, SKY, Sheet, TITLE, VERMILION,
};

/// A named line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// Its points; those without a positive ordinate have no place on the
    /// chart and are left out.
    pub points: Vec<(f64, f64)>,
    /// Intervals of its points, drawn as whiskers.
    pub intervals: Vec<Interval>,
}

/// Between which ordinates a point may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Abscissa of the point.
    pub x: f64,
    /// Its least ordinate.
    pub low: f64,
    /// Its largest ordinate.
    pub high: f64,
}

impl Series {
    /// A named line.
    #[must_use]
    pub const fn new(label: String, points: Vec<(f64, f64)>) -> Self {
        Self { label, points, intervals: Vec::new() }
    }

    /// With intervals of its points.
    #[must_use]
    pub fn with_intervals(self, intervals: Vec<Interval>) -> Self {
        Self { intervals, ..self }
    }
}

/// Lines over one abscissa.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Above the chart.
    pub title: String,
    /// Below it.
    pub x_label: String,
    /// Beside it.
    pub y_label: String,
    /// The lines.
    pub series: Vec<Series>,
}

const SHEET: Sheet = Sheet { size: (980, 560), units: 1, bleed: 0, margins: (84, 300, 44, 56) };
const COLOURS: [RGBColor; 7] = [BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK];
/// Lengths of dash and gap, which tell lines of one colour apart; the first
/// line of a colour has none.
const DASHES: [Option<(i32, i32)>; 3] = [None, Some((7, 4)), Some((2, 3))];
/// Half the width of an interval's ends.
const CAP: i32 = 4;
/// Height of a line of the legend.
const LINE: i32 = 19;

impl Chart {
    /// Draws the chart; lines come in groups of `group`, which share a
    /// colour and differ in dashes.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, group: usize, out: &mut dyn Write) -> io::Result<()> {
        let picture = SHEET.draw(|canvas| self.draw(group, canvas)).map_err(io::Error::other)?;
        out.write_all(picture.as_bytes())
    }

    fn draw(&self, group: usize, canvas: &Canvas<'_>) -> Result<(), PlotError> {
        let plot = canvas.plot_area();
        canvas.text(&self.title, (plot.across.0, 24), (TITLE, BLACK), Align::Left)?;
        let ((left, right), (bottom, top)) = self.bounds();
        let (across, up) = (Axis::new(left, right, plot.across), Axis::new(bottom, top, plot.up));
        axis::draw(canvas, (&across, &up), (&self.x_label, &self.y_label))?;
        let mut y = plot.up.1 + LINE / 2;
        for (index, series) in self.series.iter().enumerate() {
            let colour = COLOURS.get(index / group.max(1) % COLOURS.len()).unwrap_or(&BLACK);
            let dashes = DASHES.get(index % group.max(1) % DASHES.len()).copied().flatten();
            let line = |points: Vec<Pixel>| match dashes {
                Some(lengths) => canvas.dashes(points, lengths, (*colour, 2)),
                None => canvas.line(points, *colour, 2),
            };
            let points: Vec<Pixel> =
                drawn(series).map(|(x, y)| (across.place(x), up.place(y))).collect();
            line(points.clone())?;
            for point in points {
                canvas.dot(point, *colour)?;
            }
            for Interval { x, low, high } in drawn_intervals(series) {
                let (x, low, high) = (across.place(x), up.place(low), up.place(high));
                canvas.line(vec![(x, low), (x, high)], *colour, 1)?;
                for end in [low, high] {
                    canvas.line(vec![(x - CAP, end), (x + CAP, end)], *colour, 1)?;
                }
            }
            let x = plot.across.1 + 16;
            line(vec![(x, y), (x + 34, y)])?;
            canvas.text(&series.label, (x + 40, y), (15, BLACK), Align::Left)?;
            y += LINE;
        }
        Ok(())
    }

    /// Ends of the axes: whole powers of two for the abscissa, whole decades
    /// for the ordinate.
    fn bounds(&self) -> ((f64, f64), (f64, f64)) {
        let ends = |series| {
            let both = |of: Interval| [(of.x, of.low), (of.x, of.high)];
            drawn_intervals(series).flat_map(both)
        };
        let points =
            || self.series.iter().flat_map(move |series| drawn(series).chain(ends(series)));
        let low =
            |of: fn(&(f64, f64)) -> f64| points().map(|p| of(&p)).fold(f64::INFINITY, f64::min);
        let high = |of: fn(&(f64, f64)) -> f64| points().map(|p| of(&p)).fold(0.0, f64::max);
        if points().next().is_none() {
            return ((1.0, 2.0), (1.0, 10.0));
        }
        let (left, right) = (low(|p| p.0).log2().floor(), high(|p| p.0).log2().ceil());
        let (bottom, top) = (low(|p| p.1).log10().floor(), high(|p| p.1).log10().ceil());
        (
            (left.exp2(), right.max(left + 1.0).exp2()),
            (10f64.powf(bottom), 10f64.powf(top.max(bottom + 1.0))),
        )
    }
}

/// The points that have a place on logarithmic axes.
fn drawn(series: &Series) -> impl Iterator<Item = (f64, f64)> {
    series.points.iter().copied().filter(|(x, y)| *x > 0.0 && *y > 0.0)
}

fn drawn_intervals(series: &Series) -> impl Iterator<Item = Interval> {
    series.intervals.iter().copied().filter(|of| of.x > 0.0 && of.low > 0.0 && of.high > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_reach_round_values_on_both_sides() {
        let series = vec![Series::new("a".into(), vec![(3.0, 0.4), (900.0, 70.0), (5.0, -1.0)])];
        let labels = ("t".into(), "x".into(), "y".into());
        let chart = Chart { title: labels.0, x_label: labels.1, y_label: labels.2, series };
        assert_eq!(chart.bounds(), ((2.0, 1_024.0), (0.1, 100.0)));
        let mut out = Vec::new();
        chart.write(1, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().matches("<circle").count(), 2);
    }

    #[test]
    fn intervals_are_drawn_and_have_room() {
        let point = vec![(4.0, 5.0)];
        let draw = |series: Series| {
            let labels = ("t".into(), "x".into(), "y".into());
            let series = vec![series];
            let chart = Chart { title: labels.0, x_label: labels.1, y_label: labels.2, series };
            let mut out = Vec::new();
            chart.write(1, &mut out).unwrap();
            (chart.bounds().1, String::from_utf8(out).unwrap().matches("<polyline").count())
        };
        let with = |low, high| {
            let interval = Interval { x: 4.0, low, high };
            draw(Series::new("a".into(), point.clone()).with_intervals(vec![interval]))
        };
        let (bounds, lines) = draw(Series::new("a".into(), point.clone()));
        assert_eq!(bounds, (1.0, 10.0));
        // A stem and two ends.
        assert_eq!(with(2.0, 8.0), (bounds, lines + 3));
        assert_eq!(with(0.5, 50.0).0, (0.1, 100.0));
    }
}
