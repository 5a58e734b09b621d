//! Why a file of samples was rejected, and where.

use std::{error, fmt, io};

use crate::decimal::DecimalError;

/// A rejected file of samples.
#[derive(Debug)]
pub struct SamplesError {
    /// The offending line, counted from 1.
    pub line: u64,
    /// Its offending column, counted from 1, and the column's name; `None`
    /// when the line as a whole is wrong.
    pub column: Option<(usize, &'static str)>,
    /// What is wrong there.
    pub kind: SamplesErrorKind,
}

/// What is wrong with a file of samples.
#[derive(Debug)]
pub enum SamplesErrorKind {
    /// The file holds no header line.
    Empty,
    /// The header is of neither form.
    Header(String),
    /// The file holds a header and no sample.
    NoSamples,
    /// A line of this many fields where the header has that many.
    Fields {
        /// Fields of the line.
        found: usize,
        /// Fields of the header.
        expected: usize,
    },
    /// A field is no number or no usable one.
    Number(DecimalError),
    /// A field is no whole number within these bounds.
    Whole {
        /// Smallest that is taken.
        least: u32,
        /// Largest that is taken.
        most: u32,
    },
    /// Neither or both of `prtt_s` and `receive_s` are filled.
    OneOfTwo,
    /// One message cannot be paced, as there is nothing to wait between.
    DelayOfOne,
    /// A line is longer than this many bytes.
    LineTooLong(usize),
    /// More samples than this.
    TooMany(u64),
    /// The file could not be read.
    Io(io::Error),
}

impl fmt::Display for SamplesErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "the file is empty; expected a header 'size_bytes,value_s' or \
                 'size_bytes,n,delay_s,prtt_s,receive_s'",
            ),
            Self::Header(found) => write!(
                f,
                "unknown header '{found}'; expected 'size_bytes,value_s' or \
                 'size_bytes,n,delay_s,prtt_s' with or without ',receive_s'"
            ),
            Self::NoSamples => f.write_str("the file holds a header and no sample"),
            Self::Fields { found, expected } => {
                write!(f, "{found} fields where the header has {expected}")
            }
            Self::Number(reason) => write!(f, "{reason}; expected decimal seconds such as 1.25e-6"),
            Self::Whole { least, most } => {
                write!(f, "expected a whole number from {least} to {most}")
            }
            Self::OneOfTwo => f.write_str("expected a time in exactly one of prtt_s and receive_s"),
            Self::DelayOfOne => f.write_str("a delay between messages where only one was sent"),
            Self::LineTooLong(limit) => write!(f, "a line of more than {limit} bytes"),
            Self::TooMany(limit) => write!(f, "more than {limit} samples"),
            Self::Io(error) => write!(f, "{error}"),
        }
    }
}

impl fmt::Display for SamplesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            Some((column, name)) => {
                write!(f, "line {}, column {column} ({name}): {}", self.line, self.kind)
            }
            None => write!(f, "line {}: {}", self.line, self.kind),
        }
    }
}

impl error::Error for SamplesError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &self.kind {
            SamplesErrorKind::Io(error) => Some(error),
            SamplesErrorKind::Number(error) => Some(error),
            _ => None,
        }
    }
}
