//! Progress line of a simulation.

use std::cell::{Cell, OnceCell};
use std::time::Duration;

use indicatif::HumanDuration;

use loggap_core::units::Picos;

use crate::output::number;
use crate::simulation::Progress;
use crate::terminal::{Bar, Console};

/// Reliability of the share done as a measure of the remaining time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Pace {
    /// Operations and messages take about equally long.
    Even,
    /// Concurrent messages slow a network down, and handshakes are not counted in advance.
    Uneven,
}

/// Message about a run that a signal ended.
pub(super) fn interrupted(Progress { done, time, .. }: Progress, processes: u32) -> String {
    let whose = if processes > 1 { "of process 0 " } else { "" };
    let seconds = |time: Picos| number::in_units(time.seconds(), number::TIME);
    let until = time.map(|time| format!(", at {} of the simulated time", seconds(time)));
    format!(
        "interrupted after {} events {whose}of the simulation{}",
        number::count(done),
        until.unwrap_or_default()
    )
}

const TEMPLATE: &str = "simulating [{bar:24}] {percent}% of the operations in {elapsed}{msg}";

/// Line with the share done, and the remaining time if it can be estimated, on a terminal only.
#[derive(Debug)]
pub(super) struct ProgressLine {
    bar: Option<OnceCell<Bar>>,
    pace: Pace,
    /// Start of the current run: a pattern may be computed in part, then stored and run anew.
    began: Cell<Moment>,
    /// Largest amount done so far: the line never shows less than before.
    done: Cell<u64>,
}

/// Amount of work done at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    done: u64,
    /// Time since the line was first shown.
    at: Duration,
}

impl Moment {
    /// Shortest run time that allows an estimate.
    const LEAST: Duration = Duration::from_secs(1);

    /// Estimate of the time until all `of` is done, from the progress since `self`; `None` before a
    /// second has passed and a 50th is done.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn left(self, now: Self, of: u64) -> Option<Duration> {
        let (done, took) = (now.done.checked_sub(self.done)?, now.at.checked_sub(self.at)?);
        let known = took >= Self::LEAST && done >= of / 50 && now.done < of;
        let each = took.as_secs_f64() / done.max(1) as f64;
        known.then(|| Duration::from_secs_f64(each * (of - now.done) as f64))
    }
}

impl ProgressLine {
    pub(super) fn new(console: &Console, pace: Pace) -> Self {
        let bar = console.is_watched().then(OnceCell::new);
        Self { bar, pace, began: Cell::default(), done: Cell::default() }
    }

    pub(super) fn show(&self, Progress { done, of, .. }: Progress) {
        let Some(bar) = &self.bar else { return };
        let Bar(bar) = bar.get_or_init(|| Bar::shown(of, TEMPLATE));
        let now = Moment { done: done.min(of), at: bar.elapsed() };
        let before = self.done.replace(now.done);
        if before == 0 || now.done < before {
            self.began.set(now);
        }
        bar.set_position(now.done.max(bar.position()));
        let left = match self.pace {
            Pace::Even => self.began.get().left(now, of),
            Pace::Uneven => None,
        };
        let left = left.map(|left| format!(", {:#} left", HumanDuration(left)));
        bar.set_message(left.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_never_falls_where_a_run_begins_anew() {
        let (bar, began, done) = (Some(OnceCell::new()), Cell::default(), Cell::default());
        let line = ProgressLine { bar, pace: Pace::Even, began, done };
        let shown = [10, 310, 0, 260, 420].map(|done| {
            line.show(Progress { done, of: 1_000, time: None });
            (line.bar.as_ref().unwrap().get().unwrap().0.position(), line.began.get().done)
        });
        assert_eq!(shown, [(10, 10), (310, 10), (310, 0), (310, 260), (420, 260)]);
    }

    #[test]
    fn the_time_left_follows_the_present_run_and_needs_a_second() {
        let at = |done, millis| Moment { done, at: Duration::from_millis(millis) };
        let left = |began: Moment, now| began.left(now, 1_000).map(|left| left.as_millis());
        assert_eq!(left(at(0, 0), at(250, 2_000)), Some(6_000));
        assert_eq!(left(at(0, 0), at(250, 999)), None);
        assert_eq!(left(at(0, 0), at(19, 2_000)), None);
        // Begun anew after ten seconds.
        assert_eq!(left(at(100, 10_000), at(200, 11_000)), Some(8_000));
        assert_eq!(left(at(500, 10_000), at(200, 11_000)), None);
        assert_eq!(left(at(0, 0), at(1_000, 2_000)), None);
    }
}
