//! A measurement as a series of launches within the time budget: each launch is a connection of its
//! own, and one plan covers all of them.
//!
//! The caller opens the links and so chooses the responder:
//!
//! ```text
//! while let Some(launch) = run.next_launch(observer) { run.launch(open(launch)?, observer)?; }
//! let measured = run.finish();
//! ```

use loggap_core::measure::{
    AssessError, AssessOptions, Assessment, Buffers, Clock, Conclusion, Initiator, Link,
    PlanOptions, PlogpOptions, SessionError, SessionOptions, SignatureOptions, SizeRow, Traffic,
};
use loggap_core::stats::Confidence;
use loggap_core::units::Picos;
use loggap_core::wire::FRAME_LEN;

use super::course::{Course, Plan};
use super::probes::{Derived, ProbeMethod, Probes, Series};
use super::rounds::Rounds;
use super::{Analysis, MeasureError, Memory, Method, Observer, calls};
use crate::link::{AnyLink, CallTimes, HostLink, LinkError, LinkVisitor};
use crate::machine::buffer::{Alignment, Buffer, BufferRole};
use crate::machine::clock::HostClock;
use crate::machine::environment::Fingerprint;
use crate::samples::{Row, TimedSample};
use crate::serve::description::responder_fingerprint;

/// Options of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// Measuring method.
    pub method: Method,
    /// Options of the signature.
    pub signature: SignatureOptions,
    /// Options of pLogP.
    pub plogp: PlogpOptions,
    /// Confidence of pLogP's intervals.
    pub plogp_confidence: Confidence,
    /// Accuracy, budget and seed.
    pub plan: PlanOptions,
    /// Message limit of the probes between the rounds of [`Method::All`], rounds included.
    pub max_messages_beside: u64,
    /// Most launches.
    pub launches: u32,
    /// Limits of each session.
    pub session: SessionOptions,
    /// Alignment of this end's buffers.
    pub alignment: Alignment,
    /// Duration of opening the first link.
    pub opening: Picos,
}

/// Probes of each method with their timings.
#[derive(Clone, Debug, Default)]
pub struct MethodSeries {
    /// Probes of the signature.
    pub signature: Vec<Series>,
    /// Probes of pLogP.
    pub plogp: Vec<Series>,
}

/// Result of a run.
#[derive(Debug)]
pub struct Measured {
    /// All samples that count, in the order of measuring.
    pub samples: Vec<TimedSample>,
    /// Least count of samples on each side of a change of protocol.
    pub change_floor: usize,
    /// True if probes were measured, too.
    pub has_probes: bool,
    /// Probes of the signature and of pLogP with their timings.
    pub series: MethodSeries,
    /// Parameters of the link, or why there are none.
    pub assessment: Result<Assessment, AssessError>,
    /// Accuracy that a number needs to count as converged, adapted to this machine.
    pub exact: AssessOptions,
    /// Statistics by message size.
    pub rows: Vec<SizeRow>,
    /// Number of rounds discarded because an end was preempted.
    pub left_out: u64,
    /// Counts of messages and rounds on the link.
    pub traffic: Traffic,
    /// Peer's description of its machine.
    pub responder: Option<Fingerprint>,
    /// Longest message that the peer takes, bytes, if longer sizes were dropped.
    pub longest: Option<u32>,
    /// Largest size whose messages arrive, bytes, if no larger ones do.
    pub reached: Option<u32>,
    /// Durations of this end's calls, over RDMA verbs.
    pub calls: Vec<CallTimes>,
    /// Why the plan ended.
    pub conclusion: Conclusion,
    /// Number of launches begun.
    pub launches: u32,
    /// Time from the first batch to the end of the last.
    pub wall: Picos,
}

