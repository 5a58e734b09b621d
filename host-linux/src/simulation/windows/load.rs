//! Loads schedules for runs in windows.

use std::ops::Range;
use std::sync::Mutex;

use loggap_core::goal::{ANY, Edge, Op, OpKind, Sink};
use loggap_core::sim::mail::Block;
use loggap_core::sim::windows::{Away, Builder, BuiltPart, Requirements, Schedule, Unsuitable};
use loggap_core::sim::{BuildError, Parameters, Settings, Survey};

use super::WindowMemory;
use super::parts::lock;
use crate::schedule::Extent;
use crate::side_by_side::side_by_side;
use crate::simulation::{
    Hints, Limit, LoadError, Needs, Parts, Processes, RunError, Source, agreed,
};

/// log₂ of the largest number of ranks in a partition: their states fit into a second-level cache.
const MOST_SHIFT: u32 = 13;
/// log₂ of the smallest number of ranks in a partition, so that messages outnumber partitions.
const LEAST_SHIFT: u32 = 4;
/// Partitions for each thread, so that the load is balanced.
const EACH: u32 = 8;

/// log₂ of the number of ranks in a partition, for a run on `threads` threads.
#[must_use]
pub fn partition_shift(ranks: u32, threads: usize) -> u32 {
    if threads < 2 {
        return MOST_SHIFT;
    }
    let parts = u32::try_from(threads).unwrap_or(u32::MAX).saturating_mul(EACH);
    (ranks / parts).max(1).ilog2().clamp(LEAST_SHIFT, MOST_SHIFT)
}

/// log₂ of the number of ranks in a partition, and the partitions of this process, for a run on
/// several processes with `threads` threads each.
pub(super) fn blocks(ranks: u32, threads: usize, processes: &dyn Processes) -> (u32, Block) {
    let count = processes.count();
    if count < 2 {
        return (partition_shift(ranks, threads), Block::ALL);
    }
    // Every process gets some.
    let most = (ranks / count).max(1).ilog2();
    let shift = partition_shift(ranks, threads.saturating_mul(count as usize)).min(most);
    let each = ranks.div_ceil(1 << shift).div_ceil(count).max(1);
    (shift, Block { first: processes.index() * each, each })
}

/// Division of the ranks into partitions.
#[derive(Clone, Copy, Debug)]
pub enum Split {
    /// Suitable for this number of threads.
    Threads(usize),
    /// A single partition, so that observers see causes before effects.
    Whole,
    /// log₂ of the number of ranks in a partition, and the partitions of this process.
    Given(u32, Block),
}

impl Split {
    /// log₂ of the number of ranks in a partition, and the partitions of this process.
    fn of(self, ranks: u32) -> (u32, Block) {
        match self {
            Self::Threads(threads) => (partition_shift(ranks, threads), Block::ALL),
            Self::Whole => (u32::BITS - ranks.leading_zeros(), Block::ALL),
            Self::Given(shift, block) => (shift, block),
        }
    }
}

/// Loads `source`, and lends the schedule to `run` with its needs and the memory limit for its
/// messages in bytes; returns the result of that.
///
/// # Errors
///
/// [`LoadError`], also if the schedule is [`LoadError::unsuitable`] for windows; `run` was not called
/// in this case.
pub fn load<T>(
    source: &Source,
    parameters: Parameters<'_>,
    settings: Settings,
    limit: &Limit<'_>,
    split: Split,
    run: impl FnOnce(Schedule<'_>, &Needs, u64) -> T,
) -> Result<T, LoadError> {
    let (away, own, parts) = (Away::FEW, None, None);
    let loading = Loading { source, parameters, settings, limit, split, away, own, parts };
    let guess = source.guess().and_then(|survey| loading.prepared(&survey).ok());
    // The estimate may have been too high.
    let loader = guess.map_or_else(|| loading.surveyed(), Ok)?;
    let mut memory = WindowMemory::new(&loader.requirements).map_err(LoadError::Pages)?;
    let parts = loading.build_parts(&loader, &mut memory);
    let builder = Builder::new(memory.lend(), loader.requirements, parameters)?;
    let schedule = match parts {
        Some(parts) => builder.join(parts)?,
        None => loading.built(builder)?,
    };
    let mail_bytes = loading.mail_bytes(&loader)?;
    Ok(run(schedule, &loader.needs, mail_bytes))
}

/// Division of a schedule among processes.
#[derive(Clone, Copy, Debug)]
pub struct Across<'a> {
    /// Ranks of each process; by default blocks.
    pub parts: Option<&'a Parts>,
    /// Threads of each process.
    pub threads: usize,
    /// Processes that share the ranks.
    pub processes: &'a dyn Processes,
    /// Room for messages of other processes.
    pub away: Away,
}

