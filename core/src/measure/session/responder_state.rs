//! State machine of the responder's end of a session, without I/O.

use crate::measure::{Expected, LinkProperties};
use crate::units::Picos;
use crate::wire::{
    Bounds, CAPABILITY_DESCRIPTION, DescriptionPart, DescriptionRequest, FRAME_LEN, Hello, Limited,
    Refusal, Reply, ReplyPolicy, Request, Round, RoundList, Rounds, Versions, Welcome, tag_of,
};

/// How a session ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Ending {
    /// The initiator said goodbye.
    Goodbye,
    /// The responder refused to continue and has sent the reason.
    Refused(Refusal),
}

/// Counts of one session at the responder.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Served {
    /// Data messages received, including stray ones.
    pub received: u64,
    /// Data messages sent.
    pub replied: u64,
    /// Rounds completed.
    pub rounds: u64,
    /// Messages that belonged to no current round, and hellos of peers that had not echoed the
    /// nonce.
    pub strays: u64,
}

/// Responder state machine: answers control frames and the messages of rounds.
///
/// Pass every message to [`ResponderState::handle`], then send the frames of
/// [`ResponderState::poll_transmit`] until it returns `None`, before the next message. The session
/// is over when [`ResponderState::ending`] returns a value. A tight receive loop calls
/// [`ResponderState::burst`] for the next messages, counts them and calls
/// [`ResponderState::handle_burst`] instead. No call waits; `now` never decreases. One buffer is
/// enough for both directions.
///
/// The source address of a datagram may be forged. A state with a nonce opens no session before the
/// peer has echoed it. Until then it answers a hello with one frame of the same length, and nothing
/// else.
///
/// `D` is the description of this end; an empty one takes no code.
#[derive(Debug)]
pub struct ResponderState<D = [u8; 0]> {
    /// Bounds agreed for this session; before it, those offered.
    bounds: Bounds,
    datagrams: bool,
    /// Nonce to be echoed before the session opens; 0 if none is required.
    nonce: u64,
    description: D,
    began: Picos,
    /// Rounds of the last batch. After a round its `pause` holds the duration of its timed receive
    /// calls, since memory for both would take 128 bytes more.
    rounds: Rounds,
    /// Sequence number of the batch.
    batch: u32,
    /// Index of the current round; past the end between batches.
    index: usize,
    sequence: u32,
    messages_left: u32,
    repeats_left: u16,
    /// Duration of the current round's timed receive calls.
    timed: Picos,
    answer: Answer,
    /// True if a report follows the answer.
    report_due: bool,
    state: State,
    /// Reason of the refusal.
    refusal: Refusal,
    served: Served,
}

/// Progress of the session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Closed,
    Open,
    /// The initiator said goodbye.
    Left,
    Refused,
}

/// Frame to be sent.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Nothing,
    Data { tag: u8, length: usize },
    Challenge,
    Welcome { version: u8, capabilities: u32 },
    Description { offset: u32 },
    Ready,
    Synced { token: u32 },
    Refusal,
}

/// Receive parameters of the next message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Awaited {
    /// Length in bytes, on a stream.
    pub length: usize,
    /// True if the receive call has to be timed and its duration passed to
    /// [`ResponderState::handle_timed`].
    pub timed: bool,
    /// Busy wait before the first poll.
    pub pause: Picos,
}

/// Next messages that only have to be received and counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Burst {
    /// Number of messages up to the next reply, at least 1.
    pub messages: u32,
    /// Properties of each message.
    pub expected: Expected,
}

impl ResponderState {
    /// Responder that allows `bounds`, on a link with `properties` to a peer whose address is
    /// verified: on a stream, or by other means.
    #[must_use]
    pub const fn new(bounds: Bounds, properties: LinkProperties) -> Self {
        Self::with(bounds, properties, 0, [])
    }
}

