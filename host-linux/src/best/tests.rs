use loggap_core::model::{LogGops, Protocol, ReceiveOverhead};
use loggap_core::noise::Phases;
use loggap_core::random::Random;
use loggap_core::sim::Settings;
use loggap_core::units::{Bytes, PerByte, Picos};

use super::*;
use crate::collective::{Algorithm, Call, Operation, Shape};
use crate::simulation::{ParameterSets, Plan, Point, Source, run_points};

const PLAN: Plan<'_> = Plan::new(Settings {
    receive: loggap_core::sim::Receive::Hold,
    rendezvous: loggap_core::sim::Rendezvous::Instant,
});
const ANYTHING: Offer = Offer { element: 1, commutative: true };

/// L, o and g in ns, G in ps a byte.
fn sets([latency, overhead, gap, gap_per_byte]: [u64; 4]) -> ParameterSets {
    let parameters = LogGops {
        latency: Picos(latency * 1_000),
        overhead: Picos(overhead * 1_000),
        gap: Picos(gap * 1_000),
        gap_per_byte: PerByte(gap_per_byte << PerByte::FRACTION_BITS),
        overhead_per_byte: PerByte::ZERO,
        eager_limit: Bytes(u64::MAX),
    };
    ParameterSets::new(vec![Protocol { first: Bytes(0), parameters }], Vec::new())
}

fn question<'a>(
    operation: Operation,
    (ranks, sizes): (&'a [u32], &'a [u64]),
    measured: &'a ParameterSets,
    draws: &'a [ParameterSets],
) -> Question<'a> {
    let combine = PerByte::ZERO;
    Question { operation, ranks, sizes, offer: ANYTHING, combine, measured, draws, plan: PLAN }
}

/// No simulation fails.
fn done(outcome: Result<(), Refused>) {
    outcome.unwrap();
}

fn cell(operation: Operation, (ranks, size): (u32, u64), measured: &ParameterSets) -> Cell {
    let (ranks, sizes) = ([ranks], [size]);
    let answer = question(operation, (&ranks, &sizes), measured, &[]).answer(&mut done);
    answer.cells.into_iter().next().unwrap()
}

fn timed<'a>(cell: &'a Cell, name: &str) -> &'a Timed {
    let found = cell.candidates.iter().find(|one| one.candidate.algorithm.name == name);
    found.unwrap_or_else(|| panic!("no {name}: {cell:?}"))
}

/// The time of an algorithm, in ns.
fn time(cell: &Cell, name: &str) -> u64 {
    let time = timed(cell, name).time;
    assert!(matches!(time, Time::Simulated(_)), "{name}: {time:?}");
    time.bound().0 / 1_000
}

fn winner(cell: &Cell) -> &'static str {
    cell.winner().unwrap().candidate.algorithm.name
}

/// A broadcast of one byte to 15 others takes 14·max{o, g} + 2o + L from the root alone, and 4(2o +
/// L) by a binomial tree.
#[test]
fn a_tree_wins_where_processors_are_slow_and_the_root_alone_where_the_wire_is() {
    let slow_processor = cell(Operation::Bcast, (16, 1), &sets([100, 1_000, 500, 0]));
    assert_eq!(time(&slow_processor, "basic_linear"), 14_000 + 2_100);
    assert_eq!(time(&slow_processor, "binomial"), 4 * 2_100);
    assert_eq!(winner(&slow_processor), "binomial");
    let slow_wire = cell(Operation::Bcast, (16, 1), &sets([10_000, 100, 50, 0]));
    assert_eq!(time(&slow_wire, "basic_linear"), 1_400 + 10_200);
    assert_eq!(winner(&slow_wire), "basic_linear");
}

/// L = 1 µs, o = 100 ns, g = 50 ns, G = 1 ns/B.
const USUAL: [u64; 4] = [1_000, 100, 50, 1_000];

/// Time in ns of an exchange with these parameters: 2o + L + (s − 1)G.
fn round(size: u64) -> u64 {
    1_200 + size.max(1) - 1
}

