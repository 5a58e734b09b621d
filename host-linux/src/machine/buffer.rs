//! Message buffers at addresses that do not depend on the allocator.
//!
//! A copy between two processes' memory, which is how MPI libraries pass messages within a machine,
//! is several times slower where source and target have nearly the same offset within their pages:
//! the processor then mistakes a load for one that depends on an earlier store (4K aliasing).
//! Allocators align large buffers differently from small ones, so their thresholds would show up as
//! properties of the network.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

use super::kernel_files::read_setting;
use crate::sys::huge;

/// Bytes of a page, and default alignment of buffers.
pub const PAGE: u32 = 4096;
/// Largest alignment, bytes: a huge page.
pub const LARGEST: u32 = 2 << 20;

/// Alignment of buffers.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Alignment {
    /// Alignment in bytes, a power of two up to [`LARGEST`]. Below a page, send buffers begin at
    /// this offset from a page boundary and receive buffers at twice the offset: the worst case of
    /// an allocator with this alignment.
    #[serde(rename = "align_bytes")]
    pub bytes: u32,
    /// True for pages of 2 MiB.
    pub huge_pages: bool,
}

impl Default for Alignment {
    fn default() -> Self {
        Self { bytes: PAGE, huge_pages: false }
    }
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pages = if self.huge_pages { " in huge pages" } else { "" };
        write!(f, "buffers{pages} aligned to {} B", self.bytes)
    }
}

/// Role of a buffer, which decides its offset where the alignment is below a page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BufferRole {
    /// Messages are sent from it.
    Send,
    /// Messages are received into it.
    Receive,
}

/// Bytes of the largest cache of processor 0, as the kernel tells; 32 MiB where it does not.
#[must_use]
pub fn largest_cache() -> u64 {
    let of = |index: u32| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        crate::flags::parse::size(&read_setting(path)?).ok()
    };
    (0..8).filter_map(of).max().unwrap_or(32 << 20)
}

/// True if the system grants huge pages on request.
#[must_use]
pub fn are_huge_pages_given() -> bool {
    huge::is_given()
}

impl Alignment {
    /// Offset of a buffer from a page boundary, bytes.
    const fn offset(self, role: BufferRole) -> usize {
        match role {
            _ if self.bytes >= PAGE => 0,
            BufferRole::Send => self.bytes as usize,
            BufferRole::Receive => 2 * self.bytes as usize,
        }
    }
}

/// Fixed-size array whose pages are all resident, so that no page fault falls into a measurement.
#[derive(Debug)]
pub struct Buffer<T> {
    memory: Vec<T>,
    start: usize,
    length: usize,
}

impl<T: Copy> Buffer<T> {
    /// Allocates `length` elements equal to `fill`; `None` if memory, or requested huge pages, are
    /// not available.
    #[must_use]
    pub fn new(length: usize, alignment: Alignment, role: BufferRole, fill: T) -> Option<Self> {
        let least = if alignment.huge_pages { LARGEST } else { PAGE };
        let base = alignment.bytes.max(least) as usize;
        let element = size_of::<T>().max(1);
        let offset = alignment.offset(role).div_ceil(element);
        let mut used = offset.checked_add(length)?;
        if alignment.huge_pages {
            used = used.checked_mul(element)?.checked_next_multiple_of(base)? / element;
        }
        let mut memory: Vec<T> = Vec::new();
        memory.try_reserve_exact(used.checked_add(base / element)?).ok()?;
        let start = memory.as_ptr().align_offset(base).checked_add(offset)?;
        // Before the first write: a resident page keeps its size.
        if alignment.huge_pages && !huge::advise(memory.spare_capacity_mut()) {
            return None;
        }
        memory.resize(start.checked_add(length)?, fill);
        Some(Self { memory, start, length })
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.memory.get(self.start..self.start + self.length).unwrap_or_default()
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.memory.get_mut(self.start..self.start + self.length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place<T>(buffer: &Buffer<T>, within: u32) -> usize {
        buffer.as_ptr().addr() % within as usize
    }

    #[test]
    fn the_largest_cache_is_that_of_a_processor() {
        assert!((64 << 10..1 << 32).contains(&largest_cache()), "{}", largest_cache());
    }

    #[test]
    fn buffers_of_all_lengths_begin_at_a_page() {
        for length in [0, 1, 100, 4_096, 65_536, 1 << 20, (32 << 20) + 5] {
            let how = Alignment::default();
            let bytes = Buffer::new(length, how, BufferRole::Receive, 7_u8).unwrap();
            assert_eq!((bytes.len(), place(&bytes, PAGE)), (length, 0));
            assert!(bytes.iter().all(|byte| *byte == 7));
            let words = Buffer::new(length, how, BufferRole::Receive, 0_u32).unwrap();
            assert_eq!((words.len(), place(&words, PAGE)), (length, 0));
        }
    }

    #[test]
    fn below_a_page_what_is_sent_and_what_is_received_lie_differently() {
        for bytes in [4, 16, 64, 2_048] {
            let alignment = Alignment { bytes, ..Alignment::default() };
            let of = |role| Buffer::new(1_000, alignment, role, 0_u32).unwrap();
            let (send, receive) = (of(BufferRole::Send), of(BufferRole::Receive));
            let expected = [bytes, 2 * bytes % PAGE].map(|bytes| bytes as usize);
            assert_eq!([place(&send, PAGE), place(&receive, PAGE)], expected);
        }
        let alignment = Alignment { bytes: LARGEST, ..Alignment::default() };
        assert_eq!(place(&Buffer::new(10, alignment, BufferRole::Send, 0_u8).unwrap(), LARGEST), 0);
    }

    #[test]
    fn no_memory_is_no_buffer() {
        assert!(Buffer::new(usize::MAX, Alignment::default(), BufferRole::Send, 0_u8).is_none());
        assert!(
            Buffer::new(usize::MAX / 8, Alignment::default(), BufferRole::Send, 0_u32).is_none()
        );
    }

    #[test]
    fn huge_pages_are_there_where_the_system_gives_them() {
        let alignment = Alignment { huge_pages: true, ..Alignment::default() };
        let buffer = Buffer::new(8 << 20, alignment, BufferRole::Send, 1_u8);
        assert_eq!(buffer.is_some(), huge::is_given());
        let Some(buffer) = buffer else { return };
        assert_eq!((buffer.len(), place(&buffer, LARGEST)), (8 << 20, 0));
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let huge = smaps.lines().filter_map(|line| line.strip_prefix("AnonHugePages:"));
        let kib = huge.map(|text| text.trim().trim_end_matches(" kB").parse::<u64>().unwrap());
        assert!(kib.sum::<u64>() >= 4 << 10, "half of it at least");
    }
}
