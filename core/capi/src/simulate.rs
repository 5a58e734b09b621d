//! Prediction by simulation.

use loggap_core::goal::Sink;
use loggap_core::goal::pattern::{
    GenerateError, OptionError, Options, Pattern, generate, scratch_words,
};
use loggap_core::model::Protocol as CoreProtocol;
use loggap_core::noise::{Phases, Trace};
use loggap_core::sim::{
    Builder, Engine, Memory, Noise, Parameters, Receive, Rendezvous, Requirements, Settings,
    Silent, SimError, Survey, TraceNoise, Unfinished,
};
use loggap_core::units::{Bytes, Picos};

use crate::arena::{Arena, Sizer};
use crate::boundary::{Place, Places, input, plain, slice};
use crate::goal::Source;
use crate::goal_error::schedule;
use crate::noise::{Detour, invalid_trace, trace_memory, trace_of};
use crate::pattern::PatternOptions;
use crate::predict::LogGops;
use crate::reason::Reason;
use crate::status::{Detail, Outcome, Status, finish};

/// Parameters of one protocol: for messages of at least `first` bytes, up to
/// the next protocol's.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Protocol {
    /// First size that uses it; the first protocol covers smaller sizes, too.
    pub first: u64,
    /// Parameters of its messages.
    pub parameters: LogGops,
}

/// Receive mode.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum ReceiveKind {
    /// The processor is busy for all bytes, as in LogGOPSim.
    Hold = 0,
    /// The interface receives the bytes without the processor, as in LogGOPS.
    Overlap = 1,
}

/// Rendezvous mode: how messages above the eager limit are sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum RendezvousKind {
    /// The sender is released at the instant of the match, as in LogGOPSim.
    Instant = 0,
    /// RTS, CTS and data are messages, as in LogGPS.
    Handshake = 1,
}

/// Options of a simulation. All zeros select the rules of LogGOPSim without noise.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SimulateOptions {
    /// A `loggap_receive_kind`.
    pub receive: u32,
    /// A `loggap_rendezvous_kind`.
    pub rendezvous: u32,
    /// Detours that take time from operations; null for none.
    pub detours: *const Detour,
    /// Number of elements of `detours`.
    pub detour_count: usize,
    /// Period with which the detours repeat, in ps; 0 for the end of the last one.
    pub noise_length_ps: u64,
    /// Seed of each rank's starting position in the trace.
    pub noise_seed: u64,
    /// 1 if all ranks start at the same position.
    pub noise_together: u32,
    /// Seed of the labels of a schedule's text; see `loggap_goal_read`.
    pub label_seed: u64,
}

/// Result of a simulation.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Simulated {
    /// Finishing time of the last rank, in ps.
    pub makespan_ps: u64,
    /// Number of simulated operations and messages.
    pub events: u64,
    /// Number of operations in the schedule.
    pub ops: u64,
    /// Number of ranks.
    pub ranks: u32,
    /// Rank that finished last; the lowest of several.
    pub last_rank: u32,
}

plain!(Protocol, SimulateOptions);

/// Optional noise, so that one engine serves simulations with and without.
#[derive(Clone, Copy)]
struct AnyNoise<'a>(Option<TraceNoise<'a>>);

impl Noise for AnyNoise<'_> {
    fn lost(&self, rank: u32, start: Picos, length: Picos) -> Picos {
        self.0.map_or(Picos::ZERO, |noise| noise.lost(rank, start, length))
    }
}

/// Program to simulate.
enum Program<'t> {
    /// A schedule, and the seed of its label table.
    Schedule(Source<'t>, u64),
    Pattern(Pattern, Options),
}

impl Program<'_> {
    /// Memory needed besides the simulation's own.
    fn sizer(&self) -> Outcome<Sizer> {
        match self {
            Self::Schedule(source, _) => Ok(source.sizer()),
            Self::Pattern(pattern, options) => {
                let words = scratch_words(*pattern, options).map_err(option_error)?;
                Ok(if words == 0 { Sizer::new() } else { Sizer::new().array::<u32>(words) })
            }
        }
    }

    fn feed<S: Sink>(
        &self,
        arena: &mut Arena<'_>,
        sink: &mut S,
        refused: impl Fn(S::Error) -> Detail + Copy,
    ) -> Outcome<()> {
        match self {
            Self::Schedule(source, seed) => source.read(arena, *seed, sink, refused),
            Self::Pattern(pattern, options) => {
                let words = scratch_words(*pattern, options).map_err(option_error)?;
                let scratch = arena.array(words)?;
                generate(*pattern, options, scratch, sink).map_err(|error| match error {
                    GenerateError::Options(error) => option_error(error),
                    GenerateError::Sink(error) => refused(error),
                })
            }
        }
    }
}

