//! Which elements of lent memory are free.

use super::memory::NONE;

/// Elements that are taken and given back. One that was never taken is taken only
/// where no other is free, so that memory that is not needed is not touched.
#[derive(Debug)]
pub(super) struct FreeList {
    /// The one that was given back last, or [`NONE`].
    first: u32,
    /// The first that was never taken.
    fresh: u32,
}

impl FreeList {
    pub(super) const fn new() -> Self {
        Self { first: NONE, fresh: 0 }
    }

    /// Takes one of `count` elements; `next` says which free one follows another.
    #[inline]
    pub(super) fn take(&mut self, count: usize, next: impl FnOnce(u32) -> u32) -> Option<u32> {
        if self.first != NONE {
            let at = self.first;
            self.first = next(at);
            return Some(at);
        }
        let at = self.fresh;
        self.fresh += u32::from((at as usize) < count);
        (at < self.fresh).then_some(at)
    }

    /// Gives one back; returns the free one that follows it now.
    #[inline]
    pub(super) const fn give_back(&mut self, at: u32) -> u32 {
        core::mem::replace(&mut self.first, at)
    }
}
