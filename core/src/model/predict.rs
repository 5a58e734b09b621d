//! Predictions from a profile, each with the interval in which its measurement is expected.

use core::fmt;

use super::line::hypotenuse;
use super::{Parameter, Profile, Prtt, Range, SizeLine};
use crate::units::{Bytes, Overflow, Picos};

/// A predicted time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Prediction {
    /// Best value.
    pub value: Picos,
    /// Lower end of the interval.
    pub low: Picos,
    /// Upper end of the interval.
    pub high: Picos,
}

/// Reasons why there is no prediction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PredictError {
    /// No range of the profile contains this size.
    OutsideProfile(Bytes),
    /// The prediction depends on this parameter, which was not measured.
    NotMeasured(Parameter),
    /// The round has no messages.
    NoMessages,
    /// The result exceeds 2⁶⁴ ps.
    Overflow,
}

impl fmt::Display for PredictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutsideProfile(size) => {
                write!(
                    f,
                    "the profile holds no range for {size}: measure with sizes that include it"
                )
            }
            Self::NotMeasured(parameter) => write!(f, "the profile does not hold {parameter}"),
            Self::NoMessages => f.write_str("a round needs at least one message"),
            Self::Overflow => Overflow.fmt(f),
        }
    }
}

impl core::error::Error for PredictError {}

impl From<Overflow> for PredictError {
    fn from(_: Overflow) -> Self {
        Self::Overflow
    }
}

/// A value and the half-width of its interval.
#[derive(Clone, Copy)]
struct Uncertain {
    value: Picos,
    half_width: Picos,
}

impl Uncertain {
    fn on(line: &SizeLine, size: Bytes) -> Self {
        let value = line.at(size).picos().unwrap_or_default();
        Self { value, half_width: line.point_half_width(size) }
    }

    fn plus(self, other: Self) -> Result<Self, Overflow> {
        let half_width = hypotenuse(self.half_width, other.half_width);
        Ok(Self { value: self.value.plus(other.value)?, half_width })
    }

    fn times(self, count: u64) -> Result<Self, Overflow> {
        let half_width = self.half_width.times(count)?;
        Ok(Self { value: self.value.times(count)?, half_width })
    }

    fn larger(self, other: Self) -> Self {
        if other.value > self.value { other } else { self }
    }

    fn prediction(self) -> Result<Prediction, Overflow> {
        let low = self.value.since(self.half_width);
        Ok(Prediction { value: self.value, low, high: self.value.plus(self.half_width)? })
    }
}

impl Range {
    /// `PRTT(n, d, s)` by Eq. 3, with the fitted round trip as `PRTT(1,0,s)`.
    fn prtt(&self, prtt: Prtt) -> Result<Prediction, PredictError> {
        let not_measured = PredictError::NotMeasured(Parameter::HalfRtt);
        let half_rtt = self.half_rtt.as_ref().ok_or(not_measured)?;
        let round_trip = Uncertain::on(half_rtt, prtt.size).times(2)?;
        let rest = prtt.messages.checked_sub(1).ok_or(PredictError::NoMessages)?;
        if rest == 0 {
            return Ok(round_trip.prediction()?);
        }
        let each = self.period(prtt)?;
        Ok(round_trip.plus(each.times(u64::from(rest))?)?.prediction()?)
    }

    /// `max{o_s + d, G_all}`.
    fn period(&self, prtt: Prtt) -> Result<Uncertain, PredictError> {
        let gap = Uncertain::on(&self.gap, prtt.size);
        let Some(send_overhead) = self.send_overhead.as_ref() else {
            let unpaced = prtt.delay == Picos::ZERO;
            return if unpaced {
                Ok(gap)
            } else {
                Err(PredictError::NotMeasured(Parameter::SendOverhead))
            };
        };
        let overhead = Uncertain::on(send_overhead, prtt.size);
        let delay = Uncertain { value: prtt.delay, half_width: Picos::ZERO };
        Ok(gap.larger(overhead.plus(delay)?))
    }
}

impl<const N: usize> Profile<N> {
    /// `PRTT(n, d, s)` by Eq. 3:
    /// `PRTT(1,0,s) + (n − 1)·max{o_s(s) + d, G_all(s)}`.
    ///
    /// The interval is that in which a measurement of the same round is expected: it includes the
    /// scatter of measured points about the fitted lines. Within the interval of a protocol change
    /// it covers both protocols.
    ///
    /// # Errors
    ///
    /// [`PredictError`] for sizes that no range contains, for parameters
    /// that were not measured and for results past 2⁶⁴ ps.
    pub fn predict_prtt(&self, prtt: Prtt) -> Result<Prediction, PredictError> {
        let range = self.range(prtt.size).ok_or(PredictError::OutsideProfile(prtt.size))?;
        self.with_alternative(prtt.size, range.prtt(prtt)?, |other| other.prtt(prtt))
    }

