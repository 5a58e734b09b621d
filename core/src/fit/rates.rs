//! Error rates of the search for changes and ranges on synthetic sweeps. `examples/change_rates.rs`
//! prints longer tables of these.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of a few megabytes and indices within sweeps"
)]

use super::trials::{Grid, Link, Noise, Shape, Sigmas, alike, fit, raised};
use super::{ChangeDetector, Config, Detected, Detector, LookAhead, Point, Random};
use std::vec::Vec;

const GRIDS: [Grid; 6] = [
    Grid::PowersAndNeighbours,
    Grid::Geometric(81),
    Grid::Geometric(41),
    Grid::Geometric(11),
    Grid::Bisected,
    Grid::Equidistant,
];

const NOISES: [Noise; 5] = [
    Noise::Constant(1e4),
    Noise::Constant(5e5),
    Noise::Relative(0.02),
    Noise::Relative(0.1),
    Noise::Skewed(0.05),
];

/// Number of random sweeps for which `judge` returns true.
fn count(sweeps: u64, judge: impl Fn(&mut Random) -> bool) -> usize {
    (0..sweeps).filter(|&sweep| judge(&mut Random::new(sweep))).count()
}

#[test]
fn clean_sweeps_have_no_changes() {
    for shape in [Shape::Straight, Shape::Cache(2.0), Shape::Kink, Shape::Bucket] {
        for sigmas in [Sigmas::Told, Sigmas::Untold] {
            let mut all = 0;
            for grid in GRIDS {
                for noise in NOISES {
                    let false_ones = count(2, |random| {
                        let link = Link::any(shape, noise, sigmas, random);
                        let mut curves = link.sweep(&grid.sizes(random), random);
                        !fit(&mut curves, &Config::default()).changes.is_empty()
                    });
                    all += false_ones;
                }
            }
            assert!(all <= 1, "{shape:?} {sigmas:?}: {all} of 60");
        }
    }
}

#[test]
fn single_outliers_are_no_changes_and_in_no_line() {
    for grid in [Grid::PowersAndNeighbours, Grid::Geometric(41), Grid::Equidistant] {
        let misled = count(40, |random| {
            let link = Link::any(Shape::Straight, Noise::Relative(0.01), Sigmas::Told, random);
            let sizes = grid.sizes(random);
            let mut curves = link.sweep(&sizes, random);
            let at = 2 + random.draw() as usize % (sizes.len() - 4);
            for curve in &mut curves {
                curve[at] = raised(curve[at], 0.5 * curve[at].value());
            }
            let found = fit(&mut curves, &Config::default());
            let marked = curves.iter().all(|curve| curve[at].is_outlier());
            !found.changes.is_empty() || found.starts.len() > 1 || !marked
        });
        assert!(misled <= 1, "{grid:?}: {misled} of 40");
    }
}

/// Steps of 9 and 27 us at 32 and 64 KiB, on values of several hundred us that are known to 0.3 us.
#[test]
fn steps_of_microseconds_on_hundreds_are_listed() {
    let sizes: Vec<u64> = (16..=88).map(|i| libm::exp2(0.25 * f64::from(i)) as u64).collect();
    let missed = count(40, |random| {
        let curve = |rise: fn(u64) -> f64, random: &mut Random| -> Vec<Point> {
            let value = |size: u64| 4e7 + 8_500.0 * size as f64 + rise(size);
            let noise = Noise::Constant(3e5);
            let point = |&size| noise.point(size, value(size), Sigmas::Told, random.normal());
            sizes.iter().map(point).collect()
        };
        let steps = |size: u64| {
            let steps = [(32_768, 9e6), (65_536, 2.7e7)];
            steps.iter().filter(|step| size >= step.0).map(|step| step.1).sum()
        };
        let mut curves = [curve(|_| 0.0, random), curve(steps, random)];
        let found = fit(&mut curves, &Config::default());
        let places: Vec<u64> = found.changes.iter().map(|change| change.at).collect();
        let listed = found.changes.iter().all(|change| change.curve == 1 && !change.splits);
        places != [32_768, 65_536] || !listed || found.starts != [16]
    });
    assert!(missed <= 2, "{missed} of 40");
}

/// Number of 20 sweeps in which a step of half the round trip is found at its size.
fn found(grid: Grid, noise: f64, step: f64) -> usize {
    count(20, |random| {
        let link = Link::any(Shape::Straight, Noise::Relative(noise), Sigmas::Told, random);
        let sizes = grid.sizes(random);
        let mut curves = link.sweep(&sizes, random);
        let at = sizes.partition_point(|&size| size < 24_577);
        let height = step * curves[1][at].value();
        for point in &mut curves[1][at..] {
            *point = raised(*point, height);
        }
        let found = fit(&mut curves, &Config::default());
        let splits = step >= 0.2;
        found.changes.iter().any(|change| {
            let exact = change.at == sizes[at] && change.low == sizes[at - 1] + 1;
            exact && change.curve == 1 && (change.splits || !splits)
        })
    })
}

