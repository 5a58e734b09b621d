//! `loggap-mpi trace`: programs in C and Fortran, and what their traces say.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a wrong assumption should end the test"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{is_open_mpi, ranks, ranks_on, run};
use loggap::schedule::TraceSchedule;
use loggap::trace::convert::{Conversion, Input, Options, Strictness};
use loggap::trace::extrapolate::{Extrapolation, Grid, Scaling};
use loggap::trace::{AlgorithmUse, Communicator, Record, Summary, Trace, What, pairs};
use loggap_core::goal::{Edge, Misuse, Op, OpKind, Sink};
use loggap_core::trace::{Direction, Envelope, Outcome};
use loggap_tests::command::{Ended, Run as _, loggap, skipped};
use serde_json::Value;

/// A folder, and in it a program that the compiler of the MPI under test made.
struct Program {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Program {
    /// Compiles a program of `traced`; `None` without a compiler.
    fn compiled(source: &str, options: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let path = common::compiled(source, options, folder.path())?;
        Some(Self { folder, path })
    }

    fn directory(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    /// Traces the program, with an algorithm of broadcasts that it is told to take.
    fn traced(&self, count: u32, arguments: &[&str]) -> Ended {
        // Ranks that poll would wait for each other's turns of 100 ms where they are more than processors.
        let mut command = if count > 2 { ranks_on("0,1", count) } else { ranks(count) };
        command.env("OMPI_MCA_coll_tuned_use_dynamic_rules", "true");
        command.env("OMPI_MCA_coll_tuned_bcast_algorithm", "pipeline");
        command.env("MPIR_CVAR_DEVICE_COLLECTIVES", "none");
        command.env("MPIR_CVAR_BCAST_INTRA_ALGORITHM", "scatter_ring_allgather");
        run(self.under(&mut command).args(arguments))
    }

    /// The command with the arguments that trace the program.
    fn under<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.args(["trace", "-o"]).arg(self.directory()).arg("--").arg(&self.path)
    }

    fn trace(&self) -> Trace {
        Trace::open(&self.directory()).unwrap()
    }

    fn summary(&self) -> Summary {
        summary_of(&self.directory())
    }

    /// The trace of a run that succeeds, nothing of which is missing.
    fn whole_trace(&self, count: u32) -> (Trace, Summary) {
        let ended = self.traced(count, &["none"]).exited(0);
        assert!(ended.stderr.contains("% of the run"), "{}", ended.stderr);
        let trace = self.trace();
        let summary = Summary::of(&trace).unwrap();
        let (unmatched, unfinished) = (&summary.unmatched_list, &summary.unfinished_list);
        assert!(unmatched.is_empty() && unfinished.is_empty(), "{unmatched:?} {unfinished:?}");
        assert!(summary.by_rank.iter().all(|rank| rank.is_finished && rank.cut_bytes == 0));
        (trace, summary)
    }
}

fn summary_of(directory: &Path) -> Summary {
    Summary::of(&Trace::open(directory).unwrap()).unwrap()
}

fn records<'t>(trace: &'t Trace, rank: usize, call: &str) -> Vec<Record<'t>> {
    let all = trace.ranks()[rank].records().map(Result::unwrap);
    all.filter(|record| record.call == call).collect()
}

/// The only record of a call at a rank.
fn only<'t>(trace: &'t Trace, rank: usize, call: &str) -> Record<'t> {
    let mut all = records(trace, rank, call);
    assert_eq!(all.len(), 1, "{call}: {all:?}");
    all.remove(0)
}

/// Direction, peer, tag and bytes of the messages of a record, and whether they have requests.
fn messages(record: &Record<'_>) -> Vec<(Direction, i32, i32, u64, bool)> {
    let What::Messages(all) = &record.what else { panic!("{record:?}") };
    let of = |one: &loggap_core::trace::Message| {
        let Envelope { peer, tag, bytes, .. } = one.envelope;
        (one.direction, peer, tag, bytes, one.request.is_some())
    };
    all.iter().map(of).collect()
}

/// Peer, tag and bytes of the receives that a record completed, and the number of all operations.
fn completed(record: &Record<'_>) -> (Vec<(i32, i32, u64)>, usize) {
    let What::Completions(all) = &record.what else { panic!("{record:?}") };
    let received = all.iter().filter_map(|one| match one.outcome {
        Outcome::Received(Envelope { peer, tag, bytes, .. }) => Some((peer, tag, bytes)),
        _ => None,
    });
    (received.collect(), all.len())
}

/// The communicator that a call made.
fn made<'t>(trace: &'t Trace, rank: usize, call: &str) -> &'t Communicator {
    let What::Communicator { number, freed: false } = only(trace, rank, call).what else {
        panic!()
    };
    trace.ranks()[rank].communicator(number).unwrap()
}

use Direction::{Receive, Send};

#[test]
fn calls_of_all_kinds_are_recorded_with_ranks_of_the_world() {
    let program = Program::compiled("calls.c", &["-w"]).unwrap();
    let (trace, summary) = program.whole_trace(4);
    // 20 in turns, 8 both ways, 4 immediate, 8 persistent, 6 probed, 4 to themselves, 2 in halves.
    assert_eq!(summary.messages, 20 + 8 + 4 + 8 + 6 + 4 + 2);
    blocking_and_immediate(&trace);
    probes(&trace);
    communicators(&trace);
    collectives(&trace);
    algorithms(&summary);
    assert!(only(&trace, 0, "(off)").enter < only(&trace, 0, "(on)").enter);
    let pairs = pairs(&trace).unwrap();
    assert_eq!(pairs.len() as u64, summary.messages);
    // A message is received after it was sent.
    assert!(pairs.iter().all(|pair| pair.received > pair.sent), "{pairs:?}");
    let command = trace.description().command.as_ref().unwrap();
    assert_eq!(command[1..], ["none"]);
}

