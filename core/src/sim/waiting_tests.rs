//! Number of inspected records if very many wait.

use super::{BuildError, Builder, Engine, Memory, Parameters, Receive, Settings, Survey};
use crate::goal::{ANY, ANY_TAG, Op, OpKind, Sink};
use crate::model::{LogGops, Preset};
use crate::units::{Bytes, PerByte, Picos};
use crate::with_memory_parts;
#[cfg(target_has_atomic = "64")]
use crate::with_window_memory_parts;
use std::vec;
use std::vec::Vec;

fn zeroed<T: Default>(count: usize) -> Vec<T> {
    (0..count).map(|_| T::default()).collect()
}

/// Memory of these needs.
macro_rules! lend {
    ($needs:ident, $memory:ident; $($(#[$doc:meta])* $part:ident: $element:ty,)*) => {
        $memory { $($part: &mut zeroed::<$element>($needs.$part),)* }
    };
}

/// Schedule: operations of each rank with their dependencies.
#[derive(Default)]
struct Program {
    ranks: Vec<Vec<(Op, Option<u32>)>>,
}

impl Program {
    fn new(ranks: usize) -> Self {
        Self { ranks: vec![Vec::new(); ranks] }
    }

    fn op(&mut self, rank: usize, kind: OpKind, cpu: u16, on: Option<u32>) {
        self.ranks[rank].push((Op { kind, cpu, nic: 0 }, on));
    }

    fn on_interface(&mut self, rank: usize, kind: OpKind, nic: u16) {
        self.ranks[rank].push((Op { kind, cpu: 0, nic }, None));
    }

    fn play(&self, sink: &mut impl Sink<Error = BuildError>) -> Result<(), BuildError> {
        sink.ranks(u32::try_from(self.ranks.len()).unwrap())?;
        for (rank, ops) in (0..).zip(&self.ranks) {
            sink.begin_rank(rank)?;
            for &(op, on) in ops {
                let index = sink.op(op)?;
                if let Some(on) = on {
                    sink.requires(index, on)?;
                }
            }
            sink.end_rank()?;
        }
        Ok(())
    }

    /// Inspections in a complete run, for each operation: in matching, and everything else.
    fn looks(&self, receive: Receive) -> [u64; 2] {
        let settings = Settings { receive, ..Settings::default() };
        let mut survey = Survey::default();
        self.play(&mut survey).unwrap();
        let needs = survey.requirements(settings).unwrap();
        let memory = with_memory_parts!(lend needs, Memory;);
        let mut builder = Builder::new(memory, needs).unwrap();
        self.play(&mut builder).unwrap();
        let preset: Preset = "loggopsim".parse().unwrap();
        let parameters = Parameters::per_protocol(preset.protocols).unwrap();
        let schedule = builder.finish().unwrap();
        let events = schedule.events();
        let mut engine = Engine::new(schedule, parameters, settings);
        assert_eq!(engine.run().unwrap().events, events);
        engine.unfinished(|left| panic!("{left}"));
        [engine.ranks.waiting.looks.get(), engine.ranks.heaps.looks]
            .map(|looks| looks / survey.ops())
    }
}

/// Result of a run in windows.
#[derive(Debug)]
struct Windows {
    /// Steps for each operation.
    each: u64,
    steps: u64,
    gave_up: bool,
}

#[cfg(target_has_atomic = "64")]
impl Program {
    /// A run in windows on one partition; `free` is the number of steps allowed for each window in
    /// addition to those for its events.
    fn in_windows(&self, parameters: Parameters<'_>, receive: Receive, free: u64) -> Windows {
        use super::mail::{Block, CHUNK, ChunkList, Chunks};
        use super::windows::{Away, Builder, Mail, Memory, Message, Outbox, Requirements};
        use core::sync::atomic::AtomicU32;

        let settings = Settings { receive, ..Settings::default() };
        let mut survey = Survey::default();
        self.play(&mut survey).unwrap();
        let needs =
            Requirements::of(&survey, &parameters, settings, (31, Block::ALL), Away::FEW).unwrap();
        let memory = with_window_memory_parts!(lend needs, Memory;);
        let mut builder = Builder::new(memory, needs, parameters).unwrap();
        self.play(&mut builder).unwrap();
        let schedule = builder.finish().unwrap();
        let chunks = schedule.sends() / CHUNK + 2;
        let messages = zeroed::<Message>((chunks * CHUNK) as usize);
        let before = zeroed::<AtomicU32>(chunks as usize);
        let chains = [zeroed::<ChunkList>(1), zeroed::<ChunkList>(1)];
        let mut mails = chains.each_ref().map(|chains| Mail::new(&messages, &before, chains, 1));
        let mut chunks = Chunks::new(0, chunks);
        let events = schedule.events();
        let mut partition = schedule.observed(super::NoNoise, |_| super::Silent).next().unwrap();
        let mut window = Some(0);
        while let Some(now) = window
            && !partition.gave_up()
        {
            partition.allow(free);
            let [inbox, sending] = mails;
            let mut outbox = Outbox::new(sending, 0, chunks);
            partition.run(now, &inbox, &mut outbox);
            mails.reverse();
            let later = partition.next().map(|due| due.max(now + 1));
            window = if outbox.sent() > 0 { Some(now + 1) } else { later };
            chunks = outbox.into_chunks();
        }
        let gave_up = partition.gave_up();
        assert!(gave_up || partition.events() == events);
        let steps = partition.steps();
        let each = (partition.heaps.looks + steps) / survey.ops();
        Windows { each, steps, gave_up }
    }
}

const CALC: OpKind = OpKind::Calc { duration: Picos(100) };

const fn send(tag: u64) -> OpKind {
    OpKind::Send { peer: 0, size: 1, tag }
}

const fn receive(peer: u32, tag: u64) -> OpKind {
    OpKind::Receive { peer, size: 1, tag }
}

/// Order and source of the receives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Posted {
    First,
    AfterTheMessages,
    /// From any sender, posted before all messages.
    OfAnyoneFirst,
    /// From any sender, in the reverse order of the messages.
    OfAnyone,
    /// From any sender, the newest first, then in the order of the messages.
    OldestOfAnyone,
    /// Those with odd tags from any sender, then the others from rank 1.
    OddOfAnyone,
    /// With any tag, except the last.
    AnyTag,
}

/// Peer and tag of each receive, in order.
fn receives(posted: Posted, many: u32) -> Vec<(u32, u64)> {
    let up = 0..u64::from(many);
    match posted {
        Posted::First | Posted::AfterTheMessages => up.map(|tag| (1, tag)).collect(),
        Posted::OfAnyoneFirst | Posted::OfAnyone => up.map(|tag| (ANY, tag)).collect(),
        Posted::OldestOfAnyone => {
            [0].into_iter().chain((1..u64::from(many)).rev()).map(|tag| (ANY, tag)).collect()
        }
        Posted::OddOfAnyone => {
            let odd = up.clone().filter(|tag| tag % 2 == 1).map(|tag| (ANY, tag));
            odd.chain(up.step_by(2).map(|tag| (1, tag))).collect()
        }
        Posted::AnyTag => up.map(|_| (1, ANY_TAG)).collect(),
    }
}

/// Rank 1 sends with descending tags to rank 0, and finally a message for which rank 0 waits before
/// its other receives, unless they are posted first.
fn reversed(posted: Posted, many: u32) -> Program {
    let mut program = Program::new(2);
    program.op(0, receive(1, many.into()), 0, None);
    let first = matches!(posted, Posted::First | Posted::OfAnyoneFirst);
    for (peer, tag) in receives(posted, many) {
        program.op(0, receive(peer, tag), 0, (!first).then_some(0));
    }
    for tag in (0..many).rev().chain([many]) {
        program.op(1, send(tag.into()), 0, None);
    }
    program
}

const MANY: u32 = 30_000;
/// Bound: twice the logarithm.
const LOGARITHMIC: u64 = 30;

#[test]
fn receives_and_messages_meet_in_constant_time_however_many_wait() {
    for posted in [
        Posted::First,
        Posted::AfterTheMessages,
        Posted::OfAnyoneFirst,
        Posted::OfAnyone,
        Posted::OldestOfAnyone,
        Posted::OddOfAnyone,
        Posted::AnyTag,
    ] {
        let [each, _] = reversed(posted, MANY).looks(Receive::Hold);
        assert!(each <= 8, "{each} looks an operation, receives posted {posted:?}");
    }
}

#[test]
fn calculations_take_logarithmic_time_where_there_is_a_second_processor() {
    let mut program = Program::new(2);
    for _ in 0..MANY {
        program.op(0, CALC, 0, None);
    }
    program.op(1, CALC, 1, None);
    let [_, each] = program.looks(Receive::Hold);
    assert!(each <= LOGARITHMIC, "{each} looks an operation");
}

/// Rank 0 receives from all others, on the processors given by `cpu`.
fn gather(ranks: u32, cpu: impl Fn(u32) -> u16) -> Program {
    let mut program = Program::new(ranks as usize);
    for rank in 1..ranks {
        program.op(0, receive(rank, 0), cpu(rank), None);
        program.op(rank as usize, send(0), 0, None);
    }
    program.op(0, CALC, 1, None);
    program
}

#[test]
fn messages_take_logarithmic_time_where_there_is_a_second_processor() {
    for receive in [Receive::Hold, Receive::Overlap] {
        let [_, each] = gather(MANY / 2, |_| 0).looks(receive);
        assert!(each <= LOGARITHMIC, "{each} looks an operation, {receive:?}");
    }
}

#[test]
fn messages_take_logarithmic_time_where_their_receives_are_on_several_processors() {
    let [_, each] = gather(MANY / 2, |rank| u16::from(rank % 3 == 0)).looks(Receive::Hold);
    assert!(each <= LOGARITHMIC, "{each} looks an operation");
}

#[test]
fn messages_for_any_receive_take_logarithmic_time_on_several_processors() {
    const RANKS: u32 = MANY / 2;
    for (peer, tag) in [(ANY, 0), (ANY, ANY_TAG)] {
        let mut program = Program::new(RANKS as usize);
        for rank in 1..RANKS {
            program.op(0, receive(peer, tag), u16::from(rank % 3 == 0), None);
            program.op(rank as usize, send(0), 0, None);
        }
        for at in 0..MANY {
            program.op(0, receive(peer, tag), u16::from(at % 3 == 0), None);
            program.op(1, send(0), 0, None);
        }
        let [_, each] = program.looks(Receive::Hold);
        assert!(each <= LOGARITHMIC, "{each} looks an operation of tag {tag}");
    }
}

#[test]
fn an_event_takes_logarithmic_time_on_hundreds_of_processors() {
    const CPUS: u32 = 250;
    let mut program = Program::new(2);
    for at in 0..MANY / 3 {
        let cpu = u16::try_from(at % CPUS).unwrap();
        program.op(0, CALC, cpu, None);
        program.op(0, receive(1, at.into()), cpu, None);
        program.op(1, send(at.into()), cpu, at.checked_sub(CPUS));
    }
    for receive in [Receive::Hold, Receive::Overlap] {
        let [_, each] = program.looks(receive);
        assert!(each <= LOGARITHMIC, "{each} looks an operation, {receive:?}");
    }
}

#[test]
fn messages_of_one_tag_take_logarithmic_time_on_several_interfaces() {
    const NICS: u16 = 4;
    let mut program = Program::new(2);
    for at in 0..MANY {
        let nic = u16::try_from(at % u32::from(NICS)).unwrap();
        program.on_interface(0, receive(1, 0), nic);
        program.on_interface(1, send(0), NICS - 1 - nic);
    }
    let [_, each] = program.looks(Receive::Hold);
    assert!(each <= LOGARITHMIC, "{each} looks an operation");
}

#[test]
fn what_depends_on_messages_takes_logarithmic_time_with_overlap() {
    let mut program = gather(MANY / 3, |_| 0);
    for rank in 0..MANY / 3 - 1 {
        program.op(0, CALC, 0, Some(rank));
    }
    let [_, each] = program.looks(Receive::Overlap);
    assert!(each <= LOGARITHMIC, "{each} looks an operation");
}

#[test]
#[cfg(target_has_atomic = "64")]
fn windows_take_logarithmic_time_with_overlap() {
    const RANKS: u32 = MANY / 3;
    let mut program = Program::new(RANKS as usize);
    for rank in 1..RANKS {
        program.op(0, receive(rank, 0), 0, None);
        program.op(rank as usize, send(0), 0, None);
    }
    for rank in 0..RANKS - 1 {
        program.op(0, CALC, 0, Some(rank));
    }
    let preset: Preset = "loggopsim".parse().unwrap();
    let parameters = Parameters::per_protocol(preset.protocols).unwrap();
    let ran = program.in_windows(parameters, Receive::Overlap, u64::MAX);
    assert!(ran.each <= LOGARITHMIC && !ran.gave_up, "{ran:?}");
}

#[test]
#[cfg(target_has_atomic = "64")]
fn a_window_that_takes_too_many_steps_is_given_up_within_it() {
    // All events occur at two instants.
    let set = LogGops {
        latency: Picos(1),
        overhead: Picos::ZERO,
        gap: Picos::ZERO,
        gap_per_byte: PerByte(0),
        overhead_per_byte: PerByte(0),
        eager_limit: Bytes(8),
    };
    let program = reversed(Posted::First, MANY);
    let ran = program.in_windows(Parameters::one(set), Receive::Hold, 5_000);
    let longest_search = u64::from(MANY / 32);
    assert!(ran.gave_up && ran.steps <= 5_000 + longest_search, "{ran:?}");
    // Receives in the order of the messages need no search.
    let mut program = Program::new(2);
    for tag in 0..u64::from(MANY) {
        program.op(0, receive(1, tag), 0, None);
        program.op(1, send(tag), 0, None);
    }
    let ran = program.in_windows(Parameters::one(set), Receive::Hold, u64::MAX);
    assert!(ran.steps < MANY.into(), "{ran:?}");
}
