//! Traces written by the format's own encoder, and what is read of them.

use std::fs;
use std::path::PathBuf;

use loggap_core::trace::{BlockHeader, DEFINITIONS, FileHeader, Outcome, Part};
use serde_json::json;

use super::testing::{block, defined, done, envelope, posted, sent};
use super::*;

fn file(rank: u32, ranks: u32, blocks: &[Vec<u8>]) -> Vec<u8> {
    let header = FileHeader { run: 5, rank, ranks }.emit().to_vec();
    let world = block(DEFINITIONS, &defined(0, 77, 0, 1, ranks));
    [&[header, world], blocks].concat().concat()
}

fn parsed(bytes: Vec<u8>) -> RankTrace {
    RankTrace::parse(PathBuf::from("0.trace"), bytes).unwrap()
}

fn call(name: u32, enter: u64, leave: u64) -> Part<'static> {
    Part::Call { name, enter, leave }
}

/// Two ranks: rank 0 sends 8 and 16 B with tag 3; rank 1 receives the first one from any source by
/// its second request, and waits for the other one first.
fn two_ranks() -> [Vec<u8>; 2] {
    let send = |bytes| sent(envelope(1, 3, bytes));
    let zero = [
        Part::Name("Send"),
        call(0, 100, 200),
        send(8),
        call(0, 300, 500),
        send(16),
        Part::Name("Finalize"),
        call(1, 900, 900),
    ];
    let posted = |request| posted(envelope(-1, 3, 64), request);
    let done = |request, bytes| done(request, Outcome::Received(envelope(0, 3, bytes)));
    let one = [
        Part::Name("Irecv"),
        call(0, 10, 20),
        posted(1),
        call(0, 30, 40),
        posted(2),
        Part::Name("Waitany"),
        call(1, 50, 510),
        done(2, 16),
        call(1, 520, 530),
        done(1, 8),
        Part::Name("Finalize"),
        call(2, 900, 900),
    ];
    [file(0, 2, &[block(0, &zero)]), file(1, 2, &[block(0, &one)])]
}

fn written(files: &[Vec<u8>]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (rank, bytes) in files.iter().enumerate() {
        fs::write(folder.path().join(format!("{rank}.trace")), bytes).unwrap();
    }
    let clock = |offset: i64| json!({ "at_ns": 0, "offset_ns": offset, "bound_ns": 1 });
    let ranks = files.len();
    let description = json!({
        "format": "loggap-trace", "schema_version": 1, "run": "0000000000000005", "ranks": ranks,
        "library": "none", "command": ["app"], "hosts": vec!["here"; ranks],
        "processors": vec![2; ranks], "bases_ns": vec![0; ranks],
        // Rank 1 is 1 us ahead.
        "clocks_begin": (0..ranks).map(|rank| clock(1_000 * rank as i64)).collect::<Vec<_>>(),
        "clocks_end": [], "cost_per_call_s": 4e-8, "clock_reads_s": 5e-8,
    });
    fs::write(folder.path().join("trace.json"), description.to_string()).unwrap();
    folder
}

#[test]
fn messages_are_paired_in_the_order_of_posting_and_not_of_completion() {
    let folder = written(&two_ranks());
    let trace = Trace::open(folder.path()).unwrap();
    let pairs = pairs(&trace).unwrap();
    let [first, second] = &pairs[..] else { panic!("{pairs:?}") };
    assert_eq!((first.bytes, first.sent, first.posted, first.received), (8, 100, -990, -470));
    assert_eq!((second.bytes, second.sent, second.posted, second.received), (16, 300, -970, -490));
    let merged: Vec<_> = trace.merged().map(|one| one.unwrap()).collect();
    let order: Vec<_> = merged.iter().map(|(rank, record)| (*rank, record.leave)).collect();
    let rank_one = [20, 40, 510, 530, 900].map(|leave| (1, leave));
    assert_eq!(order, [&rank_one[..], &[(0, 200), (0, 500), (0, 900)]].concat());
}

#[test]
fn more_ranks_than_processors_are_told() {
    let file = |ranks| (0..ranks).map(|rank| file(rank, ranks, &[])).collect::<Vec<_>>();
    let crowded = |ranks| {
        let folder = written(&file(ranks));
        Trace::open(folder.path()).unwrap().crowded_host().map(str::to_owned)
    };
    assert_eq!((crowded(2), crowded(3)), (None, Some("here".to_owned())));
}

