//! Synthetic sweeps for the tests.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "sizes of a few kilobytes, finite values"
)]

use super::{Change, Config, Node, Point, Random, Requirements, find_ranges, mark_outliers};
use std::vec;
use std::vec::Vec;

/// Sizes of a sweep.
#[derive(Clone, Copy, Debug)]
pub(super) enum Grid {
    /// Powers of two and their neighbours, 1 B to 64 KiB: 48 sizes.
    PowersAndNeighbours,
    /// The given number of sizes from 1 B to 1 MiB, each perturbed by up to 5%.
    Geometric(usize),
    /// Every 1024 bytes from 1 on: netgauge's 64 sizes.
    Equidistant,
    /// 41 sizes to 1 MiB, two an octave, and those added by a bisection for 24,577.
    Bisected,
}

impl Grid {
    pub(super) fn sizes(self, random: &mut Random) -> Vec<u64> {
        let mut sizes: Vec<u64> = match self {
            Self::PowersAndNeighbours => {
                (0..=16).flat_map(|e| [(1u64 << e) - 1, 1 << e, (1 << e) + 1]).collect()
            }
            Self::Geometric(count) => (0..count)
                .map(|i| {
                    let size = libm::exp2(20.0 * i as f64 / (count - 1) as f64);
                    (size * (1.0 + 0.1 * (random.unit() - 0.5))) as u64
                })
                .collect(),
            Self::Equidistant => (0..64).map(|i| 1 + 1024 * i).collect(),
            Self::Bisected => {
                let coarse = (0..=40).map(|i| libm::exp2(0.5 * f64::from(i)) as u64);
                let (mut low, mut high) = (16_384_u64, 32_768_u64);
                let mut sizes: Vec<u64> = coarse.collect();
                while high > low + 1 {
                    let middle = low.midpoint(high);
                    sizes.push(middle);
                    if middle < 24_577 { low = middle } else { high = middle }
                }
                sizes
            }
        };
        sizes.retain(|&s| s > 0);
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// Time in ps as a function of the size.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// `g + G(s − 1)`.
    Straight,
    /// The slope changes from 80 to 320 ps/B around 50 kB, 80% of it over the given number of
    /// octaves, as when a cache overflows.
    Cache(f64),
    /// 2 us up to 20 kB and 300 ps/B beyond: `max{a, b + cs}`.
    Kink,
    /// Token bucket: the first 9 kB, half of its capacity, take 90 ps/B and the rest 8,090.
    Bucket,
}

impl Shape {
    pub(super) fn at(self, size: u64, gap: f64) -> f64 {
        let x = (size - 1) as f64;
        match self {
            Self::Straight => gap + 80.0 * x,
            Self::Cache(octaves) => {
                let log = libm::log2(x + 1.0) - libm::log2(50_000.0);
                let part = 1.0 / (1.0 + libm::exp(-log * 2.2 / (0.5 * octaves)));
                gap + (80.0 + 240.0 * part) * x
            }
            Self::Kink => (gap + 2e6).max(gap + 300.0 * (x - 13_333.0)),
            Self::Bucket => gap + 90.0 * x + 8_000.0 * (x - 9_000.0).max(0.0),
        }
    }
}

/// Distribution of the points' errors.
#[derive(Clone, Copy, Debug)]
pub(super) enum Noise {
    /// Normal, with this standard deviation in ps.
    Constant(f64),
    /// Normal, relative to the value.
    Relative(f64),
    /// Lognormal, relative to the value.
    Skewed(f64),
}

/// Standard errors of the points: known or unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sigmas {
    Told,
    Untold,
}

impl Noise {
    pub(super) fn point(self, size: u64, value: f64, sigmas: Sigmas, normal: f64) -> Point {
        let (value, sigma) = match self {
            Self::Constant(sigma) => (value + sigma * normal, sigma),
            Self::Relative(part) => (value * (1.0 + part * normal), part * value),
            Self::Skewed(part) => (value * libm::exp(part * normal), part * value),
        };
        Point::new(size, value, if sigmas == Sigmas::Told { sigma } else { 0.0 }).unwrap()
    }
}

/// A link whose gap, half round trip and both overheads are measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) shape: Shape,
    /// Gap of one byte, ps.
    pub(super) gap: f64,
    pub(super) noise: Noise,
    pub(super) sigmas: Sigmas,
}

impl Link {
    /// A link with a gap of 0.3 to 5 us.
    pub(super) fn any(shape: Shape, noise: Noise, sigmas: Sigmas, random: &mut Random) -> Self {
        Self { shape, gap: 300_000.0 + 4_700_000.0 * random.unit(), noise, sigmas }
    }

    /// A sweep with correlated noise: half of the variance is common to all curves at a size.
    pub(super) fn sweep(&self, sizes: &[u64], random: &mut Random) -> [Vec<Point>; 4] {
        let mut curves = [const { Vec::new() }; 4];
        for &size in sizes {
            let common = random.normal();
            let gap = self.shape.at(size, self.gap);
            let values = [gap, 3e6 + gap, 0.4 * gap, 2e5 + 0.3 * gap];
            for (curve, value) in curves.iter_mut().zip(values) {
                let normal = (common + random.normal()) * core::f64::consts::FRAC_1_SQRT_2;
                curve.push(self.noise.point(size, value, self.sigmas, normal));
            }
        }
        curves
    }
}

/// `point` with `more` ps added.
pub(super) fn raised(point: Point, more: f64) -> Point {
    Point::new(point.size(), point.value() + more, point.sigma().unwrap_or(0.0)).unwrap()
}

/// Result of a fit.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) changes: Vec<Change>,
    pub(super) starts: Vec<u64>,
}

/// Fits `curves` as at most 16 ranges.
pub(super) fn fit(curves: &mut [Vec<Point>], config: &Config) -> Found {
    for points in &mut *curves {
        mark_outliers(points);
    }
    let longest = curves.iter().map(Vec::len).max().unwrap_or_default();
    let mut nodes = vec![Node::default(); Requirements::new(longest).nodes];
    let (mut changes, mut starts) = (heapless::Vec::<_, 16>::new(), heapless::Vec::<_, 16>::new());
    let curves: Vec<&[Point]> = curves.iter().map(Vec::as_slice).collect();
    find_ranges(&curves, config, &mut nodes, &mut changes, &mut starts).unwrap();
    Found { changes: changes.to_vec(), starts: starts.to_vec() }
}

/// True if the ranges begin at the same sizes within a factor of 1.5.
pub(super) fn alike(a: &[u64], b: &[u64]) -> bool {
    let near = |(&a, &b): (&u64, &u64)| 2 * a.max(b) <= 3 * a.min(b);
    a.len() == b.len() && a.iter().zip(b).all(near)
}
