//! Timings of probes as samples of the PRTT method on a link with the same parameters (Eq. 1, 3,
//! 4), so that fit, intervals and reports are the same for all methods.

use loggap_core::measure::{
    Experiment, MAX_DELTAS, PlogpOptions, Probe, ProbeKind, ProbeRow, Quantity, Sample, Signature,
    SignatureOptions,
};
use loggap_core::units::Picos;

use super::probes::{ProbeMethod, Probes, Series, TimedProbe};
use crate::samples::TimedSample;

/// Most timings of a quantity at a size that become samples.
const MOST: usize = 2_048;

/// Messages of a computed burst.
const BURST: u32 = 10;

/// Samples of one size under construction.
struct Samples {
    size: u32,
    /// Median round trip, picoseconds.
    round_trip: i64,
    /// Delay of paced bursts, beyond the gap, picoseconds.
    delay: i64,
    all: Vec<TimedSample>,
}

/// Samples of all sizes, in the order of measuring.
pub(super) fn samples(probes: &Probes) -> Vec<TimedSample> {
    let mut all = match &probes.method {
        ProbeMethod::Signature(options) => of_signature(probes, options),
        ProbeMethod::Plogp(options, _) => of_plogp(probes, options),
    };
    all.sort_by_key(|timed| timed.time);
    all
}

impl Samples {
    fn push(&mut self, quantity: Quantity, messages: u32, elapsed: i64, timed: &TimedProbe) {
        let delay = match quantity {
            Quantity::RoundTrip | Quantity::Gap => 0,
            Quantity::Paced | Quantity::Receive => self.delay,
        };
        let picos = |time: i64| Picos(u64::try_from(time).unwrap_or_default());
        let delay = picos(delay);
        let experiment = Experiment { quantity, messages, delay, size: self.size };
        // A median of values that count as 0 if negative is 0 or the median of all values.
        let sample = Sample { experiment, delay, elapsed: picos(elapsed) };
        self.all.push(TimedSample { sample, launch: timed.launch, time: timed.at });
    }

    /// A time for each message of a burst after the first.
    fn push_burst(&mut self, quantity: Quantity, each: i64, timed: &TimedProbe) {
        let rest = each.saturating_mul(i64::from(BURST - 1));
        self.push(quantity, BURST, self.round_trip.saturating_add(rest), timed);
    }

    fn push_gap(&mut self, gap: i64, timed: &TimedProbe) {
        self.push_burst(Quantity::Gap, gap, timed);
    }

    fn push_send(&mut self, overhead: i64, timed: &TimedProbe) {
        self.push_burst(Quantity::Paced, self.delay.saturating_add(overhead), timed);
    }
}

/// Round trips and trains as they were timed, and overheads from the points of the signature.
fn of_signature(probes: &Probes, options: &SignatureOptions) -> Vec<TimedSample> {
    let mut all = Vec::new();
    for &size in &probes.sizes {
        let rows = probes.rows_of(size);
        let signature = Signature::of(&rows, options);
        let trip = rows.iter().find(|row| row.probe == Probe::round_trip(size));
        let round_trip = trip.map_or(0, |row| row.whole.value.0);
        let train = rows.iter().find(|row| row.probe.experiment().is_some_and(is_gap));
        let gap = train.map_or(0, |row| {
            (row.whole.value.0 - round_trip) / i64::from(row.probe.messages - 1).max(1)
        });
        let delay = round_trip.max(gap) + 1;
        let mut samples = Samples { size, round_trip, delay, all: Vec::new() };
        let of_size = probes.series.iter().filter(|series| series.probe.size == size);
        for series in of_size {
            match (series.probe.experiment(), &signature) {
                (Some(experiment), _) => add_rounds(&mut samples, series, &experiment),
                (None, Some(signature)) => add_points(&mut samples, series, signature, &rows),
                (None, None) => {}
            }
        }
        all.append(&mut samples.all);
    }
    all
}

fn is_gap(experiment: Experiment) -> bool {
    experiment.quantity == Quantity::Gap
}

