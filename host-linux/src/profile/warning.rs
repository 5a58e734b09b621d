//! A warning in parts, to rank and group it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One warning.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct WarningRecord {
    /// Severity.
    pub severity: Severity,
    /// Problem; warnings with equal text are of one kind.
    pub problem: String,
    /// Affected parameter or part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// First size of the affected range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_bytes: Option<u64>,
    /// Extent of the problem, a fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Remedy; empty if `problem` names it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

/// Severity of a warning.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The numbers do not describe the link.
    Spoils,
    /// The numbers are less accurate or less repeatable than possible.
    Weakens,
    /// Shown elsewhere on the screen, or without a remedy.
    Notes,
}

impl WarningRecord {
    /// Creates a warning about the run as a whole.
    #[must_use]
    pub fn new(severity: Severity, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (problem, remedy) = (problem.into(), remedy.into());
        Self { severity, problem, subject: None, from_bytes: None, share: None, remedy }
    }

    /// Sets the affected parameter or part.
    #[must_use]
    pub fn with_subject(self, subject: impl fmt::Display) -> Self {
        Self { subject: Some(subject.to_string()), ..self }
    }

    /// Sets the first size of the affected range.
    #[must_use]
    pub fn in_range_from(self, size: u64) -> Self {
        Self { from_bytes: Some(size), ..self }
    }

    /// Sets the extent, a fraction.
    #[must_use]
    pub fn by(self, share: f64) -> Self {
        Self { share: Some(share), ..self }
    }
}
