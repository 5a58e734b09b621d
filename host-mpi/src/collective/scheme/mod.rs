//! Schemes by which repetitions are started and timed.
//!
//! A [`Scheme`] is a state machine at the root: it gives the next [`Batch`] and
//! takes its [`Outcome`]. Round time and windows start all ranks by the clock.
//! The others are those of the literature, kept for comparison, each with its
//! flaw in words.

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

    /// Reason why its times are not those of the operation; `None` without a flaw.
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
    /// Initial state for a series of at most `max_time`.
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

    /// Next batch.
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

    /// Takes the outcome of the batch.
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

    /// Likely reason why most repetitions did not count; empty if unknown.
    #[must_use]
    pub fn diagnosis(&self) -> String {
        match &self.state {
            State::RoundTime(lead) => lead.diagnosis(),
            State::Window(lead, window) => format!("{}; {}", lead.diagnosis(), window.diagnosis()),
            State::Barrier | State::Announced | State::Repeated(_) => String::new(),
        }
    }
}
