//! A whole simulation in one call: computed if the pattern allows it, also on a network; otherwise
//! in windows on several threads; otherwise in order of events, which is always possible.

mod across;
mod computed;
mod in_order;
mod windows;

pub(super) use in_order::InOrder;
pub(super) use windows::Loaded;

use std::sync::OnceLock;

use loggap_core::measure::Clock;
use loggap_core::sim::{Finished, Parameters, RankCounters, Settings, Unfinished};
use loggap_core::units::Picos;

use super::{
    Alone, Hints, Limit, LoadError, Needs, NetworkPlan, NetworkUse, Parts, PhasedNoise, Processes,
    RunError, Source,
};
use crate::machine::clock::HostClock;
use crate::timeline::causes::{Causes, Transfer};
use crate::timeline::{Recorder, Selection, Timeline};

/// Settings of a simulation, and the requested results.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// Message costs.
    pub parameters: Parameters<'a>,
    /// Receive and rendezvous mode.
    pub settings: Settings,
    /// Noise of the operating system, and the phase of each rank.
    pub noise: Option<PhasedNoise<'a>>,
    /// Network between the ranks, if messages share links.
    pub network: Option<&'a NetworkPlan>,
    /// Memory limit for everything together, bytes.
    pub most_bytes: u64,
    /// Largest number of threads to use, at least one.
    pub threads: usize,
    /// Patterns with fewer messages are computed on a single thread.
    pub least_messages: u64,
    /// Location of the operations of a file or an extrapolated trace during the run. By default
    /// a file is looked up only if its operations do not all fit into memory, a trace if it has many.
    pub program: Option<ProgramForm>,
    /// Processes that share the ranks.
    pub processes: &'a dyn Processes,
    /// Ranks of each process; by default blocks.
    pub parts: Option<&'a Parts>,
    /// Requested results besides the makespan.
    pub wanted: Wanted,
    /// Hints about the schedule, to be noted while it is read.
    pub hints: Option<&'a Hints<'a>>,
}

/// Location of a file's operations during the run.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum ProgramForm {
    /// All in memory.
    Stored,
    /// In the file, except for those in progress.
    Streamed,
}

/// Requested results besides the makespan.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Finishing time of each rank.
    pub finish: bool,
    /// Counters of each rank.
    pub counters: bool,
    /// Part of the timeline to record.
    pub selection: Option<Selection>,
    /// Causes of each event.
    pub causes: bool,
    /// Reserve memory for sensitivities, that is, for each time as a function of the parameters;
    /// requires `causes`.
    pub sensitivity: bool,
}

impl Wanted {
    /// True if the run needs an observer.
    const fn observed(&self) -> bool {
        self.counters || self.causes || self.selection.is_some()
    }
}

/// Method of a simulation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Method {
    /// The pattern was computed during the run, and never stored.
    Computed {
        /// Number of threads.
        threads: usize,
        /// Number of partitions of the ranks.
        partitions: usize,
    },
    /// In windows of time, rank by rank.
    Windows {
        /// Number of threads.
        threads: usize,
        /// Number of partitions of the ranks.
        partitions: usize,
    },
    /// In order of events.
    InOrder {
        /// Why windows were not used.
        reason: String,
    },
    /// With operations that are looked up during the run, in windows or in order of events.
    Streamed {
        /// Why they were not stored.
        reason: String,
        /// Why windows were not used, if they were not.
        in_order: Option<String>,
        /// Number of threads, and of partitions of the ranks.
        parts: [usize; 2],
    },
}

impl Method {
    /// Computed on one thread, in one partition.
    const COMPUTED: Self = Self::Computed { threads: 1, partitions: 1 };
}

impl Default for Method {
    fn default() -> Self {
        Self::COMPUTED
    }
}

/// Why a run on a network is in order of events, stored or computed.
pub const SHARED_LINKS: &str = "messages share links: how fast one crosses a link depends on all others \
                                there, so that no rank can be simulated ahead of the rest";

