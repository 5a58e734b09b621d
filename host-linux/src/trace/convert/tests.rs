//! Streams of records made by hand, and the schedules that they have to become.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::slice;

use loggap_core::goal::check::{Checker, Message as Checked, Severity};
use loggap_core::goal::stats::Counter;
use loggap_core::goal::{Op, OpKind};
use loggap_core::measure::Clock as _;
use loggap_core::model::LogGops;
use loggap_core::random::Random;
use loggap_core::sim::{Builder, Engine, Parameters, Settings, Survey};
use loggap_core::trace::{
    ANY_PEER, ANY_TAG, Collective, DEFINITIONS, Direction, FileHeader, Mode, NO_PEER, Outcome, Part,
};
use loggap_core::units::{Bytes, Picos};

use super::*;
use crate::schedule::{OwnedRank, WriteError, write_text};
use crate::simulation::OwnedMemory;
use crate::trace::RankTrace;
use crate::trace::extrapolate::{Extrapolation, Scaling};
use crate::trace::testing::*;

fn of(ranks: &[Stream]) -> Conversion {
    let ranks: Vec<_> = ranks.iter().map(|rank| vec![rank.clone()]).collect();
    Conversion::new(traced(&ranks, &[]), Options::default())
}

/// Failure of a text.
#[derive(Debug)]
struct Failure;

impl From<WriteError> for Failure {
    fn from(_: WriteError) -> Self {
        Self
    }
}

/// Lines of rank 0's schedule.
fn first_rank(conversion: &Conversion) -> Vec<String> {
    lines(conversion, 0)
}

/// Lines of a rank's schedule.
fn lines(conversion: &Conversion, rank: u32) -> Vec<String> {
    let mut text = Vec::new();
    write_text(&mut text, |writer| conversion.feed(writer).map(drop).map_err(|_| Failure)).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines = text.lines().skip_while(|line| !line.starts_with(&format!("rank {rank} "))).skip(1);
    lines.take_while(|line| *line != "}").map(|line| line.trim().to_owned()).collect()
}

fn refusals(conversion: &Conversion) -> Vec<(String, Option<&'static str>)> {
    let report = conversion.feed(&mut Counter::new(&mut [])).unwrap();
    report.refused().into_iter().map(|line| (line.call, line.reason)).collect()
}

/// Errors and warnings of `goal check`.
fn findings(conversion: &Conversion) -> String {
    let mut counter = Counter::new(&mut []);
    conversion.feed(&mut counter).unwrap();
    let (stats, _) = counter.finish().unwrap();
    let mut rank = OwnedRank::new(&stats.extent);
    let mut messages = vec![Checked::default(); stats.extent.ops];
    let mut found = String::new();
    let mut checker = Checker::new(rank.lend(), Some(&mut messages), |finding| {
        let is_error = finding.severity() == Severity::Error;
        writeln!(found, "{is_error} {finding:?}").unwrap();
    });
    conversion.feed(&mut checker).unwrap();
    checker.finish().unwrap();
    found
}

/// Cost of messages for closed forms, in nanoseconds.
const fn costs() -> LogGops {
    LogGops {
        latency: Picos(5_000_000),
        overhead: Picos(1_000_000),
        gap: Picos(0),
        gap_per_byte: PerByte::ZERO,
        overhead_per_byte: PerByte::ZERO,
        eager_limit: Bytes(u64::MAX),
    }
}

/// Makespan in nanoseconds.
fn makespan(conversion: &Conversion) -> u64 {
    let mut survey = Survey::default();
    conversion.feed(&mut survey).unwrap();
    let requirements = survey.requirements(Settings::default()).unwrap();
    let mut memory = OwnedMemory::new(&requirements).unwrap();
    let mut builder = Builder::new(memory.lend(), requirements).unwrap();
    conversion.feed(&mut builder).unwrap();
    let schedule = builder.finish().unwrap();
    let mut engine = Engine::new(schedule, Parameters::one(costs()), Settings::default());
    let finished = engine.run().unwrap();
    finished.makespan.0 / 1_000
}

#[test]
fn calculations_are_the_time_between_calls_and_calls_wait_for_each_other() {
    let stream = Stream::new()
        .call("Comm_rank", 100, 120, &[])
        .call("Send", 1_000, 1_500, &[sent(envelope(1, 7, 64))])
        .call("Recv", 2_500, 9_000, &[received(envelope(1, 8, 32))])
        .end(9_250);
    let mut conversion = of(&[stream, Stream::new().end(5)]);
    let plain = [
        "l1: calc 1000",
        "l2: send 64b to 1 tag 7",
        "l2 requires l1",
        "l3: calc 1000",
        "l3 requires l2",
        "l4: recv 32b from 1 tag 8",
        "l4 requires l3",
        "l5: calc 250",
        "l5 requires l4",
    ];
    assert_eq!(first_rank(&conversion), plain);
    // Twice as fast; of each gap, 100 ns were the tracer's: 900 − 20 is what stays of the first.
    conversion.options.cpu_speed = vec![2.0];
    conversion.options.overhead = Some(100.0);
    let lines = first_rank(&conversion);
    let calcs: Vec<_> = lines.iter().filter(|line| line.contains("calc")).collect();
    assert_eq!(calcs, ["l1: calc 400", "l3: calc 450", "l5: calc 75"]);
}

