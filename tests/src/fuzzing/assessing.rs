//! From measured values to a profile, whatever the values are.

use super::Numbers;
use super::profiles::ask;
use loggap::drive::AssessBuffers;
use loggap::measurement::Analysis;
use loggap::profile::{ChangeRecord, ProfileDocument, RangeRecord, SCHEMA_VERSION};
use loggap::samples::Row;
use loggap_core::fit::{Detector, LookAhead};
use loggap_core::measure::{
    AssessOptions, Experiment, PlanMemory, PlanOptions, PlanRequirements, Planner, Quantity,
    RowHeader, Sample, Slot,
};
use loggap_core::model::Profile;
use loggap_core::units::{Picos, SignedPicos};

/// Sizes that a plan of the test holds.
const SIZES: usize = 12;
/// Values of each of their quantities.
const REPETITIONS: usize = 10;
/// Messages that a plan of the test may send.
const MESSAGES: u64 = 3_000;

/// What a plan is lent.
struct Memory {
    rows: Vec<RowHeader>,
    values: Vec<u64>,
    order: Vec<Slot>,
    assess: AssessBuffers,
}

impl Memory {
    fn new() -> Self {
        let changes = PlanOptions::default().assess.max_changes;
        let needed = PlanRequirements::new(SIZES, REPETITIONS, changes).expect("few");
        Self {
            rows: vec![RowHeader::default(); needed.store.rows],
            values: vec![0; needed.store.values],
            order: vec![Slot::default(); needed.order],
            assess: AssessBuffers::new(SIZES, changes),
        }
    }

    fn lend(&mut self) -> PlanMemory<'_> {
        PlanMemory {
            rows: &mut self.rows,
            values: &mut self.values,
            order: &mut self.order,
            assess: self.assess.lend(),
        }
    }
}

/// The planner and the assessment on a link that takes any time for
/// anything: nothing, for ever, always the same, less and less.
pub fn planner(data: &[u8]) {
    let mut input = Numbers(data);
    let options = PlanOptions {
        messages: 2 + u32::from(input.byte()),
        max_messages: MESSAGES,
        adapt_sizes: input.byte() & 1 == 0,
        seed: input.long(),
        ..PlanOptions::default()
    };
    let sizes: Vec<u32> = (0..input.below(8)).map(|_| input.word()).collect();
    let mut memory = Memory::new();
    let Ok(mut planner) = Planner::<16>::new(options, &sizes, memory.lend()) else { return };
    let (mut now, mut elapsed) = (Picos::ZERO, Picos(1_000_000));
    for _ in 0..MESSAGES {
        let batch = planner.poll_batch::<8>(now);
        if batch.is_empty() {
            break;
        }
        for experiment in batch {
            elapsed = match input.below(8) {
                0 => Picos(input.long()),
                1 => Picos::ZERO,
                2 => Picos::MAX,
                3 => Picos(elapsed.0 - elapsed.0 / 4),
                4 => Picos(u64::from(input.word()) + u64::from(experiment.size) * 100),
                5 => {
                    planner.handle_lost(&experiment);
                    continue;
                }
                _ => elapsed,
            };
            let delay = Picos(experiment.delay.0.saturating_add(u64::from(input.byte())));
            planner.handle_sample(&Sample { experiment, delay, elapsed });
        }
        now = Picos(now.0.saturating_add(u64::from(input.word())));
    }
    assert!(planner.conclusion().is_some(), "every plan ends");
    if let Ok(assessment) = planner.assess() {
        is_sound(&assessment.profile);
    }
}

/// The assessment of any samples, as `loggap fit` reads them from a file, by
/// both detectors of changes.
pub fn fit(data: &[u8]) {
    let mut input = Numbers(data);
    let flags = input.byte();
    let detector = if flags & 1 == 0 {
        Detector::optimal()
    } else {
        let factor = 1.0 + (1.0 + f64::from(input.short())) / 64.0;
        let points = 3 + usize::from(input.below(4));
        Detector::look_ahead(LookAhead { factor, points, ..LookAhead::default() })
    };
    let options = AssessOptions { detector, ..AssessOptions::default() };
    let (mut rows, mut last) = (vec![], 0);
    while !input.is_empty() && rows.len() < 200 {
        last = value(&mut input, last);
        rows.push(if flags & 2 == 0 { gap(&mut input, last) } else { round(&mut input, last) });
    }
    if let Ok(analysis) = Analysis::of(&rows, &options) {
        is_sound(&analysis.assessment.profile);
    }
}

/// A time: nothing, for ever, as before, more, less, or any.
fn value(input: &mut Numbers<'_>, last: u64) -> u64 {
    match input.below(8) {
        0 => 0,
        1 => u64::MAX,
        2 => input.long(),
        3 => last - last / 4,
        4 | 5 => last.saturating_add(u64::from(input.short())),
        6 => u64::from(input.word()),
        _ => last,
    }
}

/// Few sizes, so that some have several values, or any that a message has.
fn size(input: &mut Numbers<'_>) -> u32 {
    let size = u32::from(input.byte());
    if size < 200 { 1 + size % 40 * 25 } else { 1 + input.word() % (1 << 30) }
}

fn gap(input: &mut Numbers<'_>, value: u64) -> Row {
    let size = size(input);
    let sign = if input.below(4) == 0 { -1 } else { 1 };
    let gap = i64::try_from(value).unwrap_or(i64::MAX);
    Row::Gap { size, gap: SignedPicos(sign * gap) }
}

fn round(input: &mut Numbers<'_>, value: u64) -> Row {
    let quantity = [Quantity::RoundTrip, Quantity::Gap, Quantity::Paced, Quantity::Receive]
        [usize::from(input.below(4))];
    let messages = match quantity {
        Quantity::RoundTrip | Quantity::Receive => 1,
        _ => {
            if input.byte() < 250 {
                10
            } else {
                input.word()
            }
        }
    };
    let delay = Picos(if quantity == Quantity::Paced { input.long() } else { 0 });
    let experiment = Experiment { quantity, messages, delay, size: size(input) };
    Row::Round(Sample { experiment, delay, elapsed: Picos(value) })
}

/// That a profile is one that the reader of profiles takes, that each
/// interval holds its value, and that it answers what it is asked.
fn is_sound(profile: &Profile) {
    assert!(!profile.ranges.is_empty());
    let document = ProfileDocument {
        schema_version: SCHEMA_VERSION,
        ranges: profile.ranges.iter().copied().map(RangeRecord).collect(),
        changes: profile.changes.iter().copied().map(ChangeRecord::from).collect(),
        ..ProfileDocument::default()
    };
    let text = serde_json::to_vec(&document).expect("plain data");
    ProfileDocument::parse(&text).expect("what is assessed can be read");
    for range in &profile.ranges {
        let lines = [Some(range.gap), range.half_rtt, range.send_overhead, range.recv_overhead];
        for line in lines.into_iter().flatten() {
            assert!(line.at_one.covers(&line.at_one.value), "{line:?}");
            assert!(line.per_byte.covers(&line.per_byte.value), "{line:?}");
        }
        if let Some(latency) = range.latency {
            assert!(latency.value.0 > 0 && latency.covers(&latency.value), "{latency:?}");
        }
    }
    ask(profile);
}
