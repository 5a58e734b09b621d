//! Responding end of a link.

use std::time::Duration;

use loggap_core::measure::{Ending, Link, ServeError, ServeOptions, Served, serve_with};
use loggap_core::wire::{Bounds, FRAME_LEN};

use crate::link::{AnyLink, LinkError, VerbsLink};
use crate::machine::clock::HostClock;

/// Result of a session: its counts and how it ended, or the error.
pub type Session = Result<(Served, Ending), ServeError<LinkError>>;

/// Serves one initiator on `link`, within `bounds`, until it leaves. Allocates `bounds.message`
/// bytes. The listener has verified the initiator's address. `description` is the text that the
/// initiator may read about this end; see [`crate::serve::description`].
///
/// # Errors
///
/// [`ServeError`] if the initiator is gone, silent for too long or violates the protocol.
pub fn respond(
    clock: &HostClock,
    link: &mut AnyLink,
    bounds: Bounds,
    description: &str,
) -> Session {
    let options = ServeOptions { bounds, nonce: 0, description: description.as_bytes() };
    match link {
        AnyLink::Tcp(link) => respond_on(clock, link, options),
        AnyLink::Udp(link) => respond_on(clock, link, options),
        AnyLink::Unix(link) => respond_on(clock, link, options),
        AnyLink::Shm(link) => respond_on(clock, link, options),
        AnyLink::Eth(link) => respond_on(clock, link, options),
        AnyLink::Verbs(link) if link.is_read_from() => stay(link, bounds),
        AnyLink::Verbs(link) => respond_on(clock, &mut **link, options),
    }
}

/// Waits for the end of the session: an initiator that uses RDMA reads needs no responder.
fn stay(link: &mut VerbsLink, bounds: Bounds) -> Session {
    let limit = Duration::from_nanos(bounds.session.0 / 1_000);
    link.wait_until_closed(limit).map_err(ServeError::Link)?;
    Ok((Served::default(), Ending::Goodbye))
}

fn respond_on<L: Link<Error = LinkError>>(
    clock: &HostClock,
    link: &mut L,
    options: ServeOptions<&[u8]>,
) -> Session {
    let length = usize::try_from(options.bounds.message).unwrap_or(usize::MAX).max(FRAME_LEN);
    serve_with(clock, link, &mut present_bytes(length), options)
}

/// Buffer whose pages are all resident, so that no page fault falls into a measurement. Zeroed
/// memory would get its pages only at the first write.
#[must_use]
pub fn present_bytes(length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    bytes.resize(length, 1);
    bytes
}
