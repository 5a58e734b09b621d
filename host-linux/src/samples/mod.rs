//! Samples as comma-separated values: every timed round, to the picosecond.
//!
//! Two forms are read. `loggap measure --samples` writes the raw form, a line per round:
//!
//! ```text
//! size_bytes,n,delay_s,prtt_s,receive_s,launch,time_s
//! ```
//!
//! `n` messages of `size_bytes` bytes were sent with busy waits of `delay_s` between them, and the
//! reply arrived after `prtt_s`. Where the receive call alone was timed, `receive_s` is filled
//! instead and `prtt_s` is empty. `launch` counts connections from 0; `time_s` is the end of the
//! round, counted from the begin of the measurement. Files of other tools and of older versions may
//! end with `prtt_s` or `receive_s`.
//!
//! Runs of the signature and of pLogP add three columns, and lines that `fit` passes over:
//!
//! ```text
//! …,issue_s,send_s,ack_s
//! ```
//!
//! `issue_s` is `T(M, Δ)` with `n` = M requests and `delay_s` = Δ; `send_s` is the time of `n` send
//! calls, `receive_s` that of the receive call after an idle time of `delay_s`, and `ack_s` the time
//! until the reply.
//!
//! The short form, `size_bytes,value_s`, holds one `G_all` value a line, computed by another tool.
//!
//! [`netgauge`] reads the medians of netgauge's `loggp` pattern.
//!
//! Times are exact decimals, so a file is read back as measured and an assessment can be repeated
//! to the last digit.

mod bounded;
mod error;
pub mod netgauge;
mod read;
mod write;

use std::io;

use loggap_core::measure::Sample;
use loggap_core::units::Picos;

pub use error::{Column, SamplesError, SamplesErrorKind};
pub use read::{Limits, Row, SampleReader};
pub use write::write;

/// Names of the raw form's columns, in their order.
const RAW: [&str; 10] = [
    "size_bytes",
    "n",
    "delay_s",
    "prtt_s",
    "receive_s",
    "launch",
    "time_s",
    "issue_s",
    "send_s",
    "ack_s",
];
/// Column counts of the raw form: other tools' files, older versions', current, with probes.
const RAW_COLUMNS: [usize; 4] = [4, 5, PLAIN, RAW.len()];
/// Column count of a file without probes.
const PLAIN: usize = 7;
/// Names of the short form's columns, in their order.
const SHORT: [&str; 2] = ["size_bytes", "value_s"];

/// The underlying I/O error; [`io::ErrorKind::InvalidData`] for text that is not valid CSV or
/// UTF-8.
fn io_error(error: csv::Error) -> io::Error {
    let text = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        _ => io::Error::new(io::ErrorKind::InvalidData, text),
    }
}

/// A timed round with its connection and its time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimedSample {
    /// Timed round.
    pub sample: Sample,
    /// Index of the launch (connection), from 0.
    pub launch: u32,
    /// End of the round, from the begin of the measurement.
    pub time: Picos,
}
