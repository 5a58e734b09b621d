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
        let run = longest_run(rest);
        let choice = run.as_ref().map(|run| run.candidate);
        choices.extend(std::iter::repeat_n(choice, run.map_or(1, |run| run.length)));
    }
    choices
}

/// Cells that follow one another and have a choice in common.
struct Run {
    candidate: Candidate,
    length: usize,
    /// In how many of them it is the winner.
    wins: usize,
}

/// As many of the first cells as have a choice in common that wins in one of
/// them; of several the one that wins more often.
fn longest_run(cells: &[Cell]) -> Option<Run> {
    let mut found: Option<Run> = None;
    for candidate in cells.first()?.possible() {
        let length = cells.iter().take_while(|cell| cell.possible().any(|one| one == candidate));
        let length = length.count();
        let wins = cells
            .iter()
            .take(length)
            .filter(|cell| cell.winner().is_some_and(|winner| winner.candidate == *candidate));
        let wins = wins.count();
        let is_better = found.as_ref().is_none_or(|run| (length, wins) > (run.length, run.wins));
        if wins > 0 && is_better {
            found = Some(Run { candidate: *candidate, length, wins });
        }
    }
    found
}
