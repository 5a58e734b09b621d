//! Map of winners: a grid whose cells have the colours of the winners.

use plotters::style::RGBColor;

use super::PlotError;
use super::canvas::{
    Align, BLUE, Canvas, GREEN, GREY, ORANGE, PURPLE, Pixel, SKY, Sheet, TITLE, VERMILION, black,
    grey,
};

/// A cell of the map.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WonCell {
    /// Winner, as an index into [`WinnerMap::names`].
    pub winner: usize,
    /// True if the winner is certain; other cells are paler and hatched.
    pub sure: bool,
    /// Tooltip of the cell.
    pub told: String,
}

/// Labels of the rows or of the columns.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Labels {
    /// Meaning of the rows or columns, with the unit.
    pub title: String,
    /// One label each.
    pub names: Vec<String>,
}

/// Map of winners.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WinnerMap {
    /// Title above the map.
    pub title: String,
    /// Line below the title.
    pub subtitle: String,
    /// Labels of the columns.
    pub across: Labels,
    /// Labels of the rows, the lowest first.
    pub up: Labels,
    /// All possible winners, for the legend.
    pub names: Vec<String>,
    /// Cells row by row; `None` for an empty one.
    pub cells: Vec<Option<WonCell>>,
    /// Notes below the map.
    pub notes: Vec<String>,
}

/// Largest width and height of the map, pixels.
const WIDTH: i32 = 900;
const HEIGHT: i32 = 560;
const LEFT: i32 = 100;
const TOP: i32 = 70;
/// Width of the legend, pixels.
const LEGEND: i32 = 270;
/// Height of a line of text, pixels.
const LINE: i32 = 22;
/// Width of a character of a label, pixels.
const CHARACTER: i32 = 9;
const COLOURS: [RGBColor; 7] = [BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, GREY];
/// Opacity of cells whose winner is uncertain.
const PALE: f64 = 0.35;
/// Distance between hatching lines, pixels.
const HATCH: usize = 10;

impl WinnerMap {
    /// Draws the map; columns have equal widths, rows equal heights.
    ///
    /// # Errors
    ///
    /// [`PlotError::Nothing`] if the map has no cell.
    pub fn svg(&self) -> Result<String, PlotError> {
        let count = |names: &[String]| i32::try_from(names.len()).map_err(|_| PlotError::Backend);
        let (columns, rows) = (count(&self.across.names)?, count(&self.up.names)?);
        if columns == 0 || rows == 0 {
            return Err(PlotError::Nothing);
        }
        let cell = ((WIDTH / columns).clamp(2, 60), (HEIGHT / rows).clamp(2, 48));
        let lines = count(&self.names)?.max(rows.saturating_mul(cell.1) / LINE + 1);
        let body = lines.saturating_mul(LINE).max(rows.saturating_mul(cell.1));
        let foot = 60 + count(&self.notes)? * LINE;
        let across = (columns * cell.0).max(620);
        let size = (LEFT + across + LEGEND, TOP.saturating_add(body).saturating_add(foot));
        let sheet = Sheet { size, units: 1, bleed: 0, margins: (LEFT, LEGEND, TOP, foot) };
        sheet.draw(|canvas| {
            canvas.text(&self.title, (LEFT, 22), black(TITLE), Align::Left)?;
            canvas.text(&self.subtitle, (LEFT, 48), grey(14), Align::Left)?;
            let map = Map { canvas, columns, rows, cell };
            for (index, won) in (0..).zip(&self.cells) {
                if let Some(won) = won {
                    map.won(map.corner(index % columns, index / columns), won)?;
                }
            }
            map.labels(&self.across.names, &self.up.names)?;
            let bottom = TOP + rows * cell.1;
            let middle = (LEFT + columns * cell.0 / 2, bottom + 28);
            canvas.text(&self.across.title, middle, black(15), Align::Below)?;
            let beside = (24, TOP + rows * cell.1 / 2);
            canvas.text(&self.up.title, beside, black(15), Align::Upwards)?;
            self.legend(canvas, LEFT + across + 16)?;
            let places = (0..).map(|line| size.1 - foot + 64 + line * LINE);
            for (note, y) in self.notes.iter().zip(places) {
                canvas.text(note, (LEFT, y), black(14), Align::Left)?;
            }
            Ok(())
        })
    }

