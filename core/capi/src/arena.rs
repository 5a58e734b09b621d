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
        let waste = align_of::<T>().saturating_sub(LOGGAP_ALIGNMENT);
        let sizer = if waste > 0 { self.more(waste, 1) } else { self };
        sizer.more(count, size_of::<T>())
    }

    /// `count` elements of `size` bytes more, in whole units of the alignment.
    const fn more(self, count: usize, size: usize) -> Self {
        let bytes = (count as u64).saturating_mul(size as u64);
        let units = bytes.div_ceil(LOGGAP_ALIGNMENT as u64);
        let whole = units.saturating_mul(LOGGAP_ALIGNMENT as u64);
        Self { bytes: self.bytes.saturating_add(whole) }
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

    /// Cuts off `count` elements, each of zeros.
    pub(crate) fn array<T: Copy>(&mut self, count: usize) -> Result<&'m mut [T], Shortage> {
        let _ = const { Zeros::<T>::VALUE };
        if align_of::<T>() > LOGGAP_ALIGNMENT {
            self.cut(self.next.align_offset(align_of::<T>()), 1)?;
        }
        let start = self.cleared(count, size_of::<T>())?.cast::<T>();
        // SAFETY: aligned and inside; all bytes have just been cleared, which
        // makes valid elements, and nobody else gets them as `next` lies
        // behind them.
        Ok(unsafe { core::slice::from_raw_parts_mut(start, count) })
    }

    /// Puts one object into the memory. It is never dropped, so it must hold
    /// nothing but memory.
    pub(crate) fn object<T>(&mut self, value: T) -> Result<*mut T, Shortage> {
        const { assert!(align_of::<T>() <= LOGGAP_ALIGNMENT, "more than the memory's alignment") };
        let place = self.cut(1, size_of::<T>())?.cast::<T>();
        // SAFETY: aligned and inside of the memory, which is ours.
        unsafe { place.write(value) };
        Ok(place)
    }

    /// Cuts off room for `count` elements of `size` bytes, all cleared.
    #[inline(never)]
    fn cleared(&mut self, count: usize, size: usize) -> Result<*mut u8, Shortage> {
        let before = self.left;
        let start = self.cut(count, size)?;
        // SAFETY: as many bytes have just been cut off, so they are ours.
        unsafe { start.write_bytes(0, before - self.left) };
        Ok(start)
    }

    /// Cuts off room for `count` elements of `size` bytes.
    fn cut(&mut self, count: usize, size: usize) -> Result<*mut u8, Shortage> {
        let bytes = count.checked_mul(size).ok_or(Shortage)?;
        let whole = bytes.checked_next_multiple_of(LOGGAP_ALIGNMENT).ok_or(Shortage)?;
        self.left = self.left.checked_sub(whole).ok_or(Shortage)?;
        let start = self.next;
        // SAFETY: as many bytes as were just subtracted from what is left, so
        // inside of the memory or at its end.
        self.next = unsafe { start.add(whole) };
        Ok(start)
    }
}

/// There is less memory than a [`Sizer`] has said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortage;

impl From<Shortage> for Detail {
    #[cold]
    fn from(Shortage: Shortage) -> Self {
        Self::of(Status::Memory)
    }
}

/// Types whose arrays may be made of zeros.
struct Zeros<T>(PhantomData<T>);

impl<T: Copy> Zeros<T> {
    /// Named wherever such an array is made.
    // SAFETY: computed by the compiler, which stops at zeros that are no value of the type.
    const VALUE: T = unsafe { core::mem::zeroed() };
}
