//! The side that waits for a peer.

mod udp;

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{error, fmt};

use self::udp::UdpDoor;
use crate::link::{
    AnyLink, Endpoint, EthDoor, LinkError, LinkSettings, ShmLink, TcpLink, Transport, UnixLink,
    wrong_kind,
};

/// Why nobody can connect here.
#[derive(Debug)]
pub enum ListenError {
    /// The endpoint does not fit the transport or has no address.
    Endpoint(LinkError),
    /// Somebody listens there already.
    Taken {
        /// Address or path.
        endpoint: String,
    },
    /// The system refused to listen.
    Bind {
        /// Address or path.
        endpoint: String,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused to take a connection.
    Accept {
        /// Address or path.
        endpoint: String,
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint(error) => error.fmt(f),
            Self::Taken { endpoint } => write!(
                f,
                "{endpoint} is taken; stop the process that listens there, or choose another port with -p or path with --bind"
            ),
            Self::Bind { endpoint, source } => {
                let hint = match source.kind() {
                    ErrorKind::PermissionDenied => {
                        "choose a port above 1023 or a path you may write"
                    }
                    ErrorKind::AddrNotAvailable => "give --bind an address of this machine",
                    ErrorKind::NotFound => {
                        "create the folder first, or choose another path with --bind"
                    }
                    ErrorKind::AlreadyExists => {
                        "it is not a socket; choose another path with --bind"
                    }
                    _ => "choose another address with --bind",
                };
                write!(f, "cannot listen on {endpoint} ({source}); {hint}")
            }
            Self::Accept { endpoint, source } => {
                write!(
                    f,
                    "{endpoint} takes no more connections ({source}); close some and start again"
                )
            }
        }
    }
}

impl error::Error for ListenError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Endpoint(error) => Some(error),
            Self::Bind { source, .. } | Self::Accept { source, .. } => Some(source),
            Self::Taken { .. } => None,
        }
    }
}

/// Takes connections of one transport.
#[derive(Debug)]
pub struct Listener {
    door: Door,
    transport: Transport,
    /// With the port that the system chose where 0 was asked for.
    endpoint: Endpoint,
    settings: LinkSettings,
}

#[derive(Debug)]
enum Door {
    Tcp(TcpListener),
    Unix(UnixDoor),
    Shm(UnixDoor),
    Udp(UdpDoor),
    Eth(EthDoor),
}

impl Listener {
    /// Listens at `endpoint`; port 0 lets the system choose one. Links get
    /// `settings`.
    ///
    /// # Errors
    ///
    /// [`ListenError`] says whether the endpoint is taken, not allowed or
    /// not of this machine.
    pub fn bind(
        transport: Transport,
        endpoint: &Endpoint,
        settings: LinkSettings,
    ) -> Result<Self, ListenError> {
        let mut endpoint = endpoint.clone();
        let door = match (transport, &mut endpoint) {
            (Transport::Unix, Endpoint::Path(path)) => Door::Unix(UnixDoor::open(path)?),
            (Transport::Shm, Endpoint::Path(path)) => Door::Shm(UnixDoor::open(path)?),
            (Transport::Tcp, _) => {
                let (door, bound) = first_that_binds(&endpoint, settings.limit, |address| {
                    let listener = TcpListener::bind(address)?;
                    listener.set_nonblocking(true)?;
                    let bound = listener.local_addr()?;
                    Ok((Door::Tcp(listener), bound))
                })?;
                endpoint = endpoint_of(bound);
                door
            }
            (Transport::Udp, _) => {
                let (door, bound) = first_that_binds(&endpoint, settings.limit, |address| {
                    let (door, bound) = UdpDoor::open(address)?;
                    Ok((Door::Udp(door), bound))
                })?;
                endpoint = endpoint_of(bound);
                door
            }
            (Transport::Eth, Endpoint::Station { interface, .. }) => {
                Door::Eth(EthDoor::open(interface).map_err(ListenError::Endpoint)?)
            }
            (Transport::Unix | Transport::Shm | Transport::Eth, _) => {
                let source = wrong_kind(transport);
                return Err(ListenError::Bind { endpoint: endpoint.to_string(), source });
            }
        };
        Ok(Self { door, transport, endpoint, settings })
    }

