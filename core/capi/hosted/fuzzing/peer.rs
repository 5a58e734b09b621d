//! Clock and link of a session, and the peer at the link's other end. Time is
//! virtual, and leaps where nothing is to be waited for.

use super::numbers::Numbers;
use super::objects::message;
use core::ffi::c_void;
use loggap_capi::{ActionKind, Clock, Link, Responder, ResponderAction, ResponderNext};
use std::collections::VecDeque;

/// Readings of the clock after which time runs ever faster.
const READINGS: u32 = if cfg!(miri) { 200 } else { 20_000 };
/// Messages and looks for one after which the link is broken.
const EVENTS: u32 = if cfg!(miri) { 60 } else { 3_000 };

/// The context of all callbacks.
pub(super) struct Peer<'d> {
    /// Decides what the link does.
    script: Numbers<'d>,
    ticks: u64,
    readings: u32,
    events: u32,
    /// Answers the initiator; null where the peer is an initiator itself.
    responder: *mut Responder,
    coming: VecDeque<Vec<u8>>,
    /// Whether the peer is gone once the script is over.
    ends: bool,
}

/// # Safety
///
/// `context` points to a peer that nobody else uses meanwhile.
unsafe fn peer<'a, 'd>(context: *mut c_void) -> &'a mut Peer<'d> {
    // SAFETY: by the contract.
    unsafe { &mut *context.cast::<Peer<'d>>() }
}

impl<'d> Peer<'d> {
    /// An initiator that sends what `script` says.
    pub(super) fn initiator(script: &'d [u8]) -> Self {
        let (coming, responder) = (VecDeque::new(), core::ptr::null_mut());
        let script = Numbers(script);
        Self { script, ticks: 0, readings: 0, events: 0, responder, coming, ends: true }
    }

    /// A responder behind a link on which `script` decides what is lost or spoilt.
    pub(super) fn responder(script: &'d [u8], responder: *mut Responder) -> Self {
        Self { responder, ends: false, ..Self::initiator(script) }
    }

    /// Whether the link is broken by now.
    fn is_broken(&mut self) -> bool {
        self.events += 1;
        self.events > EVENTS || self.ends && self.script.is_empty()
    }

    /// Takes one answer of the responder; gives whether there is more.
    fn take(&mut self, action: &ResponderAction) -> bool {
        if action.length > 0 {
            // SAFETY: inside of the responder's memory, and no call has followed.
            let bytes = unsafe { core::slice::from_raw_parts(action.message, action.length) };
            let mut bytes = bytes.to_vec();
            match self.script.byte() {
                0xff => return false,
                0xfe => bytes[0] ^= 1,
                0xfd => bytes.truncate(usize::from(self.script.byte())),
                _ => {}
            }
            self.coming.push_back(bytes);
        }
        action.kind == ActionKind::SendMore as u32
    }

    fn answer(&mut self, bytes: *const u8, length: usize) {
        let (null, mut next) = (core::ptr::null_mut(), super::Plain::zeros());
        let responder = self.responder;
        let place: *mut ResponderNext = &raw mut next;
        assert_eq!(call!(loggap_responder_next(responder, place, null)), 0);
        if next.timed == 1 {
            assert_eq!(call!(loggap_responder_timed(responder, 500_000, null)), 0);
        }
        let mut action: ResponderAction = super::Plain::zeros();
        let (place, time) = (&raw mut action, self.ticks);
        assert_eq!(call!(loggap_responder_handle(responder, time, bytes, length, place, null)), 0);
        while self.take(&action) {
            assert_eq!(call!(loggap_responder_more(responder, &raw mut action, null)), 0);
        }
    }
}

/// A clock whose context is the peer at `context`.
pub(super) fn clock_of(context: *mut c_void, picos_per_tick_q32: u64) -> Clock {
    Clock { context, now: Some(now), picos_per_tick_q32, read_cost_ps: 0 }
}

/// A link whose context is the peer at `context`.
pub(super) fn link_of(context: *mut c_void, max_message: u64, reliable: u32) -> Link {
    let (send, poll_receive, discard) = (Some(send as _), Some(poll as _), Some(discard as _));
    Link { context, send, poll_receive, discard, max_message, reliable }
}

unsafe extern "C" fn now(context: *mut c_void) -> u64 {
    // SAFETY: callers pass a peer as the context.
    let peer = unsafe { peer(context) };
    peer.readings = peer.readings.saturating_add(1);
    let step = if peer.readings > READINGS { peer.ticks } else { 20 };
    peer.ticks = peer.ticks.saturating_add(step);
    peer.ticks
}

unsafe extern "C" fn send(context: *mut c_void, message: *const u8, length: usize) -> i32 {
    // SAFETY: as in `now`.
    let peer = unsafe { peer(context) };
    peer.ticks = peer.ticks.saturating_add(1000 + 3 * length as u64);
    // SAFETY: the library passes as many bytes; all of them are looked at.
    let sum = unsafe { core::slice::from_raw_parts(message, length) };
    core::hint::black_box(sum.iter().fold(0_u8, |sum, byte| sum ^ byte));
    match peer.script.byte() {
        _ if peer.is_broken() => -9,
        0xff => i32::from(peer.script.byte()),
        0xfe => 0,
        _ if peer.responder.is_null() => 0,
        _ => {
            peer.answer(message, length);
            0
        }
    }
}

unsafe extern "C" fn poll(
    context: *mut c_void,
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    // SAFETY: as in `now`.
    let peer = unsafe { peer(context) };
    if peer.is_broken() {
        return -9;
    }
    if peer.responder.is_null() && peer.coming.is_empty() {
        peer.coming.push_back(message(capacity, &mut peer.script));
    }
    let claimed = match peer.script.byte() {
        0xff => return i32::from(peer.script.byte()) - 3,
        0xfe => Some(capacity.saturating_add(usize::from(peer.script.byte()))),
        _ => None,
    };
    let Some(mut bytes) = peer.coming.pop_front() else {
        peer.ticks = peer.ticks.saturating_add(1_000_000_000);
        return 0;
    };
    peer.ticks = peer.ticks.saturating_add(6000);
    bytes.truncate(capacity);
    // SAFETY: no more than the capacity of the buffer.
    unsafe { buffer.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    // SAFETY: the library passes a place for the length.
    unsafe { length.write(claimed.unwrap_or(bytes.len())) };
    1
}

unsafe extern "C" fn discard(context: *mut c_void) -> i32 {
    // SAFETY: as in `now`.
    let peer = unsafe { peer(context) };
    peer.coming.clear();
    if peer.script.byte() == 0xff { 5 } else { 0 }
}
