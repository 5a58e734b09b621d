//! Happens-before graph of a run, with each time as a function of the parameters.

use loggap_core::sim::Parameters;

use super::function::{FunctionId, Functions, Term, Weight};
use super::order::takes_turn;
use super::parameter::index;
use crate::timeline::causes::{Cause, Causes, Event, EventId, Kind, Part, Via};

#[derive(Debug)]
pub(super) struct Graph<'a> {
    causes: &'a Causes,
    parameters: Parameters<'a>,
    pub(super) functions: Functions,
    /// Start of each event.
    times: Vec<FunctionId>,
    /// Events of each rank that take part in its order.
    by_rank: Vec<Vec<EventId>>,
}

/// Times at which processor and interface of a rank become free.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    cpu: FunctionId,
    out: FunctionId,
    into: FunctionId,
}

/// Resumption of a rank by a match on another one.
#[derive(Clone, Copy, Debug)]
struct Resumption {
    /// The match.
    matched: EventId,
    /// The event that resumes the rank.
    resume: EventId,
}

/// An event in the order of its rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) time: FunctionId,
    /// Time from which it waits only for processor and interface.
    pub(super) available: FunctionId,
    /// Event that made it ready; this is its stamp.
    pub(super) stamp: EventId,
    /// Event of this rank before which it cannot have been in the rank's queue; 0 if it comes from
    /// another rank.
    pub(super) exists: EventId,
    /// This event; or, if a match on this rank resumes the rank itself, the event of the match.
    pub(super) origin: EventId,
    kind: Kind,
    overlap: bool,
    /// State of the resources before the event.
    clocks: Clocks,
}

impl Turn {
    /// Time at which it would have begun in place of an `earlier` event.
    pub(super) fn would_begin(&self, functions: &mut Functions, earlier: &Self) -> FunctionId {
        let Clocks { cpu, out, into } = earlier.clocks;
        match self.kind {
            Kind::Calc => functions.latest(&[cpu, self.available]),
            Kind::Send => functions.latest(&[cpu, out, self.available]),
            Kind::Take => functions.latest(&[into, self.available]),
            Kind::Handle if self.overlap => functions.latest(&[cpu, self.available]),
            Kind::Handle => functions.latest(&[cpu, into, self.available]),
            _ => self.available,
        }
    }
}

impl<'a> Graph<'a> {
    pub(super) fn new(causes: &'a Causes, parameters: Parameters<'a>) -> Self {
        let mut graph = Self {
            causes,
            parameters,
            functions: Functions::new(),
            times: Vec::with_capacity(causes.events().len()),
            by_rank: Vec::new(),
        };
        for (id, event) in (0..).zip(causes.events()) {
            let terms = graph.terms(graph.deciding(event));
            let time = graph.functions.greatest(terms);
            graph.times.push(time);
            if takes_turn(event.kind) {
                let rank = event.rank as usize;
                if graph.by_rank.len() <= rank {
                    graph.by_rank.resize(rank + 1, Vec::new());
                }
                if let Some(turns) = graph.by_rank.get_mut(rank) {
                    turns.push(id);
                }
            }
        }
        graph
    }

    pub(super) const fn several(&self) -> bool {
        self.causes.has_several()
    }

    /// True if every time equals that of the engine.
    pub(super) fn agrees(&self) -> bool {
        let mut times = self.causes.events().iter().zip(&self.times);
        times.all(|(event, &time)| event.time.0 == self.functions.now(time))
    }

