//! Links and kinds of noise to measure.

use loggap_core::measure::{
    Bend, Bursts, Correlation, Disturbance, Drift, RoundNoise, Truth, TwoSpeeds,
};
use loggap_core::units::{PerByte, Picos};

use super::Noise;

const MILLI: u64 = 1_000_000_000;

/// A link to measure.
#[derive(Clone, Debug)]
pub struct Link {
    /// What it is like.
    pub name: &'static str,
    /// Protocols by ascending first size.
    pub truths: Vec<Truth>,
    /// How its gap bends.
    pub bend: Bend,
}

/// A protocol from a size on, with a gap in ps and ps a byte.
pub fn truth(first_size: u32, gap: u64, gap_per_byte: u64) -> Truth {
    Truth {
        first_size,
        latency: Picos(5_000_000),
        send_overhead: Picos(700_000),
        send_overhead_per_byte: PerByte(10 << 16),
        recv_overhead: Picos(900_000),
        recv_overhead_per_byte: PerByte(8 << 16),
        gap: Picos(gap),
        gap_per_byte: PerByte(gap_per_byte << 16),
    }
}

/// Links of one protocol, of two, and with a gap that bends.
pub fn links() -> [Link; 3] {
    let (small, large) = (truth(1, 1_500_000, 80), truth(4_097, 6_000_000, 60));
    let bend = Bend { first: 1_024, last: 32_768, per_byte: PerByte(80 << 16) };
    [
        Link { name: "one protocol", truths: vec![small], bend: Bend::default() },
        Link { name: "two protocols", truths: vec![small, large], bend: Bend::default() },
        Link { name: "bending gap", truths: vec![small], bend },
    ]
}

/// Kinds of noise that real links have.
pub fn noises() -> Vec<(&'static str, Noise)> {
    let none = RoundNoise::default();
    let of_rounds = |rounds| Noise { rounds, ..Noise::default() };
    let calls = Disturbance { noise: 0.05, outliers: 0.02, ..Disturbance::default() };
    let drift = |amplitude, millis| Drift { amplitude, period: Picos(millis * MILLI) };
    let correlation =
        |deviation, millis| Correlation { deviation, time_constant: Picos(millis * MILLI) };
    let two_speeds = TwoSpeeds { share: 0.3, factor: 1.25 };
    let bursts = Bursts { interval: Picos(490 * MILLI), length: Picos(10 * MILLI), factor: 5.0 };
    vec![
        ("normal 5% a call, 2% outliers", Noise { calls, ..Noise::default() }),
        ("lognormal 10%", of_rounds(RoundNoise { skew: 0.1, ..none })),
        ("lognormal 40%", of_rounds(RoundNoise { skew: 0.4, ..none })),
        ("two speeds, 30% 1.25 times", of_rounds(RoundNoise { skew: 0.03, two_speeds, ..none })),
        (
            "drift 10% in 0.5 s",
            of_rounds(RoundNoise { skew: 0.05, drift: drift(0.1, 500), ..none }),
        ),
        (
            "drift 10% in 5 s",
            of_rounds(RoundNoise { skew: 0.05, drift: drift(0.1, 5_000), ..none }),
        ),
        (
            "correlated 10% over 1 ms",
            of_rounds(RoundNoise { skew: 0.05, correlation: correlation(0.1, 1), ..none }),
        ),
        (
            "correlated 10% over 30 ms",
            of_rounds(RoundNoise { skew: 0.05, correlation: correlation(0.1, 30), ..none }),
        ),
        ("bursts of 10 ms, 5 times", of_rounds(RoundNoise { skew: 0.05, bursts, ..none })),
        (
            "skewed, correlated, drifting",
            of_rounds(RoundNoise {
                skew: 0.08,
                correlation: correlation(0.05, 10),
                drift: drift(0.05, 700),
                ..none
            }),
        ),
    ]
}
