//! A second simulator, as plain as the rules it is written from: one global
//! queue ordered by (time, stamp), re-insertion of what finds its resource
//! busy, lists searched from the front. Slow, and only for tests: the engine
//! must agree with it on every schedule.

use crate::program::Program;
use crate::random_program::{parameters, receive_overhead, receive_overheads};
use loggap::timeline::{self, Calc, Costs, End, Timeline};
use loggap_core::goal::{ANY, ANY_TAG, Op, OpKind};
use loggap_core::model::{LogGops, ReceiveOverhead};
use loggap_core::random::Random;
use loggap_core::sim::MessageKind;
use loggap_core::units::Picos;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How messages are received.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Receive {
    /// The processor is held for the longer of (s − 1)·O and (s − 1)·G.
    #[default]
    Hold,
    /// The processor is held for (s − 1)·O while the interface takes
    /// (s − 1)·G.
    Overlap,
}

/// How messages above the eager limit are sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Rendezvous {
    /// The sender is released at the instant of the match.
    #[default]
    Instant,
    /// RTS, CTS and data are messages of their own.
    Handshake,
}

/// Errors of the reference simulator that the shadow can repeat.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quirks {
    /// A dependant on another processor starts before its predecessor ends.
    pub starts_early: bool,
    /// Messages are received on the processor and interface that the send
    /// names; a late match raises the sender's processor of the receive.
    pub receives_on_send_indices: bool,
    /// The bytes after the first of an empty message are 2⁶⁴ − 1.
    pub empty_wraps: bool,
    /// A late receive decides about rendezvous by its own size.
    pub late_receive_decides: bool,
}

/// What the shadow simulates with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Parameter sets with the largest size of each, ascending; the last
    /// holds for all larger sizes too.
    pub parameters: Vec<(u64, LogGops)>,
    /// What receiving costs, one for each set; none where that is what sending
    /// costs.
    pub receive_overheads: Vec<ReceiveOverhead>,
    /// Sets between near ranks, the nearest first; their receivers' overheads
    /// come after the others.
    pub levels: Vec<Level>,
    /// Of each rank its place; none where that is its number.
    pub places: Vec<u32>,
    /// How messages are received.
    pub receive: Receive,
    /// How long messages are sent.
    pub rendezvous: Rendezvous,
    /// Errors to repeat.
    pub quirks: Quirks,
}

/// Parameter sets of ranks in one block of places.
#[derive(Clone, Debug)]
pub struct Level {
    /// Places of a block.
    pub places: u32,
    /// As those of [`Settings`].
    pub parameters: Vec<(u64, LogGops)>,
}

impl Settings {
    /// One parameter set and the default rules.
    #[must_use]
    pub fn new(parameters: LogGops) -> Self {
        Self {
            parameters: vec![(u64::MAX, parameters)],
            receive_overheads: Vec::new(),
            levels: Vec::new(),
            places: Vec::new(),
            receive: Receive::default(),
            rendezvous: Rendezvous::default(),
            quirks: Quirks::default(),
        }
    }

    /// All combinations of the switches, with a random set, or several.
    #[must_use]
    pub fn random(random: &mut Random) -> Self {
        let switches = random.below(4);
        let set = parameters(random);
        let mut settings = Self {
            receive: if switches & 1 == 0 { Receive::Hold } else { Receive::Overlap },
            rendezvous: if switches & 2 == 0 { Rendezvous::Instant } else { Rendezvous::Handshake },
            receive_overheads: receive_overheads(random),
            ..Self::new(set)
        };
        if random.below(3) == 0 {
            settings.add_levels(random, parameters);
        }
        settings
    }

    /// One parameter set, with switches that depend on the seed.
    #[must_use]
    pub fn of_seed(seed: u64, set: LogGops) -> Self {
        let (overlaps, shakes) = (seed.is_multiple_of(3), seed.is_multiple_of(5));
        Self {
            receive: if overlaps { Receive::Overlap } else { Receive::Hold },
            rendezvous: if shakes { Rendezvous::Handshake } else { Rendezvous::Instant },
            ..Self::new(set)
        }
    }

