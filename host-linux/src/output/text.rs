//! Lines and blocks of styled text.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

/// Style of headings.
pub(super) const BOLD: Style = Style::new().bold();
/// Style of secondary information.
pub(super) const DIM: Style = Style::new().dimmed();
/// Style of warnings and marks.
pub(super) const ALERT: Style = AnsiColor::Yellow.on_default();
/// Style of errors.
pub(super) const ERROR: Style = AnsiColor::Red.on_default().bold();

/// A line made of styled pieces.
#[derive(Clone, Debug, Default)]
pub(super) struct Line(Vec<(String, Style)>);

impl Line {
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self::styled(text, Style::new())
    }

    pub(super) fn styled(text: impl Into<String>, style: Style) -> Self {
        let mut line = Self::default();
        line.push(text, style);
        line
    }

    /// Appends text. Control characters become `?`: names of other machines are not trusted.
    pub(super) fn push(&mut self, text: impl Into<String>, style: Style) {
        let mut text = text.into();
        if text.contains(char::is_control) {
            text = text.replace(char::is_control, "?");
        }
        self.0.push((text, style));
    }

    pub(super) fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Width in terminal columns.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| text.chars().count()).sum()
    }

    /// Pads with spaces to `width` columns.
    pub(super) fn pad_to(&mut self, width: usize) {
        let missing = width.saturating_sub(self.width());
        self.push(" ".repeat(missing), Style::new());
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let text: String = self.0.iter().map(|(text, _)| text.as_str()).collect();
        let visible = text.trim_end().len();
        let mut written = 0;
        for (text, style) in &self.0 {
            let rest = visible.saturating_sub(written).min(text.len());
            let shown = text.get(..rest).unwrap_or(text);
            written += text.len();
            if !shown.is_empty() && *style != Style::new() {
                write!(out, "{style}{shown}{style:#}")?;
            } else {
                write!(out, "{shown}")?;
            }
        }
        writeln!(out)
    }
}

/// Writes `lines` in their styles, without trailing spaces.
pub(super) fn write(out: &mut dyn Write, lines: &[Line]) -> io::Result<()> {
    lines.iter().try_for_each(|line| line.write(out))
}

/// Lines to be placed beside other blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Block(pub(super) Vec<Line>);

impl Block {
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(Line::width).max().unwrap_or(0)
    }

    /// A block of right-aligned cells.
    pub(super) fn right(cells: Vec<Line>) -> Self {
        let width = cells.iter().map(Line::width).max().unwrap_or(0);
        let flush = |cell: Line| {
            let mut line = Line::plain(" ".repeat(width - cell.width()));
            line.append(cell);
            line
        };
        Self(cells.into_iter().map(flush).collect())
    }

    /// Places `blocks` side by side, `gap` columns apart.
    pub(super) fn beside(blocks: Vec<Self>, gap: usize) -> Vec<Line> {
        let height = blocks.iter().map(|block| block.0.len()).max().unwrap_or(0);
        let mut lines = vec![Line::default(); height];
        for (index, block) in blocks.into_iter().enumerate() {
            let width = block.width();
            let mut cells = block.0.into_iter();
            for line in &mut lines {
                let mut cell = cells.next().unwrap_or_default();
                cell.pad_to(width);
                if index > 0 {
                    line.push(" ".repeat(gap), Style::new());
                }
                line.append(cell);
            }
        }
        lines
    }
}

/// Words of `text` for wrapping; a number with its noun stays together, and so does `a = b`.
fn words(text: &str) -> Vec<String> {
    let ends_in_number = |text: &str| {
        let last = text.rsplit(' ').next().unwrap_or_default();
        last.replace(',', "").parse::<f64>().is_ok()
    };
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(last)
                if word == "="
                    || last.ends_with(" =")
                    || ends_in_number(last) && word.starts_with(char::is_alphabetic) =>
            {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Wraps `text` to at most `width` columns; lines after the first are indented, longer words are
/// split.
pub(crate) fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in words(text) {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let space = usize::from(used > indent || (used > 0 && lines.len() == 1));
            let room = width.saturating_sub(used + space);
            let Some(line) = lines.last_mut() else { return lines };
            let fresh = space == 0;
            if word.len() > room && !fresh {
                lines.push(" ".repeat(indent));
                used = indent;
                continue;
            }
            let rest = word.split_off(word.len().min(room.max(1)));
            line.push_str(if fresh { "" } else { " " });
            line.extend(&word);
            used += space + word.len();
            if rest.is_empty() {
                break;
            }
            word = rest;
            lines.push(" ".repeat(indent));
            used = indent;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[Line]) -> String {
        let mut out = Vec::new();
        write(&mut out, lines).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn blocks_stand_beside_each_other() {
        let left = Block(vec![Line::plain("a"), Line::plain("long"), Line::plain("c")]);
        let right = Block::right(vec![Line::plain("1"), Line::plain("22")]);
        let lines = Block::beside(vec![left, right], 2);
        assert_eq!(shown(&lines), "a      1\nlong  22\nc\n");
    }

    #[test]
    fn spaces_at_the_end_are_left_out_behind_styles_too() {
        let mut line = Line::styled("12% ", DIM);
        line.pad_to(9);
        assert_eq!(shown(&[line]), "\u{1b}[2m12%\u{1b}[0m\n");
    }

    #[test]
    fn names_of_others_control_no_terminal() {
        assert_eq!(shown(&[Line::plain("a\u{1b}[2Jb\nc")]), "a?[2Jb?c\n");
    }

    #[test]
    fn long_text_is_wrapped_between_words_and_long_words_are_cut() {
        assert_eq!(wrap("one two three", 8, 2), ["one two", "  three"]);
        assert_eq!(wrap("abcdefghij k", 4, 1), ["abcd", " efg", " hij", " k"]);
        assert_eq!(wrap("", 4, 1), [""]);
        assert_eq!(wrap("G = 1 ns/B, O = 0 ns/B", 19, 2), ["G = 1 ns/B,", "  O = 0 ns/B"]);
    }
}
