//! Random parameters from the confidence intervals of a profile.
//!
//! Each parameter is normally distributed about its measured value; its interval covers the share
//! of the distribution that the profile's confidence level states. A line (o_s, o_r, g with their
//! values per byte) is drawn at its centre, the size where it is known best, and its slope
//! independently of that, because the fit makes the two independent there ([`SizeLine`]); L is
//! independent of all lines. Half the round trip is drawn in place of an L that overheads hide. An interval's longer side counts, because measured intervals are cut
//! off at 0. Negative draws are repeated, which truncates the distribution. Ranges keep their sizes
//! and order.

use loggap_core::model::{Coefficient, Curve, Estimate, Parameter, Range, SizeLine};
use loggap_core::random::Random;
use loggap_core::stats::Confidence;
use loggap_core::units::{Bytes, Picos, SignedPerByte, SignedPicos};

use super::{ProfileDocument, SizeSpan};

/// Consecutive negative draws after which the measured value is kept.
const TRIES: u32 = 1_000;

/// Curves whose lines are drawn.
const LINES: [Curve; 3] = [Curve::Gap, Curve::SendOverhead, Curve::RecvOverhead];

/// The distribution of a profile's parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileDraws {
    ranges: Vec<Range>,
    /// Half width of an interval in standard deviations.
    half_interval: f64,
}

/// Error: an unbounded interval has no distribution to draw from.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{span}: the interval of {parameter} has no end; measure for longer")]
pub struct NoInterval {
    /// Sizes of the range.
    pub span: SizeSpan,
    /// Parameter whose interval is unbounded.
    pub parameter: Parameter,
}

impl ProfileDraws {
    /// Distribution of `document`'s parameters; its intervals count as 95% intervals if it states
    /// no confidence.
    ///
    /// # Errors
    ///
    /// [`NoInterval`] names the first parameter that cannot be drawn.
    pub fn new(document: &ProfileDocument) -> Result<Self, NoInterval> {
        let ranges: Vec<Range> = document.ranges.iter().map(|record| record.range).collect();
        for range in &ranges {
            let refused = |parameter| NoInterval { span: SizeSpan::of(range), parameter };
            let is_unbounded =
                |curve: &Curve| range.line(*curve).is_some_and(|line| !is_bounded(line));
            if let Some(curve) = LINES.into_iter().find(is_unbounded) {
                return Err(refused(curve.parameter()));
            }
            if range.latency.is_some_and(|of| !is_finite(of.low.0, of.high.0)) {
                return Err(refused(Parameter::Latency));
            }
        }
        Ok(Self { ranges, half_interval: confidence(document).normal() })
    }

    /// Draws one set of parameters.
    #[must_use]
    pub fn draw(&self, random: &mut Random) -> Vec<Range> {
        let mut normal = Normal { random, half_interval: self.half_interval };
        let mut drawn = self.ranges.clone();
        for range in &mut drawn {
            // Where overheads hide L, half the round trip is what a message takes.
            let is_hidden = range.latency.is_none_or(|latency| latency.value.0 <= 0)
                && range.half_rtt.as_ref().is_some_and(is_bounded);
            if is_hidden {
                range.half_rtt = normal.line(range, Curve::HalfRtt);
            } else {
                range.latency = normal.latency(range);
            }
            range.send_overhead = normal.line(range, Curve::SendOverhead);
            range.recv_overhead = normal.line(range, Curve::RecvOverhead);
            range.gap = normal.line(range, Curve::Gap).unwrap_or(range.gap);
        }
        drawn
    }

    /// True if all intervals have zero width, so that every draw equals the measured values.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        let exact = |line: &SizeLine| {
            line.centre_half_width == Picos::ZERO && line.per_byte.low == line.per_byte.high
        };
        self.ranges.iter().all(|range| {
            LINES.into_iter().filter_map(|curve| range.line(curve)).all(exact)
                && range.latency.is_none_or(|latency| latency.low == latency.high)
        })
    }
}

/// Confidence level of the intervals of `document`.
pub(crate) fn confidence(document: &ProfileDocument) -> Confidence {
    Confidence::from_percent(document.requested.confidence_percent).unwrap_or_default()
}

const fn is_finite(low: i64, high: i64) -> bool {
    low > i64::MIN && high < i64::MAX
}

/// Length of the longer side of the interval of `coefficient`; 0 if it was not measured.
fn longer_side(range: &Range, coefficient: Coefficient) -> u64 {
    let side = |found: Estimate<i64>| {
        found.value.abs_diff(found.low).max(found.high.abs_diff(found.value))
    };
    range.estimate(coefficient).map_or(0, side)
}

