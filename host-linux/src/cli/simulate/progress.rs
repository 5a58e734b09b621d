//! How far a simulation is, on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::Console;

/// Shows share, speed and time left on a terminal; nothing otherwise.
/// Cleared when dropped.
#[derive(Debug)]
pub(super) struct ProgressLine(Option<ProgressBar>);

impl ProgressLine {
    /// For a run of about `events`.
    pub(super) fn new(console: &Console, events: u64) -> Self {
        if !console.is_watched() {
            return Self(None);
        }
        let template = "simulating [{bar:24}] {percent}%, {per_sec} events, {eta} left";
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(events), ProgressDrawTarget::stderr());
        bar.set_style(style.progress_chars("=> "));
        Self(Some(bar))
    }

    pub(super) fn show(&self, events: u64) {
        if let Self(Some(bar)) = self {
            // Handshakes have more events than were announced.
            bar.set_position(events.min(bar.length().unwrap_or(events)));
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Self(Some(bar)) = self {
            bar.finish_and_clear();
        }
    }
}
