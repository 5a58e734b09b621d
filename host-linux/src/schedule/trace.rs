//! Schedules converted from a trace as they are needed.

use std::sync::{Arc, PoisonError, RwLock};

use loggap_core::goal::Sink;
use loggap_core::sim::BuildError;

use super::tags::{TagNumbers, numbering, original};
use crate::trace::convert::{Conversion, ConvertError, Report};
use crate::trace::extrapolate::Extrapolation;

/// A trace as a schedule.
#[derive(Debug)]
pub enum TraceSchedule {
    /// On the traced ranks.
    Converted(Box<Conversion>, RwLock<Written>),
    /// On more ranks.
    Extrapolated(Box<Extrapolation>),
}

/// Tags and report of the last time that a trace was written with numbers in place of tags.
#[derive(Clone, Debug, Default)]
pub struct Written {
    tags: Arc<TagNumbers>,
    report: Report,
}

impl From<Conversion> for TraceSchedule {
    fn from(conversion: Conversion) -> Self {
        Self::Converted(Box::new(conversion), RwLock::default())
    }
}

impl From<Extrapolation> for TraceSchedule {
    fn from(program: Extrapolation) -> Self {
        Self::Extrapolated(Box::new(program))
    }
}

impl TraceSchedule {
    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        match self {
            Self::Converted(conversion, _) => conversion.ranks(),
            Self::Extrapolated(program) => program.ranks(),
        }
    }

    /// The program on more ranks than were traced.
    pub(crate) fn extrapolation(&self) -> Option<&Extrapolation> {
        match self {
            Self::Converted(..) => None,
            Self::Extrapolated(program) => Some(program),
        }
    }

    /// What became of the calls of a trace on its own ranks, once it was fed numbered.
    pub(crate) fn conversion_report(&self) -> Option<Report> {
        match self {
            Self::Converted(_, written) => {
                Some(written.read().unwrap_or_else(PoisonError::into_inner).report.clone())
            }
            Self::Extrapolated(_) => None,
        }
    }

    /// Writes the schedule into `sink`, and returns what became of the calls of the trace.
    ///
    /// # Errors
    ///
    /// [`ConvertError`].
    pub fn feed<S: Sink>(&self, sink: &mut S) -> Result<Report, ConvertError<S::Error>> {
        match self {
            Self::Converted(conversion, _) => conversion.feed(sink),
            Self::Extrapolated(program) => {
                program.feed_numbered(&mut original(&program.tags(), sink))?;
                Ok(program.report().clone())
            }
        }
    }

    /// As [`TraceSchedule::feed`], with tags from 2³¹ replaced by their numbers in
    /// [`TraceSchedule::tags`].
    ///
    /// # Errors
    ///
    /// [`ConvertError`].
    pub fn feed_numbered<S: Sink<Error = BuildError>>(
        &self,
        sink: &mut S,
    ) -> Result<Report, ConvertError<BuildError>> {
        match self {
            Self::Converted(conversion, written) => {
                let mut written = written.write().unwrap_or_else(PoisonError::into_inner);
                let tags = Arc::make_mut(&mut written.tags);
                let report = conversion.feed(&mut numbering(tags, sink))?;
                written.report = report.clone();
                Ok(report)
            }
            Self::Extrapolated(program) => {
                program.feed_numbered(sink).map(|()| program.report().clone())
            }
        }
    }

    /// Tags that were replaced by numbers.
    pub fn tags(&self) -> Arc<TagNumbers> {
        match self {
            Self::Converted(_, written) => {
                Arc::clone(&written.read().unwrap_or_else(PoisonError::into_inner).tags)
            }
            Self::Extrapolated(program) => program.tags(),
        }
    }
}
