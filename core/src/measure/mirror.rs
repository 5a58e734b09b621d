//! The responder's half of a session as a state machine without I/O.

use super::{Expected, LinkProperties};
use crate::units::Picos;
use crate::wire::{
    Bounds, FRAME_LEN, Hello, Limited, ParseError, ROUNDS_PER_BATCH, Refusal, Reply, ReplyPolicy,
    Request, Round, RoundList, Rounds, Versions, Welcome, tag_of,
};

/// What is to be done after a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Action {
    /// Nothing: wait for the next one.
    Nothing,
    /// Send this many bytes from the front of the outgoing buffer.
    Send(usize),
    /// Send this many bytes, and what [`Mirror::poll_more`] gives after that.
    SendMore(usize),
    /// Send this many bytes; the session is over.
    End(usize, Ending),
}

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
/// Feed every message to [`Mirror::handle`], with the buffer that replies are
/// sent from, and do the [`Action`] before the next one. Who receives in a
/// tight loop asks [`Mirror::burst`] what comes next, counts it and calls
/// [`Mirror::handle_burst`] instead. Nothing here waits; `now` never
/// decreases.
#[derive(Debug)]
pub struct Mirror {
    bounds: Bounds,
    /// Of this session: what was agreed, or what is offered before.
    agreed: Bounds,
    datagrams: bool,
    open: bool,
    began: Picos,
    /// The round under way, if any.
    current: Option<Current>,
    rounds: Rounds,
    /// Sequence number of the batch.
    batch: u32,
    reports: heapless::Vec<Picos, ROUNDS_PER_BATCH>,
    served: Served,
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

/// A round under way.
#[derive(Clone, Copy, Debug)]
struct Current {
    round: Round,
    /// Its index in the batch.
    index: usize,
    sequence: u32,
    messages_left: u32,
    repeats_left: u16,
    timed: Picos,
}

impl Mirror {
    /// A mirror that allows what `bounds` allows, on a link with
    /// `properties`.
    #[must_use]
    pub const fn new(bounds: Bounds, properties: LinkProperties) -> Self {
        Self {
            bounds,
            agreed: bounds,
            datagrams: !properties.reliable,
            open: false,
            began: Picos::ZERO,
            current: None,
            rounds: Rounds::new(),
            batch: 0,
            reports: heapless::Vec::new(),
            served: Served { received: 0, replied: 0, rounds: 0, strays: 0 },
        }
    }

    /// What was counted so far.
    #[must_use]
    pub const fn served(&self) -> &Served {
        &self.served
    }

    /// The bounds in force.
    #[must_use]
    pub const fn agreed(&self) -> &Bounds {
        &self.agreed
    }

    /// Bytes of the next message on a stream.
    #[must_use]
    pub fn expected(&self) -> usize {
        self.current.map_or(FRAME_LEN, |current| to_usize(current.round.size))
    }

    /// Bytes of the replies of the round under way.
    #[must_use]
    pub fn reply_length(&self) -> usize {
        self.current.map_or(0, |current| to_usize(current.round.reply_size))
    }

    /// How long to busy-wait before looking for the next message.
    #[must_use]
    pub fn pause(&self) -> Picos {
        match self.current {
            Some(current) if current.messages_left < current.round.messages => current.round.pause,
            _ => Picos::ZERO,
        }
    }

    /// Whether the next receive call is to be timed and its duration given to
    /// [`Mirror::handle_timed`].
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.current.is_some_and(|current| {
            current.round.timed && current.messages_left < current.round.messages
        })
    }

    /// The messages of the round under way up to its next reply, `None`
    /// outside of rounds and where each receive has to be timed or waited
    /// for.
    #[must_use]
    pub fn burst(&self) -> Option<Burst> {
        let Current { round, sequence, messages_left, .. } = self.current.as_ref()?;
        if round.timed || round.pause > Picos::ZERO {
            return None;
        }
        let messages = match round.policy {
            ReplyPolicy::AfterLast => *messages_left,
            ReplyPolicy::AfterEach => 1,
        };
        let (length, tag) = (to_usize(round.size), tag_of(*sequence));
        Some(Burst { messages, expected: Expected { length, tag, datagrams: self.datagrams } })
    }

