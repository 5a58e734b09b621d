//! Profiles in few bytes, and what they predict.

use crate::fuzzing::lent::{Lent, Plain};
use loggap_capi::{
    Change, Estimate, LOGGAP_PROFILE_BYTES, Line, LogGops, Prediction, Profile, Range,
};

fn exact(value: i64) -> Estimate {
    Estimate { value, low: value, high: value, mark: 0 }
}

fn line(at_one: i64, per_byte: i64) -> Line {
    Line {
        at_one: exact(at_one),
        per_byte: exact(per_byte << 16),
        centre: 1,
        at_centre_ps: at_one,
        ..Line::default()
    }
}

/// A range from `first` to `last` of which everything is known.
fn range(first: u64, last: u64) -> Range {
    Range {
        first,
        last,
        known: 15,
        gap: line(1_000_000, 2_000),
        half_rtt: line(8_000_000, 2_000),
        send_overhead: line(1_500_000, 0),
        recv_overhead: line(500_000, 0),
        latency: exact(6_000_000),
    }
}

fn profile() -> Profile {
    let mut profile = Profile { range_count: 2, change_count: 1, ..Profile::zeros() };
    (profile.ranges[0], profile.ranges[1]) = (range(1, 511), range(512, 1000));
    let change = Change { at: 512, low: 500, high: 512, parameter: 4, jump_ppm: -7, splits: 1 };
    profile.changes[0] = change;
    profile
}

#[test]
fn a_profile_is_encoded_and_decoded_the_same() {
    let profile = profile();
    let (memory, mut length) = (Lent::new(LOGGAP_PROFILE_BYTES), 0_usize);
    let (bytes, room) = (memory.pointer(), memory.length());
    gives!(Ok, loggap_profile_encode(&raw const profile, bytes, room, &raw mut length));
    let read = Lent::new(size_of::<Profile>());
    let again: *mut Profile = read.pointer().cast();
    gives!(Ok, loggap_profile_decode(bytes, length, again));
    let (second, mut second_length) = (Lent::new(length), 0_usize);
    let needed =
        gives!(Ok, loggap_profile_encode(again, second.pointer(), length, &raw mut second_length));
    assert_eq!((needed.needed, second_length), (0, length));
    assert_eq!(memory.bytes(length), second.bytes(length));
    assert!(memory.is_guarded() && read.is_guarded() && second.is_guarded());
}

#[test]
fn a_profile_that_is_cut_off_has_no_ranges() {
    let profile = profile();
    let mut bytes = [0; LOGGAP_PROFILE_BYTES];
    let mut length = 0_usize;
    let room = bytes.len();
    gives!(
        Ok,
        loggap_profile_encode(&raw const profile, bytes.as_mut_ptr(), room, &raw mut length)
    );
    let step = if cfg!(miri) { 17 } else { 1 };
    for cut in (0..length).step_by(step) {
        let mut read = profile;
        gives!(Malformed, loggap_profile_decode(bytes.as_ptr(), cut, &raw mut read));
        assert_eq!((read.range_count, read.change_count), (0, 0));
    }
    let detail = gives!(
        Full,
        loggap_profile_encode(&raw const profile, bytes.as_mut_ptr(), 20, &raw mut length)
    );
    assert_eq!(detail.found, 20);
    let wrong = Profile { range_count: 9, ..profile };
    gives!(
        Option,
        loggap_profile_encode(&raw const wrong, bytes.as_mut_ptr(), room, &raw mut length)
    );
}

#[test]
fn a_profile_predicts_messages_and_round_trips() {
    let profile = profile();
    let mut prediction = Prediction::default();
    let place = &raw mut prediction;
    gives!(Ok, loggap_predict_message(&raw const profile, 101, place));
    assert_eq!(prediction.value_ps, 8_200_000);
    let place = &raw mut prediction;
    gives!(Ok, loggap_predict_prtt(&raw const profile, 10, 3_000_000, 1, place));
    assert_eq!(prediction.value_ps, 2 * 8_000_000 + 9 * 4_500_000);
    let untouched = Lent::filled(size_of::<Prediction>(), 0);
    let place = untouched.pointer().cast();
    gives!(OutsideProfile, loggap_predict_message(&raw const profile, 1001, place));
    gives!(Option, loggap_predict_prtt(&raw const profile, 0, 0, 1, place));
    assert!(untouched.is_untouched() && untouched.is_guarded());
}

#[test]
fn one_set_of_parameters_predicts_messages_and_collectives() {
    let profile = profile();
    let mut set = LogGops::default();
    gives!(Ok, loggap_profile_loggops(&raw const profile, 5, u64::MAX, &raw mut set));
    assert_eq!((set.latency_ps, set.overhead_ps, set.gap_ps), (6_000_000, 1_000_000, 1_000_000));
    let (mut time, mut is_exact) = (0, 9);
    gives!(Ok, loggap_loggops_message(&raw const set, 101, &raw mut time));
    assert_eq!(time, 8_200_000);
    gives!(Overflow, loggap_loggops_message(&raw const set, u64::MAX, &raw mut time));
    for form in 0..4 {
        let (time, is_exact) = (&raw mut time, &raw mut is_exact);
        gives!(Ok, loggap_loggops_collective(&raw const set, form, 8, 1, time, is_exact));
    }
    assert!(time > 0 && is_exact <= 1);
    let null = core::ptr::null_mut();
    gives!(Ok, loggap_loggops_collective(&raw const set, 0, 8, 1, &raw mut time, null));
    gives!(Option, loggap_loggops_collective(&raw const set, 4, 8, 1, &raw mut time, null));
}