    /// Adds one or two levels, whose sets `set` makes, of one range of sizes or two;
    /// in half of all cases ranks are at places of their own.
    pub fn add_levels(&mut self, random: &mut Random, mut set: impl FnMut(&mut Random) -> LogGops) {
        for places in [2, 4].into_iter().take(1 + random.below(2) as usize) {
            let mut parameters = vec![(u64::MAX, set(random))];
            if random.below(2) == 0 {
                parameters.insert(0, (random.below(6), set(random)));
            }
            if !self.receive_overheads.is_empty() {
                let ends = parameters.iter().map(|_| receive_overhead(random));
                self.receive_overheads.extend(ends);
            }
            self.levels.push(Level { places, parameters });
        }
        if random.below(2) == 0 {
            self.places = (0..random.below(12)).map(|_| random.below(8) as u32).collect();
        }
    }

    /// What receiving costs: o, and O for each byte after the first.
    fn receive_overhead(&self, ends: [usize; 2], size: u64) -> ReceiveOverhead {
        let (index, set) = self.at(ends, size);
        self.receive_overheads.get(index).copied().unwrap_or(set.receive_overhead())
    }

    /// The set of a message between two ranks, and its number.
    fn at(&self, ends: [usize; 2], size: u64) -> (usize, LogGops) {
        let place = |rank: usize| self.places.get(rank).copied().unwrap_or(rank as u32);
        let [one, other] = ends.map(place);
        let mut before = self.parameters.len();
        let mut found = (0, &self.parameters);
        for Level { places, parameters } in &self.levels {
            if one / places == other / places {
                found = (before, parameters);
                break;
            }
            before += parameters.len();
        }
        let (before, sets) = found;
        let index = sets.iter().position(|(last, _)| size <= *last);
        let index = index.unwrap_or(sets.len() - 1);
        (before + index, sets[index].1)
    }
}

/// Additional time that noise takes from `rank` in [start, start + length).
pub type Noise<'a> = &'a (dyn Fn(usize, u64, u64) -> u64 + Sync);

/// Every third nanosecond of a rank is lost, from a phase of its own.
#[must_use]
pub fn detours(rank: usize, start: u64, length: u64) -> u64 {
    let phase = rank as u64 * 700;
    (start + length + phase) / 3_000 * 500 - (start + phase) / 3_000 * 500
}

/// [`detours`] in a third of all cases.
pub fn random_noise(random: &mut Random) -> Option<Noise<'static>> {
    if random.below(3) == 0 { Some(&detours) } else { None }
}

/// What came out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// When each rank was done, in ps.
    pub finish: Vec<u64>,
    /// Operations released and messages created.
    pub events: u64,
    /// Messages that no receive took, as (receiver, sender, tag).
    pub unexpected: Vec<(usize, usize, u64)>,
    /// Receives that got no message, as (receiver, operation).
    pub posted: Vec<(usize, usize)>,
    /// Operations that never became ready, as (rank, operation).
    pub never_ready: Vec<(usize, usize)>,
    /// When each operation started and ended.
    pub spans: Vec<Vec<Option<(u64, u64)>>>,
    /// Everything that occupied something.
    pub timeline: Timeline,
    /// The most receives that were posted when a message was handled, and the
    /// most messages that waited for a receive, on any one rank.
    pub longest_queues: [u32; 2],
}

impl Outcome {
    /// The latest finishing time.
    #[must_use]
    pub fn makespan(&self) -> u64 {
        self.finish.iter().copied().max().unwrap_or_default()
    }

    /// What engine and shadow have in common, in one order.
    #[must_use]
    pub fn common(&self) -> Self {
        let mut common = Self {
            finish: self.finish.clone(),
            events: self.events,
            unexpected: self.unexpected.clone(),
            posted: self.posted.clone(),
            never_ready: self.never_ready.clone(),
            ..Self::default()
        };
        common.unexpected.sort_unstable();
        common.posted.sort_unstable();
        common.never_ready.sort_unstable();
        common
    }

    /// Whether every message and operation came to its end.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.unexpected.is_empty() && self.posted.is_empty() && self.never_ready.is_empty()
    }
}

/// Which message of a send it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    /// The only one.
    Whole,
    /// First of the handshake, without data; it is the one that matches.
    Rts,
    /// Second, back to the sender, from the operation that matched.
    Cts { receive: usize },
    /// Third, to the operation that matched.
    Data { receive: usize },
}

