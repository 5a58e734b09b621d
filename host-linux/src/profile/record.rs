//! JSON objects whose numbers have confidence intervals.

use std::fmt;

use loggap_core::model::{Coefficient, Estimate, Mark};
use loggap_core::units::{Bytes, SignedPicos};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

/// Picoseconds in a second.
const SECOND: f64 = 1e12;
/// Largest magnitude that [`from_si`] and [`to_si`] convert without loss: 19 minutes, 17 ms a byte.
const FAITHFUL: u64 = 1 << 50;

/// Key of `coefficient` in files.
pub(crate) fn key(coefficient: Coefficient) -> String {
    let per_byte = if coefficient.is_per_byte() { "_per_byte" } else { "" };
    format!("{}{per_byte}_s", coefficient.parameter().key())
}

/// Units of [`Range::estimate`](loggap_core::model::Range::estimate) in one SI unit.
const fn per_si(coefficient: Coefficient) -> f64 {
    if coefficient.is_per_byte() { 65_536.0 * SECOND } else { SECOND }
}

/// Converts a number of `coefficient` to SI units: the shortest decimal that is read back as the
/// same integer. `None` for numbers that do not survive writing and reading, such as the ends of
/// unbounded intervals.
#[allow(clippy::cast_precision_loss, reason = "exact by the filter")]
pub(crate) fn to_si(units: i64, coefficient: Coefficient) -> Option<f64> {
    (units.unsigned_abs() <= FAITHFUL).then(|| units as f64 / per_si(coefficient))
}

/// Converts a time to seconds, as [`to_si`].
pub(super) fn seconds(picos: i64) -> Option<f64> {
    to_si(picos, Coefficient::Latency)
}

/// Converts from SI units, rounded to the nearest; `None` beyond the magnitude that can be written.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "at most 2^50 by the filter, and exact as a power of two"
)]
fn from_si(value: f64, coefficient: Coefficient) -> Option<i64> {
    let units = (value * per_si(coefficient)).round();
    (units.abs() <= FAITHFUL as f64).then_some(units as i64)
}

/// JSON object under construction; keys keep the order of insertion.
#[derive(Debug, Default)]
pub(super) struct Record {
    entries: Vec<(String, Value)>,
    marks: Map<String, Value>,
}

impl Record {
    pub(super) fn put(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        self.entries.push((key.into(), value.into()));
    }

    /// Stores a number with its interval and, if not converged, its mark. An unknown number and an
    /// unbounded end are `null`; so is a magnitude too large to be written exactly, as no link has
    /// such a time.
    pub(super) fn put_estimate(&mut self, of: Coefficient, estimate: &Estimate<i64>) {
        self.put_named(&key(of), of, estimate);
    }

    /// Stores a time under `key`, as [`Record::put_estimate`].
    pub(super) fn put_time(&mut self, key: &str, estimate: &Estimate<SignedPicos>) {
        self.put_named(key, Coefficient::Latency, &estimate.map(|time| time.0));
    }

    fn put_named(&mut self, key: &str, of: Coefficient, estimate: &Estimate<i64>) {
        let Estimate { value, low, high, mark } = estimate.map(|units| to_si(units, of));
        let known = value.filter(|_| low.or(high).is_some());
        self.put(key, known);
        self.put(format!("{key}_lo"), low.filter(|_| known.is_some()));
        self.put(format!("{key}_hi"), high.filter(|_| known.is_some()));
        if let Some(name) = mark_name(mark) {
            self.marks.insert(key.to_owned(), name.into());
        }
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in &self.entries {
            map.serialize_entry(key, value)?;
        }
        if !self.marks.is_empty() {
            map.serialize_entry("not_converged", &self.marks)?;
        }
        map.end()
    }
}

/// Value of `not_converged` for a mark.
const fn mark_name(mark: Mark) -> Option<&'static str> {
    match mark {
        Mark::Converged => None,
        Mark::BudgetSpent => Some("budget_spent"),
        Mark::Misfit => Some("misfit"),
    }
}

