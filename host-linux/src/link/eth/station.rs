//! Raw Ethernet socket of this machine on one interface.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use loggap_core::units::Bytes;
use loggap_core::wire::ethernet::{self, Address, EthernetFrame};
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, bind, recv, send, setsockopt, socket, sockopt,
};
use socket2::SockRef;

use super::filter;
use crate::link::{LinkError, WANTED_RECEIVE_BUFFER};
use crate::sys::packet;

/// Length of destination, source and EtherType, bytes.
const ETHERNET_HEADER: usize = 14;
/// Longest message, bytes: the length field of a frame has 16 bits.
const LONGEST: usize = u16::MAX as usize;

/// Parses `aa:bb:cc:dd:ee:ff`, also with hyphens. `None` for anything else, and for group
/// addresses, which belong to no single station.
#[must_use]
pub fn parse_address(text: &str) -> Option<Address> {
    let mut address = [0; 6];
    let mut parts = text.split([':', '-']);
    for slot in &mut address {
        let part = parts.next()?;
        let digits = part.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !digits || part.is_empty() || part.len() > 2 {
            return None;
        }
        *slot = u8::from_str_radix(part, 16).ok()?;
    }
    let [first, ..] = address;
    (parts.next().is_none() && first & 1 == 0).then_some(address)
}

/// Displays an address as `aa:bb:cc:dd:ee:ff`.
#[derive(Clone, Copy, Debug)]
pub struct Shown(pub Address);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Frames of loggap's EtherType that a socket receives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Senders {
    /// Frames of every station.
    Any,
    /// Frames of one station.
    One(Address),
    /// Hellos of every station.
    Hellos,
}

/// Raw socket on one interface for frames of loggap's EtherType, with a frame buffer for each
/// direction.
#[derive(Debug)]
pub(crate) struct Station {
    socket: OwnedFd,
    interface: String,
    address: Address,
    mtu: usize,
    outgoing: Box<[u8]>,
    incoming: Box<[u8]>,
}

/// Result of one call of [`Station::receive`].
pub(crate) enum Arrived<'a> {
    /// A valid frame, addressed to this station or broadcast.
    Frame(EthernetFrame<'a>),
    /// A frame for another station, of another format, or truncated.
    Foreign,
    /// No frame has arrived.
    Nothing,
}

