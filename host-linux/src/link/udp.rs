//! UDP: one datagram a message, no promise that it arrives.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use loggap_core::measure::{Link, LinkProperties};
use loggap_core::units::Bytes;
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{MsgFlags, getsockopt, recv, send, setsockopt, sockopt};

use super::refused::{Refused, Refusing};
use super::stream::wait_bounded;
use super::{LinkError, LinkSettings, Waiting};

/// The longest payload of a UDP datagram over IPv4.
pub const LONGEST_DATAGRAM: Bytes = Bytes(65_507);

/// The receive buffer asked for: trains of long datagrams have to wait
/// somewhere while the receiver catches up.
pub const WANTED_RECEIVE_BUFFER: usize = 8 << 20;

/// Messages over a connected UDP socket.
#[derive(Debug)]
pub struct UdpLink {
    socket: UdpSocket,
    peer: String,
    settings: LinkSettings,
    /// The datagram by which a listener learned of this peer, not yet given
    /// to the caller.
    first: Option<Vec<u8>>,
}

impl UdpLink {
    /// A socket that talks to `address` only. Nothing is sent: whether
    /// somebody listens there shows with the first answer.
    ///
    /// # Errors
    ///
    /// [`LinkError::Connect`] where there is no route.
    pub fn connect(address: SocketAddr, settings: LinkSettings) -> Result<Self, LinkError> {
        let any = match address {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let connected = UdpSocket::bind(any).and_then(|socket| {
            socket.connect(address)?;
            Ok(socket)
        });
        let socket =
            connected.map_err(|source| LinkError::Connect { peer: address.to_string(), source })?;
        Self::from_socket(socket, None, settings)
    }

    /// Takes over a connected socket. `first` is a datagram of the peer that
    /// has been read already.
    ///
    /// # Errors
    ///
    /// [`LinkError::System`] when it is not connected or cannot be made
    /// non-blocking.
    pub fn from_socket(
        socket: UdpSocket,
        first: Option<Vec<u8>>,
        settings: LinkSettings,
    ) -> Result<Self, LinkError> {
        let address = socket
            .peer_addr()
            .map_err(|error| LinkError::from_io("UDP peer", "getpeername", error))?;
        let peer = address.to_string();
        socket
            .set_nonblocking(true)
            .map_err(|error| LinkError::from_io(&peer, "setting O_NONBLOCK", error))?;
        enlarge_receive_buffer(&socket);
        Ok(Self { socket, peer, settings, first })
    }

    /// The peer's address.
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
    #[must_use]
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Throws away what has arrived, and says how many datagrams that was.
    ///
    /// # Errors
    ///
    /// [`LinkError::Closed`] when the peer's host refuses them.
    pub fn drain(&mut self) -> Result<usize, LinkError> {
        // A peer that sends faster than this reads must not hold us here.
        const MOST: usize = 1 << 16;
        let mut drained = usize::from(self.first.take().is_some());
        while drained < MOST {
            match recv(self.socket.as_raw_fd(), &mut [0], MsgFlags::empty()) {
                Ok(_) => drained += 1,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break,
                Err(error) => return Err(self.failed("recv", error)),
            }
        }
        Ok(drained)
    }

    #[inline]
    fn look(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        if self.first.is_some() {
            return self.give_first(buffer).map(Some);
        }
        // MSG_TRUNC: the length of the datagram, not of what fitted.
        match recv(self.socket.as_raw_fd(), buffer, MsgFlags::MSG_TRUNC) {
            Ok(length) if length <= buffer.len() => Ok(Some(length)),
            Ok(length) => Err(self.no_room(length, buffer.len())),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(error) => Err(self.failed("recv", error)),
        }
    }

    #[cold]
    fn give_first(&mut self, buffer: &mut [u8]) -> Result<usize, LinkError> {
        let first = self.first.take().unwrap_or_default();
        let Some(room) = buffer.get_mut(..first.len()) else {
            return Err(self.no_room(first.len(), buffer.len()));
        };
        room.copy_from_slice(&first);
        Ok(first.len())
    }

    #[cold]
    fn no_room(&self, length: usize, room: usize) -> LinkError {
        LinkError::NoRoom { peer: self.peer.clone(), length, room }
    }

    #[cold]
    fn failed(&self, action: &'static str, error: Errno) -> LinkError {
        LinkError::from_io(&self.peer, action, error.into())
    }
}

impl Refusing for UdpLink {
    #[inline]
    fn try_send(&mut self, message: &[u8]) -> Result<(), Errno> {
        send(self.socket.as_raw_fd(), message, MsgFlags::empty()).map(|_length| ())
    }

    fn refused(&self, message: &[u8]) -> Refused<'_> {
        Refused {
            socket: self.socket.as_fd(),
            peer: &self.peer,
            settings: &self.settings,
            length: message.len(),
            longest: LONGEST_DATAGRAM.0,
        }
    }
}

impl Link for UdpLink {
    type Error = LinkError;

    fn properties(&self) -> LinkProperties {
        LinkProperties { max_message: LONGEST_DATAGRAM, reliable: false }
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        self.send_in_time(message)
    }

    #[inline]
    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        match self.look(buffer)? {
            None if self.settings.waiting == Waiting::Block => {
                wait_bounded(self.socket.as_fd(), PollFlags::POLLIN)
                    .map_err(|error| LinkError::from_io(&self.peer, "poll", error))?;
                self.look(buffer)
            }
            looked => Ok(looked),
        }
    }

    fn discard(&mut self) -> Result<(), LinkError> {
        self.drain().map(|_datagrams| ())
    }
}

/// Asks for [`WANTED_RECEIVE_BUFFER`], past `net.core.rmem_max` where this process
/// may. Whether it was granted is for [`receive_buffer`] to say: a smaller
/// one costs datagrams, which are counted.
pub(crate) fn enlarge_receive_buffer(socket: &UdpSocket) {
    if setsockopt(socket, sockopt::RcvBufForce, &WANTED_RECEIVE_BUFFER).is_err() {
        let _granted_in_part = setsockopt(socket, sockopt::RcvBuf, &WANTED_RECEIVE_BUFFER);
    }
}

/// Bytes of receive buffer that `socket` has; the kernel counts its own
/// bookkeeping in and grants double what was asked.
///
/// # Errors
///
/// What the system said.
pub fn receive_buffer(socket: &UdpSocket) -> io::Result<Bytes> {
    let bytes = getsockopt(socket, sockopt::RcvBuf)?;
    u64::try_from(bytes).map(Bytes).map_err(|_| ErrorKind::InvalidData.into())
}
