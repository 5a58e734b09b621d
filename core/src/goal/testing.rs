//! Schedules as plain values, for tests.

use std::vec::Vec;

use quickcheck::{Arbitrary, Gen};

use super::op::{ANY, ANY_TAG, Edge, Op, OpKind, Sink};
use super::protocol::{Misuse, Protocol};
use super::rank::{RankMemory, RankNode};
use crate::units::Picos;

/// Dependency of `op` on the end of `on`.
pub(crate) const fn edge(op: u32, on: u32) -> Edge {
    Edge { op, on, start: false }
}

/// Operations and dependencies of one rank.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Rank {
    pub(crate) ops: Vec<Op>,
    pub(crate) edges: Vec<Edge>,
}

/// A schedule. As a [`Sink`] it records a schedule and checks the order of the calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) ranks: Vec<Rank>,
    protocol: Protocol,
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.ranks == other.ranks
    }
}

impl Program {
    pub(crate) fn new(ranks: Vec<Rank>) -> Self {
        Self { ranks, protocol: Protocol::default() }
    }

    /// Feeds the schedule to `sink`.
    pub(crate) fn feed<S: Sink>(&self, sink: &mut S) -> Result<(), S::Error> {
        sink.ranks(u32::try_from(self.ranks.len()).unwrap())?;
        for (rank, content) in self.ranks.iter().enumerate() {
            sink.begin_rank(u32::try_from(rank).unwrap())?;
            for (index, op) in content.ops.iter().enumerate() {
                assert_eq!(sink.op(*op)? as usize, index);
            }
            for edge in &content.edges {
                sink.edge(*edge)?;
            }
            sink.end_rank()?;
        }
        Ok(())
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.protocol.finish().is_ok()
    }
}

impl Program {
    /// With the order of dependencies that the reference's binary format keeps.
    pub(crate) fn grouped(&self) -> Self {
        let mut program = Self::new(self.ranks.clone());
        for rank in &mut program.ranks {
            rank.edges.sort_by_key(|edge| (edge.on, edge.start));
        }
        program
    }
}

/// Calls `work` with memory for a rank of 64 operations and dependencies.
pub(crate) fn with_rank_memory<T>(work: impl FnOnce(RankMemory<'_>) -> T) -> T {
    let (mut nodes, mut edges) = ([RankNode::EMPTY; 64], [Edge::default(); 64]);
    let successors = &mut [0xeeee; 64];
    work(RankMemory { nodes: &mut nodes, edges: &mut edges, successors })
}

impl Sink for Program {
    type Error = Misuse;

    fn ranks(&mut self, ranks: u32) -> Result<(), Misuse> {
        self.protocol.ranks(ranks)
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), Misuse> {
        self.ranks.push(Rank::default());
        self.protocol.begin_rank(rank)
    }

    fn op(&mut self, op: Op) -> Result<u32, Misuse> {
        self.ranks.last_mut().unwrap().ops.push(op);
        self.protocol.op()
    }

    fn edge(&mut self, edge: Edge) -> Result<(), Misuse> {
        self.ranks.last_mut().unwrap().edges.push(edge);
        self.protocol.edge(edge.op, edge.on)
    }

    fn end_rank(&mut self) -> Result<(), Misuse> {
        self.protocol.end_rank()
    }
}

fn tag(g: &mut Gen) -> u64 {
    *g.choose(&[0, 0, 1, 7, 42_001, u64::from(ANY) - 1, ANY_TAG]).unwrap()
}

fn size(g: &mut Gen) -> u64 {
    *g.choose(&[0, 1, 8, 65_536, u64::from(u32::MAX) + 1, u64::MAX]).unwrap()
}

fn peer(g: &mut Gen, ranks: u32) -> u32 {
    if u8::arbitrary(g) < 8 { ANY - 1 } else { u32::arbitrary(g) % ranks }
}

fn op(g: &mut Gen, ranks: u32) -> Op {
    let cpu = *g.choose(&[0, 0, 0, 1, 9, 254]).unwrap();
    let nic = *g.choose(&[0, 0, 0, 3, 254]).unwrap();
    match u8::arbitrary(g) % 3 {
        0 => {
            Op { kind: OpKind::Send { peer: peer(g, ranks), size: size(g), tag: tag(g) }, cpu, nic }
        }
        1 => {
            let peer = if bool::arbitrary(g) { peer(g, ranks) } else { ANY };
            Op { kind: OpKind::Receive { peer, size: size(g), tag: tag(g) }, cpu, nic }
        }
        _ => {
            let nanos = *g.choose(&[0, 1, 100, u64::MAX / 1_000]).unwrap();
            Op { kind: OpKind::Calc { duration: Picos(nanos * 1_000) }, cpu, nic: 0 }
        }
    }
}

impl Arbitrary for Program {
    /// Any schedule that text can express, with cpu and nic up to 254.
    fn arbitrary(g: &mut Gen) -> Self {
        let ranks = u32::arbitrary(g) % 6 + 1;
        let rank = |g: &mut Gen| {
            let ops: Vec<Op> = (0..usize::arbitrary(g) % 12).map(|_| op(g, ranks)).collect();
            let count = u32::try_from(ops.len()).unwrap();
            let edges = if count == 0 { 0 } else { usize::arbitrary(g) % 16 };
            let any = |g: &mut Gen| u32::arbitrary(g) % count;
            let edges = (0..edges)
                .map(|_| Edge { op: any(g), on: any(g), start: bool::arbitrary(g) })
                .collect();
            Rank { ops, edges }
        };
        Self::new((0..ranks).map(|_| rank(g)).collect())
    }
}

impl Program {
    /// Replaces some tags by ones of more than 32 bits, and some cpus and nics by ones of more than
    /// 8.
    pub(crate) fn widened(mut self) -> Self {
        for op in self.ranks.iter_mut().flat_map(|rank| &mut rank.ops) {
            if let OpKind::Send { tag, .. } | OpKind::Receive { tag, .. } = &mut op.kind {
                *tag = match *tag {
                    7 => 50_000_100_007,
                    1 => (1 << 32) + 1,
                    42_001 => u32::MAX.into(),
                    tag => tag,
                };
            }
            op.cpu = if op.cpu == 9 { 300 } else { op.cpu };
            op.nic = if op.nic == 3 { u16::MAX } else { op.nic };
        }
        self
    }
}

/// Change of one byte.
#[derive(Clone, Debug)]
pub(crate) struct Mutation {
    at: usize,
    value: u8,
}

impl Arbitrary for Mutation {
    fn arbitrary(g: &mut Gen) -> Self {
        Self { at: usize::arbitrary(g), value: u8::arbitrary(g) }
    }
}

/// Changes, drops or doubles bytes.
pub(crate) fn mutate(bytes: &mut Vec<u8>, changes: &[Mutation]) {
    for &Mutation { at, value } in changes {
        if bytes.is_empty() {
            return;
        }
        let at = at % bytes.len();
        match value % 4 {
            0 => drop(bytes.remove(at)),
            1 => bytes.insert(at, bytes[at]),
            2 => bytes.truncate(at),
            _ => bytes[at] = value.rotate_right(2),
        }
    }
}
