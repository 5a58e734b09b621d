//! Drives a measurement: the planner says what, the session measures it, the
//! samples are kept for whoever wants to assess them.

use std::ops::ControlFlow;

use loggap_core::fit::{Cell, Node, Point, Requirements, Segment};
use loggap_core::measure::{
    Buffers, Clock, Finish, Initiator, Link, Options, Outcome, Planner, PlannerError,
    PlannerMemory, Progress, RowHeader, Sample, SampleStore, SessionError, SessionOptions,
    StoreRequirements, Traffic,
};
use loggap_core::units::Picos;
use loggap_core::wire::FRAME_LEN;

/// Room for sizes that bisection adds, beside those that were asked for.
const ADDED_SIZES: usize = 96;
/// Most values kept of one quantity at one size.
const REPETITIONS: usize = 1_024;

/// What came of a measurement.
#[derive(Debug)]
pub struct Measured {
    /// All samples but those of the warm-up, in the order they were taken.
    pub samples: Vec<Sample>,
    /// What went over the link.
    pub traffic: Traffic,
    /// How planning ended.
    pub finish: Finish,
    /// Where it stood then.
    pub progress: Progress,
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

/// Why a measurement failed. What was measured until then is lost, except
/// after [`DriveError::Session`], which carries it.
#[derive(Debug)]
pub enum DriveError<E> {
    /// There is nothing to measure.
    Plan(PlannerError),
    /// The session failed before the first sample.
    Connect(SessionError<E>),
    /// The session failed on the way.
    Session(SessionError<E>, Box<Measured>),
}

impl<E: std::fmt::Display> std::fmt::Display for DriveError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(f),
            Self::Connect(error) | Self::Session(error, _) => error.fmt(f),
        }
    }
}

impl<E: std::fmt::Debug + std::fmt::Display> std::error::Error for DriveError<E> {}

/// What the caller is told, and may answer to by breaking off.
pub trait Listener {
    /// Another initiator is served; this many are before this one.
    fn on_queue(&mut self, position: u32) -> ControlFlow<()>;

    /// After each batch.
    fn on_progress(&mut self, progress: &Progress) -> ControlFlow<()>;
}

/// Measures `sizes` over `link`.
///
/// # Errors
///
/// [`DriveError`].
pub fn drive<C: Clock, L: Link>(
    clock: &C,
    link: L,
    sizes: &[u32],
    (options, session): (Options, SessionOptions),
    listener: &mut impl Listener,
) -> Result<Measured, DriveError<L::Error>> {
    let largest = sizes.iter().copied().max().unwrap_or(1);
    let mut memory = Memory::for_sizes(sizes.len(), &options);
    let planner = Planner::new(options, sizes, memory.lend()).map_err(DriveError::Plan)?;
    let longest = usize::try_from(largest).unwrap_or(usize::MAX).max(FRAME_LEN);
    let (mut outgoing, mut incoming) = (vec![0; longest], vec![0; longest]);
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let initiator =
        Initiator::connect(clock, link, buffers, session, |position| listener.on_queue(position))
            .map_err(DriveError::Connect)?;
    Run { clock, planner, initiator, samples: Vec::new() }.to_the_end(listener)
}

/// A measurement under way.
struct Run<'m, 'c, C, L> {
    clock: &'c C,
    planner: Planner<'m>,
    initiator: Initiator<'m, &'c C, L>,
    samples: Vec<Sample>,
}

