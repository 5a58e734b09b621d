//! Why a profile was rejected, and where.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a profile file could not be used.
#[derive(Debug, Error)]
#[error("'{}': {kind}", path.display())]
pub struct ProfileError {
    /// File.
    pub path: PathBuf,
    /// Cause.
    #[source]
    pub kind: ProfileErrorKind,
}

/// Commands that make a profile, where there is none.
fn made(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "; 'loggap measure -o FILE' makes one, 'loggap-mpi measure' for MPI"
        }
        _ => "",
    }
}

/// Causes of rejection.
#[derive(Debug, Error)]
pub enum ProfileErrorKind {
    /// The file could not be read.
    #[error("{0}{made}", made = made(.0))]
    Io(#[source] io::Error),
    /// The file exceeds this limit, bytes.
    #[error("longer than {0} bytes; this is no profile")]
    TooLong(u64),
    /// Invalid JSON, or a value of the wrong kind; names line and column.
    #[error("no profile as `loggap measure -o` writes it: {}", reason(.0))]
    Json(#[source] serde_json::Error),
    /// The file has another format version.
    #[error(
        "its schema_version is {0}, this loggap reads {ours}; use the loggap that wrote it, or a newer one",
        ours = super::SCHEMA_VERSION
    )]
    Version(u32),
    /// Parts of the profile contradict each other.
    #[error("{0}")]
    Inconsistent(String),
}

/// Describes a JSON error; a syntax error in words of this format.
fn reason(error: &serde_json::Error) -> String {
    if error.is_data() {
        return error.to_string();
    }
    if error.is_eof() && (error.line(), error.column()) == (1, 0) {
        return "it is empty".to_owned();
    }
    format!("it is no JSON from line {}, column {} on", error.line(), error.column())
}
