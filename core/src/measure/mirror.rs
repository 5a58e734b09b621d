//! The responder's half of a session as a state machine without I/O.

use super::{Expected, LinkProperties};
use crate::units::Picos;
use crate::wire::{
    Bounds, FRAME_LEN, Hello, Limited, Refusal, Reply, ReplyPolicy, Request, Round, RoundList,
    Rounds, Versions, Welcome, tag_of,
};

/// How a session came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Ending {
    /// The initiator said goodbye.
    Goodbye,
    /// The responder refused to go on, and said so.
    Refused(Refusal),
}

/// Counts of one session, as the responder sees them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Served {
    /// Data messages received, stray ones included.
    pub received: u64,
    /// Data messages sent.
    pub replied: u64,
    /// Rounds that came to their end.
    pub rounds: u64,
    /// Messages that belonged to no round under way.
    pub strays: u64,
}

/// Answers control frames and mirrors rounds.
///
/// Feed every message to [`Mirror::handle`], then send what
/// [`Mirror::poll_transmit`] gives until it gives nothing, before the next
/// one; the session is over when there is an [`Mirror::ending`]. Who receives
/// in a tight loop asks [`Mirror::burst`] what comes next, counts it and calls
/// [`Mirror::handle_burst`] instead. Nothing here waits; `now` never
/// decreases. One buffer is enough for both directions.
#[derive(Debug)]
pub struct Mirror {
    /// Of this session: what was agreed, or what is offered before.
    bounds: Bounds,
    datagrams: bool,
    began: Picos,
    /// What was announced last. Of a round that is over, its `pause` is what
    /// the timed receive calls took: memory for both would be 128 bytes more.
    rounds: Rounds,
    /// Sequence number of the batch.
    batch: u32,
    /// The round under way, past the end if there is none.
    index: usize,
    sequence: u32,
    messages_left: u32,
    repeats_left: u16,
    /// Receive times of the round under way.
    timed: Picos,
    answer: Answer,
    /// A report follows the answer.
    report_due: bool,
    state: State,
    /// Why it was refused.
    refusal: Refusal,
    served: Served,
}

/// How far the session is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Closed,
    Open,
    /// The initiator said goodbye.
    Left,
    Refused,
}

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Nothing,
    Data { tag: u8, length: usize },
    Welcome { version: u8 },
    Ready,
    Synced { token: u32 },
    Refusal,
}

/// What the next message is like.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Awaited {
    /// Its bytes on a stream.
    pub length: usize,
    /// Whether the receive call for it is to be timed and its duration given
    /// to [`Mirror::handle_timed`].
    pub timed: bool,
    /// How long to busy-wait before looking for it.
    pub pause: Picos,
}

/// Messages that come next and need nothing but to be received and counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Burst {
    /// How many, at least 1: up to the next reply.
    pub messages: u32,
    /// What each of them looks like.
    pub expected: Expected,
}

impl Mirror {
    /// A mirror that allows what `bounds` allows, on a link with
    /// `properties`.
    #[must_use]
    pub const fn new(bounds: Bounds, properties: LinkProperties) -> Self {
        Self {
            bounds,
            datagrams: !properties.reliable,
            began: Picos::ZERO,
            rounds: Rounds::new(),
            batch: 0,
            index: 0,
            sequence: 0,
            messages_left: 0,
            repeats_left: 0,
            timed: Picos::ZERO,
            answer: Answer::Nothing,
            report_due: false,
            state: State::Closed,
            refusal: Refusal::Malformed { at: 0 },
            served: Served { received: 0, replied: 0, rounds: 0, strays: 0 },
        }
    }

    /// What was counted so far.
    #[must_use]
    pub const fn served(&self) -> &Served {
        &self.served
    }

