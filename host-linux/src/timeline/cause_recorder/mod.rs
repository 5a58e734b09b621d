//! Observer that records the causes of events while a simulation runs.

mod network;

use std::collections::HashMap;

use loggap_core::sim::{
    Begun, Calculated, Handled, Matched, MessageKind, Observed, Observer, Released, Resumed,
    Satisfied, Sent, Taken, Turn,
};
use loggap_core::units::Picos;

use super::causes::{Cause, Causes, Event, EventId, Kind, MessageCosts, Transfer, Via, is_data};
use super::link_holds::LinkHolds;

/// Sentinel: no event, or no link.
const NONE: u32 = u32::MAX;

/// Causes that determine when a processor and both directions of an interface become free.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    cpu: Cause,
    out: Cause,
    into: Cause,
}

impl Clocks {
    const START: Self = Self { cpu: Cause::START, out: Cause::START, into: Cause::START };
}

/// State of an operation and its newest message.
#[derive(Clone, Copy, Debug)]
struct Op {
    /// Index in the pool of the last satisfied dependency, the head of a linked list.
    satisfied: u32,
    /// Event that made the operation, or its next message, ready.
    creator: EventId,
    /// When its processor was free, at the time of its release.
    posting: Cause,
    /// End of the operation.
    end: Cause,
    /// Event in which its newest message left; [`NONE`] before.
    sent: EventId,
    /// Event in which an interface took that message; [`NONE`] if none has.
    taken: EventId,
    /// When that message had arrived completely and was handled.
    done: Cause,
    message_kind: MessageKind,
}

impl Op {
    const NEW: Self = Self {
        satisfied: NONE,
        creator: 0,
        posting: Cause::START,
        end: Cause::START,
        sent: NONE,
        taken: NONE,
        done: Cause::START,
        message_kind: MessageKind::Whole,
    };
}

/// Observer that builds [`Causes`].
#[derive(Debug)]
pub struct CauseRecorder {
    graph: Causes,
    ops: Vec<Op>,
    /// Satisfied dependencies, each with the index of the next one of the same operation.
    satisfied: Vec<(Cause, u32)>,
    /// First processor and interface of each rank.
    first: Vec<Clocks>,
    /// Other processors and interfaces, by rank and index.
    others: HashMap<(u32, u16), Clocks>,
    /// Completions of messages that lasted longer than the handling by their processor.
    deliveries: Vec<Cause>,
    costs: HashMap<MessageCosts, u32>,
    /// The current event.
    current: EventId,
    /// Time at which the current message was taken from the event queue.
    turn: Picos,
    /// Collects the links that limit the flows of a network.
    holds: Option<LinkHolds>,
}

impl CauseRecorder {
    /// A recorder for the schedule whose ranks have these first operations; see
    /// [`Schedule::first_ops`](loggap_core::sim::Schedule::first_ops).
    #[must_use]
    pub fn new(first_ops: &[u32]) -> Self {
        let ops = first_ops.last().map_or(0, |&ops| ops as usize);
        let ranks = first_ops.len().saturating_sub(1);
        let graph = Causes {
            events: vec![Event::NONE],
            costs: vec![MessageCosts::default()],
            transfers: vec![Transfer::default()],
            first_ops: first_ops.to_vec(),
            ..Causes::default()
        };
        Self {
            graph,
            ops: vec![Op::NEW; ops],
            satisfied: Vec::new(),
            first: vec![Clocks::START; ranks],
            others: HashMap::new(),
            deliveries: Vec::new(),
            costs: HashMap::from([(MessageCosts::default(), 0)]),
            current: 0,
            turn: Picos::ZERO,
            holds: None,
        }
    }

    /// Adds `holds`, into which the network reports the links that limit its flows.
    #[must_use]
    pub fn with_holds(self, holds: LinkHolds) -> Self {
        Self { holds: Some(holds), ..self }
    }