#[test]
fn an_operation_under_way_is_waited_for_where_its_completion_was_seen() {
    let stream = Stream::new()
        .call("Irecv", 0, 10, &[posted(envelope(1, 1, 100), 1)])
        .call("Isend", 10, 20, &[isent(envelope(1, 2, 50), 2)])
        .call("Test", 1_020, 1_030, &[done(2, Outcome::Done)])
        .call("Wait", 1_030, 2_000, &[done(1, Outcome::Received(envelope(1, 1, 60)))])
        .call("Send", 2_500, 2_510, &[sent(envelope(1, 3, 8))])
        .end(2_510);
    let expected = [
        // As long as the message was that it took.
        "l1: recv 60b from 1 tag 1",
        "l2: send 50b to 1 tag 2",
        "l2 irequires l1",
        "l3: calc 1000",
        "l3 irequires l2",
        "l4: calc 500",
        "l4 requires l3",
        "l4 requires l2",
        "l4 requires l1",
        "l5: send 8b to 1 tag 3",
        "l5 requires l4",
    ];
    assert_eq!(first_rank(&of(&[stream, Stream::new().end(0)])), expected);
}

#[test]
fn a_wildcard_is_what_it_matched_although_another_receive_completed_first() {
    let wild = envelope(ANY_PEER, ANY_TAG, 1_000);
    let stream = Stream::new()
        .call("Irecv", 0, 0, &[posted(wild, 1)])
        .call("Irecv", 0, 0, &[posted(wild, 2)])
        .call("Waitany", 0, 10, &[done(2, Outcome::Received(envelope(2, 5, 20)))])
        .call("Waitany", 10, 20, &[done(1, Outcome::Received(envelope(1, 4, 10)))])
        .end(20);
    let lines = first_rank(&of(&[stream, Stream::new().end(0), Stream::new().end(0)]));
    let expected = ["l1: recv 10b from 1 tag 4", "l2: recv 20b from 2 tag 5", "l2 irequires l1"];
    assert_eq!(lines, expected);
}

#[test]
fn both_halves_of_an_exchange_begin_together_and_nothing_goes_to_nobody() {
    let both = [sent(envelope(1, 1, 8)), received(envelope(1, 1, 16))];
    let half = [sent(envelope(NO_PEER, 1, 8)), received(envelope(1, 2, 16))];
    let stream = Stream::new()
        .call("Sendrecv", 100, 200, &both)
        .call("Sendrecv", 200, 300, &half)
        .call("Bsend", 300, 310, &[one(Direction::Send, Mode::Buffered, envelope(1, 9, 1), None)])
        .end(410);
    let expected = [
        "l1: calc 100",
        "l2: send 8b to 1 tag 1",
        "l2 requires l1",
        "l3: recv 16b from 1 tag 1",
        "l3 requires l1",
        "l4: recv 16b from 1 tag 2",
        "l4 requires l2",
        "l4 requires l3",
        "l5: send 1b to 1 tag 9",
        "l5 requires l4",
        // The message is copied: nobody waits for it to leave.
        "l6: calc 100",
        "l6 irequires l5",
    ];
    assert_eq!(first_rank(&of(&[stream, Stream::new().end(0)])), expected);
}

#[test]
fn a_loop_of_tests_waits_and_what_was_computed_in_it_stays() {
    let tests =
        [Part::Loop { inside: 2_000, computing: 700 }, Part::Tests { name: 2, count: 1_000 }];
    let stream = Stream::new()
        .call("Irecv", 0, 0, &[posted(envelope(1, 1, 8), 1)])
        .call("Test", 0, 50_000, &tests)
        .call("Test", 50_000, 50_010, &[done(1, Outcome::Received(envelope(1, 1, 8)))])
        .call("Send", 50_010, 50_020, &[sent(envelope(1, 2, 8))])
        .end(50_020);
    let expected = [
        "l1: recv 8b from 1 tag 1",
        "l2: calc 700",
        "l2 irequires l1",
        "l3: send 8b to 1 tag 2",
        "l3 requires l2",
        "l3 requires l1",
    ];
    assert_eq!(first_rank(&of(&[stream, Stream::new().end(0)])), expected);
}

#[test]
fn a_probe_waits_for_its_message_and_the_receive_behind_takes_it() {
    let found = envelope(1, 6, 400);
    let stream = Stream::new()
        .call("Probe", 0, 1_000, &[Part::Probed(found)])
        .call("Iprobe", 1_000, 1_000, &[Part::Probed(found)])
        .call("Recv", 1_300, 1_400, &[received(found)])
        .call("Recv", 1_400, 1_500, &[received(found)])
        .end(1_500);
    let expected = [
        "l1: recv 400b from 1 tag 6",
        "l2: calc 300",
        "l2 requires l1",
        "l3: recv 400b from 1 tag 6",
        "l3 requires l2",
    ];
    assert_eq!(first_rank(&of(&[stream, Stream::new().end(0)])), expected);
}

