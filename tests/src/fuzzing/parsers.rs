//! What is read is written and read again, and has to be the same.

use super::Numbers;
use loggap::decimal;
use loggap::flags::parse;
use loggap::samples::{self, Limits, Row, SampleReader, TimedSample};
use loggap::trace::convert::{Conversion, Graph, Input, Options, Strictness};
use loggap::trace::liballprof::RankText;
use loggap::trace::{RankTrace, Trace as Traced};
use loggap_core::goal::pattern::Pattern;
use loggap_core::goal::stats::Counter;
use loggap_core::noise::{self, Detour, Trace};
use loggap_core::trace::{
    self, BlockHeader, Collective, Completed, DEFINITIONS, Decoder, Direction, Encoder, Envelope,
    FileHeader, MAX_PART, Mode, Outcome, Part,
};
use loggap_core::units::Picos;
use loggap_core::wire::ethernet::{self, EthernetFrame};
use loggap_core::wire::{FRAME_LEN, Message, ParseErrorKind};

/// A control frame, and the same bytes as an Ethernet frame.
pub fn wire_frame(data: &[u8]) {
    frame(data);
    let mut repaired = data.to_vec();
    repair_checksum(&mut repaired);
    frame(&repaired);
}

/// Gives a frame the checksum that it should have: nearly all changed ones
/// would be refused for it, and nothing behind it be reached.
pub(super) fn repair_checksum(frame: &mut [u8]) {
    const CHECKSUM_AT: usize = 12;
    if let Err(error) = Message::parse(frame)
        && let ParseErrorKind::Checksum { computed, .. } = error.kind
        && let Some(place) = frame.get_mut(CHECKSUM_AT..).and_then(<[u8]>::first_chunk_mut)
    {
        *place = computed.to_le_bytes();
    }
}

fn frame(data: &[u8]) {
    if let Ok(message) = Message::parse(data) {
        let mut frame = [0; FRAME_LEN];
        message.emit(&mut frame);
        assert_eq!(Message::parse(&frame), Ok(message));
    }
    if let Ok(frame) = EthernetFrame::parse(data) {
        let mut again = vec![0; data.len().max(ethernet::MIN_FRAME)];
        let length = ethernet::emit([0xff; 6], frame.source(), frame.message(), &mut again);
        let length = length.expect("no longer than it was");
        let back = EthernetFrame::parse(&again[..length]).expect("ours");
        assert_eq!((back.source(), back.message()), (frame.source(), frame.message()));
    }
}

/// A file of a trace: that of a rank, as it is and as the parts of blocks whose checksums are right;
/// `trace.json`; Open MPI's file of rules.
pub fn trace(data: &[u8]) {
    super::traces::texts(data);
    let header = FileHeader { run: 1, rank: 0, ranks: 1 }.emit();
    let block = |thread| [&BlockHeader::of(thread, 9, data).emit(), data].concat();
    let blocks = [&header[..], &block(DEFINITIONS), &block(0), &block(1)].concat();
    let calls = [&header[..], &block(0), &block(1)].concat();
    // What any bytes are taken for that are said to be compressed.
    let length = 4 * data.len() as u32;
    let compressed = [&BlockHeader::compressed(0, 9, length, data).emit(), data].concat();
    for file in [data.to_vec(), blocks, calls, [&header[..], &compressed].concat()] {
        if let Ok(rank) = RankTrace::parse("0.trace".into(), file) {
            let errors = rank.records().filter(Result::is_err).count();
            assert!(errors <= 2, "a thread has records behind an error");
            let members = rank.communicators().values().map(|comm| comm.members().take(3).count());
            assert!(members.sum::<usize>() <= 3 * rank.communicators().len());
        }
    }
    let parts: Vec<_> = Decoder::new(data, 9).map_while(Result::ok).collect();
    let (mut encoder, mut again) = (Encoder::new(9), Vec::new());
    for part in &parts {
        let mut bytes = [0; MAX_PART];
        let length = encoder.put(part, &mut bytes).expect("room for a part");
        again.extend_from_slice(&bytes[..length]);
    }
    let read: Vec<_> = Decoder::new(&again, 9).map(|part| part.expect("a part")).collect();
    assert_eq!(read, parts);
}

/// A text of liballprof, read in both ways, and what becomes of it.
pub fn liballprof(data: &[u8]) {
    let text = || RankText::of("rank-0.txt".into(), data.to_vec(), 0, 2);
    assert!(text().records(Strictness::Strict).filter(Result::is_err).count() <= 1);
    assert!(text().records(Strictness::Lenient).all(|record| record.is_ok()));
    let options = Options { strictness: Strictness::Lenient, ..Options::default() };
    let other = RankText::of("rank-1.txt".into(), Vec::new(), 1, 2);
    let conversion = Conversion::new(Input::Liballprof(vec![text(), other]), options);
    let mut counter = Counter::new(&mut []);
    conversion.feed(&mut counter).expect("a lenient conversion takes all");
    counter.finish().expect("all ranks");
}

