//! Responder without I/O, for interrupt handlers and event loops.

use loggap_core::measure::{Awaited, Ending, LinkProperties, ResponderState as CoreState};
use loggap_core::units::{Bytes, Picos};
use loggap_core::wire::Bounds as CoreBounds;

use crate::arena::{Arena, LOGGAP_ALIGNMENT, Sizer};
use crate::boundary::{Place, optional, slice};
use crate::object::{Marked, Object};
use crate::reason::Reason;
use crate::responder::Served;
use crate::status::{Detail, Outcome, Status, finish};
use crate::wire::{Bounds, LOGGAP_FRAME_BYTES};

/// Kind of an action.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum ActionKind {
    /// Nothing: wait for the next message.
    Nothing = 0,
    /// Send `message`.
    Send = 1,
    /// Send `message`, then call `loggap_responder_more` for the next action.
    SendMore = 2,
    /// The session is over; send `message` first if it has bytes.
    End = 3,
}

/// Action that the responder asks for.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ResponderAction {
    /// A `loggap_action_kind`.
    pub kind: u32,
    /// A `loggap_ending_kind` at the end, otherwise 0.
    pub ending: u32,
    /// Message to send: within the responder's memory, valid until the next call on it.
    pub message: *const u8,
    /// Length of `message` in bytes; 0 if there is nothing to send.
    pub length: usize,
}

/// How to receive the next message.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ResponderNext {
    /// Length in bytes, for reading from a stream.
    pub length: usize,
    /// 1 if the receive call has to be timed: pass its duration to
    /// `loggap_responder_timed` before the message is handled.
    pub timed: u32,
    /// Time to wait before polling for the message, in ps.
    pub pause_ps: u64,
    /// Timeout before `loggap_responder_silence`, in ps.
    pub silence_ps: u64,
}

/// State of a responder, and the buffer that it sends from.
#[derive(Debug)]
pub struct Parts {
    responder: CoreState,
    outgoing: *mut u8,
    capacity: usize,
}

impl Marked for Parts {
    const MARK: u64 = u64::from_le_bytes(*b"lgRespnd");
}

/// Responder without I/O; see `loggap_responder_init`.
#[derive(Debug)]
pub struct Responder {
    _parts: Parts,
}

const fn needs(largest: usize) -> Sizer {
    Sizer::new().array::<Object<Parts>>(1).array::<u8>(largest)
}

/// Minimum memory of a responder, in bytes: `LOGGAP_RESPONDER_BYTES(size)`
/// suffices for messages of up to `size` bytes.
pub const LOGGAP_RESPONDER_BYTES_LEAST: usize = 1_040;
const _: () = assert!(needs(LOGGAP_FRAME_BYTES).fits(LOGGAP_RESPONDER_BYTES_LEAST), "too small");

/// Bytes of memory that `loggap_responder_init` needs for replies of up to
/// `largest` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_responder_bytes(largest: usize) -> usize {
    needs(largest.max(LOGGAP_FRAME_BYTES)).bytes()
}

/// Creates a responder without I/O in `memory`, which stays lent until the
/// session is over. Pass every message to `loggap_responder_handle`, and
/// perform the action that it returns. `bounds` may be null for
/// `loggap_bounds_default`; messages are bounded by the memory and by
/// `max_message`. `reliable` is as in `loggap_link`, `nonce` as in
/// `loggap_serve`. A responder serves one session; create another one for the
/// next.
///
/// Errors: `LOGGAP_STATUS_MEMORY`, `LOGGAP_STATUS_OPTION`,
/// `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_responder_init(
    responder: *mut *mut Responder,
    bounds: *const Bounds,
    max_message: u64,
    reliable: u32,
    nonce: u64,
    memory: *mut u8,
    bytes: usize,
    detail: *mut Detail,
) -> i32 {
    let init = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(responder) }?;
        // SAFETY: by the contract of this function.
        let bounds = unsafe { optional(bounds) }?.map_or_else(CoreBounds::default, |b| b.to_core());
        if reliable > 1 {
            return Err(Detail::because(Status::Option, Reason::ReliableValue));
        }
        if max_message < LOGGAP_FRAME_BYTES as u64 {
            return Err(Detail::because(Status::Option, Reason::SmallMessages)
                .needed(LOGGAP_FRAME_BYTES as u64)
                .found(max_message));
        }
        // SAFETY: by the contract of this function.
        let mut arena = unsafe { Arena::new(memory, bytes, needs(LOGGAP_FRAME_BYTES)) }?;
        let capacity = bytes.saturating_sub(needs(0).bytes()) / LOGGAP_ALIGNMENT * LOGGAP_ALIGNMENT;
        let largest = max_message.min(capacity as u64);
        let bounds = bounds.with_message_at_most(Bytes(largest));
        let properties = LinkProperties {
            reliable: reliable == 1,
            ..LinkProperties::reliable(Bytes(max_message))
        };
        let outgoing = arena.array(capacity)?;
        outgoing.fill(0x55);
        let outgoing = outgoing.as_mut_ptr();
        let parts =
            Parts { responder: CoreState::with(bounds, properties, nonce, []), outgoing, capacity };
        place.put(arena.object(Object::new(parts))?.cast());
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(init(), detail) }
}

