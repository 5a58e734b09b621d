//! Schedule files: GOAL text, LogGOPSim's binary format and the native one.
//!
//! [`ScheduleFile`] recognises the format by the content and reads the file into a
//! [`Sink`](loggap_core::goal::Sink); [`write`](write()) is the reverse. The formats themselves are
//! in [`loggap_core::goal`].

mod coding;
mod each_op;
mod file;
mod form;
mod lookup;
mod owned_rank;
mod prtt;
mod tags;
mod trace;
mod write;

pub(crate) use coding::Coding;
pub(crate) use each_op::EachOp;
pub use file::{FeedError, Location, RefusedInput, ScheduleFile};
pub use form::Form;
pub use loggap_core::goal::Extent;
pub use lookup::NumberedLookup;
pub use owned_rank::OwnedRank;
pub use prtt::PrttRound;
pub use tags::TagNumbers;
pub use trace::{TraceSchedule, Written};
pub use write::{CutTags, StreamOutput, WriteError, Writer, write, write_text};
