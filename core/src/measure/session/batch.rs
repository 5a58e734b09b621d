//! Conversion of experiments to rounds on the wire.

use crate::measure::{Experiment, Invalid, Quantity, SessionError};
use crate::wire::{Bounds, Limited, Refusal, Round, Rounds};

/// Rounds announced in one frame.
#[derive(Debug)]
pub(in crate::measure) struct Batch {
    /// Rounds; consecutive equal experiments are repetitions of one round.
    pub(in crate::measure) rounds: Rounds,
    /// Number of experiments covered.
    pub(in crate::measure) taken: usize,
}

impl Batch {
    /// Batch of the first `experiments`: as many as fit into one frame and into `most` rounds.
    pub(in crate::measure) fn of(experiments: &[Experiment], most: u32) -> Self {
        let mut rounds = Rounds::new();
        let mut taken = 0_usize;
        for experiment in experiments {
            if u32::try_from(taken).is_ok_and(|taken| taken >= most) {
                break;
            }
            let round = round_of(experiment);
            match rounds.last_mut() {
                Some(last) if is_repetition(last, &round) => last.repeats += 1,
                _ => {
                    if rounds.push(round).is_err() {
                        break;
                    }
                }
            }
            taken += 1;
        }
        Self { rounds, taken }
    }
}

fn is_repetition(last: &Round, next: &Round) -> bool {
    last.repeats < u16::MAX && Round { repeats: 1, ..*last } == *next
}

const fn round_of(experiment: &Experiment) -> Round {
    Round::plain(experiment.messages, experiment.size)
}

/// Checks all experiments before anything is sent.
pub(in crate::measure) fn check<E>(
    experiments: &[Experiment],
    agreed: &Bounds,
) -> Result<(), SessionError<E>> {
    for experiment in experiments {
        let invalid = match *experiment {
            Experiment { size: 0, .. } => Some(Invalid::EmptyMessage),
            Experiment { messages: 0, .. } => Some(Invalid::NoMessages),
            Experiment { quantity: Quantity::Receive, messages: 2.., .. } => {
                Some(Invalid::SeveralReceives)
            }
            _ => None,
        };
        if let Some(invalid) = invalid {
            return Err(SessionError::Invalid(invalid));
        }
        agreed.check(&[round_of(experiment)]).map_err(beyond)?;
        // The initiator is silent while it waits.
        let (asked, allowed) = (experiment.delay.0, agreed.silence.0);
        if asked > allowed {
            return Err(SessionError::OutOfBounds { what: Limited::Silence, asked, allowed });
        }
    }
    Ok(())
}

/// Converts a violation of the agreed bounds, found before anything was sent.
pub(in crate::measure) const fn beyond<E>(refusal: Refusal) -> SessionError<E> {
    match refusal {
        Refusal::Bounds { what, asked, allowed } => {
            SessionError::OutOfBounds { what, asked, allowed }
        }
        other => SessionError::Refused(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Picos;
    use crate::wire::ROUNDS_PER_BATCH;

    type Error = SessionError<()>;

    fn experiment(size: u32) -> Experiment {
        Experiment { quantity: Quantity::Gap, messages: 10, delay: Picos::ZERO, size }
    }

    #[test]
    fn equal_experiments_in_a_row_are_one_round_repeated() {
        let batch = Batch::of(&[experiment(1), experiment(1), experiment(2)], 100);
        let repeats: std::vec::Vec<_> = batch.rounds.iter().map(|r| (r.size, r.repeats)).collect();
        assert_eq!((batch.taken, repeats), (3, std::vec![(1, 2), (2, 1)]));
    }

    #[test]
    fn a_batch_takes_no_more_than_a_frame_and_the_bounds_hold() {
        let many: std::vec::Vec<_> = (1..100).map(experiment).collect();
        assert_eq!(Batch::of(&many, 1_000).taken, ROUNDS_PER_BATCH);
        assert_eq!(Batch::of(&many, 5).taken, 5);
    }

    #[test]
    fn what_cannot_be_run_is_rejected_with_the_reason() {
        let agreed = Bounds { message: 100, ..Bounds::default() };
        let large = Error::OutOfBounds { what: Limited::Message, asked: 101, allowed: 100 };
        assert_eq!(check(&[experiment(1), experiment(101)], &agreed), Err(large));
        let empty = Error::Invalid(Invalid::EmptyMessage);
        assert_eq!(check(&[experiment(0)], &agreed), Err(empty));
        let none = Experiment { messages: 0, ..experiment(1) };
        assert_eq!(check(&[none], &agreed), Err(Error::Invalid(Invalid::NoMessages)));
        let receive = Experiment { quantity: Quantity::Receive, ..experiment(1) };
        assert_eq!(check(&[receive], &agreed), Err(Error::Invalid(Invalid::SeveralReceives)));
    }
}
