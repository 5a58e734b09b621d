//! Rounds over one open session.

use std::time::Duration;

use loggap_core::measure::{
    Clock, Experiment, Initiator, Link, Outcome, Quantity, Sample, SessionError,
};
use loggap_core::units::Picos;

use super::SizeResult;
use crate::link::LinkError;
use crate::machine::clock::HostClock;
use crate::terminal::Interrupt;

/// Most round trips in one announcement.
const CHUNK: u32 = 500;
/// Round trips in an announcement while their duration is unknown.
const FIRST_CHUNK: u32 = 2;
/// Lost rounds, without any success, after which a size is given up.
pub(super) const HOPELESS: u64 = 10;
/// Target duration of an announcement's rounds; Ctrl-C and time limit are checked in between.
const CHUNK_TIME: Picos = Picos(200_000_000_000);

/// Rounds that are repeated together if an end was preempted meanwhile, of at most
/// [`BYTES_TOGETHER`] unless it is one, and most attempts.
const TOGETHER: usize = 12;
const BYTES_TOGETHER: u64 = 4 << 20;
const MOST_ATTEMPTS: u32 = 4;

/// Most values of a size with a time limit, 256 MiB; the measurement then ends early.
pub(super) const MOST_VALUES: usize = 1 << 25;

/// Values of one kind of round.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) elapsed: Vec<Picos>,
    /// End of each burst, counted from the opening of the connections.
    pub(super) ended: Vec<Picos>,
    /// Number of rounds in which a message was lost.
    pub(super) lost: u64,
    /// Error that ended the rounds early; earlier values are kept.
    pub(super) failure: Option<SessionError<LinkError>>,
}

impl Values {
    /// Result of a size, with the row that `row` makes if there are values or losses.
    pub(super) fn result<R>(mut self, row: impl FnOnce(Self) -> R) -> SizeResult<R> {
        let failure = self.failure.take();
        let is_row = !self.elapsed.is_empty() || self.lost > 0;
        SizeResult { row: is_row.then(|| row(self)), failure }
    }
}

/// Number or duration of rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Budget {
    /// A fixed number.
    Times(u32),
    /// As many as fit into a time.
    For(Duration),
    /// At most a number, and no longer than a time.
    Within(u32, Duration),
}

/// A burst in which each message is answered by one of the same size.
#[derive(Clone, Copy, Debug)]
pub(super) struct BothWays {
    /// Message size, bytes.
    pub(super) size: u32,
    /// Number of messages that this end sends.
    pub(super) messages: u32,
    /// Most unacknowledged messages.
    pub(super) window: u32,
}

/// Operations on an open session.
pub(super) trait Rounds {
    /// Repeats a round and discards its values.
    fn warm_up(
        &mut self,
        experiment: Experiment,
        times: u32,
    ) -> Result<(), SessionError<LinkError>>;

    /// Repeats a round. The first round trip after each announcement does not count.
    fn repeat(
        &mut self,
        experiment: Experiment,
        budget: Budget,
    ) -> Result<Values, SessionError<LinkError>>;

    /// Runs each round once, in order; lost rounds have no sample. Those during which an end was
    /// preempted are repeated a few times. Ctrl-C ends them early.
    fn run(&mut self, rounds: &[Experiment]) -> Result<Vec<Sample>, SessionError<LinkError>>;

    /// Repeats a burst in both directions.
    fn repeat_both_ways(
        &mut self,
        burst: BothWays,
        budget: Budget,
    ) -> Result<Values, SessionError<LinkError>>;

    /// True once Ctrl-C ended rounds early.
    fn is_interrupted(&self) -> bool;

    /// Longest message of the link, bytes.
    fn longest(&mut self) -> u32;

    /// Longest message of both the link and the responder, bytes.
    fn allowed(&mut self) -> u32;

    /// Sends the close frame and closes the link.
    fn close(self: Box<Self>) -> Result<(), SessionError<LinkError>>;
}

