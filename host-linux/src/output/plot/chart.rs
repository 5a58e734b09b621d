//! Line charts in SVG.

use std::io::{self, Write};

use plotters::style::RGBColor;

use super::PlotError;
use super::axis::{self, Axis, Labelled};
use super::canvas::{
    Align, BLACK, BLUE, Canvas, Dashes, GREEN, ORANGE, PURPLE, Pixel, SKY, Sheet, TITLE, VERMILION,
    black,
};

/// A line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub label: String,
    /// Points. On logarithmic axes those that are not positive are left out. The line is
    /// interrupted where y is not finite.
    pub points: Vec<Coordinates>,
    /// Intervals of the points, drawn as whiskers.
    pub intervals: Vec<Interval>,
    /// True for a line with dots at its points, false for a dashed line without.
    pub dots: bool,
}

/// Position of a point, in the units of the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coordinates {
    /// Along the x axis.
    pub x: f64,
    /// Along the y axis.
    pub y: f64,
}

/// Interval of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// x of the point.
    pub x: f64,
    /// Lower end, y.
    pub low: f64,
    /// Upper end, y.
    pub high: f64,
}

impl Series {
    /// A solid line with dots.
    #[must_use]
    pub const fn new(label: String, points: Vec<Coordinates>) -> Self {
        Self { label, points, intervals: Vec::new(), dots: true }
    }

    /// A dashed line without dots.
    #[must_use]
    pub fn line(label: String, points: Vec<Coordinates>) -> Self {
        Self { dots: false, ..Self::new(label, points) }
    }

    /// Adds intervals to the points.
    #[must_use]
    pub fn with_intervals(self, intervals: Vec<Interval>) -> Self {
        Self { intervals, ..self }
    }
}

/// Type and range of a chart's axes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Axes {
    /// Logarithmic; x between powers of two, y between powers of ten, or over the range of the points
    /// where that is less than a decade.
    Powers,
    /// Logarithmic, over the range of the points.
    Logarithmic,
    /// Linear, over the range of the points; y starts at 0 if the points are not far from it.
    Linear,
}

/// A chart of lines over a common x axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Title, above the chart.
    pub title: String,
    /// Label of the x axis.
    pub x_label: String,
    /// Label of the y axis.
    pub y_label: String,
    /// Type of both axes.
    pub axes: Axes,
    /// The lines.
    pub series: Vec<Series>,
    /// True if lines may coincide: earlier ones are then drawn wider, so that they remain visible
    /// behind later ones.
    pub nested: bool,
}

const SHEET: Sheet = Sheet { size: (980, 560), units: 1, bleed: 0, margins: (84, 300, 44, 56) };
const COLOURS: [RGBColor; 7] = [BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK];
/// Lengths of dash and gap, to distinguish lines of one colour; the first line of a colour is
/// solid.
const DASHES: [Option<Dashes>; 3] =
    [None, Some(Dashes { length: 7, gap: 4 }), Some(Dashes { length: 2, gap: 3 })];
/// Half the width of a whisker's ends, in pixels.
const CAP: i32 = 4;
/// Height of a line of the legend, in pixels.
const LINE: i32 = 19;

impl Chart {
    /// Draws the chart. Each `group` consecutive lines share a colour and differ in their dashes.
    ///
    /// # Errors
    ///
    /// Errors of `out`.
    pub fn write(&self, group: usize, out: &mut dyn Write) -> io::Result<()> {
        let picture = SHEET.draw(|canvas| self.draw(group, canvas)).map_err(io::Error::other)?;
        out.write_all(picture.as_bytes())
    }

