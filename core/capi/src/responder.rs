//! Responder that blocks until its session has ended.

use loggap_core::measure::{Ending, ServeError, ServeOptions, serve_with};
use loggap_core::wire::Bounds as CoreBounds;

use crate::arena::{Arena, LOGGAP_ALIGNMENT, Sizer};
use crate::boundary::{Place, input, optional};
use crate::link::{CheckedClock, CheckedLink, Clock, Link, LinkCode};
use crate::reason::Reason;
use crate::status::{Detail, Outcome, Status, finish};
use crate::wire::{Bounds, LOGGAP_FRAME_BYTES};

/// How a session ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum EndingKind {
    /// The initiator said goodbye.
    Goodbye = 0,
    /// The responder refused to continue, and told the initiator.
    Refused = 1,
}

/// Counts of one session.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Served {
    /// A `loggap_ending_kind`.
    pub ending: u32,
    /// Data messages received, stray ones included.
    pub received: u64,
    /// Data messages sent.
    pub replied: u64,
    /// Completed rounds.
    pub rounds: u64,
    /// Messages that belonged to no current round.
    pub strays: u64,
}

impl Served {
    pub(crate) fn from_core(served: &loggap_core::measure::Served, ending: Ending) -> Self {
        let ending = match ending {
            Ending::Goodbye => EndingKind::Goodbye,
            Ending::Refused(_) => EndingKind::Refused,
        };
        Self {
            ending: ending as u32,
            received: served.received,
            replied: served.replied,
            rounds: served.rounds,
            strays: served.strays,
        }
    }
}

/// Minimum memory of a responder, in bytes. Memory beyond that raises the
/// largest message that it accepts: `LOGGAP_SERVE_BYTES(size)` suffices for
/// messages of up to `size` bytes.
pub const LOGGAP_SERVE_BYTES_LEAST: usize = 448;

/// Size of the buffer, which incoming and outgoing messages share.
const fn buffer(largest: usize) -> Sizer {
    Sizer::new().array::<u8>(largest)
}

const _: () =
    assert!(buffer(LOGGAP_FRAME_BYTES).fits(LOGGAP_SERVE_BYTES_LEAST), "the constant is too small");

/// Bytes of memory that `loggap_serve` needs for messages of up to `largest` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_serve_bytes(largest: usize) -> usize {
    buffer(largest.max(LOGGAP_FRAME_BYTES)).bytes()
}

/// Serves one initiator on `link` until it says goodbye, is refused,
/// disconnects or falls silent. Messages are bounded by `max_message` and by
/// the memory, rounded down to a multiple of `LOGGAP_ALIGNMENT`; work and waits
/// for a peer are bounded by `bounds`, null for `loggap_bounds_default`.
/// Blocks, and keeps no pointer to lent memory. Takes about 1.4 KiB of stack on
/// a Cortex-M4F. `served` may be null.
///
/// `nonce` prevents strangers from directing replies at third parties: on a
/// link that may lose messages the responder sends only one frame per hello
/// until the initiator has echoed it. Pass an unpredictable number, a new one
/// for each call; 0 if the address of every peer is known to be genuine. Until
/// the session has ended the link sends to the address of the first hello, and
/// receives from no other.
///
/// Errors: `LOGGAP_STATUS_LINK`, `LOGGAP_STATUS_SILENT` (`needed` is the limit
/// in ps), `LOGGAP_STATUS_MEMORY`, `LOGGAP_STATUS_OPTION` (a link whose
/// messages are too small for a frame), `LOGGAP_STATUS_NULL`,
/// `LOGGAP_STATUS_ALIGNMENT`. After an error of the link or silence, close the
/// link.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_serve(
    clock: *const Clock,
    link: *const Link,
    bounds: *const Bounds,
    nonce: u64,
    memory: *mut u8,
    bytes: usize,
    served: *mut Served,
    detail: *mut Detail,
) -> i32 {
    let run = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::optional(served) }?;
        // SAFETY: by the contract of this function.
        let Lent { clock, mut link, bounds } = unsafe { Lent::checked(clock, link, bounds) }?;
        // SAFETY: by the contract of this function.
        let mut arena = unsafe { Arena::new(memory, bytes, buffer(LOGGAP_FRAME_BYTES)) }?;
        let options = ServeOptions { bounds, nonce, description: [] };
        let buffer = arena.array(bytes / LOGGAP_ALIGNMENT * LOGGAP_ALIGNMENT)?;
        let ended = serve_with(&clock, &mut link, buffer, options);
        let (counts, ending) = ended.map_err(failure)?;
        place.put(Served::from_core(&counts, ending));
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(run(), detail) }
}

/// Checked arguments of a call.
struct Lent {
    clock: CheckedClock,
    link: CheckedLink,
    bounds: CoreBounds,
}

impl Lent {
    /// # Safety
    ///
    /// As [`input`] and [`optional`].
    // Out of line, so that its stack frame is gone during a session.
    #[inline(never)]
    unsafe fn checked(
        clock: *const Clock,
        link: *const Link,
        bounds: *const Bounds,
    ) -> Outcome<Self> {
        // SAFETY: by the contract.
        let clock = unsafe { input(clock) }?.checked()?;
        // SAFETY: by the contract.
        let link = unsafe { input(link) }?.checked()?;
        // SAFETY: by the contract.
        let bounds = unsafe { optional(bounds) }?;
        let bounds = bounds.map_or_else(CoreBounds::default, |bounds| bounds.to_core());
        Ok(Self { clock, link, bounds })
    }
}

fn failure(error: ServeError<LinkCode>) -> Detail {
    match error {
        ServeError::Link(code) => code.failure(),
        ServeError::Silent(limit) => Detail::of(Status::Silent).needed(limit.0),
        ServeError::TooSmall { needed, lent } => {
            let reason = Reason::SmallMessages;
            Detail::because(Status::Option, reason).needed(needed as u64).found(lent as u64)
        }
    }
}
