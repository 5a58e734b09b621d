//! UDP link: one datagram a message, without guarantee of delivery.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use loggap_core::units::Bytes;
use loggap_core::wire::{Bounds, FRAME_LEN, Hello, Message, Versions};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, getsockopt, recv, send, setsockopt, sockopt};

use super::datagram::{DatagramLink, DatagramSocket, FIRST_ANSWER, Received};
use super::{LinkError, LinkFingerprint, LinkSettings, Transport, shown};
use crate::machine::clock::Deadline;
use crate::sys::path::Ipv6Mtu;

/// Longest payload of a UDP datagram over IPv4.
pub const LONGEST_DATAGRAM: Bytes = Bytes(65_507);

/// Size of the receive buffer to request: trains of long datagrams are queued there while the
/// receiver catches up.
pub const WANTED_RECEIVE_BUFFER: usize = 8 << 20;

/// Link over a connected UDP socket.
pub type UdpLink = DatagramLink<UdpSocket>;

impl DatagramSocket for UdpSocket {
    const TRANSPORT: Transport = Transport::Udp;

    fn describe(&self, basic: LinkFingerprint) -> LinkFingerprint {
        LinkFingerprint {
            receive_buffer_bytes: receive_buffer(self).ok().map(|bytes| bytes.0),
            ..basic.with_interface(self.local_addr().ok(), self.peer_addr().ok())
        }
    }

    fn longest(&self) -> Bytes {
        LONGEST_DATAGRAM
    }

    #[inline]
    fn try_send(&mut self, message: &[u8]) -> Result<(), Errno> {
        send(self.as_raw_fd(), message, MsgFlags::empty()).map(|_length| ())
    }

    #[inline]
    fn try_receive(&mut self, buffer: &mut [u8]) -> Result<Received, Errno> {
        // With MSG_TRUNC the call returns the length of the datagram even if it does not fit.
        match recv(self.as_raw_fd(), buffer, MsgFlags::MSG_TRUNC) {
            Ok(length) if length <= buffer.len() => Ok(Received::Message(length)),
            Ok(length) => Ok(Received::TooLong(length)),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(Received::Nothing),
            Err(error) => Err(error),
        }
    }
}

impl UdpLink {
    /// A link to `address`. Nothing is sent: only the first answer shows that the peer exists.
    ///
    /// # Errors
    ///
    /// [`LinkError::Connect`] if there is no route.
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
        let peer = shown(address);
        match connected {
            Ok(socket) => {
                enlarge_receive_buffer(&socket);
                Ok(Self::unanswered(socket, peer, settings))
            }
            Err(source) => Err(LinkError::Connect { transport: Transport::Udp, peer, source }),
        }
    }

    /// A link to whichever of `addresses` answers a hello first; if there is only one address, no
    /// hello is sent.
    ///
    /// # Errors
    ///
    /// [`LinkError::Connect`] if there is no route, [`LinkError::Unanswered`] if none answers.
    pub(super) fn connect_first(
        addresses: &[SocketAddr],
        settings: LinkSettings,
    ) -> Result<Self, LinkError> {
        let mut last = None;
        let mut links = Vec::new();
        for address in addresses {
            match Self::connect(*address, settings) {
                Ok(link) => links.push(link),
                Err(error) => last = Some(error),
            }
        }
        let first = if links.len() > 1 { first_answered(&mut links) } else { links.pop() };
        first.ok_or_else(|| {
            let peers: Vec<_> = addresses.iter().copied().map(shown).collect();
            let (transport, peer) = (Transport::Udp, peers.join(" and "));
            last.filter(|_| links.is_empty()).unwrap_or(LinkError::Unanswered { transport, peer })
        })
    }

    /// Link over a connected socket. `hello` is a datagram of the peer that has been read already.
    ///
    /// # Errors
    ///
    /// [`LinkError::System`] if the socket is not connected or cannot be made non-blocking.
    pub fn from_socket(
        socket: UdpSocket,
        hello: Option<Vec<u8>>,
        settings: LinkSettings,
    ) -> Result<Self, LinkError> {
        let address = socket
            .peer_addr()
            .map_err(|error| LinkError::from_io("UDP peer", "getpeername", error))?;
        let peer = shown(address);
        socket
            .set_nonblocking(true)
            .map_err(|error| LinkError::from_io(&peer, "setting O_NONBLOCK", error))?;
        enlarge_receive_buffer(&socket);
        Ok(Self::over(socket, peer, hello, settings))
    }
}

