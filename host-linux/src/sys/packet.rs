//! Raw Ethernet socket functions for which no safe wrapper exists.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;
use nix::sys::socket::{LinkAddr, SockaddrLike};

mod request {
    use nix::libc;

    nix::ioctl_readwrite_bad!(get_mtu, libc::SIOCGIFMTU, libc::ifreq);
}

/// Address to bind a packet socket to: frames of `ether_type` on the interface with this number.
/// `None` if the number is invalid.
pub(crate) fn on_interface(interface: u32, ether_type: u16) -> Option<LinkAddr> {
    let raw = libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).ok()?,
        sll_protocol: ether_type.to_be(),
        sll_ifindex: i32::try_from(interface).ok()?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = libc::socklen_t::try_from(size_of_val(&raw)).ok()?;
    // SAFETY: `raw` is a whole address of the family that it names, alive
    // during the call, and `length` is its size; a copy is returned.
    unsafe { LinkAddr::from_raw((&raw const raw).cast(), Some(length)) }
}

/// Maximum transmission unit of the named interface, in bytes.
pub(crate) fn mtu(socket: BorrowedFd<'_>, interface: &str) -> io::Result<usize> {
    let mut name = [0; libc::IFNAMSIZ];
    // The last byte stays zero as the terminator.
    let room = name.len() - 1;
    if interface.len() > room {
        return Err(io::ErrorKind::NotFound.into());
    }
    for (slot, byte) in name.iter_mut().zip(interface.bytes()) {
        *slot = libc::c_char::from_ne_bytes([byte]);
    }
    let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_mtu: 0 };
    let mut answer = libc::ifreq { ifr_name: name, ifr_ifru };
    // SAFETY: the request reads the name and writes the MTU of this one `ifreq`, which outlives the
    // call.
    unsafe { request::get_mtu(socket.as_raw_fd(), &mut answer) }?;
    // SAFETY: `ifru_mtu` was set before the call, so it is initialised
    // whether or not the kernel wrote it.
    let mtu = unsafe { answer.ifr_ifru.ifru_mtu };
    usize::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into())
}
