//! Values of the methods beside each other, as `measure --method all` stores them.

use serde::{Deserialize, Serialize};

/// Value of a parameter by one method.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct MethodRecord {
    /// `prtt`, `signature` or `plogp`.
    pub method: String,
    /// Key of the parameter, such as `half_rtt`.
    pub parameter: String,
    /// Value at the smallest size, seconds; `None` if unknown.
    pub value: Option<f64>,
    /// Lower end of its interval.
    pub lo: Option<f64>,
    /// Upper end of its interval.
    pub hi: Option<f64>,
    /// Comparison with PRTT's value.
    pub verdict: Agreement,
    /// Difference from PRTT's value, and its cause where one is expected; or why nothing is known.
    pub reason: Option<String>,
}

/// Comparison of a value with PRTT's.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The intervals overlap, or the values lie within 1% of each other (half round trips 5%).
    Agrees,
    /// They do not.
    Differs,
    /// A value or its interval is unknown, or nothing is measured that could be compared.
    Unknown,
}

impl Agreement {
    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Unknown => "unknown",
        }
    }
}