/// A message on its way, waiting, or unexpected.
#[derive(Clone, Copy, Debug)]
struct Message {
    /// Rank and operation of the send.
    send: (usize, usize),
    /// Rank of the receive.
    receiver: usize,
    part: Part,
    /// When its interface took it, where that comes before the processor.
    taken: Option<u64>,
    /// End of its handling, once handled.
    end: u64,
    /// Index in the timeline.
    record: u32,
}

impl Message {
    const fn part(self, part: Part) -> Self {
        Self { part, taken: None, end: 0, ..self }
    }
}

/// What waits in the global queue.
#[derive(Clone, Copy, Debug)]
enum Item {
    Op(usize, usize),
    /// A later message of a handshake wants to leave.
    Departure(Message),
    Arrival(Message),
}

/// The state of one rank.
#[derive(Clone, Debug)]
struct Rank {
    cpu: Vec<u64>,
    send_nic: Vec<u64>,
    receive_nic: Vec<u64>,
    unexpected: VecDeque<Message>,
    posted: VecDeque<usize>,
    missing: Vec<usize>,
    not_before: Vec<u64>,
    ready: Vec<usize>,
    finish: u64,
}

/// The simulation.
struct Shadow<'a> {
    program: &'a Program,
    settings: &'a Settings,
    noise: Option<Noise<'a>>,
    /// Operations that wait for the start, and for the end, of each.
    successors: Vec<Vec<[Vec<usize>; 2]>>,
    ranks: Vec<Rank>,
    queue: BTreeMap<(u64, u64), Item>,
    stamp: u64,
    touched: BTreeSet<usize>,
    spans: Vec<Vec<Option<(u64, u64)>>>,
    timeline: Timeline,
    longest_queues: [u32; 2],
}

/// Runs `program`.
#[must_use]
pub fn run(program: &Program, settings: &Settings, noise: Option<Noise<'_>>) -> Outcome {
    let mut shadow = Shadow::new(program, settings, noise);
    for rank in 0..shadow.ranks.len() {
        shadow.release(rank);
    }
    while let Some(((time, stamp), item)) = shadow.queue.pop_first() {
        match item {
            Item::Op(rank, op) => shadow.operation(time, stamp, rank, op),
            Item::Departure(message) => shadow.departure(time, stamp, message),
            Item::Arrival(message) => shadow.arrival(time, stamp, message),
        }
        while let Some(rank) = shadow.touched.pop_first() {
            shadow.release(rank);
        }
    }
    shadow.outcome()
}

impl<'a> Shadow<'a> {
    fn new(program: &'a Program, settings: &'a Settings, noise: Option<Noise<'a>>) -> Self {
        let all = || program.ranks.iter().flat_map(|rank| &rank.ops);
        let cpus = all().map(|op| usize::from(op.cpu) + 1).max().unwrap_or(1);
        let nics = all().map(|op| usize::from(op.nic) + 1).max().unwrap_or(1);
        let mut successors = Vec::new();
        let mut ranks = Vec::new();
        for part in &program.ranks {
            let mut missing = vec![0; part.ops.len()];
            let mut own = vec![[Vec::new(), Vec::new()]; part.ops.len()];
            for edge in &part.edges {
                missing[edge.op as usize] += 1;
                own[edge.on as usize][usize::from(!edge.start)].push(edge.op as usize);
            }
            successors.push(own);
            ranks.push(Rank {
                cpu: vec![0; cpus],
                send_nic: vec![0; nics],
                receive_nic: vec![0; nics],
                unexpected: VecDeque::new(),
                posted: VecDeque::new(),
                ready: (0..part.ops.len()).filter(|&op| missing[op] == 0).collect(),
                not_before: vec![0; part.ops.len()],
                missing,
                finish: 0,
            });
        }
        let spans = program.ranks.iter().map(|part| vec![None; part.ops.len()]).collect();
        Self {
            program,
            settings,
            noise,
            successors,
            ranks,
            queue: BTreeMap::new(),
            stamp: 0,
            touched: BTreeSet::new(),
            spans,
            timeline: Timeline { ranks: program.ranks.len() as u32, ..Timeline::default() },
            longest_queues: [0; 2],
        }
    }

    fn op(&self, rank: usize, op: usize) -> Op {
        self.program.ranks[rank].ops[op]
    }

