//! Link over a socket that carries single messages and may lose them.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use std::{fmt, mem};

use loggap_core::measure::{Link, LinkProperties};
use loggap_core::units::Bytes;
use loggap_core::wire::{FRAME_LEN, Message};
use nix::errno::Errno;
use nix::poll::PollFlags;

use super::stream::wait_bounded;
use super::{HostLink, LinkError, LinkFingerprint, LinkSettings, Queued, Transport, Waiting};
use crate::machine::clock::Deadline;

/// A non-blocking socket for single messages to and from one peer.
pub trait DatagramSocket: AsFd + fmt::Debug + Send + 'static {
    /// Its transport.
    const TRANSPORT: Transport;

    /// Adds the socket's properties to `basic`.
    fn describe(&self, basic: LinkFingerprint) -> LinkFingerprint;

    /// Longest message, bytes.
    fn longest(&self) -> Bytes;

    /// Sends `message` without waiting.
    ///
    /// # Errors
    ///
    /// `EAGAIN` and `ENOBUFS` for a full queue, `EMSGSIZE` for a message that is too long, and
    /// other errors of the system.
    fn try_send(&mut self, message: &[u8]) -> Result<(), Errno>;

    /// Receives one message without waiting.
    ///
    /// # Errors
    ///
    /// The error of the system.
    fn try_receive(&mut self, buffer: &mut [u8]) -> Result<Received, Errno>;
}

/// Result of one call of a receiving function.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Received {
    /// No message has arrived.
    Nothing,
    /// A message of this length, in bytes, is at the front of the buffer.
    Message(usize),
    /// A message of this length, in bytes, was too long for the buffer.
    TooLong(usize),
}

/// Link over a [`DatagramSocket`].
#[derive(Debug)]
pub struct DatagramLink<S> {
    socket: S,
    peer: String,
    settings: LinkSettings,
    start: Start,
    refusals: Option<Refusals>,
}

/// Repeated ICMP refusals by the peer's host, which mean that its port is closed.
#[derive(Clone, Copy, Debug)]
struct Refusals {
    /// From then on the peer counts as gone.
    final_after: Deadline,
    /// From then on these refusals are forgotten.
    forgotten_after: Deadline,
}

impl Refusals {
    /// Time for which refusals are attributed to a few lost messages.
    const PASSING: Duration = Duration::from_secs(1);
    /// Time without refusals after which earlier ones are forgotten; longer than the interval
    /// between two attempts to reach a silent peer.
    const MEMORY: Duration = Duration::from_secs(6);
}

/// State of a link before its first message is read from the socket.
#[derive(Debug)]
enum Start {
    /// The first message has been read.
    Over,
    /// The hello by which the listener learned of this peer, and the number of messages that it has
    /// sent since, while it waited to be served.
    Hello(Vec<u8>, usize),
    /// The peer has never answered. The deadline is set by the first receive.
    Unanswered(Option<Deadline>),
}

/// Time limit for the peer's first answer. Shorter than the session's limit for its handshake, so
/// that this link's error, which names peer and transport, comes first.
pub(super) const FIRST_ANSWER: Duration = Duration::from_secs(4);

impl<S: DatagramSocket> DatagramLink<S> {
    /// A link to a peer that has not answered yet.
    pub(super) const fn unanswered(socket: S, peer: String, settings: LinkSettings) -> Self {
        Self { socket, peer, settings, start: Start::Unanswered(None), refusals: None }
    }

    /// A link to a peer whose `hello`, if any, has been read already.
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

    /// This link with another name for its peer in errors.
    #[must_use]
    pub fn named(self, peer: String) -> Self {
        Self { peer, ..self }
    }

    /// The socket.
    pub const fn socket(&self) -> &S {
        &self.socket
    }

    /// Discards all messages that have arrived, and returns their number.
    ///
    /// # Errors
    ///
    /// [`LinkError::Closed`] if the peer's host refuses messages.
    pub fn drain(&mut self) -> Result<usize, LinkError> {
        // Limit on the messages, because a peer could send faster than they are discarded.
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

    #[inline]
    fn look(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        if !matches!(self.start, Start::Over) {
            return self.look_first(buffer);
        }
        match self.socket.try_receive(buffer) {
            Ok(Received::Message(length)) => Ok(Some(length)),
            // Longer than any message of the session: treated as lost.
            Ok(Received::Nothing | Received::TooLong(_)) => Ok(None),
            Err(error) => self.late_error("recv", error).map(|()| None),
        }
    }

    /// Handles an error that a router or the peer's host has reported about an earlier message:
    /// counts that message as lost.
    ///
    /// # Errors
    ///
    /// Other errors, and refusals that last too long.
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

    /// Retries a message that was refused with the error `first`, while that makes sense: an error
    /// caused by an earlier message is reported only once. If it is reported again, it is due to
    /// this message, which is lost then.
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
        LinkProperties::datagrams(self.socket.longest())
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

impl<S: DatagramSocket> HostLink for DatagramLink<S> {
    fn transport(&self) -> Transport {
        S::TRANSPORT
    }

    fn peer(&self) -> &str {
        &self.peer
    }

    fn fingerprint(&self) -> LinkFingerprint {
        self.socket.describe(LinkFingerprint::basic(self))
    }

    /// The frame is lost if the queue is full. False if the peer is gone.
    fn send_at_once(&mut self, frame: &[u8]) -> bool {
        matches!(
            self.socket.try_send(frame),
            Ok(()) | Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS)
        )
    }

    /// Reads the hellos that the peer has repeated.
    fn look_while_queued(&mut self) -> Queued {
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
}

impl<S: AsFd> AsFd for DatagramLink<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::os::fd::BorrowedFd;
    use std::os::unix::net::UnixDatagram;
    use std::thread;

    /// Scripted errors of successive calls; calls succeed after the last.
    #[derive(Debug)]
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

        fn describe(&self, basic: LinkFingerprint) -> LinkFingerprint {
            basic
        }

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

    /// A link whose peer has answered already.
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
