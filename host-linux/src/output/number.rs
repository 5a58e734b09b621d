//! Formats numbers with units for people.

/// A unit and its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Name as printed.
    pub name: &'static str,
    /// Size in SI units: seconds, seconds per byte and so on.
    pub size: f64,
}

/// Units of one dimension, the largest first.
pub type Units = &'static [Unit];

const fn unit(name: &'static str, size: f64) -> Unit {
    Unit { name, size }
}

/// Units of time.
pub const TIME: Units = &[unit("s", 1.0), unit("ms", 1e-3), unit("us", 1e-6), unit("ns", 1e-9)];
/// Units of time per byte.
pub const TIME_PER_BYTE: Units = &[unit("us/B", 1e-6), unit("ns/B", 1e-9), unit("ps/B", 1e-12)];
/// Units of messages per second.
pub const MESSAGE_RATE: Units = &[unit("M/s", 1e6), unit("k/s", 1e3), unit("/s", 1.0)];
/// Units of bytes per second.
pub const BYTE_RATE: Units =
    &[unit("GB/s", 1e9), unit("MB/s", 1e6), unit("kB/s", 1e3), unit("B/s", 1.0)];

impl Unit {
    /// Largest of `units` in which `smallest` is at least `least`.
    #[must_use]
    pub fn fitting(units: Units, smallest: f64, least: f64) -> Self {
        /// 999.5 would be rounded to 1,000, so it takes the next unit.
        const ROUNDED: f64 = 0.9995;
        let fits = |unit: &&Self| smallest >= unit.size * least * ROUNDED;
        let smallest_unit = units.last().copied().unwrap_or(unit("", 1.0));
        units.iter().find(fits).copied().unwrap_or(smallest_unit)
    }

    /// Formats `value` in this unit, without the unit's name.
    #[must_use]
    pub fn number(&self, value: f64) -> String {
        significant(value / self.size)
    }

    /// Formats `value` in this unit, with the unit's name.
    #[must_use]
    pub fn with_name(&self, value: f64) -> String {
        format!("{} {}", self.number(value), self.name)
    }
}

/// Formats `value` in the largest of `units` in which it is at least 1.
#[must_use]
pub fn in_units(value: f64, units: Units) -> String {
    Unit::fitting(units, value.abs(), 1.0).with_name(value)
}

/// Formats to three significant digits; digits before the point are kept.
#[must_use]
pub fn significant(value: f64) -> String {
    const MOST_PLACES: i32 = 9;
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    // Rounded first: 9.996 becomes 10.0, not 10.00.
    let rounded = format!("{value:.2e}");
    let exponent: i32 = rounded.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let places = usize::try_from((2 - exponent).clamp(0, MOST_PLACES)).unwrap_or(0);
    grouped(&format!("{value:.places$}"))
}

/// Formats for a column, with `places` decimals; `-` if unknown.
#[must_use]
pub fn decimal(value: Option<f64>, places: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.places$}"))
}

/// Formats seconds as microseconds for a column, down to nanoseconds; `-` if unknown.
#[must_use]
pub fn micros(seconds: Option<f64>) -> String {
    decimal(seconds.map(|seconds| seconds * 1e6), 3)
}

/// Formats a square of a time, s², as square microseconds with three digits.
#[must_use]
pub fn square_micros(square_seconds: f64) -> String {
    format!("{:.2e} us2", square_seconds * 1e12)
}

/// Formats a whole number with thousands separated by commas.
#[must_use]
pub fn count(number: u64) -> String {
    grouped(&number.to_string())
}

/// Formats a count with its noun: `1 error`, `2 errors`.
#[must_use]
pub fn counted(number: u64, name: &str) -> String {
    format!("{number} {name}{}", if number == 1 { "" } else { "s" })
}