    /// Rule 2: everything that became ready, sends first, then receives,
    /// then calculations, each in the order in which it became ready.
    fn release(&mut self, rank: usize) {
        let mut ready = std::mem::take(&mut self.ranks[rank].ready);
        ready.sort_by_key(|&op| match self.op(rank, op).kind {
            OpKind::Send { .. } => 0,
            OpKind::Receive { .. } => 1,
            OpKind::Calc { .. } => 2,
        });
        for index in ready {
            let Op { kind, cpu, nic } = self.op(rank, index);
            let state = &self.ranks[rank];
            let mut time = state.cpu[usize::from(cpu)].max(state.not_before[index]);
            if matches!(kind, OpKind::Send { .. }) {
                time = time.max(state.send_nic[usize::from(nic)]);
            }
            self.create(time, Item::Op(rank, index));
        }
    }

    /// Draws a stamp.
    fn create(&mut self, time: u64, item: Item) {
        self.queue.insert((time, self.stamp), item);
        self.stamp += 1;
    }

    fn operation(&mut self, time: u64, stamp: u64, rank: usize, index: usize) {
        let Op { kind, cpu, nic } = self.op(rank, index);
        let state = &self.ranks[rank];
        let mut free = state.cpu[usize::from(cpu)];
        if matches!(kind, OpKind::Send { .. }) {
            free = free.max(state.send_nic[usize::from(nic)]);
        }
        if free > time && !matches!(kind, OpKind::Receive { .. }) {
            self.queue.insert((free, stamp), Item::Op(rank, index));
            return;
        }
        match kind {
            OpKind::Calc { duration } => {
                let noise = self.noise(rank, time, duration.0);
                let end = time + duration.0 + noise;
                self.timeline.calcs.push(Calc {
                    rank: rank as u32,
                    cpu,
                    op: index as u32,
                    start: Picos(time),
                    work: duration,
                    noise: Picos(noise),
                });
                self.ranks[rank].cpu[usize::from(cpu)] = end;
                self.satisfy(rank, index, 0, time);
                self.satisfy(rank, index, 1, end);
                self.spans[rank][index] = Some((time, end));
            }
            OpKind::Send { peer, size, .. } => self.send(time, (rank, index), peer as usize, size),
            OpKind::Receive { .. } => self.receive(time, rank, index),
        }
    }

    fn send(&mut self, time: u64, send: (usize, usize), receiver: usize, size: u64) {
        let rendezvous = size > self.settings.at([send.0, receiver], size).1.eager_limit.0;
        let handshake = rendezvous && self.settings.rendezvous == Rendezvous::Handshake;
        let part = if handshake { Part::Rts } else { Part::Whole };
        self.satisfy(send.0, send.1, 0, time);
        let end =
            self.transmit(time, Message { send, receiver, part, taken: None, end: 0, record: 0 });
        self.spans[send.0][send.1] = Some((time, end));
        if !rendezvous {
            self.satisfy(send.0, send.1, 1, end);
        }
    }

    /// The parameters of a message and what its bytes after the first cost
    /// the processor and the interface.
    fn cost(&self, message: &Message) -> (LogGops, u64, u64) {
        let OpKind::Send { size, .. } = self.op(message.send.0, message.send.1).kind else {
            unreachable!("only sends make messages")
        };
        let size = match message.part {
            Part::Whole | Part::Data { .. } => size,
            Part::Rts | Part::Cts { .. } => 1,
        };
        let set = self.settings.at([message.send.0, message.receiver], size).1;
        if size == 0 && self.settings.quirks.empty_wraps {
            let less = |per_byte: u64| (per_byte >> 16).wrapping_neg();
            return (set, less(set.overhead_per_byte.0), less(set.gap_per_byte.0));
        }
        let rest = u128::from(size.max(1) - 1);
        let times = |per_byte: u64| {
            u64::try_from((rest * u128::from(per_byte)) >> 16).expect("times in range")
        };
        (set, times(set.overhead_per_byte.0), times(set.gap_per_byte.0))
    }

