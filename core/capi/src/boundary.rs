//! Checked conversion of C pointers into references; no other module does it.
//!
//! Every function checks for null, alignment and overflow. The caller
//! guarantees the rest: that the pointer is valid for the whole length, and
//! that nothing else writes there during the call.

use crate::reason::Reason;
use crate::status::{Detail, Outcome, Status};

/// A type for which every bit pattern is valid.
///
/// # Safety
///
/// Holds only integers, floats, raw pointers and optional function pointers.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: integers and floats.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}

/// Implements `Plain` for structs whose fields are all plain.
macro_rules! plain {
    ($($type:ty),* $(,)?) => {
        $(
            // SAFETY: all its fields are integers, floats, raw pointers or
            // optional function pointers.
            unsafe impl $crate::boundary::Plain for $type {}
        )*
    };
}
pub(crate) use plain;

/// Reference to the `T` at `pointer`.
///
/// # Safety
///
/// `pointer` is null, or points to a `T` that does not change during `'a`.
pub(crate) unsafe fn input<'a, T: Plain>(pointer: *const T) -> Outcome<&'a T> {
    check(pointer)?;
    // SAFETY: neither null nor misaligned; valid by the contract, and every
    // bit pattern is a T.
    Ok(unsafe { &*pointer })
}

/// As [`input`], but `None` for a null pointer.
///
/// # Safety
///
/// As [`input`].
pub(crate) unsafe fn optional<'a, T: Plain>(pointer: *const T) -> Outcome<Option<&'a T>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the contract is the same.
    unsafe { input(pointer) }.map(Some)
}

/// Slice of `count` elements; `pointer` may be null if `count` is 0.
///
/// # Safety
///
/// `pointer` is null, or points to `count` elements that do not change during `'a`.
pub(crate) unsafe fn slice<'a, T: Plain>(pointer: *const T, count: usize) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check(pointer)?;
    fits::<T>(count)?;
    // SAFETY: neither null nor misaligned nor too long; valid by the contract,
    // and every bit pattern is a T.
    Ok(unsafe { core::slice::from_raw_parts(pointer, count) })
}

/// Writable slice of `length` bytes, zeroed.
///
/// # Safety
///
/// `pointer` is null, or valid for `length` bytes that nothing else accesses during `'a`.
pub(crate) unsafe fn bytes_mut<'a>(pointer: *mut u8, length: usize) -> Outcome<&'a mut [u8]> {
    if length == 0 {
        return Ok(&mut []);
    }
    check(pointer)?;
    fits::<u8>(length)?;
    // SAFETY: not null, and valid for `length` bytes by the contract.
    unsafe { pointer.write_bytes(0, length) };
    // SAFETY: the same bytes, now initialised.
    Ok(unsafe { core::slice::from_raw_parts_mut(pointer, length) })
}

/// Output parameter for one result.
#[derive(Debug)]
pub(crate) struct Place<T>(*mut T);

impl<T: Copy> Place<T> {
    /// Output parameter at `pointer`.
    ///
    /// # Safety
    ///
    /// `pointer` is null, or valid for a write for as long as this lives.
    pub(crate) unsafe fn new(pointer: *mut T) -> Outcome<Self> {
        check(pointer)?;
        Ok(Self(pointer))
    }

    /// As [`Place::new`], but a null pointer discards the result.
    ///
    /// # Safety
    ///
    /// As [`Place::new`].
    pub(crate) unsafe fn optional(pointer: *mut T) -> Outcome<Self> {
        if !pointer.is_null() {
            check(pointer)?;
        }
        Ok(Self(pointer))
    }

    pub(crate) fn put(&mut self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not misaligned, and valid by the contract of `new`.
            unsafe { self.0.write(value) };
        }
    }
}

impl<T: Plain> Place<T> {
    /// Reference to the zeroed result; `None` for a null pointer.
    ///
    /// # Safety
    ///
    /// Nothing else accesses the result during `'a`.
    pub(crate) unsafe fn clear<'a>(self) -> Option<&'a mut T> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: not misaligned, and valid by the contract of `new`.
        unsafe { self.0.write_bytes(0, 1) };
        // SAFETY: as above; zeros are a value of a plain type.
        Some(unsafe { &mut *self.0 })
    }
}

/// Output array for several results.
#[derive(Debug)]
pub(crate) struct Places<T> {
    first: *mut T,
    count: usize,
}

impl<T: Copy> Places<T> {
    /// Output array of `count` elements at `pointer`.
    ///
    /// # Safety
    ///
    /// `pointer` is null, or valid for `count` writes for as long as this lives.
    pub(crate) unsafe fn new(pointer: *mut T, count: usize) -> Outcome<Self> {
        if count > 0 {
            check(pointer)?;
            fits::<T>(count)?;
        }
        Ok(Self { first: pointer, count })
    }

    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// Writes element `index`; `false` if it is out of range.
    pub(crate) fn put(&mut self, index: usize, value: T) -> bool {
        if index >= self.count {
            return false;
        }
        // SAFETY: within the array, which is valid by the contract.
        let place = unsafe { self.first.add(index) };
        // SAFETY: as above, and not misaligned.
        unsafe { place.write(value) };
        true
    }
}

impl Places<u8> {
    /// Writes `first`, `second`, then zeros up to `least` bytes in all. Writes
    /// nothing and returns `None` if the array is too short.
    pub(crate) fn put_all(&mut self, first: &[u8], second: &[u8], least: usize) -> Option<()> {
        let length = first.len().checked_add(second.len())?;
        if length.max(least) > self.count {
            return None;
        }
        // SAFETY: within the array, as just checked.
        let after_first = unsafe { self.first.add(first.len()) };
        // SAFETY: as above.
        let after_second = unsafe { self.first.add(length) };
        // SAFETY: within the array, which nothing else refers to.
        unsafe { self.first.copy_from_nonoverlapping(first.as_ptr(), first.len()) };
        // SAFETY: as above.
        unsafe { after_first.copy_from_nonoverlapping(second.as_ptr(), second.len()) };
        // SAFETY: as above.
        unsafe { after_second.write_bytes(0, least.saturating_sub(length)) };
        Some(())
    }
}

/// Refuses null and misaligned pointers.
pub(crate) fn check<T>(pointer: *const T) -> Outcome<()> {
    check_address(pointer.addr(), align_of::<T>())
}

/// [`check`] without the type, so that it is compiled only once.
fn check_address(address: usize, alignment: usize) -> Outcome<()> {
    if address == 0 {
        return Err(Detail::of(Status::Null));
    }
    if address & (alignment - 1) != 0 {
        return Err(Detail::of(Status::Alignment).needed(alignment as u64));
    }
    Ok(())
}

/// Refuses lengths beyond the address space.
fn fits<T>(count: usize) -> Outcome<()> {
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(()),
        _ => Err(Detail::because(Status::Option, Reason::AddressSpace).found(count as u64)),
    }
}
