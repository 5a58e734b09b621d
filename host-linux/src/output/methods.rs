//! Results of the LogP signature and of pLogP: lines of the report, and warnings.

use std::collections::BTreeSet;

use loggap_core::measure::{Bottleneck, Signature};
use loggap_core::model::Estimate;
use loggap_core::units::{Picos, SignedPicos};

use super::number::{self, TIME};
use crate::profile::{
    BulkLine, PlogpSize, PointRecord, ProfileDocument, Severity, SignatureRecord, WarningRecord,
};

/// Most columns of the curves.
const MOST_COLUMNS: usize = 10;

/// Lines about the method of `document`, for at most `most` sizes.
pub(super) fn lines(document: &ProfileDocument, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(signature) = &document.signature {
        for size in signature.sizes.iter().take(most) {
            lines.push(of_signature(&size.found));
            lines.extend(curves(signature, size.found.size));
        }
    }
    lines.extend(document.signature.iter().flat_map(bulk));
    lines.extend(document.plogp.first().map(of_zero));
    lines
}

fn time(estimate: &Estimate<SignedPicos>) -> String {
    let value = number::in_units(estimate.value.seconds(), TIME);
    format!("{value}{}", estimate.mark.symbol())
}

fn or_unknown(estimate: Option<&Estimate<SignedPicos>>) -> String {
    estimate.map_or_else(|| "-".to_owned(), time)
}

/// Parameters from the signature, a line per size.
pub(super) fn parameters(document: &ProfileDocument) -> Vec<String> {
    let sizes = document.signature.iter().flat_map(|signature| &signature.sizes);
    sizes.map(|size| of_signature(&size.found)).collect()
}

/// Parameters from the signature of one size.
fn of_signature(found: &Signature) -> String {
    let at_most = if found.bottleneck == Bottleneck::Network { "" } else { "<= " };
    let cause = match found.bottleneck {
        Bottleneck::Network => "",
        Bottleneck::Sender => " (the sender is never idle: o_s + o_r)",
        Bottleneck::Window => " (RTT over the requests that buffers hold)",
    };
    let capacity = if found.is_capacity_reached { "" } else { ">= " };
    format!(
        "signature at {}: o_s {}, o_r {}, g of request and reply {at_most}{}{cause}, L {}, capacity \
         {capacity}{}",
        number::size(found.size.into()),
        time(&found.send_overhead),
        or_unknown(found.recv_overhead.as_ref()),
        or_unknown(found.gap.as_ref()),
        or_unknown(found.latency.as_ref()),
        found.capacity,
    )
}