fn blocking_and_immediate(trace: &Trace) {
    let sent: Vec<_> = records(trace, 0, "Send").iter().flat_map(messages).collect();
    assert_eq!(sent[2], (Send, 1, 1, 20, false));
    let received: Vec<_> = records(trace, 3, "Recv").iter().flat_map(messages).collect();
    assert_eq!(received[4], (Receive, 2, 1, 40, false));
    let both = messages(&only(trace, 2, "Sendrecv_replace"));
    assert_eq!(both, [(Send, 3, 9, 12, false), (Receive, 3, 9, 12, false)]);
    let (received, all) = completed(&only(trace, 1, "Waitall"));
    assert_eq!((all, received[0]), (4, (0, 5, 77)));
    let starts = records(trace, 0, "Startall");
    assert_eq!(messages(&starts[1]), [(Send, 1, 8, 5, true), (Receive, -1, 8, 5, true)]);
    // Receives from any source, of persistent ones too, say what they took.
    let waits = ["Waitall", "Waitany", "Waitsome"].map(|call| records(trace, 0, call)).concat();
    let taken: Vec<_> = waits.iter().flat_map(|record| completed(record).0).collect();
    let from_peer = taken.iter().filter(|(peer, tag, _)| *peer == 1 && [5, 8].contains(tag));
    assert_eq!(from_peer.count(), 3, "{taken:?}");
    let cancelled = records(trace, 0, "Wait");
    let What::Completions(one) = &cancelled[0].what else { panic!() };
    assert_eq!(one[0].outcome, Outcome::Cancelled);
}

fn probes(trace: &Trace) {
    let mut loops = records(trace, 2, "Iprobe");
    let found = loops.pop().unwrap();
    // 300 ms of probes are one record, or two where a second ended meanwhile.
    let mut probes = 0;
    for record in &loops {
        let What::Tests(folded) = &record.what else { panic!("{record:?}") };
        let [("Iprobe", count)] = folded.counts[..] else { panic!("{folded:?}") };
        assert!(folded.inside + folded.computing <= record.leave - record.enter, "{record:?}");
        probes += count;
    }
    assert!(loops.len() <= 3 && probes > 10, "{loops:?}");
    let What::Probe(Envelope { peer: 3, tag: 10, bytes: 21, .. }) = found.what else { panic!() };
    assert_eq!(messages(&only(trace, 2, "Mrecv")), [(Receive, 3, 11, 22, false)]);
}

fn communicators(trace: &Trace) {
    let halves: Vec<_> = (0..4).map(|rank| made(trace, rank, "Comm_split")).collect();
    assert_eq!(halves[0].members().collect::<Vec<_>>(), [2, 0]);
    assert_eq!(halves[1].members().collect::<Vec<_>>(), [3, 1]);
    assert!(halves[0].identity == halves[2].identity && halves[1].identity == halves[3].identity);
    let dup = made(trace, 0, "Comm_dup");
    assert!(halves[0].identity != halves[1].identity && halves[0].identity != dup.identity);
    assert_eq!(dup.identity, made(trace, 2, "Comm_dup").identity);
    let cart = made(trace, 0, "Cart_create");
    assert_eq!(cart.dimensions, [(2, true), (2, false)]);
    assert_eq!(cart.identity, made(trace, 3, "Cart_create").identity);
    // Rank 0 of the half is rank 2 of the world.
    let sent: Vec<_> = records(trace, 0, "Send").iter().flat_map(messages).collect();
    assert_eq!(sent[5..], [(Send, -2, 0, 1, false), (Send, 2, 6, 3, false)]);
}

fn collectives(trace: &Trace) {
    let of = |rank, call| match only(trace, rank, call).what {
        What::Collective { operation, sent, received } => (operation, sent, received),
        other => panic!("{other:?}"),
    };
    let (bcast, ..) = of(0, "Bcast");
    assert_eq!((bcast.root, bcast.sent), (Some(2), 100));
    let (reduced, ..) = of(1, "Allreduce");
    assert!(reduced.in_place && reduced.sent == 8);
    assert!(of(1, "Iallreduce").0.request.is_some());
    let (_, sent, received) = of(0, "Gatherv");
    assert_eq!((sent.runs(), received.runs()), (&[][..], &[(2, 0), (2, 4)][..]));
    let (there, _, received) = of(3, "Gatherv");
    assert!(there.sent == 4 && there.root == Some(0) && received.is_empty());
    let (_, sent, received) = of(0, "Neighbor_alltoallv");
    assert_eq!((sent.runs(), received.runs()), (&[(4, 3)][..], &[(4, 3)][..]));
}

fn algorithms(summary: &Summary) {
    let of = |operation: &str| {
        let is_it = |one: &&AlgorithmUse| one.operation == operation;
        summary.algorithms.iter().find(is_it).unwrap()
    };
    let (bcast, reduced) = (of("bcast"), of("allreduce"));
    assert_eq!((bcast.first_bytes, bcast.last_bytes, bcast.ranks, bcast.calls), (100, 100, 2, 4));
    if is_open_mpi() {
        assert_eq!(bcast.algorithm, Some("pipeline"));
        assert_eq!(reduced.algorithm, Some("recursive_doubling"));
    } else {
        assert_eq!(bcast.algorithm, Some("scatter_allgather_ring"));
        assert!(reduced.algorithm.is_none() && reduced.reason.as_ref().unwrap().contains("MPICH"));
    }
    assert_eq!(of("iallreduce").algorithm, None);
}

