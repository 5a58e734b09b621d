//! Drawing in pixels, with the few things that the picture consists of.

use plotters::coord::Shift;
use plotters::prelude::{
    Circle, Color, DrawingArea, IntoDrawingArea, IntoFont, IntoTextStyle, PathElement, Polygon,
    RGBColor, Rectangle, SVGBackend, Text, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontTransform, ShapeStyle};

use super::PlotError;

/// A point in pixels from the upper left corner.
pub(super) type Pixel = (i32, i32);

pub(super) const BLACK: RGBColor = RGBColor(32, 32, 32);
pub(super) const GREY: RGBColor = RGBColor(110, 110, 110);
pub(super) const LIGHT: RGBColor = RGBColor(225, 225, 225);

const WIDTH: i32 = 1_100;
const HEIGHT: i32 = 700;
/// Height of a line of small text.
pub(super) const LINE: i32 = 20;
/// Room left of the plot, right of it, above and below, without the foot.
const MARGINS: (i32, i32, i32, i32) = (80, 30, 104, 56);

/// Where text stands relative to its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Align {
    /// Its left end, in the middle of its height.
    Left,
    /// Its right end, in the middle of its height.
    Right,
    /// The middle of its upper edge.
    Below,
    /// Its centre, read from below.
    Upwards,
}

/// The part of the canvas between the axes, as pixels of their ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlotArea {
    pub(super) across: (i32, i32),
    /// The first is the lower end, with the larger number.
    pub(super) up: (i32, i32),
}

pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
    foot: i32,
}

impl<'a> Canvas<'a> {
    /// White, with room for `foot_lines` lines below the plot.
    pub(super) fn new(document: &'a mut String, foot_lines: usize) -> Result<Self, PlotError> {
        let foot = LINE * i32::try_from(foot_lines).map_err(|_| PlotError::Backend)?;
        let size = (WIDTH.unsigned_abs(), (HEIGHT + foot).unsigned_abs());
        let area = SVGBackend::with_string(document, size).into_drawing_area();
        area.fill(&WHITE).map_err(|_| PlotError::Backend)?;
        Ok(Self { area, foot })
    }

    pub(super) const fn plot_area(&self) -> PlotArea {
        let (left, right, top, bottom) = MARGINS;
        PlotArea { across: (left, WIDTH - right), up: (HEIGHT - bottom, top) }
    }

    /// Where the first line of the foot stands.
    pub(super) const fn foot_start(&self) -> i32 {
        HEIGHT + LINE / 2 - 8
    }

    /// The lowest pixel.
    pub(super) const fn bottom(&self) -> i32 {
        HEIGHT + self.foot
    }

    pub(super) fn line(
        &self,
        points: Vec<Pixel>,
        color: RGBColor,
        width: u32,
    ) -> Result<(), PlotError> {
        let style = ShapeStyle::from(&color).stroke_width(width);
        self.drawn(&PathElement::new(points, style))
    }

    /// A vertical line of dashes.
    pub(super) fn dashes(
        &self,
        x: i32,
        (from, to): (i32, i32),
        color: RGBColor,
    ) -> Result<(), PlotError> {
        const DASH: i32 = 6;
        let (top, bottom) = (from.min(to), from.max(to));
        let mut y = top;
        while y < bottom {
            self.line(vec![(x, y), (x, (y + DASH).min(bottom))], color, 1)?;
            y += 2 * DASH;
        }
        Ok(())
    }

    /// An area seen through.
    pub(super) fn shade(&self, outline: Vec<Pixel>, color: RGBColor) -> Result<(), PlotError> {
        self.drawn(&Polygon::new(outline, color.mix(0.18).filled()))
    }

    /// The edge of a rectangle.
    pub(super) fn edge(&self, corners: [Pixel; 2], color: RGBColor) -> Result<(), PlotError> {
        self.drawn(&Rectangle::new(corners, ShapeStyle::from(&color)))
    }

    pub(super) fn dot(&self, centre: Pixel, color: RGBColor) -> Result<(), PlotError> {
        self.drawn(&Circle::new(centre, 3, color.filled()))
    }

    /// A dot of which only the rim is drawn.
    pub(super) fn ring(&self, centre: Pixel, color: RGBColor) -> Result<(), PlotError> {
        self.drawn(&Circle::new(centre, 3, WHITE.filled()))?;
        self.drawn(&Circle::new(centre, 3, ShapeStyle::from(&color)))
    }

    pub(super) fn text(
        &self,
        text: &str,
        at: Pixel,
        (size, color): (u32, RGBColor),
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

    pub(super) fn finish(self) -> Result<(), PlotError> {
        self.area.present().map_err(|_| PlotError::Backend)
    }

    fn drawn<'e, E>(&self, element: &'e E) -> Result<(), PlotError>
    where
        &'e E: plotters::element::PointCollection<'e, Pixel>,
        E: plotters::element::Drawable<SVGBackend<'a>>,
    {
        self.area.draw(element).map_err(|_| PlotError::Backend)
    }
}
