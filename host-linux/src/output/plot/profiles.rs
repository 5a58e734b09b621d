//! Gap and send overhead of several profiles over the message size: Fig. 3 and 5 of "`LogGP` in
//! Theory and Practice".

use loggap_core::model::{Curve, Range};
use loggap_core::units::{Bytes, SignedPicos};

use super::PlotError;
use super::axis::Axis;
use super::chart::{Axes, Chart, Coordinates, Interval, Series};
use crate::profile::ProfileDocument;

/// A profile with its name in the legend.
#[derive(Clone, Copy, Debug)]
pub struct NamedProfile<'d> {
    /// Name in the legend.
    pub name: &'d str,
    /// The profile.
    pub document: &'d ProfileDocument,
}

/// Lines of a profile, which share a colour: measured gaps, fitted gap, send overheads.
pub const LINES: usize = 3;

/// Chart of `profiles`, a colour each; draw it in groups of [`LINES`].
///
/// # Errors
///
/// [`PlotError::Nothing`] if no profile has a gap.
pub fn chart(profiles: &[NamedProfile<'_>], axes: Axes) -> Result<Chart, PlotError> {
    let series: Vec<Series> = profiles.iter().flat_map(lines).collect();
    if series.iter().all(|series| series.points.is_empty()) {
        return Err(PlotError::Nothing);
    }
    Ok(Chart {
        title: "Gap and send overhead".into(),
        x_label: "message size s [bytes]".into(),
        y_label: "time [µs]".into(),
        axes,
        series,
        nested: false,
    })
}

fn lines(profile: &NamedProfile<'_>) -> [Series; LINES] {
    let NamedProfile { name, document } = profile;
    [
        measured(format!("{name}: gap"), document, Curve::Gap),
        Series::line(format!("{name}: g + (s-1)G"), fitted(document)),
        measured(format!("{name}: o_s"), document, Curve::SendOverhead),
    ]
}

/// Values of `curve` by size, with their intervals.
fn measured(label: String, document: &ProfileDocument, curve: Curve) -> Series {
    let (mut points, mut intervals) = (Vec::new(), Vec::new());
    for record in &document.sizes {
        let Some(value) = record.row.value(curve) else { continue };
        let x = place(record.row.size);
        points.push(Coordinates { x, y: micros(value.value) });
        if value.low.0 > i64::MIN && value.high.0 < i64::MAX {
            intervals.push(Interval { x, low: micros(value.low), high: micros(value.high) });
        }
    }
    Series::new(label, points).with_intervals(intervals)
}

/// Fitted gap of each range; the line is interrupted between ranges.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes, positive")]
fn fitted(document: &ProfileDocument) -> Vec<Coordinates> {
    const PIECES: u32 = 24;
    let mut points = Vec::new();
    for Range { first, last, gap, .. } in document.ranges.iter().map(|record| &record.range) {
        if !points.is_empty() {
            points.push(Coordinates { x: place(*first), y: f64::NAN });
        }
        let sizes = Axis::steps(place(*first), place(*last), PIECES);
        let at = |size: f64| micros(gap.at(Bytes(size.round() as u64)));
        points.extend(sizes.map(|x| Coordinates { x, y: at(x) }));
    }
    points
}

fn micros(time: SignedPicos) -> f64 {
    time.seconds() * 1e6
}

#[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
fn place(size: Bytes) -> f64 {
    size.0.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures;
    use super::*;

    fn picture(axes: Axes) -> String {
        let (first, second) = (fixtures::shm(), fixtures::tcp());
        let named = [
            NamedProfile { name: "shm", document: &first },
            NamedProfile { name: "tcp", document: &second },
        ];
        let mut out = Vec::new();
        chart(&named, axes).unwrap().write(LINES, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_profile_has_a_colour_and_three_lines() {
        let picture = picture(Axes::Powers);
        for text in ["shm: gap", "tcp: g + (s-1)G", "tcp: o_s", "time [µs]", "64K"] {
            assert!(picture.contains(text), "{text}");
        }
        assert!(picture.contains("#0072B2") && picture.contains("#E69F00"), "{picture}");
    }

    #[test]
    fn on_linear_axes_sizes_are_equally_far_apart() {
        let picture = picture(Axes::Linear);
        assert!(picture.contains("\n60000\n") && !picture.contains("\n64K\n"), "{picture}");
    }

    #[test]
    fn profiles_without_a_gap_are_no_picture() {
        let nothing = ProfileDocument::default();
        let named = [NamedProfile { name: "empty", document: &nothing }];
        assert_eq!(chart(&named, Axes::Powers), Err(PlotError::Nothing));
    }
}
