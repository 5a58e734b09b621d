//! The initiator's session: it opens the link, announces rounds in batches,
//! times them and recovers from lost messages.

use core::ops::ControlFlow;

use super::batch;
use super::exchange::fill;
use super::patience::Patience;
use super::{Clock, Experiment, Link, Phase, Sample, SessionError, Traffic, Watch};
use crate::units::Picos;
use crate::wire::{Bounds, FRAME_LEN, Request};

/// What came of one experiment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Outcome {
    /// A measured value.
    Sample(Sample),
    /// A message of the round was lost on a datagram link; the round was
    /// discarded and counted.
    Lost(Experiment),
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
    pub(super) clock: C,
    pub(super) link: L,
    pub(super) buffers: Buffers<'b>,
    /// How often a control frame is repeated on a datagram link.
    pub(super) tries: u32,
    pub(super) agreed: Bounds,
    pub(super) datagrams: bool,
    pub(super) watch: Watch,
    pub(super) patience: Patience,
    /// Number of the next round.
    pub(super) sequence: u32,
    /// Of the last synchronisation.
    pub(super) token: u32,
    pub(super) traffic: Traffic,
}

impl<'b, C: Clock, L: Link> Initiator<'b, C, L> {
    /// Opens a session: greets the responder and waits to be welcomed.
    /// `on_queue` is told the position while another initiator is served, and
    /// may break off.
    ///
    /// # Errors
    ///
    /// The link failed, the responder refused or was silent, or memory or
    /// link are too small for a control frame.
    pub fn connect(
        clock: C,
        link: L,
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
            watch: Watch::default(),
            patience: if properties.reliable {
                Patience::fixed(longest)
            } else {
                Patience::learning(longest, shortest)
            },
            sequence: 0,
            token: 0,
            traffic: Traffic::default(),
        };
        session.greet(&options, on_queue)?;
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
        while !rest.is_empty() {
            let taken = self.say_batch(rest)?;
            if self.is_ready()? {
                unanswered = 0;
                let done = self.rounds(rest.get(..taken).unwrap_or(rest), &mut each)?;
                rest = rest.get(done..).unwrap_or_default();
            } else {
                unanswered += 1;
                if unanswered >= self.tries {
                    return Err(self.silent(Phase::Batch, self.patience.longest));
                }
                self.synchronise()?;
            }
        }
        Ok(())
    }

    /// Measures the receive overhead at the responder: it gets `messages`
    /// messages of `size` bytes, waits for `pause` before each but the first,
    /// and times its receive calls. The mean of those, or `None` when a
    /// message was lost. The pause must be longer than the initiator's time
    /// between two sends, otherwise waiting is counted as overhead.
    ///
    /// # Errors
    ///
    /// As [`Initiator::run`].
    pub fn far_receive(
        &mut self,
        messages: u32,
        size: u32,
        pause: Picos,
    ) -> Result<Option<Picos>, SessionError<L::Error>> {
        let round = batch::far_receive(messages, size, pause);
        self.agreed.check(&[round]).map_err(batch::beyond)?;
        if messages < 2 || size == 0 {
            return Err(SessionError::Invalid(super::Invalid::NoMessages));
        }
        let sequence = self.sequence;
        let report = if self.announce(&[round])? {
            match self.far_round(messages, size, pause)? {
                true => self.report(sequence)?,
                false => None,
            }
        } else {
            None
        };
        if report.is_none() {
            self.synchronise()?;
        }
        Ok(report.map(|sum| Picos(sum.0 / u64::from(messages - 1))))
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
        self.say(&Request::Bye)
    }
}
