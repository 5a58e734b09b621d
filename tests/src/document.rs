//! What `loggap measure -J` says, as far as tests judge it. Keys that a
//! version does not write are absent here.

use serde_json::Value;

/// A number with its intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    /// Best value.
    pub value: f64,
    /// This run's interval.
    pub interval: Option<[f64; 2]>,
    /// Where another run would fall.
    pub next: Option<[f64; 2]>,
}

impl Number {
    /// The number of this key, with the keys beside it.
    fn of(object: &Value, key: &str) -> Option<Self> {
        let number = |suffix: &str| object.get(format!("{key}{suffix}")).and_then(Value::as_f64);
        let pair = |low, high| Some([number(low)?, number(high)?]);
        let (interval, next) = (pair("_lo", "_hi"), pair("_next_lo", "_next_hi"));
        Some(Self { value: number("")?, interval, next })
    }
}

/// Whether an interval holds a value.
#[must_use]
pub fn holds(interval: [f64; 2], value: f64) -> bool {
    interval[0] <= value && value <= interval[1]
}

/// A change that divides two ranges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Boundary {
    /// First size of the new protocol.
    pub at: f64,
    /// Where it may lie.
    pub interval: [f64; 2],
}

/// One range.
#[derive(Clone, Debug)]
pub struct Range {
    /// Smallest size.
    pub first: u64,
    /// Largest size.
    pub last: u64,
    object: Value,
}

/// Keys of a range's parameters.
pub const PARAMETERS: [&str; 9] = [
    "half_rtt_s",
    "half_rtt_per_byte_s",
    "latency_s",
    "send_overhead_s",
    "send_overhead_per_byte_s",
    "recv_overhead_s",
    "recv_overhead_per_byte_s",
    "gap_s",
    "gap_per_byte_s",
];

impl Range {
    /// The parameter of one of [`PARAMETERS`].
    #[must_use]
    pub fn parameter(&self, key: &str) -> Option<Number> {
        Number::of(&self.object, key)
    }
}

/// A profile.
#[derive(Clone, Debug)]
pub struct Document {
    /// By ascending size, at least one.
    pub ranges: Vec<Range>,
    /// Changes of protocol that divide them.
    pub changes: Vec<Boundary>,
    /// How long it took.
    pub seconds: f64,
    /// Messages of both ends.
    pub messages: u64,
    /// What it says that others did to the machine meanwhile.
    pub disturbances: Vec<String>,
}

impl Document {
    /// Reads a profile; `None` where it is none or holds no range.
    #[must_use]
    pub fn parse(json: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(json).ok()?;
        let list =
            |key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        let range = |object: Value| {
            let size = |key: &str| object.get(key).and_then(Value::as_u64);
            let (first, last) = (size("first_bytes")?, size("last_bytes")?);
            Some(Range { first, last, object })
        };
        let ranges: Vec<Range> = list("ranges").into_iter().filter_map(range).collect();
        let divides = |change: &Value| change.get("splits").is_none_or(|splits| splits == true);
        let boundary = |change: &Value| {
            let number = |key: &str| change.get(key).and_then(Value::as_f64);
            let interval = [number("lo_bytes")?, number("hi_bytes")?];
            Some(Boundary { at: number("at_bytes")?, interval })
        };
        let changes =
            list("changes").iter().filter(|change| divides(change)).filter_map(boundary).collect();
        let seconds = value.get("wall_s").and_then(Value::as_f64).unwrap_or(f64::NAN);
        let messages = value.get("messages_sent").and_then(Value::as_u64).unwrap_or(0);
        let others = ["other processes took the processor", "the machine changed"];
        let disturbances = list("warnings")
            .iter()
            .map(Value::to_string)
            .filter(|warning| others.iter().any(|other| warning.contains(other)))
            .collect();
        (!ranges.is_empty()).then_some(Self { ranges, changes, seconds, messages, disturbances })
    }

    /// The range that holds a size.
    #[must_use]
    pub fn range(&self, size: u64) -> Option<&Range> {
        self.ranges.iter().find(|range| range.first <= size.max(1) && size <= range.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_version_does_not_write_is_absent() {
        let old = br#"{"ranges":[{"first_bytes":1,"last_bytes":9,"gap_s":2.0,"gap_s_lo":1.0,"gap_s_hi":3.0}],
            "changes":[{"at_bytes":5,"lo_bytes":4,"hi_bytes":6}],"wall_s":1.5,"messages_sent":7}"#;
        let document = Document::parse(old).unwrap();
        let gap = document.ranges[0].parameter("gap_s").unwrap();
        assert_eq!(gap, Number { value: 2.0, interval: Some([1.0, 3.0]), next: None });
        assert_eq!(document.ranges[0].parameter("latency_s"), None);
        assert_eq!(document.changes, [Boundary { at: 5.0, interval: [4.0, 6.0] }]);
        assert_eq!((document.seconds, document.messages), (1.5, 7));
    }

    #[test]
    fn a_change_that_divides_nothing_is_no_boundary() {
        let new = br#"{"ranges":[{"first_bytes":1,"last_bytes":9,"gap_s":2.0,"gap_s_next_lo":0.5,"gap_s_next_hi":4.0}],
            "changes":[{"at_bytes":5,"lo_bytes":4,"hi_bytes":6,"splits":false}]}"#;
        let document = Document::parse(new).unwrap();
        assert!(document.changes.is_empty());
        assert_eq!(document.ranges[0].parameter("gap_s").unwrap().next, Some([0.5, 4.0]));
        assert_eq!(document.range(9).map(|range| range.first), Some(1));
        assert!(document.range(10).is_none() && Document::parse(b"{}").is_none());
    }
}