/// Result of a simulation.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub ops: u64,
    /// Memory in use, bytes.
    pub memory_bytes: u64,
    /// Makespan and counts.
    pub finished: Finished,
    /// Time to load the schedule.
    pub load: Picos,
    /// Time to run it.
    pub run: Picos,
    /// Operations that did not complete.
    pub stuck: Stuck,
    /// Finishing time of each rank.
    pub finish: Option<Vec<Picos>>,
    /// Counters of each rank.
    pub counters: Option<Vec<RankCounters>>,
    /// Recorded timeline.
    pub timeline: Option<Timeline>,
    /// Causes of each event.
    pub causes: Option<Causes>,
    /// Messages between processes.
    pub crossing: u64,
    /// Method, and the reason for it.
    pub method: Method,
    /// Largest number of operations in progress at a time, if only these were in memory; in windows,
    /// the sum of those of all parts.
    pub most_under_way: Option<u64>,
    /// Utilization of the links, for networks with shared links.
    pub network: Option<NetworkUse>,
}

/// Operations that did not complete: the first [`Stuck::LISTED`] of each kind by rank and
/// operation, and the total number.
#[derive(Debug, Default)]
pub struct Stuck {
    /// Causes before consequences.
    kinds: [Vec<Unfinished>; 3],
    /// The first that was found, by rank.
    pub(super) first: Option<Unfinished>,
    /// Total number, of all kinds.
    pub total: u64,
}

/// Sort key of unfinished operations.
const fn order(left: &Unfinished) -> [u32; 3] {
    match *left {
        Unfinished::Unreceived { rank, from, op, .. } => [rank, from, op],
        Unfinished::Waiting { rank, op, peer, .. } => [rank, op, peer],
        Unfinished::NeverReady { rank, op } => [rank, op, 0],
    }
}

impl Stuck {
    /// Limit on the unfinished operations that are kept, for each kind.
    pub const LISTED: usize = 100;

    pub(super) fn add(&mut self, left: Unfinished) {
        self.total += 1;
        self.first = self.first.or(Some(left));
        self.list(left);
    }

    fn list(&mut self, left: Unfinished) {
        let [unreceived, waiting, never_ready] = &mut self.kinds;
        let kind = match left {
            Unfinished::Unreceived { .. } => unreceived,
            Unfinished::Waiting { .. } => waiting,
            Unfinished::NeverReady { .. } => never_ready,
        };
        // Sorted, so that the list does not depend on the method.
        let at = kind.partition_point(|other| order(other) < order(&left));
        if at < Self::LISTED {
            kind.truncate(Self::LISTED - 1);
            kind.insert(at, left);
        }
    }

    /// The kept operations, causes before consequences.
    pub fn listed(&self) -> impl Iterator<Item = &Unfinished> {
        self.kinds.iter().flatten()
    }
}

impl Outcome {
    /// Replaces numbers by the original tags, and adds the memory of their table.
    fn with_tags(mut self, source: &Source) -> Self {
        let Some(tags) = source.tags() else { return self };
        for left in self.stuck.kinds.iter_mut().flatten() {
            if let Unfinished::Unreceived { tag, .. } | Unfinished::Waiting { tag, .. } = left {
                *tag = tags.tag(*tag);
            }
        }
        for message in self.timeline.iter_mut().flat_map(|timeline| &mut timeline.messages) {
            message.tag = tags.tag(message.tag);
        }
        self.memory_bytes = self.memory_bytes.saturating_add(tags.bytes());
        self
    }
}

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Operations and messages that are completed or released.
    pub done: u64,
    /// Their approximate total.
    pub of: u64,
    /// Simulated time up to which the run is complete, if that is known.
    pub time: Option<Picos>,
}

/// Number of events between two progress reports.
pub(super) const WATCHED: u64 = 1 << 18;
/// Smaller number on a network, where each event may examine all messages in flight.
pub(super) const WATCHED_ON_NETWORK: u64 = 1 << 10;

/// Most operations of an extrapolated trace that are stored unless it is asked for.
const STORED_OPS: u64 = 1 << 23;
/// Memory of a stored operation, with dependencies and a margin, bytes.
const STORED_OP_BYTES: u64 = 128;

/// Callback for progress reports.
pub type Watch<'w> = &'w dyn Fn(Progress);

impl<'a> Job<'a> {
    /// A job with one thread and unlimited memory, whose only result is the makespan.
    #[must_use]
    pub fn new(parameters: Parameters<'a>, settings: Settings) -> Self {
        Self {
            parameters,
            settings,
            noise: None,
            network: None,
            most_bytes: u64::MAX,
            threads: 1,
            least_messages: 1 << 17,
            program: None,
            processes: &Alone,
            parts: None,
            wanted: Wanted::default(),
            hints: None,
        }
    }

