//! Moves each dependency next to the operations that it joins, as in text written by hand, and
//! keeps the orders that matter.

use super::op::{Edge, Op, Sink};
use super::protocol::{Misuse, Protocol};
use super::rank::{RankBuffer, RankMemory, RankNode, RankParts};
use crate::worded::errors;

/// Order of dependencies that is preserved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum KeptOrder {
    /// The order of all dependencies.
    All,
    /// The order of those on the completion of one operation, and of those on its start. This is
    /// the order that the reference's binary format keeps, and that a run depends on.
    OfEachOperation,
}

errors! {
    /// Reason why an interleaver rejected a schedule.
    pub enum InterleaveError<E> {
        /// The sink behind it refused an element.
        Sink(error: E) => "{error}";
        /// The calls came in a wrong order.
        Misuse(misuse: Misuse) => "{misuse}";
        /// A rank is too large for the memory lent.
        RankMemory {
            /// Rank that is too large.
            rank: u32,
        } => "rank {rank} does not fit into the memory lent for one rank";
    }
}

impl<E> From<Misuse> for InterleaveError<E> {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

/// Sink that forwards each complete rank to another sink, with each dependency directly behind the
/// later of its operations, as far as the preserved order allows.
#[derive(Debug)]
pub struct Interleaver<'m, 's, S> {
    sink: &'s mut S,
    protocol: Protocol,
    rank: RankBuffer<'m>,
    kept: KeptOrder,
}

impl<'m, 's, S: Sink> Interleaver<'m, 's, S> {
    /// Forwards to `sink`, with `memory` for the largest rank.
    pub fn new(sink: &'s mut S, memory: RankMemory<'m>, kept: KeptOrder) -> Self {
        Self { sink, protocol: Protocol::default(), rank: RankBuffer::new(memory), kept }
    }

    /// Forwards the complete rank.
    fn pass(&mut self) -> Result<(), S::Error> {
        let kept = self.kept;
        let RankParts { nodes, edges, successors: order } = self.rank.parts();
        sort(nodes, edges, order, kept);
        let mut placed = order.iter();
        for node in nodes.iter() {
            self.sink.op(node.op)?;
            for &index in placed.as_slice().get(..node.dependencies as usize).unwrap_or_default() {
                let Some(&edge) = edges.get(index as usize) else { continue };
                self.sink.edge(edge)?;
                placed.next();
            }
        }
        Ok(())
    }
}

impl<S: Sink> Sink for Interleaver<'_, '_, S> {
    type Error = InterleaveError<S::Error>;

    fn ranks(&mut self, ranks: u32) -> Result<(), Self::Error> {
        self.protocol.ranks(ranks)?;
        self.sink.ranks(ranks).map_err(InterleaveError::Sink)
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), Self::Error> {
        self.protocol.begin_rank(rank)?;
        self.rank.clear();
        self.sink.begin_rank(rank).map_err(InterleaveError::Sink)
    }

    fn op(&mut self, op: Op) -> Result<u32, Self::Error> {
        let index = self.protocol.op()?;
        let rank = self.protocol.rank();
        self.rank.push_op(op).map_err(|_| InterleaveError::RankMemory { rank })?;
        Ok(index)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), Self::Error> {
        self.protocol.edge(edge.op, edge.on)?;
        let rank = self.protocol.rank();
        self.rank.push_edge(edge).map_err(|_| InterleaveError::RankMemory { rank })
    }

