//! Results of the probes, as the profile stores them.

use loggap_core::measure::{
    PlogpOptions, Probe, ProbeKind, ProbeRow, Signature, SignatureOptions, is_gap_stable,
    plogp_latency, plogp_rows,
};
use loggap_core::units::SignedPicos;

use super::probes::Series;
use crate::profile::{PlogpSize, PointRecord, SignatureRecord, SignatureSize, regime_name};

/// Medians of `series`, by size, `Δ` and `M`.
fn rows(series: &[Series]) -> Vec<ProbeRow> {
    let mut rows: Vec<ProbeRow> = series.iter().filter_map(|one| one.row).collect();
    rows.sort_by_key(|row| (row.probe.size, row.probe.delay, row.probe.messages));
    rows
}

/// Points and parameters of the signature; `None` without any.
pub(super) fn signature(series: &[Series], options: &SignatureOptions) -> Option<SignatureRecord> {
    let rows = rows(series);
    let mut record = SignatureRecord::default();
    for of_size in rows.chunk_by(|a, b| a.probe.size == b.probe.size) {
        let Some(found) = Signature::of(of_size, options) else { continue };
        let issued = |row: &&ProbeRow| matches!(row.probe.kind, ProbeKind::Issue { .. });
        let point = |row: &ProbeRow| point(row, regime_name(found.regime(&row.probe, of_size)));
        record.points.extend(of_size.iter().filter(issued).map(point));
        record.sizes.push(SignatureSize { found });
    }
    (!record.sizes.is_empty()).then_some(record)
}

fn point(row: &ProbeRow, regime: &str) -> PointRecord {
    let Probe { size, messages, delay, .. } = row.probe;
    let each = |time: SignedPicos| time.seconds() / f64::from(messages.max(1));
    PointRecord {
        size_bytes: size,
        in_flight: messages,
        delay_s: delay.seconds(),
        cost_s: each(row.time.value),
        lo: each(row.time.low),
        hi: each(row.time.high),
        samples: row.samples,
        regime: regime.to_owned(),
    }
}

/// Parameters of pLogP by size, from 0 on, of a run whose smallest size is `first`.
pub(super) fn plogp(first: u32, series: &[Series], options: &PlogpOptions) -> Vec<PlogpSize> {
    let rows = rows(series);
    let floods =
        rows.iter().filter(|row| (row.probe.size, row.probe.kind) == (1, ProbeKind::Flood));
    let longest = floods.map(|row| row.probe.messages).max();
    let mut found = Vec::new();
    plogp_rows(first, &rows, options, |row| {
        let of_zero = row.size == 0;
        found.push(PlogpSize {
            row,
            latency: of_zero.then(|| plogp_latency(&row, options)),
            flood_messages: longest.filter(|_| of_zero),
            is_gap_stable: of_zero.then(|| is_gap_stable(&rows)),
        });
    });
    found
}
