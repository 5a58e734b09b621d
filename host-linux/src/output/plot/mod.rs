//! The picture of a profile: times over message size, both logarithmic, with
//! measured points, fitted lines and changes of protocol, as scalable vector
//! graphics.

mod axis;
mod canvas;
mod curve;
mod frame;

use loggap_core::measure::SizeRow;
use loggap_core::model::{Profile, Range};

use axis::Axis;
use canvas::Canvas;
use curve::Curve;

/// What a picture shows.
#[derive(Clone, Copy, Debug)]
pub struct Figure<'a> {
    /// First line.
    pub title: &'a str,
    /// Second line, smaller.
    pub subtitle: &'a str,
    /// Lines and changes.
    pub profile: &'a Profile,
    /// Points.
    pub rows: &'a [SizeRow],
    /// Level of the intervals, in percent.
    pub confidence_percent: f64,
}

/// Why there is no picture.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PlotError {
    /// No number is positive, so there is nothing on logarithmic axes.
    Nothing,
    /// The drawing library failed.
    Backend,
}

impl std::fmt::Display for PlotError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nothing => "nothing to plot: no positive number was measured",
            Self::Backend => "the picture could not be drawn",
        })
    }
}

impl std::error::Error for PlotError {}

/// The unit that a picture's times are in.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Unit {
    name: &'static str,
    picos: f64,
}

impl Unit {
    /// The one that makes the geometric middle of the axis at least 1.
    fn of(middle_picos: f64) -> Self {
        let units = [("s", 1e12), ("ms", 1e9), ("us", 1e6), ("ns", 1e3)];
        let fitting = units.into_iter().find(|(_, picos)| middle_picos >= *picos);
        let (name, picos) = fitting.unwrap_or(("ns", 1e3));
        Self { name, picos }
    }
}

/// Draws `figure` and returns the document.
///
/// # Errors
///
/// [`PlotError`] when there is nothing to draw.
pub fn svg(figure: &Figure<'_>) -> Result<String, PlotError> {
    let curves: Vec<Curve> =
        Curve::ALL.into_iter().filter(|curve| curve.is_present(figure)).collect();
    let (low, high) = time_range(figure, &curves).ok_or(PlotError::Nothing)?;
    let unit = Unit::of((low * high).sqrt());
    let (first, last) = size_range(figure).ok_or(PlotError::Nothing)?;
    let mut document = String::new();
    {
        let canvas = Canvas::new(&mut document, figure.profile.ranges.len())?;
        let plot = canvas.plot_area();
        let across = Axis::new(first, last, plot.across);
        let up = Axis::new(low / unit.picos, high / unit.picos, plot.up);
        frame::draw_head(&canvas, figure, &curves)?;
        frame::draw_axes(&canvas, (&across, &up), unit.name)?;
        frame::draw_changes(&canvas, &across, &figure.profile.changes)?;
        let drawing = curve::Drawing { canvas: &canvas, across, up, unit };
        for curve in &curves {
            for range in &figure.profile.ranges {
                drawing.line(*curve, range)?;
            }
        }
        for curve in &curves {
            drawing.points(*curve, figure.rows)?;
        }
        frame::draw_foot(&canvas, figure.profile)?;
        canvas.finish()?;
    }
    Ok(document)
}

/// Smallest and largest size of points and ranges, in bytes.
#[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
fn size_range(figure: &Figure<'_>) -> Option<(f64, f64)> {
    let rows = figure.rows.iter().map(|row| row.size.0);
    let ranges = figure.profile.ranges.iter().flat_map(|range| [range.first.0, range.last.0]);
    let sizes = || rows.clone().chain(ranges.clone()).map(|size| size.max(1));
    Some((sizes().min()? as f64 / 1.25, sizes().max()? as f64 * 1.25))
}

/// Smallest and largest time to show, in picoseconds, with a margin. Points
/// far below all others are cut off: on a logarithmic axis a difference that
/// happens to be nearly nothing would squeeze all the rest.
fn time_range(figure: &Figure<'_>, curves: &[Curve]) -> Option<(f64, f64)> {
    const DECADES_SHOWN: f64 = 1e5;
    let mut values = Vec::new();
    for curve in curves {
        values.extend(figure.rows.iter().filter_map(|row| curve.point(row)).map(|p| p.value.0));
        for range in &figure.profile.ranges {
            values.extend(curve.line(range).into_iter().flat_map(|line| {
                let Range { first, last, .. } = range;
                [line.at(*first).0, line.at(*last).0]
            }));
        }
    }
    let positive = values.iter().copied().filter(|value| *value > 0);
    let (low, high) = (positive.clone().min()?, positive.max()?);
    #[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
    let (low, high) = (low as f64, high as f64);
    Some((low.max(high / DECADES_SHOWN) / 1.5, high * 1.5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::model::{Change, Estimate, Mark, SizeLine};
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

    fn profile() -> Profile {
        let mut profile = Profile::default();
        let first = range(1, 8_191, line(2_000_000, 100));
        profile.ranges.extend([first, range(8_192, 65_536, line(4_000_000, 250))]);
        let change = Change { at: Bytes(8_192), low: Bytes(7_000), high: Bytes(9_000) };
        profile.changes.push(change).unwrap();
        profile
    }

    fn rows(profile: &Profile) -> Vec<SizeRow> {
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
                SizeRow {
                    size: Bytes(size),
                    half_rtt: point(&range.half_rtt.unwrap(), size),
                    gap: point(&range.gap, size),
                    send_overhead: point(&range.send_overhead.unwrap(), size),
                    recv_overhead: point(&range.recv_overhead.unwrap(), size),
                    delay: None,
                    samples: [9; 4],
                }
            })
            .collect()
    }

    fn draw(profile: &Profile, rows: &[SizeRow]) -> Result<String, PlotError> {
        let (title, subtitle) = ("tcp to <here> & there", "8 processors");
        svg(&Figure { title, subtitle, profile, rows, confidence_percent: 95.0 })
    }

    #[test]
    fn a_picture_shows_axes_with_units_curves_and_changes() {
        let profile = profile();
        let picture = draw(&profile, &rows(&profile)).unwrap();
        for text in
            ["time [us]", "message size s [bytes]", "64K", "gap g + (s-1)G", "change at 8192 B"]
        {
            assert!(picture.contains(text), "{text}");
        }
        assert!(picture.contains("&lt;here&gt; &amp; there"), "titles are escaped");
        assert!(picture.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn the_same_data_give_the_same_picture() {
        let profile = profile();
        let rows = rows(&profile);
        assert_eq!(draw(&profile, &rows), draw(&profile, &rows));
    }

    #[test]
    fn without_a_positive_number_there_is_no_picture() {
        let mut profile = Profile::default();
        assert_eq!(draw(&profile, &[]), Err(PlotError::Nothing));
        let mut nothing = range(1, 8, line(-5, 0));
        (nothing.half_rtt, nothing.send_overhead, nothing.recv_overhead) = (None, None, None);
        profile.ranges.push(nothing).unwrap();
        assert_eq!(draw(&profile, &[]), Err(PlotError::Nothing));
    }

    #[test]
    fn one_point_and_absurd_numbers_are_drawn() {
        let mut profile = Profile::default();
        let absurd = SizeLine::exact(SignedPicos(i64::MAX), SignedPerByte(i64::MAX));
        profile.ranges.push(range(u64::MAX, u64::MAX, absurd)).unwrap();
        assert!(draw(&profile, &[]).is_ok());
    }
}
