//! Documents with the version of their schema.

use serde::Serialize;

use crate::profile::SCHEMA_VERSION;

/// A document whose first key is the version of its schema.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Versioned<'d, D> {
    schema_version: u32,
    #[serde(flatten)]
    document: &'d D,
}

impl<'d, D> Versioned<'d, D> {
    /// `document` with the version of this program's schemas.
    #[must_use]
    pub const fn new(document: &'d D) -> Self {
        Self { schema_version: SCHEMA_VERSION, document }
    }
}
