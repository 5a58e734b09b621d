//! Whether a schedule can run in windows, and the memory for that.

use core::sync::atomic::AtomicU64;

use super::overlap::Receiving;
use super::rank::WindowRank;
use super::record::{MOST, MOST_OF_RANK, WindowRecord};
use crate::sim::parameters::{Parameters, Receive, Rendezvous, Settings};
use crate::sim::record::Slot;
use crate::sim::survey::Survey;
pub use crate::sim::unsuitable::Unsuitable;
use crate::sim::wheel;

/// Elements of each part of [`Memory`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Requirements {
    /// [`Memory::records`].
    pub records: usize,
    /// Operations; there are further records for handshakes.
    pub ops: usize,
    /// [`Memory::edges`].
    pub edges: usize,
    /// [`Memory::ranks`].
    pub ranks: usize,
    /// [`Memory::firsts`].
    pub firsts: usize,
    /// [`Memory::slots`].
    pub slots: usize,
    /// [`Memory::words`].
    pub words: usize,
    /// [`Memory::times`].
    pub times: usize,
    /// [`Memory::links`].
    pub links: usize,
    /// [`Memory::receiving`].
    pub receiving: usize,
    /// [`Memory::scratch`].
    pub scratch: usize,
    /// Partitions.
    pub partitions: usize,
    /// A rank's number, shifted by this, is that of its partition.
    pub shift: u32,
}

impl Requirements {
    /// What the surveyed schedule needs, with partitions of 2^`shift` ranks.
    ///
    /// # Errors
    ///
    /// [`Unsuitable`] where it cannot run in windows, as far as is known
    /// before it is built.
    pub fn of(
        survey: &Survey,
        (parameters, settings): (&Parameters<'_>, Settings),
        shift: u32,
    ) -> Result<Self, Unsuitable> {
        if parameters.lookahead().0 == 0 {
            return Err(Unsuitable::NoLookahead);
        }
        let overlap = settings.receive == Receive::Overlap;
        if survey.cpu > 0 || survey.nic > 0 {
            return Err(Unsuitable::Units);
        }
        let most_edges = u64::from(u32::MAX) / 2;
        if survey.ops > MOST || survey.edges > most_edges || survey.ops_most > MOST_OF_RANK {
            return Err(Unsuitable::TooManyOps);
        }
        // Each handshake has three records more than its send.
        let sends = survey.ops.saturating_sub(survey.sure_receives);
        let further = if settings.rendezvous == Rendezvous::Handshake { 3 * sends } else { 0 };
        if survey.ops + further > MOST {
            return Err(Unsuitable::TooManyOps);
        }
        let size = |count: u64| usize::try_from(count).map_err(|_| Unsuitable::TooManyOps);
        let ranks = survey.ranks() as usize;
        let shift = shift.min(u32::BITS - 1);
        let each = 1usize.checked_shl(shift).ok_or(Unsuitable::TooManyOps)?;
        let partitions = ranks.div_ceil(each);
        Ok(Self {
            records: size(survey.ops + further)?,
            ops: size(survey.ops)?,
            // A list has two words more than operations, of which at least two.
            edges: size(2 * survey.edges)?,
            ranks,
            firsts: ranks + 1,
            slots: size(survey.receives)?,
            words: partitions * wheel::words(each.min(ranks)),
            times: if overlap { size(survey.ops + further)? } else { 0 },
            links: if overlap { size(survey.ops + further)? } else { 0 },
            receiving: if overlap { ranks } else { 0 },
            scratch: size(survey.edges_most)?,
            partitions,
            shift,
        })
    }

    /// Bytes of all parts together; saturating.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        let parts = [
            (self.records, size_of::<WindowRecord>()),
            (self.edges, size_of::<u32>()),
            (self.ranks, size_of::<WindowRank>()),
            (self.firsts, size_of::<u32>()),
            (self.slots, size_of::<Slot>()),
            (self.words, size_of::<u64>()),
            (self.times, size_of::<AtomicU64>()),
            (self.links, size_of::<AtomicU64>()),
            (self.receiving, size_of::<Receiving>()),
            (self.scratch, size_of::<[u32; 2]>()),
        ];
        let mut bytes = 0u64;
        let mut rest: &[(usize, usize)] = &parts;
        while let Some(((count, size), next)) = rest.split_first() {
            bytes = bytes.saturating_add((*count as u64).saturating_mul(*size as u64));
            rest = next;
        }
        bytes
    }
}

/// Memory for a schedule; see [`Requirements`] for how much of each part.
/// Content on entry does not matter.
#[derive(Debug)]
pub struct Memory<'m> {
    /// Operations.
    pub records: &'m mut [WindowRecord],
    /// Lists of dependants.
    pub edges: &'m mut [u32],
    /// Ranks.
    pub ranks: &'m mut [WindowRank],
    /// Index of each rank's first operation.
    pub firsts: &'m mut [u32],
    /// Posted receives.
    pub slots: &'m mut [Slot],
    /// When ranks are due.
    pub words: &'m mut [u64],
    /// A time of each operation, where messages are received with overlap.
    pub times: &'m mut [AtomicU64],
    /// Then the heaps of what waits.
    pub links: &'m mut [AtomicU64],
    /// Then of each rank what it receives.
    pub receiving: &'m mut [Receiving],
    /// Dependencies of one rank, while the schedule is built.
    pub scratch: &'m mut [[u32; 2]],
}

impl<'m> Memory<'m> {
    /// The same, each part as long as required; `None` if one is shorter.
    pub(super) fn cut(self, requirements: &Requirements) -> Option<Self> {
        Some(Self {
            records: self.records.get_mut(..requirements.records)?,
            edges: self.edges.get_mut(..requirements.edges)?,
            ranks: self.ranks.get_mut(..requirements.ranks)?,
            firsts: self.firsts.get_mut(..requirements.firsts)?,
            slots: self.slots.get_mut(..requirements.slots)?,
            words: self.words.get_mut(..requirements.words)?,
            times: self.times.get_mut(..requirements.times)?,
            links: self.links.get_mut(..requirements.links)?,
            receiving: self.receiving.get_mut(..requirements.receiving)?,
            scratch: self.scratch.get_mut(..requirements.scratch)?,
        })
    }
}
