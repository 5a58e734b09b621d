//! Pointers to what a call takes and to where its results go, and what holds
//! after every call.

use super::lent::{Lent, Plain};
use super::numbers::Numbers;
use core::marker::PhantomData;
use loggap_capi::{Detail, Reason, Status};

/// Where a pointer points to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Aim {
    Right,
    Null,
    Misaligned,
}

impl Aim {
    fn of(input: &mut Numbers<'_>, alignment: usize) -> Self {
        match input.byte() {
            0xff => Self::Null,
            0xfe if alignment > 1 => Self::Misaligned,
            _ => Self::Right,
        }
    }
}

/// Memory for `count` values behind a pointer that may be wrong.
#[derive(Debug)]
pub struct Place<T> {
    lent: Lent,
    aim: Aim,
    count: usize,
    kind: PhantomData<T>,
}

impl<T: Plain> Place<T> {
    /// A place for one result.
    pub fn new(input: &mut Numbers<'_>) -> Self {
        Self::for_many(input, 1)
    }

    /// Places for several results.
    pub fn for_many(input: &mut Numbers<'_>, count: usize) -> Self {
        Self::aimed(Aim::of(input, align_of::<T>()), count)
    }

    fn aimed(aim: Aim, count: usize) -> Self {
        let shift = usize::from(aim == Aim::Misaligned);
        let lent = Lent::filled(count * size_of::<T>(), shift);
        Self { lent, aim, count, kind: PhantomData }
    }

    /// Values that a call reads.
    pub fn holding(input: &mut Numbers<'_>, values: &[T]) -> Self {
        let place = Self::for_many(input, values.len());
        for (index, value) in values.iter().enumerate() {
            let target = place.lent.pointer().wrapping_add(index * size_of::<T>());
            // SAFETY: inside of the memory, which has room for all values.
            unsafe { target.cast::<T>().write_unaligned(*value) };
        }
        place
    }

    /// What is handed to the library.
    pub fn pointer(&self) -> *mut T {
        match self.aim {
            Aim::Null => core::ptr::null_mut(),
            Aim::Right | Aim::Misaligned => self.lent.pointer().cast(),
        }
    }

    /// Whether the library has to refuse the pointer.
    pub fn is_wrong(&self) -> bool {
        self.aim != Aim::Right && self.count > 0
    }

    /// Whether results can be read.
    pub fn is_right(&self) -> bool {
        self.aim == Aim::Right
    }

    /// The result, once a call has succeeded.
    pub fn get(&self) -> T {
        self.at(0)
    }

    /// One of the results.
    pub fn at(&self, index: usize) -> T {
        assert!(index < self.count && self.is_right());
        // SAFETY: inside of the memory.
        let value = unsafe { self.lent.pointer().cast::<T>().add(index) };
        // SAFETY: aligned, and filled from the beginning: every bit pattern
        // is a value of a plain type.
        unsafe { value.read() }
    }

    /// Whether nothing was written, neither here nor beside.
    pub fn is_untouched(&self) -> bool {
        self.lent.is_untouched() && self.lent.is_guarded()
    }

    /// Whether nothing was written beside.
    pub fn is_guarded(&self) -> bool {
        self.lent.is_guarded()
    }

    /// Holds a result, or is as before where the call has failed.
    pub fn holds(&self, status: i32) {
        assert!(self.is_guarded(), "written beside a result");
        let untouched = status == 0 && self.is_right() || self.is_untouched();
        assert!(untouched, "written in spite of status {status}");
    }
}

/// A value of which some bytes are anything.
pub fn scribbled<T: Plain>(mut value: T, input: &mut Numbers<'_>) -> T {
    for _ in 0..input.below(4) {
        let at = usize::from(input.short()) % size_of::<T>();
        let bytes = input.number().to_le_bytes();
        let count = [1, 4, 8][input.below(3)].min(size_of::<T>() - at);
        let target = (&raw mut value).cast::<u8>().wrapping_add(at);
        // SAFETY: inside of the value, whose bytes may be anything.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), count) };
    }
    value
}

/// What a call says beside its results.
#[derive(Debug)]
pub struct Told(Place<Detail>);

impl Told {
    pub fn new(input: &mut Numbers<'_>) -> Self {
        Self(Place::new(input))
    }

    pub fn pointer(&self) -> *mut Detail {
        self.0.pointer()
    }

    /// Checks the status and what the detail says about it.
    pub fn check(&self, status: i32, documented: &[Status]) {
        let is_status = |known: &Status| *known as i32 == status;
        assert!(status == 0 || documented.iter().any(is_status), "status {status}");
        if !self.0.is_right() {
            assert!(self.0.is_untouched(), "a wrong detail is written to");
            return;
        }
        assert!(self.0.is_guarded(), "written beside the detail");
        let detail = self.0.get();
        assert_eq!(detail.status, status);
        assert!(detail.reason <= Reason::NoiseEnd as u32, "reason {}", detail.reason);
        assert_eq!(detail.name.is_null(), detail.name_length == 0);
        if !detail.name.is_null() {
            let (name, length) = (detail.name.cast::<u8>(), detail.name_length);
            // SAFETY: a name of the library, of this length and valid for ever.
            let name = unsafe { core::slice::from_raw_parts(name, length) };
            assert!(name.is_ascii(), "{name:?}");
        }
        if status == 0 {
            let Detail { rank, op, line, column, at, needed, found, reason, .. } = detail;
            assert_eq!((rank, op, line, column), (u32::MAX, u32::MAX, 0, 0));
            assert_eq!((at, needed, found, reason), (0, 0, 0, 0));
        }
    }

    /// What the detail says is enough, where it can be read.
    pub fn needed(&self) -> Option<u64> {
        self.0.is_right().then(|| self.0.get().needed)
    }
}
