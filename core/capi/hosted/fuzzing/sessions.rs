//! The blocking calls: a responder that serves, and an assessment.

use super::World;
use super::lent::{Lent, Plain};
use super::numbers::Numbers;
use super::objects::usual_bounds;
use super::peer::{Peer, clock_of, link_of};
use super::place::{Place, Told, scribbled};
use core::ffi::c_void;
use loggap_capi::{
    AssessOptions, AssessReport, Clock, Estimate, LOGGAP_MAX_RANGES, LOGGAP_PROFILE_BYTES, Link,
    Profile, Progress, Served, Status, loggap_assess, loggap_assess_look_ahead,
};

const SERVE: [Status; 6] =
    [Status::Link, Status::Silent, Status::Memory, Status::Option, Status::Null, Status::Alignment];

const ASSESS: [Status; 10] = [
    Status::Option,
    Status::Memory,
    Status::Link,
    Status::Silent,
    Status::Refused,
    Status::Protocol,
    Status::Stopped,
    Status::NoData,
    Status::Null,
    Status::Alignment,
];

/// Largest message of an assessment.
const LARGEST: u32 = 700;

/// Picoseconds a tick, 0 included, which is none.
fn scale(input: &mut Numbers<'_>) -> u64 {
    match input.byte() {
        0xff => 0,
        0xf0.. => input.number().max(1 << 32),
        _ => 1000 << 32,
    }
}

impl World {
    pub(super) fn session(&mut self, input: &mut Numbers<'_>) {
        if input.byte() & 1 == 0 || self.assessments == 0 {
            serve(input);
        } else {
            self.assessments -= 1;
            self.assess(input);
        }
    }

    fn assess(&mut self, input: &mut Numbers<'_>) {
        let lent = Lent::new(call!(loggap_responder_bytes(LARGEST as usize)));
        let (mut responder, null) = (core::ptr::null_mut(), core::ptr::null_mut());
        let reliable = u32::from(input.byte() & 1);
        let (place, bounds) = (&raw mut responder, core::ptr::null());
        let (first, room, most) = (lent.pointer(), lent.length(), u64::from(LARGEST));
        let made =
            call!(loggap_responder_init(place, bounds, most, reliable, 0, first, room, null));
        assert_eq!(made, 0);
        let count = usize::from(input.short()) % 300;
        let mut peer = Peer::responder(input.take(count), responder);
        let context = (&raw mut peer).cast();
        let (scale, max_message) =
            (scale(input), if input.seldom() { input.number() } else { most });
        let clock = Place::holding(input, &[clock_of(context, scale)]);
        let calibrated = call!(loggap_clock_calibrate(clock.pointer(), null));
        assert_eq!(calibrated == 0, clock.is_right() && scale > 0);
        let link = Place::holding(input, &[link_of(context, max_message, reliable)]);
        let stops_after = i32::from(input.byte());
        self.run(&clock, &link, stops_after, input);
        assert!(lent.is_guarded());
    }

    fn run(
        &mut self,
        clock: &Place<Clock>,
        link: &Place<Link>,
        mut stops_after: i32,
        input: &mut Numbers<'_>,
    ) {
        let mut options = options(input);
        options.progress = Some(progress);
        options.progress_context = (&raw mut stops_after).cast();
        let given = Place::holding(input, &[options]);
        let needed = call!(loggap_assess_bytes(given.pointer()));
        let bytes = input.length(needed.min(1 << 17));
        let memory = Lent::shifted(bytes, if input.seldom() { 4 } else { 0 });
        let profile = Place::<Profile>::new(input);
        let (report, told) = (Place::<AssessReport>::new(input), Told::new(input));
        let assess = if input.byte() & 1 == 0 { loggap_assess } else { loggap_assess_look_ahead };
        // SAFETY: as `call!`.
        let status = unsafe {
            assess(
                clock.pointer(),
                link.pointer(),
                given.pointer(),
                memory.pointer(),
                bytes,
                profile.pointer(),
                report.pointer(),
                told.pointer(),
            )
        };
        told.check(status, &ASSESS);
        assert!(memory.is_guarded() && profile.is_guarded() && report.is_guarded());
        let is_wrong = clock.is_wrong() || link.is_wrong() || given.is_wrong();
        assert!(status != 0 || !(is_wrong || profile.is_wrong() || bytes < needed));
        // Told apart by what the memory was filled with.
        let is_written = profile.is_right() && !profile.is_untouched();
        let ranges = if is_written { profile.get().range_count } else { 0 };
        // What was measured before a session failed is kept.
        let kept = [Status::Link, Status::Silent, Status::Refused, Status::Protocol];
        if status == 0 || ranges > 0 {
            assert!(status == 0 || kept.iter().any(|&kept| kept as i32 == status), "{status}");
            self.profile = profile.get();
            check_profile(&self.profile);
        }
    }
}

