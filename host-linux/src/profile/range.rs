//! Parameters of one protocol, and changes between protocols.

use std::collections::BTreeMap;

use loggap_core::model::{Change, Parameter, Range, SizeLine};
use loggap_core::units::{Bytes, Picos, SignedPicos};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::record::{Reader, Record, deserialize_object, is_exact, to_si};

/// A [`Range`] as the file stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeRecord {
    /// This run's values.
    pub range: Range,
    /// Prediction interval of another run: both ends in seconds (per byte) by the key of the value,
    /// such as `gap_s`.
    pub next: BTreeMap<&'static str, [f64; 2]>,
}

/// Keys of the values of a range.
pub const VALUES: [&str; 9] = [
    "latency_s",
    "half_rtt_s",
    "half_rtt_per_byte_s",
    "send_overhead_s",
    "send_overhead_per_byte_s",
    "recv_overhead_s",
    "recv_overhead_per_byte_s",
    "gap_s",
    "gap_per_byte_s",
];

impl From<Range> for RangeRecord {
    fn from(range: Range) -> Self {
        Self { range, next: BTreeMap::new() }
    }
}

impl Serialize for RangeRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let range = &self.range;
        let mut record = Record::default();
        record.put("first_bytes", range.first.0);
        record.put("last_bytes", range.last.0);
        if let Some(latency) = &range.latency {
            record.put_estimate("latency_s", latency);
        }
        put_line(&mut record, "half_rtt", range.half_rtt.as_ref());
        put_line(&mut record, "send_overhead", range.send_overhead.as_ref());
        put_line(&mut record, "recv_overhead", range.recv_overhead.as_ref());
        put_line(&mut record, "gap", Some(&range.gap));
        for (key, [low, high]) in &self.next {
            record.put(format!("{key}_next_lo"), *low);
            record.put(format!("{key}_next_hi"), *high);
        }
        record.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RangeRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_object(deserializer, range)
    }
}

fn range(reader: &Reader<'_>) -> Result<RangeRecord, String> {
    let mut next = BTreeMap::new();
    for key in VALUES {
        let end = |suffix: &str| reader.number(&format!("{key}_next_{suffix}"));
        if let (Some(low), Some(high)) = (end("lo")?, end("hi")?) {
            next.insert(key, [low, high]);
        }
    }
    let range = Range {
        first: reader.bytes("first_bytes")?,
        last: reader.bytes("last_bytes")?,
        gap: line(reader, "gap")?.ok_or("'gap_s' is missing")?,
        half_rtt: line(reader, "half_rtt")?,
        send_overhead: line(reader, "send_overhead")?,
        recv_overhead: line(reader, "recv_overhead")?,
        latency: reader.estimate("latency_s")?,
    };
    Ok(RangeRecord { range, next })
}

fn put_line(record: &mut Record, name: &str, line: Option<&SizeLine>) {
    let Some(line) = line else { return };
    record.put_estimate(&format!("{name}_s"), &line.at_one);
    record.put_estimate(&format!("{name}_per_byte_s"), &line.per_byte);
    record.put(format!("{name}_centre_bytes"), line.centre.0);
    let at_centre = is_exact(line.at_centre).then(|| to_si(line.at_centre));
    record.put(format!("{name}_centre_s"), at_centre);
    let half_width = SignedPicos(i64::try_from(line.centre_half_width.0).unwrap_or(i64::MAX));
    let bounded = is_exact(half_width).then(|| to_si(half_width));
    record.put(format!("{name}_centre_half_width_s"), bounded);
    record.put(format!("{name}_scatter_ppm"), line.scatter_ppm);
}

/// Half width of an unbounded interval.
const UNBOUNDED: Picos = Picos(i64::MAX.cast_unsigned());

