//! Rounds during which an end was preempted.
//!
//! The count of preemptions is read before and after each batch ([`Clock::interruptions`]). If it
//! rose, all rounds of the batch are discarded, slow and fast ones alike: a selection by value
//! would bias the medians. On a busy machine batches are short, and budgets are planned for the
//! share of the time that counts.

use super::budget::Left;
use super::planner::{Planner, round};
use crate::measure::{Experiment, Outcome};
use crate::units::Picos;
use crate::wide::scaled;

/// Planned length of a batch on a busy machine: below a time slice, 0.7 to 4 ms in Linux, so that
/// most batches fall within one.
pub const BRIEF_BATCH: Picos = Picos(300_000_000);

/// Length from which on rounds count in any case: they outlast time slices and mostly wait for the
/// link.
pub const TIME_SLICE: Picos = Picos(2_000_000_000);

/// Threshold of a busy machine: discarded batches take more than one part in this many of the time.
const BUSY_SHARE: u64 = 8;

/// Lower bound for the share of the time that counts, in planning: one part in this many.
const LEAST_SHARE: u64 = 64;

/// Totals of discarded batches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Disturbed {
    /// Completed rounds in them.
    rounds: u64,
    /// Lost rounds in them beyond the first of each size and batch.
    pub(super) repeated_losses: u64,
    /// Time that they took.
    time: Picos,
    /// Number of discarded batches.
    batches: u64,
    /// Time at which the current batch was requested. Its outcome is counted when the next is
    /// requested.
    asked: Picos,
    is_hit: bool,
}

impl Disturbed {
    /// Records that another batch is requested at `elapsed`.
    pub(super) fn on_poll(&mut self, elapsed: Picos) {
        if core::mem::take(&mut self.is_hit) {
            self.batches = self.batches.saturating_add(1);
            self.time = Picos(self.time.0.saturating_add(elapsed.since(self.asked).0));
        }
        self.asked = elapsed;
    }

    /// Begins a further launch: a discarded batch at the end of the last one is not counted, since
    /// the wait between launches would pass for its duration.
    pub(super) fn begin_launch(&mut self) {
        self.is_hit = false;
    }

    /// Duration that few discarded batches exceed: three times their mean, or less after few.
    const fn longest_expected(&self) -> Picos {
        Picos(self.time.0.saturating_mul(3) / self.batches.saturating_add(1))
    }
}

impl<const N: usize> Planner<'_, N> {
    /// Handles a round that does not count, since an end was preempted during its batch, whose
    /// earlier outcomes are `before`. Its size is known to arrive; losses of one size in a batch
    /// count as one. Bursts become shorter if none has counted yet.
    pub fn handle_disturbed(&mut self, outcome: &Outcome, before: &[Outcome]) {
        self.disturbed.is_hit = true;
        let experiment = outcome.experiment();
        let Outcome::Lost(_) = outcome else {
            self.disturbed.rounds = self.disturbed.rounds.saturating_add(1);
            self.note_arrival(experiment);
            if self.is_busy() {
                self.shorten(experiment);
            }
            return;
        };
        let is_lost =
            |other: &Outcome| matches!(other, Outcome::Lost(lost) if lost.size == experiment.size);
        if before.iter().any(is_lost) {
            self.lost = self.lost.saturating_add(1);
            self.disturbed.repeated_losses = self.disturbed.repeated_losses.saturating_add(1);
        } else {
            self.handle_lost(experiment);
        }
    }

    /// True if the round is expected to outlast other processes' time slices.
    pub(super) fn outlasts_slices(&self, experiment: &Experiment) -> bool {
        let row = self.store.find(experiment.size).ok();
        let planned = row.and_then(|row| {
            round(&self.store, &self.warmup, row, experiment.quantity).map(|(_, length)| length)
        });
        planned.is_some_and(|length| length >= TIME_SLICE)
    }

    /// Number of rounds discarded because an end was preempted during their batch.
    #[must_use]
    pub const fn disturbed(&self) -> u64 {
        self.disturbed.rounds
    }

    /// True if discarded batches take much of the time.
    #[must_use]
    #[cfg_attr(target_os = "none", inline(never))]
    pub const fn is_busy(&self) -> bool {
        self.disturbed.time.0 > self.disturbed.asked.0 / BUSY_SHARE
    }

    /// Latest time for another batch, which may take long on a busy machine; [`Picos::MAX`] on
    /// others, where its length is known before.
    #[must_use]
    pub const fn last_poll(&self) -> Picos {
        if !self.is_busy() {
            return Picos::MAX;
        }
        self.allowed.since(self.disturbed.longest_expected())
    }

    /// Remaining budget; of the time only the share that is expected to count.
    pub(super) fn left(&self, elapsed: Picos) -> Left {
        let left = self.allowed.since(elapsed);
        let counts = elapsed.since(self.disturbed.time).0.max(elapsed.0 / LEAST_SHARE);
        Left {
            time: Picos(scaled(left.0, counts.max(1), elapsed.0.max(1))),
            messages: self.options.max_messages.saturating_sub(self.messages),
        }
    }
}