/// Calls of `every.c` that send no messages and that each rank makes once, and those that it makes more often. Calls of
/// loops are printed.
const ONCE: &str = "Cancel Probe Mprobe Mrecv Imrecv Send_init Bsend_init Ssend_init Rsend_init Ibarrier Pack Unpack
    Init_thread Finalize Comm_dup Comm_dup_with_info Comm_idup Comm_split_type Comm_create Comm_split Comm_disconnect
    Cart_create Cart_sub Graph_create Dist_graph_create Dist_graph_create_adjacent Intercomm_create Intercomm_merge
    Win_allocate Win_create Win_allocate_shared Win_create_dynamic Win_attach Win_detach Win_wait Win_lock Win_unlock
    Win_flush Win_flush_local Win_lock_all Win_unlock_all Win_flush_all Win_flush_local_all Win_sync
    File_open File_set_size File_preallocate File_get_size File_set_view File_write File_read File_write_all
    File_read_all File_write_at File_read_at File_write_at_all File_read_at_all File_iwrite File_iread File_iwrite_all
    File_iread_all File_iwrite_at File_iread_at File_iwrite_at_all File_iread_at_all File_write_all_begin
    File_write_all_end File_read_all_begin File_read_all_end File_write_ordered_begin File_write_ordered_end
    File_read_ordered_begin File_read_ordered_end File_write_at_all_begin File_write_at_all_end File_read_at_all_begin
    File_read_at_all_end File_seek File_seek_shared File_write_shared File_read_shared File_iwrite_shared
    File_iread_shared File_write_ordered File_read_ordered File_sync File_close";
const ONE_SIDED: &str =
    "Put Get Accumulate Get_accumulate Fetch_and_op Compare_and_swap Rput Rget Raccumulate
    Rget_accumulate";
const OFTEN: &str = "Irecv 29 Recv 3 Wait 52 Waitall 6 Waitany 2 Recv_init 4 Start 8 Startall 2 Request_free 9 Barrier 15
    Win_free 4 Win_fence 2 Win_post 2 Win_start 2 Win_complete 2";
/// Its collective operations, which also have an immediate form, and the ints that their send counts are on all ranks
/// together. From rank r to s go r + s ints in `Alltoallv`, in `Alltoallw` twice as many where that is odd;
/// `Reduce_scatter` has receive counts only.
const COLLECTIVES: &str = "Bcast 12 Gather 16 Gatherv 10 Scatter 5 Scatterv 10 Allgather 24 Allgatherv 10 Alltoall 28
    Alltoallv 48 Alltoallw 72 Reduce 32 Allreduce 36 Scan 40 Exscan 44 Reduce_scatter 0 Reduce_scatter_block 0
    Neighbor_allgather 52 Neighbor_allgatherv 10 Neighbor_alltoall 56 Neighbor_alltoallv 12 Neighbor_alltoallw 20";
/// Its calls that send messages, and the tags of these.
const SENDS: &str = "Send 1 Send 31-48 Send 62 Bsend 2 Ssend 3 Rsend 4 Isend 5 Isend 9-10 Isend 51-54 Ibsend 6 Issend 7
    Irsend 8 Start 11-14 Startall 11-14 Sendrecv 21 Sendrecv 71-80 Sendrecv_replace 22 Sendrecv_replace 63";
/// Operations between its two groups, if it is told to.
const BETWEEN: [&str; 5] = ["Barrier", "Bcast", "Allreduce", "Allgather", "Alltoallv"];

fn number(text: &str) -> u64 {
    text.parse().unwrap()
}

/// Names with numbers, or with all from the first to the last of several.
fn numbered(list: &str) -> Vec<(&str, u64)> {
    let words: Vec<_> = list.split_whitespace().collect();
    let numbers = |text| {
        let (first, last) = str::split_once(text, '-').unwrap_or((text, text));
        number(first)..=number(last)
    };
    words.chunks(2).flat_map(|pair| numbers(pair[1]).map(|one| (pair[0], one))).collect()
}

fn immediate(name: &str) -> String {
    format!("I{}", name.to_lowercase())
}

/// Sender, receiver, tag and bytes of the messages of `every.c` with a tag: each rank sends to the next one.
fn messages_of_every(tag: u64) -> Vec<[u64; 4]> {
    let rings: &[&[u64]] = match tag {
        75 => &[&[0, 1], &[2, 3]],
        77 => &[&[0, 1, 2]],
        78 => &[&[3, 1]],
        79 => &[&[2, 0, 3, 1]],
        80 => &[&[2, 3], &[0, 1]],
        _ => &[&[0, 1, 2, 3]],
    };
    let all = rings.iter().flat_map(|ring| ring.iter().zip(ring.iter().cycle().skip(1)));
    all.map(|(from, to)| [*from, *to, tag, 4 * tag]).collect()
}