impl<D: AsRef<[u8]>> ResponderState<D> {
    /// Responder that opens a session on a datagram link only after the peer has echoed `nonce`,
    /// which is unpredictable and different for each state; 0 requires no echo. `description` is
    /// UTF-8.
    #[must_use]
    pub const fn with(
        bounds: Bounds,
        properties: LinkProperties,
        nonce: u64,
        description: D,
    ) -> Self {
        Self {
            bounds,
            datagrams: !properties.reliable,
            nonce: if properties.reliable { 0 } else { nonce },
            description,
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

    /// Counts so far.
    #[must_use]
    pub const fn served(&self) -> &Served {
        &self.served
    }

    /// How the session ended; `None` while it continues.
    #[must_use]
    pub const fn ending(&self) -> Option<Ending> {
        match self.state {
            State::Closed | State::Open => None,
            State::Left => Some(Ending::Goodbye),
            State::Refused => Some(Ending::Refused(self.refusal)),
        }
    }

    /// Bounds in force.
    #[must_use]
    pub const fn agreed(&self) -> &Bounds {
        &self.bounds
    }

    /// Current round.
    #[inline]
    fn round(&self) -> Option<&Round> {
        self.rounds.get(self.index)
    }

    /// Length of the current round's replies, in bytes.
    #[must_use]
    pub fn reply_length(&self) -> usize {
        self.round().map_or(0, |round| to_usize(round.reply_size))
    }

    /// Receive parameters of the next message.
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

    /// Messages of the current round up to its next reply; `None` outside rounds and if receives
    /// have to be timed or paused.
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

    /// Adds the duration of a receive call, before its message is handled.
    pub fn handle_timed(&mut self, duration: Picos) {
        self.timed = Picos(self.timed.0.saturating_add(duration.0));
    }

    /// Handles one message of the initiator; ignored after the session's end.
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
                if let Err(refusal) = self.handle_control(now, message) {
                    self.refuse(refusal);
                }
            }
        }
    }

    /// Handles `count` messages of a [`Burst`], at most as many as it has.
    #[cfg_attr(not(target_os = "none"), inline(always))]
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

    /// Handles the passing of time: refuses to continue once the session has lasted too long.
    pub fn handle_time(&mut self, now: Picos) {
        let (age, allowed) = (now.since(self.began), self.bounds.session);
        if self.state == State::Open && age > allowed {
            let (what, asked, allowed) = (Limited::Session, age.0, allowed.0);
            self.refuse(Refusal::Bounds { what, asked, allowed });
        }
    }

    /// Writes the next frame to the front of `outgoing` and returns its length; `None` if there is
    /// none. Of a reply only the first byte is written.
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

    /// True if [`ResponderState::poll_transmit`] has a frame to send.
    #[must_use]
    pub const fn is_transmit_due(&self) -> bool {
        self.report_due || !matches!(self.answer, Answer::Nothing)
    }

    #[inline(never)]
    fn poll_control(&mut self, outgoing: &mut [u8]) -> Option<usize> {
        let reply = match core::mem::replace(&mut self.answer, Answer::Nothing) {
            Answer::Challenge => Reply::Challenge { nonce: self.nonce },
            Answer::Welcome { version, capabilities } => {
                Reply::Welcome(Welcome { version, capabilities, bounds: self.bounds })
            }
            Answer::Description { offset } if self.is_described() => {
                let part = DescriptionPart::of(self.description.as_ref(), offset);
                part.emit(outgoing.first_chunk_mut()?);
                return Some(FRAME_LEN);
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

    /// Ends a repetition; continues with the next one or with the next round.
    #[cfg_attr(not(target_os = "none"), inline)]
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

    /// Begins round number `index` of the batch, if there is one.
    fn begin(&mut self, index: usize) {
        self.index = index;
        self.timed = Picos::ZERO;
        if let Some(round) = self.rounds.get(index) {
            (self.messages_left, self.repeats_left) = (round.messages, round.repeats);
        }
    }

    /// Handles a message that is not part of the current round.
    #[cold]
    fn handle_control(&mut self, now: Picos, message: &[u8]) -> Result<(), Refusal> {
        let open = self.state == State::Open;
        let request = Request::parse(message);
        let is_hello = matches!(request, Ok(Request::Hello(_)));
        if self.datagrams && !is_hello && (!open || request.is_err()) {
            // A foreign message, or a late or duplicate one of an abandoned round.
            self.served.received += 1;
            self.served.strays += 1;
            return Ok(());
        }
        self.answer = match &request {
            Err(error) => return Err(Refusal::Malformed { at: error.at as u64 }),
            // A control frame interrupts a round only if messages can be lost.
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
            Ok(request) => match DescriptionRequest::parse(message) {
                Some(DescriptionRequest { offset }) if open && self.is_described() => {
                    Answer::Description { offset }
                }
                _ => return Err(Refusal::OutOfOrder { kind: request.kind() }),
            },
        };
        Ok(())
    }

    fn is_described(&self) -> bool {
        !self.description.as_ref().is_empty()
    }

    /// Opens the session if the peer's address is verified. A hello that is repeated because its
    /// answer was lost is answered again without effect.
    fn welcome(&mut self, now: Picos, hello: &Hello) -> Result<Answer, Refusal> {
        let Some(version) = hello.versions.newest_common(Versions::OURS) else {
            let (initiator, responder) = (hello.versions, Versions::OURS);
            return Err(Refusal::Version { initiator, responder });
        };
        if self.state == State::Closed {
            if self.nonce != 0 && self.nonce != hello.nonce {
                // Not counted as a sign of life: the source address may be forged.
                self.served.strays += 1;
                return Ok(Answer::Challenge);
            }
            self.state = State::Open;
            self.began = now;
            self.bounds = self.bounds.narrowed(hello.bounds);
        }
        let ours = if self.is_described() { CAPABILITY_DESCRIPTION } else { 0 };
        Ok(Answer::Welcome { version, capabilities: ours & hello.capabilities })
    }

    fn announced(&mut self, sequence: u32, rounds: &RoundList<'_>) -> Result<(), Refusal> {
        (self.batch, self.sequence) = (sequence, sequence);
        self.rounds.clear();
        for round in rounds.iter() {
            // The list has at most as many elements as fit.
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

    const RELIABLE: LinkProperties = LinkProperties::reliable(Bytes(1 << 20));
    const DATAGRAMS: LinkProperties = LinkProperties { reliable: false, ..RELIABLE };

    fn frame(message: &Message) -> [u8; FRAME_LEN] {
        let mut frame = [0; FRAME_LEN];
        message.emit(&mut frame);
        frame
    }

    /// Frame sent in answer to `message`, at the front of `outgoing`.
    fn sent_for(
        responder: &mut ResponderState,
        message: &[u8],
        outgoing: &mut [u8],
    ) -> Option<usize> {
        responder.handle(Picos::ZERO, message);
        responder.poll_transmit(outgoing)
    }

    fn answered(responder: &mut ResponderState, message: &Message, outgoing: &mut [u8]) {
        assert_eq!(sent_for(responder, &frame(message), outgoing), Some(FRAME_LEN));
    }

    fn hello(versions: Versions) -> Message {
        Message::Hello(Hello { versions, capabilities: 0, bounds: Bounds::default(), nonce: 0 })
    }

    fn batch(sequence: u32, round: Round) -> Message {
        Message::Batch { sequence, rounds: Rounds::from_array([round]) }
    }

    #[test]
    fn a_version_mismatch_is_named_to_the_initiator() {
        let mut outgoing = [0; FRAME_LEN];
        let mut responder = ResponderState::new(Bounds::default(), RELIABLE);
        let theirs = Versions { lowest: 7, highest: 9 };
        answered(&mut responder, &hello(theirs), &mut outgoing);
        let refusal = Refusal::Version { initiator: theirs, responder: Versions::OURS };
        assert_eq!(responder.ending(), Some(Ending::Refused(refusal)));
        assert_eq!(Message::parse(&outgoing), Ok(Message::Refuse(refusal)));
    }

    #[test]
    fn a_batch_beyond_the_announced_bounds_is_refused() {
        let mut outgoing = [0; FRAME_LEN];
        let mut responder =
            ResponderState::new(Bounds { message: 10, ..Bounds::default() }, RELIABLE);
        answered(&mut responder, &hello(Versions::OURS), &mut outgoing);
        let Ok(Message::Welcome(welcome)) = Message::parse(&outgoing) else { panic!() };
        assert_eq!(welcome.bounds.message, 10);
        answered(&mut responder, &batch(0, Round::plain(1, 11)), &mut outgoing);
        let refusal = Refusal::Bounds { what: Limited::Message, asked: 11, allowed: 10 };
        assert_eq!(responder.ending(), Some(Ending::Refused(refusal)));
    }

    #[test]
    fn a_round_is_answered_once_after_its_last_message() {
        let mut outgoing = [0; FRAME_LEN];
        let mut responder = ResponderState::new(Bounds::default(), RELIABLE);
        answered(&mut responder, &hello(Versions::OURS), &mut outgoing);
        answered(&mut responder, &batch(5, Round::plain(3, 4)), &mut outgoing);
        assert_eq!(responder.awaited().length, 4);
        let message = [tag_of(5), 1, 2, 3];
        let mut handle = || sent_for(&mut responder, &message, &mut outgoing);
        assert_eq!((handle(), handle(), handle()), (None, None, Some(4)));
        assert_eq!(outgoing[0], tag_of(5));
        assert_eq!(responder.awaited().length, FRAME_LEN);
        assert_eq!((responder.served().received, responder.served().rounds), (3, 1));
    }

    #[test]
    fn a_lost_round_on_datagrams_ends_with_the_next_control_frame() {
        let mut outgoing = [0; FRAME_LEN];
        let mut responder = ResponderState::new(Bounds::default(), DATAGRAMS);
        answered(&mut responder, &hello(Versions::OURS), &mut outgoing);
        answered(&mut responder, &batch(5, Round::plain(3, 4)), &mut outgoing);
        responder.handle(Picos::ZERO, &[tag_of(5), 1, 2, 3]);
        answered(&mut responder, &Message::Sync { token: 9 }, &mut outgoing);
        let synced = Message::Synced { token: 9, received: 1, replied: 0 };
        assert_eq!(Message::parse(&outgoing), Ok(synced));
    }

    const NONCE: u64 = 0x0123_4567_89ab_cdef;

    /// Hello with the given nonce.
    fn hello_with(nonce: u64) -> [u8; FRAME_LEN] {
        let (versions, bounds) = (Versions::OURS, Bounds::default());
        frame(&Message::Hello(Hello { versions, capabilities: 0, bounds, nonce }))
    }

    #[test]
    fn a_stranger_on_datagrams_gets_one_frame_for_one_hello_and_nothing_else() {
        let mut outgoing = [0; FRAME_LEN];
        let mut responder = ResponderState::with(Bounds::default(), DATAGRAMS, NONCE, []);
        let mut sent = |message: &[u8]| {
            let sent = sent_for(&mut responder, message, &mut outgoing);
            assert!(responder.poll_transmit(&mut outgoing).is_none());
            assert!(sent.unwrap_or(0) <= message.len(), "more than was received");
            assert_eq!((responder.ending(), responder.served().replied), (None, 0));
            sent.map(|_| Message::parse(&outgoing).unwrap())
        };
        let mut silent = |message: &Message| assert_eq!(sent(&frame(message)), None);
        silent(&batch(0, Round::plain(1, 1)));
        silent(&Message::Sync { token: 1 });
        silent(&Message::Bye);
        assert_eq!(sent(b"x"), None);
        let challenge = Some(Message::Challenge { nonce: NONCE });
        assert_eq!(sent(&hello_with(0)), challenge);
        assert_eq!(sent(&hello_with(NONCE - 1)), challenge);
        assert_eq!(sent(&[tag_of(0)]), None);
        assert!(matches!(sent(&hello_with(NONCE)), Some(Message::Welcome(_))));
        // Once the address is verified, a repeated hello needs no nonce.
        assert!(matches!(sent(&hello_with(0)), Some(Message::Welcome(_))));
        assert_eq!(
            sent(&frame(&batch(0, Round::plain(1, 1)))),
            Some(Message::Ready { sequence: 0 })
        );
        assert_eq!(responder.served().strays, 7);
    }

    #[test]
    fn a_stream_is_welcomed_without_a_nonce() {
        let mut outgoing = [0; FRAME_LEN];
        let mut responder = ResponderState::with(Bounds::default(), RELIABLE, NONCE, []);
        responder.handle(Picos::ZERO, &hello_with(0));
        assert_eq!(responder.poll_transmit(&mut outgoing), Some(FRAME_LEN));
        assert!(matches!(Message::parse(&outgoing), Ok(Message::Welcome(_))));
    }

    #[test]
    fn a_description_is_offered_and_given_to_who_can_ask_for_it() {
        let mut outgoing = [0; FRAME_LEN];
        for asks in [0, CAPABILITY_DESCRIPTION] {
            let (bounds, text) = (Bounds::default(), &b"hostname"[..]);
            let mut responder = ResponderState::with(bounds, RELIABLE, 0, text);
            let (versions, nonce) = (Versions::OURS, 0);
            let hello = Hello { versions, capabilities: asks | 6, bounds, nonce };
            responder.handle(Picos::ZERO, &frame(&Message::Hello(hello)));
            assert_eq!(responder.poll_transmit(&mut outgoing), Some(FRAME_LEN));
            let Ok(Message::Welcome(welcome)) = Message::parse(&outgoing) else { panic!() };
            assert_eq!(welcome.capabilities, asks);
            let mut request = [0; FRAME_LEN];
            DescriptionRequest { offset: 4 }.emit(&mut request);
            responder.handle(Picos::ZERO, &request);
            assert_eq!(responder.poll_transmit(&mut outgoing), Some(FRAME_LEN));
            let part = DescriptionPart { offset: 4, bytes: b"name" };
            assert_eq!(DescriptionPart::parse(&outgoing), Ok(part));
        }
    }

    #[test]
    fn rounds_before_the_handshake_are_refused() {
        let mut outgoing = [0; FRAME_LEN];
        let mut responder = ResponderState::new(Bounds::default(), RELIABLE);
        answered(&mut responder, &batch(0, Round::plain(1, 1)), &mut outgoing);
        let refusal = Refusal::OutOfOrder { kind: 5 };
        assert_eq!(responder.ending(), Some(Ending::Refused(refusal)));
    }

    quickcheck! {
        fn any_messages_in_any_order_stay_within_the_bounds(script: Vec<(u8, Vec<u8>)>) -> bool {
            let bounds = Bounds { message: 600, messages: 20, ..Bounds::default() };
            [RELIABLE, DATAGRAMS].into_iter().all(|properties| {
                let mut responder = ResponderState::new(bounds, properties);
                let mut outgoing = vec![0; 600];
                script.iter().all(|(kind, bytes)| {
                    let size = 1 + u32::try_from(bytes.len()).unwrap() * 40;
                    let message = match kind % 6 {
                        0 => frame(&hello(Versions::OURS)).to_vec(),
                        1 => frame(&batch(0, Round::plain(1 + u32::from(*kind), size))).to_vec(),
                        2 => frame(&Message::Sync { token: size }).to_vec(),
                        3 => vec![tag_of(size); responder.awaited().length],
                        4 => vec![0; responder.awaited().length],
                        _ => bytes.clone(),
                    };
                    let before = responder.served().replied;
                    responder.handle(Picos(1), &message);
                    let mut sent = core::iter::from_fn(|| responder.poll_transmit(&mut outgoing));
                    sent.by_ref().take(2).all(|length| length <= 600)
                        && sent.next().is_none()
                        && responder.awaited().length <= 600
                        && responder.served().replied <= before.max(1) + 1
                })
            })
        }
    }
}
