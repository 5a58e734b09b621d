//! Schemes by which repetitions are started and timed.
//!
//! A `Scheme` is a state machine at the root: it gives the next `Batch` and
//! takes its [`Outcome`]. Round time and windows start all ranks by the clock.
//! The others are those of the literature, kept for comparison, each with its
//! flaw in words.

mod repeated;
mod roundtime;
mod window;

use loggap_core::units::Picos;

use super::judge::Repetition;
use crate::library::option_name;
use repeated::Repeated;
use roundtime::{Lead, Ready};
use window::Window;

/// Name of a scheme.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum SchemeName {
    /// A start by the global clock for each repetition, with a lead that
    /// follows the latency of announcements.
    #[default]
    Roundtime,
    /// Starts by the global clock, one per window of adapted length.
    Window,
    /// A barrier before each repetition; each rank times itself.
    Barrier,
    /// A start as soon as a rank receives the announcement; each rank times itself.
    Announced,
    /// Repetitions back to back, divided by their number.
    Loop,
    /// As loop, with another root in each repetition.
    Rotate,
}

impl SchemeName {
    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        option_name(&self)
    }

    /// Reason why its times are not those of the operation; `None` without a flaw.
    #[must_use]
    pub const fn flaw(self) -> Option<&'static str> {
        Some(match self {
            Self::Roundtime | Self::Window => return None,
            Self::Barrier => {
                "ranks leave the barrier at different times, and each is timed from its own start"
            }
            Self::Announced => {
                "ranks hear of a start at different times, while its announcement is still under \
                 way, and each is timed from its own start"
            }
            Self::Loop => {
                "repetitions overlap like a pipeline: this is a rate at the root, not the time of \
                 one"
            }
            Self::Rotate => {
                "repetitions with different roots still overlap: this is a rate, not the time of one"
            }
        })
    }

    /// True if ranks start by the clock.
    #[must_use]
    pub const fn is_synchronised(self) -> bool {
        self.flaw().is_none()
    }
}

/// Start of the repetitions of a batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Start {
    /// By the clock: the first after a lead, then one per window.
    Clock {
        /// Time from the announcement to the first start.
        lead: Picos,
        /// Time from one start to the next; zero if there is only one.
        window: Picos,
    },
    /// After a barrier.
    Barrier,
    /// On receipt of the announcement.
    Announced,
    /// One after the other, timed as a whole.
    BackToBack {
        /// True if each repetition has another root.
        rotate: bool,
    },
}

impl Start {
    /// Common start of repetition `index` of a batch that begins at `first`.
    #[must_use]
    pub const fn of(self, index: u64, first: Picos) -> Picos {
        let Self::Clock { window, .. } = self else { return first };
        Picos(first.0.saturating_add(window.0.saturating_mul(index)))
    }
}

/// A batch of repetitions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Batch {
    /// Start of its repetitions.
    pub start: Start,
    /// Number of repetitions.
    pub count: u32,
}

/// Outcome of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// Time from the announcement until the last rank was ready.
    pub announced: Picos,
    /// Time from the announcement to the end.
    pub took: Picos,
    /// Repetitions, in order.
    pub repetitions: &'a [Repetition],
}

/// State of a scheme.
#[derive(Debug)]
pub(super) enum Scheme {
    RoundTime(Lead),
    Window(Lead, Window),
    /// A start each, which needs no state.
    Each(Start),
    Repeated(Repeated),
}

impl Scheme {
    /// Initial state for a series of at most `max_time`.
    pub(super) fn new(name: SchemeName, max_time: Picos) -> Self {
        let lead = Lead::within(max_time);
        match name {
            SchemeName::Roundtime => Self::RoundTime(lead),
            SchemeName::Window => Self::Window(lead, Window::new()),
            SchemeName::Barrier => Self::Each(Start::Barrier),
            SchemeName::Announced => Self::Each(Start::Announced),
            SchemeName::Loop => Self::Repeated(Repeated::fixed()),
            SchemeName::Rotate => Self::Repeated(Repeated::moving()),
        }
    }

    /// Next batch.
    pub(super) fn next(&self) -> Batch {
        let clock = |lead: &Lead, window| Start::Clock { lead: lead.next(), window };
        match self {
            Self::RoundTime(lead) => Batch { start: clock(lead, Picos::ZERO), count: 1 },
            Self::Window(lead, window) => {
                Batch { start: clock(lead, window.length()), count: window.count() }
            }
            Self::Each(start) => Batch { start: *start, count: 1 },
            Self::Repeated(repeated) => repeated.next(),
        }
    }

    /// Takes the outcome of the batch.
    pub(super) fn handle(&mut self, outcome: &Outcome<'_>) {
        let first = outcome.repetitions.first();
        let ready = if first.is_some_and(|first| first.unready) { Ready::No } else { Ready::Yes };
        match self {
            Self::RoundTime(lead) => lead.handle(outcome.announced, ready),
            Self::Window(lead, window) => {
                lead.handle(outcome.announced, ready);
                window.handle(outcome);
            }
            Self::Each(_) => {}
            Self::Repeated(repeated) => repeated.handle(outcome.took),
        }
    }

    /// Likely reason why most repetitions did not count; empty if unknown.
    pub(super) fn diagnosis(&self) -> String {
        match self {
            Self::RoundTime(lead) => lead.diagnosis(),
            Self::Window(lead, window) => format!("{}; {}", lead.diagnosis(), window.diagnosis()),
            Self::Each(_) | Self::Repeated(_) => String::new(),
        }
    }
}

/// The last `KEPT` times, in no order.
#[derive(Debug, Default)]
pub(super) struct Recent<const KEPT: usize> {
    times: Vec<Picos>,
    /// Index at which the next one is stored.
    place: usize,
}

impl<const KEPT: usize> Recent<KEPT> {
    pub(super) const fn new() -> Self {
        Self { times: Vec::new(), place: 0 }
    }

    /// Keeps `time`, and returns all.
    pub(super) fn keep(&mut self, time: Picos) -> Vec<Picos> {
        match self.times.get_mut(self.place) {
            Some(place) => *place = time,
            None => self.times.push(time),
        }
        self.place = (self.place + 1) % KEPT;
        self.times.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_repetition_has_a_barrier_or_an_announcement_of_its_own() {
        for (name, start) in
            [(SchemeName::Barrier, Start::Barrier), (SchemeName::Announced, Start::Announced)]
        {
            assert_eq!(Scheme::new(name, Picos(1)).next(), Batch { start, count: 1 });
            assert!(!name.is_synchronised());
        }
    }
}