fn add_rounds(samples: &mut Samples, series: &Series, experiment: &Experiment) {
    for timed in series.timings.iter().take(MOST) {
        samples.push(experiment.quantity, experiment.messages, timed.time.whole.0, timed);
    }
}

fn add_points(samples: &mut Samples, series: &Series, signature: &Signature, rows: &[ProbeRow]) {
    let Probe { messages, delay, .. } = series.probe;
    let timings = series.timings.iter();
    let count = i64::from(messages);
    if !matches!(series.probe.kind, ProbeKind::Issue { .. }) {
        return;
    }
    if delay == Picos::ZERO {
        if messages <= signature.capacity {
            // All points of the regime together make a sample.
            let points = usize::try_from(signature.capacity.ilog2() + 1).unwrap_or(1);
            for timed in timings.take(MOST / points) {
                samples.push_send(timed.time.time.0 / count, timed);
            }
        }
        return;
    }
    if Signature::flat_beyond_idle(rows, delay) != Some(messages) {
        return;
    }
    let half = rows.iter().find(|row| {
        let Probe { messages: shorter, delay: same, kind, .. } = row.probe;
        (shorter, same) == (messages / 2, delay) && matches!(kind, ProbeKind::Issue { .. })
    });
    let Some(half) = half else { return };
    let slowed = i64::try_from(delay.0).unwrap_or(i64::MAX) + signature.send_overhead.value.0;
    for timed in timings.take(MOST / MAX_DELTAS) {
        let each = (timed.time.time.0 - half.time.value.0) / i64::from(messages / 2);
        samples.push(Quantity::Receive, 1, each - slowed, timed);
    }
}

/// Half round trips `L + g(m)`, gaps and overheads from pLogP's parameters.
fn of_plogp(probes: &Probes, options: &PlogpOptions) -> Vec<TimedSample> {
    let rows = probes.rows();
    let sent = |size: u32, messages: u32| {
        let is = |probe: &Probe| {
            (probe.size, probe.kind, probe.messages) == (size, ProbeKind::Flood, messages)
        };
        rows.iter().find(|row| is(&row.probe))
    };
    let zero = sent(1, 1).map_or(0, |row| row.whole.value.0);
    let floods = rows.iter().filter(|row| {
        let Probe { size, kind, messages, .. } = row.probe;
        (size, kind) == (1, ProbeKind::Flood) && messages > 1
    });
    let gap_of_zero = floods.max_by_key(|row| row.probe.messages).map(|row| {
        (row.whole.value.0 - zero) / i64::from(row.probe.messages).saturating_sub(1).max(1)
    });
    let mut all = Vec::new();
    for series in &probes.series {
        let Probe { size, kind, messages, .. } = series.probe;
        let Some(trip) = sent(size, 1) else { continue };
        // L + g(m) = RTT(m) − RTT(0)/2
        let round_trip = 2 * trip.whole.value.0 - zero;
        let delay = round_trip.max(trip.whole.value.0 - zero + gap_of_zero.unwrap_or(0)) + 1;
        let mut samples = Samples { size, round_trip, delay, all: Vec::new() };
        for timed in series.timings.iter().take(MOST) {
            match (kind, messages) {
                (ProbeKind::Flood, 1) => {
                    let whole = timed.time.whole.0;
                    samples.push(Quantity::RoundTrip, 1, 2 * whole - zero, timed);
                    if let Some(gap_of_zero) = gap_of_zero.filter(|_| !options.flood || size == 1) {
                        samples.push_gap(whole - zero + gap_of_zero, timed);
                    }
                    samples.push_send(timed.time.time.0, timed);
                }
                (ProbeKind::Flood, _) if options.flood && size > 1 => {
                    let gap = (timed.time.whole.0 - trip.whole.value.0) / i64::from(messages - 1);
                    samples.push_gap(gap, timed);
                }
                (ProbeKind::Receive, _) => {
                    samples.push(Quantity::Receive, 1, timed.time.time.0, timed);
                }
                _ => {}
            }
        }
        all.append(&mut samples.all);
    }
    all
}
