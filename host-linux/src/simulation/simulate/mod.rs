//! A whole simulation in one call: computed where the pattern allows, also on a
//! network, otherwise in windows on threads, otherwise event by event, which suits everything.

mod computed;
mod in_order;
mod windows;

use loggap_core::measure::Clock;
use loggap_core::sim::{Finished, Parameters, RankCounters, Settings, Unfinished};
use loggap_core::units::Picos;

use super::{Limit, LoadError, Needs, NetworkPlan, NetworkUse, PhasedNoise, RunError, Source};
use crate::machine::clock::HostClock;
use crate::schedule::TagNumbers;
use crate::timeline::causes::{Causes, Transfer};
use crate::timeline::{Recorder, Selection, Timeline};

/// What is simulated with, and what is to be known.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// What messages cost.
    pub parameters: Parameters<'a>,
    /// How messages are received and sent.
    pub settings: Settings,
    /// Time that the operating system takes, and where in it each rank begins.
    pub noise: Option<PhasedNoise<'a>>,
    /// What is between ranks, where messages share links.
    pub network: Option<&'a NetworkPlan>,
    /// Bytes of memory that all may take together.
    pub most_bytes: u64,
    /// Threads to use, where several can be used; at least one.
    pub threads: usize,
    /// Where the operations of a file are while it runs; otherwise read from it only
    /// where there is no memory for all of them.
    pub program: Option<ProgramForm>,
    /// What is to be known besides the makespan.
    pub wanted: Wanted,
}

/// Where the operations of a file are while it runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProgramForm {
    /// All in memory.
    Stored,
    /// In the file, but those that are under way.
    Streamed,
}

/// What is to be known besides the makespan.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// When each rank is done.
    pub finish: bool,
    /// What each rank did.
    pub counters: bool,
    /// The part of the timeline that is drawn.
    pub selection: Option<Selection>,
    /// What delayed each event.
    pub causes: bool,
    /// Each instant as a function of the parameters: [`Job::simulate`] leaves
    /// memory for that, beside the causes.
    pub sensitivity: bool,
}

impl Wanted {
    /// Whether the run needs an observer.
    const fn observed(&self) -> bool {
        self.counters || self.causes || self.selection.is_some()
    }
}

/// How a schedule was simulated.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Method {
    /// The pattern was computed while it ran, and never stored.
    Computed {
        /// Threads.
        threads: usize,
        /// Parts of the ranks.
        partitions: usize,
    },
    /// Window after window, rank by rank.
    Windows {
        /// Threads.
        threads: usize,
        /// Parts of the ranks.
        partitions: usize,
    },
    /// Event by event, in the order in which they happen.
    InOrder {
        /// Why not in windows.
        reason: String,
    },
    /// Event by event, the operations read from the file while it ran.
    Streamed {
        /// Why they were not stored.
        reason: String,
    },
}

impl Method {
    /// Computed on one thread, all ranks together.
    const COMPUTED: Self = Self::Computed { threads: 1, partitions: 1 };
}

impl Default for Method {
    fn default() -> Self {
        Self::COMPUTED
    }
}

/// Why a run on a network goes event by event, stored or computed.
pub const SHARED_LINKS: &str = "messages share links: how fast one crosses a link depends on all others \
                                there, so that no rank can be simulated ahead of the rest";

/// What came of a simulation.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub ops: u64,
    /// Bytes of memory that it took.
    pub memory_bytes: u64,
    /// How the run ended.
    pub finished: Finished,
    /// Time to load the schedule.
    pub load: Picos,
    /// Time to run it.
    pub run: Picos,
    /// What never came to its end.
    pub stuck: Stuck,
    /// When each rank was done.
    pub finish: Option<Vec<Picos>>,
    /// What each rank did.
    pub counters: Option<Vec<RankCounters>>,
    /// The course of the run.
    pub timeline: Option<Timeline>,
    /// What delayed each event.
    pub causes: Option<Causes>,
    /// How it was simulated, and why so.
    pub method: Method,
    /// The most operations that were under way at a time, where only these were in memory.
    pub most_under_way: Option<u32>,
    /// Which links were busy, where messages shared them.
    pub network: Option<NetworkUse>,
}

/// What never came to its end: the first [`Stuck::LISTED`] of each kind by rank and
/// operation, and how many there are.
#[derive(Debug, Default)]
pub struct Stuck {
    unreceived: Vec<Unfinished>,
    waiting: Vec<Unfinished>,
    never_ready: Vec<Unfinished>,
    /// How many there are of all kinds.
    pub total: u64,
}

/// The order in which what is left is listed.
const fn order(left: &Unfinished) -> [u32; 3] {
    match *left {
        Unfinished::Unreceived { rank, from, op, .. } => [rank, from, op],
        Unfinished::Waiting { rank, op, peer, .. } => [rank, op, peer],
        Unfinished::NeverReady { rank, op } => [rank, op, 0],
    }
}

impl Stuck {
    /// Of each kind, this many are kept.
    pub const LISTED: usize = 100;

    fn add(&mut self, left: Unfinished) {
        self.total += 1;
        let kind = match left {
            Unfinished::Unreceived { .. } => &mut self.unreceived,
            Unfinished::Waiting { .. } => &mut self.waiting,
            Unfinished::NeverReady { .. } => &mut self.never_ready,
        };
        // In an order that does not depend on how it was simulated.
        let at = kind.partition_point(|other| order(other) < order(&left));
        if at < Self::LISTED {
            kind.truncate(Self::LISTED - 1);
            kind.insert(at, left);
        }
    }

