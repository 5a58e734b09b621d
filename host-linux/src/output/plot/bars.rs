//! LogP parameters of several profiles as bars: Figure 8 of "LogP Performance Assessment of Fast
//! Network Interfaces" (Culler et al. 1996). The left bar of a profile is the one-way time divided
//! into overheads and latency, the right one the gap.

use loggap_core::model::{Curve, Estimate, Range};
use loggap_core::units::{Bytes, SignedPicos};
use plotters::style::RGBColor;

use super::super::number::{self, Unit};
use super::PlotError;
use super::axis::{self, Axis, Labelled};
use super::canvas::{Align, BLACK, Canvas, GREEN, ORANGE, PURPLE, SKY, Sheet, TITLE, black, grey};
use super::profiles::NamedProfile;
use crate::profile::ProfileDocument;

/// Parameters of a profile at one size: `o_s`, `o_r`, L and g.
type Parameters = [Option<Estimate<SignedPicos>>; 4];

const COLOURS: [RGBColor; 4] = [ORANGE, GREEN, SKY, PURPLE];
/// Width of the bars of all profiles together, and of one profile's at most, pixels.
const WIDTH: i32 = 1_000;
const WIDEST: i32 = 150;
const LEFT: i32 = 84;
const LEGEND: i32 = 150;
const TOP: i32 = 48;
const HEIGHT: i32 = 420;
/// Height of a line of text and width of a character, pixels.
const LINE: i32 = 20;
const CHARACTER: i32 = 8;
/// Half the width of a whisker's ends, pixels.
const CAP: i32 = 3;