    /// Takes the duration of the receive call before its message.
    pub fn handle_timed(&mut self, duration: Picos) {
        if let Some(current) = &mut self.current {
            current.timed = Picos(current.timed.0.saturating_add(duration.0));
        }
    }

    /// Takes one message of the initiator.
    pub fn handle(&mut self, now: Picos, message: &[u8], outgoing: &mut [u8]) -> Action {
        let Some(current) = &self.current else { return self.outside(now, message, outgoing) };
        let fits = message.len() == to_usize(current.round.size);
        if !fits || message.first() != Some(&tag_of(current.sequence)) {
            return self.outside(now, message, outgoing);
        }
        self.handle_burst(1, outgoing)
    }

    /// Takes `count` messages of a [`Burst`], at most as many as it has.
    #[inline]
    pub fn handle_burst(&mut self, count: u32, outgoing: &mut [u8]) -> Action {
        let Some(current) = &mut self.current else { return Action::Nothing };
        self.served.received += u64::from(count);
        current.messages_left = current.messages_left.saturating_sub(count);
        let done = current.messages_left == 0;
        if !done && current.round.policy == ReplyPolicy::AfterLast {
            return Action::Nothing;
        }
        let reply = to_usize(current.round.reply_size).min(outgoing.len());
        if let Some(first) = outgoing.first_mut() {
            *first = tag_of(current.sequence);
        }
        self.served.replied += 1;
        if done && self.finish_round() { Action::SendMore(reply) } else { Action::Send(reply) }
    }

    /// Time has passed: refuses to go on once the session lasts too long.
    #[inline]
    pub fn handle_time(&mut self, now: Picos, outgoing: &mut [u8]) -> Action {
        match self.check_age(now) {
            Ok(()) => Action::Nothing,
            Err(refusal) => self.refuse(refusal, outgoing),
        }
    }

    /// What follows the reply of a batch's last round: the report, if rounds
    /// were timed.
    pub fn poll_more(&mut self, outgoing: &mut [u8]) -> Option<usize> {
        if self.reports.is_empty() {
            return None;
        }
        let length = put(outgoing, Reply::Report { sequence: self.batch, values: &self.reports });
        self.reports.clear();
        Some(length)
    }

    /// Nothing came for as long as the bounds allow. On a datagram link the
    /// round is dropped and the session waits once more; true when it is
    /// over.
    pub fn handle_silence(&mut self) -> bool {
        let waited_for_data = self.current.take().is_some();
        !(self.datagrams && waited_for_data)
    }

    /// Ends the round or goes to its next repetition or to the next round.
    /// True after the last one of a batch with timed rounds.
    fn finish_round(&mut self) -> bool {
        self.served.rounds += 1;
        let Some(current) = &mut self.current else { return false };
        current.sequence = current.sequence.wrapping_add(1);
        current.repeats_left -= 1;
        if current.repeats_left > 0 {
            current.messages_left = current.round.messages;
            return false;
        }
        if current.round.timed
            && let Some(report) = self.reports.get_mut(current.index)
        {
            *report = current.timed;
        }
        let (index, sequence) = (current.index + 1, current.sequence);
        self.current = self.rounds.get(index).map(|round| Current::new(*round, index, sequence));
        self.current.is_none() && !self.reports.is_empty()
    }

    /// A message that is not one of the round under way, if there is one.
    #[cold]
    fn outside(&mut self, now: Picos, message: &[u8], outgoing: &mut [u8]) -> Action {
        let answer = match Request::parse(message) {
            // Control frames come during a round only where messages get lost.
            Ok(request) if self.datagrams || self.current.is_none() => {
                self.control(now, &request, outgoing)
            }
            Ok(request) => Err(Refusal::OutOfOrder { kind: request.kind() }),
            // A late or repeated message of a round that was given up.
            Err(_) if self.datagrams && self.open => {
                self.served.received += 1;
                self.served.strays += 1;
                Ok(Action::Nothing)
            }
            Err(ParseError { at, .. }) => Err(Refusal::Malformed { at: at as u64 }),
        };
        answer.unwrap_or_else(|refusal| self.refuse(refusal, outgoing))
    }