    /// What is kept, causes before consequences.
    pub fn listed(&self) -> impl Iterator<Item = &Unfinished> {
        self.unreceived.iter().chain(&self.waiting).chain(&self.never_ready)
    }
}

/// Something left, with its tag in place of the tag's number.
fn with_tag(mut left: Unfinished, tags: &TagNumbers) -> Unfinished {
    if let Unfinished::Unreceived { tag, .. } | Unfinished::Waiting { tag, .. } = &mut left {
        *tag = tags.tag(*tag);
    }
    left
}

impl Outcome {
    /// With tags in place of their numbers, whose memory counts.
    fn with_tags(mut self, source: &Source) -> Self {
        let Source::File(file) = source else { return self };
        let tags = file.tags();
        let Stuck { unreceived, waiting, .. } = &mut self.stuck;
        for left in unreceived.iter_mut().chain(waiting) {
            *left = with_tag(*left, &tags);
        }
        for message in self.timeline.iter_mut().flat_map(|timeline| &mut timeline.messages) {
            message.tag = tags.tag(message.tag);
        }
        self.memory_bytes = self.memory_bytes.saturating_add(tags.bytes());
        self
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Operations and messages that are done, or released.
    pub done: u64,
    /// How many there will be, about.
    pub of: u64,
}

/// Turns between two looks at how far a run is.
pub(super) const WATCHED: u64 = 1 << 18;
/// Such turns on a network, each of which may look at all messages under way.
pub(super) const WATCHED_ON_NETWORK: u64 = 1 << 10;

/// Is told how far a run is, now and then.
pub type Watch<'w> = &'w dyn Fn(Progress);

impl<'a> Job<'a> {
    /// A job with nothing to be known besides the makespan, on one thread, in
    /// as much memory as there is.
    #[must_use]
    pub fn new(parameters: Parameters<'a>, settings: Settings) -> Self {
        Self {
            parameters,
            settings,
            noise: None,
            network: None,
            most_bytes: u64::MAX,
            threads: 1,
            program: None,
            wanted: Wanted::default(),
        }
    }

    /// Simulates `source`, after loading it where it has to be stored. A binary file for
    /// which there is no memory is read while it runs. The outcome says how, and does
    /// not depend on it. Where the schedule cannot come to its end, [`Outcome::stuck`]
    /// has what is left.
    ///
    /// # Errors
    ///
    /// [`RunError`].
    pub fn simulate(&self, source: &Source, watch: Watch<'_>) -> Result<Outcome, RunError> {
        self.numbered(source, watch).map(|outcome| outcome.with_tags(source))
    }

    /// As [`Job::simulate`], with numbers in place of high tags.
    fn numbered(&self, source: &Source, watch: Watch<'_>) -> Result<Outcome, RunError> {
        if self.program == Some(ProgramForm::Streamed) {
            return self.streamed(source, "asked for", watch);
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

    /// How much memory there is beside what observers take.
    fn limit<'l>(&self, besides: &'l dyn Fn(&Needs) -> u64) -> Limit<'l> {
        Limit { bytes: self.most_bytes, besides }
    }

    /// Bytes that observers take.
    fn besides(&self, needs: &Needs) -> u64 {
        // The operation and its message, each an event or three.
        const CAUSES: usize = 4 * Causes::bytes_an_event();
        // On a network when a processor began with a message and was done, and how the message
        // came through.
        const ON_NETWORK: usize = 2 * Causes::bytes_an_event() + size_of::<Transfer>();
        // Their functions, each kept in a table and evaluated at both ends of an
        // interval, where none equals another.
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

/// Tells the time from its making on.
#[derive(Clone, Copy, Debug)]
struct Stopwatch {
    clock: HostClock,
    started: u64,
}

impl Stopwatch {
    fn start() -> Self {
        let clock = HostClock::monotonic_raw();
        Self { clock, started: clock.now() }
    }

    fn read(&self) -> Picos {
        self.clock.duration(self.clock.now().saturating_sub(self.started))
    }
}

#[cfg(test)]
mod tests {
    use loggap_core::goal::pattern::{Options, Pattern};
    use loggap_core::model::LogGops;
    use loggap_core::sim::{Receive, Rendezvous};
    use loggap_core::units::{Bytes, PerByte};

    use super::*;
    use crate::schedule::{Form, ScheduleFile, WriteError, write};

    const SET: LogGops = LogGops {
        latency: Picos(2_500_000),
        overhead: Picos(1_500_000),
        gap: Picos(1_000_000),
        gap_per_byte: PerByte(6_000 << PerByte::FRACTION_BITS),
        overhead_per_byte: PerByte::ZERO,
        eager_limit: Bytes(65_535),
    };

    /// Outcomes of one schedule by each engine: in windows from text and from a binary file,
    /// read as it runs, and in order with overlap.
    fn in_every_way(text: &str) -> Vec<(Method, Outcome)> {
        let binary = tempfile::NamedTempFile::new().unwrap();
        let source = ScheduleFile::from_bytes("t.goal", text.into()).unwrap();
        let mut file = binary.reopen().unwrap();
        let fed = write(&mut file, Form::Native, &source.extent(), |writer| {
            source.feed(writer).map_err(|error| WriteError::Schedule(error.to_string()))
        });
        fed.unwrap();
        let job = Job::new(Parameters::one(SET), Settings::default());
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
        // Sends of one processor a gap apart on one interface, an overhead apart on two.
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
        let job = Job::new(Parameters::one(SET), Settings::default());
        let computed = job.simulate(&source, &|_| {}).unwrap();
        assert_eq!(computed.method, Method::COMPUTED);

        // Sends that wait for their receivers have messages of several kinds.
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

        // Causes come before what they delay, so that ranks have their turns one after the other.
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
}
