//! Bandwidth and message rate: bursts over one or several connections, in one or both directions.

use std::ops::ControlFlow;
use std::time::Duration;

use loggap_core::measure::{Experiment, Quantity, SessionError};
use loggap_core::units::Picos;

use super::connections::Connections;
use super::rate::Rate;
use super::rounds::{BothWays, Budget, Rounds, Values};
use super::{Missing, SizeResult, SizeTest, round_trip};
use crate::link::{LinkError, Transport};
use crate::machine::clock::Deadline;

/// Number of bursts per size, if there are enough messages.
pub(super) const BURSTS: u32 = 20;
/// Most messages in a burst.
pub(super) const LONGEST_BURST: u32 = 1_000;
/// Fewest messages in a burst, if as many are requested: a shorter burst consists mostly of the
/// cost of its first and last message.
pub(super) const SHORTEST_BURST: u32 = 32;
/// Round trips that determine the time of a single message.
const SINGLES: u32 = 20;
/// Bytes that a socket link buffers at either end while the application does not read. With traffic
/// in both directions no more may be in flight, as both ends could otherwise wait for the other to
/// read.
const UNREAD: u32 = 64 << 10;
/// As [`UNREAD`], for shared memory: half of its ring.
const UNREAD_OF_RING: u32 = 512 << 10;
/// Most unacknowledged messages.
const MOST_UNANSWERED: u32 = 64;

/// Longest message, bytes, that both ends can send at the same time.
pub(crate) const fn longest_both_ways(transport: Transport) -> u32 {
    match transport {
        // The receiver posts as many receives as there are messages in flight.
        Transport::Verbs => u32::MAX,
        Transport::Shm => UNREAD_OF_RING,
        _ => UNREAD,
    }
}

/// Number and length of bursts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Bursts {
    pub(crate) count: u32,
    pub(crate) messages: u32,
}

/// Bursts for `messages` messages or slightly more.
pub(crate) fn bursts_of(messages: u32) -> Bursts {
    let count = (messages / SHORTEST_BURST).clamp(1, BURSTS);
    let burst = messages.div_ceil(count).min(LONGEST_BURST);
    Bursts { count: messages.div_ceil(burst), messages: burst }
}

/// Messages of `size` bytes that may be unacknowledged when both ends send: half of the `places` of
/// a link over RDMA verbs; on other links as many as fit into the buffers.
fn window(size: u32, places: Option<u16>) -> u32 {
    let most = match places {
        Some(places) => u32::from(places) / 2,
        None => (UNREAD / size.max(1)).max(2),
    };
    most.clamp(1, MOST_UNANSWERED)
}

/// Bandwidth of each size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BandwidthTest {
    /// Messages in a burst.
    pub(crate) burst: u32,
    /// Number or duration of the bursts.
    pub(crate) budget: Budget,
    pub(crate) warmup: u32,
    pub(crate) connections: u32,
    /// True if each message is answered by one of the same size.
    pub(crate) both_ways: bool,
}

impl BandwidthTest {
    /// Messages that count in a burst, per message that one connection sends.
    pub(crate) fn times(&self) -> u32 {
        self.connections * if self.both_ways { 2 } else { 1 }
    }

