//! Axes of plots: position of a value, ticks, and the frame.

use super::super::number;
use super::PlotError;
use super::canvas::{Align, BLACK, Canvas, Extent, LIGHT, black};

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Scale {
    /// Equal distances are equal factors.
    Logarithmic,
    /// Equal distances are equal differences.
    Linear,
}

/// An axis between two pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    pixels: Extent,
}

/// A value that is marked on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    /// Text; `None` for a grid line without text.
    pub(crate) label: Option<String>,
}

impl Axis {
    /// Creates a logarithmic axis from `low` to `high`, both positive; an empty interval is
    /// widened.
    pub(crate) fn new(low: f64, high: f64, pixels: Extent) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        let (low, high) = if high > low { (low, high) } else { (low / 2.0, low * 2.0) };
        Self { scale: Scale::Logarithmic, low, high, pixels }
    }

    /// Creates a linear axis from `low` to `high`; an empty interval is widened.
    pub(crate) fn linear(low: f64, high: f64, pixels: Extent) -> Self {
        let high = if high > low { high } else { low + low.abs().max(1.0) };
        Self { scale: Scale::Linear, low, high, pixels }
    }

    /// Pixel of `value`, clamped to the axis.
    #[allow(clippy::cast_possible_truncation, reason = "between two i32 pixels")]
    pub(crate) fn place(&self, value: f64) -> i32 {
        let value = value.clamp(self.low, self.high);
        let share = match self.scale {
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Linear => (value - self.low) / (self.high - self.low),
        };
        let (start, end) = (f64::from(self.pixels.low), f64::from(self.pixels.high));
        (start + share * (end - start)).round() as i32
    }

    pub(crate) fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Geometric sequence of `count` values from `first` to `last`.
    pub(crate) fn steps(first: f64, last: f64, count: u32) -> impl Iterator<Item = f64> {
        let factor = (last / first).powf(1.0 / f64::from(count.max(2) - 1));
        (0..count).map(move |index| first * factor.powi(index.cast_signed()))
    }

    /// Ticks at powers of two, with at most a dozen labels: sizes, or decimals below 1. An axis of
    /// sizes widened around 1 begins at 1/2 and gets no fractions.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "exponents of u64")]
    pub(crate) fn binary_ticks(&self) -> Vec<Tick> {
        let least = if self.low < 0.5 { -63.0 } else { 0.0 };
        let exponent = |value: f64| value.log2().clamp(least, 63.0);
        let (first, last) = (exponent(self.low).ceil() as i32, exponent(self.high).floor() as i32);
        let every = (last.abs_diff(first) / 12 + 1).next_power_of_two().cast_signed();
        (first..=last)
            .map(|exponent| {
                let value = f64::from(exponent).exp2();
                let text = if exponent < 0 { short(value) } else { number::bytes(value as u64) };
                let label = (exponent % every == 0).then_some(text);
                Tick { value, label }
            })
            .collect()
    }

    /// Ticks at 1, 2, 5 times powers of ten. Over more than three decades only the powers have
    /// labels; below one decade the ticks are those of a linear axis.
    pub(crate) fn decimal_ticks(&self) -> Vec<Tick> {
        let ratio = self.high / self.low;
        if self.scale == Scale::Linear || ratio < 8.0 {
            return self.linear_ticks();
        }
        let labelled: &[u32] = if ratio > 2e3 { &[1] } else { &[1, 2, 5] };
        let mut ticks = Vec::new();
        let mut decade = 10_f64.powf(self.low.log10().floor());
        while decade <= self.high {
            for digit in 1..10 {
                let value = decade * f64::from(digit);
                let label = labelled.contains(&digit).then(|| short(value));
                if self.contains(value) {
                    ticks.push(Tick { value, label });
                }
            }
            decade *= 10.0;
        }
        ticks
    }

    fn linear_ticks(&self) -> Vec<Tick> {
        let raw = (self.high - self.low) / 8.0;
        let decade = 10_f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * decade);
        let step = step.into_iter().find(|step| *step >= raw).unwrap_or(decade);
        let first = (self.low / step).ceil();
        (0..10_u32)
            .map(|index| (first + f64::from(index)) * step)
            .filter(|value| self.contains(*value))
            .map(|value| Tick { value, label: Some(short(value)) })
            .collect()
    }
}

/// An axis to be drawn with ticks and a name.
#[derive(Clone, Debug)]
pub(crate) struct Labelled<'a> {
    pub(crate) axis: &'a Axis,
    pub(crate) ticks: Vec<Tick>,
    pub(crate) name: &'a str,
}

