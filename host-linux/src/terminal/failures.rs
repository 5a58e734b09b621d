//! Failures that do not prevent the report.

use super::{CliError, Console, Exit};

/// Collected failures, reported at the end: a file that cannot be written prevents neither the
/// other files nor the report.
#[derive(Debug, Default)]
pub(crate) struct Failures(Vec<CliError>);

impl Failures {
    /// Keeps an error of `outcome`; returns its value otherwise.
    pub(crate) fn add<T>(&mut self, outcome: Result<T, CliError>) -> Option<T> {
        outcome.map_err(|error| self.0.push(error)).ok()
    }

    /// The first failure.
    pub(crate) fn first(&self) -> Option<&CliError> {
        self.0.first()
    }

    /// Reports all failures below the report. Returns the outcome of the first one, or `done`
    /// without any.
    pub(crate) fn end(self, done: Exit, console: &mut Console) -> Exit {
        let _told_at_the_end = console.flush();
        let exits: Vec<Exit> = self.0.iter().map(|failure| failure.report(console)).collect();
        exits.into_iter().find(|exit| *exit != Exit::Done).unwrap_or(done)
    }
}
