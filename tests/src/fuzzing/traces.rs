//! Traces of several ranks, and what is made of them.

use super::Numbers;
use super::parsers::{CALLS, KINDS, block, part};
use loggap::trace::convert::{Algorithms, Conversion, Graph, Input, Options, Strictness};
use loggap::trace::extrapolate::{Extrapolation, Grid, Scaling};
use loggap::trace::{Description, RankTrace, Summary, Trace};
use loggap_core::goal::stats::Counter;
use loggap_core::trace::{Collective, DEFINITIONS, FileHeader, NO_PEER, Part};
use serde_json::json;

/// Most ranks of a program that is written.
const MOST: u32 = 64;

/// `trace.json`, or a file of rules by itself and in a trace.
pub(super) fn texts(data: &[u8]) {
    if let Ok(description) = Description::parse(data)
        && (1..=4).contains(&description.ranks)
    {
        converted(description, Algorithms::default());
    }
    let Ok(text) = str::from_utf8(data) else { return };
    let mut algorithms = Algorithms::default();
    if algorithms.rules(text).is_ok() {
        let settings = json!({
            "OMPI_MCA_coll_tuned_use_dynamic_rules": "true",
            "OMPI_MCA_coll_tuned_dynamic_rules_filename": "rules",
        });
        converted(described(3, &settings, Some(text)), Algorithms::default());
        converted(described(3, &json!({}), None), algorithms);
    }
}

fn described(ranks: u32, settings: &serde_json::Value, rules: Option<&str>) -> Description {
    let clock = json!({ "at_ns": 0, "offset_ns": 0, "bound_ns": 0 });
    let all = ranks as usize;
    let text = json!({
        "format": "loggap-trace", "schema_version": 1, "run": "1", "ranks": ranks,
        "library": "Open MPI v4.1.4", "settings": settings, "rules": rules,
        "hosts": vec![""; all], "bases_ns": vec![0; all], "clocks_begin": vec![clock; all],
        "clocks_end": [], "cost_per_call_s": 1e-7, "clock_reads_s": 1e-7,
    });
    Description::parse(text.to_string().as_bytes()).expect("all that it has")
}

/// Every collective operation by all ranks of this trace.
fn converted(description: Description, algorithms: Algorithms) {
    let sizes = [0, 8, 2_000];
    let calls =
        CALLS.iter().position(|name| *name == "Barrier").expect("one of them")..CALLS.len() - 2;
    let calls = calls.flat_map(|name| sizes.map(|bytes| (name as u32, bytes)));
    let mut parts: Vec<_> = CALLS.map(Part::Name).to_vec();
    for ((name, bytes), enter) in calls.zip((0..).step_by(10)) {
        parts.push(Part::Call { name, enter, leave: enter + 5 });
        let [sent, received] = [bytes; 2];
        let root = Some(0);
        parts.push(Part::Collective(Collective { root, sent, received, ..Collective::default() }));
    }
    let run = u64::from_str_radix(&description.run, 16).unwrap_or(1);
    let ranks = description.ranks;
    let files = (0..ranks).map(|rank| file(run, rank, ranks, &parts, &[])).collect();
    let Ok(trace) = Trace::of(description, files) else { return };
    let summary = Summary::of(&trace).expect("records that can be read");
    assert_eq!((summary.ranks, summary.unmatched), (ranks, 0));
    assert!(trace.merged().all(|record| record.is_ok()));
    let options = Options { strictness: Strictness::Lenient, algorithms, ..Options::default() };
    let conversion = Conversion::new(Input::Trace(Box::new(trace)), options);
    let mut counter = Counter::new(&mut []);
    conversion.feed(&mut counter).expect("a lenient conversion takes all");
    counter.finish().expect("all ranks");
}

/// File of a rank with these records, and a Cartesian topology of all.
fn file(run: u64, rank: u32, ranks: u32, parts: &[Part<'_>], topology: &[Part<'_>]) -> RankTrace {
    let members = Part::Members { remote: false, first: 0, stride: 1, count: ranks };
    let mut world = vec![Part::Define { number: 0, identity: 7 }, members];
    if !topology.is_empty() {
        world.extend([Part::Define { number: 1, identity: 8 }, members]);
        world.extend(topology);
    }
    let header = FileHeader { run, rank, ranks }.emit().to_vec();
    let bytes = [header, block(DEFINITIONS, &world), block(0, parts)].concat();
    RankTrace::parse("0.trace".into(), bytes).expect("a file that the tracer could write")
}

