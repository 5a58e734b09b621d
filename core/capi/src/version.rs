//! Check that header and library belong together.

use core::ffi::c_char;

use crate::assess::{AssessOptions, Progress};
use crate::boundary::{input, plain};
use crate::detector::{DetectedChange, DetectorOptions};
use crate::fit::{FitOptions, FitPoint, FitSegment};
use crate::goal::{GoalInfo, Operation, SinkTable};
use crate::link::{Clock, Link};
use crate::noise::Detour;
use crate::pattern::PatternOptions;
use crate::predict::Prediction;
use crate::profile::Profile;
use crate::reason::Reason;
use crate::report::AssessReport;
use crate::responder::Served;
use crate::responder_state::{ResponderAction, ResponderNext};
use crate::selftest::SelfTestCount;
use crate::simulate::{Protocol, SimulateOptions, Simulated};
use crate::status::{Detail, Outcome, Status, finish};
use crate::wire::{Bounds, Frame};

/// Version of this interface. It changes whenever a struct, a constant or the
/// meaning of a function changes.
pub const LOGGAP_ABI_VERSION: u32 = 2;

/// Sizes of the structs in the caller's compilation, in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub struct Sizes {
    /// `sizeof(loggap_detail)`.
    pub detail: u32,
    /// `sizeof(loggap_clock)`.
    pub clock: u32,
    /// `sizeof(loggap_link)`.
    pub link: u32,
    /// `sizeof(loggap_bounds)`.
    pub bounds: u32,
    /// `sizeof(loggap_frame)`.
    pub frame: u32,
    /// `sizeof(loggap_served)`.
    pub served: u32,
    /// `sizeof(loggap_responder_action)`.
    pub responder_action: u32,
    /// `sizeof(loggap_responder_next_message)`.
    pub responder_next: u32,
    /// `sizeof(loggap_progress)`.
    pub progress: u32,
    /// `sizeof(loggap_assess_options)`.
    pub assess_options: u32,
    /// `sizeof(loggap_assess_report)`.
    pub assess_report: u32,
    /// `sizeof(loggap_profile)`.
    pub profile: u32,
    /// `sizeof(loggap_fit_point)`.
    pub fit_point: u32,
    /// `sizeof(loggap_fit_options)`.
    pub fit_options: u32,
    /// `sizeof(loggap_fit_segment)`.
    pub fit_segment: u32,
    /// `sizeof(loggap_detector_options)`.
    pub detector_options: u32,
    /// `sizeof(loggap_detected_change)`.
    pub detected_change: u32,
    /// `sizeof(loggap_prediction)`.
    pub prediction: u32,
    /// `sizeof(loggap_protocol)`.
    pub protocol: u32,
    /// `sizeof(loggap_simulate_options)`.
    pub simulate_options: u32,
    /// `sizeof(loggap_simulated)`.
    pub simulated: u32,
    /// `sizeof(loggap_pattern_options)`.
    pub pattern_options: u32,
    /// `sizeof(loggap_goal_info)`.
    pub goal_info: u32,
    /// `sizeof(loggap_operation)`.
    pub operation: u32,
    /// `sizeof(loggap_sink)`.
    pub sink: u32,
    /// `sizeof(loggap_detour)`.
    pub detour: u32,
    /// `sizeof(loggap_selftest_count)`.
    pub selftest_count: u32,
}

plain!(Sizes);

#[allow(clippy::cast_possible_truncation, reason = "structs of a few kilobytes")]
const fn size<T>() -> u32 {
    size_of::<T>() as u32
}

/// Sizes of the structs in the library's compilation.
const OURS: Sizes = Sizes {
    detail: size::<Detail>(),
    clock: size::<Clock>(),
    link: size::<Link>(),
    bounds: size::<Bounds>(),
    frame: size::<Frame>(),
    served: size::<Served>(),
    responder_action: size::<ResponderAction>(),
    responder_next: size::<ResponderNext>(),
    progress: size::<Progress>(),
    assess_options: size::<AssessOptions>(),
    assess_report: size::<AssessReport>(),
    profile: size::<Profile>(),
    fit_point: size::<FitPoint>(),
    fit_options: size::<FitOptions>(),
    fit_segment: size::<FitSegment>(),
    detector_options: size::<DetectorOptions>(),
    detected_change: size::<DetectedChange>(),
    prediction: size::<Prediction>(),
    protocol: size::<Protocol>(),
    simulate_options: size::<SimulateOptions>(),
    simulated: size::<Simulated>(),
    pattern_options: size::<PatternOptions>(),
    goal_info: size::<GoalInfo>(),
    operation: size::<Operation>(),
    sink: size::<SinkTable>(),
    detour: size::<Detour>(),
    selftest_count: size::<SelfTestCount>(),
};

