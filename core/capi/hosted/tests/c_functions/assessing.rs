//! Whole assessments of a link on virtual time: at its other end is a
//! responder, behind the same callbacks.

use crate::fuzzing::lent::{Lent, Plain};
use core::ffi::c_void;
use loggap_capi::{
    ActionKind, AssessOptions, AssessReport, Clock, ConclusionKind, Detail, Link, Profile,
    Progress, Responder, ResponderAction, ResponderNext, Status,
};
use std::collections::VecDeque;

const LARGEST: usize = 600;
/// Send overhead, receive overhead, latency and time of a byte, in ns.
const SEND: u64 = 1000;
const RECEIVE: u64 = 500;
const LATENCY: u64 = 5000;

/// Both ends of a link.
struct Loopback {
    /// In ns.
    now: u64,
    /// When the next message may leave.
    free: u64,
    responder: *mut Responder,
    /// What comes back, and when.
    coming: VecDeque<(u64, Vec<u8>)>,
    /// Every so many messages one is lost; 0: none.
    lose_every: u64,
    messages: u64,
    /// Every so many messages a stranger sends one that is too long; 0: none.
    babble_every: u64,
    /// From this message on the link is broken.
    break_at: u64,
    /// Options that the progress function spoils once it has been called.
    spoilt: *mut AssessOptions,
    /// Calls of the progress function before it asks to stop.
    patience: u32,
}

/// # Safety
///
/// `context` points to a loopback that nobody else uses meanwhile.
unsafe fn loopback<'a>(context: *mut c_void) -> &'a mut Loopback {
    // SAFETY: by the contract.
    unsafe { &mut *context.cast::<Loopback>() }
}

impl Loopback {
    fn is_lost(&mut self) -> bool {
        self.messages += 1;
        self.lose_every > 0 && self.messages.is_multiple_of(self.lose_every)
    }

    /// Takes one answer of the responder at `time`; gives whether there is more.
    fn take(&mut self, time: u64, action: &ResponderAction) -> bool {
        if action.length > 0 && !self.is_lost() {
            // SAFETY: inside of the responder's memory, and no call has followed.
            let bytes = unsafe { core::slice::from_raw_parts(action.message, action.length) };
            let arrival = time + SEND + LATENCY + 2 * action.length as u64;
            self.coming.push_back((arrival, bytes.to_vec()));
        }
        action.kind == ActionKind::SendMore as u32
    }
}

unsafe extern "C" fn now(context: *mut c_void) -> u64 {
    // SAFETY: the tests pass a loopback as the context.
    let link = unsafe { loopback(context) };
    link.now += 20;
    link.now
}

unsafe extern "C" fn send(context: *mut c_void, message: *const u8, length: usize) -> i32 {
    // SAFETY: as in `now`.
    let link = unsafe { loopback(context) };
    link.now += SEND;
    let left = link.now.max(link.free);
    link.free = left + 2000 + 3 * length as u64;
    if link.messages >= link.break_at {
        return 77;
    }
    if link.babble_every > 0 && link.messages.is_multiple_of(link.babble_every) {
        link.coming.push_back((link.now, vec![0xff; LARGEST + 1]));
    }
    if link.is_lost() {
        return 0;
    }
    let (null, mut next) = (core::ptr::null_mut(), ResponderNext::zeros());
    assert_eq!(call!(loggap_responder_next(link.responder, &raw mut next, null)), 0);
    if next.timed == 1 {
        assert_eq!(call!(loggap_responder_timed(link.responder, RECEIVE * 1000, null)), 0);
    }
    let time = left + LATENCY + 2 * length as u64 + RECEIVE;
    let mut action = ResponderAction::zeros();
    let (responder, place) = (link.responder, &raw mut action);
    let status =
        call!(loggap_responder_handle(responder, time * 1000, message, length, place, null));
    assert_eq!(status, 0);
    while link.take(time, &action) {
        assert_eq!(call!(loggap_responder_more(responder, &raw mut action, null)), 0);
    }
    0
}

