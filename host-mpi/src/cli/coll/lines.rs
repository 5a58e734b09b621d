//! Results of each operation and size, written as a line each as soon as they
//! are finished, so that they outlive a job that dies.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use loggap::output::Versioned;
use loggap::terminal::{CliError, Console};
use serde::{Deserialize, Serialize};

use super::Args;
use crate::collective::report::{Document, ResultRecord};

/// Message of a launch to the command that started it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LaunchMessage {
    /// Document without results: the conditions that they depend on.
    Begins(Box<Document>),
    /// Result of one operation and size.
    Finished(Box<ResultRecord>),
    /// Complete document.
    Ends(Box<Document>),
}

impl LaunchMessage {
    /// Prints the message on standard output at once. Fails if the command that
    /// started this launch has ended.
    pub(super) fn say(&self, console: &mut Console) -> Result<(), CliError> {
        let line = serde_json::to_string(self).map_err(CliError::failed)?;
        Ok(console.announce(line)?)
    }
}

/// A line of `--json-lines`, complete by itself.
#[derive(Debug, Serialize)]
struct Line<'a> {
    loggap_version: &'a str,
    library: &'a str,
    ranks: usize,
    seed: u64,
    /// Number of the launch, from 1, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    launch: Option<u32>,
    #[serde(flatten)]
    result: &'a ResultRecord,
}

/// Destination of the lines.
#[derive(Debug)]
enum Sink {
    Nowhere,
    File {
        file: File,
        path: PathBuf,
    },
    StandardOutput,
    /// The command that started this launch.
    Driver,
}

/// Writer of the lines of a run.
#[derive(Debug)]
pub(super) struct Lines {
    sink: Sink,
    /// First error, which is returned at the end, as all ranks continue.
    failure: Option<CliError>,
}

impl Lines {
    /// Opens the destination. A file is created, and emptied, at once.
    pub(super) fn open(args: &Args) -> Result<Self, CliError> {
        let sink = match &args.json_lines {
            _ if args.launch.is_some() => Sink::Driver,
            None => Sink::Nowhere,
            Some(path) if path.as_os_str() == "-" => Sink::StandardOutput,
            Some(path) => {
                let path = path.clone();
                let file = File::create(&path).map_err(|error| {
                    CliError::usage(format_args!("cannot write '{}': {error}", path.display()))
                })?;
                Sink::File { file, path }
            }
        };
        Ok(Self { sink, failure: None })
    }

    /// Writes `result`, with its conditions from `document`.
    pub(super) fn finished(
        &mut self,
        document: &Document,
        launch: Option<u32>,
        result: &ResultRecord,
        console: &mut Console,
    ) {
        let said = self.say(document, launch, result, console);
        self.failure = self.failure.take().or(said.err());
    }

    fn say(
        &mut self,
        document: &Document,
        launch: Option<u32>,
        result: &ResultRecord,
        console: &mut Console,
    ) -> Result<(), CliError> {
        let line = Line {
            loggap_version: &document.loggap_version,
            library: &document.library,
            ranks: document.ranks,
            seed: document.seed,
            launch,
            result,
        };
        let text = serde_json::to_string(&Versioned::new(&line)).map_err(CliError::failed)?;
        match &mut self.sink {
            Sink::Nowhere => Ok(()),
            // In one piece and unbuffered: no line is lost with the process.
            Sink::File { file, path } => {
                file.write_all(format!("{text}\n").as_bytes()).map_err(|error| {
                    CliError::failed(format_args!("cannot write '{}': {error}", path.display()))
                })
            }
            Sink::StandardOutput => Ok(console.announce(text)?),
            Sink::Driver => LaunchMessage::Finished(Box::new(result.clone())).say(console),
        }
    }

    /// Ends the lines.
    ///
    /// # Errors
    ///
    /// The first error of writing them.
    pub(super) fn close(self) -> Result<(), CliError> {
        self.failure.map_or(Ok(()), Err)
    }
}