    /// How the session ended, if it did.
    #[must_use]
    pub const fn ending(&self) -> Option<Ending> {
        match self.state {
            State::Closed | State::Open => None,
            State::Left => Some(Ending::Goodbye),
            State::Refused => Some(Ending::Refused(self.refusal)),
        }
    }

    /// The bounds in force.
    #[must_use]
    pub const fn agreed(&self) -> &Bounds {
        &self.bounds
    }

    /// The round under way.
    #[inline]
    fn round(&self) -> Option<&Round> {
        self.rounds.get(self.index)
    }

    /// Bytes of the replies of the round under way.
    #[must_use]
    pub fn reply_length(&self) -> usize {
        self.round().map_or(0, |round| to_usize(round.reply_size))
    }

    /// What the next message is like.
    #[must_use]
    pub fn awaited(&self) -> Awaited {
        let Some(round) = self.round() else {
            return Awaited { length: FRAME_LEN, timed: false, pause: Picos::ZERO };
        };
        let first = self.messages_left >= round.messages;
        Awaited {
            length: to_usize(round.size),
            timed: round.timed && !first,
            pause: if first { Picos::ZERO } else { round.pause },
        }
    }

    /// The messages of the round under way up to its next reply, `None`
    /// outside of rounds and where each receive has to be timed or waited
    /// for.
    #[must_use]
    #[inline]
    pub fn burst(&self) -> Option<Burst> {
        let round = self.round()?;
        if round.timed || round.pause > Picos::ZERO {
            return None;
        }
        let messages = match round.policy {
            ReplyPolicy::AfterLast => self.messages_left,
            ReplyPolicy::AfterEach => 1,
        };
        let (length, tag) = (to_usize(round.size), tag_of(self.sequence));
        Some(Burst { messages, expected: Expected { length, tag, datagrams: self.datagrams } })
    }

    /// Takes the duration of the receive call before its message.
    pub fn handle_timed(&mut self, duration: Picos) {
        self.timed = Picos(self.timed.0.saturating_add(duration.0));
    }

    /// Takes one message of the initiator; none after the session's end.
    pub fn handle(&mut self, now: Picos, message: &[u8]) {
        self.handle_time(now);
        if matches!(self.state, State::Left | State::Refused) {
            return;
        }
        let tag = tag_of(self.sequence);
        match self.round() {
            Some(round)
                if message.len() == to_usize(round.size) && message.first() == Some(&tag) =>
            {
                self.handle_burst(1);
            }
            _ => {
                if let Err(refusal) = self.hear(now, message) {
                    self.refuse(refusal);
                }
            }
        }
    }

    /// Takes `count` messages of a [`Burst`], at most as many as it has.
    #[cfg_attr(not(target_os = "none"), inline)]
    #[cfg_attr(target_os = "none", inline(never))]
    pub fn handle_burst(&mut self, count: u32) {
        let Some(&Round { policy, reply_size, .. }) = self.round() else { return };
        self.served.received += u64::from(count);
        self.messages_left = self.messages_left.saturating_sub(count);
        let done = self.messages_left == 0;
        if !done && policy == ReplyPolicy::AfterLast {
            return;
        }
        self.served.replied += 1;
        self.answer = Answer::Data { tag: tag_of(self.sequence), length: to_usize(reply_size) };
        if done {
            self.finish_round();
        }
    }

    /// Time has passed: refuses to go on once the session lasts too long.
    pub fn handle_time(&mut self, now: Picos) {
        let (age, allowed) = (now.since(self.began), self.bounds.session);
        if self.state == State::Open && age > allowed {
            let (what, asked, allowed) = (Limited::Session, age.0, allowed.0);
            self.refuse(Refusal::Bounds { what, asked, allowed });
        }
    }

    /// Nothing came for as long as the bounds allow. On a datagram link the
    /// round is dropped and the session waits once more; true when it is
    /// over.
    pub fn handle_silence(&mut self) -> bool {
        let waited_for_data = self.round().is_some();
        self.rounds.clear();
        !(self.datagrams && waited_for_data)
    }