    fn control(
        &mut self,
        now: Picos,
        request: &Request<'_>,
        outgoing: &mut [u8],
    ) -> Result<Action, Refusal> {
        let kind = request.kind();
        let reply = match request {
            Request::Hello(hello) if self.datagrams || !self.open => {
                let welcome = self.welcome(now, hello)?;
                return Ok(Action::Send(put(outgoing, Reply::Welcome(&welcome))));
            }
            Request::Bye => return Ok(Action::End(0, Ending::Goodbye)),
            _ if !self.open => return Err(Refusal::OutOfOrder { kind }),
            Request::Batch { sequence, rounds } => {
                self.check_age(now)?;
                self.agreed.check(rounds.iter())?;
                self.begin(*sequence, rounds);
                Reply::Ready { sequence: *sequence }
            }
            Request::Sync { token } => {
                self.check_age(now)?;
                self.current = None;
                let Served { received, replied, .. } = self.served;
                Reply::Synced { token: *token, received, replied }
            }
            _ => {
                self.check_age(now)?;
                return Err(Refusal::OutOfOrder { kind });
            }
        };
        Ok(Action::Send(put(outgoing, reply)))
    }

    /// Opens the session. A greeting that is repeated because its answer was
    /// lost is answered again and changes nothing.
    fn welcome(&mut self, now: Picos, hello: &Hello) -> Result<Welcome, Refusal> {
        let Some(version) = hello.versions.newest_common(Versions::OURS) else {
            let (initiator, responder) = (hello.versions, Versions::OURS);
            return Err(Refusal::Version { initiator, responder });
        };
        if !self.open {
            self.open = true;
            self.began = now;
            self.agreed = self.bounds.narrowed(hello.bounds);
        }
        Ok(Welcome { version, capabilities: 0, bounds: self.agreed })
    }

    /// Whether the session may go on.
    #[inline]
    fn check_age(&self, now: Picos) -> Result<(), Refusal> {
        let (age, allowed) = (now.since(self.began), self.agreed.session);
        if !self.open || age <= allowed {
            return Ok(());
        }
        Err(Refusal::Bounds { what: Limited::Session, asked: age.0, allowed: allowed.0 })
    }

    fn begin(&mut self, sequence: u32, rounds: &RoundList<'_>) {
        self.batch = sequence;
        self.rounds.clear();
        for round in rounds.iter() {
            // A list is as long as the room, at most.
            let _ = self.rounds.push(round);
        }
        let rounds = &self.rounds;
        self.reports.clear();
        if rounds.iter().any(|round| round.timed) {
            // As many as rounds, which fit by their type.
            let _ = self.reports.resize(rounds.len(), Picos::ZERO);
        }
        self.current = rounds.first().map(|round| Current::new(*round, 0, sequence));
    }

    #[cold]
    #[inline(never)]
    fn refuse(&mut self, refusal: Refusal, outgoing: &mut [u8]) -> Action {
        self.current = None;
        Action::End(put(outgoing, Reply::Refuse(&refusal)), Ending::Refused(refusal))
    }
}

impl Current {
    const fn new(round: Round, index: usize, sequence: u32) -> Self {
        let (messages_left, repeats_left) = (round.messages, round.repeats);
        Self { round, index, sequence, messages_left, repeats_left, timed: Picos::ZERO }
    }
}

