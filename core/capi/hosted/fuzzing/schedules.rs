//! Schedules, noise and patterns, and their simulation.

use super::World;
use super::codecs::spoilt;
use super::fitting::parameters;
use super::lent::{Lent, Plain};
use super::numbers::Numbers;
use super::place::{Place, Told, scribbled};
use core::ffi::c_void;
use loggap_capi::{
    Detour, GoalInfo, LogGops, Operation, PatternOptions, Protocol, SimulateOptions, Simulated,
    SinkTable, Status,
};

const GOALS: [&[u8]; 9] = [
    include_bytes!("../../../../fuzz/seeds/goal_text/broadcast.goal"),
    include_bytes!("../../../../fuzz/seeds/goal_text/alltoall.goal"),
    include_bytes!("../../../../fuzz/seeds/goal_text/every_form.goal"),
    include_bytes!("../../../../fuzz/seeds/goal_reference/broadcast.bin"),
    include_bytes!("../../../../fuzz/seeds/goal_reference/alltoall.bin"),
    include_bytes!("../../../../fuzz/seeds/goal_reference/every_form.bin"),
    include_bytes!("../../../../fuzz/seeds/goal_native/broadcast.lgs"),
    include_bytes!("../../../../fuzz/seeds/goal_native/alltoall.lgs"),
    include_bytes!("../../../../fuzz/seeds/goal_native/every_form.lgs"),
];
const TRACE: &[u8] = b"# Trace length [ns]: 1000\n100.5 10\n500 20\n";

const READ: [Status; 3] = [Status::Malformed, Status::Null, Status::Alignment];
const SIMULATE: [Status; 9] = [
    Status::Malformed,
    Status::Memory,
    Status::Schedule,
    Status::Deadlock,
    Status::Overflow,
    Status::Full,
    Status::Option,
    Status::Null,
    Status::Alignment,
];

/// Ranks that a schedule has at most: files name billions in a few bytes.
const MOST_RANKS: u32 = 1_000;
/// Bytes that a simulation is lent at most.
const MOST_BYTES: usize = 1 << 20;

/// What a sink counts, and how many operations it takes.
struct Counted {
    ranks: u32,
    ops: u64,
    edges: u64,
    takes: u64,
}

/// # Safety
///
/// `context` points to what was counted, and nobody else uses it meanwhile.
unsafe fn counted<'a>(context: *mut c_void) -> &'a mut Counted {
    // SAFETY: by the contract.
    unsafe { &mut *context.cast::<Counted>() }
}

unsafe extern "C" fn on_ranks(context: *mut c_void, ranks: u32) -> i32 {
    // SAFETY: callers pass what was counted as the context.
    unsafe { counted(context) }.ranks = ranks;
    0
}

unsafe extern "C" fn on_op(context: *mut c_void, _index: u32, op: *const Operation) -> i32 {
    // SAFETY: the library passes an operation.
    assert!(unsafe { op.read() }.kind <= 2);
    // SAFETY: as in `on_ranks`.
    let counted = unsafe { counted(context) };
    counted.ops += 1;
    i32::from(counted.ops > counted.takes)
}

unsafe extern "C" fn on_edge(context: *mut c_void, _op: u32, _on: u32, start: u32) -> i32 {
    assert!(start <= 1);
    // SAFETY: as in `on_ranks`.
    unsafe { counted(context) }.edges += 1;
    0
}

/// One protocol, or several that may be none.
fn protocols(input: &mut Numbers<'_>) -> Vec<Protocol> {
    let parameters_of = |input: &mut Numbers<'_>| match input.byte() {
        0xe0.. => parameters(input),
        _ => LogGops { latency_ps: 2500, overhead_ps: 1500, gap_ps: 1000, ..LogGops::zeros() },
    };
    let count = if input.seldom() { input.below(20) } else { 1 };
    let mut first = 0_u64;
    let mut protocols = Vec::new();
    for _ in 0..count {
        protocols.push(Protocol { first, parameters: parameters_of(input) });
        first = first.wrapping_add(input.number());
    }
    protocols
}

/// What both simulations are told and lent.
struct Run {
    options: Place<SimulateOptions>,
    protocols: Place<Protocol>,
    count: usize,
    memory: Lent,
    /// Whether as much was lent as the library has said.
    is_enough: bool,
    simulated: Place<Simulated>,
    finishes: Place<u64>,
    capacity: usize,
    told: Told,
}

impl Run {
    fn new(
        world: &World,
        options: SimulateOptions,
        needed: usize,
        input: &mut Numbers<'_>,
    ) -> Self {
        let protocols = protocols(input);
        let bytes = input.length(needed);
        let capacity = input.below(12);
        assert!(options.detour_count == 0 || options.detour_count == world.detours.len());
        Self {
            options: Place::holding(input, &[options]),
            count: protocols.len(),
            protocols: Place::holding(input, &protocols),
            memory: Lent::shifted(bytes, if input.seldom() { 4 } else { 0 }),
            is_enough: bytes == needed,
            simulated: Place::new(input),
            finishes: Place::for_many(input, capacity),
            capacity,
            told: Told::new(input),
        }
    }

