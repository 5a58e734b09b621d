//! Memory of a streamed schedule: as for a stored one, with records for operations under way only.

use crate::sim::origin::History;
use crate::sim::{BuildError, Requirements, Settings, Survey};

impl Survey {
    /// Memory to lend for a streamed schedule with at most `records` operations under way at a time.
    ///
    /// # Errors
    ///
    /// [`BuildError::TooManyOps`] beyond the capacity of a simulation.
    pub fn streamed(&self, settings: Settings, records: u64) -> Result<Requirements, BuildError> {
        self.with_records(settings, records.min(self.ops()))
    }

    /// As [`Survey::streamed`], for a [`Part`](crate::sim::streamed::Part): messages of other parts
    /// have records, too, of which there are at most `arrivals` at a time.
    ///
    /// # Errors
    ///
    /// As [`Survey::streamed`].
    pub fn streamed_part(
        &self,
        settings: Settings,
        records: u64,
        arrivals: u64,
    ) -> Result<Requirements, BuildError> {
        let part = self.with_records(settings, records.min(self.ops().saturating_add(arrivals)))?;
        Ok(Requirements { origins: part.records, history: History::size(part.ranks), ..part })
    }

    fn with_records(&self, settings: Settings, records: u64) -> Result<Requirements, BuildError> {
        if self.ops() >= u64::from(u32::MAX) {
            return Err(BuildError::TooManyOps);
        }
        let released = usize::try_from(self.ops().div_ceil(u64::from(u64::BITS)));
        let simulation = self.of_records(records).requirements(settings)?;
        Ok(Requirements {
            partly: 1 << simulation.records.max(1).ilog2(),
            released: released.map_err(|_| BuildError::TooManyOps)?,
            ..simulation
        })
    }
}
