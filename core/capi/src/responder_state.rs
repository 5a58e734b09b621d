//! The responder without I/O, for interrupts and event loops.

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

/// What is to be done after a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum ActionKind {
    /// Nothing: wait for the next message.
    Nothing = 0,
    /// Send `message`.
    Send = 1,
    /// Send `message`, then do what `loggap_responder_more` says.
    SendMore = 2,
    /// Send `message` if it has bytes; the session is over.
    End = 3,
}

/// What is to be done after a message.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ResponderAction {
    /// A `loggap_action_kind`.
    pub kind: u32,
    /// At the end a `loggap_ending_kind`, otherwise 0.
    pub ending: u32,
    /// What to send: inside of the responder's memory, valid until the next call
    /// on it.
    pub message: *const u8,
    /// Its bytes; 0 where nothing is to be sent.
    pub length: usize,
}

/// What the next message is like.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ResponderNext {
    /// Its bytes on a stream.
    pub length: usize,
    /// 1 where the duration of the receive call for it is to be given to
    /// `loggap_responder_timed` before it is handled.
    pub timed: u32,
    /// How long to wait before looking for it, in ps.
    pub pause_ps: u64,
    /// How long to wait for it before `loggap_responder_silence`, in ps.
    pub silence_ps: u64,
}

/// The parts of a responder.
#[derive(Debug)]
pub struct Parts {
    responder: CoreState,
    outgoing: *mut u8,
    capacity: usize,
}

impl Marked for Parts {
    const MARK: u64 = u64::from_le_bytes(*b"lgRespnd");
}

/// A responder without I/O, see `loggap_responder_init`.
#[derive(Debug)]
pub struct Responder {
    _parts: Parts,
}

const fn needs(largest: usize) -> Sizer {
    Sizer::new().array::<Object<Parts>>(1).array::<u8>(largest)
}

/// Bytes of a responder beside its largest message:
/// `LOGGAP_RESPONDER_BYTES(size)` is for messages of up to `size` bytes.
pub const LOGGAP_RESPONDER_BYTES_LEAST: usize = 1_040;
const _: () = assert!(needs(LOGGAP_FRAME_BYTES).fits(LOGGAP_RESPONDER_BYTES_LEAST), "too small");

/// Bytes to lend to `loggap_responder_init` for replies of up to `largest` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_responder_bytes(largest: usize) -> usize {
    needs(largest.max(LOGGAP_FRAME_BYTES)).bytes()
}

/// Makes a responder without I/O in `memory`, which is lent until the session
/// is over. Feed it every message by `loggap_responder_handle` and do what it
/// says. `bounds` may be null for the usual ones; messages are bounded by what
/// was lent and by `max_message`. `reliable` as in `loggap_link`, `nonce`
/// as in `loggap_serve`. One responder
/// serves one session; make it anew for the next.
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
        let properties =
            LinkProperties { max_message: Bytes(max_message), reliable: reliable == 1 };
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

/// The responder at `pointer` and the buffer that it sends from.
///
/// # Safety
///
/// As for [`Object::at`].
unsafe fn open<'a>(pointer: *mut Responder) -> Outcome<(&'a mut CoreState, &'a mut [u8])> {
    // SAFETY: by the contract; a responder is its object.
    let parts = &mut unsafe { Object::<Parts>::at(pointer.cast()) }?.content;
    // SAFETY: the part of the responder's own memory that `init` has cut off.
    let outgoing = unsafe { core::slice::from_raw_parts_mut(parts.outgoing, parts.capacity) };
    Ok((&mut parts.responder, outgoing))
}

/// What `responder` wants to be done next.
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

/// Takes one message of the initiator at the time `now_ps`, which never
/// decreases, and says what to do.
///
/// Errors: `LOGGAP_STATUS_HANDLE`, `LOGGAP_STATUS_NULL`,
/// `LOGGAP_STATUS_ALIGNMENT`. Malformed messages are no errors: the responder
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

/// What to send after the message of `LOGGAP_ACTION_KIND_SEND_MORE`.
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

/// What the next message is like.
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

/// Takes the duration of the receive call for the next message, in ps.
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

/// Nothing came for as long as `loggap_responder_next` says: the session has
/// ended, and `over` gets 1.
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

/// What the responder has counted so far; `ending` is 0.
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
