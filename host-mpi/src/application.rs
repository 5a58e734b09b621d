//! An MPI program as it ran, beside the simulation of its trace.
//!
//! A run takes from the first return of `MPI_Init` to the last entry into `MPI_Finalize`. A rank's
//! time is computing, time in MPI, and that of the tracer; a simulated rank calculates, is busy with
//! messages (o, O and bytes), or waits.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use loggap::profile::ProfileDraws;
use loggap::schedule::TraceSchedule;
use loggap::simulation::{Job, ParameterSets, Plan, Point, Source, Wanted, run_points};
use loggap::timeline::{Selection, Timeline};
use loggap::trace::convert::{Conversion, Input, Line, Options, Strictness, is_collective};
use loggap::trace::{Overhead, Record, Trace, TraceError, What};
use loggap_core::model::LogGops;
use loggap_core::noise::Phases;
use loggap_core::random::Random;
use loggap_core::sim::{MessageKind, Parameters, Settings};
use loggap_core::stats::{Confidence, Moments};
use loggap_core::units::{Bytes, PerByte, Picos, SignedPicos};

/// Where a rank's time went.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RankTime {
    /// Time outside of MPI; of a simulated rank, its calculations.
    pub compute: Picos,
    /// Time inside of MPI; of a simulated rank, the rest.
    pub mpi: Picos,
    /// Part of `mpi` in blocking collective operations and in making communicators; of a simulated
    /// rank, until they end.
    pub collective: Picos,
    /// Part of `mpi` in which a simulated rank is busy with messages; 0 of a measured one.
    pub busy: Picos,
    /// Time of the tracer in recording calls and in writing them: part of neither `compute` nor
    /// `mpi`. 0 of a simulated rank.
    pub tracer: Picos,
}

/// A run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Run {
    /// Time of the run.
    pub time: Picos,
    /// Of each rank.
    pub ranks: Vec<RankTime>,
}

impl Run {
    /// The run that `trace` is of; `None` if a rank did not reach `MPI_Finalize`.
    ///
    /// # Errors
    ///
    /// [`TraceError`].
    pub fn measured(trace: &Trace) -> Result<Option<Self>, TraceError> {
        let (mut first, mut last, mut ranks) = (i64::MAX, i64::MIN, Vec::new());
        for (number, rank) in (0..).zip(trace.ranks()) {
            let overhead = trace.description().overhead();
            let Some(spent) = Spent::of(rank.records(), overhead)? else { return Ok(None) };
            first = first.min(trace.time(number, spent.begin));
            last = last.max(trace.time(number, spent.end));
            ranks.push(spent.time);
        }
        let time = of_nanos(u64::try_from(last.saturating_sub(first)).unwrap_or(0));
        Ok(Some(Self { time, ranks }))
    }
}

/// Time of a traced rank.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Spent {
    /// Return of `MPI_Init` and entry into `MPI_Finalize`, nanoseconds.
    begin: u64,
    end: u64,
    time: RankTime,
}

impl Spent {
    /// `None` without both calls. Computing is what a conversion takes for it: without the `overhead`
    /// of recording, as far as there is time for it.
    fn of<'t>(
        records: impl Iterator<Item = Result<Record<'t>, TraceError>>,
        overhead: Overhead,
    ) -> Result<Option<Self>, TraceError> {
        let (mut begin, mut end, mut last) = (None, None, 0);
        // Nanoseconds inside of MPI, and in collective operations.
        let (mut inside, mut collective) = (0, 0);
        let mut tracer = Picos::ZERO;
        let [before_call, in_call] = [overhead.between, overhead.inside].map(of_f64);
        for record in records {
            let record = record?;
            match record.call {
                "Init" | "Init_thread" => begin = begin.or(Some(record.leave)),
                "Finalize" => end = end.or(Some(record.enter)),
                _ => {}
            }
            if record.thread != 0 {
                continue;
            }
            let before_call = of_nanos(record.enter.saturating_sub(last)).min(before_call);
            last = last.max(record.leave);
            let own = match record.call {
                "Init" | "Init_thread" => Picos::ZERO,
                "Finalize" => before_call,
                _ if record.is_own() => of_nanos(record.time()),
                _ if record.is_local() => {
                    Picos(before_call.0 + of_nanos(record.time()).min(in_call).0)
                }
                _ => {
                    collective += if is_collective_call(&record) { record.time() } else { 0 };
                    inside += record.time();
                    before_call
                }
            };
            tracer.0 = tracer.0.saturating_add(own.0);
        }
        let (Some(begin), Some(end)) = (begin, end) else { return Ok(None) };
        let [run, mpi, collective] = [end.saturating_sub(begin), inside, collective].map(of_nanos);
        let compute = run.since(mpi).since(tracer);
        let time = RankTime { compute, mpi, collective, tracer, ..RankTime::default() };
        Ok(Some(Self { begin, end, time }))
    }
}

