//! The table, for people and as JSON.

use loggap_tests::document::Number;
use serde_json::{Value, json};

use crate::catalogue::{Changes, Entry};
use crate::judge::{self, Standard, Verdict, judge};
use crate::keeper::{Found, Outcome};

/// A link and what came of it.
#[derive(Debug)]
pub(crate) struct Row {
    name: String,
    seed: u64,
    changes: Changes,
    verdict: Verdict,
    /// Of `G` and half a round trip, or why there is none.
    standards: [Result<Standard, &'static str>; 2],
    found: Option<Found>,
}

const COLUMNS: [&str; 15] = [
    "link",
    "G: truth, ns/B",
    "measured",
    "interval",
    "held",
    "next run",
    "RTT/2: truth, us",
    "measured",
    "interval",
    "held",
    "next run",
    "change: truth",
    "found",
    "s; messages; ranges; exit",
    "verdict",
];

impl Row {
    pub(crate) fn new(entry: &Entry, seed: u64, outcome: Outcome) -> Self {
        let verdict = judge(entry, &outcome);
        let (found, standards) = match outcome {
            Err(_) => (None, [Err("skipped"), Err("skipped")]),
            Ok(found) => {
                let standards = judge::standards(entry, &found.references);
                (Some(found), standards)
            }
        };
        let (name, changes) = (entry.name.clone(), entry.truth.changes);
        Self { name, seed, changes, verdict, standards, found }
    }

    pub(crate) const fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.name.clone()];
        let Some(found) = &self.found else {
            cells.extend(vec![String::new(); COLUMNS.len() - 2]);
            cells.push(self.verdict.to_string());
            return cells;
        };
        let [gap, trip] = &self.standards;
        cells.extend(number_cells(gap, found.gap_per_byte.as_ref(), 1e9));
        cells.extend(number_cells(trip, found.half_rtt.as_ref(), 1e6));
        cells.push(match self.changes {
            Changes::None => "none".to_owned(),
            Changes::At(size) => size.to_string(),
            Changes::Within { low, high, two_packets } => {
                format!("within {low} to {high}, or {two_packets}")
            }
            Changes::Unjudged => "-".to_owned(),
        });
        let changes: Vec<String> =
            found.changes.iter().map(|change| change.at.to_string()).collect();
        cells.push(changes.join(", "));
        let Found { seconds, messages, ranges, exit, .. } = found;
        cells.push(format!("{seconds:.2}; {messages}; {ranges}; {exit}"));
        cells.push(self.verdict.to_string());
        cells
    }

    fn json(&self) -> Value {
        let verdict = match &self.verdict {
            Verdict::Held => "held",
            Verdict::Missed(_) => "missed",
            Verdict::Skipped(_) => "skipped",
        };
        let reasons = match &self.verdict {
            Verdict::Held => vec![],
            Verdict::Missed(misses) => misses.clone(),
            Verdict::Skipped(reason) => vec![reason.clone()],
        };
        let [gap, trip] = &self.standards;
        let mut object = json!({
            "link": self.name, "seed": self.seed, "verdict": verdict, "reasons": reasons,
        });
        let Some(found) = &self.found else { return object };
        let changes: Vec<f64> = found.changes.iter().map(|change| change.at).collect();
        let further = json!({
            "gap_per_byte_s": number_json(gap.as_ref().ok(), found.gap_per_byte.as_ref()),
            "half_rtt_s": number_json(trip.as_ref().ok(), found.half_rtt.as_ref()),
            "changes_bytes": changes,
            "ranges": found.ranges,
            "wall_s": found.seconds,
            "messages": found.messages,
            "exit": found.exit,
            "disturbances": found.disturbances,
        });
        for (key, value) in further.as_object().into_iter().flatten() {
            object[key] = value.clone();
        }
        object
    }
}

/// Truth, value, interval, whether that holds the truth, and the next run's
/// interval.
fn number_cells(
    standard: &Result<Standard, &'static str>,
    number: Option<&Number>,
    unit: f64,
) -> [String; 5] {
    let mut cells = ["-"; 5].map(str::to_owned);
    cells[0] = match standard {
        Ok(Standard { value, reference: true, .. }) => {
            format!("{} (reference)", short(value * unit))
        }
        Ok(Standard { value, .. }) => short(value * unit),
        Err(reason) => (*reason).to_owned(),
    };
    let Some(number) = number else { return cells };
    cells[1] = short(number.value * unit);
    if let Ok(standard) = standard {
        cells[1] += &format!(" ({:+.1}%)", 100.0 * standard.error(number));
    }
    let pair = |[low, high]: [f64; 2]| format!("{} to {}", short(low * unit), short(high * unit));
    cells[2] = number.interval.map_or_else(|| "-".to_owned(), pair);
    let held = standard.as_ref().ok().and_then(|standard| standard.is_held(number));
    cells[3] = held.map_or("-", |held| if held { "yes" } else { "no" }).to_owned();
    cells[4] = number.next.map_or_else(|| "-".to_owned(), pair);
    cells
}

/// Four significant digits or fewer.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        medium if medium >= 10.0 => 1,
        small if small >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

fn number_json(standard: Option<&Standard>, number: Option<&Number>) -> Value {
    json!({
        "truth": standard.map(|standard| standard.value),
        "reference": standard.map(|standard| standard.reference),
        "value": number.map(|number| number.value),
        "interval": number.and_then(|number| number.interval),
        "next": number.and_then(|number| number.next),
    })
}

pub(crate) fn json(rows: &[Row]) -> String {
    let rows: Vec<Value> = rows.iter().map(Row::json).collect();
    format!("{:#}\n", Value::Array(rows))
}

pub(crate) fn print(rows: &[Row]) {
    println!("| {} |", COLUMNS.join(" | "));
    println!("|{}", "---|".repeat(COLUMNS.len()));
    for row in rows {
        println!("| {} |", row.cells().join(" | "));
    }
    let count =
        |wanted: fn(&Verdict) -> bool| rows.iter().filter(|row| wanted(&row.verdict)).count();
    println!(
        "\n{} links: {} held, {} missed, {} skipped",
        rows.len(),
        count(|verdict| *verdict == Verdict::Held),
        count(|verdict| matches!(verdict, Verdict::Missed(_))),
        count(|verdict| matches!(verdict, Verdict::Skipped(_))),
    );
}
