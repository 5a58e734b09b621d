//! Pointers that are null or misaligned: refused before anything is written.

use crate::fuzzing::lent::{Lent, Plain};
use loggap_capi::{
    AssessOptions, Bounds, Clock, Detail, FitOptions, Frame, GoalInfo, LogGops, PatternOptions,
    Prediction, Profile, ResponderNext, SimulateOptions, Sizes, Status,
};

/// A pointer to nothing and one that is not aligned, with what they give.
fn wrong<T>() -> [(*mut T, i32); 2] {
    let misaligned = core::ptr::without_provenance_mut(align_of::<T>() / 2 + 64);
    [(core::ptr::null_mut(), Status::Null as i32), (misaligned, Status::Alignment as i32)]
}

#[test]
fn options_go_to_no_wrong_pointer() {
    for (place, status) in wrong::<FitOptions>() {
        assert_eq!(call!(loggap_fit_options_default(place)), status);
    }
    for (place, status) in wrong::<AssessOptions>() {
        assert_eq!(call!(loggap_assess_options_default(place)), status);
        assert_eq!(call!(loggap_assess_bytes(place)), 0);
    }
    for (place, status) in wrong() {
        assert_eq!(call!(loggap_detector_options_default(place)), status);
    }
    for (place, status) in wrong::<PatternOptions>() {
        assert_eq!(call!(loggap_pattern_options_default(place, 2, 1)), status);
    }
    for (place, status) in wrong::<Bounds>() {
        assert_eq!(call!(loggap_bounds_default(place)), status);
    }
    for (clock, status) in wrong::<Clock>() {
        assert_eq!(call!(loggap_clock_calibrate(clock, core::ptr::null_mut())), status);
    }
}

#[test]
fn nothing_is_read_by_a_wrong_pointer() {
    let detail: *mut Detail = core::ptr::null_mut();
    let bytes = Lent::filled(448, 0);
    let pointer = bytes.pointer();
    for (frame, status) in wrong::<Frame>() {
        assert_eq!(call!(loggap_frame_emit(frame, pointer, 448, detail)), status);
        assert_eq!(call!(loggap_frame_parse(pointer, 448, frame, detail)), status);
    }
    let mut length = 7_usize;
    for (profile, status) in wrong::<Profile>() {
        let place = &raw mut length;
        assert_eq!(call!(loggap_profile_encode(profile, pointer, 448, place, detail)), status);
        assert_eq!(call!(loggap_profile_decode(pointer, 448, profile, detail)), status);
    }
    for (set, status) in wrong::<LogGops>() {
        let mut time = 0;
        assert_eq!(call!(loggap_loggops_message(set, 1, &raw mut time, detail)), status);
    }
    for (sizes, status) in wrong::<Sizes>() {
        let (version, bytes) = (loggap_capi::LOGGAP_ABI_VERSION, size_of::<Sizes>());
        assert_eq!(call!(loggap_abi_check(version, sizes, bytes, detail)), status);
    }
    assert_eq!(length, 7);
    assert!(bytes.is_untouched() && bytes.is_guarded());
}

#[test]
fn nothing_is_written_to_a_wrong_pointer() {
    let detail: *mut Detail = core::ptr::null_mut();
    let (profile, text) = (Profile::zeros(), b"num_ranks 1\nrank 0 {\n}\n");
    for (place, status) in wrong::<Prediction>() {
        let profile = &raw const profile;
        assert_eq!(call!(loggap_predict_message(profile, 1, place, detail)), status);
        assert_eq!(call!(loggap_predict_prtt(profile, 1, 0, 1, place, detail)), status);
    }
    for (place, status) in wrong::<GoalInfo>() {
        let (text, length) = (text.as_ptr(), text.len());
        assert_eq!(call!(loggap_goal_survey(text, length, place, detail)), status);
    }
    let lent = Lent::filled(call!(loggap_responder_bytes(0)), 0);
    for (place, status) in wrong::<ResponderNext>() {
        let responder = lent.pointer().cast();
        assert_eq!(call!(loggap_responder_next(responder, place, detail)), status);
    }
    assert!(lent.is_untouched());
}

#[test]
fn a_misaligned_detail_is_not_written_and_changes_nothing() {
    for (detail, _) in wrong::<Detail>() {
        let mut frame = Frame::zeros();
        let status = call!(loggap_frame_parse(core::ptr::null(), 0, &raw mut frame, detail));
        assert_eq!(status, Status::Malformed as i32);
    }
}

#[test]
fn lengths_beyond_the_address_space_are_refused() {
    let (options, mut needed) = (SimulateOptions::zeros(), 0_usize);
    let (options, place) = (&raw const options, &raw mut needed);
    let null = core::ptr::null_mut();
    let byte = 7_u8;
    let bytes = &raw const byte;
    gives!(Option, loggap_simulate_goal_bytes(bytes, usize::MAX, options, null, 0, place));
    assert_eq!(call!(loggap_fit_bytes(usize::MAX)), usize::MAX);
    assert_eq!(call!(loggap_noise_bytes(usize::MAX)), usize::MAX);
    assert_eq!(call!(loggap_serve_bytes(usize::MAX)), usize::MAX);
    assert_eq!(call!(loggap_responder_bytes(usize::MAX)), usize::MAX);
    assert_eq!(call!(loggap_noise_count(core::ptr::null(), 5)), 0);
}
