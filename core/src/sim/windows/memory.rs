//! Memory of a schedule in windows, and the check that it can run in them.

use super::foreign::{Away, parts_of};
use super::record::{MOST, MOST_OF_RANK};
use crate::sim::lent::lent_memory;
use crate::sim::mail::Block;
use crate::sim::parameters::{Parameters, Receive, Rendezvous, Settings};
use crate::sim::queues::wheel;
use crate::sim::survey::Survey;
pub use crate::sim::unsuitable::Unsuitable;

/// As [`with_memory_parts`](crate::with_memory_parts), for the parts of a schedule in windows.
#[macro_export]
macro_rules! with_window_memory_parts {
    ($then:ident $($first:tt)*) => {
        $then! {
            $($first)*
            /// Records of operations and handshakes.
            records: $crate::sim::windows::WindowRecord,
            /// Lists of dependants.
            edges: u32,
            /// States of ranks.
            ranks: $crate::sim::windows::WindowRank,
            /// Index of each rank's first operation.
            firsts: u32,
            /// Slots of posted receives.
            slots: $crate::sim::Slot,
            /// Timing wheels of the partitions.
            words: u64,
            /// A time for each operation; with overlap.
            times: core::sync::atomic::AtomicU64,
            /// Links of the heaps of waiting records; with overlap.
            links: core::sync::atomic::AtomicU64,
            /// Receiving state of each rank; with overlap.
            receiving: $crate::sim::windows::Receiving,
            /// Histories of messages of other processes.
            foreign: $crate::sim::windows::Foreign,
            /// Number of records that messages of other processes have.
            taken: core::sync::atomic::AtomicU32,
            /// Hash and end of the history of each operation.
            ends: $crate::sim::windows::End,
            /// Dependencies of one rank, while the schedule is built.
            scratch: [u32; 2],
        }
    };
}

with_window_memory_parts! {
    lent_memory
    further {
        /// Number of operations; records may be more, three for each handshake.
        ops: usize,
        /// Number of partitions.
        partitions: usize,
        /// Partition of a rank: its number, shifted right by this.
        shift: u32,
        /// Partitions of this process.
        block: Block,
        /// Records for messages of other processes.
        stand_ins: usize,
        /// Room for each, and for more.
        away: Away,
    }
}

impl Requirements {
    /// Requirements of the surveyed schedule, with partitions of 2^`shift` ranks: of the ranks of a
    /// process with the partitions `block`, of which alone `survey` has the operations; `away` is
    /// the room for messages of others.
    ///
    /// # Errors
    ///
    /// [`Unsuitable`] if it cannot run in windows, as far as the survey shows that.
    pub fn of(
        survey: &Survey,
        parameters: &Parameters<'_>,
        settings: Settings,
        (shift, block): (u32, Block),
        away: Away,
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
        let shift = shift.min(u32::BITS - 1);
        let each = 1usize.checked_shl(shift).ok_or(Unsuitable::TooManyOps)?;
        let ranks = block.ranks(shift, survey.ranks()).len();
        let partitions = ranks.div_ceil(each);
        let stand_ins = match block {
            Block::ALL => 0,
            _ => survey.receives + u64::from(away.spare),
        };
        // Each handshake has three records in addition to that of its send.
        let handshakes = match settings.rendezvous {
            Rendezvous::Handshake => survey.ops.saturating_sub(survey.sure_receives) + stand_ins,
            Rendezvous::Instant => 0,
        };
        let further = 3 * handshakes + stand_ins;
        if survey.ops + further > MOST {
            return Err(Unsuitable::TooManyOps);
        }
        let summaries = if stand_ins > 0 { stand_ins + handshakes } else { 0 };
        let size = |count: u64| usize::try_from(count).map_err(|_| Unsuitable::TooManyOps);
        Ok(Self {
            records: size(survey.ops + further)?,
            ops: size(survey.ops)?,
            // A list has two words more than operations, and at least two operations.
            edges: size(2 * survey.edges)?,
            ranks,
            firsts: ranks + 1,
            slots: size(survey.receives)?,
            words: partitions * wheel::words(each.min(ranks)),
            times: if overlap { size(survey.ops + further)? } else { 0 },
            links: if overlap { size(survey.ops + further)? } else { 0 },
            receiving: if overlap { ranks } else { 0 },
            foreign: size(summaries.saturating_mul(parts_of(away.creators) as u64))?,
            ends: if away.creators > 0 { size(survey.ops + further)? } else { 0 },
            taken: usize::from(stand_ins > 0),
            scratch: size(survey.edges_most)?,
            partitions,
            shift,
            block,
            stand_ins: size(stand_ins)?,
            away,
        })
    }
}
