//! What every function returns, and the details of a failure.

use core::ffi::{CStr, c_char};

use crate::reason::Reason;

/// What became of a call. Functions that return it return 0
/// (`LOGGAP_STATUS_OK`) exactly when they did all that they say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum Status {
    /// All is done.
    Ok = 0,
    /// A pointer that has to point somewhere is null.
    Null = 1,
    /// A pointer is not aligned as its type, or as `LOGGAP_ALIGNMENT` where
    /// memory is lent.
    Alignment = 2,
    /// The lent memory is too small. Less than `needed` bytes would not do, but
    /// they may only be what comes first (a simulation needs more once it has
    /// read its schedule): the function whose name ends in `_bytes` says how
    /// many are enough for all.
    Memory = 3,
    /// An array for results is too small; it holds what fits, or nothing
    /// where the function says so. `needed` elements are enough.
    Full = 4,
    /// An option or argument has a value that it cannot have.
    Option = 5,
    /// The header is not the one that belongs to this library.
    Version = 6,
    /// The object was not made by the function that makes it, or the memory
    /// that holds it was overwritten.
    Handle = 7,
    /// A callback of the link failed; `found` is the code that it returned.
    Link = 8,
    /// The peer was silent for too long.
    Silent = 9,
    /// The responder refused.
    Refused = 10,
    /// What the peer sent does not belong there.
    Protocol = 11,
    /// A callback asked to stop.
    Stopped = 12,
    /// A text, file, frame or profile is malformed at byte `at`.
    Malformed = 13,
    /// There are too few values to compute the result.
    NoData = 14,
    /// The profile does not hold this size.
    OutsideProfile = 15,
    /// The profile does not hold a parameter that is needed.
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
    /// The simulated program never comes to its end.
    Deadlock = 21,
    /// There is nothing of this name.
    UnknownName = 22,
    /// The self-test gave a wrong answer.
    SelfTest = 23,
}

/// Where and why a call failed. Filled in whenever a function that takes one
/// fails; after success it says `LOGGAP_STATUS_OK` and nothing else. Fields
/// that say nothing about this failure are 0, or `UINT32_MAX` for ranks and
/// operations.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Detail {
    /// What the function returned, a `loggap_status`.
    pub status: i32,
    /// The rank concerned, or `UINT32_MAX`.
    pub rank: u32,
    /// The operation concerned, counted on its rank, or `UINT32_MAX`.
    pub op: u32,
    /// Line in a text, from 1; 0 where there is none.
    pub line: u32,
    /// Byte in the line, from 1; 0 where there is none.
    pub column: u32,
    /// Offset of the byte at fault, index of the element at fault, or the
    /// message size concerned.
    pub at: u64,
    /// How much would be enough, or what was expected.
    pub needed: u64,
    /// What was found instead, or the code that a callback returned.
    pub found: u64,
    /// Why, a `loggap_reason`; `loggap_reason_text` has the words.
    pub reason: u32,
    /// Name of the field at fault, not ended by a zero byte; null where there
    /// is none.
    pub name: *const c_char,
    /// Bytes of `name`.
    pub name_length: usize,
}

/// What a function of this crate gives, or why not.
pub(crate) type Outcome<T> = Result<T, Detail>;

impl Detail {
    const OK: Self = Self::of(Status::Ok);

    /// A failure of which nothing is known but its status.
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

/// Ends a call: tells `detail`, if it is not null, and gives the status.
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

/// Every status with its text.
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

/// One line that says what `status` means, ended by a zero byte. Never null,
/// valid for ever; any number is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_status_text(status: i32) -> *const c_char {
    let found = TEXTS.iter().find(|(known, _)| *known as i32 == status);
    found.map_or(c"unknown status".as_ptr(), |(_, text)| text.as_ptr())
}
