//! Assesses its own link, keeps the profile in its compact encoding, and
//! predicts a barrier and a broadcast from it.
#![no_std]
#![no_main]

use core::ops::ControlFlow;

use cortex_m_rt::entry;
use loggap_core::fit::{Detector, MAX_CURVES, Node, Point};
use loggap_core::measure::{
    AssessMemory, AssessOptions, Assessment, Buffers, Clock, Initiator, Outcome, PlanMemory,
    PlanOptions, Planner, QUANTITIES, RowHeader, SessionOptions, Slot, Traffic, coarse_sizes,
};
use loggap_core::model::{Estimate, Profile, SizeLine, compact};
use loggap_core::units::{Bytes, Picos, SignedPerByte};
use loggap_core::wire::{ROUNDS_PER_BATCH, ethernet};
use loggap_firmware_mps2::board::{Board, exit};
use loggap_firmware_mps2::link::{EthernetLink, Peer};
use loggap_firmware_mps2::simulate::{self, Predicted};
use loggap_firmware_mps2::{lend, stack};

/// Sizes, those included that bisection adds.
const SIZES: usize = 24;
/// Sizes of the first sweep.
const COARSE: usize = 12;
/// Values kept of each quantity at each size.
const VALUES: usize = 20;
/// Places where ranges meet, at most.
const CHANGES: usize = 2;
/// Ranks of the predictions.
const RANKS: u32 = 64;

const OPTIONS: PlanOptions = PlanOptions {
    assess: AssessOptions {
        confidence: loggap_core::stats::Confidence::P95,
        relative_error_ppm: 50_000,
        tolerance_ppm: 100_000,
        max_changes: CHANGES,
        detector: Detector::optimal(),
        one_sided: false,
    },
    busy_error_ppm: 250_000,
    messages: 4,
    max_time: Picos(8_000_000_000_000),
    large_messages: 4,
    burst_bytes: u64::MAX,
    longest_time: Picos(8_000_000_000_000),
    least_time: Picos::ZERO,
    max_messages: 20_000,
    adapt_sizes: true,
    seed: 1,
};

#[entry]
fn main() -> ! {
    let board = Board::take();
    let link = EthernetLink::new(board.nic(), Peer::FirstAnswer);
    let Some((assessment, traffic)) = measure(&board, link) else { exit(false) };
    report(&assessment, &traffic);
    exit(keep(&assessment.profile) && predict(&assessment.profile))
}

fn plan_memory() -> Option<PlanMemory<'static>> {
    Some(PlanMemory {
        rows: lend!(RowHeader, SIZES),
        values: lend!(u64, SIZES * QUANTITIES * VALUES),
        order: lend!(Slot, SIZES * (QUANTITIES + 1)),
        assess: AssessMemory {
            points: lend!(Point, SIZES * MAX_CURVES),
            nodes: lend!(Node, SIZES + 1),
        },
    })
}

fn measure(board: &Board, link: EthernetLink) -> Option<(Assessment<4>, Traffic)> {
    let mut sizes = [0; COARSE];
    let largest = ethernet::MAX_MESSAGE as u32;
    let count = coarse_sizes(1, largest, &mut sizes);
    let mut planner = match Planner::<4>::new(OPTIONS, &sizes[..count], plan_memory()?) {
        Ok(planner) => planner,
        Err(error) => {
            defmt::error!("no plan: {}", error);
            return None;
        }
    };
    let buffers = Buffers {
        outgoing: lend!(u8, ethernet::MAX_MESSAGE),
        incoming: lend!(u8, ethernet::MAX_MESSAGE),
    };
    let wait = |position| {
        defmt::info!("{=u32} before us", position);
        ControlFlow::Continue(())
    };
    let session = SessionOptions::default();
    let mut initiator = match Initiator::connect(&board.clock, link, buffers, session, wait) {
        Ok(initiator) => initiator,
        Err(error) => {
            defmt::error!("no session: {}", error);
            return None;
        }
    };
    let now = || board.clock.duration(board.clock.now());
    loop {
        let batch = planner.poll_batch::<ROUNDS_PER_BATCH>(now());
        if batch.is_empty() {
            break;
        }
        let run = initiator.run(&batch, |outcome| match outcome {
            Outcome::Sample(sample) => {
                let _whether_kept = planner.handle_sample(&sample);
            }
            Outcome::Late(experiment) => planner.handle_late(&experiment),
            Outcome::Lost(experiment) => planner.handle_lost(&experiment),
        });
        if let Err(error) = run {
            defmt::error!("session failed: {}", error);
            return None;
        }
    }
    let traffic = *initiator.traffic();
    // Everything is measured: a goodbye that does not arrive changes nothing.
    let _ = initiator.close();
    defmt::info!("plan over: {}", planner.conclusion());
    match planner.assess() {
        Ok(assessment) => Some((assessment, traffic)),
        Err(error) => {
            defmt::error!("no assessment: {}", error);
            None
        }
    }
}

