//! Tests of both ends of a session against peers that send arbitrary data.

use core::cell::Cell;
use core::ops::ControlFlow;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use quickcheck::{Arbitrary, Gen, quickcheck};

use crate::measure::{
    Buffers, Clock, Ending, Experiment, Initiator, Invalid, Link, LinkProperties, Phase, Quantity,
    ServeError, ServeOptions, Served, SessionError, SessionOptions, serve, serve_with,
};
use crate::units::{Bytes, Picos};
use crate::wire::{
    Bounds, CAPABILITY_DESCRIPTION, DescriptionRequest, FRAME_LEN, Hello, Limited, Message,
    ParseError, ParseErrorKind, Refusal, ReplyPolicy, Round, Rounds, VERSION, Versions, Welcome,
    tag_of,
};

const MICRO: u64 = 1_000_000;
const SECOND: u64 = 1_000_000 * MICRO;
const LARGEST: u32 = 1_000;

/// Clock that advances with each reading and each poll, so that every wait ends.
#[derive(Debug, Default)]
struct Ticking(Cell<u64>);

impl Ticking {
    fn advance(&self, picos: u64) {
        self.0.set(self.0.get() + picos);
    }
}

impl Clock for Ticking {
    fn now(&self) -> u64 {
        self.advance(MICRO);
        self.0.get()
    }

    fn duration(&self, ticks: u64) -> Picos {
        Picos(ticks)
    }

    fn ticks(&self, duration: Picos) -> u64 {
        duration.0
    }

    fn read_cost(&self) -> Picos {
        Picos(MICRO)
    }
}

/// Error of a link whose peer has closed the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Gone;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Stream,
    Datagrams,
}

impl Arbitrary for Kind {
    fn arbitrary(g: &mut Gen) -> Self {
        *g.choose(&[Self::Stream, Self::Datagrams]).unwrap()
    }
}

/// Link whose peer sends the messages of a script, independently of those it receives.
struct Scripted<'c> {
    clock: &'c Ticking,
    reliable: bool,
    says: VecDeque<Vec<u8>>,
    /// The script ends with an error rather than silence.
    hangs_up: bool,
    /// Bytes of a stream already copied to the caller's buffer.
    collected: usize,
    heard: Vec<Vec<u8>>,
    /// Arguments of `expect_send`, each with the number of messages sent before.
    announced: Vec<(usize, usize)>,
    /// Duration of a poll, in ps.
    look: u64,
    /// Only every `every`-th poll can find a message.
    every: u32,
    looks: u32,
    /// The script repeats.
    forever: bool,
}

impl<'c> Scripted<'c> {
    fn new(clock: &'c Ticking, kind: Kind, says: Vec<Vec<u8>>) -> Self {
        Self {
            clock,
            reliable: kind == Kind::Stream,
            says: says.into(),
            hangs_up: false,
            collected: 0,
            heard: vec![],
            announced: vec![],
            look: 10 * MICRO,
            every: 1,
            looks: 0,
            forever: false,
        }
    }

    /// On a stream, message boundaries are ignored.
    fn take_bytes(&mut self, buffer: &mut [u8]) -> Option<usize> {
        while self.collected < buffer.len() {
            let piece = self.says.front_mut()?;
            let count = piece.len().min(buffer.len() - self.collected);
            buffer[self.collected..][..count].copy_from_slice(&piece[..count]);
            self.collected += count;
            piece.drain(..count);
            if piece.is_empty() {
                self.says.pop_front();
            }
        }
        Some(core::mem::take(&mut self.collected))
    }
}

impl Link for Scripted<'_> {
    type Error = Gone;

    fn properties(&self) -> LinkProperties {
        LinkProperties {
            reliable: self.reliable,
            ..LinkProperties::reliable(Bytes(u64::from(LARGEST)))
        }
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Gone> {
        assert!(message.len() <= LARGEST as usize, "{} bytes sent", message.len());
        self.heard.push(message.to_vec());
        Ok(())
    }

    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Gone> {
        self.clock.advance(self.look);
        self.looks += 1;
        if !self.looks.is_multiple_of(self.every) {
            return Ok(None);
        }
        if self.reliable {
            if let Some(length) = self.take_bytes(buffer) {
                return Ok(Some(length));
            }
        } else if let Some(message) = self.says.pop_front() {
            assert!(buffer.len() >= message.len());
            buffer[..message.len()].copy_from_slice(&message);
            let length = message.len();
            if self.forever {
                self.says.push_back(message);
            }
            return Ok(Some(length));
        }
        if self.hangs_up && self.says.is_empty() { Err(Gone) } else { Ok(None) }
    }

    fn expect_send(&mut self, length: usize) {
        self.announced.push((self.heard.len(), length));
    }

    fn discard(&mut self) -> Result<(), Gone> {
        Ok(())
    }
}

