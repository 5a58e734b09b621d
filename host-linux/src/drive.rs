//! Drives a measurement: the planner says what, the session measures it, the
//! samples are kept for whoever wants to assess them.

use std::ops::ControlFlow;
use std::{error, fmt};

use loggap_core::fit::{Cell, Node, Point, Segment};
use loggap_core::measure::{
    AssessError, AssessMemory, AssessRequirements, Assessment, Buffers, Clock, Conclusion,
    Experiment, Initiator, Kept, Link, Outcome, PlanError, PlanMemory, PlanOptions,
    PlanRequirements, Planner, Progress, RowHeader, Sample, SessionError, SessionOptions, Slot,
    Traffic, coarse_sizes,
};
use loggap_core::units::Picos;
use loggap_core::wire::{FRAME_LEN, ROUNDS_PER_BATCH};

use crate::responder::present_bytes;

/// Room for sizes that bisection adds, beside those that were asked for.
const ADDED_SIZES: usize = 96;
/// Most values kept of one quantity at one size: so many a second allowed,
/// but at least the second and at most the third.
const REPETITIONS: (u64, u64, u64) = (512, 2_048, 16_384);
/// Most sizes of a sweep that is chosen here.
const COARSE_SIZES: usize = 256;

/// What came of a measurement.
#[derive(Debug)]
pub struct Measured {
    /// All samples that count, in the order they were taken.
    pub samples: Vec<Sample>,
    /// What they say about the link, or why they say nothing.
    pub assessment: Result<Assessment, AssessError>,
    /// What went over the link.
    pub traffic: Traffic,
    /// Why planning ended.
    pub conclusion: Conclusion,
    /// From the first batch to the end of the last.
    pub wall: Picos,
}

impl Measured {
    /// Share of the wall time in which a round was under way, 0 to 1.
    #[must_use]
    pub fn link_in_use(&self) -> f64 {
        if self.wall == Picos::ZERO {
            return 0.0;
        }
        (self.traffic.in_rounds.seconds() / self.wall.seconds()).min(1.0)
    }
}

/// Why a measurement failed.
#[derive(Debug)]
pub enum DriveError<E> {
    /// There is nothing to measure.
    Plan(PlanError),
    /// The session failed before the first sample.
    Connect(SessionError<E>),
    /// The session failed on the way; this is what was measured until then.
    Session(SessionError<E>, Box<Measured>),
}

impl<E: fmt::Display> fmt::Display for DriveError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(f),
            Self::Connect(error) | Self::Session(error, _) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> error::Error for DriveError<E> {}

/// Who is told how a measurement goes, and may break it off.
pub trait Listener {
    /// Another initiator is served; this many are before this one.
    fn on_queue(&mut self, position: u32) -> ControlFlow<()>;

    /// After each batch.
    fn on_progress(&mut self, progress: &Progress) -> ControlFlow<()>;
}

/// Measures `sizes` over `link` by the PRTT method and assesses the samples.
///
/// # Errors
///
/// [`DriveError`].
pub fn drive<C: Clock, L: Link>(
    clock: &C,
    link: L,
    sizes: &[u32],
    (options, session): (PlanOptions, SessionOptions),
    listener: &mut impl Listener,
) -> Result<Measured, DriveError<L::Error>> {
    let largest = sizes.iter().copied().max().unwrap_or(1);
    let mut memory = Memory::for_sizes(sizes.len(), &options);
    let planner = Planner::new(options, sizes, memory.lend()).map_err(DriveError::Plan)?;
    let longest = usize::try_from(largest).unwrap_or(usize::MAX).max(FRAME_LEN);
    let (mut outgoing, mut incoming) = (present_bytes(longest), present_bytes(longest));
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let initiator =
        Initiator::connect(clock, link, buffers, session, |position| listener.on_queue(position))
            .map_err(DriveError::Connect)?;
    let stretch = Picos(options.max_time.0 / 10 * 9);
    let max_messages = options.max_messages;
    Run { clock, planner, initiator, samples: Vec::new(), stretch, max_messages }
        .run_to_end(listener)
}

/// A measurement under way.
struct Run<'m, 'c, C, L> {
    clock: &'c C,
    planner: Planner<'m>,
    initiator: Initiator<'m, &'c C, L>,
    samples: Vec<Sample>,
    /// Time over which all messages would be spread.
    stretch: Picos,
    max_messages: u64,
}

impl<C: Clock, L: Link> Run<'_, '_, C, L> {
    fn run_to_end(
        mut self,
        listener: &mut impl Listener,
    ) -> Result<Measured, DriveError<L::Error>> {
        let began = self.clock.now();
        let failed = loop {
            let batch = self.planner.poll_batch::<ROUNDS_PER_BATCH>(self.now());
            if batch.is_empty() {
                break None;
            }
            if let Err(error) = self.measure(&batch) {
                break Some(error);
            }
            if listener.on_progress(&self.planner.progress(self.now())).is_break() {
                self.planner.stop();
            }
            self.pace(began);
        };
        let wall = self.clock.duration(self.clock.now().saturating_sub(began));
        self.planner.stop();
        let measured = Measured {
            assessment: self.planner.assess(),
            samples: self.samples,
            traffic: *self.initiator.traffic(),
            conclusion: self.planner.conclusion().unwrap_or(Conclusion::Stopped),
            wall,
        };
        match failed {
            Some(error) => Err(DriveError::Session(error, Box::new(measured))),
            None => {
                // Everything is measured: a goodbye that does not arrive changes nothing.
                let _ = self.initiator.close();
                Ok(measured)
            }
        }
    }

    fn now(&self) -> Picos {
        self.clock.duration(self.clock.now())
    }