    /// The length of the next message to be sent, which stands at the front
    /// of `outgoing` then. Of a reply the rest is as it was.
    #[inline]
    pub fn poll_transmit(&mut self, outgoing: &mut [u8]) -> Option<usize> {
        if let Answer::Data { tag, length } = self.answer {
            self.answer = Answer::Nothing;
            let length = length.min(outgoing.len());
            *outgoing.first_mut()? = tag;
            return Some(length);
        }
        if self.is_transmit_due() { self.poll_control(outgoing) } else { None }
    }

    /// Whether [`Mirror::poll_transmit`] has something.
    #[must_use]
    pub const fn is_transmit_due(&self) -> bool {
        self.report_due || !matches!(self.answer, Answer::Nothing)
    }

    #[inline(never)]
    fn poll_control(&mut self, outgoing: &mut [u8]) -> Option<usize> {
        let reply = match core::mem::replace(&mut self.answer, Answer::Nothing) {
            Answer::Welcome { version } => {
                Reply::Welcome(Welcome { version, capabilities: 0, bounds: self.bounds })
            }
            Answer::Ready => Reply::Ready { sequence: self.batch },
            Answer::Synced { token } => {
                let Served { received, replied, .. } = self.served;
                Reply::Synced { token, received, replied }
            }
            Answer::Refusal => Reply::Refuse(self.refusal),
            _ if !self.report_due => return None,
            _ => {
                self.report_due = false;
                Reply::Report {
                    sequence: self.batch,
                    values: self.rounds.iter().map(|round| round.pause),
                }
            }
        };
        reply.emit(outgoing.first_chunk_mut()?);
        Some(FRAME_LEN)
    }

    /// Ends the round or goes to its next repetition or to the next round.
    fn finish_round(&mut self) {
        self.served.rounds += 1;
        self.sequence = self.sequence.wrapping_add(1);
        self.repeats_left = self.repeats_left.saturating_sub(1);
        let Some(round) = self.rounds.get_mut(self.index) else { return };
        if self.repeats_left > 0 {
            self.messages_left = round.messages;
            return;
        }
        round.pause = if round.timed { self.timed } else { Picos::ZERO };
        self.begin(self.index + 1);
        self.report_due = self.round().is_none() && self.rounds.iter().any(|round| round.timed);
    }

    /// Begins the round `index` of the batch, if there is one.
    fn begin(&mut self, index: usize) {
        self.index = index;
        self.timed = Picos::ZERO;
        if let Some(round) = self.rounds.get(index) {
            (self.messages_left, self.repeats_left) = (round.messages, round.repeats);
        }
    }

    /// A message that is not one of the round under way, if there is one.
    #[cold]
    fn hear(&mut self, now: Picos, message: &[u8]) -> Result<(), Refusal> {
        let open = self.state == State::Open;
        self.answer = match &Request::parse(message) {
            // A late or repeated message of a round that was given up.
            Err(_) if self.datagrams && open => {
                self.served.received += 1;
                self.served.strays += 1;
                Answer::Nothing
            }
            Err(error) => return Err(Refusal::Malformed { at: error.at as u64 }),
            // Control frames come during a round only where messages get lost.
            Ok(request) if !self.datagrams && self.round().is_some() => {
                return Err(Refusal::OutOfOrder { kind: request.kind() });
            }
            Ok(Request::Hello(hello)) if self.datagrams || !open => self.welcome(now, hello)?,
            Ok(Request::Bye) => {
                self.state = State::Left;
                Answer::Nothing
            }
            Ok(Request::Batch { sequence, rounds }) if open => {
                self.announced(*sequence, rounds)?;
                Answer::Ready
            }
            Ok(Request::Sync { token }) if open => {
                self.rounds.clear();
                Answer::Synced { token: *token }
            }
            Ok(request) => return Err(Refusal::OutOfOrder { kind: request.kind() }),
        };
        Ok(())
    }