#[test]
fn what_a_matched_probe_found_is_for_its_own_receive() {
    let (large, small) = (envelope(1, 6, 400), envelope(1, 6, 8));
    let stream = Stream::new()
        .call("Mprobe", 0, 0, &[Part::Probed(large)])
        .call("Recv", 0, 0, &[received(small)])
        .call("Mrecv", 0, 0, &[received(large)])
        .end(0);
    let expected = ["l1: recv 400b from 1 tag 6", "l2: recv 8b from 1 tag 6", "l2 requires l1"];
    assert_eq!(first_rank(&of(&[stream, Stream::new().end(0)])), expected);
}

#[test]
fn what_a_schedule_cannot_hold_is_reported_with_its_reason() {
    let stream = Stream::new()
        .call("Irecv", 0, 0, &[posted(envelope(1, 1, 8), 1)])
        .call("Irecv", 0, 0, &[posted(envelope(1, 2, 8), 2)])
        .call("Cancel", 0, 0, &[])
        .call("Wait", 0, 10, &[done(1, Outcome::Cancelled)])
        .call("Put", 10, 60, &[])
        .call("Get_count", 60, 70, &[])
        .call("File_write", 70, 170, &[])
        .end(170);
    let mut conversion = of(&[stream, Stream::new().end(0)]);
    let said = |trace: &Conversion| trace.feed(&mut Counter::new(&mut [])).unwrap_err().to_string();
    let pending = "rank 0: Irecv from rank 1, tag 2, 8 B, posted at 0.000000 s by record 3";
    assert_eq!(
        said(&conversion),
        format!("{pending}, was never completed; --lenient converts the rest")
    );
    conversion.options.strictness = Strictness::Lenient;
    assert_eq!(first_rank(&conversion), ["l1: calc 160"]);
    let expected = [
        ("File_write", "input and output: its time is kept"),
        ("Put", "one-sided: its time is kept, its messages are not"),
        ("Irecv", "never completed"),
        ("Irecv", "cancelled"),
    ];
    let mut found = refusals(&conversion);
    found.sort();
    let mut expected: Vec<_> = expected.map(|(call, why)| (call.to_owned(), Some(why))).to_vec();
    // A record has one class: the worst of its messages.
    expected.sort();
    assert_eq!(found, expected);
    let begun = Stream::new().call("Irecv", 0, 0, &[posted(envelope(1, 1, 8), 1)]);
    let error = said(&of(&[begun, Stream::new().end(0)]));
    assert!(error.contains("rank 0 ends behind record 2, before MPI_Finalize"), "{error}");
}

#[test]
fn a_collective_is_the_messages_of_an_algorithm_among_the_members() {
    // Members 3 and 1, in this order: the root, world rank 1, is the second.
    let at = Collective { communicator: 4, root: Some(1), sent: 100, ..Collective::default() };
    let bcast = [Part::Collective(at)];
    let member = Stream::new().call("Bcast", 50, 900, &bcast).end(900);
    let quiet = Stream::new().end(0);
    let ranks = [&quiet, &member, &quiet, &member].map(|stream| vec![stream.clone()]);
    let input = traced(&ranks, &[defined(4, 99, 3, -2, 2)]);
    let conversion = Conversion::new(input, Options::default());
    let mut text = Vec::new();
    write_text(&mut text, |writer| conversion.feed(writer).map(drop).map_err(|_| Failure)).unwrap();
    let text = String::from_utf8(text).unwrap();
    let tag = (1u64 << 32) + (1 << 31);
    assert!(text.contains(&format!("send 100b to 3 tag {tag}")), "{text}");
    assert!(text.contains(&format!("recv 100b from 1 tag {tag}")), "{text}");
    assert_eq!(findings(&conversion), "");
}

#[test]
fn an_immediate_collective_progresses_beside_calculations_until_its_completion() {
    let stream = Stream::new()
        .call("Iallreduce", 0, 0, &[all(8, 0, Some(3))])
        .call("Wait", 40_000, 41_000, &[done(3, Outcome::Done)])
        .end(42_000);
    let conversion = of(&[stream.clone(), stream]);
    let expected = [
        format!("l1: send 8b to 1 tag {} cpu 1", 1u64 << 31),
        format!("l2: recv 8b from 1 tag {} cpu 1", 1u64 << 31),
        "l3: calc 0 cpu 1".to_owned(),
        "l3 requires l1".to_owned(),
        "l3 requires l2".to_owned(),
        "l4: calc 40000".to_owned(),
        "l5: calc 1000".to_owned(),
        "l5 requires l4".to_owned(),
        "l5 requires l3".to_owned(),
    ];
    let lines = first_rank(&conversion);
    let plain: Vec<_> = lines.iter().map(|line| line.replace(" nic 0", "")).collect();
    let expected: Vec<_> = expected.iter().map(|line| line.replace(" nic 0", "")).collect();
    assert_eq!(plain, expected);
    // 1 + 5 + 1 µs of the exchange are hidden behind 40 µs.
    assert_eq!(makespan(&conversion), 41_000);
}

