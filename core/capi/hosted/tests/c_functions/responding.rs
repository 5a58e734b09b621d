//! The responder: with a link of callbacks, and without I/O.

use crate::fuzzing::lent::{Lent, Plain};
use core::ffi::c_void;
use loggap_capi::{
    ActionKind, Clock, Detail, EndingKind, Frame, FrameKind, LOGGAP_FRAME_BYTES, Link, Responder,
    ResponderAction, ResponderNext, Round, Served, Status,
};

const DATA: usize = 440;
/// What the initiator echoes.
const NONCE: u64 = 0x1de5;

/// What an initiator sends in one session of one round.
fn messages(round: Round) -> Vec<Vec<u8>> {
    let data = || vec![0; DATA];
    let mut messages = vec![frame(FrameKind::Hello, round), frame(FrameKind::Batch, round)];
    messages.extend([data(), data()]);
    messages.extend([frame(FrameKind::Sync, round), frame(FrameKind::Bye, round)]);
    messages
}

fn frame(kind: FrameKind, round: Round) -> Vec<u8> {
    let mut frame = Frame { kind: kind as u32, versions: [2, 2], nonce: NONCE, ..Frame::zeros() };
    assert_eq!(call!(loggap_bounds_default(&raw mut frame.bounds)), 0);
    frame.round_count = 1;
    frame.rounds[0] = round;
    let mut bytes = vec![0; LOGGAP_FRAME_BYTES];
    let detail = core::ptr::null_mut();
    let (place, room) = (bytes.as_mut_ptr(), bytes.len());
    assert_eq!(call!(loggap_frame_emit(&raw const frame, place, room, detail)), 0);
    bytes
}

fn kind_of(bytes: &[u8]) -> u32 {
    let mut frame = Frame::zeros();
    gives!(Ok, loggap_frame_parse(bytes.as_ptr(), bytes.len(), &raw mut frame));
    frame.kind
}

const ROUND: Round = Round {
    messages: 2,
    size: DATA as u32,
    reply_size: 100,
    repeats: 1,
    reply_each: 0,
    timed: 0,
    pause_ps: 0,
};

