//! What each rank did, in numbers.

use super::hooks::{Begun, Calculated, Handled, Matched, MessageKind, Observer, Sent, Turn};
use crate::units::{Bytes, Picos};

/// What one rank did. Times and counts saturate.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RankCounters {
    /// Calculations.
    pub calcs: u64,
    /// Messages sent, those of handshakes included.
    pub sent: u64,
    /// Bytes sent.
    pub bytes_sent: Bytes,
    /// Messages handled, those of handshakes included.
    pub received: u64,
    /// Messages that were there before their receive.
    pub unexpected: u64,
    /// Time that processors calculated, without noise.
    pub calculating: Picos,
    /// Time that processors sent, without noise.
    pub sending: Picos,
    /// Time that processors received, without noise.
    pub receiving: Picos,
    /// Time lost to noise.
    pub noise: Picos,
    /// Time that messages waited for this rank after their arrival, each
    /// from its first byte to the processor's first look at it.
    pub messages_waited: Picos,
    /// The most receives that were posted at a time.
    pub max_posted: u32,
    /// The most messages that waited for their receive at a time.
    pub max_unexpected: u32,
    /// Receives that are posted now, and messages that wait for theirs.
    posted: u32,
    waiting: u32,
}

impl RankCounters {
    /// Time that processors were occupied, noise included.
    #[must_use]
    pub const fn busy(&self) -> Picos {
        let Self { calculating, sending, receiving, noise, .. } = self;
        let sum = calculating.0.saturating_add(sending.0).saturating_add(receiving.0);
        Picos(sum.saturating_add(noise.0))
    }

    /// One more message waits for its receive.
    fn queue(&mut self) {
        self.waiting = self.waiting.saturating_add(1);
        self.max_unexpected = self.max_unexpected.max(self.waiting);
    }
}

fn add(to: &mut Picos, time: Picos) {
    to.0 = to.0.saturating_add(time.0);
}

/// An observer that counts for each rank, on lent memory.
#[derive(Debug)]
pub struct Counters<'m> {
    /// The rank of the first of these.
    first: u32,
    ranks: &'m mut [RankCounters],
    /// Rank of the message just handled, which may be matched next.
    handled: Option<u32>,
    /// Whether that was the data of a handshake, matched long ago.
    data: bool,
}

impl<'m> Counters<'m> {
    /// Counts in `ranks`, one element a rank. Content on entry does not matter;
    /// ranks without an element are not counted.
    #[must_use]
    pub fn new(ranks: &'m mut [RankCounters]) -> Self {
        Self::from_rank(0, ranks)
    }

    /// The same of the ranks from `first` on.
    #[must_use]
    pub fn from_rank(first: u32, ranks: &'m mut [RankCounters]) -> Self {
        ranks.fill(RankCounters::default());
        Self { first, ranks, handled: None, data: false }
    }

    /// What was counted.
    #[must_use]
    pub fn finish(mut self) -> &'m [RankCounters] {
        self.settle();
        self.ranks
    }

    /// The message handled last has met no receive, or `self` would know.
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
        // The answer of a handshake goes to its send, not to a receive.
        self.handled = (event.message_kind != MessageKind::Cts).then_some(event.rank);
    }

    fn matched(&mut self, event: &Matched) {
        if !event.unexpected {
            self.handled = None;
        }
        // The data of a handshake has its receive since its RTS met that.
        let met = event.unexpected || !self.data;
        let Some(counters) = self.rank(event.rank) else { return };
        counters.posted = counters.posted.saturating_sub(met.into());
        if event.unexpected {
            counters.unexpected += 1;
            counters.waiting = counters.waiting.saturating_sub(1);
        }
    }
}