macro_rules! simulation_memory {
    ($($(#[$doc:meta])* $part:ident: $element:ty,)*) => {
        /// Memory of a program and its simulation, in the order in which the arena is cut.
        fn sim_sizer(program: Sizer, needs: &Requirements) -> Sizer {
            program$(.array::<$element>(needs.$part))*
        }

        fn sim_memory<'m>(arena: &mut Arena<'m>, needs: &Requirements) -> Outcome<Memory<'m>> {
            Ok(Memory { $($part: arena.array(needs.$part)?,)* })
        }
    };
}

loggap_core::with_memory_parts!(simulation_memory);

impl SimulateOptions {
    fn settings(&self) -> Outcome<Settings> {
        let option = |name, value: u32| Detail::of(Status::Option).named(name).found(value.into());
        Ok(Settings {
            receive: match self.receive {
                kind if kind == ReceiveKind::Hold as u32 => Receive::Hold,
                kind if kind == ReceiveKind::Overlap as u32 => Receive::Overlap,
                kind => return Err(option("receive", kind)),
            },
            rendezvous: match self.rendezvous {
                kind if kind == RendezvousKind::Instant as u32 => Rendezvous::Instant,
                kind if kind == RendezvousKind::Handshake as u32 => Rendezvous::Handshake,
                kind => return Err(option("rendezvous", kind)),
            },
        })
    }

    fn phases(&self) -> Outcome<Phases> {
        let seed = self.noise_seed;
        match self.noise_together {
            0 => Ok(Phases::Drawn { seed }),
            1 => Ok(Phases::Together { seed }),
            other => Err(Detail::of(Status::Option).named("noise_together").found(other.into())),
        }
    }
}

/// Size of a program, from its survey.
struct Measured {
    survey: Survey,
    needs: Requirements,
    sizer: Sizer,
}

/// Surveys the program; takes from `arena` what reading it needs.
fn measure(program: &Program<'_>, arena: &mut Arena<'_>, settings: Settings) -> Outcome<Measured> {
    let mut survey = Survey::default();
    program.feed(arena, &mut survey, schedule)?;
    let needs = survey.requirements(settings).map_err(schedule)?;
    Ok(Measured { survey, needs, sizer: sim_sizer(program.sizer()?, &needs) })
}

/// Protocols of the core; fails if there are more than a simulation supports.
fn protocols(given: &[Protocol]) -> Outcome<heapless::Vec<CoreProtocol, { Parameters::MOST }>> {
    let wrong = Detail::because(Status::Option, Reason::Protocols).found(given.len() as u64);
    let mut protocols = heapless::Vec::new();
    for protocol in given {
        let (first, parameters) = (Bytes(protocol.first), protocol.parameters.to_core());
        protocols.push(CoreProtocol { first, parameters }).map_err(|_| wrong)?;
    }
    Ok(protocols)
}

/// Parameters, rules and noise of a simulation.
struct Setup<'a> {
    parameters: Parameters<'a>,
    settings: Settings,
    noise: AnyNoise<'a>,
}

/// Surveys, builds and runs the program in the remaining memory of `arena`.
fn run(
    program: &Program<'_>,
    setup: &Setup<'_>,
    arena: &mut Arena<'_>,
    finish_ps: &mut Places<u64>,
) -> Outcome<Simulated> {
    let Measured { survey, needs, sizer } =
        measure(program, &mut arena.rest(program.sizer()?)?, setup.settings)?;
    let mut arena = arena.rest(sizer)?;
    let ranks = survey.ranks();
    if finish_ps.len() > 0 && finish_ps.len() < ranks as usize {
        let full = Detail::of(Status::Full).needed(ranks.into());
        return Err(full.found(finish_ps.len() as u64));
    }
    let memory = sim_memory(&mut arena, &needs)?;
    let mut builder = Builder::new(memory, needs).map_err(schedule)?;
    program.feed(&mut arena, &mut builder, schedule)?;
    let built = builder.finish().map_err(schedule)?;
    let mut engine = Engine::with(built, setup.parameters, setup.settings, setup.noise, Silent);
    let finished = engine.run().map_err(stopped)?;
    let mut first = None;
    let mut count = 0;
    engine.unfinished(|unfinished| {
        count += 1;
        first.get_or_insert(unfinished);
    });
    if let Some(unfinished) = first {
        return Err(deadlock(unfinished).needed(count));
    }
    for rank in 0..ranks {
        finish_ps.put(rank as usize, engine.finish(rank).0);
    }
    let (makespan_ps, last_rank) = (finished.makespan.0, finished.last_rank);
    Ok(Simulated { makespan_ps, events: finished.events, ops: survey.ops(), ranks, last_rank })
}

