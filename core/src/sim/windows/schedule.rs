//! A schedule in lent memory, and its partitions.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::foreign::parts_of;
use super::memory::{Memory, Requirements};
use super::partition::{Partition, Share};
use super::rank::WindowRank;
use super::record::WindowRecord;
use super::shared::{Frame, Shared};
use crate::sim::hooks::{Noise, Observer};
use crate::sim::mail::Block;
use crate::sim::parameters::Parameters;
use crate::sim::queues::wheel;
use crate::sim::rank::matching::slots::Slots;

/// A schedule in lent memory. It can run once.
#[derive(Debug)]
pub struct Schedule<'m> {
    /// Lent memory without edges and first operations, which copies share.
    pub(super) memory: Memory<'m>,
    pub(super) frame: Frame<'m>,
    /// Requirements of `memory`.
    pub(super) requirements: Requirements,
    /// Number of handshakes.
    pub(super) handshakes: u32,
    pub(super) sends: u32,
    /// Memory between parts that were built apart, bytes.
    pub(super) unused: u64,
}

impl<'m> Schedule<'m> {
    /// Index of each rank's first operation, then the number of operations.
    #[must_use]
    pub const fn first_ops(&self) -> &'m [u32] {
        self.frame.firsts
    }

    /// Binary logarithm of the ranks of a partition.
    #[must_use]
    pub const fn shift(&self) -> u32 {
        self.requirements.shift
    }

    /// Partitions of this process.
    #[must_use]
    pub const fn block(&self) -> Block {
        self.requirements.block
    }

    /// Number of sends of all ranks.
    #[must_use]
    pub const fn sends(&self) -> u32 {
        self.sends
    }

    /// Largest number of places that messages take in the mail at a time: one each, more to and from
    /// other processes.
    #[must_use]
    pub fn messages(&self) -> u32 {
        if self.requirements.block == Block::ALL {
            return self.sends;
        }
        let Requirements { stand_ins, away, .. } = self.requirements;
        let [received, places] = [stand_ins, 1 + parts_of(away.creators)]
            .map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        self.sends.saturating_add(received).saturating_mul(places)
    }

    /// Memory in use, bytes; the lent memory may be larger.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let records = self.requirements.ops + self.further_records().len();
        let shared = size_of_val(self.frame.edges) + size_of_val(self.frame.firsts);
        let lent = Requirements { records, foreign: 0, ..self.requirements }.bytes();
        lent + shared as u64 - self.unused
    }

    /// Range of the additional records of handshakes.
    pub(super) fn further_records(&self) -> Range<usize> {
        if self.handshakes == 0 {
            return 0..0;
        }
        let first = self.frame.further as usize + 3 * self.requirements.stand_ins;
        first..first + 3 * self.handshakes as usize
    }

    /// Number of events of a complete run.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.requirements.ops as u64 + self.sends as u64 + 4 * self.handshakes as u64
    }

    /// Partitions, in the order of their ranks, each with the observer that `observe` creates for
    /// its first rank. Observers get all events except the release of operations without
    /// dependencies.
    pub fn observed<N: Noise + Clone, O: Observer>(
        self,
        noise: N,
        mut observe: impl FnMut(u32) -> O,
    ) -> impl Iterator<Item = Partition<'m, N, O>> {
        let shift = self.requirements.shift;
        let each = 1usize.checked_shl(shift).unwrap_or(usize::MAX);
        let Self { memory, frame, requirements: Requirements { block, .. }, .. } = self;
        let Memory { records, times, links, mut slots, receiving, foreign, ends, taken, .. } =
            memory;
        let (records, times, links, foreign) = (&*records, &*times, &*links, &*foreign);
        let (ends, taken) = (&*ends, taken.first());
        let words = wheel::words(each.min(memory.ranks.len())).max(1);
        let mut first = 0;
        let end_of = |next: Option<&&mut [WindowRank]>| {
            next.and_then(|ranks| ranks.first()).map(|rank| rank.posted.first)
        };
        let mut parts = (0u32..).zip(memory.words.chunks_mut(words));
        let mut ranks = memory.ranks.chunks_mut(each).peekable();
        let mut receiving = receiving.chunks_mut(each);
        core::iter::from_fn(move || {
            let own = ranks.next()?;
            let (index, words) = parts.next()?;
            let all = core::mem::take(&mut slots);
            let count = end_of(ranks.peek()).map_or(all.len(), |end| (end - first) as usize);
            let (own_slots, rest) = all.split_at_mut_checked(count)?;
            slots = rest;
            let slots = Slots::new(own_slots, first);
            let receiving = receiving.next().unwrap_or_default();
            let share = Share { index, shift, block, ranks: own, slots, words, links, receiving };
            first = end_of(ranks.peek()).unwrap_or(first);
            let shared = Shared::new(records, times, frame);
            let shared = Shared { taken, foreign, ends, ..shared };
            let observer = observe(frame.first_rank + (index << shift));
            Some(Partition::new(shared, share, noise.clone(), observer))
        })
    }
}

/// Copies of a schedule that has not run, for runs with other parameters.
impl Schedule<'_> {
    /// Memory for [`Schedule::copy`], without the parts that copies share with the original.
    #[must_use]
    pub const fn copy_requirements(&self) -> Requirements {
        self.requirements
    }

    /// Copies the schedule into `memory`, for a run with `parameters`; dependencies are shared.
    /// `None` if `memory` is smaller than [`Schedule::copy_requirements`], if o + L is 0, or if the
    /// parameters put other messages above the eager limit than those of the original.
    #[must_use]
    pub fn copy<'n>(
        &'n self,
        memory: Memory<'n>,
        parameters: Parameters<'n>,
    ) -> Option<Schedule<'n>> {
        if parameters.lookahead().0 == 0 || !parameters.has_limits_of(&self.frame.parameters) {
            return None;
        }
        let memory = memory.cut(&self.copy_requirements())?;
        self.copy_records(memory.records, 0..self.requirements.ops)?;
        self.copy_records(memory.records, self.further_records())?;
        memory.ranks.copy_from_slice(self.memory.ranks);
        memory.times.fill_with(AtomicU64::default);
        for (link, own) in memory.links.iter_mut().zip(&*self.memory.links) {
            *link = own.load(Relaxed).into();
        }
        let frame = Frame { parameters, ..self.frame };
        Some(Schedule { memory, frame, ..*self })
    }

    /// Copies a range of the records; those outside were not built.
    fn copy_records(&self, records: &mut [WindowRecord], range: Range<usize>) -> Option<()> {
        records.get_mut(range.clone())?.clone_from_slice(self.memory.records.get(range)?);
        Some(())
    }
}
