//! Why a link failed, with the peer's name and what to try.

use std::time::Duration;
use std::{error, fmt, io};

/// Why a link could not be made or has failed. Only after
/// [`TooLong`](Self::TooLong) is the link still usable.
#[derive(Debug)]
#[non_exhaustive]
pub enum LinkError {
    /// The host name has no address, or none in time.
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// No connection could be made.
    Connect {
        /// Address or path.
        peer: String,
        /// What the system said.
        source: io::Error,
    },
    /// A network interface cannot be used for raw Ethernet.
    Interface {
        /// Its name.
        interface: String,
        /// What the system said.
        source: io::Error,
    },
    /// The peer closed the connection or its process ended.
    Closed {
        /// Address, path or process.
        peer: String,
    },
    /// The peer took no byte for the link's time limit.
    Stuck {
        /// Address, path or process.
        peer: String,
        /// The limit.
        limit: Duration,
    },
    /// The message is longer than the link takes. Nothing was sent.
    TooLong {
        /// Length of the message in bytes.
        length: usize,
        /// The longest in bytes.
        longest: u64,
    },
    /// A message arrived that is longer than the buffer lent for it.
    NoRoom {
        /// Address, path or process.
        peer: String,
        /// Length of the message in bytes.
        length: usize,
        /// Length of the buffer in bytes.
        room: usize,
    },
    /// A socket option that the measurement depends on was not kept.
    Option {
        /// Its name.
        option: &'static str,
    },
    /// The peer does not keep to the rules of the link.
    Broken {
        /// Address, path or process.
        peer: String,
        /// What it did.
        what: &'static str,
    },
    /// The system refused a call.
    System {
        /// Address, path or process.
        peer: String,
        /// What was attempted.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl LinkError {
    /// An error of a connected link: a closed connection has many names.
    pub(crate) fn from_io(peer: &str, action: &'static str, source: io::Error) -> Self {
        use io::ErrorKind::{
            BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, NotConnected,
            UnexpectedEof,
        };
        let peer = peer.to_owned();
        match source.kind() {
            BrokenPipe | ConnectionReset | ConnectionAborted | ConnectionRefused | NotConnected
            | UnexpectedEof => Self::Closed { peer },
            _ => Self::System { peer, action, source },
        }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resolve { host, source } => {
                write!(f, "no address for '{host}' ({source}); check the name, or give an address")
            }
            Self::Connect { peer, source } => {
                write!(f, "no connection to {peer} ({source}); {}", connect_hint(source.kind()))
            }
            Self::Interface { interface, source } => interface_error(f, interface, source),
            Self::Closed { peer } => {
                write!(f, "{peer} closed the connection; see what its side printed, then try again")
            }
            Self::Stuck { peer, limit } => write!(
                f,
                "{peer} took no byte for {} s; it is stopped or the network is cut",
                limit.as_secs_f64()
            ),
            Self::TooLong { length, longest } => {
                write!(
                    f,
                    "a message of {length} bytes is over the {longest} bytes of this link; use smaller sizes"
                )
            }
            Self::NoRoom { peer, length, room } => write!(
                f,
                "{peer} sent a message of {length} bytes where at most {room} were expected; use the same version on both ends"
            ),
            Self::Option { option } => {
                write!(
                    f,
                    "the system did not keep {option}; results would be wrong, so none are taken"
                )
            }
            Self::Broken { peer, what } => {
                write!(f, "{peer} {what}; use the same version on both ends")
            }
            Self::System { peer, action, source } => write!(f, "{peer}: {action} failed: {source}"),
        }
    }
}

impl error::Error for LinkError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Resolve { source, .. }
            | Self::Connect { source, .. }
            | Self::Interface { source, .. }
            | Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}

fn interface_error(f: &mut fmt::Formatter<'_>, interface: &str, source: &io::Error) -> fmt::Result {
    if source.kind() == io::ErrorKind::PermissionDenied {
        return write!(
            f,
            "raw Ethernet on '{interface}' needs the capability CAP_NET_RAW ({source}); run as root, or give the program the capability with `setcap cap_net_raw+ep`"
        );
    }
    write!(f, "'{interface}' is no Ethernet interface to use ({source}); `ip link` lists them")
}

fn connect_hint(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
            "start `loggap serve` there first, with the same transport and port"
        }
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            "check that the host is up and that no firewall drops the port"
        }
        io::ErrorKind::PermissionDenied => "check the permissions of the path or port",
        _ => "check the address and the route to it",
    }
}
