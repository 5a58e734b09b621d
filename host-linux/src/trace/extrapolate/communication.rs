//! Messages and collective operations of traced ranks, with their peers as ways in a grid.

use std::{fmt, iter};

use loggap_core::goal::{ANY, OpKind};
use loggap_core::trace::Direction;

use super::ExtrapolateError;
use super::build::Traced;
use super::mapping::{Mapping, Vector};

/// A message of a rank, or a collective operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Communication<'t> {
    pub(super) step: Step<'t>,
    /// Of a message, or sent and received.
    pub(super) bytes: [u64; 2],
    /// Rank at the other end of a message.
    peer: u32,
}

/// Direction and peer of a communication, or its name. Tags are without the numbers of communicators,
/// which differ from part to part of the ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step<'t> {
    Message {
        direction: Direction,
        way: Vector,
        tag: u32,
    },
    FromAny {
        tag: u32,
    },
    Call {
        name: &'t str,
        tag: u32,
    },
    /// To or from `MPI_PROC_NULL`.
    Null(Direction),
}

impl Communication<'_> {
    /// True if ranks with the same place may do so: the roots of collectives have other sizes.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let is_call = matches!(self.step, Step::Call { .. });
        self.step == other.step && (is_call || self.bytes == other.bytes)
    }

    pub(super) const fn is_null(&self) -> bool {
        matches!(self.step, Step::Null(_))
    }

    /// True for the message of a rank in whose place `other` has `MPI_PROC_NULL`.
    pub(super) fn is_instead_of(&self, other: &Self) -> bool {
        let direction = match self.step {
            Step::Message { direction, .. } => Some(direction),
            Step::FromAny { .. } => Some(Direction::Receive),
            Step::Call { .. } | Step::Null(_) => None,
        };
        direction.is_some_and(|direction| other.step == Step::Null(direction))
    }

    /// Tag of a message.
    pub(super) const fn tag(&self) -> Option<u32> {
        match self.step {
            Step::Message { tag, .. } | Step::FromAny { tag } => Some(tag),
            Step::Call { .. } | Step::Null(_) => None,
        }
    }

    /// Way to the peer of a message.
    pub(super) const fn way(&self) -> Option<Vector> {
        if let Step::Message { way, .. } = self.step { Some(way) } else { None }
    }
}

impl fmt::Display for Communication<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, bytes: [bytes, received], peer } = self;
        let of = |tag: &u32| match tag >> 31 {
            0 => format!("tag {tag}"),
            _ => "of a neighbourhood collective".to_owned(),
        };
        match step {
            Step::Message { direction: Direction::Send, tag, .. } => {
                write!(f, "a send of {bytes} B to rank {peer}, {}", of(tag))
            }
            Step::Message { direction: Direction::Receive, tag, .. } => {
                write!(f, "a receive of {bytes} B from rank {peer}, {}", of(tag))
            }
            Step::FromAny { tag } => {
                write!(f, "a receive of {bytes} B from any rank, tag {tag}")
            }
            Step::Call { name, .. } => write!(f, "{name} of {} B", bytes.max(received)),
            Step::Null(Direction::Send) => f.write_str("a send to MPI_PROC_NULL"),
            Step::Null(Direction::Receive) => f.write_str("a receive from MPI_PROC_NULL"),
        }
    }
}

/// Communications of a rank, also those with `MPI_PROC_NULL`.
pub(super) fn communications<'t>(
    all: &'t [Traced<'_>],
    rank: u32,
    mapping: &Mapping,
) -> impl Iterator<Item = Result<Communication<'t>, Misfit>> {
    let traced = all.get(rank as usize);
    let mut nulls = traced.into_iter().flat_map(|traced| &traced.nulls).peekable();
    let mut calls = traced.into_iter().flat_map(|traced| &traced.calls).peekable();
    let plain = |tag: u64| u32::try_from(tag % (1 << 32)).unwrap_or(0);
    let one = move |(at, kind)| {
        let message = |direction, peer, size, tag| {
            let (bytes, tag) = ([size, 0], plain(tag));
            if peer == ANY {
                return Ok(Communication { step: Step::FromAny { tag }, bytes, peer });
            }
            let way = mapping.way(rank, peer).ok_or(Misfit::Unclear(rank))?;
            Ok(Communication { step: Step::Message { direction, way, tag }, bytes, peer })
        };
        Some(match kind {
            OpKind::Send { peer, size, tag } => message(Direction::Send, peer, size, tag),
            OpKind::Receive { peer, size, tag } => message(Direction::Receive, peer, size, tag),
            OpKind::Calc { .. } => {
                let noted = calls.next_if(|call| call.op == at)?;
                let step = Step::Call { name: &noted.call.name, tag: plain(noted.tag) };
                Ok(Communication { step, bytes: [noted.call.sent, noted.call.received], peer: ANY })
            }
        })
        .map(|one| (at, one))
    };
    let ops = traced.into_iter().flat_map(|traced| &traced.captured.ops);
    let mut others = (0..).zip(ops.map(|op| op.kind)).filter_map(one).peekable();
    iter::from_fn(move || {
        let next = others.peek().map_or(u32::MAX, |(at, _)| *at);
        if let Some(null) = nulls.next_if(|null| null.op <= next) {
            let step = Step::Null(null.direction);
            return Some(Ok(Communication { step, bytes: [0; 2], peer: ANY }));
        }
        others.next().map(|(_, one)| one)
    })
}

/// Communications of a rank that are not with `MPI_PROC_NULL`.
pub(super) fn plain<'t>(
    all: &'t [Traced<'_>],
    rank: u32,
    mapping: &Mapping,
) -> impl Iterator<Item = Result<Communication<'t>, Misfit>> {
    communications(all, rank, mapping).filter(|one| !one.as_ref().is_ok_and(Communication::is_null))
}

/// Why ranks do not form a grid.
#[derive(Clone, Debug)]
pub enum Misfit {
    /// Two ranks that should do the same differ.
    Differ(Difference),
    /// Two ranks differ, and not as those at the ends of a dimension of which one has `MPI_PROC_NULL`.
    Ends(Difference),
    /// All ranks have `MPI_PROC_NULL` in this communication of a rank, from 1.
    Null {
        /// Rank.
        rank: u32,
        /// Number of the communication.
        number: usize,
    },
    /// A peer of this rank is at the other end, or half a ring away.
    Unclear(u32),
}

impl Misfit {
    pub(super) fn of(self, mapping: &Mapping) -> ExtrapolateError {
        ExtrapolateError::Misfit { extents: mapping.extents(), misfit: self }
    }
}

/// Communications of two ranks that should be equal.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The ranks.
    pub ranks: [u32; 2],
    /// Number of the communication, from 1.
    pub number: usize,
    /// Their communications.
    pub what: [String; 2],
}

impl Difference {
    pub(super) fn new(
        ranks: [u32; 2],
        number: usize,
        what: [Option<Communication<'_>>; 2],
    ) -> Self {
        let told = |one: Option<Communication<'_>>| {
            one.map_or_else(|| "nothing more".to_owned(), |one| one.to_string())
        };
        Self { ranks, number, what: what.map(told) }
    }
}
