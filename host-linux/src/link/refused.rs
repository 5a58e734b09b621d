//! Sending again what a socket for single messages has refused.

use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::poll::PollFlags;

use super::stream::wait_bounded;
use super::{LinkError, LinkSettings, Waiting};
use crate::clock::Deadline;

/// A socket for single messages, which refuses them when its queue is full.
pub(super) trait Refusing {
    /// Sends `message` unless it is refused.
    fn try_send(&mut self, message: &[u8]) -> Result<(), Errno>;

    /// What is to be known of `message` when it was refused.
    fn refused(&self, message: &[u8]) -> Refused<'_>;

    /// Sends `message`, as often as it is worth another try.
    ///
    /// # Errors
    ///
    /// Why it is not.
    #[inline]
    fn send_in_time(&mut self, message: &[u8]) -> Result<(), LinkError> {
        self.try_send(message).or_else(|error| self.send_later(message, error))
    }

    /// The same for a message that was refused for the reason `first`.
    #[cold]
    fn send_later(&mut self, message: &[u8], first: Errno) -> Result<(), LinkError> {
        let deadline = Deadline::after(self.refused(message).settings.limit);
        let mut reason = first;
        loop {
            self.refused(message).wait(reason, &deadline)?;
            match self.try_send(message) {
                Ok(()) => return Ok(()),
                Err(error) => reason = error,
            }
        }
    }
}

/// A message that was refused.
pub(super) struct Refused<'a> {
    /// Who refused it.
    pub(super) socket: BorrowedFd<'a>,
    /// Whom it was for, as errors call them.
    pub(super) peer: &'a str,
    pub(super) settings: &'a LinkSettings,
    /// Its bytes.
    pub(super) length: usize,
    /// Bytes of the longest message there.
    pub(super) longest: u64,
}

impl Refused<'_> {
    /// Waits until it is worth another try, until `deadline` at most.
    ///
    /// # Errors
    ///
    /// Why it is not; `reason` is why the message was refused.
    #[cold]
    fn wait(&self, reason: Errno, deadline: &Deadline) -> Result<(), LinkError> {
        let Self { socket, peer, settings, length, longest } = *self;
        match reason {
            Errno::EINTR => Ok(()),
            // The queue of the socket or of the interface is full.
            Errno::EAGAIN | Errno::ENOBUFS if deadline.expired() => {
                Err(LinkError::Stuck { peer: peer.to_owned(), limit: settings.limit })
            }
            Errno::EAGAIN | Errno::ENOBUFS if settings.waiting == Waiting::Block => {
                wait_bounded(socket, PollFlags::POLLOUT)
                    .map_err(|error| LinkError::from_io(peer, "poll", error))
            }
            Errno::EAGAIN | Errno::ENOBUFS => Ok(()),
            Errno::EMSGSIZE => Err(LinkError::TooLong { length, longest }),
            error => Err(LinkError::from_io(peer, "send", error.into())),
        }
    }
}