/// As [`load`], for the ranks of this process; `run` is called if all processes can run the schedule.
///
/// # Errors
///
/// [`RunError`]; `run` was not called in this case.
pub fn load_across<T>(
    source: &Source,
    parameters: Parameters<'_>,
    settings: Settings,
    limit: &Limit<'_>,
    across: &Across<'_>,
    run: impl FnOnce(Schedule<'_>, &Needs, u64) -> T,
) -> Result<T, RunError> {
    let &Across { parts, threads, processes, away } = across;
    let ranks = source.ranks();
    let (shift, block) =
        parts.map_or_else(|| blocks(ranks, threads, processes), |parts| parts.divided);
    let split = Split::Given(shift, block);
    let own = Some(block.ranks(shift, parts.map_or(ranks, |_| u32::MAX)));
    let loading = Loading { source, parameters, settings, limit, split, away, own, parts };
    let prepare = || {
        let loader = loading.surveyed()?;
        let memory = WindowMemory::new(&loader.requirements).map_err(LoadError::Pages)?;
        Ok((loader, memory))
    };
    let (loader, mut memory) = agreed(processes, prepare().map_err(of_one_process))?;
    let lent = memory.lend();
    let build = || {
        let names = parts.map_or(&[][..], Parts::ranks);
        let builder = Builder::new(lent, loader.requirements, parameters)?.named(names);
        Ok((loading.built(builder)?, loading.mail_bytes(&loader)?))
    };
    let (schedule, mail_bytes) = agreed(processes, build().map_err(of_one_process))?;
    Ok(run(schedule, &loader.needs, mail_bytes))
}

/// Refers to a run on one process if the schedule cannot run in windows.
fn of_one_process(error: LoadError) -> RunError {
    let error = match error.unsuitable() {
        None => error,
        Some(why @ Unsuitable::Rendezvous { .. }) => {
            LoadError::OneProcess(format!("{why}, unless --rendezvous is handshake"))
        }
        Some(why) => LoadError::OneProcess(why.to_string()),
    };
    error.into()
}

/// A schedule that is loaded, and how it is to run.
struct Loading<'a> {
    source: &'a Source,
    parameters: Parameters<'a>,
    settings: Settings,
    limit: &'a Limit<'a>,
    split: Split,
    away: Away,
    /// Numbers of the ranks to load; `None` for all.
    own: Option<Range<u32>>,
    parts: Option<&'a Parts>,
}

/// Requirements and limits, known before a schedule is built.
struct Loader {
    requirements: Requirements,
    needs: Needs,
    mail_bytes: u64,
}