fn frame(message: &Message) -> Vec<u8> {
    let mut frame = [0; FRAME_LEN];
    message.emit(&mut frame);
    frame.to_vec()
}

fn hello() -> Vec<u8> {
    let bounds = Bounds::default();
    frame(&Message::Hello(Hello { versions: Versions::OURS, capabilities: 0, bounds, nonce: 0 }))
}

fn welcome() -> Vec<u8> {
    let bounds = bounds();
    frame(&Message::Welcome(Welcome { version: VERSION, capabilities: 0, bounds }))
}

fn batch(sequence: u32, round: Round) -> Vec<u8> {
    frame(&Message::Batch { sequence, rounds: Rounds::from_array([round]) })
}

fn bounds() -> Bounds {
    Bounds {
        message: LARGEST,
        messages: 50,
        rounds: 100,
        pause: Picos(100 * MICRO),
        silence: Picos(SECOND),
        session: Picos(20 * SECOND),
    }
}

fn data(sequence: u32, size: usize) -> Vec<u8> {
    vec![tag_of(sequence); size]
}

fn respond(clock: &Ticking, link: &mut Scripted<'_>) -> Result<(Served, Ending), ServeError<Gone>> {
    serve(clock, link, &mut [0; LARGEST as usize], bounds())
}

/// A random message of a script, valid enough to get deep into a session.
#[derive(Clone, Debug)]
struct Line(Vec<u8>);

impl Arbitrary for Line {
    fn arbitrary(g: &mut Gen) -> Self {
        let small = |g: &mut Gen| 1 + u32::arbitrary(g) % 60;
        Self(match u8::arbitrary(g) % 12 {
            0 | 1 => hello(),
            2..=4 => {
                let (messages, size, reply_size) = (small(g), small(g), small(g) * 20);
                let policy = *g.choose(&[ReplyPolicy::AfterLast, ReplyPolicy::AfterEach]).unwrap();
                let timed = bool::arbitrary(g);
                let repeats = if timed { 1 } else { 1 + u16::arbitrary(g) % 30 };
                let pause = Picos(u64::from(small(g)) * 2 * MICRO);
                batch(0, Round { messages, size, reply_size, policy, timed, repeats, pause })
            }
            5 => frame(&Message::Sync { token: small(g) }),
            6 | 7 => data(small(g) % 3, small(g) as usize),
            8 => frame(&Message::arbitrary(g)),
            9 => welcome(),
            10 => frame(&Message::Ready { sequence: small(g) % 3 }),
            _ => Vec::arbitrary(g).into_iter().take(LARGEST as usize).collect(),
        })
    }
}

quickcheck! {
    fn whatever_an_initiator_sends_the_responder_ends_within_its_bounds(
        script: Vec<Line>, kind: Kind, says_hello: bool, hangs_up: bool
    ) -> bool {
        let clock = Ticking::default();
        let mut says: Vec<Vec<u8>> = script.into_iter().map(|line| line.0).collect();
        if says_hello {
            says.insert(0, hello());
        }
        let received: usize = says.iter().map(Vec::len).sum::<usize>().max(says.len());
        let mut link = Scripted::new(&clock, kind, says);
        link.hangs_up = hangs_up;
        let outcome = respond(&clock, &mut link);
        let refused = link.heard.last().is_some_and(|last| {
            matches!(Message::parse(last), Ok(Message::Refuse(_)))
        });
        // At most one answer per message, and a report per batch.
        link.heard.len() <= 2 * received
            && clock.0.get() < 30 * SECOND
            && match outcome {
                Ok((_, Ending::Refused(_))) => refused,
                Ok((_, Ending::Goodbye)) => true,
                Err(ServeError::Link(Gone)) => hangs_up,
                // An initiator may request a shorter silence.
                Err(ServeError::Silent(silence)) => silence <= bounds().silence,
                Err(_) => false,
            }
    }

    fn whatever_a_responder_sends_the_initiator_ends_in_time(
        script: Vec<Line>, kind: Kind, welcomes: bool, forever: bool
    ) -> bool {
        let clock = Ticking::default();
        let mut says: Vec<Vec<u8>> = script.into_iter().map(|line| line.0).collect();
        if welcomes {
            says.insert(0, welcome());
        }
        let mut link = Scripted::new(&clock, kind, says);
        link.forever = forever;
        // Polls are as slow as a timer's tick, so that unsuccessful ones take all the time.
        link.look = 1_000 * MICRO;
        let _any_result_will_do = session(&clock, link, &experiments(20));
        // Ten tries with every limit at its maximum.
        clock.0.get() < 2_000 * SECOND
    }
}