/// Number of calls and bytes that are sent, by name, of `every.c`, which printed this.
fn calls_of_every(printed: &str) -> BTreeMap<String, [u64; 2]> {
    let mut all: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let mut add = |name: &str, calls, bytes| {
        let [known, sent] = all.entry(name.to_owned()).or_default();
        (*known, *sent) = (*known + calls, *sent + bytes);
    };
    let once = ONCE.split_whitespace().chain(ONE_SIDED.split_whitespace());
    once.for_each(|name| add(name, 4, 0));
    numbered(OFTEN).into_iter().for_each(|(name, calls)| add(name, 4 * calls, 0));
    numbered(printed).into_iter().for_each(|(name, calls)| add(name, calls, 0));
    for (name, tag) in numbered(SENDS) {
        for [_, _, _, bytes] in messages_of_every(tag) {
            add(name, u64::from(!name.starts_with("Start")), bytes);
            // Communicators of messages are freed.
            add("Comm_free", u64::from(tag > 70), 0);
        }
    }
    for (name, ints) in numbered(COLLECTIVES) {
        add(name, 4, 4 * ints);
        add(&immediate(name), 4, 4 * ints);
    }
    // On two more topologies, which are freed, as is that of the others.
    add("Neighbor_alltoall", 4, 4 * 4 * 15);
    add("Neighbor_allgather", 4, 4 * 4 * 16);
    add("Comm_free", 4 * 3, 0);
    // By some ranks.
    add("Comm_create_group", 2, 0);
    add("File_delete", 1, 0);
    all
}

/// Numbers of calls, bytes and messages are those of the lists above.
#[test]
fn every_call_is_recorded_by_name_and_counted() {
    let program = Program::compiled("every.c", &["-w"]).unwrap();
    let ended = program.traced(4, &[]).exited(0);
    let expected = calls_of_every(&ended.stdout);
    let trace = program.directory();
    let info = loggap().args(["trace", "info", "-J"]).arg(&trace).ends(0).json();
    let numbers = |one: &Value| ["calls", "bytes_sent"].map(|key| one[key].as_u64().unwrap());
    let by_name = info["calls_by_name"].as_object().unwrap();
    let found = by_name.iter().map(|(name, one)| (name.clone(), numbers(one)));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
    assert_eq!((&info["unmatched"], &info["unfinished"]), (&0.into(), &0.into()));

    let pairs = loggap().args(["trace", "export", "--format", "pairs"]).arg(&trace).ends(0).stdout;
    let rows: Vec<Vec<&str>> = pairs.lines().skip(1).map(|row| row.split(',').collect()).collect();
    let mut found: Vec<_> = rows.iter().map(|row| [0, 1, 2, 4].map(|at| number(row[at]))).collect();
    let sends = numbered(SENDS);
    let mut sent: Vec<_> = sends.iter().flat_map(|(_, tag)| messages_of_every(*tag)).collect();
    found.sort_unstable();
    sent.sort_unstable();
    assert_eq!(found, sent);
    // The world is that of all tags below 71; then one a tag, and of 75 two.
    let tags: BTreeSet<_> = rows.iter().map(|row| (number(row[2]).max(70), row[3])).collect();
    let distinct: BTreeSet<_> = tags.iter().map(|(_, communicator)| communicator).collect();
    assert_eq!((tags.len(), distinct.len()), (12, 12), "{tags:?}");
    converted_and_refused(&trace, &expected, &[]);

    let ended = program.traced(4, &["between"]).exited(0);
    let mut expected = calls_of_every(&ended.stdout);
    let between: Vec<_> =
        BETWEEN.iter().flat_map(|name| [(*name).to_owned(), immediate(name)]).collect();
    between.iter().for_each(|name| expected.get_mut(name).unwrap()[0] += 4);
    expected.get_mut("Wait").unwrap()[0] += 4 * 5;
    converted_and_refused(&trace, &expected, &between);
}

/// A schedule has all calls but those between groups, one-sided ones, files, and what was cancelled.
fn converted_and_refused(trace: &Path, calls: &BTreeMap<String, [u64; 2]>, between: &[String]) {
    let calls = calls.iter().map(|(name, [calls, _])| (name.clone(), *calls));
    let calls: BTreeMap<_, _> = calls.collect();
    let mut expected = BTreeMap::from([("Irecv cancelled".to_owned(), 4)]);
    for (name, count) in &calls {
        let is_one_sided = ONE_SIDED.split_whitespace().any(|one| one == name);
        if is_one_sided || name.starts_with("Win_") {
            let reason = "one-sided: its time is kept, its messages are not";
            expected.insert(format!("{name} {reason}"), *count);
        } else if name.starts_with("File_") {
            expected.insert(format!("{name} input and output: its time is kept"), *count);
        }
    }
    for name in between {
        expected.insert(format!("{name} collective between two groups"), 4);
    }
    let file = trace.join("every.lgs");
    let mut command = loggap();
    command.args(["goal", "from-trace", "-J", "-o"]).args([&file, trace]);
    let report = command.ends(0).json();
    let (mut all, mut refused) = (BTreeMap::new(), BTreeMap::new());
    for class in ["converted", "approximated", "refused"] {
        for line in report[class].as_array().unwrap() {
            let [name, reason] = ["call", "reason"].map(|key| line[key].as_str().unwrap_or(""));
            let count = line["calls"].as_u64().unwrap();
            *all.entry(name.to_owned()).or_default() += count;
            if class == "refused" {
                refused.insert(format!("{name} {reason}"), count);
            }
        }
    }
    assert_eq!((all, refused), (calls, expected));
    let checked = loggap().args(["goal", "check", "-J"]).arg(&file).ends(0).json();
    assert_eq!((&checked["errors"], &checked["warnings"]), (&0.into(), &0.into()), "{checked}");
    let mut command = loggap();
    command.args(["simulate", "--preset", "ompi-ib-sdr", "-J", "--trace"]).arg(trace);
    assert_eq!(command.ends(0).json()["ranks"], 4);
}

