//! A link over any socket that carries single messages and may lose them.

use std::mem;
use std::os::fd::AsFd;
use std::time::Duration;

use loggap_core::measure::{Link, LinkProperties};
use loggap_core::units::Bytes;
use loggap_core::wire::{FRAME_LEN, Message};
use nix::errno::Errno;
use nix::poll::PollFlags;

use super::stream::wait_bounded;
use super::{LinkError, LinkSettings, Queued, Transport, Waiting};
use crate::machine::clock::Deadline;

/// A non-blocking socket for single messages between this end and one peer.
pub trait DatagramSocket: AsFd {
    /// What it is called on the command line.
    const TRANSPORT: Transport;

    /// Longest message.
    fn longest(&self) -> Bytes;

    /// Sends `message` unless it is refused.
    ///
    /// # Errors
    ///
    /// Why it is: `EAGAIN` and `ENOBUFS` for a full queue, `EMSGSIZE` for a
    /// message that is too long.
    fn try_send(&mut self, message: &[u8]) -> Result<(), Errno>;

    /// Takes one message.
    ///
    /// # Errors
    ///
    /// What the system said.
    fn try_receive(&mut self, buffer: &mut [u8]) -> Result<Received, Errno>;
}

/// What one call of a receiving function has found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Received {
    /// Nothing is there.
    Nothing,
    /// A message of so many bytes is at the front of the buffer.
    Message(usize),
    /// A message of so many bytes, for which the buffer is too short.
    TooLong(usize),
}

/// Messages over a socket that carries single messages.
#[derive(Debug)]
pub struct DatagramLink<S> {
    socket: S,
    peer: String,
    settings: LinkSettings,
    start: Start,
}

/// What comes before the first message that is read from the socket.
#[derive(Debug)]
enum Start {
    /// It has been read.
    Over,
    /// The message by which a listener learned of this peer, and how many
    /// more it has sent while it waited to be served.
    Hello(Vec<u8>, usize),
    /// Nobody has answered yet. When to give up, as soon as somebody waits.
    Unanswered(Option<Deadline>),
}

/// How long the first answer may take. Less than a session allows for its
/// handshake, which does not know whom it talks to and over what.
const FIRST_ANSWER: Duration = Duration::from_secs(4);

impl<S: DatagramSocket> DatagramLink<S> {
    /// A link to a peer that has not been heard of.
    pub(super) const fn unanswered(socket: S, peer: String, settings: LinkSettings) -> Self {
        Self { socket, peer, settings, start: Start::Unanswered(None) }
    }

    /// A link to a peer of which `hello` has been read already, if anything.
    pub(super) fn over(
        socket: S,
        peer: String,
        hello: Option<Vec<u8>>,
        settings: LinkSettings,
    ) -> Self {
        Self {
            socket,
            peer,
            settings,
            start: hello.map_or(Start::Over, |hello| Start::Hello(hello, 0)),
        }
    }

    /// The peer's address, as errors call it.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// The same link with another name for its peer in errors.
    #[must_use]
    pub fn named(self, peer: String) -> Self {
        Self { peer, ..self }
    }

    /// The socket.
    pub const fn socket(&self) -> &S {
        &self.socket
    }

    /// Throws away what has arrived, and says how many messages that was.
    ///
    /// # Errors
    ///
    /// [`LinkError::Closed`] when the peer's host refuses them.
    pub fn drain(&mut self) -> Result<usize, LinkError> {
        // A peer that sends faster than this reads must not hold us here.
        const MOST: usize = 1 << 16;
        let hello = matches!(self.start, Start::Hello(..));
        if hello {
            self.start = Start::Over;
        }
        let mut drained = usize::from(hello);
        while drained < MOST {
            match self.socket.try_receive(&mut [0]) {
                Ok(Received::Nothing) => break,
                Ok(_) => drained += 1,
                Err(error) => return Err(self.failed("recv", error)),
            }
        }
        Ok(drained)
    }

