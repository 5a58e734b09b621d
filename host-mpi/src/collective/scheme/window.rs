//! Windows (SKaMPI; Hoefler, Schneider, Lumsdaine 2008): a batch of
//! repetitions starts by the clock, one a window, whose length is found by
//! trying: longer where repetitions do not fit, shorter where all do. One that
//! is too long delays those that follow, and so does a pause of a rank: long
//! rows of late ones make the batch shorter, and only in the shortest batch the
//! window longer.

use loggap_core::units::Picos;

use super::super::judge::{Repetition, Verdict};
use super::Outcome;

/// Length of a window, and how many make a batch.
#[derive(Debug)]
pub(super) struct Window {
    length: Picos,
    count: u32,
}

impl Window {
    const LEAST: u32 = 4;
    const MOST: u32 = 64;

    pub(super) const fn new() -> Self {
        Self { length: Picos::ZERO, count: Self::LEAST }
    }

    pub(super) const fn length(&self) -> Picos {
        self.length
    }

    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn handle(&mut self, outcome: &Outcome<'_>) {
        // A rank that was ready in time and started late has lost its
        // processor: no length of windows helps.
        let late = || outcome.repetitions.iter().map(|repetition| repetition.unready);
        let too_long = |r: &&Repetition| r.verdict == Verdict::TooLong || r.unready;
        let flawed = outcome.repetitions.iter().filter(too_long).count();
        let total = outcome.repetitions.len();
        if flawed * 4 <= total {
            self.count = (self.count * 2).min(Self::MOST);
            if flawed == 0 {
                self.length = Picos(self.length.0 / 10 * 9);
            }
            return;
        }
        if longest_row(late()) * 2 > total && self.count > Self::LEAST {
            // Perhaps one pause that delayed all behind it.
            self.count = (self.count / 2).max(Self::LEAST);
            return;
        }
        // Without the lead, which is no part of the windows.
        let busy = outcome.took.since(outcome.announced).0;
        let average = busy / (total as u64 + 1);
        let longer = self.length.0.saturating_mul(2).max(average.saturating_mul(3) / 2);
        self.length = Picos(longer);
    }

    pub(super) fn diagnosis(&self) -> String {
        format!("windows are {} long, {} a batch", self.length, self.count)
    }
}

fn longest_row(late: impl Iterator<Item = bool>) -> usize {
    let rows = late.scan(0, |row, late| {
        *row = if late { *row + 1 } else { 0 };
        Some(*row)
    });
    rows.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000_000;

    fn batch(window: &mut Window, verdicts: &[Verdict], took: u64) {
        let repetition = |&verdict| Repetition {
            time: Picos(US),
            skew: Picos::ZERO,
            error: Picos::ZERO,
            verdict,
            unready: verdict == Verdict::Late,
        };
        let repetitions: Vec<_> = verdicts.iter().map(repetition).collect();
        let (announced, took) = (Picos(10 * US), Picos((10 + took) * US));
        window.handle(&Outcome { announced, took, repetitions: &repetitions });
    }

    #[test]
    fn flawed_batches_make_windows_longer_and_good_ones_make_batches_longer() {
        let mut window = Window::new();
        batch(&mut window, &[Verdict::TooLong; 4], 100);
        assert_eq!((window.length(), window.count()), (Picos(30 * US), 4));
        batch(&mut window, &[Verdict::TooLong; 4], 100);
        assert_eq!((window.length(), window.count()), (Picos(60 * US), 4));
        batch(&mut window, &[Verdict::Valid; 4], 240);
        // A tenth shorter where all are valid.
        assert_eq!((window.length(), window.count()), (Picos(54 * US), 8));
        // One of four may be flawed.
        let some = [Verdict::Valid, Verdict::Valid, Verdict::Valid, Verdict::Late].repeat(2);
        batch(&mut window, &some, 480);
        assert_eq!((window.length(), window.count()), (Picos(54 * US), 16));
    }

    #[test]
    fn a_long_row_of_late_ones_makes_the_batch_shorter() {
        let mut window = Window::new();
        batch(&mut window, &[Verdict::Valid; 4], 1);
        batch(&mut window, &[Verdict::Valid; 8], 1);
        assert_eq!(window.count(), 16);
        batch(&mut window, &[[Verdict::Valid; 7].as_slice(), &[Verdict::Late; 9]].concat(), 160);
        assert_eq!(window.count(), 8);
    }
}
