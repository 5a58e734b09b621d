//! Why a profile was rejected, and where.

use std::path::PathBuf;
use std::{error, fmt, io};

/// Why a profile file could not be used.
#[derive(Debug)]
pub struct ProfileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub kind: ProfileErrorKind,
}

/// What is wrong with a profile file.
#[derive(Debug)]
pub enum ProfileErrorKind {
    /// It could not be read.
    Io(io::Error),
    /// It is longer than this many bytes.
    TooLong(u64),
    /// It is no JSON, or a value is not what belongs there; says line and
    /// column.
    Json(serde_json::Error),
    /// It was written by a version with another format.
    Version(u32),
    /// Its parts do not fit together.
    Inconsistent(String),
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}': ", self.path.display())?;
        match &self.kind {
            ProfileErrorKind::Io(error) => write!(f, "{error}"),
            ProfileErrorKind::TooLong(limit) => {
                write!(f, "longer than {limit} bytes; this is no profile")
            }
            ProfileErrorKind::Json(error) => {
                write!(f, "{error}; expected a profile as `loggap measure -o` writes it")
            }
            ProfileErrorKind::Version(found) => write!(
                f,
                "its schema_version is {found}, this loggap reads {}; use the loggap that wrote it, or a newer one",
                super::SCHEMA_VERSION
            ),
            ProfileErrorKind::Inconsistent(what) => f.write_str(what),
        }
    }
}

impl error::Error for ProfileError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &self.kind {
            ProfileErrorKind::Io(error) => Some(error),
            ProfileErrorKind::Json(error) => Some(error),
            _ => None,
        }
    }
}
