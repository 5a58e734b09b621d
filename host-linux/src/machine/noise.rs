//! What the system takes from the processor that this thread runs on.

use loggap_core::noise::{Detected, Detector, DetectorMemory, Detour, NoiseSummary};
use loggap_core::units::Picos;
use serde::{Deserialize, Serialize};

use super::clock::HostClock;

/// What is no longer than this is no detour, unless told otherwise: 1 µs. On
/// virtual machines two readings of the counter are often 0.05 to 0.7 µs
/// further apart than others without anybody taking the processor, and
/// interrupts take longer than 1 µs; between the two there is next to nothing
/// (`docs/noise.md`).
pub const THRESHOLD: Picos = Picos(1_000_000);

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct NoiseOptions {
    /// For how long.
    pub duration: Picos,
    /// Detours are longer than this.
    pub threshold: Picos,
    /// The most detours that are kept; each takes 24 bytes.
    pub room: usize,
}

/// What to do after a part of the time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// Observe the next part.
    Observe,
    /// The same, and leave out what has passed since the last part.
    ObserveFromNow,
    /// End here.
    End,
}

/// Detours of a processor.
#[derive(Clone, Debug)]
pub struct MeasuredNoise {
    /// In order: all of the first [`MeasuredNoise::length`].
    pub detours: Vec<Detour>,
    /// The length of the trace of these detours.
    pub length: Picos,
    /// Figures of the whole time.
    pub summary: NoiseSummary,
    /// Detours are longer than this.
    pub threshold: Picos,
}

/// Observes the processor of this thread, which should be pinned. After each
/// 10 ms `next` decides, given the time observed so far; as long as it says
/// [`Next::Observe`], what it does itself is observed.
pub fn observe(
    clock: &HostClock,
    options: &NoiseOptions,
    mut next: impl FnMut(Picos) -> Next,
) -> MeasuredNoise {
    const PART: Picos = Picos(10_000_000_000);
    let mut detours = vec![Detour::default(); options.room];
    let mut durations = vec![Picos::ZERO; options.room];
    let memory = DetectorMemory { detours: &mut detours, durations: &mut durations };
    let mut detector = Detector::new(clock, options.threshold, memory);
    detector.resume(clock);
    loop {
        let left = options.duration.since(detector.observed(clock));
        detector.observe(clock, left.min(PART));
        let observed = detector.observed(clock);
        if observed >= options.duration {
            break;
        }
        match next(observed) {
            Next::Observe => {}
            Next::ObserveFromNow => detector.resume(clock),
            Next::End => break,
        }
    }
    let Detected { detours: kept, length, summary } = detector.finish(clock);
    let kept = kept.len();
    detours.truncate(kept);
    MeasuredNoise { detours, length, summary, threshold: options.threshold }
}

/// The figures of noise in SI units.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct NoiseRecord {
    /// For how long the clock was read.
    pub observed_s: f64,
    /// Detours are longer than this.
    pub threshold_s: f64,
    /// What a turn of the loop takes that reads the clock.
    pub smallest_gap_s: f64,
    /// Detours.
    pub detours: u64,
    /// Of these, those that were not kept, as there was no room.
    pub dropped: u64,
    /// Duration of all detours together.
    pub lost_s: f64,
    /// The same as a share of the time observed.
    pub lost_share: f64,
    /// Detours a second.
    pub rate_per_s: f64,
    /// Median duration; `None` without any detour.
    pub median_s: Option<f64>,
    /// 99th percentile of the durations.
    pub p99_s: Option<f64>,
    /// The longest.
    pub longest_s: Option<f64>,
}

impl MeasuredNoise {
    /// Its figures.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "shown to three digits")]
    pub fn record(&self) -> NoiseRecord {
        let NoiseSummary { observed, smallest_gap, detours, dropped, lost, longest, median, p99 } =
            self.summary;
        let observed_s = observed.seconds();
        let each_second = |value: f64| if observed_s > 0.0 { value / observed_s } else { 0.0 };
        NoiseRecord {
            observed_s,
            threshold_s: self.threshold.seconds(),
            smallest_gap_s: smallest_gap.seconds(),
            detours,
            dropped,
            lost_s: lost.seconds(),
            lost_share: each_second(lost.seconds()),
            rate_per_s: each_second(detours as f64),
            median_s: median.map(Picos::seconds),
            p99_s: p99.map(Picos::seconds),
            longest_s: (detours > 0).then(|| longest.seconds()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000_000;

    fn options(duration: u64, threshold: u64) -> NoiseOptions {
        NoiseOptions {
            duration: Picos(duration * MILLI),
            threshold: Picos(threshold * MILLI),
            room: 1_000,
        }
    }

    #[test]
    fn time_that_is_left_out_is_no_detour_and_other_time_is() {
        let clock = HostClock::calibrated();
        for (next, expected) in [(Next::Observe, 1), (Next::ObserveFromNow, 0)] {
            let mut asked = 0;
            // 1.5 s: longer than a busy machine takes a processor away.
            let found = observe(&clock, &options(30, 1_500), |_| {
                asked += 1;
                if asked == 1 {
                    std::thread::sleep(std::time::Duration::from_secs(2));
                }
                next
            });
            assert_eq!(found.summary.detours, expected, "{:?}", found.summary);
            assert!(found.summary.observed >= Picos(30 * MILLI));
        }
    }

    #[test]
    fn who_ends_early_has_what_was_observed() {
        let clock = HostClock::calibrated();
        let found = observe(&clock, &options(60_000, 1), |_| Next::End);
        let record = found.record();
        assert!(record.observed_s >= 0.01 && record.observed_s < 60.0, "{record:?}");
        assert_eq!(record.detours, found.detours.len() as u64 + record.dropped);
        assert_eq!(record.median_s.is_some(), record.detours > 0);
    }
}
