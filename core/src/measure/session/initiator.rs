//! The initiator's session: it opens the link, announces rounds in batches,
//! times them and recovers from lost messages.

use core::ops::ControlFlow;

use crate::measure::session::batch;
use crate::measure::session::exchange::fill;
use crate::measure::session::retransmission::RetransmissionTimeout;
use crate::measure::{Clock, Experiment, Link, Phase, Poller, Sample, SessionError, Traffic};
use crate::units::{PerByte, Picos};
use crate::wire::{Bounds, DESCRIPTION_PART, FRAME_LEN, Request};

/// What came of one experiment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Outcome {
    /// A measured value.
    Sample(Sample),
    /// The reply had not arrived when its receive was to be timed, so that
    /// waiting for it was timed, too: no value.
    Late(Experiment),
    /// A message of the round was lost on a datagram link; the round was
    /// discarded and counted.
    Lost(Experiment),
}

impl Outcome {
    /// The experiment that it is of.
    #[must_use]
    pub const fn experiment(&self) -> &Experiment {
        match self {
            Self::Sample(Sample { experiment, .. })
            | Self::Late(experiment)
            | Self::Lost(experiment) => experiment,
        }
    }
}

/// Time limits of a session and the bounds to ask for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SessionOptions {
    /// What the responder is asked to allow; it may allow less.
    pub bounds: Bounds,
    /// Longest wait for the welcome.
    pub handshake: Picos,
    /// Longest wait between two announcements of the position in the queue.
    pub queue: Picos,
    /// Longest wait for a reply, the round's own busy waits not counted.
    pub reply: Picos,
    /// On a datagram link, the shortest wait before a message is given up.
    pub shortest_reply: Picos,
    /// On a datagram link, how often a control frame is repeated.
    pub tries: u32,
}

impl Default for SessionOptions {
    /// 5 s for handshake and replies, 60 s between signs of life of the
    /// queue, at least 20 ms before a datagram is given up, 10 tries.
    fn default() -> Self {
        const SECOND: u64 = 1_000_000_000_000;
        Self {
            bounds: Bounds { message: u32::MAX, messages: u32::MAX, ..Bounds::default() },
            handshake: Picos(5 * SECOND),
            queue: Picos(60 * SECOND),
            reply: Picos(5 * SECOND),
            shortest_reply: Picos(SECOND / 50),
            tries: 10,
        }
    }
}

/// The memory that an initiator works on, each as long as the largest message
/// to be measured and at least [`FRAME_LEN`].
#[derive(Debug)]
pub struct Buffers<'b> {
    /// Messages are sent from here.
    pub outgoing: &'b mut [u8],
    /// Replies are received here.
    pub incoming: &'b mut [u8],
}

/// An open session with a responder.
///
/// [`Initiator::connect`] opens it, [`Initiator::run`] measures as often as
/// wanted, [`Initiator::close`] ends it. After an error that is not about the
/// experiment itself the session is over.
#[derive(Debug)]
pub struct Initiator<'b, C, L> {
    pub(in crate::measure) clock: C,
    pub(in crate::measure) link: L,
    pub(in crate::measure) buffers: Buffers<'b>,
    /// How often a control frame is repeated on a datagram link.
    pub(in crate::measure) tries: u32,
    pub(in crate::measure) agreed: Bounds,
    pub(in crate::measure) datagrams: bool,
    pub(in crate::measure) poller: Poller,
    pub(in crate::measure) timeout: RetransmissionTimeout,
    /// Number of the next round.
    pub(in crate::measure) sequence: u32,
    /// Of the last synchronisation.
    pub(in crate::measure) token: u32,
    pub(in crate::measure) traffic: Traffic,
    /// The time per byte that the link sustains; zero where it is not known.
    pub(in crate::measure) sustained: PerByte,
    /// Ticks of the clock before which no round begins.
    pub(in crate::measure) rested_at: u64,
    /// The responder has a description.
    pub(in crate::measure) described: bool,
    /// A processor was taken away during the rounds of the latest run.
    interrupted: bool,
}

impl<'b, C: Clock, L: Link> Initiator<'b, C, L> {
    /// Opens a session: says hello, echoes the nonce that a responder on
    /// datagrams asks for, and waits to be welcomed. `on_queue` is told the position while another initiator is served, and
    /// may break off.
    ///
    /// # Errors
    ///
    /// The link failed, the responder refused or was silent, or memory or
    /// link are too small for a control frame.
    pub fn connect(
        clock: C,
        mut link: L,
        buffers: Buffers<'b>,
        options: SessionOptions,
        on_queue: impl FnMut(u32) -> ControlFlow<()>,
    ) -> Result<Self, SessionError<L::Error>> {
        let properties = link.properties();
        let lent = buffers.outgoing.len().min(buffers.incoming.len());
        let largest = usize::try_from(properties.max_message.0).unwrap_or(usize::MAX).min(lent);
        if largest < FRAME_LEN {
            return Err(SessionError::TooSmall { needed: FRAME_LEN, lent: largest });
        }
        fill(buffers.outgoing);
        link.begin_session();
        let largest = u32::try_from(largest).unwrap_or(u32::MAX);
        let mut bounds = options.bounds;
        bounds.message = bounds.message.min(largest);
        let longest = clock.ticks(options.reply);
        let shortest = clock.ticks(options.shortest_reply);
        let mut session = Self {
            clock,
            link,
            buffers,
            tries: options.tries.max(1),
            agreed: bounds,
            datagrams: !properties.reliable,
            poller: Poller::default(),
            timeout: if properties.reliable {
                RetransmissionTimeout::fixed(longest)
            } else {
                RetransmissionTimeout::learning(longest, shortest)
            },
            sequence: 0,
            token: 0,
            traffic: Traffic::default(),
            sustained: PerByte::ZERO,
            rested_at: 0,
            described: false,
            interrupted: false,
        };
        session.handshake(&options, on_queue)?;
        Ok(session)
    }

