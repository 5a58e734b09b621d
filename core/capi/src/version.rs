//! Whether header and library belong together.

use core::ffi::c_char;

use crate::assess::AssessOptions;
use crate::boundary::{input, plain};
use crate::link::{Clock, Link};
use crate::profile::Profile;
use crate::reason::Reason;
use crate::report::AssessReport;
use crate::responder::Served;
use crate::status::{Detail, Outcome, Status, finish};
use crate::wire::{Bounds, Frame};

/// Version of this interface. Changes whenever a struct, a constant or the
/// meaning of a function does.
pub const LOGGAP_ABI_VERSION: u32 = 1;

/// Sizes of the structs as the caller was compiled, in bytes.
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
    /// `sizeof(loggap_assess_options)`.
    pub assess_options: u32,
    /// `sizeof(loggap_assess_report)`.
    pub assess_report: u32,
    /// `sizeof(loggap_profile)`.
    pub profile: u32,
}

plain!(Sizes);

#[allow(clippy::cast_possible_truncation, reason = "structs of a few kilobytes")]
const fn size<T>() -> u32 {
    size_of::<T>() as u32
}

/// The sizes as the library was compiled.
const OURS: Sizes = Sizes {
    detail: size::<Detail>(),
    clock: size::<Clock>(),
    link: size::<Link>(),
    bounds: size::<Bounds>(),
    frame: size::<Frame>(),
    served: size::<Served>(),
    assess_options: size::<AssessOptions>(),
    assess_report: size::<AssessReport>(),
    profile: size::<Profile>(),
};

/// Version of the interface that the library was built with; compare with
/// `LOGGAP_ABI_VERSION`.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_abi_version() -> u32 {
    LOGGAP_ABI_VERSION
}

/// Version of the library as text such as `0.1.0`, ended by a zero byte.
/// Valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_version() -> *const c_char {
    const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    TEXT.as_ptr().cast()
}

/// Compares version and struct sizes of the caller with those of the library.
/// `loggap_check_abi()` calls it with everything filled in; call that once
/// before anything else. `bytes` is `sizeof(loggap_sizes)`.
///
/// Errors: `LOGGAP_STATUS_VERSION`, with what differs in `reason`, what the
/// library has in `needed` and what the caller has in `found`;
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
        let reason = Detail::because(Status::Version, Reason::SizesSize);
        differs(size_of::<Sizes>(), bytes, reason)?;
        // SAFETY: by the contract of this function, of as many bytes.
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
        (ours.detail, theirs.detail, Reason::DetailSize),
        (ours.clock, theirs.clock, Reason::ClockSize),
        (ours.link, theirs.link, Reason::LinkSize),
        (ours.bounds, theirs.bounds, Reason::BoundsSize),
        (ours.frame, theirs.frame, Reason::FrameSize),
        (ours.served, theirs.served, Reason::ServedSize),
        (ours.assess_options, theirs.assess_options, Reason::OptionsSize),
        (ours.assess_report, theirs.assess_report, Reason::ReportSize),
        (ours.profile, theirs.profile, Reason::ProfileSize),
    ];
    pairs.into_iter().try_for_each(|(ours, theirs, reason)| {
        differs(ours as usize, theirs as usize, Detail::because(Status::Version, reason))
    })
}