#[test]
fn a_thread_has_a_processor_and_a_chain_of_its_own() {
    let first = Stream::new().call("Recv", 100, 5_000, &[received(envelope(1, 1, 8))]).end(5_000);
    let mut second = Stream { names: Vec::new(), parts: Vec::new() };
    second = second.call("Send", 1_100, 1_200, &[sent(envelope(1, 2, 8))]);
    let other = vec![Stream::new().end(0)];
    let input = traced(&[vec![first, second], other], &[]);
    let lines = first_rank(&Conversion::new(input, Options::default()));
    let plain: Vec<_> = lines.iter().map(|line| line.replace(" nic 0", "")).collect();
    let expected = [
        "l1: calc 1100 cpu 2",
        "l2: send 8b to 1 tag 2 cpu 2",
        "l2 requires l1",
        "l3: calc 100",
        "l4: recv 8b from 1 tag 1",
        "l4 requires l3",
    ];
    assert_eq!(plain, expected);
}

#[test]
fn a_thread_that_begins_later_begins_behind_the_first() {
    let first = Stream::new().call("Recv", 100, 1_000, &[received(envelope(1, 1, 8))]).end(5_000);
    let second = Stream { names: Vec::new(), parts: Vec::new() };
    let second = second.call("Send", 1_500, 1_600, &[sent(envelope(1, 2, 8))]);
    let other = vec![Stream::new().end(0)];
    let input = traced(&[vec![first, second], other], &[]);
    let lines = first_rank(&Conversion::new(input, Options::default()));
    let at = |what: &str| lines.iter().position(|line| line.contains(what)).unwrap();
    let label = |line: &str| line.split(':').next().unwrap().to_owned();
    let receive = label(&lines[at("recv 8b")]);
    let calc = label(&lines[at("calc 500 cpu 2")]);
    assert!(lines.contains(&format!("{calc} requires {receive}")), "{lines:?}");
}

#[test]
fn the_time_of_the_tracer_is_no_computation() {
    let stream = Stream::new()
        .call("Barrier", 1_000, 2_000, &[all(0, 0, None)])
        .call("Pack", 3_000, 3_060, &[])
        .end(3_060);
    let Input::Trace(mut trace) = traced(&[vec![stream]], &[]) else { unreachable!() };
    // Half of the two readings of the clock is inside of a call's record.
    trace.description.cost_per_call_s = 100e-9;
    trace.description.clock_reads_s = 40e-9;
    let conversion = Conversion::new(Input::Trace(trace), Options::default());
    let inside = 60 - 20;
    let computed = (1_000 - 120) + (1_000 - 120) + inside;
    let report = conversion.feed(&mut Counter::new(&mut [])).unwrap();
    assert!((report.compute() * 1e9 - f64::from(computed)).abs() < 0.5, "{}", report.compute());
}

#[test]
fn reductions_combine_at_the_speed_that_was_traced_or_is_given() {
    let stream = Stream::new().call("Reduce", 0, 900, &[all(1_000, 0, None)]).end(900);
    let Input::Trace(mut trace) = traced(&[vec![stream.clone()], vec![stream]], &[]) else {
        unreachable!()
    };
    trace.description.combine_per_byte_s = 0.2496e-9;
    let mut conversion = Conversion::new(Input::Trace(trace), Options::default());
    // 249.6 ns are 250: texts hold whole ones. What is given does not depend on the processors.
    let given = PerByte(2_000 << PerByte::FRACTION_BITS);
    for (speed, combine, nanos) in [(1.0, None, 250), (2.0, None, 125), (2.0, Some(given), 2_000)] {
        (conversion.options.cpu_speed, conversion.options.combine) = (vec![speed], combine);
        let is_it = |op: &Op| op.kind == OpKind::Calc { duration: Picos(nanos * 1_000) };
        let lines = first_rank(&conversion);
        assert!(lines.iter().any(|line| line.ends_with(&format!(": calc {nanos}"))), "{lines:?}");
        let copy = Extrapolation::new(slice::from_ref(&conversion), &Scaling::Copies(1)).unwrap();
        let (mut counter, mut found) = (Counter::new(&mut []), 0);
        let sink = &mut EachOp::new(&mut counter, |_, op: Op| {
            found += u32::from(is_it(&op));
            Ok(op)
        });
        copy.feed_numbered(sink).unwrap();
        assert_eq!(found, 1, "{nanos}");
    }
}

