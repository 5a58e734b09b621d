//! A range's parameters beside their true values.

use loggap_core::measure::Truth;
use loggap_core::model::{Range, SizeLine};
use loggap_core::units::{PerByte, Picos};

/// The parameters' names, in the order of [`intervals`] and [`values`].
pub const PARAMETERS: [&str; 9] =
    ["g", "G", "o_s", "O_s", "o_r", "O_r", "RTT/2", "RTT/2 a byte", "L"];

/// Low, value and high of every parameter, in ps.
pub fn intervals(range: &Range) -> [Option<(f64, f64, f64)>; 9] {
    let fraction = (1_u64 << PerByte::FRACTION_BITS) as f64;
    let at_one = |line: Option<&SizeLine>| {
        let estimate = line?.at_one;
        Some((estimate.low.0 as f64, estimate.value.0 as f64, estimate.high.0 as f64))
    };
    let slope = |line: Option<&SizeLine>| {
        let estimate = line?.per_byte;
        let scaled = |value: i64| value as f64 / fraction;
        Some((scaled(estimate.low.0), scaled(estimate.value.0), scaled(estimate.high.0)))
    };
    let latency = range
        .latency
        .map(|estimate| (estimate.low.0 as f64, estimate.value.0 as f64, estimate.high.0 as f64));
    let (gap, half_rtt) = (Some(&range.gap), range.half_rtt.as_ref());
    let (send, recv) = (range.send_overhead.as_ref(), range.recv_overhead.as_ref());
    [
        at_one(gap),
        slope(gap),
        at_one(send),
        slope(send),
        at_one(recv),
        slope(recv),
        at_one(half_rtt),
        slope(half_rtt),
        latency,
    ]
}

/// The true values, in the same order and unit.
pub fn values(truth: &Truth) -> [f64; 9] {
    let fraction = (1_u64 << PerByte::FRACTION_BITS) as f64;
    let time = |picos: Picos| picos.0 as f64;
    let slope = |per_byte: PerByte| per_byte.0 as f64 / fraction;
    let (send, recv) = (slope(truth.send_overhead_per_byte), slope(truth.recv_overhead_per_byte));
    [
        time(truth.gap),
        slope(truth.gap_per_byte),
        time(truth.send_overhead),
        send,
        time(truth.recv_overhead),
        recv,
        time(truth.latency) + time(truth.send_overhead) + time(truth.recv_overhead),
        slope(truth.gap_per_byte) + send + recv,
        time(truth.latency),
    ]
}
