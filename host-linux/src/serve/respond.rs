//! The responding end of a link.

use std::time::Duration;

use loggap_core::measure::{Ending, Link, ServeError, ServeOptions, Served, serve_with};
use loggap_core::wire::{Bounds, FRAME_LEN};

use crate::link::{AnyLink, LinkError, VerbsLink};
use crate::machine::clock::HostClock;

/// What came of one session: its counts and how it ended, or why it failed.
pub type Session = Result<(Served, Ending), ServeError<LinkError>>;

/// Serves one initiator on `link`, within `bounds`, and returns when it has
/// left. The memory it takes is `bounds.message`. The initiator is known to be
/// at its address: its listener has seen to it. `description` is what it gets
/// to read about this end; see [`crate::serve::description`].
///
/// # Errors
///
/// [`ServeError`] when the initiator is gone, is silent too long or does not
/// speak the protocol.
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

/// An initiator that reads this end's memory needs nobody here.
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

/// A buffer whose every page is present, so that no page fault falls into a
/// measurement: fresh zeroed memory would be given page by page when first
/// written.
#[must_use]
pub fn present_bytes(length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    bytes.resize(length, 1);
    bytes
}