    fn draw(&self, group: usize, canvas: &Canvas<'_>) -> Result<(), PlotError> {
        let plot = canvas.plot_area();
        canvas.text(&self.title, (plot.across.low, 24), black(TITLE), Align::Left)?;
        let ((left, right), (bottom, top)) = self.bounds();
        let axis = if self.axes == Axes::Linear { Axis::linear } else { Axis::new };
        let (across, up) = (axis(left, right, plot.across), axis(bottom, top, plot.up));
        let ticks = match self.axes {
            Axes::Powers => across.binary_ticks(),
            Axes::Logarithmic | Axes::Linear => across.decimal_ticks(),
        };
        let across_labelled = Labelled { axis: &across, ticks, name: &self.x_label };
        let up_labelled = Labelled { axis: &up, ticks: up.decimal_ticks(), name: &self.y_label };
        axis::draw(canvas, &across_labelled, &up_labelled)?;
        let mut y = plot.up.high + LINE / 2;
        for (index, series) in self.series.iter().enumerate() {
            let colour = COLOURS.get(index / group.max(1) % COLOURS.len()).unwrap_or(&BLACK);
            let dashes = if series.dots { index % group.max(1) % DASHES.len() } else { 1 };
            let dashes = DASHES.get(dashes).copied().flatten();
            let width = if self.nested { nested_width(self.series.len() - index) } else { 2 };
            let line = |points: Vec<Pixel>| match dashes {
                Some(dashes) => canvas.dashed(points, dashes, *colour, width),
                None => canvas.line(points, *colour, width),
            };
            for stretch in series.points.split(|point| !point.y.is_finite()) {
                let pixel = |point: Coordinates| (across.place(point.x), up.place(point.y));
                let points: Vec<Pixel> = self.drawn(stretch).map(pixel).collect();
                if !points.is_empty() {
                    line(points.clone())?;
                }
                for point in points.into_iter().filter(|_| series.dots) {
                    canvas.dot(point, *colour)?;
                }
            }
            for Interval { x, low, high } in self.drawn_intervals(series) {
                let x = across.place(x);
                // An end that has no place lies below the axis: the whisker ends there without a cap.
                let ends = [low, high].map(|end| self.has_place(end).then(|| up.place(end)));
                let [low, high] = ends.map(|end| end.unwrap_or(plot.up.low));
                canvas.line(vec![(x, low), (x, high)], *colour, 1)?;
                for end in ends.into_iter().flatten() {
                    canvas.line(vec![(x - CAP, end), (x + CAP, end)], *colour, 1)?;
                }
            }
            let x = plot.across.high + 16;
            line(vec![(x, y), (x + 34, y)])?;
            canvas.text(&series.label, (x + 40, y), black(15), Align::Left)?;
            y += LINE;
        }
        Ok(())
    }

    /// Ranges of both axes: (left, right), (bottom, top).
    fn bounds(&self) -> ((f64, f64), (f64, f64)) {
        let ends = |series| {
            let both = |of: Interval| [of.low, of.high].map(|y| Coordinates { x: of.x, y });
            self.drawn_intervals(series).flat_map(both).filter(|end| self.has_place(end.y))
        };
        let points = || {
            self.series
                .iter()
                .flat_map(move |series| self.drawn(&series.points).chain(ends(series)))
        };
        let low = |of: fn(Coordinates) -> f64| points().map(of).fold(f64::INFINITY, f64::min);
        let high = |of: fn(Coordinates) -> f64| points().map(of).fold(0.0, f64::max);
        if points().next().is_none() {
            return ((1.0, 2.0), (1.0, 10.0));
        }
        let ((left, right), (bottom, top)) =
            ((low(|p| p.x), high(|p| p.x)), (low(|p| p.y), high(|p| p.y)));
        match self.axes {
            Axes::Powers if top / bottom < 10.0 => {
                (powers_of_two(left, right), around(bottom, top))
            }
            Axes::Powers => (powers_of_two(left, right), decades(bottom, top)),
            Axes::Logarithmic => ((left, right), around(bottom, top)),
            Axes::Linear => {
                let margin = (top - bottom) * (MARGIN - 1.0);
                let bottom = if bottom < top / 2.0 { bottom.min(0.0) } else { bottom - margin };
                ((left, right), (bottom, top + margin))
            }
        }
    }

    /// The points that can be shown on the axes.
    fn drawn(&self, points: &[Coordinates]) -> impl Iterator<Item = Coordinates> {
        let has_place = |of: &Coordinates| self.has_place(of.x) && self.has_place(of.y);
        points.iter().copied().filter(move |point| has_place(point))
    }

    /// The intervals of which a part can be shown.
    fn drawn_intervals(&self, series: &Series) -> impl Iterator<Item = Interval> {
        let has_place = |of: &Interval| self.has_place(of.x) && self.has_place(of.high);
        series.intervals.iter().copied().filter(move |interval| has_place(interval))
    }

    fn has_place(&self, value: f64) -> bool {
        value.is_finite() && (self.axes == Axes::Linear || value > 0.0)
    }
}

