//! `loggap goal stats`: counts the contents of a schedule.

use std::io::{self, Write};
use std::path::PathBuf;

use loggap_core::goal::check::Checker;
use loggap_core::goal::stats::{Counter, SIZE_CLASSES, Stats, Tags};
use serde::Serialize;

use super::{FeedError, ScheduleFile, open};
use crate::output::number;
use crate::schedule::OwnedRank;
use crate::terminal::{CliError, Console, Exit};

/// Count operations, messages, sizes and tags of a schedule.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Schedule to read.
    input: PathBuf,

    /// Print JSON.
    #[arg(short = 'J', long)]
    json: bool,
}

/// Most tags that are counted separately.
const MOST_TAGS: usize = 4_096;

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let file = open(&args.input)?;
    let mut memory = vec![0; MOST_TAGS];
    let mut counter = Counter::new(&mut memory);
    file.feed(&mut counter).map_err(|error| match error {
        FeedError::Input(refused) => CliError::usage(refused),
        sink @ FeedError::Sink { .. } => CliError::failed(sink),
    })?;
    let (stats, tags) = counter.finish().map_err(CliError::failed)?;
    let depth = depth(&file)?;
    let document = Document::new(&file, &stats, &tags, depth);
    console.report(args.json, &document, |out| print(out, &document))?;
    Ok(Exit::Done)
}

/// Operations on the longest chain of dependencies within a rank.
fn depth(file: &ScheduleFile) -> Result<u32, CliError> {
    let extent = file.extent();
    let mut rank = OwnedRank::new(&extent);
    let mut checker = Checker::new(rank.lend(), None, |_circle| ());
    file.feed(&mut checker).map_err(super::check::input_error)?;
    Ok(checker.finish().map_err(CliError::failed)?.depth)
}

/// Contents of the report, as JSON and as text.
#[derive(Serialize)]
struct Document {
    file: String,
    form: String,
    file_bytes: usize,
    ranks: u32,
    idle_ranks: u32,
    ops: usize,
    sends: u64,
    receives: u64,
    calcs: u64,
    ops_per_rank_max: usize,
    edges: usize,
    requires: u64,
    irequires: u64,
    edges_per_rank_max: usize,
    depth: u32,
    bytes_sent: u128,
    calc_ps: u128,
    size_min_bytes: Option<u64>,
    size_max_bytes: Option<u64>,
    size_histogram: Vec<SizeClass>,
    any_source: u64,
    any_tag: u64,
    tags: u64,
    tags_complete: bool,
    tag_min: Option<u64>,
    tag_max: Option<u64>,
    cpus: u32,
    nics: u32,
}

/// Messages of sizes from `first_bytes` to `last_bytes`.
#[derive(Serialize)]
struct SizeClass {
    first_bytes: u64,
    last_bytes: u64,
    messages: u64,
}

impl Document {
    fn new(file: &ScheduleFile, stats: &Stats, tags: &Tags<'_>, depth: u32) -> Self {
        Self {
            file: file.name().to_owned(),
            form: file.form().to_string(),
            file_bytes: file.length(),
            ranks: stats.extent.ranks,
            idle_ranks: stats.idle_ranks,
            ops: stats.extent.ops,
            sends: stats.sends,
            receives: stats.receives,
            calcs: stats.calcs,
            ops_per_rank_max: stats.extent.ops_most,
            edges: stats.extent.edges,
            requires: stats.requires,
            irequires: stats.irequires,
            edges_per_rank_max: stats.extent.edges_most,
            depth,
            bytes_sent: stats.bytes_sent,
            calc_ps: stats.calc_picos,
            size_min_bytes: stats.size_range.map(|range| range.0),
            size_max_bytes: stats.size_range.map(|range| range.1),
            size_histogram: histogram(&stats.size_classes),
            any_source: stats.any_source,
            any_tag: stats.any_tag,
            tags: tags.values().len() as u64,
            tags_complete: tags.are_complete(),
            tag_min: tags.values().first().copied(),
            tag_max: tags.values().last().copied(),
            cpus: u32::from(stats.highest_cpu) + 1,
            nics: u32::from(stats.highest_nic) + 1,
        }
    }
}

/// Size classes that contain messages.
fn histogram(classes: &[u64; SIZE_CLASSES]) -> Vec<SizeClass> {
    let class = |(bits, &messages): (u32, &u64)| {
        let first = if bits == 0 { 0 } else { 1 << (bits - 1) };
        let last = if bits == 0 { 0 } else { u64::MAX >> (u64::BITS - bits) };
        SizeClass { first_bytes: first, last_bytes: last, messages }
    };
    (0..).zip(classes).filter(|(_, messages)| **messages > 0).map(class).collect()
}

fn print(out: &mut dyn Write, d: &Document) -> io::Result<()> {
    let mut line = |name: &str, value: String| writeln!(out, "{name:<22} {value}");
    line("file", format!("{} ({}, {} bytes)", d.file, d.form, d.file_bytes))?;
    line("ranks", format!("{} ({} without operations)", d.ranks, d.idle_ranks))?;
    line("operations", format!("{} (at most {} a rank)", d.ops, d.ops_per_rank_max))?;
    line("  send", d.sends.to_string())?;
    line("  recv", format!("{} ({} from any rank)", d.receives, d.any_source))?;
    line("  calc", format!("{} ({} ns in all)", d.calcs, nanos(d.calc_ps)))?;
    line("dependencies", format!("{} (at most {} a rank)", d.edges, d.edges_per_rank_max))?;
    line("  requires", d.requires.to_string())?;
    line("  irequires", d.irequires.to_string())?;
    line("depth within a rank", format!("{} operations", d.depth))?;
    line("cpus, nics a rank", format!("{}, {}", d.cpus, d.nics))?;
    let at_least = if d.tags_complete { "" } else { "more than " };
    let range = match (d.tag_min, d.tag_max) {
        (Some(low), Some(high)) if d.tags_complete => format!(" ({low} to {high})"),
        _ => String::new(),
    };
    line("tags", format!("{at_least}{}{range}; {} operations with any tag", d.tags, d.any_tag))?;
    line("bytes sent", d.bytes_sent.to_string())?;
    if !d.size_histogram.is_empty() {
        writeln!(out, "# message size [B]      messages")?;
    }
    for class in &d.size_histogram {
        let (first, last) = (class.first_bytes, class.last_bytes);
        let range = if first == last {
            first.to_string()
        } else {
            let end = last.checked_add(1).map_or_else(|| "16E".to_owned(), number::bytes);
            format!("{} to below {end}", number::bytes(first))
        };
        writeln!(out, "{range:<22} {}", class.messages)?;
    }
    Ok(())
}

/// Picoseconds as decimal nanoseconds.
fn nanos(picos: u128) -> String {
    let (whole, rest) = (picos / 1_000, picos % 1_000);
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:03}") }
}
