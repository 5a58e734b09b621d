//! Results of the LogP signature and of pLogP.

use loggap_core::measure::{Bottleneck, PlogpRow, Regime, Signature};
use loggap_core::model::Estimate;
use loggap_core::units::SignedPicos;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::record::{Reader, Record, deserialize_object};

/// LogP signature: its points and the parameters by size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SignatureRecord {
    /// Points of all sizes, by size, `Δ` and `M`.
    pub points: Vec<PointRecord>,
    /// Parameters by size, ascending.
    pub sizes: Vec<SignatureSize>,
    /// Bulk transfers by size, ascending.
    pub bulk: Vec<BulkRecord>,
    /// Computation of the responder for each request, seconds; 0 for none.
    pub handler_s: f64,
    /// `T₀` and `R∞`, where there are three sizes of bulk transfers.
    pub bulk_line: Option<BulkLine>,
}

/// Bulk transfers of one size.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct BulkRecord {
    /// Bytes of a transfer, `n`.
    pub size_bytes: u32,
    /// Send overhead of a store, `o(n)`, seconds.
    pub o_s: f64,
    /// Gap of stores, `g(n)`; `None` where the curve is not flat.
    pub g_s: Option<f64>,
    /// Time of a store until its reply, `T(n)`.
    pub store_s: f64,
    /// Time of a get.
    pub get_s: Option<f64>,
    /// `BW(n) = n/T(n)`, bytes per second.
    pub bytes_per_s: f64,
}

/// Line `T(n) = T₀ + n/R∞` through the times of stores, with 95% intervals.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct BulkLine {
    /// Intercept `T₀`, seconds; may be negative.
    pub t0_s: f64,
    /// Lower end of its interval.
    pub t0_s_lo: f64,
    /// Upper end of its interval.
    pub t0_s_hi: f64,
    /// Rate `R∞`, bytes per second.
    pub r_inf: f64,
    /// Lower end of its interval.
    pub r_inf_lo: f64,
    /// Upper end of its interval; `None` where it is unbounded.
    pub r_inf_hi: Option<f64>,
}

/// A point of the signature.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PointRecord {
    /// Message size.
    pub size_bytes: u32,
    /// Requests, `M`.
    pub in_flight: u32,
    /// Computation after each, `Δ`, seconds.
    pub delay_s: f64,
    /// Cost of a message, `T(M, Δ)/M`, seconds.
    pub cost_s: f64,
    /// Lower end of its interval.
    pub lo: f64,
    /// Upper end of its interval.
    pub hi: f64,
    /// Number of timings.
    pub samples: usize,
    /// `send_only`, `transition` or `steady_state`.
    pub regime: String,
}

/// A [`Signature`] as the file stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct SignatureSize {
    /// Parameters.
    pub found: Signature,
}

/// Row of pLogP as the file stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlogpSize {
    /// Parameters.
    pub row: PlogpRow,
    /// Latency, in the row of size 0.
    pub latency: Option<Estimate<SignedPicos>>,
    /// Messages of the flood that `g(0)` was read from, in the row of size 0.
    pub flood_messages: Option<u32>,
    /// True if a flood of twice as many messages would hardly change `g(0)`, in the row of size 0.
    pub is_gap_stable: Option<bool>,
}

impl PlogpSize {
    /// Messages from which on LogP/MPI's `g(0)`, which keeps the round trip in a flood's time, is known
    /// within 1%: `n > (2L + g)/(0.01·g)` with `L = RTT/2` (Hoefler et al. 2007, section 2.5). `None` but in the row of size 0.
    #[must_use]
    pub fn messages_for_gap(&self) -> Option<f64> {
        self.latency?;
        let (trip, gap) = (self.row.round_trip.value.seconds(), self.row.gap.value.seconds());
        (gap > 0.0).then(|| ((trip + gap) / (0.01 * gap)).ceil())
    }
}

/// Name of a regime in files.
#[must_use]
pub const fn regime_name(regime: Regime) -> &'static str {
    match regime {
        Regime::SendOnly => "send_only",
        Regime::Transition => "transition",
        Regime::SteadyState => "steady_state",
    }
}

/// Bottlenecks of the gap with their names in files.
const BOTTLENECKS: [(Bottleneck, &str); 3] = [
    (Bottleneck::Network, "network"),
    (Bottleneck::Sender, "sender"),
    (Bottleneck::Window, "window"),
];

