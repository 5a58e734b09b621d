//! Shows the progress of a run, and stops it on request.

use std::fmt::Display;
use std::ops::ControlFlow;

use crate::cli::progress::ProgressLine;
use crate::cli::{Console, Interrupt};
use crate::machine::warning::Warning;
use crate::measure::{Observer, Status};

/// Observer that shows progress and stops at Ctrl-C.
pub(super) struct RunObserver<'a> {
    line: ProgressLine,
    interrupt: &'a Interrupt,
    console: &'a mut Console,
    /// Requested relative error, parts per million.
    relative_error_ppm: u32,
    warnings: Vec<Warning>,
}

impl<'a> RunObserver<'a> {
    pub(super) fn new(
        interrupt: &'a Interrupt,
        console: &'a mut Console,
        relative_error_ppm: u32,
    ) -> Self {
        let line = ProgressLine::new(console);
        Self { line, interrupt, console, relative_error_ppm, warnings: Vec::new() }
    }

    /// True if the run is to stop.
    pub(super) fn is_broken_off(&self) -> bool {
        self.interrupt.is_requested()
    }

    /// Adds a warning: the peer refused a further connection.
    pub(super) fn refused(&mut self, launches: u32, reason: impl Display) {
        let reason = reason.to_string();
        self.warnings.push(Warning::LaunchRefused { launches, reason });
    }

    /// Prints `warning` at once.
    pub(super) fn warn(&mut self, warning: impl Display) {
        self.console.warn(warning);
    }

    /// Warnings for the report.
    pub(super) fn into_warnings(self) -> Vec<Warning> {
        self.warnings
    }

    fn answer(&self) -> ControlFlow<()> {
        if self.is_broken_off() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Observer for RunObserver<'_> {
    fn on_queue(&mut self, position: u32) -> ControlFlow<()> {
        let waiting = format_args!("waiting: position {position} in the responder's queue");
        self.console.note(waiting);
        self.answer()
    }

    fn on_progress(&mut self, status: &Status<'_>) -> ControlFlow<()> {
        self.interrupt.listen();
        self.line.show(status, self.relative_error_ppm);
        self.answer()
    }
}