/// Calls that a conversion treats in ways of their own.
pub(super) const CALLS: [&str; 40] = [
    "Init",
    "Finalize",
    "Send",
    "Ssend",
    "Bsend",
    "Isend",
    "Recv",
    "Irecv",
    "Sendrecv",
    "Startall",
    "Wait",
    "Waitall",
    "Test",
    "Request_free",
    "Probe",
    "Iprobe",
    "Mprobe",
    "Mrecv",
    "Imrecv",
    "Put",
    "Barrier",
    "Bcast",
    "Ibcast",
    "Reduce",
    "Allreduce",
    "Iallreduce",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Allgather",
    "Allgatherv",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Reduce_scatter",
    "Scan",
    "Neighbor_alltoallv",
    "(off)",
    "(on)",
];

/// Kinds of the first part of a record and of the others, as [`part`] numbers them.
pub(super) const KINDS: [[u8; 2]; 6] = [[0, 0], [1, 1], [2, 3], [4, 4], [5, 6], [7, 7]];

/// Any records of the first of three ranks, converted as what they are and as what is there.
pub fn conversion(data: &[u8]) {
    let mut input = Numbers(data);
    let graph = match input.byte() % 2 {
        0 => Graph::Derived,
        _ => Graph::Schedgen { copies: 2 },
    };
    let threads = [0, 1].map(|_| block(u32::from(input.byte()) << 8, &records(&mut input)));
    let dimension = Part::Dimension { extent: input.below(4).into(), periodic: true };
    let world = [
        Part::Define { number: 0, identity: 7 },
        Part::Members { remote: false, first: 0, stride: 1, count: 3 },
        Part::Define { number: 1, identity: 8 },
        Part::Members {
            remote: false,
            first: 2,
            stride: -1,
            count: input.word() >> input.below(32),
        },
        dimension,
    ];
    let world = block(DEFINITIONS, &world);
    let file = |rank| {
        let header = FileHeader { run: 1, rank, ranks: 3 }.emit().to_vec();
        let threads = if rank == 0 { threads.concat() } else { Vec::new() };
        let bytes = [header, world.clone(), threads].concat();
        RankTrace::parse("0.trace".into(), bytes).expect("a file that the tracer could write")
    };
    for strictness in [Strictness::Lenient, Strictness::Strict] {
        let description = serde_json::json!({
            "format": "loggap-trace", "schema_version": 1, "run": "1", "ranks": 3, "library": "",
            "hosts": ["", "", ""], "bases_ns": [0, 0, 0], "clocks_begin": [], "clocks_end": [],
            "cost_per_call_s": 1e-7, "clock_reads_s": 1e-7,
        });
        let description = serde_json::from_value(description).expect("all that it has");
        let trace = Traced::of(description, (0..3).map(file).collect()).expect("of one run");
        let options = Options { strictness, graph, ..Options::default() };
        let conversion = Conversion::new(Input::Trace(Box::new(trace)), options);
        let mut counter = Counter::new(&mut []);
        match (conversion.feed(&mut counter), strictness) {
            (Ok(_), _) => drop(counter.finish().expect("all ranks")),
            (Err(error), Strictness::Lenient) => panic!("a lenient conversion takes all: {error}"),
            (Err(_), Strictness::Strict) => {}
        }
    }
}

