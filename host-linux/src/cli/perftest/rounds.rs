//! Rounds over one open session.

use std::time::Duration;

use loggap_core::measure::{Clock, Experiment, Initiator, Link, Outcome, Quantity, SessionError};
use loggap_core::units::Picos;

use crate::cli::Interrupt;
use crate::link::LinkError;
use crate::machine::clock::HostClock;

/// Round trips that are announced at a time, at most.
const CHUNK: u32 = 500;
/// The same where it is not known how long they take.
const FIRST_CHUNK: u32 = 2;
/// Rounds without one that came to its end, after which none is taken to.
pub(super) const HOPELESS: u64 = 10;
/// How long the rounds of an announcement may take: between them Ctrl-C and the time
/// are looked at.
const CHUNK_TIME: Picos = Picos(200_000_000_000);

/// Values of a size that are kept where the time decides: 256 MiB of them, with which
/// it ends before.
pub(super) const MOST_VALUES: usize = 1 << 25;

/// Values of one kind of round.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) elapsed: Vec<Picos>,
    /// When each burst was over, since the connections were opened.
    pub(super) ended: Vec<Picos>,
    /// Rounds of which a message was lost.
    pub(super) lost: u64,
    /// What ended them before their time, after those that there are.
    pub(super) failure: Option<SessionError<LinkError>>,
}

/// How often a round is repeated.
#[derive(Clone, Copy, Debug)]
pub(super) enum Repetitions {
    /// So many times.
    Times(u32),
    /// Until so much time is over.
    For(Duration),
    /// So many times, or fewer where so much time is over before.
    Within(u32, Duration),
}

/// A burst each message of which is answered by one as long.
#[derive(Clone, Copy, Debug)]
pub(super) struct BothWays {
    /// Bytes of each message.
    pub(super) size: u32,
    /// Messages that this end sends.
    pub(super) messages: u32,
    /// Those of them that may be without an answer.
    pub(super) window: u32,
}

/// Rounds over an open session.
pub(super) trait Rounds {
    /// Repeats a round of which nothing is kept.
    fn warm_up(
        &mut self,
        experiment: Experiment,
        times: u32,
    ) -> Result<(), SessionError<LinkError>>;

    /// Repeats a round. Of round trips, the first one after each announcement
    /// does not count.
    fn repeat(
        &mut self,
        experiment: Experiment,
        repetitions: Repetitions,
    ) -> Result<Values, SessionError<LinkError>>;

    /// Repeats a burst in both directions.
    fn repeat_both_ways(
        &mut self,
        burst: BothWays,
        repetitions: Repetitions,
    ) -> Result<Values, SessionError<LinkError>>;

    /// Bytes of the longest message that the link takes.
    fn longest(&mut self) -> u32;

    /// Bytes of the longest message that both the link and the responder take.
    fn allowed(&mut self) -> u32;

    /// Says goodbye and closes the link.
    fn close(self: Box<Self>) -> Result<(), SessionError<LinkError>>;
}

/// An open session over the link's own type, so that its own code is timed,
/// and what stands around it.
pub(super) struct Test<'b, L> {
    pub(super) session: Initiator<'b, HostClock, L>,
    pub(super) interrupt: &'b Interrupt,
    /// Ticks of the clock when the connections were opened.
    pub(super) opened: u64,
    /// How long rounds took last.
    pub(super) pace: Option<Pace>,
}

/// How long rounds take, announcing them included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Bytes of each message.
    size: u32,
    per_message: Picos,
}

impl Pace {
    fn of(experiment: &Experiment, rounds: u32, took: Picos) -> Self {
        let messages = u64::from(rounds.max(1)) * u64::from(experiment.messages.max(1));
        Self { size: experiment.size, per_message: Picos(took.0 / messages) }
    }

    /// Rounds to announce, which take no longer than `limit` as far as is known.
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
    /// Since the connections were opened.
    fn now(&self) -> Picos {
        let clock = self.session.clock();
        clock.duration(clock.now().saturating_sub(self.opened))
    }

    /// Runs `some` rounds, as many at a time as take no long time, until all are done,
    /// the time is over, or somebody asked to stop.
    fn in_chunks(
        &mut self,
        experiment: &Experiment,
        repetitions: Repetitions,
        mut some: impl FnMut(&mut Self, u32, &mut Values) -> Result<(), SessionError<LinkError>>,
    ) -> Result<Values, SessionError<LinkError>> {
        let (mut left, time) = match repetitions {
            Repetitions::Times(times) => (times, None),
            Repetitions::For(time) => (u32::MAX, Some(time)),
            Repetitions::Within(times, time) => (times, Some(time)),
        };
        let after = |time| Picos(self.now().0.saturating_add(Picos::from_duration(time).0));
        let end = time.map(after);
        let capacity = usize::try_from(left).unwrap_or(0).min(1 << 20);
        let mut values = Values { elapsed: Vec::with_capacity(capacity), ..Values::default() };
        while left > 0 && !self.interrupt.is_requested() {
            let began = self.now();
            let limit = end.map_or(CHUNK_TIME, |end| CHUNK_TIME.min(end.since(began)));
            let count = Pace::rounds(self.pace, experiment, limit).min(left);
            if let Err(error) = some(self, count, &mut values) {
                if values.elapsed.is_empty() {
                    return Err(error);
                }
                values.failure = Some(error);
                break;
            }
            let now = self.now();
            self.pace = Some(Pace::of(experiment, count, now.since(began)));
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
        let warm = self.in_chunks(&experiment, Repetitions::Times(times), |test, count, values| {
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
        repetitions: Repetitions,
    ) -> Result<Values, SessionError<LinkError>> {
        let clock = *self.session.clock();
        let (opened, is_burst) = (self.opened, experiment.messages > 1);
        let uncounted = u32::from(!is_burst);
        self.in_chunks(&experiment, repetitions, |test, count, values| {
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

    fn repeat_both_ways(
        &mut self,
        burst: BothWays,
        repetitions: Repetitions,
    ) -> Result<Values, SessionError<LinkError>> {
        let BothWays { size, messages, window } = burst;
        let quantity = Quantity::Gap;
        let experiment = Experiment { quantity, messages, delay: Picos::ZERO, size };
        self.in_chunks(&experiment, repetitions, |test, count, values| {
            for _ in 0..count {
                match test.session.both_ways(size, (messages, window))? {
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
        let announced = |pace, experiment: &_| Pace::rounds(pace, experiment, CHUNK_TIME);
        assert_eq!((announced(None, &trip), announced(None, &burst)), (FIRST_CHUNK, 1));
        let millisecond = Picos(1_000_000_000);
        let slow = Some(Pace::of(&trip, 10, Picos(10 * millisecond.0)));
        assert_eq!((announced(slow, &trip), announced(slow, &burst)), (200, 2));
        assert_eq!(announced(slow, &longer), FIRST_CHUNK);
        assert_eq!(Pace::rounds(slow, &trip, Picos(5 * millisecond.0)), 5);
        let fast = Some(Pace::of(&trip, 10, Picos(10)));
        assert_eq!(announced(fast, &trip), CHUNK);
        assert_eq!(announced(Some(Pace::of(&trip, 1, Picos::MAX)), &burst), 1);
    }
}