/// Reads a line. Without the keys of its centre, its interval at size 1 applies to all sizes.
fn line(reader: &Reader<'_>, name: &str) -> Result<Option<SizeLine>, String> {
    let Some(at_one) = reader.estimate::<SignedPicos>(&format!("{name}_s"))? else {
        return Ok(None);
    };
    let per_byte = reader.estimate(&format!("{name}_per_byte_s"))?.unwrap_or_default();
    let centre = format!("{name}_centre_bytes");
    let centre = match reader.number(&centre)? {
        Some(_) => reader.bytes(&centre)?,
        None => Bytes(1),
    };
    let key = format!("{name}_centre_half_width_s");
    let unbounded = reader.has(&key).then_some(SignedPicos(i64::MAX));
    let half_width = reader.quantity::<SignedPicos>(&key)?.or(unbounded);
    let half = SignedPicos(at_one.high.0.saturating_sub(at_one.low.0) / 2).picos();
    let bounded = at_one.low.0 > i64::MIN && at_one.high.0 < i64::MAX;
    let at_one_half_width = half.filter(|_| bounded).unwrap_or(UNBOUNDED);
    let centre_half_width = match half_width.map(SignedPicos::picos) {
        Some(Some(half_width)) => half_width,
        Some(None) => return Err(format!("'{name}_centre_half_width_s' is negative")),
        None => at_one_half_width,
    };
    let scatter_ppm = scatter(reader, name)?;
    let line = SizeLine {
        centre_half_width,
        scatter_ppm,
        ..SizeLine::exact(at_one.value, per_byte.value)
    };
    // Older files have no value at the centre: it is computed from the value at size 1. `null` is a
    // time too large to be stored exactly.
    let key = format!("{name}_centre_s");
    let unbounded = reader.has(&key).then_some(SignedPicos(i64::MAX));
    let at_centre = reader.quantity(&key)?.or(unbounded).unwrap_or(line.at(centre));
    Ok(Some(SizeLine { at_one, per_byte, centre, at_centre, ..line }))
}

fn scatter(reader: &Reader<'_>, name: &str) -> Result<u32, String> {
    let key = format!("{name}_scatter_ppm");
    match reader.number(&key)? {
        None => Ok(0),
        Some(_) => {
            let whole = reader.bytes(&key).ok().and_then(|value| u32::try_from(value.0).ok());
            whole.ok_or_else(|| format!("'{key}' must be a whole number below 2^32"))
        }
    }
}

/// A [`Change`] as the file stores it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ChangeRecord {
    /// First size of the new protocol.
    pub at_bytes: u64,
    /// Smallest possible first size of the new protocol.
    pub lo_bytes: u64,
    /// Largest possible first size of the new protocol.
    pub hi_bytes: u64,
    /// Parameter that changes most: `half_rtt`, `gap`, `send_overhead`, `recv_overhead`, `latency`.
    #[serde(default = "gap")]
    pub parameter: String,
    /// Relative change at `at_bytes`, a fraction; 0 if unknown.
    #[serde(default)]
    pub jump: f64,
    /// True if a new range begins there.
    #[serde(default = "splits")]
    pub splits: bool,
    /// Setting of the transport that controls the change, with its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
}

fn gap() -> String {
    "gap".to_owned()
}

const fn splits() -> bool {
    true
}

/// Names of the changing parameter in files.
const CURVES: [(Parameter, &str); 5] = [
    (Parameter::Gap, "gap"),
    (Parameter::HalfRtt, "half_rtt"),
    (Parameter::SendOverhead, "send_overhead"),
    (Parameter::RecvOverhead, "recv_overhead"),
    (Parameter::Latency, "latency"),
];

impl From<Change> for ChangeRecord {
    fn from(change: Change) -> Self {
        let name = CURVES.iter().find(|(parameter, _)| *parameter == change.parameter);
        Self {
            at_bytes: change.at.0,
            lo_bytes: change.low.0,
            hi_bytes: change.high.0,
            parameter: name.map_or_else(gap, |(_, name)| (*name).to_owned()),
            jump: f64::from(change.jump_ppm) / 1e6,
            splits: change.splits,
            setting: None,
        }
    }
}

