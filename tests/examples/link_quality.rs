//! How repeatable and how predictive the parameters of a link are.
//!
//! Measures each transport of this machine several times as `loggap measure`
//! does by default, and prints the spread (max − min)/median of each
//! parameter over the runs, how often the intervals of two runs overlap, and
//! how well rounds `PRTT(n, d, s)` are predicted that the fit never used:
//! sizes between those measured, n from 3 to 40, d from 0 to four times the
//! gap.
//!
//! `cargo run --release -p loggap-tests --example link_quality -- 10 shm tcp`

#![allow(
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a program that prints its table; indices and casts are within what it draws itself"
)]

use std::error::Error;
use std::ops::ControlFlow;
use std::process::ExitCode;

use loggap::clock::HostClock;
use loggap::drive::{Listener, Measured, default_sweep, drive};
use loggap::embedded::{self, Responder};
use loggap::link::Transport;
use loggap::placement::{self, Placement, Topology};
use loggap::responder::present_bytes;
use loggap_core::measure::{
    Buffers, Experiment, Initiator, Outcome, PlanOptions, Progress, Quantity, SessionOptions,
};
use loggap_core::model::{Estimate, Profile, Prtt, Range, SizeLine};
use loggap_core::units::{Bytes, Picos, SignedPicos};

const LARGEST: u32 = 65_536;
const PREDICTIONS: u32 = 200;
/// Rounds whose median is compared with a prediction.
const ROUNDS: usize = 9;

