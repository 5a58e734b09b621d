//! Schedules converted from a trace as they are needed.

use std::sync::{Arc, PoisonError, RwLock};

use loggap_core::goal::Sink;
use loggap_core::sim::BuildError;

use super::tags::{TagNumbers, numbering};
use crate::trace::convert::{Conversion, ConvertError, Report};

/// A trace as the schedule of a simulation.
#[derive(Debug)]
pub struct TraceSchedule {
    conversion: Conversion,
    tags: RwLock<Arc<TagNumbers>>,
}

impl From<Conversion> for TraceSchedule {
    fn from(conversion: Conversion) -> Self {
        Self { conversion, tags: RwLock::default() }
    }
}

impl TraceSchedule {
    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.conversion.ranks()
    }

    /// Writes the schedule into `sink`, and reports what became of the calls; tags from 2³¹ are replaced by their numbers in
    /// [`TraceSchedule::tags`].
    ///
    /// # Errors
    ///
    /// [`ConvertError`].
    pub fn feed_numbered<S: Sink<Error = BuildError>>(
        &self,
        sink: &mut S,
    ) -> Result<Report, ConvertError<BuildError>> {
        let mut tags = self.tags.write().unwrap_or_else(PoisonError::into_inner);
        self.conversion.feed(&mut numbering(Arc::make_mut(&mut tags), sink))
    }

    /// Tags that were replaced by numbers.
    pub fn tags(&self) -> Arc<TagNumbers> {
        Arc::clone(&self.tags.read().unwrap_or_else(PoisonError::into_inner))
    }
}