fn report(assessment: &Assessment<4>, traffic: &Traffic) {
    defmt::info!(
        "sent {=u64} received {=u64} rounds-lost {=u64}",
        traffic.data_sent,
        traffic.data_received,
        traffic.rounds_lost,
    );
    for range in &assessment.profile.ranges {
        defmt::info!("range {=u64} {=u64}", range.first.0, range.last.0);
        line("half-rtt", range.half_rtt.as_ref());
        line("o_s", range.send_overhead.as_ref());
        line("o_r", range.recv_overhead.as_ref());
        line("gap", Some(&range.gap));
        if let Some(Estimate { value, low, high, mark }) = range.latency {
            defmt::info!("  L {=i64} ps, {=i64} to {=i64}: {}", value.0, low.0, high.0, mark);
        }
    }
    for warning in &assessment.warnings {
        defmt::warn!("{}", warning);
    }
}

/// One parameter with its intervals and whether to trust it.
fn line(name: &str, line: Option<&SizeLine>) {
    let Some(line) = line else {
        defmt::info!("  {=str} not measured", name);
        return;
    };
    let SizeLine { at_one, per_byte, .. } = line;
    let femtos = |per_byte: SignedPerByte| per_byte.0.saturating_mul(1_000) >> 16;
    defmt::info!(
        "  {=str} at-one {=i64} ps, {=i64} to {=i64}; per-byte {=i64} fs, {=i64} to {=i64}: {}",
        name,
        at_one.value.0,
        at_one.low.0,
        at_one.high.0,
        femtos(per_byte.value),
        femtos(per_byte.low),
        femtos(per_byte.high),
        line.mark(),
    );
}

/// Encodes the profile, prints it and reads it back.
fn keep(profile: &Profile<4>) -> bool {
    let mut kept = [0; compact::most_bytes(4)];
    let Ok(length) = compact::encode(profile, &mut kept) else { return false };
    let kept = &kept[..length];
    for line in kept.chunks(32) {
        defmt::info!("profile {=[u8]:02x}", line);
    }
    defmt::info!("profile-bytes {=usize}", length);
    compact::decode::<4>(kept).as_ref() == Ok(profile)
}

fn predict(profile: &Profile<4>) -> bool {
    let of = |size| profile.range(Bytes(size))?.loggops(Bytes(u64::MAX)).ok();
    let (Some(short), Some(long)) = (of(1), of(1_024)) else {
        defmt::error!("the profile does not serve for a prediction");
        return false;
    };
    let Some(mut memory) = simulate::Memory::take() else { return false };
    for (name, prediction) in [
        ("barrier", simulate::barrier(&mut memory, short, RANKS)),
        ("broadcast", simulate::broadcast(&mut memory, long, RANKS, 1_024)),
    ] {
        let Some(Predicted { makespan, ops, bytes, .. }) = prediction else {
            defmt::error!("no prediction of {=str}", name);
            return false;
        };
        defmt::info!(
            "predicted {=str} ranks {=u32} ops {=u64} memory {=u64} ps {=u64}",
            name,
            RANKS,
            ops,
            bytes,
            makespan.0
        );
    }
    defmt::info!("stack {=usize}", stack::high_water());
    true
}