    /// Waits until as much of the time has passed as of the messages is
    /// spent, so that the samples cover the whole time: a machine is slower
    /// or faster for tenths of a second at a time, and a measurement that is
    /// over in one of them tells only of that one.
    fn pace(&self, began: u64) {
        let Progress { messages, .. } = self.planner.progress(self.now());
        let spent = u128::from(messages) * u128::from(self.stretch.0);
        let due = spent / u128::from(self.max_messages.max(1));
        let due = self.clock.ticks(Picos(u64::try_from(due).unwrap_or(u64::MAX)));
        while self.clock.now().saturating_sub(began) < due && self.planner.conclusion().is_none() {
            std::hint::spin_loop();
        }
    }

    fn measure(&mut self, batch: &[Experiment]) -> Result<(), SessionError<L::Error>> {
        let (planner, samples) = (&mut self.planner, &mut self.samples);
        self.initiator.run(batch, |outcome| match outcome {
            Outcome::Lost(experiment) => planner.handle_lost(&experiment),
            Outcome::Sample(sample) => {
                if planner.handle_sample(&sample) == Kept::Stored {
                    samples.push(sample);
                }
            }
        })
    }
}

/// The memory of an assessment of up to so many sizes and changes.
#[derive(Debug)]
pub struct AssessBuffers {
    points: Vec<Point>,
    nodes: Vec<Node>,
    cells: Vec<Cell>,
    segments: Vec<Segment>,
}

impl AssessBuffers {
    /// Memory for up to `sizes` sizes and `max_changes` changes.
    #[must_use]
    pub fn new(sizes: usize, max_changes: usize) -> Self {
        let needed = AssessRequirements::new(sizes, max_changes);
        Self {
            points: vec![Point::default(); needed.points],
            nodes: vec![Node::default(); needed.nodes],
            cells: vec![Cell::default(); needed.cells],
            segments: vec![Segment::default(); needed.segments],
        }
    }

    /// Lends all of it.
    pub fn lend(&mut self) -> AssessMemory<'_> {
        AssessMemory {
            points: &mut self.points,
            nodes: &mut self.nodes,
            cells: &mut self.cells,
            segments: &mut self.segments,
        }
    }
}

/// The planner's memory.
struct Memory {
    rows: Vec<RowHeader>,
    values: Vec<u64>,
    order: Vec<Slot>,
    assess: AssessBuffers,
}

impl Memory {
    fn for_sizes(asked: usize, options: &PlanOptions) -> Self {
        let most = usize::from(u16::MAX) / 8;
        let sizes = asked.saturating_add(ADDED_SIZES).min(most);
        let changes = options.assess.max_changes;
        let (rows, values, order) = PlanRequirements::new(sizes, repetitions(options), changes)
            .map_or((0, 0, 0), |needed| (needed.store.rows, needed.store.values, needed.order));
        Self {
            rows: vec![RowHeader::default(); rows],
            values: vec![0; values],
            order: vec![Slot::default(); order],
            assess: AssessBuffers::new(sizes, changes),
        }
    }

    fn lend(&mut self) -> PlanMemory<'_> {
        PlanMemory {
            rows: &mut self.rows,
            values: &mut self.values,
            order: &mut self.order,
            assess: self.assess.lend(),
        }
    }
}

/// Values of a quantity at a size that there is room for.
pub(crate) fn repetitions(options: &PlanOptions) -> usize {
    let (each_second, least, most) = REPETITIONS;
    let seconds = options.max_time.0 / 1_000_000_000_000;
    let wanted = seconds.saturating_mul(each_second).clamp(least, most);
    usize::try_from(wanted).unwrap_or(usize::MAX)
}

/// The sizes measured by default from `first` to `last` bytes.
#[must_use]
pub fn default_sweep(first: u32, last: u32) -> Vec<u32> {
    let mut sizes = vec![0; COARSE_SIZES];
    let count = coarse_sizes(first, last, &mut sizes);
    sizes.truncate(count);
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::HostClock;
    use crate::link::{LinkSettings, UnixLink};
    use loggap_core::measure::{Quantity, serve};
    use loggap_core::wire::Bounds;

    struct Patient;

    impl Listener for Patient {
        fn on_queue(&mut self, _: u32) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
        fn on_progress(&mut self, _: &Progress) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn a_real_link_gives_samples_of_every_quantity_at_every_size() {
        let (ours, mut theirs) = UnixLink::pair(LinkSettings::default()).unwrap();
        let clock = HostClock::calibrated();
        let sizes = [1, 64, 1_024, 4_096];
        let measured = std::thread::scope(|scope| {
            let responder = scope.spawn(move || {
                let mut buffer = [0; 4_096];
                serve(&HostClock::calibrated(), &mut theirs, &mut buffer, Bounds::default())
                    .unwrap()
            });
            let options = PlanOptions { max_messages: 4_000, ..PlanOptions::default() };
            let session = SessionOptions::default();
            let measured = drive(&clock, ours, &sizes, (options, session), &mut Patient).unwrap();
            let (served, _) = responder.join().unwrap();
            assert_eq!(served.received, measured.traffic.data_sent);
            assert_eq!(served.replied, measured.traffic.data_received);
            measured
        });
        for size in sizes {
            for quantity in Quantity::ALL {
                let of =
                    |s: &&Sample| s.experiment.size == size && s.experiment.quantity == quantity;
                let count = measured.samples.iter().filter(of).count();
                assert!(count >= 6, "{count} samples of {quantity:?} at {size} B");
            }
        }
        assert!(measured.samples.iter().all(|s| s.elapsed > Picos::ZERO));
        assert!((0.0..=1.0).contains(&measured.link_in_use()));
        let profile = measured.assessment.unwrap().profile;
        assert!(profile.ranges.iter().all(|range| range.gap.at_one.value.0 != 0));
    }
}