    fn check(&self, status: i32) {
        self.told.check(status, &SIMULATE);
        self.simulated.holds(status);
        assert!(self.memory.is_guarded() && self.finishes.is_guarded());
        let memory = status == Status::Memory as i32;
        assert!(!(memory && self.is_enough), "{:?} are enough", self.told.needed());
        if status != 0 {
            assert!(self.finishes.is_untouched());
            return;
        }
        assert!(!self.options.is_wrong() && !self.protocols.is_wrong());
        let Simulated { makespan_ps, ranks, last_rank, .. } = self.simulated.get();
        assert!(last_rank < ranks);
        if self.capacity > 0 {
            let finishes: Vec<_> = (0..ranks as usize).map(|rank| self.finishes.at(rank)).collect();
            assert_eq!(finishes.iter().max(), Some(&makespan_ps));
            assert_eq!(
                finishes.iter().position(|time| *time == makespan_ps),
                Some(last_rank as usize)
            );
        }
    }
}

impl World {
    pub(super) fn choose_goal(&mut self, input: &mut Numbers<'_>) {
        self.goal = match input.below(12) {
            known @ 0..9 => spoilt(GOALS[known], input),
            _ => {
                let count = usize::from(input.short()) % 200;
                input.take(count).to_vec()
            }
        };
    }

    /// What a look at the schedule tells, `None` where it is refused.
    fn survey(&self) -> Option<GoalInfo> {
        let (mut info, null) = (GoalInfo::zeros(), core::ptr::null_mut());
        let (bytes, length) = (self.goal.as_ptr(), self.goal.len());
        let status = call!(loggap_goal_survey(bytes, length, &raw mut info, null));
        (status == 0 && info.ranks <= MOST_RANKS && info.read_bytes <= MOST_BYTES).then_some(info)
    }

    pub(super) fn read_goal(&mut self, input: &mut Numbers<'_>) {
        let (told, place) = (Told::new(input), Place::<GoalInfo>::new(input));
        let (bytes, length) = (self.goal.as_ptr(), self.goal.len());
        let status = call!(loggap_goal_survey(bytes, length, place.pointer(), told.pointer()));
        told.check(status, &READ);
        place.holds(status);
        let Some(info) = self.survey() else { return };
        let takes = if input.seldom() { input.byte().into() } else { u64::MAX };
        let mut counted = Counted { ranks: 0, ops: 0, edges: 0, takes };
        let table = SinkTable {
            context: (&raw mut counted).cast(),
            ranks: Some(on_ranks),
            op: Some(on_op),
            requires: Some(on_edge),
            ..SinkTable::zeros()
        };
        let (sink, told) = (Place::holding(input, &[table]), Told::new(input));
        let room = input.length(info.read_bytes);
        let memory = Lent::shifted(room, if input.seldom() { 4 } else { 0 });
        let (first, table, seed) = (memory.pointer(), sink.pointer(), input.long());
        let detail = told.pointer();
        let status = call!(loggap_goal_read(bytes, length, first, room, seed, table, detail));
        told.check(status, &[&READ[..], &[Status::Sink, Status::Memory]].concat());
        assert!(memory.is_guarded());
        if status == 0 {
            let seen = (counted.ranks, counted.ops, counted.edges);
            assert_eq!(seen, (info.ranks, info.ops, info.edges));
        } else if status == Status::Sink as i32 {
            assert!(counted.ops > takes);
        }
    }

    fn options(&self, input: &mut Numbers<'_>) -> SimulateOptions {
        let mut options = if input.seldom() {
            scribbled(SimulateOptions::zeros(), input)
        } else {
            SimulateOptions::zeros()
        };
        (options.detours, options.detour_count) = (core::ptr::null(), 0);
        if input.byte() & 3 == 0 {
            options.detours = self.detours.as_ptr();
            options.detour_count = self.detours.len();
        }
        options
    }