impl<C: Clock, L: Link> Run<'_, '_, C, L> {
    fn to_the_end(
        mut self,
        listener: &mut impl Listener,
    ) -> Result<Measured, DriveError<L::Error>> {
        let began = self.clock.now();
        let failed = loop {
            let now = self.clock.duration(self.clock.now());
            let Some(batch) = self.planner.poll(now) else { break None };
            // The planner takes outcomes while the batch is under way.
            let batch: Vec<_> = batch.to_vec();
            let kept = !self.planner.is_warming_up();
            let (planner, samples) = (&mut self.planner, &mut self.samples);
            let run = self.initiator.run(&batch, |outcome| {
                planner.handle(&outcome);
                if let (Outcome::Sample(sample), true) = (outcome, kept) {
                    samples.push(sample);
                }
            });
            if let Err(error) = run {
                break Some(error);
            }
            if listener.on_progress(&self.planner.progress()).is_break() {
                self.planner.stop();
            }
        };
        let wall = self.clock.duration(self.clock.now().saturating_sub(began));
        self.planner.stop();
        let measured = Measured {
            samples: self.samples,
            traffic: *self.initiator.traffic(),
            finish: self.planner.finish().unwrap_or(Finish::Stopped),
            progress: self.planner.progress(),
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
}

/// The planner's memory.
struct Memory {
    rows: Vec<RowHeader>,
    values: Vec<u64>,
    order: Vec<u16>,
    points: Vec<Point>,
    nodes: Vec<Node>,
    cells: Vec<Cell>,
    segments: Vec<Segment>,
}

impl Memory {
    fn for_sizes(asked: usize, options: &Options) -> Self {
        let sizes = asked.saturating_add(ADDED_SIZES).min(usize::from(u16::MAX));
        let store = StoreRequirements::new(sizes, REPETITIONS)
            .unwrap_or(StoreRequirements { rows: 0, values: 0 });
        let Requirements { nodes, cells, segments } =
            Planner::requirements(sizes, options.max_changes);
        let nothing = Point::new(1, 0.0, 0.0).ok();
        Self {
            rows: vec![RowHeader::default(); store.rows],
            values: vec![0; store.values],
            order: vec![0; sizes],
            points: nothing.map(|point| vec![point; sizes]).unwrap_or_default(),
            nodes: vec![Node::default(); nodes],
            cells: vec![Cell::default(); cells],
            segments: vec![Segment::default(); segments],
        }
    }

    fn lend(&mut self) -> PlannerMemory<'_> {
        PlannerMemory {
            store: SampleStore::new(&mut self.rows, &mut self.values),
            order: &mut self.order,
            points: &mut self.points,
            nodes: &mut self.nodes,
            cells: &mut self.cells,
            segments: &mut self.segments,
        }
    }
}

/// The sizes measured by default between `first` and `last`: powers of two
/// and, between them, sizes beside the middle, alternately one more and one
/// less, so that what depends on alignment shows.
#[must_use]
pub fn default_sweep(first: u32, last: u32) -> Vec<u32> {
    let mut sizes = vec![first, last];
    for power in (0..32).map(|k| 1_u32 << k) {
        let beside = if power.trailing_zeros() % 2 == 0 { 1 } else { -1 };
        let middle = (power.saturating_add(power / 2)).saturating_add_signed(beside);
        sizes.extend([power, middle].into_iter().filter(|&s| first <= s && s <= last));
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes.retain(|&size| size > 0);
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
    fn the_default_sweep_ascends_and_holds_both_ends() {
        let sizes = default_sweep(1, 65_536);
        assert!(sizes.is_sorted() && sizes.len() > 30);
        assert_eq!((sizes.first(), sizes.last()), (Some(&1), Some(&65_536)));
        assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(default_sweep(3, 3), [3]);
        assert!(default_sweep(1, u32::MAX).contains(&(1 << 31)));
    }

    #[test]
    fn a_real_link_gives_samples_of_every_quantity_at_every_size() {
        let (ours, mut theirs) = UnixLink::pair(LinkSettings::default()).unwrap();
        let clock = HostClock::calibrated();
        let sizes = [1, 64, 1_024, 4_096];
        let measured = std::thread::scope(|scope| {
            let responder = scope.spawn(move || {
                let (mut outgoing, mut incoming) = (vec![0; 4_096], vec![0; 4_096]);
                let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
                serve(&HostClock::calibrated(), &mut theirs, buffers, Bounds::default()).unwrap()
            });
            let options = Options { max_messages: 4_000, ..Options::default() };
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
                assert!(count >= 10, "{count} samples of {quantity:?} at {size} B");
            }
        }
        assert!(measured.samples.iter().all(|s| s.elapsed > Picos::ZERO));
        assert!((0.0..=1.0).contains(&measured.link_in_use()));
    }
}