/// Writes a control frame to the front of `outgoing`; 0 when it has no room.
#[inline(never)]
fn put(outgoing: &mut [u8], reply: Reply<'_>) -> usize {
    let Some(frame) = outgoing.first_chunk_mut::<FRAME_LEN>() else { return 0 };
    reply.emit(frame);
    FRAME_LEN
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

    fn say(mirror: &mut Mirror, message: &Message, outgoing: &mut [u8]) -> Action {
        mirror.handle(Picos::ZERO, &frame(message), outgoing)
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
        let action = say(&mut mirror, &hello(theirs), &mut outgoing);
        let refusal = Refusal::Version { initiator: theirs, responder: Versions::OURS };
        assert_eq!(action, Action::End(FRAME_LEN, Ending::Refused(refusal)));
        assert_eq!(Message::parse(&outgoing), Ok(Message::Refuse(refusal)));
    }

    #[test]
    fn a_batch_beyond_the_announced_bounds_is_refused() {
        let mut outgoing = [0; FRAME_LEN];
        let mut mirror = Mirror::new(Bounds { message: 10, ..Bounds::default() }, RELIABLE);
        say(&mut mirror, &hello(Versions::OURS), &mut outgoing);
        let Ok(Message::Welcome(welcome)) = Message::parse(&outgoing) else { panic!() };
        assert_eq!(welcome.bounds.message, 10);
        let action = say(&mut mirror, &batch(0, round(1, 11)), &mut outgoing);
        let refusal = Refusal::Bounds { what: Limited::Message, asked: 11, allowed: 10 };
        assert_eq!(action, Action::End(FRAME_LEN, Ending::Refused(refusal)));
    }

    #[test]
    fn a_round_is_answered_once_after_its_last_message() {
        let mut outgoing = [0; FRAME_LEN];
        let mut mirror = Mirror::new(Bounds::default(), RELIABLE);
        say(&mut mirror, &hello(Versions::OURS), &mut outgoing);
        say(&mut mirror, &batch(5, round(3, 4)), &mut outgoing);
        assert_eq!(mirror.expected(), 4);
        let message = [tag_of(5), 1, 2, 3];
        let mut handle = || mirror.handle(Picos::ZERO, &message, &mut outgoing);
        assert_eq!(
            (handle(), handle(), handle()),
            (Action::Nothing, Action::Nothing, Action::Send(4))
        );
        assert_eq!(mirror.expected(), FRAME_LEN);
        assert_eq!((mirror.served().received, mirror.served().rounds), (3, 1));
    }

    #[test]
    fn a_lost_round_on_datagrams_ends_with_the_next_control_frame() {
        let mut outgoing = [0; FRAME_LEN];
        let mut mirror = Mirror::new(Bounds::default(), DATAGRAMS);
        say(&mut mirror, &hello(Versions::OURS), &mut outgoing);
        say(&mut mirror, &batch(5, round(3, 4)), &mut outgoing);
        mirror.handle(Picos::ZERO, &[tag_of(5), 1, 2, 3], &mut outgoing);
        say(&mut mirror, &Message::Sync { token: 9 }, &mut outgoing);
        let synced = Message::Synced { token: 9, received: 1, replied: 0 };
        assert_eq!(Message::parse(&outgoing), Ok(synced));
    }

    #[test]
    fn rounds_before_the_handshake_are_refused() {
        let mut outgoing = [0; FRAME_LEN];
        let mut mirror = Mirror::new(Bounds::default(), RELIABLE);
        let action = say(&mut mirror, &batch(0, round(1, 1)), &mut outgoing);
        let refusal = Refusal::OutOfOrder { kind: 5 };
        assert_eq!(action, Action::End(FRAME_LEN, Ending::Refused(refusal)));
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
                        3 => vec![tag_of(size); mirror.expected()],
                        4 => vec![0; mirror.expected()],
                        _ => bytes.clone(),
                    };
                    let before = mirror.served().replied;
                    let action = mirror.handle(Picos(1), &message, &mut outgoing);
                    let length = match action {
                        Action::Nothing => 0,
                        Action::Send(n) | Action::SendMore(n) | Action::End(n, _) => n,
                    };
                    length <= 600
                        && mirror.expected() <= 600
                        && mirror.served().replied <= before.max(1) + 1
                })
            })
        }
    }
}
