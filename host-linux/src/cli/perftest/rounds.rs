//! Rounds over one open session.

use std::time::Duration;

use loggap_core::measure::{Experiment, Initiator, Link, Outcome, SessionError};
use loggap_core::units::Picos;

use crate::cli::Interrupt;
use crate::link::LinkError;
use crate::machine::clock::{Deadline, HostClock};

/// Round trips that are announced at a time, and between two looks at Ctrl-C.
const CHUNK: u32 = 500;
/// The same where the time is looked at, too.
const TIMED_CHUNK: u32 = 64;

/// Values of a size that are kept where the time decides: 256 MiB of them, with which
/// it ends before.
pub(super) const MOST_VALUES: usize = 1 << 25;

/// Values of one kind of round.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) elapsed: Vec<Picos>,
    /// Rounds of which a message was lost.
    pub(super) lost: u64,
    /// What ended them before their time, after those that there are.
    pub(super) failure: Option<SessionError<LinkError>>,
}

/// How often a round is repeated: so many times, or, where there is a time,
/// until it is over.
pub(super) type Repetitions = (u32, Option<Duration>);

/// Rounds over an open session.
pub(super) trait Rounds {
    /// Repeats a round.
    fn repeat(
        &mut self,
        experiment: Experiment,
        repetitions: Repetitions,
    ) -> Result<Values, SessionError<LinkError>>;

    /// Repeats a round of so many messages of `size` bytes, each answered by
    /// one as long, of which so many may be without an answer.
    fn repeat_both_ways(
        &mut self,
        size: u32,
        messages_and_window: (u32, u32),
        repetitions: Repetitions,
    ) -> Result<Values, SessionError<LinkError>>;

    /// Says goodbye and closes the link.
    fn close(self: Box<Self>) -> Result<(), SessionError<LinkError>>;
}

/// An open session over the link's own type, so that its own code is timed,
/// and what stands around it.
pub(super) struct Test<'b, L> {
    pub(super) session: Initiator<'b, HostClock, L>,
    pub(super) interrupt: &'b Interrupt,
}

impl<L> Test<'_, L> {
    /// Runs `some` rounds, at most `chunk` at a time, until all are done, the
    /// time is over, or somebody asked to stop.
    fn in_chunks(
        &mut self,
        chunk: u32,
        (times, time): Repetitions,
        mut some: impl FnMut(&mut Self, u32, &mut Values) -> Result<(), SessionError<LinkError>>,
    ) -> Result<Values, SessionError<LinkError>> {
        let deadline = time.map(Deadline::after);
        let capacity = usize::try_from(times).unwrap_or(0).min(1 << 20);
        let mut values = Values { elapsed: Vec::with_capacity(capacity), ..Values::default() };
        let mut left = times;
        while !self.interrupt.is_requested() {
            let count = if deadline.is_some() { chunk } else { chunk.min(left) };
            if let Err(error) = some(self, count, &mut values) {
                if values.elapsed.is_empty() {
                    return Err(error);
                }
                values.failure = Some(error);
                break;
            }
            left = left.saturating_sub(count);
            if deadline.is_some() && values.elapsed.len() >= MOST_VALUES {
                break;
            }
            match &deadline {
                Some(deadline) if deadline.expired() => break,
                None if left == 0 => break,
                _ => {}
            }
        }
        Ok(values)
    }
}

impl<L: Link<Error = LinkError>> Rounds for Test<'_, L> {
    fn repeat(
        &mut self,
        experiment: Experiment,
        repetitions: Repetitions,
    ) -> Result<Values, SessionError<LinkError>> {
        let chunk = match (repetitions.1, experiment.messages) {
            (None, _) => CHUNK,
            (Some(_), 1) => TIMED_CHUNK,
            // Bursts are long: the time is looked at after each.
            (Some(_), _) => 1,
        };
        self.in_chunks(chunk, repetitions, |test, count, values| {
            let experiments = vec![experiment; usize::try_from(count).unwrap_or(1)];
            test.session.run(&experiments, |outcome| match outcome {
                Outcome::Sample(sample) => values.elapsed.push(sample.elapsed),
                Outcome::Late(_) => {}
                Outcome::Lost(_) => values.lost += 1,
            })
        })
    }

    fn repeat_both_ways(
        &mut self,
        size: u32,
        messages_and_window: (u32, u32),
        repetitions: Repetitions,
    ) -> Result<Values, SessionError<LinkError>> {
        self.in_chunks(1, repetitions, |test, _, values| {
            match test.session.both_ways(size, messages_and_window)? {
                Some(elapsed) => values.elapsed.push(elapsed),
                None => values.lost += 1,
            }
            Ok(())
        })
    }

    fn close(self: Box<Self>) -> Result<(), SessionError<LinkError>> {
        self.session.close().map(drop)
    }
}
