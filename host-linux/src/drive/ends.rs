//! Interface of a measurement to the ends of its link.

use std::ops::RangeInclusive;

use loggap_core::measure::{LinkProperties, SessionError};

use super::{Observer, Run};
use crate::link::{LinkError, LinkFingerprint, Waiting};
use crate::machine::buffer::Alignment;
use crate::machine::clock::HostClock;
use crate::machine::placement::Placement;
use crate::machine::warning::Warning;
use crate::terminal::CliError;

/// Opens the links of a run, and starts responders if they run on this machine.
pub trait Ends {
    /// Type of the links.
    type Link;

    /// Opens a new link for the next launch. The first call also chooses this end's processor.
    ///
    /// # Errors
    ///
    /// [`CliError`] if the peer does not answer, or a requested option is not available.
    fn open(&mut self, clock: &HostClock) -> Result<Self::Link, CliError>;

    /// Measures over `link` until the next launch is due, by [`Run::launch`] for the link's
    /// concrete type, so that its timed code is not dispatched.
    ///
    /// # Errors
    ///
    /// Session errors.
    fn launch(
        &mut self,
        run: &mut Run<'_, HostClock>,
        link: Self::Link,
        observer: &mut Observer<'_>,
    ) -> Result<(), SessionError<LinkError>>;

    /// Ends the responder after the link has been dropped; returns its error, if it failed.
    fn close(&mut self) -> Option<CliError>;

    /// Process number of the responder, if it runs on this machine.
    fn responder(&self) -> Option<u32> {
        None
    }

    /// Processors of the ends on this machine; both fields are equal if only this end runs here.
    fn placement(&self) -> Option<Placement>;

    /// Properties of `link` that the plan depends on.
    fn properties(&self, link: &Self::Link) -> LinkProperties;

    /// Properties of `link` that numbers depend on.
    fn fingerprint(&self, link: &Self::Link) -> LinkFingerprint;

    /// Alignment of this end's buffers.
    fn alignment(&self) -> Alignment {
        Alignment::default()
    }

    /// Way of waiting for messages at this end.
    fn waiting(&self) -> Waiting;

    /// True if the responder may accept fewer connections than launches, as `serve --once` does.
    /// False if this program starts it: a refusal is then a failure.
    fn may_refuse(&self) -> bool {
        true
    }

    /// Settings of the transport that determine its changes of protocol.
    fn limits(&self) -> Vec<ProtocolLimit> {
        Vec::new()
    }

    /// Takes the warnings about both ends.
    fn take_warnings(&mut self) -> Vec<Warning>;
}

/// A setting of a transport that determines the size at which its protocol changes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProtocolLimit {
    /// Setting with its value, for reports.
    pub setting: String,
    /// First size of the new protocol, bytes; a range, as the transport's own headers may count as
    /// well.
    pub first_bytes: RangeInclusive<u64>,
}