#[test]
fn steps_in_one_curve_are_found_at_their_place() {
    for grid in [Grid::Geometric(81), Grid::Geometric(41), Grid::Bisected, Grid::Equidistant] {
        for (noise, step) in [(0.001, 0.02), (0.005, 0.1), (0.02, 0.4)] {
            let rate = found(grid, noise, step);
            assert!(rate >= 19, "{grid:?} noise {noise} step {step}: {rate} of 20");
        }
    }
}

#[test]
fn runs_on_the_same_curved_link_give_the_same_ranges() {
    let sizes = Grid::Geometric(81).sizes(&mut Random::new(1));
    for shape in [Shape::Straight, Shape::Cache(1.0), Shape::Cache(2.0), Shape::Bucket] {
        for noise in [Noise::Skewed(0.01), Noise::Relative(0.01)] {
            let link = Link { shape, gap: 2e6, noise, sigmas: Sigmas::Told };
            let run = |seed: u64| {
                let mut random = Random::new(seed);
                fit(&mut link.sweep(&sizes, &mut random), &Config::default()).starts
            };
            let runs: Vec<Vec<u64>> = (0..20).map(run).collect();
            let typical = |starts: &Vec<u64>| runs.iter().filter(|run| alike(run, starts)).count();
            let most = runs.iter().map(typical).max().unwrap();
            assert!(most >= 18, "{shape:?} {noise:?}: {most} of 20 {runs:?}");
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

fn gap(grid: Grid, sigmas: Sigmas, random: &mut Random) -> Vec<Point> {
    let link = Link::any(Shape::Straight, Noise::Constant(5e5), sigmas, random);
    let [gap, ..] = link.sweep(&grid.sizes(random), random);
    gap
}

#[test]
fn looking_ahead_sees_no_changes_in_clean_sweeps() {
    for points in AHEAD {
        let settings = LookAhead { points, ..LookAhead::default() };
        for grid in GRIDS {
            for (sigmas, most) in [(Sigmas::Told, 4), (Sigmas::Untold, 7)] {
                let rate =
                    count(200, |random| !detected(&gap(grid, sigmas, random), settings).is_empty());
                assert!(rate <= most, "{points} ahead, {grid:?} {sigmas:?}: {rate} of 200");
            }
        }
    }
}

#[test]
fn looking_ahead_is_not_misled_by_a_single_outlier() {
    for points in AHEAD {
        let settings = LookAhead { points, ..LookAhead::default() };
        for sigmas in [Sigmas::Told, Sigmas::Untold] {
            let rate = count(200, |random| {
                let mut points = gap(Grid::Equidistant, sigmas, random);
                let at = random.draw() as usize % points.len();
                points[at] = raised(points[at], 2e7);
                !detected(&points, settings).is_empty()
            });
            assert!(rate <= 4, "{points} ahead, {sigmas:?}: {rate} of 200");
        }
    }
}

#[test]
fn looking_ahead_finds_the_place_of_a_step() {
    for points in AHEAD {
        let settings = LookAhead { points, ..LookAhead::default() };
        for (steps, at) in [(6.0, 32), (100.0, 64 - points)] {
            let rate = count(200, |random| {
                let mut sweep = gap(Grid::Equidistant, Sigmas::Told, random);
                for point in &mut sweep[at..] {
                    *point = raised(*point, steps * 5e5);
                }
                let changes = detected(&sweep, settings);
                changes.len() == 1 && changes[0].index == at
            });
            assert!(rate >= 190, "{points} ahead, {steps} sigma: {rate} of 200");
        }
    }
}

#[test]
fn looking_ahead_takes_the_place_of_the_search_for_jumps() {
    let mut random = Random::new(3);
    let mut curves = [gap(Grid::Equidistant, Sigmas::Told, &mut random)];
    for point in &mut curves[0][32..] {
        *point = raised(*point, 1e7);
    }
    let detector = Detector::look_ahead(LookAhead::default());
    let found = fit(&mut curves, &Config { detector, ..Config::default() });
    assert_eq!(found.changes.len(), 1);
    assert_eq!((found.changes[0].at, found.changes[0].splits), (32_769, true));
    assert_eq!(found.starts, [1, 32_769]);
}

#[test]
fn looking_ahead_needs_no_noise() {
    let sizes = Grid::Equidistant.sizes(&mut Random::new(1));
    let value = |size: u64| 1e6 + 80.0 * (size - 1) as f64 + if size > 9_000 { 1e5 } else { 0.0 };
    let points: Vec<Point> =
        sizes.iter().map(|&size| Point::new(size, value(size), 0.0).unwrap()).collect();
    let found = detected(&points, LookAhead::default());
    let places: Vec<_> = found.iter().map(|change| (change.before, change.at)).collect();
    assert_eq!(places, [(8_193, 9_217)]);
    assert!((found[0].line.gap().unwrap() - 1e6).abs() < 1.0);
}
