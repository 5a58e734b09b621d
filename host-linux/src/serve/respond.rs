//! Responding end of a link.

use std::time::Duration;

use loggap_core::measure::{Ending, ServeError, ServeOptions, Served, serve_with};
use loggap_core::units::Picos;
use loggap_core::wire::{Bounds, FRAME_LEN};
use nix::poll::PollFlags;

use crate::link::{AnyLink, HostLink, LinkError, LinkVisitor, Queued, wait_bounded};
use crate::machine::clock::{Deadline, HostClock};

/// Result of a session: its counts and how it ended, or the error.
pub type Session = Result<(Served, Ending), ServeError<LinkError>>;

/// Serves one initiator on `link`, within `bounds`, until it leaves. Allocates `bounds.message`
/// bytes. The listener has verified the initiator's address. `description` is the text that the
/// initiator may read about this end; see [`crate::serve::description`].
///
/// # Errors
///
/// [`ServeError`] if the initiator is gone, silent for too long or violates the protocol.
pub fn respond(clock: &HostClock, link: AnyLink, bounds: Bounds, description: &str) -> Session {
    link.visit(Respond { clock, bounds, description })
}

/// A responder without its link.
struct Respond<'a> {
    clock: &'a HostClock,
    bounds: Bounds,
    description: &'a str,
}

impl LinkVisitor for Respond<'_> {
    type Output = Session;

    fn visit<L: HostLink>(self, mut link: L) -> Session {
        let Self { clock, bounds, description } = self;
        if link.properties().one_sided {
            return stay(link, bounds.session);
        }
        let length = usize::try_from(bounds.message).unwrap_or(usize::MAX).max(FRAME_LEN);
        let options = ServeOptions { bounds, nonce: 0, description: description.as_bytes() };
        serve_with(clock, &mut link, &mut present_bytes(length), options)
    }
}

/// Waits for the end of a session in which this end takes no part, for at most `longest`.
fn stay(mut link: impl HostLink, longest: Picos) -> Session {
    let limit = Duration::from_nanos(longest.0 / 1_000);
    let deadline = Deadline::after(limit);
    loop {
        let peer = link.peer().to_owned();
        let error = match link.look_while_queued() {
            Queued::Gone => return Ok((Served::default(), Ending::Goodbye)),
            Queued::Flooding | Queued::Foreign => LinkError::Broken { peer, what: "sends data" },
            _ if deadline.expired() => LinkError::Stuck { peer, limit },
            _ => match wait_bounded(link.as_fd(), PollFlags::POLLIN) {
                Ok(()) => continue,
                Err(source) => LinkError::from_io(&peer, "poll", source),
            },
        };
        return Err(ServeError::Link(error));
    }
}

/// Buffer whose pages are all resident, so that no page fault falls into a measurement. Zeroed
/// memory would get its pages only at the first write.
#[must_use]
pub fn present_bytes(length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    bytes.resize(length, 1);
    bytes
}
