//! Survey: size of a schedule, and memory requirements of its simulation.

use super::build_error::BuildError;
use super::in_order::waiting::{Part, SHORT};
use super::memory::Requirements;
use super::parameters::{Receive, Settings};
use crate::goal::{Edge, Op, OpKind, Sink};

/// Sink that only counts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Survey {
    ranks: u32,
    pub(super) ops: u64,
    pub(super) edges: u64,
    pub(super) receives: u64,
    /// Receives that were seen; `receives` may be an upper bound ([`Survey::bound`]).
    pub(super) sure_receives: u64,
    /// Largest number of dependencies of a rank.
    pub(super) edges_most: u64,
    edges_here: u64,
    /// Largest number of operations of a rank.
    pub(super) ops_most: u32,
    ops_here: u32,
    receives_here: u64,
    /// Buckets of posted receives and unexpected messages.
    buckets: u64,
    /// Highest processor and interface in use.
    pub(super) cpu: u16,
    pub(super) nic: u16,
}

impl Survey {
    /// Upper bounds for a schedule of which only these are known: number of ranks, and operations
    /// and dependencies of all ranks and of the largest rank. The memory suffices if every rank has
    /// one processor and one interface. It is too large for receives.
    #[must_use]
    pub const fn bound(
        ranks: u32,
        [ops, ops_most]: [u64; 2],
        [edges, edges_most]: [u64; 2],
    ) -> Self {
        Self {
            ranks,
            ops,
            edges,
            receives: ops,
            sure_receives: 0,
            edges_most,
            edges_here: 0,
            ops_most: 0,
            ops_here: 0,
            receives_here: 0,
            buckets: if ops_most > SHORT as u64 { ops } else { 0 },
            cpu: 0,
            nic: 0,
        }
    }

    /// Number of ranks.
    #[must_use]
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Number of operations of all ranks.
    #[must_use]
    pub const fn ops(&self) -> u64 {
        self.ops
    }

    /// The survey with `records` operations, and without lists of dependants and slots for
    /// receives.
    pub(super) const fn of_records(&self, records: u64) -> Self {
        let most = if records > 0 { records } else { 1 };
        let (receives, edges, edges_most, buckets) = (0, 0, 0, 1 << most.ilog2());
        Self { ops: records, receives, edges, edges_most, buckets, ..*self }
    }

    /// Memory to lend for a simulation with `settings`.
    ///
    /// # Errors
    ///
    /// [`BuildError::TooManyOps`] beyond the capacity of a simulation.
    pub fn requirements(&self, settings: Settings) -> Result<Requirements, BuildError> {
        let size = |count: u64| usize::try_from(count).map_err(|_| BuildError::TooManyOps);
        if self.ops >= u64::from(u32::MAX) || self.edges > u64::from(u32::MAX) / 2 {
            return Err(BuildError::TooManyOps);
        }
        let ranks = u64::from(self.ranks);
        let several = self.cpu > 0 || self.nic > 0;
        let timed = several || settings.receive == Receive::Overlap;
        let clocks = size(ranks * (u64::from(self.cpu) + 2 * u64::from(self.nic) + 3))?;
        let waited_for = if timed { clocks } else { 0 };
        Ok(Requirements {
            records: size(self.ops)?,
            // A list has two words more than operations, and at least two operations.
            edges: size(2 * self.edges)?,
            ranks: size(ranks)?,
            firsts: size(ranks + 1)?,
            slots: size(self.receives)?,
            buckets: size(self.buckets)?,
            partly: 0,
            clocks: if several { clocks } else { 0 },
            clock_queues: waited_for,
            clock_heap: waited_for,
            units: if self.cpu.max(self.nic) > u8::MAX.into() { size(self.ops)? } else { 0 },
            origins: 0,
            history: 0,
            times: if timed { size(self.ops)? } else { 0 },
            next_attempts: if several { size(self.ops)? } else { 0 },
            links: if timed { size(self.ops)? } else { 0 },
            done: if settings.receive == Receive::Overlap { size(ranks)? } else { 0 },
            released: 0,
            queue: size(ranks)?,
            places: size(ranks)?,
            scratch: size(self.edges_most)?,
            cpus: usize::from(self.cpu) + 1,
            nics: usize::from(self.nic) + 1,
        })
    }
}

impl Sink for Survey {
    type Error = BuildError;

    fn ranks(&mut self, ranks: u32) -> Result<(), BuildError> {
        self.ranks = ranks;
        Ok(())
    }

    fn begin_rank(&mut self, _rank: u32) -> Result<(), BuildError> {
        self.edges_here = 0;
        self.ops_here = 0;
        self.receives_here = 0;
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<u32, BuildError> {
        let index = self.ops_here;
        self.ops_here = index.checked_add(1).ok_or(BuildError::TooManyOps)?;
        self.ops_most = self.ops_most.max(self.ops_here);
        self.ops += 1;
        if let OpKind::Receive { .. } = op.kind {
            self.sure_receives += 1;
            self.receives_here += 1;
        }
        self.cpu = self.cpu.max(op.cpu);
        self.nic = self.nic.max(op.nic);
        Ok(index)
    }

    fn edge(&mut self, _edge: Edge) -> Result<(), BuildError> {
        self.edges_here += 1;
        self.edges += 1;
        self.edges_most = self.edges_most.max(self.edges_here);
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), BuildError> {
        let receives = self.receives_here;
        self.receives += receives;
        self.buckets += Part::count(receives);
        Ok(())
    }
}