/// What is to be measured: little, and sometimes what cannot be.
fn options(input: &mut Numbers<'_>) -> AssessOptions {
    let mut usual = AssessOptions::zeros();
    assert_eq!(call!(loggap_assess_options_default(&raw mut usual)), 0);
    let coarse_sizes = 2 + u32::from(input.byte() % 3);
    let options = AssessOptions {
        largest: 1 + u32::from(input.short()) % LARGEST,
        coarse_sizes,
        sizes: coarse_sizes + u32::from(input.byte() % 3),
        repetitions: 8,
        max_changes: u32::from(input.byte() % 3),
        messages: 2 + u32::from(input.byte() % 2),
        max_messages: 200,
        ..usual
    };
    if input.seldom() { scribbled(options, input) } else { options }
}

unsafe extern "C" fn progress(context: *mut c_void, progress: *const Progress) -> i32 {
    // SAFETY: the library passes a progress.
    assert!(unsafe { progress.read() }.spent_ppm <= 1_000_000);
    // SAFETY: the context of these options is a number, which nobody else uses.
    let left = unsafe { &mut *context.cast::<i32>() };
    *left -= 1;
    i32::from(*left == 0)
}

/// A profile that was measured can be kept, and its intervals hold their values.
fn check_profile(profile: &Profile) {
    let ranges = &profile.ranges[..profile.range_count as usize];
    assert!((1..=LOGGAP_MAX_RANGES).contains(&ranges.len()));
    let holds =
        |estimate: &Estimate| estimate.low <= estimate.value && estimate.value <= estimate.high;
    for range in ranges {
        let lines = [range.gap, range.half_rtt, range.send_overhead, range.recv_overhead];
        assert!(lines.iter().all(|line| holds(&line.at_one) && holds(&line.per_byte)));
        assert!(range.first <= range.last && holds(&range.latency));
    }
    let (memory, mut length) = (Lent::new(LOGGAP_PROFILE_BYTES), 0_usize);
    let (bytes, room, null) = (memory.pointer(), memory.length(), core::ptr::null_mut());
    let given = &raw const *profile;
    assert_eq!(call!(loggap_profile_encode(given, bytes, room, &raw mut length, null)), 0);
}

fn serve(input: &mut Numbers<'_>) {
    let count = usize::from(input.short()) % 300;
    let mut peer = Peer::initiator(input.take(count));
    let context = (&raw mut peer).cast();
    let (scale, reliable) = (scale(input), u32::from(input.byte() % 11 / 5));
    let max_message = if input.seldom() { input.number() } else { 1500 };
    let clock = Place::holding(input, &[clock_of(context, scale)]);
    let mut table = link_of(context, max_message, reliable);
    match input.byte() {
        0xff => table.send = None,
        0xfe => table.poll_receive = None,
        0xfd => table.discard = None,
        _ => {}
    }
    let link = Place::holding(input, &[table]);
    let bounds = scribbled(usual_bounds(), input);
    let bounds = Place::holding(input, &[bounds]);
    let largest = usize::from(input.byte()) * 4;
    let bytes = input.length(call!(loggap_serve_bytes(largest)));
    let memory = Lent::shifted(bytes, if input.seldom() { 4 } else { 0 });
    let (served, told) = (Place::<Served>::new(input), Told::new(input));
    let nonce = u64::from(input.byte() & 1) * 0x5eed;
    let (clock_table, link_table, limits) = (clock.pointer(), link.pointer(), bounds.pointer());
    let (first, place, detail) = (memory.pointer(), served.pointer(), told.pointer());
    let status =
        call!(loggap_serve(clock_table, link_table, limits, nonce, first, bytes, place, detail));
    told.check(status, &SERVE);
    served.holds(status);
    assert!(memory.is_guarded());
    let is_known = scale > 0 && reliable <= 1 && max_message >= 448;
    assert!(status != 0 || is_known && !clock.is_wrong() && !link.is_wrong());
}
