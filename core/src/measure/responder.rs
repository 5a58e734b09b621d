//! The responder: a [`Mirror`] driven over a [`Link`].

use core::fmt;

use super::exchange::fill;
use super::{Action, Buffers, Clock, Ending, Link, Mirror, Served, Watch};
use crate::units::Picos;
use crate::wire::{Bounds, FRAME_LEN};

/// Why a session was not served to its end. The link should be closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServeError<E> {
    /// The link failed, or the initiator is gone.
    Link(E),
    /// The initiator was silent for this long.
    Silent(Picos),
    /// A lent buffer or the link does not take a control frame.
    TooSmall {
        /// Bytes that are needed.
        needed: usize,
        /// Bytes that there are.
        lent: usize,
    },
}

impl<E: fmt::Display> fmt::Display for ServeError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(error) => write!(f, "the link failed: {error}"),
            Self::Silent(limit) => write!(f, "the initiator was silent for {limit}"),
            Self::TooSmall { needed, lent } => {
                write!(f, "{needed} bytes are needed for a control frame, there are {lent}")
            }
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for ServeError<E> {}

/// Serves one initiator on `link` until it says goodbye, is refused, goes
/// away or falls silent. Whatever arrives, at most `bounds` is done for it:
/// messages up to their size, for at most their session's time.
///
/// # Errors
///
/// [`ServeError`]; the counts of a failed session are lost.
pub fn serve<C: Clock, L: Link>(
    clock: &C,
    link: &mut L,
    buffers: Buffers<'_>,
    bounds: Bounds,
) -> Result<(Served, Ending), ServeError<L::Error>> {
    let properties = link.properties();
    let Buffers { outgoing, incoming } = buffers;
    let largest = usize::try_from(properties.max_message.0).unwrap_or(usize::MAX);
    let largest = largest.min(outgoing.len()).min(incoming.len());
    if largest < FRAME_LEN {
        return Err(ServeError::TooSmall { needed: FRAME_LEN, lent: largest });
    }
    let bounds = bounds.with_message_at_most(crate::units::Bytes(largest as u64));
    let datagrams = !properties.reliable;
    fill(outgoing);
    let mut mirror = Mirror::new(bounds, properties);
    let mut watch = Watch::default();
    loop {
        wait(clock, mirror.pause());
        let window = if datagrams { incoming.len() } else { mirror.expected() };
        let window = incoming.get_mut(..window).unwrap_or_default();
        let deadline = mirror.deadline(clock);
        let timed = mirror.is_timed();
        let arrived = watch.receive(clock, link, window, deadline).map_err(ServeError::Link)?;
        if timed {
            let ticks = clock.now().saturating_sub(deadline.since);
            mirror.handle_timed(super::without_reading(clock, ticks));
        }
        let Some(length) = arrived else {
            if mirror.handle_silence() {
                return Err(ServeError::Silent(mirror.agreed().silence));
            }
            continue;
        };
        let message = window.get(..length).unwrap_or_default();
        let now = clock.duration(deadline.since);
        let action = mirror.handle(now, message, outgoing);
        if let Some(ending) = perform(link, &mut mirror, outgoing, action)? {
            return Ok((*mirror.served(), ending));
        }
    }
}

/// Sends what `action` says; the ending, if the session is over.
#[inline]
fn perform<L: Link>(
    link: &mut L,
    mirror: &mut Mirror,
    outgoing: &mut [u8],
    action: Action,
) -> Result<Option<Ending>, ServeError<L::Error>> {
    let (Action::Send(length) | Action::SendMore(length) | Action::End(length, _)) = action else {
        return Ok(None);
    };
    if length > 0 {
        let message = outgoing.get(..length).unwrap_or_default();
        link.send(message).map_err(ServeError::Link)?;
    }
    match action {
        Action::SendMore(_) => {
            // The report overwrites the front of the buffer that data messages are sent from.
            if let Some(length) = mirror.poll_more(outgoing) {
                link.send(outgoing.get(..length).unwrap_or_default()).map_err(ServeError::Link)?;
            }
            Ok(None)
        }
        Action::End(_, ending) => Ok(Some(ending)),
        _ => Ok(None),
    }
}

/// Busy-waits for `pause`.
fn wait<C: Clock>(clock: &C, pause: Picos) {
    if pause == Picos::ZERO {
        return;
    }
    let since = clock.now();
    let ticks = clock.ticks(pause);
    while clock.now().saturating_sub(since) < ticks {}
}
