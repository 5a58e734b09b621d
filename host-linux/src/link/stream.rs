//! A link over any byte stream socket.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use loggap_core::measure::{Link, LinkProperties};
use loggap_core::wire::{FRAME_LEN, MAGIC};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};

use super::{LONGEST_MESSAGE, LinkError, LinkSettings, Queued, Waiting};
use crate::machine::clock::Deadline;

/// Messages over a connected, non-blocking stream socket.
///
/// The stream carries the bytes of the messages and nothing else: the
/// receiver knows each length. A message that the socket buffer takes whole
/// costs one `send`; one that has arrived whole costs one `recv`.
#[derive(Debug)]
pub struct StreamLink<S> {
    stream: S,
    peer: String,
    settings: LinkSettings,
    /// Bytes of the current message already in the caller's buffer.
    received: usize,
}

impl<S: AsFd> StreamLink<S> {
    /// `stream` must be connected and non-blocking.
    pub(super) fn over(stream: S, peer: String, settings: LinkSettings) -> Self {
        Self { stream, peer, settings, received: 0 }
    }

    /// The peer's address or path.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// The same link with another name for its peer in errors.
    #[must_use]
    pub fn named(self, peer: String) -> Self {
        Self { peer, ..self }
    }

    /// The socket alone.
    #[cfg(feature = "verbs")]
    pub(super) fn into_stream(self) -> S {
        self.stream
    }

    /// The socket.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    fn failed(&self, action: &'static str, source: io::Error) -> LinkError {
        LinkError::from_io(&self.peer, action, source)
    }

    fn closed(&self) -> LinkError {
        LinkError::Closed { peer: self.peer.clone() }
    }
}

impl<S: AsFd> StreamLink<S>
where
    for<'a> &'a S: Read + Write,
{
    /// Sends `message` without waiting. Whether the socket took it whole:
    /// otherwise the stream is of no use any more.
    pub(super) fn send_at_once(&self, message: &[u8]) -> bool {
        (&self.stream).write(message).is_ok_and(|bytes| bytes == message.len())
    }

    /// Looks at what a peer has sent that waits to be served, which stays where
    /// it is: one hello, and a bye when it gives up.
    pub(super) fn look_while_queued(&self) -> Queued {
        let mut bytes = [0; 2 * FRAME_LEN + 1];
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        let length = match recv(self.stream.as_fd().as_raw_fd(), &mut bytes, flags) {
            Ok(0) => return Queued::Gone,
            Ok(length) => length,
            Err(Errno::EAGAIN | Errno::EINTR) => return Queued::Silent,
            Err(_) => return Queued::Gone,
        };
        let foreign = bytes.iter().take(length).zip(MAGIC).any(|(byte, magic)| *byte != magic);
        match length {
            _ if foreign => Queued::Foreign,
            1..FRAME_LEN => Queued::Incomplete,
            _ if length > 2 * FRAME_LEN => Queued::Flooding,
            _ => Queued::Ready,
        }
    }

    /// The rest of a message of which the socket took `first` bytes at once.
    #[cold]
    fn send_rest(&mut self, message: &[u8], first: io::Result<usize>) -> Result<(), LinkError> {
        if message.len() as u64 > LONGEST_MESSAGE.0 {
            return Err(LinkError::TooLong { length: message.len(), longest: LONGEST_MESSAGE.0 });
        }
        let mut rest = message;
        let mut taken = first;
        let mut deadline = Deadline::after(self.settings.limit);
        loop {
            match taken {
                Ok(0) if !rest.is_empty() => return Err(self.closed()),
                Ok(bytes) => {
                    rest = rest.get(bytes..).unwrap_or_default();
                    deadline = Deadline::after(self.settings.limit);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if deadline.expired() {
                        return Err(LinkError::Stuck {
                            peer: self.peer.clone(),
                            limit: self.settings.limit,
                        });
                    }
                    if self.settings.waiting == Waiting::Block {
                        self.wait_for(PollFlags::POLLOUT)?;
                    }
                }
                Err(error) => return Err(self.failed("send", error)),
            }
            if rest.is_empty() {
                return Ok(());
            }
            taken = (&self.stream).write(rest);
        }
    }

    /// One `recv` into what is left of `buffer`; `None` when nothing is
    /// there.
    #[inline]
    fn read_once(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let rest = buffer.get_mut(self.received..).unwrap_or_default();
        if rest.is_empty() {
            self.received = 0;
            return Ok(Some(buffer.len()));
        }
        match (&self.stream).read(rest) {
            Ok(0) => Err(self.closed()),
            Ok(bytes) => {
                self.received += bytes;
                if self.received < buffer.len() {
                    return Ok(None);
                }
                self.received = 0;
                Ok(Some(buffer.len()))
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(None),
                _ => Err(self.failed("recv", error)),
            },
        }
    }

    fn wait_for(&self, event: PollFlags) -> Result<(), LinkError> {
        wait_bounded(self.stream.as_fd(), event).map_err(|error| self.failed("poll", error))
    }
}

impl<S: AsFd> Link for StreamLink<S>
where
    for<'a> &'a S: Read + Write,
{
    type Error = LinkError;

    fn properties(&self) -> LinkProperties {
        LinkProperties { max_message: LONGEST_MESSAGE, reliable: true }
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        match (&self.stream).write(message) {
            Ok(bytes) if bytes == message.len() => Ok(()),
            part => self.send_rest(message, part),
        }
    }

    #[inline]
    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        match self.read_once(buffer)? {
            None if self.settings.waiting == Waiting::Block => {
                self.wait_for(PollFlags::POLLIN)?;
                self.read_once(buffer)
            }
            looked => Ok(looked),
        }
    }

    fn discard(&mut self) -> Result<(), LinkError> {
        Ok(())
    }
}

/// How long one blocking look may wait.
const LOOK: Duration = Duration::from_millis(10);

/// Sleeps until `event`, an error or hang-up, or [`LOOK`] has passed.
pub(super) fn wait_bounded(socket: BorrowedFd<'_>, event: PollFlags) -> io::Result<()> {
    let timeout = PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::ZERO);
    match poll(&mut [PollFd::new(socket, event)], timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
