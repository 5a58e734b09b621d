//! Profiles and samples from anybody: what is written is read back, and
//! nothing that is read brings the program down.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a wrong assumption should end the test"
)]

use loggap::drive::Analysis;
use loggap::output::screen::{self, ScreenOptions};
use loggap::output::{csv, flags, plot, table};
use loggap::profile::{
    ChangeRecord, ProfileDocument, ProfileError, RangeRecord, Requested, SCHEMA_VERSION, SizeRecord,
};
use loggap::samples::{self, Limits, Row, SampleReader, TimedSample};
use loggap_core::measure::{AssessOptions, Experiment, Quantity, Sample, SizeRow};
use loggap_core::model::{Change, Estimate, Mark, Range, SizeLine};
use loggap_core::units::{Bytes, Picos, SignedPerByte, SignedPicos};
use quickcheck::{Arbitrary, Gen, TestResult, quickcheck};

/// Units of a time or slope that a profile holds exactly: below 2⁵⁰.
fn units(g: &mut Gen) -> i64 {
    i64::arbitrary(g) >> 14 >> (u32::arbitrary(g) % 49)
}

fn estimate<T>(g: &mut Gen, of: fn(i64) -> T) -> Estimate<T> {
    let mut ends = [units(g), units(g), units(g)];
    ends.sort_unstable();
    let mark = *g.choose(&[Mark::Converged, Mark::BudgetSpent, Mark::Misfit]).unwrap();
    let [low, value, high] = ends;
    let unbounded = |g: &mut Gen, end, without| if u8::arbitrary(g) < 16 { without } else { end };
    let (low, high) = (unbounded(g, low, i64::MIN), unbounded(g, high, i64::MAX));
    let value = if (low, high) == (i64::MIN, i64::MAX) { 0 } else { value };
    Estimate { value: of(value), low: of(low), high: of(high), mark }
}

fn line(g: &mut Gen) -> SizeLine {
    SizeLine {
        at_one: estimate(g, SignedPicos),
        per_byte: estimate(g, SignedPerByte),
        centre: Bytes(u64::arbitrary(g)),
        at_centre: SignedPicos(units(g)),
        centre_half_width: Picos(units(g).unsigned_abs()),
        scatter_ppm: u32::arbitrary(g),
    }
}

fn maybe<T>(g: &mut Gen, value: fn(&mut Gen) -> T) -> Option<T> {
    let there = bool::arbitrary(g);
    there.then(|| value(g))
}

/// A document whose parts fit together.
#[derive(Clone, Debug)]
struct AnyDocument(ProfileDocument);

impl Arbitrary for AnyDocument {
    fn arbitrary(g: &mut Gen) -> Self {
        let mut document = ProfileDocument {
            schema_version: SCHEMA_VERSION,
            loggap_version: String::arbitrary(g),
            command: Vec::arbitrary(g),
            started_unix_s: u64::arbitrary(g),
            seed: u64::arbitrary(g),
            transport: String::arbitrary(g),
            method: String::arbitrary(g),
            requested: Requested { relative_error: 0.1 + 0.2, confidence_percent: 99.9 },
            messages_sent: u64::arbitrary(g),
            messages_lost: u64::arbitrary(g),
            wall_s: f64::from(u32::arbitrary(g)) / 7.0,
            converged: bool::arbitrary(g),
            warnings: Vec::arbitrary(g),
            ..ProfileDocument::default()
        };
        document.host.hostname = String::arbitrary(g);
        document.host.cpu_model = Option::arbitrary(g);
        document.host.link.mtu_bytes = Option::arbitrary(g);
        let mut first = 1 + u64::from(u16::arbitrary(g));
        for index in 0..u8::arbitrary(g) % 6 {
            if index > 0 {
                let (low, high) = (u64::arbitrary(g) % first + 1, u64::arbitrary(g).max(first));
                let (lo_bytes, hi_bytes) = (low.min(first), high);
                document.changes.push(
                    Change {
                        at: Bytes(first),
                        low: Bytes(lo_bytes),
                        high: Bytes(hi_bytes),
                        splits: true,
                        ..Change::default()
                    }
                    .into(),
                );
            }
            let last = first + u64::from(u32::arbitrary(g));
            document.ranges.push(RangeRecord::from(Range {
                first: Bytes(first),
                last: Bytes(last),
                gap: line(g),
                half_rtt: maybe(g, line),
                send_overhead: maybe(g, line),
                recv_overhead: maybe(g, line),
                latency: maybe(g, |g| estimate(g, SignedPicos)),
            }));
            first = last + 1;
        }
        let number = |g: &mut Gen| maybe(g, |g| estimate(g, SignedPicos));
        document.sizes.extend((0..u8::arbitrary(g) % 4).map(|_| {
            SizeRecord::from(SizeRow {
                size: Bytes(u64::arbitrary(g)),
                half_rtt: number(g),
                gap: number(g),
                send_overhead: number(g),
                recv_overhead: number(g),
                delay: maybe(g, |g| Picos(units(g).unsigned_abs())),
                samples: std::array::from_fn(|_| usize::from(u16::arbitrary(g))),
            })
        }));
        Self(document)
    }
}