/// A file of rules that the library read is in the trace, and counts.
#[test]
fn rules_that_the_library_read_are_in_the_trace() {
    if !is_open_mpi() {
        return skipped("rules of a traced run", "MPICH has no such file");
    }
    let program = Program::compiled("solvers.c", &["-O1"]).unwrap();
    let rules = program.folder.path().join("rules");
    // Allreduce (2) on 2 ranks and more: linear (1).
    fs::write(&rules, "1\n2\n1\n2 1\n0 1 0 0\n").unwrap();
    let mut command = ranks(2);
    command.env("OMPI_MCA_coll_tuned_use_dynamic_rules", "1");
    command.env("OMPI_MCA_coll_tuned_dynamic_rules_filename", &rules);
    let _traced = run(program.under(&mut command).args(["cg", "64", "5"])).exited(0);
    let summary = program.summary();
    let used = summary.algorithms.iter().find(|one| one.operation == "allreduce").unwrap();
    assert_eq!((used.algorithm, &used.reason), (Some("basic_linear"), &None));
}

#[test]
fn calls_with_large_counts_are_recorded_as_the_others() {
    if is_open_mpi() {
        return skipped("calls with MPI_Count", "Open MPI 4 has none");
    }
    let program = Program::compiled("large.c", &[]).unwrap();
    let (trace, summary) = program.whole_trace(2);
    assert_eq!(messages(&only(&trace, 0, "Send")), [(Send, 1, 3, 96, false)]);
    assert_eq!(messages(&records(&trace, 1, "Recv")[0]), [(Receive, 0, 3, 96, false)]);
    assert_eq!((summary.messages, summary.calls_by_name["Isend"].calls), (3, 2));
    let What::Collective { sent, received, .. } = only(&trace, 1, "Alltoallv").what else {
        panic!()
    };
    let both = [sent, received].map(|counts| counts.iter().collect::<Vec<_>>());
    assert_eq!(both, [vec![16, 24], vec![16, 24]]);
}

#[test]
fn programs_in_fortran_are_seen_in_both_interfaces() {
    for source in ["f90.f90", "f08.f90"] {
        let Some(program) = Program::compiled(source, &[]) else { return };
        let (trace, summary) = program.whole_trace(2);
        assert_eq!(summary.messages, 6, "{source}");
        let (received, all) = completed(&only(&trace, 0, "Waitall"));
        assert_eq!((&received[..], all), (&[(1, 3, 40)][..], 2), "{source}");
        let both = messages(&only(&trace, 1, "Sendrecv"));
        assert_eq!(both, [(Send, 0, 4, 28, false), (Receive, 0, 4, 28, false)], "{source}");
        // Waitany and Testany have one each.
        let one = |call| {
            records(&trace, 0, call)
                .into_iter()
                .find(|one| one.calls() > 0 && matches!(one.what, What::Completions(_)))
                .unwrap()
        };
        let found = [completed(&one("Waitany")), completed(&one("Testany"))];
        let received: Vec<_> = found.iter().flat_map(|(received, _)| received.clone()).collect();
        assert_eq!(received, [(1, 5, 20)], "{source}");
        let members: Vec<_> = made(&trace, 0, "Comm_split").members().collect();
        assert_eq!(members, [1, 0], "{source}");
        let What::Collective { operation, .. } = only(&trace, 0, "Allreduce").what else {
            panic!()
        };
        assert!(operation.in_place && operation.sent == 12, "{source}: {operation:?}");
        let What::Collective { operation, .. } = only(&trace, 0, "Bcast").what else { panic!() };
        assert_eq!((operation.root, operation.sent), (Some(1), 8), "{source}");
        let What::Collective { operation, .. } = only(&trace, 0, "Gather").what else { panic!() };
        assert!(operation.in_place && operation.sent == 0 && operation.received == 16, "{source}");
    }
}

#[test]
fn threads_have_streams_and_their_messages_match() {
    let program = Program::compiled("threads.c", &["-pthread"]).unwrap();
    let (trace, summary) = program.whole_trace(2);
    assert_eq!(summary.messages, 8_000 + 2_000);
    assert!(summary.by_rank.iter().all(|rank| rank.threads == 1_002));
    for rank in trace.ranks() {
        let all: Vec<_> = rank.records().map(Result::unwrap).collect();
        assert!(all.is_sorted_by_key(|record| record.leave));
        let sends = |thread| {
            let of = all.iter().filter(|one| one.thread == thread && one.call == "Isend");
            of.count()
        };
        assert_eq!([sends(0), sends(1)], [2_000; 2]);
        let brief = all.iter().filter(|one| one.call == "Sendrecv").map(|one| one.thread);
        let mut brief: Vec<_> = brief.collect();
        brief.sort_unstable();
        assert!(brief.into_iter().eq(2..1_002));
    }
}

#[test]
fn a_program_that_exits_or_is_killed_leaves_what_it_did() {
    let program = Program::compiled("ending.c", &[]).unwrap();
    for (how, least) in [("exit", 20_000), ("abort", 20_000), ("fork", 20_000), ("kill", 10_000)] {
        let _code_of_mpirun = program.traced(1, &[how]);
        let summary = program.summary();
        let rank = &summary.by_rank[0];
        assert!(rank.messages >= least && rank.is_finished == (how == "fork"), "{how}: {rank:?}");
        assert_eq!(summary.unmatched, 0, "{how}");
        if how == "kill" {
            // All but the last second.
            assert!(rank.span_s > 0.8, "{rank:?}");
        } else {
            assert_eq!((rank.cut_bytes, summary.unfinished), (0, 1), "{how}");
        }
    }
}

