//! Change of a time by each of several choices: a bar a choice, faster ones to the left.

use super::super::number;
use super::PlotError;
use super::axis::Axis;
use super::canvas::{Align, Canvas, Extent, GREEN, GREY, Sheet, TITLE, VERMILION, black, grey};

/// Height of a row, and width of the bars, pixels.
const ROW: i32 = 26;
const ACROSS: i32 = 640;
const LEFT: i32 = 340;
const RIGHT: i32 = 100;
const TOP: i32 = 76;
/// Left edge of the title, pixels.
const MARGIN: i32 = 24;

/// A choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Name.
    pub name: String,
    /// Relative change of the time.
    pub change: f64,
}

/// Bars of several choices.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Heading.
    pub title: String,
    /// Line below it.
    pub subtitle: String,
    /// Rows, from above.
    pub choices: Vec<Choice>,
}

impl Picture {
    /// Draws the choices.
    ///
    /// # Errors
    ///
    /// [`PlotError`] if there are none.
    pub fn svg(&self) -> Result<String, PlotError> {
        if self.choices.is_empty() {
            return Err(PlotError::Nothing);
        }
        let rows = i32::try_from(self.choices.len()).map_err(|_| PlotError::Backend)?;
        let size = (LEFT + ACROSS + RIGHT, TOP + rows * ROW + 50);
        let sheet = Sheet { size, units: 1, bleed: 0, margins: (LEFT, RIGHT, TOP, 50) };
        let ends = self.choices.iter().fold([0.0_f64; 2], |[low, high], choice| {
            [low.min(choice.change), high.max(choice.change)]
        });
        let axis = Axis::linear(ends[0], ends[1], Extent { low: LEFT, high: LEFT + ACROSS });
        sheet.draw(|canvas| {
            canvas.text(&self.title, (MARGIN, 24), black(TITLE), Align::Left)?;
            canvas.text(&self.subtitle, (MARGIN, 50), grey(14), Align::Left)?;
            for (row, choice) in (0..rows).zip(&self.choices) {
                draw_row(canvas, &axis, choice, TOP + row * ROW)?;
            }
            let (zero, bottom) = (axis.place(0.0), TOP + rows * ROW);
            canvas.line(vec![(zero, TOP), (zero, bottom)], GREY, 1)?;
            canvas.text(
                "change of the makespan",
                (LEFT + ACROSS / 2, bottom + 16),
                black(14),
                Align::Below,
            )
        })
    }
}

fn draw_row(canvas: &Canvas<'_>, axis: &Axis, choice: &Choice, top: i32) -> Result<(), PlotError> {
    let middle = top + ROW / 2;
    canvas.text(&choice.name, (LEFT - 8, middle), black(13), Align::Right)?;
    let (zero, end) = (axis.place(0.0), axis.place(choice.change));
    let colour = if choice.change < 0.0 { GREEN } else { VERMILION };
    let percent = number::signed_percent(choice.change);
    canvas.bar([(zero.min(end), top + 4), (zero.max(end), top + ROW - 4)], colour, 1.0)?;
    canvas.tooltip(&format!("{}: {percent}", choice.name))?;
    canvas.text(&percent, (LEFT + ACROSS + 8, middle), grey(13), Align::Left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faster_choices_end_left_of_the_others() {
        let choice = |name: &str, change| Choice { name: name.into(), change };
        let choices = vec![choice("allreduce=ring", -0.25), choice("bcast=linear", 0.75)];
        let picture = Picture { title: "app".into(), subtitle: "4 ranks".into(), choices };
        let svg = picture.svg().unwrap();
        let bar =
            |top: &str| svg.lines().find(|line| line.contains(&format!("y=\"{top}\""))).unwrap();
        assert!(bar("80").contains("x=\"340\"") && bar("80").contains("width=\"160\""), "{svg}");
        assert!(bar("106").contains("x=\"500\"") && bar("106").contains("width=\"480\""), "{svg}");
        for part in ["allreduce=ring: -25%", "bcast=linear: +75%", "4 ranks"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        let none = Picture { choices: Vec::new(), ..picture };
        assert_eq!(none.svg(), Err(PlotError::Nothing));
    }
}
