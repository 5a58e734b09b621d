//! Lines as liballprof writes them.

use loggap_core::goal::stats::Counter;
use loggap_core::trace::Mode;

use super::*;
use crate::trace::convert::{Conversion, Input, Options};

fn text(rank: u32, ranks: u32, lines: &str) -> RankText {
    RankText::of(PathBuf::from("t-0.txt"), lines.as_bytes().to_vec(), rank, ranks)
}

fn read<'t>(text: &'t RankText) -> Vec<Record<'t>> {
    text.records(Strictness::Strict).map(Result::unwrap).collect()
}

/// Rank 0 of 2, with the requests of Open MPI's C: 8 bytes apart.
const WIDE: &str = "\
# a comment
MPI_Init:-:140734:140735:1000000
MPI_Irecv:1000010.5:14744192:36864:13,1,1:-1:76:5641280,0,2:7104000:1000011
MPI_Isend:1000020:14781072:100:11,8,8:1:204:5641280,0,2:7104008:1000021
MPI_Waitall:1000030:2:7104000:5839040:1000090
MPI_Comm_rank:1000091:5641280,0,2:77:1000092
MPI_Allreduce:1000100:1:140735:4:11,8,8:3:5641280,0,2:1000150
MPI_Alltoallv:1000200:10:10:5,6:20:0,5:1,4,4:30:40:7,8:50:0,7:1,4,4:5641280,0,2:1000300
MPI_Finalize:1000400:-
";

#[test]
fn calls_are_records_with_requests_by_address_and_sizes_from_their_types() {
    let rank = text(0, 2, WIDE);
    let records = read(&rank);
    let names: Vec<_> = records.iter().map(|record| record.call).collect();
    let expected =
        ["Init", "Irecv", "Isend", "Waitall", "Comm_rank", "Allreduce", "Alltoallv", "Finalize"];
    assert_eq!(names, expected);
    let times: Vec<_> = records.iter().map(|record| (record.enter, record.leave)).collect();
    assert_eq!(times[..2], [(1_000_000_000, 1_000_000_000), (1_000_010_500, 1_000_011_000)]);
    assert_eq!(times[7], (1_000_400_000, 1_000_400_000));
    let What::Messages(posted) = &records[1].what else { panic!() };
    let envelope = Envelope { peer: ANY_PEER, tag: 76, bytes: 36_864, communicator: 0 };
    let (direction, mode) = (Direction::Receive, Mode::Standard);
    assert_eq!(posted[..], [Message { direction, mode, envelope, request: Some(1) }]);
    let What::Messages(posted) = &records[2].what else { panic!() };
    assert_eq!((posted[0].envelope.bytes, posted[0].envelope.peer), (800, 1));
    let done = |request| Completed { request, outcome: Outcome::Done };
    assert_eq!(records[3].what, What::Completions(vec![done(1), done(2)]));
    let What::Collective { operation, .. } = &records[5].what else { panic!() };
    assert_eq!((operation.sent, operation.in_place, operation.root), (32, true, None));
    let What::Collective { sent, received, .. } = &records[6].what else { panic!() };
    let lists = [sent, received].map(|list| list.iter().collect::<Vec<_>>());
    assert_eq!(lists, [[20, 24], [28, 32]]);
}

#[test]
fn requests_of_fortran_and_of_mpich_lie_four_bytes_apart() {
    // The handle of MPICH's world: there the numbers of wildcards differ.
    let lines = "\
MPI_Irecv:10:1:8:11,1,1:-2:5:1140850688,0,2:5000:11
MPI_Irecv:12:1:8:11,1,1:-1:5:1140850688,0,2:5004:13
MPI_Isend:14:1:8:11,1,1:1:5:1140850688,0,2:5008:15
MPI_Waitall:16:3:5000:9:17
";
    let rank = text(0, 2, lines);
    let records = read(&rank);
    let peers = records.iter().filter_map(|record| match &record.what {
        What::Messages(all) => Some(all[0].envelope.peer),
        _ => None,
    });
    assert_eq!(peers.collect::<Vec<_>>(), [ANY_PEER, NO_PEER, 1]);
    let What::Completions(all) = &records[3].what else { panic!() };
    assert_eq!(all.len(), 3);
}