#[test]
fn what_cannot_be_traced_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("plain.c");
    fs::write(&source, "int main(void) { return 0; }").unwrap();
    let ended = |options: &[&str]| {
        let path = folder.path().join("plain");
        let compiled = Command::new("cc").arg(&source).args(options).arg("-o").arg(&path).status();
        assert!(compiled.unwrap().success());
        // The second rank waits for seconds, for the first one to be the one that says it.
        run(ranks(2).args(["trace", "--"]).arg(&path).current_dir(&folder))
    };
    let fixed = ended(&["-static"]);
    assert!(
        fixed.code != Some(0) && fixed.stderr.contains("linked statically"),
        "{}",
        fixed.stderr
    );
    assert_eq!(fixed.stderr.matches("error: '").count(), 1, "{}", fixed.stderr);
    let without = ended(&[]);
    assert_eq!(without.code, Some(0), "{}", without.stderr);
    assert_eq!(without.stderr.matches("ended without MPI_Init").count(), 1, "{}", without.stderr);
    // One that closes its standard error at its end.
    let folder = tempfile::tempdir().unwrap();
    let echo = run(ranks(1).args(["trace", "--", "/bin/echo"]).current_dir(&folder));
    assert!(echo.stderr.contains("ended without MPI_Init"), "{}", echo.stderr);
    let program = Program::compiled("ending.c", &[]).unwrap();
    let (variable, said) = match is_open_mpi() {
        true => ("MPI_LOCALNRANKS", "was started by the mpirun of MPICH"),
        false => ("OMPI_COMM_WORLD_SIZE", "was started by the mpirun of Open MPI"),
    };
    let mut alone = Command::new(common::binary());
    alone.args(["trace", "--"]).arg(&program.path).env(variable, "2").current_dir(&folder);
    let ended = alone.ended();
    assert!(ended.code == Some(2) && ended.stderr.contains(said), "{}", ended.stderr);
}

/// Wrappers that become the program, and a shell that starts it and goes on.
#[test]
fn programs_are_traced_behind_wrappers() {
    let program = Program::compiled("ending.c", &[]).unwrap();
    let path = program.path.to_str().unwrap();
    let script = format!("{path} none; exit $?");
    for wrapped in
        [&["env", "WRAPPED=1", "taskset", "-c", "0", path, "none"][..], &["sh", "-c", &script]]
    {
        let mut command = ranks(1);
        command.args(["trace", "--no-arguments", "-o"]).arg(program.directory()).arg("--");
        let ended = run(command.args(wrapped)).exited(0);
        assert!(!ended.stderr.contains("MPI_Init"), "{}", ended.stderr);
        let trace = program.trace();
        let rank = &Summary::of(&trace).unwrap().by_rank[0];
        assert!(rank.is_finished && rank.messages >= 20_000, "{wrapped:?}: {rank:?}");
        assert_eq!(trace.description().command.as_deref(), Some(&[wrapped[0].to_owned()][..]));
    }
}

#[test]
fn a_full_disk_ends_the_trace_and_not_the_program() {
    let program = Program::compiled("ending.c", &[]).unwrap();
    fs::create_dir(program.directory()).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=60k none '{0}' && {1} trace -o '{0}' -- '{2}' none; \
         status=$?; cp -r '{0}' '{0}.kept'; exit $status",
        program.directory().display(),
        common::binary(),
        program.path.display()
    );
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &script]);
    if !Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|ended| ended.success()) {
        return skipped("a trace on a full disk", "unshare -rm is not allowed");
    }
    let ended = run(command.stderr(std::process::Stdio::piped())).exited(0);
    let said = "rank 0: the trace ends here: cannot write its file: No space left";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    let last = ended.stderr.trim_end();
    assert!(last.ends_with("incomplete: 1 of 1 files of ranks end early or are missing"), "{last}");
    let kept = program.directory().with_extension("kept");
    let summary = summary_of(&kept);
    assert!(summary.messages > 5_000 && summary.by_rank[0].cut_bytes == 0, "{summary:?}");
}

#[test]
fn clocks_of_ranks_that_read_one_agree_within_the_bounds() {
    let program = Program::compiled("calls.c", &["-w"]).unwrap();
    let mut command = ranks(4);
    let _traced = run(program.under(command.env("LOGGAP_TRACE_CLOCKS", "rank"))).exited(0);
    let trace = program.trace();
    let description = trace.description();
    let bases = &description.bases_ns;
    for clocks in [&description.clocks_begin, &description.clocks_end] {
        for (rank, clock) in clocks.iter().enumerate().skip(1) {
            let truth = bases[0].wrapping_sub(bases[rank]).cast_signed();
            assert!((clock.offset_ns - truth).abs() <= clock.bound_ns, "{rank}: {clock:?} {truth}");
            assert!((1..1_000_000_000).contains(&clock.bound_ns), "{clock:?}");
        }
    }
}

/// Rank 0 reads the library's variables, which takes 0.2 s: no other runs ahead meanwhile.
#[test]
fn ranks_leave_init_together() {
    let program = Program::compiled("ending.c", &[]).unwrap();
    let apart = || {
        let _traced = program.traced(2, &["none"]).exited(0);
        let trace = program.trace();
        let [one, other] = [0, 1].map(|rank: u32| {
            let init = only(&trace, rank as usize, "Init");
            trace.time(rank, init.leave)
        });
        one.abs_diff(other)
    };
    // Processors may be busy.
    assert!((0..5).any(|_| apart() < 100_000_000));
}

/// What starts so many ranks.
fn launcher(ranks: u32) -> String {
    let oversubscribe = if is_open_mpi() { "--oversubscribe " } else { "" };
    format!("{} {oversubscribe}-n {ranks}", common::mpirun())
}

/// `loggap-mpi check --app` with `options`, two ranks and a program.
fn check_app(options: &[&str], program: &[&str]) -> Command {
    check_app_on(2, options, program)
}

