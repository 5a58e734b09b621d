//! Bump arena over memory lent by C: the arrays and objects that the core works on.

use core::marker::PhantomData;

use crate::status::{Detail, Outcome, Status};

/// Required alignment of lent memory, in bytes.
pub const LOGGAP_ALIGNMENT: usize = 8;

/// Size of an [`Arena`] that holds a list of arrays, alignment included.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizer {
    bytes: u64,
}

impl Sizer {
    pub(crate) const fn new() -> Self {
        Self { bytes: 0 }
    }

    /// True if `bytes` suffice.
    pub(crate) const fn fits(self, bytes: usize) -> bool {
        self.bytes <= bytes as u64
    }

    /// Adds `count` elements, and the bytes that their alignment may waste.
    pub(crate) const fn array<T>(self, count: usize) -> Self {
        let waste = align_of::<T>().saturating_sub(LOGGAP_ALIGNMENT);
        let sizer = if waste > 0 { self.more(waste, 1) } else { self };
        sizer.more(count, size_of::<T>())
    }

    /// Adds `count` elements of `size` bytes, rounded up to the alignment.
    const fn more(self, count: usize, size: usize) -> Self {
        let bytes = (count as u64).saturating_mul(size as u64);
        let units = bytes.div_ceil(LOGGAP_ALIGNMENT as u64);
        let whole = units.saturating_mul(LOGGAP_ALIGNMENT as u64);
        Self { bytes: self.bytes.saturating_add(whole) }
    }

    /// Size in bytes, at most `usize::MAX`.
    pub(crate) fn bytes(self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// Size in bytes.
    pub(crate) const fn total(self) -> u64 {
        self.bytes
    }

    /// Error for an arena smaller than this, with the bytes needed.
    pub(crate) fn shortage(self) -> Detail {
        Detail::of(Status::Memory).needed(self.bytes)
    }
}

/// Arena over memory lent by C.
#[derive(Debug)]
pub(crate) struct Arena<'m> {
    next: *mut u8,
    left: usize,
    lent: PhantomData<&'m mut [u8]>,
}

impl<'m> Arena<'m> {
    /// Arena of `bytes` bytes at `memory`; fails if that is null, misaligned or
    /// smaller than `sizer`.
    ///
    /// # Safety
    ///
    /// `memory` is null, or valid for `bytes` bytes that nothing else accesses
    /// during `'m`.
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

    /// As [`Arena::new`], but accepts null with 0 bytes if `sizer` needs none.
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

    /// Arena over the remaining memory, which is free again when the arena is
    /// gone; fails if that is smaller than `sizer`.
    pub(crate) fn rest(&mut self, sizer: Sizer) -> Outcome<Arena<'_>> {
        if !sizer.fits(self.left) {
            return Err(sizer.shortage().found(self.left as u64));
        }
        Ok(Arena { next: self.next, left: self.left, lent: PhantomData })
    }

    /// Cuts off a zeroed array of `count` elements.
    pub(crate) fn array<T: Copy>(&mut self, count: usize) -> Result<&'m mut [T], Shortage> {
        let _ = const { Zeros::<T>::VALUE };
        if align_of::<T>() > LOGGAP_ALIGNMENT {
            self.cut(self.next.align_offset(align_of::<T>()), 1)?;
        }
        let start = self.cleared(count, size_of::<T>())?.cast::<T>();
        // SAFETY: aligned and within the arena. All bytes have just been
        // zeroed, and zeros are valid (`Zeros`). Nothing else refers to them:
        // `next` lies behind them.
        Ok(unsafe { core::slice::from_raw_parts_mut(start, count) })
    }

    /// Moves one object into the arena. It is never dropped, so it must own no
    /// resource but memory.
    pub(crate) fn object<T>(&mut self, value: T) -> Result<*mut T, Shortage> {
        const { assert!(align_of::<T>() <= LOGGAP_ALIGNMENT, "more than the memory's alignment") };
        let place = self.cut(1, size_of::<T>())?.cast::<T>();
        // SAFETY: aligned, and just cut off from the arena.
        unsafe { place.write(value) };
        Ok(place)
    }

    /// Cuts off zeroed memory for `count` elements of `size` bytes.
    #[inline(never)]
    fn cleared(&mut self, count: usize, size: usize) -> Result<*mut u8, Shortage> {
        let before = self.left;
        let start = self.cut(count, size)?;
        // SAFETY: these bytes have just been cut off, so nothing else refers to them.
        unsafe { start.write_bytes(0, before - self.left) };
        Ok(start)
    }

    /// Cuts off memory for `count` elements of `size` bytes.
    fn cut(&mut self, count: usize, size: usize) -> Result<*mut u8, Shortage> {
        let bytes = count.checked_mul(size).ok_or(Shortage)?;
        let whole = bytes.checked_next_multiple_of(LOGGAP_ALIGNMENT).ok_or(Shortage)?;
        self.left = self.left.checked_sub(whole).ok_or(Shortage)?;
        let start = self.next;
        // SAFETY: at least `whole` bytes were left, so the result is within the
        // memory or at its end.
        self.next = unsafe { start.add(whole) };
        Ok(start)
    }
}

/// The arena is smaller than its [`Sizer`] computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortage;

impl From<Shortage> for Detail {
    #[cold]
    fn from(Shortage: Shortage) -> Self {
        Self::of(Status::Memory)
    }
}

/// Proof at compile time that all-zero bytes are a valid `T`.
struct Zeros<T>(PhantomData<T>);

impl<T: Copy> Zeros<T> {
    /// Named wherever a zeroed array is made, which makes the compiler evaluate it.
    // SAFETY: evaluated at compile time, which fails if zeros are no valid `T`.
    const VALUE: T = unsafe { core::mem::zeroed() };
}
