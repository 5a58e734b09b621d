//! Listener for UDP: separates the clients of one port.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use loggap_core::wire::{Admission, FRAME_LEN, Message};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::{in_pktinfo, in6_pktinfo};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use socket2::{Domain, Socket, Type};

use super::{AllowedAddresses, Arrival, TurnedAway};
use crate::link::{AnyLink, LinkSettings, UdpLink, shown};
use crate::machine::clock::Deadline;
use crate::serve::hello::{HelloVerifier, frame};

/// Listener on a UDP port. Each verified peer gets a socket on the same port, connected to the
/// peer, so that the kernel separates the peers. It is bound to the local address that the peer
/// wrote to: a connected peer does not receive answers from another address of this machine.
#[derive(Debug)]
pub(super) struct UdpListener {
    socket: UdpSocket,
    address: SocketAddr,
    hellos: HelloVerifier,
    /// Peers accepted recently: what they sent before their own socket existed arrives here, and is
    /// no new peer.
    recent: Vec<(SocketAddr, Deadline)>,
}

/// A datagram on the listening socket.
struct Datagram {
    length: usize,
    peer: SocketAddr,
    /// Local address that it was sent to and interface that it arrived on, in the kernel's format.
    local: Option<Local>,
}

#[derive(Clone, Copy)]
enum Local {
    V4(in_pktinfo),
    V6(in6_pktinfo),
}

impl UdpListener {
    /// Time after acceptance during which a peer's stray datagrams are ignored.
    const RECENT: Duration = Duration::from_millis(500);

    pub(super) fn open(address: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        if address.is_ipv4() {
            setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
        } else {
            setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
        }
        // Set after `bind`, so that a second listener, which binds without this option, is refused;
        // the peers' sockets set it before.
        setsockopt(&socket, sockopt::ReuseAddr, &true)?;
        let address = socket.local_addr()?;
        Ok((Self { socket, address, hellos: HelloVerifier::new()?, recent: Vec::new() }, address))
    }

    /// Next peer with a verified hello; all other datagrams are dropped.
    pub(super) fn accept(
        &mut self,
        allowed: &AllowedAddresses,
        settings: LinkSettings,
    ) -> io::Result<Option<Arrival>> {
        self.recent.retain(|(_, until)| !until.expired());
        let mut buffer = [0; FRAME_LEN + 1];
        for _ in 0..super::MOST_AT_ONCE {
            let datagram = match self.receive(&mut buffer) {
                Ok(Some(datagram)) => datagram,
                // An ICMP error of an earlier peer, or a datagram without an address.
                Ok(None) | Err(Errno::ECONNREFUSED | Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => break,
                Err(error) => return Err(error.into()),
            };
            let peer = datagram.peer;
            let bytes = buffer.get(..datagram.length).unwrap_or_default();
            if self.recent.iter().any(|(recent, _)| *recent == peer) {
                continue;
            }
            if !allowed.contain(peer.ip()) {
                return Ok(Some(Arrival::TurnedAway(TurnedAway::not_allowed(peer))));
            }
            match self.hellos.judge(&peer, bytes) {
                None => {}
                Some(Admission::Accepted(_)) => {
                    match self.link(&datagram, bytes.to_vec(), settings) {
                        Err(error) if is_exhausted(&error) => return Err(error),
                        // An unreachable peer, such as one at port 0.
                        Err(_) => {}
                        Ok(link) => {
                            self.recent.push((peer, Deadline::after(Self::RECENT)));
                            return Ok(Some(Arrival::Client(AnyLink::Udp(link))));
                        }
                    }
                }
                Some(Admission::Challenged(nonce)) => {
                    // If the answer is lost, the peer repeats its hello.
                    let _lost = self.answer(&datagram, &frame(&Message::Challenge { nonce }));
                }
                Some(Admission::Refused(refusal)) => {
                    let _lost = self.answer(&datagram, &frame(&Message::Refuse(refusal)));
                    let refused = TurnedAway::refused(shown(peer), refusal);
                    return Ok(Some(Arrival::TurnedAway(refused)));
                }
            }
        }
        Ok(None)
    }

    /// Receives one datagram, truncated to `buffer`.
    fn receive(&self, buffer: &mut [u8]) -> nix::Result<Option<Datagram>> {
        // Space for an IPv6 address suffices for an IPv4 one.
        let mut space = cmsg_space!(in6_pktinfo);
        let mut parts = [IoSliceMut::new(buffer)];
        let message = recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut parts,
            Some(&mut space),
            MsgFlags::empty(),
        )?;
        let local = message.cmsgs()?.find_map(|attached| match attached {
            // Only link-local answers must use the same interface.
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                Some(Local::V4(in_pktinfo { ipi_ifindex: 0, ..info }))
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                let link_local = Ipv6Addr::from(info.ipi6_addr.s6_addr).is_unicast_link_local();
                let ipi6_ifindex = if link_local { info.ipi6_ifindex } else { 0 };
                Some(Local::V6(in6_pktinfo { ipi6_ifindex, ..info }))
            }
            _ => None,
        });
        let peer = message.address.as_ref().and_then(socket_address);
        Ok(peer.map(|peer| Datagram { length: message.bytes, peer, local }))
    }

    /// Sends one frame back from the address that the datagram was sent to.
    fn answer(&self, datagram: &Datagram, frame: &[u8]) -> nix::Result<usize> {
        let info = datagram.local.as_ref().map(|local| match local {
            Local::V4(info) => ControlMessage::Ipv4PacketInfo(info),
            Local::V6(info) => ControlMessage::Ipv6PacketInfo(info),
        });
        sendmsg(
            self.socket.as_raw_fd(),
            &[IoSlice::new(frame)],
            info.as_slice(),
            MsgFlags::MSG_DONTWAIT,
            Some(&SockaddrStorage::from(datagram.peer)),
        )
    }

    fn link(
        &self,
        datagram: &Datagram,
        hello: Vec<u8>,
        settings: LinkSettings,
    ) -> io::Result<UdpLink> {
        let port = self.address.port();
        let local = match datagram.local {
            Some(Local::V4(info)) => {
                let ip = Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes());
                SocketAddr::new(IpAddr::V4(ip), port)
            }
            Some(Local::V6(info)) => {
                let ip = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                SocketAddrV6::new(ip, port, 0, info.ipi6_ifindex).into()
            }
            None => self.address,
        };
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM.nonblocking(), None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&local.into())?;
        socket.connect(&datagram.peer.into())?;
        let socket = UdpSocket::from(socket);
        // Datagrams of other peers may have arrived between `bind` and `connect`.
        while match socket.recv(&mut [0]) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::Interrupted,
        } {}
        UdpLink::from_socket(socket, Some(hello), settings).map_err(io::Error::other)
    }
}

impl AsFd for UdpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// True if the system is out of descriptors or memory, which is not the peer's fault.
fn is_exhausted(error: &io::Error) -> bool {
    let number = error.raw_os_error().map(Errno::from_raw);
    matches!(number, Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS))
}

fn socket_address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|v4| SocketAddr::from((v4.ip(), v4.port())));
    let v6 = || {
        let v6 = storage.as_sockaddr_in6()?;
        Some(SocketAddrV6::new(v6.ip(), v6.port(), v6.flowinfo(), v6.scope_id()).into())
    };
    v4.or_else(v6)
}
