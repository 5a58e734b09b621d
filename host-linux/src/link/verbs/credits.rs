//! Send credits: how much an end may send.
//!
//! A message takes an entry of the send queue until it is known to be over, and a slot
//! at the peer until the peer says that it has consumed it. The peer announces
//! the number of messages that it has consumed so far, modulo 2³²: after half of the
//! slots where it has time, after three quarters in a burst without a pause. Datagrams
//! are not answered for: their slots count as free when they have been sent. Reads
//! take no slot.

use super::settings::Operation;

/// Most work requests of one message: itself and the word about its last byte.
const REQUESTS_OF_A_MESSAGE: u64 = 2;

/// Counts of one end since its link was made.
#[derive(Debug)]
pub(super) struct SendCredits {
    operation: Operation,
    /// Slots for messages of each direction.
    slots: u64,
    /// Entries of the send queue.
    entries: u64,
    /// Messages sent.
    pub(super) sent: u64,
    /// Work requests posted, and how many of them are known to be over.
    pub(super) posted: u64,
    pub(super) completed: u64,
    /// Messages received, and how many of them were announced to the peer.
    pub(super) consumed: u64,
    announced: u64,
    /// Messages of rounds for which credits were found before.
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

    /// Work requests that are not known to be over.
    #[inline(always)]
    pub(super) const fn under_way(&self) -> u64 {
        self.posted - self.completed
    }

    /// Whether the send queue takes `count` more requests.
    #[inline]
    pub(super) const fn has_entries(&self, count: u64) -> bool {
        self.under_way() + count <= self.entries
    }

    /// Whether one more message finds a slot at both ends; `announced` gives what the peer has announced.
    #[inline]
    pub(super) fn has_credit(&self, announced: impl FnOnce() -> u32) -> bool {
        self.has_entries(REQUESTS_OF_A_MESSAGE) && self.taken(announced) < self.slots
    }

    /// Slots whose messages are not known to have been consumed; of datagrams, to have
    /// been sent.
    #[inline]
    fn taken(&self, announced: impl FnOnce() -> u32) -> u64 {
        match self.operation {
            Operation::Read => 0,
            Operation::Datagram => self.under_way(),
            _ => u64::from(modulo(self.sent).wrapping_sub(announced())),
        }
    }

    /// Requests under way from which on their completions are looked for.
    pub(super) const fn reap_threshold(&self) -> u64 {
        match self.operation {
            Operation::Datagram => self.slots / 2,
            _ => self.entries / 2,
        }
    }

    /// Counts how many messages of rounds have credits, one at least: the caller
    /// [`Self::has_credit`]. Completions are to be looked at after those.
    pub(super) fn precheck(&mut self, announced: u32) {
        // The peer may write its count at any time.
        let slots = self.slots.saturating_sub(self.taken(|| announced));
        let entries = self.reap_threshold().saturating_sub(self.under_way());
        self.prechecked = slots.min(entries).max(1);
    }

    /// Whether the next message of a round has a credit without a look for one.
    #[inline(always)]
    pub(super) const fn has_prechecked(&self) -> bool {
        self.prechecked > 0
    }

    /// A message of a round was posted, for which a credit was found before.
    #[inline(always)]
    pub(super) const fn post_prechecked(&mut self) {
        self.prechecked -= 1;
        self.posted += 1;
        self.sent += 1;
    }

    /// A request is posted that was not counted: it takes an entry, and perhaps a slot.
    #[inline(always)]
    pub(super) const fn forget_prechecked(&mut self) {
        self.prechecked = 0;
    }

    /// A message was received. Whether the peer has to get an announcement at once, before it runs
    /// out of slots.
    #[inline(always)]
    pub(super) const fn consume(&mut self) -> bool {
        self.consumed += 1;
        self.consumed - self.announced >= self.slots - self.slots / 4
    }

    /// Whether the peer has to get an announcement where there is time for it.
    #[inline]
    pub(super) const fn announcement_is_due(&self) -> bool {
        self.consumed - self.announced >= self.slots / 2
    }

    /// What is announced to the peer.
    pub(super) const fn announcement(&self) -> u32 {
        modulo(self.consumed)
    }

    /// It was announced.
    pub(super) const fn note_announced(&mut self) {
        self.announced = self.consumed;
    }
}

/// What is announced is counted modulo 2³².
#[allow(clippy::cast_possible_truncation, reason = "counts modulo 2³²")]
const fn modulo(count: u64) -> u32 {
    count as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;
    use std::collections::VecDeque;

    /// An end, what travels to it, and the word that its peer has written.
    struct End {
        credits: SendCredits,
        messages: u64,
        word: u32,
        words: VecDeque<u32>,
        /// Requests of which the device will say that they are over.
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
            // After so many messages each way, all consumed and announced.
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

        /// Sends a message where it has a credit; whether it had.
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

        /// As the link does where many are under way; the device is done with the first.
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

        /// Takes a message, or does what is due when there is none; whether there was.
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

    /// Counts up to where 2³² is passed, slots from 2 on.
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
            // Each end does one thing in turn.
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
            // Not before the half that is told of when there is time; never after all.
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
