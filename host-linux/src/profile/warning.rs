//! A warning in parts, so that its readers can rank and group it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One warning.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct WarningRecord {
    /// How much it matters.
    pub severity: Severity,
    /// What is wrong; warnings with the same text are of one kind.
    pub problem: String,
    /// The parameter or part that it is wrong with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The first size of the range that it is wrong in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_bytes: Option<u64>,
    /// By how much, a fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// What to do; empty where the text of the problem says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

/// How much a warning matters.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The numbers describe something else than the link.
    Spoils,
    /// The numbers are less exact, or repeat less well, than they could.
    Weakens,
    /// Said elsewhere on the screen, or nothing to be done about.
    Notes,
}

impl WarningRecord {
    /// A warning about the run as a whole.
    #[must_use]
    pub fn new(severity: Severity, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (problem, remedy) = (problem.into(), remedy.into());
        Self { severity, problem, subject: None, from_bytes: None, share: None, remedy }
    }

    /// With the parameter or part that it is about.
    #[must_use]
    pub fn with_subject(self, subject: impl fmt::Display) -> Self {
        Self { subject: Some(subject.to_string()), ..self }
    }

    /// With the first size of the range that it is about.
    #[must_use]
    pub fn in_range_from(self, size: u64) -> Self {
        Self { from_bytes: Some(size), ..self }
    }

    /// With its extent, a fraction.
    #[must_use]
    pub fn by(self, share: f64) -> Self {
        Self { share: Some(share), ..self }
    }
}
