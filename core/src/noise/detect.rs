//! Selfish detour benchmark: detects interruptions of the processor that it runs on (Beckman et
//! al., "The Influence of Operating Systems on the Performance of Collective Operations at Extreme
//! Scale", IEEE Cluster 2006; netgauge's `noise` pattern, method selfish).
//!
//! A loop does nothing but read a clock. The smallest gap between two readings is the cost of the
//! loop itself; a gap that exceeds it by more than a threshold holds a detour:
//!
//! ```text
//! readings   | | | |              | | |
//!                  ^ start        ^
//!                  |--- gap ------|     duration = gap - smallest gap
//! ```
//!
//! The detour began at most one smallest gap after `start`, the last reading before it. One gap is
//! one detour: two interruptions without a reading between them cannot be told apart, and two with
//! a reading between them stay two. Unlike netgauge, which stops after a number of detours, the
//! loop runs for a given time, and the time before the first detour counts.

use super::trace::Detour;
use crate::measure::Clock;
use crate::stats::Sorted;
use crate::units::Picos;

/// Memory of a detector; the shorter slice limits the number of detours kept.
#[derive(Debug)]
pub struct DetectorMemory<'m> {
    /// Detours, in order of time.
    pub detours: &'m mut [Detour],
    /// Durations of the detours, for their order statistics.
    pub durations: &'m mut [Picos],
}

/// Totals of an observation; detours that were dropped count unless a field says otherwise.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoiseSummary {
    /// Observation time.
    pub observed: Picos,
    /// Smallest gap between two readings, found when the detector was created.
    pub smallest_gap: Picos,
    /// Number of detours.
    pub detours: u64,
    /// Number of detours for which the lent memory had no room.
    pub dropped: u64,
    /// Total duration of all detours.
    pub lost: Picos,
    /// Duration of the longest detour.
    pub longest: Picos,
    /// Median duration of the detours kept; `None` if there are none.
    pub median: Option<Picos>,
    /// 99th percentile of the durations of the detours kept.
    pub p99: Option<Picos>,
}

/// Result of a [`Detector`].
#[derive(Clone, Copy, Debug)]
pub struct Detected<'m> {
    /// Detours kept, in order and without overlap: every one that began within
    /// [`Detected::length`].
    pub detours: &'m [Detour],
    /// Length of the trace: the time until the first detour was dropped, or the whole observation.
    pub length: Picos,
    /// Totals of the whole observation.
    pub summary: NoiseSummary,
}

/// Reads a clock in a loop and keeps the detours.
///
/// [`Detector::observe`] may be called repeatedly, so that the caller can do other work in between.
/// That work counts as a detour unless [`Detector::resume`] excludes it.
#[derive(Debug)]
pub struct Detector<'m> {
    memory: DetectorMemory<'m>,
    /// Number of detours in the memory.
    kept: usize,
    smallest: u64,
    /// Longest gap that is not a detour, in ticks.
    limit: u64,
    /// Last reading, in ticks.
    last: u64,
    /// Observation time up to the last reading, in ticks.
    observed: u64,
    /// Observation time at which the first detour was dropped, in ticks.
    full_at: Option<u64>,
    detours: u64,
    lost: u64,
    longest: u64,
}

impl<'m> Detector<'m> {
    /// Detector of detours longer than `threshold`. Takes up to milliseconds: it searches for the
    /// smallest gap and writes to all of the memory, since the first touch of a page would look
    /// like a detour.
    pub fn new<C: Clock>(clock: &C, threshold: Picos, memory: DetectorMemory<'m>) -> Self {
        memory.detours.fill(Detour::default());
        memory.durations.fill(Picos::ZERO);
        let smallest = smallest_gap(clock);
        Self {
            memory,
            kept: 0,
            smallest,
            limit: smallest.saturating_add(clock.ticks(threshold)),
            last: clock.now(),
            observed: 0,
            full_at: None,
            detours: 0,
            lost: 0,
            longest: 0,
        }
    }

