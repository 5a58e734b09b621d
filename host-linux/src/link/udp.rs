//! UDP: one datagram a message, no promise that it arrives.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use loggap_core::units::Bytes;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, getsockopt, recv, send, setsockopt, sockopt};

use super::datagram::{DatagramLink, DatagramSocket, Received};
use super::{LinkError, LinkSettings, Transport};

/// The longest payload of a UDP datagram over IPv4.
pub const LONGEST_DATAGRAM: Bytes = Bytes(65_507);

/// The receive buffer asked for: trains of long datagrams have to wait
/// somewhere while the receiver catches up.
pub const WANTED_RECEIVE_BUFFER: usize = 8 << 20;

/// Messages over a connected UDP socket.
pub type UdpLink = DatagramLink<UdpSocket>;

impl DatagramSocket for UdpSocket {
    const TRANSPORT: Transport = Transport::Udp;

    fn longest(&self) -> Bytes {
        LONGEST_DATAGRAM
    }

    #[inline]
    fn try_send(&mut self, message: &[u8]) -> Result<(), Errno> {
        send(self.as_raw_fd(), message, MsgFlags::empty()).map(|_length| ())
    }

    #[inline]
    fn try_receive(&mut self, buffer: &mut [u8]) -> Result<Received, Errno> {
        // MSG_TRUNC: the length of the datagram, not of what fitted.
        match recv(self.as_raw_fd(), buffer, MsgFlags::MSG_TRUNC) {
            Ok(length) if length <= buffer.len() => Ok(Received::Message(length)),
            Ok(length) => Ok(Received::TooLong(length)),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(Received::Nothing),
            Err(error) => Err(error),
        }
    }
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
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let peer = address.to_string();
        match connected {
            Ok(socket) => {
                enlarge_receive_buffer(&socket);
                Ok(Self::unanswered(socket, peer, settings))
            }
            Err(source) => Err(LinkError::Connect { transport: Transport::Udp, peer, source }),
        }
    }

    /// Takes over a connected socket. `hello` is a datagram of the peer that
    /// has been read already.
    ///
    /// # Errors
    ///
    /// [`LinkError::System`] when it is not connected or cannot be made
    /// non-blocking.
    pub fn from_socket(
        socket: UdpSocket,
        hello: Option<Vec<u8>>,
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
        Ok(Self::over(socket, peer, hello, settings))
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
