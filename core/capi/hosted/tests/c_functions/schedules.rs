//! Schedules, noise traces and patterns, and their simulation.

use crate::fuzzing::lent::{Lent, Plain};
use core::ffi::c_void;
use loggap_capi::{
    Detour, GoalInfo, LogGops, Operation, PatternKind, PatternOptions, Protocol, SimulateOptions,
    Simulated, SinkTable, Status,
};

const TEXT: &[u8] = b"num_ranks 2\nrank 0 {\na: calc 10\nb: send 8b to 1 tag 5\nb requires a\n}\n\
    rank 1 {\na: recv 8b from 0 tag 5\nb: calc 20\nb irequires a\n}\n";
const EVERY_FORM: [&[u8]; 3] = [
    include_bytes!("../../../../../fuzz/seeds/goal_text/every_form.goal"),
    include_bytes!("../../../../../fuzz/seeds/goal_reference/every_form.bin"),
    include_bytes!("../../../../../fuzz/seeds/goal_native/every_form.lgs"),
];
const ALL_TO_ALL: [&[u8]; 3] = [
    include_bytes!("../../../../../fuzz/seeds/goal_text/alltoall.goal"),
    include_bytes!("../../../../../fuzz/seeds/goal_reference/alltoall.bin"),
    include_bytes!("../../../../../fuzz/seeds/goal_native/alltoall.lgs"),
];

/// What a sink has seen, and how many operations it takes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Seen {
    ranks: u32,
    begun: u32,
    ended: u32,
    ops: u64,
    edges: u64,
    takes: u64,
}

/// # Safety
///
/// `context` points to what was seen, and nobody else uses it meanwhile.
unsafe fn seen<'a>(context: *mut c_void) -> &'a mut Seen {
    // SAFETY: by the contract.
    unsafe { &mut *context.cast::<Seen>() }
}

unsafe extern "C" fn on_ranks(context: *mut c_void, ranks: u32) -> i32 {
    // SAFETY: the tests pass what was seen as the context.
    unsafe { seen(context) }.ranks = ranks;
    0
}

unsafe extern "C" fn on_begin(context: *mut c_void, rank: u32) -> i32 {
    // SAFETY: as in `on_ranks`.
    let seen = unsafe { seen(context) };
    seen.begun += 1;
    i32::from(rank + 1 != seen.begun)
}

unsafe extern "C" fn on_op(context: *mut c_void, _index: u32, op: *const Operation) -> i32 {
    // SAFETY: the library passes an operation.
    assert!(unsafe { op.read() }.kind <= 2);
    // SAFETY: as in `on_ranks`.
    let seen = unsafe { seen(context) };
    seen.ops += 1;
    if seen.ops > seen.takes { 42 } else { 0 }
}

unsafe extern "C" fn on_edge(context: *mut c_void, op: u32, on: u32, start: u32) -> i32 {
    // SAFETY: as in `on_ranks`.
    unsafe { seen(context) }.edges += 1;
    i32::from(op == on || start > 1)
}

unsafe extern "C" fn on_end(context: *mut c_void) -> i32 {
    // SAFETY: as in `on_ranks`.
    unsafe { seen(context) }.ended += 1;
    0
}

fn survey(goal: &[u8]) -> GoalInfo {
    let mut info = GoalInfo::default();
    gives!(Ok, loggap_goal_survey(goal.as_ptr(), goal.len(), &raw mut info));
    info
}

fn read(goal: &[u8], takes: u64) -> (i32, Seen) {
    let memory = Lent::new(survey(goal).read_bytes);
    let read = read_with(goal, takes, (memory.pointer(), memory.length(), 5));
    assert!(memory.is_guarded());
    read
}

