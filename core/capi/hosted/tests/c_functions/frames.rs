//! Control frames and Ethernet frames.

use crate::fuzzing::lent::{Lent, Plain};
use loggap_capi::{Bounds, Frame, LOGGAP_FRAME_BYTES, Reason, RefusalKind, Round};

/// A frame with a value in every field.
fn full(kind: u32) -> Frame {
    let mut frame = Frame { kind, sequence: 7, token: 8, position: 9, ..Frame::default() };
    (frame.versions, frame.responder_versions, frame.version) = ([1, 2], [2, 3], 2);
    assert_eq!(call!(loggap_bounds_default(&raw mut frame.bounds)), 0);
    (frame.capabilities, frame.nonce) = (1, 0x5eed);
    (frame.asked, frame.allowed, frame.received, frame.replied) = (3, 4, 5, 6);
    frame.round_count = 2;
    let round = Round {
        messages: 3,
        size: 100,
        reply_size: 1,
        repeats: 1,
        reply_each: 1,
        timed: 1,
        pause_ps: 20,
    };
    frame.rounds[..2].fill(round);
    frame.values_ps[..2].fill(77);
    frame
}

#[test]
fn every_kind_of_frame_is_written_and_read_the_same() {
    for kind in 1..=11 {
        let frame = full(kind);
        let memory = Lent::new(LOGGAP_FRAME_BYTES);
        gives!(Ok, loggap_frame_emit(&raw const frame, memory.pointer(), memory.length()));
        let mut read = Frame::zeros();
        gives!(Ok, loggap_frame_parse(memory.pointer(), memory.length(), &raw mut read));
        let again = Lent::new(LOGGAP_FRAME_BYTES);
        gives!(Ok, loggap_frame_emit(&raw const read, again.pointer(), again.length()));
        assert_eq!(read.kind, kind);
        assert_eq!(memory.bytes(LOGGAP_FRAME_BYTES), again.bytes(LOGGAP_FRAME_BYTES));
        assert!(memory.is_guarded() && again.is_guarded());
    }
}

#[test]
fn every_kind_of_refusal_is_written_and_read_the_same() {
    for refusal in 0..=4 {
        let frame = Frame { refusal, limited: 3, ..full(3) };
        let mut bytes = [0; LOGGAP_FRAME_BYTES];
        gives!(Ok, loggap_frame_emit(&raw const frame, bytes.as_mut_ptr(), bytes.len()));
        let mut read = Frame::zeros();
        gives!(Ok, loggap_frame_parse(bytes.as_ptr(), bytes.len(), &raw mut read));
        assert_eq!(read.refusal, refusal);
    }
    let wrong = Frame { refusal: 5, ..full(3) };
    let mut bytes = [0; LOGGAP_FRAME_BYTES];
    let detail =
        gives!(Option, loggap_frame_emit(&raw const wrong, bytes.as_mut_ptr(), bytes.len()));
    assert_eq!((crate::name(&detail).as_str(), detail.found), ("refusal", 5));
}

#[test]
fn only_a_refusal_of_bounds_looks_at_what_is_limited() {
    for refusal in 0..=4 {
        let frame = Frame { refusal, limited: 99, ..full(3) };
        let mut bytes = [0; LOGGAP_FRAME_BYTES];
        let (place, room) = (bytes.as_mut_ptr(), bytes.len());
        if refusal == RefusalKind::Bounds as u32 {
            let detail = gives!(Option, loggap_frame_emit(&raw const frame, place, room));
            assert_eq!((crate::name(&detail).as_str(), detail.found), ("limited", 99));
        } else {
            gives!(Ok, loggap_frame_emit(&raw const frame, place, room));
        }
    }
}

#[test]
fn a_frame_that_is_cut_off_or_spoilt_leaves_the_result_alone() {
    let frame = full(5);
    let mut bytes = [0; LOGGAP_FRAME_BYTES];
    gives!(Ok, loggap_frame_emit(&raw const frame, bytes.as_mut_ptr(), bytes.len()));
    bytes[40] ^= 1;
    for length in [0, 1, 20, LOGGAP_FRAME_BYTES] {
        let place = Lent::filled(size_of::<Frame>(), 0);
        let read = place.pointer().cast();
        gives!(Malformed, loggap_frame_parse(bytes.as_ptr(), length, read));
        assert!(place.is_untouched() && place.is_guarded());
    }
}