/// True for calls whose time is in [`RankTime::collective`]: those whose messages a conversion has on
/// the processor of their thread, with the tags of collective operations.
const fn is_collective_call(record: &Record<'_>) -> bool {
    match &record.what {
        What::Collective { operation, .. } => operation.request.is_none(),
        What::Communicator { freed, .. } => !*freed,
        _ => false,
    }
}

fn of_nanos(nanos: u64) -> Picos {
    Picos::from_nanos(nanos).unwrap_or(Picos(u64::MAX))
}

fn of_f64(nanos: f64) -> Picos {
    SignedPicos::from_f64(nanos * 1e3).picos().unwrap_or_default()
}

/// Simulation of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// The run as simulated.
    pub run: Run,
    /// Time with a network that costs nothing: L = o = g = G = O = 0.
    pub free: Picos,
    /// Share of the time in calls that the schedule has only something like.
    pub approximated: f64,
    /// Share of the time in calls that the schedule lacks.
    pub refused: f64,
}

/// Why nothing is predicted.
#[derive(Debug, thiserror::Error)]
#[error("the trace cannot be simulated: {0}")]
pub struct PredictionError(String);

/// Program of the trace in `directory`.
fn program(directory: &Path) -> Result<Source, PredictionError> {
    let input = Input::open(&[directory.to_owned()], Strictness::Strict).map_err(told)?;
    let schedule = TraceSchedule::from(Conversion::new(input, Options::default()));
    Ok(Source::Trace(Box::new(schedule)))
}

/// Half of the 95% interval of the simulated time of the trace in `directory`, relative to it, as far
/// as it follows from the intervals of a profile. Ends once `stop` is set.
///
/// # Errors
///
/// [`PredictionError`].
pub fn uncertainty(
    directory: &Path,
    profile: &ProfileDraws,
    eager_limit: Bytes,
    settings: Settings,
    stop: &AtomicBool,
) -> Result<f64, PredictionError> {
    const DRAWS: u64 = 40;
    let drawn = (0..DRAWS).map(|at| profile.draw(&mut Random::stream(0, at)));
    let sets =
        drawn.map(|ranges| ParameterSets::of_ranges(&ranges, eager_limit, settings.rendezvous));
    let sets = sets.collect::<Result<Vec<_>, _>>().map_err(told)?;
    let point = |at: usize| Point {
        sets: sets.get(at).cloned().unwrap_or_default(),
        phases: Phases::Together { seed: 0 },
    };
    let plan = Plan { stop: Some(stop), ..Plan::new(settings) };
    let ran = run_points(&program(directory)?, sets.len(), &point, &plan, &|| ()).map_err(told)?;
    let mut times = Moments::default();
    ran.iter().for_each(|run| _ = times.add(run.makespan.seconds()));
    let deviation = times.variance().unwrap_or_default().sqrt();
    Ok(Confidence::P95.normal() * deviation / times.mean().unwrap_or(f64::INFINITY))
}