fn experiments(count: u32) -> Vec<Experiment> {
    let quantities = [Quantity::RoundTrip, Quantity::Gap, Quantity::Paced, Quantity::Receive];
    (0..count)
        .map(|index| {
            let quantity = quantities[index as usize % 4];
            let messages = if matches!(quantity, Quantity::Gap | Quantity::Paced) { 5 } else { 1 };
            let delay = Picos(u64::from(index % 4 / 2) * 20 * MICRO);
            Experiment { quantity, messages, delay, size: 1 + index % 40 }
        })
        .collect()
}

/// Runs a whole session of the initiator; leaves the queue after a while.
fn session(
    clock: &Ticking,
    link: Scripted<'_>,
    experiments: &[Experiment],
) -> Result<(), SessionError<Gone>> {
    let (mut outgoing, mut incoming) = ([0; LARGEST as usize], [0; LARGEST as usize]);
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let mut timeout = 10;
    let on_queue = |_| {
        timeout -= 1;
        if timeout > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let options = SessionOptions::default();
    let mut session = Initiator::connect(clock, link, buffers, options, on_queue)?;
    session.run(experiments, |_| {})?;
    session.close().map(|_| ())
}

#[test]
fn a_client_of_another_protocol_is_told_and_left() {
    let clock = Ticking::default();
    let mut says = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n".to_vec();
    says.resize(FRAME_LEN, b' ');
    let mut link = Scripted::new(&clock, Kind::Stream, vec![says]);
    let refusal = Refusal::Malformed { at: 0 };
    assert_eq!(respond(&clock, &mut link).map(|(_, ending)| ending), Ok(Ending::Refused(refusal)));
    assert_eq!(link.heard, [frame(&Message::Refuse(refusal))]);
}

#[test]
fn a_server_of_another_protocol_is_named_as_such() {
    let clock = Ticking::default();
    let mut says = b"SSH-2.0-OpenSSH_9.2\r\n".to_vec();
    says.resize(FRAME_LEN, b' ');
    let error = session(&clock, Scripted::new(&clock, Kind::Stream, vec![says]), &[]);
    let phase = Phase::Handshake;
    let magic = ParseError { at: 0, kind: ParseErrorKind::Magic };
    assert_eq!(error, Err(SessionError::Malformed { phase, error: magic }));
}

#[test]
fn a_version_mismatch_is_named_to_both_sides() {
    let clock = Ticking::default();
    let theirs = Versions { lowest: 3, highest: 4 };
    let bounds = Bounds::default();
    let hello = Message::Hello(Hello { versions: theirs, capabilities: 0, bounds, nonce: 0 });
    let mut link = Scripted::new(&clock, Kind::Stream, vec![frame(&hello)]);
    let refusal = Refusal::Version { initiator: theirs, responder: Versions::OURS };
    assert_eq!(respond(&clock, &mut link).map(|(_, ending)| ending), Ok(Ending::Refused(refusal)));
    // The initiator understands what the responder sent.
    let error = session(&clock, Scripted::new(&clock, Kind::Stream, link.heard), &[]);
    assert_eq!(error, Err(SessionError::Refused(refusal)));
    // The initiator refuses a version that it did not offer.
    let alien = Message::Welcome(Welcome { version: 9, capabilities: 0, bounds });
    let error = session(&clock, Scripted::new(&clock, Kind::Stream, vec![frame(&alien)]), &[]);
    let responder = Versions { lowest: 9, highest: 9 };
    let mismatch = Refusal::Version { initiator: Versions::OURS, responder };
    assert_eq!(error, Err(SessionError::Refused(mismatch)));
}

#[test]
fn a_whole_session_is_answered_message_by_message() {
    let clock = Ticking::default();
    let each = Round { policy: ReplyPolicy::AfterEach, reply_size: 7, ..Round::plain(2, 3) };
    let timed = Round { timed: true, pause: Picos(50 * MICRO), ..Round::plain(3, 4) };
    let says = vec![
        hello(),
        batch(5, Round { repeats: 2, ..Round::plain(2, 3) }),
        data(5, 3),
        data(5, 3),
        data(6, 3),
        data(6, 3),
        batch(7, each),
        data(7, 3),
        data(7, 3),
        batch(8, timed),
        data(8, 4),
        data(8, 4),
        data(8, 4),
        frame(&Message::Bye),
    ];
    for kind in [Kind::Stream, Kind::Datagrams] {
        let mut link = Scripted::new(&clock, kind, says.clone());
        let (served, ending) = respond(&clock, &mut link).unwrap();
        assert_eq!((served.received, served.replied, served.rounds), (9, 5, 4));
        assert_eq!(ending, Ending::Goodbye);
        let heard: Vec<(usize, u8)> = link.heard.iter().map(|m| (m.len(), m[0])).collect();
        let control = (FRAME_LEN, 0xce);
        let replies = [(3, 5), (3, 6), control, (7, 7), (7, 7), control, (4, 8), control];
        assert_eq!(heard[..2], [control, control]);
        assert_eq!(heard[2..], replies);
        let Ok(Message::Report { sequence: 8, values }) = Message::parse(&link.heard[9]) else {
            panic!("no report")
        };
        // Two receives of one poll each; only polls take time.
        assert_eq!(values.as_slice(), [Picos(2 * 10 * MICRO)]);
    }
}

#[test]
fn a_link_hears_of_the_length_of_each_reply_beforehand() {
    let clock = Ticking::default();
    let round = |messages, reply_size| Round {
        messages,
        size: 2,
        reply_size,
        policy: ReplyPolicy::AfterLast,
        timed: false,
        repeats: 2,
        pause: Picos::ZERO,
    };
    let rounds = Rounds::from_array([round(1, 30), round(3, 7)]);
    let mut says = vec![hello(), frame(&Message::Batch { sequence: 0, rounds })];
    for (sequence, messages) in [(0, 1), (1, 1), (2, 3), (3, 3)] {
        says.extend((0..messages).map(|_| data(sequence, 2)));
    }
    let mut link = Scripted::new(&clock, Kind::Stream, says);
    assert_eq!(respond(&clock, &mut link), Err(ServeError::Silent(bounds().silence)));
    let replies = link.heard.iter().enumerate().filter(|(_, message)| message.len() < FRAME_LEN);
    let replies: Vec<(usize, usize)> = replies.map(|(at, reply)| (at, reply.len())).collect();
    let lengths: Vec<usize> = replies.iter().map(|(_, length)| *length).collect();
    assert_eq!(lengths, [30, 30, 7, 7]);
    assert!(replies.iter().all(|reply| link.announced.contains(reply)), "{:?}", link.announced);
}

#[test]
fn messages_that_trickle_in_do_not_keep_a_session_beyond_its_time() {
    let clock = Ticking::default();
    let each = Round { policy: ReplyPolicy::AfterEach, repeats: 100, ..Round::plain(50, 1) };
    let mut says = vec![hello(), batch(0, each)];
    says.extend((0..100).flat_map(|sequence| vec![data(sequence, 1); 50]));
    let mut link = Scripted::new(&clock, Kind::Stream, says);
    link.look = SECOND / 10;
    let (served, ending) = respond(&clock, &mut link).unwrap();
    let Ending::Refused(Refusal::Bounds { what: Limited::Session, .. }) = ending else {
        panic!("{ending:?}")
    };
    assert!((190..=260).contains(&served.received), "{served:?}");
}

#[test]
fn a_long_round_with_signs_of_life_is_not_silence() {
    let clock = Ticking::default();
    let mut says = vec![hello(), batch(0, Round::plain(50, 1))];
    says.extend(vec![data(0, 1); 50]);
    says.push(frame(&Message::Bye));
    let mut link = Scripted::new(&clock, Kind::Stream, says);
    (link.look, link.every) = (SECOND / 50, 10);
    let (served, ending) = respond(&clock, &mut link).unwrap();
    assert_eq!((served.received, served.replied, ending), (50, 1, Ending::Goodbye));
}

#[test]
fn silence_counts_from_the_last_message_whatever_came_before() {
    for kind in [Kind::Stream, Kind::Datagrams] {
        for arrived in [0, 1, 3] {
            let clock = Ticking::default();
            let mut says = vec![hello(), batch(0, Round::plain(5, 1))];
            says.extend(vec![data(0, 1); arrived]);
            let messages = says.len() as u64;
            let mut link = Scripted::new(&clock, kind, says);
            // A message every 0.2 s, then silence.
            (link.look, link.every) = (SECOND / 50, 10);
            assert_eq!(respond(&clock, &mut link), Err(ServeError::Silent(bounds().silence)));
            let last = messages * SECOND / 5;
            let waited = clock.0.get() - last;
            let about = SECOND - SECOND / 16..SECOND + SECOND / 4;
            assert!(about.contains(&waited), "{kind:?} {arrived}: {waited}");
        }
    }
}

#[test]
fn a_late_stray_does_not_extend_a_silence() {
    let clock = Ticking::default();
    let mut link = Scripted::new(&clock, Kind::Datagrams, vec![hello(), data(9, 3), data(9, 3)]);
    // A message every 0.4 s.
    (link.look, link.every) = (SECOND / 50, 20);
    assert_eq!(respond(&clock, &mut link), Err(ServeError::Silent(bounds().silence)));
    let waited = clock.0.get() - 2 * SECOND / 5;
    assert!((SECOND - SECOND / 16..SECOND + SECOND / 4).contains(&waited), "{waited}");
}

#[test]
fn strays_without_end_are_no_sign_of_life() {
    let clock = Ticking::default();
    let mut says = vec![hello(), batch(0, Round::plain(5, 1))];
    says.extend(vec![data(9, 3); 1_000_000]);
    let mut link = Scripted::new(&clock, Kind::Datagrams, says);
    assert_eq!(respond(&clock, &mut link), Err(ServeError::Silent(bounds().silence)));
    assert!(clock.0.get() < 2 * SECOND);
    assert!(!link.says.is_empty());
}

#[test]
fn an_initiator_echoes_a_nonce_and_says_hello_anew_when_the_answer_is_lost() {
    let clock = Ticking::default();
    let challenge = |nonce| Some(frame(&Message::Challenge { nonce }));
    // The second hello is lost, and its nonce expires.
    let answers = [challenge(7), None, challenge(8), Some(welcome())];
    let link = PerHello { clock: &clock, answers: answers.into(), nonces: vec![], arrived: None };
    let (mut outgoing, mut incoming) = ([0; LARGEST as usize], [0; LARGEST as usize]);
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let go_on = |_| ControlFlow::Continue(());
    let options = SessionOptions::default();
    let session = Initiator::connect(&clock, link, buffers, options, go_on).unwrap();
    let (_, link) = session.close().unwrap();
    assert_eq!(link.nonces, [0, 7, 0, 8]);
}

/// Datagram link with one prepared answer for each hello.
struct PerHello<'c> {
    clock: &'c Ticking,
    answers: VecDeque<Option<Vec<u8>>>,
    nonces: Vec<u64>,
    arrived: Option<Vec<u8>>,
}

