//! Checks of units, random numbers, statistics and models.

use super::{Vector, digest};
use crate::model::{ClosedForm, Estimate, LogGops, Profile, Prtt, Range, SizeLine, compact};
use crate::random::Random;
use crate::stats::{Confidence, Sorted};
use crate::units::{Bytes, PerByte, Picos, SignedPerByte, SignedPicos};

pub(super) const VECTORS: &[Vector] = &[
    // 1023 · 40 ps.
    Vector {
        name: "units: 1023 bytes at 40 ps each",
        compute: || PerByte::from_picos(40)?.times(Bytes(1_023)).ok().map(|time| time.0),
        answer: 40_920,
    },
    // 0x123456789ab·(2^32 − 1)/2^16, rounded down.
    Vector {
        name: "units: a product that passes 64 bits",
        compute: || PerByte(0x0123_4567_89ab).times(Bytes(0xffff_ffff)).ok().map(|time| time.0),
        answer: 81_985_529_197_345_432,
    },
    Vector {
        name: "units: an overflow is noticed",
        compute: || Some(u64::from(Picos::MAX.plus(Picos(1)).is_err())),
        answer: 1,
    },
    // The first output for seed 0 in Vigna's reference implementation.
    Vector {
        name: "random: the first 64 bits of SplitMix64",
        compute: || Some(Random::new(0).draw()),
        answer: 0xe220_a839_7b1d_cdaf,
    },
    Vector { name: "stats: the median of nine values", compute: median, answer: 50 },
    // Order statistics 2 and 8 of nine: binomial(9, 1/2) gives 96.1% between them.
    Vector { name: "stats: its interval at 95 percent", compute: interval, answer: 20_080 },
    // 2·(5 + 1 + 2 + 99·0.003) µs + 9·max{1, 1.5 + 0.297} µs.
    Vector {
        name: "model: PRTT(10,0,100) by equation 3",
        compute: prtt,
        answer: 2 * 8_297_000 + 9 * 1_797_000,
    },
    // (2o + L + 1023·G)·6.
    Vector {
        name: "model: a binomial tree of 64 ranks",
        compute: || ClosedForm::BinomialTree.time(&SET, 64, Bytes(1_024)).ok().map(|time| time.0),
        answer: 6 * (2 * 1_500_000 + 2_500_000 + 1_023 * 6_000),
    },
    Vector { name: "model: a profile survives its encoding", compute: encoded, answer: 1 },
];

/// LogGOPSim's defaults.
pub(super) const SET: LogGops = LogGops {
    latency: Picos(2_500_000),
    overhead: Picos(1_500_000),
    gap: Picos(1_000_000),
    gap_per_byte: PerByte(6_000 << PerByte::FRACTION_BITS),
    overhead_per_byte: PerByte::ZERO,
    eager_limit: Bytes(65_535),
};

const SAMPLE: [u64; 9] = [90, 10, 50, 30, 70, 20, 80, 40, 60];

fn median() -> Option<u64> {
    Sorted::new(&mut SAMPLE.clone()).median()
}

fn interval() -> Option<u64> {
    let mut sample = SAMPLE;
    let interval = Sorted::new(&mut sample).median_interval(Confidence::P95)?;
    Some(interval.low * 1_000 + interval.high)
}

fn prtt() -> Option<u64> {
    let overhead = Picos(1_500_000);
    let set = LogGops {
        latency: Picos(5_000_000),
        overhead,
        gap: Picos(1_500_000),
        gap_per_byte: PerByte::from_picos(3_000)?,
        overhead_per_byte: PerByte::ZERO,
        eager_limit: Bytes(65_535),
    };
    let prtt = Prtt { messages: 10, delay: Picos::ZERO, size: Bytes(100) };
    let round_trip = set.one_way(prtt.size).and_then(|time| time.times(2)).ok()?;
    prtt.time(round_trip, overhead, set.gap_at(prtt.size).ok()?).ok().map(|time| time.0)
}

/// 1 if a decoded profile equals the encoded one and a corrupted one is refused.
fn encoded() -> Option<u64> {
    let line = SizeLine::exact(SignedPicos(-7_000), SignedPerByte(3 << 16));
    let mut profile: Profile<1> = Profile::default();
    let range = Range {
        first: Bytes(1),
        last: Bytes(65_536),
        gap: line,
        recv_overhead: Some(line),
        latency: Some(Estimate::exact(SignedPicos(1_234))),
        ..Range::default()
    };
    profile.ranges.push(range).ok()?;
    let mut bytes = [0; compact::most_bytes(1)];
    let length = compact::encode(&profile, &mut bytes).ok()?;
    let bytes = bytes.get_mut(..length)?;
    let same = compact::decode::<1>(bytes).ok()? == profile;
    let before = digest(bytes);
    *bytes.get_mut(length / 2)? ^= 4;
    let refused = compact::decode::<1>(bytes).is_err() && digest(bytes) != before;
    Some(u64::from(same && refused))
}
