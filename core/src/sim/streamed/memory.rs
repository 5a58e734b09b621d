//! Memory of a streamed schedule.

use crate::sim::origin::History;
use crate::sim::{self, BuildError, Settings, Survey};

/// Number of elements of each part of [`Memory`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Requirements {
    /// As for a stored schedule, with records for operations under way only.
    pub simulation: sim::Requirements,
    /// [`Memory::buckets`].
    pub buckets: usize,
    /// [`Memory::released`].
    pub released: usize,
}

impl Requirements {
    /// Requirements of a surveyed schedule with at most `records` operations under way at a time.
    ///
    /// # Errors
    ///
    /// [`BuildError::TooManyOps`] beyond the capacity of a simulation.
    pub fn of(survey: &Survey, settings: Settings, records: u64) -> Result<Self, BuildError> {
        Self::with_records(survey, settings, records.min(survey.ops()))
    }

    /// As [`Requirements::of`], for a [`Part`](crate::sim::streamed::Part): messages of other parts
    /// have records, too, of which there are at most `arrivals` at a time.
    ///
    /// # Errors
    ///
    /// As [`Requirements::of`].
    pub fn of_part(
        survey: &Survey,
        settings: Settings,
        records: u64,
        arrivals: u64,
    ) -> Result<Self, BuildError> {
        let records = records.min(survey.ops().saturating_add(arrivals));
        let mut part = Self::with_records(survey, settings, records)?;
        part.simulation.origins = part.simulation.records;
        part.simulation.history = History::size(part.simulation.ranks);
        Ok(part)
    }

    fn with_records(survey: &Survey, settings: Settings, records: u64) -> Result<Self, BuildError> {
        if survey.ops() >= u64::from(u32::MAX) {
            return Err(BuildError::TooManyOps);
        }
        let released = usize::try_from(survey.ops().div_ceil(u64::from(u64::BITS)));
        let simulation = survey.of_records(records).requirements(settings)?;
        Ok(Self {
            simulation,
            buckets: 1 << simulation.records.max(1).ilog2(),
            released: released.map_err(|_| BuildError::TooManyOps)?,
        })
    }

    /// Size of all parts together, bytes; saturating.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        let buckets = (self.buckets as u64).saturating_mul(size_of::<u32>() as u64);
        let released = (self.released as u64).saturating_mul(size_of::<u64>() as u64);
        self.simulation.bytes().saturating_add(buckets).saturating_add(released)
    }
}

/// Lent memory of a streamed schedule, of the sizes in [`Requirements`]. The content on entry does
/// not matter.
#[derive(Debug, Default)]
pub struct Memory<'m> {
    /// Memory of the simulation.
    pub simulation: sim::Memory<'m>,
    /// Buckets of operations with both a fulfilled and an unfulfilled dependency.
    pub buckets: &'m mut [u32],
    /// One bit for each operation: released.
    pub released: &'m mut [u64],
}
