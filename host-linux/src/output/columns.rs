//! Tables with columns of fixed widths, below a line of heads that begins with `#`.

use std::borrow::Borrow;
use std::fmt::{self, Display};
use std::io::{self, Write};

/// Columns of a table whose rows show an `R` each.
pub struct Columns<'a, R>(Vec<Column<'a, R>>);

struct Column<'a, R> {
    head: String,
    width: usize,
    is_left: bool,
    /// Spaces before the column, unless it is the first.
    gap: usize,
    cell: Box<dyn Fn(&R) -> String + 'a>,
}

impl<R> fmt::Debug for Columns<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|column| &column.head)).finish()
    }
}

impl<R> Default for Columns<'_, R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'a, R> Columns<'a, R> {
    /// Adds a column aligned to the right, as for numbers. The head includes the unit.
    #[must_use]
    pub fn right<C: Display>(
        self,
        width: usize,
        head: impl Into<String>,
        cell: impl Fn(&R) -> C + 'a,
    ) -> Self {
        self.with(Column::new(width, head.into(), cell))
    }

    /// Adds a column aligned to the left, as for words; of width 0 if it is the last.
    #[must_use]
    pub fn left<C: Display>(
        self,
        width: usize,
        head: impl Into<String>,
        cell: impl Fn(&R) -> C + 'a,
    ) -> Self {
        self.with(Column { is_left: true, ..Column::new(width, head.into(), cell) })
    }

    /// As [`Columns::left`], at a distance of two spaces.
    #[must_use]
    pub fn apart<C: Display>(
        self,
        width: usize,
        head: impl Into<String>,
        cell: impl Fn(&R) -> C + 'a,
    ) -> Self {
        self.with(Column { is_left: true, gap: 2, ..Column::new(width, head.into(), cell) })
    }

    fn with(mut self, column: Column<'a, R>) -> Self {
        self.0.push(column);
        self
    }

    /// Writes the heads and `rows`.
    ///
    /// # Errors
    ///
    /// Write errors of `out`.
    pub fn write(
        &self,
        out: &mut dyn Write,
        rows: impl IntoIterator<Item: Borrow<R>>,
    ) -> io::Result<()> {
        self.head(out)?;
        rows.into_iter().try_for_each(|row| self.row(out, row.borrow()))
    }

    /// Writes the line of heads.
    ///
    /// # Errors
    ///
    /// Write errors of `out`.
    pub fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        let head = |(index, Column { head, width, is_left, .. }): (usize, &Column<'a, R>)| match (
            index, is_left,
        ) {
            (0, true) => format!("#{head}"),
            (0, false) => format!("#{head:>rest$}", rest = width.saturating_sub(1)),
            _ => head.clone(),
        };
        self.line(out, self.0.iter().enumerate().map(head))
    }

    /// Writes a row.
    ///
    /// # Errors
    ///
    /// Write errors of `out`.
    pub fn row(&self, out: &mut dyn Write, row: &R) -> io::Result<()> {
        self.line(out, self.0.iter().map(|column| (column.cell)(row)))
    }

    /// Writes `cells`, without spaces at the end of the line.
    fn line(&self, out: &mut dyn Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
        let mut line = String::new();
        for (Column { width, is_left, gap, .. }, cell) in self.0.iter().zip(cells) {
            let gap = if line.is_empty() { 0 } else { *gap };
            line += &" ".repeat(gap);
            line += &if *is_left { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
        }
        writeln!(out, "{}", line.trim_end())
    }
}

impl<'a, R> Column<'a, R> {
    fn new<C: Display>(width: usize, head: String, cell: impl Fn(&R) -> C + 'a) -> Self {
        let cell = Box::new(move |row: &R| cell(row).to_string());
        Self { head, width, is_left: false, gap: 1, cell }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_stand_above_their_cells_and_the_first_gives_its_place_to_the_sign() {
        let columns = Columns::default()
            .right(6, "ranks", |row: &(u32, &str)| row.0)
            .apart(5, "name", |row| row.1.to_owned())
            .left(0, "", |row| if row.0 > 9 { "many" } else { "" });
        let mut out = Vec::new();
        columns.write(&mut out, [(8, "ring"), (16, "binomial")]).unwrap();
        let expected = "#ranks  name\n     8  ring\n    16  binomial many\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