/// Reads with memory and the seed of labels.
fn read_with(goal: &[u8], takes: u64, (first, room, seed): (*mut u8, usize, u64)) -> (i32, Seen) {
    let mut seen = Seen { takes, ..Seen::default() };
    let sink = SinkTable {
        context: (&raw mut seen).cast(),
        ranks: Some(on_ranks),
        begin_rank: Some(on_begin),
        op: Some(on_op),
        requires: Some(on_edge),
        end_rank: Some(on_end),
    };
    let (bytes, length, table) = (goal.as_ptr(), goal.len(), &raw const sink);
    let null = core::ptr::null_mut();
    let status = call!(loggap_goal_read(bytes, length, first, room, seed, table, null));
    (status, seen)
}

/// What memory holds of labels after a schedule was read with a seed.
fn labels(seed: u64) -> Vec<u64> {
    let goal = EVERY_FORM[0];
    let mut memory = vec![0_u64; survey(goal).read_bytes.div_ceil(8)];
    let room = memory.len() * 8;
    let (status, seen) = read_with(goal, u64::MAX, (memory.as_mut_ptr().cast(), room, seed));
    assert_eq!((status, seen.ops), (0, survey(goal).ops));
    // Two words for each label come first; behind them not all is written.
    memory.truncate(4);
    memory
}

#[test]
fn the_callers_seed_decides_where_labels_are_kept() {
    assert_eq!(labels(5), labels(5));
    let others = (6..12).filter(|&seed| labels(seed) != labels(5)).count();
    assert!(others > 3, "{others} of 6 seeds differ");
}

#[test]
fn a_schedule_in_every_format_goes_into_a_sink_of_callbacks() {
    for (format, goal) in (0..).zip(EVERY_FORM) {
        let info = survey(goal);
        assert_eq!(info.format, format);
        let (status, seen) = read(goal, u64::MAX);
        assert_eq!(status, 0);
        assert_eq!((seen.ranks, seen.begun, seen.ended), (info.ranks, info.ranks, info.ranks));
        assert_eq!((seen.ops, seen.edges), (info.ops, info.edges));
        let (status, seen) = read(goal, info.ops - 1);
        assert_eq!((status, seen.ops), (Status::Sink as i32, info.ops));
    }
}

/// The call of a sink that refuses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Call {
    Ranks,
    BeginRank(u32),
    Op(u32),
    Requires { op: u32, start: u32 },
    EndRank,
}

/// A sink that refuses one call on a rank.
struct Picky {
    refused: Call,
    on_rank: u32,
    rank: u32,
}

/// # Safety
///
/// `context` points to a [`Picky`] that nobody else uses meanwhile.
unsafe fn pick(context: *mut c_void, call: Call) -> i32 {
    // SAFETY: by the contract.
    let picky = unsafe { &mut *context.cast::<Picky>() };
    if let Call::BeginRank(rank) = call {
        picky.rank = rank;
    }
    if picky.refused == call && picky.rank == picky.on_rank { 42 } else { 0 }
}

unsafe extern "C" fn pick_ranks(context: *mut c_void, _ranks: u32) -> i32 {
    // SAFETY: the tests pass a picky sink as the context.
    unsafe { pick(context, Call::Ranks) }
}

unsafe extern "C" fn pick_begin(context: *mut c_void, rank: u32) -> i32 {
    // SAFETY: as in `pick_ranks`.
    unsafe { pick(context, Call::BeginRank(rank)) }
}

unsafe extern "C" fn pick_op(context: *mut c_void, index: u32, _op: *const Operation) -> i32 {
    // SAFETY: as in `pick_ranks`.
    unsafe { pick(context, Call::Op(index)) }
}

unsafe extern "C" fn pick_edge(context: *mut c_void, op: u32, _on: u32, start: u32) -> i32 {
    // SAFETY: as in `pick_ranks`.
    unsafe { pick(context, Call::Requires { op, start }) }
}

unsafe extern "C" fn pick_end(context: *mut c_void) -> i32 {
    // SAFETY: as in `pick_ranks`.
    unsafe { pick(context, Call::EndRank) }
}

