//! Parameters of one protocol, and changes between protocols.

use std::collections::BTreeMap;

use loggap_core::model::{Change, Coefficient, Curve, Parameter, Range, SizeLine};
use loggap_core::units::{Bytes, Picos, SignedPerByte, SignedPicos};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::record::{Reader, Record, deserialize_object, key, seconds};

/// A [`Range`] as the file stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeRecord {
    /// This run's values.
    pub range: Range,
    /// Prediction interval of another run: both ends in seconds (per byte).
    pub next: BTreeMap<Coefficient, [f64; 2]>,
}

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
        if let Some(latency) = range.estimate(Coefficient::Latency) {
            record.put_estimate(Coefficient::Latency, &latency);
        }
        for curve in [Curve::HalfRtt, Curve::SendOverhead, Curve::RecvOverhead, Curve::Gap] {
            put_line(&mut record, range, curve);
        }
        let next: BTreeMap<_, _> = self.next.iter().map(|(of, ends)| (key(*of), ends)).collect();
        for (key, [low, high]) in next {
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
    for of in Coefficient::ALL {
        let end = |suffix: &str| reader.number(&format!("{}_next_{suffix}", key(of)));
        if let (Some(low), Some(high)) = (end("lo")?, end("hi")?) {
            next.insert(of, [low, high]);
        }
    }
    let latency = reader.estimate(Coefficient::Latency);
    let range = Range {
        first: reader.bytes("first_bytes")?,
        last: reader.bytes("last_bytes")?,
        gap: line(reader, Curve::Gap)?.ok_or("'gap_s' is missing")?,
        half_rtt: line(reader, Curve::HalfRtt)?,
        send_overhead: line(reader, Curve::SendOverhead)?,
        recv_overhead: line(reader, Curve::RecvOverhead)?,
        latency: latency?.map(|latency| latency.map(SignedPicos)),
    };
    Ok(RangeRecord { range, next })
}

fn put_line(record: &mut Record, range: &Range, curve: Curve) {
    let Some(line) = range.line(curve) else { return };
    let name = curve.parameter().key();
    record.put_estimate(Coefficient::AtOne(curve), &line.at_one.map(|time| time.0));
    record.put_estimate(Coefficient::PerByte(curve), &line.per_byte.map(|slope| slope.0));
    record.put(format!("{name}_centre_bytes"), line.centre.0);
    record.put(format!("{name}_centre_s"), seconds(line.at_centre.0));
    let half_width = i64::try_from(line.centre_half_width.0).ok();
    record.put(format!("{name}_centre_half_width_s"), half_width.and_then(seconds));
    record.put(format!("{name}_scatter_ppm"), line.scatter_ppm);
}

/// Half width of an unbounded interval.
const UNBOUNDED: Picos = Picos(i64::MAX.cast_unsigned());

/// Reads a line. Without the keys of its centre, its interval at size 1 applies to all sizes.
fn line(reader: &Reader<'_>, curve: Curve) -> Result<Option<SizeLine>, String> {
    let name = curve.parameter().key();
    let Some(at_one) = reader.estimate(Coefficient::AtOne(curve))? else { return Ok(None) };
    let at_one = at_one.map(SignedPicos);
    let per_byte = reader.estimate(Coefficient::PerByte(curve))?.unwrap_or_default();
    let per_byte = per_byte.map(SignedPerByte);
    let centre = Bytes(reader.count(&format!("{name}_centre_bytes"))?.unwrap_or(1));
    // `null` is a time too large to be stored exactly.
    let stored = |part: &str| {
        let key = format!("{name}_{part}_s");
        let unbounded = reader.has(&key).then_some(i64::MAX);
        reader.time(&key).map(|time| time.or(unbounded).map(SignedPicos))
    };
    let centre_half_width = match stored("centre_half_width")? {
        Some(width) => {
            width.picos().ok_or_else(|| format!("'{name}_centre_half_width_s' is negative"))?
        }
        None if at_one.low.0 > i64::MIN && at_one.high.0 < i64::MAX => {
            let half = SignedPicos(at_one.high.0.saturating_sub(at_one.low.0) / 2).picos();
            half.unwrap_or(UNBOUNDED)
        }
        None => UNBOUNDED,
    };
    let line = SizeLine {
        centre_half_width,
        scatter_ppm: scatter(reader, name)?,
        ..SizeLine::exact(at_one.value, per_byte.value)
    };
    // Older files have no value at the centre: it is computed from the value at size 1.
    let at_centre = stored("centre")?.unwrap_or(line.at(centre));
    Ok(Some(SizeLine { at_one, per_byte, centre, at_centre, ..line }))
}

fn scatter(reader: &Reader<'_>, name: &str) -> Result<u32, String> {
    let key = format!("{name}_scatter_ppm");
    let Some(_) = reader.number(&key)? else { return Ok(0) };
    let whole = reader.bytes(&key).ok().and_then(|value| u32::try_from(value.0).ok());
    whole.ok_or_else(|| format!("'{key}' must be a whole number below 2^32"))
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

impl From<Change> for ChangeRecord {
    fn from(change: Change) -> Self {
        Self {
            at_bytes: change.at.0,
            lo_bytes: change.low.0,
            hi_bytes: change.high.0,
            parameter: change.parameter.key().to_owned(),
            jump: f64::from(change.jump_ppm) / 1e6,
            splits: change.splits,
            setting: None,
        }
    }
}

impl From<&ChangeRecord> for Change {
    fn from(record: &ChangeRecord) -> Self {
        let named = |parameter: &Parameter| parameter.key() == record.parameter;
        #[allow(clippy::cast_possible_truncation, reason = "saturates")]
        let jump_ppm = (record.jump * 1e6).round() as i32;
        Self {
            at: Bytes(record.at_bytes),
            low: Bytes(record.lo_bytes),
            high: Bytes(record.hi_bytes),
            parameter: Parameter::ALL.into_iter().find(named).unwrap_or_default(),
            jump_ppm,
            splits: record.splits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::model::{Estimate, Mark};

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