fn deadlock(unfinished: Unfinished) -> Detail {
    let because = |reason| Detail::because(Status::Deadlock, reason);
    match unfinished {
        Unfinished::Unreceived { rank, from, op, .. } => {
            because(Reason::Unreceived).on(from, op).found(rank.into())
        }
        Unfinished::Waiting { rank, op, peer, .. } => {
            because(Reason::Waiting).on(rank, op).found(peer.into())
        }
        Unfinished::NeverReady { rank, op } => because(Reason::NeverReady).on(rank, op),
    }
}

fn stopped(error: SimError) -> Detail {
    match error {
        SimError::Overflow { rank } => Detail::of(Status::Overflow).on_rank(rank),
        SimError::TooManyAtOnce { time } => {
            Detail::because(Status::Schedule, Reason::AtOnce).at(time.0)
        }
        // Only networks that share links, streamed schedules and a defect cause
        // these; the C interface has neither of the former.
        SimError::NetworkFull { .. }
        | SimError::RecordsFull { .. }
        | SimError::Unreadable { .. }
        | SimError::Defect => Detail::of(Status::Memory),
    }
}

fn option_error(error: OptionError) -> Detail {
    let because = |reason| Detail::because(Status::Option, reason);
    match error {
        OptionError::Nothing | OptionError::Zero => because(Reason::PatternZero),
        OptionError::Root { root, ranks } => {
            because(Reason::PatternRoot).found(root.into()).needed(ranks.into())
        }
        OptionError::Skew { skew, size } => {
            because(Reason::PatternSkew).found(skew.into()).needed(size)
        }
        OptionError::TooLarge => because(Reason::PatternLarge),
        OptionError::PowerOfTwo { ranks } => because(Reason::PatternPower).found(ranks.into()),
        // A pattern from C has the most balanced grid.
        OptionError::Grid { .. } => Detail::of(Status::Option).named("grid"),
        OptionError::Algorithm { .. } => because(Reason::PatternAlgorithm),
        OptionError::Scratch { .. } => Detail::of(Status::Memory),
    }
}

/// Arguments that all simulations take.
struct Told<'a> {
    options: &'a SimulateOptions,
    protocols: &'a [Protocol],
    memory: *mut u8,
    bytes: usize,
}

fn simulate(
    program: &Program<'_>,
    told: &Told<'_>,
    finish_ps: &mut Places<u64>,
) -> Outcome<Simulated> {
    let settings = told.options.settings()?;
    let protocols = protocols(told.protocols)?;
    let wrong = Detail::because(Status::Option, Reason::Protocols);
    let parameters = Parameters::per_protocol(&protocols).ok_or(wrong)?;
    // SAFETY: by the contract of the exported function that calls.
    let detours = unsafe { slice(told.options.detours, told.options.detour_count) }?;
    let kept = trace_memory(detours);
    // SAFETY: by the contract of the exported function that calls.
    let mut arena = unsafe { Arena::maybe_empty(told.memory, told.bytes, kept) }?;
    let lent = trace_of(detours, &mut arena)?;
    let length = (told.options.noise_length_ps > 0).then_some(Picos(told.options.noise_length_ps));
    let noise = if lent.is_empty() {
        AnyNoise(None)
    } else {
        let trace = Trace::new(lent, length).map_err(invalid_trace)?;
        AnyNoise(Some(TraceNoise { trace, phases: told.options.phases()?, names: &[] }))
    };
    let setup = Setup { parameters, settings, noise };
    run(program, &setup, &mut arena, finish_ps).map_err(|failure| {
        let short = failure.status == Status::Memory as i32;
        if short { failure.needed(failure.needed.saturating_add(kept.total())) } else { failure }
    })
}

/// Writes to `needed` the bytes of memory that simulating a schedule in any of
/// the formats needs with these options, reading included. Surveying it for
/// this purpose needs memory, too; see `loggap_goal_survey`.
///
/// Errors: as `loggap_goal_read`; `LOGGAP_STATUS_SCHEDULE`,
/// `LOGGAP_STATUS_OPTION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_simulate_goal_bytes(
    goal: *const u8,
    length: usize,
    options: *const SimulateOptions,
    memory: *mut u8,
    bytes: usize,
    needed: *mut usize,
    detail: *mut Detail,
) -> i32 {
    let measure = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(needed) }?;
        // SAFETY: by the contract of this function.
        let options = unsafe { input(options) }?;
        // SAFETY: by the contract of this function.
        let source = Source::open(unsafe { slice(goal, length) }?)?;
        let program = Program::Schedule(source, options.label_seed);
        // SAFETY: by the contract of this function.
        let mut arena = unsafe { Arena::maybe_empty(memory, bytes, program.sizer()?) }?;
        place.put(total(&measure(&program, &mut arena, options.settings()?)?, options));
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(measure(), detail) }
}

