//! The three formats of a schedule file.

use std::fmt;
use std::path::Path;

/// Format of a schedule file.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Form {
    /// GOAL text.
    Text,
    /// Binary format of LogGOPSim.
    #[value(name = "bin")]
    Reference,
    /// Binary format of loggap.
    #[value(name = "lgs")]
    Native,
}

impl Form {
    /// Format for the extension of a file name; `None` if it is unknown.
    #[must_use]
    pub fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "goal" | "txt" => Some(Self::Text),
            "bin" => Some(Self::Reference),
            "lgs" => Some(Self::Native),
            _ => None,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Reference => "bin",
            Self::Native => "lgs",
        })
    }
}
