//! The profile: the result of a measurement as a JSON file.
//!
//! It can be printed, plotted, compared and simulated on any machine. Keys end in their units: `_s`
//! seconds, `_bytes`, `_per_byte_s` seconds per byte; a number `x_s` has its interval beside it as
//! `x_s_lo` and `x_s_hi`. The format is described in `docs/formats.md`.

mod agreement;
mod deviation;
mod document;
mod draw;
mod error;
mod literal;
pub mod logp_test;
mod methods;
mod preset;
mod range;
mod record;
mod size;
mod span;
mod warning;

pub use agreement::{Agreement, MethodRecord};
pub(crate) use deviation::{gap_deviation, gap_points, mean_square};
pub use document::{
    CanaryRecord, FitDocument, FittedRange, ProfileDocument, Requested, SCHEMA_VERSION, Stopped,
    USUAL, USUAL_EAGER_LIMIT, Verdict,
};
pub(crate) use draw::confidence;
pub use draw::{NoInterval, ProfileDraws};
pub use error::{ProfileError, ProfileErrorKind};
pub use literal::{Literal, LiteralRange, LiteralSettings};
#[cfg(test)]
pub(crate) use methods::tests as fixtures;
pub use methods::{
    BulkLine, BulkRecord, PlogpSize, PointRecord, SignatureRecord, SignatureSize, regime_name,
};
pub use range::{ChangeRecord, RangeRecord};
pub(crate) use record::{key, to_si};
pub use size::{COLUMNS, PERCENTILES, RoundRecord, SAMPLES, SizeRecord};
pub use span::SizeSpan;
pub use warning::{Severity, WarningRecord};
