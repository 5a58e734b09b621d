//! The core's self-test on a Cortex-M4F, and what its work costs there.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use defmt::Display2Format;
use loggap_core::fit::{
    ChangeDetector, Config, GrowingLine, Line, LookAhead, Node, Point, find_ranges,
};
use loggap_core::goal::pattern::{Options, Pattern, generate};
use loggap_core::measure::Clock;
use loggap_core::model::LogGops;
use loggap_core::selftest;
use loggap_core::sim::implicit::{PatternProgram, Requirements};
use loggap_core::sim::{Engine, Parameters, Settings, Survey};
use loggap_core::units::{Bytes, PerByte, Picos};
use loggap_firmware_mps2::board::{Board, exit};
use loggap_firmware_mps2::simulate;
use loggap_firmware_mps2::stack;

#[entry]
fn main() -> ! {
    let board = Board::take();
    let count = selftest::run(|check| {
        defmt::info!("{}", Display2Format(check));
    });
    defmt::info!("stack of the self-test {=usize}", stack::high_water());
    let costs_known = costs(&board.clock).is_some();
    limits();
    defmt::info!("{}", Display2Format(&count));
    exit(count.failed == 0 && costs_known)
}

/// Under `-icount shift=0` an instruction takes a nanosecond, so that times
/// on the board's clock count instructions.
fn costs(clock: &impl Clock) -> Option<()> {
    line_point(clock)?;
    streamed_point(clock)?;
    stored_point::<24>(clock)?;
    stored_point::<64>(clock)?;
    simulated_event(clock)
}

/// Runs `work` and returns how long it took, in ns.
fn timed<T>(clock: &impl Clock, work: impl FnOnce() -> T) -> (T, u64) {
    let started = clock.now();
    let done = work();
    let ticks = clock.now() - started;
    (done, clock.duration(ticks).0 / 1_000)
}

const POINTS: u64 = 64;

/// 300 ns and 80 ps a byte; another protocol from 512 bytes on.
fn point(index: u64) -> Point {
    let size = 16 * index + 1;
    let value = if size < 512 { 300_000 + 80 * size } else { 900_000 + 40 * size };
    Point::new(size, value as f64, 100.0).unwrap_or_default()
}

fn line_point(clock: &impl Clock) -> Option<()> {
    let mut growing = GrowingLine::new();
    let (gap, nanos) = timed(clock, || {
        for index in 0..31 {
            growing.add(point(index));
        }
        growing.gap()
    });
    defmt::info!("cost growing line {=u64} instructions a point", nanos / 31);
    let mut points = [Point::default(); 31];
    for (slot, index) in points.iter_mut().zip(0..) {
        *slot = point(index);
    }
    let (line, nanos) = timed(clock, || Line::fit(&points));
    defmt::info!("cost line {=u64} instructions a point", nanos / 31);
    ((gap? - line?.at_one()).abs() < 1.0).then_some(())
}

/// The look-ahead detector, which stores a few points only.
fn streamed_point(clock: &impl Clock) -> Option<()> {
    let mut detector = ChangeDetector::new(LookAhead::default());
    let (changes, nanos) = timed(clock, || {
        let found = (0..POINTS).filter_map(|index| detector.push(point(index))).count();
        found + usize::from(detector.finish().is_some())
    });
    defmt::info!("cost look-ahead {=u64} instructions a point", nanos / POINTS);
    (changes == 1).then_some(())
}

/// The ranges of `N` points.
fn stored_point<const N: usize>(clock: &impl Clock) -> Option<()> {
    const MOST: usize = POINTS as usize;
    let mut points = [Point::default(); MOST];
    for (slot, index) in points.iter_mut().zip(0..) {
        *slot = point(index * POINTS / N as u64);
    }
    let mut nodes = [Node::default(); MOST + 1];
    let (mut changes, mut starts) = (heapless::Vec::<_, 3>::new(), heapless::Vec::<_, 3>::new());
    let config = Config { max_changes: 2, ..Config::default() };
    let points = points.get(..N)?;
    let (found, nanos) =
        timed(clock, || find_ranges(&[points], &config, &mut nodes, &mut changes, &mut starts));
    defmt::info!("cost ranges of {=usize} {=u64} instructions a point", N, nanos / N as u64);
    (found.is_ok() && changes.len() == 1).then_some(())
}