    /// Opens the session. A greeting that is repeated because its answer was
    /// lost is answered again and changes nothing.
    fn welcome(&mut self, now: Picos, hello: &Hello) -> Result<Answer, Refusal> {
        let Some(version) = hello.versions.newest_common(Versions::OURS) else {
            let (initiator, responder) = (hello.versions, Versions::OURS);
            return Err(Refusal::Version { initiator, responder });
        };
        if self.state == State::Closed {
            self.state = State::Open;
            self.began = now;
            self.bounds = self.bounds.narrowed(hello.bounds);
        }
        Ok(Answer::Welcome { version })
    }

    fn announced(&mut self, sequence: u32, rounds: &RoundList<'_>) -> Result<(), Refusal> {
        (self.batch, self.sequence) = (sequence, sequence);
        self.rounds.clear();
        for round in rounds.iter() {
            // A list is as long as the room, at most.
            let _ = self.rounds.push(round);
        }
        self.begin(0);
        self.bounds.check(&self.rounds)
    }

    #[cold]
    #[inline(never)]
    fn refuse(&mut self, refusal: Refusal) {
        self.rounds.clear();
        (self.answer, self.report_due) = (Answer::Refusal, false);
        (self.state, self.refusal) = (State::Refused, refusal);
    }
}

fn to_usize(bytes: u32) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;
    use crate::wire::Message;
    use quickcheck::quickcheck;
    use std::vec;
    use std::vec::Vec;

    const RELIABLE: LinkProperties = LinkProperties { max_message: Bytes(1 << 20), reliable: true };
    const DATAGRAMS: LinkProperties = LinkProperties { reliable: false, ..RELIABLE };

    fn frame(message: &Message) -> [u8; FRAME_LEN] {
        let mut frame = [0; FRAME_LEN];
        message.emit(&mut frame);
        frame
    }

    /// What is sent for a message, at the front of `outgoing`.
    fn told(mirror: &mut Mirror, message: &[u8], outgoing: &mut [u8]) -> Option<usize> {
        mirror.handle(Picos::ZERO, message);
        mirror.poll_transmit(outgoing)
    }

    fn say(mirror: &mut Mirror, message: &Message, outgoing: &mut [u8]) {
        assert_eq!(told(mirror, &frame(message), outgoing), Some(FRAME_LEN));
    }

    fn hello(versions: Versions) -> Message {
        Message::Hello(Hello { versions, capabilities: 0, bounds: Bounds::default() })
    }

    fn round(messages: u32, size: u32) -> Round {
        Round {
            messages,
            size,
            reply_size: size,
            policy: ReplyPolicy::AfterLast,
            timed: false,
            repeats: 1,
            pause: Picos::ZERO,
        }
    }

    fn batch(sequence: u32, round: Round) -> Message {
        Message::Batch { sequence, rounds: Rounds::from_array([round]) }
    }

    #[test]
    fn a_version_mismatch_is_named_to_the_initiator() {
        let mut outgoing = [0; FRAME_LEN];
        let mut mirror = Mirror::new(Bounds::default(), RELIABLE);
        let theirs = Versions { lowest: 7, highest: 9 };
        say(&mut mirror, &hello(theirs), &mut outgoing);
        let refusal = Refusal::Version { initiator: theirs, responder: Versions::OURS };
        assert_eq!(mirror.ending(), Some(Ending::Refused(refusal)));
        assert_eq!(Message::parse(&outgoing), Ok(Message::Refuse(refusal)));
    }

    #[test]
    fn a_batch_beyond_the_announced_bounds_is_refused() {
        let mut outgoing = [0; FRAME_LEN];
        let mut mirror = Mirror::new(Bounds { message: 10, ..Bounds::default() }, RELIABLE);
        say(&mut mirror, &hello(Versions::OURS), &mut outgoing);
        let Ok(Message::Welcome(welcome)) = Message::parse(&outgoing) else { panic!() };
        assert_eq!(welcome.bounds.message, 10);
        say(&mut mirror, &batch(0, round(1, 11)), &mut outgoing);
        let refusal = Refusal::Bounds { what: Limited::Message, asked: 11, allowed: 10 };
        assert_eq!(mirror.ending(), Some(Ending::Refused(refusal)));
    }

    #[test]
    fn a_round_is_answered_once_after_its_last_message() {
        let mut outgoing = [0; FRAME_LEN];
        let mut mirror = Mirror::new(Bounds::default(), RELIABLE);
        say(&mut mirror, &hello(Versions::OURS), &mut outgoing);
        say(&mut mirror, &batch(5, round(3, 4)), &mut outgoing);
        assert_eq!(mirror.awaited().length, 4);
        let message = [tag_of(5), 1, 2, 3];
        let mut handle = || told(&mut mirror, &message, &mut outgoing);
        assert_eq!((handle(), handle(), handle()), (None, None, Some(4)));
        assert_eq!(outgoing[0], tag_of(5));
        assert_eq!(mirror.awaited().length, FRAME_LEN);
        assert_eq!((mirror.served().received, mirror.served().rounds), (3, 1));
    }

    #[test]
    fn a_lost_round_on_datagrams_ends_with_the_next_control_frame() {
        let mut outgoing = [0; FRAME_LEN];
        let mut mirror = Mirror::new(Bounds::default(), DATAGRAMS);
        say(&mut mirror, &hello(Versions::OURS), &mut outgoing);
        say(&mut mirror, &batch(5, round(3, 4)), &mut outgoing);
        mirror.handle(Picos::ZERO, &[tag_of(5), 1, 2, 3]);
        say(&mut mirror, &Message::Sync { token: 9 }, &mut outgoing);
        let synced = Message::Synced { token: 9, received: 1, replied: 0 };
        assert_eq!(Message::parse(&outgoing), Ok(synced));
    }

    #[test]
    fn rounds_before_the_handshake_are_refused() {
        let mut outgoing = [0; FRAME_LEN];
        let mut mirror = Mirror::new(Bounds::default(), RELIABLE);
        say(&mut mirror, &batch(0, round(1, 1)), &mut outgoing);
        let refusal = Refusal::OutOfOrder { kind: 5 };
        assert_eq!(mirror.ending(), Some(Ending::Refused(refusal)));
    }

    quickcheck! {
        fn any_messages_in_any_order_stay_within_the_bounds(script: Vec<(u8, Vec<u8>)>) -> bool {
            let bounds = Bounds { message: 600, messages: 20, ..Bounds::default() };
            [RELIABLE, DATAGRAMS].into_iter().all(|properties| {
                let mut mirror = Mirror::new(bounds, properties);
                let mut outgoing = vec![0; 600];
                script.iter().all(|(kind, bytes)| {
                    let size = 1 + u32::try_from(bytes.len()).unwrap() * 40;
                    let message = match kind % 6 {
                        0 => frame(&hello(Versions::OURS)).to_vec(),
                        1 => frame(&batch(0, round(1 + u32::from(*kind), size))).to_vec(),
                        2 => frame(&Message::Sync { token: size }).to_vec(),
                        3 => vec![tag_of(size); mirror.awaited().length],
                        4 => vec![0; mirror.awaited().length],
                        _ => bytes.clone(),
                    };
                    let before = mirror.served().replied;
                    mirror.handle(Picos(1), &message);
                    let mut sent = core::iter::from_fn(|| mirror.poll_transmit(&mut outgoing));
                    sent.by_ref().take(2).all(|length| length <= 600)
                        && sent.next().is_none()
                        && mirror.awaited().length <= 600
                        && mirror.served().replied <= before.max(1) + 1
                })
            })
        }
    }
}