/// State of the responder at `pointer`, and the buffer that it sends from.
///
/// # Safety
///
/// As for [`Object::at`].
unsafe fn open<'a>(pointer: *mut Responder) -> Outcome<(&'a mut CoreState, &'a mut [u8])> {
    // SAFETY: by the contract; a responder is its object.
    let parts = &mut unsafe { Object::<Parts>::at(pointer.cast()) }?.content;
    // SAFETY: `init` has cut off this part of the responder's own memory.
    let outgoing = unsafe { core::slice::from_raw_parts_mut(parts.outgoing, parts.capacity) };
    Ok((&mut parts.responder, outgoing))
}

/// Next action of `responder`.
fn next_action(responder: &mut CoreState, outgoing: &mut [u8]) -> ResponderAction {
    let sent = responder.poll_transmit(outgoing);
    let ending = responder.ending();
    let kind = match sent {
        _ if ending.is_some() => ActionKind::End,
        None => ActionKind::Nothing,
        Some(_) if responder.is_transmit_due() => ActionKind::SendMore,
        Some(_) => ActionKind::Send,
    };
    let ending = matches!(ending, Some(Ending::Refused(_))).into();
    let length = sent.unwrap_or(0);
    ResponderAction { kind: kind as u32, ending, message: outgoing.as_ptr(), length }
}

/// Handles one message of the initiator, received at `now_ps`, which never
/// decreases, and returns the next action.
///
/// Errors: `LOGGAP_STATUS_HANDLE`, `LOGGAP_STATUS_NULL`,
/// `LOGGAP_STATUS_ALIGNMENT`. Malformed messages are not errors: the responder
/// answers them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_responder_handle(
    responder: *mut Responder,
    now_ps: u64,
    message: *const u8,
    length: usize,
    action: *mut ResponderAction,
    detail: *mut Detail,
) -> i32 {
    let handle = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(action) }?;
        // SAFETY: by the contract of this function.
        let message = unsafe { slice(message, length) }?;
        // SAFETY: by the contract of this function.
        let (responder, outgoing) = unsafe { open(responder) }?;
        responder.handle(Picos(now_ps), message);
        place.put(next_action(responder, outgoing));
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(handle(), detail) }
}

/// Returns the action that follows a `LOGGAP_ACTION_KIND_SEND_MORE`.
///
/// Errors: as `loggap_responder_handle`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_responder_more(
    responder: *mut Responder,
    action: *mut ResponderAction,
    detail: *mut Detail,
) -> i32 {
    let more = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(action) }?;
        // SAFETY: by the contract of this function.
        let (responder, outgoing) = unsafe { open(responder) }?;
        place.put(next_action(responder, outgoing));
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(more(), detail) }
}

/// Tells how to receive the next message.
///
/// Errors: as `loggap_responder_handle`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_responder_next(
    responder: *mut Responder,
    next: *mut ResponderNext,
    detail: *mut Detail,
) -> i32 {
    let look = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(next) }?;
        // SAFETY: by the contract of this function.
        let (responder, _) = unsafe { open(responder) }?;
        let Awaited { length, timed, pause } = responder.awaited();
        place.put(ResponderNext {
            length,
            timed: timed.into(),
            pause_ps: pause.0,
            silence_ps: responder.agreed().silence.0,
        });
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(look(), detail) }
}

/// Takes the duration of the receive call of the next message, in ps, before it
/// is handled.
///
/// Errors: as `loggap_responder_handle`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_responder_timed(
    responder: *mut Responder,
    duration_ps: u64,
    detail: *mut Detail,
) -> i32 {
    let timed = || {
        // SAFETY: by the contract of this function.
        let (responder, _) = unsafe { open(responder) }?;
        responder.handle_timed(Picos(duration_ps));
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(timed(), detail) }
}

/// Ends the session after the silence that `loggap_responder_next` tolerates;
/// `over` becomes 1.
///
/// Errors: as `loggap_responder_handle`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_responder_silence(
    responder: *mut Responder,
    over: *mut u32,
    detail: *mut Detail,
) -> i32 {
    let silence = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(over) }?;
        // SAFETY: by the contract of this function.
        unsafe { open(responder) }?;
        place.put(1);
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(silence(), detail) }
}

/// Counts of the session so far; `ending` is 0.
///
/// Errors: as `loggap_responder_handle`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_responder_served(
    responder: *mut Responder,
    served: *mut Served,
    detail: *mut Detail,
) -> i32 {
    let look = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(served) }?;
        // SAFETY: by the contract of this function.
        let (responder, _) = unsafe { open(responder) }?;
        place.put(Served::from_core(responder.served(), Ending::Goodbye));
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(look(), detail) }
}
