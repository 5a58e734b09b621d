//! A whole measurement on virtual time: planner, session, kernels, responder,
//! fit and assessment together. Shared by the tests and `coverage`.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "test support; not every program uses all of it"
)]

pub mod judged;
pub mod kinds;

use std::cell::RefCell;
use std::ops::ControlFlow;

use loggap_core::fit::{Node, Point};
use loggap_core::measure::{
    AssessMemory, AssessRequirements, Assessment, Bend, Buffers, Clock, Conclusion, Disturbance,
    Initiator, PlanMemory, PlanOptions, PlanRequirements, Planner, Preemptions, RoundNoise,
    RowHeader, Sample, SessionOptions, Shared, Simulated, Slot, Truth, coarse_sizes,
};
use loggap_core::units::Picos;

/// Largest message.
pub const LARGEST: u32 = 65_536;

/// What spoils a measurement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noise {
    /// Calls and messages.
    pub calls: Disturbance,
    /// Whole rounds.
    pub rounds: RoundNoise,
    /// Processors.
    pub preemptions: Preemptions,
}

/// What is measured, and how.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'t> {
    /// Protocols by ascending first size.
    pub truths: &'t [Truth],
    /// How the gap bends.
    pub bend: Bend,
    /// What spoils it.
    pub noise: Noise,
    /// Budget and exactness.
    pub options: PlanOptions,
    /// Most sizes to begin with.
    pub sizes: usize,
    /// Sizes that there is memory for.
    pub rows: usize,
    /// Values of a quantity at a size that there is memory for.
    pub repetitions: usize,
    /// Time over which the messages allowed are spread; 0: as fast as
    /// possible.
    pub spread: Picos,
    /// Launches that the time allowed is parted into.
    pub launches: u64,
    /// What a reading of the clock costs: a busy wait is made of as many as
    /// fit into it.
    pub read_cost: Picos,
}

impl<'t> Setup<'t> {
    /// What `loggap measure` does by default over TCP.
    pub fn of_the_command(truths: &'t [Truth], bend: Bend, noise: Noise) -> Self {
        let seed = noise.calls.seed;
        let options = PlanOptions::default();
        let spread = Picos(options.max_time.0 / 10 * 9);
        let longest_time = Picos(2 * options.max_time.0);
        let options =
            PlanOptions { seed, large_messages: 64, longest_time, least_time: spread, ..options };
        let (sizes, rows, repetitions) = (36, 132, 2_048);
        let (launches, read_cost) = (5, Picos(20_000));
        Self { truths, bend, noise, options, sizes, rows, repetitions, spread, launches, read_cost }
    }

    /// The link alone.
    pub fn link(&self) -> Simulated<'t> {
        let link = Simulated::new(self.truths, self.noise.calls, self.read_cost)
            .bent(self.bend)
            .with_preemptions(self.noise.preemptions);
        if self.noise.rounds == RoundNoise::default() {
            link
        } else {
            link.with_rounds(self.noise.rounds)
        }
    }

    /// Measures.
    pub fn measure(&self) -> Measured {
        let needed = PlanRequirements::new(self.rows, self.repetitions).unwrap();
        let mut headers = vec![RowHeader::default(); needed.store.rows];
        let mut values = vec![0; needed.store.values];
        let mut order = vec![Slot::default(); needed.order];
        let mut analysis = Analysis::new(needed.assess);
        let memory = PlanMemory {
            rows: &mut headers,
            values: &mut values,
            order: &mut order,
            assess: analysis.lend(),
        };
        let mut sizes = vec![0; self.sizes];
        let count = coarse_sizes(1, LARGEST, &mut sizes);
        let planner = Planner::new(self.options, &sizes[..count], memory).unwrap();
        self.drive(planner)
    }

    fn drive(&self, mut planner: Planner<'_>) -> Measured {
        let simulated = RefCell::new(self.link());
        let (mut outgoing, mut incoming) = (vec![0; LARGEST as usize], vec![0; LARGEST as usize]);
        let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
        let (clock, link) = (Shared(&simulated), Shared(&simulated));
        let options = SessionOptions::default();
        let mut session =
            Initiator::connect(clock, link, buffers, options, |_| ControlFlow::Continue(()))
                .unwrap();
        let (mut samples, mut drift) = (vec![], vec![]);
        let now = || Picos(simulated.borrow().now());
        let began = now();
        let mut launch = 1;
        loop {
            let part = planner.allowed().0 / self.launches;
            if planner.has_base() && now().since(began).0 > launch * part {
                planner.begin_launch();
                launch += 1;
            }
            drift.push(simulated.borrow().drift_factor());
            let mut keep = |sample: &Sample| samples.push(*sample);
            if !planner.run_batch(&mut session, now(), &mut keep).unwrap() {
                break;
            }
            let messages = u128::from(planner.progress(now()).messages);
            let due = u128::from(self.spread.0) * messages / u128::from(self.options.max_messages);
            let due = Picos(u64::try_from(due).unwrap());
            simulated.borrow().idle(due.since(now().since(began)));
        }
        drift.sort_by(f64::total_cmp);
        Measured {
            conclusion: planner.conclusion(),
            assessment: planner.assess().unwrap(),
            samples,
            drift: drift.get(drift.len() / 2).copied().unwrap_or(1.0),
            messages: planner.progress(now()).messages,
            left_out: planner.disturbed(),
            seconds: now().since(began).seconds(),
        }
    }
}

/// What a measurement gave.
#[derive(Debug)]
pub struct Measured {
    /// What the samples say.
    pub assessment: Assessment,
    /// Why it ended.
    pub conclusion: Option<Conclusion>,
    /// All that count.
    pub samples: Vec<Sample>,
    /// Median of the drift's factor over the batches.
    pub drift: f64,
    /// Messages of both ends.
    pub messages: u64,
    /// Rounds that do not count, as a processor was taken away.
    pub left_out: u64,
    /// Virtual time that it took.
    pub seconds: f64,
}

/// The memory of an analysis.
#[derive(Debug)]
pub struct Analysis(Vec<Point>, Vec<Node>);

impl Analysis {
    /// As much as is needed.
    pub fn new(needed: AssessRequirements) -> Self {
        Self(vec![Point::default(); needed.points], vec![Node::default(); needed.nodes])
    }

    /// Lends all of it.
    pub fn lend(&mut self) -> AssessMemory<'_> {
        let Self(points, nodes) = self;
        AssessMemory { points, nodes }
    }
}