/// Rounds follow one another, so their times add up.
#[test]
fn exchanges_take_their_closed_forms_and_the_winner_changes_with_the_size() {
    let set = sets(USUAL);
    let small = cell(Operation::Allgather, (8, 1), &set);
    assert_eq!(time(&small, "recursive_doubling"), [1, 2, 4].map(round).iter().sum::<u64>());
    assert_eq!(time(&small, "bruck"), time(&small, "recursive_doubling"));
    assert_eq!(time(&small, "neighbor"), round(1) + 3 * round(2));
    // Of the two that tie, the one that copies nothing in memory wins.
    assert_eq!(winner(&small), "recursive_doubling");
    let blocks = cell(Operation::Alltoall, (8, 100_000), &set);
    assert_eq!(time(&blocks, "pairwise"), 7 * round(100_000));
    assert_eq!(time(&blocks, "modified_bruck"), 3 * round(400_000));
    let small = cell(Operation::Alltoall, (8, 1), &set);
    assert_eq!(time(&small, "modified_bruck"), 3 * round(4));
    let sum = cell(Operation::Allreduce, (8, 800_000), &set);
    assert_eq!(time(&sum, "recursive_doubling"), 3 * round(800_000));
    assert_eq!(time(&sum, "ring"), 14 * round(100_000));
    let halves = [400_000, 200_000, 100_000].map(round).iter().sum::<u64>();
    assert_eq!(time(&sum, "rabenseifner"), 2 * halves);
    assert_eq!(winner(&sum), "rabenseifner");
    let sum = cell(Operation::Allreduce, (8, 8), &set);
    assert_eq!(winner(&sum), "recursive_doubling");
}

/// For s bytes and P ranks, trees send all s bytes on each level; scatter and allgather send 2s(P −
/// 1)/P.
#[test]
fn long_broadcasts_are_scattered_and_gathered() {
    let set = sets(USUAL);
    let long = cell(Operation::Bcast, (8, 8_000_000), &set);
    // Down the tree 4, 2 and 1 blocks of a million bytes, then the same amounts again.
    let blocks = [4_000_000, 2_000_000, 1_000_000].map(round).iter().sum::<u64>();
    assert_eq!(time(&long, "scatter_allgather"), 2 * blocks);
    assert!(timed(&long, "binomial").time.bound().0 / 1_000 > 2 * blocks);
    let short = cell(Operation::Bcast, (8, 8), &set);
    assert!(winner(&short) != "scatter_allgather" && winner(&short) != "scatter_allgather_ring");
}

#[test]
fn combining_is_counted_where_it_is_asked_for() {
    let set = sets([1_000, 100, 50, 0]);
    let (ranks, sizes) = ([4], [1_000]);
    let mut question = question(Operation::Allreduce, (&ranks, &sizes), &set, &[]);
    question.combine = PerByte(2_000 << PerByte::FRACTION_BITS);
    let cell = &question.answer(&mut done).cells[0];
    assert_eq!(time(cell, "recursive_doubling"), 2 * (1_200 + 2_000));
    assert_eq!(time(cell, "rabenseifner"), 4 * 1_200 + 2_000 * 3 / 4);
}

#[test]
fn segments_are_chosen_where_they_help() {
    let set = sets(USUAL);
    let (ranks, sizes) = ([16], [1 << 20]);
    let answer = question(Operation::Bcast, (&ranks, &sizes), &set, &[]).answer(&mut done);
    let segment = |name: &str| timed(&answer.cells[0], name).candidate.segment;
    assert!(SEGMENTS.contains(&segment("pipeline")));
    assert_eq!(segment("scatter_allgather"), 0);
}

/// All times scale alike in every draw, so the ranking cannot change.
#[test]
fn draws_are_paired() {
    let measured = sets([80_000, 1_000, 500, 1_000]);
    let scaled = |tenths: u64| sets([8_000, 100, 50, 100].map(|part| part * tenths));
    let draws: Vec<ParameterSets> = (1..=100).map(scaled).collect();
    let (ranks, sizes) = ([16], [8]);
    let answer = question(Operation::Bcast, (&ranks, &sizes), &measured, &draws).answer(&mut done);
    let contest = answer.cells[0].contest.as_ref().unwrap();
    assert_eq!((contest.draws, contest.won), (100, 100));
    assert!(contest.is_told_apart() && contest.rivals.is_empty());
    // In proportion as well: nothing slower than the winner can win.
    assert!((answer.reach - 1.0).abs() < 1e-9, "{}", answer.reach);
}

/// The winner in a draw was within `reach` of the winner with the measured parameters.
#[test]
fn no_draw_lets_something_beyond_reach_win() {
    let mut random = Random::new(7);
    let mut changed = 0;
    for _ in 0..60 {
        let parts = [3_000, 900, 1_500, 2_000].map(|most| random.below(most) + 200);
        let (before, after) =
            (sets(parts), sets(parts.map(|part| part * (70 + random.below(60)) / 100)));
        let reach = spread::reach(&before, std::slice::from_ref(&after), 1_000, PerByte::ZERO);
        for operation in Operation::ALL {
            let size = if operation.has_size() { 1_000 } else { 0 };
            let [before, after] = [&before, &after].map(|sets| cell(operation, (8, size), sets));
            let now = winner(&after);
            let [then, best] = [now, winner(&before)].map(|name| timed(&before, name).time.bound());
            let ratio = then.seconds() / best.seconds();
            assert!(ratio <= reach * (1.0 + 1e-9), "{operation}: {ratio} {reach}");
            changed += u32::from(winner(&before) != now);
        }
    }
    assert!(changed > 5, "{changed}");
}

