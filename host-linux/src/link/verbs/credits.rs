//! Send credits: the flow control of a link.
//!
//! A message occupies an entry of the send queue until its completion is known, and a slot at the
//! peer until the peer announces that it has consumed it. The peer announces the number of messages
//! that it has consumed so far, modulo 2³²: after half of the slots if it is idle, after three
//! quarters in a burst without a pause. Datagrams are not announced: their slots count as free when
//! they have been sent. Reads occupy no slot.

use super::settings::Operation;

/// Largest number of work requests for a message: the message itself and the escape of its last
/// byte (see `send_escaped`).
const REQUESTS_OF_A_MESSAGE: u64 = 2;

/// Counters of one end since the link was created.
#[derive(Debug)]
pub(super) struct SendCredits {
    operation: Operation,
    /// Slots for messages in each direction.
    slots: u64,
    /// Capacity of the send queue.
    entries: u64,
    /// Messages sent.
    pub(super) sent: u64,
    /// Work requests posted, and those known to be completed.
    pub(super) posted: u64,
    pub(super) completed: u64,
    /// Messages received, and those announced to the peer.
    pub(super) consumed: u64,
    announced: u64,
    /// Messages of rounds that have a credit found in advance.
    prechecked: u64,
}

impl SendCredits {
    pub(super) const fn new(operation: Operation, slots: u64, entries: u64) -> Self {
        Self {
            operation,
            slots,
            entries,
            sent: 0,
            posted: 0,
            completed: 0,
            consumed: 0,
            announced: 0,
            prechecked: 0,
        }
    }

    /// Work requests that are not known to be completed.
    #[inline(always)]
    pub(super) const fn under_way(&self) -> u64 {
        self.posted - self.completed
    }

    /// True if the send queue has space for `count` more requests.
    #[inline]
    pub(super) const fn has_entries(&self, count: u64) -> bool {
        self.under_way() + count <= self.entries
    }

    /// True if there is a slot for one more message at both ends; `announced` returns the peer's
    /// last announcement.
    #[inline]
    pub(super) fn has_credit(&self, announced: impl FnOnce() -> u32) -> bool {
        self.has_entries(REQUESTS_OF_A_MESSAGE) && self.taken(announced) < self.slots
    }

    /// Slots whose messages are not known to be consumed; for datagrams, not known to be sent.
    #[inline]
    fn taken(&self, announced: impl FnOnce() -> u32) -> u64 {
        match self.operation {
            Operation::Read => 0,
            Operation::Datagram => self.under_way(),
            _ => u64::from(modulo(self.sent).wrapping_sub(announced())),
        }
    }

    /// Number of outstanding requests from which completions are polled.
    pub(super) const fn reap_threshold(&self) -> u64 {
        match self.operation {
            Operation::Datagram => self.slots / 2,
            _ => self.entries / 2,
        }
    }

    /// Counts the messages of rounds that have a credit, at least one, because the caller has
    /// checked [`Self::has_credit`]. After those, completions must be polled.
    pub(super) fn precheck(&mut self, announced: u32) {
        // Saturating, because the peer may write any number at any time.
        let slots = self.slots.saturating_sub(self.taken(|| announced));
        let entries = self.reap_threshold().saturating_sub(self.under_way());
        self.prechecked = slots.min(entries).max(1);
    }

    /// True if the next message of a round has a credit found in advance.
    #[inline(always)]
    pub(super) const fn has_prechecked(&self) -> bool {
        self.prechecked > 0
    }

    /// Counts a message of a round that was posted with a credit found in advance.
    #[inline(always)]
    pub(super) const fn post_prechecked(&mut self) {
        self.prechecked -= 1;
        self.posted += 1;
        self.sent += 1;
    }

    /// Discards the credits found in advance, because another request takes an entry, and possibly
    /// a slot.
    #[inline(always)]
    pub(super) const fn forget_prechecked(&mut self) {
        self.prechecked = 0;
    }

    /// Counts a received message. True if an announcement must be sent at once, before the peer
    /// runs out of slots.
    #[inline(always)]
    pub(super) const fn consume(&mut self) -> bool {
        self.consumed += 1;
        self.consumed - self.announced >= self.slots - self.slots / 4
    }

    /// True if an announcement should be sent when this end is idle.
    #[inline]
    pub(super) const fn announcement_is_due(&self) -> bool {
        self.consumed - self.announced >= self.slots / 2
    }

    /// Number to announce to the peer.
    pub(super) const fn announcement(&self) -> u32 {
        modulo(self.consumed)
    }

    /// Records that the announcement was sent.
    pub(super) const fn note_announced(&mut self) {
        self.announced = self.consumed;
    }
}