    /// Simulates `source`, after loading it if it must be stored. A binary file that does not fit
    /// into memory is read during the run. The results do not depend on the method, which the
    /// outcome reports. If the schedule does not complete, [`Outcome::stuck`] has the unfinished
    /// operations.
    ///
    /// # Errors
    ///
    /// [`RunError`].
    pub fn simulate(&self, source: &Source, watch: Watch<'_>) -> Result<Outcome, RunError> {
        self.numbered(source, watch).map(|outcome| outcome.with_tags(source))
    }

    /// As [`Job::simulate`], with numbers instead of large tags.
    fn numbered(&self, source: &Source, watch: Watch<'_>) -> Result<Outcome, RunError> {
        if self.processes.count() > 1 {
            return self.across(source, watch);
        }
        if let Some(why) = self.looked_up(source) {
            return self.streamed(source, why, watch);
        }
        match self.computed_or_stored(source, watch) {
            Err(RunError::Load(LoadError::Memory { needed, allowed }))
                if self.program.is_none() && !self.wanted.causes && source.is_binary() =>
            {
                let reason =
                    format!("stored it would take {needed} bytes of memory, of {allowed} allowed");
                self.streamed(source, &reason, watch)
            }
            other => other,
        }
    }

    /// Why the operations of `source` are looked up and not stored, if that is certain: stored ones
    /// run faster.
    fn looked_up(&self, source: &Source) -> Option<&'static str> {
        let most_ops = STORED_OPS.min(self.most_bytes / STORED_OP_BYTES);
        match (self.program, source.extrapolation()) {
            (Some(ProgramForm::Streamed), _) => Some("asked for"),
            (None, Some(program)) if !self.wanted.causes && !program.has_at_most(most_ops) => Some(
                "extrapolated, and long; --program stored is faster on few ranks, and takes more \
                     memory",
            ),
            _ => None,
        }
    }

    fn computed_or_stored(&self, source: &Source, watch: Watch<'_>) -> Result<Outcome, RunError> {
        if let Some(outcome) = self.computed(source, watch)? {
            return Ok(outcome);
        }
        if self.network.is_some() {
            return self.in_order(source, SHARED_LINKS, watch);
        }
        match self.in_windows(source, watch)? {
            Ok(outcome) => Ok(outcome),
            Err(reason) => self.in_order(source, &reason, watch),
        }
    }

    /// Memory limit of the simulation, without the memory of observers.
    fn limit<'l>(&'l self, besides: &'l dyn Fn(&Needs) -> u64) -> Limit<'l> {
        Limit { bytes: self.most_bytes, besides, hints: self.hints }
    }

    /// Memory of observers, bytes.
    fn besides(&self, needs: &Needs) -> u64 {
        // An operation and its message, with one or three events each.
        const CAUSES: usize = 4 * Causes::bytes_an_event();
        // On a network, additionally the start and the end of handling a message, and its transfer.
        const ON_NETWORK: usize = 2 * Causes::bytes_an_event() + size_of::<Transfer>();
        // Functions of the events, each stored in a table and evaluated at both ends of an
        // interval; an upper bound without equal functions.
        const FUNCTIONS: usize = 4 * 160;
        let (ranks, ops) = (u64::from(needs.ranks), needs.ops);
        let mut bytes = 0u64;
        let mut take = |count: u64, size: usize| {
            bytes = bytes.saturating_add(count.saturating_mul(size as u64));
        };
        if self.wanted.finish {
            take(ranks, size_of::<Picos>());
        }
        if self.wanted.counters {
            take(ranks, size_of::<RankCounters>());
        }
        if self.wanted.causes {
            take(ops, CAUSES);
            take(if self.network.is_some() { ops } else { 0 }, ON_NETWORK);
        }
        if self.wanted.sensitivity {
            take(ops, FUNCTIONS);
        }
        if let Some(selection) = &self.wanted.selection {
            let kept = u64::from(selection.ranks.end.min(needs.ranks))
                .saturating_sub(u64::from(selection.ranks.start));
            // Both ends of a message may be selected.
            let share = u128::from(ops) * u128::from(kept) * 2 / u128::from(ranks.max(1));
            take(u64::try_from(share).unwrap_or(u64::MAX).min(ops), Recorder::MESSAGE_BYTES);
        }
        bytes
    }
}