/// An open session over the link's concrete type, so that timed code is not dispatched, with its
/// circumstances.
pub(super) struct Test<'b, L> {
    pub(super) session: Initiator<'b, HostClock, L>,
    pub(super) interrupt: &'b Interrupt,
    /// Clock ticks when the connections were opened.
    pub(super) opened: u64,
    /// Duration of the most recent rounds.
    pub(super) pace: Option<RoundTime>,
}

/// Duration of rounds, including their announcement.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTime {
    /// Message size, bytes.
    size: u32,
    per_message: Picos,
}

impl RoundTime {
    fn of(experiment: &Experiment, rounds: u32, took: Picos) -> Self {
        let messages = u64::from(rounds.max(1)) * u64::from(experiment.messages.max(1));
        Self { size: experiment.size, per_message: Picos(took.0 / messages) }
    }

    /// Number of rounds to announce, which are expected to take at most `limit`.
    fn rounds(pace: Option<Self>, experiment: &Experiment, limit: Picos) -> u32 {
        match pace.filter(|pace| pace.size == experiment.size) {
            None if experiment.messages > 1 => 1,
            None => FIRST_CHUNK,
            Some(pace) => {
                let round = pace.per_message.0.saturating_mul(experiment.messages.into());
                let rounds = limit.0 / round.max(1);
                u32::try_from(rounds).unwrap_or(u32::MAX).clamp(1, CHUNK)
            }
        }
    }
}

impl<L: Link<Error = LinkError>> Test<'_, L> {
    /// Time since the connections were opened.
    fn now(&self) -> Picos {
        let clock = self.session.clock();
        clock.duration(clock.now().saturating_sub(self.opened))
    }

    /// Runs rounds by `some` in short chunks, until all are done, the time is over, or a stop is
    /// requested.
    fn in_chunks(
        &mut self,
        experiment: &Experiment,
        budget: Budget,
        mut some: impl FnMut(&mut Self, u32, &mut Values) -> Result<(), SessionError<LinkError>>,
    ) -> Result<Values, SessionError<LinkError>> {
        let (mut left, time) = match budget {
            Budget::Times(times) => (times, None),
            Budget::For(time) => (u32::MAX, Some(time)),
            Budget::Within(times, time) => (times, Some(time)),
        };
        let after = |time| Picos(self.now().0.saturating_add(Picos::from_duration(time).0));
        let end = time.map(after);
        let capacity = usize::try_from(left).unwrap_or(0).min(1 << 20);
        let mut values = Values { elapsed: Vec::with_capacity(capacity), ..Values::default() };
        while left > 0 && !self.interrupt.is_requested() {
            let began = self.now();
            let limit = end.map_or(CHUNK_TIME, |end| CHUNK_TIME.min(end.since(began)));
            let count = RoundTime::rounds(self.pace, experiment, limit).min(left);
            if let Err(error) = some(self, count, &mut values) {
                if values.elapsed.is_empty() {
                    return Err(error);
                }
                values.failure = Some(error);
                break;
            }
            let now = self.now();
            self.pace = Some(RoundTime::of(experiment, count, now.since(began)));
            left -= count;
            if values.elapsed.is_empty() && values.lost >= HOPELESS {
                break;
            }
            if end.is_some_and(|end| now >= end || values.elapsed.len() >= MOST_VALUES) {
                break;
            }
        }
        Ok(values)
    }
}