    /// Runs bursts that all connections start at about the same time. A burst counts if no
    /// connection lost a message in it.
    fn together(
        &self,
        connections: &mut Connections<'_>,
        burst: impl Fn(&mut dyn Rounds) -> Result<Values, SessionError<LinkError>> + Sync,
    ) -> Result<Values, SessionError<LinkError>> {
        let deadline = match self.budget {
            Budget::Times(_) => None,
            Budget::For(time) | Budget::Within(_, time) => Some(Deadline::after(time)),
        };
        let (mut all, mut done) = (Values::default(), 0);
        connections.in_step(burst, |outcomes| {
            let each: Vec<Values> = match outcomes.into_iter().collect() {
                Ok(each) => each,
                Err(error) => {
                    all.failure = Some(error);
                    return ControlFlow::Break(());
                }
            };
            let (lost, took) = (each.iter().map(|values| values.lost).sum::<u64>(), span(&each));
            all.lost += lost;
            all.elapsed.extend(took);
            done += 1;
            let over = match self.budget {
                Budget::Times(times) | Budget::Within(times, _) if done >= times => true,
                _ => deadline.is_some_and(Deadline::expired),
            };
            let was_stopped = took.is_none() && lost == 0;
            if over || was_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match all.failure.take_if(|_| all.elapsed.is_empty()) {
            Some(error) => Err(error),
            None => Ok(all),
        }
    }

    const fn singles(&self) -> Budget {
        match self.connections {
            1 => Budget::Times(SINGLES),
            // Limited in time: other connections are silent meanwhile, and a responder ends a
            // silent session.
            _ => Budget::Within(SINGLES, Duration::from_secs(1)),
        }
    }

    const fn experiment(&self, size: u32) -> Experiment {
        Experiment { quantity: Quantity::Gap, messages: self.burst, ..round_trip(size) }
    }
}

/// Duration of a burst over all connections, from the first post to the last reply of any. `None`
/// if a connection lost its burst or was stopped.
fn span(each: &[Values]) -> Option<Picos> {
    let (mut first_post, mut last_reply) = (Picos::MAX, Picos::ZERO);
    for values in each {
        let (ended, elapsed) = (*values.ended.first()?, *values.elapsed.first()?);
        first_post = first_post.min(ended.since(elapsed));
        last_reply = last_reply.max(ended);
    }
    Some(last_reply.since(first_post))
}

impl SizeTest for BandwidthTest {
    type Row = Rate;

    fn connections(&self) -> u32 {
        self.connections
    }

    fn measure(
        &self,
        connections: &mut Connections<'_>,
        size: u32,
    ) -> Result<SizeResult<Rate>, SessionError<LinkError>> {
        let places = connections.depth();
        let window = window(size, places);
        let messages = self.burst;
        let bursts = |session: &mut dyn Rounds, budget: Budget| match self.both_ways {
            true => session.repeat_both_ways(BothWays { size, messages, window }, budget),
            false => session.repeat(self.experiment(size), budget),
        };
        let mut warm = Ok(());
        let trip = round_trip(size);
        connections.in_step(
            |session| session.warm_up(trip, self.warmup),
            |outcomes| {
                warm = outcomes.into_iter().collect();
                ControlFlow::Break(())
            },
        );
        warm?;
        let Some(first) = connections.first() else {
            return Ok(SizeResult { row: None, failure: None });
        };
        let single = first.repeat(trip, self.singles())?;
        let values = match self.connections {
            1 => bursts(first, self.budget)?,
            _ => self.together(connections, |session| bursts(session, Budget::Times(1)))?,
        };
        let under_way = u16::try_from(window).ok().filter(|_| self.both_ways);
        let depth = places.map(|places| under_way.unwrap_or(places));
        Ok(values.result(|values| Rate::of(self, size, single, values).with_depth(depth)))
    }

    fn missing(rate: &Rate) -> Option<Missing> {
        rate.missing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_several_lasts_from_the_first_post_to_the_last_reply() {
        let burst = |posted: u64, replied: u64| Values {
            elapsed: vec![Picos(replied - posted)],
            ended: vec![Picos(replied)],
            ..Values::default()
        };
        // The longest burst takes 60; the first begins 30 before it, the last ends 5 after it.
        let each = [burst(100, 150), burst(130, 190), burst(160, 195)];
        assert_eq!(span(&each), Some(Picos(95)));
        assert_eq!(span(&each[..1]), Some(Picos(50)));
        let lost = Values { lost: 1, ..Values::default() };
        assert_eq!(span(&[burst(100, 150), lost]), None);
    }

    #[test]
    fn messages_are_sent_in_twenty_bursts_where_there_are_enough() {
        for (messages, bursts) in [
            (5_000, (20, 250)),
            (640, (20, 32)),
            (100, (3, 34)),
            (10, (1, 10)),
            (5, (1, 5)),
            (100_000, (100, 1_000)),
        ] {
            let Bursts { count, messages: burst } = bursts_of(messages);
            assert_eq!((count, burst), bursts, "{messages}");
        }
    }

    #[test]
    fn no_more_is_under_way_both_ways_than_a_link_takes_unread() {
        for (size, most) in [(1, 64), (4 << 10, 16), (64 << 10, 2), (512 << 10, 2)] {
            assert_eq!(window(size, None), most, "{size}");
        }
        for (places, most) in [(2, 1), (8, 4), (32, 16), (4_096, 64)] {
            assert_eq!(window(1 << 20, Some(places)), most, "{places}");
        }
    }
}