unsafe extern "C" fn poll(
    context: *mut c_void,
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    // SAFETY: as in `now`.
    let link = unsafe { loopback(context) };
    match link.coming.front() {
        None => link.now += 1_000_000,
        Some((arrival, _)) if *arrival > link.now => link.now = *arrival,
        // A datagram link drops what is too long.
        Some((_, bytes)) if bytes.len() > capacity => drop(link.coming.pop_front()),
        Some((_, bytes)) => {
            // SAFETY: no more than the capacity of the buffer.
            unsafe { buffer.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            // SAFETY: the library passes a place for the length.
            unsafe { length.write(bytes.len()) };
            link.now += RECEIVE;
            link.coming.pop_front();
            return 1;
        }
    }
    0
}

unsafe extern "C" fn discard(context: *mut c_void) -> i32 {
    // SAFETY: as in `now`.
    unsafe { loopback(context) }.coming.clear();
    0
}

unsafe extern "C" fn progress(context: *mut c_void, progress: *const Progress) -> i32 {
    // SAFETY: the library passes a progress.
    assert!(unsafe { progress.read() }.spent_ppm <= 1_000_000);
    // SAFETY: as in `now`.
    let link = unsafe { loopback(context) };
    if !link.spoilt.is_null() {
        // SAFETY: the test's own options, which outlive the call.
        let told = unsafe { &raw mut (*link.spoilt).progress };
        // SAFETY: as above.
        unsafe { told.write(None) };
    }
    link.patience = link.patience.saturating_sub(1);
    i32::from(link.patience == 0)
}

fn usual() -> AssessOptions {
    let mut options = AssessOptions::zeros();
    assert_eq!(call!(loggap_assess_options_default(&raw mut options)), 0);
    options.largest = LARGEST as u32;
    (options.coarse_sizes, options.sizes, options.repetitions) = (3, 4, 8);
    (options.messages, options.max_messages) = (3, 400);
    if cfg!(miri) {
        (options.coarse_sizes, options.max_changes, options.max_messages) = (2, 0, 160);
    }
    options
}

/// What goes wrong, see [`Loopback`].
#[derive(Clone, Copy)]
struct Trouble {
    lose_every: u64,
    babble_every: u64,
    break_at: u64,
    spoils: bool,
    patience: u32,
}

/// What an assessment gave.
struct Found {
    status: i32,
    detail: Detail,
    profile: Profile,
    report: AssessReport,
}

type Assess = unsafe extern "C" fn(
    *const Clock,
    *const Link,
    *const AssessOptions,
    *mut u8,
    usize,
    *mut Profile,
    *mut AssessReport,
    *mut Detail,
) -> i32;

/// No trouble.
const GOOD: Trouble = Trouble {
    lose_every: 0,
    babble_every: 0,
    break_at: u64::MAX,
    spoils: false,
    patience: u32::MAX,
};

fn assess(how: Assess, mut options: AssessOptions, trouble: Trouble) -> Found {
    let Trouble { lose_every, babble_every, break_at, spoils, patience } = trouble;
    let lent = Lent::new(call!(loggap_responder_bytes(LARGEST)));
    let mut responder = core::ptr::null_mut();
    let (bounds, reliable) = (core::ptr::null(), u32::from(lose_every == 0 && babble_every == 0));
    let (room, message) = (lent.length(), LARGEST as u64);
    let (first, place) = (lent.pointer(), &raw mut responder);
    gives!(Ok, loggap_responder_init(place, bounds, message, reliable, 0, first, room));
    let wanted = Lent::new(size_of::<AssessOptions>());
    let given: *mut AssessOptions = wanted.pointer().cast();
    let mut ends = Loopback {
        now: 1_000_000,
        free: 0,
        responder,
        coming: VecDeque::new(),
        lose_every,
        messages: 0,
        babble_every,
        break_at,
        spoilt: if spoils { given } else { core::ptr::null_mut() },
        patience,
    };
    let context: *mut c_void = (&raw mut ends).cast();
    let scale = 1000 << 32;
    let mut clock = Clock { context, now: Some(now), picos_per_tick_q32: scale, read_cost_ps: 0 };
    gives!(Ok, loggap_clock_calibrate(&raw mut clock));
    assert_eq!(clock.read_cost_ps, 20_000);
    let (send, poll_receive, discard) = (Some(send as _), Some(poll as _), Some(discard as _));
    let link = Link { context, send, poll_receive, discard, max_message: message, reliable };
    options.progress = Some(progress);
    options.progress_context = context;
    // SAFETY: aligned, and as long as the options.
    unsafe { given.write(options) };
    let memory = Lent::new(call!(loggap_assess_bytes(&raw const options)));
    let (profile, report) = (Lent::new(size_of::<Profile>()), Lent::new(size_of::<AssessReport>()));
    let mut detail = Detail::zeros();
    let (found, told) = (profile.pointer().cast(), report.pointer().cast());
    // SAFETY: as `call!`.
    let status = unsafe {
        how(
            &raw const clock,
            &raw const link,
            given,
            memory.pointer(),
            memory.length(),
            found,
            told,
            &raw mut detail,
        )
    };
    assert!(memory.is_guarded() && profile.is_guarded() && report.is_guarded());
    assert_eq!(detail.status, status);
    // SAFETY: written whenever measuring has begun.
    let profile = unsafe { found.read() };
    // SAFETY: as above.
    Found { status, detail, profile, report: unsafe { told.read() } }
}

#[test]
fn an_assessment_over_callbacks_finds_the_link() {
    let found = assess(loggap_capi::loggap_assess, usual(), GOOD);
    assert_eq!((found.status, found.profile.range_count), (0, 1));
    if cfg!(miri) {
        return; // too few rounds for what follows
    }
    let range = found.profile.ranges[0];
    assert_eq!((range.first, range.last, range.known), (1, LARGEST as u64, 15));
    assert!((4_800_000..5_200_000).contains(&range.latency.value), "{range:?}");
    assert!(found.report.rounds > 50 && found.report.rounds_lost == 0);
    assert_eq!(found.report.converged, 1);
}

#[test]
#[cfg_attr(miri, ignore = "as an_assessment_over_callbacks_finds_the_link, which Miri runs")]
fn an_assessment_that_looks_ahead_bears_losses() {
    let options = AssessOptions { max_messages: 80, ..usual() };
    let found =
        assess(loggap_capi::loggap_assess_look_ahead, options, Trouble { lose_every: 41, ..GOOD });
    assert_eq!((found.status, found.profile.range_count), (0, 1));
    assert!(found.report.rounds_lost > 0);
}

#[test]
fn datagrams_longer_than_any_message_do_not_end_an_assessment() {
    let options = AssessOptions { max_messages: 160, ..usual() };
    let trouble = Trouble { babble_every: 3, ..GOOD };
    let found = assess(loggap_capi::loggap_assess, options, trouble);
    assert_eq!((found.status, found.profile.range_count), (0, 1));
}

#[test]
fn a_link_that_breaks_late_leaves_the_profile_of_what_was_measured() {
    let broken = |break_at| {
        let trouble = Trouble { break_at, ..GOOD };
        let found = assess(loggap_capi::loggap_assess, usual(), trouble);
        assert_eq!((found.status, found.detail.found), (Status::Link as i32, 77));
        assert_eq!(found.report.conclusion, ConclusionKind::Failed as u32);
        assert_eq!(found.report.converged, 0);
        found
    };
    let found = broken(if cfg!(miri) { 80 } else { 140 });
    assert!(found.profile.range_count >= 1 && found.report.rounds > 10);
    assert_eq!(found.profile.ranges[0].first, 1);
    // Before anything was measured.
    assert_eq!(broken(2).profile.range_count, 0);
}

#[test]
fn options_that_a_callback_changes_are_those_of_the_beginning() {
    let trouble = Trouble { spoils: true, patience: 2, ..GOOD };
    let found = assess(loggap_capi::loggap_assess, usual(), trouble);
    assert_eq!(found.report.conclusion, ConclusionKind::Stopped as u32);
}

#[test]
fn messages_that_fit_into_no_half_of_a_profile_have_memory_of_their_own() {
    let (half, small) = (size_of::<Profile>() / 2, usual());
    let needed = |options: &AssessOptions| call!(loggap_assess_bytes(&raw const *options));
    let large = AssessOptions { largest: half as u32 + 1, ..small };
    assert!(needed(&large) >= needed(&small) + 2 * half);
    let impossible = AssessOptions { repetitions: 7, ..small };
    assert_eq!(needed(&impossible), 0);
}

#[test]
fn an_assessment_ends_where_the_progress_function_asks_it_to() {
    let found = assess(loggap_capi::loggap_assess, usual(), Trouble { patience: 1, ..GOOD });
    assert_eq!(found.report.conclusion, ConclusionKind::Stopped as u32);
    let none = found.status == Status::NoData as i32;
    assert!(none || found.status == 0, "{}", found.status);
    assert_eq!(none, found.profile.range_count == 0);
}
