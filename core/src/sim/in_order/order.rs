//! Global order: which event is next, of all ranks and of the messages in the network.

use crate::sim::network::{InFlight, Network};
use crate::sim::outcome::SimError;
use crate::sim::queues::queue::{Entry, Queue};
use crate::units::Picos;

/// What happens next.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) enum Due {
    /// The next event of a rank.
    Event(Entry),
    /// The arrival of a message; the entry has the message in place of the rank.
    Arrival(Entry),
}

/// Next events of the ranks, and messages in the network, in the order of (time, stamp).
#[derive(Debug)]
pub(in crate::sim) struct Order<'m, W> {
    pub(in crate::sim) queue: Queue<'m>,
    pub(in crate::sim) network: W,
    /// Time of the present event, ps.
    pub(in crate::sim) now: u64,
    /// Second part of the next stamp, counted within an instant.
    seq: u32,
    /// Its value before the first event.
    first_seq: u32,
}

impl<'m, W: Network> Order<'m, W> {
    pub(in crate::sim) const fn new(queue: Queue<'m>, network: W) -> Self {
        Self { queue, network, now: 0, seq: 0, first_seq: 0 }
    }

    /// Advances to what happens next; a message that arrives has left the network. `None` at the end
    /// of the run.
    #[inline]
    pub(in crate::sim) fn next(
        &mut self,
        messages: &mut impl InFlight,
    ) -> Result<Option<Due>, SimError> {
        let queued = self.queue.first();
        let arrival = self.network.first(queued.map_or(u64::MAX, |entry| entry.time), messages)?;
        let due = match (queued, arrival) {
            (Some(event), arrival) if arrival.is_none_or(|arrival| event.before(&arrival)) => {
                self.advance(event.time);
                Some(Due::Event(event))
            }
            (_, Some(arrival)) => {
                self.advance(arrival.time);
                self.network.land(messages);
                Some(Due::Arrival(arrival))
            }
            (_, None) => None,
        };
        Ok(due)
    }

    #[inline]
    pub(in crate::sim) fn advance(&mut self, time: u64) {
        debug_assert!(time >= self.now, "time goes on");
        if time > self.now {
            self.now = time;
            self.seq = 0;
        }
    }

    /// Notes that all operations without dependencies are released.
    pub(in crate::sim) const fn started(&mut self) {
        self.first_seq = self.seq;
    }

    /// Goes to an instant, which may be before the last one: that was of another rank.
    pub(in crate::sim) const fn restart(&mut self, now: u64) {
        (self.now, self.seq) = (now, if now == 0 { self.first_seq } else { 0 });
    }

    /// Draws the second parts of `count` stamps; returns the first.
    #[inline]
    pub(in crate::sim) fn draw(&mut self, count: u32) -> Result<u32, SimError> {
        let (seq, time) = (self.seq, Picos(self.now));
        self.seq = seq.checked_add(count).ok_or(SimError::TooManyAtOnce { time })?;
        Ok(seq)
    }
}
