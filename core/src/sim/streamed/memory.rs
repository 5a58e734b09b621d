//! The memory of a schedule that is read while it runs.

use crate::sim::{self, BuildError, Settings, Survey};

/// Elements of each part of [`Memory`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Requirements {
    /// As for a schedule that is stored, but records are those under way.
    pub simulation: sim::Requirements,
    /// [`Memory::buckets`].
    pub buckets: usize,
    /// [`Memory::released`].
    pub released: usize,
}

impl Requirements {
    /// Those of a surveyed schedule of which at most so many operations are under way at
    /// a time.
    ///
    /// # Errors
    ///
    /// [`BuildError::TooManyOps`] past what a simulation can count.
    pub fn of(survey: &Survey, settings: Settings, records: u64) -> Result<Self, BuildError> {
        if survey.ops() >= u64::from(u32::MAX) {
            return Err(BuildError::TooManyOps);
        }
        let released = usize::try_from(survey.ops().div_ceil(u64::from(u64::BITS)));
        let records = records.min(survey.ops());
        let simulation = survey.of_records(records).requirements(settings)?;
        Ok(Self {
            simulation,
            buckets: 2 << simulation.records.max(1).ilog2(),
            released: released.map_err(|_| BuildError::TooManyOps)?,
        })
    }

    /// Bytes of all parts together; saturating.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        let buckets = (self.buckets as u64).saturating_mul(size_of::<u32>() as u64);
        let released = (self.released as u64).saturating_mul(size_of::<u64>() as u64);
        self.simulation.bytes().saturating_add(buckets).saturating_add(released)
    }
}

/// Memory for a schedule that is read while it runs; see [`Requirements`] for how much
/// of each part. Content on entry does not matter.
#[derive(Debug, Default)]
pub struct Memory<'m> {
    /// That of the simulation.
    pub simulation: sim::Memory<'m>,
    /// By which operations are found that wait for some more, and receives and messages
    /// that wait for each other.
    pub buckets: &'m mut [u32],
    /// A bit for each operation.
    pub released: &'m mut [u64],
}