    /// Reads the clock for `duration`, or to the end of a detour that lasts longer.
    pub fn observe<C: Clock>(&mut self, clock: &C, duration: Picos) {
        let end = self.observed.saturating_add(clock.ticks(duration));
        while self.observed < end {
            let now = clock.now();
            let gap = now.saturating_sub(self.last);
            if gap > self.limit {
                self.keep(clock, gap);
            }
            self.last = now;
            self.observed = self.observed.saturating_add(gap);
        }
    }

    /// Excludes the time since the last reading: the caller's work is no detour, and the trace
    /// continues as if it had taken no time.
    pub fn resume<C: Clock>(&mut self, clock: &C) {
        self.last = clock.now();
    }

    /// Observation time so far.
    #[must_use]
    pub fn observed<C: Clock>(&self, clock: &C) -> Picos {
        clock.duration(self.observed)
    }

    /// Records the detour in a gap that begins at the last reading.
    #[cold]
    fn keep<C: Clock>(&mut self, clock: &C, gap: u64) {
        let ticks = gap.saturating_sub(self.smallest);
        self.detours = self.detours.saturating_add(1);
        self.lost = self.lost.saturating_add(ticks);
        self.longest = self.longest.max(ticks);
        // Start and end are converted separately, so that rounding causes no overlap.
        let start = clock.duration(self.observed);
        let end = clock.duration(self.observed.saturating_add(ticks));
        let duration = end.since(start);
        let rooms =
            (self.memory.detours.get_mut(self.kept), self.memory.durations.get_mut(self.kept));
        // A trace with a missing detour would be wrong: once one is dropped, all later ones are.
        match rooms {
            (Some(detour), Some(kept)) if self.full_at.is_none() => {
                *detour = Detour { start, duration };
                *kept = duration;
                self.kept += 1;
            }
            _ => self.full_at = self.full_at.or(Some(self.observed)),
        }
    }

    /// Ends the observation and returns its result.
    #[must_use]
    pub fn finish<C: Clock>(self, clock: &C) -> Detected<'m> {
        let DetectorMemory { detours, durations } = self.memory;
        let durations = durations.get_mut(..self.kept).unwrap_or_default();
        let durations = Sorted::new(durations);
        Detected {
            detours: detours.get(..self.kept).unwrap_or_default(),
            length: clock.duration(self.full_at.unwrap_or(self.observed)),
            summary: NoiseSummary {
                observed: clock.duration(self.observed),
                smallest_gap: clock.duration(self.smallest),
                detours: self.detours,
                dropped: self.detours.saturating_sub(self.kept as u64),
                lost: clock.duration(self.lost),
                longest: clock.duration(self.longest),
                median: durations.median(),
                p99: durations.quantile(99, 100),
            },
        }
    }
}