    /// Sends `message` without waiting. Whether the peer may still be there:
    /// a message that the queue has no room for is lost.
    pub(super) fn send_at_once(&mut self, message: &[u8]) -> bool {
        matches!(
            self.socket.try_send(message),
            Ok(()) | Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS)
        )
    }

    /// Reads what a peer sends that waits to be served: hellos that were
    /// repeated.
    pub(super) fn look_while_queued(&mut self) -> Queued {
        const FLOOD: usize = 64;
        let mut frame = [0; FRAME_LEN];
        let Start::Hello(_, more) = &mut self.start else { return Queued::Ready };
        while *more < FLOOD {
            *more += 1;
            match self.socket.try_receive(&mut frame) {
                Ok(Received::Nothing) => {
                    *more -= 1;
                    return Queued::Ready;
                }
                Ok(Received::Message(FRAME_LEN)) if Message::parse(&frame) == Ok(Message::Bye) => {
                    return Queued::Gone;
                }
                Ok(_) => {}
                Err(_) => return Queued::Gone,
            }
        }
        Queued::Flooding
    }

    #[inline]
    fn look(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        if !matches!(self.start, Start::Over) {
            return self.look_first(buffer);
        }
        match self.socket.try_receive(buffer) {
            Ok(Received::Message(length)) => Ok(Some(length)),
            // Longer than any message of the session: lost, as on the way.
            Ok(Received::Nothing | Received::TooLong(_)) => Ok(None),
            Err(error) => Err(self.failed("recv", error)),
        }
    }

    #[cold]
    fn look_first(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let hello = match mem::replace(&mut self.start, Start::Over) {
            Start::Hello(hello, _) => hello,
            Start::Over => return Ok(None),
            Start::Unanswered(deadline) => {
                let deadline = deadline.unwrap_or_else(|| Deadline::after(FIRST_ANSWER));
                let found = self.look(buffer);
                return match found {
                    Ok(None) if !deadline.expired() => {
                        self.start = Start::Unanswered(Some(deadline));
                        Ok(None)
                    }
                    Ok(None) | Err(LinkError::Closed { .. }) => Err(self.unanswered_error()),
                    other => other,
                };
            }
        };
        let Some(room) = buffer.get_mut(..hello.len()) else {
            return Err(self.no_room(hello.len(), buffer.len()));
        };
        room.copy_from_slice(&hello);
        Ok(Some(hello.len()))
    }

    /// Sends a message again that was refused for the reason `first`, as long
    /// as that is worth another try.
    #[cold]
    fn send_again(&mut self, message: &[u8], first: Errno) -> Result<(), LinkError> {
        let deadline = Deadline::after(self.settings.limit);
        let mut reason = first;
        loop {
            match reason {
                Errno::EINTR => {}
                Errno::EAGAIN | Errno::ENOBUFS if deadline.expired() => {
                    let (peer, limit) = (self.peer.clone(), self.settings.limit);
                    return Err(LinkError::Stuck { peer, limit });
                }
                Errno::EAGAIN | Errno::ENOBUFS => self.wait_if_blocking(PollFlags::POLLOUT)?,
                Errno::EMSGSIZE => {
                    let (length, longest) = (message.len(), self.socket.longest().0);
                    return Err(LinkError::TooLong { length, longest });
                }
                error => return Err(self.failed("send", error)),
            }
            match self.socket.try_send(message) {
                Ok(()) => return Ok(()),
                Err(error) => reason = error,
            }
        }
    }

    fn wait_if_blocking(&self, event: PollFlags) -> Result<(), LinkError> {
        if self.settings.waiting == Waiting::Poll {
            return Ok(());
        }
        wait_bounded(self.socket.as_fd(), event)
            .map_err(|error| LinkError::from_io(&self.peer, "poll", error))
    }

    #[cold]
    fn no_room(&self, length: usize, room: usize) -> LinkError {
        LinkError::NoRoom { peer: self.peer.clone(), length, room }
    }

    #[cold]
    fn failed(&self, action: &'static str, error: Errno) -> LinkError {
        match LinkError::from_io(&self.peer, action, error.into()) {
            LinkError::Closed { .. } if matches!(self.start, Start::Unanswered(_)) => {
                self.unanswered_error()
            }
            other => other,
        }
    }

    fn unanswered_error(&self) -> LinkError {
        LinkError::Unanswered { transport: S::TRANSPORT, peer: self.peer.clone() }
    }
}

impl<S: DatagramSocket> Link for DatagramLink<S> {
    type Error = LinkError;

    fn properties(&self) -> LinkProperties {
        LinkProperties { max_message: self.socket.longest(), reliable: false }
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        self.socket.try_send(message).or_else(|error| self.send_again(message, error))
    }

    #[inline]
    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        match self.look(buffer)? {
            None if self.settings.waiting == Waiting::Block => {
                self.wait_if_blocking(PollFlags::POLLIN)?;
                self.look(buffer)
            }
            looked => Ok(looked),
        }
    }

    fn discard(&mut self) -> Result<(), LinkError> {
        self.drain().map(|_messages| ())
    }
}