    /// What a message costs the processor that receives it, for the first byte
    /// and for those after it, which cost a sender `by_cpu`.
    fn receive_cost(&self, message: &Message, by_cpu: u64) -> (u64, u64) {
        let OpKind::Send { size, .. } = self.op(message.send.0, message.send.1).kind else {
            unreachable!("only sends make messages")
        };
        let size = match message.part {
            Part::Whole | Part::Data { .. } => size,
            Part::Rts | Part::Cts { .. } => 1,
        };
        let ends = [message.send.0, message.receiver];
        let ReceiveOverhead { overhead, overhead_per_byte } =
            self.settings.receive_overhead(ends, size);
        if self.settings.receive_overheads.is_empty() {
            return (overhead.0, by_cpu);
        }
        let rest = u128::from(size.max(1) - 1);
        let bytes = (rest * u128::from(overhead_per_byte.0)) >> 16;
        (overhead.0, u64::try_from(bytes).expect("times in range"))
    }

    /// Rank and operation at whose processor and interface a message leaves.
    fn source(&self, message: &Message) -> (usize, Op) {
        let (rank, index) = match message.part {
            Part::Cts { receive } => (message.receiver, receive),
            _ => message.send,
        };
        (rank, self.op(rank, index))
    }

    /// When the processor and interface of a send or departure are free.
    fn free_to_send(&self, rank: usize, op: Op) -> u64 {
        let state = &self.ranks[rank];
        state.cpu[usize::from(op.cpu)].max(state.send_nic[usize::from(op.nic)])
    }

    /// Charges a message to its source, whose resources are free, and puts
    /// it on its way. Returns when the processor is done with it.
    fn transmit(&mut self, time: u64, mut message: Message) -> u64 {
        let (set, by_cpu, by_nic) = self.cost(&message);
        let (rank, op) = self.source(&message);
        let noise = self.noise(rank, time, set.overhead.0);
        let end = time.wrapping_add(set.overhead.0).wrapping_add(by_cpu).wrapping_add(noise);
        let next = time.wrapping_add(set.gap.0).wrapping_add(by_nic);
        message.record = self.record_sent(time, &message, noise);
        let state = &mut self.ranks[rank];
        state.cpu[usize::from(op.cpu)] = end;
        state.send_nic[usize::from(op.nic)] = next;
        self.create(time + set.overhead.0 + set.latency.0, Item::Arrival(message));
        end
    }

    /// A ready or data message of a handshake leaves; with the data the send
    /// is done.
    fn departure(&mut self, time: u64, stamp: u64, message: Message) {
        let (rank, op) = self.source(&message);
        let free = self.free_to_send(rank, op);
        if free > time {
            self.queue.insert((free, stamp), Item::Departure(message));
            return;
        }
        let end = self.transmit(time, message);
        if let Part::Data { .. } = message.part {
            let (rank, index) = message.send;
            self.spans[rank][index].as_mut().expect("it was requested").1 = end;
            self.satisfy(rank, index, 1, end);
        }
    }

    fn noise(&self, rank: usize, time: u64, length: u64) -> u64 {
        self.noise.map_or(0, |noise| noise(rank, time, length))
    }

    /// Rule 11: tells those that wait for the start (0) or the end (1) of an
    /// operation, and that they may not begin before `time`.
    fn satisfy(&mut self, rank: usize, index: usize, which: usize, time: u64) {
        for position in 0..self.successors[rank][index][which].len() {
            let next = self.successors[rank][index][which][position];
            let state = &mut self.ranks[rank];
            if !self.settings.quirks.starts_early {
                state.not_before[next] = state.not_before[next].max(time);
            }
            state.missing[next] = state.missing[next].wrapping_sub(1);
            if state.missing[next] == 0 {
                state.ready.push(next);
                self.touched.insert(rank);
            }
        }
    }

    /// Rule 9.
    fn matches(&self, rank: usize, receive: usize, message: &Message) -> bool {
        let OpKind::Receive { peer, tag, .. } = self.op(rank, receive).kind else {
            unreachable!("only receives are posted")
        };
        let OpKind::Send { tag: sent, .. } = self.op(message.send.0, message.send.1).kind else {
            unreachable!("only sends make messages")
        };
        (peer == ANY || peer as usize == message.send.0)
            && (tag == sent || tag == ANY_TAG || sent == ANY_TAG)
    }

    /// Rule 6.
    fn receive(&mut self, time: u64, rank: usize, index: usize) {
        self.satisfy(rank, index, 0, time);
        self.spans[rank][index] = Some((time, u64::MAX));
        let unexpected = &self.ranks[rank].unexpected;
        let found = unexpected.iter().position(|message| self.matches(rank, index, message));
        let Some(position) = found else {
            self.ranks[rank].posted.push_back(index);
            return;
        };
        let message = self.ranks[rank].unexpected.remove(position).expect("just found");
        let OpKind::Receive { size, .. } = self.op(rank, index).kind else { unreachable!() };
        let late = self.settings.quirks.late_receive_decides.then_some(size);
        self.matched(time, index, message, late);
    }