impl Measured {
    /// Leaves out the rounds of launches that are not `kept`, as far as anything is left; false if
    /// nothing changes. Probes are not told apart by launches.
    pub(super) fn keep_launches(&mut self, kept: &[bool]) -> bool {
        if self.has_probes {
            return false;
        }
        let is_kept = |launch: u32| {
            let kept = usize::try_from(launch).ok().and_then(|launch| kept.get(launch));
            kept.copied().unwrap_or(true)
        };
        let counted = self.samples.iter().filter(|timed| is_kept(timed.launch));
        let samples: Vec<TimedSample> = counted.copied().collect();
        let left_out = self.samples.len() - samples.len();
        if left_out == 0 {
            return false;
        }
        let rounds: Vec<Row> = samples.iter().map(|timed| Row::Round(timed.sample)).collect();
        let Ok(found) = Analysis::of_rounds(&rounds, &self.exact, self.change_floor) else {
            return false;
        };
        (self.samples, self.assessment, self.rows) = (samples, Ok(found.assessment), found.rows);
        self.left_out = self.left_out.saturating_add(left_out as u64);
        let launches = (0..self.launches).filter(|launch| is_kept(*launch)).count();
        self.launches = u32::try_from(launches).unwrap_or(self.launches);
        true
    }
}

/// A run in progress.
#[derive(Debug)]
pub struct Run<'m, C> {
    course: Course<'m, C>,
    session: SessionOptions,
    outgoing: Buffer<u8>,
    incoming: Buffer<u8>,
    /// Shortest and longest size, bytes.
    ends: [u32; 2],
    calls: Vec<CallTimes>,
}

impl<'m, C: Clock + Copy> Run<'m, C> {
    /// Creates a run that measures `sizes`, on lent memory. Its time begins now.
    ///
    /// # Errors
    ///
    /// [`MeasureError`] for an empty plan, or if two message buffers cannot be allocated.
    pub fn new(
        clock: C,
        options: RunOptions,
        sizes: &[u32],
        memory: &'m mut Memory,
    ) -> Result<Self, MeasureError> {
        let RunOptions { plan: budget, launches, session, alignment, opening, .. } = options;
        let launches = launches.max(1);
        let mut largest = sizes.iter().copied().max().unwrap_or(1);
        let smallest = sizes.iter().copied().min().unwrap_or(1);
        let signature = ProbeMethod::Signature(options.signature);
        let plogp = |plogp| ProbeMethod::Plogp(plogp, options.plogp_confidence);
        let alone = |method, memory| {
            let probes = Probes::new(method, sizes, budget);
            Plan::Probes(Box::new(probes), Derived::new(memory))
        };
        let plan = match options.method {
            Method::Prtt => Plan::Rounds(Box::new(Rounds::new(budget, sizes, memory)?), vec![]),
            Method::Signature => alone(signature, memory),
            Method::Plogp => {
                largest = largest.max(options.plogp.longest);
                alone(plogp(options.plogp), memory)
            }
            Method::All => {
                let limit = options.max_messages_beside;
                let budget_beside = PlanOptions { max_messages: limit, ..budget };
                let beside = |method| Probes::new(method, &[smallest], budget_beside);
                let of_one_size = PlogpOptions { adapt: false, ..options.plogp };
                let beside = vec![beside(signature), beside(plogp(of_one_size))];
                Plan::Rounds(Box::new(Rounds::new(budget, sizes, memory)?), beside)
            }
        };
        let longest = usize::try_from(largest).unwrap_or(usize::MAX).max(FRAME_LEN);
        let mut course = Course::new(clock, plan, launches, budget.max_time);
        course.opening = opening;
        let buffer = |role| {
            Buffer::new(longest, alignment, role, 1).ok_or(MeasureError::Memory { size: largest })
        };
        let (outgoing, incoming) = (buffer(BufferRole::Send)?, buffer(BufferRole::Receive)?);
        let ends = [smallest, largest];
        Ok(Self { course, session, outgoing, incoming, ends, calls: Vec::new() })
    }

    /// Waits until the next launch is due and returns its index from 0; `None` when the run is
    /// over.
    pub fn next_launch(&mut self, observer: &mut Observer<'_>) -> Option<u32> {
        self.course.next_launch(observer)
    }

    /// Measures over a new `link` until the next launch is due.
    ///
    /// # Errors
    ///
    /// Session errors. Samples taken before the error count, see [`Run::finish`].
    pub fn launch<L: Link>(
        &mut self,
        link: L,
        observer: &mut Observer<'_>,
    ) -> Result<(), SessionError<L::Error>> {
        self.launch_and(link, observer, |_| Ok(()))
    }

