//! Sink adapter that shows each operation to a function.

use loggap_core::goal::{Edge, Op, Sink};

/// Passes on each operation as a function of it and its rank returns it.
pub(crate) struct EachOp<'s, S, F> {
    sink: &'s mut S,
    rank: u32,
    each: F,
}

impl<'s, S: Sink, F: FnMut(u32, Op) -> Result<Op, S::Error>> EachOp<'s, S, F> {
    pub(crate) const fn new(sink: &'s mut S, each: F) -> Self {
        Self { sink, rank: 0, each }
    }
}

impl<S: Sink, F: FnMut(u32, Op) -> Result<Op, S::Error>> Sink for EachOp<'_, S, F> {
    type Error = S::Error;

    fn ranks(&mut self, ranks: u32) -> Result<(), S::Error> {
        self.sink.ranks(ranks)
    }

    #[inline]
    fn begin_rank(&mut self, rank: u32) -> Result<(), S::Error> {
        self.rank = rank;
        self.sink.begin_rank(rank)
    }

    #[inline]
    fn op(&mut self, op: Op) -> Result<u32, S::Error> {
        let op = (self.each)(self.rank, op)?;
        self.sink.op(op)
    }

    #[inline]
    fn edge(&mut self, edge: Edge) -> Result<(), S::Error> {
        self.sink.edge(edge)
    }

    #[inline]
    fn end_rank(&mut self) -> Result<(), S::Error> {
        self.sink.end_rank()
    }
}