/// How the peers of a message are found.
#[derive(Clone, Copy)]
enum Peers {
    Line,
    Ring,
    /// Along a torus of rows of three: in the row with tag 1.
    Torus,
}

/// A program of one to twelve ranks, which do the same with other peers, on more of them.
pub fn extrapolation(data: &[u8]) {
    let mut input = Numbers(data);
    let traces = 1 + input.below(2);
    let scaling = scaling(&mut input);
    let graph = Graph::Derived;
    let strictness = [Strictness::Strict, Strictness::Lenient][usize::from(input.below(2))];
    let sizes = [0, 1].map(|_| 1 + u32::from(input.below(12)));
    let kinds = [Peers::Line, Peers::Ring, Peers::Torus];
    let peers = kinds[usize::from(input.below(3))];
    let extents: Vec<_> = (0..input.below(4)).map(|_| u32::from(input.below(9))).collect();
    let topology =
        |periodic| extents.iter().map(move |&extent| Part::Dimension { extent, periodic });
    let topology: Vec<_> = topology(matches!(peers, Peers::Ring)).collect();
    let program = records(&mut input);
    let conversion = |&ranks: &u32| {
        let of = |rank| file(1, rank, ranks, &at(&program, peers, rank, ranks), &topology);
        let files = (0..ranks).map(of).collect();
        let trace = Trace::of(described(ranks, &json!({}), None), files).expect("of one run");
        let options = Options { strictness, graph, ..Options::default() };
        Conversion::new(Input::Trace(Box::new(trace)), options)
    };
    let conversions: Vec<_> = sizes.iter().take(traces.into()).map(conversion).collect();
    let Ok(larger) = Extrapolation::new(&conversions, &scaling) else { return };
    let _ = (larger.summary(), larger.bytes(), larger.report().refused());
    if larger.ranks() <= MOST {
        let mut counter = Counter::new(&mut []);
        larger.feed_numbered(&mut counter).expect("what was understood can be written");
        counter.finish().expect("all ranks");
        let _ = larger.messages();
    }
}

/// A size, also too small or too large a one.
fn scaling(input: &mut Numbers<'_>) -> Scaling {
    let kind = input.below(4);
    let mut size = || match input.below(8) {
        0 => input.word(),
        _ => u32::from(input.below(20)),
    };
    match kind {
        0 => Scaling::Copies(size()),
        1 => Scaling::Ranks(size()),
        _ => {
            let traced = (kind == 3).then(|| [0; 2].map(|_| size()).to_vec());
            let count = size() as usize % 4;
            Scaling::Grid(Grid { traced, target: (0..count).map(|_| size()).collect() })
        }
    }
}

/// Records of a rank; peers are distances.
fn records(input: &mut Numbers<'_>) -> Vec<Part<'static>> {
    let mut parts: Vec<_> = CALLS.map(Part::Name).to_vec();
    parts.push(Part::Call { name: 0, enter: 0, leave: 0 });
    let mut now = 0;
    while !input.is_empty() && parts.len() < 200 && input.byte() != 0 {
        let name = input.below(CALLS.len() as u8).into();
        let enter = now + u64::from(input.byte());
        now = enter + u64::from(input.byte());
        parts.push(Part::Call { name, enter, leave: now });
        let [first, rest] = KINDS[usize::from(input.below(KINDS.len() as u8))];
        for at in 0..input.below(4) {
            parts.push(part(input, if at == 0 { first } else { rest }));
        }
    }
    parts.push(Part::Call { name: 1, enter: now, leave: now });
    parts
}

/// The records of `rank`.
fn at(program: &[Part<'static>], peers: Peers, rank: u32, ranks: u32) -> Vec<Part<'static>> {
    let [rank, ranks] = [rank, ranks].map(u32::cast_signed);
    let peer = |distance: i32, tag: i32| match (peers, tag) {
        (Peers::Line, _) => rank + distance,
        (Peers::Ring, _) => (rank + distance).rem_euclid(ranks),
        (Peers::Torus, 1) => rank - rank % 3 + (rank % 3 + distance).rem_euclid(3),
        (Peers::Torus, _) => (rank + 3 * distance).rem_euclid(ranks),
    };
    let placed = |one: &Part<'static>| match *one {
        Part::Message(mut message) => {
            let to = peer(message.envelope.peer, message.envelope.tag);
            message.envelope.peer = if (0..ranks).contains(&to) { to } else { NO_PEER };
            Part::Message(message)
        }
        Part::Collective(call) => Part::Collective(Collective {
            root: call.root.map(|root| root.rem_euclid(ranks)),
            ..call
        }),
        other => other,
    };
    program.iter().map(placed).collect()
}
