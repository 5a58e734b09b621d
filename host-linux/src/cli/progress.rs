//! A line of progress for whoever watches.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use loggap_core::measure::{Clock, Progress};

use super::Console;
use crate::clock::HostClock;

/// How often a watched line changes.
const EVERY: Duration = Duration::from_millis(100);
/// Millionths in one.
const WHOLE: u64 = 1_000_000;

/// Shows share, time left and the widest interval on a terminal; nothing
/// otherwise. Cleared when dropped.
#[derive(Debug)]
pub(super) struct ProgressLine {
    watched: Option<Watched>,
}

#[derive(Debug)]
struct Watched {
    bar: ProgressBar,
    clock: HostClock,
    started: u64,
    shown: u64,
    relative_error_ppm: u32,
}

impl ProgressLine {
    /// For a measurement that is to come down to `relative_error_ppm`.
    pub(super) fn new(console: &Console, clock: HostClock, relative_error_ppm: u32) -> Self {
        if !console.is_watched() {
            return Self { watched: None };
        }
        let style = ProgressStyle::with_template("measuring [{bar:24}] {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(WHOLE), ProgressDrawTarget::stderr());
        bar.set_style(style.progress_chars("=> "));
        let now = clock.now();
        let watched = Watched { bar, clock, started: now, shown: now, relative_error_ppm };
        Self { watched: Some(watched) }
    }

    /// Notes how far the measurement is. Between two changes of the line this
    /// costs a reading of the clock.
    pub(super) fn show(&mut self, progress: &Progress) {
        if let Some(watched) = &mut self.watched {
            watched.show(progress);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some(watched) = &self.watched {
            watched.bar.finish_and_clear();
        }
    }
}

impl Watched {
    fn show(&mut self, progress: &Progress) {
        let now = self.clock.now();
        if self.clock.duration(now.saturating_sub(self.shown)).seconds() < EVERY.as_secs_f64() {
            return;
        }
        self.shown = now;
        let elapsed = self.clock.duration(now.saturating_sub(self.started)).seconds();
        self.bar.set_message(describe(progress, elapsed, self.relative_error_ppm));
        self.bar.set_position(u64::from(progress.spent_ppm));
    }
}

/// At most this long is left: a plan may end before its budget does.
fn describe(progress: &Progress, elapsed: f64, relative_error_ppm: u32) -> String {
    let spent = f64::from(progress.spent_ppm.max(1)) / 1e6;
    let left = elapsed * (1.0 - spent) / spent;
    let wanted = f64::from(relative_error_ppm) / 1e4;
    let interval = progress.widest_ppm.map_or_else(String::new, |widest| {
        #[allow(clippy::cast_precision_loss, reason = "shown to two digits")]
        let now = wanted * widest as f64 / 1e6;
        format!(", widest interval ±{now:.1}% (wanted ±{wanted}%)")
    });
    let lost = match progress.lost {
        0 => String::new(),
        lost => format!(", {lost} rounds lost"),
    };
    format!("at most {left:.1} s left, {} messages{interval}{lost}", progress.messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_time_left_and_interval() {
        let progress =
            Progress { spent_ppm: 250_000, widest_ppm: Some(2_000_000), messages: 1_234, lost: 0 };
        let expected = "at most 1.5 s left, 1234 messages, widest interval ±10.0% (wanted ±5%)";
        assert_eq!(describe(&progress, 0.5, 50_000), expected);
        let start = Progress { spent_ppm: 0, widest_ppm: None, messages: 0, lost: 3 };
        assert!(describe(&start, 0.0, 50_000).ends_with("0 messages, 3 rounds lost"));
    }
}