#[test]
fn what_was_switched_off_is_no_computation() {
    let stream = Stream::new()
        .call("(off)", 100, 100, &[])
        .call("(on)", 5_000, 5_000, &[])
        .call("Send", 5_200, 5_300, &[sent(envelope(1, 2, 8))])
        .end(5_300);
    let expected = ["l1: calc 300", "l2: send 8b to 1 tag 2", "l2 requires l1"];
    assert_eq!(first_rank(&of(&[stream, Stream::new().end(0)])), expected);
}

/// Ranks with a Cartesian topology, whose communicator has the number 4.
fn on_a_grid(stream: &Stream, dimensions: &[(u32, bool)]) -> Conversion {
    let count: u32 = dimensions.iter().map(|(extent, _)| extent).product();
    let Input::Trace(mut trace) = traced(&[vec![stream.clone()]], &[]) else { unreachable!() };
    trace.description.ranks = count;
    let dimension = |&(extent, periodic): &(u32, bool)| Part::Dimension { extent, periodic };
    let members = Part::Members { remote: false, first: 0, stride: 1, count };
    let mut parts = vec![Part::Define { number: 4, identity: 9 }, members];
    parts.extend(dimensions.iter().map(dimension));
    let rank = |rank| {
        let header = FileHeader { run: 5, rank, ranks: count }.emit().to_vec();
        let bytes = [header, block(DEFINITIONS, &parts), block(0, &stream.parts)].concat();
        RankTrace::parse(PathBuf::from("0.trace"), bytes).unwrap()
    };
    trace.ranks = (0..count).map(rank).collect();
    Conversion::new(Input::Trace(trace), Options::default())
}

#[test]
fn neighbours_exchange_messages_that_are_told_apart() {
    let at = Collective { communicator: 4, sent: 5, received: 5, ..Collective::default() };
    let stream = Stream::new().call("Neighbor_alltoall", 0, 9, &[Part::Collective(at)]).end(9);
    let messages = |dimensions: &[(u32, bool)], rank| -> Vec<String> {
        let conversion = on_a_grid(&stream, dimensions);
        assert_eq!((findings(&conversion), refusals(&conversion)), (String::new(), Vec::new()));
        let all = lines(&conversion, rank).into_iter();
        all.map(|line| line.replace(&format!("tag {}", 1u64 << 31), "tag T+0")).collect()
    };
    let next = format!("tag {}", (1u64 << 31) + 1);
    // On a ring of two both neighbours are the other one.
    let ring = messages(&[(2, true)], 0);
    let to = |message: &str, tag: &str, at: u32| format!("l{at}: {message} 1 {tag}");
    let expected = [
        to("send 5b to", "tag T+0", 1),
        to("send 5b to", &next, 2),
        to("recv 5b from", &next, 3),
        to("recv 5b from", "tag T+0", 4),
    ];
    assert_eq!(ring, expected);
    // A corner of a plane has two, of different dimensions; an edge three.
    let plane = [(3, false), (2, false)];
    assert_eq!(messages(&plane, 0).len(), 2 * 2);
    assert_eq!(messages(&plane, 2).len(), 2 * 3);
}

#[test]
fn collectives_in_place_move_what_others_do() {
    let of_two = |name: &'static str, parts: [&[Part<'static>]; 2]| {
        let stream = |parts| Stream::new().call(name, 0, 9, parts).end(9);
        let conversion = of(&parts.map(stream));
        assert_eq!((findings(&conversion), refusals(&conversion)), (String::new(), Vec::new()));
        first_rank(&conversion)
    };
    let at = |sent, received, in_place| {
        let root = Some(0);
        Part::Collective(Collective { root, sent, received, in_place, ..Collective::default() })
    };
    let each = |direction, bytes| Part::Each { direction, peers: 2, bytes };
    // The root's own part stays where it is.
    let (scatter, gather) = (at(0, 7, false), at(7, 0, false));
    let scattered = of_two("Scatter", [&[at(7, 7, false)], &[scatter]]);
    assert!(scattered.len() == 1 && scattered[0].contains("send 7b to 1"), "{scattered:?}");
    assert_eq!(of_two("Scatter", [&[at(7, 0, true)], &[scatter]]), scattered);
    let gathered = of_two("Gather", [&[at(7, 7, false)], &[gather]]);
    assert!(gathered.len() == 1 && gathered[0].contains("recv 7b from 1"), "{gathered:?}");
    assert_eq!(of_two("Gather", [&[at(0, 7, true)], &[gather]]), gathered);
    let list = [at(0, 0, true), each(Direction::Receive, 6)];
    let both = [at(0, 0, false), each(Direction::Send, 6), each(Direction::Receive, 6)];
    assert_eq!(of_two("Alltoallv", [&list, &list]), of_two("Alltoallv", [&both, &both]));
    let vector = [at(0, 0, true), each(Direction::Receive, 6)];
    let whole = [at(6, 0, false), each(Direction::Receive, 6)];
    assert_eq!(of_two("Allgatherv", [&vector, &vector]), of_two("Allgatherv", [&whole, &whole]));
}