#[test]
fn a_contest_counts_draws_and_ties_are_nobodys() {
    let picos = |times: &[u64]| times.iter().map(|&time| Picos(time)).collect::<Vec<_>>();
    let mut winner = vec![1; 100];
    (winner[0], winner[1]) = (9, 5);
    let mut other = vec![2; 100];
    (other[2], other[3]) = (1, 1);
    let others = |other: &[u64]| {
        let slow = cell::Drawn { place: 4, times: picos(&[7; 100]) };
        [cell::Drawn { place: 1, times: picos(other) }, slow]
    };
    let contest = Contest::of(&picos(&winner), &others(&other));
    // The winner lost draws 0 and 1, and tied in 2 and 3.
    assert_eq!((contest.draws, contest.won), (100, 96));
    assert!(contest.is_told_apart() && contest.rivals.is_empty());
    other[..8].fill(1);
    let contest = Contest::of(&picos(&winner), &others(&other));
    assert_eq!((contest.won, contest.rivals.as_slice()), (92, &[1][..]));
    assert!(!contest.is_told_apart());
}

/// Candidates that are too slow to be simulated are judged by this bound alone.
#[test]
fn no_call_takes_less_than_its_bound() {
    let range = |first: u64, costs: [u64; 4], per_byte: u64| {
        let mut parameters = sets(costs).protocols[0].parameters;
        parameters.overhead_per_byte = PerByte(per_byte << PerByte::FRACTION_BITS);
        Protocol { first: Bytes(first), parameters }
    };
    let receive = |overhead: u64, per_byte: u64| ReceiveOverhead {
        overhead: Picos(overhead * 1_000),
        overhead_per_byte: PerByte(per_byte << PerByte::FRACTION_BITS),
    };
    let ranges =
        vec![range(0, [1_000, 100, 50, 1_000], 300), range(2_000, [2_500, 300, 400, 200], 900)];
    // A processor that is slower than the wire, and one that is faster.
    let measured = ParameterSets::new(ranges, vec![receive(700, 1_500), receive(20, 100)]);
    let (mut called, mut tight) = (0, 0);
    for operation in Operation::ALL {
        for (ranks, size) in [(5, 1), (8, 700), (6, 1_999), (12, 2_000), (8, 60_000)] {
            let (all, sizes) = ([ranks], [size]);
            let question = question(operation, (&all, &sizes), &measured, &[]);
            for algorithm in operation.algorithms() {
                let condition = algorithm.condition.holds(ranks);
                let segments: &[u64] = if algorithm.segments { &[0, 512] } else { &[0] };
                for &segment in segments.iter().filter(|_| condition) {
                    let (shape, combine) = (algorithm.shape, PerByte::ZERO);
                    let call = Call { shape, ranks, size, segment, combine };
                    let point =
                        |_| Point { sets: measured.clone(), phases: Phases::Drawn { seed: 0 } };
                    let source = Source::Collective(call);
                    let ran = run_points(&source, 1, &point, &PLAN, &|| {}).unwrap();
                    let (bound, time) = (question.bound(&call), ran[0].makespan);
                    assert!(bound <= time, "{} {call:?}: {bound} {time}", algorithm.name);
                    called += 1;
                    tight += usize::from(bound.0 * 2 > time.0);
                }
            }
        }
    }
    assert!(called > 100 && tight > 10, "{tight} of {called} are near their bound");
}

/// A cell with the given winner and rivals, as indices into `Operation::Bcast.algorithms()`.
fn made(size: u64, winner: usize, rivals: &[usize]) -> Cell {
    let all: Vec<&'static Algorithm> = Operation::Bcast.algorithms().collect();
    let places = std::iter::once(&winner).chain(rivals);
    let candidate = |place: &usize| {
        let candidate = Candidate { algorithm: all[*place], segment: 0 };
        Timed { candidate, time: Time::Simulated(Picos(1)) }
    };
    let rivals: Vec<usize> = (1..=rivals.len()).collect();
    let contest = Contest { draws: 100, won: if rivals.is_empty() { 100 } else { 50 }, rivals };
    let contest = Some(contest);
    Cell { ranks: 4, size, candidates: places.map(candidate).collect(), contest }
}