    /// The bounds that the responder enforces and this side keeps to.
    pub const fn bounds(&self) -> &Bounds {
        &self.agreed
    }

    /// What went over the link so far.
    pub const fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The clock that is read.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// The link, for what only its own type can do between two runs.
    pub const fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }

    /// Tells the time per byte that the link sustains. From now on a round
    /// begins only when the messages of the one before it would have passed at
    /// that rate: a link that lets some bytes pass at once, such as a token
    /// bucket, is then in the same state before each round, whichever came
    /// before.
    pub const fn rest_at(&mut self, sustained: PerByte) {
        self.sustained = sustained;
    }

    /// Runs one experiment.
    ///
    /// # Errors
    ///
    /// As [`Initiator::run`].
    pub fn measure(&mut self, experiment: &Experiment) -> Result<Outcome, SessionError<L::Error>> {
        let mut outcome = Outcome::Lost(*experiment);
        self.run(core::slice::from_ref(experiment), |one| outcome = one)?;
        Ok(outcome)
    }

    /// Runs `experiments` in their order and hands each one's outcome to
    /// `each`. They are announced in batches of up to
    /// [`ROUNDS_PER_BATCH`](crate::wire::ROUNDS_PER_BATCH) different rounds,
    /// two control frames a batch: pass many at once.
    ///
    /// # Errors
    ///
    /// [`SessionError::OutOfBounds`] or [`SessionError::Invalid`] before
    /// anything is sent, when an experiment cannot be run; otherwise the
    /// session is over, and what `each` has got is valid.
    pub fn run(
        &mut self,
        experiments: &[Experiment],
        mut each: impl FnMut(Outcome),
    ) -> Result<(), SessionError<L::Error>> {
        batch::check(experiments, &self.agreed)?;
        let mut rest = experiments;
        let mut unanswered = 0;
        self.interrupted = false;
        while !rest.is_empty() {
            let taken = self.send_batch(rest)?;
            if self.await_ready()? {
                unanswered = 0;
                let before = self.clock.interruptions();
                let done = self.rounds(rest.get(..taken).unwrap_or(rest), &mut each)?;
                self.interrupted |= self.clock.interruptions() != before;
                rest = rest.get(done..).unwrap_or_default();
            } else {
                unanswered += 1;
                if unanswered >= self.tries {
                    return Err(self.silent(Phase::Batch, self.timeout.longest));
                }
                self.synchronise()?;
            }
        }
        Ok(())
    }

    /// Whether a processor was taken away from an end during the rounds of the
    /// latest [`Initiator::run`], as far as [`Clock::interruptions`] tells.
    pub const fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Exchanges control frames until both ends have a processor, a few times at
    /// most: where processors are taken away, rounds that follow are likely to
    /// fall within the time slices of both ends.
    ///
    /// # Errors
    ///
    /// As [`Initiator::run`].
    pub fn meet(&mut self) -> Result<(), SessionError<L::Error>> {
        const TRIES: u32 = 4;
        for _ in 0..TRIES {
            let before = self.clock.interruptions();
            self.synchronise()?;
            if self.clock.interruptions() == before {
                break;
            }
        }
        Ok(())
    }

    /// Asks the responder to describe its environment and puts the text, as
    /// far as it fits, at the front of `text`. Its length, or `None` when this
    /// responder has no description or answers nothing in time on a datagram
    /// link. The bytes are whatever the responder has sent.
    ///
    /// # Errors
    ///
    /// As [`Initiator::run`].
    pub fn describe(&mut self, text: &mut [u8]) -> Result<Option<usize>, SessionError<L::Error>> {
        let mut length = 0;
        while self.described {
            let rest = text.get_mut(length..).unwrap_or_default();
            match self.description_part(length, rest)? {
                None => return Ok(None),
                Some(DESCRIPTION_PART) => length += DESCRIPTION_PART,
                Some(last) => return Ok(Some(length + last)),
            }
        }
        Ok(None)
    }

    /// Says goodbye and gives clock and link back.
    ///
    /// # Errors
    ///
    /// The link failed; the counts are lost with it, read them before.
    pub fn close(mut self) -> Result<(C, L), SessionError<L::Error>> {
        self.goodbye()?;
        Ok((self.clock, self.link))
    }

    /// Says goodbye: nothing more is to be measured.
    ///
    /// # Errors
    ///
    /// The link failed.
    pub fn goodbye(&mut self) -> Result<(), SessionError<L::Error>> {
        self.send_control(&Request::Bye)
    }
}
