//! Lent memory, cut into the arrays that the core works on.

use core::marker::PhantomData;

use crate::status::{Detail, Outcome, Status};

/// Alignment of the memory that is lent, in bytes.
pub const LOGGAP_ALIGNMENT: usize = 8;

/// Adds up the arrays that are going to be cut from an [`Arena`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizer {
    bytes: u64,
}

impl Sizer {
    pub(crate) const fn new() -> Self {
        Self { bytes: 0 }
    }

    /// Whether `bytes` are enough.
    pub(crate) const fn fits(self, bytes: usize) -> bool {
        self.bytes <= bytes as u64
    }

    /// `count` elements more, after what their alignment may waste.
    pub(crate) const fn array<T>(self, count: usize) -> Self {
        let waste =
            if align_of::<T>() > LOGGAP_ALIGNMENT { align_of::<T>() } else { LOGGAP_ALIGNMENT };
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        Self { bytes: self.bytes.saturating_add(bytes).saturating_add(waste as u64) }
    }

    /// Bytes of all of them; as many as exist when the address space ends
    /// before.
    pub(crate) fn bytes(self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// Bytes of all of them.
    pub(crate) const fn total(self) -> u64 {
        self.bytes
    }

    /// The failure when less was lent.
    pub(crate) fn shortage(self) -> Detail {
        Detail::of(Status::Memory).needed(self.bytes)
    }
}

/// Memory lent by C.
#[derive(Debug)]
pub(crate) struct Arena<'m> {
    next: *mut u8,
    left: usize,
    lent: PhantomData<&'m mut [u8]>,
}

impl<'m> Arena<'m> {
    /// `bytes` bytes at `memory`, refused unless `sizer` is content with
    /// them.
    ///
    /// # Safety
    ///
    /// `memory` is null, or valid for `bytes` bytes of which nobody else
    /// knows during `'m`.
    pub(crate) unsafe fn new(memory: *mut u8, bytes: usize, sizer: Sizer) -> Outcome<Self> {
        if memory.is_null() {
            return Err(Detail::of(Status::Null).needed(sizer.bytes));
        }
        if !memory.cast::<u64>().is_aligned() {
            return Err(Detail::of(Status::Alignment).needed(LOGGAP_ALIGNMENT as u64));
        }
        if (bytes as u64) < sizer.bytes || isize::try_from(bytes).is_err() {
            return Err(sizer.shortage().found(bytes as u64));
        }
        Ok(Self { next: memory, left: bytes, lent: PhantomData })
    }

    /// As [`Arena::new`]; a null pointer is no memory.
    ///
    /// # Safety
    ///
    /// As [`Arena::new`].
    pub(crate) unsafe fn maybe_empty(memory: *mut u8, bytes: usize, sizer: Sizer) -> Outcome<Self> {
        if memory.is_null() && bytes == 0 && sizer.bytes == 0 {
            let next = core::ptr::without_provenance_mut(LOGGAP_ALIGNMENT);
            return Ok(Self { next, left: 0, lent: PhantomData });
        }
        // SAFETY: the contract is the same.
        unsafe { Self::new(memory, bytes, sizer) }
    }

    /// What is left, for another arena after this one.
    pub(crate) fn rest(self) -> (*mut u8, usize) {
        (self.next, self.left)
    }

    /// Cuts off `count` elements, each with the value `first`.
    pub(crate) fn array<T: Copy>(&mut self, count: usize, first: T) -> Outcome<&'m mut [T]> {
        let waste = self.next.align_offset(align_of::<T>());
        let taken = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(waste));
        let Some(left) = taken.and_then(|taken| self.left.checked_sub(taken)) else {
            return Err(Detail::of(Status::Memory));
        };
        // SAFETY: at most `left` bytes on, so still inside of the memory or at
        // its end.
        let start = unsafe { self.next.add(waste) }.cast::<T>();
        // SAFETY: as many elements as were just subtracted from what is left.
        let end = unsafe { start.add(count) };
        for index in 0..count {
            // SAFETY: below `count`.
            let place = unsafe { start.add(index) };
            // SAFETY: aligned by `waste`, inside of the memory, which is ours.
            unsafe { place.write(first) };
        }
        self.next = end.cast();
        self.left = left;
        // SAFETY: aligned and inside; all elements have just been written, and
        // nobody else gets these bytes as `next` lies behind them.
        Ok(unsafe { core::slice::from_raw_parts_mut(start, count) })
    }

    /// Puts one object into the memory. It is never dropped, so it must hold
    /// nothing but memory.
    pub(crate) fn object<T>(&mut self, value: T) -> Outcome<*mut T> {
        let waste = self.next.align_offset(align_of::<T>());
        let left = size_of::<T>().checked_add(waste).and_then(|taken| self.left.checked_sub(taken));
        let left = left.ok_or(Detail::of(Status::Memory))?;
        // SAFETY: inside of the memory, as was just subtracted.
        let place = unsafe { self.next.add(waste) }.cast::<T>();
        // SAFETY: aligned by `waste`, inside of the memory, which is ours.
        unsafe { place.write(value) };
        // SAFETY: the end of what was just written.
        self.next = unsafe { place.add(1) }.cast();
        self.left = left;
        Ok(place)
    }
}