/// Smallest gap between two readings, in ticks. As in netgauge: rounds of 25 gaps until 100 rounds
/// in a row bring no smaller one, but at most 10,000 rounds.
fn smallest_gap<C: Clock>(clock: &C) -> u64 {
    const GAPS: u32 = 25;
    const IN_VAIN: u32 = 100;
    const ROUNDS: u32 = 10_000;
    let mut smallest = u64::MAX;
    let mut in_vain = 0;
    for _ in 0..ROUNDS {
        let before = smallest;
        let mut last = clock.now();
        for _ in 0..GAPS {
            let now = clock.now();
            smallest = smallest.min(now.saturating_sub(last));
            last = now;
        }
        in_vain = if smallest < before { 0 } else { in_vain + 1 };
        if in_vain >= IN_VAIN {
            break;
        }
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::super::{Trace, read, write};
    use super::*;
    use core::cell::{Cell, RefCell};
    use quickcheck::quickcheck;
    use std::string::String;
    use std::vec;
    use std::vec::Vec;

    /// Ticks between two readings.
    const STEP: u64 = 20;
    /// Ticks at which the observation begins, long after calibration.
    const LATER: u64 = 1_000_000;

    /// Clock with 500 ps a tick that a program cannot read while a detour lasts.
    struct Interrupted {
        now: Cell<u64>,
        /// Start and duration in ticks; the next detour is last.
        detours: RefCell<Vec<(u64, u64)>>,
    }

    impl Interrupted {
        /// Clock with detours at the given times after `LATER` and with the given durations.
        fn by(detours: &[(u64, u64)]) -> Self {
            let later = detours.iter().rev().map(|&(start, ticks)| (LATER + start, ticks));
            Self { now: Cell::new(0), detours: RefCell::new(later.collect()) }
        }

        /// Detector whose observation begins at `LATER`.
        fn detector<'m>(&self, threshold: u64, memory: DetectorMemory<'m>) -> Detector<'m> {
            let mut detector = Detector::new(self, Picos(threshold * 500), memory);
            assert!(self.now.get() < LATER);
            self.now.set(LATER - STEP);
            detector.resume(self);
            detector
        }
    }

    impl Clock for Interrupted {
        fn now(&self) -> u64 {
            let mut now = self.now.get() + STEP;
            let mut detours = self.detours.borrow_mut();
            while let Some(&(start, ticks)) = detours.last().filter(|(start, _)| *start < now) {
                assert!(start >= self.now.get());
                now += ticks;
                detours.pop();
            }
            self.now.set(now);
            now
        }

        fn duration(&self, ticks: u64) -> Picos {
            Picos(ticks.saturating_mul(500))
        }

        fn ticks(&self, duration: Picos) -> u64 {
            duration.0.div_ceil(500)
        }

        fn read_cost(&self) -> Picos {
            Picos(STEP * 500)
        }
    }

    /// Detours in ticks, length of their trace in ticks, and totals.
    type Found = (Vec<(u64, u64)>, u64, NoiseSummary);

    fn found(detours: &[(u64, u64)], (threshold, duration): (u64, u64), room: usize) -> Found {
        let clock = Interrupted::by(detours);
        let (mut kept, mut durations) = (vec![Detour::default(); room], vec![Picos::ZERO; room]);
        let memory = DetectorMemory { detours: &mut kept, durations: &mut durations };
        let mut detector = clock.detector(threshold, memory);
        detector.observe(&clock, Picos(duration * 500));
        let Detected { detours, length, summary } = detector.finish(&clock);
        let ticks = |detour: &Detour| (detour.start.0 / 500, detour.duration.0 / 500);
        (detours.iter().map(ticks).collect(), length.0 / 500, summary)
    }

    #[test]
    fn a_detour_has_the_time_of_the_reading_before_it_and_the_gap_less_the_smallest() {
        let (detours, length, summary) = found(&[(1_005, 300), (2_000, 71)], (50, 5_000), 8);
        assert_eq!(detours, [(1_000, 300), (2_000, 71)]);
        // The loop ends at the first reading past the end.
        assert_eq!(length, 5_011);
        assert_eq!(summary.observed, Picos(5_011 * 500));
        assert_eq!(summary.smallest_gap, Picos(STEP * 500));
        assert_eq!((summary.detours, summary.dropped), (2, 0));
        assert_eq!((summary.lost, summary.longest), (Picos(371 * 500), Picos(300 * 500)));
    }

    #[test]
    fn only_what_is_longer_than_the_threshold_is_a_detour() {
        let (detours, _, summary) = found(&[(100, 49), (300, 50), (500, 51)], (50, 1_000), 8);
        assert_eq!(detours, [(499, 51)]);
        assert_eq!(summary.detours, 1);
        let none = found(&[(100, 50)], (50, 1_000), 8);
        assert!(none.0.is_empty());
        assert_eq!((none.2.median, none.2.p99, none.2.longest), (None, None, Picos::ZERO));
    }

    #[test]
    fn detours_with_a_reading_between_them_stay_apart_and_others_are_one() {
        let (apart, ..) = found(&[(100, 200), (320, 100)], (50, 1_000), 8);
        assert_eq!(apart, [(100, 200), (320, 100)]);
        let (one, ..) = found(&[(100, 200), (101, 100)], (50, 1_000), 8);
        assert_eq!(one, [(100, 300)]);
    }

    #[test]
    fn full_memory_is_counted_and_the_trace_ends_before_what_was_dropped() {
        let injected = [(100, 60), (1_000, 70), (2_000, 900), (4_000, 80)];
        let (detours, length, summary) = found(&injected, (50, 6_000), 2);
        assert_eq!(detours.len(), 2);
        assert_eq!((summary.detours, summary.dropped), (4, 2));
        // Totals include the dropped detours.
        assert_eq!(summary.longest, Picos(900 * 500));
        assert_eq!(summary.lost, Picos((60 + 70 + 900 + 80) * 500));
        assert!((1_980..=2_020).contains(&length), "{length}");
        assert_eq!(found(&injected, (50, 6_000), 0).2.dropped, 4);
    }

    #[test]
    fn a_detour_at_the_end_is_observed_whole() {
        let (detours, length, _) = found(&[(980, 5_000)], (50, 1_000), 8);
        assert_eq!((detours, length), (vec![(980, 5_000)], 6_000));
    }

    #[test]
    fn the_time_between_observations_counts_unless_it_is_left_out() {
        for leaves_out in [false, true] {
            let clock = Interrupted::by(&[]);
            let (mut detours, mut durations) = ([Detour::default(); 4], [Picos::ZERO; 4]);
            let memory = DetectorMemory { detours: &mut detours, durations: &mut durations };
            let mut detector = clock.detector(50, memory);
            detector.observe(&clock, Picos(1_000 * 500));
            clock.now.set(clock.now.get() + 700);
            if leaves_out {
                detector.resume(&clock);
            }
            detector.observe(&clock, Picos(1_000 * 500));
            assert!(detector.observed(&clock) >= Picos(2_000 * 500));
            let found = detector.finish(&clock).summary;
            let expected = if leaves_out { (0, Picos::ZERO) } else { (1, Picos(700 * 500)) };
            assert_eq!((found.detours, found.lost), expected);
        }
    }

    #[test]
    fn medians_and_percentiles_are_of_the_durations() {
        let injected: Vec<_> = (0..100u64).map(|n| (n * 10_000, 200 - n)).collect();
        let (_, _, summary) = found(&injected, (50, 1_000_000), 100);
        assert_eq!(summary.detours, 100);
        assert_eq!(summary.median, Some(Picos(150 * 500 + 250)));
        assert_eq!(summary.p99, Some(Picos(199 * 500)));
    }

    quickcheck! {
        fn what_is_detected_is_a_trace_that_is_written_and_read_again(
            gaps: Vec<(u16, u16)>
        ) -> bool {
            let mut time = 0;
            let mut injected = Vec::new();
            for (gap, ticks) in gaps {
                let start = time + u64::from(gap) + STEP;
                injected.push((start, u64::from(ticks)));
                time = start;
            }
            // Injected starts are in progress time of the program; detected ones include earlier
            // detours.
            let mut passed = 0;
            for detour in &mut injected {
                let own = detour.1;
                detour.0 += passed;
                passed += own;
            }
            let clock = Interrupted::by(&injected);
            let (mut detours, mut durations) = (vec![Detour::default(); 64], vec![Picos::ZERO; 64]);
            let memory = DetectorMemory { detours: &mut detours, durations: &mut durations };
            let mut detector = clock.detector(100, memory);
            detector.observe(&clock, Picos((time + passed + 1_000) * 500));
            let found = detector.finish(&clock);
            let expected: u64 = injected.iter().map(|d| d.1).filter(|ticks| *ticks > 100).sum();
            if found.detours.is_empty() || found.summary.dropped > 0 {
                return expected == 0 || found.summary.dropped > 0;
            }
            let mut text = String::new();
            write(&mut text, found.detours, found.length).unwrap();
            let mut again = vec![Detour::default(); found.detours.len()];
            let (_, length) = read(text.as_bytes(), &mut again).unwrap();
            let trace = Trace::new(&again, length).unwrap();
            trace.total() == found.summary.lost && found.summary.lost >= Picos(expected * 500)
        }
    }
}