impl Station {
    /// Opens a socket on `interface`.
    pub(crate) fn open(interface: &str, senders: Senders) -> Result<Self, LinkError> {
        let refused = |source: Errno| LinkError::Interface {
            interface: interface.to_owned(),
            source: source.into(),
        };
        let index = if_nametoindex(interface).map_err(refused)?;
        let address = address_of(interface)
            .map_err(|source| LinkError::Interface { interface: interface.to_owned(), source })?;
        // Created without a protocol, so that no frame of another interface arrives before it is
        // bound.
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None).map_err(refused)?;
        restrict(&socket, senders)
            .map_err(|source| LinkError::Interface { interface: interface.to_owned(), source })?;
        let here = packet::on_interface(index, ethernet::ETHER_TYPE);
        let here = here.ok_or_else(|| refused(Errno::ENODEV))?;
        bind(socket.as_raw_fd(), &here).map_err(refused)?;
        if setsockopt(&socket, sockopt::RcvBufForce, &WANTED_RECEIVE_BUFFER).is_err() {
            let _granted_in_part = setsockopt(&socket, sockopt::RcvBuf, &WANTED_RECEIVE_BUFFER);
        }
        let mtu = packet::mtu(socket.as_fd(), interface)
            .map_err(|source| LinkError::Interface { interface: interface.to_owned(), source })?;
        let frame = ETHERNET_HEADER + mtu.clamp(ethernet::MIN_FRAME, LONGEST);
        Ok(Self {
            socket,
            interface: interface.to_owned(),
            address,
            mtu,
            outgoing: vec![0; frame].into(),
            incoming: vec![0; frame].into(),
        })
    }

    /// Opens another socket of the same station.
    pub(crate) fn again(&self, senders: Senders) -> Result<Self, LinkError> {
        Self::open(&self.interface, senders)
    }

    /// Restricts the frames that arrive from now on; frames already queued remain.
    pub(crate) fn restrict(&self, senders: Senders) -> io::Result<()> {
        restrict(&self.socket, senders)
    }

    pub(crate) fn interface(&self) -> &str {
        &self.interface
    }

    pub(crate) const fn address(&self) -> Address {
        self.address
    }

    /// Longest message in one frame: MTU of the interface minus loggap's header.
    pub(crate) fn longest(&self) -> Bytes {
        let frame = (ETHERNET_HEADER + self.mtu).min(self.outgoing.len());
        Bytes(frame.saturating_sub(ethernet::HEADER).min(LONGEST) as u64)
    }

    /// Sends one frame.
    #[inline]
    pub(crate) fn send(&mut self, to: Address, message: &[u8]) -> Result<(), Errno> {
        let longest = self.longest().0;
        if message.len() as u64 > longest {
            return Err(Errno::EMSGSIZE);
        }
        let length = ethernet::emit(to, self.address, message, &mut self.outgoing);
        let frame = length.and_then(|length| self.outgoing.get(..length));
        let frame = frame.ok_or(Errno::EMSGSIZE)?;
        send(self.socket.as_raw_fd(), frame, MsgFlags::empty()).map(|_bytes| ())
    }

    /// Receives one frame without waiting.
    #[inline]
    pub(crate) fn receive(&mut self) -> Result<Arrived<'_>, Errno> {
        let length = match recv(self.socket.as_raw_fd(), &mut self.incoming, MsgFlags::MSG_TRUNC) {
            Ok(length) => length,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(Arrived::Nothing),
            Err(error) => return Err(error),
        };
        // Longer than the buffer, and so longer than the interface's MTU.
        let Some(bytes) = self.incoming.get(..length) else { return Ok(Arrived::Foreign) };
        Ok(match EthernetFrame::parse(bytes) {
            Ok(frame) if [self.address, ethernet::BROADCAST].contains(&frame.destination()) => {
                Arrived::Frame(frame)
            }
            _ => Arrived::Foreign,
        })
    }
}

impl AsFd for Station {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn restrict(socket: &OwnedFd, senders: Senders) -> io::Result<()> {
    let program = match senders {
        Senders::Any => return Ok(()),
        Senders::One(station) => filter::messages_of(station),
        Senders::Hellos => filter::hellos(),
    };
    SockRef::from(socket).attach_filter(&program)
}

/// Ethernet address of an interface.
fn address_of(interface: &str) -> io::Result<Address> {
    let entries = getifaddrs()?.filter(|entry| entry.interface_name == interface);
    let mut links = entries.filter_map(|entry| entry.address?.as_link_addr().copied());
    match links.next() {
        Some(link) if link.hatype() == libc::ARPHRD_ETHER => {
            link.addr().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
        }
        Some(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "not an Ethernet interface")),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_print_as_they_are_read() {
        let text = "02:00:fe:dc:0a:ff";
        assert_eq!(Shown(parse_address(text).unwrap()).to_string(), text);
        assert_eq!(parse_address("2-0-FE-dc-a-ff"), parse_address(text));
    }

    #[test]
    fn what_is_no_single_stations_address_is_refused() {
        let wrong = ["", "02:00:fe:dc:0a", "02:00:fe:dc:0a:ff:00", "02:00:fe:dc:0a:100"];
        let also = ["02:00:fe:dc:0a:+f", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "eth0"];
        for text in wrong.into_iter().chain(also) {
            assert_eq!(parse_address(text), None, "{text}");
        }
    }

    #[test]
    fn an_interface_that_is_not_there_or_no_ethernet_is_named() {
        for name in ["no-such-if", "lo", "a-name-longer-than-the-kernel-takes"] {
            let error = Station::open(name, Senders::Any).unwrap_err();
            assert!(matches!(error, LinkError::Interface { .. }), "{error:?}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
