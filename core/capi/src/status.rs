//! Status of a call, and details of a failure.

use core::ffi::{CStr, c_char};

use crate::reason::Reason;

/// Result of a call. A function returns 0 (`LOGGAP_STATUS_OK`) exactly if it
/// did all that its documentation says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// A required pointer is null.
    Null = 1,
    /// A pointer is not aligned for its type, or lent memory not to `LOGGAP_ALIGNMENT`.
    Alignment = 2,
    /// The lent memory is too small. At least `needed` bytes are necessary, but
    /// they may suffice only for the first step (a simulation needs more once
    /// it has read its schedule): the function whose name ends in `_bytes`
    /// returns a size that suffices for all steps.
    Memory = 3,
    /// An output array is too small. It holds the first elements, or nothing if
    /// the function says so. `needed` elements suffice.
    Full = 4,
    /// An option or argument has an invalid value.
    Option = 5,
    /// The header belongs to another version of the library.
    Version = 6,
    /// The object was not created by its init function, or its memory was overwritten.
    Handle = 7,
    /// A callback of the link failed; `found` is the code that it returned.
    Link = 8,
    /// The peer was silent for longer than the timeout.
    Silent = 9,
    /// The responder refused.
    Refused = 10,
    /// The peer sent a message that violates the protocol.
    Protocol = 11,
    /// A callback asked to stop.
    Stopped = 12,
    /// A text, file, frame or profile is malformed at byte `at`.
    Malformed = 13,
    /// Too few values to compute the result.
    NoData = 14,
    /// The profile does not cover this size.
    OutsideProfile = 15,
    /// The profile lacks a required parameter.
    NotMeasured = 16,
    /// A parameter is negative, or was measured at one size only.
    Unusable = 17,
    /// A time does not fit into 64 bits of picoseconds (213 days).
    Overflow = 18,
    /// A callback of the sink refused an element; `found` is the code that it
    /// returned.
    Sink = 19,
    /// The schedule cannot be simulated; see `reason`.
    Schedule = 20,
    /// The simulated program never ends.
    Deadlock = 21,
    /// The name is unknown.
    UnknownName = 22,
    /// The self-test gave a wrong answer.
    SelfTest = 23,
}

/// Location and reason of a failure. A function that takes one fills it in:
/// after success with `LOGGAP_STATUS_OK` only. Fields that do not apply to a
/// failure are 0, or `UINT32_MAX` for ranks and operations.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Detail {
    /// The status that the function returned, a `loggap_status`.
    pub status: i32,
    /// The rank concerned, or `UINT32_MAX`.
    pub rank: u32,
    /// The operation concerned, by its index on the rank, or `UINT32_MAX`.
    pub op: u32,
    /// Line of a text, from 1; 0 if there is no line.
    pub line: u32,
    /// Byte within the line, from 1; 0 if there is no line.
    pub column: u32,
    /// Offset of the wrong byte, index of the wrong element, or message size concerned.
    pub at: u64,
    /// Amount that would suffice, or the value expected.
    pub needed: u64,
    /// Value found instead, or the code that a callback returned.
    pub found: u64,
    /// A `loggap_reason`; `loggap_reason_text` explains it.
    pub reason: u32,
    /// Name of the wrong field, without a terminating zero byte; null if no
    /// field is concerned.
    pub name: *const c_char,
    /// Length of `name` in bytes.
    pub name_length: usize,
}

/// Result of a function of this crate.
pub(crate) type Outcome<T> = Result<T, Detail>;

impl Detail {
    const OK: Self = Self::of(Status::Ok);

    /// A failure with nothing but its status.
    pub(crate) const fn of(status: Status) -> Self {
        Self::because(status, Reason::None)
    }

    /// A failure with its reason.
    #[inline(always)]
    pub(crate) const fn because(status: Status, reason: Reason) -> Self {
        Self {
            status: status as i32,
            rank: u32::MAX,
            op: u32::MAX,
            line: 0,
            column: 0,
            at: 0,
            needed: 0,
            found: 0,
            reason: reason as u32,
            name: core::ptr::null(),
            name_length: 0,
        }
    }

    #[inline(always)]
    pub(crate) const fn at(self, at: u64) -> Self {
        Self { at, ..self }
    }

    #[inline(always)]
    pub(crate) const fn needed(self, needed: u64) -> Self {
        Self { needed, ..self }
    }

    #[inline(always)]
    pub(crate) const fn found(self, found: u64) -> Self {
        Self { found, ..self }
    }

    #[inline(always)]
    pub(crate) const fn on_rank(self, rank: u32) -> Self {
        Self { rank, ..self }
    }

    #[inline(always)]
    pub(crate) const fn on(self, rank: u32, op: u32) -> Self {
        Self { rank, op, ..self }
    }

    #[inline(always)]
    pub(crate) fn line(self, line: usize, column: usize) -> Self {
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        Self { line: number(line), column: number(column), ..self }
    }

    #[inline(always)]
    pub(crate) const fn named(self, name: &'static str) -> Self {
        Self { name: name.as_ptr().cast(), name_length: name.len(), ..self }
    }
}

/// Ends a call: fills in `detail`, if it is not null, and returns the status.
///
/// # Safety
///
/// `detail` is null or valid for a write.
pub(crate) unsafe fn finish(outcome: Outcome<()>, detail: *mut Detail) -> i32 {
    let told = match outcome {
        Ok(()) => Detail::OK,
        Err(failure) => failure,
    };
    if !detail.is_null() && detail.is_aligned() {
        // SAFETY: neither null nor misaligned, and valid by the contract.
        unsafe { detail.write(told) };
    }
    told.status
}

/// Text of every status.
const TEXTS: [(Status, &CStr); 24] = [
    (Status::Ok, c"ok"),
    (Status::Null, c"a required pointer is null"),
    (Status::Alignment, c"a pointer is not aligned"),
    (Status::Memory, c"the lent memory is too small"),
    (Status::Full, c"an array for results is too small"),
    (Status::Option, c"an option has a value that it cannot have"),
    (Status::Version, c"the header does not belong to this library"),
    (Status::Handle, c"not an initialised object"),
    (Status::Link, c"a callback of the link failed"),
    (Status::Silent, c"the peer was silent for too long"),
    (Status::Refused, c"the responder refused"),
    (Status::Protocol, c"the peer sent what does not belong there"),
    (Status::Stopped, c"stopped by a callback"),
    (Status::Malformed, c"malformed input"),
    (Status::NoData, c"too few values"),
    (Status::OutsideProfile, c"the profile does not hold this size"),
    (Status::NotMeasured, c"a parameter that is needed was not measured"),
    (Status::Unusable, c"a parameter is negative or known at one size only"),
    (Status::Overflow, c"a time is past 2^64 ps (213 days)"),
    (Status::Sink, c"a callback of the sink refused an element"),
    (Status::Schedule, c"the schedule cannot be simulated"),
    (Status::Deadlock, c"the simulated program never ends"),
    (Status::UnknownName, c"there is nothing of this name"),
    (Status::SelfTest, c"the self-test gave a wrong answer"),
];

/// One line that explains `status`, terminated by a zero byte. Never null,
/// valid forever; any number is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_status_text(status: i32) -> *const c_char {
    let found = TEXTS.iter().find(|(known, _)| *known as i32 == status);
    found.map_or(c"unknown status".as_ptr(), |(_, text)| text.as_ptr())
}