pub(super) fn block(thread: u32, parts: &[Part<'_>]) -> Vec<u8> {
    let (mut encoder, mut all) = (Encoder::new(0), Vec::new());
    for part in parts {
        let mut bytes = [0; MAX_PART];
        let length = encoder.put(part, &mut bytes).expect("room for a part");
        all.extend_from_slice(&bytes[..length]);
    }
    [&BlockHeader::of(thread, 0, &all).emit()[..], &all].concat()
}

/// Records of a thread, until a byte or the input ends them.
fn records(input: &mut Numbers<'_>) -> Vec<Part<'static>> {
    let mut parts: Vec<_> = CALLS.map(Part::Name).to_vec();
    let mut now = 0;
    while !input.is_empty() && parts.len() < 1_000 && input.byte() != 0 {
        let name = input.below(CALLS.len() as u8).into();
        let enter = now + u64::from(input.byte());
        now = enter + u64::from(input.byte());
        parts.push(Part::Call { name, enter, leave: now });
        let [first, rest] = KINDS[usize::from(input.below(KINDS.len() as u8))];
        for at in 0..input.below(4) {
            parts.push(part(input, if at == 0 { first } else { rest }));
        }
    }
    parts
}

/// A part of a record; wrong in its place for some calls.
pub(super) fn part(input: &mut Numbers<'_>, kind: u8) -> Part<'static> {
    let small = |input: &mut Numbers<'_>| i32::from(input.below(6)) - 3;
    let size = |input: &mut Numbers<'_>| u64::from(input.word()) >> input.below(32);
    let request = (input.below(4) > 0).then_some(u64::from(input.below(8)));
    let direction = if input.below(2) == 0 { Direction::Send } else { Direction::Receive };
    let communicator = u32::from(input.below(3));
    let envelope = Envelope {
        peer: small(input),
        tag: small(input).max(-1),
        bytes: size(input),
        communicator,
    };
    match kind {
        0 => Part::Message(trace::Message {
            direction,
            mode: [Mode::Standard, Mode::Buffered, Mode::Synchronous][usize::from(input.below(3))],
            envelope,
            request,
        }),
        1 => {
            let outcomes =
                [Outcome::Done, Outcome::Received(envelope), Outcome::Cancelled, Outcome::Freed];
            let outcome = outcomes[usize::from(input.below(4))];
            Part::Completed(Completed { request: request.unwrap_or_default(), outcome })
        }
        2 => Part::Collective(Collective {
            communicator,
            root: (input.below(2) > 0).then(|| small(input)),
            sent: size(input) >> 16,
            received: size(input) >> 16,
            in_place: input.below(2) > 0,
            request,
        }),
        3 => Part::Each { direction, peers: size(input), bytes: size(input) >> 16 },
        4 => Part::Probed(envelope),
        5 => Part::Loop { inside: size(input), computing: size(input) },
        6 => Part::Tests { name: 12, count: size(input) },
        _ => Part::Communicator { number: communicator, freed: direction == Direction::Send },
    }
}

/// A noise trace, and what it costs operations where it is one.
pub fn noise_trace(data: &[u8]) {
    let mut detours = vec![Detour::default(); noise::count(data)];
    let Ok((found, length)) = noise::read(data, &mut detours) else { return };
    assert_eq!(found, detours.len());
    let Ok(trace) = Trace::new(&detours, length) else { return };
    let mut text = String::new();
    noise::write(&mut text, &detours, trace.length()).expect("a string takes all");
    let mut again = vec![Detour::default(); detours.len()];
    assert_eq!(noise::read(text.as_bytes(), &mut again), Ok((found, Some(trace.length()))));
    assert_eq!(again, detours);
    let (half, whole) = (Picos(trace.length().0 / 2), trace.length());
    for phase in [Picos::ZERO, half, whole] {
        let short = trace.lost(phase, half, half);
        assert!(short <= trace.lost(phase, half, whole), "more time loses no less");
        let _ = trace.lost(phase, Picos::MAX, Picos::MAX);
    }
}

/// A file of samples. The raw form is written again.
pub fn samples_csv(data: &[u8]) {
    let limits = Limits { samples: 1_000, line: 256 };
    let rounds = |data: &[u8]| {
        let mut reader = SampleReader::new(data, limits).ok()?;
        let mut rounds = vec![];
        while let Some(row) = reader.next_row().ok()? {
            if let Row::Round(sample) = row {
                rounds.push(sample);
            }
        }
        Some(rounds)
    };
    let Some(found) = rounds(data).filter(|found| !found.is_empty()) else { return };
    let mut text = vec![];
    let timed =
        found.iter().map(|sample| TimedSample { sample: *sample, launch: 0, time: Picos::ZERO });
    let timed: Vec<TimedSample> = timed.collect();
    samples::write(&mut text, &timed, &[]).expect("memory takes all");
    assert_eq!(rounds(&text), Some(found));
}

/// A word of the command line, read as each kind of argument.
pub fn argument(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    // A list in a file is read as one on the command line.
    if let Some(sizes) = (!text.starts_with('@')).then(|| parse::sizes(text)).and_then(Result::ok) {
        let list = sizes.list();
        assert!(list.is_sorted_by(|a, b| a < b) && !list.is_empty());
        assert_eq!((list.first(), list.last()), (Some(&sizes.first()), Some(&sizes.last())));
        let words: Vec<String> = list.iter().map(u64::to_string).collect();
        assert_eq!(parse::sizes(&words.join(",")).expect("ours").list(), list);
    }
    if let Ok(size) = parse::size(text) {
        assert_eq!(parse::size(&size.to_string()).expect("ours"), size);
    }
    if let Ok(time) = parse::time(text) {
        assert_eq!(parse::time(&decimal::fixed(u128::from(time.0), 3)), Ok(time));
    }
    if let Ok(seed) = parse::seed(text) {
        assert_eq!(parse::seed(&format!("{seed:#x}")), Ok(seed));
    }
    if let Ok(ppm) = parse::percent(text) {
        assert_eq!(parse::percent(&(decimal::fixed(u128::from(ppm), 4) + "%")), Ok(ppm));
    }
    if let Ok(time) = parse::duration(text) {
        assert_eq!(parse::duration(&format!("{}ns", time.as_nanos())), Ok(time));
    }
    let _ = parse::time_per_byte(text);
    if let Ok(time) = decimal::picos(text) {
        assert_eq!(decimal::picos(&decimal::seconds(time)), Ok(time));
    }
    if let Ok(pattern) = text.parse::<Pattern>() {
        assert_eq!(pattern.name().parse(), Ok(pattern));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_frame_is_no_longer_refused_for_its_checksum() {
        let mut frame = [0; FRAME_LEN];
        Message::Ready { sequence: 7 }.emit(&mut frame);
        for at in 16..FRAME_LEN {
            let mut changed = frame;
            changed[at] ^= 1;
            repair_checksum(&mut changed);
            let refused = Message::parse(&changed).err().map(|error| error.kind);
            assert!(!matches!(refused, Some(ParseErrorKind::Checksum { .. })), "byte {at}");
        }
    }
}
