//! What goes wrong beside a result that is printed all the same.

use super::{CliError, Console, Exit};

/// A file that cannot be written takes neither the other files nor the report
/// along: failures are collected until everything is handed on.
#[derive(Debug, Default)]
pub(super) struct Failures(Vec<CliError>);

impl Failures {
    /// Keeps the failure of `outcome`, if it is one, and returns what came of it
    /// otherwise.
    pub(super) fn add<T>(&mut self, outcome: Result<T, CliError>) -> Option<T> {
        outcome.map_err(|error| self.0.push(error)).ok()
    }

    /// Tells all failures, below the report, and how to exit: by the first of them, and
    /// with `done` without any.
    pub(super) fn end(self, done: Exit, console: &mut Console) -> Exit {
        let _told_at_the_end = console.flush();
        let exits: Vec<Exit> = self.0.iter().map(|failure| failure.report(console)).collect();
        exits.into_iter().find(|exit| *exit != Exit::Done).unwrap_or(done)
    }
}
