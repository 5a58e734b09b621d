//! Ranks of a pattern, and arithmetic on them.

use crate::sim::implicit::Extent;

/// Number of ranks and root of a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) ranks: u32,
    pub(super) root: u32,
}

impl Place {
    /// Extent of a tree over all ranks, with a message of `size` bytes along each edge.
    pub(super) fn tree(&self, size: u64) -> Extent {
        let (ranks, all) = (self.ranks, u64::from(self.ranks));
        let (waiting, messages) = (2 * all, all.saturating_sub(1));
        let (sizes, busy) = ([size; 2], ranks);
        Extent { ranks, sizes, waiting, messages, busy, interchangeable: true }
    }

    /// Exchanges 0 and the root: converts a rank to its virtual rank and back.
    #[inline]
    pub(super) const fn swapped(&self, x: u32) -> u32 {
        if x == 0 {
            self.root
        } else if x == self.root {
            0
        } else {
            x
        }
    }

    /// Rank at `distance` above `rank` on the ring; both must be below the number of ranks.
    #[inline]
    pub(super) const fn above(&self, rank: u32, distance: u32) -> u32 {
        let left = self.ranks - rank;
        if distance < left { rank + distance } else { distance - left }
    }

    /// Rank at `distance` below `rank` on the ring.
    #[inline]
    pub(super) const fn below(&self, rank: u32, distance: u32) -> u32 {
        if distance <= rank { rank - distance } else { self.ranks - (distance - rank) }
    }
}