impl Link for PerHello<'_> {
    type Error = Gone;

    fn properties(&self) -> LinkProperties {
        LinkProperties::datagrams(Bytes(u64::from(LARGEST)))
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Gone> {
        if let Ok(Message::Hello(hello)) = Message::parse(message) {
            self.nonces.push(hello.nonce);
            self.arrived = self.answers.pop_front().flatten();
        }
        Ok(())
    }

    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Gone> {
        self.clock.advance(10 * MICRO);
        let Some(message) = self.arrived.take() else { return Ok(None) };
        buffer[..message.len()].copy_from_slice(&message);
        Ok(Some(message.len()))
    }

    fn discard(&mut self) -> Result<(), Gone> {
        Ok(())
    }
}

#[test]
fn challenges_without_end_are_given_up_and_on_a_stream_there_are_none() {
    let clock = Ticking::default();
    let challenge = || vec![frame(&Message::Challenge { nonce: 7 })];
    for kind in [Kind::Stream, Kind::Datagrams] {
        let mut link = Scripted::new(&clock, kind, challenge());
        link.forever = true;
        let error = session(&clock, link, &[]);
        let phase = Phase::Handshake;
        assert_eq!(error, Err(SessionError::OutOfOrder { phase, kind: 11 }));
        assert!(clock.0.get() < SECOND);
    }
}

