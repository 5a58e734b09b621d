//! From what C hands over to what Rust can use: the only place where pointers
//! become references.
//!
//! Every function checks for null, alignment and overflow, and trusts its
//! caller for the rest: that the pointer is valid for the whole length, and
//! that nobody else writes there during the call.

use crate::reason::Reason;
use crate::status::{Detail, Outcome, Status};

/// A type for which every bit pattern is a value.
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

/// Marks structs whose fields are all plain.
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

/// What `pointer` points at.
///
/// # Safety
///
/// `pointer` is null, or points to a `T` that stays as it is during `'a`.
pub(crate) unsafe fn input<'a, T: Plain>(pointer: *const T) -> Outcome<&'a T> {
    check(pointer)?;
    // SAFETY: neither null nor misaligned; valid by the contract, and every
    // bit pattern is a T.
    Ok(unsafe { &*pointer })
}

/// What `pointer` points at, `None` for a null pointer.
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

/// `count` elements; a null pointer is none.
///
/// # Safety
///
/// `pointer` is null, or points to `count` elements that stay as they are
/// during `'a`.
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

/// `length` bytes to write to, zeroed.
///
/// # Safety
///
/// `pointer` is null, or valid for `length` bytes of which nobody else knows
/// during `'a`.
pub(crate) unsafe fn bytes_mut<'a>(pointer: *mut u8, length: usize) -> Outcome<&'a mut [u8]> {
    if length == 0 {
        return Ok(&mut []);
    }
    check(pointer)?;
    fits::<u8>(length)?;
    // SAFETY: not null, and valid for as many bytes by the contract.
    unsafe { pointer.write_bytes(0, length) };
    // SAFETY: the same bytes, which hold a value now.
    Ok(unsafe { core::slice::from_raw_parts_mut(pointer, length) })
}

/// A place for one result.
#[derive(Debug)]
pub(crate) struct Place<T>(*mut T);

impl<T: Copy> Place<T> {
    /// The place at `pointer`.
    ///
    /// # Safety
    ///
    /// `pointer` is null, or valid for a write for as long as this lives.
    pub(crate) unsafe fn new(pointer: *mut T) -> Outcome<Self> {
        check(pointer)?;
        Ok(Self(pointer))
    }

    /// The place at `pointer`; what is put to a null pointer is forgotten.
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
    /// What is in the place, cleared; `None` for a null pointer.
    ///
    /// # Safety
    ///
    /// Nobody else uses the place during `'a`.
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

/// Places for several results.
#[derive(Debug)]
pub(crate) struct Places<T> {
    first: *mut T,
    count: usize,
}

impl<T: Copy> Places<T> {
    /// `count` places from `pointer` on.
    ///
    /// # Safety
    ///
    /// `pointer` is null, or valid for as many writes for as long as this
    /// lives.
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

    /// Puts `value` to the place `index`; `false` where there is none.
    pub(crate) fn put(&mut self, index: usize, value: T) -> bool {
        if index >= self.count {
            return false;
        }
        // SAFETY: inside of the places, which are valid by the contract.
        let place = unsafe { self.first.add(index) };
        // SAFETY: as above, and not misaligned.
        unsafe { place.write(value) };
        true
    }
}

impl Places<u8> {
    /// Puts `first`, then `second`, then zeros up to `least` bytes in all; `None`
    /// where there are too few places. Nothing is written then.
    pub(crate) fn put_all(&mut self, first: &[u8], second: &[u8], least: usize) -> Option<()> {
        let length = first.len().checked_add(second.len())?;
        if length.max(least) > self.count {
            return None;
        }
        // SAFETY: inside of the places, see above.
        let after_first = unsafe { self.first.add(first.len()) };
        // SAFETY: as above.
        let after_second = unsafe { self.first.add(length) };
        // SAFETY: as many places are ours, and nobody else's.
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

/// The same for all types.
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
