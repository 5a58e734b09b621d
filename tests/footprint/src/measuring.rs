//! Both ends of a measurement, over functions that a C program would provide.

use core::ops::ControlFlow;

use loggap_core::fit::{MAX_CURVES, Node, Point};
use loggap_core::measure::{
    AssessMemory, Buffers, Clock, Initiator, Link, LinkProperties, Outcome, PlanMemory,
    PlanOptions, Planner, QUANTITIES, RowHeader, ServeError, SessionOptions, Slot, coarse_sizes,
    serve,
};
use loggap_core::model::compact;
use loggap_core::noise::{Detector, DetectorMemory, Detour, Trace};
use loggap_core::units::{Bytes, Picos};
use loggap_core::wire::{Bounds, ROUNDS_PER_BATCH};

/// Largest message of this link, in bytes.
const LARGEST: usize = 1_496;
const SIZES: usize = 24;
const VALUES: usize = 20;

/// The functions of a device.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Device {
    now: extern "C" fn() -> u64,
    /// Returns 0 or the number of an error.
    send: extern "C" fn(*const u8, usize) -> u32,
    /// Takes the next message and writes as much of it as there is room for;
    /// returns its length, or 0 where there is none.
    receive: extern "C" fn(*mut u8, usize) -> usize,
}

impl Clock for Device {
    fn now(&self) -> u64 {
        (self.now)()
    }

    fn duration(&self, ticks: u64) -> Picos {
        Picos(ticks.saturating_mul(1_000))
    }

    fn ticks(&self, duration: Picos) -> u64 {
        duration.0.div_ceil(1_000)
    }

    fn read_cost(&self) -> Picos {
        Picos(1_000)
    }
}

impl Link for Device {
    type Error = u32;

    fn properties(&self) -> LinkProperties {
        LinkProperties::datagrams(Bytes(LARGEST as u64))
    }

    fn send(&mut self, message: &[u8]) -> Result<(), u32> {
        match (self.send)(message.as_ptr(), message.len()) {
            0 => Ok(()),
            error => Err(error),
        }
    }

    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, u32> {
        let length = (self.receive)(buffer.as_mut_ptr(), buffer.len());
        // A longer one than both ends agreed on is none of theirs.
        Ok((1..=buffer.len()).contains(&length).then_some(length))
    }

    fn discard(&mut self) -> Result<(), u32> {
        // The device holds fewer messages than this.
        for _ in 0..256 {
            if (self.receive)([].as_mut_ptr(), 0) == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Rounds answered in one session.
#[unsafe(no_mangle)]
pub extern "C" fn footprint_serve(device: &mut Device) -> u64 {
    answer(device).unwrap_or(0)
}

fn answer(device: &mut Device) -> Result<u64, ServeError<u32>> {
    let clock = *device;
    let (served, _) = serve(&clock, device, &mut [0; LARGEST], Bounds::default())?;
    Ok(served.rounds)
}

/// Bytes of the profile of a link, encoded.
#[unsafe(no_mangle)]
pub extern "C" fn footprint_assess(device: &mut Device, out: &mut [u8; 2_048]) -> usize {
    assess(device, out).unwrap_or(0)
}

fn assess(device: &mut Device, out: &mut [u8]) -> Option<usize> {
    let clock = *device;
    let mut sizes = [0; 12];
    let count = coarse_sizes(1, LARGEST as u32, &mut sizes);
    let memory = PlanMemory {
        rows: &mut [RowHeader::default(); SIZES],
        values: &mut [0; SIZES * QUANTITIES * VALUES],
        order: &mut [Slot::default(); SIZES * (QUANTITIES + 1)],
        assess: AssessMemory {
            points: &mut [Point::default(); SIZES * MAX_CURVES],
            nodes: &mut [Node::default(); SIZES + 1],
        },
    };
    let options = PlanOptions::default();
    let mut planner = Planner::<4>::new(options, sizes.get(..count)?, memory).ok()?;
    let (mut outgoing, mut incoming) = ([0; LARGEST], [0; LARGEST]);
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let go_on = |_| ControlFlow::Continue(());
    let session = SessionOptions::default();
    let mut initiator = Initiator::connect(&clock, device, buffers, session, go_on).ok()?;
    loop {
        let batch = planner.poll_batch::<ROUNDS_PER_BATCH>(clock.duration(clock.now()));
        if batch.is_empty() {
            break;
        }
        let outcomes = |outcome| match outcome {
            Outcome::Sample(sample) => {
                let _whether_kept = planner.handle_sample(&sample);
            }
            Outcome::Late(experiment) => planner.handle_late(&experiment),
            Outcome::Lost(experiment) => planner.handle_lost(&experiment),
        };
        initiator.run(&batch, outcomes).ok()?;
    }
    let assessment = planner.assess().ok()?;
    compact::encode(&assessment.profile, out).ok()
}

/// The most detours that are kept.
const DETOURS: usize = 64;

/// Time lost to detours within a millisecond.
#[unsafe(no_mangle)]
pub extern "C" fn footprint_noise(device: &Device) -> u64 {
    let (mut detours, mut durations) = ([Detour::default(); DETOURS], [Picos::ZERO; DETOURS]);
    let memory = DetectorMemory { detours: &mut detours, durations: &mut durations };
    let mut detector = Detector::new(device, Picos(1_000_000), memory);
    detector.observe(device, Picos(1_000_000_000));
    let found = detector.finish(device);
    let trace = Trace::new(found.detours, Some(found.length));
    trace.map_or(0, |trace| trace.lost(Picos::ZERO, Picos::ZERO, found.length).0)
}
