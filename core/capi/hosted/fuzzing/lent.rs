//! Memory as a C program lends it: known by a raw pointer only, with guard
//! bytes around it.

use loggap_capi as c;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// Bytes before and behind the memory that nobody may write to.
const GUARD: usize = 32;
/// What they hold, and what memory that was filled holds.
const FILL: u8 = 0xa5;
const ALIGNMENT: usize = 16;

/// A type of which zeros are a value.
///
/// # Safety
///
/// Holds only integers, floats, raw pointers and optional function pointers.
pub unsafe trait Plain: Copy {
    /// A value of zeros.
    fn zeros() -> Self {
        // SAFETY: the contract of the trait.
        unsafe { core::mem::zeroed() }
    }
}

macro_rules! plain {
    ($($type:ty),* $(,)?) => {
        $(
            // SAFETY: numbers, and structs of loggap.h, which hold nothing else.
            unsafe impl Plain for $type {}
        )*
    };
}

plain!(u32, u64, usize, *const u8, *mut c::StreamDetector, *mut c::Responder);
plain!(c::Detail, c::Clock, c::Link, c::Bounds, c::Frame, c::Served, c::ResponderAction);
plain!(c::ResponderNext, c::AssessOptions, c::AssessReport, c::Profile, c::FitPoint);
plain!(c::FitOptions, c::FitSegment, c::DetectorOptions, c::DetectedChange, c::Prediction);
plain!(c::Protocol, c::SimulateOptions, c::Simulated, c::PatternOptions, c::GoalInfo);
plain!(c::SinkTable, c::Detour, c::SelfTestCount, c::Sizes, c::LogGops);

/// Memory that is lent. Nothing in Rust refers to it.
#[derive(Debug)]
pub struct Lent {
    start: *mut u8,
    layout: Layout,
    /// Where the memory begins, counted from `start`.
    begin: usize,
    length: usize,
}

impl Lent {
    /// `length` bytes of unknown content, aligned.
    pub fn new(length: usize) -> Self {
        Self::shifted(length, 0)
    }

    /// The same, `shift` bytes behind an aligned address.
    pub fn shifted(length: usize, shift: usize) -> Self {
        let begin = GUARD + shift;
        let layout = Layout::from_size_align(begin + length + GUARD, ALIGNMENT).expect("small");
        // SAFETY: more than no bytes.
        let start = unsafe { alloc(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        let lent = Self { start, layout, begin, length };
        lent.fill(0, begin);
        lent.fill(begin + length, GUARD);
        lent
    }

    /// `length` bytes that all hold the same, aligned.
    pub fn filled(length: usize, shift: usize) -> Self {
        let lent = Self::shifted(length, shift);
        lent.fill(lent.begin, length);
        lent
    }

    fn fill(&self, from: usize, count: usize) {
        // SAFETY: callers stay inside of the block.
        let first = unsafe { self.start.add(from) };
        // SAFETY: as above.
        unsafe { first.write_bytes(FILL, count) };
    }

    /// The first byte.
    pub fn pointer(&self) -> *mut u8 {
        // SAFETY: inside of the block.
        unsafe { self.start.add(self.begin) }
    }

    /// How many bytes are lent.
    pub fn length(&self) -> usize {
        self.length
    }

    fn hold_fill(&self, from: usize, count: usize) -> bool {
        self.copy(from, count).iter().all(|byte| *byte == FILL)
    }

    fn copy(&self, from: usize, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        // SAFETY: callers stay inside of the block.
        let first = unsafe { self.start.add(from) };
        // SAFETY: as above, and into as many bytes of our own.
        unsafe { first.copy_to_nonoverlapping(bytes.as_mut_ptr(), count) };
        bytes
    }

    /// The first `count` bytes, which have been written to.
    pub fn bytes(&self, count: usize) -> Vec<u8> {
        assert!(count <= self.length, "a length beyond the memory");
        self.copy(self.begin, count)
    }

    /// Whether nobody has written beside the memory.
    pub fn is_guarded(&self) -> bool {
        self.hold_fill(0, self.begin) && self.hold_fill(self.begin + self.length, GUARD)
    }

    /// Whether nobody has written to memory that was filled.
    pub fn is_untouched(&self) -> bool {
        self.hold_fill(self.begin, self.length)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed once.
        unsafe { dealloc(self.start, self.layout) };
    }
}
