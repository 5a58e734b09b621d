//! Link over any byte stream socket.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::{fmt, io};

use loggap_core::measure::{Link, LinkProperties};
use loggap_core::wire::{FRAME_LEN, MAGIC};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};

use super::{
    HostLink, LONGEST_MESSAGE, LinkError, LinkFingerprint, LinkSettings, Queued, Transport, Waiting,
};
use crate::machine::clock::Deadline;
use crate::sys::socket;

/// A connected byte stream socket.
pub trait StreamSocket: AsFd + fmt::Debug + Send + 'static {
    /// Its transport.
    const TRANSPORT: Transport;

    /// Adds the socket's properties to `basic`.
    fn describe(&self, basic: LinkFingerprint) -> LinkFingerprint {
        basic
    }
}

/// Link over a connected, non-blocking stream socket.
///
/// The stream carries nothing but the bytes of the messages: the receiver knows each length. A
/// message that fits into the socket buffer costs one `send`; one that has arrived completely costs
/// one `recv`.
#[derive(Debug)]
pub struct StreamLink<S> {
    stream: S,
    /// Descriptor of `stream`.
    descriptor: RawFd,
    peer: String,
    settings: LinkSettings,
    /// Bytes of the current message already in the caller's buffer.
    received: usize,
}

impl<S: AsFd> StreamLink<S> {
    /// A link over `stream`, which must be connected and non-blocking.
    pub(super) fn over(stream: S, peer: String, settings: LinkSettings) -> Self {
        let descriptor = stream.as_fd().as_raw_fd();
        Self { stream, descriptor, peer, settings, received: 0 }
    }

    /// This link with another name for its peer in errors.
    #[must_use]
    pub fn named(self, peer: String) -> Self {
        Self { peer, ..self }
    }

    /// Returns the socket.
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

impl<S: AsFd> StreamLink<S> {
    /// Sends the rest of a message of which the socket accepted `first` bytes.
    #[cold]
    fn send_rest(&mut self, message: &[u8], first: nix::Result<usize>) -> Result<(), LinkError> {
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
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
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
                Err(error) => return Err(self.failed("send", error.into())),
            }
            if rest.is_empty() {
                return Ok(());
            }
            taken = socket::send(self.descriptor, rest);
        }
    }

    /// One `recv` into the rest of `buffer`; `None` if the message is incomplete.
    #[inline]
    fn read_once(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let rest = buffer.get_mut(self.received..).unwrap_or_default();
        if rest.is_empty() {
            self.received = 0;
            return Ok(Some(buffer.len()));
        }
        match socket::receive(self.descriptor, rest) {
            Ok(0) => Err(self.closed()),
            Ok(bytes) => {
                self.received += bytes;
                if self.received < buffer.len() {
                    return Ok(None);
                }
                self.received = 0;
                Ok(Some(buffer.len()))
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(error) => Err(self.failed("recv", error.into())),
        }
    }

    fn wait_for(&self, event: PollFlags) -> Result<(), LinkError> {
        wait_bounded(self.stream.as_fd(), event).map_err(|error| self.failed("poll", error))
    }
}

impl<S: AsFd> Link for StreamLink<S> {
    type Error = LinkError;

    fn properties(&self) -> LinkProperties {
        LinkProperties::reliable(LONGEST_MESSAGE)
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        match socket::send(self.descriptor, message) {
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

impl<S: StreamSocket> HostLink for StreamLink<S> {
    fn transport(&self) -> Transport {
        S::TRANSPORT
    }

    fn peer(&self) -> &str {
        &self.peer
    }

    fn fingerprint(&self) -> LinkFingerprint {
        self.stream.describe(LinkFingerprint::basic(self))
    }

    /// False if the socket did not accept all of the frame.
    fn send_at_once(&mut self, frame: &[u8]) -> bool {
        socket::send(self.descriptor, frame).is_ok_and(|bytes| bytes == frame.len())
    }

    /// Looks at the data that the peer has sent, which stay in the socket: one hello, and a bye if
    /// it gives up.
    fn look_while_queued(&mut self) -> Queued {
        let mut bytes = [0; 2 * FRAME_LEN + 1];
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        let length = match recv(self.descriptor, &mut bytes, flags) {
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
}

impl<S: AsFd> AsFd for StreamLink<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Limit of one blocking wait, ms.
const LOOK: u8 = 10;

/// Sleeps until `event`, an error or a hang-up, for at most [`LOOK`].
pub(crate) fn wait_bounded(socket: BorrowedFd<'_>, event: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(socket, event)], PollTimeout::from(LOOK)) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