impl Loading<'_> {
    /// Writes the ranks to load into `sink`.
    fn feed<S: Sink<Error = BuildError>>(
        &self,
        sink: &mut S,
        hints: Option<&Hints<'_>>,
    ) -> Result<(), LoadError> {
        let Some(own) = &self.own else { return self.source.feed(sink, hints) };
        let mut sink = OwnRanks::new(sink, own.clone(), self.parts);
        self.source.feed(&mut sink, hints)?;
        Ok(sink.fill()?)
    }

    fn surveyed(&self) -> Result<Loader, LoadError> {
        let mut survey = Survey::default();
        self.feed(&mut survey, None)?;
        self.prepared(&survey)
    }

    fn prepared(&self, survey: &Survey) -> Result<Loader, LoadError> {
        // A typical number: one message from each rank in a window.
        const EACH_RANK: u64 = 64;
        let &Self { parameters, settings, limit, split, away, .. } = self;
        let divided = split.of(survey.ranks());
        let requirements = Requirements::of(survey, &parameters, settings, divided, away);
        let requirements = requirements.map_err(BuildError::Unsuitable)?;
        let mail = survey.ops().min(u64::from(survey.ranks())).saturating_mul(EACH_RANK);
        let bytes = requirements.bytes();
        let needs = Needs::of(survey, bytes.saturating_add(mail)).within(limit)?;
        let taken = bytes.saturating_add((limit.besides)(&needs));
        Ok(Loader { requirements, needs, mail_bytes: limit.bytes - taken })
    }

    fn built<'m>(&self, mut builder: Builder<'m>) -> Result<Schedule<'m>, LoadError> {
        self.feed(&mut builder, self.limit.hints)?;
        Ok(builder.finish()?)
    }

    /// Memory limit for messages, once the large tags are known.
    fn mail_bytes(&self, loader: &Loader) -> Result<u64, LoadError> {
        let tags = self.source.tag_bytes();
        loader.needs.with_tags(tags).within(self.limit)?;
        Ok(loader.mail_bytes.saturating_sub(tags))
    }

    /// Builds the parts of a text on several threads. `None` if it has to be read as a whole: as one
    /// of its parts is refused, or to note hints.
    fn build_parts(&self, loader: &Loader, memory: &mut WindowMemory) -> Option<Vec<BuiltPart>> {
        let (Source::File(file), Split::Threads(threads)) = (self.source, self.split) else {
            return None;
        };
        let parts = file.parts();
        if parts.is_empty() || self.limit.hints.is_some() && loader.needs.ops <= Hints::MOST_OPS {
            return None;
        }
        let mut whole = Builder::new(memory.lend(), loader.requirements, self.parameters).ok()?;
        let builders = parts.iter().map(|part| {
            let Extent { ops, edges, edges_most, .. } = part.extent();
            let ranks = u32::try_from(part.own_ranks().len()).ok()?;
            Some(Mutex::new(Some(whole.split_off(ranks, [ops, edges, edges_most])?)))
        });
        let builders = builders.collect::<Option<Vec<_>>>()?;
        let points: Vec<usize> = (0..parts.len()).collect();
        let build = |at: usize| {
            let (part, builder) = parts.get(at).zip(builders.get(at))?;
            let mut builder = lock(builder).take()?;
            file.feed_part(part, &mut builder)?;
            builder.end().ok()
        };
        let built = side_by_side(threads, &points, || Ok(()), |(), at| build(at).ok_or(())).ok()?;
        file.unchanged().ok().map(|()| built)
    }
}

/// Passes on the operations of some ranks, by the numbers of these.
struct OwnRanks<'s, S> {
    sink: &'s mut S,
    own: Range<u32>,
    parts: Option<&'s Parts>,
    /// True if the open rank is one of them; otherwise the number of its operations counts.
    is_own: bool,
    ops: u32,
    /// Number that comes next.
    next: u32,
    /// The open rank.
    rank: u32,
}

impl<'s, S: Sink<Error = BuildError>> OwnRanks<'s, S> {
    const fn new(sink: &'s mut S, own: Range<u32>, parts: Option<&'s Parts>) -> Self {
        let next = own.start;
        Self { sink, own, parts, is_own: false, ops: 0, next, rank: 0 }
    }

    /// Adds empty ranks for the numbers that no rank has.
    fn fill(mut self) -> Result<(), BuildError> {
        let all = if self.parts.is_some() { self.own.end } else { self.next };
        while self.next < all {
            self.sink.begin_rank(self.next)?;
            self.sink.end_rank()?;
            self.next += 1;
        }
        Ok(())
    }

