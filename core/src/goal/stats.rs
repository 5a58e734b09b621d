//! Statistics of a schedule, counted by a sink.

use super::extent::Extent;
use super::op::{ANY, ANY_TAG, Edge, Op, OpKind, Sink};
use super::protocol::{Misuse, Protocol};

/// Number of size classes: 0, 1, 2 to 3, 4 to 7, … up to 2⁶³ and more.
pub const SIZE_CLASSES: usize = 65;

/// Statistics of a schedule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Stats {
    /// Size of the schedule.
    pub extent: Extent,
    /// Number of ranks without operations.
    pub idle_ranks: u32,
    /// Number of sends.
    pub sends: u64,
    /// Number of receives.
    pub receives: u64,
    /// Number of calculations.
    pub calcs: u64,
    /// Number of dependencies on a completion.
    pub requires: u64,
    /// Number of dependencies on a start.
    pub irequires: u64,
    /// Total size of all sends, bytes.
    pub bytes_sent: u128,
    /// Total duration of all calculations, ps.
    pub calc_picos: u128,
    /// Size of the smallest and of the largest send, bytes.
    pub size_range: Option<(u64, u64)>,
    /// Number of sends by size: class k has the sizes of k bits, see [`size_class`].
    pub size_classes: [u64; SIZE_CLASSES],
    /// Number of receives from any rank.
    pub any_source: u64,
    /// Number of sends and receives with a wildcard tag.
    pub any_tag: u64,
    /// Highest processor in use.
    pub highest_cpu: u16,
    /// Highest interface in use.
    pub highest_nic: u16,
}

impl Stats {
    const NOTHING: Self = Self {
        extent: Extent { ranks: 0, ops: 0, edges: 0, ops_most: 0, edges_most: 0 },
        idle_ranks: 0,
        sends: 0,
        receives: 0,
        calcs: 0,
        requires: 0,
        irequires: 0,
        bytes_sent: 0,
        calc_picos: 0,
        size_range: None,
        size_classes: [0; SIZE_CLASSES],
        any_source: 0,
        any_tag: 0,
        highest_cpu: 0,
        highest_nic: 0,
    };
}

/// Class of a message of `size` bytes: the number of bits of the size.
#[must_use]
pub const fn size_class(size: u64) -> usize {
    (u64::BITS - size.leading_zeros()) as usize
}

/// Sink that counts a schedule's [`Stats`].
#[derive(Debug)]
pub struct Counter<'m> {
    protocol: Protocol,
    stats: Stats,
    /// That of the open rank.
    open: Extent,
    tags: Tags<'m>,
}

impl<'m> Counter<'m> {
    /// Creates a counter that distinguishes up to `tags.len()` tags.
    pub fn new(tags: &'m mut [u64]) -> Self {
        let tags = Tags { memory: tags, used: 0, complete: true };
        Self {
            protocol: Protocol::default(),
            stats: Stats::NOTHING,
            open: Extent::of_rank(0, 0),
            tags,
        }
    }

    /// Statistics, and the tags that occurred.
    ///
    /// # Errors
    ///
    /// [`Misuse`] if ranks are missing.
    pub fn finish(self) -> Result<(Stats, Tags<'m>), Misuse> {
        self.protocol.finish()?;
        Ok((self.stats, self.tags))
    }

    fn message(&mut self, tag: u64) {
        if tag == ANY_TAG {
            self.stats.any_tag += 1;
        } else {
            self.tags.add(tag);
        }
    }
}

impl Sink for Counter<'_> {
    type Error = Misuse;

    fn ranks(&mut self, ranks: u32) -> Result<(), Misuse> {
        self.protocol.ranks(ranks)
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), Misuse> {
        self.open = Extent::of_rank(0, 0);
        self.protocol.begin_rank(rank)
    }

    fn op(&mut self, op: Op) -> Result<u32, Misuse> {
        let index = self.protocol.op()?;
        self.open.ops += 1;
        let stats = &mut self.stats;
        stats.highest_cpu = stats.highest_cpu.max(op.cpu);
        stats.highest_nic = stats.highest_nic.max(op.nic);
        match op.kind {
            OpKind::Send { size, tag, .. } => {
                stats.sends += 1;
                stats.bytes_sent += u128::from(size);
                let (smallest, largest) = stats.size_range.unwrap_or((size, size));
                stats.size_range = Some((smallest.min(size), largest.max(size)));
                if let Some(class) = stats.size_classes.get_mut(size_class(size)) {
                    *class += 1;
                }
                self.message(tag);
            }
            OpKind::Receive { peer, tag, .. } => {
                stats.receives += 1;
                stats.any_source += u64::from(peer == ANY);
                self.message(tag);
            }
            OpKind::Calc { duration } => {
                stats.calcs += 1;
                stats.calc_picos += u128::from(duration.0);
            }
        }
        Ok(index)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), Misuse> {
        let stats = &mut self.stats;
        *(if edge.start { &mut stats.irequires } else { &mut stats.requires }) += 1;
        self.protocol.edge(edge.op, edge.on)?;
        self.open.edges += 1;
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), Misuse> {
        let open = Extent::of_rank(self.open.ops, self.open.edges);
        self.stats.extent = self.stats.extent.with(open);
        self.stats.idle_ranks += u32::from(open.ops == 0);
        self.protocol.end_rank()
    }
}