#[test]
fn cells_that_are_not_told_apart_take_a_neighbours_winner() {
    let settled = |cells: &[Cell]| -> Vec<&str> {
        settle(cells).iter().map(|choice| choice.unwrap().algorithm.name).collect()
    };
    let (a, b, c) = ("basic_linear", "chain", "pipeline");
    let cells = [made(1, 0, &[1]), made(2, 1, &[]), made(4, 0, &[1]), made(8, 2, &[0])];
    assert_eq!(settled(&cells), [b, b, b, c]);
    // Without rivals each cell keeps its own winner.
    let cells = [made(1, 0, &[]), made(2, 1, &[]), made(4, 0, &[])];
    assert_eq!(settled(&cells), [a, b, a]);
    // A candidate that wins no cell is not chosen, even if it is possible in all.
    let cells = [made(1, 0, &[2]), made(2, 1, &[2])];
    assert_eq!(settled(&cells), [a, b]);
}

/// A rank count, and for each threshold: size, algorithm, fan-out, segment.
type Row = (u64, Vec<[u64; 4]>);

/// Strict parser of Open MPI's rules format: the operation's number and its rows.
fn read(text: &str) -> (u64, Vec<Row>) {
    let mut words = text
        .lines()
        .flat_map(|line| line.split('#').next().unwrap().split_whitespace())
        .map(|word| {
            assert!(word == "0" || !word.starts_with('0'), "an octal number: {word}");
            word.parse::<u64>().unwrap()
        });
    let mut next = || words.next().expect("one more number");
    assert_eq!(next(), 1, "one operation");
    let operation = next();
    let mut rows = Vec::new();
    for _ in 0..next() {
        let (ranks, count) = (next(), next());
        let thresholds: Vec<[u64; 4]> =
            (0..count).map(|_| [next(), next(), next(), next()]).collect();
        assert_eq!(thresholds[0][0], 0, "the first size is 0");
        assert!(thresholds.is_sorted_by(|a, b| a[0] < b[0]), "{thresholds:?}");
        rows.push((ranks, thresholds));
    }
    assert_eq!(words.next(), None, "nothing behind");
    assert_eq!(rows[0], (0, vec![[0; 4]]), "a guard for fewer ranks");
    assert!(rows.is_sorted_by(|a, b| a.0 < b.0));
    (operation, rows)
}

fn written(rules: &Rules) -> String {
    written_as(rules, RulesFormat::First)
}