#[test]
fn persistent_operations_begin_at_their_start_and_reused_addresses_end_what_a_test_completed() {
    let lines = "\
MPI_Send_init:10:1:8:11,1,1:1:5:7,0,2:64:11
MPI_Start:12:64:13
MPI_Wait:14:64:0:15
MPI_Start:16:64:17
MPI_Test:18:64:1:2:19
MPI_Start:20:64:21
MPI_Request_free:22:64:23
";
    let rank = text(0, 2, lines);
    let found: Vec<_> = read(&rank).into_iter().map(|record| (record.call, record.what)).collect();
    let started: Vec<_> = found
        .iter()
        .filter_map(|(_, what)| match what {
            What::Messages(all) => all[0].request,
            _ => None,
        })
        .collect();
    assert_eq!(started, [1, 2, 3]);
    let freed = Completed { request: 2, outcome: Outcome::Freed };
    assert!(found.contains(&("(reused)", What::Completions(vec![freed]))));
}

#[test]
fn a_wrong_line_is_named_by_line_and_byte_and_a_lenient_reading_goes_on() {
    let first = |lines: &str| {
        let rank = text(0, 2, lines);
        rank.records(Strictness::Strict).find_map(Result::err).unwrap().to_string()
    };
    let said = first("MPI_Init:-:1\n\nMPI_Send:10:1:x:11,1,1:1:5:7,0,2:11\n");
    assert!(said.contains("'t-0.txt':3:15: number expected"), "{said}");
    let said = first("MPI_Send:10:1:8:11:1:5:7,0,2:11\n");
    assert!(said.contains(":1:17: id,size,extent of a datatype expected"), "{said}");
    assert!(first("MPI_Send:1e3:1\n").contains(":1:10: time expected"));
    assert!(first("Send:1:2\n").contains(":1:1: MPI_ expected"));
    let rank = text(0, 2, "MPI_Send:10:1\nMPI_Barrier:20:7,0,2:30\n");
    let names: Vec<_> =
        rank.records(Strictness::Lenient).map(|record| record.unwrap().call).collect();
    assert_eq!(names, ["(unreadable)", "Barrier"]);
}

/// A ring of two ranks with wildcards and tests becomes a schedule whose messages have both ends;
/// a communicator of part of the ranks is refused.
#[test]
fn texts_are_converted_as_traces_are() {
    let rank = |rank: u32| {
        let other = 1 - rank;
        let lines = format!(
            "MPI_Init:-:1:2:100
MPI_Irecv:110:1:8:11,1,1:-1:5:7,{rank},2:64:111
MPI_Send:112:1:8:11,1,1:{other}:5:7,{rank},2:113
MPI_Test:114:64:1:2:119
MPI_Irecv:120:1:8:11,1,1:{other}:6:7,{rank},2:64:121
MPI_Send:122:1:8:11,1,1:{other}:6:7,{rank},2:123
MPI_Wait:124:64:0:125
MPI_Barrier:130:9,0,1:131
MPI_Finalize:140:-
"
        );
        text(rank, 2, &lines)
    };
    let input = Input::Liballprof((0..2).map(rank).collect());
    let conversion = Conversion::new(input, Options::default());
    let mut counter = Counter::new(&mut []);
    let report = conversion.feed(&mut counter).unwrap();
    let (stats, _) = counter.finish().unwrap();
    assert_eq!((stats.sends, stats.receives), (4, 4));
    let refused = report.refused();
    assert_eq!((refused.len(), refused[0].call.as_str(), refused[0].calls), (1, "Barrier", 2));
    let approximated = report.approximated();
    assert_eq!((approximated[0].call.as_str(), approximated[0].calls), ("Irecv", 2));
}