/// The curves c(M, Δ) of one size, a row per Δ.
fn curves(signature: &SignatureRecord, size: u32) -> Vec<String> {
    let of_size = || signature.points.iter().filter(move |point| point.size_bytes == size);
    let counts: BTreeSet<u32> = of_size().map(|point| point.in_flight).collect();
    // As many columns as fit, the largest M among them.
    let step = counts.len().div_ceil(MOST_COLUMNS).max(1);
    let counts: BTreeSet<u32> = counts.into_iter().rev().step_by(step).collect();
    let heads = counts.iter().map(|count| format!("{count:>8}"));
    let mut lines = vec![format!("{:>12}{}", "delay | M =", heads.collect::<String>())];
    let points: Vec<&PointRecord> = of_size().collect();
    for curve in points.chunk_by(|a, b| a.delay_s.total_cmp(&b.delay_s).is_eq()) {
        let delay = curve.first().map_or(0.0, |point| point.delay_s);
        let mut line = format!("{:>12}", number::significant(delay * 1e6));
        for count in &counts {
            let point = curve.iter().find(|point| point.in_flight == *count);
            line += &format!("{:>8}", point.map_or_else(String::new, |point| cell(point)));
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
        .push("c(M, delay) and delay in us; ' before the first reply, \" in transition".to_owned());
    lines
}

/// Table of bulk transfers, and the line through their times.
fn bulk(signature: &SignatureRecord) -> Vec<String> {
    let SignatureRecord { bulk, bulk_line, .. } = signature;
    if bulk.is_empty() {
        return Vec::new();
    }
    let row = |cells: [String; 6]| {
        let [size, rest @ ..] = cells;
        format!("{size:>8}") + &rest.map(|cell| format!("{cell:>10}")).concat()
    };
    let micros = |seconds: Option<f64>| {
        seconds.map_or_else(|| "-".to_owned(), |seconds| number::significant(seconds * 1e6))
    };
    let mut lines =
        vec![row(["bulk n", "store us", "get us", "o us", "g us", "MB/s"].map(str::to_owned))];
    for one in bulk {
        let size = number::bytes(one.size_bytes.into());
        let [store, get, overhead, gap] =
            [Some(one.store_s), one.get_s, Some(one.o_s), one.g_s].map(micros);
        lines.push(row([
            size,
            store,
            get,
            overhead,
            gap,
            number::significant(one.bytes_per_s / 1e6),
        ]));
    }
    lines.extend(bulk_line.as_ref().map(of_line));
    lines
}

/// The line through the times of stores.
pub(super) fn bulk_line(document: &ProfileDocument) -> Vec<String> {
    let line = document.signature.as_ref().and_then(|signature| signature.bulk_line.as_ref());
    line.map(of_line).into_iter().collect()
}

fn of_line(line: &BulkLine) -> String {
    let time = |seconds: f64| number::in_units(seconds, TIME);
    let rate = |rate: f64| number::in_units(rate, number::BYTE_RATE);
    format!(
        "T(n) = T0 + n/R: T0 {} ({} to {}), R {} ({} to {})",
        time(line.t0_s),
        time(line.t0_s_lo),
        time(line.t0_s_hi),
        rate(line.r_inf),
        rate(line.r_inf_lo),
        line.r_inf_hi.map_or_else(|| "unbounded".to_owned(), rate),
    )
}

fn cell(point: &PointRecord) -> String {
    let regime = match point.regime.as_str() {
        "send_only" => "'",
        "transition" => "\"",
        _ => " ",
    };
    format!("{}{regime}", number::significant(point.cost_s * 1e6))
}

/// The row of size 0.
fn of_zero(zero: &PlogpSize) -> String {
    let row = &zero.row;
    let mut text = format!(
        "pLogP: L {}, g(0) {}, os(0) {}, or(0) {}",
        or_unknown(zero.latency.as_ref()),
        time(&row.gap),
        time(&row.send_overhead),
        time(&row.recv_overhead),
    );
    if let (Some(flood), Some(needed)) = (zero.flood_messages, zero.messages_for_gap()) {
        text += &format!(
            "; g(0) from {flood} messages less a round trip; with it g(0) would need {needed}"
        );
    }
    text
}

/// Warnings about the results of a method.
#[must_use]
pub fn warnings(signature: Option<&SignatureRecord>, plogp: &[PlogpSize]) -> Vec<WarningRecord> {
    let sizes = signature.map_or(&[][..], |signature| &signature.sizes);
    let mut warnings = Vec::new();
    for found in sizes.iter().map(|size| &size.found) {
        let first = u64::from(found.size);
        if found.gap.is_none() {
            let problem = "a curve of the signature is not flat at its end";
            let warning =
                WarningRecord::new(Severity::Weakens, problem, "--max-time, --max-in-flight");
            warnings.push(warning.in_range_from(first));
        }
        match found.slope {
            Some(slope) if found.is_slope_off() => {
                let problem = "the gap does not grow as the delay between requests, as o_r needs";
                let warning = WarningRecord::new(Severity::Weakens, problem, "a quieter machine");
                warnings.push(warning.in_range_from(first).by((slope - 1.0).abs()));
            }
            None => {
                let problem =
                    "o_r unknown: fewer than three delays are beyond the sender's idle time";
                let warning = WarningRecord::new(Severity::Weakens, problem, "--delta, --max-time");
                warnings.push(warning.in_range_from(first));
            }
            Some(_) => {}
        }
    }
    if let Some(zero) = plogp.first().filter(|zero| zero.is_gap_stable == Some(false)) {
        let messages = zero.flood_messages.unwrap_or_default();
        let problem = format!("g(0) still changes by more than 1% at {messages} messages in a row");
        let remedy = "a quieter machine, --max-messages";
        warnings.push(WarningRecord::new(Severity::Weakens, problem, remedy));
    }
    warnings.extend(above_gap("os", plogp, |size| size.row.send_overhead.value));
    warnings.extend(above_gap("or", plogp, |size| size.row.recv_overhead.value));
    warnings
}

/// Warning about runs that were left out as they would take too long, of this delay or more.
#[must_use]
pub fn delays_left_out(delay: Picos) -> WarningRecord {
    let delay = number::in_units(delay.seconds(), TIME);
    let problem =
        format!("runs with delays of {delay} are left out, as one takes an eighth of the time");
    WarningRecord::new(Severity::Weakens, problem, "a shorter --delta, or --max-time")
}

/// Note about sizes at which an overhead is above the gap, which is supposed to contain it.
fn above_gap(
    name: &str,
    plogp: &[PlogpSize],
    overhead: fn(&PlogpSize) -> SignedPicos,
) -> Option<WarningRecord> {
    let above = plogp.iter().filter(|size| overhead(size) > size.row.gap.value);
    let count = above.clone().count() as u64;
    let first = above.map(|size| size.row.size).next()?;
    let problem = format!("{name} > g at {}", number::counted(count, "size"));
    Some(WarningRecord::new(Severity::Notes, problem, "").in_range_from(first.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::fixtures::{plogp_rows, signature_record};

    #[test]
    fn the_curves_and_their_parameters_read_as_written_down() {
        let document = ProfileDocument {
            signature: Some(signature_record()),
            plogp: plogp_rows(),
            ..ProfileDocument::default()
        };
        assert_eq!(lines(&document, 1).join("\n"), include_str!("expected/methods.txt").trim_end());
    }

    #[test]
    fn overheads_above_the_gap_and_curves_without_an_end_are_told() {
        let mut signature = signature_record();
        signature.sizes[0].found.gap = None;
        signature.sizes[0].found.slope = Some(0.9);
        let problems: Vec<_> = warnings(Some(&signature), &plogp_rows())
            .into_iter()
            .map(|warning| warning.problem)
            .collect();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert_eq!(problems[2], "or > g at 1 size");
    }
}