/// The same with so many ranks.
fn check_app_on(ranks: u32, options: &[&str], program: &[&str]) -> Command {
    let mut command = Command::new(common::binary());
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(["check", "--app", "--launcher", &launcher(ranks)]).args(options);
    command.arg("--").args(program);
    common::piped(&mut command);
    command
}

#[test]
fn a_program_is_predicted_from_its_trace_and_measured() {
    let program = Program::compiled("solvers.c", &["-O1"]).unwrap();
    let path = program.path.to_str().unwrap();
    let kept = program.directory();
    let options = ["-J", "--keep", kept.to_str().unwrap()];
    let found = common::document(&mut check_app(&options, &[path, "cg", "400", "200"]));
    let number = |name: &str| found[name].as_f64().unwrap_or_else(|| panic!("{name}: {found}"));
    let [low, measured, high] = ["measured_s_lo", "measured_s", "measured_s_hi"].map(number);
    assert!(0.0 < low && low <= measured && measured <= high, "{found}");
    assert_eq!(found["runs"], 6);
    assert!(number("eager_limit_bytes") > 100.0, "{found}");
    // The profile's intervals are part of that of the prediction.
    let half = number("profile_half");
    let [low, predicted, high] = ["predicted_s_lo", "predicted_s", "predicted_s_hi"].map(number);
    assert!(half > 0.0 && high / predicted - 1.0 >= half * 0.999 && low < predicted, "{found}");
    // Computing is of the trace, without what recording it took: 1,600 calls of 50 ns or more.
    let of_first = |name: &str| found["by_rank"][0][name].as_f64().unwrap();
    let (computed, predicted) = (of_first("compute_s"), of_first("predicted_compute_s"));
    assert!((predicted - computed).abs() < 2e-6, "{found}");
    assert!(of_first("tracer_s") > 20e-6, "{found}");
    assert!(number("predicted_s") > predicted && number("free_network_s") <= number("predicted_s"));
    assert!(number("free_network_s") >= predicted * 0.99, "{found}");
    assert_eq!(
        (found["refused_share"].to_string(), &found["ranks"]),
        ("0.0".to_owned(), &2.into())
    );
    assert!(["agree", "differ", "cannot_tell"].contains(&found["verdict"].as_str().unwrap()));
    // A step has two messages and two collectives.
    for rank in found["by_rank"].as_array().unwrap() {
        let of = |name: &str| rank[name].as_f64().unwrap();
        for (all, part) in
            [("mpi_s", "collective_s"), ("predicted_mpi_s", "predicted_collective_s")]
        {
            assert!(0.0 < of(part) && of(part) < of(all), "{rank}");
        }
    }
    let summary = summary_of(&kept.join("trace-1"));
    assert_eq!((summary.messages, summary.calls_by_name["Allreduce"].calls), (400, 802));
    // Nothing between the ends is in runs that are not traced.
    let ends = summary_of(&kept.join("ends"));
    assert_eq!((ends.calls, ends.messages), (4, 0), "{ends:?}");
}

#[test]
fn a_program_that_cannot_be_checked_is_refused_with_what_it_said() {
    let profile = ["--profile", "/nonexistent.json"];
    for (options, program, code, said) in [
        (&profile[..], &["true"][..], 2, "/nonexistent.json"),
        (&["--runs", "5"], &["true"], 2, "5 is not in 6..=1000"),
        (&["--op", "bcast"], &["true"], 2, "'--app' cannot be used with '--op"),
        (&["--max-time", "1s"], &["true"], 2, "cannot be used with"),
    ] {
        let mut command = check_app(options, program);
        let ended = run(&mut command);
        assert_eq!((ended.code, &*ended.stdout), (Some(code), ""), "{options:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{options:?}: {}", ended.stderr);
    }
    let mut alone = Command::new(common::binary());
    alone.args(["check", "--app", "--launcher", "/nonexistent -n 2", "--", "true"]);
    common::piped(&mut alone);
    let ended = run(&mut alone);
    assert!(ended.code == Some(2) && ended.stderr.contains("cannot start '/nonexistent'"));
    // What a job says of its failure on either stream.
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("job");
    fs::write(&script, "echo because; echo alas >&2; exit 3").unwrap();
    let mut failing = Command::new(common::binary());
    let launcher = format!("sh {}", script.display());
    failing.args(["check", "--app", "--launcher", &launcher, "--", "true"]);
    common::piped(&mut failing);
    let ended = run(&mut failing);
    assert!(ended.code == Some(1) && ended.stderr.contains("because\n  alas"), "{}", ended.stderr);
    let mut as_rank = ranks(1);
    let ended = run(as_rank.args(["check", "--app", "--", "true"]));
    assert!(ended.stderr.contains("--app starts the jobs itself"), "{}", ended.stderr);
}

#[test]
fn more_ranks_than_processors_are_refused_before_anything_is_measured() {
    let processors = Command::new("getconf").arg("_NPROCESSORS_ONLN").ended().stdout;
    let ranks = processors.trim().parse::<u32>().unwrap() + 1;
    if ranks > 16 {
        return skipped("more ranks than processors", "there are too many processors");
    }
    let folder = tempfile::tempdir().unwrap();
    let keep = ["--keep", folder.path().to_str().unwrap()];
    let crowded = launcher(ranks);
    let traced_so = [&keep[..], &["--trace-launcher", &crowded]].concat();
    let unbound = if is_open_mpi() { " --bind-to none" } else { "" };
    let on_one = format!("taskset -c 0 {}{unbound}", launcher(2));
    let traced_on_one = [&keep[..], &["--trace-launcher", &on_one]].concat();
    for mut command in [
        check_app_on(ranks, &keep, &["true"]),
        check_app_on(2, &traced_so, &["true"]),
        check_app_on(2, &traced_on_one, &["true"]),
    ] {
        let ended = run(&mut command);
        assert_eq!(ended.code, Some(5), "{}", ended.stderr);
        assert!(ended.stderr.contains("more ranks than processors"), "{}", ended.stderr);
        assert!(!folder.path().join("profile.json").exists());
    }
}