/// Damage to a text: at a place, of a kind.
#[derive(Clone, Debug)]
struct Damage(usize, u8, u8);

impl Arbitrary for Damage {
    fn arbitrary(g: &mut Gen) -> Self {
        Self(usize::arbitrary(g), u8::arbitrary(g), u8::arbitrary(g))
    }
}

/// What parsers stumble over.
const TRAPS: [&str; 12] = [
    "-1",
    "1e400",
    "1e-400",
    "99999999999999999999",
    "NaN",
    "null",
    "\"",
    "{",
    "[[",
    ",",
    "\n",
    "\0",
];

fn damage(mut text: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for Damage(place, kind, byte) in damages {
        let at = place % (text.len() + 1);
        match kind % 4 {
            0 if at < text.len() => text[at] = *byte,
            1 => text.truncate(at),
            2 => {
                let end = text.len().min(at + usize::from(*byte));
                text.drain(at..end);
            }
            _ => {
                let trap = TRAPS[usize::from(*byte) % TRAPS.len()];
                text.splice(at..at, trap.bytes());
            }
        }
    }
    text
}

fn printed(document: &ProfileDocument) -> Vec<u8> {
    serde_json::to_vec_pretty(document).unwrap()
}

/// Any sample, its times as absurd as they can be.
#[derive(Clone, Debug)]
struct AnyRow(Row);

impl Arbitrary for AnyRow {
    fn arbitrary(g: &mut Gen) -> Self {
        let size = 1 + ((u32::arbitrary(g) % (1 << 30)) >> (u32::arbitrary(g) % 30));
        let time = |g: &mut Gen| Picos(u64::arbitrary(g) >> (u32::arbitrary(g) % 64));
        if u8::arbitrary(g) < 40 {
            let gap = SignedPicos(i64::arbitrary(g) >> (u32::arbitrary(g) % 63));
            return Self(Row::Gap { size, gap });
        }
        let quantity = *g.choose(&Quantity::ALL).unwrap();
        let (messages, delay) = match quantity {
            Quantity::RoundTrip => (1, Picos::ZERO),
            Quantity::Gap => (10, Picos::ZERO),
            Quantity::Paced => (10, time(g).max(Picos(1))),
            Quantity::Receive => (1, time(g)),
        };
        let experiment = Experiment { quantity, messages, delay, size };
        Self(Row::Round(Sample { experiment, delay, elapsed: time(g) }))
    }
}

fn read(text: &[u8]) -> Result<Vec<Row>, String> {
    let limits = Limits { samples: 500, ..Limits::default() };
    let mut reader = SampleReader::new(text, limits).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    while let Some(row) = reader.next_row().map_err(|error| error.to_string())? {
        rows.push(row);
    }
    Ok(rows)
}