/// Width in pixels of a nested line when `left` lines, this one included, are still to be drawn.
fn nested_width(left: usize) -> u32 {
    u32::try_from(left).unwrap_or(1).min(8) * 3 - 1
}

/// Factor by which a chart extends beyond its points vertically.
const MARGIN: f64 = 1.1;

/// An interval with a margin on a logarithmic axis.
fn around(low: f64, high: f64) -> (f64, f64) {
    (low / MARGIN, high * MARGIN)
}

/// The powers of two that enclose an interval.
fn powers_of_two(low: f64, high: f64) -> (f64, f64) {
    let (low, high) = (low.log2().floor(), high.log2().ceil());
    (low.exp2(), high.max(low + 1.0).exp2())
}

/// The powers of ten that enclose an interval.
fn decades(low: f64, high: f64) -> (f64, f64) {
    let (low, high) = (low.log10().floor(), high.log10().ceil());
    (10f64.powf(low), 10f64.powf(high.max(low + 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(x: f64, y: f64) -> Coordinates {
        Coordinates { x, y }
    }

    fn chart(series: Vec<Series>, axes: Axes) -> Chart {
        let (title, x_label, y_label) = ("t".into(), "x".into(), "y".into());
        Chart { title, x_label, y_label, axes, series, nested: false }
    }

    #[test]
    fn axes_reach_round_values_on_both_sides() {
        let series =
            vec![Series::new("a".into(), vec![at(3.0, 0.4), at(900.0, 70.0), at(5.0, -1.0)])];
        let chart = chart(series, Axes::Powers);
        assert_eq!(chart.bounds(), ((2.0, 1_024.0), (0.1, 100.0)));
        let near = Chart {
            series: vec![Series::new("a".into(), vec![at(1.0, 70.0), at(8.0, 110.0)])],
            ..chart.clone()
        };
        assert_eq!(near.bounds(), ((1.0, 8.0), around(70.0, 110.0)));
        let mut out = Vec::new();
        chart.write(1, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().matches("<circle").count(), 2);
    }

    #[test]
    fn a_line_has_a_gap_where_a_point_is_missing() {
        let points =
            vec![at(1.0, 3.0), at(2.0, 4.0), at(3.0, f64::NAN), at(4.0, 5.0), at(5.0, 6.0)];
        let drawn = |points: Vec<Coordinates>| {
            let chart = chart(vec![Series::new("a".into(), points)], Axes::Linear);
            let mut out = Vec::new();
            chart.write(1, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(!text.contains("NaN"), "{text}");
            (text.matches("<polyline").count(), text.matches("<circle").count())
        };
        let whole = points.iter().copied().filter(|point| point.y.is_finite()).collect();
        let (lines, dots) = drawn(whole);
        assert_eq!(drawn(points), (lines + 1, dots));
        drawn(vec![at(1.0, f64::NAN), at(2.0, f64::NAN)]);
    }

    #[test]
    fn intervals_are_drawn_and_have_room() {
        let point = vec![at(2.0, 1.0), at(4.0, 5.0), at(8.0, 10.0)];
        let draw = |series: Series| {
            let chart = chart(vec![series], Axes::Powers);
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
        // A vertical line and two ends.
        assert_eq!(with(2.0, 8.0), (bounds, lines + 3));
        assert_eq!(with(0.5, 50.0).0, (0.1, 100.0));
        // From 8 down to the axis, with one end.
        assert_eq!(with(-1.0, 8.0), (bounds, lines + 2));
    }

    #[test]
    fn linear_axes_have_room_for_0_and_lines_have_no_dots() {
        let points = vec![at(0.0, 3.0), at(10.0, 23.0)];
        let series =
            vec![Series::new("a".into(), points.clone()), Series::line("b".into(), points)];
        let chart = chart(series, Axes::Linear);
        assert_eq!(chart.bounds(), ((0.0, 10.0), (0.0, 25.0)));
        let mut out = Vec::new();
        chart.write(1, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().matches("<circle").count(), 2);
        let far = Chart {
            series: vec![Series::new("a".into(), vec![at(1.0, 90.0), at(2.0, 100.0)])],
            ..chart
        };
        assert_eq!(far.bounds(), ((1.0, 2.0), (89.0, 101.0)));
        let far = Chart { axes: Axes::Logarithmic, ..far };
        assert_eq!(far.bounds().0, (1.0, 2.0));
    }
}