/// Key-by-key reader of a JSON object. Errors are sentences.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    map: &'a Map<String, Value>,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(map: &'a Map<String, Value>) -> Self {
        Self { map }
    }

    pub(super) fn bytes(&self, key: &str) -> Result<Bytes, String> {
        match self.map.get(key).map(Value::as_u64) {
            Some(Some(bytes)) => Ok(Bytes(bytes)),
            Some(None) => Err(format!("'{key}' must be a whole number of bytes")),
            None => Err(format!("'{key}' is missing")),
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    pub(super) fn value(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, String> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                value.as_f64().map(Some).ok_or_else(|| format!("'{key}' must be a number"))
            }
        }
    }

    /// Whole number, which may be missing.
    pub(super) fn count(&self, key: &str) -> Result<Option<u64>, String> {
        self.number(key)?.map(|_| Ok(self.bytes(key)?.0)).transpose()
    }

    fn units(&self, key: &str, of: Coefficient) -> Result<Option<i64>, String> {
        let Some(value) = self.number(key)? else { return Ok(None) };
        from_si(value, of).map(Some).ok_or_else(|| format!("'{key}' is too large"))
    }

    /// Time in picoseconds.
    pub(super) fn time(&self, key: &str) -> Result<Option<i64>, String> {
        self.units(key, Coefficient::Latency)
    }

    /// Reads a number with its interval. Without an interval the number is exact; `null` is an
    /// unknown number, and a `null` end is unbounded. A number with both ends unbounded is refused,
    /// as it carries no information.
    pub(super) fn estimate(&self, of: Coefficient) -> Result<Option<Estimate<i64>>, String> {
        self.named(&key(of), of)
    }

    /// Reads a time, as [`Reader::estimate`].
    pub(super) fn time_estimate(&self, key: &str) -> Result<Option<Estimate<SignedPicos>>, String> {
        let found = self.named(key, Coefficient::Latency)?;
        Ok(found.map(|found| found.map(SignedPicos)))
    }

    fn named(&self, key: &str, of: Coefficient) -> Result<Option<Estimate<i64>>, String> {
        if !self.has(key) {
            return Ok(None);
        }
        let value = self.units(key, of)?;
        let end = |suffix: &str, without: i64| {
            let name = format!("{key}_{suffix}");
            let absent = if self.has(&name) { None } else { value };
            Ok::<i64, String>(self.units(&name, of)?.or(absent).unwrap_or(without))
        };
        let (low, high) = (end("lo", i64::MIN)?, end("hi", i64::MAX)?);
        let bounded = low > i64::MIN || high < i64::MAX;
        if value.is_some() != bounded {
            return Err(format!(
                "'{key}' needs a number for itself and one for '{key}_lo' or '{key}_hi', or null \
                 for all three"
            ));
        }
        let value = value.unwrap_or(0);
        if !(low <= value && value <= high) {
            return Err(format!("'{key}' does not lie between '{key}_lo' and '{key}_hi'"));
        }
        Ok(Some(Estimate { value, low, high, mark: self.mark(key)? }))
    }

    fn mark(&self, key: &str) -> Result<Mark, String> {
        let marks = self.map.get("not_converged").and_then(Value::as_object);
        match marks.and_then(|marks| marks.get(key)).map(Value::as_str) {
            None => Ok(Mark::Converged),
            Some(name) => [Mark::BudgetSpent, Mark::Misfit]
                .into_iter()
                .find(|mark| mark_name(*mark) == name)
                .ok_or_else(|| format!("'not_converged' of '{key}' is unknown")),
        }
    }
}

/// Deserializes an object and passes it to `parse` while the deserializer is still at the object's
/// end, so that errors of `parse` get that line and column.
pub(super) fn deserialize_object<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: fn(&Reader<'_>) -> Result<T, String>,
) -> Result<T, D::Error> {
    deserializer.deserialize_map(ObjectVisitor { parse })
}

struct ObjectVisitor<T> {
    parse: fn(&Reader<'_>) -> Result<T, String>,
}

impl<'de, T> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<T, A::Error> {
        let map = Map::<String, Value>::deserialize(MapAccessDeserializer::new(access))?;
        (self.parse)(&Reader::new(&map)).map_err(A::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::model::Curve;
    use quickcheck::quickcheck;

    const GAP: Coefficient = Coefficient::AtOne(Curve::Gap);

    quickcheck! {
        fn quantities_are_read_back_to_the_unit(units: i64) -> bool {
            let units = units >> 13; // both roundings together stay below half a unit
            Coefficient::ALL.into_iter().all(|of| from_si(to_si(units, of).unwrap(), of) == Some(units))
        }
    }

    #[test]
    fn times_are_written_as_short_decimals() {
        assert_eq!(seconds(12_345_678).unwrap().to_string(), "0.000012345678");
        let slope = to_si(20 << 16, Coefficient::PerByte(Curve::Gap));
        assert_eq!(slope.unwrap().to_string(), "0.00000000002");
    }

    #[test]
    fn what_no_integer_can_hold_is_refused() {
        for absurd in [1.2e3, -1e5, f64::INFINITY, f64::NAN] {
            assert_eq!(from_si(absurd, GAP), None, "{absurd}");
        }
    }

    #[test]
    fn what_is_not_known_is_null() {
        let unknown = Estimate { low: i64::MIN, high: i64::MAX, ..Estimate::default() };
        let below = Estimate { high: 1 << 20, ..unknown };
        for estimate in [unknown, below] {
            let mut record = Record::default();
            record.put_estimate(GAP, &estimate);
            let text = serde_json::to_string(&record).unwrap();
            assert!(text.contains(r#""gap_s_lo":null"#), "{text}");
            let map = serde_json::from_str(&text).unwrap();
            assert_eq!(Reader::new(&map).estimate(GAP), Ok(Some(estimate)), "{text}");
        }
    }

    #[test]
    fn a_number_without_any_bound_and_a_bound_without_a_number_are_refused() {
        for map in [
            serde_json::json!({"gap_s": 3e-6, "gap_s_lo": null, "gap_s_hi": null}),
            serde_json::json!({"gap_s": null, "gap_s_lo": -1e-6, "gap_s_hi": null}),
        ] {
            let reader = Reader::new(map.as_object().unwrap());
            let error = reader.estimate(GAP).unwrap_err();
            assert!(error.contains("'gap_s' needs a number"), "{error}");
        }
    }

    #[test]
    fn a_value_outside_its_interval_is_refused() {
        let map = serde_json::json!({"gap_s": 3e-6, "gap_s_lo": 1e-6, "gap_s_hi": 2e-6});
        let reader = Reader::new(map.as_object().unwrap());
        let error = reader.estimate(GAP).unwrap_err();
        assert!(error.contains("'gap_s_lo'"), "{error}");
    }
}