/// Draws grid, labels and names of both axes.
pub(crate) fn draw(
    canvas: &Canvas<'_>,
    across: &Labelled<'_>,
    up: &Labelled<'_>,
) -> Result<(), PlotError> {
    let plot = canvas.plot_area();
    let Extent { low: left, high: right } = plot.across;
    let Extent { low: bottom, high: top } = plot.up;
    for tick in &across.ticks {
        let x = across.axis.place(tick.value);
        let length = if tick.label.is_some() { 6 } else { 3 };
        if let Some(label) = &tick.label {
            canvas.line(vec![(x, top), (x, bottom)], LIGHT, 1)?;
            canvas.text(label, (x, bottom + 9), black(15), Align::Below)?;
        }
        canvas.line(vec![(x, bottom), (x, bottom + length)], BLACK, 1)?;
    }
    for tick in &up.ticks {
        let y = up.axis.place(tick.value);
        let length = if tick.label.is_some() { 6 } else { 3 };
        if let Some(label) = &tick.label {
            canvas.line(vec![(left, y), (right, y)], LIGHT, 1)?;
            canvas.text(label, (left - 10, y), black(15), Align::Right)?;
        }
        canvas.line(vec![(left - length, y), (left, y)], BLACK, 1)?;
    }
    canvas.edge([(left, top), (right, bottom)], BLACK)?;
    let centre = left.midpoint(right);
    canvas.text(across.name, (centre, bottom + 30), black(16), Align::Below)?;
    canvas.text(up.name, (22, bottom.midpoint(top)), black(16), Align::Upwards)
}

/// Formats to at most six decimals, without trailing zeros.
fn short(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn pixels(low: i32, high: i32) -> Extent {
        Extent { low, high }
    }

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().filter_map(|tick| tick.label.as_deref()).collect()
    }

    #[test]
    fn equal_factors_are_equal_distances() {
        let axis = Axis::new(1.0, 100.0, pixels(200, 0));
        assert_eq!([1.0, 10.0, 100.0].map(|value| axis.place(value)), [200, 100, 0]);
        assert_eq!([0.0, -5.0, 1e9].map(|value| axis.place(value)), [200, 200, 0]);
    }

    #[test]
    fn fractions_are_labelled_as_decimals_and_not_as_sizes() {
        let axis = Axis::new(0.125, 4.0, pixels(0, 100));
        assert_eq!(labels(&axis.binary_ticks()), ["0.125", "0.25", "0.5", "1", "2", "4"]);
        assert_eq!(labels(&Axis::new(1.0, 1.0, pixels(0, 100)).binary_ticks()), ["1", "2"]);
    }

    #[test]
    fn sizes_are_labelled_at_powers_of_two() {
        let axis = Axis::new(1.0, 65_536.0, pixels(0, 100));
        let expected = ["1", "4", "16", "64", "256", "1K", "4K", "16K", "64K"];
        assert_eq!(labels(&axis.binary_ticks()), expected);
        assert_eq!(labels(&Axis::new(3.0, 9.0, pixels(0, 9)).binary_ticks()), ["4", "8"]);
    }

    #[test]
    fn times_are_labelled_at_round_decimals() {
        let labels_of = |low, high| {
            let ticks = Axis::new(low, high, pixels(0, 100)).decimal_ticks();
            labels(&ticks).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(labels_of(0.15, 12.0), ["0.2", "0.5", "1", "2", "5", "10"]);
        assert_eq!(labels_of(0.01, 100.0), ["0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels_of(1.0, 1.3), ["1", "1.05", "1.1", "1.15", "1.2", "1.25", "1.3"]);
        assert!(!labels_of(5.0, 5.0).is_empty());
    }

    #[test]
    fn equal_differences_are_equal_distances_on_a_linear_axis() {
        let axis = Axis::linear(0.0, 20.0, pixels(200, 0));
        assert_eq!([0.0, 5.0, 20.0, 30.0].map(|value| axis.place(value)), [200, 150, 0, 0]);
        let expected = ["0", "5", "10", "15", "20"];
        assert_eq!(labels(&axis.decimal_ticks()), expected);
        assert!(!labels(&Axis::linear(7.0, 7.0, pixels(0, 9)).decimal_ticks()).is_empty());
    }

    #[test]
    fn steps_reach_both_ends() {
        let steps: Vec<f64> = Axis::steps(1.0, 64.0, 7).map(f64::round).collect();
        assert_eq!(steps, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
    }
}
