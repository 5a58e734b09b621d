//! How repetitions are started and timed.
//!
//! A [`Scheme`] is a state machine at the root: it says what the next
//! [`Batch`] is and takes what came of it. Round time and windows start all
//! ranks by the clock; the others are those of the literature, kept to be
//! compared with, and say what is wrong with them.

mod announced;
mod barrier;
mod repeated;
mod roundtime;
mod window;

use loggap_core::units::Picos;

use super::judge::Repetition;
use repeated::Repeated;
use roundtime::{Lead, Ready};
use window::Window;

/// A scheme, by name.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum SchemeName {
    /// A start by the global clock for each repetition, as far ahead as
    /// announcing it takes.
    #[default]
    Roundtime,
    /// Starts by the global clock, one a window of adapted length.
    Window,
    /// A barrier before each repetition; each rank times itself.
    Barrier,
    /// A start as soon as a rank has heard of it; each rank times itself.
    Announced,
    /// Repetitions back to back, divided by their number.
    Loop,
    /// As loop, with another root each time.
    Rotate,
}

impl SchemeName {
    /// As on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Roundtime => "roundtime",
            Self::Window => "window",
            Self::Barrier => "barrier",
            Self::Announced => "announced",
            Self::Loop => "loop",
            Self::Rotate => "rotate",
        }
    }

    /// Why its numbers are not times of the operation.
    #[must_use]
    pub const fn flaw(self) -> Option<&'static str> {
        match self {
            Self::Roundtime | Self::Window => None,
            Self::Barrier => Some(barrier::FLAW),
            Self::Announced => Some(announced::FLAW),
            Self::Loop => Some(repeated::LOOP_FLAW),
            Self::Rotate => Some(repeated::ROTATE_FLAW),
        }
    }

    /// Whether ranks start by the clock.
    #[must_use]
    pub const fn is_synchronised(self) -> bool {
        self.flaw().is_none()
    }
}

/// How the repetitions of a batch start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Start {
    /// By the clock: so long after the announcement, and then one a window.
    Clock {
        /// Before the first.
        lead: Picos,
        /// Between one start and the next; zero where there is one only.
        window: Picos,
    },
    /// When the rank has left a barrier.
    Barrier,
    /// When the rank has heard of it.
    Announced,
    /// One after the other; timed as one.
    BackToBack {
        /// Whether each has another root.
        rotate: bool,
    },
}

impl Start {
    /// The common start of repetition `index` of a batch that begins at
    /// `first`.
    #[must_use]
    pub const fn of(self, index: u64, first: Picos) -> Picos {
        let Self::Clock { window, .. } = self else { return first };
        Picos(first.0.saturating_add(window.0.saturating_mul(index)))
    }
}

/// What is done next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Batch {
    /// How it starts.
    pub start: Start,
    /// Repetitions.
    pub count: u32,
}

/// What came of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// From the announcement until the last rank was ready.
    pub announced: Picos,
    /// From the announcement to the end.
    pub took: Picos,
    /// The repetitions, in order.
    pub repetitions: &'a [Repetition],
}

/// The state of a scheme.
#[derive(Debug)]
pub struct Scheme {
    state: State,
}

#[derive(Debug)]
enum State {
    RoundTime(Lead),
    Window(Lead, Window),
    Barrier,
    Announced,
    Repeated(Repeated),
}

impl Scheme {
    /// For a series of at most `max_time`.
    #[must_use]
    pub fn new(name: SchemeName, max_time: Picos) -> Self {
        let lead = || Lead::within(max_time);
        let state = match name {
            SchemeName::Roundtime => State::RoundTime(lead()),
            SchemeName::Window => State::Window(lead(), Window::new()),
            SchemeName::Barrier => State::Barrier,
            SchemeName::Announced => State::Announced,
            SchemeName::Loop => State::Repeated(Repeated::fixed()),
            SchemeName::Rotate => State::Repeated(Repeated::moving()),
        };
        Self { state }
    }

    /// What to do next.
    #[must_use]
    pub fn next(&self) -> Batch {
        match &self.state {
            State::RoundTime(lead) => {
                let start = Start::Clock { lead: lead.next(), window: Picos::ZERO };
                Batch { start, count: 1 }
            }
            State::Window(lead, window) => {
                let start = Start::Clock { lead: lead.next(), window: window.length() };
                Batch { start, count: window.count() }
            }
            State::Barrier => Batch { start: Start::Barrier, count: 1 },
            State::Announced => Batch { start: Start::Announced, count: 1 },
            State::Repeated(repeated) => repeated.next(),
        }
    }

    /// Takes what came of the batch.
    pub fn handle(&mut self, outcome: &Outcome<'_>) {
        let first = outcome.repetitions.first();
        let ready = if first.is_some_and(|first| first.unready) { Ready::No } else { Ready::Yes };
        match &mut self.state {
            State::RoundTime(lead) => lead.handle(outcome.announced, ready),
            State::Window(lead, window) => {
                lead.handle(outcome.announced, ready);
                window.handle(outcome);
            }
            State::Barrier | State::Announced => {}
            State::Repeated(repeated) => repeated.handle(outcome.took),
        }
    }

    /// Why most repetitions did not count, as far as this can tell.
    #[must_use]
    pub fn diagnosis(&self) -> String {
        match &self.state {
            State::RoundTime(lead) => lead.diagnosis(),
            State::Window(lead, window) => format!("{}; {}", lead.diagnosis(), window.diagnosis()),
            State::Barrier | State::Announced | State::Repeated(_) => String::new(),
        }
    }
}
