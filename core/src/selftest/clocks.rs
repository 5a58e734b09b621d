//! Checks of clock offsets and drifts.

use super::Vector;
use crate::sync::{ClockModel, DriftEstimator, Offset, OffsetEstimator, OffsetOptions, Ping};
use crate::units::{Picos, SignedPicos};

pub(super) const VECTORS: &[Vector] = &[
    Vector { name: "sync: pings bound the offset", compute: offset, answer: 123_456 },
    Vector { name: "sync: by what it may be off", compute: width, answer: 10 },
    Vector {
        name: "sync: a drift of 25 ppm from four offsets",
        compute: drift,
        answer: 25_000_000,
    },
    // 8 s, minus 600 ps, minus 7 s at 3·10⁻⁶ + 2·10⁻⁶ − 6·10⁻¹².
    Vector {
        name: "sync: a clock against its parent's parent",
        compute: grandparent,
        answer: 8_000_000_000_000 - 600 - 7 * (5_000_000 - 6),
    },
    Vector { name: "sync: when to begin together", compute: together, answer: 8_000_200_005_000 },
];

const SECOND: u64 = 1_000_000_000_000;

/// Two pings, one with a fast request and one with a fast reply; the own clock is 123,456 ps ahead.
fn pings() -> Option<Offset> {
    let options = OffsetOptions { drift_ppm: 0, ..OffsetOptions::default() };
    let mut estimator = OffsetEstimator::new(options, &mut []);
    for (sent, there, back) in [(SECOND, 10, 4_000), (2 * SECOND, 4_000, 10)] {
        let stamped = Picos(sent + there - 123_456);
        let ping = Ping { sent: Picos(sent), stamped, received: Picos(sent + there + back) };
        estimator.handle(&ping).ok()?;
    }
    estimator.offset()
}

fn offset() -> Option<u64> {
    u64::try_from(pings()?.value.0).ok()
}

fn width() -> Option<u64> {
    Some(pings()?.half_width.0)
}

fn drift() -> Option<u64> {
    let measured = pings()?;
    let mut estimator = DriftEstimator::default();
    for second in [0, 1, 3, 7] {
        let at = Picos(measured.at.0 + second * SECOND);
        let gained = 25_000_000 * i64::try_from(second).ok()?;
        estimator.push(&Offset { at, value: SignedPicos(gained), ..measured }).ok()?;
    }
    u64::try_from(estimator.model().ok()?.drift).ok()
}

fn model(offset: i64, drift: i64) -> ClockModel {
    let offset = SignedPicos(offset);
    ClockModel { at: Picos(SECOND), offset, drift, ..ClockModel::default() }
}

fn grandparent() -> Option<u64> {
    let (parent, child) = (model(-400, 3_000_000), model(1_000, 2_000_000));
    // The parent's offset was measured at its own second 1, when it was 1,000 ps less.
    Some(parent.after(&child).reference_at(Picos(8 * SECOND)).0)
}

/// Own time when the reference shows 8 s: the own clock gains 25 ppm from 1 s on.
fn together() -> Option<u64> {
    Some(model(25_000_000, 25_000_000).local_at(Picos(8 * SECOND)).0)
}
