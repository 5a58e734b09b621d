//! Schedules in their three forms.

use crate::program::Program;
use loggap_core::goal::binary::{
    EdgeSpan, LookupMemory, Native, NativeWriter, Reference, ReferenceWriter,
};
use loggap_core::goal::text::{self, Block, LabelMemory, Survey, TextMemory, TextWriter};
use loggap_core::goal::{DependsOn, Edge, Lookup, OpIndex, RankMemory, RankNode, SliceOutput};

/// Ranks that a test holds at most: files name billions in a few bytes.
const MOST_RANKS: u32 = 10_000;

/// What is written takes at most this many bytes for each that was read.
const GROWTH: usize = 64;

/// GOAL text.
pub fn goal_text(data: &[u8]) {
    let Some(program) = read_text(data) else { return };
    let mut memory = vec![0; 1_000 + GROWTH * data.len() + 32 * program.ranks.len()];
    let mut writer = TextWriter::new(SliceOutput::new(&mut memory));
    program.replay(&mut writer).expect("room enough");
    let output = writer.finish().expect("a whole schedule");
    assert_eq!(read_text(output.written()).expect("ours"), program);
}

fn read_text(data: &[u8]) -> Option<Program> {
    let survey = Survey::of(data).ok().filter(|survey| survey.extent().ranks <= MOST_RANKS)?;
    let most = survey.labels_most();
    let mut blocks = vec![Block::default(); survey.blocks_to_lend()];
    let labels =
        LabelMemory { entries: &mut vec![[0; 2]; most], buckets: &mut vec![0; most], seed: 0 };
    let memory = TextMemory { blocks: &mut blocks, labels };
    let mut program = Program::default();
    text::read(data, &survey, memory, &mut program).ok()?;
    assert_eq!(program.ops(), survey.extent().ops, "the survey counts what is there");
    Some(program)
}

/// Our own binary format.
pub fn goal_native(data: &[u8]) {
    let Some(program) = read_native(data) else { return };
    let mut memory = vec![0; 1_000 + GROWTH * data.len()];
    let edges = program.ranks.iter().map(|rank| rank.edges.len()).max().unwrap_or(0);
    let mut pending = vec![[0; 8]; edges];
    let mut writer = NativeWriter::new(SliceOutput::new(&mut memory), &mut pending);
    program.replay(&mut writer).expect("room enough");
    let output = writer.finish().expect("a whole schedule");
    assert_eq!(read_native(output.written()).expect("ours"), program);
}

fn read_native(data: &[u8]) -> Option<Program> {
    let view = Native::open(data).ok().filter(|view| view.extent().ranks <= MOST_RANKS)?;
    let mut program = Program::default();
    view.read(&mut program).ok()?;
    assert_eq!(program.ops(), view.extent().ops, "the header counts what is there");
    let spans = &mut vec![EdgeSpan::default(); view.spans() as usize];
    let firsts = &mut vec![0; view.extent().ranks as usize + 1];
    if let Ok(file) = view.lookup(LookupMemory { spans, firsts }) {
        look_up(&program, file);
    }
    Some(program)
}

/// What is looked up is what was read.
fn look_up(program: &Program, file: impl Lookup) {
    for (rank, part) in (0..).zip(&program.ranks) {
        let mut waits = vec![0; part.ops.len()];
        let mut dependents = vec![[vec![], vec![]]; part.ops.len()];
        for edge in &part.edges {
            waits[edge.op as usize] += 1;
            dependents[edge.on as usize][usize::from(edge.start)].push(edge.op);
        }
        let mut roots = vec![];
        file.roots(rank, |op| roots.push(op)).expect("a rank");
        let free = (0..).zip(&waits).filter(|&(_, &waits)| waits == 0).map(|(op, _)| op);
        assert!(roots.iter().copied().eq(free), "roots of rank {rank}");
        for (op, sound) in (0..).zip(&part.ops) {
            let index = OpIndex { rank, op };
            assert_eq!(file.op(index), Some(*sound));
            assert_eq!(file.dependencies(index), Some(waits[op as usize]));
            let mut found = [vec![], vec![]];
            file.dependents(index, |op, depends_on| {
                found[usize::from(depends_on == DependsOn::Start)].push(op)
            })
            .expect("an operation");
            assert_eq!(found, dependents[op as usize], "of operation {op} of rank {rank}");
        }
    }
}

/// The reference's binary format. It groups dependencies by what they wait
/// for, so the second file has to be as the first.
pub fn goal_reference(data: &[u8]) {
    let Some(program) = read_reference(data) else { return };
    let mut memory = vec![0; 1_000 + GROWTH * data.len()];
    let ops = program.ranks.iter().map(|rank| rank.ops.len()).max().unwrap_or(0);
    let edges = program.ranks.iter().map(|rank| rank.edges.len()).max().unwrap_or(0);
    let (mut nodes, mut successors) = (vec![RankNode::EMPTY; ops], vec![0; edges]);
    let mut room = vec![Edge::default(); edges];
    let rank = RankMemory { nodes: &mut nodes, edges: &mut room, successors: &mut successors };
    let mut writer = ReferenceWriter::new(SliceOutput::new(&mut memory), rank);
    // It says less than it can read: a wildcard receive from a rank past its numbers.
    if program.replay(&mut writer).is_err() {
        return;
    }
    let output = writer.finish().expect("a whole schedule");
    assert_eq!(read_reference(output.written()).expect("ours"), program);
}

fn read_reference(data: &[u8]) -> Option<Program> {
    let view = Reference::open(data).ok().filter(|view| view.extent().ranks <= MOST_RANKS)?;
    let mut program = Program::default();
    view.read(&mut vec![0; view.extent().ops_most], &mut program).ok()?;
    look_up(&program, view);
    Some(program)
}
