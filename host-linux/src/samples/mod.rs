//! Samples as comma-separated values: every timed round, to the picosecond.
//!
//! Two forms are read. The raw one is what `loggap measure --samples`
//! writes, a line per round:
//!
//! ```text
//! size_bytes,n,delay_s,prtt_s,receive_s,launch,time_s
//! ```
//!
//! `n` messages of `size_bytes` bytes were sent with busy waits of `delay_s`
//! between them, and `prtt_s` passed until the reply was there. Where the
//! receive call alone was timed, `receive_s` is filled instead and `prtt_s`
//! is empty. `launch` counts connections from 0, `time_s` is when the round
//! was over, from the begin of the measurement. Files of others and older
//! ones may end with `prtt_s` or `receive_s`.
//!
//! The short form, `size_bytes,value_s`, holds a value of `G_all` a line that
//! somebody else has computed.
//!
//! Times are exact decimals, so what is read back is what was measured, and
//! an assessment can be repeated to the last digit.

mod bounded;
mod error;
mod read;
mod write;

use std::io;

use loggap_core::measure::Sample;
use loggap_core::units::Picos;

pub use error::{SamplesError, SamplesErrorKind};
pub use read::{Limits, Row, SampleReader};
pub use write::write;

/// Names of the raw form's columns, in their order.
const RAW: [&str; 7] = ["size_bytes", "n", "delay_s", "prtt_s", "receive_s", "launch", "time_s"];
/// How many of them a file has: those of others, those of older versions,
/// and ours.
const RAW_COLUMNS: [usize; 3] = [4, 5, 7];
/// Names of the short form's columns, in their order.
const SHORT: [&str; 2] = ["size_bytes", "value_s"];

/// What the system said, or that it is no text.
fn io_error(error: csv::Error) -> io::Error {
    let text = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        _ => io::Error::new(io::ErrorKind::InvalidData, text),
    }
}

/// A timed round, and when and over which connection it was taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimedSample {
    /// The round.
    pub sample: Sample,
    /// The launch, counted from 0.
    pub launch: u32,
    /// When it was over, from the begin of the measurement.
    pub time: Picos,
}
