//! Heat map of a matrix, such as pairs of ranks.

use plotters::style::RGBColor;

use super::PlotError;
use super::canvas::{Align, LIGHT, Sheet, TITLE, black, grey};
use crate::output::number;

/// Square matrix of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// Title above the picture.
    pub title: String,
    /// Caption below the picture: meaning of the numbers.
    pub caption: String,
    /// Names of the rows, and of the columns.
    pub names: Vec<String>,
    /// Meaning of rows and columns.
    pub axis: String,
    /// Values row by row; `None` for an empty cell.
    pub values: Vec<Option<f64>>,
    /// Units of the values.
    pub units: number::Units,
}

/// Length of the longer side of the matrix, pixels.
const SIDE: i32 = 720;
/// Width of a character of the title, pixels.
const TITLE_CHARACTER: i32 = 10;
/// Colours from the lowest to the highest value: blue, pale, red; distinguishable with red-green
/// blindness.
const SCALE: [RGBColor; 3] = [RGBColor(5, 113, 176), RGBColor(247, 247, 247), RGBColor(202, 0, 32)];

impl HeatMap {
    /// Draws the matrix: the logarithm of a value gives its colour, and each cell has a tooltip
    /// with its numbers.
    ///
    /// # Errors
    ///
    /// [`PlotError::Nothing`] if no value is positive.
    pub fn svg(&self) -> Result<String, PlotError> {
        let count = i32::try_from(self.names.len()).map_err(|_| PlotError::Backend)?;
        let positive = || self.values.iter().flatten().filter(|value| **value > 0.0);
        let low = positive().copied().reduce(f64::min).ok_or(PlotError::Nothing)?;
        let high = positive().copied().reduce(f64::max).ok_or(PlotError::Nothing)?;
        let cell = (SIDE / count.max(1)).clamp(1, 60);
        let (left, top) = (90, 70);
        let side = cell.saturating_mul(count);
        let title = i32::try_from(self.title.chars().count()).map_err(|_| PlotError::Backend)?;
        let width = side.max(420).max(title.saturating_mul(TITLE_CHARACTER));
        let size = (left + width + 20, top + side + 90);
        let sheet = Sheet { size, units: 1, bleed: 0, margins: (left, 20, top, 90) };
        sheet.draw(|canvas| {
            canvas.text(&self.title, (left, 24), black(TITLE), Align::Left)?;
            canvas.text(&self.axis, (left - 6, top - 12), grey(12), Align::Right)?;
            for (row, name) in (0..count).zip(&self.names) {
                // Names that would overlap are left out.
                if cell >= 12 || row % (12 / cell + 1) == 0 {
                    let middle = top + row * cell + cell / 2;
                    canvas.text(name, (left - 6, middle), grey(12), Align::Right)?;
                    // Names below the matrix that would overlap are left out.
                    let across = 9 * i32::try_from(name.chars().count()).unwrap_or(1);
                    if row % (across / cell + 1) == 0 {
                        let place = (left + row * cell + cell / 2, top + side + 6);
                        canvas.text(name, place, grey(12), Align::Below)?;
                    }
                }
                for column in 0..count {
                    let corner = (left + column * cell, top + row * cell);
                    let other = (corner.0 + cell - 1, corner.1 + cell - 1);
                    let value = self.value(row, column, count).filter(|value| *value > 0.0);
                    let colour = value.map_or(LIGHT, |value| colour(value, low, high));
                    canvas.bar([corner, other], colour, 1.0)?;
                    if let Some(value) = value {
                        canvas.tooltip(&self.told(row, column, value))?;
                    }
                }
            }
            let [low, high] = [low, high].map(|value| number::in_units(value, self.units));
            let caption = format!("{}: {low} (blue) to {high} (red)", self.caption);
            canvas.text(&caption, (left, top + side + 54), black(15), Align::Left)
        })
    }

    fn value(&self, row: i32, column: i32, count: i32) -> Option<f64> {
        let index = usize::try_from(row * count + column).ok()?;
        self.values.get(index).copied().flatten()
    }

    fn told(&self, row: i32, column: i32, value: f64) -> String {
        let name = |index: i32| {
            let name = usize::try_from(index).ok().and_then(|index| self.names.get(index));
            name.map_or("?", String::as_str)
        };
        let value = number::in_units(value, self.units);
        format!("{} - {}: {value}", name(row), name(column))
    }
}

/// Colour of `value` on the logarithmic scale from `low` to `high`.
fn colour(value: f64, low: f64, high: f64) -> RGBColor {
    let whole = (high / low).ln();
    let share = if whole > 0.0 { (value / low).ln() / whole } else { 0.0 };
    on_scale(SCALE, share)
}

/// Colour at `share`, from 0 to 1, of a scale of three colours.
pub(super) fn on_scale([cold, middle, hot]: [RGBColor; 3], share: f64) -> RGBColor {
    let (from, to, part) =
        if share < 0.5 { (cold, middle, share * 2.0) } else { (middle, hot, share * 2.0 - 1.0) };
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between two colours: from 0 to 255"
    )]
    let mix = |from: u8, to: u8| (f64::from(from) + part * (f64::from(to) - f64::from(from))) as u8;
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_told_and_the_slowest_is_red() {
        let names = ["0", "1", "2"].map(str::to_owned).to_vec();
        let mut values = vec![Some(1e-6); 9];
        values[1] = Some(4e-6);
        values[0] = None;
        let map = HeatMap {
            title: "half round trip".into(),
            caption: "at 1 B".into(),
            names,
            axis: "rank".into(),
            values,
            units: number::TIME,
        };
        let svg = map.svg().unwrap();
        assert!(svg.contains("0 - 1: 4") && svg.contains("at 1 B"), "{svg}");
        assert!(svg.to_lowercase().contains("#ca0020"), "{svg}");
        let empty = HeatMap { values: vec![None; 9], ..map };
        assert_eq!(empty.svg(), Err(PlotError::Nothing));
    }
}
