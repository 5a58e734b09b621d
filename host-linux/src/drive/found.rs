//! Results of the probes, as the profile stores them.

use loggap_core::measure::{
    PlogpOptions, Probe, ProbeKind, ProbeRow, Signature, SignatureOptions, is_gap_stable,
    plogp_latency, plogp_rows,
};
use loggap_core::model::Estimate;
use loggap_core::stats::Confidence;
use loggap_core::units::SignedPicos;

use super::probes::Series;
use crate::profile::{
    BulkLine, BulkRecord, PlogpSize, PointRecord, SignatureRecord, SignatureSize, regime_name,
};

/// Medians of `series`, by size, `Δ` and `M`.
fn rows(series: &[Series]) -> Vec<ProbeRow> {
    let mut rows: Vec<ProbeRow> = series.iter().filter_map(|one| one.row).collect();
    rows.sort_by_key(|row| (row.probe.size, row.probe.delay, row.probe.messages));
    rows
}

/// Points and parameters of the signature; `None` without any.
pub(super) fn signature(series: &[Series], options: &SignatureOptions) -> Option<SignatureRecord> {
    let rows = rows(series);
    let handler_s = options.handler.seconds();
    let mut record = SignatureRecord { handler_s, ..SignatureRecord::default() };
    for of_size in rows.chunk_by(|a, b| a.probe.size == b.probe.size) {
        let Some(found) = Signature::of(of_size, options) else { continue };
        let issued = |row: &&ProbeRow| matches!(row.probe.kind, ProbeKind::Issue { .. });
        let point = |row: &ProbeRow| point(row, regime_name(found.regime(&row.probe, of_size)));
        record.points.extend(of_size.iter().filter(issued).map(point));
        if options.bulk {
            record.bulk.push(bulk(&found));
        }
        record.sizes.push(SignatureSize { found });
    }
    record.bulk_line = bulk_line(&record.bulk);
    (!record.sizes.is_empty()).then_some(record)
}

fn bulk(found: &Signature) -> BulkRecord {
    let seconds = |estimate: Estimate<SignedPicos>| estimate.value.seconds();
    let store_s = seconds(found.round_trip);
    BulkRecord {
        size_bytes: found.size,
        o_s: seconds(found.send_overhead),
        g_s: found.gap.map(seconds),
        store_s,
        get_s: found.get.map(seconds),
        bytes_per_s: if store_s > 0.0 { f64::from(found.size) / store_s } else { 0.0 },
    }
}

/// Least squares of `T(n) = T₀ + n/R∞`, as the paper's; `None` with fewer than three sizes, or
/// without a slope.
fn bulk_line(bulk: &[BulkRecord]) -> Option<BulkLine> {
    let degrees = u32::try_from(bulk.len().checked_sub(2)?).ok().filter(|degrees| *degrees > 0)?;
    let count = f64::from(degrees + 2);
    let mean = |of: fn(&BulkRecord) -> f64| bulk.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|one| f64::from(one.size_bytes)), mean(|one| one.store_s));
    let mut sums = [0.0; 2];
    for one in bulk {
        let beside = f64::from(one.size_bytes) - x;
        sums = [sums[0] + beside * beside, sums[1] + beside * (one.store_s - y)];
    }
    let [width, covariance] = sums;
    let slope = covariance / width;
    if !(slope > 0.0 && slope.is_finite()) {
        return None;
    }
    let t0_s = y - slope * x;
    let rest = |one: &BulkRecord| one.store_s - t0_s - slope * f64::from(one.size_bytes);
    let variance = bulk.iter().map(|one| rest(one).powi(2)).sum::<f64>() / f64::from(degrees);
    let student = Confidence::P95.student(degrees);
    let of_slope = student * (variance / width).sqrt();
    let of_t0 = student * (variance * (1.0 / count + x * x / width)).sqrt();
    Some(BulkLine {
        t0_s,
        t0_s_lo: t0_s - of_t0,
        t0_s_hi: t0_s + of_t0,
        r_inf: 1.0 / slope,
        r_inf_lo: 1.0 / (slope + of_slope),
        r_inf_hi: (slope > of_slope).then(|| 1.0 / (slope - of_slope)),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_stores_may_begin_below_zero() {
        let store = |size: u32, store_s| BulkRecord {
            size_bytes: size,
            o_s: 0.0,
            g_s: None,
            store_s,
            get_s: None,
            bytes_per_s: 0.0,
        };
        let exact = [1_000, 2_000, 4_000].map(|size| store(size, f64::from(size) * 1e-8 - 2e-6));
        let line = bulk_line(&exact).unwrap();
        assert!((line.t0_s + 2e-6).abs() < 1e-12 && (line.r_inf - 1e8).abs() < 1.0, "{line:?}");
        let noisy = [store(1_000, 9e-6), store(2_000, 17e-6), store(4_000, 38e-6)];
        let line = bulk_line(&noisy).unwrap();
        assert!(line.t0_s_lo < -2e-6 && line.t0_s_hi > -2e-6, "{line:?}");
        assert!(line.r_inf_lo < 1e8 && line.r_inf_hi.is_none_or(|high| high > 1e8), "{line:?}");
        assert_eq!(bulk_line(&exact[..2]), None);
        assert_eq!(bulk_line(&[store(5, 1e-6); 3]), None);
    }
}
