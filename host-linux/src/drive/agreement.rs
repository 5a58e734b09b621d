//! Comparison of the three methods at one size, like with like.

use loggap_core::measure::{Signature, SizeRow};
use loggap_core::model::{Coefficient, Estimate, Parameter};
use loggap_core::units::SignedPicos;

use super::Method;
use crate::output::number::{self, TIME};
use crate::profile::{Agreement, MethodRecord, PlogpSize, to_si};

/// Relative difference up to which half round trips agree in any case.
const SAME_ROUND_TRIP: f64 = 0.05;
/// Relative difference up to which other parameters agree in any case: costs of clock readings and
/// of empty polls, which are subtracted, are not known better.
const SAME: f64 = 0.01;

/// Largest half width of an interval, relative to PRTT's value, for an overlap to count; of `L`, which is
/// a difference, relative to half a round trip.
const KNOWN: f64 = 0.25;

/// A value with its interval, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    value: f64,
    low: f64,
    high: f64,
}

impl Interval {
    /// `None` if an end is unbounded.
    fn of(estimate: &Estimate<SignedPicos>) -> Option<Self> {
        let seconds = |time: SignedPicos| to_si(time.0, Coefficient::Latency);
        let Estimate { value, low, high, .. } = *estimate;
        Some(Self { value: seconds(value)?, low: seconds(low)?, high: seconds(high)? })
    }

    fn half(self) -> Self {
        Self { value: self.value / 2.0, low: self.low / 2.0, high: self.high / 2.0 }
    }

    /// Sum of independent values.
    fn plus(self, other: Self) -> Self {
        let value = self.value + other.value;
        let below = (self.value - self.low).hypot(other.value - other.low);
        let above = (self.high - self.value).hypot(other.high - other.value);
        Self { value, low: value - below, high: value + above }
    }

    fn minus(self, other: Self) -> Self {
        self.plus(Self { value: -other.value, low: -other.high, high: -other.low })
    }

    /// True if the interval is narrow enough beside `scale` that an overlap with another one means
    /// something.
    fn is_known(self, scale: f64) -> bool {
        (self.high - self.low) / 2.0 <= KNOWN * scale
    }