/// Distinct tags of a schedule, without wildcards.
#[derive(Debug)]
pub struct Tags<'m> {
    /// Ascending, up to `used`.
    memory: &'m mut [u64],
    used: usize,
    complete: bool,
}

impl Tags<'_> {
    /// The tags, ascending.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        self.memory.get(..self.used).unwrap_or_default()
    }

    /// True if these are all tags; false if the lent memory was too small.
    #[must_use]
    pub const fn are_complete(&self) -> bool {
        self.complete
    }

    fn add(&mut self, tag: u64) {
        let Err(place) = self.values().binary_search(&tag) else { return };
        let Some(space) = self.memory.get_mut(place..=self.used) else {
            self.complete = false;
            return;
        };
        space.rotate_right(1);
        if let Some(slot) = space.first_mut() {
            *slot = tag;
        }
        self.used += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::testing::{Program, Rank, edge};
    use crate::units::Picos;
    use quickcheck::quickcheck;
    use std::collections::BTreeSet;
    use std::vec;
    use std::vec::Vec;

    fn count(program: &Program, room: usize) -> (Stats, Vec<u64>, bool) {
        let mut memory = vec![7; room];
        let mut counter = Counter::new(&mut memory);
        program.feed(&mut counter).unwrap();
        let (stats, tags) = counter.finish().unwrap();
        (stats, tags.values().to_vec(), tags.are_complete())
    }

    #[test]
    fn everything_is_counted_once() {
        let op = |kind| Op { kind, cpu: 1, nic: 0 };
        let ops = vec![
            op(OpKind::Send { peer: 0, size: 0, tag: 5 }),
            op(OpKind::Send { peer: 1, size: 1024, tag: ANY_TAG }),
            Op { nic: 3, ..op(OpKind::Receive { peer: ANY, size: 1, tag: 4 }) },
            op(OpKind::Calc { duration: Picos(500) }),
        ];
        let edges = vec![edge(1, 0), Edge { start: true, ..edge(2, 0) }, edge(3, 3)];
        let program = Program::new(vec![Rank { ops, edges }, Rank::default()]);
        let (stats, tags, complete) = count(&program, 8);
        let mut size_classes = [0; SIZE_CLASSES];
        (size_classes[0], size_classes[11]) = (1, 1);
        let expected = Stats {
            extent: Extent { ranks: 2, ops: 4, edges: 3, ops_most: 4, edges_most: 3 },
            idle_ranks: 1,
            sends: 2,
            receives: 1,
            calcs: 1,
            requires: 2,
            irequires: 1,
            bytes_sent: 1024,
            calc_picos: 500,
            size_range: Some((0, 1024)),
            size_classes,
            any_source: 1,
            any_tag: 1,
            highest_cpu: 1,
            highest_nic: 3,
        };
        assert_eq!((stats, tags, complete), (expected, vec![4, 5], true));
    }

    #[test]
    fn classes_of_sizes_are_powers_of_two() {
        for (size, class) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (u64::MAX, 64)] {
            assert_eq!(size_class(size), class);
        }
    }

    quickcheck! {
        fn tags_are_a_sorted_set_as_far_as_memory_goes(tags: Vec<u64>, room: u8) -> bool {
            let op = |&tag: &u64| Op {
                kind: OpKind::Receive { peer: 0, size: 0, tag: tag % 20 },
                cpu: 0,
                nic: 0,
            };
            let program =
                Program::new(vec![Rank { ops: tags.iter().map(op).collect(), edges: vec![] }]);
            let room = usize::from(room % 24);
            let (_, found, complete) = count(&program, room);
            let all: BTreeSet<u64> = tags.iter().map(|tag| tag % 20).collect();
            complete == (all.len() <= room)
                && found.len() == all.len().min(room)
                && found.is_sorted()
                && found.iter().all(|tag| all.contains(tag))
        }
    }
}
