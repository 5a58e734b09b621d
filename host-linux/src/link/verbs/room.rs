//! How much an end may send.
//!
//! A message takes an entry of the send queue until it is known to be over, and a place
//! at the peer until the peer says that it has consumed it. The peer says so by a word,
//! the number of messages that it has consumed so far, modulo 2³²: after half of the
//! places where it has time, after three quarters in a burst without a pause. Datagrams
//! are not answered for: their places count as free when they have been sent. Reads
//! take no place.

use super::settings::Operation;

/// Most work requests of one message: itself and the word about its last byte.
const REQUESTS_OF_A_MESSAGE: u64 = 2;

/// Counts of one end since its link was made.
#[derive(Debug)]
pub(super) struct Room {
    operation: Operation,
    /// Places for messages of each direction.
    places: u64,
    /// Entries of the send queue.
    entries: u64,
    /// Messages sent.
    pub(super) sent: u64,
    /// Work requests posted, and how many of them are known to be over.
    pub(super) posted: u64,
    pub(super) completed: u64,
    /// Messages received, and how many of them the peer knows of.
    pub(super) consumed: u64,
    told: u64,
    /// Messages of rounds that find room without a look for it.
    unchecked: u64,
}

impl Room {
    pub(super) const fn new(operation: Operation, places: u64, entries: u64) -> Self {
        Self {
            operation,
            places,
            entries,
            sent: 0,
            posted: 0,
            completed: 0,
            consumed: 0,
            told: 0,
            unchecked: 0,
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

    /// Whether one more message finds a place at both ends; `word` is the peer's.
    #[inline]
    pub(super) fn has_room(&self, word: impl FnOnce() -> u32) -> bool {
        self.has_entries(REQUESTS_OF_A_MESSAGE) && self.taken(word) < self.places
    }

    /// Places whose messages are not known to have been consumed; of datagrams, to have
    /// been sent.
    #[inline]
    fn taken(&self, word: impl FnOnce() -> u32) -> u64 {
        match self.operation {
            Operation::Read => 0,
            Operation::Datagram => self.under_way(),
            _ => u64::from(modulo(self.sent).wrapping_sub(word())),
        }
    }

    /// Requests under way from which on their completions are looked for.
    pub(super) const fn many(&self) -> u64 {
        match self.operation {
            Operation::Datagram => self.places / 2,
            _ => self.entries / 2,
        }
    }

    /// Counts for how many messages of rounds there is room, one at least: it
    /// [`Self::has_room`]. Completions are to be looked at after those.
    pub(super) fn count_unchecked(&mut self, word: u32) {
        // The peer may write its word at any time.
        let places = self.places.saturating_sub(self.taken(|| word));
        let entries = self.many().saturating_sub(self.under_way());
        self.unchecked = places.min(entries).max(1);
    }

    /// Whether the next message of a round finds room without a look for it.
    #[inline(always)]
    pub(super) const fn is_counted(&self) -> bool {
        self.unchecked > 0
    }

    /// A message of a round was posted, for which room was counted.
    #[inline(always)]
    pub(super) const fn post_counted(&mut self) {
        self.unchecked -= 1;
        self.posted += 1;
        self.sent += 1;
    }

    /// A request is posted that was not counted: it takes an entry, and perhaps a place.
    #[inline(always)]
    pub(super) const fn forget_counted(&mut self) {
        self.unchecked = 0;
    }

    /// A message was received. Whether the peer has to be told at once, before it runs
    /// out of places.
    #[inline(always)]
    pub(super) const fn consume(&mut self) -> bool {
        self.consumed += 1;
        self.consumed - self.told >= self.places - self.places / 4
    }

    /// Whether the peer has to be told where there is time for it.
    #[inline]
    pub(super) const fn owes_a_word(&self) -> bool {
        self.consumed - self.told >= self.places / 2
    }

    /// The word for the peer.
    pub(super) const fn word(&self) -> u32 {
        modulo(self.consumed)
    }

    /// The word was sent.
    pub(super) const fn note_told(&mut self) {
        self.told = self.consumed;
    }
}

/// What is told is counted modulo 2³².
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
        room: Room,
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
        fn new(places: u64, before: u64) -> Self {
            let mut room = Room::new(Operation::Send, places, 3 * places + 16);
            // After so many messages each way, all consumed and told.
            (room.sent, room.posted, room.completed) = (before, before, before);
            (room.consumed, room.told) = (before, before);
            let word = modulo(before);
            Self { room, messages: 0, word, words: VecDeque::new(), device: VecDeque::new() }
        }

        fn has_room(&self) -> bool {
            self.room.has_room(|| self.word)
        }

        fn posts(&mut self) {
            self.room.posted += 1;
            self.device.push_back(self.room.posted);
            assert!(self.device.len() as u64 <= self.room.entries, "the send queue overflows");
        }

        /// Sends a message where there is room; whether there was.
        fn sends(&mut self, message: Message, peer: &mut Self) -> bool {
            if message == Message::OfARound && !self.room.is_counted() {
                self.reaps();
                if !self.has_room() {
                    return false;
                }
                self.room.count_unchecked(self.word);
            }
            if message == Message::OfARound {
                self.room.post_counted();
                self.device.push_back(self.room.posted);
            } else {
                self.reaps();
                if !self.has_room() {
                    return false;
                }
                self.room.forget_counted();
                self.posts();
                self.room.sent += 1;
            }
            peer.messages += 1;
            assert!(peer.messages <= peer.room.places, "a message without a place");
            assert!(self.device.len() as u64 <= self.room.entries, "the send queue overflows");
            true
        }

        /// As the link does where many are under way; the device is done with the first.
        fn reaps(&mut self) {
            while self.room.under_way() >= self.room.many() {
                match self.device.pop_front() {
                    Some(request) => self.room.completed = request,
                    None => return,
                }
            }
        }

        fn tells(&mut self, peer: &mut Self) {
            while !self.room.has_entries(1) {
                self.room.completed = self.device.pop_front().expect("what is under way");
            }
            self.room.forget_counted();
            self.posts();
            peer.words.push_back(self.room.word());
            self.room.note_told();
        }

        /// Takes a message, or does what is due when there is none; whether there was.
        fn looks(&mut self, peer: &mut Self) -> bool {
            if self.messages == 0 {
                if self.room.owes_a_word() {
                    self.tells(peer);
                }
                return false;
            }
            self.messages -= 1;
            if self.room.consume() {
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

    /// Counts up to where 2³² is passed, places from 2 on.
    fn ends(places: u8, before: u8) -> [End; 2] {
        let before = if before.is_multiple_of(2) { 0 } else { (1 << 32) - u64::from(before) };
        [(); 2].map(|()| End::new(2 << (places % 7), before))
    }

    quickcheck! {
        fn no_message_is_without_a_place_and_no_queue_overflows(
            places: u8, before: u8, steps: Vec<(bool, u8)>
        ) -> bool {
            let [mut near, mut far] = ends(places, before);
            for (which, what) in steps {
                let (this, other) = if which { (&mut near, &mut far) } else { (&mut far, &mut near) };
                // As many as there are places, so that limits are reached.
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

        fn who_waits_for_room_gets_it_from_a_peer_that_looks(
            places: u8, before: u8, messages: u16, of_rounds: bool
        ) -> bool {
            let [mut near, mut far] = ends(places, before);
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
        for places in [2, 4, 8, 128] {
            let mut room = Room::new(Operation::Send, places, 400);
            let in_a_row = (1..).find(|_| room.consume()).unwrap();
            // Not before the half that is told of when there is time; never after all.
            assert!(in_a_row > places / 2 && in_a_row <= places, "{places}");
            assert!(room.owes_a_word());
            room.note_told();
            assert!(!room.owes_a_word());
        }
    }

    #[test]
    fn datagrams_and_reads_wait_for_their_own_queue_only() {
        let no_word = || unreachable!("nobody sends one");
        let mut room = Room::new(Operation::Datagram, 4, 28);
        (room.sent, room.posted) = (3, 3);
        assert!(room.has_room(no_word));
        room.posted = 4;
        assert!(!room.has_room(no_word));
        room.completed = 1;
        assert!(room.has_room(no_word));
        let mut room = Room::new(Operation::Read, 4, 28);
        room.posted = 26;
        assert!(room.has_room(no_word));
        room.posted = 27;
        assert!(!room.has_room(no_word) && room.has_entries(1));
    }
}