    /// Completes the graph; to be called after the last event.
    #[must_use]
    pub fn finish(mut self) -> Causes {
        let clocks = self.first.iter().chain(self.others.values());
        let mut causes: Vec<_> = clocks.map(|clocks| clocks.cpu).collect();
        causes.append(&mut self.deliveries);
        // Sorted, because the order of a map is random and event numbers depend on the driver.
        causes.sort_by_key(|cause| {
            let Event { rank, time, op, .. } = self.graph.event(cause.from);
            (rank, time, op, cause.via)
        });
        self.latest(Kind::End, 0, causes);
        self.graph.link_names = self.holds.map(LinkHolds::into_names).unwrap_or_default();
        self.graph
    }

    fn op(&self, op: u32) -> Op {
        debug_assert!((op as usize) < self.ops.len(), "no operation {op}");
        self.ops.get(op as usize).copied().unwrap_or(Op::NEW)
    }

    fn change(&mut self, op: u32, change: impl FnOnce(&mut Op)) {
        if let Some(op) = self.ops.get_mut(op as usize) {
            change(op);
        }
    }

    fn clocks(&mut self, rank: u32, unit: u16) -> &mut Clocks {
        match self.first.get_mut(rank as usize) {
            Some(first) if unit == 0 => first,
            _ => {
                self.graph.several = true;
                self.others.entry((rank, unit)).or_insert(Clocks::START)
            }
        }
    }

    /// Appends an event.
    fn push(&mut self, event: Event) -> EventId {
        let id = u32::try_from(self.graph.events.len()).unwrap_or(NONE);
        self.graph.events.push(event);
        id
    }

    /// Stores the causes of an event.
    fn set_causes(&mut self, id: EventId, causes: impl IntoIterator<Item = Cause>) {
        let first = self.graph.causes.len();
        self.graph.causes.extend(causes);
        let count = self.graph.causes.len() - first;
        if let Some(event) = self.graph.events.get_mut(id as usize) {
            event.first_cause = u32::try_from(first).unwrap_or(NONE);
            event.causes = u32::try_from(count).unwrap_or(NONE);
        }
    }

    /// Appends an event at the latest of several causes.
    fn latest(&mut self, kind: Kind, rank: u32, mut causes: Vec<Cause>) -> EventId {
        causes.dedup();
        let times = causes.iter().map(|cause| self.graph.instant(*cause));
        let time = times.max().unwrap_or_default();
        let id = self.push(Event { time, kind, rank, ..Event::NONE });
        self.set_causes(id, causes);
        id
    }

    /// Satisfied dependencies of an operation.
    fn dependencies(&self, op: Op) -> Vec<Cause> {
        let mut causes = Vec::new();
        let mut next = op.satisfied;
        while let Some(&(cause, after)) = self.satisfied.get(next as usize) {
            causes.push(cause);
            next = after;
        }
        causes
    }

    fn cost_index(&mut self, costs: MessageCosts) -> u32 {
        let next = u32::try_from(self.graph.costs.len()).unwrap_or(NONE);
        let index = *self.costs.entry(costs).or_insert(next);
        if index == next {
            self.graph.costs.push(costs);
        }
        index
    }

    /// Appends an event of a message at its receiver.
    fn receiving(&mut self, kind: Kind, rank: u32, op: u32) -> EventId {
        let sent = self.op(op).sent;
        let departure = self.graph.event(sent);
        let time = Picos::ZERO;
        let (peer, creator) = (departure.rank, sent);
        let event = Event { kind, rank, peer, creator, time, noise: Picos::ZERO, ..departure };
        let id = self.push(event);
        self.current = id;
        id
    }

    fn set_time(&mut self, id: EventId, time: Picos, noise: Picos) {
        if let Some(event) = self.graph.events.get_mut(id as usize) {
            event.time = time;
            event.noise = noise;
        }
    }

