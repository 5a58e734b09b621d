//! Writing samples.

use std::io::{self, Write};

use loggap_core::measure::{Probe, ProbeKind, Quantity};

use super::{PLAIN, RAW, TimedSample, io_error};
use crate::decimal;
use crate::drive::{Series, TimedProbe};

/// Writes `samples` in the raw form, in their order, and then the timings of `series`.
///
/// # Errors
///
/// Write errors of `out`.
pub fn write<'s>(
    out: impl Write,
    samples: impl IntoIterator<Item = &'s TimedSample>,
    series: &[Series],
) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    let columns = if series.is_empty() { PLAIN } else { RAW.len() };
    csv.write_record(RAW.iter().take(columns)).map_err(io_error)?;
    for TimedSample { sample, launch, time } in samples {
        let experiment = &sample.experiment;
        let elapsed = decimal::seconds(sample.elapsed);
        let (round, receive) = match experiment.quantity {
            Quantity::Receive => (String::new(), elapsed),
            Quantity::RoundTrip | Quantity::Gap | Quantity::Paced => (elapsed, String::new()),
        };
        let mut record = vec![
            experiment.size.to_string(),
            experiment.messages.to_string(),
            decimal::seconds(sample.delay),
            round,
            receive,
            launch.to_string(),
            decimal::seconds(*time),
        ];
        record.resize(columns, String::new());
        csv.write_record(record).map_err(io_error)?;
    }
    for Series { probe, timings, .. } in series {
        for timed in timings {
            csv.write_record(record(probe, timed)).map_err(io_error)?;
        }
    }
    csv.flush()
}

/// Line of a timing of a probe.
fn record(probe: &Probe, timed: &TimedProbe) -> [String; RAW.len()] {
    let [time, whole] = [timed.time.time, timed.time.whole].map(decimal::signed_seconds);
    let [mut receive, mut issue, mut send, mut ack] = [const { String::new() }; 4];
    match probe.kind {
        ProbeKind::Receive => (receive, ack) = (time, whole),
        ProbeKind::Issue { .. } => issue = time,
        ProbeKind::Flood => (send, ack) = (time, whole),
        ProbeKind::Train => ack = whole,
    }
    let (launch, at) = (timed.launch.to_string(), decimal::seconds(timed.at));
    let [size, messages] = [probe.size, probe.messages].map(|count| count.to_string());
    let delay = decimal::seconds(probe.delay);
    [size, messages, delay, String::new(), receive, launch, at, issue, send, ack]
}
