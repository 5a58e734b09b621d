//! Counters of each rank.

use super::hooks::{
    Begun, Calculated, Handled, Matched, MessageKind, Observed, Observer, Sent, Turn,
};
use crate::units::{Bytes, Picos};

/// Counters of one rank. Times and counts saturate.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RankCounters {
    /// Number of calculations.
    pub calcs: u64,
    /// Messages sent, RTS and CTS included.
    pub sent: u64,
    /// Bytes sent.
    pub bytes_sent: Bytes,
    /// Messages handled, RTS and CTS included.
    pub received: u64,
    /// Unexpected messages: handled before their receive was posted.
    pub unexpected: u64,
    /// Time spent calculating, without noise.
    pub calculating: Picos,
    /// Time spent sending, without noise.
    pub sending: Picos,
    /// Time spent receiving, without noise.
    pub receiving: Picos,
    /// Time lost to noise.
    pub noise: Picos,
    /// Total time that messages waited for this rank, each from the arrival of its first byte until
    /// the processor began to handle it.
    pub messages_waited: Picos,
    /// Largest number of receives posted at a time.
    pub max_posted: u32,
    /// Largest number of unexpected messages at a time.
    pub max_unexpected: u32,
    /// Receives posted now; `waiting`: unexpected messages now.
    posted: u32,
    waiting: u32,
}

impl RankCounters {
    /// Time that processors were busy, noise included.
    #[must_use]
    pub const fn busy(&self) -> Picos {
        let Self { calculating, sending, receiving, noise, .. } = self;
        let sum = calculating.0.saturating_add(sending.0).saturating_add(receiving.0);
        Picos(sum.saturating_add(noise.0))
    }

    /// Counts one more unexpected message.
    fn queue(&mut self) {
        self.waiting = self.waiting.saturating_add(1);
        self.max_unexpected = self.max_unexpected.max(self.waiting);
    }
}

fn add(to: &mut Picos, time: Picos) {
    to.0 = to.0.saturating_add(time.0);
}

/// Observer that keeps counters for each rank, in lent memory.
#[derive(Debug)]
pub struct Counters<'m> {
    /// Rank of the first element.
    first: u32,
    ranks: &'m mut [RankCounters],
    /// Rank of the message handled last, which may be matched next.
    handled: Option<u32>,
    /// True if that was the data of a handshake, which its RTS has matched before.
    data: bool,
}

impl<'m> Counters<'m> {
    /// Counts in `ranks`, one element for each rank. The content on entry does not matter; ranks
    /// without an element are ignored.
    #[must_use]
    pub fn new(ranks: &'m mut [RankCounters]) -> Self {
        Self::from_rank(0, ranks)
    }

    /// As `new`, for the ranks from `first` on.
    #[must_use]
    pub fn from_rank(first: u32, ranks: &'m mut [RankCounters]) -> Self {
        ranks.fill(RankCounters::default());
        Self { first, ranks, handled: None, data: false }
    }

    /// Final counters.
    #[must_use]
    pub fn finish(mut self) -> &'m [RankCounters] {
        self.settle();
        self.ranks
    }

    /// Counts the message handled last as unexpected: it was not matched.
    fn settle(&mut self) {
        let rank = self.handled.take().filter(|_| !self.data);
        if let Some(counters) = rank.and_then(|rank| self.of(rank)) {
            counters.queue();
        }
    }

    fn of(&mut self, rank: u32) -> Option<&mut RankCounters> {
        self.ranks.get_mut(rank.wrapping_sub(self.first) as usize)
    }

    fn rank(&mut self, rank: u32) -> Option<&mut RankCounters> {
        self.settle();
        self.of(rank)
    }
}

impl Observer for Counters<'_> {
    #[inline]
    fn observe(&mut self, event: Observed<'_>) {
        match event {
            Observed::Begun(event) => self.begun(event),
            Observed::Calculated(event) => self.calculated(event),
            Observed::Sent(event) => self.sent(event),
            Observed::Handled(event) => self.handled(event),
            Observed::Matched(event) => self.matched(event),
            _ => {}
        }
    }
}

impl Counters<'_> {
    fn begun(&mut self, event: &Begun) {
        if event.turn == Turn::Receive
            && let Some(counters) = self.rank(event.rank)
        {
            counters.posted = counters.posted.saturating_add(1);
        }
    }

    fn calculated(&mut self, event: &Calculated) {
        let Some(counters) = self.rank(event.rank) else { return };
        counters.calcs += 1;
        add(&mut counters.calculating, event.work);
        add(&mut counters.noise, event.noise);
    }

    fn sent(&mut self, event: &Sent) {
        let Some(counters) = self.rank(event.rank) else { return };
        counters.sent += 1;
        counters.bytes_sent.0 = counters.bytes_sent.0.saturating_add(event.size);
        add(&mut counters.sending, event.overhead);
        add(&mut counters.sending, event.overhead_bytes);
        add(&mut counters.noise, event.noise);
    }

    fn handled(&mut self, event: &Handled) {
        let Some(counters) = self.rank(event.rank) else { return };
        counters.received += 1;
        counters.max_posted = counters.max_posted.max(counters.posted);
        add(&mut counters.receiving, event.held);
        add(&mut counters.noise, event.noise);
        add(&mut counters.messages_waited, event.start.since(event.arrival));
        self.data = event.message_kind == MessageKind::Data;
        // A CTS is addressed to its send, not to a receive.
        self.handled = (event.message_kind != MessageKind::Cts).then_some(event.rank);
    }

    fn matched(&mut self, event: &Matched) {
        if !event.unexpected {
            self.handled = None;
        }
        // The data of a handshake was matched with its receive by the RTS.
        let met = event.unexpected || !self.data;
        let Some(counters) = self.rank(event.rank) else { return };
        counters.posted = counters.posted.saturating_sub(met.into());
        if event.unexpected {
            counters.unexpected += 1;
            counters.waiting = counters.waiting.saturating_sub(1);
        }
    }
}
