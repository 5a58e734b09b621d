//! Console: standard output for data, standard error for messages.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::os::fd::AsFd;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use serde::Serialize;

use crate::output::Versioned;

/// Output streams of a command.
pub struct Console {
    data: Box<dyn Write>,
    talk: Box<dyn Write>,
    /// Terminal of standard output, if it is one.
    pub(crate) data_terminal: Option<Terminal>,
    /// Terminal of standard error, if it is one.
    pub(crate) talk_terminal: Option<Terminal>,
    /// True if the last line of the log could not be written.
    log_failed: bool,
}

/// A terminal that a stream is connected to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// Width in columns.
    pub(crate) width: usize,
    /// True if it shows colours and the user has not disabled them.
    pub(crate) colour: bool,
}

impl Terminal {
    /// Terminal of `stream`, if it is one.
    fn of<S: RawStream + AsFd>(stream: &S) -> Option<Self> {
        /// Width if the terminal does not report one.
        const USUAL: usize = 80;
        let size = stream.is_terminal().then(|| terminal_size::terminal_size_of(stream))?;
        let width = size.map_or(USUAL, |(width, _)| usize::from(width.0));
        let colour = AutoStream::choice(stream) != ColorChoice::Never;
        Some(Self { width, colour })
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console")
            .field("data_terminal", &self.data_terminal)
            .finish_non_exhaustive()
    }
}

impl Console {
    /// Console on the streams of the process. Data is buffered until [`Console::flush`].
    #[must_use]
    pub fn standard() -> Self {
        Self {
            data: Box::new(io::BufWriter::new(io::stdout())),
            talk: Box::new(io::stderr()),
            data_terminal: Terminal::of(&io::stdout()),
            talk_terminal: Terminal::of(&io::stderr()),
            log_failed: false,
        }
    }

    /// Treats the streams as no terminals, whatever they are.
    #[must_use]
    pub fn unwatched(self) -> Self {
        Self { data_terminal: None, talk_terminal: None, ..self }
    }

    /// Console on two arbitrary writers, for tests.
    #[must_use]
    pub fn new(data: Box<dyn Write>, talk: Box<dyn Write>) -> Self {
        Self { data, talk, data_terminal: None, talk_terminal: None, log_failed: false }
    }

    /// Stream for results: standard output.
    pub fn data(&mut self) -> &mut dyn Write {
        &mut self.data
    }

    /// Writes `document` as indented JSON and a newline to standard output.
    ///
    /// # Errors
    ///
    /// Write errors of the stream.
    pub fn json(&mut self, document: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut self.data, document)?;
        self.data.write_all(b"\n")
    }

    /// Writes `document` to standard output: with the version of its schema as JSON if `json`,
    /// otherwise as `text` prints it.
    ///
    /// # Errors
    ///
    /// Write errors of the stream.
    #[allow(clippy::fn_params_excessive_bools, reason = "the option --json of each command")]
    pub fn report(
        &mut self,
        json: bool,
        document: &impl Serialize,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        if json { self.json(&Versioned::new(document)) } else { text(&mut self.data) }
    }

    /// Writes a line to standard output, unbuffered and in one piece. If the reader has closed the
    /// pipe, this line and all further data are dropped: for commands that do work without a
    /// reader.
    ///
    /// # Errors
    ///
    /// Other write errors of the stream, such as a full disk.
    pub fn announce(&mut self, line: impl Display) -> io::Result<()> {
        let line = format!("{line}\n");
        let written = self.data.write_all(line.as_bytes()).and_then(|()| self.data.flush());
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.data = Box::new(io::sink());
                Ok(())
            }
            other => other,
        }
    }

    /// As [`Console::announce`], for a log: lines that cannot be written, as on a full disk, are
    /// lost, which is reported once on standard error.
    pub(crate) fn log(&mut self, line: impl Display) {
        let written = self.announce(line);
        let failed_before = std::mem::replace(&mut self.log_failed, written.is_err());
        if let (Err(error), false) = (written, failed_before) {
            self.warn(format_args!("writing to standard output: {error}; lines are lost"));
        }
    }

    /// Prints `text` on standard error, as a line.
    pub fn note(&mut self, text: impl Display) {
        // There is no other stream to report a failure to.
        let _unheard = writeln!(self.talk, "{text}");
    }

    /// Prints `text` on standard error as a warning.
    pub fn warn(&mut self, text: impl Display) {
        self.note(format_args!("warning: {text}"));
    }

    /// True if standard error is a terminal: only then progress is shown.
    #[must_use]
    pub const fn is_watched(&self) -> bool {
        self.talk_terminal.is_some()
    }

    /// Reserves standard output for a file: results go to standard error from now on.
    pub(crate) fn leave_standard_output(&mut self) {
        self.data = Box::new(io::BufWriter::new(io::stderr()));
        self.data_terminal = self.talk_terminal;
    }

    /// Flushes buffered data.
    ///
    /// # Errors
    ///
    /// Write errors of the stream, such as a full disk or a closed pipe.
    pub fn flush(&mut self) -> io::Result<()> {
        self.data.flush()
    }
}
