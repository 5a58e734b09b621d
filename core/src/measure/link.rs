//! The two traits that touch the outside.

use crate::units::{Bytes, Picos};

/// A monotonic counter and its scale.
///
/// Readings are raw ticks, so that nothing but the reading itself stands
/// between the timed instructions; conversion happens afterwards.
pub trait Clock {
    /// The counter now, in ticks. Never decreases.
    fn now(&self) -> u64;

    /// The duration of `ticks` ticks, saturating at [`Picos::MAX`].
    fn duration(&self, ticks: u64) -> Picos;

    /// The ticks that `duration` lasts, rounded up, saturating.
    fn ticks(&self, duration: Picos) -> u64;

    /// What one call of [`Clock::now`] costs: the median distance of two
    /// readings back to back, measured by the implementor.
    fn read_cost(&self) -> Picos;
}

/// What a link is, as far as measuring on it depends on that.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LinkProperties {
    /// Largest message that one [`Link::send`] takes.
    pub max_message: Bytes,
    /// Whether every message arrives, in order. Without it a round may be
    /// lost and is discarded and counted.
    pub reliable: bool,
}

/// A bidirectional connection that carries messages.
///
/// On a byte stream the receiver knows each message's length beforehand and
/// passes a buffer of exactly that length. On a datagram link a message may
/// be shorter than the buffer and is never merged with the next.
pub trait Link {
    /// Why the link failed. After an error other than a timeout the link is
    /// not usable any more.
    type Error;

    /// What the link is.
    fn properties(&self) -> LinkProperties;

    /// Says that a session begins at this end: from now on a message that begins
    /// with the first byte of [`MAGIC`](crate::wire::MAGIC) is a control frame, and
    /// of every other one both ends look at the length and the first byte only. A
    /// link that keeps messages in memory of its own, as over RDMA, need not copy
    /// the rest then: it may send other bytes in its place, and leave those in the
    /// receiver's buffer as they were. Other links go on as before.
    fn begin_session(&mut self) {}

    /// Sends one whole message and returns as soon as `message` may be
    /// reused: what this call takes is the send overhead.
    ///
    /// # Errors
    ///
    /// The peer is gone, or took nothing for the link's own time limit.
    fn send(&mut self, message: &[u8]) -> Result<(), Self::Error>;

    /// Looks once for a message and returns its length, or `None` when it is
    /// not complete yet. A stream collects into `buffer` across calls, so
    /// the same buffer has to be passed until the message is complete. May
    /// wait inside, but for a bounded time (a link set to block). A datagram
    /// that does not fit into `buffer` is dropped: anybody may have sent it.
    ///
    /// # Errors
    ///
    /// The peer is gone, or a message of a stream does not fit into `buffer`.
    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Self::Error>;

    /// As [`Link::poll_receive`], for who has nothing else to do until a message
    /// is there. A link whose peer cannot go away without notice may wait
    /// inside for as long as that takes; others just look.
    ///
    /// # Errors
    ///
    /// As [`Link::poll_receive`].
    #[inline(always)]
    fn wait_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Self::Error> {
        self.poll_receive(buffer)
    }

    /// Runs `body`, which sends `message` again and again with [`Link::send`] and
    /// may receive what comes back. A link that begins a send and completes it
    /// later completes these sends when `body` is over, and not before.
    #[inline]
    fn train<R>(&mut self, message: &[u8], body: impl FnOnce(&mut Self) -> R) -> R
    where
        Self: Sized,
    {
        let _ = message;
        body(self)
    }

    /// Runs `body` as [`Link::train`] does, and receives answers into the buffer
    /// that `body` is given, while it sends. A link whose sends wait for the
    /// receiver posts a receive for an answer first: otherwise both ends would
    /// wait for each other. It then receives into `answer` whatever the buffer.
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

    /// Runs `before`, which causes a message to be sent to this end, and then
    /// receives as [`Link::wait_receive`] does. A link that can be told
    /// beforehand where a message shall go is told before `before` runs.
    ///
    /// # Errors
    ///
    /// Those of `before` and of [`Link::wait_receive`].
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

    /// Says that the next message of a round that is sent has `length` bytes. A link may
    /// make ready for that while there is nothing else to do.
    #[inline]
    fn expect_send(&mut self, length: usize) {
        let _ = length;
    }

    /// Forgets a message received in part and whatever else has arrived, so
    /// that a lost round cannot leak into the next. Nothing to do on a
    /// reliable link.
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
}

/// A borrowed link completes each send before the next, and is told of a
/// receive when it begins: what [`Link::train`] and [`Link::receive_after`] pass
/// on is the borrow, whose lifetime the link's own methods cannot give back.
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