/// A rank without records, and one that ends in the middle.
#[test]
fn a_lenient_conversion_has_no_message_with_one_end() {
    for seed in 0..30 {
        let mut conversion = random_program(seed);
        let ranks = conversion.ranks();
        conversion.options.strictness = Strictness::Lenient;
        let Input::Trace(trace) = &mut conversion.input else { unreachable!() };
        let lost = &mut trace.ranks[seed as usize % ranks as usize];
        *lost = RankTrace::empty(PathBuf::new(), lost.header());
        assert_eq!(findings(&conversion), "", "seed {seed}");
        let refused = refusals(&conversion);
        let said = |name: &str| refused.iter().any(|(call, _)| call == name);
        assert!(said("(message)") && said("(cut)"), "seed {seed}: {refused:?}");
        assert!(makespan(&conversion) > 0, "seed {seed}");
    }
}

#[test]
fn of_a_rank_that_was_ended_the_messages_before_stay() {
    let send = |tag, at| (at, [sent(envelope(1, tag, 8))]);
    let calls = [send(1, 100), send(1, 200), send(2, 300)];
    let stream = calls
        .iter()
        .fold(Stream::new(), |stream, (at, parts)| stream.call("Send", *at, at + 10, parts));
    let receive = |tag| [received(envelope(0, tag, 8))];
    let peer = Stream::new().call("Recv", 0, 110, &receive(1)).end(110);
    let mut conversion = of(&[stream, peer]);
    conversion.options.strictness = Strictness::Lenient;
    let sends: Vec<_> =
        first_rank(&conversion).into_iter().filter(|line| line.contains("send")).collect();
    assert_eq!(sends, ["l2: send 8b to 1 tag 1"]);
    let expected = [
        ("(cut)", "a rank's records end before MPI_Finalize"),
        ("(message)", "only one end of the message is in the trace"),
    ];
    let expected = expected.map(|(call, why)| (call.to_owned(), Some(why)));
    let mut found = refusals(&conversion);
    found.sort();
    assert_eq!(found, expected);
    // One message has both ends.
    let report = conversion.feed(&mut Counter::new(&mut [])).unwrap();
    assert_eq!(report.messages_left_out(), 2);
    assert!((report.share_left_out() - 2.0 / 3.0).abs() < 1e-9, "{}", report.share_left_out());
}

/// Each rank computes 10 µs and passes a message on; the last one is back at rank 0.
#[test]
fn a_ring_takes_what_its_closed_form_says() {
    const RANKS: u64 = 8;
    let stream = |rank: u64| {
        let next = envelope(((rank + 1) % RANKS) as i32, 0, 8);
        let before = envelope(((rank + RANKS - 1) % RANKS) as i32, 0, 8);
        let stream = Stream::new();
        if rank == 0 {
            let stream = stream.call("Send", 10_000, 11_000, &[sent(next)]);
            return stream.call("Recv", 11_000, 200_000, &[received(before)]).end(200_000);
        }
        let stream = stream.call("Recv", 0, 20_000 * rank, &[received(before)]);
        let at = 20_000 * rank + 10_000;
        stream.call("Send", at, at + 1_000, &[sent(next)]).end(at + 1_000)
    };
    let conversion = of(&(0..RANKS).map(stream).collect::<Vec<_>>());
    assert_eq!(findings(&conversion), "");
    // P (calc + 2o + L).
    assert_eq!(makespan(&conversion), RANKS * (10_000 + 2_000 + 5_000));
}

/// Ten iterations: halos to and from both neighbours of a ring, then 100 µs of calculation.
#[test]
fn a_stencil_takes_what_its_closed_form_says() {
    const RANKS: i32 = 6;
    const ITERATIONS: u64 = 10;
    let stream = |rank: i32| {
        let mut stream = Stream::new();
        for iteration in 0..ITERATIONS {
            let (at, id) = (200_000 * iteration, 4 * iteration);
            let peers = [(rank + RANKS - 1) % RANKS, (rank + 1) % RANKS];
            // The tag is the direction of the message.
            let receives = [(peers[0], 1), (peers[1], 0)];
            let sends = [(peers[0], 0), (peers[1], 1)];
            for ((peer, tag), id) in receives.into_iter().zip(id + 1..) {
                stream = stream.call("Irecv", at, at, &[posted(envelope(peer, tag, 64), id)]);
            }
            for ((peer, tag), id) in sends.into_iter().zip(id + 3..) {
                stream = stream.call("Isend", at, at, &[isent(envelope(peer, tag, 64), id)]);
            }
            let outcome = |id: u64| match id % 4 {
                1 => Outcome::Received(envelope(receives[0].0, 1, 64)),
                2 => Outcome::Received(envelope(receives[1].0, 0, 64)),
                _ => Outcome::Done,
            };
            let all: Vec<_> = (id + 1..id + 5).map(|id| done(id, outcome(id))).collect();
            stream = stream.call("Waitall", at, at + 100_000, &all);
        }
        stream.end(200_000 * ITERATIONS)
    };
    let conversion = of(&(0..RANKS).map(stream).collect::<Vec<_>>());
    assert_eq!(findings(&conversion), "");
    // Two sends, the latency, two receives (o each), and the calculation. The last message leaves
    // after 2o and arrives L later; the first one, received meanwhile, does not delay it.
    assert_eq!(makespan(&conversion), ITERATIONS * (2_000 + 5_000 + 1_000 + 100_000));
}

