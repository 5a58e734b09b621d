//! Why a file of samples was rejected, and where.

use std::io;

use thiserror::Error;

use crate::decimal::DecimalError;

/// A rejected file of samples.
#[derive(Debug, Error)]
#[error("line {line}{}: {kind}", place(column.as_ref()))]
pub struct SamplesError {
    /// The offending line, counted from 1.
    pub line: u64,
    /// Its offending column; `None` when the line as a whole is wrong.
    pub column: Option<Column>,
    /// Cause.
    #[source]
    pub kind: SamplesErrorKind,
}

/// A column of a file of samples.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Number, from 1 on.
    pub number: usize,
    /// Name in the header.
    pub name: &'static str,
}

fn place(column: Option<&Column>) -> String {
    column.map_or_else(String::new, |Column { number, name }| format!(", column {number} ({name})"))
}

/// Causes of rejection.
#[derive(Debug, Error)]
pub enum SamplesErrorKind {
    /// The file holds no header line.
    #[error(
        "the file is empty; expected a header 'size_bytes,value_s' or \
         'size_bytes,n,delay_s,prtt_s,receive_s,launch,time_s'"
    )]
    Empty,
    /// The header is of neither form.
    #[error(
        "unknown header '{0}'; expected 'size_bytes,value_s' or 'size_bytes,n,delay_s,prtt_s', \
         the latter alone or followed by ',receive_s' or ',receive_s,launch,time_s'"
    )]
    Header(String),
    /// The file holds a header and no sample.
    #[error("the file holds a header and no sample")]
    NoSamples,
    /// A line with a wrong number of fields.
    #[error("{found} fields where the header has {expected}")]
    Fields {
        /// Fields of the line.
        found: usize,
        /// Fields of the header.
        expected: usize,
    },
    /// A field is not a number, or its number is out of range.
    #[error("{0}; expected decimal seconds such as 1.25e-6")]
    Number(DecimalError),
    /// A field is not a whole number within these bounds.
    #[error("expected a whole number from {least} to {most}")]
    Whole {
        /// Smallest value allowed.
        least: u32,
        /// Largest value allowed.
        most: u32,
    },
    /// Neither or both of `prtt_s` and `receive_s` are filled.
    #[error("expected a time in exactly one of prtt_s and receive_s")]
    OneOfTwo,
    /// A delay with `n` = 1: one message has no successor to wait for.
    #[error("a delay between messages where only one was sent")]
    DelayOfOne,
    /// A line is longer than this many bytes.
    #[error("a line of more than {0} bytes")]
    LineTooLong(usize),
    /// More samples than this limit.
    #[error("more than {0} samples")]
    TooMany(u64),
    /// The file could not be read.
    #[error("{0}")]
    Io(#[source] io::Error),
}