    fn legend(&self, canvas: &Canvas<'_>, x: i32) -> Result<(), PlotError> {
        for ((index, name), y) in self.names.iter().enumerate().zip((0..).map(|at| TOP + at * LINE))
        {
            canvas.bar([(x, y), (x + 16, y + 14)], colour(index), 1.0)?;
            canvas.text(name, (x + 24, y + 8), black(14), Align::Left)?;
        }
        Ok(())
    }
}

fn colour(index: usize) -> RGBColor {
    COLOURS.get(index % COLOURS.len()).copied().unwrap_or(GREY)
}

/// Geometry of the cells.
struct Map<'a, 'b> {
    canvas: &'a Canvas<'b>,
    columns: i32,
    rows: i32,
    cell: Pixel,
}

impl Map<'_, '_> {
    /// Upper left corner of a cell; rows count from below.
    const fn corner(&self, column: i32, row: i32) -> Pixel {
        (LEFT + column * self.cell.0, TOP + (self.rows - 1 - row) * self.cell.1)
    }

    fn won(&self, corner: Pixel, won: &WonCell) -> Result<(), PlotError> {
        let other = (corner.0 + self.cell.0 - 1, corner.1 + self.cell.1 - 1);
        let colour = colour(won.winner);
        self.canvas.bar([corner, other], colour, if won.sure { 1.0 } else { PALE })?;
        self.canvas.tooltip(&won.told)?;
        if won.sure {
            return Ok(());
        }
        // Rising lines, on each of which x + y is constant.
        let (width, height) = (other.0 - corner.0, other.1 - corner.1);
        for sum in (0..width + height).step_by(HATCH) {
            let start = (sum - height).max(0);
            let end = sum.min(width);
            let place = |x: i32| (corner.0 + x, corner.1 + sum - x);
            self.canvas.line(vec![place(start), place(end)], colour, 1)?;
        }
        Ok(())
    }

    /// Draws names of columns and rows; names that would overlap are left out.
    fn labels(&self, columns: &[String], rows: &[String]) -> Result<(), PlotError> {
        let longest = columns.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let longest = i32::try_from(longest).unwrap_or(1) * CHARACTER;
        let every = longest / self.cell.0 + 1;
        let bottom = TOP + self.rows * self.cell.1;
        for (column, name) in (0..self.columns).zip(columns).filter(|(at, _)| at % every == 0) {
            let place = (self.corner(column, 0).0 + self.cell.0 / 2, bottom + 8);
            self.canvas.text(name, place, black(13), Align::Below)?;
        }
        let every = LINE / self.cell.1 + 1;
        for (row, name) in (0..self.rows).zip(rows).filter(|(at, _)| at % every == 0) {
            let place = (LEFT - 8, self.corner(0, row).1 + self.cell.1 / 2);
            self.canvas.text(name, place, black(13), Align::Right)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> WinnerMap {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let won = |winner, sure, told: &str| Some(WonCell { winner, sure, told: told.into() });
        WinnerMap {
            title: "bcast".into(),
            subtitle: "by simulation".into(),
            across: Labels { title: "message size [bytes]".into(), names: texts(&["8", "16"]) },
            up: Labels { title: "ranks".into(), names: texts(&["4", "8"]) },
            names: texts(&["linear", "binomial"]),
            cells: vec![
                won(0, true, "first"),
                won(1, true, "second"),
                won(1, false, "third"),
                None,
            ],
            notes: texts(&["a note"]),
        }
    }

    #[test]
    fn winners_have_colours_and_what_is_not_sure_is_pale_and_hatched() {
        let svg = map().svg().unwrap();
        for text in ["message size [bytes]", "ranks", "linear", "a note", "<title>third</title>"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        let lines = svg.matches("<polyline").count();
        assert!(lines > 3, "{svg}");
        let mut sure = map();
        sure.cells.iter_mut().flatten().for_each(|won| won.sure = true);
        assert_eq!(sure.svg().unwrap().matches("<polyline").count(), 0);
        // The row of 8 ranks is above that of 4.
        let y = |told: &str| {
            let tail = svg.split(&format!("<title>{told}")).next().unwrap();
            let rect = tail.rsplit("<rect").next().unwrap();
            let y = rect.split(" y=\"").nth(1).unwrap().split('"').next().unwrap();
            y.parse::<i32>().unwrap()
        };
        assert_eq!(y("first"), y("second"));
        assert!(y("third") < y("first"));
    }

    #[test]
    fn without_cells_there_is_no_picture() {
        let nothing = Labels { title: String::new(), names: Vec::new() };
        let empty = WinnerMap { across: nothing, ..map() };
        assert_eq!(empty.svg(), Err(PlotError::Nothing));
    }
}