#[test]
fn a_summary_has_calls_bytes_and_times() {
    let folder = written(&two_ranks());
    let summary = Summary::of(&Trace::open(folder.path()).unwrap()).unwrap();
    assert_eq!((summary.calls, summary.messages, summary.bytes_sent), (8, 2, 24));
    assert_eq!((summary.unmatched, summary.unfinished), (0, 0));
    let of = |name: &str| (summary.calls_by_name[name].calls, summary.calls_by_name[name].mpi_s);
    assert_eq!(of("Irecv"), (2, 2.0 * 1e-8));
    let zero = &summary.by_rank[0];
    assert!((zero.mpi_s - 3e-7).abs() < 1e-15 && (zero.compute_s - 6e-7).abs() < 1e-15, "{zero:?}");
    assert!(zero.is_finished);
}

#[test]
fn what_is_not_complete_and_what_has_one_end_is_found() {
    let zero = [Part::Name("Irecv"), call(0, 10, 20), posted(envelope(1, 9, 64), 1)];
    let one = [Part::Name("Ssend"), call(0, 10, 20), sent(envelope(0, 4, 1))];
    let folder = written(&[file(0, 2, &[block(0, &zero)]), file(1, 2, &[block(0, &one)])]);
    let summary = Summary::of(&Trace::open(folder.path()).unwrap()).unwrap();
    assert_eq!((summary.unmatched, summary.unfinished), (1, 1));
    let [unfinished] = &summary.unfinished_list[..] else { panic!() };
    assert_eq!((unfinished.rank, &unfinished.call[..], unfinished.posted), (0, "Irecv", 10));
    let [Unmatched { key, sends: 1, receives: 0 }] = summary.unmatched_list[..] else { panic!() };
    assert_eq!((key.from, key.to, key.tag, key.communicator), (1, 0, 4, 77));
}

#[test]
fn a_file_is_read_to_its_last_whole_block_and_threads_are_merged() {
    let calls = |times: [u64; 2]| {
        let [early, late] = times;
        [Part::Name("Barrier"), call(0, early, early + 1), call(0, late, late + 1)]
    };
    let blocks =
        [block(0, &calls([10, 30])), block(1, &calls([20, 60])), block(0, &calls([40, 50]))];
    let whole = file(0, 1, &blocks);
    let enters =
        |rank: &RankTrace| rank.records().map(|record| record.unwrap().enter).collect::<Vec<_>>();
    assert_eq!(enters(&parsed(whole.clone())), [10, 20, 30, 40, 50, 60]);
    let last = blocks[2].len();
    for missing in 1..=last {
        let rank = parsed(whole[..whole.len() - missing].to_vec());
        assert_eq!((rank.cut(), enters(&rank)), (last - missing, vec![10, 20, 30, 60]));
    }
}

/// Block of a thread that calls `Barrier` 1,000 times from `from` on, every 10 ns.
fn barriers(from: u64) -> Vec<u8> {
    let calls = (0..1_000).map(|at| call(0, from + 10 * at, from + 10 * at + 1));
    block(0, &[Part::Name("Barrier")].into_iter().chain(calls).collect::<Vec<_>>())
}

/// The same block, compressed, whose header says that it has `length` bytes.
fn compressed(block: &[u8], length: impl Fn(u32) -> u32) -> Vec<u8> {
    let (header, parts) = block.split_at(BlockHeader::LEN);
    let BlockHeader { thread, base, length: was, .. } = BlockHeader::parse(header).unwrap();
    let stored = lz4_flex::block::compress(parts);
    assert!(4 * stored.len() < parts.len());
    let header = BlockHeader::compressed(thread, base, length(was), &stored).emit();
    [&header[..], &stored].concat()
}

#[test]
fn compressed_blocks_are_read_as_others_and_cut_ones_are_not() {
    let raw = [barriers(5), barriers(20_000)];
    let packed = raw.clone().map(|block| compressed(&block, |length| length));
    let read = |blocks: &[Vec<u8>]| {
        let rank = parsed(file(0, 1, blocks));
        (rank.cut(), rank.records().map(|one| one.unwrap().enter).collect::<Vec<_>>())
    };
    let whole = read(&raw);
    assert_eq!(whole.1.len(), 2_000);
    assert_eq!(read(&packed), whole);
    assert_eq!(read(&[packed[0].clone(), raw[1].clone()]), whole);
    for at in 0..packed[1].len() {
        let mut wrong = packed.clone();
        wrong[1].truncate(at);
        assert_eq!(read(&wrong), (at, whole.1[..1_000].to_vec()));
        // The thread, the base and what the header need not say are not in the checksum.
        if (12..20).contains(&at) || at >= BlockHeader::LEN {
            wrong[1] = packed[1].clone();
            wrong[1][at] ^= 1;
            assert_eq!(read(&wrong), (packed[1].len(), whole.1[..1_000].to_vec()));
        }
    }
}

