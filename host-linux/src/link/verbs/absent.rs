//! Stub of the link for builds without the feature `verbs`.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use loggap_core::measure::{Link, LinkProperties};

use super::error::VerbsError;
use super::record::VerbsPort;
use crate::link::{HostLink, LinkError, LinkFingerprint, LinkSettings, Queued, Transport};

/// Length of an offer; unused.
pub(crate) const OFFER: usize = 1;

/// False: offers are not recognised.
pub(crate) const fn begins_an_offer(_: &[u8]) -> bool {
    false
}

/// RDMA verbs link; without the feature there are none.
#[derive(Debug)]
pub enum VerbsLink {}

impl VerbsLink {
    /// Fails with a message that says how to build with RDMA verbs.
    ///
    /// # Errors
    ///
    /// Always [`VerbsError::NotBuilt`].
    pub fn connect(_: SocketAddr, _: LinkSettings) -> Result<Self, LinkError> {
        Err(VerbsError::NotBuilt.into())
    }

    /// As [`VerbsLink::connect`].
    ///
    /// # Errors
    ///
    /// Always [`VerbsError::NotBuilt`].
    pub fn connect_over(_: TcpStream, _: String, _: LinkSettings) -> Result<Self, LinkError> {
        Err(VerbsError::NotBuilt.into())
    }

    /// As [`VerbsLink::connect`].
    ///
    /// # Errors
    ///
    /// Always [`VerbsError::NotBuilt`].
    pub fn answer_over(_: TcpStream, _: String, _: LinkSettings) -> Result<Self, LinkError> {
        Err(VerbsError::NotBuilt.into())
    }

    /// As [`VerbsLink::connect`].
    ///
    /// # Errors
    ///
    /// Always [`VerbsError::NotBuilt`].
    pub fn look_at_port(_: LinkSettings) -> Result<VerbsPort, LinkError> {
        Err(VerbsError::NotBuilt.into())
    }

    pub(crate) const fn refuse(_: &TcpStream, _: &str) {}

    pub(crate) fn answer(
        _: TcpStream,
        _: &[u8; OFFER],
        _: String,
        _: LinkSettings,
    ) -> Result<Self, LinkError> {
        Err(VerbsError::NotBuilt.into())
    }

    /// This link with another name for its peer in errors.
    #[must_use]
    pub fn named(self, _: String) -> Self {
        match self {}
    }
}

impl AsFd for VerbsLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}

impl HostLink for VerbsLink {
    fn transport(&self) -> Transport {
        match *self {}
    }

    fn peer(&self) -> &str {
        match *self {}
    }

    fn fingerprint(&self) -> LinkFingerprint {
        match *self {}
    }

    fn send_at_once(&mut self, _: &[u8]) -> bool {
        match *self {}
    }

    fn look_while_queued(&mut self) -> Queued {
        match *self {}
    }
}

impl Link for VerbsLink {
    type Error = LinkError;

    fn properties(&self) -> LinkProperties {
        match *self {}
    }

    fn begin_session(&mut self) {
        match *self {}
    }

    fn send(&mut self, _: &[u8]) -> Result<(), LinkError> {
        match *self {}
    }

    fn poll_receive(&mut self, _: &mut [u8]) -> Result<Option<usize>, LinkError> {
        match *self {}
    }

    fn discard(&mut self) -> Result<(), LinkError> {
        match *self {}
    }
}