    /// A receive and a message have met, and the message has been handled.
    fn matched(&mut self, time: u64, index: usize, message: Message, decides: Option<u64>) {
        let rank = message.receiver;
        self.timeline.messages[message.record as usize].matched = Some(Picos(time));
        if message.part == Part::Rts {
            let free = self.free_to_send(rank, self.op(rank, index));
            let ready = message.part(Part::Cts { receive: index });
            self.create(free.max(message.end).max(time), Item::Departure(ready));
            return;
        }
        let OpKind::Send { size, .. } = self.op(message.send.0, message.send.1).kind else {
            unreachable!("only sends make messages")
        };
        let size = decides.unwrap_or(size);
        let (_, set) = self.settings.at([message.send.0, rank], size);
        if message.part == Part::Whole && size > set.eager_limit.0 {
            self.release_sender(time, index, &message);
        }
        let end = message.end.max(time);
        self.spans[rank][index].as_mut().expect("it was posted").1 = end;
        self.ranks[rank].finish = self.ranks[rank].finish.max(message.end);
        self.satisfy(rank, index, 1, end);
    }

    /// A rendezvous send is done at the instant of its match, not before its
    /// processor is done with it.
    fn release_sender(&mut self, time: u64, receive: usize, message: &Message) {
        let (rank, index) = message.send;
        let mut op = self.op(rank, index);
        if self.settings.quirks.receives_on_send_indices {
            op = self.op(message.receiver, receive);
        }
        let state = &mut self.ranks[rank];
        let cpu = &mut state.cpu[usize::from(op.cpu)];
        *cpu = (*cpu).max(time);
        let nic = &mut state.send_nic[usize::from(op.nic)];
        *nic = (*nic).max(time);
        let span = self.spans[rank][index].as_mut().expect("it was sent");
        span.1 = span.1.max(time);
        let end = span.1;
        self.satisfy(rank, index, 1, end);
    }

    /// The receive that a message would meet now.
    fn partner(&self, message: &Message) -> Option<usize> {
        match message.part {
            Part::Data { receive } => Some(receive),
            Part::Cts { .. } => None,
            Part::Whole | Part::Rts => {
                let mut posted = self.ranks[message.receiver].posted.iter().copied();
                posted.find(|&receive| self.matches(message.receiver, receive, message))
            }
        }
    }

    /// Rule 7.
    fn arrival(&mut self, time: u64, stamp: u64, mut message: Message) {
        let partner = self.partner(&message);
        let on_send = self.settings.quirks.receives_on_send_indices;
        let op = match partner {
            Some(receive) if !on_send => self.op(message.receiver, receive),
            _ => self.op(message.send.0, message.send.1),
        };
        let Some(end) = self.handle(time, stamp, op, &mut message) else { return };
        message.end = end;
        let is_answer = matches!(message.part, Part::Cts { .. });
        let at = if is_answer { message.send.0 } else { message.receiver };
        self.note_queue(0, self.ranks[at].posted.len());
        match (message.part, partner) {
            (Part::Cts { receive }, _) => {
                let (rank, op) = (message.send.0, self.op(message.send.0, message.send.1));
                let data = message.part(Part::Data { receive });
                self.create(self.free_to_send(rank, op), Item::Departure(data));
            }
            (_, Some(receive)) => {
                self.ranks[message.receiver].posted.retain(|&posted| posted != receive);
                self.matched(time, receive, message, None);
            }
            (_, None) => {
                self.ranks[message.receiver].unexpected.push_back(message);
                self.note_queue(1, self.ranks[message.receiver].unexpected.len());
            }
        }
    }

    fn note_queue(&mut self, which: usize, length: usize) {
        let longest = &mut self.longest_queues[which];
        *longest = (*longest).max(length as u32);
    }