/// The context of clock and link: what is to come, and what was sent.
struct Script {
    time: u64,
    coming: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

/// # Safety
///
/// `context` points to a script that nobody else uses meanwhile.
unsafe fn script<'a>(context: *mut c_void) -> &'a mut Script {
    // SAFETY: by the contract.
    unsafe { &mut *context.cast::<Script>() }
}

unsafe extern "C" fn now(context: *mut c_void) -> u64 {
    // SAFETY: the tests pass a script as the context.
    let script = unsafe { script(context) };
    script.time += 10;
    script.time
}

unsafe extern "C" fn send(context: *mut c_void, message: *const u8, length: usize) -> i32 {
    // SAFETY: the library passes as many bytes.
    let message = unsafe { core::slice::from_raw_parts(message, length) };
    // SAFETY: as in `now`.
    unsafe { script(context) }.sent.push(message.to_vec());
    0
}

unsafe extern "C" fn poll(
    context: *mut c_void,
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    // SAFETY: as in `now`.
    let script = unsafe { script(context) };
    if script.coming.is_empty() {
        return -3;
    }
    let message = script.coming.remove(0);
    if message.len() > capacity {
        return 0;
    }
    // SAFETY: the buffer takes as many bytes as the capacity says.
    unsafe { buffer.copy_from_nonoverlapping(message.as_ptr(), message.len()) };
    // SAFETY: the library passes a place for the length.
    unsafe { length.write(message.len()) };
    1
}

unsafe extern "C" fn discard(_context: *mut c_void) -> i32 {
    0
}

/// Serves what `script` has to come, with `nonce`, on so many bytes.
fn serve(script: &mut Script, bytes: usize, nonce: u64) -> (i32, Served, Detail) {
    let context: *mut c_void = (&raw mut *script).cast();
    let (bounds, memory) = (core::ptr::null(), Lent::new(bytes));
    let clock = Clock { context, now: Some(now), picos_per_tick_q32: 1000 << 32, read_cost_ps: 0 };
    let link = Link {
        context,
        send: Some(send),
        poll_receive: Some(poll),
        discard: Some(discard),
        max_message: LOGGAP_FRAME_BYTES as u64,
        reliable: u32::from(nonce == 0),
    };
    let (mut served, mut detail) = (Served::zeros(), Detail::zeros());
    let (clock, link, place) = (&raw const clock, &raw const link, &raw mut served);
    let (first, told) = (memory.pointer(), &raw mut detail);
    let status = call!(loggap_serve(clock, link, bounds, nonce, first, bytes, place, told));
    assert!(memory.is_guarded());
    (status, served, detail)
}

#[test]
fn a_whole_session_is_served_over_callbacks() {
    let mut script = Script { time: 0, coming: messages(ROUND), sent: Vec::new() };
    let bytes = call!(loggap_serve_bytes(0));
    let (status, served, _) = serve(&mut script, bytes, 0);
    assert_eq!((status, served.received, served.replied, served.rounds), (0, 2, 1, 1));
    // The script is over: the link says so in the next session.
    let (status, _, detail) = serve(&mut script, bytes, 0);
    assert_eq!((status, detail.found.cast_signed()), (Status::Link as i32, -3));
    let lengths: Vec<_> = script.sent.iter().map(Vec::len).collect();
    assert_eq!(lengths, [448, 448, 100, 448]);
    assert_eq!(kind_of(&script.sent[3]), FrameKind::Synced as u32);
}

#[test]
fn a_responder_may_be_lent_any_number_of_bytes_that_holds_a_frame() {
    for bytes in [448, 449, 1500, 1514] {
        let mut script = Script { time: 0, coming: messages(ROUND), sent: Vec::new() };
        let (status, served, _) = serve(&mut script, bytes, 0);
        assert_eq!((bytes, status, served.rounds), (bytes, 0, 1));
    }
    let mut script = Script { time: 0, coming: messages(ROUND), sent: Vec::new() };
    let (status, _, detail) = serve(&mut script, 447, 0);
    assert_eq!((status, detail.needed), (Status::Memory as i32, 448));
}

#[test]
fn a_datagram_longer_than_any_message_does_not_end_a_session() {
    let mut coming = messages(ROUND);
    for at in (0..=coming.len()).rev() {
        coming.insert(at, vec![0xff; 1500]);
    }
    let mut script = Script { time: 0, coming, sent: Vec::new() };
    let (status, served, detail) = serve(&mut script, LOGGAP_FRAME_BYTES, NONCE);
    assert_eq!(status, 0, "{detail:?}");
    assert_eq!(served.ending, EndingKind::Goodbye as u32);
    assert_eq!((served.received, served.replied, served.strays), (2, 1, 0));
}

fn responder(memory: &Lent, reliable: u32, nonce: u64) -> *mut Responder {
    let mut responder = core::ptr::null_mut();
    let (bounds, room) = (core::ptr::null(), memory.length());
    gives!(
        Ok,
        loggap_responder_init(
            &raw mut responder,
            bounds,
            1496,
            reliable,
            nonce,
            memory.pointer(),
            room,
        )
    );
    responder
}

/// What is to be sent, copied while it is valid.
fn message(action: &ResponderAction) -> Vec<u8> {
    // SAFETY: inside of the responder's memory, and no call has followed.
    unsafe { core::slice::from_raw_parts(action.message, action.length) }.to_vec()
}

/// Hands a message over with the duration of its receive call.
fn handle(responder: *mut Responder, time: u64, bytes: &[u8]) -> (u32, Vec<Vec<u8>>) {
    let mut next = ResponderNext::zeros();
    gives!(Ok, loggap_responder_next(responder, &raw mut next));
    if next.timed == 1 {
        gives!(Ok, loggap_responder_timed(responder, 123));
    }
    let mut action = ResponderAction::zeros();
    let (first, length) = (bytes.as_ptr(), bytes.len());
    gives!(Ok, loggap_responder_handle(responder, time, first, length, &raw mut action));
    let mut sent = Vec::new();
    while action.length > 0 {
        sent.push(message(&action));
        gives!(Ok, loggap_responder_more(responder, &raw mut action));
    }
    (action.kind, sent)
}

#[test]
fn a_responder_without_io_serves_the_same_session_with_its_own_timings() {
    let memory = Lent::new(call!(loggap_responder_bytes(DATA)));
    let responder = responder(&memory, 1, 0);
    let mut kinds = Vec::new();
    for (time, bytes) in (0..).zip(messages(Round { timed: 1, ..ROUND })) {
        let (_, sent) = handle(responder, time, &bytes);
        kinds.extend(sent.iter().filter(|sent| sent.len() == 448).map(|sent| kind_of(sent)));
    }
    let expected = [FrameKind::Welcome, FrameKind::Ready, FrameKind::Report, FrameKind::Synced];
    assert_eq!(kinds, expected.map(|kind| kind as u32));
    let mut served = Served::zeros();
    gives!(Ok, loggap_responder_served(responder, &raw mut served));
    assert_eq!((served.received, served.rounds), (2, 1));
    assert!(memory.is_guarded());
}

#[test]
fn a_stranger_is_challenged_and_what_is_no_frame_is_refused() {
    let memory = Lent::new(call!(loggap_responder_bytes(600)));
    let stranger = responder(&memory, 0, 0x5eed);
    let (kind, sent) = handle(stranger, 1, &frame(FrameKind::Hello, ROUND));
    assert_eq!(kind, ActionKind::Nothing as u32);
    assert_eq!(kind_of(&sent[0]), FrameKind::Challenge as u32);
    let reliable = responder(&memory, 1, 0);
    let mut action = ResponderAction::zeros();
    let bytes = [1_u8; 5];
    gives!(Ok, loggap_responder_handle(reliable, 1, bytes.as_ptr(), 5, &raw mut action));
    assert_eq!((action.kind, action.ending), (ActionKind::End as u32, 1));
    assert_eq!(kind_of(&message(&action)), FrameKind::Refuse as u32);
}

#[test]
fn silence_ends_a_session() {
    let memory = Lent::new(call!(loggap_responder_bytes(0)));
    let responder = responder(&memory, 1, 0);
    handle(responder, 1, &frame(FrameKind::Hello, ROUND));
    let mut over = 7;
    gives!(Ok, loggap_responder_silence(responder, &raw mut over));
    assert_eq!(over, 1);
}

#[test]
fn a_responder_needs_its_memory_and_options_that_it_knows() {
    let memory = Lent::filled(call!(loggap_responder_bytes(0)), 0);
    let init = |max_message, reliable, pointer, bytes| {
        let mut responder = core::ptr::null_mut();
        let (place, bounds, detail) =
            (&raw mut responder, core::ptr::null(), core::ptr::null_mut());
        let init = call!(loggap_responder_init(
            place,
            bounds,
            max_message,
            reliable,
            0,
            pointer,
            bytes,
            detail
        ));
        assert!(responder.is_null());
        init
    };
    let (pointer, bytes) = (memory.pointer(), memory.length());
    assert_eq!(init(1000, 2, pointer, bytes), Status::Option as i32);
    assert_eq!(init(447, 1, pointer, bytes), Status::Option as i32);
    assert_eq!(init(1000, 1, pointer, bytes - 1), Status::Memory as i32);
    assert_eq!(init(1000, 1, pointer.wrapping_add(4), bytes), Status::Alignment as i32);
    assert_eq!(init(1000, 1, core::ptr::null_mut(), bytes), Status::Null as i32);
    let mut next = ResponderNext::zeros();
    gives!(Handle, loggap_responder_next(pointer.cast(), &raw mut next));
    assert!(memory.is_untouched() && memory.is_guarded());
}