fn written_as(rules: &Rules, format: RulesFormat) -> String {
    let mut out = Vec::new();
    rules.write(&mut out, format, &["a remark\n1 2 3".to_owned()]).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn rules_are_read_back_by_a_strict_reader() {
    let row = [made(8, 0, &[]), made(16, 0, &[]), made(32, 1, &[])];
    let of_ranks = |ranks| row.iter().map(move |cell| Cell { ranks, ..cell.clone() });
    let mut cells: Vec<Cell> = of_ranks(8).chain(of_ranks(16)).collect();
    cells.push(Cell { ranks: 32, ..made(8, 4, &[]) });
    cells[2].candidates[0].candidate.segment = 8_192;
    cells[5].candidates[0].candidate.segment = 8_192;
    let rules = Rules::of(Operation::Bcast, &cells);
    let (operation, rows) = read(&written(&rules));
    assert_eq!(operation, 7);
    // 8 and 16 ranks have the same rules, which are written once.
    let eight = (8, vec![[0; 4], [8, 1, 0, 0], [32, 2, 4, 8_192], [64, 0, 0, 0]]);
    let more = (32, vec![[0; 4], [8, 6, 0, 0], [16, 0, 0, 0]]);
    assert_eq!(rows, [(0, vec![[0; 4]]), eight, more, (64, vec![[0; 4]])]);
    // Version 2 begins with its name, and its rules have a fifth number.
    let longer = |line: &str| {
        let is_rule = line.split(" # ").next().unwrap().split_whitespace().count() == 4;
        let line = if is_rule { line.replacen(" # ", " 0 # ", 1) } else { line.to_owned() };
        line + "\n"
    };
    let expected: String = written(&rules).lines().map(longer).collect();
    let second = written_as(&rules, RulesFormat::Second);
    assert_eq!(second, format!("rule-file-version-2\n{expected}"));
    assert!(second.contains("\n32 2 4 8192 0 # "), "{second}");
    let (_, probe) = read(&written(&rules.probe()));
    assert_eq!(probe[1].1, [[0; 4], [8, 99, 0, 0], [32, 99, 0, 0], [64, 0, 0, 0]]);
}

/// An algorithm that is too slow to win against recursive doubling may win where that one is not
/// available: the algorithm that a rule names between tested rank counts must be faster than all
/// that were not simulated.
#[test]
fn nothing_that_was_left_out_is_faster_than_what_rules_name_between_tested_ranks() {
    let slow = sets([2_500, 1_500, 1_000, 6]);
    let sizes = [1, 64 << 10, 128 << 10, 1 << 20];
    for operation in [Operation::Bcast, Operation::Allgather, Operation::Allreduce] {
        for measured in [&slow, &sets(USUAL)] {
            let answer = question(operation, (&[16, 128], &sizes), measured, &[]).answer(&mut done);
            for cell in &answer.cells {
                let most_ranks = if cell.ranks == 16 { 127 } else { 255 };
                let between = cell.for_all(cell.ranks + 1, most_ranks);
                let best = between.winner().unwrap().time;
                assert!(matches!(best, Time::Simulated(_)), "{between:?}");
                let none_is_faster =
                    between.candidates.iter().all(|timed| timed.time.bound() >= best.bound());
                assert!(none_is_faster, "{between:?}");
            }
        }
    }
}

/// Open MPI runs recursive doubling as such only for powers of two.
#[test]
fn rules_between_tested_numbers_of_ranks_name_what_the_library_does_there() {
    let sets = sets(USUAL);
    let (ranks, sizes) = ([8, 16], [64]);
    let answer = question(Operation::Allgather, (&ranks, &sizes), &sets, &[]).answer(&mut done);
    let mut cells = answer.cells;
    for cell in &mut cells {
        let doubling = |timed: &Timed| timed.candidate.algorithm.name == "recursive_doubling";
        cell.candidates.sort_by_key(|timed| !doubling(timed));
    }
    let names = |rules: &Rules| -> Vec<(u32, &str)> {
        rules
            .rows
            .iter()
            .map(|row| (row.ranks, row.thresholds.iter().find(|at| at.rule.algorithm > 0)))
            .map(|(ranks, at)| (ranks, at.map_or("", |at| at.rule.name)))
            .collect()
    };
    let rules = Rules::of(Operation::Allgather, &cells);
    let expected = [
        (0, ""),
        (8, "recursive_doubling"),
        (9, "bruck"),
        (16, "recursive_doubling"),
        (17, "bruck"),
        (32, ""),
    ];
    assert_eq!(names(&rules), expected);
    // There are no rank counts between 8 and 9.
    let mut close = cells.clone();
    close[1].ranks = 9;
    close[1].candidates.retain(|timed| timed.candidate.algorithm.name == "bruck");
    let close = Rules::of(Operation::Allgather, &close);
    assert_eq!(names(&close)[..3], [(0, ""), (8, "recursive_doubling"), (9, "bruck")]);
}

#[test]
fn sizes_in_rules_are_in_the_unit_of_the_operation() {
    let cells = [Cell { ranks: 4, ..made(8, 0, &[]) }];
    let first = |operation| Rules::of(operation, &cells).rows[1].thresholds[1].from;
    assert_eq!([Operation::Bcast, Operation::Allreduce].map(first), [8, 8]);
    let blocks = [Operation::Allgather, Operation::Alltoall, Operation::Gather, Operation::Scatter];
    assert_eq!(blocks.map(first), [32; 4]);
    // A barrier has no size.
    let barrier = Rules::of(Operation::Barrier, &[Cell { size: 0, ..cells[0].clone() }]);
    assert_eq!(barrier.rows[1].thresholds.len(), 1);
    assert_eq!(barrier.rows[1].thresholds[0].from, 0);
}

#[test]
fn every_operation_has_two_algorithms_for_any_number_of_ranks_and_size() {
    let safe = Offer { element: 8, commutative: false };
    for operation in Operation::ALL {
        for ranks in 2..70 {
            let at = Case { ranks, most_ranks: ranks, size: 1 };
            let count = operation.algorithms().filter(|one| safe.holds(one, at)).count();
            assert!(count >= 2, "{operation} {ranks}");
        }
        // No algorithm may fail at a rank count that was not tested.
        assert!(operation.algorithms().all(|one| !one.name.contains("two_proc")));
        assert!(
            operation
                .algorithms()
                .all(|one| one.fanout() == 0 || one.shape == Shape::BroadcastChains { chains: 4 })
        );
    }
}
