//! Simulates a binary schedule that is read while it runs.

use loggap_core::goal::Lookup;
use loggap_core::goal::binary::{EdgeSpan, LookupMemory, Native, Reference};
use loggap_core::model::Preset;
use loggap_core::sim::streamed::Builder;
use loggap_core::sim::{
    ClockQueue, Engine, Entry, Memory, NoNoise, Parameters, Rank, Record, Settings, Silent, Survey,
};

use crate::POINTS;

/// When the last rank is done.
#[unsafe(no_mangle)]
pub extern "C" fn footprint_streamed(bytes: &[u8; 4_096], settings: &Settings) -> u64 {
    let mut survey = Survey::default();
    if let Ok(view) = Native::open(bytes) {
        let spans = &mut [EdgeSpan::default(); POINTS];
        let memory = LookupMemory { spans, firsts: &mut [0; POINTS] };
        if view.read(&mut survey).is_err() {
            return 0;
        }
        let Ok(file) = view.lookup(memory) else { return 0 };
        return simulate(&survey, *settings, file, |sink| view.read(sink).is_ok());
    }
    let Ok(view) = Reference::open(bytes) else { return 0 };
    if view.read(&mut [0; POINTS], &mut survey).is_err() {
        return 0;
    }
    simulate(&survey, *settings, view, |sink| view.read(&mut [0; POINTS], sink).is_ok())
}

fn simulate(
    survey: &Survey,
    settings: Settings,
    file: impl Lookup,
    play: impl FnOnce(&mut Builder<'_>) -> bool,
) -> u64 {
    let Ok(requirements) = survey.streamed(settings, POINTS as u64) else { return 0 };
    let memory = Memory {
        records: &mut [Record::default(); POINTS],
        ranks: &mut [Rank::default(); POINTS],
        firsts: &mut [0; POINTS],
        clocks: &mut [0; POINTS],
        clock_queues: &mut [ClockQueue::default(); POINTS],
        clock_heap: &mut [Entry::default(); POINTS],
        units: &mut [0; POINTS],
        times: &mut [0; POINTS],
        next_attempts: &mut [0; POINTS],
        links: &mut [0; POINTS],
        done: &mut [0; POINTS],
        queue: &mut [Entry::default(); POINTS],
        places: &mut [0; POINTS],
        partly: &mut [0; 2 * POINTS],
        released: &mut [0; POINTS],
        ..Memory::default()
    };
    let Ok(mut builder) = Builder::new(memory, requirements) else { return 0 };
    if !play(&mut builder) {
        return 0;
    }
    let Ok(schedule) = builder.finish(file) else { return 0 };
    let Ok(preset) = "loggopsim".parse::<Preset>() else { return 0 };
    let Some(parameters) = Parameters::per_protocol(preset.protocols) else { return 0 };
    let mut engine = Engine::with(schedule, parameters, settings, NoNoise, Silent);
    let finished = engine.run().map_or(0, |finished| finished.makespan.0);
    let mut left = 0;
    engine.unfinished(|_| left += 1);
    finished.wrapping_add(left)
}
