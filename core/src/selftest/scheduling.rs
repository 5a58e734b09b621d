//! Checks of noise, and of schedules as text and in both binary formats.

use super::{Vector, digest};
use crate::goal::binary::{BinaryReadError, Native, NativeWriter, Reference, ReferenceWriter};
use crate::goal::text::{Block, LabelMemory, TextMemory, TextWriter, read};
use crate::goal::{Edge, RankMemory, RankNode, Sink, SliceOutput, text};
use crate::noise::{Detour, Trace};
use crate::sim;
use crate::units::Picos;

pub(super) const VECTORS: &[Vector] = &[
    // Detours of 10 at 100 and of 20 at 500, repeated every 1000: (450, 2450) contains two of each.
    Vector { name: "noise: detours stretch an operation", compute: noise, answer: 60 },
    Vector { name: "noise: a trace as netgauge writes it", compute: trace, answer: 18_720_790 },
    Vector { name: "goal: text counts its operations", compute: survey, answer: 4 },
    Vector { name: "goal: text survives a way through the reader", compute: rewritten, answer: 1 },
    Vector { name: "goal: a wrong line is refused", compute: refused, answer: 2 },
    Vector { name: "goal: the bytes of LogGOPSim's binary format", compute: theirs, answer: BIN },
    Vector { name: "goal: the bytes of our binary format", compute: ours, answer: LGS },
    Vector {
        name: "goal: a damaged binary is refused at its operation",
        compute: damaged,
        answer: OPERATION,
    },
];

const FOUR: &[u8] = b"num_ranks 2\nrank 0 {\na: calc 10\nb: send 8b to 1 tag 5\nb requires a\n}\nrank 1 {\na: recv 8b from 0 tag 5\nb: calc 20 cpu 1\nb irequires a\n}\n";
const WRONG: &[u8] = b"num_ranks 1\nrank 0 [\n}\n";
const NOISE: &[u8] = b"# start and duration\n18720.79 512.5\n20000 1\n";
/// FNV-1a of [`FOUR`] in both formats of docs/goal.md, computed outside of this crate.
const BIN: u64 = 0x274e_1bb3_6650_5651;
const LGS: u64 = 0xdb15_4d6b_b5c5_7a5a;
/// Length of [`FOUR`] in LogGOPSim's format, the longer one, in bytes.
const LONGEST: usize = 234;
/// Byte offset of the first operation in that format: after the header, the table and the head of a
/// block with one root.
const OPERATION: u64 = 14 + 2 * 16 + 12;

fn noise() -> Option<u64> {
    let detours = [
        Detour { start: Picos(100), duration: Picos(10) },
        Detour { start: Picos(500), duration: Picos(20) },
    ];
    let trace = Trace::new(&detours, Some(Picos(1_000))).ok()?;
    Some(trace.lost(Picos::ZERO, Picos(450), Picos(2_000)).0)
}

/// The start of the first detour.
fn trace() -> Option<u64> {
    let mut detours = [Detour::default(); 2];
    let (found, _) = crate::noise::read(NOISE, &mut detours).ok()?;
    (found == 2).then_some(detours.first()?.start.0)
}

fn survey() -> Option<u64> {
    Some(text::Survey::of(FOUR).ok()?.extent().ops as u64)
}

/// Feeds `text` into `sink`.
pub(super) fn feed<S: Sink>(text: &[u8], sink: &mut S) -> Option<()> {
    let survey = text::Survey::of(text).ok()?;
    let (mut entries, mut buckets) = ([[0; 2]; 4], [0; 4]);
    let labels = LabelMemory { entries: &mut entries, buckets: &mut buckets, seed: 0 };
    let memory = TextMemory { blocks: &mut [Block::default(); 4], labels };
    read(text, &survey, memory, sink).ok()
}

fn rewritten() -> Option<u64> {
    let written = |text: &[u8], room: &mut [u8; 512]| {
        let mut writer = TextWriter::new(SliceOutput::new(room));
        feed(text, &mut writer)?;
        Some(writer.finish().ok()?.written().len())
    };
    let (mut first, mut second) = ([0; 512], [0; 512]);
    let length = written(FOUR, &mut first)?;
    let again = written(first.get(..length)?, &mut second)?;
    let same = digest(first.get(..length)?) == digest(second.get(..again)?);
    Some(u64::from(same && length > 0))
}

/// Line number of the error.
fn refused() -> Option<u64> {
    let error = text::Survey::of(WRONG).err()?;
    Some(text::line_and_column(WRONG, error.at).0 as u64)
}

/// Writes [`FOUR`] in LogGOPSim's format; returns the length in bytes.
fn write_theirs(room: &mut [u8; LONGEST]) -> Option<usize> {
    let (mut nodes, mut edges) = ([RankNode::EMPTY; 2], [Edge::default(); 2]);
    let memory = RankMemory { nodes: &mut nodes, edges: &mut edges, successors: &mut [0; 2] };
    let mut writer = ReferenceWriter::new(SliceOutput::new(room), memory);
    feed(FOUR, &mut writer)?;
    Some(writer.finish().ok()?.written().len())
}

fn theirs() -> Option<u64> {
    let mut room = [0; LONGEST];
    let length = write_theirs(&mut room)?;
    Some(digest(room.get(..length)?))
}

/// Converts LogGOPSim's format to ours and ours to ours again, so that both readers are tested.
fn ours() -> Option<u64> {
    let (mut first, mut second) = ([0; LONGEST], [0; LONGEST]);
    let length = write_theirs(&mut first)?;
    let theirs = Reference::open(first.get(..length)?).ok()?;
    let mut pending = [[0; 8]; 2];
    let mut writer = NativeWriter::new(SliceOutput::new(&mut second), &mut pending);
    theirs.read(&mut [0; 2], &mut writer).ok()?;
    let length = writer.finish().ok()?.written().len();
    let ours = Native::open(second.get(..length)?).ok()?;
    let mut writer = NativeWriter::new(SliceOutput::new(&mut first), &mut pending);
    ours.read(&mut writer).ok()?;
    Some(digest(writer.finish().ok()?.written()))
}

/// Byte offset of the error.
fn damaged() -> Option<u64> {
    let mut room = [0; LONGEST];
    let length = write_theirs(&mut room)?;
    // Type of the operation, which follows the number of dependencies.
    *room.get_mut(usize::try_from(OPERATION).ok()? + 4)? = 9;
    let view = Reference::open(room.get(..length)?).ok()?;
    match view.read(&mut [0; 2], &mut sim::Survey::default()) {
        Err(BinaryReadError::File(error)) => Some(error.at),
        _ => None,
    }
}
