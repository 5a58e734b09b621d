//! Both ends of the link, as far as a measurement has to know them.

use std::ops::RangeInclusive;

use loggap_core::measure::{Link, SessionError};

use crate::cli::CliError;
use crate::link::{LinkError, Waiting};
use crate::machine::buffer::Alignment;
use crate::machine::clock::HostClock;
use crate::machine::disturbance::Disturbance;
use crate::machine::environment::LinkFingerprint;
use crate::machine::placement::Placement;
use crate::machine::warning::Warning;
use crate::measure::{Observer, Run};
use crate::profile::ChangeRecord;

/// Opens the links of a run, and its other ends where this program starts
/// them.
pub trait Ends {
    /// What carries the messages.
    type Link: Link<Error = LinkError>;

    /// A fresh link for the next launch. The first also says where this end
    /// runs.
    ///
    /// # Errors
    ///
    /// Nobody answers there, or what was asked for cannot be had.
    fn open(&mut self, clock: &HostClock) -> Result<Self::Link, CliError>;

    /// Measures over `link` until the next launch is due: [`Run::launch`] for
    /// the link's own type, so that its own code is timed.
    ///
    /// # Errors
    ///
    /// Those of the session.
    fn launch(
        &mut self,
        run: &mut Run<'_, HostClock>,
        link: Self::Link,
        observer: &mut impl Observer,
    ) -> Result<(), SessionError<LinkError>> {
        run.launch(link, observer)
    }

    /// Lets the other end go, after the link has been dropped. Says if it
    /// failed.
    fn close(&mut self) -> Option<CliError>;

    /// Notes what has disturbed the other end.
    fn note_disturbance(&self, _disturbance: &mut Disturbance) {}

    /// Where the ends run on this machine; one processor for both where only
    /// this end runs here.
    fn placement(&self) -> Option<Placement>;

    /// What numbers of `link` depend on.
    fn fingerprint(&self, link: &Self::Link) -> LinkFingerprint;

    /// Place of this end's buffers in their pages.
    fn alignment(&self) -> Alignment {
        Alignment::default()
    }

    /// How this end waits for messages.
    fn waiting(&self) -> Waiting;

    /// Settings of the transport that move its changes of protocol.
    fn limits(&self) -> Vec<ProtocolLimit> {
        Vec::new()
    }

    /// What is to be said about both ends.
    fn take_warnings(&mut self) -> Vec<Warning>;
}

/// A setting of a transport that decides from which size on messages go by
/// another protocol.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProtocolLimit {
    /// The setting and its value, as it is shown.
    pub setting: String,
    /// The first size of the new protocol, in bytes, as far as the setting
    /// tells: what the transport adds to a message counts as well.
    pub first_bytes: RangeInclusive<u64>,
}

impl ProtocolLimit {
    /// Whether `change` may come of it.
    pub(super) fn explains(&self, change: &ChangeRecord) -> bool {
        change.lo_bytes <= *self.first_bytes.end() && *self.first_bytes.start() <= change.hi_bytes
    }
}