impl Prediction {
    /// Simulates the trace in `directory`.
    ///
    /// # Errors
    ///
    /// [`PredictionError`].
    pub fn of(
        directory: &Path,
        sets: &ParameterSets,
        settings: Settings,
    ) -> Result<Self, PredictionError> {
        let source = program(directory)?;
        let parameters = sets.parameters().map_err(told)?;
        let eager_limit = sets.protocols.first().map(|set| set.parameters.eager_limit);
        let selection = Some(Selection::default());
        let wanted = Wanted { finish: true, counters: true, selection, ..Wanted::default() };
        let outcome = Job { wanted, ..Job::new(parameters, settings) }
            .simulate(&source, &|_| {})
            .map_err(told)?;
        if let Some(left) = outcome.stuck.listed().next() {
            return Err(PredictionError(left.to_string()));
        }
        let report = source.conversion_report().unwrap_or_default();
        let share = |lines: Vec<Line>| lines.iter().map(|line| line.share).sum();
        let [approximated, refused] = [report.approximated(), report.refused()].map(share);
        let finish = outcome.finish.iter().flatten();
        let timeline = outcome.timeline.unwrap_or_default();
        let computed = report.computed_by_rank().iter().map(|nanos| of_nanos(*nanos));
        let times = computed.zip(calculated(&timeline)).zip(in_collectives(&timeline));
        let each = finish.zip(outcome.counters.iter().flatten()).zip(times);
        let ranks = each.map(|((finish, counters), ((compute, calculated), collective))| {
            let busy = counters.sending.0.saturating_add(counters.receiving.0);
            // What reductions combine is computed inside of MPI.
            let collective = collective.0.saturating_add(calculated.since(compute).0);
            let mpi = finish.since(compute);
            let (collective, busy) = (Picos(collective), Picos(busy));
            RankTime { compute, mpi, collective, busy, tracer: Picos::ZERO }
        });
        let run = Run { time: outcome.finished.makespan, ranks: ranks.collect() };
        let free = LogGops {
            latency: Picos::ZERO,
            overhead: Picos::ZERO,
            gap: Picos::ZERO,
            gap_per_byte: PerByte::ZERO,
            overhead_per_byte: PerByte::ZERO,
            eager_limit: eager_limit.unwrap_or_default(),
        };
        let free = Job::new(Parameters::one(free), settings);
        let free = free.simulate(&source, &|_| {}).map_err(told)?.finished.makespan;
        Ok(Self { run, free, approximated, refused })
    }
}

/// Time that each rank's first processor calculates.
fn calculated(timeline: &Timeline) -> Vec<Picos> {
    let mut times = vec![Picos::ZERO; timeline.ranks as usize];
    for calc in timeline.calcs.iter().filter(|calc| calc.cpu == 0) {
        if let Some(time) = times.get_mut(calc.rank as usize) {
            time.0 = time.0.saturating_add(calc.work.0);
        }
    }
    times
}

/// Time of each rank's first processor in collective operations: what lies between the end of their
/// operations and the one before.
fn in_collectives(timeline: &Timeline) -> Vec<Picos> {
    // Of each operation its end, and whether it is of a collective; `None` if its tag does not tell.
    let mut ends: Vec<(u32, Picos, Option<bool>)> = Vec::new();
    let calcs = timeline.calcs.iter().filter(|calc| calc.cpu == 0);
    ends.extend(calcs.map(|calc| (calc.rank, calc.end(), Some(false))));
    for message in &timeline.messages {
        let has_tag = matches!(message.message_kind, MessageKind::Whole | MessageKind::Rts);
        let class = has_tag.then(|| is_collective(message.tag));
        let matched = message.matched.unwrap_or_default();
        let received = message.done.max(message.receive_end()).max(matched);
        for (end, time) in [(message.from, message.send_end()), (message.to, received)] {
            ends.extend((end.cpu == 0).then_some((end.rank, time, class)));
        }
    }
    ends.sort_unstable();
    let mut times = vec![Picos::ZERO; timeline.ranks as usize];
    let mut before = (u32::MAX, Picos::ZERO, false);
    for (rank, end, class) in ends {
        let (last, start, is_collective) = before;
        let (start, was) = if last == rank { (start, is_collective) } else { (Picos::ZERO, false) };
        let is_collective = class.unwrap_or(was);
        if let Some(time) = times.get_mut(rank as usize).filter(|_| is_collective) {
            time.0 += end.0.saturating_sub(start.0);
        }
        before = (rank, end, is_collective);
    }
    times
}