impl Serialize for SignatureRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        // The smallest size's, where readers expect one of each.
        if let Some(SignatureSize { found }) = self.sizes.first() {
            map.serialize_entry("capacity", &found.capacity)?;
            let gap = found.gap.map(|gap| gap.map(SignedPicos::seconds));
            map.serialize_entry("request_reply_gap_s", &gap.map(|gap| gap.value))?;
            map.serialize_entry("request_reply_gap_s_lo", &gap.map(|gap| gap.low))?;
            map.serialize_entry("request_reply_gap_s_hi", &gap.map(|gap| gap.high))?;
        }
        map.serialize_entry("points", &self.points)?;
        map.serialize_entry("sizes", &self.sizes)?;
        if self.handler_s > 0.0 {
            map.serialize_entry("handler_s", &self.handler_s)?;
        }
        if !self.bulk.is_empty() {
            map.serialize_entry("bulk", &self.bulk)?;
        }
        if let Some(line) = &self.bulk_line {
            map.serialize_entry("bulk_line", line)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for SignatureRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Parts {
            #[serde(default)]
            points: Vec<PointRecord>,
            #[serde(default)]
            sizes: Vec<SignatureSize>,
            #[serde(default)]
            bulk: Vec<BulkRecord>,
            #[serde(default)]
            handler_s: f64,
            bulk_line: Option<BulkLine>,
        }
        let Parts { points, sizes, bulk, handler_s, bulk_line } = Parts::deserialize(deserializer)?;
        Ok(Self { points, sizes, bulk, handler_s, bulk_line })
    }
}

impl Serialize for SignatureSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Signature { size, bottleneck, capacity, is_capacity_reached, slope, .. } = self.found;
        let mut record = Record::default();
        record.put("size_bytes", size);
        record.put_time("rtt_s", &self.found.round_trip);
        record.put_time("send_overhead_s", &self.found.send_overhead);
        let unknown = [
            ("recv_overhead_s", &self.found.recv_overhead),
            ("latency_s", &self.found.latency),
            ("request_reply_gap_s", &self.found.gap),
            ("get_s", &self.found.get),
        ];
        for (key, estimate) in unknown {
            if let Some(estimate) = estimate {
                record.put_time(key, estimate);
            }
        }
        let name = BOTTLENECKS.iter().find(|(one, _)| *one == bottleneck);
        record.put("bottleneck", name.map_or("network", |(_, name)| name));
        record.put("capacity", capacity);
        record.put("capacity_reached", is_capacity_reached);
        if let Some(slope) = slope {
            record.put("gap_per_delay", slope);
        }
        record.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SignatureSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_object(deserializer, |reader| Ok(Self { found: signature(reader)? }))
    }
}

fn signature(reader: &Reader<'_>) -> Result<Signature, String> {
    let known = |key| reader.time_estimate(key)?.ok_or_else(|| format!("'{key}' is missing"));
    let name = reader.value("bottleneck").and_then(serde_json::Value::as_str);
    let bottleneck = BOTTLENECKS.iter().find(|(_, known)| name == Some(known));
    Ok(Signature {
        size: whole(reader, "size_bytes")?,
        round_trip: known("rtt_s")?,
        send_overhead: known("send_overhead_s")?,
        recv_overhead: reader.time_estimate("recv_overhead_s")?,
        latency: reader.time_estimate("latency_s")?,
        gap: reader.time_estimate("request_reply_gap_s")?,
        get: reader.time_estimate("get_s")?,
        bottleneck: bottleneck.ok_or("'bottleneck' is unknown")?.0,
        capacity: whole(reader, "capacity")?,
        is_capacity_reached: reader.value("capacity_reached") == Some(&true.into()),
        slope: reader.number("gap_per_delay")?,
    })
}

fn whole(reader: &Reader<'_>, key: &str) -> Result<u32, String> {
    let value = reader.bytes(key)?.0;
    u32::try_from(value).map_err(|_| format!("'{key}' is too large"))
}