    fn overlaps(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// Values of one method.
#[derive(Clone, Copy, Debug, Default)]
struct Values {
    half_rtt: Option<Interval>,
    send_overhead: Option<Interval>,
    recv_overhead: Option<Interval>,
    gap: Option<Interval>,
}

impl Values {
    /// PRTT's measured values, not those of the lines through all sizes.
    fn of_prtt(row: &SizeRow) -> Self {
        Self {
            half_rtt: row.half_rtt.as_ref().and_then(Interval::of),
            send_overhead: row.send_overhead.as_ref().and_then(Interval::of),
            recv_overhead: row.recv_overhead.as_ref().and_then(Interval::of),
            gap: row.gap.as_ref().and_then(Interval::of),
        }
    }

    fn of_signature(found: &Signature) -> Self {
        Self {
            half_rtt: Interval::of(&found.round_trip).map(Interval::half),
            send_overhead: Interval::of(&found.send_overhead),
            recv_overhead: found.recv_overhead.as_ref().and_then(Interval::of),
            gap: found.gap.as_ref().and_then(Interval::of),
        }
    }

    /// Values of pLogP at `size`. Half its round trip is `L + g`, of a byte `RTT/2`, since sizes 0
    /// and 1 are the same message.
    fn of_plogp(sizes: &[PlogpSize], size: u64) -> Self {
        let Some(PlogpSize { row, .. }) = sizes.iter().find(|one| one.row.size == size_of(size))
        else {
            return Self::default();
        };
        let round_trip = Interval::of(&row.round_trip);
        let of_zero = sizes.first().and_then(|zero| Interval::of(&zero.row.round_trip));
        Self {
            half_rtt: if size == 1 {
                round_trip.map(Interval::half)
            } else {
                round_trip.zip(of_zero).map(|(whole, zero)| whole.minus(zero.half()))
            },
            send_overhead: Interval::of(&row.send_overhead),
            recv_overhead: Interval::of(&row.recv_overhead),
            gap: Interval::of(&row.gap),
        }
    }

    /// `L = RTT/2 − o_s − o_r`.
    fn latency(&self) -> Option<Interval> {
        Some(self.half_rtt?.minus(self.send_overhead?).minus(self.recv_overhead?))
    }

    fn get(&self, parameter: Parameter) -> Option<Interval> {
        match parameter {
            Parameter::HalfRtt => self.half_rtt,
            Parameter::Latency => self.latency(),
            Parameter::SendOverhead => self.send_overhead,
            Parameter::RecvOverhead => self.recv_overhead,
            Parameter::Gap => self.gap,
        }
    }
}

/// Size in bytes, saturating.
fn size_of(size: u64) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

/// The methods' values at the size of `prtt`, each compared with PRTT's.
pub(super) fn compared(
    prtt: &SizeRow,
    signature: Option<&Signature>,
    plogp: &[PlogpSize],
) -> Vec<MethodRecord> {
    let reference = Values::of_prtt(prtt);
    let signature = signature.filter(|found| found.size == size_of(prtt.size.0));
    let methods = [
        (Method::Prtt, reference),
        (Method::Signature, signature.map(Values::of_signature).unwrap_or_default()),
        (Method::Plogp, Values::of_plogp(plogp, prtt.size.0)),
    ];
    let parameters = [
        Parameter::HalfRtt,
        Parameter::Latency,
        Parameter::SendOverhead,
        Parameter::RecvOverhead,
        Parameter::Gap,
    ];
    let of = |parameter: Parameter| {
        methods.map(|(method, values)| {
            let value = values.get(parameter);
            let known = reference.get(parameter);
            let scale = if parameter == Parameter::Latency { reference.half_rtt } else { known };
            let scale = scale.map_or(0.0, |scale| scale.value.abs());
            let (verdict, reason) = judged(method, parameter, value, known, scale);
            MethodRecord {
                method: method.name().to_owned(),
                parameter: parameter.key().to_owned(),
                value: value.map(|found| found.value),
                lo: value.map(|found| found.low),
                hi: value.map(|found| found.high),
                verdict,
                reason,
            }
        })
    };
    parameters.into_iter().flat_map(of).collect()
}

/// Comparison of a method's value with that of PRTT, and the reason for it.
fn judged(
    method: Method,
    parameter: Parameter,
    value: Option<Interval>,
    prtt: Option<Interval>,
    scale: f64,
) -> (Agreement, Option<String>) {
    let Some(value) = value else {
        return (Agreement::Unknown, Some(missing(method, parameter).to_owned()));
    };
    let Some(prtt) = prtt else {
        return (Agreement::Unknown, Some("PRTT has no interval to compare with".to_owned()));
    };
    let same = if parameter == Parameter::HalfRtt { SAME_ROUND_TRIP } else { SAME };
    let is_close = (value.value - prtt.value).abs() <= same * prtt.value;
    let is_both_ways = (method, parameter) == (Method::Signature, Parameter::Gap);
    let is_known = value.is_known(scale) && prtt.is_known(scale);
    match (value.overlaps(prtt) || is_close, is_both_ways) {
        (true, true) => (Agreement::Unknown, Some(BOTH_WAYS.to_owned())),
        (true, false) if !is_known => (Agreement::Unknown, Some(WIDE.to_owned())),
        (true, false) => (Agreement::Agrees, None),
        (false, _) => {
            let difference = difference(value.value, prtt.value);
            let reason = format!("{difference}: {}", cause(method, parameter));
            (Agreement::Differs, Some(reason))
        }
    }
}

/// Difference of `value` from `prtt`, as a share where that is positive.
fn difference(value: f64, prtt: f64) -> String {
    if prtt > 0.0 {
        number::signed_percent((value - prtt) / prtt)
    } else {
        let sign = if value > prtt { "+" } else { "" };
        format!("{sign}{}", number::in_units(value - prtt, TIME))
    }
}

/// Reason for which a value or its interval is missing.
const fn missing(method: Method, parameter: Parameter) -> &'static str {
    match (method, parameter) {
        (Method::Signature, Parameter::RecvOverhead | Parameter::Latency) => {
            "fewer than three delays are beyond the sender's idle time"
        }
        (Method::Signature, Parameter::Gap) => "its curve is not flat at its end",
        _ => "too few timings for an interval",
    }
}

/// Reason of an overlap that does not count.
const WIDE: &str = "an interval is too wide";

/// Cause for which the signature's gap is compared with none of one way.
const BOTH_WAYS: &str = "a gap both ways: a request and its reply share a processor";

/// Cause for which the value of `method` may differ from PRTT's.
const fn cause(method: Method, parameter: Parameter) -> &'static str {
    match (method, parameter) {
        (_, Parameter::Latency) => "L is what o_s and o_r leave of RTT/2",
        (Method::Signature, Parameter::SendOverhead) => {
            "requests are sent in a row, PRTT pauses after each message"
        }
        (Method::Signature, Parameter::RecvOverhead) => {
            "replies are received among sends, PRTT's after an idle time"
        }
        (Method::Signature, Parameter::Gap) => BOTH_WAYS,
        (_, Parameter::HalfRtt | Parameter::RecvOverhead) => {
            "repeated in a row, PRTT's rounds alternate with others"
        }
        (_, Parameter::SendOverhead) => {
            "a send call after a reply, PRTT's after a pause of the sender alone"
        }
        (_, Parameter::Gap) => "a flood fills the buffers that PRTT's short bursts fit into",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::fixtures::{plogp_rows, signature_record};
    use loggap_core::units::Bytes;

    fn time(nanos: i64, half: i64) -> Option<Estimate<SignedPicos>> {
        let [value, low, high] =
            [nanos, nanos - half, nanos + half].map(|end| SignedPicos(end * 1_000));
        Some(Estimate { value, low, high, ..Estimate::default() })
    }

    fn prtt() -> SizeRow {
        SizeRow {
            size: Bytes(1),
            half_rtt: time(10_000, 10),
            gap: time(2_000, 20),
            send_overhead: time(1_000, 20),
            recv_overhead: time(2_000, 20),
            ..SizeRow::default()
        }
    }

    fn signature() -> Signature {
        Signature {
            round_trip: time(20_800, 10).unwrap(),
            send_overhead: time(1_030, 20).unwrap(),
            recv_overhead: time(2_500, 20),
            gap: time(3_000, 20),
            ..signature_record().sizes[0].found
        }
    }

    fn plogp() -> Vec<PlogpSize> {
        let mut rows = plogp_rows();
        rows[1].row.size = 1;
        let row = &mut rows[1].row;
        row.round_trip = time(21_200, 10).unwrap();
        row.send_overhead = time(950, 40).unwrap();
        row.recv_overhead = time(2_000, 20).unwrap();
        row.gap = time(2_500, 20).unwrap();
        rows
    }

    fn verdict<'r>(records: &'r [MethodRecord], method: &str, parameter: &str) -> &'r MethodRecord {
        let is = |one: &&MethodRecord| (&*one.method, &*one.parameter) == (method, parameter);
        records.iter().find(is).unwrap()
    }

    #[test]
    fn each_parameter_of_each_method_is_compared_with_prtts() {
        let records = compared(&prtt(), Some(&signature()), &plogp());
        assert_eq!(records.len(), 15);
        let told = |method, parameter| {
            let found = verdict(&records, method, parameter);
            (found.verdict, found.reason.as_deref().unwrap_or(""))
        };
        let agrees = (Agreement::Agrees, "");
        assert!(records[..].iter().step_by(3).all(|one| one.verdict == Agreement::Agrees));
        // 4% beside intervals of 0.1%, and 6%.
        assert_eq!(told("signature", "half_rtt"), agrees);
        assert_eq!(
            told("plogp", "half_rtt"),
            (Agreement::Differs, "+6.0%: repeated in a row, PRTT's rounds alternate with others")
        );
        assert_eq!(told("signature", "send_overhead"), agrees);
        assert_eq!(told("plogp", "send_overhead"), agrees);
        assert_eq!(told("plogp", "recv_overhead"), agrees);
        let (verdict, reason) = told("signature", "recv_overhead");
        assert!(verdict == Agreement::Differs && reason.starts_with("+25%: replies"), "{reason}");
        let (verdict, reason) = told("plogp", "gap");
        assert!(verdict == Agreement::Differs && reason.starts_with("+25%: a flood"), "{reason}");
    }

    #[test]
    fn latencies_are_what_overheads_leave_of_half_round_trips() {
        let records = compared(&prtt(), Some(&signature()), &plogp());
        let near = |method, nanos: f64, half: f64| {
            let found = verdict(&records, method, "latency");
            let ends = [found.value, found.lo, found.hi].map(|end| end.unwrap() * 1e9);
            let expected = [nanos, nanos - half, nanos + half];
            assert!(ends.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.01), "{ends:?}");
        };
        near("prtt", 7_000.0, 30.0);
        near("signature", 6_870.0, (25.0_f64 + 400.0 + 400.0).sqrt());
        near("plogp", 7_650.0, (25.0_f64 + 1_600.0 + 400.0).sqrt());
        // RTT(64) - RTT(0)/2 beyond a byte: 12.5 us - 6 us.
        let (mut row, mut sizes) = (prtt(), plogp());
        (row.size, sizes[1].row.size) = (Bytes(64), 64);
        let [zero, of_64, ..] = &mut sizes[..] else { unreachable!("two rows") };
        (zero.row.round_trip, of_64.row.round_trip) =
            (time(12_000, 20).unwrap(), time(12_500, 10).unwrap());
        let of_64 = compared(&row, None, &sizes);
        let found = verdict(&of_64, "plogp", "half_rtt").value.unwrap();
        assert!((found - 6.5e-6).abs() < 1e-12, "{found}");
    }

    #[test]
    fn a_gap_both_ways_agrees_with_none_of_one_way() {
        let of = |gap| {
            let records = compared(&prtt(), Some(&Signature { gap, ..signature() }), &[]);
            let found = verdict(&records, "signature", "gap").clone();
            (found.verdict, found.reason.unwrap())
        };
        assert_eq!(of(time(2_000, 20)), (Agreement::Unknown, BOTH_WAYS.to_owned()));
        assert_eq!(of(time(3_000, 20)), (Agreement::Differs, format!("+50%: {BOTH_WAYS}")));
        let (verdict, reason) = of(None);
        assert!(verdict == Agreement::Unknown && reason.contains("not flat"), "{reason}");
    }

    #[test]
    fn wide_intervals_agree_with_nothing() {
        let of = |half| {
            let found = Signature { recv_overhead: time(2_100, half), ..signature() };
            let records = compared(&prtt(), Some(&found), &[]);
            verdict(&records, "signature", "recv_overhead").verdict
        };
        assert_eq!([490, 510].map(of), [Agreement::Agrees, Agreement::Unknown]);
        let of = |half| {
            let row = SizeRow { recv_overhead: time(2_000, half), ..prtt() };
            let found = Signature { recv_overhead: time(2_100, 10), ..signature() };
            let records = compared(&row, Some(&found), &[]);
            ["recv_overhead", "latency"].map(|of| verdict(&records, "signature", of).verdict)
        };
        // L is known within 25% of half a round trip of 10 us.
        assert_eq!(of(490), [Agreement::Agrees, Agreement::Agrees]);
        assert_eq!(of(510), [Agreement::Unknown, Agreement::Agrees]);
    }

    #[test]
    fn a_value_without_an_interval_is_compared_with_nothing() {
        let unbounded = Estimate { low: SignedPicos(i64::MIN), ..time(1_000, 20).unwrap() };
        let row = SizeRow { send_overhead: Some(unbounded), ..prtt() };
        let records = compared(&row, Some(&signature()), &[]);
        for record in &records {
            let is_known = record.value.is_some() && record.verdict != Agreement::Unknown;
            let unknown = ["send_overhead", "latency"].contains(&&*record.parameter);
            assert_eq!(is_known, record.method != "plogp" && !unknown, "{record:?}");
        }
    }

    #[test]
    fn a_difference_from_nothing_is_a_time() {
        assert_eq!(difference(3e-6, -1e-6), "+4.00 us");
        assert_eq!(difference(-3e-6, -1e-6), "-2.00 us");
        assert_eq!(difference(0.9, 1.0), "-10%");
    }
}