    /// Where peers connect to.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What carries the messages.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// Takes one connection, `None` when none waits. A peer that fails while
    /// it is taken is dropped and counts as none.
    ///
    /// # Errors
    ///
    /// [`ListenError::Accept`] when the system has no more descriptors or
    /// memory.
    pub fn try_accept(&mut self) -> Result<Option<AnyLink>, ListenError> {
        let settings = self.settings;
        let taken = match &mut self.door {
            Door::Tcp(listener) => pending(listener.accept()).map(|peer| {
                peer.and_then(|(stream, _)| TcpLink::from_stream(stream, settings).ok())
                    .map(AnyLink::Tcp)
            }),
            Door::Unix(door) => pending(door.listener.accept()).map(|peer| {
                let stream = peer.map(|(stream, _)| stream);
                let link = stream
                    .and_then(|stream| UnixLink::from_stream(stream, door.client(), settings).ok());
                link.map(AnyLink::Unix)
            }),
            Door::Shm(door) => pending(door.listener.accept()).map(|peer| {
                let stream = peer.map(|(stream, _)| stream);
                let link =
                    stream.and_then(|stream| ShmLink::create(stream, door.client(), settings).ok());
                link.map(AnyLink::Shm)
            }),
            Door::Udp(door) => door.accept(settings).map(|link| link.map(AnyLink::Udp)),
            Door::Eth(door) => door.accept(settings).map(|link| link.map(AnyLink::Eth)),
        };
        taken.map_err(|source| ListenError::Accept { endpoint: self.endpoint.to_string(), source })
    }
}

impl AsFd for Listener {
    /// Readable when a peer waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.door {
            Door::Tcp(listener) => listener.as_fd(),
            Door::Unix(door) | Door::Shm(door) => door.listener.as_fd(),
            Door::Udp(door) => door.as_fd(),
            Door::Eth(door) => door.as_fd(),
        }
    }
}

/// Nobody waiting is no error, and neither is one that left again.
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
    open: impl Fn(SocketAddr) -> io::Result<(Door, SocketAddr)>,
) -> Result<(Door, SocketAddr), ListenError> {
    let mut addresses = endpoint.addresses(limit).map_err(ListenError::Endpoint)?;
    // Every IPv6 address includes every IPv4 address, unless the machine has
    // no IPv6 at all.
    if let Some(every) = addresses.iter().find(|address| address.ip() == IpAddr::from([0_u16; 8])) {
        addresses.push(SocketAddr::from((Ipv4Addr::UNSPECIFIED, every.port())));
    }
    let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
    for address in addresses {
        match open(address) {
            Ok(opened) => return Ok(opened),
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
struct UnixDoor {
    listener: UnixListener,
    path: PathBuf,
}

impl UnixDoor {
    fn open(path: &Path) -> Result<Self, ListenError> {
        let endpoint = || path.display().to_string();
        let failed = |source| ListenError::Bind { endpoint: endpoint(), source };
        if let Ok(found) = fs::symlink_metadata(path) {
            if !found.file_type().is_socket() {
                return Err(failed(ErrorKind::AlreadyExists.into()));
            }
            match UnixStream::connect(path) {
                // Left behind by a process that is gone.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    fs::remove_file(path).map_err(failed)?;
                }
                Ok(_) => return Err(ListenError::Taken { endpoint: endpoint() }),
                Err(error) => return Err(failed(error)),
            }
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let door = Self { listener, path: path.to_owned() };
        door.listener.set_nonblocking(true).map_err(failed)?;
        Ok(door)
    }

    /// What errors call a peer.
    fn client(&self) -> String {
        format!("client of {}", self.path.display())
    }
}

impl Drop for UnixDoor {
    fn drop(&mut self) {
        let _somebody_else_removed_it = fs::remove_file(&self.path);
    }
}