    /// As [`Run::launch`], then runs `more` on the open session.
    fn launch_and<L: Link>(
        &mut self,
        link: L,
        observer: &mut Observer<'_>,
        more: impl FnOnce(&mut Initiator<'_, C, L>) -> Result<(), SessionError<L::Error>>,
    ) -> Result<(), SessionError<L::Error>> {
        let Self { course, session, outgoing, incoming, ends, .. } = self;
        let buffers = Buffers { outgoing, incoming };
        let on_queue = |position| observer.on_queue(position);
        let mut initiator = Initiator::connect(course.clock, link, buffers, *session, on_queue)?;
        course.opened();
        if course.begun == 0 {
            // Time spent in the responder's queue does not count.
            course.begin();
            let longest = initiator.bounds().message;
            course.limit_sizes(longest);
            ends[1] = ends[1].min(longest);
            course.responder = responder_fingerprint(&mut initiator)?;
        }
        let outcome = course.launch(&mut initiator, observer).and_then(|()| more(&mut initiator));
        course.add_traffic(initiator.traffic());
        if outcome.is_ok() {
            // The measurement is complete, so a lost close frame does no harm.
            let _unheard = initiator.close();
        }
        outcome
    }

    /// Number of launches begun.
    #[must_use]
    pub const fn begun(&self) -> u32 {
        self.course.begun
    }

    /// Assesses the samples, also after a failed launch.
    #[must_use]
    pub fn finish(self) -> Measured {
        Measured { calls: self.calls, ..self.course.finish() }
    }
}

impl Run<'_, HostClock> {
    /// As [`Run::launch`], with the transport's concrete type, so that the timed code is not
    /// dispatched. Over RDMA verbs the first launch times the parts of calls once it has measured
    /// the rest.
    ///
    /// # Errors
    ///
    /// As [`Run::launch`].
    pub fn launch_any(
        &mut self,
        link: AnyLink,
        observer: &mut Observer<'_>,
    ) -> Result<(), SessionError<LinkError>> {
        link.visit(Launch { run: self, observer })
    }
}

/// A launch over a link of any transport.
struct Launch<'a, 'm, 'o> {
    run: &'a mut Run<'m, HostClock>,
    observer: &'a mut Observer<'o>,
}

