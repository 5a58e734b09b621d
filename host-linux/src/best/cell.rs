//! Results for one pair of rank count and size.

use loggap_core::units::Picos;

use super::TOLD_APART_PERCENT;
use crate::collective::Algorithm;

/// Relative difference below which two times tie: a table would show 0.0%.
const TIE: f64 = 5e-4;

/// An algorithm with a segment size.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Bytes of a segment; 0 for whole messages.
    pub segment: u64,
}

/// Duration of a candidate with the measured parameters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Time {
    /// Simulated duration.
    Simulated(Picos),
    /// Lower bound, already too slow to win: not simulated.
    AtLeast(Picos),
}

impl Time {
    /// The time, or its lower bound.
    #[must_use]
    pub const fn bound(self) -> Picos {
        match self {
            Self::Simulated(time) | Self::AtLeast(time) => time,
        }
    }
}

/// A candidate and its duration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timed {
    /// The candidate.
    pub candidate: Candidate,
    /// Its duration.
    pub time: Time,
}

/// Durations of a candidate of a cell, one for each draw.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Drawn {
    /// Index into [`Cell::candidates`].
    pub(super) place: usize,
    /// Duration in each draw.
    pub(super) times: Vec<Picos>,
}

/// Results of a winner over all draws.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Contest {
    /// Number of draws.
    pub draws: usize,
    /// Draws in which the winner was faster than every other candidate.
    pub won: usize,
    /// Indices into [`Cell::candidates`]: other candidates that were the fastest, or tied for it,
    /// in more draws than a significant winner may lose.
    pub rivals: Vec<usize>,
}

impl Contest {
    /// Compares the draws of the winner with those of the other candidates.
    pub(super) fn of(winner: &[Picos], others: &[Drawn]) -> Self {
        let draws = winner.len();
        let fastest = |draw: usize| {
            let times = others.iter().filter_map(|other| other.times.get(draw)).copied();
            times.min()
        };
        let mut won = 0;
        let mut reached = vec![0; others.len()];
        for (draw, &time) in winner.iter().enumerate() {
            let Some(best) = fastest(draw) else {
                won += 1;
                continue;
            };
            won += usize::from(time < best);
            for (count, other) in reached.iter_mut().zip(others) {
                let own = other.times.get(draw).copied();
                *count += usize::from(own == Some(best) && best <= time);
            }
        }
        let many = |count: usize| count * 100 > draws * (100 - TOLD_APART_PERCENT);
        let rivals = reached.iter().zip(others).filter(|(count, _)| many(**count));
        let rivals = rivals.map(|(_, other)| other.place).collect();
        Self { draws, won, rivals }
    }

    /// True if the winner is significant: fastest in at least [`TOLD_APART_PERCENT`]% of draws.
    #[must_use]
    pub const fn is_told_apart(&self) -> bool {
        self.won * 100 >= self.draws * TOLD_APART_PERCENT
    }
}

/// Results for one pair of rank count and size.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cell {
    /// Ranks.
    pub ranks: u32,
    /// Bytes of the vector, or of each block.
    pub size: u64,
    /// One for each algorithm offered, with its best segment size, fastest first.
    pub candidates: Vec<Timed>,
    /// Results over all draws; `None` without intervals.
    pub contest: Option<Contest>,
}

impl Cell {
    /// Fastest candidate with the measured parameters.
    #[must_use]
    pub fn winner(&self) -> Option<&Timed> {
        self.candidates.first()
    }

    /// Second fastest candidate.
    #[must_use]
    pub fn runner_up(&self) -> Option<&Timed> {
        self.candidates.get(1)
    }

    /// Excess of the runner-up's time (or of its lower bound) over the winner's, as a share of the
    /// latter.
    #[must_use]
    pub fn margin(&self) -> Option<f64> {
        let best = self.winner()?.time.bound();
        let next = self.runner_up()?.time.bound();
        (best > Picos::ZERO).then(|| next.since(best).seconds() / best.seconds())
    }

    /// [`Contest::is_told_apart`] of the winner; `None` without intervals.
    #[must_use]
    pub fn is_told_apart(&self) -> Option<bool> {
        self.contest.as_ref().map(Contest::is_told_apart)
    }

    /// This cell, restricted to candidates whose condition holds for every rank count from `first`
    /// to `last`. If that removes any, the contest is dropped, because no draws were made for the
    /// new winner.
    #[must_use]
    pub(super) fn for_all(&self, first: u32, last: u32) -> Self {
        let holds = |timed: &&Timed| timed.candidate.algorithm.condition.holds_from(first, last);
        if self.candidates.iter().all(|timed| holds(&timed)) {
            return self.clone();
        }
        let known = |timed: &Timed| matches!(timed.time, Time::Simulated(_));
        let mut candidates: Vec<Timed> = self.candidates.iter().filter(holds).copied().collect();
        // Bounds go last: a candidate too slow to be simulated is slower than any simulated one.
        candidates.sort_by_key(|timed| !known(timed));
        Self { candidates, contest: None, ..*self }
    }

    /// The winner, its rivals and the candidates that tie with it.
    pub fn possible(&self) -> impl Iterator<Item = &Candidate> {
        let contest = self.contest.as_ref().filter(|contest| !contest.is_told_apart());
        let rivals = contest.map_or(&[][..], |contest| &contest.rivals);
        let tied = self.tied_places().filter(|place| !rivals.contains(place));
        let places = std::iter::once(0).chain(rivals.iter().copied()).chain(tied);
        places.filter_map(|place| self.candidates.get(place)).map(|timed| &timed.candidate)
    }

    /// Candidates that tie with the winner: less than 0.05% slower, and the winner is not
    /// significant.
    pub fn tied(&self) -> impl Iterator<Item = &Candidate> {
        self.tied_places().filter_map(|place| self.candidates.get(place)).map(|t| &t.candidate)
    }

    fn tied_places(&self) -> impl Iterator<Item = usize> {
        let is_open = self.is_told_apart() != Some(true);
        let best = self.winner().map_or(0.0, |winner| winner.time.bound().seconds());
        let others = self.candidates.iter().enumerate().skip(1);
        let near = others.take_while(move |(_, timed)| {
            let known = matches!(timed.time, Time::Simulated(_));
            is_open && known && timed.time.bound().seconds() < best * (1.0 + TIE)
        });
        near.map(|(place, _)| place)
    }
}
