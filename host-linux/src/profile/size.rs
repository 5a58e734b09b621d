//! Table of measurements by message size.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use hdrhistogram::iterators::IterationValue;
use loggap_core::measure::{SizeRow, floor};
use loggap_core::model::{Coefficient, Curve};
use loggap_core::units::{Picos, SignedPicos};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::record::{Reader, Record, deserialize_object, seconds};

/// A [`SizeRow`] as the file stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeRecord {
    /// Values with their intervals.
    pub row: SizeRow,
    /// Distribution of single rounds.
    pub rounds: Option<RoundRecord>,
    /// Value of each launch, seconds, of the curves that all launches have measured.
    pub launches: BTreeMap<Curve, Vec<f64>>,
}

/// Distribution of the half round trips of single rounds, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundRecord {
    /// Percentiles in the order of [`PERCENTILES`]; `None` where there are too few rounds.
    pub percentiles: [Option<f64>; 5],
    /// Histogram: upper end of each bin, and the number of rounds in it.
    pub histogram: Vec<(f64, u64)>,
}

/// Keys of [`RoundRecord::percentiles`].
pub const PERCENTILES: [&str; 5] =
    ["half_rtt_p50_s", "half_rtt_p90_s", "half_rtt_p99_s", "half_rtt_p999_s", "half_rtt_max_s"];

const HISTOGRAM: &str = "half_rtt_histogram";

impl RoundRecord {
    /// Distribution of `half_rtts`; `None` if there are none.
    #[must_use]
    pub fn of(half_rtts: impl IntoIterator<Item = Picos>) -> Option<Self> {
        // The digits are valid constants; the histograms resize themselves.
        let mut fine = Histogram::<u64>::new(PERCENTILE_DIGITS).ok()?;
        let mut coarse = Histogram::<u64>::new(HISTOGRAM_DIGITS).ok()?;
        for time in half_rtts {
            fine.record(time.0).ok()?;
            coarse.record(time.0).ok()?;
        }
        let percentiles = QUANTILES.map(|(share, floor)| {
            let is_known = fine.len() >= floor as u64;
            is_known.then(|| Picos(fine.value_at_quantile(share)).seconds())
        });
        let step = |step: IterationValue<u64>| {
            (Picos(step.value_iterated_to()).seconds(), step.count_at_value())
        };
        let histogram = coarse.iter_recorded().map(step).collect();
        (!fine.is_empty()).then_some(Self { percentiles, histogram })
    }
}

/// Significant decimal digits of percentiles and of the histogram's bins.
const PERCENTILE_DIGITS: u8 = 3;
const HISTOGRAM_DIGITS: u8 = 1;

/// Quantile, and least number of rounds for it, of each of [`PERCENTILES`].
const QUANTILES: [(f64, usize); 5] = [
    (0.5, floor::VALUE),
    (0.9, floor::P90),
    (0.99, floor::P99),
    (0.999, floor::P999),
    (1.0, floor::MAXIMUM),
];

impl From<SizeRow> for SizeRecord {
    fn from(row: SizeRow) -> Self {
        Self { row, rounds: None, launches: BTreeMap::new() }
    }
}

/// Curves in the order of columns.
pub const COLUMNS: [Curve; 4] =
    [Curve::HalfRtt, Curve::Gap, Curve::SendOverhead, Curve::RecvOverhead];

/// Keys of the sample counts, in the order of [`SizeRow::samples`].
pub const SAMPLES: [&str; 4] =
    ["round_trip_samples", "gap_samples", "paced_samples", "receive_samples"];

impl Serialize for SizeRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = &self.row;
        let mut record = Record::default();
        record.put("size_bytes", row.size.0);
        for curve in COLUMNS {
            if let Some(value) = row.value(curve) {
                record.put_estimate(Coefficient::AtOne(curve), &value.map(|time| time.0));
            }
        }
        let delay = row.delay.and_then(|delay| i64::try_from(delay.0).ok());
        if let Some(delay) = delay.and_then(seconds) {
            record.put("delay_s", delay);
        }
        for (key, count) in SAMPLES.into_iter().zip(row.samples) {
            record.put(key, count);
        }
        if let Some(rounds) = &self.rounds {
            for (key, value) in PERCENTILES.into_iter().zip(rounds.percentiles) {
                if let Some(value) = value {
                    record.put(key, value);
                }
            }
            record.put(HISTOGRAM, serde_json::json!(rounds.histogram));
        }
        for (curve, values) in &self.launches {
            record.put(launches_key(*curve), values.clone());
        }
        record.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SizeRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_object(deserializer, |reader| {
            Ok(Self { row: row(reader)?, rounds: rounds(reader)?, launches: launches(reader)? })
        })
    }
}

/// Key of the launches' values.
fn launches_key(curve: Curve) -> String {
    format!("{}_launches_s", curve.parameter().key())
}

fn launches(reader: &Reader<'_>) -> Result<BTreeMap<Curve, Vec<f64>>, String> {
    let mut launches = BTreeMap::new();
    for curve in Curve::ALL {
        let key = launches_key(curve);
        if let Some(values) = reader.value(&key) {
            let values = Vec::deserialize(values).map_err(|error| format!("'{key}': {error}"))?;
            launches.insert(curve, values);
        }
    }
    Ok(launches)
}

