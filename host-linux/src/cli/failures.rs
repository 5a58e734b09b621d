//! What goes wrong beside a result that is printed all the same.

use super::{CliError, Console};

/// A file that cannot be written takes neither the other files nor the report
/// along: failures are collected until everything is handed on.
#[derive(Debug, Default)]
pub(super) struct Failures {
    first: Option<CliError>,
}

impl Failures {
    /// Keeps the failure of `outcome`, if it is one, and returns what came of it
    /// otherwise. The first decides how to exit; all others are told at once.
    pub(super) fn add<T>(
        &mut self,
        outcome: Result<T, CliError>,
        console: &mut Console,
    ) -> Option<T> {
        let error = match outcome {
            Ok(done) => return Some(done),
            Err(error) => error,
        };
        match (&self.first, &error) {
            (None, _) => self.first = Some(error),
            (Some(_), CliError::Message { text, .. }) => {
                console.note(format_args!("error: {text}"));
            }
            (Some(_), CliError::ReaderGone) => {}
        }
        None
    }

    /// The first failure, when everything else is done.
    pub(super) fn end(self) -> Result<(), CliError> {
        self.first.map_or(Ok(()), Err)
    }
}