    pub(super) fn simulate_goal(&mut self, input: &mut Numbers<'_>) {
        let Some(info) = self.survey() else { return };
        let reading = Lent::new(info.read_bytes);
        let options = self.options(input);
        let (told, place) = (Told::new(input), Place::<usize>::new(input));
        let (goal, length, given) = (self.goal.as_ptr(), self.goal.len(), &raw const options);
        let (first, room) = (reading.pointer(), reading.length());
        let (needed, detail) = (place.pointer(), told.pointer());
        let status =
            call!(loggap_simulate_goal_bytes(goal, length, given, first, room, needed, detail));
        let documented = [&READ[..], &[Status::Schedule, Status::Option]].concat();
        told.check(status, &documented);
        place.holds(status);
        assert!(reading.is_guarded());
        if status != 0 || place.get() > MOST_BYTES {
            return;
        }
        let run = Run::new(self, options, place.get(), input);
        let (protocols, options) = (run.protocols.pointer(), run.options.pointer());
        let (first, bytes) = (run.memory.pointer(), run.memory.length());
        let (simulated, finishes) = (run.simulated.pointer(), run.finishes.pointer());
        let (count, capacity, detail) = (run.count, run.capacity, run.told.pointer());
        let status = call!(loggap_simulate_goal(
            goal, length, protocols, count, options, first, bytes, simulated, finishes, capacity,
            detail
        ));
        run.check(status);
        if status == 0 {
            let simulated = run.simulated.get();
            assert_eq!((simulated.ranks, simulated.ops), (info.ranks, info.ops));
        }
    }

    pub(super) fn simulate_pattern(&mut self, input: &mut Numbers<'_>) {
        let (options, wanted) = (self.options(input), pattern_options(input));
        let (kind, scratch) = (u32::from(input.byte() % 29), Lent::new(8 * 64));
        let (told, place) = (Told::new(input), Place::<usize>::new(input));
        let given = Place::holding(input, &[wanted]);
        let (wanted, table, first) = (given.pointer(), &raw const options, scratch.pointer());
        let (needed, detail) = (place.pointer(), told.pointer());
        let room = scratch.length();
        let status =
            call!(loggap_simulate_pattern_bytes(kind, wanted, table, first, room, needed, detail));
        told.check(status, &SIMULATE[1..]);
        place.holds(status);
        assert!(scratch.is_guarded());
        assert!(!(given.is_wrong() && status == 0));
        if status != 0 || place.get() > MOST_BYTES {
            return;
        }
        let run = Run::new(self, options, place.get(), input);
        let (protocols, options) = (run.protocols.pointer(), run.options.pointer());
        let (first, bytes) = (run.memory.pointer(), run.memory.length());
        let (simulated, finishes) = (run.simulated.pointer(), run.finishes.pointer());
        let (count, capacity, detail) = (run.count, run.capacity, run.told.pointer());
        let status = call!(loggap_simulate_pattern(
            kind, wanted, protocols, count, options, first, bytes, simulated, finishes, capacity,
            detail
        ));
        run.check(status);
    }

    pub(super) fn read_noise(&mut self, input: &mut Numbers<'_>) {
        let text = match input.byte() & 3 {
            0 => {
                let count = usize::from(input.byte());
                input.take(count).to_vec()
            }
            _ => spoilt(TRACE, input),
        };
        let (first, length) = (text.as_ptr(), text.len());
        let count = call!(loggap_noise_count(first, length));
        assert!(count <= length);
        let needed = call!(loggap_noise_bytes(count));
        let bytes = input.length(needed);
        let memory = Lent::shifted(bytes, if input.seldom() { 4 } else { 0 });
        let capacity = input.length(count);
        let places = Place::<Detour>::for_many(input, capacity);
        let (told, found) = (Told::new(input), Place::<usize>::new(input));
        let period = Place::<u64>::new(input);
        let (lent, detours, number) = (memory.pointer(), places.pointer(), found.pointer());
        let (stated, detail) = (period.pointer(), told.pointer());
        let status = call!(loggap_noise_read(
            first, length, lent, bytes, detours, capacity, number, stated, detail
        ));
        told.check(status, &[&READ[..], &[Status::Full, Status::Memory]].concat());
        let is_full = status == Status::Full as i32;
        assert!(memory.is_guarded() && places.is_guarded());
        found.holds(if is_full { 0 } else { status });
        period.holds(if is_full { 0 } else { status });
        if is_full {
            assert!(found.get() > capacity);
        } else if status == 0 {
            self.detours = (0..found.get()).map(|index| places.at(index)).collect();
        } else {
            assert!(places.is_untouched());
        }
    }
}

/// Options of a pattern that is not large: what makes many operations is small.
fn pattern_options(input: &mut Numbers<'_>) -> PatternOptions {
    let (mut usual, ranks, size) = (PatternOptions::zeros(), 5, 64);
    assert_eq!(call!(loggap_pattern_options_default(&raw mut usual, ranks, size)), 0);
    let mut options = scribbled(usual, input);
    options.ranks = if input.seldom() { 0 } else { 1 + u32::from(input.byte() % 8) };
    (options.groups, options.repeat) = (options.groups % 3, options.repeat % 3);
    (options.ways, options.window) = (options.ways % 12, options.window % 12);
    if options.segment > 0 {
        options.segment = options.segment.max(options.size / 16);
    }
    if options.background_poll_ps > 0 {
        options.background_poll_ps = options.background_poll_ps.max(options.background_ps / 16);
    }
    options
}
