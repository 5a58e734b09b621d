//! Progress line of a series of simulations.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Console;

/// Line with runs done, speed and remaining time, on a terminal only. Cleared when dropped.
#[derive(Debug)]
pub(super) struct RunsLine(Option<ProgressBar>);

impl RunsLine {
    /// Creates the line for `runs` runs.
    pub(super) fn new(console: &Console, runs: u64) -> Self {
        if !console.is_watched() {
            return Self(None);
        }
        let template = "simulating [{bar:12}] {pos} of {len} runs, {per_sec}, {eta} left";
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(runs), ProgressDrawTarget::stderr());
        bar.set_style(style.progress_chars("=> "));
        Self(Some(bar))
    }

    /// Counts a completed run. Runs repeated to find the failed one do not raise the count above
    /// the total.
    pub(super) fn advance(&self) {
        if let Self(Some(bar)) = self {
            bar.set_position(bar.position().saturating_add(1).min(bar.length().unwrap_or(0)));
        }
    }
}

impl Drop for RunsLine {
    fn drop(&mut self) {
        if let Self(Some(bar)) = self {
            bar.finish_and_clear();
        }
    }
}
