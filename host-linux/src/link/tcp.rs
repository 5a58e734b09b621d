//! TCP link, always without Nagle's algorithm.

use std::net::{SocketAddr, TcpStream};

use nix::sys::socket::{getsockopt, setsockopt, sockopt};

use super::{LinkError, LinkFingerprint, LinkSettings, StreamLink, StreamSocket, Transport, shown};

/// Link over TCP.
pub type TcpLink = StreamLink<TcpStream>;

impl StreamSocket for TcpStream {
    const TRANSPORT: Transport = Transport::Tcp;

    fn describe(&self, basic: LinkFingerprint) -> LinkFingerprint {
        let congestion = getsockopt(self, sockopt::TcpCongestion).ok();
        let segment = getsockopt(self, sockopt::TcpMaxSeg).ok();
        LinkFingerprint {
            congestion_control: congestion.and_then(|name| name.into_string().ok()),
            segment_bytes: segment.map(u64::from),
            ..basic.with_interface(self.local_addr().ok(), self.peer_addr().ok())
        }
    }
}

impl TcpLink {
    /// Connects to `address`.
    ///
    /// # Errors
    ///
    /// [`LinkError::Connect`] if the peer does not accept within the limit of `settings`,
    /// [`LinkError::Option`] if `TCP_NODELAY` is not applied.
    pub fn connect(address: SocketAddr, settings: LinkSettings) -> Result<Self, LinkError> {
        let stream = TcpStream::connect_timeout(&address, settings.limit).map_err(|source| {
            LinkError::Connect { transport: Transport::Tcp, peer: shown(address), source }
        })?;
        Self::from_stream(stream, settings)
    }

    /// Link over a connected stream.
    ///
    /// # Errors
    ///
    /// [`LinkError::Option`] if `TCP_NODELAY` is not applied, else [`LinkError::System`] or
    /// [`LinkError::Closed`].
    pub fn from_stream(stream: TcpStream, settings: LinkSettings) -> Result<Self, LinkError> {
        let address = stream
            .peer_addr()
            .map_err(|error| LinkError::from_io("TCP peer", "getpeername", error))?;
        let peer = shown(address);
        let failed =
            |action| move |source| LinkError::from_io(&address.to_string(), action, source);
        stream.set_nonblocking(true).map_err(failed("setting O_NONBLOCK"))?;
        require_nodelay(&stream).map_err(failed("setting TCP_NODELAY"))??;
        Ok(Self::over(stream, peer, settings))
    }
}

/// Switches Nagle's algorithm off and reads the option back. The algorithm holds small messages
/// back until an acknowledgement arrives, which the peer may delay by 40 ms.
fn require_nodelay(stream: &TcpStream) -> std::io::Result<Result<(), LinkError>> {
    setsockopt(stream, sockopt::TcpNoDelay, &true)?;
    let kept = getsockopt(stream, sockopt::TcpNoDelay)?;
    Ok(if kept { Ok(()) } else { Err(LinkError::Option { option: "TCP_NODELAY" }) })
}
