//! How fast schedules are read and written, on the broadcast over 2^20 ranks:
//! 94 MB of text, two million operations. Everything happens in memory.
//!
//! `survey`: the first look at the text. `text`: survey and reading into a
//! sink that only counts. `text, labels hashed`: the same with labels that
//! are not numbered in order. `text to lgs`: survey and compilation to our
//! binary format. `bin`, `lgs`: reading the binary formats. `generate`: the
//! pattern into text. `text to engine`: from a mapped file to a schedule that
//! is ready to run; `text to makespan`: to the result.
//!
//! `cargo bench -p loggap --bench goal`

#![allow(missing_docs, clippy::unwrap_used, reason = "benchmarks end when an assumption is wrong")]

use std::convert::Infallible;
use std::hint::black_box;
use std::io::Write;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use loggap::schedule::{OwnedRank, ScheduleFile, WriteError, write_text};
use loggap::simulation::{Job, Limit, Source, makespan};
use loggap_core::goal::binary::{NativeWriter, ReferenceWriter};
use loggap_core::goal::pattern::{Options, Pattern, generate};
use loggap_core::goal::text::Survey;
use loggap_core::goal::{Edge, Op, OpKind, Sink, SliceOutput};
use loggap_core::model::Preset;
use loggap_core::sim::{Parameters, Settings};
use loggap_core::units::Picos;

/// Counts and forgets.
#[derive(Default)]
struct Sum {
    ops: u32,
    sum: u64,
}

impl Sink for Sum {
    type Error = Infallible;

    fn begin_rank(&mut self, _rank: u32) -> Result<(), Infallible> {
        self.ops = 0;
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<u32, Infallible> {
        if let OpKind::Send { peer, size, .. } = op.kind {
            self.sum = self.sum.wrapping_add(u64::from(peer) + size);
        }
        self.ops += 1;
        Ok(self.ops - 1)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), Infallible> {
        self.sum = self.sum.wrapping_add(u64::from(edge.op ^ edge.on));
        Ok(())
    }
}

/// The broadcast's text.
fn broadcast() -> Vec<u8> {
    let mut text = Vec::with_capacity(100 << 20);
    write_text(&mut text, |writer| {
        generate(Pattern::BinomialBroadcast, &Options::new(1 << 20, 1), &mut [], writer)
            .map_err(|error| WriteError::Schedule(error.to_string()))
    })
    .unwrap();
    text
}

fn sum(file: &ScheduleFile) -> u64 {
    let mut sum = Sum::default();
    file.feed(&mut sum).unwrap();
    sum.sum
}

/// From text in memory to `.lgs` in memory.
fn to_lgs<'m>(text: &ScheduleFile, memory: &'m mut [u8]) -> SliceOutput<'m> {
    let mut pending = vec![[0; 8]; text.extent().edges_most];
    let mut writer = NativeWriter::new(SliceOutput::new(memory), &mut pending);
    text.feed(&mut writer).unwrap();
    writer.finish().unwrap()
}

fn to_bin(text: &ScheduleFile) -> Vec<u8> {
    let mut rank = OwnedRank::new(&text.extent());
    let mut bytes = vec![0; 200 << 20];
    let mut writer = ReferenceWriter::new(SliceOutput::new(&mut bytes), rank.lend());
    text.feed(&mut writer).unwrap();
    writer.finish().unwrap().written().to_vec()
}

fn benches(criterion: &mut Criterion) {
    let text = broadcast();
    let mut group = criterion.benchmark_group("goal");
    group.sample_size(10).throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("survey", |b| b.iter(|| Survey::of(black_box(&text)).unwrap()));
    group.bench_function("generate", |b| b.iter(broadcast));

    // `lN` becomes `lNl`, which no number ends.
    let hashed = String::from_utf8(text.clone()).unwrap();
    let hashed = hashed.replace(": ", "l: ").replace(" requires", "l requires");
    let hashed: String = hashed.lines().fold(String::new(), |mut text, line| {
        text.push_str(line);
        text.push_str(if line.contains(" requires ") { "l\n" } else { "\n" });
        text
    });
    for (name, text) in [("text", text.clone()), ("text, labels hashed", hashed.into_bytes())] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        let file = ScheduleFile::from_bytes("text", text.clone()).unwrap();
        group.bench_function(name, |b| {
            b.iter(|| {
                black_box(Survey::of(&text).unwrap());
                sum(&file)
            });
        });
    }

    let mut on_disk = tempfile::NamedTempFile::new().unwrap();
    on_disk.write_all(&text).unwrap();
    group.bench_function("text to engine", |b| {
        b.iter(|| {
            let source = Source::File(ScheduleFile::open(on_disk.path()).unwrap());
            source.load(Settings::default(), &Limit::none(), |_, needs| needs.ops).unwrap()
        });
    });
    let preset: Preset = "loggopsim".parse().unwrap();
    let set = Parameters::per_protocol(preset.protocols).unwrap();
    group.bench_function("text to makespan", |b| {
        b.iter(|| {
            let source = Source::File(ScheduleFile::open(on_disk.path()).unwrap());
            let time = makespan(&source, &Job::new(set, Settings::default())).unwrap();
            assert_eq!(time, Picos(110_000_000));
        });
    });

    group.throughput(Throughput::Bytes(text.len() as u64));
    let file = ScheduleFile::from_bytes("text", text.clone()).unwrap();
    let mut memory = vec![0; 100 << 20];
    group.bench_function("text to lgs", |b| {
        b.iter(|| {
            black_box(Survey::of(&text).unwrap());
            to_lgs(&file, &mut memory).written().len()
        });
    });
    let forms = [("lgs", to_lgs(&file, &mut memory).written().to_vec()), ("bin", to_bin(&file))];
    for (name, bytes) in forms {
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        let file = ScheduleFile::from_bytes(name, bytes).unwrap();
        group.bench_function(name, |b| b.iter(|| sum(&file)));
    }
    group.finish();
}

criterion_group!(goal, benches);
criterion_main!(goal);