fn main() -> ExitCode {
    if let Some(code) = embedded::child_main(std::env::args_os()) {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let runs: u64 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let names: Vec<String> = arguments.collect();
    let names = if names.is_empty() { vec!["shm".into(), "tcp".into()] } else { names };
    let allowed = placement::allowed();
    let placement = Placement::choose(&allowed, &Topology::of(&allowed));
    if let Some(placement) = placement {
        placement::pin(placement.initiator)?;
    }
    let clock = HostClock::calibrated();
    for name in names {
        let transport = Transport::from_name(&name).ok_or("unknown transport")?;
        let bench = Bench { clock, transport, placement };
        let mut series = Series::default();
        for seed in 1..=runs {
            series.add(&bench.measure(seed)?)?;
            bench.predict(seed, &mut series)?;
        }
        series.report(transport);
    }
    Ok(())
}

struct Patient;

impl Listener for Patient {
    fn on_queue(&mut self, _: u32) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn on_progress(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

struct Bench {
    clock: HostClock,
    transport: Transport,
    placement: Option<Placement>,
}

impl Bench {
    fn responder(&self) -> Result<Responder, Box<dyn Error>> {
        let mut responder = Responder::new(self.transport)?;
        responder.cpu = self.placement.map(|placement| placement.responder);
        Ok(responder)
    }

    fn measure(&self, seed: u64) -> Result<Measured, Box<dyn Error>> {
        let (link, process) = self.responder()?.spawn()?;
        let options = PlanOptions { seed, ..PlanOptions::default() };
        let sizes = default_sweep(1, LARGEST);
        let session = SessionOptions::default();
        let measured = drive(&self.clock, link, &sizes, (options, session), &mut Patient)?;
        process.finish()?;
        Ok(measured)
    }

    /// Measures rounds at random and holds them against the latest profile.
    fn predict(&self, seed: u64, series: &mut Series) -> Result<(), Box<dyn Error>> {
        let Some(profile) = series.profiles.last() else { return Ok(()) };
        let (link, process) = self.responder()?.spawn()?;
        let mut outgoing = present_bytes(LARGEST as usize);
        let mut incoming = present_bytes(LARGEST as usize);
        let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
        let session = SessionOptions::default();
        let on_queue = |_| ControlFlow::Continue(());
        let mut initiator = Initiator::connect(&self.clock, link, buffers, session, on_queue)?;
        let mut random = seed;
        let mut warm = 0;
        while warm < 200 {
            initiator.run(&[experiment(10, Picos::ZERO, 1_000); 16], |_| warm += 1)?;
        }
        for _ in 0..PREDICTIONS {
            let asked = draw(&mut random, profile);
            let Ok(prediction) = profile.predict_prtt(Prtt {
                messages: asked.messages,
                delay: asked.delay,
                size: Bytes(asked.size.into()),
            }) else {
                continue;
            };
            let (mut times, mut kept) = (Vec::new(), Vec::new());
            initiator.run(&[asked; ROUNDS], |outcome| {
                if let Outcome::Sample(sample) = outcome {
                    times.push(sample.elapsed.0);
                    kept.push(sample.delay.0);
                }
            })?;
            let (Some(time), Some(delay)) = (median(&mut times), median(&mut kept)) else {
                continue;
            };
            // The delay kept is a little longer than the one asked for.
            let more = (delay - asked.delay.0) * u64::from(asked.messages - 1);
            let time = time.saturating_sub(more);
            let error = time as f64 / prediction.value.0 as f64 - 1.0;
            series.errors.push((error.abs() * 1e6) as u64);
            series.inside += u32::from(prediction.low.0 <= time && time <= prediction.high.0);
        }
        initiator.close()?;
        process.finish()?;
        Ok(())
    }
}

fn experiment(messages: u32, delay: Picos, size: u32) -> Experiment {
    let quantity = if delay == Picos::ZERO { Quantity::Gap } else { Quantity::Paced };
    Experiment { quantity, messages, delay, size }
}

/// A size drawn evenly on the logarithmic scale, n and d evenly.
fn draw(random: &mut u64, profile: &Profile) -> Experiment {
    let mut next = |bound: u64| {
        *random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*random >> 33) % bound
    };
    let octave = next(16);
    let size = (1_u64 << octave) + next(1 << octave);
    let messages = 3 + next(38);
    let quarter = next(17);
    let gap = profile.range(Bytes(size)).map_or(0, |range| range.gap.at(Bytes(size)).0.max(0));
    let delay = Picos(u64::try_from(gap).unwrap_or(0) / 4 * quarter);
    experiment(messages as u32, delay, size as u32)
}

fn median(values: &mut [u64]) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// A parameter of a range.
type Parameter<'a> = dyn Fn(&Range) -> Option<Estimate<SignedPicos>> + 'a;

/// The runs on one transport.
#[derive(Default)]
struct Series {
    profiles: Vec<Profile>,
    walls: Vec<f64>,
    messages: Vec<u64>,
    in_use: Vec<f64>,
    changes: Vec<usize>,
    unconverged: usize,
    errors: Vec<u64>,
    inside: u32,
}

impl Series {
    fn add(&mut self, measured: &Measured) -> Result<(), Box<dyn Error>> {
        let assessment = measured.assessment.as_ref().map_err(Clone::clone)?;
        println!(
            "# run: {:.2} s, {} messages, {:?}, changes {:?}",
            measured.wall.seconds(),
            measured.traffic.messages(),
            measured.conclusion,
            assessment.profile.changes.iter().map(|c| c.at.0).collect::<Vec<_>>(),
        );
        self.unconverged += usize::from(!assessment.profile.converged());
        self.changes.push(assessment.profile.changes.len());
        self.walls.push(measured.wall.seconds());
        self.messages.push(measured.traffic.messages());
        self.in_use.push(measured.link_in_use());
        self.profiles.push(assessment.profile.clone());
        Ok(())
    }

    fn report(mut self, transport: Transport) {
        let runs = self.profiles.len();
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        println!(
            "# {transport}: {runs} runs, wall up to {:.2} s, up to {} messages, link in use {:.0}% \
             and more, {} not fully converged",
            most(&self.walls),
            self.messages.iter().max().unwrap_or(&0),
            self.in_use.iter().copied().fold(1.0, f64::min) * 100.0,
            self.unconverged,
        );
        println!("#parameter median[ns] spread[%] overlap[%]");
        let line = |line: Option<&SizeLine>| line.map(|line| line.at_one);
        let slope = |line: &SizeLine| {
            let Estimate { value, low, high, mark } = line.per_byte;
            // Per 64 KiB, in the unit of the others.
            let scaled = |v: i64| SignedPicos(v);
            Estimate { value: scaled(value.0), low: scaled(low.0), high: scaled(high.0), mark }
        };
        let parameters: [(&str, &Parameter<'_>); 6] = [
            ("RTT/2", &|range| line(range.half_rtt.as_ref())),
            ("L", &|range| range.latency),
            ("o_s", &|range| line(range.send_overhead.as_ref())),
            ("o_r", &|range| line(range.recv_overhead.as_ref())),
            ("g", &|range| Some(range.gap.at_one)),
            ("G·2^16", &|range| Some(slope(&range.gap))),
        ];
        for (name, of) in parameters {
            for (which, pick) in [("first", 0_usize), ("last", 1)] {
                let ranges = self
                    .profiles
                    .iter()
                    .filter_map(|p| if pick == 0 { p.ranges.first() } else { p.ranges.last() });
                spread(&format!("{name}({which})"), &ranges.filter_map(of).collect::<Vec<_>>());
            }
        }
        let predictions = self.errors.len();
        self.errors.sort_unstable();
        for share in [50, 75, 85, 90, 95] {
            let at = self.errors.len() * share / 100;
            print!("# {share}% of the errors below {:.2}%; ", self.errors[at] as f64 / 1e4);
        }
        println!();
        if let Some(error) = median(&mut self.errors) {
            println!(
                "# {predictions} rounds predicted: median error {:.2}%, {:.1}% inside their interval",
                error as f64 / 1e4,
                f64::from(self.inside) * 100.0 / predictions as f64
            );
        }
    }
}

fn spread(name: &str, estimates: &[Estimate<SignedPicos>]) {
    let mut values: Vec<i64> = estimates.iter().map(|estimate| estimate.value.0).collect();
    values.sort_unstable();
    let (Some(low), Some(high)) = (values.first(), values.last()) else { return };
    let middle = values[values.len() / 2];
    let pairs = || {
        estimates
            .iter()
            .enumerate()
            .flat_map(|(i, a)| estimates.iter().take(i).map(move |b| (a, b)))
    };
    let overlaps = pairs().filter(|(a, b)| a.low <= b.high && b.low <= a.high).count();
    println!(
        "{name:>12} {:>12.3} {:>8.1} {:>8.0}   runs {}",
        middle as f64 / 1e3,
        (high - low) as f64 / middle.abs().max(1) as f64 * 100.0,
        overlaps as f64 * 100.0 / pairs().count().max(1) as f64,
        estimates.len(),
    );
}