#[test]
fn a_sink_that_refuses_is_told_with_the_operation_that_its_call_was_about() {
    let none = u32::MAX;
    // Three operations on each rank; the second one waits.
    let text = b"num_ranks 2\nrank 0 {\na: calc 1\nb: calc 2\nc: calc 3\nb requires a\n}\n\
        rank 1 {\na: calc 1\nb: calc 2\nc: calc 3\nb irequires a\n}\n";
    let cases = [
        (none, Call::Ranks, none),
        (1, Call::BeginRank(1), none),
        (0, Call::Op(0), 0),
        (1, Call::Op(2), 2),
        (0, Call::Requires { op: 1, start: 0 }, 1),
        (1, Call::Requires { op: 1, start: 1 }, 1),
        (1, Call::EndRank, none),
    ];
    let memory = Lent::new(survey(text).read_bytes);
    for (rank, refused, op) in cases {
        let mut picky = Picky { refused, on_rank: rank, rank: none };
        let sink = SinkTable {
            context: (&raw mut picky).cast(),
            ranks: Some(pick_ranks),
            begin_rank: Some(pick_begin),
            op: Some(pick_op),
            requires: Some(pick_edge),
            end_rank: Some(pick_end),
        };
        let (first, room, table) = (memory.pointer(), memory.length(), &raw const sink);
        let detail =
            gives!(Sink, loggap_goal_read(text.as_ptr(), text.len(), first, room, 5, table));
        assert_eq!((detail.rank, detail.op, detail.found), (rank, op, 42), "{refused:?}");
    }
}

#[test]
fn a_schedule_that_is_cut_off_is_refused_and_one_needs_its_memory() {
    for goal in EVERY_FORM {
        let (nothing, info) = (SinkTable::zeros(), survey(goal));
        let step = if cfg!(miri) { 41 } else { 1 };
        let memory = Lent::new(info.read_bytes);
        for cut in (0..goal.len() - 2).step_by(step) {
            let (first, room) = (memory.pointer(), memory.length());
            let sink = &raw const nothing;
            gives!(Malformed, loggap_goal_read(goal.as_ptr(), cut, first, room, 5, sink));
        }
        if let Some(short) = info.read_bytes.checked_sub(1) {
            let (bytes, length, first) = (goal.as_ptr(), goal.len(), memory.pointer());
            gives!(Memory, loggap_goal_read(bytes, length, first, short, 5, &raw const nothing));
        } else {
            let (bytes, length) = (goal.as_ptr(), goal.len());
            let null = core::ptr::null_mut();
            gives!(Ok, loggap_goal_read(bytes, length, null, 0, 5, &raw const nothing));
        }
        assert!(memory.is_guarded());
    }
}

/// LogGOPSim's defaults.
static USUAL: Protocol = Protocol {
    first: 0,
    parameters: LogGops {
        latency_ps: 2_500_000,
        overhead_ps: 1_500_000,
        gap_ps: 1_000_000,
        gap_per_byte_q16: 6000 << 16,
        overhead_per_byte_q16: 0,
        eager_limit: 65_535,
    },
};

fn simulate(goal: &[u8], options: &SimulateOptions) -> (Simulated, Vec<u64>) {
    let (bytes, length) = (goal.as_ptr(), goal.len());
    let options = &raw const *options;
    let reading = Lent::new(survey(goal).read_bytes);
    let (first, room) = (reading.pointer(), reading.length());
    let mut needed = 0_usize;
    let place = &raw mut needed;
    gives!(Ok, loggap_simulate_goal_bytes(bytes, length, options, first, room, place));
    let (memory, mut simulated) = (Lent::new(needed), Simulated::default());
    let ranks = survey(goal).ranks as usize;
    let finishes = Lent::new(8 * ranks);
    let run = |room| {
        let (first, place) = (memory.pointer(), &raw mut simulated);
        let (finish, null) = (finishes.pointer().cast(), core::ptr::null_mut());
        let protocol = &raw const USUAL;
        call!(loggap_simulate_goal(
            bytes, length, protocol, 1, options, first, room, place, finish, ranks, null
        ))
    };
    let mut run = run;
    assert_eq!(run(needed - 8), Status::Memory as i32);
    assert_eq!(run(needed), 0);
    assert!(memory.is_guarded() && finishes.is_guarded() && reading.is_guarded());
    let finishes = finishes.bytes(8 * ranks);
    let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
    (simulated, finishes.chunks(8).map(number).collect())
}

