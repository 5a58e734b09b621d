//! Choice of an algorithm for each size, with few changes along the sizes.

use super::cell::{Candidate, Cell};

/// Candidate to use at a size.
pub type Choice = Option<Candidate>;

/// Chooses a candidate for each of `cells`, which are in ascending order of size.
///
/// The choice is the winner or a candidate that does not differ significantly from it. The longest
/// run of cells that share such a candidate gets it; the next run begins where that one ends.
/// `None` for a cell without candidates.
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
    /// Cells of the run in which it is the winner.
    wins: usize,
}

/// Longest prefix of `cells` that shares a possible candidate which wins at least one of them. Ties
/// go to the candidate with more wins.
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