/// Announcements are counted modulo 2³².
#[allow(clippy::cast_possible_truncation, reason = "counts modulo 2³²")]
const fn modulo(count: u64) -> u32 {
    count as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;
    use std::collections::VecDeque;

    /// An end, the messages in flight to it, and the announcement that its peer has written.
    struct End {
        credits: SendCredits,
        messages: u64,
        word: u32,
        words: VecDeque<u32>,
        /// Requests whose completions the device has not reported yet.
        device: VecDeque<u64>,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Message {
        OfARound,
        Other,
    }

    impl End {
        fn new(slots: u64, before: u64) -> Self {
            let mut credits = SendCredits::new(Operation::Send, slots, 3 * slots + 16);
            // Starts after `before` messages in each direction, all consumed and announced.
            (credits.sent, credits.posted, credits.completed) = (before, before, before);
            (credits.consumed, credits.announced) = (before, before);
            let word = modulo(before);
            Self { credits, messages: 0, word, words: VecDeque::new(), device: VecDeque::new() }
        }

        fn has_credit(&self) -> bool {
            self.credits.has_credit(|| self.word)
        }

        fn posts(&mut self) {
            self.credits.posted += 1;
            self.device.push_back(self.credits.posted);
            assert!(self.device.len() as u64 <= self.credits.entries, "the send queue overflows");
        }

        /// Sends a message if there is a credit; true if there was.
        fn sends(&mut self, message: Message, peer: &mut Self) -> bool {
            if message == Message::OfARound && !self.credits.has_prechecked() {
                self.reaps();
                if !self.has_credit() {
                    return false;
                }
                self.credits.precheck(self.word);
            }
            if message == Message::OfARound {
                self.credits.post_prechecked();
                self.device.push_back(self.credits.posted);
            } else {
                self.reaps();
                if !self.has_credit() {
                    return false;
                }
                self.credits.forget_prechecked();
                self.posts();
                self.credits.sent += 1;
            }
            peer.messages += 1;
            assert!(peer.messages <= peer.credits.slots, "a message without a slot");
            assert!(self.device.len() as u64 <= self.credits.entries, "the send queue overflows");
            true
        }

        /// Polls completions as the link does if many are outstanding; the first request is
        /// completed.
        fn reaps(&mut self) {
            while self.credits.under_way() >= self.credits.reap_threshold() {
                match self.device.pop_front() {
                    Some(request) => self.credits.completed = request,
                    None => return,
                }
            }
        }

        fn tells(&mut self, peer: &mut Self) {
            while !self.credits.has_entries(1) {
                self.credits.completed = self.device.pop_front().expect("what is under way");
            }
            self.credits.forget_prechecked();
            self.posts();
            peer.words.push_back(self.credits.announcement());
            self.credits.note_announced();
        }

        /// Receives a message, or does the pending work if there is none; true if there was one.
        fn looks(&mut self, peer: &mut Self) -> bool {
            if self.messages == 0 {
                if self.credits.announcement_is_due() {
                    self.tells(peer);
                }
                return false;
            }
            self.messages -= 1;
            if self.credits.consume() {
                self.tells(peer);
            }
            true
        }

        fn hears(&mut self) {
            if let Some(word) = self.words.pop_front() {
                self.word = word;
            }
        }
    }

    /// The counters start just below 2³², so that they overflow; there are at least 2 slots.
    fn ends(slots: u8, before: u8) -> [End; 2] {
        let before = if before.is_multiple_of(2) { 0 } else { (1 << 32) - u64::from(before) };
        [(); 2].map(|()| End::new(2 << (slots % 7), before))
    }

    quickcheck! {
        fn no_message_is_without_a_place_and_no_queue_overflows(
            slots: u8, before: u8, steps: Vec<(bool, u8)>
        ) -> bool {
            let [mut near, mut far] = ends(slots, before);
            for (which, what) in steps {
                let (this, other) = if which { (&mut near, &mut far) } else { (&mut far, &mut near) };
                // As many as there are slots, so that limits are reached.
                for _ in 0..what / 4 {
                    match what % 4 {
                        0 => drop(this.sends(Message::OfARound, other)),
                        1 => drop(this.sends(Message::Other, other)),
                        2 => drop(this.looks(other)),
                        _ => this.hears(),
                    }
                }
            }
            true
        }

        fn who_waits_for_a_credit_gets_it_from_a_peer_that_looks(
            slots: u8, before: u8, messages: u16, of_rounds: bool
        ) -> bool {
            let [mut near, mut far] = ends(slots, before);
            let message = if of_rounds { Message::OfARound } else { Message::Other };
            let mut left = messages;
            // The ends act alternately.
            for _ in 0..4 * u32::from(messages) + 1_000 {
                if left > 0 && near.sends(message, &mut far) {
                    left -= 1;
                }
                far.looks(&mut near);
                near.hears();
            }
            left == 0
        }
    }

    #[test]
    fn a_peer_is_told_before_it_runs_out_of_places() {
        for slots in [2, 4, 8, 128] {
            let mut credits = SendCredits::new(Operation::Send, slots, 400);
            let in_a_row = (1..).find(|_| credits.consume()).unwrap();
            // Announcements are sent after half of the slots when idle, and always before all are
            // used.
            assert!(in_a_row > slots / 2 && in_a_row <= slots, "{slots}");
            assert!(credits.announcement_is_due());
            credits.note_announced();
            assert!(!credits.announcement_is_due());
        }
    }

    #[test]
    fn datagrams_and_reads_wait_for_their_own_queue_only() {
        let no_word = || unreachable!("nobody sends one");
        let mut credits = SendCredits::new(Operation::Datagram, 4, 28);
        (credits.sent, credits.posted) = (3, 3);
        assert!(credits.has_credit(no_word));
        credits.posted = 4;
        assert!(!credits.has_credit(no_word));
        credits.completed = 1;
        assert!(credits.has_credit(no_word));
        let mut credits = SendCredits::new(Operation::Read, 4, 28);
        credits.posted = 26;
        assert!(credits.has_credit(no_word));
        credits.posted = 27;
        assert!(!credits.has_credit(no_word) && credits.has_entries(1));
    }
}
