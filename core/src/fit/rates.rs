//! How often the segmentation errs on synthetic sweeps.

use super::trials::{Generator, Grid, Sigmas, clean, raised};
use super::{Cell, Change, Config, Node, Point, Segment, Segmentation};
use std::vec;
use std::vec::Vec;

const GRIDS: [Grid; 3] = [Grid::PowersAndNeighbours, Grid::Geometric(32), Grid::Equidistant];

/// Memory for sweeps of up to 64 points.
struct Bench {
    nodes: Vec<Node>,
    cells: Vec<Cell>,
    segments: Vec<Segment>,
}

impl Bench {
    fn new() -> Self {
        let needed = Segmentation::requirements(64, Config::default().max_changes);
        Self {
            nodes: vec![Node::default(); needed.nodes],
            cells: vec![Cell::default(); needed.cells],
            segments: vec![Segment::default(); needed.segments],
        }
    }

    fn changes(&mut self, points: &[Point]) -> Vec<Change> {
        let mut segmentation =
            Segmentation::new(&mut self.nodes, &mut self.cells, &mut self.segments);
        let config = Config { tolerance: 0.0, ..Config::default() };
        segmentation.run(points, &config).unwrap().changes().collect()
    }
}

/// Of how many sweeps in 1,000 `judge` finds something to count, on the
/// cores that there are.
fn per_mille(judge: impl Fn(&mut Bench, &mut Generator, usize) -> bool + Sync) -> usize {
    const THREADS: usize = 4;
    std::thread::scope(|scope| {
        let judge = &judge;
        let part = |part: usize| {
            let mut bench = Bench::new();
            (0..1000 / THREADS)
                .map(|i| part * 1000 / THREADS + i)
                .filter(|&sweep| judge(&mut bench, &mut Generator::new(sweep as u64), sweep))
                .count()
        };
        let parts: Vec<_> = (0..THREADS).map(|i| scope.spawn(move || part(i))).collect();
        parts.into_iter().map(|part| part.join().unwrap()).sum()
    })
}

/// Noise in ps: 0.01 µs to 5 µs.
const NOISES: [f64; 3] = [1e4, 5e5, 5e6];

#[test]
fn clean_sweeps_have_no_changes() {
    for grid in GRIDS {
        for told in [Sigmas::Told, Sigmas::Untold] {
            for sigma in NOISES {
                let rate = per_mille(|bench, random, _| {
                    let sizes = grid.sizes(random);
                    !bench.changes(&clean(&sizes, sigma, told, random)).is_empty()
                });
                assert!(rate <= 10, "{grid:?} sigma {sigma} {told:?}: {rate} of 1000");
            }
        }
    }
}

#[test]
fn a_single_outlier_makes_no_change() {
    // Relative to the noise; the second is the 20 µs on 0.5 µs that breaks the
    // reference's detector in every run.
    for outlier in [8.0, 40.0] {
        for grid in [Grid::PowersAndNeighbours, Grid::Equidistant] {
            for told in [Sigmas::Told, Sigmas::Untold] {
                let rate = per_mille(|bench, random, sweep| {
                    let sizes = grid.sizes(random);
                    let mut points = clean(&sizes, 5e5, told, random);
                    let clean = bench.changes(&points).len();
                    let at = sweep % points.len();
                    points[at] = raised(points[at], outlier * 5e5);
                    bench.changes(&points).len() > clean
                });
                let most = if outlier < 10.0 { 10 } else { 3 };
                assert!(rate <= most, "{outlier} sigma, {grid:?} {told:?}: {rate} of 1000");
            }
        }
    }
}

/// Finds of a step of `steps` sigma before the point that `at` chooses.
fn found(grid: Grid, sigma: f64, steps: f64, at: impl Fn(usize) -> usize + Sync) -> usize {
    per_mille(|bench, random, _| {
        let sizes = grid.sizes(random);
        let mut points = clean(&sizes, sigma, Sigmas::Told, random);
        let first = at(points.len());
        for point in &mut points[first..] {
            *point = raised(*point, steps * sigma);
        }
        !bench.changes(&points).is_empty()
    })
}

#[test]
fn a_step_of_three_sigma_is_found() {
    for sigma in NOISES {
        let rate = found(Grid::PowersAndNeighbours, sigma, 3.0, |points| points / 2);
        assert!(rate >= 990, "sigma {sigma}: {rate} of 1000");
        // 64 equidistant points tell a step from a slope less well: see
        // docs/fit.md for what any test can find there.
        let rate = found(Grid::Equidistant, sigma, 3.0, |points| points / 2);
        assert!(rate >= 970, "sigma {sigma}: {rate} of 1000");
        let rate = found(Grid::Equidistant, sigma, 3.5, |points| points / 2);
        assert!(rate >= 990, "sigma {sigma}: {rate} of 1000");
    }
}

#[test]
fn a_step_before_the_last_points_is_found() {
    for (follow, steps) in [(3, 5.0), (4, 4.5), (5, 4.0)] {
        let rate = found(Grid::Equidistant, 5e5, steps, |points| points - follow);
        assert!(rate >= 990, "{follow} follow, {steps} sigma: {rate} of 1000");
    }
    // Far above the noise, on every grid.
    for grid in GRIDS {
        for sigma in [1.0, 1e4] {
            let rate = found(grid, sigma, 100.0, |points| points - 3);
            assert!(rate >= 990, "{grid:?} sigma {sigma}: {rate} of 1000");
        }
    }
}