    /// Adds a cause if none of `causes` explains the time of the event. With several processors or
    /// interfaces, a message may have waited for those of another receive; the cause is then a
    /// resource of its rank that becomes free at this time, or an event of the same time that took
    /// one.
    fn explained(&mut self, id: EventId, causes: &mut Vec<Cause>) {
        let Event { time, rank, .. } = self.graph.event(id);
        if !self.graph.several || causes.iter().any(|cause| self.graph.instant(*cause) == time) {
            return;
        }
        let first = self.first.get(rank as usize).into_iter();
        let others = self.others.iter().filter(|((other, _), _)| *other == rank);
        let clocks = first.chain(others.map(|(_, clocks)| clocks));
        let mut free: Vec<_> = clocks
            .flat_map(|clocks| [clocks.cpu, clocks.into])
            .filter(|cause| self.graph.instant(*cause) == time)
            .collect();
        free.sort_unstable();
        let before = self.graph.events.iter().enumerate().take(id as usize).rev();
        let before = before.filter(|(_, event)| event.kind != Kind::Latest);
        let mut now = before.take_while(|(_, event)| event.time == time);
        let same = now.find(|(_, event)| event.rank == rank).map(|(at, _)| at);
        let same = same.and_then(|at| u32::try_from(at).ok()).map(Cause::instant);
        causes.extend(free.first().copied().or(same));
    }
}

impl Observer for CauseRecorder {
    fn observe(&mut self, event: Observed<'_>) {
        match event {
            Observed::Begun(event) => self.begun(event),
            Observed::Satisfied(event) => self.satisfied(event),
            Observed::Released(event) => self.released(event),
            Observed::Arrived(event) => self.arrived(event),
            Observed::Taken(event) => self.taken(event),
            Observed::Resumed(event) => self.resumed(event),
            Observed::Calculated(event) => self.calculated(event),
            Observed::Sent(event) => self.sent(event),
            Observed::Handled(event) => self.handled(event),
            Observed::Matched(event) => self.matched(event),
        }
    }
}

impl CauseRecorder {
    fn begun(&mut self, event: &Begun) {
        let kind = match event.turn {
            Turn::Calculation => Kind::Calc,
            Turn::Send => Kind::Send,
            Turn::Receive => Kind::Post,
            // The message may have to wait again, so only its time is stored.
            Turn::Message => {
                self.turn = event.time;
                return;
            }
        };
        let op = self.op(event.op);
        let &Begun { rank, op: at, time, .. } = event;
        let begun = Event { time, kind, rank, op: at, creator: op.creator, ..Event::NONE };
        self.current = self.push(begun);
        if kind == Kind::Post {
            let mut causes = self.dependencies(op);
            causes.push(op.posting);
            self.set_causes(self.current, causes);
        }
    }

    fn satisfied(&mut self, event: &Satisfied) {
        let cause = if event.end { self.op(event.on).end } else { Cause::instant(self.current) };
        let at = u32::try_from(self.satisfied.len()).unwrap_or(NONE);
        let before = self.op(event.op).satisfied;
        self.satisfied.push((cause, before));
        self.change(event.op, |op| op.satisfied = at);
    }

    fn released(&mut self, event: &Released) {
        let (creator, posting) = (self.current, self.clocks(event.rank, event.cpu).cpu);
        self.change(event.op, |op| {
            op.creator = creator;
            op.posting = posting;
        });
    }

    fn taken(&mut self, event: &Taken) {
        self.graph.overlap = true;
        let sent = self.op(event.op).sent;
        let id = self.receiving(Kind::Take, event.rank, event.op);
        self.set_time(id, event.time, Picos::ZERO);
        let free = self.clocks(event.rank, event.nic).into;
        let mut causes = vec![free, self.arrival(sent)];
        self.explained(id, &mut causes);
        self.set_causes(id, causes);
        self.clocks(event.rank, event.nic).into = Cause { from: id, via: Via::ReceiveGap };
        self.change(event.op, |op| op.taken = id);
    }

    fn resumed(&mut self, event: &Resumed) {
        let &Resumed { rank, op, cpu, nic, time } = event;
        let matching = self.current;
        let sent = self.op(op).sent;
        let id = self.push(Event { time, rank, op, creator: matching, ..Event::NONE });
        self.set_causes(id, [Cause::instant(matching)]);
        let resumed = Cause::instant(id);
        let held = self.clocks(rank, cpu).cpu;
        let cpu_free = self.latest(Kind::Latest, rank, vec![held, resumed]);
        self.clocks(rank, cpu).cpu = Cause::instant(cpu_free);
        let held = self.clocks(rank, nic).out;
        let out_free = self.latest(Kind::Latest, rank, vec![held, resumed]);
        self.clocks(rank, nic).out = Cause::instant(out_free);
        let sent = Cause { from: sent, via: Via::Send };
        let end = self.latest(Kind::Latest, rank, vec![sent, resumed]);
        self.change(op, |op| op.end = Cause::instant(end));
        if let Some(event) = self.graph.events.get_mut(id as usize) {
            event.kind = Kind::Resume { cpu: cpu_free, out: out_free };
        }
    }