fn simulated_event(clock: &impl Clock) -> Option<()> {
    let link = LogGops {
        latency: Picos(2_500_000),
        overhead: Picos(1_500_000),
        gap: Picos(1_000_000),
        gap_per_byte: PerByte::from_picos(6_000)?,
        overhead_per_byte: PerByte::ZERO,
        eager_limit: Bytes(65_535),
    };
    let mut memory = simulate::Memory::take()?;
    let options = Options::new(64, 1);
    let (built, build_nanos) =
        timed(clock, || simulate::build(&mut memory, Pattern::Dissemination, options));
    let (schedule, ops, bytes) = built?;
    let mut engine = Engine::new(schedule, Parameters::one(link), Settings::default());
    let (finished, run_nanos) = timed(clock, || engine.run());
    let finished = finished.ok()?;
    defmt::info!("cost schedule {=u64} instructions an operation", build_nanos / ops);
    defmt::info!("cost simulation {=u64} instructions an event", run_nanos / finished.events);
    defmt::info!("barrier of 64 ranks: {=u64} ops, {=u64} bytes", ops, bytes);
    // Six rounds of o + L + o.
    (finished.makespan == Picos(6 * 5_500_000)).then_some(())
}

/// The largest simulations in some amounts of lent memory.
fn limits() {
    for (name, pattern) in [
        ("dissemination", Pattern::Dissemination),
        ("binomial-broadcast", Pattern::BinomialBroadcast),
    ] {
        for room in [64 << 10, 1 << 20] {
            let stored = largest(room, |ranks| stored(pattern, ranks));
            let computed = largest(room, |ranks| computed(pattern, ranks));
            for (how, (ranks, ops)) in [("stored", stored), ("computed", computed)] {
                defmt::info!(
                    "largest {=str} {=str} in {=u64} bytes: {=u32} ranks, {=u64} ops",
                    how,
                    name,
                    room,
                    ranks,
                    ops
                );
            }
        }
    }
}

/// Bytes and operations of a schedule that is kept.
fn stored(pattern: Pattern, ranks: u32) -> Option<(u64, u64)> {
    let mut survey = Survey::default();
    generate(pattern, &Options::new(ranks, 1), &mut [], &mut survey).ok()?;
    let needed = survey.requirements(Settings::default()).ok()?;
    Some((needed.bytes(), survey.ops()))
}

/// The same of one that is computed while it runs, for all that can wait.
fn computed(pattern: Pattern, ranks: u32) -> Option<(u64, u64)> {
    let needs = match PatternProgram::new(pattern, &Options::new(ranks, 1)).ok()?? {
        PatternProgram::Rounds(program) => Requirements::of(&program),
        PatternProgram::Tree(program) => Requirements::of(&program),
        _ => return None,
    };
    let (_, ops) = stored(pattern, ranks)?;
    Some((needs.bytes_with(needs.nodes_most), ops))
}

/// Ranks and operations of the largest simulation that `room` bytes hold.
fn largest(room: u64, needs: impl Fn(u32) -> Option<(u64, u64)>) -> (u32, u64) {
    let (mut fits, mut too_many, mut most_ops) = (1, 1 << 16, 0);
    while too_many - fits > 1 {
        let ranks = fits + (too_many - fits) / 2;
        match needs(ranks) {
            Some((bytes, ops)) if bytes <= room => (fits, most_ops) = (ranks, ops),
            _ => too_many = ranks,
        }
    }
    (fits, most_ops)
}