/// Everything that `fit` does with rows; false when one of its outputs is
/// not valid.
fn assess_and_show(rows: &[Row]) -> bool {
    let Ok(analysis) = Analysis::of(rows, &AssessOptions::default()) else { return true };
    let profile = &analysis.assessment.profile;
    let document = ProfileDocument {
        schema_version: SCHEMA_VERSION,
        ranges: profile.ranges.iter().copied().map(RangeRecord::from).collect(),
        changes: profile.changes.iter().copied().map(ChangeRecord::from).collect(),
        sizes: analysis.rows.iter().copied().map(SizeRecord::from).collect(),
        ..ProfileDocument::default()
    };
    let text = printed(&document);
    let again = ProfileDocument::parse(&text).map(|document| printed(&document));
    let mut out = Vec::new();
    table::write(&mut out, &document).unwrap();
    csv::write(&mut out, &document).unwrap();
    let options = ScreenOptions { width: 100, colour: true, verbose: true };
    screen::write(&mut out, &document, &options).unwrap();
    let _with_or_without_a_line = flags::line(&document);
    // Nothing to draw on logarithmic axes is an error of its own.
    let picture = plot::svg(&document).unwrap_or_default();
    again.is_ok_and(|again| again == text) && !picture.contains("NaN")
}

quickcheck! {
    fn a_profile_is_read_back_as_it_was(document: AnyDocument) -> bool {
        let text = printed(&document.0);
        let read = ProfileDocument::parse(&text).unwrap();
        read == document.0 && printed(&read) == text
    }

    fn a_damaged_profile_is_refused_or_means_something(
        document: AnyDocument, damages: Vec<Damage>
    ) -> bool {
        match ProfileDocument::parse(&damage(printed(&document.0), &damages)) {
            Err(kind) => {
                let path = "any.json".into();
                ProfileError { path, kind }.to_string().len() < 2_000
            }
            Ok(read) => {
                let text = printed(&read);
                read.model().is_ok() && printed(&ProfileDocument::parse(&text).unwrap()) == text
            }
        }
    }

    fn damaged_samples_are_refused_with_their_line_or_mean_something(
        rows: Vec<AnyRow>, damages: Vec<Damage>
    ) -> bool {
        let rounds: Vec<TimedSample> = rows.iter().filter_map(|row| match row.0 {
            Row::Round(sample) => Some(TimedSample { sample, launch: 3, time: Picos(7) }),
            Row::Gap { .. } => None,
        }).collect();
        let mut text = Vec::new();
        samples::write(&mut text, &rounds, &[]).unwrap();
        match read(&damage(text, &damages)) {
            Err(error) => error.starts_with("line ") && error.len() < 500,
            Ok(rows) => assess_and_show(&rows),
        }
    }

    fn any_samples_are_assessed_or_refused(rows: Vec<AnyRow>, sizes: u8) -> TestResult {
        if rows.is_empty() {
            return TestResult::discard();
        }
        // Few sizes, so that there are rounds of several kinds at each.
        let sizes = 1 + u32::from(sizes % 40);
        let rows: Vec<Row> = rows.into_iter().map(|row| match row.0 {
            Row::Gap { size, gap } => Row::Gap { size: 1 + size % sizes, gap },
            Row::Round(mut sample) => {
                sample.experiment.size = 1 + sample.experiment.size % sizes;
                Row::Round(sample)
            }
        }).collect();
        TestResult::from_bool(assess_and_show(&rows))
    }
}

#[test]
fn times_beyond_what_a_double_holds_are_read_back() {
    let round = |quantity, messages, size, elapsed| {
        let delay = Picos::ZERO;
        let experiment = Experiment { quantity, messages, delay, size };
        Row::Round(Sample { experiment, delay, elapsed: Picos(elapsed) })
    };
    let rows =
        [round(Quantity::Gap, 10, 1, 2), round(Quantity::RoundTrip, 1, 1, 565_615_235_507_644_241)];
    assert!(assess_and_show(&rows));
}