    fn calculated(&mut self, event: &Calculated) {
        let &Calculated { rank, op, cpu, work, noise, .. } = event;
        let id = self.current;
        if let Some(event) = self.graph.events.get_mut(id as usize) {
            event.amount = work.0;
            event.noise = noise;
        }
        let mut causes = vec![self.clocks(rank, cpu).cpu];
        causes.append(&mut self.dependencies(self.op(op)));
        self.set_causes(id, causes);
        let end = Cause { from: id, via: Via::Calc };
        self.clocks(rank, cpu).cpu = end;
        self.change(op, |op| op.end = end);
    }

    fn sent(&mut self, event: &Sent) {
        let &Sent { rank, to, op, message_kind, cpu, nic, size, noise, .. } = event;
        let id = self.current;
        let latency = event.arrival.since(event.start).since(event.overhead);
        let costs = self.cost_index(MessageCosts {
            size,
            overhead: event.overhead,
            overhead_bytes: event.overhead_bytes,
            receive_overhead: event.receive_overhead,
            receive_overhead_bytes: event.receive_overhead_bytes,
            gap: event.gap,
            gap_bytes: event.gap_bytes,
            latency,
        });
        if let Some(event) = self.graph.events.get_mut(id as usize) {
            event.peer = to;
            event.amount = size;
            event.noise = noise;
            event.costs = costs;
        }
        let known = self.op(op);
        let mut causes = vec![self.clocks(rank, cpu).cpu, self.clocks(rank, nic).out];
        match message_kind {
            MessageKind::Whole | MessageKind::Rts => causes.append(&mut self.dependencies(known)),
            MessageKind::Cts | MessageKind::Data => {
                causes.extend([Cause::instant(known.creator), known.done])
            }
        }
        self.set_causes(id, causes);
        let end = Cause { from: id, via: Via::Send };
        self.clocks(rank, cpu).cpu = end;
        self.clocks(rank, nic).out = Cause { from: id, via: Via::SendGap };
        self.change(op, |op| {
            op.sent = id;
            op.taken = NONE;
            op.message_kind = message_kind;
            op.end = end;
        });
    }

    fn handled(&mut self, event: &Handled) {
        let &Handled { rank, op, cpu, nic, start, noise, .. } = event;
        let Op { sent, taken, .. } = self.op(op);
        let id = self.receiving(Kind::Handle, rank, op);
        let time = if self.graph.whole { self.turn } else { start };
        self.set_time(id, time, noise);
        let mut causes = vec![self.clocks(rank, cpu).cpu];
        if taken == NONE {
            let free = self.clocks(rank, nic).into;
            causes.extend([free, self.arrival(sent)]);
        } else {
            causes.push(Cause::instant(taken));
        }
        self.explained(id, &mut causes);
        self.set_causes(id, causes);
        if self.graph.whole {
            return self.handled_whole(id, event);
        }
        let mut done = Cause { from: id, via: Via::Receive };
        self.clocks(rank, cpu).cpu = done;
        if taken == NONE {
            self.clocks(rank, nic).into = Cause { from: id, via: Via::ReceiveGap };
        } else {
            let delivery = Cause { from: taken, via: Via::Delivery };
            done = Cause::instant(self.latest(Kind::Latest, rank, vec![done, delivery]));
        }
        self.change(op, |op| op.done = done);
    }

    fn matched(&mut self, event: &Matched) {
        let message = self.op(event.send);
        if !is_data(message.message_kind) {
            return;
        }
        let mut end = message.done;
        if message.taken != NONE {
            self.deliveries.push(message.done);
        }
        if event.unexpected {
            let posted = Cause::instant(self.current);
            end = Cause::instant(self.latest(Kind::Latest, event.rank, vec![end, posted]));
        }
        self.change(event.receive, |op| op.end = end);
    }
}
