//! State of a watched link as `OpenMetrics` text, for Prometheus or the textfile collector of
//! node_exporter.

use std::fmt;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::drive::perftest::watch::{EventKind, Interval, State};

type Labels = [(&'static str, String); 1];
type Times = Family<Labels, Gauge<f64, AtomicU64>>;

/// Metrics of a watched link.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    half_rtt: Times,
    gap: Times,
    up: Gauge,
    measured: Gauge<f64, AtomicU64>,
    failing: Gauge,
    lost_rounds: Counter,
    events: Family<Labels, Counter>,
}

impl Metrics {
    /// Metrics without values of the link to `peer`.
    pub(crate) fn new(transport: &str, peer: &str) -> Self {
        let labels = [("transport", transport), ("peer", peer)];
        let labels = labels.map(|(key, value)| (key.into(), value.to_owned().into()));
        let mut metrics = Self {
            registry: Registry::with_prefix_and_labels("loggap", labels.into_iter()),
            half_rtt: Times::default(),
            gap: Times::default(),
            up: Gauge::default(),
            measured: Gauge::default(),
            failing: Gauge::default(),
            lost_rounds: Counter::default(),
            events: Family::default(),
        };
        let registry = &mut metrics.registry;
        let half_rtt = metrics.half_rtt.clone();
        registry.register_with_unit("half_rtt", "Half round trip", Unit::Seconds, half_rtt);
        registry.register_with_unit("gap", "Gap of messages", Unit::Seconds, metrics.gap.clone());
        registry.register("up", "1 if the responder answers", metrics.up.clone());
        let measured = metrics.measured.clone();
        let help = "Time of the last measurement";
        registry.register_with_unit("measured_timestamp", help, Unit::Seconds, measured);
        registry.register("assertions_failing", "Assertions not kept", metrics.failing.clone());
        registry.register("lost_rounds", "Rounds that were lost", metrics.lost_rounds.clone());
        registry.register("events", "Events by kind", metrics.events.clone());
        for kind in EventKind::ALL {
            // At 0 from the start: an increase to the first event is seen.
            metrics.count(kind);
        }
        metrics
    }

    /// Takes over the values of an interval: those that are unknown are then absent.
    pub(crate) fn set(&self, interval: &Interval) {
        let times = [
            (&self.half_rtt, interval.half_rtt_size_bytes, interval.half_rtt_s),
            (&self.gap, interval.gap_size_bytes, interval.gap_s),
        ];
        for (family, size, value) in times {
            family.clear();
            if let Some(value) = value {
                family.get_or_create(&[("size_bytes", size.to_string())]).set(value);
            }
        }
        self.up.set(i64::from(interval.state != State::Lost));
        if interval.half_rtt_s.or(interval.gap_s).is_some() {
            self.measured.set(interval.time_unix_s);
        }
        self.failing.set(i64::try_from(interval.failing.len()).unwrap_or(i64::MAX));
        self.lost_rounds.inc_by(interval.lost_rounds);
        for event in &interval.events {
            self.count(event.kind).inc();
        }
    }

    /// Count of the events of a kind.
    fn count(&self, kind: EventKind) -> Counter {
        self.events.get_or_create_owned(&[("kind", kind.name().to_owned())])
    }

    /// Text of all metrics.
    ///
    /// # Errors
    ///
    /// None of a metric above.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut encoded = String::new();
        text::encode(&mut encoded, &self.registry)?;
        Ok(encoded)
    }
}

impl EventKind {
    const ALL: [Self; 4] = [Self::Step, Self::Drift, Self::Lost, Self::Back];

    /// Name in files and on the screen.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Drift => "drift",
            Self::Lost => "lost",
            Self::Back => "back",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::perftest::watch::Event;

    #[test]
    fn values_are_named_with_unit_and_size_and_absent_where_unknown() {
        let metrics = Metrics::new("tcp", "node7");
        let step =
            Event { kind: EventKind::Step, parameter: Some("gap"), before_s: None, after_s: None };
        let interval = Interval {
            time_unix_s: 7.0,
            state: State::Watching,
            half_rtt_s: Some(1.5e-5),
            half_rtt_size_bytes: 8,
            gap_s: None,
            gap_size_bytes: 1_024,
            lost_rounds: 3,
            events: vec![step],
            failing: Vec::new(),
        };
        metrics.set(&interval);
        let text = metrics.text().unwrap();
        for line in [
            "loggap_half_rtt_seconds{LINK,size_bytes=\"8\"} 0.000015\n",
            "loggap_up{LINK} 1\n",
            "loggap_measured_timestamp_seconds{LINK} 7.0\n",
            "loggap_lost_rounds_total{LINK} 3\n",
            "loggap_events_total{LINK,kind=\"step\"} 1\n",
            "loggap_events_total{LINK,kind=\"lost\"} 0\n",
        ] {
            let line = line.replace("LINK", "transport=\"tcp\",peer=\"node7\"");
            assert!(text.contains(&line), "{text}");
        }
        assert!(!text.contains("loggap_gap_seconds{") && text.ends_with("# EOF\n"), "{text}");
        let lost = Interval { time_unix_s: 8.0, half_rtt_s: None, events: Vec::new(), ..interval };
        metrics.set(&lost);
        assert!(metrics.text().unwrap().contains("\"} 7.0\n"), "nothing was measured");
    }
}
