//! Numbers as people read them: as many digits as the interval supports.

/// The most digits after the point; a picosecond in microseconds has six.
const MOST_PLACES: i32 = 7;

/// Digits after the point that `value` is printed with: the interval's half
/// width gets two digits, the value at least three.
fn places(value: f64, half_width: f64) -> usize {
    let for_value = 2 - magnitude(value);
    let for_width = if half_width > 0.0 { 1 - magnitude(half_width) } else { for_value };
    let wanted = for_value.max(for_width).clamp(0, MOST_PLACES);
    usize::try_from(wanted).unwrap_or(0)
}

/// The power of ten of the leading digit; 0 for zero.
#[allow(clippy::cast_possible_truncation, reason = "logarithms of doubles lie within ±324")]
fn magnitude(value: f64) -> i32 {
    if value == 0.0 || !value.is_finite() { 0 } else { value.abs().log10().floor() as i32 }
}

/// `value` and the larger distance to the ends of its interval, with digits
/// to match.
#[must_use]
pub fn with_interval(value: f64, low: f64, high: f64) -> (String, String) {
    let half_width = (high - value).max(value - low).max(0.0);
    let places = places(value, half_width);
    (format!("{value:.places$}"), format!("±{half_width:.places$}"))
}

/// `value` to at least three digits.
#[must_use]
pub fn plain(value: f64) -> String {
    let places = places(value, 0.0);
    format!("{value:.places$}")
}

/// A size in bytes, in `K`, `M` or `G` where that is exact.
#[must_use]
pub fn bytes(size: u64) -> String {
    let units = [(30, 'G'), (20, 'M'), (10, 'K')];
    let exact = |shift: u32| size >> shift > 0 && size.trailing_zeros() >= shift;
    match units.into_iter().find(|(shift, _)| exact(*shift)) {
        Some((shift, unit)) => format!("{}{unit}", size >> shift),
        None => size.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(value: f64, low: f64, high: f64) -> String {
        let (value, width) = with_interval(value, low, high);
        format!("{value} {width}")
    }

    #[test]
    fn a_value_has_as_many_digits_as_its_interval_supports() {
        assert_eq!(both(12.3456, 12.2, 12.5), "12.35 ±0.15");
        assert_eq!(both(0.081_234, 0.0808, 0.0816), "0.08123 ±0.00043");
        assert_eq!(both(1_234.5, 1_200.0, 1_250.0), "1234 ±34");
        assert_eq!(both(3.0, 1.0, 4.0), "3.00 ±2.00");
    }

    #[test]
    fn there_are_at_least_three_digits_and_at_most_the_picoseconds() {
        assert_eq!(both(1.0, 1.0, 1.0), "1.00 ±0.00");
        assert_eq!(both(0.0, 0.0, 0.0), "0.00 ±0.00");
        assert_eq!(both(-0.001_5, -0.001_5, -0.001_5), "-0.00150 ±0.00000");
        assert_eq!(both(1e-9, 0.0, 2e-9), "0.0000000 ±0.0000000");
        assert_eq!(plain(0.0456), "0.0456");
        assert_eq!(plain(83.21), "83.2");
    }

    #[test]
    fn sizes_are_short_where_that_is_exact() {
        assert_eq!(bytes(0), "0");
        assert_eq!(bytes(1_023), "1023");
        assert_eq!(bytes(4_096), "4K");
        assert_eq!(bytes(4_097), "4097");
        assert_eq!(bytes(3 << 20), "3M");
        assert_eq!(bytes(1 << 30), "1G");
    }
}
