//! In-order delivery: messages from one rank to another arrive in the order in which they left. A
//! message that completes before an earlier one waits until that is complete as well.
//!
//! Flows are in a hash table by pair of ranks. A bucket is a list of flows, the newest first, so an
//! earlier flow of a pair is found in constant time, however many flows share a link.

use super::memory::{Delivery, NONE};

/// Messages under way, by the number of their flow.
#[derive(Debug)]
pub(super) struct Order<'m> {
    messages: &'m mut [Delivery],
    /// Newest flow of each bucket, or [`NONE`].
    buckets: &'m mut [u32],
    /// Message that was freed last, or [`NONE`].
    free: u32,
    /// First message that was never taken: only if no other is free, so that unused memory is not
    /// touched.
    fresh: u32,
}

impl<'m> Order<'m> {
    /// Creates the table without messages.
    pub(super) fn new(messages: &'m mut [Delivery], buckets: &'m mut [u32]) -> Self {
        buckets.fill(NONE);
        Self { messages, buckets, free: NONE, fresh: 0 }
    }

    /// Bucket of a pair of ranks.
    #[inline]
    fn bucket(&mut self, pair: u64) -> Option<&mut u32> {
        let hash = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let bucket = hash.wrapping_mul(self.buckets.len() as u64) >> 32;
        self.buckets.get_mut(usize::try_from(bucket).ok()?)
    }

    /// Takes a free number.
    #[inline]
    fn take(&mut self) -> Option<u32> {
        if let Some(message) = self.messages.get(self.free as usize) {
            return Some(core::mem::replace(&mut self.free, message.next));
        }
        let at = self.fresh;
        self.fresh += u32::from((at as usize) < self.messages.len());
        (at < self.fresh).then_some(at)
    }

    /// Adds a message without a flow; returns its number, or `None` if all are taken.
    pub(super) fn add(&mut self, delivery: Delivery) -> Option<u32> {
        let at = self.take()?;
        *self.messages.get_mut(at as usize)? = Delivery { last_waiting: at, ..delivery };
        Some(at)
    }

    /// Adds a message with a flow.
    #[inline]
    pub(super) fn begin(&mut self, delivery: Delivery) -> Option<u32> {
        let at = self.take()?;
        let older = core::mem::replace(self.bucket(delivery.pair)?, at);
        if let Some(older) = self.messages.get_mut(older as usize) {
            older.newer = at;
        }
        let message = self.messages.get_mut(at as usize)?;
        *message = Delivery { older, newer: NONE, last_waiting: at, ..delivery };
        Some(at)
    }

    /// Removes the flow of a message from its bucket; returns the newest of the earlier flows of
    /// its pair, for which it has to wait.
    #[inline]
    pub(super) fn end(&mut self, at: u32) -> Option<u32> {
        let &Delivery { pair, older, newer, .. } = self.messages.get(at as usize)?;
        if let Some(older) = self.messages.get_mut(older as usize) {
            older.newer = newer;
        }
        match self.messages.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => *self.bucket(pair)? = older,
        }
        self.of_pair(pair, older)
    }

    /// Newest flow of a pair of ranks.
    pub(super) fn newest(&mut self, pair: u64) -> Option<u32> {
        let newest = *self.bucket(pair)?;
        self.of_pair(pair, newest)
    }

    /// Newest flow of a pair among `at` and the older ones of its bucket.
    #[inline]
    fn of_pair(&self, pair: u64, mut at: u32) -> Option<u32> {
        while let Some(message) = self.messages.get(at as usize) {
            if message.pair == pair {
                return Some(at);
            }
            at = message.older;
        }
        None
    }

    /// Lets a message, with those that wait for it, wait until `earlier` is complete.
    pub(super) fn wait(&mut self, at: u32, earlier: u32) {
        let Some(&Delivery { last_waiting, .. }) = self.messages.get(at as usize) else { return };
        let Some(earlier) = self.messages.get_mut(earlier as usize) else { return };
        let before = core::mem::replace(&mut earlier.last_waiting, last_waiting);
        if let Some(before) = self.messages.get_mut(before as usize) {
            before.next = at;
        }
    }

    /// Frees a message that is complete, with those that wait for it; calls `through` with each, in
    /// the order in which they left.
    #[inline]
    pub(super) fn let_through(&mut self, mut at: u32, mut through: impl FnMut(u32, &Delivery)) {
        let Some(&Delivery { last_waiting, .. }) = self.messages.get(at as usize) else { return };
        while let Some(message) = self.messages.get_mut(at as usize) {
            through(at, message);
            let next = core::mem::replace(&mut message.next, self.free);
            self.free = at;
            if at == last_waiting {
                break;
            }
            at = next;
        }
    }
}
