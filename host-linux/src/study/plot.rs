//! Line charts with logarithmic axes, as scalable vector graphics.

use std::io::{self, Write};

/// A named line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// Its points; those without a positive ordinate have no place on the
    /// chart and are left out.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// A named line.
    #[must_use]
    pub const fn new(label: String, points: Vec<(f64, f64)>) -> Self {
        Self { label, points }
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

const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 300.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 56.0;

/// Colours that the colour-blind can tell apart (Okabe and Ito).
const COLOURS: [&str; 7] =
    ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000"];
/// Dashes tell lines of one colour apart.
const DASHES: [&str; 3] = ["", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 3\""];

impl Chart {
    /// Draws the chart; lines come in groups of `group`, which share a
    /// colour and differ in dashes.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, group: usize, out: &mut dyn Write) -> io::Result<()> {
        let frame = Frame::around(self);
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"26\" font-size=\"15\" font-weight=\"bold\">{}</text>",
            self.title
        )?;
        frame.grid(self, out)?;
        for (index, series) in self.series.iter().enumerate() {
            let colour = COLOURS.get(index / group.max(1) % COLOURS.len()).unwrap_or(&"#000000");
            let dashes = DASHES.get(index % group.max(1) % DASHES.len()).unwrap_or(&"");
            frame.line(series, colour, dashes, out)?;
            #[allow(clippy::cast_precision_loss, reason = "a few lines")]
            let y = TOP + 10.0 + 19.0 * index as f64;
            let x = WIDTH - RIGHT + 16.0;
            writeln!(
                out,
                "<line x1=\"{x}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{colour}\" \
                 stroke-width=\"2\"{dashes}/><text x=\"{}\" y=\"{}\">{}</text>",
                x + 34.0,
                x + 40.0,
                y + 4.0,
                series.label
            )?;
        }
        writeln!(out, "</svg>")
    }
}

/// The ranges of the axes.
struct Frame {
    x: (f64, f64),
    y: (f64, f64),
}

impl Frame {
    /// Whole decades for the ordinate, whole powers of two for the abscissa.
    fn around(chart: &Chart) -> Self {
        let points = || chart.series.iter().flat_map(drawn);
        let low =
            |of: fn(&(f64, f64)) -> f64| points().map(|p| of(&p)).fold(f64::INFINITY, f64::min);
        let high = |of: fn(&(f64, f64)) -> f64| points().map(|p| of(&p)).fold(0.0, f64::max);
        if points().next().is_none() {
            return Self { x: (1.0, 2.0), y: (1.0, 10.0) };
        }
        let (left, right) = (low(|p| p.0).log2().floor(), high(|p| p.0).log2().ceil());
        let (bottom, top) = (low(|p| p.1).log10().floor(), high(|p| p.1).log10().ceil());
        Self {
            x: (left.exp2(), right.max(left + 1.0).exp2()),
            y: (10f64.powf(bottom), 10f64.powf(top.max(bottom + 1.0))),
        }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let share = |value: f64, (low, high): (f64, f64)| (value / low).ln() / (high / low).ln();
        (
            LEFT + (WIDTH - LEFT - RIGHT) * share(x, self.x),
            HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share(y, self.y),
        )
    }

    fn grid(&self, chart: &Chart, out: &mut dyn Write) -> io::Result<()> {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let mut decade = self.y.0;
        while decade <= self.y.1 * 1.001 {
            let (_, y) = self.place((self.x.0, decade));
            writeln!(
                out,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{decade}</text>",
                LEFT - 6.0,
                y + 4.0
            )?;
            decade *= 10.0;
        }
        let mut power = self.x.0;
        while power <= self.x.1 * 1.001 {
            let (x, _) = self.place((power, self.y.0));
            writeln!(
                out,
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#ddd\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{power}</text>",
                bottom + 16.0
            )?;
            power *= 2.0;
        }
        let (x, y) = (f64::midpoint(LEFT, right), f64::midpoint(TOP, bottom));
        writeln!(
            out,
            "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text transform=\"translate(20 {y}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            bottom + 38.0,
            chart.x_label,
            chart.y_label
        )
    }

    fn line(
        &self,
        series: &Series,
        colour: &str,
        dashes: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        write!(
            out,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes} points=\""
        )?;
        for point in drawn(series) {
            let (x, y) = self.place(point);
            write!(out, "{x:.1},{y:.1} ")?;
        }
        writeln!(out, "\"/>")?;
        for point in drawn(series) {
            let (x, y) = self.place(point);
            writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"{colour}\"/>")?;
        }
        Ok(())
    }
}

/// The points that have a place on logarithmic axes.
fn drawn(series: &Series) -> impl Iterator<Item = (f64, f64)> {
    series.points.iter().copied().filter(|(x, y)| *x > 0.0 && *y > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_reach_round_values_on_both_sides() {
        let series = vec![Series::new("a".into(), vec![(3.0, 0.4), (900.0, 70.0), (5.0, -1.0)])];
        let labels = ("t".into(), "x".into(), "y".into());
        let chart = Chart { title: labels.0, x_label: labels.1, y_label: labels.2, series };
        let frame = Frame::around(&chart);
        assert_eq!((frame.x, frame.y), ((2.0, 1_024.0), (0.1, 100.0)));
        let (x, y) = frame.place((2.0, 0.1));
        assert!((x - LEFT).abs() < 1e-9 && (y - (HEIGHT - BOTTOM)).abs() < 1e-9);
        let mut out = Vec::new();
        chart.write(1, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().matches("<circle").count(), 2);
    }
}