#[test]
fn lengths_that_are_not_those_of_the_data_are_refused() {
    let errors = |block| {
        let rank = parsed(file(0, 1, &[block]));
        let errors = rank.records().map(|one| one.unwrap_err().to_string()).collect::<Vec<_>>();
        (rank.cut() > 0, errors)
    };
    let refused = "'0.trace': record 0: compressed data out of range at byte 0".to_owned();
    for length in [|length| length - 1, |length| length + 1, |_| 1 << 20] {
        assert_eq!(errors(compressed(&barriers(0), length)), (false, vec![refused.clone()]));
    }
    // More than is compressed, and less than is stored.
    for length in [|_| (1 << 20) + 1, |_| u32::MAX, |_| 1] {
        assert_eq!(errors(compressed(&barriers(0), length)), (true, Vec::new()));
    }
}

#[test]
fn more_names_than_mpi_has_are_refused() {
    let names: Vec<_> = (0..1_025).map(|number| format!("Call{number}")).collect();
    let parts: Vec<_> = names.iter().map(|name| Part::Name(name)).chain([call(0, 1, 2)]).collect();
    let read = |parts: &[Part<'_>]| {
        parsed(file(0, 1, &[block(0, parts)])).records().filter(Result::is_ok).count()
    };
    assert_eq!([read(&parts[1..]), read(&parts)], [1, 0]);
}

#[test]
fn clocks_are_interpolated_between_begin_and_end() {
    let folder = written(&two_ranks());
    let path = folder.path().join("trace.json");
    let mut description: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let mut opened = |key: &str, at: i64, offset: i64| {
        let clock = |offset: i64| json!({ "at_ns": at, "offset_ns": offset, "bound_ns": 1 });
        description[key] = json!([clock(0), clock(offset)]);
        fs::write(&path, description.to_string()).unwrap();
        Trace::open(folder.path()).unwrap()
    };
    let trace = opened("clocks_end", 1_000, 3_000);
    let times = [0, 500, 1_000].map(|nanos| trace.time(1, nanos));
    assert_eq!((times, trace.time(0, 500)), ([-1_000, -1_500, -2_000], 500));
    // Clocks that no machine has.
    for (offset, time) in [(i64::MAX, i64::MIN), (i64::MIN, i64::MAX)] {
        assert_eq!(opened("clocks_end", 1, offset).time(1, u64::MAX), time);
    }
    opened("clocks_begin", i64::MIN, i64::MIN);
    assert_eq!(opened("clocks_end", i64::MIN + 1, i64::MAX).time(1, u64::MAX), i64::MIN);
}

#[test]
fn numbers_that_no_program_reaches_are_summed_to_the_most() {
    let much = || sent(envelope(0, 3, u64::MAX));
    let tests = Part::Tests { name: 1, count: u64::MAX };
    let looped = Part::Loop { inside: 0, computing: 0 };
    let parts = [
        [Part::Name("Send"), Part::Name("Test")].as_slice(),
        &[call(0, 0, u64::MAX), much(), call(0, 0, u64::MAX), much()],
        &[call(1, 0, 5), looped, tests, tests],
    ];
    let rank = |rank| file(rank, 2, &[block(0, &parts.concat())]);
    let folder = written(&[rank(0), rank(1)]);
    let summary = Summary::of(&Trace::open(folder.path()).unwrap()).unwrap();
    assert_eq!((summary.calls, summary.bytes_sent), (u64::MAX, u64::MAX));
}

#[test]
fn missing_foreign_and_mixed_files_are_named() {
    let error = |folder: &tempfile::TempDir| Trace::open(folder.path()).unwrap_err().to_string();
    let folder = written(&two_ranks());
    fs::copy(folder.path().join("0.trace"), folder.path().join("1.trace")).unwrap();
    assert!(error(&folder).contains("1.trace' is of rank 0 of 2 in run "));
    fs::write(folder.path().join("1.trace"), "something else").unwrap();
    assert!(error(&folder).contains("1.trace': record 0: not a file that the tracer wrote"));
    fs::remove_file(folder.path().join("1.trace")).unwrap();
    assert!(error(&folder).contains("1.trace': No such file"));
    let path = folder.path().join("trace.json");
    let whole = fs::read_to_string(&path).unwrap();
    // A list that is too short, and would lose a rank.
    for (list, short) in [(r#""hosts":["here","here"]"#, r#""hosts":["here"]"#), ("[0,0]", "[0]")] {
        assert!(whole.contains(list), "{whole}");
        fs::write(&path, whole.replace(list, short)).unwrap();
        assert!(error(&folder).contains("a list is not as long as there are ranks"));
    }
    fs::write(&path, "{}").unwrap();
    assert!(error(&folder).contains("trace.json' is not the description of a trace"));
}