impl LinkVisitor for Launch<'_, '_, '_> {
    type Output = Result<(), SessionError<LinkError>>;

    fn visit<L: HostLink>(self, link: L) -> Self::Output {
        let Self { run, observer } = self;
        let mut found = Vec::new();
        let ends = run.calls.is_empty().then_some(run.ends);
        let outcome = run.launch_and(link, observer, |session| {
            if let Some(ends) = ends {
                found = calls::time(session, ends)?;
            }
            Ok(())
        });
        run.calls.append(&mut found);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::{agreement, found};
    use crate::link::{LinkSettings, UnixLink, Waiting};
    use crate::machine::clock::HostClock;
    use crate::profile::Agreement;
    use crate::terminal::{Console, Interrupt};
    use loggap_core::measure::{
        Disturbance, Experiment, Preemptions, Quantity, Shared, Simulated, Truth, serve,
    };
    use loggap_core::units::PerByte;
    use loggap_core::wire::Bounds;
    use std::cell::RefCell;
    use std::thread;

    const SIZES: [u32; 4] = [1, 64, 1_024, 4_096];

    /// Measures over at most `connections` Unix sockets, each served by a thread of this process.
    fn measured(options: RunOptions, connections: u32) -> Measured {
        let clock = HostClock::calibrated();
        let mut memory = Memory::new(SIZES.len(), &options.plan);
        let mut run = Run::new(&clock, options, &SIZES, &mut memory).unwrap();
        let (interrupt, mut console) = (Interrupt::default(), Console::standard().unwatched());
        let mut observer = Observer::new(&interrupt, &mut console, 50_000);
        while let Some(launch) = run.next_launch(&mut observer) {
            if launch == connections {
                break;
            }
            // Blocking, because other tests need the processors, too.
            let settings = LinkSettings { waiting: Waiting::Block, ..LinkSettings::default() };
            let (ours, mut theirs) = UnixLink::pair(settings).unwrap();
            thread::scope(|scope| {
                scope.spawn(move || {
                    let mut buffer = [0; 4_096];
                    let bounds = Bounds::default();
                    serve(&HostClock::monotonic_raw(), &mut theirs, &mut buffer, bounds).unwrap()
                });
                run.launch(ours, &mut observer).unwrap();
            });
        }
        run.finish()
    }

    fn options(launches: u32, milliseconds: u64) -> RunOptions {
        let max_time = Picos(milliseconds * 1_000_000_000);
        let plan = PlanOptions { max_time, max_messages: 6_000, ..PlanOptions::default() };
        RunOptions { plan, launches, ..RunOptions::default() }
    }

    #[test]
    fn every_launch_gives_samples_of_every_quantity_at_every_size() {
        let mut measured = measured(options(3, 4_000), u32::MAX);
        assert_eq!(measured.launches, 3);
        for launch in 0..3 {
            for size in SIZES {
                for quantity in Quantity::ALL {
                    let of = |timed: &&TimedSample| {
                        let Experiment { size: found, quantity: kind, .. } =
                            timed.sample.experiment;
                        timed.launch == launch && (found, kind) == (size, quantity)
                    };
                    let count = measured.samples.iter().filter(of).count();
                    assert!(count > 0, "no {quantity:?} at {size} B in launch {launch}");
                }
            }
        }
        assert!(measured.samples.is_sorted_by_key(|timed| timed.time));
        assert!(measured.samples.iter().all(|timed| timed.sample.elapsed > Picos::ZERO));
        let (rounds, left_out) = (measured.samples.len(), measured.left_out);
        assert!(measured.keep_launches(&[true, false, true]));
        assert!(measured.samples.iter().all(|timed| timed.launch != 1));
        let gone = rounds - measured.samples.len();
        assert_eq!((measured.launches, measured.left_out), (2, left_out + gone as u64));
        assert!(
            gone > 0 && !measured.keep_launches(&[true; 3]) && !measured.keep_launches(&[false; 3])
        );
        let profile = measured.assessment.unwrap().profile;
        // At size 1 the fit may be 0 on a busy machine.
        assert!(profile.ranges.iter().all(|range| range.gap.at(range.last).0 > 0));
        assert_eq!(measured.rows.len(), SIZES.len());
    }

    #[test]
    fn what_one_connection_gave_is_kept_where_there_is_no_second() {
        let measured = measured(options(2, 4_000), 1);
        assert_eq!(measured.launches, 1);
        assert!(measured.assessment.is_ok() && measured.samples.len() > 100);
        // A second launch would be due after half of the time.
        assert!(measured.wall < Picos(3_900_000_000_000), "{:?}", measured.wall);
    }

    const fn micros(count: u64) -> Picos {
        Picos(count * 1_000_000)
    }

    /// A link of 16 Gb/s.
    fn fast() -> Truth {
        Truth {
            first_size: 1,
            latency: micros(5),
            send_overhead: micros(1),
            recv_overhead: micros(1),
            gap: micros(2),
            gap_per_byte: PerByte::from_picos(500).unwrap(),
            ..Truth::default()
        }
    }

    /// Two launches of `method` over a simulated link whose ends are preempted.
    fn repeated(method: Method, preemptions: Preemptions, truth: Truth) -> Measured {
        // Virtual time: the machine's load has no influence.
        let truths = [truth];
        let simulated = Simulated::new(&truths, Disturbance::default(), Picos(25_000));
        let simulated = RefCell::new(simulated.with_preemptions(preemptions));
        let link = Shared(&simulated);
        let plan = PlanOptions { max_messages: u64::MAX, ..options(2, 3_000).plan };
        let options =
            RunOptions { method, plan, max_messages_beside: u64::MAX, ..options(2, 3_000) };
        let mut memory = Memory::new(SIZES.len(), &options.plan);
        let mut run = Run::new(link, options, &SIZES, &mut memory).unwrap();
        let (interrupt, mut console) = (Interrupt::default(), Console::standard().unwatched());
        let mut observer = Observer::new(&interrupt, &mut console, 50_000);
        while run.next_launch(&mut observer).is_some() {
            run.launch(link, &mut observer).unwrap();
        }
        run.finish()
    }

    #[test]
    fn launches_are_not_left_out_beside_probes() {
        let none = Preemptions::default();
        let is_kept = |method| repeated(method, none, fast()).keep_launches(&[false, true]);
        assert_eq!(
            [Method::All, Method::Signature, Method::Prtt].map(is_kept),
            [false, false, true]
        );
    }

    #[test]
    fn probes_leave_out_what_a_preemption_disturbed() {
        let millis = |count: u64| Picos(count * 1_000_000_000);
        let preemptions = Preemptions { interval: millis(2), length: millis(4), told: true };
        for method in [Method::Signature, Method::Plogp] {
            let measured = repeated(method, preemptions, fast());
            assert!(measured.left_out > 0, "{method:?}");
            let slowest = measured.samples.iter().map(|timed| timed.sample.elapsed).max();
            assert!(slowest.unwrap() < millis(1), "{method:?}: {slowest:?}");
        }
    }

    #[test]
    fn probes_that_outlast_time_slices_count_on_a_busy_machine() {
        let millis = |count: u64| Picos(count * 1_000_000_000);
        let preemptions = Preemptions { interval: millis(2), length: millis(1), told: true };
        for method in [Method::Signature, Method::Plogp] {
            // A message of 4 KiB takes 0.5 ms, as one of 64 KiB over 1 Gb/s.
            let gap_per_byte = PerByte::from_picos(128_000).unwrap();
            let slow = Truth { send_overhead: micros(200), gap_per_byte, ..fast() };
            let measured = repeated(method, preemptions, slow);
            for size in SIZES {
                let of = |timed: &TimedSample| timed.sample.experiment.size == size;
                assert!(measured.samples.iter().any(of), "{method:?}: no sample of {size} B");
            }
        }
    }

    #[test]
    fn all_methods_find_the_same_link() {
        let options = RunOptions::default();
        let measured = repeated(Method::All, Preemptions::default(), fast());
        assert_eq!(measured.launches, 2);
        let MethodSeries { signature, plogp } = &measured.series;
        assert!([signature, plogp].iter().all(|series| {
            let timings = || series.iter().flat_map(|one| &one.timings);
            (0..2).all(|launch| timings().any(|timed| timed.launch == launch))
        }));
        let signature = found::signature(signature, &options.signature).unwrap().sizes[0].found;
        let plogp = found::plogp(1, plogp, &options.plogp);
        let records = agreement::compared(&measured.rows[0], Some(&signature), &plogp);
        let [latency, overhead, gap] = [5e-6, 1e-6, 2e-6];
        for record in &records {
            let truth = match &*record.parameter {
                "half_rtt" => latency + 2.0 * overhead,
                "latency" => latency,
                "gap" => gap,
                _ => overhead,
            };
            let value = record.value.unwrap();
            assert!((value - truth).abs() < 0.05 * truth, "{record:?}");
            let is_both_ways = record.method == "signature" && record.parameter == "gap";
            let agrees = record.verdict == Agreement::Agrees;
            assert!(agrees || is_both_ways, "{record:?}");
        }
    }

    #[test]
    fn probes_are_timed_over_every_connection() {
        let measured = repeated(Method::Plogp, Preemptions::default(), fast());
        assert_eq!((measured.launches, measured.left_out), (2, 0));
        let second = measured.samples.iter().position(|timed| timed.launch == 1).unwrap();
        let [first, second] = [&measured.samples[..second], &measured.samples[second..]];
        for (launch, samples) in [first, second].into_iter().enumerate() {
            assert!(samples.iter().all(|timed| timed.launch as usize == launch));
            for size in SIZES {
                assert!(samples.iter().any(|timed| timed.sample.experiment.size == size));
            }
        }
        assert!(measured.assessment.is_ok());
    }
}