#[test]
fn the_responder_describes_itself_to_who_asks() {
    let clock = Ticking::default();
    let text: Vec<u8> = (0..1_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    let mut request = [0; FRAME_LEN];
    let (versions, bounds, nonce) = (Versions::OURS, bounds(), 0);
    let hello = Hello { versions, capabilities: CAPABILITY_DESCRIPTION, bounds, nonce };
    for kind in [Kind::Stream, Kind::Datagrams] {
        let mut says = vec![frame(&Message::Hello(hello))];
        for offset in [0, 432, 864] {
            DescriptionRequest { offset }.emit(&mut request);
            says.push(request.to_vec());
        }
        says.push(frame(&Message::Bye));
        let mut far = Scripted::new(&clock, kind, says);
        let options = ServeOptions { bounds, nonce, description: &text };
        serve_with(&clock, &mut far, &mut [0; LARGEST as usize], options).unwrap();
        // The initiator understands what the responder sent.
        let near = Scripted::new(&clock, kind, far.heard);
        let (mut outgoing, mut incoming) = ([0; LARGEST as usize], [0; LARGEST as usize]);
        let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
        let go_on = |_| ControlFlow::Continue(());
        let options = SessionOptions::default();
        let mut session = Initiator::connect(&clock, near, buffers, options, go_on).unwrap();
        let mut found = [0; 2_048];
        assert_eq!(session.describe(&mut found), Ok(Some(1_000)));
        assert_eq!(found[..1_000], text);
    }
}

#[test]
fn an_initiator_flooded_with_strays_gives_up_in_time() {
    let clock = Ticking::default();
    let mut link = Scripted::new(&clock, Kind::Datagrams, vec![data(9, 3)]);
    link.says.push_front(welcome());
    (link.forever, link.look) = (true, 100 * MICRO);
    let error = session(&clock, link, &experiments(1)).unwrap_err();
    let SessionError::Silent { phase, .. } = error else { panic!("{error:?}") };
    assert_eq!(phase, Phase::Synchronisation);
}

#[test]
fn a_reply_of_another_round_on_a_reliable_link_ends_the_session_at_once() {
    let clock = Ticking::default();
    let ready = frame(&Message::Ready { sequence: 0 });
    let link = Scripted::new(&clock, Kind::Stream, vec![welcome(), ready, data(1, 1)]);
    let error = session(&clock, link, &experiments(1));
    assert_eq!(error, Err(SessionError::Misplaced { tag: 1 }));
    assert!(clock.0.get() < SECOND);
}

#[test]
fn what_the_responder_does_not_allow_is_not_sent() {
    let clock = Ticking::default();
    let (mut outgoing, mut incoming) = ([0; LARGEST as usize], [0; LARGEST as usize]);
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let link = Scripted::new(&clock, Kind::Stream, vec![welcome()]);
    let go_on = |_| ControlFlow::Continue(());
    let mut session =
        Initiator::connect(&clock, link, buffers, SessionOptions::default(), go_on).unwrap();
    let [valid] = experiments(1)[..] else { panic!() };
    let (what, asked, allowed) = (Limited::Message, 1_001, 1_000);
    let large = session.measure(&Experiment { size: 1_001, ..valid });
    assert_eq!(large, Err(SessionError::OutOfBounds { what, asked, allowed }));
    let empty = session.run(&[valid, Experiment { size: 0, ..valid }], |_| panic!("ran"));
    assert_eq!(empty, Err(SessionError::Invalid(Invalid::EmptyMessage)));
    assert_eq!(session.traffic().messages(), 2, "only the handshake");
}
