//! The responding end of a link.

use loggap_core::measure::{Ending, Link, ServeError, Served, serve};
use loggap_core::wire::{Bounds, FRAME_LEN};

use crate::clock::HostClock;
use crate::link::{AnyLink, LinkError};

/// What came of one session: its counts and how it ended, or why it failed.
pub type Session = Result<(Served, Ending), ServeError<LinkError>>;

/// Serves one initiator on `link`, within `bounds`, and returns when it has
/// left. The memory it takes is `bounds.message`.
///
/// # Errors
///
/// [`ServeError`] when the initiator is gone, is silent too long or does not
/// speak the protocol.
pub fn respond(clock: &HostClock, link: &mut AnyLink, bounds: Bounds) -> Session {
    match link {
        AnyLink::Tcp(link) => respond_on(clock, link, bounds),
        AnyLink::Udp(link) => respond_on(clock, link, bounds),
        AnyLink::Unix(link) => respond_on(clock, link, bounds),
        AnyLink::Shm(link) => respond_on(clock, link, bounds),
        AnyLink::Eth(link) => respond_on(clock, link, bounds),
    }
}

fn respond_on<L: Link<Error = LinkError>>(
    clock: &HostClock,
    link: &mut L,
    bounds: Bounds,
) -> Session {
    let length = usize::try_from(bounds.message).unwrap_or(usize::MAX).max(FRAME_LEN);
    serve(clock, link, &mut present_bytes(length), bounds)
}

/// A buffer whose every page is present, so that no page fault falls into a
/// measurement: fresh zeroed memory would be given page by page when first
/// written.
#[must_use]
pub fn present_bytes(length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    bytes.resize(length, 1);
    bytes
}
