//! Properties of a link, as stored in a profile.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use serde::{Deserialize, Serialize};

use super::{HostLink, VerbsRecord, canonical};
use crate::machine::buffer::Alignment;
use crate::machine::kernel_files::read_setting;

/// Properties of a link that numbers depend on.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct LinkFingerprint {
    /// `tcp`, `udp`, `unix`, `shm`, `eth` or `verbs`.
    pub transport: String,
    /// Address or name of the peer.
    pub peer: String,
    /// How this end waits for messages: `poll` or `block`; empty if unknown.
    #[serde(default)]
    pub waiting: String,
    /// Network interface that owns this end's address.
    pub interface: Option<String>,
    /// Maximum transmission unit of the interface, bytes.
    pub mtu_bytes: Option<u64>,
    /// Driver of the interface.
    pub driver: Option<String>,
    /// Speed that the interface reports, bits per second.
    pub speed_bits_per_s: Option<u64>,
    /// Congestion control of a TCP connection.
    pub congestion_control: Option<String>,
    /// Maximum segment size of a TCP connection, bytes.
    pub segment_bytes: Option<u64>,
    /// Receive buffer of a UDP socket, bytes.
    pub receive_buffer_bytes: Option<u64>,
    /// MPI library that carries the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi: Option<MpiLibrary>,
    /// Options of RDMA verbs, and the devices of both ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbs: Option<VerbsRecord>,
}

/// Properties of an MPI library that numbers depend on.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct MpiLibrary {
    /// Name and version.
    pub version: String,
    /// Sending call: `send`, `ssend` or `isend`.
    pub send: String,
    /// Receiving call: `recv` or `irecv`.
    pub receive: String,
    /// Alignment of message buffers; `None` in profiles whose buffers an allocator placed.
    #[serde(flatten)]
    pub alignment: Option<Alignment>,
    /// Bytes of memory through which the buffers rotate; `None` for one buffer, which the caches hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_bytes: Option<u64>,
    /// Library settings that decide how messages travel, by the library's names.
    pub settings: BTreeMap<String, String>,
}

impl LinkFingerprint {
    /// Transport and peer of `link`.
    pub(super) fn basic(link: &impl HostLink) -> Self {
        let transport = link.transport().name().to_owned();
        Self { transport, peer: link.peer().to_owned(), ..Self::default() }
    }

    /// Adds the interface of a connected socket.
    pub(super) fn with_interface(
        self,
        local: Option<SocketAddr>,
        peer: Option<SocketAddr>,
    ) -> Self {
        let (Some(local), Some(peer)) = (local.map(canonical), peer.map(canonical)) else {
            return self;
        };
        // Packets between two addresses of one machine use the loopback, whichever interface owns
        // the address.
        let same_machine = local.ip() == peer.ip() || interface_of(peer.ip()).is_some();
        let name = if same_machine { Some("lo".to_owned()) } else { interface_of(local.ip()) };
        match name {
            Some(name) => self.on_interface(name),
            None => self,
        }
    }

    /// Adds the interface `name`.
    pub(super) fn on_interface(self, name: String) -> Self {
        let folder = Path::new("/sys/class/net").join(&name);
        let number = |file: &str| read_setting(folder.join(file))?.parse::<u64>().ok();
        let driver = fs::read_link(folder.join("device/driver")).ok();
        Self {
            mtu_bytes: number("mtu"),
            speed_bits_per_s: number("speed").map(|megabits| megabits * 1_000_000),
            driver: driver.and_then(|path| Some(path.file_name()?.to_str()?.to_owned())),
            interface: Some(name),
            ..self
        }
    }
}

/// Name of the interface that owns `address`.
fn interface_of(address: IpAddr) -> Option<String> {
    let owned = |storage: &SockaddrStorage| {
        let v4 = storage.as_sockaddr_in().map(|owner| IpAddr::V4(owner.ip()));
        let v6 = || storage.as_sockaddr_in6().map(|owner| IpAddr::V6(owner.ip()));
        v4.or_else(v6)
    };
    let found =
        getifaddrs().ok()?.find(|entry| entry.address.as_ref().and_then(owned) == Some(address))?;
    Some(found.interface_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{LinkSettings, TcpLink};
    use std::net::TcpListener;

    #[test]
    fn a_tcp_link_over_loopback_is_described() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link =
            TcpLink::connect(listener.local_addr().unwrap(), LinkSettings::default()).unwrap();
        let print = link.fingerprint();
        assert_eq!(print.interface.as_deref(), Some("lo"));
        assert!(print.mtu_bytes.is_some_and(|bytes| bytes >= 1_500), "{print:?}");
        assert!(print.congestion_control.is_some() && print.segment_bytes.is_some(), "{print:?}");
    }
}
