//! Progress lines, on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use loggap_core::measure::Clock;

use super::Console;
use crate::machine::clock::HostClock;

/// Interval between updates of the line.
const EVERY: Duration = Duration::from_millis(100);
/// Parts per million in 1.
const WHOLE: u64 = 1_000_000;

/// Bar on standard error. Cleared when dropped.
#[derive(Debug)]
pub(crate) struct Bar(pub(crate) ProgressBar);

impl Bar {
    /// Creates a bar of `length` steps; `None` if standard error is no terminal.
    fn new(console: &Console, length: u64, template: &str) -> Option<Self> {
        console.is_watched().then(|| Self::shown(length, template))
    }

    /// Shows a bar of `length` steps.
    pub(crate) fn shown(length: u64, template: &str) -> Self {
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        bar.set_style(style.progress_chars("=> "));
        Self(bar)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Line of a measurement: share of the work done, and a text.
#[derive(Debug)]
pub(crate) struct ProgressLine(Option<Watched>);

#[derive(Debug)]
struct Watched {
    bar: Bar,
    clock: HostClock,
    started: u64,
    shown: u64,
}

impl ProgressLine {
    pub(crate) fn new(console: &Console) -> Self {
        let bar = Bar::new(console, WHOLE, "measuring [{bar:12}] {wide_msg}");
        Self(bar.map(|bar| {
            let clock = HostClock::monotonic_raw();
            let now = clock.now();
            Watched { bar, clock, started: now, shown: now }
        }))
    }

    /// Updates the share of work done. If a redraw is due, draws it with the text that `describe`
    /// makes of the elapsed seconds, and returns true. Between two redraws this costs one reading
    /// of the clock.
    pub(crate) fn show(&mut self, done_ppm: u32, describe: impl FnOnce(f64) -> String) -> bool {
        self.0.as_mut().is_some_and(|watched| watched.show(done_ppm, describe))
    }
}

impl Watched {
    fn show(&mut self, done_ppm: u32, describe: impl FnOnce(f64) -> String) -> bool {
        let now = self.clock.now();
        if self.clock.duration(now.saturating_sub(self.shown)).seconds() < EVERY.as_secs_f64() {
            return false;
        }
        self.shown = now;
        let elapsed = self.clock.duration(now.saturating_sub(self.started)).seconds();
        self.bar.0.set_message(describe(elapsed));
        self.bar.0.set_position(u64::from(done_ppm));
        true
    }
}

/// Line of a series of simulations: runs done, speed and remaining time.
#[derive(Debug)]
pub(crate) struct RunsLine(Option<Bar>);

impl RunsLine {
    /// Creates the line for `runs` runs.
    pub(crate) fn new(console: &Console, runs: u64) -> Self {
        let template = "simulating [{bar:12}] {pos} of {len} runs, {per_sec}, {eta} left";
        Self(Bar::new(console, runs, template))
    }

    /// Counts a completed run. Runs repeated to find the failed one do not raise the count above
    /// the total.
    pub(crate) fn advance(&self) {
        if let Self(Some(Bar(bar))) = self {
            bar.set_position(bar.position().saturating_add(1).min(bar.length().unwrap_or(0)));
        }
    }
}
