//! How far a simulation is, on a terminal.

use std::cell::OnceCell;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::Console;
use crate::simulation::Progress;

/// Shows share and time left on a terminal, from the first progress on;
/// nothing otherwise. Cleared when dropped.
#[derive(Debug)]
pub(super) struct ProgressLine(Option<OnceCell<ProgressBar>>);

impl ProgressLine {
    pub(super) fn new(console: &Console) -> Self {
        Self(console.is_watched().then(OnceCell::new))
    }

    pub(super) fn show(&self, Progress { done, of }: Progress) {
        if let Self(Some(bar)) = self {
            // Handshakes take more than was announced.
            let done = done.min(of);
            bar.get_or_init(|| bar_of(done, of)).set_position(done);
        }
    }
}

/// A bar whose speed counts from `done` on.
fn bar_of(done: u64, of: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("simulating [{bar:24}] {percent}%, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(Some(of), ProgressDrawTarget::stderr());
    bar.set_style(style.progress_chars("=> "));
    bar.set_position(done);
    bar.reset_eta();
    bar
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some(bar) = self.0.as_ref().and_then(OnceCell::get) {
            bar.finish_and_clear();
        }
    }
}
