//! How often protocol changes are found that are not there, and how often
//! those are that are: the rates of `docs/fit.md`.
//!
//! `cargo run --release -p loggap-core --example change_rates -- 1000`

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
    Cell, ChangeDetector, Config, FitError, LookAhead, Node, Point, Segment, Segmentation,
};

use trials::{Generator, Grid, Sigmas, clean, raised};

#[path = "../src/fit/trials.rs"]
mod trials;

const GRIDS: [(&str, Grid); 3] = [
    ("powers and neighbours", Grid::PowersAndNeighbours),
    ("32 geometric", Grid::Geometric(32)),
    ("64 equidistant", Grid::Equidistant),
];
const TOLD: [(&str, Sigmas); 2] = [("known", Sigmas::Told), ("unknown", Sigmas::Untold)];
/// Noise in ps: 0.01 µs to 5 µs.
const NOISES: [f64; 3] = [1e4, 5e5, 5e6];
const NOISE: f64 = 5e5;

/// Which detector is on trial.
#[derive(Clone, Copy)]
enum Method {
    Segmentation,
    LookAhead,
}

/// A number of sweeps and who judges them.
#[derive(Clone, Copy)]
struct Trial {
    sweeps: u64,
    method: Method,
}

fn main() -> Result<(), Box<dyn Error>> {
    let sweeps = env::args().nth(1).map_or(Ok(1000), |argument| argument.parse())?;
    for (name, method) in
        [("segmentation", Method::Segmentation), ("look-ahead, 3 points", Method::LookAhead)]
    {
        println!("# {name}: percent of {sweeps} sweeps");
        let trial = Trial { sweeps, method };
        clean_sweeps(trial)?;
        outliers(trial)?;
        steps(trial)?;
        last_points(trial)?;
    }
    Ok(())
}

/// False changes in Gaussian noise.
fn clean_sweeps(trial: Trial) -> Result<(), FitError> {
    println!("false changes in clean sweeps, largest of noise 0.01, 0.5, 5 us");
    for (grid_name, grid) in GRIDS {
        for (told_name, told) in TOLD {
            let mut most = 0.0_f64;
            for sigma in NOISES {
                most = most.max(trial.percent(|bench, random, _| {
                    let sizes = grid.sizes(random);
                    Ok(bench.changes(&clean(&sizes, sigma, told, random))? > 0)
                })?);
            }
            println!("  {grid_name:24} noise {told_name:8} {most:6.1}");
        }
    }
    Ok(())
}

/// Changes that one outlier adds.
fn outliers(trial: Trial) -> Result<(), FitError> {
    println!("changes added by one outlier, 64 equidistant");
    for size in [8.0, 40.0] {
        for (told_name, told) in TOLD {
            let percent = trial.percent(|bench, random, sweep| {
                let sizes = Grid::Equidistant.sizes(random);
                let mut points = clean(&sizes, NOISE, told, random);
                let before = bench.changes(&points)?;
                let at = usize::try_from(sweep).unwrap_or_default() % points.len();
                points[at] = raised(points[at], size * NOISE);
                Ok(bench.changes(&points)? > before)
            })?;
            println!("  {size:4} sigma               noise {told_name:8} {percent:6.1}");
        }
    }
    Ok(())
}

/// Steps in the middle that are found.
fn steps(trial: Trial) -> Result<(), FitError> {
    println!("steps of 3, 3.5, 4, 6 sigma in the middle found, noise known");
    for (grid_name, grid) in GRIDS {
        let found = row(trial, grid, [3.0, 3.5, 4.0, 6.0], |points| points / 2)?;
        println!("  {grid_name:24} {found}");
    }
    Ok(())
}

/// Steps that only few points follow.
fn last_points(trial: Trial) -> Result<(), FitError> {
    println!("steps of 3, 4, 5, 6 sigma before the last points found, 64 equidistant");
    for follow in [3, 4, 5] {
        let at = |points: usize| points - follow;
        let found = row(trial, Grid::Equidistant, [3.0, 4.0, 5.0, 6.0], at)?;
        println!("  {follow} points follow          {found}");
    }
    Ok(())
}

fn row(
    trial: Trial,
    grid: Grid,
    steps: [f64; 4],
    at: impl Fn(usize) -> usize + Sync,
) -> Result<String, FitError> {
    let mut cells = String::new();
    for step in steps {
        let percent = trial.percent(|bench, random, _| {
            let sizes = grid.sizes(random);
            let mut points = clean(&sizes, NOISE, Sigmas::Told, random);
            let first = at(points.len());
            for point in &mut points[first..] {
                *point = raised(*point, step * NOISE);
            }
            Ok(bench.changes(&points)? > 0)
        })?;
        cells += &format!("{percent:6.1}");
    }
    Ok(cells)
}

impl Trial {
    /// In how many percent of the sweeps `judge` says yes, on four threads.
    fn percent(
        self,
        judge: impl Fn(&mut Bench, &mut Generator, u64) -> Result<bool, FitError> + Sync,
    ) -> Result<f64, FitError> {
        const THREADS: u8 = 4;
        let judge = &judge;
        let part = move |first: u8| {
            let mut bench = Bench::new(self.method);
            let mut count = 0u32;
            for sweep in (u64::from(first)..self.sweeps).step_by(usize::from(THREADS)) {
                count += u32::from(judge(&mut bench, &mut Generator::new(sweep), sweep)?);
            }
            Ok::<_, FitError>(count)
        };
        thread::scope(|scope| {
            let parts: Vec<_> =
                (0..THREADS).map(|first| scope.spawn(move || part(first))).collect();
            let mut count = 0;
            for part in parts {
                count += part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            Ok(100.0 * f64::from(count) / self.sweeps as f64)
        })
    }
}

/// A detector and the memory of the segmentation.
struct Bench {
    method: Method,
    nodes: Vec<Node>,
    cells: Vec<Cell>,
    segments: Vec<Segment>,
}

impl Bench {
    fn new(method: Method) -> Self {
        let needed = Segmentation::requirements(64, Config::default().max_changes);
        Self {
            method,
            nodes: vec![Node::default(); needed.nodes],
            cells: vec![Cell::default(); needed.cells],
            segments: vec![Segment::default(); needed.segments],
        }
    }

    /// How many changes the detector finds, however small they are.
    fn changes(&mut self, points: &[Point]) -> Result<usize, FitError> {
        match self.method {
            Method::Segmentation => {
                let config = Config { tolerance: 0.0, ..Config::default() };
                let mut segmentation =
                    Segmentation::new(&mut self.nodes, &mut self.cells, &mut self.segments);
                Ok(segmentation.run(points, &config)?.changes().len())
            }
            Method::LookAhead => {
                let mut detector = ChangeDetector::new(LookAhead::default());
                let found = points.iter().filter(|point| detector.push(**point).is_some()).count();
                Ok(found + usize::from(detector.finish().is_some()))
            }
        }
    }
}
