//! Experiments as rounds on the wire.

use heapless::Vec;

use super::{Experiment, Invalid, Quantity};
use crate::units::Picos;
use crate::wire::{Bounds, Limited, Refusal, ReplyPolicy, Round, Rounds};

/// The rounds announced in one frame.
#[derive(Debug)]
pub(super) struct Batch {
    /// What is announced; equal experiments in a row are repetitions.
    pub(super) rounds: Rounds,
    /// Experiments that it stands for.
    pub(super) taken: usize,
}

/// Why an experiment cannot be run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Rejected {
    Invalid(Invalid),
    OutOfBounds { what: Limited, asked: u64, allowed: u64 },
}

impl Batch {
    /// As many of `experiments`, from the front, as fit into one frame and
    /// into `most` rounds.
    pub(super) fn of(experiments: &[Experiment], most: u32) -> Self {
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
    Round {
        messages: experiment.messages,
        size: experiment.size,
        reply_size: experiment.size,
        policy: ReplyPolicy::AfterLast,
        timed: false,
        repeats: 1,
        pause: Picos::ZERO,
    }
}

/// The batch of one round whose receives the responder times.
pub(super) fn far_receive(messages: u32, size: u32, pause: Picos) -> Batch {
    let round = Round {
        messages,
        size,
        reply_size: size,
        policy: ReplyPolicy::AfterLast,
        timed: true,
        repeats: 1,
        pause,
    };
    Batch { rounds: Vec::from_array([round]), taken: 1 }
}

/// Checks every experiment before anything is sent.
pub(super) fn check(experiments: &[Experiment], agreed: &Bounds) -> Result<(), Rejected> {
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
            return Err(Rejected::Invalid(invalid));
        }
        within(Limited::Rounds, 1, u64::from(agreed.rounds))?;
        // The responder hears nothing while the initiator waits.
        within(Limited::Silence, experiment.delay.0, agreed.silence.0)?;
        agreed.check(&[round_of(experiment)]).map_err(|refusal| match refusal {
            Refusal::Bounds { what, asked, allowed } => {
                Rejected::OutOfBounds { what, asked, allowed }
            }
            _ => Rejected::Invalid(Invalid::NoMessages),
        })?;
    }
    Ok(())
}

fn within(what: Limited, asked: u64, allowed: u64) -> Result<(), Rejected> {
    if asked <= allowed { Ok(()) } else { Err(Rejected::OutOfBounds { what, asked, allowed }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ROUNDS_PER_BATCH;

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
        let large = Rejected::OutOfBounds { what: Limited::Message, asked: 101, allowed: 100 };
        assert_eq!(check(&[experiment(1), experiment(101)], &agreed), Err(large));
        let empty = Rejected::Invalid(Invalid::EmptyMessage);
        assert_eq!(check(&[experiment(0)], &agreed), Err(empty));
        let none = Experiment { messages: 0, ..experiment(1) };
        assert_eq!(check(&[none], &agreed), Err(Rejected::Invalid(Invalid::NoMessages)));
        let receive = Experiment { quantity: Quantity::Receive, ..experiment(1) };
        assert_eq!(check(&[receive], &agreed), Err(Rejected::Invalid(Invalid::SeveralReceives)));
    }
}
