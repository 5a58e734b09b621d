//! The initiator's session: opens the link, announces rounds in batches, times them and recovers
//! from lost messages.

use core::ops::ControlFlow;

use crate::measure::session::batch;
use crate::measure::session::exchange::fill;
use crate::measure::session::retransmission::RetransmissionTimeout;
use crate::measure::{Clock, Experiment, Link, Phase, Poller, Sample, SessionError, Traffic};
use crate::units::{PerByte, Picos};
use crate::wire::{Bounds, DESCRIPTION_PART, FRAME_LEN, Request};

/// Outcome of one experiment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Outcome {
    /// A measured value.
    Sample(Sample),
    /// The reply arrived only after the start of its timed receive, so that the time includes
    /// waiting: no value.
    Late(Experiment),
    /// A message of the round was lost on a datagram link; the round was discarded and counted.
    Lost(Experiment),
}

impl Outcome {
    /// Experiment that was run.
    #[must_use]
    pub const fn experiment(&self) -> &Experiment {
        match self {
            Self::Sample(Sample { experiment, .. })
            | Self::Late(experiment)
            | Self::Lost(experiment) => experiment,
        }
    }
}

/// Time limits of a session and the bounds to request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SessionOptions {
    /// Bounds to request; the responder may allow less.
    pub bounds: Bounds,
    /// Longest wait for the welcome.
    pub handshake: Picos,
    /// Longest wait between two announcements of the position in the queue.
    pub queue: Picos,
    /// Longest wait for a reply, in addition to the round's own busy waits.
    pub reply: Picos,
    /// Shortest wait before a message counts as lost on a datagram link.
    pub shortest_reply: Picos,
    /// Number of times that a control frame is sent on a datagram link.
    pub tries: u32,
}

impl Default for SessionOptions {
    /// 5 s for handshake and replies, 60 s between messages of the queue, at least 20 ms before a
    /// datagram counts as lost, 10 tries.
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

/// Buffers of an initiator, each as long as the largest message to be measured and at least
/// [`FRAME_LEN`].
#[derive(Debug)]
pub struct Buffers<'b> {
    /// Send buffer.
    pub outgoing: &'b mut [u8],
    /// Receive buffer.
    pub incoming: &'b mut [u8],
}

/// An open session with a responder.
///
/// [`Initiator::connect`] opens it, [`Initiator::run`] measures, any number of times, and
/// [`Initiator::close`] ends it. After an error the session is over, unless the error concerns the
/// experiment itself.
#[derive(Debug)]
pub struct Initiator<'b, C, L> {
    pub(in crate::measure) clock: C,
    pub(in crate::measure) link: L,
    pub(in crate::measure) buffers: Buffers<'b>,
    /// Number of times that a control frame is sent on a datagram link.
    pub(in crate::measure) tries: u32,
    pub(in crate::measure) agreed: Bounds,
    pub(in crate::measure) datagrams: bool,
    pub(in crate::measure) poller: Poller,
    pub(in crate::measure) timeout: RetransmissionTimeout,
    /// Sequence number of the next round.
    pub(in crate::measure) sequence: u32,
    /// Token of the last synchronisation.
    pub(in crate::measure) token: u32,
    pub(in crate::measure) traffic: Traffic,
    /// Time per byte that the link sustains; zero if unknown.
    pub(in crate::measure) sustained: PerByte,
    /// Time before which no round begins, in ticks.
    pub(in crate::measure) rested_at: u64,
    /// True if the responder has a description.
    pub(in crate::measure) described: bool,
    /// True if an end was preempted during the rounds of the latest run.
    interrupted: bool,
}

impl<'b, C: Clock, L: Link> Initiator<'b, C, L> {
    /// Opens a session: sends hello, echoes the nonce of a responder on datagrams, and waits for
    /// the welcome. While another initiator is served, `on_queue` is called with the position in
    /// the queue; `Break` gives up.
    ///
    /// # Errors
    ///
    /// The link failed, the responder refused or was silent, or the memory or the link is too small
    /// for a control frame.
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

    /// Bounds of the session: enforced by the responder, respected by the initiator.
    pub const fn bounds(&self) -> &Bounds {
        &self.agreed
    }

    /// Counts of messages so far.
    pub const fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Clock of the session.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Link of the session, for operations that its own type has, between two runs.
    pub const fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }

    /// Sets the time per byte that the link sustains. From now on a round begins only after the
    /// messages of the previous one would have passed at that rate. A link that lets a burst pass,
    /// such as a token bucket, is then in the same state before each round, whatever the previous
    /// round was.
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

    /// Runs `experiments` in order and passes the outcome of each to `each`. They are announced in
    /// batches of up to [`ROUNDS_PER_BATCH`](crate::wire::ROUNDS_PER_BATCH) different rounds, with
    /// two control frames a batch: pass many at once.
    ///
    /// # Errors
    ///
    /// [`SessionError::OutOfBounds`] or [`SessionError::Invalid`] if an experiment cannot be run;
    /// nothing was sent. After any other error the session is over; outcomes passed to `each`
    /// before are valid.
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

    /// True if an end was preempted during the rounds of the latest [`Initiator::run`], as far as
    /// [`Clock::interruptions`] reports it.
    pub const fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Exchanges control frames, a few times at most, until one exchange passes without preemption:
    /// on shared processors the following rounds are then likely to fall within time slices of both
    /// ends.
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

    /// Requests the responder's description of its environment and copies it to `text`, as far as
    /// it fits. Returns its length, or `None` if the responder has no description or does not
    /// answer in time on a datagram link. The bytes are not validated.
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

    /// Ends the session and returns clock and link.
    ///
    /// # Errors
    ///
    /// The link failed; read the counts before, since they are lost.
    pub fn close(mut self) -> Result<(C, L), SessionError<L::Error>> {
        self.goodbye()?;
        Ok((self.clock, self.link))
    }

    /// Sends goodbye, which ends the session.
    ///
    /// # Errors
    ///
    /// The link failed.
    pub fn goodbye(&mut self) -> Result<(), SessionError<L::Error>> {
        self.send_control(&Request::Bye)
    }
}
