//! Rounds during which a processor was taken away from an end.
//!
//! A count is read before and after each batch ([`Clock::interruptions`]). Where
//! it rose, all rounds of the batch are left out, long and short ones alike: a
//! selection by value would bias the medians. On a busy machine batches are
//! brief, and budgets are planned for the share of the time that counts.

use super::budget::Left;
use super::planner::{Planner, round};
use crate::measure::{Clock, Experiment, Initiator, Kept, Link, Outcome, Sample, SessionError};
use crate::units::Picos;
use crate::wide::scaled;
use crate::wire::ROUNDS_PER_BATCH;

/// The planned length of a batch where processors are taken away: less than
/// a time slice, 0.7 to 4 ms in Linux, so that most batches fall within one.
pub(super) const BRIEF: Picos = Picos(300_000_000);

/// Rounds of this length outlast time slices: they mostly wait for the link,
/// and count in any case.
const SLICE: Picos = Picos(2_000_000_000);

/// The machine is busy where batches that are left out take more than one part
/// in this many of the time.
const BUSY_SHARE: u64 = 8;

/// Smallest share of the time that is expected to count: one part in this many.
const LEAST_SHARE: u64 = 64;

/// Batches that do not count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Disturbed {
    /// Their rounds that were not lost.
    rounds: u64,
    /// Their lost rounds but one of each size and batch.
    pub(super) repeated_losses: u64,
    /// Time that they took.
    time: Picos,
    /// How many they are.
    batches: u64,
    /// When the batch under way was asked for; whether it counts is not known
    /// before the next.
    asked: Picos,
    is_hit: bool,
}

impl Disturbed {
    /// Another batch is asked for after `elapsed`.
    pub(super) fn on_poll(&mut self, elapsed: Picos) {
        if core::mem::take(&mut self.is_hit) {
            self.batches = self.batches.saturating_add(1);
            self.time = Picos(self.time.0.saturating_add(elapsed.since(self.asked).0));
        }
        self.asked = elapsed;
    }

    /// What a batch that is hit takes on average.
    pub(super) fn usual_length(&self) -> Picos {
        Picos(self.time.0 / self.batches.max(1))
    }
}

impl<const N: usize> Planner<'_, N> {
    /// Runs the next batch over `session` and handles its outcomes; `keep` gets
    /// the samples that count. False when the plan is over.
    ///
    /// # Errors
    ///
    /// As [`Initiator::run`].
    pub fn run_batch<C: Clock, L: Link>(
        &mut self,
        session: &mut Initiator<'_, C, L>,
        now: Picos,
        keep: &mut impl FnMut(&Sample),
    ) -> Result<bool, SessionError<L::Error>> {
        let batch = self.poll_batch::<ROUNDS_PER_BATCH>(now);
        if batch.is_empty() {
            return Ok(false);
        }
        session.rest_at(self.sustained());
        if self.is_busy() {
            session.meet()?;
        }
        let mut outcomes = heapless::Vec::<Outcome, ROUNDS_PER_BATCH>::new();
        let ended = session.run(&batch, |outcome| {
            let _ = outcomes.push(outcome); // one of each round
        });
        let is_clean = !session.was_interrupted();
        for (index, outcome) in outcomes.iter().enumerate() {
            let counts = is_clean || self.outlasts_slices(outcome.experiment());
            match outcome {
                _ if !counts => {
                    self.handle_disturbed(outcome, outcomes.get(..index).unwrap_or(&[]))
                }
                Outcome::Lost(experiment) => self.handle_lost(experiment),
                Outcome::Late(experiment) => self.handle_late(experiment),
                Outcome::Sample(sample) => {
                    if self.handle_sample(sample) == Kept::Stored {
                        keep(sample);
                    }
                }
            }
        }
        ended.map(|()| true)
    }

    /// Takes note of a round that does not count, as a processor was taken away during its
    /// batch, which began with `before`. Its size has arrived; what the batch lost of one size
    /// counts as one loss. Bursts none of which has counted yet become shorter.
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

    /// Whether a round is likely to take longer than others may have a processor.
    fn outlasts_slices(&self, experiment: &Experiment) -> bool {
        let row = self.store.find(experiment.size).ok();
        let planned = row.and_then(|row| {
            round(&self.store, &self.warmup, row, experiment.quantity).map(|(_, length)| length)
        });
        planned.is_some_and(|length| length >= SLICE)
    }

    /// Rounds left out because a processor was taken away during their batch.
    #[must_use]
    pub const fn disturbed(&self) -> u64 {
        self.disturbed.rounds
    }

    /// Whether much of the time goes into batches that do not count.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.disturbed.time.0 > self.disturbed.asked.0 / BUSY_SHARE
    }

    /// Remaining budget; of the time the share that is likely to count.
    pub(super) fn left(&self, elapsed: Picos) -> Left {
        let left = self.allowed.since(elapsed);
        let counts = elapsed.since(self.disturbed.time).0.max(elapsed.0 / LEAST_SHARE);
        Left {
            time: Picos(scaled(left.0, counts.max(1), elapsed.0.max(1))),
            messages: self.options.max_messages.saturating_sub(self.messages),
        }
    }
}
