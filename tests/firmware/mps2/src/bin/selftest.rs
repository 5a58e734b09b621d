//! The core's self-test on a Cortex-M4F, and what its work costs there.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use defmt::Display2Format;
use loggap_core::fit::{Cell, Config, Line, Node, Point, Segment, Segmentation};
use loggap_core::goal::pattern::{Options, Pattern, generate};
use loggap_core::measure::Clock;
use loggap_core::model::LogGops;
use loggap_core::selftest;
use loggap_core::sim::{Settings, Survey};
use loggap_core::units::{Bytes, PerByte, Picos};
use loggap_firmware_mps2::board::{Board, exit};
use loggap_firmware_mps2::simulate::{self, Predicted};
use loggap_firmware_mps2::stack;

#[entry]
fn main() -> ! {
    let board = Board::take();
    let count = selftest::run(|check| {
        defmt::info!("{}", Display2Format(check));
    });
    defmt::info!("stack of the self-test {=usize}", stack::high_water());
    let costs_known = costs(&board.clock);
    limits();
    defmt::info!("{}", Display2Format(&count));
    exit(count.failed == 0 && costs_known)
}

/// Under `-icount shift=0` an instruction takes a nanosecond, so that times
/// on the board's clock count instructions.
fn costs(clock: &impl Clock) -> bool {
    fitted_point(clock);
    segmented_point(clock);
    simulated_event(clock).is_some()
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

fn fitted_point(clock: &impl Clock) {
    let mut line = Line::new();
    let (gap, nanos) = timed(clock, || {
        for index in 0..POINTS {
            line.add(point(index));
        }
        line.gap()
    });
    defmt::info!("cost line-point {=u64} instructions ({=bool})", nanos / POINTS, gap.is_some());
}

fn segmented_point(clock: &impl Clock) {
    const MOST: usize = POINTS as usize;
    let mut points = [Point::default(); MOST];
    for (slot, index) in points.iter_mut().zip(0..) {
        *slot = point(index);
    }
    let mut nodes = [Node::default(); MOST];
    let mut cells = [Cell::default(); MOST * 3];
    let mut segments = [Segment::default(); 3];
    let mut segmentation = Segmentation::new(&mut nodes, &mut cells, &mut segments);
    let config = Config { max_changes: 2, ..Config::default() };
    let (changes, nanos) =
        timed(clock, || segmentation.run(&points, &config).map(|fit| fit.changes().len()));
    defmt::info!(
        "cost segmented-point {=u64} instructions, {=u64} points, {=usize} change",
        nanos / POINTS,
        POINTS,
        changes.unwrap_or(0),
    );
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
    let (predicted, nanos) = timed(clock, || simulate::barrier(&mut memory, link, 64));
    let Predicted { makespan, events, bytes, .. } = predicted?;
    defmt::info!(
        "cost simulated-event {=u64} instructions, building included; {=u64} events in {=u64} bytes, makespan {=u64} ps",
        nanos / events,
        events,
        bytes,
        makespan.0,
    );
    Some(())
}

/// The largest simulations in some amounts of lent memory.
fn limits() {
    for (name, pattern) in [
        ("dissemination", Pattern::Dissemination),
        ("binomial-broadcast", Pattern::BinomialBroadcast),
    ] {
        for room in [64 << 10, 1 << 20] {
            let (ranks, ops) = largest(pattern, room);
            defmt::info!(
                "largest {=str} in {=u64} bytes: {=u32} ranks, {=u64} ops",
                name,
                room,
                ranks,
                ops
            );
        }
    }
}

/// Ranks and operations of the largest `pattern` that a simulation on `room`
/// bytes holds.
fn largest(pattern: Pattern, room: u64) -> (u32, u64) {
    let needs = |ranks| {
        let mut survey = Survey::default();
        generate(pattern, &Options::new(ranks, 1), &mut [], &mut survey).ok()?;
        let needed = survey.requirements(Settings::default()).ok()?.bytes();
        (needed <= room).then_some(survey.ops())
    };
    let (mut fits, mut too_many, mut ops) = (1, 1 << 16, 0);
    while too_many - fits > 1 {
        let ranks = fits + (too_many - fits) / 2;
        match needs(ranks) {
            Some(count) => (fits, ops) = (ranks, count),
            None => too_many = ranks,
        }
    }
    (fits, ops)
}
