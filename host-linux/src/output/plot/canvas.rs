//! Drawing in pixels: the elements shared by plots of profiles, charts of studies and timelines.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::{
    Circle, Color, DrawingArea, FontFamily, IntoDrawingArea, IntoFont, IntoTextStyle, PathElement,
    Polygon, RGBColor, Rectangle, SVGBackend, Text, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontTransform, ShapeStyle};

use super::PlotError;

/// A point, in units of the [`Sheet`] from the upper left corner.
pub(crate) type Pixel = (i32, i32);

pub(crate) const BLACK: RGBColor = RGBColor(32, 32, 32);
pub(crate) const GREY: RGBColor = RGBColor(110, 110, 110);
pub(crate) const MIDDLE: RGBColor = RGBColor(165, 165, 165);
pub(crate) const LIGHT: RGBColor = RGBColor(225, 225, 225);

// Colours that are distinguishable with colour blindness (Okabe and Ito).
pub(crate) const BLUE: RGBColor = RGBColor(0, 114, 178);
pub(crate) const ORANGE: RGBColor = RGBColor(230, 159, 0);
pub(crate) const GREEN: RGBColor = RGBColor(0, 158, 115);
pub(crate) const VERMILION: RGBColor = RGBColor(213, 94, 0);
pub(crate) const PURPLE: RGBColor = RGBColor(204, 121, 167);
pub(crate) const SKY: RGBColor = RGBColor(86, 180, 233);

/// Font size of a picture's title.
pub(crate) const TITLE: u32 = 22;

/// Font name that marks a text for [`completed`] to turn into a tooltip.
const TOOLTIP: &str = "tooltip";

/// Alignment of text: the part of it that is placed at its point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Align {
    /// Left end, at half height.
    Left,
    /// Right end, at half height.
    Right,
    /// Middle of the upper edge.
    Below,
    /// Centre of text that is rotated to be read upwards.
    Upwards,
}

/// Pixels of the low and the high end of an axis, in either order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extent {
    pub(crate) low: i32,
    pub(crate) high: i32,
}

/// Area between the axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlotArea {
    pub(crate) across: Extent,
    /// The low end has the larger coordinate.
    pub(crate) up: Extent,
}

/// Size and colour of text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Font {
    pub(crate) size: u32,
    pub(crate) color: RGBColor,
}

pub(crate) const fn black(size: u32) -> Font {
    Font { size, color: BLACK }
}

pub(super) const fn grey(size: u32) -> Font {
    Font { size, color: GREY }
}

/// Lengths of the dashes of a line and of the gaps between them, pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dashes {
    pub(crate) length: i32,
    pub(crate) gap: i32,
}

/// Dimensions of a picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sheet {
    /// Width and height, pixels.
    pub(crate) size: (i32, i32),
    /// Units per pixel: plotters places everything at whole units.
    pub(crate) units: i32,
    /// Pixels on either side of the picture that are drawn but not shown: plotters clamps outside
    /// points to the edge, which bends lines.
    pub(crate) bleed: i32,
    /// Margins left, right, above and below the plot, pixels.
    pub(crate) margins: (i32, i32, i32, i32),
}

impl Sheet {
    /// Returns the SVG document that `draw` draws on white.
    pub(crate) fn draw(
        &self,
        draw: impl FnOnce(&Canvas<'_>) -> Result<(), PlotError>,
    ) -> Result<String, PlotError> {
        let mut document = String::new();
        let scaled = |pixels: i32| pixels.checked_mul(self.units).ok_or(PlotError::Backend);
        let ((width, height), bleed) = (self.size, scaled(self.bleed)?);
        let (across, down) = (scaled(width)?, scaled(height)?);
        let drawn = bleed.checked_mul(2).and_then(|bleed| bleed.checked_add(across));
        let drawn = drawn.ok_or(PlotError::Backend)?;
        let backend =
            SVGBackend::with_string(&mut document, (drawn.unsigned_abs(), down.unsigned_abs()));
        let canvas = Canvas { area: backend.into_drawing_area(), plot: self.plot_area() };
        canvas.area.fill(&WHITE).map_err(|_| PlotError::Backend)?;
        draw(&canvas)?;
        canvas.area.present().map_err(|_| PlotError::Backend)?;
        drop(canvas);
        let head = format!(
            "<svg width=\"{width}\" height=\"{height}\" \
             viewBox=\"{bleed} 0 {across} {down}\" xmlns=\"http://www.w3.org/2000/svg\">"
        );
        Ok(completed(&document, &head))
    }

    const fn plot_area(&self) -> PlotArea {
        let ((width, height), (left, right, top, bottom)) = (self.size, self.margins);
        let (left, right) = (self.bleed + left, self.bleed + width - right);
        PlotArea {
            across: Extent { low: left * self.units, high: right * self.units },
            up: Extent { low: (height - bottom) * self.units, high: top * self.units },
        }
    }
}

/// Completes `document` by features that plotters lacks: replaces its first line by `head`, and
/// turns marked texts into tooltips of the elements before them.
fn completed(document: &str, head: &str) -> String {
    let tooltip = format!("font-family=\"{TOOLTIP}\"");
    let mut lines = document.lines().skip(1);
    let mut completed = String::with_capacity(document.len());
    completed.extend([head, "\n"]);
    while let Some(line) = lines.next() {
        if !(line.starts_with("<text ") && line.contains(&tooltip)) {
            completed.extend([line, "\n"]);
            continue;
        }
        let title = lines.next().unwrap_or_default();
        let _end_of_text = lines.next();
        let start = completed.rfind('<').and_then(|at| completed.get(at + 1..));
        let name = start.and_then(|element| element.split(' ').next()).unwrap_or_default();
        let end = format!("><title>{title}</title></{name}>\n");
        completed.truncate(completed.trim_end_matches("/>\n").len());
        completed.push_str(&end);
    }
    completed
}

pub(crate) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
    plot: PlotArea,
}