/// A program of random steps that all ranks take together, each with its own times.
fn random_program(seed: u64) -> Conversion {
    let mut random = Random::new(seed);
    let mut draw = |end: u64| random.below(end);
    let ranks = 2 + draw(9) as usize;
    let mut streams = vec![Stream::new(); ranks];
    let (mut at, mut id) = (0, 0);
    let peer = |rank: usize, step: usize| ((rank + step) % ranks) as i32;
    for _ in 0..12 {
        at += 100_000;
        let (kind, step, size) = (draw(12), 1 + draw(ranks as u64 - 1) as usize, draw(100_000));
        id += 4;
        let counts: Vec<u64> = (0..ranks).map(|_| draw(3_000)).collect();
        for (rank, stream) in streams.iter_mut().enumerate() {
            let (to, from) = (peer(rank, step), peer(rank, ranks - step));
            let (enter, leave) = (at + draw(1_000), at + 2_000);
            let mut old = std::mem::replace(stream, Stream { names: vec![], parts: vec![] });
            let mut call = |name, parts: &[Part<'static>]| {
                old = old.clone().call(name, enter, leave, parts);
            };
            let each = |direction, list: &[u64]| {
                let one = |&bytes: &u64| Part::Each { direction, peers: 1, bytes };
                list.iter().map(one).collect::<Vec<_>>()
            };
            let request = (kind % 2 == 0).then_some(id);
            let root = |name, sent, received| {
                let root = Some(step as i32 % ranks as i32);
                let Part::Collective(plain) = all(sent, received, None) else { unreachable!() };
                (name, Part::Collective(Collective { root, ..plain }))
            };
            match kind {
                0 => {
                    call("Irecv", &[posted(envelope(ANY_PEER, 3, 1 << 20), id)]);
                    call("Send", &[sent(envelope(to, 3, size))]);
                    call("Wait", &[done(id, Outcome::Received(envelope(from, 3, size)))]);
                }
                1 => call(
                    "Sendrecv",
                    &[sent(envelope(to, 1, size)), received(envelope(from, 1, size))],
                ),
                2 | 3 => {
                    call("Iallreduce", &[all(size, 0, Some(id))]);
                    call("Barrier", &[all(0, 0, None)]);
                    call("Wait", &[done(id, Outcome::Done)]);
                }
                4 => call("Alltoall", &[all(size, size, None)]),
                5 => call("Allgather", &[all(size, size, None)]),
                6 | 7 => {
                    let name = if request.is_some() { "Iallgatherv" } else { "Allgatherv" };
                    let head = all(counts[rank], 0, request);
                    call(name, &[vec![head], each(Direction::Receive, &counts)].concat());
                    if request.is_some() {
                        call("Wait", &[done(id, Outcome::Done)]);
                    }
                }
                8 => {
                    let lists = [Direction::Send, Direction::Receive].map(|way| {
                        let of = |other: usize| match way {
                            Direction::Send => counts[(rank * 3 + other) % ranks],
                            Direction::Receive => counts[(other * 3 + rank) % ranks],
                        };
                        each(way, &(0..ranks).map(of).collect::<Vec<_>>())
                    });
                    call("Alltoallv", &[vec![all(0, 0, None)], lists.concat()].concat());
                }
                9 => {
                    let (name, part) = root("Reduce", size, 0);
                    call(name, &[part]);
                }
                10 => {
                    let (name, part) = root("Gatherv", counts[rank], 0);
                    let list = each(Direction::Receive, &counts);
                    call(name, &[vec![part], list].concat());
                }
                _ => {
                    let parts = [vec![all(0, 0, None)], each(Direction::Receive, &counts)];
                    call("Reduce_scatter", &parts.concat());
                }
            }
            *stream = old;
        }
    }
    of(&streams.into_iter().map(|stream| stream.end(at + 50_000)).collect::<Vec<_>>())
}

#[test]
fn every_message_of_a_converted_program_has_both_ends_and_all_complete() {
    for seed in 0..60 {
        let conversion = random_program(seed);
        assert_eq!(findings(&conversion), "", "seed {seed}");
        assert_eq!(refusals(&conversion), [], "seed {seed}");
        assert!(makespan(&conversion) >= 1_200_000, "seed {seed}");
    }
}

