//! Free list of elements of lent memory.

use super::memory::NONE;

/// Free list. An element that was never taken is taken only if no other is free, so that unused
/// memory is not touched.
#[derive(Debug)]
pub(super) struct FreeList {
    /// Element that was returned last, or [`NONE`].
    first: u32,
    /// First element that was never taken.
    fresh: u32,
}

impl FreeList {
    pub(super) const fn new() -> Self {
        Self { first: NONE, fresh: 0 }
    }

    /// Takes one of `count` elements; `next` returns the free element behind another.
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

    /// Returns an element to the list; returns the free element that follows it now.
    #[inline]
    pub(super) const fn give_back(&mut self, at: u32) -> u32 {
        core::mem::replace(&mut self.first, at)
    }
}
