//! The traits that a host or firmware implements: clock and link.

use crate::units::{Bytes, Picos};

/// A monotonic counter and its scale.
///
/// Readings are raw ticks, so that the timed code contains nothing but the reading itself; they are
/// converted afterwards.
pub trait Clock {
    /// Current counter, in ticks. Never decreases.
    fn now(&self) -> u64;

    /// Duration of `ticks` ticks, saturating at [`Picos::MAX`].
    fn duration(&self, ticks: u64) -> Picos;

    /// Number of ticks that `duration` lasts, rounded up, saturating.
    fn ticks(&self, duration: Picos) -> u64;

    /// Cost of one call of [`Clock::now`]: the median distance of two consecutive readings,
    /// measured by the implementor.
    fn read_cost(&self) -> Picos;

    /// Number of times that an end of the link on this machine was preempted: a round during which
    /// it increases is disturbed. Not called within a timed span. 0 if unknown.
    fn interruptions(&self) -> u64 {
        0
    }
}

/// Properties of a link that affect measurements.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LinkProperties {
    /// Largest message of one [`Link::send`], in bytes.
    pub max_message: Bytes,
    /// True if every message arrives, in order. Otherwise a round may be lost; it is then discarded
    /// and counted.
    pub reliable: bool,
    /// True if the initiator reads messages from the peer's memory: the peer's processor takes no
    /// part, and the responder runs in the initiator's process. There are then no one-way times.
    pub one_sided: bool,
}

impl LinkProperties {
    /// Properties of a link on which every message of up to `max_message` bytes arrives, in order.
    #[must_use]
    pub const fn reliable(max_message: Bytes) -> Self {
        Self { max_message, reliable: true, one_sided: false }
    }

    /// Properties of a link that may lose messages.
    #[must_use]
    pub const fn datagrams(max_message: Bytes) -> Self {
        Self { max_message, reliable: false, one_sided: false }
    }
}

/// A bidirectional connection that carries messages.
///
/// On a byte stream the receiver knows each message's length and passes a buffer of exactly that
/// length. On a datagram link a message may be shorter than the buffer and is never merged with the
/// next.
pub trait Link {
    /// Error of the link. After any other than a timeout the link is unusable.
    type Error;

    /// Properties of the link.
    fn properties(&self) -> LinkProperties;

    /// Announces that a session begins at this end. From now on a message that begins with the
    /// first byte of [`MAGIC`](crate::wire::MAGIC) is a control frame, and of all others both ends
    /// evaluate only the length and the first byte. So a link with message memory of its own, such
    /// as RDMA, need not copy the rest: it may send other bytes and leave the receiver's buffer
    /// unchanged. Other links ignore this.
    fn begin_session(&mut self) {}

    /// Sends one whole message and returns as soon as `message` may be reused: the duration of this
    /// call is the send overhead.
    ///
    /// # Errors
    ///
    /// The peer is gone, or received nothing within the link's own time limit.
    fn send(&mut self, message: &[u8]) -> Result<(), Self::Error>;

    /// Polls once for a message and returns its length, or `None` if it is not complete yet. A
    /// stream collects into `buffer` across calls, so the same buffer has to be passed until the
    /// message is complete. May block, but for a bounded time. A datagram that does not fit into
    /// `buffer` is dropped, since its sender may be anyone.
    ///
    /// # Errors
    ///
    /// The peer is gone, or a stream's message does not fit into `buffer`.
    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Self::Error>;

    /// As [`Link::poll_receive`], for a caller with nothing else to do until a message arrives. A
    /// link whose peer cannot disappear unnoticed may block until then; others just poll.
    ///
    /// # Errors
    ///
    /// As [`Link::poll_receive`].
    #[inline(always)]
    fn wait_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Self::Error> {
        self.poll_receive(buffer)
    }

    /// Runs `body`, which sends `message` repeatedly with [`Link::send`] and may receive. A link
    /// with asynchronous sends completes these when `body` is over, not before.
    #[inline]
    fn train<R>(&mut self, message: &[u8], body: impl FnOnce(&mut Self) -> R) -> R
    where
        Self: Sized,
    {
        let _ = message;
        body(self)
    }

    /// Runs `body` as [`Link::train`] does; `body` receives answers into the buffer that it is
    /// given while it sends. A link whose sends wait for the receiver first posts a receive for an
    /// answer, since otherwise both ends would wait for each other; it then receives into `answer`,
    /// whatever the buffer.
    #[inline]
    fn exchange<R>(
        &mut self,
        message: &[u8],
        answer: &mut [u8],
        body: impl FnOnce(&mut Self, &mut [u8]) -> R,
    ) -> R
    where
        Self: Sized,
    {
        self.train(message, |link| body(link, answer))
    }

    /// Runs `before`, which causes the peer to send a message, and then receives as
    /// [`Link::wait_receive`] does. A link that supports it posts the receive before `before` runs.
    ///
    /// # Errors
    ///
    /// Errors of `before` and of [`Link::wait_receive`].
    #[inline]
    fn receive_after<R>(
        &mut self,
        buffer: &mut [u8],
        before: impl FnOnce(&mut Self) -> Result<R, Self::Error>,
    ) -> Result<(R, Option<usize>), Self::Error>
    where
        Self: Sized,
    {
        let before = before(self)?;
        Ok((before, self.wait_receive(buffer)?))
    }

    /// Announces that the next message of a round will have `length` bytes. A link may prepare for
    /// it while idle.
    #[inline]
    fn expect_send(&mut self, length: usize) {
        let _ = length;
    }

    /// Discards a partially received message and everything else that has arrived, so that a lost
    /// round cannot affect the next. Does nothing on a reliable link.
    ///
    /// # Errors
    ///
    /// The peer is gone.
    fn discard(&mut self) -> Result<(), Self::Error>;
}

impl<C: Clock + ?Sized> Clock for &C {
    #[inline]
    fn now(&self) -> u64 {
        (**self).now()
    }

    #[cfg_attr(not(target_os = "none"), inline)]
    #[cfg_attr(target_os = "none", inline(never))]
    fn duration(&self, ticks: u64) -> Picos {
        (**self).duration(ticks)
    }

    #[inline]
    fn ticks(&self, duration: Picos) -> u64 {
        (**self).ticks(duration)
    }

    #[inline]
    fn read_cost(&self) -> Picos {
        (**self).read_cost()
    }

    fn interruptions(&self) -> u64 {
        (**self).interruptions()
    }
}

/// A borrowed link keeps the defaults of [`Link::train`] and [`Link::receive_after`]: each send
/// completes before the next, and a receive is posted only when it begins. Forwarding the two is
/// impossible: their closures expect `&mut &mut L`, but would be given `&mut L`.
impl<L: Link + ?Sized> Link for &mut L {
    type Error = L::Error;

    #[inline]
    fn properties(&self) -> LinkProperties {
        (**self).properties()
    }

    fn begin_session(&mut self) {
        (**self).begin_session();
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<(), Self::Error> {
        (**self).send(message)
    }

    #[inline]
    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Self::Error> {
        (**self).poll_receive(buffer)
    }

    #[inline]
    fn wait_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Self::Error> {
        (**self).wait_receive(buffer)
    }

    #[inline]
    fn expect_send(&mut self, length: usize) {
        (**self).expect_send(length);
    }

    fn discard(&mut self) -> Result<(), Self::Error> {
        (**self).discard()
    }
}
