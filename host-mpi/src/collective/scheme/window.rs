//! Windows (SKaMPI; Hoefler, Schneider, Lumsdaine 2008): the repetitions of a
//! batch start by the clock, one per window. The window's length is adapted:
//! longer if repetitions do not fit, shorter if ranks mostly wait. A repetition
//! that is too long, or a pause of a rank, delays those that follow. If a rank
//! was not ready for many repetitions in a row, the batch therefore becomes
//! shorter, and only in the shortest batch the window longer.

use loggap_core::units::Picos;

use super::super::interval;
use super::super::judge::{Repetition, Verdict};
use super::Outcome;

/// Length of a window, and number of windows in a batch.
#[derive(Debug)]
pub(in crate::collective) struct Window {
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
        // processor: no window length helps.
        let unready = outcome.repetitions.iter().map(|repetition| repetition.unready);
        let too_long = |r: &&Repetition| r.verdict == Verdict::TooLong || r.unready;
        let flawed = outcome.repetitions.iter().filter(too_long).count();
        let total = outcome.repetitions.len();
        if flawed * 4 <= total {
            self.count = (self.count * 2).min(Self::MOST);
            self.shorten(outcome);
            return;
        }
        if longest_row(unready) * 2 > total && self.count > Self::LEAST {
            // Perhaps one pause that delayed all that followed.
            self.count = (self.count / 2).max(Self::LEAST);
            return;
        }
        // Without the lead, which is not part of the windows.
        let busy = outcome.took.since(outcome.announced).0;
        let average = busy / (total as u64 + 1);
        let longer = self.length.0.saturating_mul(2).max(average.saturating_mul(3) / 2);
        self.length = Picos(longer);
    }

    /// Shortens a window in which ranks mostly wait. A window that fits well
    /// stays: a shorter one would sometimes be too short.
    fn shorten(&mut self, outcome: &Outcome<'_>) {
        // The first repetition had the lead to get ready.
        let spare = outcome.repetitions.iter().skip(1).map(|repetition| repetition.spare);
        let spare = interval::median(spare).unwrap_or(Picos::ZERO);
        let Picos(length) = self.length;
        self.length = Picos(if spare.0 > length / 4 * 3 {
            length / 2
        } else if spare.0 > length / 2 {
            length / 10 * 9
        } else {
            length
        });
    }

    pub(super) fn diagnosis(&self) -> String {
        format!("windows are {} long, {} a batch", self.length, self.count)
    }
}

fn longest_row(unready: impl Iterator<Item = bool>) -> usize {
    let rows = unready.scan(0, |row, unready| {
        *row = if unready { *row + 1 } else { 0 };
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
            spare: Picos(window.length.0 / 8 * 5),
            off_percent: 0,
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
        // A tenth shorter if more than half is waiting.
        assert_eq!((window.length(), window.count()), (Picos(54 * US), 8));
        // One of four may be flawed.
        let some = [Verdict::Valid, Verdict::Valid, Verdict::Valid, Verdict::Late].repeat(2);
        batch(&mut window, &some, 480);
        assert_eq!((window.length(), window.count()), (Picos(486 * US / 10), 16));
    }

    #[test]
    fn a_long_row_without_a_ready_rank_makes_the_batch_shorter() {
        let mut window = Window::new();
        batch(&mut window, &[Verdict::Valid; 4], 1);
        batch(&mut window, &[Verdict::Valid; 8], 1);
        assert_eq!(window.count(), 16);
        batch(&mut window, &[[Verdict::Valid; 7].as_slice(), &[Verdict::Late; 9]].concat(), 160);
        assert_eq!(window.count(), 8);
    }

    #[test]
    fn a_window_in_which_ranks_hardly_do_anything_is_halved() {
        let mut window = Window { length: Picos(800 * US), count: 4 };
        let repetition = |spare| Repetition {
            time: Picos(US),
            skew: Picos::ZERO,
            error: Picos::ZERO,
            verdict: Verdict::Valid,
            unready: false,
            spare: Picos(spare * US),
            off_percent: 0,
        };
        let mut after = |spare| {
            let repetitions = [repetition(spare); 4];
            window.handle(&Outcome {
                announced: Picos(0),
                took: Picos(1),
                repetitions: &repetitions,
            });
            window.length()
        };
        assert_eq!(after(790), Picos(400 * US));
        assert_eq!(after(250), Picos(360 * US));
        assert_eq!(after(170), Picos(360 * US));
    }
}