#[test]
fn the_memory_that_a_simulation_asks_for_brings_it_further_each_time() {
    let (options, goal) = (SimulateOptions::zeros(), TEXT);
    let (bytes, length, settings) = (goal.as_ptr(), goal.len(), &raw const options);
    let reading = Lent::new(survey(goal).read_bytes);
    let (first, read_bytes, mut enough) = (reading.pointer(), reading.length(), 0_usize);
    let place = &raw mut enough;
    gives!(Ok, loggap_simulate_goal_bytes(bytes, length, settings, first, read_bytes, place));
    let (memory, mut lent, mut refusals) = (Lent::new(enough), 0, 0);
    loop {
        let (mut simulated, mut detail) = (Simulated::default(), loggap_capi::Detail::zeros());
        let (protocol, place, told) = (&raw const USUAL, &raw mut simulated, &raw mut detail);
        let (first, none) = (memory.pointer(), core::ptr::null_mut());
        let status = call!(loggap_simulate_goal(
            bytes, length, protocol, 1, settings, first, lent, place, none, 0, told
        ));
        if status == 0 {
            break;
        }
        assert_eq!(status, Status::Memory as i32, "{detail:?}");
        assert!(detail.needed > lent as u64 && detail.needed <= enough as u64, "{detail:?}");
        (lent, refusals) = (detail.needed as usize, refusals + 1);
    }
    assert!((2..10).contains(&refusals) && lent == enough, "{refusals}, {lent} of {enough}");
}

#[test]
fn a_schedule_is_simulated_the_same_in_every_format() {
    let options = SimulateOptions::zeros();
    let (simulated, finishes) = simulate(TEXT, &options);
    assert_eq!((simulated.ranks, simulated.ops), (2, 4));
    assert_eq!(finishes.iter().max(), Some(&simulated.makespan_ps));
    let forms = ALL_TO_ALL.map(|goal| simulate(goal, &options).1);
    assert!(forms.iter().all(|finishes| *finishes == forms[0]), "{forms:?}");
}

fn detours() -> (Vec<Detour>, u64) {
    let text = b"# Trace length [ns]: 1000\n100.5 10\n500 20\n";
    let count = call!(loggap_noise_count(text.as_ptr(), text.len()));
    let memory = Lent::new(call!(loggap_noise_bytes(count)));
    let places = Lent::new(count * size_of::<Detour>());
    let (mut found, mut period) = (0_usize, 0);
    let mut read = |capacity| {
        let (first, room) = (memory.pointer(), memory.length());
        let (place, length) = (places.pointer().cast(), &raw mut period);
        let (found, null) = (&raw mut found, core::ptr::null_mut());
        let (text, bytes) = (text.as_ptr(), text.len());
        call!(loggap_noise_read(text, bytes, first, room, place, capacity, found, length, null))
    };
    assert_eq!(read(1), Status::Full as i32);
    assert_eq!(read(2), 0);
    assert_eq!((count, found, period), (2, 2, 1_000_000));
    assert!(memory.is_guarded() && places.is_guarded());
    let place: *const Detour = places.pointer().cast();
    // SAFETY: two detours have been written there.
    (unsafe { core::slice::from_raw_parts(place, 2) }.to_vec(), period)
}

