//! How far a simulation is, on a terminal.

use std::cell::OnceCell;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::Console;
use crate::simulation::Progress;

/// Shows share, speed and time left on a terminal, from the first progress on;
/// nothing otherwise. Cleared when dropped.
#[derive(Debug)]
pub(super) struct ProgressLine(Option<OnceCell<ProgressBar>>);

impl ProgressLine {
    pub(super) fn new(console: &Console) -> Self {
        Self(console.is_watched().then(OnceCell::new))
    }

    pub(super) fn show(&self, Progress { events, of }: Progress) {
        if let Self(Some(bar)) = self {
            // Handshakes have more events than were announced.
            bar.get_or_init(|| bar_of(of)).set_position(events.min(of));
        }
    }
}

fn bar_of(events: u64) -> ProgressBar {
    let template = "simulating [{bar:24}] {percent}%, {per_sec} events, {eta} left";
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(Some(events), ProgressDrawTarget::stderr());
    bar.set_style(style.progress_chars("=> "));
    bar
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some(bar) = self.0.as_ref().and_then(OnceCell::get) {
            bar.finish_and_clear();
        }
    }
}