impl From<&ChangeRecord> for Change {
    fn from(record: &ChangeRecord) -> Self {
        let parameter = CURVES.iter().find(|(_, name)| *name == record.parameter);
        #[allow(clippy::cast_possible_truncation, reason = "saturates")]
        let jump_ppm = (record.jump * 1e6).round() as i32;
        Self {
            at: Bytes(record.at_bytes),
            low: Bytes(record.lo_bytes),
            high: Bytes(record.hi_bytes),
            parameter: parameter.map_or(Parameter::Gap, |(parameter, _)| *parameter),
            jump_ppm,
            splits: record.splits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::model::{Estimate, Mark};
    use loggap_core::units::SignedPerByte;

    fn line(at_one: i64) -> SizeLine {
        let estimate = |value: i64, mark| Estimate {
            value: SignedPicos(value),
            low: SignedPicos(value - 7),
            high: SignedPicos(value + 9),
            mark,
        };
        let slope = estimate(81_123, Mark::Misfit);
        SizeLine {
            at_one: estimate(at_one, Mark::BudgetSpent),
            per_byte: Estimate {
                value: SignedPerByte(slope.value.0),
                low: SignedPerByte(slope.low.0),
                high: SignedPerByte(slope.high.0),
                mark: slope.mark,
            },
            centre: Bytes(333),
            at_centre: SignedPicos(-4_321),
            centre_half_width: Picos(77),
            scatter_ppm: 12_345,
        }
    }

    #[test]
    fn a_range_is_read_back_with_its_intervals_and_marks() {
        let range = Range {
            first: Bytes(100),
            last: Bytes(999),
            gap: line(-1_234_567),
            half_rtt: Some(line(9_876_543)),
            send_overhead: Some(line(1)),
            recv_overhead: None,
            latency: Some(Estimate::exact(SignedPicos(3))),
        };
        let text = serde_json::to_string(&RangeRecord::from(range)).unwrap();
        assert!(text.starts_with(r#"{"first_bytes":100,"last_bytes":999,"latency_s":3e-12,"#));
        assert_eq!(serde_json::from_str::<RangeRecord>(&text).unwrap().range, range);
    }

    #[test]
    fn a_change_is_read_back_with_its_curve_and_its_jump() {
        let change = Change {
            at: Bytes(100),
            low: Bytes(90),
            high: Bytes(101),
            parameter: Parameter::RecvOverhead,
            jump_ppm: -14_321,
            splits: false,
        };
        let text = serde_json::to_string(&ChangeRecord::from(change)).unwrap();
        assert!(text.contains(r#""parameter":"recv_overhead","jump":-0.014321"#), "{text}");
        let record: ChangeRecord = serde_json::from_str(&text).unwrap();
        assert_eq!(Change::from(&record), change);
    }

    #[test]
    fn a_range_written_by_hand_needs_little() {
        let text = r#"{"first_bytes":1,"last_bytes":64,"gap_s":1e-6,"gap_s_lo":0.9e-6}"#;
        let range = serde_json::from_str::<RangeRecord>(text).unwrap().range;
        assert_eq!(range.gap.at(Bytes(64)), SignedPicos(1_000_000));
        assert_eq!(range.gap.half_width(Bytes(64)), Picos(50_000));
        assert_eq!(range.gap.per_byte, Estimate::exact(SignedPerByte(0)));
    }

    #[test]
    fn an_interval_without_an_end_is_as_wide_when_read_again() {
        let text =
            r#"{"first_bytes":1,"last_bytes":9,"gap_s":2e-6,"gap_s_lo":1e-6,"gap_s_hi":null}"#;
        let range = serde_json::from_str::<RangeRecord>(text).unwrap();
        assert_eq!(range.range.gap.centre_half_width, UNBOUNDED);
        let written = serde_json::to_string(&range).unwrap();
        assert_eq!(serde_json::from_str::<RangeRecord>(&written).unwrap(), range);
    }

    #[test]
    fn what_is_missing_or_wrong_is_named_with_its_place() {
        for (text, expected) in [
            (r#"{"last_bytes":1,"gap_s":1}"#, "'first_bytes' is missing"),
            (r#"{"first_bytes":1,"last_bytes":1}"#, "'gap_s' is missing"),
            (r#"{"first_bytes":1.5,"last_bytes":1,"gap_s":1}"#, "whole number of bytes"),
            (r#"{"first_bytes":1,"last_bytes":1,"gap_s":"1"}"#, "'gap_s' must be a number"),
            (r#"{"first_bytes":1,"last_bytes":1,"gap_s":1e300}"#, "'gap_s' is too large"),
        ] {
            let error = serde_json::from_str::<RangeRecord>(text).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("line 1"), "{text}: {error}");
        }
    }
}
