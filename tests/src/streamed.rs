//! Runs of schedules that are read while they run, from a file of either binary form.

use core::convert::Infallible;
use core::sync::atomic::AtomicU32;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::SystemTime;

use crate::engine::{self, outcome};
use crate::program::Program;
use crate::shadow::{self, Outcome};
use loggap::schedule::{Form, ScheduleFile};
use loggap::simulation::{Limit, LoadError, LookedUp, NetworkPlan, OwnedMemory, RunError, stream};
use loggap_core::goal::binary::{
    EdgeSpan, LookupMemory, Native, NativeWriter, Reference, ReferenceWriter,
};
use loggap_core::goal::{Edge, Lookup, Output, RankMemory, RankNode, Sink};
use loggap_core::sim::implicit::RankRange;
use loggap_core::sim::mail::{Block, CHUNK, ChunkList, Chunks};
use loggap_core::sim::streamed::{Builder, GivenUp, Mail, Message, Outbox, Part};
use loggap_core::sim::{
    Engine, Finished, Memory, MessageKind, NoNoise, Noise, Observed, Observer, Parameters, Sent,
    Settings, Silent, SimError, Survey,
};

/// Bytes in memory.
#[derive(Debug, Default)]
struct Bytes(Vec<u8>);

impl Output for Bytes {
    type Error = Infallible;

    fn reserve(&mut self, length: u64) -> Result<(), Infallible> {
        self.0.resize(length as usize, 0);
        Ok(())
    }

