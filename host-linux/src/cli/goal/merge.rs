//! `loggap goal merge`: schedules side by side.

use std::fs;
use std::path::PathBuf;

use loggap_core::goal::{ANY, Edge, Op, OpKind, Sink};

use super::{
    Extent, Form, ScheduleFile, Source, StreamWriter, Target, Trouble, WriteError, Writer, open,
};
use crate::terminal::{CliError, Console, Exit, NamedFiles};

/// Put schedules side by side: jobs that share a machine.
///
/// The ranks of a schedule follow those of the one before, or are placed by
/// --map. Messages stay within their schedule.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loggap goal merge app.lgs noise.goal -o both.lgs
  loggap goal merge app.lgs app.lgs --map interleaved.txt -o both.lgs")]
pub(super) struct Args {
    /// Schedules to read.
    #[arg(value_name = "FILE", required = true)]
    inputs: Vec<PathBuf>,

    /// File with a line for each schedule: the new ranks of its ranks in order,
    /// as 0:3 or 0,2,4,6.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,

    #[command(flatten)]
    target: Target,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let mut named = NamedFiles::default();
    args.inputs.iter().for_each(|input| named.read("FILE", Some(input)));
    named.read("--map", args.map.as_deref());
    let output = args.target.output.as_deref().filter(|path| *path != std::path::Path::new("-"));
    named.written("-o", output, &[]);
    named.check()?;
    let files = args.inputs.iter().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?;
    let places = match &args.map {
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|error| {
                CliError::usage(format_args!("cannot read '{}': {error}", path.display()))
            })?;
            let sizes: Vec<u32> = files.iter().map(|file| file.extent().ranks).collect();
            placed(&text, &sizes)
                .map_err(|error| CliError::usage(format_args!("'{}':{error}", path.display())))?
        }
        None => behind_each_other(&files),
    };
    args.target.write(Some(Form::Text), &Merged { files, places }, console)?;
    Ok(Exit::Done)
}

fn behind_each_other(files: &[ScheduleFile]) -> Vec<Vec<u32>> {
    let mut next = 0u32;
    let place = |file: &ScheduleFile| {
        let first = next;
        next = next.saturating_add(file.extent().ranks);
        (first..next).collect()
    };
    files.iter().map(place).collect()
}

/// New ranks of schedules with `sizes` ranks; an error begins with its line.
fn placed(text: &str, sizes: &[u32]) -> Result<Vec<Vec<u32>>, String> {
    let lines =
        (1..).zip(text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()));
    let lines: Vec<(usize, &str)> = lines.filter(|(_, line)| !line.is_empty()).collect();
    if lines.len() != sizes.len() {
        let (found, wanted) = (lines.len(), sizes.len());
        return Err(format!("1: {found} lines of ranks for {wanted} schedules"));
    }
    let total: u32 = sizes.iter().fold(0, |sum, &size| sum.saturating_add(size));
    let mut taken = vec![false; total as usize];
    let mut places = Vec::new();
    for (&(number, line), &size) in lines.iter().zip(sizes) {
        let mut ranks = Vec::new();
        for item in line.split([',', ' ', '\t']).filter(|item| !item.is_empty()) {
            let (first, last) = item.split_once(':').unwrap_or((item, item));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
                return Err(format!("{number}: '{item}' is no rank and no range as 0:3"));
            };
            for rank in first..=last {
                match taken.get_mut(rank as usize) {
                    Some(place) if !*place => *place = true,
                    Some(_) => return Err(format!("{number}: rank {rank} is taken twice")),
                    None => return Err(format!("{number}: rank {rank} is beyond {total} ranks")),
                }
                ranks.push(rank);
            }
        }
        if ranks.len() != size as usize {
            return Err(format!("{number}: {} ranks for a schedule of {size}", ranks.len()));
        }
        places.push(ranks);
    }
    Ok(places)
}

