//! What came of one number of ranks and one size.

use loggap_core::units::Picos;

use super::TOLD_APART_PERCENT;
use crate::collective::Algorithm;

/// Two times that are closer than this, as a share, tie: a table would show 0.0%.
const TIE: f64 = 5e-4;

/// An algorithm with a size of segments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Bytes of a segment; 0 for whole messages.
    pub segment: u64,
}

/// How long a candidate takes, with the measured parameters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Time {
    /// So long.
    Simulated(Picos),
    /// No less than this, which is too much for it to win: not simulated.
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

/// A candidate and how long it takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timed {
    /// The candidate.
    pub candidate: Candidate,
    /// How long it takes.
    pub time: Time,
}

/// What a candidate of a cell takes in each draw.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Drawn {
    /// Index into [`Cell::candidates`].
    pub(super) place: usize,
    /// A time for each draw.
    pub(super) times: Vec<Picos>,
}

/// What draws say of a winner.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Contest {
    /// How many there were.
    pub draws: usize,
    /// In how many the winner was faster than every other candidate.
    pub won: usize,
    /// Other candidates that were the fastest, or as fast, in more draws than
    /// a winner that is told apart may lose: indices into
    /// [`Cell::candidates`].
    pub rivals: Vec<usize>,
}

impl Contest {
    /// Of the winner against the others.
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

    /// Whether the winner is told apart from all others.
    #[must_use]
    pub const fn is_told_apart(&self) -> bool {
        self.won * 100 >= self.draws * TOLD_APART_PERCENT
    }
}

/// What came of one number of ranks and one size.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cell {
    /// Ranks.
    pub ranks: u32,
    /// Bytes of the vector, or of each block.
    pub size: u64,
    /// One for each algorithm offered, with its best size of segments, the
    /// fastest first.
    pub candidates: Vec<Timed>,
    /// What draws say; `None` without intervals.
    pub contest: Option<Contest>,
}

impl Cell {
    /// The fastest, with the measured parameters.
    #[must_use]
    pub fn winner(&self) -> Option<&Timed> {
        self.candidates.first()
    }

    /// The next one after the winner.
    #[must_use]
    pub fn runner_up(&self) -> Option<&Timed> {
        self.candidates.get(1)
    }

    /// How much longer the runner-up takes, or takes at least, as a share of
    /// the winner's time.
    #[must_use]
    pub fn margin(&self) -> Option<f64> {
        let best = self.winner()?.time.bound();
        let next = self.runner_up()?.time.bound();
        (best > Picos::ZERO).then(|| next.since(best).seconds() / best.seconds())
    }

    /// Whether the winner is told apart; `None` without intervals.
    #[must_use]
    pub fn is_told_apart(&self) -> Option<bool> {
        self.contest.as_ref().map(Contest::is_told_apart)
    }

    /// The same with the candidates that do what they are called for all numbers of
    /// ranks from the first to the last. Nothing was drawn for another winner.
    #[must_use]
    pub(super) fn for_all(&self, (first, last): (u32, u32)) -> Self {
        let holds = |timed: &&Timed| timed.candidate.algorithm.condition.holds_from(first, last);
        if self.candidates.iter().all(|timed| holds(&timed)) {
            return self.clone();
        }
        let known = |timed: &Timed| matches!(timed.time, Time::Simulated(_));
        let mut candidates: Vec<Timed> = self.candidates.iter().filter(holds).copied().collect();
        // What was too slow to be simulated is slower than what was.
        candidates.sort_by_key(|timed| !known(timed));
        Self { candidates, contest: None, ..*self }
    }

    /// The winner, and what it is not told apart from.
    pub fn possible(&self) -> impl Iterator<Item = &Candidate> {
        let contest = self.contest.as_ref().filter(|contest| !contest.is_told_apart());
        let rivals = contest.map_or(&[][..], |contest| &contest.rivals);
        let tied = self.tied_places().filter(|place| !rivals.contains(place));
        let places = std::iter::once(0).chain(rivals.iter().copied()).chain(tied);
        places.filter_map(|place| self.candidates.get(place)).map(|timed| &timed.candidate)
    }

    /// Candidates that tie with the winner: less than 0.05% slower, where draws do not
    /// tell it apart.
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
