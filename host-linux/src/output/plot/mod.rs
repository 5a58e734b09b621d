//! Plot of a profile as SVG: times over message size on logarithmic axes, with measured points,
//! fitted lines and changes of protocol.

pub(crate) mod axis;
pub mod bars;
mod bulk;
pub(crate) mod canvas;
pub mod chart;
pub mod choices;
mod curve;
mod frame;
pub mod heat;
pub mod links;
pub mod profiles;
mod signature;
pub mod winners;

use loggap_core::model::{Curve, Range};

use super::number::{self, Unit};
use crate::drive::Method;
use crate::profile::{COLUMNS, ProfileDocument};
use axis::{Axis, Labelled};
use canvas::Sheet;

const WIDTH: i32 = 1_100;
/// Height without the foot, pixels.
const PLOT_HEIGHT: i32 = 700;

/// Why a picture could not be drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PlotError {
    /// No number is positive, and the axes are logarithmic.
    #[error("nothing to plot: no positive number was measured")]
    Nothing,
    /// The drawing library failed, or the picture would be too large.
    #[error("the picture could not be drawn")]
    Backend,
}

/// Draws `document` as SVG.
///
/// # Errors
///
/// [`PlotError`] if there is nothing to draw.
pub fn svg(document: &ProfileDocument) -> Result<String, PlotError> {
    let signature = document.signature.as_ref();
    if let Some(found) = signature.filter(|_| document.method != Method::All.name()) {
        return match &found.bulk[..] {
            [] => signature::svg(document, found),
            _ => bulk::svg(document, &found.sizes),
        };
    }
    let is_present = |curve: &Curve| {
        document.sizes.iter().any(|record| record.row.value(*curve).is_some())
            || document.ranges.iter().any(|record| record.range.line(*curve).is_some())
    };
    let curves: Vec<Curve> = COLUMNS.into_iter().filter(is_present).collect();
    let (low, high) = time_range(document, &curves).ok_or(PlotError::Nothing)?;
    let unit = Unit::fitting(number::TIME, (low * high).sqrt(), 1.0);
    let (first, last) = size_range(document).ok_or(PlotError::Nothing)?;
    let lines = frame::foot(document);
    let foot = frame::foot_height(lines.len())?;
    let size = (WIDTH, PLOT_HEIGHT.saturating_add(foot));
    let margins = (80, 30, 104, foot.saturating_add(56));
    let sheet = Sheet { size, units: 1, bleed: 0, margins };
    sheet.draw(|canvas| {
        let plot = canvas.plot_area();
        let across = Axis::new(first, last, plot.across);
        let up = Axis::new(low, high, plot.up);
        let in_unit = Axis::new(low / unit.size, high / unit.size, plot.up);
        frame::draw_head(canvas, document, &curves)?;
        let time = format!("time [{}]", unit.name);
        let (sizes, times) = (across.binary_ticks(), in_unit.decimal_ticks());
        axis::draw(
            canvas,
            &Labelled { axis: &across, ticks: sizes, name: "message size s [bytes]" },
            &Labelled { axis: &in_unit, ticks: times, name: &time },
        )?;
        frame::draw_changes(canvas, &across, &document.changes)?;
        let drawing = curve::Drawing { canvas, across, up };
        drawing.rounds(&document.sizes)?;
        for curve in &curves {
            for record in &document.ranges {
                drawing.line(*curve, &record.range)?;
            }
        }
        for curve in &curves {
            drawing.points(*curve, &document.sizes)?;
        }
        frame::draw_foot(canvas, &lines)
    })
}

/// Smallest and largest size to show, with a margin, bytes.
#[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
fn size_range(document: &ProfileDocument) -> Option<(f64, f64)> {
    let rows = document.sizes.iter().map(|record| record.row.size.0);
    let ranges = document.ranges.iter().flat_map(|record| [record.range.first, record.range.last]);
    let sizes = rows.chain(ranges.map(|size| size.0)).map(|size| size.max(1));
    let (low, high) = (sizes.clone().min()?, sizes.max()?);
    Some((low as f64 / 1.25, high as f64 * 1.25))
}

