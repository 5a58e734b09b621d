//! Both ends of a session over a link whose other end says anything.

use super::Numbers;
use super::parsers::repair_checksum;
use loggap_core::measure::{
    Buffers, Clock, Ending, Experiment, Initiator, Link, LinkProperties, Outcome, Quantity,
    ServeError, ServeOptions, SessionOptions, serve_with,
};
use loggap_core::units::{Bytes, Picos};
use loggap_core::wire::{Bounds, Message};
use std::cell::Cell;
use std::ops::ControlFlow;

/// Longest message of the link.
const LONGEST: usize = 600;
const SECOND: u64 = 1_000_000_000_000;
/// What each reading of the clock and each look for a message takes.
const LOOK: u64 = SECOND / 100_000;

/// Every reading takes a little, so that every wait ends.
#[derive(Default)]
struct Ticking(Cell<u64>);

impl Clock for Ticking {
    fn now(&self) -> u64 {
        self.0.set(self.0.get() + LOOK);
        self.0.get()
    }

    fn duration(&self, ticks: u64) -> Picos {
        Picos(ticks)
    }

    fn ticks(&self, duration: Picos) -> u64 {
        duration.0
    }

    fn read_cost(&self) -> Picos {
        Picos(LOOK)
    }
}

/// The other end hung up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Gone;

/// Says what the input holds, then hangs up or falls silent.
struct Scripted<'c, 'd> {
    clock: &'c Ticking,
    says: &'d [u8],
    reliable: bool,
    hangs_up: bool,
    flags: u8,
    /// Bytes of a stream that are in the caller's buffer.
    collected: usize,
    sent: u64,
    last: Vec<u8>,
}

impl<'c, 'd> Scripted<'c, 'd> {
    /// The first byte of the input decides what link it is.
    fn new(clock: &'c Ticking, data: &'d [u8]) -> Self {
        let mut input = Numbers(data);
        let flags = input.byte();
        let (reliable, hangs_up) = (flags & 1 == 0, flags & 2 == 0);
        let (says, last) = (input.0, vec![]);
        Self { clock, says, reliable, hangs_up, flags, collected: 0, sent: 0, last }
    }

    /// A stream is bytes; a datagram has its length before it.
    fn next(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if self.reliable {
            let wanted = &mut buffer[self.collected..];
            let count = wanted.len().min(self.says.len());
            let (now, later) = self.says.split_at(count);
            wanted[..count].copy_from_slice(now);
            (self.says, self.collected) = (later, self.collected + count);
            let length = (self.collected == buffer.len()).then_some(buffer.len())?;
            self.collected = 0;
            self.repair(buffer);
            return Some(length);
        }
        let (length, rest) = self.says.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_le_bytes(*length)) % (LONGEST + 1);
        let length = length.min(rest.len()).min(buffer.len());
        let (message, later) = rest.split_at(length);
        buffer[..length].copy_from_slice(message);
        self.says = later;
        self.repair(&mut buffer[..length]);
        Some(length)
    }

    /// Most inputs are said with the right checksums.
    fn repair(&self, message: &mut [u8]) {
        if self.flags & 16 == 0 {
            repair_checksum(message);
        }
    }
}

impl Link for Scripted<'_, '_> {
    type Error = Gone;

    fn properties(&self) -> LinkProperties {
        LinkProperties {
            reliable: self.reliable,
            ..LinkProperties::reliable(Bytes(LONGEST as u64))
        }
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Gone> {
        assert!(message.len() <= LONGEST);
        self.sent += 1;
        self.last = message.to_vec();
        Ok(())
    }

    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Gone> {
        self.clock.now();
        let found = self.next(buffer);
        if found.is_none() && self.hangs_up { Err(Gone) } else { Ok(found) }
    }

    fn discard(&mut self) -> Result<(), Gone> {
        self.collected = 0;
        Ok(())
    }
}

/// The responder on any stream of bytes, and on any datagrams: it ends in
/// time, and answers each message once at most.
pub fn responder(data: &[u8]) {
    let clock = Ticking::default();
    let mut link = Scripted::new(&clock, data);
    let bounds = Bounds {
        message: LONGEST as u32,
        messages: 40,
        rounds: 100,
        pause: Picos(SECOND / 1_000),
        silence: Picos(SECOND / 10),
        session: Picos(SECOND),
    };
    let nonce = if link.flags & 4 == 0 { 0 } else { 7 };
    let description: &[u8] = if link.flags & 8 == 0 { b"" } else { b"a machine" };
    let options = ServeOptions { bounds, nonce, description };
    let outcome = serve_with(&clock, &mut link, &mut [0; LONGEST], options);
    assert!(link.sent <= 2 * data.len() as u64 + 1, "answers {} times", link.sent);
    assert!(clock.0.get() < 3 * SECOND, "takes {} ps", clock.0.get());
    match outcome {
        Ok((_, Ending::Refused(refusal))) => {
            assert_eq!(Message::parse(&link.last), Ok(Message::Refuse(refusal)));
        }
        Ok((served, Ending::Goodbye)) => assert!(served.replied <= link.sent),
        Err(ServeError::Link(Gone)) => assert!(link.hangs_up),
        // An initiator may ask for less silence than is allowed.
        Err(ServeError::Silent(limit)) => assert!(limit <= bounds.silence, "silent for {limit:?}"),
        Err(error) => panic!("{error:?}"),
    }
}

/// The initiator before a responder that says anything: it ends in time.
pub fn initiator(data: &[u8]) {
    let clock = Ticking::default();
    let link = Scripted::new(&clock, data);
    let _any_result_will_do = session(&clock, link);
    // Ten tries with every limit at its longest.
    assert!(clock.0.get() < 30 * SECOND, "takes {} ps", clock.0.get());
}

fn session(clock: &Ticking, link: Scripted<'_, '_>) -> Option<()> {
    let (mut outgoing, mut incoming) = ([0; LONGEST], [0; LONGEST]);
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let options = SessionOptions {
        handshake: Picos(SECOND / 10),
        queue: Picos(SECOND / 10),
        reply: Picos(SECOND / 10),
        ..SessionOptions::default()
    };
    let mut places = 20;
    let on_queue = |_| {
        places -= 1;
        if places > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let mut session = Initiator::connect(clock, link, buffers, options, on_queue).ok()?;
    let quantities = [Quantity::RoundTrip, Quantity::Gap, Quantity::Paced, Quantity::Receive];
    let experiments = quantities.map(|quantity| {
        let messages = if matches!(quantity, Quantity::Gap | Quantity::Paced) { 3 } else { 1 };
        let waits = matches!(quantity, Quantity::Paced | Quantity::Receive);
        let delay = if waits { 10 * LOOK } else { 0 };
        Experiment { quantity, messages, delay: Picos(delay), size: 1 + messages }
    });
    let mut asked = experiments.iter();
    let each = |outcome| {
        let experiment = match outcome {
            Outcome::Sample(sample) => sample.experiment,
            Outcome::Late(experiment) => {
                assert_eq!(experiment.quantity, Quantity::Receive);
                experiment
            }
            Outcome::Lost(experiment) => experiment,
        };
        assert_eq!(Some(&experiment), asked.next(), "one outcome for each, in their order");
    };
    session.run(&experiments, each).ok()?;
    assert_eq!(asked.next(), None, "no outcome is missing");
    session.describe(&mut [0; 1_000]).ok()?;
    session.close().ok().map(|_| ())
}