impl<'a> Canvas<'a> {
    pub(crate) const fn plot_area(&self) -> PlotArea {
        self.plot
    }

    pub(crate) fn line(
        &self,
        points: Vec<Pixel>,
        color: RGBColor,
        width: u32,
    ) -> Result<(), PlotError> {
        let style = ShapeStyle::from(&color).stroke_width(width);
        self.drawn(&PathElement::new(points, style))
    }

    /// Draws a dashed line.
    pub(crate) fn dashed(
        &self,
        points: Vec<Pixel>,
        dashes: Dashes,
        color: RGBColor,
        width: u32,
    ) -> Result<(), PlotError> {
        let style = ShapeStyle::from(&color).stroke_width(width);
        self.drawn(&DashedPathElement::new(points, dashes.length, dashes.gap, style))
    }

    /// Draws a translucent area.
    pub(crate) fn shade(&self, outline: Vec<Pixel>, color: RGBColor) -> Result<(), PlotError> {
        self.drawn(&Polygon::new(outline, color.mix(0.18).filled()))
    }

    /// Draws a filled area.
    pub(crate) fn area(&self, outline: Vec<Pixel>, color: RGBColor) -> Result<(), PlotError> {
        self.drawn(&Polygon::new(outline, color.filled()))
    }

    /// Draws a filled rectangle, opaque if `opacity` is 1.
    pub(crate) fn bar(
        &self,
        corners: [Pixel; 2],
        color: RGBColor,
        opacity: f64,
    ) -> Result<(), PlotError> {
        self.drawn(&Rectangle::new(corners, color.mix(opacity).filled()))
    }

    /// Draws the edge of a rectangle.
    pub(crate) fn edge(&self, corners: [Pixel; 2], color: RGBColor) -> Result<(), PlotError> {
        self.drawn(&Rectangle::new(corners, ShapeStyle::from(&color)))
    }

    pub(crate) fn dot(&self, centre: Pixel, color: RGBColor) -> Result<(), PlotError> {
        self.drawn(&Circle::new(centre, 3, color.filled()))
    }

    /// Draws a circle filled with white.
    pub(crate) fn ring(&self, centre: Pixel, color: RGBColor) -> Result<(), PlotError> {
        self.drawn(&Circle::new(centre, 3, WHITE.filled()))?;
        self.drawn(&Circle::new(centre, 3, ShapeStyle::from(&color)))
    }

    pub(crate) fn text(
        &self,
        text: &str,
        at: Pixel,
        Font { size, color }: Font,
        align: Align,
    ) -> Result<(), PlotError> {
        let font = ("sans-serif", size).into_font();
        let (font, horizontal, vertical) = match align {
            Align::Left => (font, HPos::Left, VPos::Center),
            Align::Right => (font, HPos::Right, VPos::Center),
            Align::Below => (font, HPos::Center, VPos::Top),
            Align::Upwards => {
                (font.transform(FontTransform::Rotate270), HPos::Center, VPos::Center)
            }
        };
        let style = font.into_text_style(&self.area).color(&color);
        let style = style.pos(Pos::new(horizontal, vertical));
        self.drawn(&Text::new(text.to_owned(), at, style))
    }

    /// Adds a one-line tooltip to the element drawn last.
    pub(crate) fn tooltip(&self, text: &str) -> Result<(), PlotError> {
        let style = (FontFamily::Name(TOOLTIP), 1).into_text_style(&self.area);
        self.drawn(&Text::new(text.to_owned(), (0, 0), style))
    }

    fn drawn<'e, E>(&self, element: &'e E) -> Result<(), PlotError>
    where
        &'e E: plotters::element::PointCollection<'e, Pixel>,
        E: plotters::element::Drawable<SVGBackend<'a>>,
    {
        self.area.draw(element).map_err(|_| PlotError::Backend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tooltip_becomes_the_title_of_the_element_before_it() {
        let sheet = Sheet { size: (20, 10), units: 10, bleed: 5, margins: (0, 0, 0, 0) };
        let document = sheet.draw(|canvas| {
            canvas.bar([(0, 0), (50, 40)], BLUE, 1.0)?;
            canvas.tooltip("1 < 2")?;
            canvas.dot((7, 7), BLUE)
        });
        let document = document.unwrap();
        assert!(document.starts_with("<svg width=\"20\" height=\"10\" viewBox=\"50 0 200 100\""));
        assert_eq!(document.matches("<title>1 &lt; 2</title></rect>\n<circle").count(), 1);
        assert!(!document.contains("tooltip") && document.ends_with("</svg>\n"), "{document}");
    }

    #[test]
    fn a_sheet_too_large_for_whole_units_is_refused() {
        let sheet = Sheet { size: (i32::MAX, 10), units: 10, bleed: 0, margins: (0, 0, 0, 0) };
        assert_eq!(sheet.draw(|_| Ok(())), Err(PlotError::Backend));
    }
}
