//! Errors of links, with the peer's name and a remedy.

use std::io;
use std::time::Duration;

use thiserror::Error;

use super::{DEFAULT_PORT, Endpoint, Transport, VerbsError};

/// Error of creating or using a link. The link remains usable only after
/// [`TooLong`](Self::TooLong).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The host name has no address, or could not be resolved in time.
    #[error("no address for '{host}' ({source}); check the name, or give an address")]
    Resolve {
        /// Host name.
        host: String,
        /// Error of the resolver.
        source: io::Error,
    },
    /// The connection failed.
    #[error("{}", no_connection(*transport, peer, source))]
    Connect {
        /// Transport of the link.
        transport: Transport,
        /// Address or path.
        peer: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The peer has never answered.
    #[error("{}", unanswered(*transport, peer))]
    Unanswered {
        /// Transport of the link.
        transport: Transport,
        /// Address, path or interface.
        peer: String,
    },
    /// The network interface cannot be used for raw Ethernet.
    #[error("{}", interface_error(interface, source))]
    Interface {
        /// Name of the interface.
        interface: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The peer closed the connection, or its process ended.
    #[error("{peer} closed the connection; see what its side printed, then try again")]
    Closed {
        /// Address, path or process.
        peer: String,
    },
    /// The peer accepted no data within the link's time limit.
    #[error("{peer} took no byte for {} s; it is stopped or the network is cut", limit.as_secs_f64())]
    Stuck {
        /// Address, path or process.
        peer: String,
        /// Time limit.
        limit: Duration,
    },
    /// The message is longer than the link supports. Nothing was sent.
    #[error(
        "a message of {length} bytes is over the {longest} bytes of this link; use smaller sizes"
    )]
    TooLong {
        /// Length of the message in bytes.
        length: usize,
        /// Longest message in bytes.
        longest: u64,
    },
    /// A message arrived that is longer than the caller's buffer.
    #[error(
        "{peer} sent a message of {length} bytes where at most {room} were expected; use the same version on both ends"
    )]
    NoRoom {
        /// Address, path or process.
        peer: String,
        /// Length of the message in bytes.
        length: usize,
        /// Length of the buffer in bytes.
        room: usize,
    },
    /// The system did not apply a socket option on which the measurement depends.
    #[error("the system did not keep {option}; results would be wrong, so none are taken")]
    Option {
        /// Name of the option.
        option: &'static str,
    },
    /// The peer violated the protocol of the link.
    #[error("{peer} {what}; use the same version on both ends")]
    Broken {
        /// Address, path or process.
        peer: String,
        /// The violation.
        what: &'static str,
    },
    /// Error of RDMA verbs.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// A system call failed.
    #[error("{peer}: {action} failed: {source}")]
    System {
        /// Address, path or process.
        peer: String,
        /// The action that failed.
        action: &'static str,
        /// Error of the system.
        source: io::Error,
    },
}

impl LinkError {
    /// Converts an error of a connected link; many codes mean a closed connection.
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

fn unanswered(transport: Transport, peer: &str) -> String {
    let command = serve_command(transport, peer);
    match transport {
        Transport::Eth => format!("no answer from {peer}: start `{command}` at the other end"),
        _ => format!("nobody answers at {peer}: start `{command}` there"),
    }
}

/// Shell command that starts a responder at `peer`.
fn serve_command(transport: Transport, peer: &str) -> String {
    let mut command = "loggap serve".to_owned();
    if transport != Transport::Tcp {
        command += &format!(" --transport {transport}");
    }
    match transport {
        Transport::Tcp | Transport::Udp | Transport::Verbs => {
            let port = peer.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
            if let Some(port) = port.filter(|port: &u16| *port != DEFAULT_PORT) {
                command += &format!(" -p {port}");
            }
        }
        Transport::Unix | Transport::Shm => {
            let usual = Endpoint::default_for(transport).map(|endpoint| endpoint.to_string());
            if usual.is_none_or(|usual| usual != peer) {
                command += &format!(" --bind {}", quoted(peer));
            }
        }
        Transport::Eth => command += " --interface NAME",
    }
    command
}

/// A word for a shell command, quoted if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+:@%".contains(character);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn no_connection(transport: Transport, peer: &str, source: &io::Error) -> String {
    use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied, TimedOut, WouldBlock};
    let hint = match source.kind() {
        ConnectionRefused | NotFound => {
            let command = serve_command(transport, peer);
            return format!("nobody answers at {peer} ({source}): start `{command}` there");
        }
        TimedOut | WouldBlock => "check that the host is up and that no firewall drops the port",
        PermissionDenied => "check the permissions of the path or port",
        _ => "check the address and the route to it",
    };
    format!("no connection to {peer} ({source}); {hint}")
}

fn interface_error(interface: &str, source: &io::Error) -> String {
    if source.kind() == io::ErrorKind::PermissionDenied {
        return format!(
            "raw Ethernet on '{interface}' needs the capability CAP_NET_RAW ({source}); run as root, or give the program the capability with `setcap cap_net_raw+ep`"
        );
    }
    format!("'{interface}' is no Ethernet interface to use ({source}); `ip link` lists them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_start_listens_where_nobody_answered() {
        let started = |transport, peer: &str| {
            let peer = peer.to_owned();
            LinkError::Unanswered { transport, peer }.to_string()
        };
        for (transport, peer, command) in [
            (Transport::Tcp, "10.0.0.1:5647", "`loggap serve`"),
            (Transport::Tcp, "[::1]:7000", "`loggap serve -p 7000`"),
            (Transport::Udp, "10.0.0.1:7000", "`loggap serve --transport udp -p 7000`"),
            (Transport::Shm, "/tmp/s", "`loggap serve --transport shm --bind /tmp/s`"),
            (Transport::Unix, "/a b'c", r"`loggap serve --transport unix --bind '/a b'\''c'`"),
            (Transport::Eth, "eth1", "`loggap serve --transport eth --interface NAME`"),
        ] {
            let text = started(transport, peer);
            assert!(text.contains(command), "{text}");
        }
        let usual = Endpoint::default_for(Transport::Shm).unwrap().to_string();
        let text = started(Transport::Shm, &usual);
        assert!(text.contains("`loggap serve --transport shm`"), "{text}");
    }
}
