//! Endpoints, and connecting to them.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, error, fmt, io, thread};

use nix::net::if_::if_indextoname;
use nix::unistd::Uid;

use loggap_core::wire::ethernet::Address;

use super::{
    AnyLink, EthLink, LinkError, LinkSettings, ShmLink, TcpLink, UdpLink, UnixLink, VerbsLink,
    eth::{Shown, parse_address},
};

/// Default port of `loggap serve`, for TCP and UDP; LOGP on a telephone's keys.
pub const DEFAULT_PORT: u16 = 5647;

/// Transport of a link.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Transport {
    /// TCP over IPv4 or IPv6.
    Tcp,
    /// UDP over IPv4 or IPv6.
    Udp,
    /// A Unix stream socket.
    Unix,
    /// Memory shared by two processes of one machine.
    Shm,
    /// Raw Ethernet frames, without IP.
    Eth,
    /// RDMA verbs over InfiniBand or RoCE; the peer is addressed by host and port.
    Verbs,
}

impl Transport {
    /// Every transport.
    pub const ALL: [Self; 6] =
        [Self::Tcp, Self::Udp, Self::Unix, Self::Shm, Self::Eth, Self::Verbs];

    /// Transports between two processes of one machine that need no privileges.
    pub const LOCAL: [Self; 4] = [Self::Tcp, Self::Udp, Self::Unix, Self::Shm];

    /// Name on the command line and in profiles.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Unix => "unix",
            Self::Shm => "shm",
            Self::Eth => "eth",
            Self::Verbs => "verbs",
        }
    }

    /// The transport with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|transport| transport.name() == name)
    }

    /// True if peers are addressed by host and port.
    #[must_use]
    pub const fn is_internet(self) -> bool {
        matches!(self, Self::Tcp | Self::Udp | Self::Verbs)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Address to connect to or to listen on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Endpoint {
    /// A host name or address, and a port.
    Internet {
        /// Host name, IPv4 or IPv6 address, the latter without brackets.
        host: String,
        /// Port.
        port: u16,
    },
    /// Path of a Unix socket: of the link itself, or of the control socket of shared memory.
    Path(PathBuf),
    /// A station on an Ethernet.
    Station {
        /// Network interface of this machine.
        interface: String,
        /// Address of the other station; `None` for the first one that answers.
        peer: Option<Address>,
    },
}

/// `address`, with IPv4-mapped IPv6 addresses (`::ffff:10.0.0.1`) converted to IPv4.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(_) => address,
        v4 => SocketAddr::new(v4, address.port()),
    }
}

/// `address` as text; the scope of a link-local address is shown as the interface's name.
pub(crate) fn shown(address: SocketAddr) -> String {
    let name = |v6: SocketAddrV6| if_indextoname(v6.scope_id()).ok()?.into_string().ok();
    match canonical(address) {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => match name(v6) {
            Some(name) => format!("[{}%{name}]:{}", v6.ip(), v6.port()),
            None => v6.to_string(),
        },
        other => other.to_string(),
    }
}

/// Text that is no endpoint.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EndpointError {
    text: String,
    expected: &'static str,
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no endpoint; expected {}", self.text, self.expected)
    }
}

impl error::Error for EndpointError {}

impl Endpoint {
    /// Parses `HOST`, `HOST:PORT`, `[IPV6]:PORT` or a bare IPv6 address for transports that use
    /// them, `INTERFACE` or `INTERFACE/ADDRESS` for raw Ethernet, else a path. `port` is the
    /// default port.
    ///
    /// # Errors
    ///
    /// [`EndpointError`] with the text and the expected form.
    pub fn parse(transport: Transport, text: &str, port: u16) -> Result<Self, EndpointError> {
        let refused = |expected| EndpointError { text: text.to_owned(), expected };
        if transport == Transport::Eth {
            return station(text)
                .ok_or_else(|| refused("INTERFACE or INTERFACE/aa:bb:cc:dd:ee:ff"));
        }
        if !transport.is_internet() {
            return match text {
                "" => Err(refused("the path of a socket")),
                _ => Ok(Self::Path(PathBuf::from(text))),
            };
        }
        let forms = "HOST, HOST:PORT or [IPV6]:PORT with a port from 1 to 65535";
        let (host, port_text) = split_port(text).ok_or_else(|| refused(forms))?;
        let port = match port_text {
            None => port,
            Some(digits) => digits.parse().map_err(|_| refused(forms))?,
        };
        if host.is_empty() || port == 0 || (host.contains(':') && !is_ipv6(host)) {
            return Err(refused(forms));
        }
        // Link-local addresses are ambiguous without an interface.
        if host.parse().is_ok_and(|address: Ipv6Addr| address.is_unicast_link_local()) {
            return Err(refused(
                "its interface as well, such as fe80::1%eth0; `ip link` lists them",
            ));
        }
        Ok(Self::Internet { host: host.to_owned(), port })
    }

