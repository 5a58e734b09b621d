//! Why a link failed, with the peer's name and what to try.

use std::io;
use std::time::Duration;

use thiserror::Error;

use super::{DEFAULT_PORT, Endpoint, Transport, VerbsError};

/// Why a link could not be made or has failed. Only after
/// [`TooLong`](Self::TooLong) is the link still usable.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The host name has no address, or none in time.
    #[error("no address for '{host}' ({source}); check the name, or give an address")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// No connection could be made.
    #[error("{}", no_connection(*transport, peer, source))]
    Connect {
        /// What was to carry the messages.
        transport: Transport,
        /// Address or path.
        peer: String,
        /// What the system said.
        source: io::Error,
    },
    /// Nobody has ever answered there.
    #[error("{}", unanswered(*transport, peer))]
    Unanswered {
        /// What carries the messages.
        transport: Transport,
        /// Address, path or interface.
        peer: String,
    },
    /// A network interface cannot be used for raw Ethernet.
    #[error("{}", interface_error(interface, source))]
    Interface {
        /// Its name.
        interface: String,
        /// What the system said.
        source: io::Error,
    },
    /// The peer closed the connection or its process ended.
    #[error("{peer} closed the connection; see what its side printed, then try again")]
    Closed {
        /// Address, path or process.
        peer: String,
    },
    /// The peer took no byte for the link's time limit.
    #[error("{peer} took no byte for {} s; it is stopped or the network is cut", limit.as_secs_f64())]
    Stuck {
        /// Address, path or process.
        peer: String,
        /// The limit.
        limit: Duration,
    },
    /// The message is longer than the link takes. Nothing was sent.
    #[error(
        "a message of {length} bytes is over the {longest} bytes of this link; use smaller sizes"
    )]
    TooLong {
        /// Length of the message in bytes.
        length: usize,
        /// The longest in bytes.
        longest: u64,
    },
    /// A message arrived that is longer than the buffer lent for it.
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
    /// A socket option that the measurement depends on was not kept.
    #[error("the system did not keep {option}; results would be wrong, so none are taken")]
    Option {
        /// Its name.
        option: &'static str,
    },
    /// The peer does not keep to the rules of the link.
    #[error("{peer} {what}; use the same version on both ends")]
    Broken {
        /// Address, path or process.
        peer: String,
        /// What it did.
        what: &'static str,
    },
    /// Something of RDMA verbs.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// The system refused a call.
    #[error("{peer}: {action} failed: {source}")]
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

fn unanswered(transport: Transport, peer: &str) -> String {
    let command = serve_command(transport, peer);
    match transport {
        Transport::Eth => format!("no answer from {peer}: start `{command}` at the other end"),
        _ => format!("nobody answers at {peer}: start `{command}` there"),
    }
}

/// The command that listens at `peer`, as a shell reads it.
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

/// A word of a command line, in quotation marks where it needs them.
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
