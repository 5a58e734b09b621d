//! Stub of the link for builds without the feature `verbs`.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use loggap_core::measure::{Link, LinkProperties};

use super::error::VerbsError;
use super::record::{CallTimes, VerbsPort, VerbsRecord};
use crate::link::{LinkError, LinkSettings, Queued};
use crate::machine::clock::HostClock;

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

    /// The peer's address or process.
    #[must_use]
    pub const fn peer(&self) -> &str {
        match *self {}
    }

    /// This link with another name for its peer in errors.
    #[must_use]
    pub fn named(self, _: String) -> Self {
        match self {}
    }

    /// The link's entry in a profile.
    #[must_use]
    pub const fn record(&self) -> &VerbsRecord {
        match *self {}
    }

    pub(crate) fn time_calls(&mut self, _: HostClock) {
        match *self {}
    }

    pub(crate) fn take_call_times(&mut self, _: u32) -> Option<CallTimes> {
        match *self {}
    }

    /// True if this end is a responder whose memory is only read by the initiator.
    #[must_use]
    pub const fn is_read_from(&self) -> bool {
        match *self {}
    }

    /// Waits until the peer has left.
    ///
    /// # Errors
    ///
    /// None.
    pub fn wait_until_closed(&mut self, _: Duration) -> Result<(), LinkError> {
        match *self {}
    }

    pub(crate) fn send_at_once(&mut self, _: &[u8]) -> bool {
        match *self {}
    }

    pub(crate) fn look_while_queued(&self) -> Queued {
        match *self {}
    }
}

impl AsFd for VerbsLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
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