fn is_bounded(line: &SizeLine) -> bool {
    line.centre_half_width.0 < i64::MAX.cast_unsigned()
        && is_finite(line.per_byte.low.0, line.per_byte.high.0)
}

/// Source of normally distributed deviations.
struct Normal<'a> {
    random: &'a mut Random,
    half_interval: f64,
}

impl Normal<'_> {
    /// Random deviation for an interval of half width `half`.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "a random number needs no more digits than a double has, and saturates"
    )]
    fn deviation(&mut self, half: u64) -> i64 {
        (self.random.normal() * (half as f64 / self.half_interval)).round() as i64
    }

    /// Draws a latency. A negative measured one is kept: it counts as 0 in a simulation.
    fn latency(&mut self, range: &Range) -> Option<Estimate<SignedPicos>> {
        let measured = range.latency?;
        let value = measured.value;
        let half = longer_side(range, Coefficient::Latency);
        let mut again = (0..TRIES).map(|_| {
            let drawn = value.0.saturating_add(self.deviation(half));
            Estimate { value: SignedPicos(drawn), ..measured }
        });
        let drawn = again.find(|drawn| value.0 >= 0 && drawn.value.0 >= 0);
        Some(drawn.unwrap_or(measured))
    }

    /// Draws a line that is non-negative wherever the measured line is. A negative measured slope
    /// is kept.
    fn line(&mut self, range: &Range, curve: Curve) -> Option<SizeLine> {
        let measured = range.line(curve)?;
        let slope = measured.per_byte;
        let side = longer_side(range, Coefficient::PerByte(curve));
        let slope_half = if slope.value.0 < 0 { 0 } else { side };
        let middle = Bytes(range.first.0.midpoint(range.last.0));
        let place = if measured.at(range.first).0 < 0 { middle } else { range.first };
        let mut again = (0..TRIES).map(|_| {
            let at_centre = self.deviation(measured.centre_half_width.0);
            let per_byte = self.deviation(slope_half);
            let mut drawn = *measured;
            drawn.at_centre.0 = drawn.at_centre.0.saturating_add(at_centre);
            drawn.per_byte.value = SignedPerByte(slope.value.0.saturating_add(per_byte));
            drawn
        });
        let fits = |drawn: &SizeLine| {
            let falls = drawn.per_byte.value.0 < 0 && slope.value.0 >= 0;
            drawn.at(place).0 >= 0 && drawn.at(middle).0 >= 0 && !falls
        };
        let drawn = again.find(fits).unwrap_or(*measured);
        // As in the fit, a line is at least 0 at size 1.
        let at_one = SignedPicos(drawn.at(Bytes(1)).0.max(0));
        Some(SizeLine { at_one: Estimate { value: at_one, ..drawn.at_one }, ..drawn })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::ParameterSets;
    use loggap_core::sim::Rendezvous;

    const PROFILE: &str = r#"{"schema_version":1,"ranges":[
        {"first_bytes":1,"last_bytes":1000,"latency_s":2e-6,"latency_s_lo":1e-6,"latency_s_hi":3e-6,
         "send_overhead_s":1e-6,"send_overhead_s_lo":0.9e-6,"send_overhead_s_hi":1.1e-6,
         "send_overhead_per_byte_s":1e-9,"recv_overhead_s":1e-6,"recv_overhead_per_byte_s":1e-9,
         "gap_s":1e-6,"gap_per_byte_s":1e-9,"gap_per_byte_s_lo":-3e-9,"gap_per_byte_s_hi":5e-9},
        {"first_bytes":1001,"last_bytes":9000,"latency_s":1e-7,"latency_s_lo":-2e-6,
         "latency_s_hi":2.2e-6,"send_overhead_s":1e-6,"recv_overhead_s":2e-6,
         "send_overhead_per_byte_s":0,"recv_overhead_per_byte_s":0,
         "gap_s":0,"gap_s_lo":-5e-6,"gap_s_hi":5e-6,"gap_per_byte_s":1e-9}]}"#;

    fn document() -> ProfileDocument {
        ProfileDocument::parse(PROFILE.as_bytes()).unwrap()
    }

    #[test]
    fn every_draw_is_a_parameter_set_and_none_is_negative() {
        let draws = ProfileDraws::new(&document()).unwrap();
        let mut random = Random::new(5);
        for _ in 0..2_000 {
            let drawn = draws.draw(&mut random);
            assert!(drawn.iter().all(|range| range.latency.unwrap().value.0 >= 0));
            assert!(drawn.iter().all(|range| range.gap.per_byte.value.0 >= 0));
            assert!(drawn.iter().all(|range| range.gap.at(range.first).0 >= 0));
            let sets =
                ParameterSets::of_ranges(&drawn, Bytes(65_535), Rendezvous::Instant).unwrap();
            assert!(sets.parameters().is_ok());
        }
    }

    /// Without a positive L, a message takes the half of the round trip that was drawn.
    #[test]
    fn a_hidden_latency_has_the_interval_of_half_the_round_trip() {
        let text = r#"{"schema_version":1,"ranges":[{"first_bytes":1,"last_bytes":1000,
            "half_rtt_s":2e-7,"half_rtt_s_lo":1.4e-7,"half_rtt_s_hi":2.6e-7,"half_rtt_per_byte_s":0,
            "half_rtt_per_byte_s_lo":0,"half_rtt_per_byte_s_hi":0,
            "send_overhead_s":2e-7,"send_overhead_per_byte_s":0,
            "recv_overhead_s":2e-7,"recv_overhead_per_byte_s":0,
            "gap_s":1e-7,"gap_per_byte_s":0}]}"#;
        let draws = ProfileDraws::new(&ProfileDocument::parse(text.as_bytes()).unwrap()).unwrap();
        let mut random = Random::new(3);
        let one_way = |_| {
            let drawn = draws.draw(&mut random);
            let (set, receive) = drawn[0].loggops_apart(Bytes(65_535)).unwrap();
            set.overhead.0 + set.latency.0 + receive.overhead.0
        };
        let all: Vec<u64> = (0..1_000).map(one_way).collect();
        let inside = all.iter().filter(|time| (140_000..=260_000).contains(*time)).count();
        assert!((930..=970).contains(&inside), "{inside}");
    }

    #[test]
    fn the_interval_holds_95_percent_of_the_draws_about_the_value() {
        let draws = ProfileDraws::new(&document()).unwrap();
        let mut random = Random::new(8);
        let (mut inside, mut below, mut sum) = (0, 0, 0);
        for _ in 0..10_000 {
            let drawn = draws.draw(&mut random);
            let latency = drawn[0].latency.unwrap().value.0;
            inside += u32::from((1_000_000..=3_000_000).contains(&latency));
            below += u32::from(latency < 2_000_000);
            sum += drawn[0].send_overhead.unwrap().at(Bytes(1)).0;
        }
        // Standard deviations: 22, 50, and 510 ps of the mean.
        assert!((9_400..9_600).contains(&inside), "{inside}");
        assert!((4_800..5_200).contains(&below), "{below}");
        assert!((sum / 10_000 - 1_000_000).abs() < 2_500, "{sum}");
    }

    #[test]
    fn a_drawn_line_varies_at_each_size_as_its_interval_says() {
        let mut document = document();
        let line = SizeLine {
            at_one: Estimate::exact(SignedPicos(1_000_000)),
            per_byte: Estimate {
                value: SignedPerByte(1_000 << 16),
                low: SignedPerByte(900 << 16),
                high: SignedPerByte(1_100 << 16),
                ..Estimate::default()
            },
            centre: Bytes(501),
            at_centre: SignedPicos(1_500_000),
            centre_half_width: Picos(30_000),
            scatter_ppm: 0,
        };
        document.ranges[0].range.gap = line;
        let draws = ProfileDraws::new(&document).unwrap();
        let mut random = Random::new(9);
        let mut inside = [0; 3];
        for _ in 0..10_000 {
            let drawn = draws.draw(&mut random)[0].gap;
            for (inside, size) in inside.iter_mut().zip([1, 501, 1_000].map(Bytes)) {
                let off = drawn.at(size).0.abs_diff(line.at(size).0);
                *inside += u32::from(off <= line.half_width(size).0);
            }
        }
        assert!(inside.iter().all(|inside| (9_400..9_600).contains(inside)), "{inside:?}");
    }

    /// L of each range, and each line's value at its centre and slope. Their intervals do not
    /// reach 0.
    fn every_parameter(ranges: &[Range]) -> Vec<i64> {
        let lines =
            |range: &Range| [range.send_overhead.unwrap(), range.recv_overhead.unwrap(), range.gap];
        let of = |range: &Range| {
            let lines = lines(range).into_iter();
            let of_line = |line: SizeLine| [line.at_centre.0, line.per_byte.value.0];
            std::iter::once(range.latency.unwrap().value.0).chain(lines.flat_map(of_line))
        };
        ranges.iter().flat_map(of).collect::<Vec<_>>()
    }

    /// Drawn parameters are uncorrelated, and each is distributed as its interval says.
    #[test]
    fn parameters_are_drawn_independently_each_from_its_interval() {
        const DRAWS: u32 = 10_000;
        let estimate = |value: i64| Estimate {
            value: SignedPicos(value),
            low: SignedPicos(value * 9 / 10),
            high: SignedPicos(value * 11 / 10),
            ..Estimate::default()
        };
        let line = |value: i64| SizeLine {
            at_one: estimate(value),
            per_byte: Estimate {
                value: SignedPerByte(value << 6),
                low: SignedPerByte((value << 6) * 9 / 10),
                high: SignedPerByte((value << 6) * 11 / 10),
                ..Estimate::default()
            },
            centre: Bytes(501),
            at_centre: SignedPicos(value),
            centre_half_width: Picos(value.cast_unsigned() / 10),
            scatter_ppm: 0,
        };
        let mut document = document();
        for record in &mut document.ranges {
            let range = &mut record.range;
            range.latency = Some(estimate(2_000_000));
            (range.send_overhead, range.recv_overhead) =
                (Some(line(3_000_000)), Some(line(4_000_000)));
            range.gap = line(5_000_000);
        }
        let draws = ProfileDraws::new(&document).unwrap();
        let measured = every_parameter(&draws.ranges);
        let mut random = Random::new(12);
        let count = measured.len();
        assert_eq!(count, 14);
        let (mut inside, mut products) = (vec![0; count], vec![0.0; count * count]);
        for _ in 0..DRAWS {
            let drawn = every_parameter(&draws.draw(&mut random));
            // Deviations in units of the half width.
            let off = drawn
                .iter()
                .zip(&measured)
                .map(|(&drawn, &value)| (drawn - value) as f64 / (value / 10) as f64);
            let off: Vec<f64> = off.collect();
            for (a, one) in off.iter().enumerate() {
                inside[a] += u32::from(one.abs() <= 1.0);
                for (b, other) in off.iter().enumerate() {
                    products[a * count + b] += one * other / f64::from(DRAWS);
                }
            }
        }
        // The 91 correlations have a standard deviation of 0.01 each.
        assert!(inside.iter().all(|inside| (9_400..9_600).contains(inside)), "{inside:?}");
        let variance = 1.959_964f64.powi(-2);
        for a in 0..count {
            for b in 0..a {
                let correlation = products[a * count + b] / variance;
                assert!(correlation.abs() < 0.045, "{a} and {b}: {correlation}");
            }
        }
    }

    #[test]
    fn intervals_without_width_give_what_was_measured() {
        let mut document = document();
        for record in &mut document.ranges {
            let range = &mut record.range;
            for line in [Some(&mut range.gap), range.send_overhead.as_mut()].into_iter().flatten() {
                line.centre_half_width = Picos::ZERO;
                line.per_byte = Estimate::exact(line.per_byte.value);
            }
            range.latency = range.latency.map(|latency| Estimate::exact(latency.value));
        }
        let draws = ProfileDraws::new(&document).unwrap();
        assert!(draws.is_exact());
        let measured: Vec<Range> = document.ranges.iter().map(|record| record.range).collect();
        assert_eq!(draws.draw(&mut Random::new(1)), measured);
        assert!(!ProfileDraws::new(&self::document()).unwrap().is_exact());
    }

    #[test]
    fn another_confidence_is_another_spread() {
        let mut narrow = document();
        narrow.requested.confidence_percent = 99.0;
        let spread = |document: &ProfileDocument| {
            let draws = ProfileDraws::new(document).unwrap();
            let latency = draws.draw(&mut Random::new(3))[0].latency.unwrap().value.0;
            (latency - 2_000_000) as f64
        };
        let ratio = spread(&narrow) / spread(&document());
        assert!((ratio - 1.959_964 / 2.575_829).abs() < 1e-4, "{ratio}");
    }

    #[test]
    fn an_interval_without_an_end_is_refused_by_name() {
        let text = PROFILE.replace(r#""latency_s_hi":3e-6"#, r#""latency_s_hi":null"#);
        let document = ProfileDocument::parse(text.as_bytes()).unwrap();
        let error = ProfileDraws::new(&document).unwrap_err();
        assert_eq!((error.span.first, error.parameter), (Bytes(1), Parameter::Latency));
        assert!(error.to_string().contains("the latency L has no end"), "{error}");
    }
}
