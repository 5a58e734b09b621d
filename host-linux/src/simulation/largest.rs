//! The largest message of a schedule.

use loggap_core::goal::{Edge, Op, OpKind, Sink};
use loggap_core::sim::BuildError;
use loggap_core::units::Bytes;

use super::{LoadError, Source};

/// The size of the largest message of `source`, which has `ops` operations; `None`
/// without any, and for schedules that would take too long to be read again.
///
/// # Errors
///
/// [`LoadError`] where the schedule cannot be read a second time.
pub fn largest_message(source: &Source, ops: u64) -> Result<Option<Bytes>, LoadError> {
    if ops > super::crossing::MOST_OPS {
        return Ok(None);
    }
    let mut largest = Largest::default();
    source.feed(&mut largest)?;
    Ok(largest.size)
}

/// What was read so far.
#[derive(Default)]
struct Largest {
    size: Option<Bytes>,
    /// Operations of the present rank.
    ops: u32,
}

impl Sink for Largest {
    type Error = BuildError;

    fn ranks(&mut self, _ranks: u32) -> Result<(), BuildError> {
        Ok(())
    }

    fn begin_rank(&mut self, _rank: u32) -> Result<(), BuildError> {
        self.ops = 0;
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<u32, BuildError> {
        if let OpKind::Send { size, .. } = op.kind {
            self.size = self.size.max(Some(Bytes(size)));
        }
        let index = self.ops;
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