fn row(reader: &Reader<'_>) -> Result<SizeRow, String> {
    let delay = reader.time("delay_s")?;
    let negative = |_| "'delay_s' is negative".to_owned();
    let delay = delay.map(u64::try_from).transpose().map_err(negative)?.map(Picos);
    let mut samples = [0; 4];
    for (key, count) in SAMPLES.into_iter().zip(&mut samples) {
        let value = reader.count(key)?.unwrap_or(0);
        *count = usize::try_from(value).map_err(|_| format!("'{key}' is too large"))?;
    }
    let size = reader.bytes("size_bytes")?;
    let estimate = |curve| {
        let found = reader.estimate(Coefficient::AtOne(curve))?;
        Ok::<_, String>(found.map(|found| found.map(SignedPicos)))
    };
    Ok(SizeRow {
        size,
        half_rtt: estimate(Curve::HalfRtt)?,
        gap: estimate(Curve::Gap)?,
        send_overhead: estimate(Curve::SendOverhead)?,
        recv_overhead: estimate(Curve::RecvOverhead)?,
        delay,
        samples,
    })
}

fn rounds(reader: &Reader<'_>) -> Result<Option<RoundRecord>, String> {
    let mut percentiles = [None; 5];
    for (key, value) in PERCENTILES.into_iter().zip(&mut percentiles) {
        *value = reader.number(key)?;
    }
    if percentiles.iter().all(Option::is_none) {
        return Ok(None);
    }
    let histogram = reader.value(HISTOGRAM).map(Vec::deserialize).transpose();
    let histogram = histogram.map_err(|error| format!("'{HISTOGRAM}': {error}"))?;
    Ok(Some(RoundRecord { percentiles, histogram: histogram.unwrap_or_default() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::model::{Estimate, Mark};
    use loggap_core::units::Bytes;

    fn nothing_at(size: Bytes) -> SizeRow {
        SizeRow { size, ..SizeRow::default() }
    }

    #[test]
    fn a_row_is_read_back_with_what_it_has() {
        let gap = Estimate {
            value: SignedPicos(-5),
            low: SignedPicos(-9),
            high: SignedPicos(4),
            mark: Mark::BudgetSpent,
        };
        let row = SizeRow {
            gap: Some(gap),
            send_overhead: Some(Estimate::exact(SignedPicos(17))),
            delay: Some(Picos(123)),
            samples: [1, 2, 3, 4],
            ..nothing_at(Bytes(64))
        };
        let launches = BTreeMap::from([(Curve::Gap, vec![1e-6, -2e-6]), (Curve::HalfRtt, vec![])]);
        let record = SizeRecord { launches, ..SizeRecord::from(row) };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<SizeRecord>(&text).unwrap(), record);
    }

    #[test]
    fn percentiles_and_histogram_of_a_known_distribution_come_out() {
        // 1 to 1,000 microseconds, each twice.
        let times = (1..=1_000).flat_map(|time| [Picos(time * 1_000_000); 2]);
        let record = RoundRecord::of(times).unwrap();
        let expected = [500e-6, 900e-6, 990e-6, 999e-6, 1_000e-6];
        for (found, expected) in record.percentiles.into_iter().flatten().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1.5e-3, "{found} for {expected}");
        }
        let total: u64 = record.histogram.iter().map(|(_, count)| count).sum();
        assert_eq!(total, 2_000);
        assert!(record.histogram.len() < 200, "{}", record.histogram.len());
        assert!(record.histogram.is_sorted_by(|one, next| one.0 < next.0));
        // A step of one digit is at most a tenth wide.
        let first_half: u64 = record
            .histogram
            .iter()
            .take_while(|(upper, _)| *upper <= 500e-6)
            .map(|step| step.1)
            .sum();
        assert!((900..=1_000).contains(&first_half), "{first_half}");
        assert_eq!(RoundRecord::of([]), None);
    }

    #[test]
    fn far_percentiles_are_known_from_enough_rounds_only() {
        for (rounds, known) in
            [(1, 1), (2, 1), (3, 2), (19, 2), (20, 3), (199, 3), (200, 4), (1_999, 4), (2_000, 5)]
        {
            let rounds = RoundRecord::of((1..=rounds).map(|time| Picos(time * 1_000_000)));
            let percentiles = rounds.as_ref().unwrap().percentiles;
            assert_eq!(percentiles.iter().flatten().count(), known, "{percentiles:?}");
            let record = SizeRecord { rounds: rounds.clone(), ..nothing_at(Bytes(1)).into() };
            let text = serde_json::to_string(&record).unwrap();
            assert_eq!(text.contains("p90_s"), known > 2, "{text}");
            assert_eq!(text.contains("p99_s"), known > 3, "{text}");
            assert_eq!(text.contains("p999_s"), known > 4, "{text}");
            assert_eq!(serde_json::from_str::<SizeRecord>(&text).unwrap().rounds, rounds);
        }
    }

    #[test]
    fn a_negative_delay_is_refused() {
        let text = r#"{"size_bytes":1,"delay_s":-1e-6}"#;
        assert!(serde_json::from_str::<SizeRecord>(text).is_err());
    }
}
