//! How often protocol changes are found that are not there, and how often
//! those are that are: the rates of `docs/lab/fit.md`.
//!
//! `cargo run --release -p loggap-core --example change_rates -- 1000`, and one
//! of `jumps`, `look-ahead`, `steps` and `ranges` for a part of it.

#![allow(
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a program that prints its table; indices are within the sweeps it makes"
)]

use std::env;
use std::error::Error;
use std::thread;

use loggap_core::fit::{
    Change, Config, Detector, LookAhead, Node, Point, Requirements, find_ranges, mark_outliers,
};
use loggap_core::random::Random;
use trials::{Grid, Link, Noise, Shape, Sigmas, alike, fit, raised};

#[path = "../src/fit/trials.rs"]
mod trials;

const GRIDS: [(&str, Grid); 6] = [
    ("powers and neighbours", Grid::PowersAndNeighbours),
    ("4 an octave", Grid::Geometric(81)),
    ("2 an octave", Grid::Geometric(41)),
    ("1 in 2 octaves", Grid::Geometric(11)),
    ("bisected", Grid::Bisected),
    ("64 equidistant", Grid::Equidistant),
];
const NOISES: [(&str, Noise); 6] = [
    ("0.01 us", Noise::Constant(1e4)),
    ("0.5 us", Noise::Constant(5e5)),
    ("2%", Noise::Relative(0.02)),
    ("10%", Noise::Relative(0.1)),
    ("5% skewed", Noise::Skewed(0.05)),
    ("30% skewed", Noise::Skewed(0.3)),
];
const SHAPES: [(&str, Shape); 5] = [
    ("straight", Shape::Straight),
    ("cache 1 octave", Shape::Cache(1.0)),
    ("cache 2 octaves", Shape::Cache(2.0)),
    ("kink", Shape::Kink),
    ("token bucket", Shape::Bucket),
];

/// In how many percent of the sweeps `judge` says yes, on two threads.
fn percent(sweeps: u64, judge: impl Fn(&mut Random) -> bool + Sync) -> f64 {
    const THREADS: u64 = 2;
    let judge = &judge;
    let part = move |first: u64| {
        (first..sweeps)
            .filter(|sweep| sweep % THREADS == first)
            .filter(|&sweep| judge(&mut Random::new(sweep)))
            .count()
    };
    let count: usize = thread::scope(|scope| {
        let parts: Vec<_> = (0..THREADS).map(|first| scope.spawn(move || part(first))).collect();
        parts
            .into_iter()
            .map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .sum()
    });
    100.0 * count as f64 / sweeps as f64
}

fn main() -> Result<(), Box<dyn Error>> {
    let sweeps = env::args().nth(1).map_or(Ok(1000), |argument| argument.parse())?;
    let only = env::args().nth(2);
    let wanted = |table: &str| only.as_deref().is_none_or(|only| only == table);
    let ahead =
        Config { detector: Detector::look_ahead(LookAhead::default()), ..Config::default() };
    for (table, config) in [("jumps", Config::default()), ("look-ahead", ahead)] {
        if wanted(table) {
            false_changes(sweeps, table, &config);
        }
    }
    if wanted("steps") {
        steps(sweeps);
    }
    for tolerance in [0.06, 0.1] {
        if wanted("ranges") {
            ranges(sweeps, tolerance);
        }
    }
    Ok(())
}

/// Changes found in sweeps that have none.
fn false_changes(sweeps: u64, name: &str, config: &Config) {
    println!("# false changes, {name}, four curves, percent of {sweeps} sweeps");
    for (sigmas, told) in [(Sigmas::Told, "known"), (Sigmas::Untold, "unknown")] {
        for (shape_name, shape) in SHAPES {
            println!("{shape_name}, noise {told}");
            for (grid_name, grid) in GRIDS {
                print!("  {grid_name:22}");
                for (name, noise) in NOISES {
                    let rate = percent(sweeps, |random| {
                        let link = Link::any(shape, noise, sigmas, random);
                        let mut curves = link.sweep(&grid.sizes(random), random);
                        !fit(&mut curves, config).changes.is_empty()
                    });
                    print!("  {name} {rate:5.1}");
                }
                println!();
            }
        }
    }
}

/// Steps of half the round trip at 24,577 bytes that are found at that size.
fn steps(sweeps: u64) {
    println!("# steps found in one of four curves, percent of {sweeps} sweeps");
    for (grid_name, grid) in GRIDS {
        for noise in [0.001, 0.005, 0.02] {
            print!("  {grid_name:22} noise {noise:5}");
            for step in [0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 3.0 * noise] {
                let rate = percent(sweeps, |random| {
                    let sizes = grid.sizes(random);
                    let noise = Noise::Relative(noise);
                    let link = Link::any(Shape::Straight, noise, Sigmas::Told, random);
                    let mut curves = link.sweep(&sizes, random);
                    let at = sizes.partition_point(|&size| size < 24_577);
                    let height = step * curves[1][at].value();
                    for point in &mut curves[1][at..] {
                        *point = raised(*point, height);
                    }
                    let found = fit(&mut curves, &Config::default());
                    found.changes.iter().any(|change| change.at == sizes[at])
                });
                print!("  {step:5.3} {rate:5.1}");
            }
            println!();
        }
    }
}

/// How often the ranges of a run are those of the run before.
fn ranges(sweeps: u64, tolerance: f64) {
    println!(
        "# ranges, tolerance {tolerance}: alike in percent of {sweeps} pairs of runs; how many"
    );
    let config = Config { tolerance, ..Config::default() };
    for (name, shape) in SHAPES {
        for noise in [0.01, 0.03, 0.1] {
            let link = Link { shape, gap: 2e6, noise: Noise::Skewed(noise), sigmas: Sigmas::Told };
            let sizes = Grid::Geometric(81).sizes(&mut Random::new(1));
            let run = |random: &mut Random| fit(&mut link.sweep(&sizes, random), &config).starts;
            let rate = percent(sweeps, |random| alike(&run(random), &run(random)));
            let count = run(&mut Random::new(7)).len();
            println!("  {name:18} noise {noise:4} {rate:5.1}  {count}");
        }
    }
}