    /// An operation with the number of its peer.
    fn numbered(&self, parts: &Parts, op: Op) -> Result<Op, BuildError> {
        let mut op = op;
        match &mut op.kind {
            OpKind::Send { peer, .. } | OpKind::Receive { peer, .. } if *peer != ANY => {
                let error = BuildError::Peer { rank: self.rank, op: self.ops, peer: *peer };
                *peer = parts.number(*peer).ok_or(error)?;
            }
            _ => {}
        }
        Ok(op)
    }
}

impl<S: Sink<Error = BuildError>> Sink for OwnRanks<'_, S> {
    type Error = BuildError;

    fn ranks(&mut self, ranks: u32) -> Result<(), BuildError> {
        let numbers = |parts: &Parts| u32::try_from(parts.ranks().len()).unwrap_or(u32::MAX);
        self.sink.ranks(self.parts.map_or(ranks, numbers))
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), BuildError> {
        let number = self.parts.map_or(Some(rank), |parts| parts.number(rank));
        (self.rank, self.ops) = (rank, 0);
        self.is_own = number.is_some_and(|number| self.own.contains(&number));
        if !self.is_own {
            return Ok(());
        }
        self.next = number.unwrap_or(rank) + 1;
        self.sink.begin_rank(number.unwrap_or(rank))
    }

    fn op(&mut self, op: Op) -> Result<u32, BuildError> {
        let op = self.parts.map_or(Ok(op), |parts| self.numbered(parts, op))?;
        self.ops += 1;
        if self.is_own { self.sink.op(op) } else { Ok(self.ops - 1) }
    }

    fn edge(&mut self, edge: Edge) -> Result<(), BuildError> {
        if self.is_own { self.sink.edge(edge) } else { Ok(()) }
    }

    fn end_rank(&mut self) -> Result<(), BuildError> {
        if self.is_own { self.sink.end_rank() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::USUAL;
    use crate::schedule::ScheduleFile;
    use crate::simulation::{Job, Wanted};

    const RANKS: usize = 60;

    /// Statements of a rank: with lists of dependants, dependencies on a start, labels in no order,
    /// operations without any, and two messages to and from each neighbour.
    fn block(rank: usize) -> String {
        let (next, last) = ((rank + 1) % RANKS, (rank + RANKS - 1) % RANKS);
        format!(
            "rank {rank} {{\nl1: send 8b to {next} tag 1\nl2: recv 8b from {last} tag 1\n\
             l3: calc {rank}00\nl3 requires l2\nend: send 9b to {next}\nend requires l2\n\
             end irequires l3\nl5: recv 9b from -1\nl5 requires l1\ncalc 7\n\
             w: calc 3\nw requires l5\nw requires end\n}}\n"
        )
    }

    fn text() -> String {
        let blocks: String = (0..RANKS).map(block).collect();
        format!("num_ranks {RANKS}\n{blocks}")
    }

    /// Result of a simulation, or the error.
    fn result(text: &str, threads: usize) -> String {
        let file = match ScheduleFile::in_parts(text.into(), threads, 100) {
            Ok(file) => file,
            Err(error) => return error.to_string(),
        };
        let wanted = Wanted { finish: true, ..Wanted::default() };
        let job = Job { threads, wanted, ..Job::new(Parameters::one(USUAL), Settings::default()) };
        match job.simulate(&Source::File(file), &|_| {}) {
            Ok(outcome) => {
                format!("{:?} {:?} {:?}", outcome.finished, outcome.finish, outcome.stuck)
            }
            Err(error) => error.to_string(),
        }
    }

    /// Memory of the schedule if it is built from parts, and as a whole.
    fn bytes(text: &str) -> [Option<u64>; 2] {
        let (parameters, settings) = (Parameters::one(USUAL), Settings::default());
        let (limit, split) = (Limit::none(), Split::Threads(3));
        let source = Source::File(ScheduleFile::in_parts(text.into(), 3, 100).unwrap());
        let guess = source.guess().unwrap();
        let (source, limit, away, own, parts) = (&source, &limit, Away::FEW, None, None);
        let loading = Loading { source, parameters, settings, limit, split, away, own, parts };
        let loader = loading.prepared(&guess).unwrap();
        let mut memory = WindowMemory::new(&loader.requirements).unwrap();
        let parts = loading.build_parts(&loader, &mut memory);
        let joined = parts.map(|parts| {
            let new = Builder::new(memory.lend(), loader.requirements, parameters);
            new.unwrap().join(parts).unwrap().bytes()
        });
        let new = Builder::new(memory.lend(), loader.requirements, parameters);
        let mut whole = new.unwrap();
        let fed = source.feed(&mut whole, None);
        [joined, fed.ok().map(|()| whole.finish().unwrap().bytes())]
    }

    #[test]
    fn a_text_is_built_in_parts_unless_one_of_them_needs_the_whole() {
        let sound = text();
        let (crlf, comment) = (sound.replace('\n', "\r\n"), "w: calc 3\n// rank 3 {\n");
        let long = "calc 7\n".repeat(2_000);
        for text in [
            sound.clone(),
            crlf,
            sound.replace("w: calc 3\n", comment),
            sound.replacen("calc 7\n", &long, 1),
        ] {
            let [parts, whole] = bytes(&text);
            assert!(parts.is_some() && parts == whole, "{parts:?} {whole:?}");
        }
        for (from, to) in [
            ("send 8b to 50", "send 70000b to 50"),
            ("send 8b to 50 tag 1\n", "send 8b to 50 tag 50000100007\n"),
        ] {
            assert_eq!(bytes(&sound.replace(from, to))[0], None, "{to}");
        }
    }

    #[test]
    fn results_and_errors_of_a_text_are_the_same_on_every_number_of_threads() {
        let sound = text();
        let with = |from: &str, to: &str| sound.replacen(from, to, 1);
        let swapped = with(&block(9), "").replacen(&block(40), &(block(40) + &block(9)), 1);
        let last = with("num_ranks 60\n", "") + "num_ranks 60\n";
        let sound_ones = [
            sound.clone(),
            sound.replace('\n', "\r\n"),
            sound.replace("calc 7\n", "// rank 3 {\n/*\nrank 3 {\n*/ calc 7 // }\n"),
            sound.replace("rank 4", "/*\nrank 3 {\n*/ rank 4"),
            sound.replace("tag 1\n", "tag 50000100007\n"),
            sound.replace("9b", "70000b"),
            with("calc 4100\n", "calc 4100 cpu 1\n"),
            with("calc 7\n", &"calc 7\n".repeat(2_000)),
            with("l5: recv 9b from -1", "l5: recv 9b from 7"),
            swapped,
            last,
        ];
        let wrong = [
            (with("send 8b to 10", "sned 8b to 10"), "line 138,"),
            (with("send 8b to 50", "sned 8b to 50"), "line 738,"),
            (with("send 8b to 50", "send 8b to 60"), "line 738:"),
            (with("rank 40 {", "rank 39 {"), "rank 39"),
            (with("rank 40 {", "rank 60 {"), "rank 60"),
            (with(&block(40), ""), "rank 40"),
            (with(&block(59), ""), "rank 59"),
            (sound.replace("end irequires l3", "end irequires l9"), "line 9,"),
            (with("rank 40 {", "rank 40 {\nnum_ranks 60\n"), "line 603,"),
            (with("rank 40 {", "/* rank 40 {"), "line 602,"),
            (sound.trim_end().trim_end_matches('}').to_owned(), "rank 59"),
        ];
        let wrong = wrong.iter().map(|(text, about)| (text, Some(*about)));
        for (text, about) in sound_ones.iter().map(|text| (text, None)).chain(wrong) {
            let one = result(text, 1);
            let is_error = one.starts_with("t.goal");
            assert!(is_error == about.is_some() && one.contains(about.unwrap_or("Picos")), "{one}");
            for threads in [2, 3, 7] {
                assert_eq!(result(text, threads), one, "{threads} threads");
            }
        }
    }
}