#[test]
fn a_message_goes_into_an_ethernet_frame_and_comes_out_of_it() {
    let (to, from, message) = ([1_u8; 6], [2_u8; 6], [9_u8; 3]);
    let memory = Lent::new(loggap_capi::LOGGAP_ETHERNET_FRAME);
    let mut length = 0;
    gives!(
        Ok,
        loggap_ethernet_emit(
            to.as_ptr(),
            from.as_ptr(),
            message.as_ptr(),
            message.len(),
            memory.pointer(),
            memory.length(),
            &raw mut length,
        )
    );
    assert_eq!(length, 60);
    let (mut destination, mut source) = ([0; 6], [0; 6]);
    let (mut found, mut bytes) = (core::ptr::null(), 0);
    gives!(
        Ok,
        loggap_ethernet_parse(
            memory.pointer(),
            length,
            destination.as_mut_ptr(),
            source.as_mut_ptr(),
            &raw mut found,
            &raw mut bytes,
        )
    );
    assert_eq!((destination, source, bytes), (to, from, 3));
    // SAFETY: inside of the frame, which is lent still.
    assert_eq!(unsafe { core::slice::from_raw_parts(found, bytes) }, message);
    let null = core::ptr::null_mut();
    let parse = |length| {
        let (mut found, mut bytes) = (core::ptr::null(), 0);
        let (found, bytes) = (&raw mut found, &raw mut bytes);
        call!(loggap_ethernet_parse(
            memory.pointer(),
            length,
            null,
            null,
            found,
            bytes,
            null.cast()
        ))
    };
    assert_eq!(parse(60), 0);
    assert_eq!(parse(16), loggap_capi::Status::Malformed as i32);
    assert!(memory.is_guarded());
}

/// Writes a message into `frame` as an Ethernet frame; gives status and length.
fn ethernet(message: &[u8], frame: &Lent, capacity: usize) -> (i32, usize) {
    let (address, mut length, null) = ([3_u8; 6], 0, core::ptr::null_mut());
    let (station, place) = (address.as_ptr(), &raw mut length);
    let (first, bytes, room) = (message.as_ptr(), message.len(), frame.pointer());
    let status =
        call!(loggap_ethernet_emit(station, station, first, bytes, room, capacity, place, null));
    (status, length)
}

#[test]
fn an_ethernet_frame_is_that_of_the_core_whatever_was_in_its_memory() {
    for bytes in [0, 1, 41, 42, 43, loggap_capi::LOGGAP_ETHERNET_MESSAGE] {
        let message: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
        let memory = Lent::filled(loggap_capi::LOGGAP_ETHERNET_FRAME, 0);
        let (status, length) = ethernet(&message, &memory, memory.length());
        let mut wanted = [0; loggap_capi::LOGGAP_ETHERNET_FRAME];
        let of_core = loggap_core::wire::ethernet::emit([3; 6], [3; 6], &message, &mut wanted);
        assert_eq!((status, Some(length)), (0, of_core));
        // Room without end is room enough.
        assert_eq!(ethernet(&message, &memory, usize::MAX), (0, length));
        assert_eq!(memory.bytes(length), &wanted[..length]);
        assert!(memory.is_guarded());
    }
}

#[test]
fn a_message_that_fits_into_no_frame_leaves_its_memory_alone() {
    let message = vec![1; 1 << 16];
    let memory = Lent::filled((1 << 16) + 18, 0);
    for capacity in [memory.length(), 1514, 59] {
        let status = loggap_capi::Status::Full as i32;
        assert_eq!(ethernet(&message, &memory, capacity), (status, 0));
        assert_eq!(ethernet(&message[..2000], &memory, capacity.min(1514)), (status, 0));
    }
    assert!(memory.is_untouched() && memory.is_guarded());
}

#[test]
fn too_little_room_for_a_frame_says_how_much_is_enough() {
    let frame = full(1);
    let memory = Lent::new(100);
    let detail =
        gives!(Full, loggap_frame_emit(&raw const frame, memory.pointer(), memory.length()));
    assert_eq!((detail.needed, detail.found), (448, 100));
    assert!(memory.is_guarded());
    let mut length = 0_usize;
    let (pointer, room) = (memory.pointer(), 59);
    let address = [0_u8; 6];
    let detail = gives!(
        Full,
        loggap_ethernet_emit(
            address.as_ptr(),
            address.as_ptr(),
            core::ptr::null(),
            0,
            pointer,
            room,
            &raw mut length,
        )
    );
    assert_eq!((detail.needed, length), (60, 0));
    assert!(memory.is_guarded());
}

#[test]
fn the_usual_bounds_are_those_of_the_core() {
    let mut bounds = Bounds::default();
    assert_eq!(call!(loggap_bounds_default(&raw mut bounds)), 0);
    let core = loggap_core::wire::Bounds::default();
    assert_eq!((bounds.message, bounds.silence_ps), (core.message, core.silence.0));
    let mut frame = full(1);
    let read = gives!(Malformed, loggap_frame_parse(core::ptr::null(), 0, &raw mut frame));
    assert_eq!(read.reason, Reason::FrameEnds as u32);
}