    /// The causes that can determine when an event begins. With one processor that receives while
    /// the interface does, no dependency of an operation ends after that processor becomes free, so
    /// dependencies are left out.
    fn deciding(&self, event: &Event) -> &'a [Cause] {
        let all = self.causes.of(event);
        if self.several() || self.causes.overlaps() {
            return all;
        }
        let count = all.len();
        match event.kind {
            Kind::Calc => all.get(..1),
            Kind::Send => all.get(..2),
            Kind::Post => all.get(count.saturating_sub(1)..),
            _ => Some(all),
        }
        .unwrap_or(all)
    }

    fn terms(&mut self, causes: &[Cause]) -> Vec<Term> {
        let mut terms = Vec::with_capacity(causes.len());
        for cause in causes {
            let base = self.time(cause.from);
            for weight in self.weights(*cause) {
                terms.push(self.functions.term(base, weight));
            }
        }
        terms
    }

    /// Weights of a cause, up to two.
    fn weights(&self, cause: Cause) -> impl Iterator<Item = Weight> + use<> {
        let event = self.causes.event(cause.from);
        let level = self.parameters.level(event.rank, event.peer);
        let set = self.parameters.number(level, self.causes.costs(&event).size);
        self.causes.sums(cause).into_iter().flatten().map(move |parts| {
            let mut weight = Weight::default();
            let mut counts = weight.counts.iter_mut();
            for Part { quantity, count, time } in parts {
                weight.length = weight.length.saturating_add(time.0);
                // On a network times are not sums of parameters; sensitivities are then found by
                // differences.
                if let Some(parameter) = index(quantity, set)
                    && let Some(place) = counts.next()
                {
                    *place = (parameter, count);
                } else {
                    weight.fixed = weight.fixed.saturating_add(time.0);
                }
            }
            weight
        })
    }

    /// Start of an event.
    pub(super) fn time(&self, event: EventId) -> FunctionId {
        self.times.get(event as usize).copied().unwrap_or(Functions::START)
    }

    /// End of the simulation.
    pub(super) fn end(&self) -> FunctionId {
        self.times.last().copied().unwrap_or(Functions::START)
    }

    pub(super) fn rank(&self, event: EventId) -> u32 {
        self.causes.event(event).rank
    }

    /// The event that made this one ready.
    pub(super) fn stamp(&self, event: EventId) -> EventId {
        let event = self.causes.event(event);
        match event.kind {
            Kind::Resume { .. } => self.causes.event(event.creator).creator,
            _ => event.creator,
        }
    }

    pub(super) fn ranks(&self) -> std::ops::Range<usize> {
        0..self.by_rank.len()
    }

    fn after(&mut self, from: EventId, via: Via) -> FunctionId {
        let terms = self.terms(&[Cause { from, via }]);
        self.functions.greatest(terms)
    }

    /// Events of a rank in their order, each with the state of the rank before it.
    pub(super) fn turns(&mut self, rank: usize) -> Vec<Turn> {
        let events = self.by_rank.get(rank).cloned().unwrap_or_default();
        let start = Functions::START;
        let mut clocks = Clocks { cpu: start, out: start, into: start };
        let mut resumptions = Vec::new();
        let mut turns = Vec::with_capacity(events.len());
        for id in events {
            turns.push(self.turn(id, clocks, &resumptions));
            match self.causes.event(id).kind {
                Kind::Calc => clocks.cpu = self.after(id, Via::Calc),
                Kind::Send => {
                    clocks.cpu = self.after(id, Via::Send);
                    clocks.out = self.after(id, Via::SendGap);
                }
                Kind::Take => clocks.into = self.after(id, Via::ReceiveGap),
                Kind::Handle => {
                    clocks.cpu = self.after(id, Via::Receive);
                    if !self.causes.overlaps() {
                        clocks.into = self.after(id, Via::ReceiveGap);
                    }
                }
                Kind::Resume { cpu, out } => {
                    clocks.cpu = self.time(cpu);
                    clocks.out = self.time(out);
                    resumptions
                        .push(Resumption { matched: self.causes.event(id).creator, resume: id });
                }
                _ => {}
            }
        }
        turns
    }

    fn turn(&mut self, id: EventId, clocks: Clocks, resumptions: &[Resumption]) -> Turn {
        let event = self.causes.event(id);
        let overlap = self.causes.overlaps();
        let causes = self.causes.of(&event);
        let waits: Vec<Cause> = match event.kind {
            Kind::Calc if overlap => causes.get(1..).unwrap_or_default().to_vec(),
            Kind::Send if overlap => causes.get(2..).unwrap_or_default().to_vec(),
            Kind::Calc | Kind::Send => Vec::new(),
            Kind::Take | Kind::Handle => causes.last().copied().into_iter().collect(),
            _ => self.deciding(&event).to_vec(),
        };
        let terms = self.terms(&waits);
        let available = self.functions.greatest(terms);
        let own_rank = self.rank(event.creator) == event.rank;
        let exists = match event.kind {
            Kind::Handle if overlap => causes.last().map_or(0, |taken| taken.from),
            Kind::Take | Kind::Handle | Kind::Resume { .. } if !own_rank => 0,
            // A match on another rank made it ready, by resuming this rank.
            _ if !own_rank => {
                let resumed = resumptions.iter().rev().find(|by| by.matched == event.creator);
                debug_assert!(resumed.is_some() || event.creator == 0, "a match made it ready");
                resumed.map_or(0, |by| by.resume)
            }
            _ => event.creator,
        };
        let resumes_itself = own_rank && matches!(event.kind, Kind::Resume { .. });
        Turn {
            time: self.time(id),
            available,
            stamp: self.stamp(id),
            exists,
            origin: if resumes_itself { event.creator } else { id },
            kind: event.kind,
            overlap,
            clocks,
        }
    }
}
