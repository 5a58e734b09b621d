//! Noise: time that the system takes from the processor of this thread.

use loggap_core::noise::{Detected, Detector, DetectorMemory, Detour, NoiseSummary};
use loggap_core::units::Picos;
use serde::{Deserialize, Serialize};

use super::clock::HostClock;

/// Default threshold, 1 µs: shorter gaps are no detours. On virtual machines two readings of the
/// counter are often 0.05 to 0.7 µs further apart than usual although the processor was not taken;
/// interrupts take longer than 1 µs, and there is next to nothing in between (`docs/noise.md`).
pub const THRESHOLD: Picos = Picos(1_000_000);

/// Options of an observation.
#[derive(Clone, Copy, Debug)]
pub struct NoiseOptions {
    /// Duration of the observation.
    pub duration: Picos,
    /// Length above which a gap is a detour.
    pub threshold: Picos,
    /// Most detours that are kept; each takes 24 bytes.
    pub room: usize,
}

/// How to continue after a part of the observation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// Observe the next part.
    Observe,
    /// Observe the next part, and exclude the time since the last one.
    ObserveFromNow,
    /// End the observation.
    End,
}

/// Detours of a processor.
#[derive(Clone, Debug)]
pub struct MeasuredNoise {
    /// Detours in order; complete for the first [`MeasuredNoise::length`].
    pub detours: Vec<Detour>,
    /// Time that `detours` cover.
    pub length: Picos,
    /// Statistics of the whole observation.
    pub summary: NoiseSummary,
    /// Length above which a gap is a detour.
    pub threshold: Picos,
}

/// Observes the processor of this thread, which should be pinned. After each 10 ms `next` is called
/// with the time observed so far and decides how to continue; with [`Next::Observe`] its own work
/// is part of the observation.
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

/// Statistics of noise in SI units.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct NoiseRecord {
    /// Duration of the observation.
    pub observed_s: f64,
    /// Length above which a gap is a detour.
    pub threshold_s: f64,
    /// Smallest distance of two readings of the clock in the observing loop.
    pub smallest_gap_s: f64,
    /// Number of detours.
    pub detours: u64,
    /// Number of these that were not kept for lack of memory.
    pub dropped: u64,
    /// Total duration of detours.
    pub lost_s: f64,
    /// Total duration of detours, as a fraction of the observation.
    pub lost_share: f64,
    /// Detours per second.
    pub rate_per_s: f64,
    /// Median duration; `None` without detours.
    pub median_s: Option<f64>,
    /// 99th percentile of the durations.
    pub p99_s: Option<f64>,
    /// Longest duration.
    pub longest_s: Option<f64>,
}

impl MeasuredNoise {
    /// Statistics in SI units.
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
