//! Unix stream sockets.

use std::os::unix::net::UnixStream;
use std::path::Path;

use super::{LinkError, LinkSettings, StreamLink, Transport};

/// Messages over a Unix stream socket.
pub type UnixLink = StreamLink<UnixStream>;

impl UnixLink {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    ///
    /// [`LinkError::Connect`] when nobody listens there.
    pub fn connect(path: &Path, settings: LinkSettings) -> Result<Self, LinkError> {
        let peer = path.display().to_string();
        let stream = UnixStream::connect(path).map_err(|source| LinkError::Connect {
            transport: Transport::Unix,
            peer: peer.clone(),
            source,
        })?;
        Self::from_stream(stream, peer, settings)
    }

    /// Takes over a connected stream; `peer` names it in errors.
    ///
    /// # Errors
    ///
    /// [`LinkError::System`] when it cannot be made non-blocking.
    pub fn from_stream(
        stream: UnixStream,
        peer: String,
        settings: LinkSettings,
    ) -> Result<Self, LinkError> {
        stream
            .set_nonblocking(true)
            .map_err(|error| LinkError::from_io(&peer, "setting O_NONBLOCK", error))?;
        Ok(Self::over(stream, peer, settings))
    }

    /// Two connected ends, for this process and one it starts.
    ///
    /// # Errors
    ///
    /// [`LinkError::System`] when the system has no more sockets.
    pub fn pair(settings: LinkSettings) -> Result<(Self, Self), LinkError> {
        let (near, far) = UnixStream::pair()
            .map_err(|error| LinkError::from_io("socket pair", "socketpair", error))?;
        let end = |stream| Self::from_stream(stream, "socket pair".to_owned(), settings);
        Ok((end(near)?, end(far)?))
    }
}