    fn end_rank(&mut self) -> Result<(), Self::Error> {
        self.protocol.end_rank()?;
        self.pass().map_err(InterleaveError::Sink)?;
        self.sink.end_rank().map_err(InterleaveError::Sink)
    }
}

/// Selects the operation behind which an edge is written.
struct Placer {
    kept: KeptOrder,
    /// Position of the last edge, of any operation.
    last: u32,
}

impl Placer {
    /// Operation behind which `edge` is written: not before the edges whose order it has to keep.
    /// The positions of the last edges on a node's completion and on its start are in its `mark`
    /// and `level`.
    fn place(&mut self, edge: &Edge, nodes: &mut [RankNode]) -> u32 {
        let earliest = edge.op.max(edge.on);
        let last = match (self.kept, nodes.get_mut(edge.on as usize)) {
            (KeptOrder::OfEachOperation, Some(node)) if edge.start => &mut node.level,
            (KeptOrder::OfEachOperation, Some(node)) => &mut node.mark,
            _ => &mut self.last,
        };
        *last = earliest.max(*last);
        *last
    }
}

/// Sorts the indices of `edges` by their positions into `order`, and counts the edges behind each
/// node in its `dependencies`.
fn sort(nodes: &mut [RankNode], edges: &[Edge], order: &mut [u32], kept: KeptOrder) {
    // Positions are computed twice, from the same state: to count, then to sort.
    let start = |nodes: &mut [RankNode]| {
        for node in nodes {
            (node.mark, node.level) = (0, 0);
        }
        Placer { kept, last: 0 }
    };
    for node in nodes.iter_mut() {
        node.dependencies = 0;
    }
    let mut placer = start(nodes);
    for edge in edges {
        let place = placer.place(edge, nodes);
        if let Some(node) = nodes.get_mut(place as usize) {
            node.dependencies += 1;
        }
    }
    let mut first = 0;
    for node in nodes.iter_mut() {
        node.first = first;
        first += node.dependencies;
    }
    let mut placer = start(nodes);
    for (index, edge) in (0..).zip(edges) {
        let place = placer.place(edge, nodes);
        let Some(node) = nodes.get_mut(place as usize) else { continue };
        if let Some(slot) = order.get_mut(node.first as usize) {
            *slot = index;
        }
        node.first += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::testing::{Program, with_rank_memory};
    use quickcheck::quickcheck;
    use std::vec;
    use std::vec::Vec;

    /// Operations and dependencies in the order of their addition, and the whole program.
    #[derive(Default)]
    struct Trace {
        program: Program,
        /// Edges of each rank, with the number of operations before each.
        places: Vec<Vec<(Edge, u32)>>,
    }

    impl Sink for Trace {
        type Error = Misuse;

        fn ranks(&mut self, ranks: u32) -> Result<(), Misuse> {
            self.program.ranks(ranks)
        }

        fn begin_rank(&mut self, rank: u32) -> Result<(), Misuse> {
            self.places.push(vec![]);
            self.program.begin_rank(rank)
        }

        fn op(&mut self, op: Op) -> Result<u32, Misuse> {
            self.program.op(op)
        }

        fn edge(&mut self, edge: Edge) -> Result<(), Misuse> {
            let ops = u32::try_from(self.program.ranks.last().unwrap().ops.len()).unwrap();
            self.places.last_mut().unwrap().push((edge, ops));
            self.program.edge(edge)
        }

        fn end_rank(&mut self) -> Result<(), Misuse> {
            self.program.end_rank()
        }
    }

    fn interleave(program: &Program, kept: KeptOrder) -> Trace {
        let mut trace = Trace::default();
        with_rank_memory(|memory| program.feed(&mut Interleaver::new(&mut trace, memory, kept)))
            .unwrap();
        assert!(trace.program.is_finished());
        trace
    }

    quickcheck! {
        fn the_order_of_all_stays(program: Program) -> bool {
            interleave(&program, KeptOrder::All).program == program
        }

        fn the_order_of_each_operation_stays(program: Program) -> bool {
            let passed = interleave(&program, KeptOrder::OfEachOperation).program;
            passed.grouped() == program.grouped()
        }

        fn an_edge_waits_only_for_its_operations_and_those_it_must_follow(program: Program) -> () {
            let trace = interleave(&program, KeptOrder::OfEachOperation);
            for edges in trace.places {
                for (index, &(Edge { op, on, start }, place)) in edges.iter().enumerate() {
                    let before = edges[..index].iter().filter(|(e, _)| (e.on, e.start) == (on, start));
                    let latest = before.map(|(_, place)| *place).max().unwrap_or(0);
                    assert_eq!(place, latest.max(op.max(on) + 1));
                }
            }
        }
    }

    #[test]
    fn memory_that_is_too_small_is_named() {
        let mut sink = Program::default();
        let memory = RankMemory { nodes: &mut [], edges: &mut [], successors: &mut [] };
        let mut interleaver = Interleaver::new(&mut sink, memory, KeptOrder::All);
        assert_eq!((interleaver.ranks(1), interleaver.begin_rank(0)), (Ok(()), Ok(())));
        assert_eq!(
            interleaver.op(RankNode::EMPTY.op),
            Err(InterleaveError::RankMemory { rank: 0 })
        );
    }
}