impl Serialize for PlogpSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PlogpRow { size, send_overhead, recv_overhead, gap, round_trip } = &self.row;
        let mut record = Record::default();
        record.put("size_bytes", *size);
        record.put_time("os_s", send_overhead);
        record.put_time("or_s", recv_overhead);
        record.put_time("g_s", gap);
        record.put_time("rtt_s", round_trip);
        if let Some(latency) = &self.latency {
            record.put_time("latency_s", latency);
        }
        if let Some(messages) = self.flood_messages {
            record.put("flood_messages", messages);
        }
        if let Some(is_stable) = self.is_gap_stable {
            record.put("gap_stable", is_stable);
        }
        if let Some(messages) = self.messages_for_gap() {
            record.put("messages_for_gap", messages);
        }
        record.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PlogpSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_object(deserializer, |reader| {
            let known =
                |key| reader.time_estimate(key)?.ok_or_else(|| format!("'{key}' is missing"));
            let flood = reader.count("flood_messages")?;
            Ok(Self {
                row: PlogpRow {
                    size: whole(reader, "size_bytes")?,
                    send_overhead: known("os_s")?,
                    recv_overhead: known("or_s")?,
                    gap: known("g_s")?,
                    round_trip: known("rtt_s")?,
                },
                latency: reader.time_estimate("latency_s")?,
                flood_messages: flood.map(|_| whole(reader, "flood_messages")).transpose()?,
                is_gap_stable: reader.value("gap_stable").and_then(serde_json::Value::as_bool),
            })
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn time(picos: i64) -> Estimate<SignedPicos> {
        let [value, low, high] = [picos, picos - 1_000, picos + 2_000].map(SignedPicos);
        Estimate { value, low, high, ..Estimate::default() }
    }

    pub(crate) fn signature_record() -> SignatureRecord {
        let found = Signature {
            size: 1,
            round_trip: time(20_000_000),
            send_overhead: time(1_400_000),
            recv_overhead: Some(time(2_200_000)),
            gap: Some(time(7_600_000)),
            get: None,
            latency: Some(time(-300_000)),
            bottleneck: Bottleneck::Sender,
            slope: Some(1.005),
            capacity: 8,
            is_capacity_reached: true,
        };
        let point = |in_flight, delay_s, cost_s: f64, regime| PointRecord {
            size_bytes: 1,
            in_flight,
            delay_s,
            cost_s,
            lo: cost_s * 0.99,
            hi: cost_s * 1.01,
            samples: 50,
            regime: regime_name(regime).to_owned(),
        };
        SignatureRecord {
            points: vec![
                point(1, 0.0, 1.4e-6, Regime::SendOnly),
                point(16, 0.0, 3e-6, Regime::Transition),
                point(128, 0.0, 7.5e-6, Regime::SteadyState),
                point(1, 16e-6, 17.4e-6, Regime::SendOnly),
                point(8, 16e-6, 19.6e-6, Regime::SteadyState),
            ],
            sizes: vec![SignatureSize { found }],
            bulk: vec![BulkRecord {
                size_bytes: 4_096,
                o_s: 143e-6,
                g_s: None,
                store_s: 298e-6,
                get_s: Some(310e-6),
                bytes_per_s: 4_096.0 / 298e-6,
            }],
            handler_s: 1e-6,
            bulk_line: Some(BulkLine {
                t0_s: -2e-6,
                t0_s_lo: -4e-6,
                t0_s_hi: 0.0,
                r_inf: 14e6,
                r_inf_lo: 13e6,
                r_inf_hi: None,
            }),
        }
    }

    pub(crate) fn plogp_rows() -> Vec<PlogpSize> {
        let row = |size, gap| PlogpRow {
            size,
            send_overhead: time(900_000),
            recv_overhead: time(1_100_000),
            gap: time(gap),
            round_trip: time(10_000_000),
        };
        let later =
            |row| PlogpSize { row, latency: None, flood_messages: None, is_gap_stable: None };
        let zero = PlogpSize {
            latency: Some(time(4_000_000)),
            flood_messages: Some(800),
            is_gap_stable: Some(true),
            ..later(row(0, 1_000_000))
        };
        vec![zero, later(row(64, 1_200_000))]
    }

    #[test]
    fn both_are_read_back_as_written() {
        let signature = signature_record();
        let text = serde_json::to_string(&signature).unwrap();
        assert!(text.contains(r#""request_reply_gap_s":7.6e-6"#), "{text}");
        assert_eq!(serde_json::from_str::<SignatureRecord>(&text).unwrap(), signature);
        let rows = plogp_rows();
        let text = serde_json::to_string(&rows).unwrap();
        assert_eq!(serde_json::from_str::<Vec<PlogpSize>>(&text).unwrap(), rows);
    }

    #[test]
    fn the_messages_for_a_gap_are_the_papers() {
        // (10 us + 1 us)/(0.01·1 us)
        assert_eq!(plogp_rows()[0].messages_for_gap(), Some(1_100.0));
        assert_eq!(plogp_rows()[1].messages_for_gap(), None);
    }
}