#[test]
fn noise_makes_a_program_longer() {
    let (detours, noise_length_ps) = detours();
    let quiet = simulate(TEXT, &SimulateOptions::zeros()).0;
    let options = SimulateOptions {
        detours: detours.as_ptr(),
        detour_count: detours.len(),
        noise_length_ps,
        noise_together: 1,
        ..SimulateOptions::zeros()
    };
    assert!(simulate(TEXT, &options).0.makespan_ps > quiet.makespan_ps);
    let one = SimulateOptions { rendezvous: 1, receive: 1, ..SimulateOptions::zeros() };
    assert!(simulate(TEXT, &one).0.makespan_ps > 0);
}

fn pattern(name: &str, ranks: u32, change: impl Fn(&mut PatternOptions)) -> Simulated {
    let mut kind = u32::MAX;
    gives!(Ok, loggap_pattern_named(name.as_ptr().cast(), name.len(), &raw mut kind));
    let mut wanted = PatternOptions::zeros();
    assert_eq!(call!(loggap_pattern_options_default(&raw mut wanted, ranks, 64)), 0);
    change(&mut wanted);
    let options = SimulateOptions::zeros();
    let (wanted, options) = (&raw const wanted, &raw const options);
    // What random pairs need.
    let scratch = Lent::new(8 * ranks as usize);
    let (first, room, mut needed) = (scratch.pointer(), scratch.length(), 0_usize);
    let place = &raw mut needed;
    gives!(Ok, loggap_simulate_pattern_bytes(kind, wanted, options, first, room, place));
    let (memory, mut simulated) = (Lent::new(needed), Simulated::default());
    let (first, place, protocol) = (memory.pointer(), &raw mut simulated, &raw const USUAL);
    let (finish, capacity) = (core::ptr::null_mut(), 0);
    gives!(
        Ok,
        loggap_simulate_pattern(
            kind, wanted, protocol, 1, options, first, needed, place, finish, capacity,
        )
    );
    assert!(memory.is_guarded() && scratch.is_guarded());
    simulated
}

#[test]
fn patterns_are_simulated_by_their_names() {
    for name in ["binomial-broadcast", "random-pairs"] {
        assert_eq!(pattern(name, 4, |_| {}).ranks, 4, "{name}");
    }
    let twice = pattern("gather", 3, |options| (options.repeat, options.rotate_root) = (2, 1));
    assert!(twice.ops >= 2 * pattern("gather", 3, |_| {}).ops);
    let mut kind = 7;
    gives!(UnknownName, loggap_pattern_named("gathered".as_ptr().cast(), 8, &raw mut kind));
    assert_eq!(kind, 7);
}

#[test]
fn numbers_that_stand_for_nothing_are_refused() {
    let mut wanted = PatternOptions::zeros();
    assert_eq!(call!(loggap_pattern_options_default(&raw mut wanted, 4, 64)), 0);
    let refused = |kind, wanted: &PatternOptions, options: &SimulateOptions| {
        let (wanted, options) = (&raw const *wanted, &raw const *options);
        let (memory, mut needed) = (core::ptr::null_mut(), 9_usize);
        let place = &raw mut needed;
        let detail =
            gives!(Option, loggap_simulate_pattern_bytes(kind, wanted, options, memory, 0, place));
        assert_eq!(needed, 9);
        crate::name(&detail)
    };
    let (usual, gather) = (SimulateOptions::zeros(), PatternKind::Gather as u32);
    assert_eq!(refused(33, &wanted, &usual), "pattern");
    let algorithm = PatternOptions { algorithm: 5, ..wanted };
    assert_eq!(refused(gather, &algorithm, &usual), "algorithm");
    let receive = SimulateOptions { receive: 2, ..usual };
    assert_eq!(refused(gather, &wanted, &receive), "receive");
    let rendezvous = SimulateOptions { rendezvous: 2, ..usual };
    assert_eq!(refused(gather, &wanted, &rendezvous), "rendezvous");
}