/// Schedules, and the new ranks of theirs.
struct Merged {
    files: Vec<ScheduleFile>,
    places: Vec<Vec<u32>>,
}

impl Merged {
    /// Reads all schedules into memory, since a sink takes ranks in order only.
    fn play<S: Sink<Error: Into<WriteError>>>(&self, sink: &mut S) -> Result<(), Trouble> {
        let total = self.places.iter().map(Vec::len).sum();
        let mut all = Vec::new();
        all.resize_with(total, Vec::new);
        for (file, places) in self.files.iter().zip(&self.places) {
            file.feed(&mut Collector { places, all: &mut all, rank: 0, ops: 0 })?;
        }
        let failed = |error: S::Error| Trouble::Write(error.into());
        sink.ranks(u32::try_from(total).unwrap_or(u32::MAX)).map_err(failed)?;
        for (rank, steps) in (0..).zip(all) {
            sink.begin_rank(rank).map_err(failed)?;
            for step in steps {
                match step {
                    Step::Op(op) => drop(sink.op(op).map_err(failed)?),
                    Step::Edge(edge) => sink.edge(edge).map_err(failed)?,
                }
            }
            sink.end_rank().map_err(failed)?;
        }
        Ok(())
    }
}

impl Source for Merged {
    fn extent(&self) -> Result<Extent, Trouble> {
        Ok(self.files.iter().map(ScheduleFile::extent).fold(Extent::default(), Extent::with))
    }

    fn to_file(&self, writer: &mut Writer<'_, '_>) -> Result<(), Trouble> {
        self.play(writer)
    }

    fn to_stream(&self, writer: &mut StreamWriter<'_>) -> Result<(), Trouble> {
        self.play(writer)
    }
}

enum Step {
    Op(Op),
    Edge(Edge),
}

/// Keeps the operations of a schedule at their new ranks.
struct Collector<'a> {
    places: &'a [u32],
    all: &'a mut [Vec<Step>],
    rank: usize,
    ops: u32,
}

impl Collector<'_> {
    fn push(&mut self, step: Step) {
        if let Some(steps) = self.all.get_mut(self.rank) {
            steps.push(step);
        }
    }
}

impl Sink for Collector<'_> {
    type Error = WriteError;

    fn begin_rank(&mut self, rank: u32) -> Result<(), WriteError> {
        let place = self.places.get(rank as usize);
        self.rank = place.map_or(usize::MAX, |place| *place as usize);
        self.ops = 0;
        Ok(())
    }

    fn op(&mut self, mut op: Op) -> Result<u32, WriteError> {
        if let OpKind::Send { peer, .. } | OpKind::Receive { peer, .. } = &mut op.kind
            && *peer != ANY
        {
            // Peers that do not exist still do not.
            *peer = self.places.get(*peer as usize).copied().unwrap_or(ANY - 1);
        }
        self.push(Step::Op(op));
        self.ops += 1;
        Ok(self.ops - 1)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), WriteError> {
        self.push(Step::Edge(edge));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_gives_each_rank_a_place_of_its_own() {
        let of = |text| placed(text, &[2, 3]);
        assert_eq!(of("# jobs\n0,3\n1:2, 4\n"), Ok(vec![vec![0, 3], vec![1, 2, 4]]));
        assert!(of("0,1\n").unwrap_err().contains("1 lines of ranks for 2 schedules"));
        assert_eq!(of("0,1\n1:3\n").unwrap_err(), "2: rank 1 is taken twice");
        assert_eq!(of("0,5\n1:3\n").unwrap_err(), "1: rank 5 is beyond 5 ranks");
        assert_eq!(of("0\n1:3\n").unwrap_err(), "1: 1 ranks for a schedule of 2");
        assert_eq!(of("0,x\n1:3\n").unwrap_err(), "1: 'x' is no rank and no range as 0:3");
        assert!(of("0:4294967295\n1:3\n").is_err());
    }
}