    fn patch(&mut self, at: u64, bytes: &[u8]) -> Result<(), Infallible> {
        self.0[at as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// The program as a file of a binary form; `None` where that cannot say it.
#[must_use]
pub fn bytes(program: &Program, form: Form) -> Option<Vec<u8>> {
    let edges = program.ranks.iter().map(|rank| rank.edges.len()).max().unwrap_or(0);
    if form == Form::Native {
        let ops = program.ranks.iter().map(|rank| rank.ops.len()).max().unwrap_or(0);
        let mut pending = vec![[0; 8]; edges + ops];
        let mut writer = NativeWriter::new(Bytes::default(), &mut pending);
        program.replay(&mut writer).ok()?;
        return Some(writer.finish().unwrap().0);
    }
    let ops = program.ranks.iter().map(|rank| rank.ops.len()).max().unwrap_or(0);
    let memory = RankMemory {
        nodes: &mut vec![RankNode::default(); ops],
        edges: &mut vec![Edge::default(); edges],
        successors: &mut vec![0; edges],
    };
    let mut writer = ReferenceWriter::new(Bytes::default(), memory);
    program.replay(&mut writer).ok()?;
    Some(writer.finish().unwrap().0)
}

/// Runs `program` from a file under the eyes of an observer; `None` where the form cannot
/// say it. Also the most operations that were under way at a time.
///
/// # Errors
///
/// Those of the run.
pub fn run_observed<O: Observer>(
    (program, form): (&Program, Form),
    settings: &shadow::Settings,
    noise: impl Noise,
    (plan, observer): (Option<&NetworkPlan>, O),
) -> Option<Result<(Outcome, O, u32), RunError>> {
    let file = ScheduleFile::from_bytes("program", bytes(program, form)?).unwrap();
    let sets = engine::sets(settings);
    let (parameters, settings) = (sets.parameters().unwrap(), engine::settings(settings));
    let none = Limit::none();
    Some(stream(LookedUp::File(&file), settings, &none, |schedule, needs| {
        let Some(plan) = plan else {
            let mut engine = Engine::with(schedule, parameters, settings, noise, observer);
            let outcome = outcome(&mut engine, needs.ranks);
            let most = engine.most_records().unwrap();
            return Ok((outcome, engine.into_observer(), most));
        };
        let messages = schedule.sends() as usize;
        let mut placed = plan.place(needs.ranks, schedule.interfaces(), messages).unwrap();
        let network = placed.lend().unwrap();
        let mut engine =
            Engine::on_network(schedule, parameters, settings, noise, observer, network);
        let outcome = outcome(&mut engine, needs.ranks);
        let most = engine.most_records().unwrap();
        Ok((outcome, engine.into_observer(), most))
    }))
}

/// How a run ended over whose file something was written.
#[derive(Debug)]
pub struct Changed<O> {
    /// How the run itself did; `Ok(None)` where it took too many turns.
    pub finished: Result<Option<Finished>, SimError>,
    /// Of that.
    pub observer: O,
    /// What came of it in the end.
    pub result: Result<(), RunError>,
}

/// Runs `program` from the file at `path` for at most so many `turns`, after `written` was
/// written over that: when all of it had been checked, and what is known of its edges had
/// been noted. `None` where the form cannot say the program.
pub fn run_changed<O: Observer>(
    (program, form): (&Program, Form),
    settings: &shadow::Settings,
    (path, written): (&Path, Option<&[u8]>),
    (observer, turns): (O, u64),
) -> Option<Changed<O>> {
    fs::write(path, bytes(program, form)?).unwrap();
    let writer = fs::File::options().write(true).open(path).unwrap();
    // Not within what the system takes for the same time.
    writer.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let file = ScheduleFile::open(path).unwrap();
    let sets = engine::sets(settings);
    let (parameters, settings) = (sets.parameters().unwrap(), engine::settings(settings));
    let mut ran = None;
    let result = stream(LookedUp::File(&file), settings, &Limit::none(), |schedule, _| {
        if let Some(written) = written {
            writer.write_all_at(written, 0).unwrap();
        }
        let mut engine = Engine::with(schedule, parameters, settings, NoNoise, observer);
        let finished = engine.run_some(turns);
        ran = Some((finished, engine.into_observer()));
        Ok(())
    });
    let (finished, observer) = ran.unwrap();
    Some(Changed { finished, observer, result })
}

/// Runs a program that has memory for so many `records`, with its operations looked up
/// in `damaged`, a file in place of the one that was checked, if there is one; in at most
/// so many turns.
///
/// # Errors
///
/// Why it was not run, or what it stopped with.
pub fn run_with(
    (program, form): (&Program, Form),
    settings: &shadow::Settings,
    (records, damaged): (u64, Option<Vec<u8>>),
    turns: u64,
) -> Result<u64, String> {
    let sound = bytes(program, form).ok_or("the form cannot say it")?;
    let looked_up = damaged.unwrap_or(sound);
    let sets = engine::sets(settings);
    let (parameters, settings) = (sets.parameters().unwrap(), engine::settings(settings));
    let mut survey = Survey::default();
    program.replay(&mut survey).unwrap();
    let requirements = survey.streamed(settings, records).unwrap();
    let mut simulation = OwnedMemory::new(&requirements).unwrap();
    // Content on entry does not matter.
    let memory = Memory {
        partly: &mut vec![7; requirements.partly],
        released: &mut vec![7; requirements.released],
        ..simulation.lend()
    };
    let mut builder = Builder::new(memory, requirements).unwrap();
    program.replay(&mut builder).unwrap();
    let open = |error: &dyn core::fmt::Display| error.to_string();
    match form {
        Form::Native => {
            let view = Native::open(&looked_up).map_err(|error| open(&error))?;
            let spans = &mut vec![EdgeSpan::default(); view.spans() as usize];
            let firsts = &mut vec![7; program.ranks.len() + 1];
            let file = view.lookup(LookupMemory { spans, firsts }).map_err(|error| open(&error))?;
            events(builder, file, parameters, settings, turns)
        }
        _ => {
            let file = Reference::open(&looked_up).map_err(|error| open(&error))?;
            events(builder, file, parameters, settings, turns)
        }
    }
    .map_err(|error| error.to_string())
}

fn events<'m>(
    builder: Builder<'m>,
    file: impl Lookup,
    parameters: Parameters<'_>,
    settings: Settings,
    turns: u64,
) -> Result<u64, SimError> {
    let schedule = builder.finish(file).unwrap();
    let mut engine = Engine::with(schedule, parameters, settings, NoNoise, Silent);
    let finished = engine.run_some(turns)?.expect("a bounded number of turns");
    engine.unfinished(|_| {});
    Ok(finished.events)
}

/// Runs `program` from a file, in parts of 2^`shift` ranks; or why that was given up.
///
/// # Errors
///
/// What it stopped with.
pub fn run_in_parts(
    program: &Program,
    settings: &shadow::Settings,
    noise: impl Noise + Copy,
    shift: u32,
) -> Result<Result<Outcome, GivenUp>, SimError> {
    let sets = engine::sets(settings);
    let (parameters, settings) = (sets.parameters().unwrap(), engine::settings(settings));
    let bytes = bytes(program, Form::Native).unwrap();
    let view = Native::open(&bytes).unwrap();
    let spans = &mut vec![EdgeSpan::default(); view.spans() as usize];
    let firsts = &mut vec![7; program.ranks.len() + 1];
    let file = view.lookup(LookupMemory { spans, firsts }).unwrap();
    let ranks = program.ranks.len() as u32;
    let count = ranks.div_ceil(1 << shift);
    let own = |index: u32| index << shift..((index + 1) << shift).min(ranks);
    let needs: Vec<_> = (0..count)
        .map(|index| {
            let mut survey = Survey::default();
            Sink::ranks(&mut survey, own(index).len() as u32).unwrap();
            own(index).for_each(|rank| feed(program, rank, &mut survey).unwrap());
            let all = program.ops() as u64;
            survey.streamed_part(settings, u64::MAX, all).unwrap()
        })
        .collect();
    let mut memory: Vec<_> = (needs.iter())
        .map(|needs| {
            let simulation = OwnedMemory::new(needs).unwrap();
            (simulation, vec![7; needs.partly], vec![7; needs.released])
        })
        .collect();
    let mut parts = Vec::new();
    for (index, (needs, (simulation, partly, released))) in (0..).zip(needs.iter().zip(&mut memory))
    {
        let memory = Memory { partly, released, ..simulation.lend() };
        let mut builder = Builder::new(memory, *needs).unwrap();
        builder.part(ranks, own(index)).unwrap();
        own(index).for_each(|rank| feed(program, rank, &mut builder).unwrap());
        let schedule = builder.finish(file).unwrap();
        let range = RankRange { index, shift, block: Block::ALL };
        match Part::new(schedule, parameters, settings, noise, range) {
            Ok(part) => parts.push(part),
            Err(why) => return Ok(Err(why)),
        }
    }
    run_windows(parts, count as usize)
}

/// Runs parts to their end, window after window; the mails take turns.
fn run_windows<N: Noise, F: Lookup>(
    mut parts: Vec<Part<'_, '_, N, F>>,
    count: usize,
) -> Result<Result<Outcome, GivenUp>, SimError> {
    let chunks = 64;
    let messages: Vec<_> = (0..chunks * CHUNK).map(|_| Message::default()).collect();
    let before: Vec<_> = (0..chunks).map(|_| AtomicU32::default()).collect();
    let chains = [(); 2].map(|()| (0..count).map(|_| ChunkList::default()).collect::<Vec<_>>());
    let mut mails = chains.each_ref().map(|chains| Mail::new(&messages, &before, chains, count));
    let (mut window, mut chunks) = (0, Chunks::new(0, chunks));
    loop {
        let [inbox, sending] = mails;
        let mut outbox = Outbox::new(sending, 0, chunks);
        for (index, part) in (0..).zip(&mut parts) {
            if part.next_window().is_some_and(|due| due <= window) || inbox.any(index) {
                part.run_window(window, &inbox, &mut outbox)?;
            }
        }
        if let Some(why) = parts.iter().find_map(Part::given_up) {
            return Ok(Err(why));
        }
        mails.reverse();
        let sent = outbox.sent();
        chunks = outbox.into_chunks();
        let due = parts.iter().filter_map(Part::next_window).min();
        window = match due {
            _ if sent > 0 => window + 1,
            Some(due) => due.max(window + 1),
            None => break,
        };
    }
    let mut outcome = Outcome::default();
    for part in &mut parts {
        outcome.finish.extend(part.finishes().map(|time| time.0));
        outcome.events += part.finished()?.events;
        part.unfinished(|left| engine::note(&mut outcome, &left));
    }
    Ok(Ok(outcome))
}

/// Writes a rank of `program` into `sink`.
fn feed<S: Sink>(program: &Program, rank: u32, sink: &mut S) -> Result<(), S::Error> {
    let program = &program.ranks[rank as usize];
    sink.begin_rank(rank)?;
    for op in &program.ops {
        sink.op(*op)?;
    }
    sink.end_rank()
}

/// Whether a run failed because a lookup would take too long.
#[must_use]
pub fn is_scattered(error: &RunError) -> bool {
    matches!(error, RunError::Load(LoadError::Input(refused)) if refused.message.contains("far apart"))
}

/// What ran: calculations, and messages of sends that were handled.
#[derive(Debug, Default)]
pub struct Runs {
    /// Operations, in the order in which they ran.
    pub calculated: Vec<u32>,
    /// Sends, with which message of them.
    pub handled: Vec<(u32, MessageKind)>,
}

impl Runs {
    /// Whether nothing ran twice.
    #[must_use]
    pub fn are_unique(&self) -> bool {
        fn is_unique<T: PartialEq>(all: &[T]) -> bool {
            (1..all.len()).all(|at| !all[..at].contains(&all[at]))
        }
        is_unique(&self.calculated) && is_unique(&self.handled)
    }
}

impl Observer for Runs {
    fn observe(&mut self, event: Observed<'_>) {
        match event {
            Observed::Calculated(event) => self.calculated.push(event.op),
            Observed::Handled(event) => self.handled.push((event.op, event.message_kind)),
            _ => {}
        }
    }
}

/// Keeps all that it is told, in that order.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Log(pub Vec<String>);

impl Observer for Log {
    fn observe(&mut self, event: Observed<'_>) {
        self.0.push(match event {
            // Their tags have no meaning.
            Observed::Sent(event)
                if matches!(event.message_kind, MessageKind::Cts | MessageKind::Data) =>
            {
                format!("{:?}", Sent { tag: 0, ..*event })
            }
            event => format!("{event:?}"),
        });
    }
}
