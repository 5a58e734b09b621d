//! Largest message of a schedule.

use loggap_core::goal::{Edge, Op, OpKind, Sink};
use loggap_core::sim::BuildError;
use loggap_core::units::Bytes;

use super::{LoadError, Source};

/// Size of the largest message of `source`, which has `ops` operations. `None` without messages,
/// and for schedules that would take too long to be read again.
///
/// # Errors
///
/// [`LoadError`] if the schedule cannot be read a second time.
pub fn largest_message(source: &Source, ops: u64) -> Result<Option<Bytes>, LoadError> {
    if ops > super::crossing::MOST_OPS {
        return Ok(None);
    }
    let mut largest = None;
    source.feed(&mut EachOp::new(|_, _, kind| {
        if let OpKind::Send { size, .. } = kind {
            largest = largest.max(Some(Bytes(size)));
        }
    }))?;
    Ok(largest)
}

/// Sink that calls a closure with the rank, index and kind of each operation.
pub(super) struct EachOp<F> {
    rank: u32,
    /// Operations of the current rank so far.
    ops: u32,
    each: F,
}

impl<F: FnMut(u32, u32, OpKind)> EachOp<F> {
    pub(super) const fn new(each: F) -> Self {
        Self { rank: 0, ops: 0, each }
    }
}

impl<F: FnMut(u32, u32, OpKind)> Sink for EachOp<F> {
    type Error = BuildError;

    fn ranks(&mut self, _ranks: u32) -> Result<(), BuildError> {
        Ok(())
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), BuildError> {
        (self.rank, self.ops) = (rank, 0);
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<u32, BuildError> {
        let index = self.ops;
        (self.each)(self.rank, index, op.kind);
        self.ops = index.checked_add(1).ok_or(BuildError::TooManyOps)?;
        Ok(index)
    }

    fn edge(&mut self, _edge: Edge) -> Result<(), BuildError> {
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), BuildError> {
        Ok(())
    }
}
