//! Options of the timeline.

use std::ops::Range;
use std::path::{Path, PathBuf};

use loggap_core::units::Picos;

use super::explanation::nanos;
use super::noise_args::pair;
use crate::output::PendingFile;
use crate::terminal::{CliError, NamedFiles};
use crate::timeline::{Selection, Timeline, chrome, crowd, svg, viz};

/// Timeline of the simulation.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct PictureArgs {
    /// Timeline: FILE.svg, FILE.json (Perfetto), FILE.viz (LogGOPSim -V).
    #[arg(long, short_alias = 'V', value_name = "FILE")]
    timeline: Option<PathBuf>,

    /// Format of the timeline [default: by the file's ending].
    #[arg(long, value_enum, value_name = "FORM", requires = "timeline")]
    timeline_form: Option<Form>,

    /// Ranks of the timeline, as 5, 0:15 or 16: [default: all].
    #[arg(long, value_name = "FIRST:LAST", value_parser = ranks, requires = "timeline")]
    timeline_ranks: Option<RankRange>,

    /// Time window of the timeline, as 1ms:2.5ms [default: all].
    #[arg(long, value_name = "FROM:TO", value_parser = window, requires = "timeline")]
    timeline_window: Option<Window>,
}

/// Half-open range of ranks.
type RankRange = (u32, u32);
type Window = (Picos, Picos);

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    /// SVG picture.
    Svg,
    /// Trace for Perfetto and Chrome.
    Chrome,
    /// Text format of LogGOPSim's -V.
    Viz,
}

fn ranks(text: &str) -> Result<RankRange, String> {
    let number = |text: &str| {
        text.parse::<u32>().map_err(|_| format!("'{text}' is no rank; expected 5, 0:15 or 16:"))
    };
    let (first, last) = match text.split_once(':') {
        None => (number(text)?, number(text)?),
        Some((first, "")) => (number(first)?, u32::MAX - 1),
        Some((first, last)) => (number(first)?, number(last)?),
    };
    if first > last || last == u32::MAX {
        return Err("the first rank is above the last".into());
    }
    Ok((first, last + 1))
}

fn window(text: &str) -> Result<Window, String> {
    let (from, to) = pair(text)?;
    if from < to { Ok((from, to)) } else { Err("the window ends before it begins".into()) }
}

/// File of the timeline, opened before the work, with its format and selection.
pub(super) struct Picture {
    file: PendingFile,
    form: Form,
    selection: Selection,
    window: Option<Window>,
}

impl PictureArgs {
    /// True if a timeline is requested.
    pub(super) const fn is_asked(&self) -> bool {
        self.timeline.is_some()
    }

    /// Adds the files of these options.
    pub(super) fn name_files(&self, files: &mut NamedFiles) {
        files.written("--timeline", self.timeline.as_deref(), &[]);
    }

    /// Opens the file, so that a wrong path is reported before the work.
    pub(super) fn open(&self) -> Result<Option<Picture>, CliError> {
        let Some(path) = &self.timeline else { return Ok(None) };
        let form = self.timeline_form.or_else(|| Form::of_name(path)).ok_or_else(|| {
            CliError::usage(format_args!(
                "the ending of '{}' is none of .svg, .json and .viz: give --timeline-form",
                path.display()
            ))
        })?;
        let whole = Selection::default();
        let range = |(first, end)| Range { start: first, end };
        let window = self.timeline_window.map(|(from, to)| from..to);
        let selection = Selection {
            ranks: self.timeline_ranks.map_or(whole.ranks, range),
            window: window.unwrap_or(whole.window),
        };
        let file = PendingFile::create(path).map_err(CliError::failed)?;
        Ok(Some(Picture { file, form, selection, window: self.timeline_window }))
    }
}

impl Form {
    fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "svg" => Some(Self::Svg),
            "json" => Some(Self::Chrome),
            "viz" => Some(Self::Viz),
            _ => None,
        }
    }
}

impl Picture {
    pub(super) fn selection(&self) -> Selection {
        self.selection.clone()
    }

    /// Draws the timeline until `makespan`; fails if the selection is empty.
    pub(super) fn draw(self, timeline: &Timeline, makespan: Picos) -> Result<(), CliError> {
        let (first, ranks) = (self.selection.ranks.start, timeline.ranks);
        if first > 0 && first >= ranks {
            return Err(CliError::usage(format_args!(
                "--timeline-ranks begins with rank {first}, and there are {ranks}"
            )));
        }
        if let Some((from, _)) = self.window.filter(|(from, _)| *from > makespan) {
            let [from, end] = [from, makespan].map(|time| nanos(time.0));
            return Err(CliError::failed(format_args!(
                "--timeline-window begins at {from} ns, and the last rank is done at {end} ns"
            )));
        }
        let timeline = timeline.selected(&self.selection);
        let (from, to) = match self.window {
            Some((from, to)) => (from, Some(to.min(timeline.end().max(from)))),
            None => (Picos::ZERO, None),
        };
        let ranks = first..self.selection.ranks.end.min(ranks);
        let is_crowd = ranks.len() > crowd::MOST_RANKS as usize;
        let options = svg::Options { title: "Timeline".into(), from, to };
        let written = self.file.commit(|out| match self.form {
            Form::Svg if is_crowd => crowd::write(&timeline, ranks, &options, out),
            Form::Svg => svg::write(&timeline, &options, out),
            Form::Chrome => chrome::write(&timeline, out),
            Form::Viz => viz::write(&timeline, out),
        });
        written.map_err(CliError::failed)
    }
}
