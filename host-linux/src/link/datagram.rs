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
    refusals: Option<Refusals>,
}

/// Repeated refusals by the peer's host: its port is closed.
#[derive(Clone, Copy, Debug)]
struct Refusals {
    /// From then on the peer is taken for gone.
    final_after: Deadline,
    /// From then on another refusal is the first.
    forgotten_after: Deadline,
}

impl Refusals {
    /// How long refusals may be those of a few lost messages.
    const PASSING: Duration = Duration::from_secs(1);
    /// Longer than two attempts to reach a silent peer are apart.
    const MEMORY: Duration = Duration::from_secs(6);
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
pub(super) const FIRST_ANSWER: Duration = Duration::from_secs(4);

impl<S: DatagramSocket> DatagramLink<S> {
    /// A link to a peer that has not been heard of.
    pub(super) const fn unanswered(socket: S, peer: String, settings: LinkSettings) -> Self {
        Self { socket, peer, settings, start: Start::Unanswered(None), refusals: None }
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
            refusals: None,
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
                Err(error) => self.late_error("recv", error)?,
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
            Err(error) => self.late_error("recv", error).map(|()| None),
        }
    }

    /// Takes an error that a router or the peer's host has reported of an earlier message
    /// as the loss of that message.
    ///
    /// # Errors
    ///
    /// Other errors, and refusals that go on for long.
    #[cold]
    fn late_error(&mut self, action: &'static str, error: Errno) -> Result<(), LinkError> {
        match error {
            _ if matches!(self.start, Start::Unanswered(_)) => {}
            Errno::EMSGSIZE | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EHOSTDOWN => {
                return Ok(());
            }
            Errno::ECONNREFUSED => {
                let before = self.refusals.filter(|before| !before.forgotten_after.expired());
                let final_after = before.map_or_else(
                    || Deadline::after(Refusals::PASSING),
                    |before| before.final_after,
                );
                let forgotten_after = Deadline::after(Refusals::MEMORY);
                self.refusals = Some(Refusals { final_after, forgotten_after });
                if !final_after.expired() {
                    return Ok(());
                }
            }
            _ => {}
        }
        Err(self.failed(action, error))
    }

    #[cold]
    fn look_first(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let hello = match mem::replace(&mut self.start, Start::Over) {
            Start::Hello(hello, _) => hello,
            Start::Over => return Ok(None),
            Start::Unanswered(deadline) => {
                let deadline = deadline.unwrap_or_else(|| Deadline::after(FIRST_ANSWER));
                let found = self.socket.try_receive(buffer);
                if let Ok(Received::Message(length)) = found {
                    return Ok(Some(length));
                }
                self.start = Start::Unanswered(Some(deadline));
                return match found {
                    Err(error) => Err(self.failed("recv", error)),
                    Ok(_) if deadline.expired() => Err(self.unanswered_error()),
                    Ok(_) => Ok(None),
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
    /// as that is worth another try: an error of an earlier message is reported
    /// once, one of this message again, which is lost then.
    #[cold]
    fn send_again(&mut self, message: &[u8], first: Errno) -> Result<(), LinkError> {
        let deadline = Deadline::after(self.settings.limit);
        let (mut reason, mut is_late) = (first, true);
        loop {
            match reason {
                Errno::EINTR => {}
                Errno::EAGAIN | Errno::ENOBUFS if deadline.expired() => {
                    let (peer, limit) = (self.peer.clone(), self.settings.limit);
                    return Err(LinkError::Stuck { peer, limit });
                }
                Errno::EAGAIN | Errno::ENOBUFS => self.wait_if_blocking(PollFlags::POLLOUT)?,
                Errno::EMSGSIZE if message.len() as u64 > self.socket.longest().0 => {
                    let (length, longest) = (message.len(), self.socket.longest().0);
                    return Err(LinkError::TooLong { length, longest });
                }
                error => {
                    self.late_error("send", error)?;
                    if !mem::take(&mut is_late) {
                        return Ok(());
                    }
                }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::os::fd::BorrowedFd;
    use std::os::unix::net::UnixDatagram;
    use std::thread;

    /// Errors of successive calls; calls succeed after the last.
    struct Scripted {
        socket: UnixDatagram,
        receives: VecDeque<Errno>,
        sends: VecDeque<Errno>,
        sent: usize,
    }

    impl AsFd for Scripted {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.socket.as_fd()
        }
    }

    impl DatagramSocket for Scripted {
        const TRANSPORT: Transport = Transport::Udp;

        fn longest(&self) -> Bytes {
            Bytes(2_000)
        }

        fn try_send(&mut self, _: &[u8]) -> Result<(), Errno> {
            self.sent += usize::from(self.sends.is_empty());
            self.sends.pop_front().map_or(Ok(()), Err)
        }

        fn try_receive(&mut self, _: &mut [u8]) -> Result<Received, Errno> {
            self.receives.pop_front().map_or(Ok(Received::Nothing), Err)
        }
    }

    /// A link that has been heard from.
    fn link(receives: &[Errno], sends: &[Errno]) -> DatagramLink<Scripted> {
        let (receives, sends) =
            (receives.iter().copied().collect(), sends.iter().copied().collect());
        let socket = UnixDatagram::unbound().unwrap();
        let socket = Scripted { socket, receives, sends, sent: 0 };
        DatagramLink::over(socket, "peer".to_owned(), None, LinkSettings::default())
    }

    #[test]
    fn an_error_of_an_earlier_message_costs_that_message_and_not_the_link() {
        let late = [Errno::EMSGSIZE, Errno::EHOSTUNREACH, Errno::ENETUNREACH, Errno::ECONNREFUSED];
        let mut receiving = link(&late, &[]);
        for _ in late {
            assert!(matches!(receiving.poll_receive(&mut [0]), Ok(None)));
        }
        for error in late {
            let mut sending = link(&[], &[error]);
            sending.send(&[0; 1_500]).unwrap();
            assert_eq!(sending.socket.sent, 1, "{error}: sent after all");
            let mut sending = link(&[], &[error; 2]);
            sending.send(&[0; 1_500]).unwrap();
            assert_eq!(sending.socket.sent, 0, "{error}: lost");
        }
        assert!(link(&[], &[Errno::EPERM]).send(&[0]).is_err());
        let too_long = link(&[], &[Errno::EMSGSIZE]).send(&[0; 2_001]);
        assert!(matches!(too_long, Err(LinkError::TooLong { length: 2_001, longest: 2_000 })));
    }

    #[test]
    fn a_peer_that_refuses_for_long_is_gone() {
        let mut refused = link(&[Errno::ECONNREFUSED; 3], &[]);
        for _ in 0..2 {
            assert!(matches!(refused.poll_receive(&mut [0]), Ok(None)));
        }
        thread::sleep(Refusals::PASSING);
        assert!(matches!(refused.poll_receive(&mut [0]), Err(LinkError::Closed { .. })));
    }
}