    /// Charges a message to where it arrives, on the processor and interface
    /// of `op`, and returns when they are done with it; `None` when it has
    /// to wait.
    fn handle(&mut self, time: u64, stamp: u64, op: Op, message: &mut Message) -> Option<u64> {
        let (set, by_cpu, by_nic) = self.cost(message);
        let (overhead, by_cpu) = self.receive_cost(message, by_cpu);
        let (cpu, nic) = (usize::from(op.cpu), usize::from(op.nic));
        let rank = match message.part {
            Part::Cts { .. } => message.send.0,
            _ => message.receiver,
        };
        let overlap = self.settings.receive == Receive::Overlap;
        let state = &mut self.ranks[rank];
        let interface = state.receive_nic[nic];
        if overlap && message.taken.is_none() && interface <= time {
            message.taken = Some(time);
            state.receive_nic[nic] = time + set.gap.0 + by_nic;
        }
        let free = match (overlap, message.taken) {
            (true, None) => interface,
            (true, Some(_)) => state.cpu[cpu],
            (false, _) => state.cpu[cpu].max(interface),
        };
        if free > time {
            self.queue.insert((free, stamp), Item::Arrival(*message));
            return None;
        }
        let noise = self.noise(rank, time, overhead);
        let taken = message.taken.unwrap_or(time);
        // These wrap only where an empty message is made to.
        let held = if overlap { by_cpu } else { by_cpu.max(by_nic) };
        let released = time.wrapping_add(overhead).wrapping_add(held).wrapping_add(noise);
        let next = taken.wrapping_add(set.gap.0).wrapping_add(by_nic);
        let state = &mut self.ranks[rank];
        state.cpu[cpu] = released;
        if !overlap {
            state.receive_nic[nic] = next;
        }
        let end = if overlap { released.max(taken + overhead + by_nic) } else { released };
        let record = &mut self.timeline.messages[message.record as usize];
        record.to = End { rank: rank as u32, cpu: op.cpu, nic: op.nic };
        record.taken = Picos(taken);
        record.handled = Picos(time);
        record.held = Picos(overhead.wrapping_add(held));
        record.receive_noise = Picos(noise);
        record.done = Picos(end);
        Some(end)
    }

    /// Keeps a message that leaves; what happens at its other end follows.
    fn record_sent(&mut self, time: u64, message: &Message, noise: u64) -> u32 {
        let (set, by_cpu, by_nic) = self.cost(message);
        let OpKind::Send { size, tag, .. } = self.op(message.send.0, message.send.1).kind else {
            unreachable!("only sends make messages")
        };
        let (rank, op) = self.source(message);
        let message_kind = match message.part {
            Part::Whole => MessageKind::Whole,
            Part::Rts => MessageKind::Rts,
            Part::Cts { .. } => MessageKind::Cts,
            Part::Data { .. } => MessageKind::Data,
        };
        let data = matches!(message_kind, MessageKind::Whole | MessageKind::Data);
        self.timeline.messages.push(timeline::Message {
            from: End { rank: rank as u32, cpu: op.cpu, nic: op.nic },
            op: message.send.1 as u32,
            message_kind,
            size: if data { size } else { 1 },
            tag,
            costs: Costs {
                overhead: set.overhead,
                overhead_bytes: Picos(by_cpu),
                gap: set.gap,
                gap_bytes: Picos(by_nic),
            },
            sent: Picos(time),
            send_noise: Picos(noise),
            arrived: Picos(time + set.overhead.0 + set.latency.0),
            ..timeline::Message::default()
        });
        self.timeline.messages.len() as u32 - 1
    }

    fn outcome(self) -> Outcome {
        let mut outcome = Outcome { events: self.stamp, ..Outcome::default() };
        for (rank, state) in self.ranks.iter().enumerate() {
            let cpu = state.cpu.iter().copied().max().unwrap_or_default();
            outcome.finish.push(cpu.max(state.finish));
            for message in &state.unexpected {
                let OpKind::Send { tag, .. } = self.op(message.send.0, message.send.1).kind else {
                    unreachable!("only sends make messages")
                };
                outcome.unexpected.push((rank, message.send.0, tag));
            }
            outcome.posted.extend(state.posted.iter().map(|&receive| (rank, receive)));
            let missing = state.missing.iter().enumerate();
            outcome.never_ready.extend(missing.filter(|(_, n)| **n > 0).map(|(op, _)| (rank, op)));
        }
        outcome.spans = self.spans;
        outcome.timeline = self.timeline;
        outcome.longest_queues = self.longest_queues;
        outcome
    }
}