/// Smallest size that all `profiles` have.
#[must_use]
pub fn smallest(profiles: &[NamedProfile<'_>]) -> Bytes {
    let ranges = profiles.iter().filter_map(|profile| profile.document.ranges.first());
    let firsts = ranges.map(|record| record.range.first);
    firsts.max().unwrap_or(Bytes(1))
}

/// `o_s`, `o_r`, L and g of `document` at `size`: those of its signature, where g is the gap of
/// request and reply, or of its lines. Beyond one byte L includes (s − 1)G, as half a round trip
/// does. `None` if the profile has no range there.
fn parameters(document: &ProfileDocument, size: Bytes) -> Option<Parameters> {
    let mut signatures = document.signature.iter().flat_map(|signature| &signature.sizes);
    if let Some(one) = signatures.find(|one| u64::from(one.found.size) == size.0) {
        let found = &one.found;
        return Some([Some(found.send_overhead), found.recv_overhead, found.latency, found.gap]);
    }
    let ranges = || document.ranges.iter().map(|record| &record.range);
    let range: &Range = ranges().find(|range| range.contains(size))?;
    let at = |curve| {
        let line = range.line(curve)?;
        let half = i64::try_from(line.half_width(size).0).unwrap_or(i64::MAX);
        let value = line.at(size).0;
        let [value, low, high] =
            [value, value.saturating_sub(half), value.saturating_add(half)].map(SignedPicos);
        Some(Estimate { value, low, high, mark: line.mark() })
    };
    let (send, receive) = (at(Curve::SendOverhead), at(Curve::RecvOverhead));
    let latency = if size.0 <= 1 {
        range.latency
    } else {
        at(Curve::HalfRtt).zip(send.zip(receive)).map(|(half, (send, receive))| Estimate {
            value: less(half.value, [send.value, receive.value]),
            low: less(half.low, [send.high, receive.high]),
            high: less(half.high, [send.low, receive.low]),
            mark: half.mark,
        })
    };
    Some([send, receive, latency, at(Curve::Gap)])
}

fn less(whole: SignedPicos, parts: [SignedPicos; 2]) -> SignedPicos {
    SignedPicos(parts.iter().fold(whole.0, |left, part| left.saturating_sub(part.0)))
}

/// Draws `profiles` at `size`, two bars each; whiskers are intervals.
///
/// # Errors
///
/// [`PlotError::Nothing`] if no parameter is positive.
pub fn svg(profiles: &[NamedProfile<'_>], size: Bytes) -> Result<String, PlotError> {
    let found = profiles.iter().map(|profile| parameters(profile.document, size));
    let found: Vec<Parameters> = found.map(Option::unwrap_or_default).collect();
    let highest = found.iter().flat_map(bars).map(|part| part.top.max(part.high));
    let highest = highest.fold(0.0, f64::max);
    if highest <= 0.0 {
        return Err(PlotError::Nothing);
    }
    let count = |number: usize| i32::try_from(number).map_err(|_| PlotError::Backend);
    let slot = (WIDTH / count(profiles.len())?).clamp(CHARACTER, WIDEST);
    let longest = profiles.iter().map(|profile| profile.name.chars().count()).max().unwrap_or(0);
    // Names that are wider than their bars take turns in several lines.
    let lines =
        (count(longest)?.saturating_add(1).saturating_mul(CHARACTER) / slot).clamp(0, 5) + 1;
    let width = slot.saturating_mul(count(profiles.len())?);
    let foot = 24 + lines * LINE;
    let sheet = Sheet {
        size: (LEFT.saturating_add(width).saturating_add(LEGEND), TOP + HEIGHT + foot),
        units: 1,
        bleed: 0,
        margins: (LEFT, LEGEND, TOP, foot),
    };
    let unit = Unit::fitting(number::TIME, highest, 1.0);
    sheet.draw(|canvas| {
        let plot = canvas.plot_area();
        let title = format!("LogP parameters at {}", number::size(size.0));
        canvas.text(&title, (LEFT, 22), black(TITLE), Align::Left)?;
        let across = Axis::linear(0.0, 1.0, plot.across);
        let up = Axis::linear(0.0, highest * 1.05 / unit.size, plot.up);
        let name = format!("time [{}]", unit.name);
        axis::draw(
            canvas,
            &Labelled { axis: &across, ticks: Vec::new(), name: "" },
            &Labelled { axis: &up, ticks: up.decimal_ticks(), name: &name },
        )?;
        for ((index, profile), found) in (0..).zip(profiles).zip(&found) {
            let left = LEFT + slot * index;
            let (parts, place) = (bars(found), Place { left, slot });
            for part in &parts {
                part.draw(canvas, &up, unit, &place)?;
            }
            for part in &parts {
                part.whisker(canvas, &up, unit, &place)?;
            }
            let below = (left + slot / 2, plot.up.low + 8 + index % lines * LINE);
            canvas.text(profile.name, below, black(15), Align::Below)?;
            let is_unknown =
                |of: &Option<Estimate<SignedPicos>>| of.is_none_or(|found| found.value.0 < 0);
            let unknown = NAMES.iter().zip(found).filter(|(_, value)| is_unknown(value));
            let unknown: Vec<&str> = unknown.map(|(name, _)| *name).collect();
            if !unknown.is_empty() {
                let text = format!("no {}", unknown.join(", "));
                canvas.text(&text, (left + slot / 2, TOP + 4), grey(12), Align::Below)?;
            }
        }
        legend(canvas, size)
    })
}

/// Names of [`Parameters`].
const NAMES: [&str; 4] = ["o_s", "o_r", "L", "g"];

/// Legend, in the order of the bars from top to bottom.
fn legend(canvas: &Canvas<'_>, size: Bytes) -> Result<(), PlotError> {
    let x = canvas.plot_area().across.high + 16;
    for (row, index) in (0..).zip([3, 2, 1, 0]) {
        let (Some(name), Some(colour)) = (NAMES.get(index), COLOURS.get(index)) else { continue };
        let per_byte = if size.0 > 1 && index >= 2 { " + (s-1)G" } else { "" };
        let y = TOP + row * LINE;
        canvas.bar([(x, y), (x + 16, y + 14)], *colour, 1.0)?;
        canvas.text(&format!("{name}{per_byte}"), (x + 24, y + 8), black(15), Align::Left)?;
    }
    Ok(())
}

/// Part of a bar, seconds from the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    /// Index of the parameter.
    of: usize,
    value: f64,
    bottom: f64,
    top: f64,
    /// Interval of the parameter, above `bottom`.
    low: f64,
    high: f64,
}

/// Pixels of a profile's bars.
struct Place {
    left: i32,
    slot: i32,
}

/// Parts of both bars: overheads and latency on each other, and the gap.
fn bars(found: &Parameters) -> Vec<Part> {
    let mut height = 0.0;
    let known = found.iter().enumerate().filter_map(|(of, estimate)| Some((of, (*estimate)?)));
    let parts = known.map(|(of, estimate)| {
        let Estimate { value, low, high, .. } = estimate.map(|time| time.seconds());
        let bottom = if of == 3 { 0.0 } else { height };
        height = bottom + value.max(0.0);
        let end = |end: f64| if end.abs() < UNBOUNDED_S { bottom + end } else { height };
        Part { of, value, bottom, top: height, low: end(low), high: end(high) }
    });
    parts.collect()
}

/// Ends of intervals beyond this are unknown, seconds.
const UNBOUNDED_S: f64 = 1e6;

impl Part {
    fn draw(
        &self,
        canvas: &Canvas<'_>,
        up: &Axis,
        unit: Unit,
        place: &Place,
    ) -> Result<(), PlotError> {
        let (left, width) = self.across(place);
        let [bottom, top] = [self.bottom, self.top].map(|time| up.place(time / unit.size));
        let colour = COLOURS.get(self.of).copied().unwrap_or(BLACK);
        canvas.bar([(left, top), (left + width, bottom)], colour, 1.0)?;
        let times = [self.value, self.low - self.bottom, self.high - self.bottom];
        let [value, least, most] = times.map(|time| unit.number(time));
        let name = NAMES.get(self.of).copied().unwrap_or_default();
        canvas.tooltip(&format!("{name} {value} {} ({least} to {most})", unit.name))?;
        if width >= 30 && bottom - top >= 14 {
            let middle = (left + width / 2, top.midpoint(bottom) - 6);
            canvas.text(&value, middle, black(12), Align::Below)?;
        }
        Ok(())
    }

    /// Left end and width, pixels.
    fn across(&self, &Place { left, slot }: &Place) -> (i32, i32) {
        let width = (slot * 3 / 8).max(2);
        (left + if self.of == 3 { slot / 2 } else { slot / 2 - width }, width)
    }

    fn whisker(
        &self,
        canvas: &Canvas<'_>,
        up: &Axis,
        unit: Unit,
        place: &Place,
    ) -> Result<(), PlotError> {
        let [low, high] = [self.low, self.high].map(|time| up.place(time / unit.size));
        if low == high {
            return Ok(());
        }
        let (left, width) = self.across(place);
        // Whiskers of one bar stand beside each other.
        let offset = i32::try_from(self.of % 3).unwrap_or(0);
        let x = left + width * (2 * offset + 1) / 6;
        canvas.line(vec![(x, low), (x, high)], BLACK, 1)?;
        for end in [low, high] {
            canvas.line(vec![(x - CAP, end), (x + CAP, end)], BLACK, 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use loggap_core::model::Preset;

    use super::super::super::fixtures;
    use super::*;

    fn picture(documents: &[(&str, ProfileDocument)], size: u64) -> Result<String, PlotError> {
        let named: Vec<NamedProfile<'_>> =
            documents.iter().map(|(name, document)| NamedProfile { name, document }).collect();
        svg(&named, Bytes(size))
    }

    #[test]
    fn the_papers_machines_have_the_bars_of_figure_8() {
        let presets = ["paragon", "meiko", "myrinet"];
        let documents =
            presets.map(|name| (name, ProfileDocument::from(&name.parse::<Preset>().unwrap())));
        let picture = picture(&documents, 1).unwrap();
        // Section 3.3, microseconds: o_s, o_r, L, g.
        for text in [
            ["o_s 1.40", "o_r 2.20", "L 6.30", "g 7.60"],
            ["o_s 1.70", "o_r 1.60", "L 7.50", "g 13.6"],
            ["o_s 2.00", "o_r 2.60", "L 11.1", "g 12.4"],
        ] {
            for one in text {
                assert!(picture.contains(&format!("<title>{one} us")), "{one}: {picture}");
            }
        }
        // One-way times of 9.9, 10.8 and 15.7 us, as half of Table 3's round trips.
        let tops =
            documents.map(|(_, document)| bars(&parameters(&document, Bytes(1)).unwrap())[2].top);
        for (top, expected) in tops.into_iter().zip([9.9e-6, 10.8e-6, 15.7e-6]) {
            assert!((top - expected).abs() < 1e-12, "{top} for {expected}");
        }
        assert_eq!(picture.matches("<title>").count(), 12);
    }

    #[test]
    fn intervals_are_whiskers_and_bars_grow_with_the_size() {
        let documents = [("tcp", fixtures::tcp())];
        let small = picture(&documents, 1).unwrap();
        assert!(small.contains("L 1.21 us (1.16 to 1.26)"), "{small}");
        let found = parameters(&documents[0].1, Bytes(1_001)).unwrap();
        let bars = bars(&found);
        // Half the round trip, 5.1 us + 1000 · 0.2 ns.
        assert!((bars[2].top - 5.3e-6).abs() < 1e-9, "{bars:?}");
        assert!(picture(&documents, 1_001).unwrap().contains("L + (s-1)G"));
        let exact = [("m", ProfileDocument::from(&"meiko".parse::<Preset>().unwrap()))];
        let lines = |picture: &str| picture.matches("<polyline").count();
        assert!(lines(&small) > lines(&picture(&exact, 1).unwrap()));
    }

    #[test]
    fn unknown_parameters_are_named() {
        let documents = [("tcp", fixtures::tcp()), ("gaps", fixtures::gaps_alone())];
        assert_eq!(picture(&documents, 1 << 40), Err(PlotError::Nothing));
        assert!(picture(&documents, 64).unwrap().contains("\nno o_s, o_r, L\n"));
        let empty = [("tcp", fixtures::tcp()), ("empty", ProfileDocument::default())];
        assert!(picture(&empty, 1).unwrap().contains("\nno o_s, o_r, L, g\n"));
    }
}