/// Smallest and largest time to show, with a margin, seconds. Points far below all others are
/// cut off: on a logarithmic axis a difference close to zero would squeeze the rest. Values far
/// outside the 1st to 99th percentile are cut off as well, and so are the few round trips above
/// p99.9 that lie far above all others.
fn time_range(document: &ProfileDocument, curves: &[Curve]) -> Option<(f64, f64)> {
    const DECADES_SHOWN: f64 = 1e5;
    const ABOVE_P999: f64 = 3.0;
    const NEAR: f64 = 4.0;
    let mut values = Vec::new();
    for curve in curves {
        let points = document.sizes.iter().filter_map(|record| record.row.value(*curve));
        values.extend(points.map(|point| point.value.seconds()));
        for record in &document.ranges {
            values.extend(record.range.line(*curve).into_iter().flat_map(|line| {
                let Range { first, last, .. } = &record.range;
                [line.at(*first).seconds(), line.at(*last).seconds()]
            }));
        }
    }
    let rounds = document.sizes.iter().filter_map(|record| record.rounds.as_ref());
    let rounds = rounds.map(|rounds| {
        let [.., p999, max] = rounds.percentiles;
        let shown = p999.map_or(f64::INFINITY, |p999| p999 * ABOVE_P999);
        max.map_or(0.0, |max| max.min(shown))
    });
    let mut positive: Vec<f64> =
        values.into_iter().chain(rounds).filter(|value| *value > 0.0).collect();
    positive.sort_by(f64::total_cmp);
    let beyond = positive.len().div_ceil(100).min(positive.len() / 20);
    let (least, most) = (*positive.first()?, *positive.last()?);
    let first = *positive.get(beyond)?;
    let last = *positive.get(positive.len() - 1 - beyond)?;
    // Values close to these percentiles are kept.
    let (low, high) = (least.max(first / NEAR), most.min(last * NEAR));
    Some((low.max(high / DECADES_SHOWN) / 1.5, high * 1.5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{RoundRecord, SignatureRecord, SizeRecord, fixtures};
    use loggap_core::measure::SizeRow;
    use loggap_core::model::{Change, Estimate, Mark, Profile, SizeLine};
    use loggap_core::units::{Bytes, Picos, SignedPerByte, SignedPicos};

    fn line(at_one: i64, per_byte: i64) -> SizeLine {
        let mut line = SizeLine::exact(SignedPicos(at_one), SignedPerByte(per_byte << 16));
        line.centre_half_width = Picos(u64::try_from(at_one.abs() / 20).unwrap());
        line
    }

    fn range(first: u64, last: u64, gap: SizeLine) -> Range {
        Range {
            first: Bytes(first),
            last: Bytes(last),
            gap,
            half_rtt: Some(line(9_000_000, 120)),
            send_overhead: Some(line(1_500_000, 60)),
            recv_overhead: Some(line(1_100_000, 20)),
            latency: Some(Estimate::exact(SignedPicos(6_400_000))),
        }
    }

    fn document() -> ProfileDocument {
        let first = range(1, 8_191, line(2_000_000, 100));
        let ranges = [first, range(8_192, 65_536, line(4_000_000, 250))];
        let change = Change {
            at: Bytes(8_192),
            low: Bytes(7_000),
            high: Bytes(9_000),
            splits: true,
            ..Change::default()
        };
        let mut document = ProfileDocument {
            transport: "tcp".to_owned(),
            ranges: ranges.map(Into::into).to_vec(),
            changes: vec![change.into()],
            ..ProfileDocument::default()
        };
        document.host.hostname = "<here> & there".to_owned();
        document.sizes = sizes(&document.model().unwrap());
        document
    }

    fn sizes(profile: &Profile) -> Vec<SizeRecord> {
        let point = |line: &SizeLine, size: u64| {
            let wobble = 1_000 + i64::try_from(size * 7 % 11).unwrap() * 10 - 50;
            let value = SignedPicos(line.at(Bytes(size)).0 * wobble / 1_000);
            let by = value.0 / 15;
            let (low, high) = (SignedPicos(value.0 - by), SignedPicos(value.0 + by));
            let mark = if size == 64 { Mark::BudgetSpent } else { Mark::Converged };
            Some(Estimate { value, low, high, mark })
        };
        (0..=16_u32)
            .map(|exponent| {
                let size = 1 << exponent;
                let range = profile.range(Bytes(size)).unwrap();
                let row = SizeRow {
                    size: Bytes(size),
                    half_rtt: point(&range.half_rtt.unwrap(), size),
                    gap: point(&range.gap, size),
                    send_overhead: point(&range.send_overhead.unwrap(), size),
                    recv_overhead: point(&range.recv_overhead.unwrap(), size),
                    delay: None,
                    samples: [9; 4],
                };
                let p50 = range.half_rtt.unwrap().at(Bytes(size)).seconds();
                let percentiles = [1.0, 1.2, 1.7, 3.0, 400.0].map(|factor| Some(factor * p50));
                let histogram = vec![(p50, 90), (p50 * 1.1, 40), (p50 * 1.6, 3)];
                SizeRecord {
                    rounds: Some(RoundRecord { percentiles, histogram }),
                    ..SizeRecord::from(row)
                }
            })
            .collect()
    }

    #[test]
    fn a_picture_shows_axes_with_units_curves_changes_and_percentiles() {
        let picture = svg(&document()).unwrap();
        for text in [
            "time [us]",
            "message size s [bytes]",
            "64K",
            "gap g + (s-1)G",
            "change of protocol at 8 KiB",
            "p50 to p99",
            "RTT/2 at 1 B: p50 9.00 us, p90 10.8 us, p99 15.3 us, p99.9 27.0 us, max 3.60 ms",
        ] {
            assert!(picture.contains(text), "{text}");
        }
        assert!(picture.contains("&lt;here&gt; &amp; there"), "titles are escaped");
        assert!(picture.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn one_value_far_from_all_others_moves_no_axis_and_has_no_bar_without_bound() {
        let quiet = document();
        let curves = COLUMNS.to_vec();
        let (low, high) = time_range(&quiet, &curves).unwrap();
        let mut disturbed = quiet.clone();
        let far = SignedPicos(9_000_000_000_000);
        let gap = disturbed.sizes[3].row.gap.as_mut().unwrap();
        (gap.value, gap.high) = (far, SignedPicos(i64::MAX));
        let (with_low, with_high) = time_range(&disturbed, &curves).unwrap();
        assert!(with_low >= low * 0.99 && with_high <= high * 10.0, "{with_high} {high}");
        let lines =
            |document: &ProfileDocument| svg(document).unwrap().matches("<polyline").count();
        let mut unbounded = quiet.clone();
        unbounded.sizes[3].row.gap.as_mut().unwrap().high = SignedPicos(i64::MAX);
        assert_eq!(lines(&unbounded) + 1, lines(&quiet));
    }

    #[test]
    fn a_signature_is_drawn_as_its_curves_with_their_regimes() {
        let record = SignatureRecord { bulk: Vec::new(), ..fixtures::signature_record() };
        let of = |record| ProfileDocument { signature: Some(record), ..document() };
        let picture = svg(&of(record)).unwrap();
        for part in [
            "requests M",
            "cost of a message T(M, delay)/M [us]",
            "no delay",
            "delay 16.0 us",
            "send only",
            "transition",
            "steady state",
            "g of request and reply",
        ] {
            assert!(picture.contains(part), "no {part}");
        }
        let picture = svg(&of(fixtures::signature_record())).unwrap();
        for part in ["length n [bytes]", "store T(n)", "send overhead o(n)", "T0 -2.00 us"] {
            assert!(picture.contains(part), "no {part}");
        }
        let mut record = fixtures::signature_record();
        record.sizes[0].found.gap = None;
        let without = svg(&of(record)).unwrap();
        assert!(picture.contains("gap g(n)") && !without.contains("gap g(n)"));
        // The legend, the curve and an interval.
        let lines = |picture: &str| picture.matches("<polyline").count();
        assert_eq!(lines(&picture), lines(&without) + 3);
        let all = ProfileDocument { method: "all".to_owned(), ..of(fixtures::signature_record()) };
        let picture = svg(&all).unwrap();
        assert!(picture.contains("gap g + (s-1)G") && !picture.contains("store T(n)"));
    }

    #[test]
    fn the_same_data_give_the_same_picture() {
        assert_eq!(svg(&document()), svg(&document()));
    }

    #[test]
    fn without_a_positive_number_there_is_no_picture() {
        let mut document = ProfileDocument::default();
        assert_eq!(svg(&document), Err(PlotError::Nothing));
        let mut nothing = range(1, 8, line(-5, 0));
        (nothing.half_rtt, nothing.send_overhead, nothing.recv_overhead) = (None, None, None);
        document.ranges.push(nothing.into());
        assert_eq!(svg(&document), Err(PlotError::Nothing));
    }

    #[test]
    fn one_point_and_absurd_numbers_are_drawn() {
        let absurd = SizeLine::exact(SignedPicos(i64::MAX), SignedPerByte(i64::MAX));
        let ranges = vec![range(u64::MAX, u64::MAX, absurd).into()];
        assert!(svg(&ProfileDocument { ranges, ..ProfileDocument::default() }).is_ok());
    }
}
