//! Progress of a run on the terminal, and Ctrl-C.

use std::ops::ControlFlow;

use loggap_core::measure::{AssessOptions, Progress, SampleStore};

use crate::terminal::{Console, Interrupt, ProgressLine};

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status<'a> {
    /// Time, messages and losses.
    pub(super) progress: Progress,
    /// Current launch, counted from 1.
    pub(super) launch: u32,
    /// Number of launches planned.
    pub(super) launches: u32,
    /// Samples so far.
    pub(super) store: &'a SampleStore<'a>,
}

/// Progress line of a run, which ends at Ctrl-C.
#[derive(Debug)]
pub struct Observer<'a> {
    line: ProgressLine,
    interrupt: &'a Interrupt,
    pub(super) console: &'a mut Console,
    /// Requested relative error, parts per million.
    relative_error_ppm: u32,
}

impl<'a> Observer<'a> {
    /// Observer of a run with this relative error as its goal, parts per million.
    pub fn new(
        interrupt: &'a Interrupt,
        console: &'a mut Console,
        relative_error_ppm: u32,
    ) -> Self {
        Self { line: ProgressLine::new(console), interrupt, console, relative_error_ppm }
    }

    /// Called while the responder serves other initiators; `position` of them are ahead.
    pub(super) fn on_queue(&mut self, position: u32) -> ControlFlow<()> {
        self.console.note(format_args!("waiting: position {position} in the responder's queue"));
        self.interrupt.flow()
    }

    /// Called after each batch, and several times a second while the run waits.
    pub(super) fn on_progress(&mut self, status: &Status<'_>) -> ControlFlow<()> {
        self.interrupt.listen();
        let wanted = self.relative_error_ppm;
        self.line.show(status.progress.spent_ppm, |elapsed| describe(status, elapsed, wanted));
        self.interrupt.flow()
    }

    /// True if the run is to stop.
    pub(super) fn is_broken_off(&self) -> bool {
        self.interrupt.is_requested()
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
    let row = |row: usize| store.row(row, &AssessOptions::default());
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
    use loggap_core::measure::{Experiment, Quantity, RowHeader, Sample};
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
