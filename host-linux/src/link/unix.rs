//! Unix stream socket link.

use std::os::unix::net::UnixStream;
use std::path::Path;

use super::{LinkError, LinkSettings, StreamLink, StreamSocket, Transport};

/// Link over a Unix stream socket.
pub type UnixLink = StreamLink<UnixStream>;

impl StreamSocket for UnixStream {
    const TRANSPORT: Transport = Transport::Unix;
}

impl UnixLink {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    ///
    /// [`LinkError::Connect`] if no process listens there.
    pub fn connect(path: &Path, settings: LinkSettings) -> Result<Self, LinkError> {
        let peer = path.display().to_string();
        let stream = UnixStream::connect(path).map_err(|source| LinkError::Connect {
            transport: Transport::Unix,
            peer: peer.clone(),
            source,
        })?;
        Self::from_stream(stream, peer, settings)
    }

    /// Link over a connected stream; `peer` is its name in errors.
    ///
    /// # Errors
    ///
    /// [`LinkError::System`] if the stream cannot be made non-blocking.
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

    /// A connected pair of links, for this process and a child process.
    ///
    /// # Errors
    ///
    /// [`LinkError::System`] if no socket can be created.
    pub fn pair(settings: LinkSettings) -> Result<(Self, Self), LinkError> {
        let (near, far) = UnixStream::pair()
            .map_err(|error| LinkError::from_io("socket pair", "socketpair", error))?;
        let end = |stream| Self::from_stream(stream, "socket pair".to_owned(), settings);
        Ok((end(near)?, end(far)?))
    }
}
