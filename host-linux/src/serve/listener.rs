//! Listeners: the side that waits for a peer.

mod eth;
mod udp;
mod verbs;

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use loggap_core::wire::Refusal;
use nix::errno::Errno;
use thiserror::Error;

use self::eth::EthListener;
use self::udp::UdpListener;
use self::verbs::VerbsListener;
use crate::link::{
    AnyLink, Endpoint, LinkError, LinkSettings, ShmLink, TcpLink, Transport, UnixLink, VerbsLink,
    shown, wrong_kind,
};

/// Most datagrams that one call reads.
const MOST_AT_ONCE: usize = 1_024;

/// Why listening failed.
#[derive(Debug, Error)]
pub enum ListenError {
    /// The endpoint does not fit the transport or has no address.
    #[error(transparent)]
    Endpoint(LinkError),
    /// Another process already listens there.
    #[error(
        "{endpoint} is taken; stop the process that listens there, or choose another port with -p or path with --bind"
    )]
    Taken {
        /// Address or path.
        endpoint: String,
    },
    /// The system refused to listen.
    #[error("cannot listen on {endpoint} ({source}); {}", bind_hint(source))]
    Bind {
        /// Address or path.
        endpoint: String,
        /// System error.
        source: io::Error,
    },
    /// The system refused to take a connection.
    #[error("{endpoint} takes no connection ({source})")]
    Accept {
        /// Address or path.
        endpoint: String,
        /// System error.
        source: io::Error,
    },
}

fn bind_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::PermissionDenied => "choose a port above 1023 or a path you may write",
        ErrorKind::AddrNotAvailable => "give --bind an address of this machine",
        ErrorKind::NotFound => "create the folder first, or choose another path with --bind",
        ErrorKind::AlreadyExists => "it is not a socket; choose another path with --bind",
        _ => "choose another address with --bind",
    }
}

impl ListenError {
    /// True if the listener is unusable. All other errors while accepting are temporary: a lack of
    /// descriptors or memory, a network that is down, a peer that has left.
    #[must_use]
    pub fn is_final(&self) -> bool {
        let Self::Accept { source, .. } = self else { return true };
        let number = source.raw_os_error().map(Errno::from_raw);
        matches!(number, Some(Errno::EBADF | Errno::EINVAL | Errno::ENOTSOCK))
    }
}

/// Networks whose TCP and UDP clients are served.
#[derive(Clone, Debug, Default)]
pub struct AllowedAddresses(Vec<IpNet>);

impl AllowedAddresses {
    /// Allows `networks`; all networks if empty.
    #[must_use]
    pub const fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// True if a client at `address` is served. An IPv4-mapped IPv6 address counts as IPv4.
    #[must_use]
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.is_empty() || self.0.iter().any(|network| network.contains(&address))
    }
}

/// A client that has arrived at a listener.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "one at a time, once a connection")]
pub enum Arrival {
    /// A client to be served.
    Client(AnyLink),
    /// A client that is not served.
    TurnedAway(TurnedAway),
}

/// A client that is not served.
#[derive(Debug)]
pub struct TurnedAway {
    /// Address of the client.
    pub peer: String,
    /// Reason, in words.
    pub reason: String,
}

impl TurnedAway {
    pub(super) fn refused(peer: String, refusal: Refusal) -> Self {
        Self { peer, reason: refusal.to_string() }
    }

    fn not_allowed(peer: SocketAddr) -> Self {
        Self { peer: shown(peer), reason: "not within --allow".to_owned() }
    }
}

/// Listening socket of one transport.
#[derive(Debug)]
pub struct Listener {
    socket: ListeningSocket,
    transport: Transport,
    /// Endpoint with the port chosen by the system if 0 was requested.
    endpoint: Endpoint,
    settings: LinkSettings,
    allowed: AllowedAddresses,
}

#[derive(Debug)]
enum ListeningSocket {
    Tcp(TcpListener),
    Unix(SocketFile),
    Shm(SocketFile),
    Udp(UdpListener),
    Eth(EthListener),
    Verbs(VerbsListener),
}