/// Removes and returns the first of `links` whose peer answers a hello. The responder keeps no
/// state of it, so the session can say hello again over the socket.
fn first_answered(links: &mut Vec<UdpLink>) -> Option<UdpLink> {
    const BETWEEN_HELLOS: Duration = Duration::from_millis(500);
    let (versions, bounds) = (Versions::OURS, Bounds::default());
    let mut hello = [0; FRAME_LEN];
    Message::Hello(Hello { versions, capabilities: 0, bounds, nonce: 0 }).emit(&mut hello);
    let deadline = Deadline::after(FIRST_ANSWER);
    while !deadline.expired() {
        for link in &*links {
            let _lost = link.socket().send(&hello);
        }
        let again = Deadline::after(BETWEEN_HELLOS);
        while !again.expired() {
            let mut sockets: Vec<_> = links
                .iter()
                .map(|link| PollFd::new(link.socket().as_fd(), PollFlags::POLLIN))
                .collect();
            let timeout = PollTimeout::try_from(BETWEEN_HELLOS).unwrap_or(PollTimeout::ZERO);
            let _looked_at_below = poll(&mut sockets, timeout);
            let mut frame = [0; FRAME_LEN];
            // This also removes pending ICMP refusals from the sockets.
            let answered = |link: &UdpLink| {
                link.socket().recv(&mut frame).is_ok() && Message::parse(&frame).is_ok()
            };
            if let Some(index) = links.iter().position(answered) {
                return Some(links.swap_remove(index));
            }
        }
    }
    None
}

/// Path MTU to `peer` in bytes, headers included.
///
/// # Errors
///
/// There is no route, or the system does not report it.
pub(crate) fn path_mtu(peer: SocketAddr) -> io::Result<u64> {
    let link = UdpLink::connect(peer, LinkSettings::default()).map_err(io::Error::other)?;
    let bytes = match peer {
        SocketAddr::V4(_) => getsockopt(link.socket(), sockopt::IpMtu)?,
        SocketAddr::V6(_) => getsockopt(link.socket(), Ipv6Mtu)?,
    };
    u64::try_from(bytes).map_err(|_| ErrorKind::InvalidData.into())
}

/// Requests [`WANTED_RECEIVE_BUFFER`], beyond `net.core.rmem_max` if permitted. A smaller buffer is
/// no error (see [`receive_buffer`]): it loses datagrams, which are counted.
pub(crate) fn enlarge_receive_buffer(socket: &UdpSocket) {
    if setsockopt(socket, sockopt::RcvBufForce, &WANTED_RECEIVE_BUFFER).is_err() {
        let _granted_in_part = setsockopt(socket, sockopt::RcvBuf, &WANTED_RECEIVE_BUFFER);
    }
}

/// Size of the receive buffer of `socket`, bytes. The kernel includes its own bookkeeping and
/// grants double the requested size.
///
/// # Errors
///
/// The error of the system.
pub fn receive_buffer(socket: &UdpSocket) -> io::Result<Bytes> {
    let bytes = getsockopt(socket, sockopt::RcvBuf)?;
    u64::try_from(bytes).map(Bytes).map_err(|_| ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::HostLink;
    use std::thread;

    #[test]
    fn the_address_that_answers_is_taken_whichever_comes_first() {
        let bound = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = |socket: &UdpSocket| socket.local_addr().unwrap();
        let (silent, closed, responder) = (bound(), address(&bound()), bound());
        let addresses = [address(&silent), closed, address(&responder)];
        let settings = LinkSettings::default();
        let answering = thread::spawn(move || {
            let mut frame = [0; FRAME_LEN];
            let (length, peer) = responder.recv_from(&mut frame).unwrap();
            assert!(length == FRAME_LEN && matches!(Message::parse(&frame), Ok(Message::Hello(_))));
            Message::Challenge { nonce: 7 }.emit(&mut frame);
            responder.send_to(&frame, peer).unwrap();
            peer
        });
        let link = UdpLink::connect_first(&addresses, settings).unwrap();
        assert_eq!(link.peer(), addresses[2].to_string());
        assert_eq!(link.socket().local_addr().unwrap().port(), answering.join().unwrap().port());
        let error = UdpLink::connect_first(&addresses[..2], settings).unwrap_err().to_string();
        assert!(error.contains(&addresses[0].to_string()), "{error}");
        let one = UdpLink::connect_first(&addresses[..1], settings).unwrap();
        assert_eq!(one.peer(), addresses[0].to_string());
    }

    #[test]
    fn the_path_to_this_machine_takes_what_its_loopback_takes() {
        assert!(path_mtu(SocketAddr::from((Ipv4Addr::LOCALHOST, 9))).unwrap() >= 1_280);
        let six = SocketAddr::from((Ipv6Addr::LOCALHOST, 9));
        if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            assert!(path_mtu(six).unwrap() >= 1_280);
        }
    }
}