fn grouped(digits: &str) -> String {
    let (whole, fraction) = digits.find('.').map_or((digits, ""), |point| digits.split_at(point));
    let mut text = String::new();
    for (index, digit) in whole.char_indices() {
        let left = whole.len() - index;
        if index > 0 && left % 3 == 0 && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

/// Formats the relative half width of an interval, such as `± 3%`; at most five columns up to 99%.
#[must_use]
pub fn plus_minus(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        percent if percent < 0.05 => "±0.0%".to_owned(),
        percent if percent < 0.95 => format!("±{percent:.1}%"),
        percent if percent < 999.5 => format!("±{percent:>2.0}%"),
        _ => "±>999%".to_owned(),
    }
}

/// Formats a relative change with its sign, such as `+18%` or `+1.4%`.
#[must_use]
pub fn signed_percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 999.5 {
        return ">+999%".to_owned();
    }
    let places = usize::from(percent.abs() < 9.95);
    format!("{percent:+.places$}%")
}

/// Formats a size in bytes, in KiB, MiB or GiB where that is exact.
#[must_use]
pub fn size(bytes: u64) -> String {
    match in_binary(bytes) {
        Some((number, unit)) => format!("{number} {unit}iB"),
        None => format!("{} B", count(bytes)),
    }
}

/// Formats a size in bytes, in `K`, `M` or `G` where that is exact.
#[must_use]
pub fn bytes(size: u64) -> String {
    in_binary(size).map_or_else(|| size.to_string(), |(number, unit)| format!("{number}{unit}"))
}

/// A size in the largest of `K`, `M` and `G` of which it is a multiple.
fn in_binary(size: u64) -> Option<(u64, char)> {
    let is_multiple = |shift: u32| size >> shift > 0 && size.trailing_zeros() >= shift;
    let units = [(30, 'G'), (20, 'M'), (10, 'K')];
    let (shift, unit) = units.into_iter().find(|(shift, _)| is_multiple(*shift))?;
    Some((size >> shift, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_three_digits() {
        let shown = [0.0, 1.0, 9.996, 12.345, 836.4, 14_873.2, 0.166_4, 0.002_134, -1_234_567.0];
        let expected =
            ["0", "1.00", "10.0", "12.3", "836", "14,873", "0.166", "0.00213", "-1,234,567"];
        assert_eq!(shown.map(significant), expected);
        assert_eq!(significant(-123.4), "-123");
    }

    #[test]
    fn units_fit_their_numbers() {
        assert_eq!(in_units(2.71e-6, TIME), "2.71 us");
        assert_eq!(in_units(8.36e-7, TIME_PER_BYTE), "836 ns/B");
        assert_eq!(in_units(999_999.0, MESSAGE_RATE), "1.00 M/s");
        assert_eq!(in_units(369_000.0, MESSAGE_RATE), "369 k/s");
        assert_eq!(in_units(1e-15, TIME), "0.00000100 ns");
        assert_eq!(Unit::fitting(TIME_PER_BYTE, 8.8e-11, 0.01).name, "ns/B");
    }

    #[test]
    fn shares_are_short() {
        let shares = [0.000_1, 0.004, 0.02, 0.118, 1.5, 100.0];
        let expected = ["±0.0%", "±0.4%", "± 2%", "±12%", "±150%", "±>999%"];
        assert_eq!(shares.map(plus_minus), expected);
        assert_eq!([0.18, 0.014, -0.3].map(signed_percent), ["+18%", "+1.4%", "-30%"]);
        assert_eq!([9.99, 10.0, 5e6].map(signed_percent), ["+999%", ">+999%", ">+999%"]);
    }

    #[test]
    fn sizes_are_short_where_that_is_exact() {
        assert_eq!([0, 1_023, 4_096, 4_097, 3 << 20].map(bytes), ["0", "1023", "4K", "4097", "3M"]);
        let sizes = [1, 1_023, 4_096, 4_097, 1 << 30].map(size);
        assert_eq!(sizes, ["1 B", "1,023 B", "4 KiB", "4,097 B", "1 GiB"]);
    }
}
