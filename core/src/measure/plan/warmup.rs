//! Warm-up: runs until the median round trip is stable.

use crate::measure::Sample;
use crate::stats::Sorted;
use crate::units::{PerByte, Picos};
use crate::wide::scaled;

/// Round trips in a window, whose medians are compared.
const WINDOW: usize = 8;
/// Medians of consecutive windows count as equal if they differ by at most one part in this many.
const TOLERANCE: u64 = 16;

/// Round trips at the smallest and the largest size during the warm-up.
#[derive(Clone, Debug)]
pub(in crate::measure) struct Warmup {
    ends: [End; 2],
    /// Time per byte that the link sustains; zero before the pilot.
    pub(in crate::measure) sustained: PerByte,
}

#[derive(Clone, Debug, Default)]
struct End {
    size: u32,
    window: heapless::Vec<u64, WINDOW>,
    /// Median of the last full window, in ps; before it, the first round trip.
    latest: u64,
    /// Number of full windows.
    windows: u32,
    stable: bool,
    relaunched: bool,
}

impl Warmup {
    pub(in crate::measure) fn new(smallest: u32, largest: u32) -> Self {
        let ends = [smallest, largest].map(|size| End { size, ..End::default() });
        Self { ends, sustained: PerByte::ZERO }
    }

    pub(in crate::measure) fn handle(&mut self, sample: &Sample) {
        for end in &mut self.ends {
            if end.size == sample.experiment.size {
                end.add(sample.elapsed.0);
            }
        }
    }

    /// Restarts the warm-up for a further launch on the same link: one window at the smallest size
    /// is enough.
    pub(in crate::measure) fn again(&mut self) {
        let [smallest, _] = &mut self.ends;
        smallest.window.clear();
        smallest.stable = false;
        smallest.relaunched = true;
    }

    /// Replaces the largest size by `largest`, as longer messages do not arrive.
    pub(in crate::measure) fn end_at(&mut self, largest: u32) {
        let [smallest, end] = &mut self.ends;
        *end = End { size: largest, latest: smallest.latest, stable: true, ..End::default() };
    }

    /// True if there was no round trip at one of the sizes yet.
    pub(in crate::measure) fn is_unknown(&self) -> bool {
        self.ends.iter().any(|end| end.latest == 0)
    }

    /// True if two consecutive windows agreed at both sizes.
    pub(in crate::measure) fn is_stable(&self) -> bool {
        self.ends.iter().all(|end| end.stable)
    }

    /// Expected round trip at `size`, on the line through both ends; zero before the first.
    pub(in crate::measure) fn expected(&self, size: u32) -> Picos {
        let [small, large] = &self.ends;
        let (low, high) = (small.latest, large.latest);
        let whole = large.size.saturating_sub(small.size);
        if whole == 0 {
            return Picos(low);
        }
        let part = size.saturating_sub(small.size);
        let rise = scaled(high.saturating_sub(low), part.into(), whole.into());
        Picos(low.saturating_add(rise))
    }
}

impl End {
    fn add(&mut self, elapsed: u64) {
        if self.windows == 0 && self.window.is_empty() {
            self.latest = elapsed;
        }
        // Cannot be full: it is emptied below.
        let _ = self.window.push(elapsed);
        if self.window.is_full() {
            let median = Sorted::new(&mut self.window).median().unwrap_or(elapsed);
            let near = median.abs_diff(self.latest) <= self.latest / TOLERANCE;
            self.stable = self.relaunched || near && self.windows > 0;
            self.windows = self.windows.saturating_add(1);
            self.latest = median;
            self.window.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Experiment, Quantity};

    fn feed(warmup: &mut Warmup, size: u32, elapsed: u64) {
        let quantity = Quantity::RoundTrip;
        let experiment = Experiment { quantity, messages: 1, delay: Picos::ZERO, size };
        warmup.handle(&Sample { experiment, delay: Picos::ZERO, elapsed: Picos(elapsed) });
    }

    #[test]
    fn it_takes_two_equal_windows_at_both_ends() {
        let mut warmup = Warmup::new(1, 101);
        for round in 0..16 {
            assert!(!warmup.is_stable());
            feed(&mut warmup, 1, 1_000 + round);
        }
        assert!(!warmup.is_stable());
        (0..16).for_each(|_| feed(&mut warmup, 101, 3_000));
        assert!(warmup.is_stable());
        assert_eq!(warmup.expected(51).0.abs_diff(2_000), 5);
    }

    #[test]
    fn windows_agree_within_a_sixteenth() {
        for (second, agree) in [(10_600, true), (9_400, true), (10_700, false), (9_300, false)] {
            let mut warmup = Warmup::new(1, 1);
            (0..8).for_each(|_| feed(&mut warmup, 1, 10_000));
            (0..8).for_each(|_| feed(&mut warmup, 1, second));
            assert_eq!(warmup.is_stable(), agree, "{second} after 10,000");
        }
    }

    #[test]
    fn falling_round_trips_are_not_stable() {
        let mut warmup = Warmup::new(1, 1);
        for window in 0..4 {
            (0..8).for_each(|_| feed(&mut warmup, 1, 10_000 >> window));
            assert!(!warmup.is_stable());
        }
        (0..8).for_each(|_| feed(&mut warmup, 1, 1_250));
        assert!(warmup.is_stable());
    }
}
