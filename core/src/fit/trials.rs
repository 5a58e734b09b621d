//! Synthetic sweeps for the tests.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "sizes of a few kilobytes, finite values"
)]

use super::Point;
use std::vec::Vec;

/// Splitmix64 with a normal variable on top.
pub(super) struct Generator(u64);

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1).
    pub(super) fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Standard normal (Box and Muller).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.uniform()));
        radius * libm::cos(core::f64::consts::TAU * self.uniform())
    }
}

/// Whether the points say how far they scatter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sigmas {
    Told,
    Untold,
}

/// Which sizes a sweep has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Grid {
    /// Powers of two and their neighbours, 1 B to 64 KiB: 48 sizes.
    PowersAndNeighbours,
    /// This many sizes, each moved by up to a twentieth.
    Geometric(usize),
    /// Every 1024 bytes from 1 on: netgauge's 64 sizes.
    Equidistant,
}

impl Grid {
    pub(super) fn sizes(self, generator: &mut Generator) -> Vec<u64> {
        let mut sizes: Vec<u64> = match self {
            Self::PowersAndNeighbours => {
                (0..=16).flat_map(|e| [(1u64 << e) - 1, 1 << e, (1 << e) + 1]).collect()
            }
            Self::Geometric(count) => (0..count)
                .map(|i| {
                    let size = libm::exp2(16.0 * i as f64 / (count - 1) as f64);
                    (size * (1.0 + 0.1 * (generator.uniform() - 0.5))) as u64
                })
                .collect(),
            Self::Equidistant => (0..64).map(|i| 1 + 1024 * i).collect(),
        };
        sizes.retain(|&s| s > 0);
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// A sweep with Gaussian noise of `sigma` ps about g + G(s − 1).
pub(super) fn clean(
    sizes: &[u64],
    sigma: f64,
    sigmas: Sigmas,
    generator: &mut Generator,
) -> Vec<Point> {
    let gap = 300_000.0 + 4_700_000.0 * generator.uniform();
    sizes
        .iter()
        .map(|&size| {
            let value = gap + 80.0 * (size - 1) as f64 + sigma * generator.normal();
            Point::new(size, value, if sigmas == Sigmas::Told { sigma } else { 0.0 }).unwrap()
        })
        .collect()
}

/// `point` with `more` ps added.
pub(super) fn raised(point: Point, more: f64) -> Point {
    Point::new(point.size(), point.value() + more, point.sigma().unwrap_or(0.0)).unwrap()
}
