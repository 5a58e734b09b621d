//! Progress line of a measurement.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use loggap_core::measure::{Clock, SampleStore};
use loggap_core::stats::Confidence;

use super::Console;
use crate::machine::clock::HostClock;
use crate::measure::Status;

/// Interval between updates of the line.
const EVERY: Duration = Duration::from_millis(100);
/// Parts per million in 1.
const WHOLE: u64 = 1_000_000;

/// Line with share, remaining time and current estimates, on a terminal only. Cleared when dropped.
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
}

impl ProgressLine {
    pub(super) fn new(console: &Console) -> Self {
        if !console.is_watched() {
            return Self { watched: None };
        }
        let style = ProgressStyle::with_template("measuring [{bar:12}] {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(WHOLE), ProgressDrawTarget::stderr());
        bar.set_style(style.progress_chars("=> "));
        let clock = HostClock::monotonic_raw();
        let now = clock.now();
        let watched = Watched { bar, clock, started: now, shown: now };
        Self { watched: Some(watched) }
    }

    /// Updates the progress of a measurement with the target `relative_error_ppm`. Between two
    /// redraws this costs one reading of the clock.
    pub(super) fn show(&mut self, status: &Status<'_>, relative_error_ppm: u32) {
        self.show_share(status.progress.spent_ppm, |elapsed| {
            describe(status, elapsed, relative_error_ppm)
        });
    }

    /// Updates the share of work done. If a redraw is due, draws it with the text that `describe`
    /// makes of the elapsed seconds, and returns true.
    pub(super) fn show_share(
        &mut self,
        done_ppm: u32,
        describe: impl FnOnce(f64) -> String,
    ) -> bool {
        self.watched.as_mut().is_some_and(|watched| watched.show(done_ppm, describe))
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
    fn show(&mut self, done_ppm: u32, describe: impl FnOnce(f64) -> String) -> bool {
        let now = self.clock.now();
        if self.clock.duration(now.saturating_sub(self.shown)).seconds() < EVERY.as_secs_f64() {
            return false;
        }
        self.shown = now;
        let elapsed = self.clock.duration(now.saturating_sub(self.started)).seconds();
        self.bar.set_message(describe(elapsed));
        self.bar.set_position(u64::from(done_ppm));
        true
    }
}

/// Text of the line: remaining time, launch, current estimates, and the widest interval.
fn describe(status: &Status<'_>, elapsed: f64, relative_error_ppm: u32) -> String {
    let progress = &status.progress;
    let spent = f64::from(progress.spent_ppm.max(1)) / 1e6;
    let left = elapsed * (1.0 - spent) / spent;
    let wanted = f64::from(relative_error_ppm) / 1e4;
    let interval = progress.widest_ppm.map_or_else(String::new, |widest| {
        #[allow(clippy::cast_precision_loss, reason = "shown to two digits")]
        let now = wanted * widest as f64 / 1e6;
        format!(", ±{now:.1}% (wanted ±{wanted}%)")
    });
    let lost = match progress.lost {
        0 => String::new(),
        lost => format!(", {lost} rounds lost"),
    };
    format!(
        "{left:.1} s left, launch {} of {}{}{interval}{lost}",
        status.launch,
        status.launches,
        estimates(status.store)
    )
}

/// Half round trip at the smallest size and bandwidth at the largest, if known.
fn estimates(store: &SampleStore<'_>) -> String {
    let row = |row: usize| store.row(row, Confidence::P95, 0);
    let half_rtt = row(0).and_then(|row| row.half_rtt);
    let half_rtt = half_rtt.map(|found| format!(", RTT/2 {:.2} us", found.value.seconds() * 1e6));
    let last = row(store.len().saturating_sub(1));
    let last = last.and_then(|row| Some((row.size.0, row.gap?.value.seconds())));
    #[allow(clippy::cast_precision_loss, reason = "shown to two digits")]
    let bandwidth = last.filter(|(_, gap)| *gap > 0.0).map(|(size, gap)| size as f64 / gap);
    let bandwidth = bandwidth.map(|rate| format!(", {:.3} GB/s", rate * 1e-9));
    half_rtt.into_iter().chain(bandwidth).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::measure::{Experiment, Progress, Quantity, RowHeader, Sample};
    use loggap_core::units::Picos;

    #[test]
    fn the_line_says_time_left_estimates_and_interval() {
        let (mut rows, mut values) = ([RowHeader::default(); 2], [0; 64]);
        let mut store = SampleStore::new(&mut rows, &mut values);
        let progress =
            Progress { spent_ppm: 250_000, widest_ppm: Some(2_000_000), messages: 1_234, lost: 0 };
        let start = Progress { spent_ppm: 0, widest_ppm: None, messages: 0, lost: 3 };
        let line = |store: &SampleStore<'_>, progress, elapsed| {
            describe(&Status { progress, launch: 2, launches: 5, store }, elapsed, 50_000)
        };
        assert!(line(&store, start, 0.0).ends_with("launch 2 of 5, 3 rounds lost"));
        for (size, messages, elapsed) in
            [(8, 1, 5_000_000), (1_000, 1, 8_000_000), (1_000, 5, 12_000_000)]
        {
            let quantity = if messages == 1 { Quantity::RoundTrip } else { Quantity::Gap };
            let experiment = Experiment { quantity, messages, delay: Picos::ZERO, size };
            let sample = Sample { experiment, delay: Picos::ZERO, elapsed: Picos(elapsed) };
            store.insert(&sample).unwrap();
        }
        let expected = "1.5 s left, launch 2 of 5, RTT/2 2.50 us, 1.000 GB/s, ±10.0% (wanted ±5%)";
        assert_eq!(line(&store, progress, 0.5), expected);
    }
}
