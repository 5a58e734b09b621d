//! What to do where, with few changes.

use super::cell::{Candidate, Cell};

/// What is done at a size.
pub type Choice = Option<Candidate>;

/// A choice for each of `cells`, which have ascending sizes.
///
/// It is the winner, or something that the winner is not told apart from: the
/// longest run of cells that have a winner in common gets that one, and so on
/// from its end. `None` where a cell has no candidate.
#[must_use]
pub fn settle(cells: &[Cell]) -> Vec<Choice> {
    let mut choices = Vec::with_capacity(cells.len());
    while let Some(rest) = cells.get(choices.len()..).filter(|rest| !rest.is_empty()) {
        let (length, choice) = longest_run(rest);
        choices.extend(std::iter::repeat_n(choice, length));
    }
    choices
}

/// How many of the first cells have a choice in common that wins in one of
/// them, and that choice; of several the one that wins more often.
fn longest_run(cells: &[Cell]) -> (usize, Choice) {
    let Some(first) = cells.first() else { return (0, None) };
    let mut found: Option<(usize, usize, Candidate)> = None;
    for candidate in first.possible() {
        let length = cells.iter().take_while(|cell| cell.possible().any(|one| one == candidate));
        let length = length.count();
        let wins = cells
            .iter()
            .take(length)
            .filter(|cell| cell.winner().is_some_and(|(winner, _)| winner == candidate));
        let wins = wins.count();
        let is_better = found.is_none_or(|(most, won, _)| (length, wins) > (most, won));
        if wins > 0 && is_better {
            found = Some((length, wins, *candidate));
        }
    }
    found.map_or((1, None), |(length, _, candidate)| (length, Some(candidate)))
}
