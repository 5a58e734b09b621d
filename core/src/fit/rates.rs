//! How often the segmentation errs on synthetic sweeps.

use super::trials::{Generator, Grid, Sigmas, clean, raised};
use super::{
    Cell, Change, ChangeDetector, Config, Detected, LookAhead, Node, Point, Segment, Segmentation,
};
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

fn detected(points: &[Point], settings: LookAhead) -> Vec<Detected> {
    let mut detector = ChangeDetector::new(settings);
    let mut found: Vec<_> = points.iter().filter_map(|point| detector.push(*point)).collect();
    found.extend(detector.finish());
    found
}

const AHEAD: [usize; 3] = [3, 4, 5];

/// As `found`, by looking ahead: how often there is a change at all, and how
/// often it is the only one and at its place.
fn seen(grid: Grid, points: usize, steps: f64, at: impl Fn(usize) -> usize + Sync) -> [usize; 2] {
    let settings = LookAhead { points, ..LookAhead::default() };
    let changes = |random: &mut Generator| {
        let sizes = grid.sizes(random);
        let mut sweep = clean(&sizes, 5e5, Sigmas::Told, random);
        let first = at(sweep.len());
        for point in &mut sweep[first..] {
            *point = raised(*point, steps * 5e5);
        }
        (first, detected(&sweep, settings))
    };
    let any = per_mille(|_, random, _| !changes(random).1.is_empty());
    let exact = per_mille(|_, random, _| {
        let (first, changes) = changes(random);
        changes.len() == 1 && changes[0].index == first
    });
    [any, exact]
}

#[test]
fn looking_ahead_sees_no_changes_in_clean_sweeps() {
    for points in AHEAD {
        let settings = LookAhead { points, ..LookAhead::default() };
        for grid in GRIDS {
            for (told, most) in [(Sigmas::Told, 10), (Sigmas::Untold, 20)] {
                for sigma in NOISES {
                    let rate = per_mille(|_, random, _| {
                        let sizes = grid.sizes(random);
                        !detected(&clean(&sizes, sigma, told, random), settings).is_empty()
                    });
                    assert!(rate <= most, "{points} ahead, {grid:?} {told:?}: {rate} of 1000");
                }
            }
        }
    }
}

#[test]
fn looking_ahead_is_not_misled_by_a_single_outlier() {
    for points in AHEAD {
        let settings = LookAhead { points, ..LookAhead::default() };
        for told in [Sigmas::Told, Sigmas::Untold] {
            let rate = per_mille(|_, random, sweep| {
                let sizes = Grid::Equidistant.sizes(random);
                let mut points = clean(&sizes, 5e5, told, random);
                let at = sweep % points.len();
                points[at] = raised(points[at], 2e7);
                !detected(&points, settings).is_empty()
            });
            assert!(rate <= 10, "{points} ahead, {told:?}: {rate} of 1000");
        }
    }
}

#[test]
fn looking_ahead_finds_the_place_of_a_step() {
    for points in AHEAD {
        let [any, exact] = seen(Grid::Equidistant, points, 6.0, |points| points / 2);
        assert!(any >= 990 && exact >= 960, "{points} ahead: {any}, {exact} of 1000");
        // As soon as there are as many points as it looks ahead.
        for grid in [Grid::Geometric(32), Grid::Equidistant] {
            let [any, exact] = seen(grid, points, 100.0, |all| all - points);
            assert!(any >= 990 && exact >= 980, "{points} ahead: {any}, {exact} of 1000");
        }
    }
}

#[test]
fn looking_ahead_needs_no_noise() {
    let sizes = Grid::Equidistant.sizes(&mut Generator::new(1));
    let value = |size: u64| 1e6 + 80.0 * (size - 1) as f64 + if size > 9_000 { 1e5 } else { 0.0 };
    let points: Vec<Point> =
        sizes.iter().map(|&size| Point::new(size, value(size), 0.0).unwrap()).collect();
    let found = detected(&points, LookAhead::default());
    let places: Vec<_> = found.iter().map(|change| (change.before, change.at)).collect();
    assert_eq!(places, [(8_193, 9_217)]);
    assert!((found[0].line.gap().unwrap() - 1e6).abs() < 1.0);
}
