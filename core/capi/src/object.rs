//! Objects in memory lent by C.

use crate::boundary::check;
use crate::status::{Detail, Outcome, Status};

/// Object with a mark that distinguishes it from other memory.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Object<T> {
    mark: u64,
    pub(crate) content: T,
}

/// A type of object.
pub(crate) trait Marked {
    /// Number that no other type has.
    const MARK: u64;
}

impl<T: Marked> Object<T> {
    pub(crate) const fn new(content: T) -> Self {
        Self { mark: T::MARK, content }
    }

    /// Object at `pointer`; `Handle` if it was never created or has ended.
    ///
    /// # Safety
    ///
    /// `pointer` is null, or points to memory that was lent for such an object
    /// and that nothing else accesses during `'a`.
    pub(crate) unsafe fn at<'a>(pointer: *mut Self) -> Outcome<&'a mut Self> {
        check(pointer)?;
        // SAFETY: neither null nor misaligned.
        let mark = unsafe { &raw const (*pointer).mark };
        // SAFETY: as above; every bit pattern is a number.
        if unsafe { mark.read() } != T::MARK {
            return Err(Detail::of(Status::Handle));
        }
        // SAFETY: only `new` writes this mark, together with the content.
        Ok(unsafe { &mut *pointer })
    }
}