/// 10 million calls in 10 s on one core; run with `--release -- --ignored`.
#[test]
#[ignore = "long"]
fn ten_million_calls_are_converted_in_ten_seconds_and_memory_stays() {
    let mut bytes = FileHeader { run: 5, rank: 0, ranks: 1 }.emit().to_vec();
    let members = Part::Members { remote: false, first: 0, stride: 1, count: 1 };
    bytes.extend(block(DEFINITIONS, &[Part::Define { number: 0, identity: 77 }, members]));
    let mut at = 0;
    for chunk in 0..2_500u64 {
        let names = ["Irecv", "Isend", "Wait", "Recv"].map(Part::Name);
        let mut parts = names.to_vec();
        for step in 0..1_000 {
            let id = chunk * 1_000 + step + 1;
            let mut call = |name, part| {
                at += 200;
                parts.extend([Part::Call { name, enter: at, leave: at + 100 }, part]);
            };
            call(0, posted(envelope(ANY_PEER, 3, 1 << 20), id));
            call(1, sent(envelope(0, 3, 800)));
            call(2, done(id, Outcome::Received(envelope(0, 3, 800))));
            call(3, received(envelope(0, 3, 8)));
        }
        bytes.extend(block(0, &parts));
    }
    bytes.extend(block(0, &[Part::Name("Finalize"), Part::Call { name: 0, enter: at, leave: at }]));
    let rank = RankTrace::parse(PathBuf::from("0.trace"), bytes).unwrap();
    let Input::Trace(mut trace) = traced(&[vec![Stream::new()]], &[]) else { unreachable!() };
    trace.ranks = vec![rank];
    let conversion = Conversion::new(Input::Trace(trace), Options::default());
    let clock = crate::machine::clock::HostClock::monotonic_raw();
    let begin = clock.now();
    let mut counter = Counter::new(&mut []);
    let report = conversion.feed(&mut counter).unwrap();
    let taken = clock.duration(clock.now().saturating_sub(begin));
    let calls: u64 = report.converted().iter().map(|line| line.calls).sum();
    println!("{calls} calls in {} s", taken.0 as f64 * 1e-12);
    assert_eq!(calls, 10_000_001);
}

/// As `process_trace.cpp` writes it: the calculation behind its communication, waits as empty
/// calculations, a dissemination for an allreduce.
#[test]
fn the_graph_of_schedgen_is_made_to_compare() {
    let stream = Stream::new()
        .call("Irecv", 1_000, 1_100, &[posted(envelope(ANY_PEER, 5, 64), 1)])
        .call("Wait", 1_500, 3_000, &[done(1, Outcome::Received(envelope(1, 5, 8)))])
        .call("Allreduce", 3_200, 5_000, &[all(40, 0, None)])
        .end(6_000);
    let mut conversion = of(&[stream.clone(), stream]);
    conversion.options.graph = Graph::Schedgen { copies: 1 };
    let expected = [
        "l1: recv 64b from -1 tag 5",
        "l2: calc 1000",
        "l1 requires l2",
        "l3: calc 0",
        "l3 requires l1",
        "l4: calc 400",
        "l3 requires l4",
        "l4 irequires l1",
        "l5: send 40b to 1 tag 1000000",
        "l6: recv 40b from 1 tag 1000000",
        "l7: calc 0",
        "l7 requires l5",
        "l7 requires l6",
        "l8: calc 200",
        "l5 requires l8",
        "l6 requires l8",
        "l8 requires l3",
        "l9: calc 1000",
        "l9 requires l7",
    ];
    assert_eq!(first_rank(&conversion), expected);
}

/// Rank h + H·x does what rank h did, with peers H·x further and collectives of all (Schedgen's
/// `--traces-extr`).
#[test]
fn copies_of_schedgen_have_peers_of_their_own_and_common_collectives() {
    let stream = |peer| {
        let [out, back] = [sent, received].map(|one| one(envelope(peer, 5, 8)));
        let any = received(envelope(ANY_PEER, 6, 8));
        let stream = Stream::new().call("Sendrecv", 10, 20, &[out, back]);
        let stream = stream.call("Recv", 20, 30, &[any]).call("Bcast", 30, 40, &[all(40, 0, None)]);
        stream.end(50)
    };
    let mut conversion = of(&[stream(1), stream(0)]);
    let mut of_copies = |copies, rank| -> Vec<String> {
        conversion.options.graph = Graph::Schedgen { copies };
        assert_eq!(conversion.ranks(), 2 * copies);
        lines(&conversion, rank)
    };
    let (one, third) = (of_copies(1, 1), of_copies(3, 5));
    let messages = |lines: &[String], peer: u32| -> Vec<String> {
        let own = lines.iter().filter(|line| line.contains("8b "));
        own.map(|line| line.replace(&format!(" {peer} tag"), " P tag")).collect()
    };
    assert_eq!(messages(&third, 4), messages(&one, 0));
    assert_eq!(messages(&one, 0).concat().matches(" P tag").count(), 2);
    // Rank 5 of a binomial tree of 6 receives from 1, of a tree of 2 rank 1 from 0.
    let broadcast =
        |lines: &[String]| lines.iter().any(|line| line.contains("40b from 1 tag 1000000"));
    assert!(broadcast(&third) && !broadcast(&one), "{third:?}");
    let all = of_copies(3, 0);
    assert_eq!(all.iter().filter(|line| line.contains("send 40b")).count(), 3, "{all:?}");
}
