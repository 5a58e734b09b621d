//! Standard output for data, standard error for talk.

use std::fmt::{self, Display};
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

/// Where a command writes.
pub struct Console {
    data: Box<dyn Write>,
    talk: Box<dyn Write>,
    terminal: bool,
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("terminal", &self.terminal).finish_non_exhaustive()
    }
}

impl Console {
    /// The streams of the process. Data is buffered until [`Console::flush`].
    #[must_use]
    pub fn standard() -> Self {
        Self {
            data: Box::new(io::BufWriter::new(io::stdout())),
            talk: Box::new(io::stderr()),
            terminal: io::stderr().is_terminal(),
        }
    }

    /// Any two writers, for tests.
    #[must_use]
    pub fn new(data: Box<dyn Write>, talk: Box<dyn Write>) -> Self {
        Self { data, talk, terminal: false }
    }

    /// Where results go: standard output.
    pub fn data(&mut self) -> &mut dyn Write {
        &mut self.data
    }

    /// Writes `document` as indented JSON and a newline to standard output.
    ///
    /// # Errors
    ///
    /// The stream's own.
    pub fn json(&mut self, document: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut self.data, document)?;
        self.data.write_all(b"\n")
    }

    /// Writes a line to standard output at once. When its reader has gone,
    /// this line and all further data are dropped: for commands whose work
    /// goes on without a reader.
    ///
    /// # Errors
    ///
    /// The stream's own, such as a full disk.
    pub fn announce(&mut self, line: impl Display) -> io::Result<()> {
        let written = writeln!(self.data, "{line}").and_then(|()| self.data.flush());
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.data = Box::new(io::sink());
                Ok(())
            }
            other => other,
        }
    }

    /// Says `text` on standard error, on its own line.
    pub fn note(&mut self, text: impl Display) {
        // When standard error is closed there is nobody left to tell.
        let _unheard = writeln!(self.talk, "{text}");
    }

    /// Says `text` on standard error as a warning.
    pub fn warn(&mut self, text: impl Display) {
        self.note(format_args!("warning: {text}"));
    }

    /// Whether somebody watches standard error: only then progress is shown.
    #[must_use]
    pub const fn is_watched(&self) -> bool {
        self.terminal
    }

    /// Hands buffered data to the reader.
    ///
    /// # Errors
    ///
    /// The stream's own: the disk is full, the reader has gone.
    pub fn flush(&mut self) -> io::Result<()> {
        self.data.flush()
    }
}