/// Bytes for the simulation and its noise.
fn total(measured: &Measured, options: &SimulateOptions) -> usize {
    measured.sizer.bytes().saturating_add(Sizer::detours(options.detour_count).bytes())
}

/// Simulates a schedule in any of the formats under one parameter set per
/// protocol, ascending by size. `finish_ps` receives the finishing time of each
/// rank, and may be null with a `capacity` of 0.
///
/// Errors: as `loggap_goal_read`; `LOGGAP_STATUS_MEMORY` (`needed` is what the
/// next step needs, `loggap_simulate_goal_bytes` what all steps need);
/// `LOGGAP_STATUS_SCHEDULE` and `LOGGAP_STATUS_DEADLOCK` with rank, operation
/// and reason (a deadlock also with the number of unfinished operations in
/// `needed`); `LOGGAP_STATUS_OVERFLOW`; `LOGGAP_STATUS_FULL` if `capacity` is
/// less than the number of ranks; `LOGGAP_STATUS_OPTION`; `LOGGAP_STATUS_NULL`;
/// `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_simulate_goal(
    goal: *const u8,
    length: usize,
    protocols: *const Protocol,
    protocol_count: usize,
    options: *const SimulateOptions,
    memory: *mut u8,
    bytes: usize,
    simulated: *mut Simulated,
    finish_ps: *mut u64,
    capacity: usize,
    detail: *mut Detail,
) -> i32 {
    let run = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(simulated) }?;
        // SAFETY: by the contract of this function.
        let mut finishes = unsafe { Places::new(finish_ps, capacity) }?;
        // SAFETY: by the contract of this function.
        let options = unsafe { input(options) }?;
        // SAFETY: by the contract of this function.
        let protocols = unsafe { slice(protocols, protocol_count) }?;
        // SAFETY: by the contract of this function.
        let source = Source::open(unsafe { slice(goal, length) }?)?;
        let told = Told { options, protocols, memory, bytes };
        place.put(simulate(&Program::Schedule(source, options.label_seed), &told, &mut finishes)?);
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(run(), detail) }
}

/// Writes to `needed` the bytes of memory that simulating a pattern, a
/// `loggap_pattern_kind`, needs. `memory` may be null with 0 bytes except for
/// patterns that draw random numbers.
///
/// Errors: `LOGGAP_STATUS_OPTION` with the reason, `LOGGAP_STATUS_SCHEDULE`,
/// `LOGGAP_STATUS_MEMORY`, `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_simulate_pattern_bytes(
    pattern: u32,
    pattern_options: *const PatternOptions,
    options: *const SimulateOptions,
    memory: *mut u8,
    bytes: usize,
    needed: *mut usize,
    detail: *mut Detail,
) -> i32 {
    let measure = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(needed) }?;
        // SAFETY: by the contract of this function.
        let options = unsafe { input(options) }?;
        // SAFETY: by the contract of this function.
        let (pattern, settled) = unsafe { input(pattern_options) }?.to_core(pattern)?;
        let program = Program::Pattern(pattern, settled);
        // SAFETY: by the contract of this function.
        let mut arena = unsafe { Arena::maybe_empty(memory, bytes, program.sizer()?) }?;
        place.put(total(&measure(&program, &mut arena, options.settings()?)?, options));
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(measure(), detail) }
}

/// Simulates a pattern, a `loggap_pattern_kind`: a collective operation or
/// synthetic traffic. Otherwise as `loggap_simulate_goal`.
///
/// Errors: as `loggap_simulate_goal`, except those about a file;
/// `loggap_simulate_pattern_bytes` is a sufficient size of the memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_simulate_pattern(
    pattern: u32,
    pattern_options: *const PatternOptions,
    protocols: *const Protocol,
    protocol_count: usize,
    options: *const SimulateOptions,
    memory: *mut u8,
    bytes: usize,
    simulated: *mut Simulated,
    finish_ps: *mut u64,
    capacity: usize,
    detail: *mut Detail,
) -> i32 {
    let run = || {
        // SAFETY: by the contract of this function.
        let mut place = unsafe { Place::new(simulated) }?;
        // SAFETY: by the contract of this function.
        let mut finishes = unsafe { Places::new(finish_ps, capacity) }?;
        // SAFETY: by the contract of this function.
        let options = unsafe { input(options) }?;
        // SAFETY: by the contract of this function.
        let protocols = unsafe { slice(protocols, protocol_count) }?;
        // SAFETY: by the contract of this function.
        let (pattern, settled) = unsafe { input(pattern_options) }?.to_core(pattern)?;
        let told = Told { options, protocols, memory, bytes };
        place.put(simulate(&Program::Pattern(pattern, settled), &told, &mut finishes)?);
        Ok(())
    };
    // SAFETY: by the contract of this function.
    unsafe { finish(run(), detail) }
}