impl ListeningSocket {
    fn open_tcp(address: SocketAddr) -> io::Result<Bound> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Bound { socket: Self::Tcp(listener), address })
    }

    fn open_udp(address: SocketAddr) -> io::Result<Bound> {
        let (listener, address) = UdpListener::open(address)?;
        Ok(Bound { socket: Self::Udp(listener), address })
    }

    fn open_verbs(address: SocketAddr) -> io::Result<Bound> {
        let (listener, address) = VerbsListener::open(address)?;
        Ok(Bound { socket: Self::Verbs(listener), address })
    }
}

/// A listening socket and its address, with the port that the system chose.
struct Bound {
    socket: ListeningSocket,
    address: SocketAddr,
}

impl Listener {
    /// Listens at `endpoint`; port 0 lets the system choose one. Accepted links get `settings`.
    ///
    /// # Errors
    ///
    /// [`ListenError`]: the endpoint is taken, not permitted or not on this machine.
    pub fn bind(
        transport: Transport,
        endpoint: &Endpoint,
        settings: LinkSettings,
    ) -> Result<Self, ListenError> {
        let mut endpoint = endpoint.clone();
        let socket = match (transport, &mut endpoint) {
            (Transport::Unix, Endpoint::Path(path)) => {
                ListeningSocket::Unix(SocketFile::open(path)?)
            }
            (Transport::Shm, Endpoint::Path(path)) => ListeningSocket::Shm(SocketFile::open(path)?),
            (Transport::Tcp | Transport::Udp | Transport::Verbs, _) => {
                let open = match transport {
                    Transport::Tcp => ListeningSocket::open_tcp,
                    Transport::Udp => ListeningSocket::open_udp,
                    _ => {
                        VerbsLink::look_at_port(settings).map_err(ListenError::Endpoint)?;
                        ListeningSocket::open_verbs
                    }
                };
                let bound = first_that_binds(&endpoint, settings.limit, open)?;
                endpoint = endpoint_of(bound.address);
                bound.socket
            }
            (Transport::Eth, Endpoint::Station { interface, .. }) => {
                ListeningSocket::Eth(EthListener::open(interface).map_err(ListenError::Endpoint)?)
            }
            (Transport::Unix | Transport::Shm | Transport::Eth, _) => {
                let source = wrong_kind(transport);
                return Err(ListenError::Bind { endpoint: endpoint.to_string(), source });
            }
        };
        Ok(Self { socket, transport, endpoint, settings, allowed: AllowedAddresses::default() })
    }

    /// Restricts the listener to clients from `allowed` networks.
    #[must_use]
    pub fn allowing(self, allowed: AllowedAddresses) -> Self {
        Self { allowed, ..self }
    }

    /// Endpoint that peers connect to.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Transport of the messages.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// Accepts one connection; `None` if none is pending, or if the peer failed meanwhile.
    ///
    /// # Errors
    ///
    /// [`ListenError::Accept`]; see [`ListenError::is_final`].
    pub fn try_accept(&mut self) -> Result<Option<Arrival>, ListenError> {
        let settings = self.settings;
        let client = Arrival::Client;
        let taken = match &mut self.socket {
            ListeningSocket::Tcp(listener) => pending(listener.accept()).map(|peer| {
                let (stream, address) = peer?;
                if !self.allowed.contain(address.ip()) {
                    return Some(Arrival::TurnedAway(TurnedAway::not_allowed(address)));
                }
                TcpLink::from_stream(stream, settings).ok().map(AnyLink::Tcp).map(client)
            }),
            ListeningSocket::Unix(file) => pending(file.listener.accept()).map(|peer| {
                let link = UnixLink::from_stream(peer?.0, file.client(), settings);
                link.ok().map(AnyLink::Unix).map(client)
            }),
            ListeningSocket::Shm(file) => pending(file.listener.accept()).map(|peer| {
                let link = ShmLink::create(peer?.0, file.client(), settings);
                link.ok().map(AnyLink::Shm).map(client)
            }),
            ListeningSocket::Udp(listener) => listener.accept(&self.allowed, settings),
            ListeningSocket::Eth(listener) => listener.accept(settings),
            ListeningSocket::Verbs(listener) => listener.accept(&self.allowed, settings),
        };
        taken.map_err(|source| ListenError::Accept { endpoint: self.endpoint.to_string(), source })
    }
}

