//! A batch of the planner over a session.

use super::planner::Planner;
use crate::measure::{Clock, Initiator, Kept, Link, Outcome, Sample, SessionError};
use crate::units::Picos;
use crate::wire::ROUNDS_PER_BATCH;

impl<const N: usize> Planner<'_, N> {
    /// Runs the next batch over `session` and handles its outcomes; `keep` is called with each
    /// stored sample. False when the plan is over.
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
}
