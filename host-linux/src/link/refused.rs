//! Sending again what a socket for single messages has refused.

use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::poll::PollFlags;

use super::stream::wait_bounded;
use super::{LinkError, LinkSettings, Waiting};
use crate::clock::Deadline;

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
    pub(super) fn wait(&self, reason: Errno, deadline: &Deadline) -> Result<(), LinkError> {
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