impl AsFd for Listener {
    /// Readable when a peer is waiting.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            ListeningSocket::Tcp(listener) => listener.as_fd(),
            ListeningSocket::Unix(file) | ListeningSocket::Shm(file) => file.listener.as_fd(),
            ListeningSocket::Udp(listener) => listener.as_fd(),
            ListeningSocket::Eth(listener) => listener.as_fd(),
            ListeningSocket::Verbs(listener) => listener.as_fd(),
        }
    }
}

/// Maps "no pending connection" and "connection aborted" to `None`.
fn pending<T>(accepted: io::Result<T>) -> io::Result<Option<T>> {
    match accepted {
        Ok(peer) => Ok(Some(peer)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {
                Ok(None)
            }
            _ => Err(error),
        },
    }
}

fn endpoint_of(address: SocketAddr) -> Endpoint {
    Endpoint::Internet { host: address.ip().to_string(), port: address.port() }
}

fn first_that_binds(
    endpoint: &Endpoint,
    limit: Duration,
    open: impl Fn(SocketAddr) -> io::Result<Bound>,
) -> Result<Bound, ListenError> {
    let mut addresses = endpoint.addresses(limit).map_err(ListenError::Endpoint)?;
    // The unspecified IPv6 address covers IPv4, too. The IPv4 one is the fallback for machines
    // without IPv6.
    if let Some(every) = addresses.iter().find(|address| address.ip() == IpAddr::from([0_u16; 8])) {
        addresses.push(SocketAddr::from((Ipv4Addr::UNSPECIFIED, every.port())));
    }
    let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
    for address in addresses {
        match open(address) {
            Ok(bound) => return Ok(bound),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                return Err(ListenError::Taken { endpoint: endpoint.to_string() });
            }
            Err(error) => last = error,
        }
    }
    Err(ListenError::Bind { endpoint: endpoint.to_string(), source: last })
}

/// A Unix socket in the file system, removed when dropped.
#[derive(Debug)]
struct SocketFile {
    listener: UnixListener,
    path: PathBuf,
}

impl SocketFile {
    fn open(path: &Path) -> Result<Self, ListenError> {
        let endpoint = || path.display().to_string();
        let failed = |source| ListenError::Bind { endpoint: endpoint(), source };
        if let Ok(found) = fs::symlink_metadata(path) {
            if !found.file_type().is_socket() {
                return Err(failed(ErrorKind::AlreadyExists.into()));
            }
            match UnixStream::connect(path) {
                // Stale socket file of a process that has ended.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    fs::remove_file(path).map_err(failed)?;
                }
                Ok(_) => return Err(ListenError::Taken { endpoint: endpoint() }),
                Err(error) => return Err(failed(error)),
            }
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let file = Self { listener, path: path.to_owned() };
        file.listener.set_nonblocking(true).map_err(failed)?;
        Ok(file)
    }

    /// Name of a peer in errors.
    fn client(&self) -> String {
        format!("client of {}", self.path.display())
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _somebody_else_removed_it = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_outlives_what_a_connection_died_of() {
        let is_final = |number: Errno| {
            let (endpoint, source) = (String::new(), io::Error::from(number));
            ListenError::Accept { endpoint, source }.is_final()
        };
        // accept(2): what is pending on the new connection, and what runs out.
        let passing = [
            Errno::ENETDOWN,
            Errno::EPROTO,
            Errno::ENOPROTOOPT,
            Errno::EHOSTDOWN,
            Errno::ENONET,
            Errno::EHOSTUNREACH,
            Errno::EOPNOTSUPP,
            Errno::ENETUNREACH,
            Errno::ECONNABORTED,
            Errno::EMFILE,
            Errno::ENFILE,
            Errno::ENOBUFS,
            Errno::ENOMEM,
            Errno::EPERM,
        ];
        assert!(!passing.into_iter().any(is_final));
        assert!([Errno::EBADF, Errno::EINVAL, Errno::ENOTSOCK].into_iter().all(is_final));
    }
}
