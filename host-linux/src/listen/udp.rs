//! Telling the clients of one UDP port apart.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use loggap_core::wire::{FRAME_LEN, Message};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::in6_pktinfo;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrStorage, bind,
    recvmsg, setsockopt, socket, sockopt,
};

use crate::clock::Deadline;
use crate::link::{LinkSettings, UdpLink};

/// A UDP port. Each peer gets a socket of its own on the same port, connected
/// to the peer, so that the kernel tells the peers apart. It is bound to the
/// address that the peer wrote to: answers from another address of this
/// machine would not reach a connected peer.
#[derive(Debug)]
pub(super) struct UdpDoor {
    socket: UdpSocket,
    address: SocketAddr,
    /// Peers that have just been taken: what they sent before their own
    /// socket existed arrives here and is not another peer.
    recent: Vec<(SocketAddr, Deadline)>,
}

/// A datagram at the door.
struct Knock {
    length: usize,
    peer: SocketAddr,
    /// The address of this machine that it was sent to.
    local: IpAddr,
    /// The interface that it came by, which link-local addresses need.
    interface: u32,
}

impl UdpDoor {
    /// How long after it was taken a peer's stray datagrams are ignored.
    const RECENT: Duration = Duration::from_millis(500);

    pub(super) fn open(address: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        if address.is_ipv4() {
            setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
        } else {
            setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
        }
        // Only now: a second listener, which binds without this option, is
        // refused; the peers' sockets, which have it, are not.
        setsockopt(&socket, sockopt::ReuseAddr, &true)?;
        let address = socket.local_addr()?;
        Ok((Self { socket, address, recent: Vec::new() }, address))
    }

    /// The peer whose greeting has arrived; whatever else arrives is dropped.
    pub(super) fn accept(&mut self, settings: LinkSettings) -> io::Result<Option<UdpLink>> {
        const MOST_AT_ONCE: usize = 1_024;
        self.recent.retain(|(_, until)| !until.expired());
        let mut buffer = [0; FRAME_LEN + 1];
        for _ in 0..MOST_AT_ONCE {
            let knock = match self.knock(&mut buffer) {
                Ok(Some(knock)) => knock,
                // An ICMP error about an earlier peer, or no address.
                Ok(None) | Err(Errno::ECONNREFUSED | Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => break,
                Err(error) => return Err(error.into()),
            };
            let greeting = buffer.get(..knock.length).unwrap_or_default();
            let known = self.recent.iter().any(|(recent, _)| *recent == knock.peer);
            if known || !matches!(Message::parse(greeting), Ok(Message::Hello(_))) {
                continue;
            }
            let socket = match self.socket_for(&knock) {
                Ok(socket) => socket,
                Err(error) if is_exhausted(&error) => return Err(error),
                // A peer that cannot be answered, such as one at port 0.
                Err(_) => continue,
            };
            self.recent.push((knock.peer, Deadline::after(Self::RECENT)));
            return Ok(UdpLink::from_socket(socket, Some(greeting.to_vec()), settings).ok());
        }
        Ok(None)
    }

    /// One datagram; what does not fit into `buffer` is cut off.
    fn knock(&self, buffer: &mut [u8]) -> nix::Result<Option<Knock>> {
        // The space for an IPv6 address is enough for an IPv4 one.
        let mut space = cmsg_space!(in6_pktinfo);
        let mut parts = [IoSliceMut::new(buffer)];
        let message = recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut parts,
            Some(&mut space),
            MsgFlags::empty(),
        )?;
        let (mut local, mut interface) = (self.address.ip(), 0);
        for attached in message.cmsgs()? {
            match attached {
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    local = Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into();
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    local = Ipv6Addr::from(info.ipi6_addr.s6_addr).into();
                    interface = info.ipi6_ifindex;
                }
                _ => {}
            }
        }
        let peer = message.address.as_ref().and_then(socket_address);
        Ok(peer.map(|peer| Knock { length: message.bytes, peer, local, interface }))
    }

    fn socket_for(&self, knock: &Knock) -> io::Result<UdpSocket> {
        let port = self.address.port();
        let local = match knock.local {
            IpAddr::V6(v6) if v6.is_unicast_link_local() => {
                SocketAddrV6::new(v6, port, 0, knock.interface).into()
            }
            other => SocketAddr::new(other, port),
        };
        let family = if local.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let descriptor = socket(family, SockType::Datagram, flags, None)?;
        setsockopt(&descriptor, sockopt::ReuseAddr, &true)?;
        bind(descriptor.as_raw_fd(), &SockaddrStorage::from(local))?;
        let socket = UdpSocket::from(descriptor);
        socket.connect(knock.peer)?;
        // What others sent between `bind` and `connect` is not this peer's.
        while match socket.recv(&mut [0]) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::Interrupted,
        } {}
        Ok(socket)
    }
}

impl AsFd for UdpDoor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether the system has no more descriptors or memory, whoever the peer.
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