/// Stopwatch that starts when it is created.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch {
    clock: HostClock,
    started: u64,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        // Measuring the cost of a read takes longer than a short run.
        static CLOCK: OnceLock<HostClock> = OnceLock::new();
        let clock = *CLOCK.get_or_init(HostClock::monotonic_raw);
        Self { clock, started: clock.now() }
    }

    pub(super) fn read(&self) -> Picos {
        self.clock.duration(self.clock.now().saturating_sub(self.started))
    }
}

#[cfg(test)]
mod tests {
    use loggap_core::goal::pattern::{Options, Pattern};
    use loggap_core::sim::{Receive, Rendezvous};

    use super::*;
    use crate::profile::USUAL;
    use crate::schedule::{Form, ScheduleFile, WriteError, write};

    /// Outcomes of one schedule with each method: in windows from text and from a binary file,
    /// streamed, and in order with overlap.
    fn in_every_way(text: &str) -> Vec<(Method, Outcome)> {
        let binary = tempfile::NamedTempFile::new().unwrap();
        let source = ScheduleFile::from_bytes("t.goal", text.into()).unwrap();
        let mut file = binary.reopen().unwrap();
        let fed = write(&mut file, Form::Native, &source.extent(), |writer| {
            source.feed(writer).map_err(|error| WriteError::Schedule(error.to_string()))
        });
        fed.unwrap();
        let job = Job::new(Parameters::one(USUAL), Settings::default());
        let overlap = Settings { receive: Receive::Overlap, ..job.settings };
        let streamed = Job { program: Some(ProgramForm::Streamed), ..job.clone() };
        let jobs = [
            (Source::File(source), job.clone()),
            (Source::File(ScheduleFile::open(binary.path()).unwrap()), job.clone()),
            (Source::File(ScheduleFile::open(binary.path()).unwrap()), streamed),
            (
                Source::File(ScheduleFile::open(binary.path()).unwrap()),
                Job { settings: overlap, ..job },
            ),
        ];
        let simulated = jobs.map(|(source, job)| job.simulate(&source, &|_| {}).unwrap());
        simulated.map(|outcome| (outcome.method.clone(), outcome)).into()
    }

    #[test]
    fn tags_of_64_bits_are_told_apart_by_all_of_them_in_every_engine() {
        let text = |sent: u64, first: u64, second: &str| {
            format!(
                "num_ranks 2\nrank 0 {{\na: send 8b to 1 tag {sent}\nb: send 8b to 1 tag 7\n}}\n\
                 rank 1 {{\nc: recv 8b from 0 tag {first}\nd: recv 8b from 0 tag {second}\n}}\n"
            )
        };
        let small = in_every_way(&text(9, 9, "7"));
        for tag in [50_000_100_007, 7 + (1 << 32), 1 << 31, u32::MAX.into(), u64::MAX - 1] {
            for ((method, outcome), (_, small)) in
                in_every_way(&text(tag, tag, "7")).iter().zip(&small)
            {
                assert_eq!(outcome.finished, small.finished, "{tag} {method:?}");
            }
            for (method, outcome) in in_every_way(&text(tag, tag, "-1")) {
                assert_eq!(outcome.stuck.total, 0, "{tag} {method:?}");
            }
            for (method, outcome) in in_every_way(&text(tag, tag ^ 1 << 32, "7")) {
                let left: Vec<_> = outcome.stuck.listed().map(ToString::to_string).collect();
                assert_eq!(left.len(), 2, "{tag} {method:?}");
                assert!(left[0].contains(&format!("with tag {tag} from rank 0")), "{left:?}");
                assert!(left[1].ends_with(&format!("with tag {}", tag ^ 1 << 32)), "{left:?}");
            }
        }
        assert!(small.iter().any(|(method, _)| matches!(method, Method::Windows { .. })));
        assert!(small.iter().any(|(method, _)| matches!(method, Method::Streamed { .. })));
    }

