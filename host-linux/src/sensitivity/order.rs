//! What has to stay as it is for the happens-before graph to stay the same.
//!
//! On a rank events happen in an order. At each of them everything else that
//! waits there, or is on its way there, would come later: by time, or at equal
//! times by its stamp. A stamp is when, and in which event, a thing became
//! ready; which of two events on different ranks comes first at the same
//! instant follows from their own stamps. While all these comparisons come out
//! as they did, every rank does the same in the same order, matches the same
//! messages, and each event has the same causes.

use std::collections::HashSet;

use super::function::{FunctionId, Functions};
use super::graph::{Graph, Turn};
use crate::timeline::causes::{EventId, Kind};

/// Comparisons beyond which no order is claimed to stay.
const MOST: u64 = 1 << 28;

/// Pairs of functions of which the first must stay later than the second,
/// strictly where it is so now.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) pairs: HashSet<(FunctionId, FunctionId)>,
    /// Pairs of events whose stamps have been compared.
    stamps: HashSet<(EventId, EventId)>,
    comparisons: u64,
    /// Whether the order can be said to stay at all.
    pub(super) known: bool,
}

impl Order {
    /// That of all ranks of a run; `known` only where ranks have one processor
    /// and one interface, and the comparisons are not too many.
    pub(super) fn of(graph: &mut Graph<'_>) -> Self {
        let mut order = Self { known: !graph.several(), ..Self::default() };
        for rank in graph.ranks() {
            let turns = graph.turns(rank);
            for at in 0..turns.len() {
                if !order.known {
                    return order;
                }
                order.compare(graph, &turns, at);
            }
        }
        order
    }

    /// Compares the event of one turn with those before it.
    fn compare(&mut self, graph: &mut Graph<'_>, turns: &[Turn], at: usize) {
        let Some((own, before)) = turns.get(at).zip(turns.get(..at)) else { return };
        for earlier in before.iter().rev() {
            if earlier.origin <= own.exists {
                return;
            }
            self.comparisons += 1;
            self.known &= self.comparisons <= MOST;
            if !self.known {
                return;
            }
            let functions = &mut graph.functions;
            if functions.now(own.available) > functions.now(earlier.time) {
                self.stays_later(functions, own.available, earlier.time);
                return;
            }
            let would = own.would_begin(functions, earlier);
            self.stays_later(functions, would, earlier.time);
            if functions.now(would) == functions.now(earlier.time) {
                self.stamps(graph, own.stamp, earlier.stamp);
            }
        }
    }

    /// Demands that one function stays later than another, unless that is
    /// so whatever the parameters.
    fn stays_later(&mut self, functions: &mut Functions, later: FunctionId, than: FunctionId) {
        if later == than || than == Functions::START {
            return;
        }
        self.known &= functions.now(later) >= functions.now(than);
        if functions.now(later) > functions.now(than) {
            self.pairs.insert((later, than));
            return;
        }
        for term in functions.terms(than).to_vec() {
            if !functions.has(later, term) {
                let part = functions.greatest(vec![term]);
                self.pairs.insert((later, part));
            }
        }
    }

    /// Demands that what became ready in one event stays younger than what did
    /// in another.
    fn stamps(&mut self, graph: &mut Graph<'_>, younger: EventId, older: EventId) {
        let (mut younger, mut older) = (younger, older);
        // On one rank events keep their order; the start is before all.
        while older != 0 && younger != older && graph.rank(younger) != graph.rank(older) {
            if !self.stamps.insert((younger, older)) {
                return;
            }
            self.comparisons += 1;
            let (later, than) = (graph.time(younger), graph.time(older));
            self.stays_later(&mut graph.functions, later, than);
            if graph.functions.now(later) != graph.functions.now(than) {
                return;
            }
            younger = graph.stamp(younger);
            older = graph.stamp(older);
        }
        debug_assert!(older <= younger, "the younger comes later");
    }
}

/// Events that take a turn on their rank.
pub(super) const fn takes_turn(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Calc | Kind::Send | Kind::Post | Kind::Take | Kind::Handle | Kind::Resume { .. }
    )
}