fn told(error: impl ToString) -> PredictionError {
    PredictionError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap::timeline::{Calc, End, Message};
    use loggap::trace::{Counts, Tests};
    use loggap_core::trace::Collective;

    #[test]
    fn a_ranks_time_is_in_mpi_the_tracers_or_computing() {
        let record = |call, enter, leave, what| Record { thread: 0, call, enter, leave, what };
        let collective = |request| What::Collective {
            operation: Collective { request, ..Collective::default() },
            sent: Counts::default(),
            received: Counts::default(),
        };
        let tests = Tests { computing: 30, ..Tests::default() };
        let records = [
            record("Init", 0, 100, What::Call),
            // One that moves nothing is computing, and so is what a loop of tests computes.
            record("Pack", 110, 150, What::Call),
            record("Bcast", 200, 225, collective(None)),
            // Closer to the call before than what recording it usually takes.
            record("Ibcast", 230, 240, collective(Some(9))),
            record("Wait", 300, 307, What::Completions(Vec::new())),
            record("(flush)", 400, 460, What::Call),
            record("Test", 500, 550, What::Tests(tests)),
            Record { thread: 1, ..record("Wait", 600, 700, What::Completions(Vec::new())) },
            record("Comm_dup", 800, 840, What::Communicator { number: 2, freed: false }),
            record("Comm_free", 900, 910, What::Communicator { number: 2, freed: true }),
            record("Finalize", 1_100, 2_000, What::Call),
        ];
        let overhead = Overhead { between: 8.0, inside: 3.0 };
        let spent = |records: &[Record<'static>]| {
            Spent::of(records.iter().cloned().map(Ok), overhead).unwrap()
        };
        let (mpi, tracer) = (25 + 10 + 7 + 20 + 40, 60 + 7 * 8 + 5 + 2 * 3);
        let compute = 1_000 - mpi - tracer;
        let [compute, mpi, collective, tracer] = [compute, mpi, 25 + 40, tracer].map(of_nanos);
        let time = RankTime { compute, mpi, collective, busy: Picos::ZERO, tracer };
        assert_eq!(spent(&records), Some(Spent { begin: 100, end: 1_100, time }));
        assert_eq!(spent(&records[1..]), None);
        assert_eq!(spent(&records[..10]), None);
    }

    /// Computing to 10, a message of its own to 14, one of a collective that is there at 30; the
    /// other rank waits for it from 5 on. What a second processor does is not counted.
    #[test]
    fn time_in_collectives_is_from_the_operation_before_to_their_last() {
        const TAG: u64 = 1 << 31;
        let calc = |rank, work, cpu| Calc {
            rank,
            cpu,
            op: 0,
            start: Picos::ZERO,
            work: Picos(work),
            noise: Picos::ZERO,
        };
        let end = |rank, cpu| End { rank, cpu, nic: 0 };
        let message = |tag, sent: u64, done: u64, cpu| Message {
            from: end(0, cpu),
            to: end(1, cpu),
            tag,
            sent: Picos(sent),
            send_noise: Picos(4),
            handled: Picos(done),
            done: Picos(done),
            ..Message::default()
        };
        let timeline = Timeline {
            ranks: 2,
            calcs: vec![calc(0, 10, 0), calc(1, 5, 0), calc(1, 90, 2)],
            messages: vec![message(7, 10, 20, 0), message(TAG, 14, 30, 0), message(TAG, 40, 50, 1)],
        };
        assert_eq!(in_collectives(&timeline), [Picos(4), Picos(10)]);
        assert_eq!(calculated(&timeline), [Picos(10), Picos(5)]);
    }
}
