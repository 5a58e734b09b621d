//! JSON objects whose numbers have confidence intervals.

use std::fmt;

use loggap_core::model::{Estimate, Mark};
use loggap_core::units::{Bytes, SignedPerByte, SignedPicos};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

/// Picoseconds in a second.
const SECOND: f64 = 1e12;
/// Units of [`SignedPerByte`] in a second per byte.
const SECOND_PER_BYTE: f64 = 65_536e12;
/// Largest magnitude that [`from_si`] and [`to_si`] convert without loss: 19 minutes, 17 ms a byte.
const FAITHFUL: u64 = 1 << 50;

/// Integer quantity that is stored as a decimal in SI units.
pub(crate) trait Quantity: Copy + PartialOrd {
    /// Number of its units in one SI unit.
    const UNIT: f64;
    fn units(self) -> i64;
    fn from_units(units: i64) -> Self;
}

impl Quantity for SignedPicos {
    const UNIT: f64 = SECOND;
    fn units(self) -> i64 {
        self.0
    }
    fn from_units(units: i64) -> Self {
        Self(units)
    }
}

impl Quantity for SignedPerByte {
    const UNIT: f64 = SECOND_PER_BYTE;
    fn units(self) -> i64 {
        self.0
    }
    fn from_units(units: i64) -> Self {
        Self(units)
    }
}

/// Converts to SI units: the shortest decimal that is read back as the same integer.
#[allow(clippy::cast_precision_loss, reason = "exact below 2^53, and rounded beyond")]
pub(crate) fn to_si<Q: Quantity>(quantity: Q) -> f64 {
    quantity.units() as f64 / Q::UNIT
}

/// True if a number survives writing and reading; the ends of unbounded intervals do not.
pub(crate) fn is_exact<Q: Quantity>(number: Q) -> bool {
    number.units().unsigned_abs() <= FAITHFUL
}

/// Converts from SI units, rounded to the nearest; `None` beyond the magnitude that can be written.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "at most 2^50 by the filter, and exact as a power of two"
)]
pub(super) fn from_si<Q: Quantity>(value: f64) -> Option<Q> {
    let units = (value * Q::UNIT).round();
    (units.abs() <= FAITHFUL as f64).then(|| Q::from_units(units as i64))
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
    pub(super) fn put_estimate<Q: Quantity>(&mut self, key: &str, estimate: &Estimate<Q>) {
        let Estimate { value, low, high, .. } = *estimate;
        let known = is_exact(value) && (is_exact(low) || is_exact(high));
        let number = |number| (known && is_exact(number)).then(|| to_si(number));
        self.put(key, number(value));
        self.put(format!("{key}_lo"), number(low));
        self.put(format!("{key}_hi"), number(high));
        if let Some(name) = mark_name(estimate.mark) {
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

    pub(super) fn quantity<Q: Quantity>(&self, key: &str) -> Result<Option<Q>, String> {
        let Some(value) = self.number(key)? else { return Ok(None) };
        from_si(value).map(Some).ok_or_else(|| format!("'{key}' is too large"))
    }

    /// Reads a number with its interval. Without an interval the number is exact; `null` is an
    /// unknown number, and a `null` end is unbounded. A number with both ends unbounded is refused,
    /// as it carries no information.
    pub(super) fn estimate<Q: Quantity>(&self, key: &str) -> Result<Option<Estimate<Q>>, String> {
        if !self.has(key) {
            return Ok(None);
        }
        let value = self.quantity(key)?;
        let end = |suffix: &str, without: i64| {
            let name = format!("{key}_{suffix}");
            let absent = if self.has(&name) { None } else { value };
            Ok::<Q, String>(self.quantity(&name)?.or(absent).unwrap_or(Q::from_units(without)))
        };
        let (low, high) = (end("lo", i64::MIN)?, end("hi", i64::MAX)?);
        let bounded = low.units() > i64::MIN || high.units() < i64::MAX;
        if value.is_some() != bounded {
            return Err(format!(
                "'{key}' needs a number for itself and one for '{key}_lo' or '{key}_hi', or null \
                 for all three"
            ));
        }
        let value = value.unwrap_or(Q::from_units(0));
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
    use quickcheck::quickcheck;

    quickcheck! {
        fn quantities_are_read_back_to_the_unit(units: i64) -> bool {
            let units = units >> 13; // both roundings together stay below half a unit
            from_si(to_si(SignedPicos(units))) == Some(SignedPicos(units))
                && from_si(to_si(SignedPerByte(units))) == Some(SignedPerByte(units))
        }
    }

    #[test]
    fn times_are_written_as_short_decimals() {
        assert_eq!(to_si(SignedPicos(12_345_678)).to_string(), "0.000012345678");
        assert_eq!(to_si(SignedPerByte(20 << 16)).to_string(), "0.00000000002");
    }

    #[test]
    fn what_no_integer_can_hold_is_refused() {
        for absurd in [1.2e3, -1e5, f64::INFINITY, f64::NAN] {
            assert_eq!(from_si::<SignedPicos>(absurd), None, "{absurd}");
        }
    }

    #[test]
    fn what_is_not_known_is_null() {
        let (low, high) = (SignedPerByte(i64::MIN), SignedPerByte(i64::MAX));
        let unknown = Estimate { value: SignedPerByte(0), low, high, mark: Mark::Converged };
        let below = Estimate { high: SignedPerByte(1 << 20), ..unknown };
        for estimate in [unknown, below] {
            let mut record = Record::default();
            record.put_estimate("g", &estimate);
            let text = serde_json::to_string(&record).unwrap();
            assert!(text.contains(r#""g_lo":null"#), "{text}");
            let map = serde_json::from_str(&text).unwrap();
            assert_eq!(Reader::new(&map).estimate("g"), Ok(Some(estimate)), "{text}");
        }
    }

    #[test]
    fn a_number_without_any_bound_and_a_bound_without_a_number_are_refused() {
        for map in [
            serde_json::json!({"g_s": 3e-6, "g_s_lo": null, "g_s_hi": null}),
            serde_json::json!({"g_s": null, "g_s_lo": -1e-6, "g_s_hi": null}),
        ] {
            let reader = Reader::new(map.as_object().unwrap());
            let error = reader.estimate::<SignedPicos>("g_s").unwrap_err();
            assert!(error.contains("'g_s' needs a number"), "{error}");
        }
    }

    #[test]
    fn a_value_outside_its_interval_is_refused() {
        let map = serde_json::json!({"g_s": 3e-6, "g_s_lo": 1e-6, "g_s_hi": 2e-6});
        let reader = Reader::new(map.as_object().unwrap());
        let error = reader.estimate::<SignedPicos>("g_s").unwrap_err();
        assert!(error.contains("'g_s_lo'"), "{error}");
    }
}