    #[test]
    fn processors_and_interfaces_up_to_65535_work_side_by_side() {
        let two = |cpus: [u32; 2]| {
            let [first, second] = cpus.map(|cpu| format!("calc 1000 cpu {cpu}\n"));
            in_every_way(&format!("num_ranks 1\nrank 0 {{\na: {first}b: {second}}}\n"))
        };
        for (cpus, nanos) in [([300, 44], 1_000), ([300, 300], 2_000), ([65_535, 65_279], 1_000)] {
            for (method, outcome) in two(cpus) {
                assert_eq!(outcome.finished.makespan, Picos(nanos * 1_000), "{cpus:?} {method:?}");
            }
        }
        // Sends of one processor are a gap apart on one interface, an overhead apart on two.
        let sends = |nics: [u32; 2]| {
            let [first, second] = nics.map(|nic| format!("send 1b to 1 cpu 257 nic {nic}\n"));
            let receives = "c: recv 1b from 0 nic 1\nd: recv 1b from 0 nic 513\n";
            in_every_way(&format!(
                "num_ranks 2\nrank 0 {{\na: {first}b: {second}}}\nrank 1 {{\n{receives}}}\n"
            ))
        };
        let ends = |runs: &[(Method, Outcome)]| -> Vec<_> {
            runs.iter().map(|(_, outcome)| outcome.finished).collect()
        };
        assert_eq!(ends(&sends([0, 1])), ends(&sends([300, 44])));
        assert_eq!(ends(&sends([1, 1])), ends(&sends([65_535, 65_535])));
    }

    #[test]
    fn the_driver_is_chosen_by_what_is_to_be_known_and_changes_no_result() {
        let source = Source::Pattern(Pattern::BinomialBroadcast, Options::new(64, 8));
        let job = Job::new(Parameters::one(USUAL), Settings::default());
        let computed = job.simulate(&source, &|_| {}).unwrap();
        assert_eq!(computed.method, Method::COMPUTED);

        // Sends that wait for their receivers have several kinds of messages.
        let long = Source::Pattern(Pattern::BinomialBroadcast, Options::new(64, 70_000));
        let handshake = Settings { rendezvous: Rendezvous::Handshake, ..job.settings };
        let windows = Job { settings: handshake, threads: 2, ..job.clone() };
        let windows = windows.simulate(&long, &|_| {}).unwrap();
        assert!(
            matches!(windows.method, Method::Windows { threads: 2, partitions: 4 }),
            "{:?}",
            windows.method
        );
        let at_once = job.simulate(&long, &|_| {}).unwrap();
        assert!(matches!(at_once.method, Method::InOrder { .. }), "{:?}", at_once.method);
        assert!(at_once.finished.makespan < windows.finished.makespan);

        // In a single partition causes precede the events they delay, so ranks are simulated
        // alternately.
        let counters = Wanted { counters: true, finish: true, ..Wanted::default() };
        let causes = Wanted { causes: true, ..counters.clone() };
        let one_by_one =
            Job { wanted: causes, threads: 2, ..job.clone() }.simulate(&source, &|_| {}).unwrap();
        assert_eq!(one_by_one.method, Method::Windows { threads: 1, partitions: 1 });
        assert!(one_by_one.causes.is_some());
        let watched = Job { wanted: counters, threads: 2, ..job.clone() };
        let watched = watched.simulate(&source, &|_| {}).unwrap();
        assert!(
            matches!(watched.method, Method::Windows { threads: 2, partitions: 4 }),
            "{:?}",
            watched.method
        );
        assert_eq!(watched.counters, one_by_one.counters);
        assert_eq!(one_by_one.finished, computed.finished);
        assert_eq!(watched.finished, computed.finished);
        let last = watched.finish.iter().flatten().max().copied();
        assert_eq!(last, Some(computed.finished.makespan));
        assert_eq!(watched.counters.map(|ranks| ranks.len()), Some(64));
    }

    #[test]
    fn windows_that_do_not_fit_into_memory_give_way_to_a_run_in_order() {
        let source = Source::Pattern(Pattern::BinomialBroadcast, Options::new(64, 8));
        let wanted = Wanted { counters: true, ..Wanted::default() };
        let job = Job { wanted, ..Job::new(Parameters::one(USUAL), Settings::default()) };
        let windows = job.simulate(&source, &|_| {}).unwrap();
        let in_order = job.in_order(&source, "", &|_| {}).unwrap();
        let most_bytes = in_order.memory_bytes;
        assert!(most_bytes < windows.memory_bytes, "{most_bytes} {}", windows.memory_bytes);
        let tight = Job { most_bytes, ..job.clone() }.simulate(&source, &|_| {}).unwrap();
        let Method::InOrder { reason } = &tight.method else { panic!("{:?}", tight.method) };
        assert!(reason.contains("bytes of memory"), "{reason}");
        assert_eq!(tight.finished, windows.finished);
        let refused = Job { most_bytes: most_bytes - 1, ..job }.simulate(&source, &|_| {});
        let Err(RunError::Load(LoadError::Memory { needed, .. })) = refused else { panic!() };
        assert_eq!(needed, most_bytes, "what a run in order needs");
    }
}
