//! Comparisons that must keep their outcome for the happens-before graph to stay the same.
//!
//! The events of a rank happen in an order. At each of them, every other event that is queued on
//! that rank, or on its way to it, would come later: by time, or at equal times by its stamp. A
//! stamp is the time at which, and the event in which, an event became ready; the order of
//! simultaneous events on different ranks follows from their own stamps. As long as all these
//! comparisons keep their outcomes, every rank executes the same operations in the same order and
//! matches the same messages, and each event has the same causes.

use std::collections::HashSet;

use super::function::{FunctionId, Functions};
use super::graph::{Graph, Turn};
use crate::timeline::causes::{EventId, Kind};

/// Limit on comparisons; beyond it no order is proved.
const MOST: u64 = 1 << 28;

/// Pairs of functions of which the first must stay later than the second; strictly so if it is
/// strictly later now.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) pairs: HashSet<(FunctionId, FunctionId)>,
    /// Pairs of events whose stamps were compared.
    stamps: HashSet<(EventId, EventId)>,
    comparisons: u64,
    /// True if the order can be proved to stay at all.
    pub(super) known: bool,
}

impl Order {
    /// Comparisons of all ranks of a run. `known` only if ranks have one processor and one
    /// interface, and there are not too many comparisons.
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

    /// Compares the event of one turn with the earlier ones of its rank.
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

    /// Requires one function to stay later than another, unless it is so for all values of the
    /// parameters.
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

    /// Requires the stamp of one event to stay later than that of another.
    fn stamps(&mut self, graph: &mut Graph<'_>, younger: EventId, older: EventId) {
        let (mut younger, mut older) = (younger, older);
        // Events of one rank keep their order, and the start precedes all.
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

/// True for events that take part in the order of their rank.
pub(super) const fn takes_turn(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Calc | Kind::Send | Kind::Post | Kind::Take | Kind::Handle | Kind::Resume { .. }
    )
}
