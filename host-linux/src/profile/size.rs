//! The per-size table.

use loggap_core::measure::SizeRow;
use loggap_core::units::SignedPicos;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::record::{Reader, Record, deserialize_object, is_exact, to_si};

/// A [`SizeRow`] with the keys of the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeRecord(pub SizeRow);

/// The keys of the numbers of samples, in the order of [`SizeRow::samples`].
const SAMPLES: [&str; 4] =
    ["round_trip_samples", "gap_samples", "paced_samples", "receive_samples"];

impl Serialize for SizeRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = &self.0;
        let mut record = Record::default();
        record.put("size_bytes", row.size.0);
        let numbers = [
            ("half_rtt_s", &row.half_rtt),
            ("gap_s", &row.gap),
            ("send_overhead_s", &row.send_overhead),
            ("recv_overhead_s", &row.recv_overhead),
        ];
        for (key, number) in numbers {
            if let Some(number) = number {
                record.put_estimate(key, number);
            }
        }
        let delay = row.delay.and_then(|delay| i64::try_from(delay.0).ok()).map(SignedPicos);
        if let Some(delay) = delay.filter(|delay| is_exact(*delay)) {
            record.put("delay_s", to_si(delay));
        }
        for (key, count) in SAMPLES.into_iter().zip(row.samples) {
            record.put(key, count);
        }
        record.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SizeRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_object(deserializer, row).map(Self)
    }
}

fn row(reader: &Reader<'_>) -> Result<SizeRow, String> {
    let delay = reader.quantity::<SignedPicos>("delay_s")?;
    let mut samples = [0; 4];
    for (key, count) in SAMPLES.into_iter().zip(&mut samples) {
        let value = match reader.number(key)? {
            Some(_) => reader.bytes(key)?.0,
            None => 0,
        };
        *count = usize::try_from(value).map_err(|_| format!("'{key}' is too large"))?;
    }
    Ok(SizeRow {
        size: reader.bytes("size_bytes")?,
        half_rtt: reader.estimate("half_rtt_s")?,
        gap: reader.estimate("gap_s")?,
        send_overhead: reader.estimate("send_overhead_s")?,
        recv_overhead: reader.estimate("recv_overhead_s")?,
        delay: match delay.map(SignedPicos::picos) {
            Some(None) => return Err("'delay_s' is negative".to_owned()),
            other => other.flatten(),
        },
        samples,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::model::{Estimate, Mark};
    use loggap_core::units::{Bytes, Picos};

    #[test]
    fn a_row_is_read_back_with_what_it_has() {
        let gap = Estimate {
            value: SignedPicos(-5),
            low: SignedPicos(-9),
            high: SignedPicos(4),
            mark: Mark::BudgetSpent,
        };
        let row = SizeRow {
            size: Bytes(64),
            half_rtt: None,
            gap: Some(gap),
            send_overhead: Some(Estimate::exact(SignedPicos(17))),
            recv_overhead: None,
            delay: Some(Picos(123)),
            samples: [1, 2, 3, 4],
        };
        let text = serde_json::to_string(&SizeRecord(row)).unwrap();
        assert_eq!(serde_json::from_str::<SizeRecord>(&text).unwrap().0, row);
    }

    #[test]
    fn a_negative_delay_is_refused() {
        let text = r#"{"size_bytes":1,"delay_s":-1e-6}"#;
        assert!(serde_json::from_str::<SizeRecord>(text).is_err());
    }
}
