//! Links to several processes as one.

use loggap_core::measure::{Link, LinkProperties};

use crate::link::{AnyLink, LinkError};

/// Links to several processes: a message is sent to one after the other, and is received when each
/// has sent one. A session over it times a scatter and the gathering of its answers. For links
/// without losses, whose processes answer alike.
#[derive(Debug)]
pub(super) struct Fan {
    links: Vec<AnyLink>,
    /// Index of the link whose message is awaited.
    awaited: usize,
}

impl Fan {
    /// Joins `links`, of which there is one at least.
    pub(super) const fn new(links: Vec<AnyLink>) -> Self {
        Self { links, awaited: 0 }
    }

    fn receive(
        &mut self,
        mut from: impl FnMut(&mut AnyLink) -> Result<Option<usize>, LinkError>,
    ) -> Result<Option<usize>, LinkError> {
        loop {
            let Some(link) = self.links.get_mut(self.awaited) else { return Ok(None) };
            let Some(length) = from(link)? else { return Ok(None) };
            self.awaited += 1;
            if self.awaited == self.links.len() {
                self.awaited = 0;
                return Ok(Some(length));
            }
        }
    }
}

impl Link for Fan {
    type Error = LinkError;

    fn properties(&self) -> LinkProperties {
        let first = self.links.first().map(|link| link.properties());
        first.unwrap_or(LinkProperties::reliable(loggap_core::units::Bytes(0)))
    }

    fn begin_session(&mut self) {
        self.links.iter_mut().for_each(|link| link.begin_session());
    }

    fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        self.links.iter_mut().try_for_each(|link| link.send(message))
    }

    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        self.receive(|link| link.poll_receive(buffer))
    }

    fn wait_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        self.receive(|link| link.wait_receive(buffer))
    }

    fn expect_send(&mut self, length: usize) {
        self.links.iter_mut().for_each(|link| link.expect_send(length));
    }

    fn discard(&mut self) -> Result<(), LinkError> {
        self.awaited = 0;
        self.links.iter_mut().try_for_each(|link| link.discard())
    }
}
