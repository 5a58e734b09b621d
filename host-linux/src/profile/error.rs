//! Why a profile was rejected, and where.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a profile file could not be used.
#[derive(Debug, Error)]
#[error("'{}': {kind}", path.display())]
pub struct ProfileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub kind: ProfileErrorKind,
}

/// What is wrong with a profile file.
#[derive(Debug, Error)]
pub enum ProfileErrorKind {
    /// It could not be read.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// It is longer than this many bytes.
    #[error("longer than {0} bytes; this is no profile")]
    TooLong(u64),
    /// It is no JSON, or a value is not what belongs there; says line and
    /// column.
    #[error("no profile as `loggap measure -o` writes it: {}", reason(.0))]
    Json(#[source] serde_json::Error),
    /// It was written by a version with another format.
    #[error(
        "its schema_version is {0}, this loggap reads {ours}; use the loggap that wrote it, or a newer one",
        ours = super::SCHEMA_VERSION
    )]
    Version(u32),
    /// Its parts do not fit together.
    #[error("{0}")]
    Inconsistent(String),
}

/// What is wrong, in words of the format where it is no JSON at all.
fn reason(error: &serde_json::Error) -> String {
    if error.is_data() {
        return error.to_string();
    }
    format!("it is no JSON from line {}, column {} on", error.line(), error.column())
}