    /// True if `text`, which stands for a host, contains a port.
    #[must_use]
    pub fn names_port(text: &str) -> bool {
        split_port(text).is_some_and(|(_, port)| port.is_some())
    }

    /// Default endpoint of `serve` and its clients: all addresses and [`DEFAULT_PORT`], or a path
    /// private to this user. `None` for raw Ethernet, which needs an interface.
    pub(crate) fn default_for(transport: Transport) -> Option<Self> {
        if transport == Transport::Eth {
            return None;
        }
        if transport.is_internet() {
            return Some(Self::Internet { host: "::".to_owned(), port: DEFAULT_PORT });
        }
        let folder =
            env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
        Some(Self::Path(match folder {
            Some(folder) => folder.join(format!("loggap-{transport}.sock")),
            None => env::temp_dir().join(format!("loggap-{}-{transport}.sock", Uid::current())),
        }))
    }

    /// Addresses of an internet endpoint, resolved within `limit`.
    ///
    /// # Errors
    ///
    /// [`LinkError::Resolve`] if there is no address, if resolving takes too long, or if the
    /// endpoint is a path.
    pub fn addresses(&self, limit: Duration) -> Result<Vec<SocketAddr>, LinkError> {
        let failed = |source| LinkError::Resolve { host: self.to_string(), source };
        let Self::Internet { host, port } = self else {
            return Err(failed(io::ErrorKind::Unsupported.into()));
        };
        let (host, port) = (host.clone(), *port);
        // The system's resolver has no time limit, so it runs on a thread that is abandoned after
        // `limit`.
        let (answer, answered) = mpsc::channel();
        thread::spawn(move || {
            let addresses =
                (host.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
            let _nobody_waits = answer.send(addresses);
        });
        let addresses =
            answered.recv_timeout(limit).map_err(|_| failed(io::ErrorKind::TimedOut.into()))?;
        match addresses {
            Ok(addresses) if addresses.is_empty() => Err(failed(io::ErrorKind::NotFound.into())),
            Ok(addresses) => Ok(addresses),
            Err(source) => Err(failed(source)),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Internet { host, port } => write!(f, "{host}:{port}"),
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Station { interface, peer: None } => f.write_str(interface),
            Self::Station { interface, peer: Some(peer) } => {
                write!(f, "{interface}/{}", Shown(*peer))
            }
        }
    }
}

/// Parses an interface and, after a slash, the address of a station. Names of interfaces contain no
/// slash.
fn station(text: &str) -> Option<Endpoint> {
    let (interface, peer) = match text.split_once('/') {
        None => (text, None),
        Some((interface, address)) => (interface, Some(parse_address(address)?)),
    };
    let interface = interface.to_owned();
    (!interface.is_empty()).then_some(Endpoint::Station { interface, peer })
}

/// Splits into host and port; `None` for unbalanced brackets. More than one colon outside brackets
/// is an IPv6 address without a port.
fn split_port(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(bracketed) = text.strip_prefix('[') {
        let (host, rest) = bracketed.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None if rest.is_empty() => Some((host, None)),
            None => None,
        };
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => Some((host, Some(port))),
        _ => Some((text, None)),
    }
}

