//! Noise traces: text, and arrays of detours.

use loggap_core::noise::{
    Detour as CoreDetour, InvalidTrace, NoiseError, NoiseErrorKind, Trace, count, read,
};
use loggap_core::units::Picos;

use crate::arena::{Arena, Sizer};
use crate::boundary::{Place, Places, plain, slice};
use crate::reason::Reason;
use crate::status::{Detail, Outcome, Status, finish};

/// Detour: an interval that the operating system took from a program.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Detour {
    /// Start, in ps from the start of the trace.
    pub start_ps: u64,
    /// Duration, in ps.
    pub duration_ps: u64,
}

plain!(Detour);

impl Sizer {
    /// Memory of `count` detours.
    pub(crate) const fn detours(count: usize) -> Self {
        if count == 0 { Self::new() } else { Self::new().array::<CoreDetour>(count) }
    }
}

/// Memory for the core's copy of `detours`.
pub(crate) const fn trace_memory(detours: &[Detour]) -> Sizer {
    Sizer::detours(detours.len())
}

/// The core's copy of `detours`.
pub(crate) fn trace_of<'m>(detours: &[Detour], arena: &mut Arena<'m>) -> Outcome<&'m [CoreDetour]> {
    let copies = arena.array(detours.len())?;
    for (copy, detour) in copies.iter_mut().zip(detours) {
        *copy = detour.to_core();
    }
    Ok(copies)
}

impl Detour {
    const fn to_core(self) -> CoreDetour {
        CoreDetour { start: Picos(self.start_ps), duration: Picos(self.duration_ps) }
    }
}

/// Number of detours in the text of a noise trace, malformed lines included; a
/// sufficient capacity for `loggap_noise_read`. 0 for a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_noise_count(text: *const u8, length: usize) -> usize {
    // SAFETY: by the contract of this function.
    unsafe { slice(text, length) }.map_or(0, count)
}

/// Bytes of memory that `loggap_noise_read` needs for `detours` detours.
#[unsafe(no_mangle)]
pub extern "C" fn loggap_noise_bytes(detours: usize) -> usize {
    Sizer::detours(detours).bytes()
}

/// Parses a noise trace in the text format of netgauge and LogGOPSim into
/// `detours`, and their number into `found`. `length_ps` receives the stated
/// period of the trace, or 0; it may be null. The memory needed is that of
/// `loggap_noise_bytes` for the detours in the text.
///
/// Errors: `LOGGAP_STATUS_MALFORMED` with line, column and reason (for a detour
/// that overlaps with the one before, its index in `at`); `LOGGAP_STATUS_FULL`
/// if there are more than `capacity` detours: the first ones have been written,
/// and `found` is the number of all; `LOGGAP_STATUS_MEMORY`,
/// `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_noise_read(
    text: *const u8,
    length: usize,
    memory: *mut u8,
    bytes: usize,
    detours: *mut Detour,
    capacity: usize,
    found: *mut usize,
    length_ps: *mut u64,
    detail: *mut Detail,
) -> i32 {
    let run = || {
        // SAFETY: by the contract of this function.
        let mut found = unsafe { Place::new(found) }?;
        // SAFETY: by the contract of this function.
        let mut stated = unsafe { Place::optional(length_ps) }?;
        // SAFETY: by the contract of this function.
        let mut places = unsafe { Places::new(detours, capacity) }?;
        // SAFETY: by the contract of this function.
        let text = unsafe { slice(text, length) }?;
        let most = count(text);
        // SAFETY: by the contract of this function.
        let mut arena = unsafe { Arena::maybe_empty(memory, bytes, Sizer::detours(most)) }?;
        let kept = arena.array(most)?;
        let (number, period) = read(text, kept).map_err(malformed)?;
        let kept = kept.get(..number).unwrap_or_default();
        Trace::new(kept, period).map_err(invalid_trace)?;
        found.put(number);
        stated.put(period.map_or(0, |period| period.0));
        for (index, detour) in kept.iter().enumerate() {
            let (start_ps, duration_ps) = (detour.start.0, detour.duration.0);
            if !places.put(index, Detour { start_ps, duration_ps }) {
                let full = Detail::of(Status::Full).needed(number as u64);
                return Err(full.found(places.len() as u64));
            }
        }
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(run(), detail) }
}

fn malformed(error: NoiseError) -> Detail {
    let reason = match error.kind {
        NoiseErrorKind::Number => Reason::NoiseNumber,
        NoiseErrorKind::LineEnd => Reason::NoiseLine,
        NoiseErrorKind::TooLarge => Reason::NoiseTime,
        // Cannot happen: the memory holds all detours of the text.
        NoiseErrorKind::Full => Reason::None,
    };
    Detail::because(Status::Malformed, reason).line(error.line, error.column)
}

pub(crate) fn invalid_trace(error: InvalidTrace) -> Detail {
    let because = |reason| Detail::because(Status::Malformed, reason);
    match error {
        InvalidTrace::Empty => because(Reason::NoiseEmpty),
        InvalidTrace::Overlap(index) => because(Reason::NoiseOverlap).at(index as u64),
        InvalidTrace::PastEnd(index) => because(Reason::NoiseEnd).at(index as u64),
    }
}