impl<L: Link<Error = LinkError>> Rounds for Test<'_, L> {
    fn warm_up(
        &mut self,
        experiment: Experiment,
        times: u32,
    ) -> Result<(), SessionError<LinkError>> {
        let warm = self.in_chunks(&experiment, Budget::Times(times), |test, count, values| {
            test.session.run(&several(experiment, count), |outcome| match outcome {
                Outcome::Sample(sample) => values.elapsed.push(sample.elapsed),
                Outcome::Late(_) => {}
                Outcome::Lost(_) => values.lost += 1,
            })
        });
        warm.map(drop)
    }

    fn repeat(
        &mut self,
        experiment: Experiment,
        budget: Budget,
    ) -> Result<Values, SessionError<LinkError>> {
        let clock = *self.session.clock();
        let (opened, is_burst) = (self.opened, experiment.messages > 1);
        let uncounted = u32::from(!is_burst);
        self.in_chunks(&experiment, budget, |test, count, values| {
            let mut rest = uncounted;
            test.session.run(&several(experiment, count + uncounted), |outcome| {
                if rest > 0 {
                    rest -= 1;
                    return;
                }
                match outcome {
                    Outcome::Sample(sample) => {
                        values.elapsed.push(sample.elapsed);
                        if is_burst {
                            values.ended.push(clock.duration(clock.now().saturating_sub(opened)));
                        }
                    }
                    Outcome::Late(_) => {}
                    Outcome::Lost(_) => values.lost += 1,
                }
            })
        })
    }

    fn run(&mut self, rounds: &[Experiment]) -> Result<Vec<Sample>, SessionError<LinkError>> {
        let mut samples = Vec::with_capacity(rounds.len());
        let bytes = |round: &Experiment| u64::from(round.messages) * u64::from(round.size);
        let most = rounds.iter().map(bytes).max().unwrap_or(1).max(1);
        let together = usize::try_from(BYTES_TOGETHER / most).unwrap_or(TOGETHER);
        for few in rounds.chunks(together.clamp(1, TOGETHER)) {
            if self.is_interrupted() {
                break;
            }
            let before = samples.len();
            for _ in 0..MOST_ATTEMPTS {
                samples.truncate(before);
                self.session.run(few, |outcome| {
                    if let Outcome::Sample(sample) = outcome {
                        samples.push(sample);
                    }
                })?;
                if !self.session.was_interrupted() {
                    break;
                }
            }
        }
        Ok(samples)
    }

    fn repeat_both_ways(
        &mut self,
        burst: BothWays,
        budget: Budget,
    ) -> Result<Values, SessionError<LinkError>> {
        let BothWays { size, messages, window } = burst;
        let quantity = Quantity::Gap;
        let experiment = Experiment { quantity, messages, delay: Picos::ZERO, size };
        self.in_chunks(&experiment, budget, |test, count, values| {
            for _ in 0..count {
                match test.session.both_ways(size, messages, window)? {
                    Some(elapsed) => {
                        values.ended.push(test.now());
                        values.elapsed.push(elapsed);
                    }
                    None => values.lost += 1,
                }
            }
            Ok(())
        })
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_requested()
    }

    fn longest(&mut self) -> u32 {
        let longest = self.session.link_mut().properties().max_message;
        u32::try_from(longest.0).unwrap_or(u32::MAX)
    }

    fn allowed(&mut self) -> u32 {
        self.longest().min(self.session.bounds().message)
    }

    fn close(self: Box<Self>) -> Result<(), SessionError<LinkError>> {
        self.session.close().map(drop)
    }
}

fn several(experiment: Experiment, count: u32) -> Vec<Experiment> {
    vec![experiment; usize::try_from(count).unwrap_or(1)]
}

#[cfg(test)]
mod tests {
    use super::super::round_trip;
    use super::*;

    #[test]
    fn as_many_rounds_are_announced_as_take_a_fifth_of_a_second() {
        let (trip, longer) = (round_trip(8), round_trip(16));
        let burst = Experiment { quantity: Quantity::Gap, messages: 100, ..trip };
        let announced = |pace, experiment: &_| RoundTime::rounds(pace, experiment, CHUNK_TIME);
        assert_eq!((announced(None, &trip), announced(None, &burst)), (FIRST_CHUNK, 1));
        let millisecond = Picos(1_000_000_000);
        let slow = Some(RoundTime::of(&trip, 10, Picos(10 * millisecond.0)));
        assert_eq!((announced(slow, &trip), announced(slow, &burst)), (200, 2));
        assert_eq!(announced(slow, &longer), FIRST_CHUNK);
        assert_eq!(RoundTime::rounds(slow, &trip, Picos(5 * millisecond.0)), 5);
        let fast = Some(RoundTime::of(&trip, 10, Picos(10)));
        assert_eq!(announced(fast, &trip), CHUNK);
        assert_eq!(announced(Some(RoundTime::of(&trip, 1, Picos::MAX)), &burst), 1);
    }
}