    /// End-to-end time of one message of `size` bytes, `PRTT(1,0,s)/2`.
    ///
    /// # Errors
    ///
    /// As [`Profile::predict_prtt`].
    pub fn predict_one_way(&self, size: Bytes) -> Result<Prediction, PredictError> {
        let round_trip = self.predict_prtt(Prtt { messages: 1, delay: Picos::ZERO, size })?;
        let half = |time: Picos| Picos(time.0 / 2);
        let Prediction { value, low, high } = round_trip;
        Ok(Prediction { value: half(value), low: half(low), high: half(high) })
    }

    /// Extends the interval of `prediction` to the other protocol's prediction if `size` may belong
    /// to either protocol.
    fn with_alternative(
        &self,
        size: Bytes,
        prediction: Prediction,
        other: impl Fn(&Range) -> Result<Prediction, PredictError>,
    ) -> Result<Prediction, PredictError> {
        let Some(range) = self.alternative(size) else { return Ok(prediction) };
        let other = other(range)?;
        let (low, high) = (prediction.low.min(other.low), prediction.high.max(other.high));
        Ok(Prediction { value: prediction.value, low, high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Change;
    use crate::units::{SignedPerByte, SignedPicos};

    fn line(at_one: i64, scatter_ppm: u32) -> SizeLine {
        let exact = SizeLine::exact(SignedPicos(at_one), SignedPerByte(1 << 16));
        SizeLine { scatter_ppm, ..exact }
    }

    fn range(first: u64, last: u64, gap: i64) -> Range {
        Range {
            first: Bytes(first),
            last: Bytes(last),
            gap: line(gap, 0),
            half_rtt: Some(line(1_000, 0)),
            send_overhead: Some(line(100, 0)),
            recv_overhead: None,
            latency: None,
        }
    }

    fn profile() -> Profile {
        let mut profile = Profile::default();
        profile.ranges.extend([range(1, 99, 300), range(100, 200, 500)]);
        let (at, low, high) = (Bytes(100), Bytes(99), Bytes(100));
        profile.changes.extend([Change { at, low, high, splits: true, ..Change::default() }]);
        profile
    }

    fn prtt(messages: u32, delay: u64, size: u64) -> Prtt {
        Prtt { messages, delay: Picos(delay), size: Bytes(size) }
    }

    fn value(prtt: Prtt) -> Result<u64, PredictError> {
        profile().predict_prtt(prtt).map(|prediction| prediction.value.0)
    }

    #[test]
    fn bursts_follow_the_gap_and_paced_rounds_the_overhead() {
        assert_eq!(value(prtt(1, 0, 11)), Ok(2_020));
        assert_eq!(value(prtt(5, 0, 11)), Ok(2_020 + 4 * 310));
        assert_eq!(value(prtt(5, 150, 11)), Ok(2_020 + 4 * 310));
        assert_eq!(value(prtt(5, 1_000, 11)), Ok(2_020 + 4 * 1_110));
        assert_eq!(value(prtt(5, 0, 111)), Ok(2_220 + 4 * 610));
    }

    #[test]
    fn one_message_pays_for_no_delay() {
        assert_eq!(value(prtt(1, 1_000_000, 11)), value(prtt(1, 0, 11)));
    }

    #[test]
    fn the_interval_grows_with_the_scatter_about_the_lines() -> Result<(), PredictError> {
        let mut scattered = profile();
        if let Some(range) = scattered.ranges.first_mut() {
            range.gap = line(300, 100_000);
        }
        let prediction = scattered.predict_prtt(prtt(5, 0, 11))?;
        assert_eq!((prediction.low, prediction.high), (Picos(3_260 - 124), Picos(3_260 + 124)));
        Ok(())
    }

    #[test]
    fn a_size_between_two_protocols_spans_both() -> Result<(), PredictError> {
        let prediction = profile().predict_prtt(prtt(2, 0, 99))?;
        assert_eq!(prediction.value, Picos(2_196 + 398));
        assert_eq!((prediction.low, prediction.high), (Picos(2_594), Picos(2_794)));
        Ok(())
    }

    #[test]
    fn what_cannot_be_predicted_is_named() {
        assert_eq!(value(prtt(2, 0, 201)), Err(PredictError::OutsideProfile(Bytes(201))));
        assert_eq!(value(prtt(0, 0, 1)), Err(PredictError::NoMessages));
        assert_eq!(value(prtt(u32::MAX, u64::MAX, 1)), Err(PredictError::Overflow));
        let mut gaps = profile();
        for range in &mut gaps.ranges {
            range.send_overhead = None;
        }
        let error = gaps.predict_prtt(prtt(2, 1, 1));
        assert_eq!(error, Err(PredictError::NotMeasured(Parameter::SendOverhead)));
    }
}
