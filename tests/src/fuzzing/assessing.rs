//! From measured values to a profile, whatever the values are.

use super::Numbers;
use super::profiles::ask;
use loggap::drive::{Analysis, AssessBuffers};
use loggap::profile::{ChangeRecord, ProfileDocument, RangeRecord, SCHEMA_VERSION};
use loggap::samples::Row;
use loggap_core::fit::{Detector, LookAhead};
use loggap_core::measure::{
    AssessOptions, Assessment, Experiment, PlanMemory, PlanOptions, PlanRequirements, Planner,
    Quantity, RowHeader, Sample, SampleStore, SizeSpan, Slot, assess_range,
};
use loggap_core::model::{Profile, Range};
use loggap_core::stats::Confidence;
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
        let needed = PlanRequirements::new(SIZES, REPETITIONS).expect("few");
        Self {
            rows: vec![RowHeader::default(); needed.store.rows],
            values: vec![0; needed.store.values],
            order: vec![Slot::default(); needed.order],
            assess: AssessBuffers::new(SIZES),
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
/// anything: nothing, for ever, always the same, less and less. Replies are
/// late, rounds are lost, and connections begin anew.
pub fn planner(data: &[u8]) {
    let mut input = Numbers(data);
    let messages = 2 + u32::from(input.byte());
    let flags = input.byte();
    let seed = input.long();
    let options = plan_options(&mut input, flags, messages, seed);
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
                    match input.below(8) {
                        0 => planner.begin_launch(),
                        1..4 => planner.handle_late(&experiment),
                        _ => planner.handle_lost(&experiment),
                    }
                    continue;
                }
                _ => elapsed,
            };
            let delay = Picos(experiment.delay.0.saturating_add(u64::from(input.byte())));
            planner.handle_sample(&Sample { experiment, delay, elapsed });
        }
        now = Picos(now.0.saturating_add(u64::from(input.word())));
        assert!(planner.progress(now).spent_ppm <= 1_000_000);
    }
    assert!(planner.conclusion().is_some(), "every plan ends");
    any_range(planner.store(), &options.assess, &mut input);
    if let Ok(assessment) = planner.assess() {
        is_sound(&assessment.profile);
    }
}

/// The usual limits, or any.
fn plan_options(input: &mut Numbers<'_>, flags: u8, messages: u32, seed: u64) -> PlanOptions {
    let options = PlanOptions {
        messages,
        max_messages: MESSAGES,
        adapt_sizes: flags & 1 == 0,
        seed,
        ..PlanOptions::default()
    };
    if flags & 2 == 0 {
        return options;
    }
    let [max_time, longest_time, least_time] = [0; 3].map(|_| Picos(value(input, 1 << 40)));
    let assess = assess_options(input);
    PlanOptions { assess, max_time, longest_time, least_time, ..options }
}

/// Any options, with the optimal detector.
fn assess_options(input: &mut Numbers<'_>) -> AssessOptions {
    let percent = f64::from(1 + input.below(99));
    AssessOptions {
        confidence: Confidence::from_percent(percent).expect("between 0 and 100"),
        relative_error_ppm: input.word(),
        tolerance_ppm: input.word(),
        max_changes: input.byte().into(),
        detector: Detector::optimal(),
        one_sided: input.byte() % 2 == 1,
    }
}

/// A range from anywhere to anywhere is one range, or there is nothing in it.
fn any_range(store: &SampleStore<'_>, options: &AssessOptions, input: &mut Numbers<'_>) {
    let span = SizeSpan { first: input.word(), last: input.word() };
    let mut points = AssessBuffers::new(store.len());
    let mut found = Assessment::<16>::default();
    if assess_range(store, options, span, points.lend().points, &mut found).is_ok() {
        let [range] = found.profile.ranges.as_slice() else { panic!("{:?}", found.profile) };
        has_sound_lines(range);
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
    let options =
        if flags & 4 == 0 { AssessOptions::default() } else { assess_options(&mut input) };
    let options = AssessOptions { detector, ..options };
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
    // Each size has its own n, mostly.
    let size = size(input);
    let messages = match quantity {
        Quantity::RoundTrip | Quantity::Receive => 1,
        _ => {
            if input.byte() < 250 {
                2 + size % 9
            } else {
                input.word()
            }
        }
    };
    let delay = Picos(if quantity == Quantity::Paced { input.long() } else { 0 });
    let experiment = Experiment { quantity, messages, delay, size };
    Row::Round(Sample { experiment, delay, elapsed: Picos(value) })
}

/// That a profile is one that the reader of profiles takes, that its ranges
/// have no holes and its changes their order, that no parameter is negative,
/// that each interval holds its value, and that it answers what it is asked.
fn is_sound(profile: &Profile) {
    assert!(!profile.ranges.is_empty());
    for pair in profile.ranges.windows(2) {
        assert_eq!(pair[0].last.0 + 1, pair[1].first.0);
    }
    assert!(profile.changes.is_sorted_by(|a, b| a.at < b.at), "{:?}", profile.changes);
    for change in &profile.changes {
        assert!(change.low <= change.at && change.at <= change.high, "{change:?}");
        // The first one, too, where nothing is known of the sizes below.
        let begins = profile.ranges.iter().any(|range| range.first == change.at);
        assert!(begins || !change.splits, "{change:?}");
    }
    let document = ProfileDocument {
        schema_version: SCHEMA_VERSION,
        ranges: profile.ranges.iter().copied().map(RangeRecord::from).collect(),
        changes: profile.changes.iter().copied().map(ChangeRecord::from).collect(),
        ..ProfileDocument::default()
    };
    let text = serde_json::to_vec(&document).expect("plain data");
    ProfileDocument::parse(&text).expect("what is assessed can be read");
    profile.ranges.iter().for_each(has_sound_lines);
    ask(profile);
}

fn has_sound_lines(range: &Range) {
    let lines = [Some(range.gap), range.half_rtt, range.send_overhead, range.recv_overhead];
    for line in lines.into_iter().flatten() {
        assert!(line.at_one.covers(&line.at_one.value) && line.at_one.value.0 >= 0, "{line:?}");
        assert!(line.per_byte.covers(&line.per_byte.value), "{line:?}");
        assert!(line.per_byte.value.0 >= 0, "{line:?}");
    }
    if let Some(latency) = range.latency {
        assert!(latency.high.0 > 0 && latency.value.0 >= 0, "{latency:?}");
        assert!(latency.covers(&latency.value), "{latency:?}");
    }
}
