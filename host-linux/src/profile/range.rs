//! The parameters of one protocol, and the changes between protocols.

use loggap_core::model::{Change, Range, SizeLine};
use loggap_core::units::{Bytes, Picos, SignedPicos};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::record::{Reader, Record, deserialize_object, is_exact, to_si};

/// A [`Range`] with the keys of the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeRecord(pub Range);

impl Serialize for RangeRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let range = &self.0;
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
        record.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RangeRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_object(deserializer, range).map(Self)
    }
}

fn range(reader: &Reader<'_>) -> Result<Range, String> {
    Ok(Range {
        first: reader.bytes("first_bytes")?,
        last: reader.bytes("last_bytes")?,
        gap: line(reader, "gap")?.ok_or("'gap_s' is missing")?,
        half_rtt: line(reader, "half_rtt")?,
        send_overhead: line(reader, "send_overhead")?,
        recv_overhead: line(reader, "recv_overhead")?,
        latency: reader.estimate("latency_s")?,
    })
}

fn put_line(record: &mut Record, name: &str, line: Option<&SizeLine>) {
    let Some(line) = line else { return };
    record.put_estimate(&format!("{name}_s"), &line.at_one);
    record.put_estimate(&format!("{name}_per_byte_s"), &line.per_byte);
    record.put(format!("{name}_centre_bytes"), line.centre.0);
    let half_width = SignedPicos(i64::try_from(line.centre_half_width.0).unwrap_or(i64::MAX));
    let bounded = is_exact(half_width).then(|| to_si(half_width));
    record.put(format!("{name}_centre_half_width_s"), bounded);
    record.put(format!("{name}_scatter_ppm"), line.scatter_ppm);
}

/// Half of an interval that lacks an end.
const UNBOUNDED: Picos = Picos(i64::MAX.cast_unsigned());

/// A line; without the keys of its centre its interval at size 1 holds
/// everywhere.
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
    Ok(Some(SizeLine { at_one, per_byte, centre, centre_half_width, scatter_ppm }))
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

/// A [`Change`] with the keys of the file.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ChangeRecord {
    /// First size of the new protocol.
    pub at_bytes: u64,
    /// The new protocol begins here at the earliest.
    pub lo_bytes: u64,
    /// The new protocol begins here at the latest.
    pub hi_bytes: u64,
}

impl From<Change> for ChangeRecord {
    fn from(change: Change) -> Self {
        Self { at_bytes: change.at.0, lo_bytes: change.low.0, hi_bytes: change.high.0 }
    }
}

impl From<ChangeRecord> for Change {
    fn from(record: ChangeRecord) -> Self {
        Self {
            at: Bytes(record.at_bytes),
            low: Bytes(record.lo_bytes),
            high: Bytes(record.hi_bytes),
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
        let text = serde_json::to_string(&RangeRecord(range)).unwrap();
        assert!(text.starts_with(r#"{"first_bytes":100,"last_bytes":999,"latency_s":3e-12,"#));
        assert_eq!(serde_json::from_str::<RangeRecord>(&text).unwrap().0, range);
    }

    #[test]
    fn a_range_written_by_hand_needs_little() {
        let text = r#"{"first_bytes":1,"last_bytes":64,"gap_s":1e-6,"gap_s_lo":0.9e-6}"#;
        let range = serde_json::from_str::<RangeRecord>(text).unwrap().0;
        assert_eq!(range.gap.at(Bytes(64)), SignedPicos(1_000_000));
        assert_eq!(range.gap.half_width(Bytes(64)), Picos(50_000));
        assert_eq!(range.gap.per_byte, Estimate::exact(SignedPerByte(0)));
    }

    #[test]
    fn an_interval_without_an_end_is_as_wide_when_read_again() {
        let text =
            r#"{"first_bytes":1,"last_bytes":9,"gap_s":2e-6,"gap_s_lo":1e-6,"gap_s_hi":null}"#;
        let range = serde_json::from_str::<RangeRecord>(text).unwrap();
        assert_eq!(range.0.gap.centre_half_width, UNBOUNDED);
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