/// True if `host` is an IPv6 address, with or without the interface of link-local addresses.
fn is_ipv6(host: &str) -> bool {
    host.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

/// Connects to `endpoint`, trying its addresses in turn.
///
/// # Errors
///
/// The error of the last address, see [`LinkError`].
pub fn connect(
    transport: Transport,
    endpoint: &Endpoint,
    settings: LinkSettings,
) -> Result<AnyLink, LinkError> {
    match (transport, endpoint) {
        (Transport::Unix, Endpoint::Path(path)) => {
            UnixLink::connect(path, settings).map(AnyLink::Unix)
        }
        (Transport::Shm, Endpoint::Path(path)) => {
            ShmLink::connect(path, settings).map(AnyLink::Shm)
        }
        (Transport::Tcp, _) => first_that_connects(endpoint, settings, |address| {
            TcpLink::connect(address, settings).map(AnyLink::Tcp)
        }),
        (Transport::Udp, _) => {
            let addresses = endpoint.addresses(settings.limit)?;
            UdpLink::connect_first(&addresses, settings).map(AnyLink::Udp)
        }
        (Transport::Verbs, _) => first_that_connects(endpoint, settings, |address| {
            VerbsLink::connect(address, settings).map(Box::new).map(AnyLink::Verbs)
        }),
        (Transport::Eth, Endpoint::Station { interface, peer }) => {
            EthLink::open(interface, *peer, settings).map(AnyLink::Eth)
        }
        (Transport::Unix | Transport::Shm | Transport::Eth, _) => Err(LinkError::Connect {
            transport,
            peer: endpoint.to_string(),
            source: wrong_kind(transport),
        }),
    }
}

/// Error for an endpoint that `transport` cannot use.
pub(crate) fn wrong_kind(transport: Transport) -> io::Error {
    let needed = match transport {
        Transport::Eth => "this transport needs an interface",
        _ => "this transport needs a path",
    };
    io::Error::new(io::ErrorKind::InvalidInput, needed)
}

fn first_that_connects(
    endpoint: &Endpoint,
    settings: LinkSettings,
    try_one: impl Fn(SocketAddr) -> Result<AnyLink, LinkError>,
) -> Result<AnyLink, LinkError> {
    let mut last =
        LinkError::Resolve { host: endpoint.to_string(), source: io::ErrorKind::NotFound.into() };
    for address in endpoint.addresses(settings.limit)? {
        match try_one(address) {
            Ok(link) => return Ok(link),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn internet(text: &str) -> Result<(String, u16), EndpointError> {
        Endpoint::parse(Transport::Tcp, text, 7).map(|endpoint| match endpoint {
            Endpoint::Internet { host, port } => (host, port),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn a_link_local_address_is_shown_with_the_name_of_its_interface() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(shown(address("[fe80::1%1]:80")), "[fe80::1%lo]:80");
        assert_eq!(shown(address("[::ffff:10.0.0.1]:80")), "10.0.0.1:80");
    }

    #[test]
    fn hosts_come_with_and_without_port() {
        assert_eq!(internet("node3"), Ok(("node3".into(), 7)));
        assert_eq!(internet("node3:80"), Ok(("node3".into(), 80)));
        assert_eq!(internet("10.0.0.1:80"), Ok(("10.0.0.1".into(), 80)));
        assert_eq!(internet("::1"), Ok(("::1".into(), 7)));
        assert_eq!(internet("[::1]"), Ok(("::1".into(), 7)));
        assert_eq!(internet("[fe80::1%eth0]:80"), Ok(("fe80::1%eth0".into(), 80)));
    }

    #[test]
    fn a_link_local_address_needs_its_interface() {
        for text in ["fe80::1", "[fe80::1]:80", "febf::1"] {
            let error = internet(text).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("fe80::1%eth0"), "{error}");
        }
        assert!(internet("fe80::1%eth0").is_ok() && internet("fec0::1").is_ok());
    }

    #[test]
    fn a_port_behind_a_host_is_seen() {
        for (text, names) in
            [("node3", false), ("node3:80", true), ("::1", false), ("[::1]:80", true)]
        {
            assert_eq!(Endpoint::names_port(text), names, "{text}");
        }
    }

    #[test]
    fn what_names_no_host_is_refused_with_the_form() {
        let ports = ["", ":80", "node:", "node:0", "node:65536", "node:x"];
        let brackets = ["[::1", "[::1]80", "[]:80", "[::1]:", "a:b:c", "[a:b]:80", "1::2::3"];
        for text in ports.into_iter().chain(brackets) {
            let error = internet(text).unwrap_err().to_string();
            assert!(error.contains("HOST:PORT") && error.contains(text), "{error}");
        }
        assert!(Endpoint::parse(Transport::Unix, "", 7).is_err());
    }

    #[test]
    fn an_endpoint_prints_as_it_is_read() {
        for text in ["node3:80", "[::1]:80"] {
            assert_eq!(Endpoint::parse(Transport::Udp, text, 7).unwrap().to_string(), text);
        }
        let path = Endpoint::parse(Transport::Shm, "/tmp/a b", 7).unwrap();
        assert_eq!(path.to_string(), "/tmp/a b");
    }

    #[test]
    fn stations_come_with_and_without_address() {
        for text in ["eth0", "eth0/02:00:00:00:00:07"] {
            assert_eq!(Endpoint::parse(Transport::Eth, text, 7).unwrap().to_string(), text);
        }
        for text in ["", "/02:00:00:00:00:07", "eth0/", "eth0/ff:ff:ff:ff:ff:ff", "eth0/7"] {
            let error = Endpoint::parse(Transport::Eth, text, 7).unwrap_err().to_string();
            assert!(error.contains("INTERFACE"), "{error}");
        }
        assert_eq!(Endpoint::default_for(Transport::Eth), None);
    }

    #[test]
    fn transports_have_names_that_read_back() {
        for transport in Transport::ALL {
            assert_eq!(Transport::from_name(transport.name()), Some(transport));
        }
        assert_eq!(Transport::from_name("carrier-pigeon"), None);
    }

    #[test]
    fn a_name_without_address_is_an_error_in_time() {
        let endpoint = Endpoint::Internet { host: "does-not-exist.invalid".into(), port: 1 };
        let error = endpoint.addresses(Duration::from_secs(5)).unwrap_err().to_string();
        assert!(error.contains("does-not-exist.invalid"), "{error}");
    }
}