#[test]
fn progress_shows_whether_messages_move_beside_computing() {
    // The third sleeps.
    let mut command = ranks(3);
    let found = common::document(command.args(["progress", "-s", "1K,1M", "-J"]));
    let rows = found["rows"].as_array().unwrap();
    let sizes: Vec<_> = rows.iter().map(|row| row["size_bytes"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [1_024, 1_048_576]);
    for row in rows {
        let of = |name: &str| row[name].as_f64().unwrap();
        assert!(of("time_s") > 0.0 && of("compute_s") > of("time_s"), "{row}");
        assert!(of("wait_s") > 0.0 && of("beside_sender_s") > 0.0, "{row}");
        for time in ["time_s", "wait_s", "beside_sender_s"] {
            let [low, high] = ["_lo", "_hi"].map(|end| of(&format!("{time}{end}")));
            assert!(low <= of(time) && of(time) <= high, "{row}");
        }
    }
    // An eager message leaves before its sender computes.
    let of_first = |name: &str| rows[0][name].as_f64().unwrap();
    for time in ["time_s", "beside_sender_s"] {
        assert!(of_first(time) < 0.8 * of_first("compute_s"), "{found}");
    }
    // The limits are those of the libraries' shared memory: 4 KiB and more, less a header.
    let limit = found["eager_limit_bytes"].as_u64().unwrap();
    assert!((1_024..=65_536).contains(&limit), "{found}");
    let ended = run(ranks(1).args(["progress"]));
    assert!(ended.stderr.contains("progress takes two ranks"), "{}", ended.stderr);
}

/// Messages of each rank of a schedule.
#[derive(Debug, Default, PartialEq)]
struct Messages(Vec<Vec<OpKind>>);

impl Messages {
    fn of(schedule: impl Into<TraceSchedule>) -> Self {
        let mut all = Self::default();
        schedule.into().feed(&mut all).unwrap();
        all
    }
}

impl Sink for Messages {
    type Error = Misuse;

    fn begin_rank(&mut self, _rank: u32) -> Result<(), Misuse> {
        self.0.push(Vec::new());
        Ok(())
    }

    fn op(&mut self, mut op: Op) -> Result<u32, Misuse> {
        if let OpKind::Send { tag, .. } | OpKind::Receive { tag, .. } = &mut op.kind {
            // Of communicators only whether they are the world: there are more of parts on more ranks.
            *tag = *tag % (1 << 32) + ((*tag >> 32).min(1) << 32);
            self.0.last_mut().unwrap().push(op.kind);
        }
        Ok(0)
    }

    fn edge(&mut self, _edge: Edge) -> Result<(), Misuse> {
        Ok(())
    }
}

/// Programs whose traces on few ranks, extrapolated, are those on more, message for message: the
/// smaller trace is held out and has to give the larger one, else this is refused. Messages from
/// outside of collectives are those of the programs' source. A grid of 2x2 has no rank between two.
#[test]
fn traces_on_few_ranks_are_extrapolated_to_what_programs_do_on_more() {
    let grids = [["2", "2"], ["4", "4"]];
    let rings = [["3", "3"], ["4", "4"]];
    let lines = [["1", "4"], ["1", "8"]];
    for (name, traced, scaling, messages) in [
        ("stencil", grids, ["--grid", "8x8"], 2 * 4 * 7 * 8),
        ("torus", rings, ["--grid", "8x8"], 2 * 4 * 64),
        ("wavefront", grids, ["--grid", "8x8"], 2 * 8 * 3 * 2 * 7 * 8),
        ("ring", lines, ["--to-ranks", "64"], 2 * 64),
        ("tree", lines, ["--to-ranks", "64"], 2 * 2 * 63),
    ] {
        let program = Program::compiled("scaled.c", &[]).unwrap();
        // Each process has its ranks.
        let mut command = ranks(2);
        command.arg("simulate");
        for [x, y] in traced {
            let count = x.parse::<u32>().unwrap() * y.parse::<u32>().unwrap();
            let directory = program.folder.path().join(format!("on{count}"));
            let mut traced = ranks(count);
            traced.args(["trace", "-o"]).arg(&directory).arg("--").arg(&program.path);
            let _traced = run(traced.args([name, x, y, "2"])).exited(0);
            command.arg("--trace").arg(directory);
        }
        if traced == grids {
            let [smaller, larger] = ["on4", "on16"].map(|name| {
                let input =
                    Input::open(&[program.folder.path().join(name)], Strictness::Strict).unwrap();
                Conversion::new(input, Options::default())
            });
            let onto = Scaling::Grid(Grid { traced: None, target: vec![4, 4] });
            let program = Extrapolation::new(&[smaller], &onto).unwrap();
            assert_eq!(Messages::of(program), Messages::of(larger), "{name}");
        }
        let document = common::document(command.args(scaling).arg("-J"));
        let found = &document["extrapolation"];
        assert_eq!(document["ranks"], 64, "{name}");
        assert_eq!(found["point_to_point_messages"], messages, "{name}: {found}");
        let is_tree = name == "tree";
        assert_eq!(found["not_understood"].as_array().unwrap().len(), 0, "{name}: {found}");
        assert_eq!(found["dimensions"][0]["is_ring"], is_tree || name == "torus" || name == "ring");
    }
}
