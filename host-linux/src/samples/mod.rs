//! Samples as comma-separated values: every timed round, to the picosecond.
//!
//! Two forms are read. The raw one is what `loggap measure --samples`
//! writes, a line per round:
//!
//! ```text
//! size_bytes,n,delay_s,prtt_s,receive_s
//! ```
//!
//! `n` messages of `size_bytes` bytes were sent with busy waits of `delay_s`
//! between them, and `prtt_s` passed until the reply was there. Where the
//! receive call alone was timed, `receive_s` is filled instead and `prtt_s`
//! is empty; files of others may leave this column out.
//!
//! The short form, `size_bytes,value_s`, holds a value of `G_all` a line that
//! somebody else has computed.
//!
//! Times are exact decimals, so what is read back is what was measured, and
//! an assessment can be repeated to the last digit.

mod error;
mod read;
mod write;

pub use error::{SamplesError, SamplesErrorKind};
pub use read::{Limits, Row, SampleReader};
pub use write::write;

/// Names of the raw form's columns, in their order.
const RAW: [&str; 5] = ["size_bytes", "n", "delay_s", "prtt_s", "receive_s"];
/// Names of the short form's columns, in their order.
const SHORT: [&str; 2] = ["size_bytes", "value_s"];