/// Interface version of the library; compare it with `LOGGAP_ABI_VERSION`.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_abi_version() -> u32 {
    LOGGAP_ABI_VERSION
}

/// Version of the library as text, such as `0.1.0`, terminated by a zero byte.
/// Valid forever.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_version() -> *const c_char {
    const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    TEXT.as_ptr().cast()
}

/// Compares the interface version and the struct sizes of the caller with those
/// of the library. `loggap_check_abi()` calls it with all arguments filled in;
/// call that once before any other function. `bytes` is `sizeof(loggap_sizes)`.
///
/// Errors: `LOGGAP_STATUS_VERSION`, with the struct that differs in `name`, the
/// library's value in `needed` and the caller's in `found`;
/// `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_abi_check(
    version: u32,
    sizes: *const Sizes,
    bytes: usize,
    detail: *mut Detail,
) -> i32 {
    let compare = || {
        differs(LOGGAP_ABI_VERSION as usize, version as usize, Detail::of(Status::Version))?;
        let reason = Detail::because(Status::Version, Reason::StructSize).named("loggap_sizes");
        differs(size_of::<Sizes>(), bytes, reason)?;
        // SAFETY: by the contract of this function; `bytes` has just been checked.
        let theirs = unsafe { input(sizes) }?;
        same(&OURS, theirs)
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(compare(), detail) }
}

fn differs(ours: usize, theirs: usize, failure: Detail) -> Outcome<()> {
    if ours == theirs {
        return Ok(());
    }
    Err(failure.needed(ours as u64).found(theirs as u64))
}

fn same(ours: &Sizes, theirs: &Sizes) -> Outcome<()> {
    let pairs = [
        ("loggap_detail", ours.detail, theirs.detail),
        ("loggap_clock", ours.clock, theirs.clock),
        ("loggap_link", ours.link, theirs.link),
        ("loggap_bounds", ours.bounds, theirs.bounds),
        ("loggap_frame", ours.frame, theirs.frame),
        ("loggap_served", ours.served, theirs.served),
        ("loggap_responder_action", ours.responder_action, theirs.responder_action),
        ("loggap_responder_next_message", ours.responder_next, theirs.responder_next),
        ("loggap_progress", ours.progress, theirs.progress),
        ("loggap_assess_options", ours.assess_options, theirs.assess_options),
        ("loggap_assess_report", ours.assess_report, theirs.assess_report),
        ("loggap_profile", ours.profile, theirs.profile),
        ("loggap_fit_point", ours.fit_point, theirs.fit_point),
        ("loggap_fit_options", ours.fit_options, theirs.fit_options),
        ("loggap_fit_segment", ours.fit_segment, theirs.fit_segment),
        ("loggap_detector_options", ours.detector_options, theirs.detector_options),
        ("loggap_detected_change", ours.detected_change, theirs.detected_change),
        ("loggap_prediction", ours.prediction, theirs.prediction),
        ("loggap_protocol", ours.protocol, theirs.protocol),
        ("loggap_simulate_options", ours.simulate_options, theirs.simulate_options),
        ("loggap_simulated", ours.simulated, theirs.simulated),
        ("loggap_pattern_options", ours.pattern_options, theirs.pattern_options),
        ("loggap_goal_info", ours.goal_info, theirs.goal_info),
        ("loggap_operation", ours.operation, theirs.operation),
        ("loggap_sink", ours.sink, theirs.sink),
        ("loggap_detour", ours.detour, theirs.detour),
        ("loggap_selftest_count", ours.selftest_count, theirs.selftest_count),
    ];
    pairs.into_iter().try_for_each(|(name, ours, theirs)| {
        let failure = Detail::because(Status::Version, Reason::StructSize).named(name);
        differs(ours as usize, theirs as usize, failure)
    })
}
