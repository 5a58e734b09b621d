//! Rounds of sends and receives of each rank of a collective operation, and their translation into
//! a schedule.
//!
//! The core's patterns are those of Schedgen, in which operations wait for nothing but their data.
//! Here a rank follows the code of an MPI library: a round begins when the previous one is
//! complete.

use loggap_core::goal::{DependsOn, Edge, Op, OpKind, Sink};
use loggap_core::units::Picos;

/// A message of a round.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Message {
    /// The other rank.
    pub peer: u32,
    /// Bytes.
    pub size: u64,
}

/// Operations of a rank that start together; the next round waits for all of them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Round {
    /// Computation before the messages.
    pub calc: Picos,
    /// Sends, in this order.
    pub sends: Vec<Message>,
    /// Receives.
    pub receives: Vec<Message>,
}

impl Round {
    /// True if it has both sends and receives.
    #[must_use]
    pub const fn exchanges(&self) -> bool {
        !self.sends.is_empty() && !self.receives.is_empty()
    }

    /// Round that only sends `size` bytes to `peer`.
    #[must_use]
    pub fn send(peer: u32, size: u64) -> Self {
        Self { sends: vec![Message { peer, size }], ..Self::default() }
    }

    /// Round that only receives `size` bytes from `peer`.
    #[must_use]
    pub fn receive(peer: u32, size: u64) -> Self {
        Self { receives: vec![Message { peer, size }], ..Self::default() }
    }

    /// Round that sends one message and receives one.
    #[must_use]
    pub fn exchange(to: Message, from: Message) -> Self {
        Self { sends: vec![to], receives: vec![from], ..Self::default() }
    }

    /// This round with sends and receives exchanged.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { sends: self.receives, receives: self.sends, ..self }
    }

    /// Round that only computes.
    #[must_use]
    pub fn compute(calc: Picos) -> Self {
        Self { calc, ..Self::default() }
    }
}

/// Largest number of dependencies between two rounds that are written one by one.
const MOST_PAIRS: usize = 16;

/// Dependency of an operation that is not written yet: the operation that it waits for, and the
/// event of it.
pub type Dependency = (u32, DependsOn);

/// Peers, tag and processor of rounds in a schedule.
#[derive(Clone, Copy, Debug)]
pub struct Placement<F> {
    /// Rank of the schedule for a rank of the collective operation.
    pub rank: F,
    /// Tag of the messages.
    pub tag: u64,
    /// Processor.
    pub cpu: u16,
}

/// Writes an operation of the open rank that waits for `before`.
pub(crate) fn write_op<S: Sink>(
    op: Op,
    before: &[Dependency],
    sink: &mut S,
) -> Result<u32, S::Error> {
    let op = sink.op(op)?;
    for &(on, event) in before {
        sink.edge(Edge { op, on, start: event == DependsOn::Start })?;
    }
    Ok(op)
}

/// Writes all ranks into `sink`, see [`write_rounds`].
///
/// # Errors
///
/// Errors of `sink`.
pub fn feed<S: Sink>(
    ranks: u32,
    rounds: impl Fn(u32) -> Vec<Round>,
    sink: &mut S,
) -> Result<(), S::Error> {
    sink.ranks(ranks)?;
    for rank in 0..ranks {
        sink.begin_rank(rank)?;
        let placement = Placement { rank: |peer| peer, tag: 0, cpu: 0 };
        write_rounds(&rounds(rank), &placement, Vec::new(), sink)?;
        sink.end_rank()?;
    }
    Ok(())
}

/// Writes the rounds of the open rank: each operation of a round requires all of the previous
/// round, those of the first one `before`. Returns what the operations behind wait for. Between
/// large rounds an empty calculation is inserted, so that the number of dependencies is linear in
/// that of operations instead of quadratic.
///
/// # Errors
///
/// Errors of `sink`.
pub fn write_rounds<S: Sink>(
    rounds: &[Round],
    placement: &Placement<impl Fn(u32) -> u32>,
    mut before: Vec<Dependency>,
    sink: &mut S,
) -> Result<Vec<Dependency>, S::Error> {
    let &Placement { ref rank, tag, cpu } = placement;
    for round in rounds {
        let messages = round.sends.len() + round.receives.len();
        let joins = before.len().saturating_mul(messages) > MOST_PAIRS && before.len() > 1;
        let mut add = |kind, before: &[Dependency]| {
            Ok((write_op(Op { kind, cpu, nic: 0 }, before, sink)?, DependsOn::End))
        };
        if round.calc > Picos::ZERO || joins {
            before = vec![add(OpKind::Calc { duration: round.calc }, &before)?];
        }
        let mut own = Vec::with_capacity(messages);
        for &Message { peer, size } in &round.sends {
            own.push(add(OpKind::Send { peer: rank(peer), size, tag }, &before)?);
        }
        for &Message { peer, size } in &round.receives {
            own.push(add(OpKind::Receive { peer: rank(peer), size, tag }, &before)?);
        }
        if !own.is_empty() {
            before = own;
        }
    }
    Ok(before)
}

/// Rank at `distance` above `rank` on the ring.
pub(super) fn around(rank: u32, distance: u32, ranks: u32) -> u32 {
    let place = (u64::from(rank) + u64::from(distance)) % u64::from(ranks.max(1));
    u32::try_from(place).unwrap_or(0)
}

/// Largest power of two up to `ranks`; 1 for 0 ranks.
#[must_use]
pub fn power_of_two(ranks: u32) -> u32 {
    1 << ranks.max(1).ilog2()
}

/// 1, 2, 4, … below `end`.
pub fn doubled(end: u32) -> impl DoubleEndedIterator<Item = u32> {
    (0..u32::BITS - end.saturating_sub(1).leading_zeros()).map(|bit| 1 << bit)
}

/// Binomial trees with rank 0 at the root.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Binomial {
    /// The parent's number lacks the rank's highest bit; a rank sends to its nearest child first.
    Near,
    /// The parent's number lacks the rank's lowest bit; a rank sends to its farthest child first.
    Far,
}

/// Parent and children of a rank in a tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// `None` at the root.
    pub parent: Option<u32>,
    /// Children, in the order of the sends to them.
    pub children: Vec<u32>,
}

impl Binomial {
    /// The place of `rank`.
    #[must_use]
    pub fn place(self, rank: u32, ranks: u32) -> Place {
        let root = rank == 0;
        let lowest = rank & rank.wrapping_neg();
        let parent = match self {
            Self::Near => rank ^ power_of_two(rank),
            Self::Far => rank ^ lowest,
        };
        let existing = |bit: u32| rank.checked_add(bit).filter(|&child| child < ranks);
        let children: Vec<u32> = match self {
            Self::Near if root => doubled(ranks).filter_map(existing).collect(),
            Self::Near => doubled(ranks).filter(|&bit| bit > rank).filter_map(existing).collect(),
            Self::Far => {
                let end = if root { ranks } else { lowest };
                doubled(end).rev().filter_map(existing).collect()
            }
        };
        Place { parent: (!root).then_some(parent), children }
    }

    /// Size of the subtree of `rank` in a [`Binomial::Far`] tree; its ranks are consecutive,
    /// beginning with `rank`.
    #[must_use]
    pub fn subtree(rank: u32, ranks: u32) -> u32 {
        let whole = if rank == 0 { ranks } else { rank & rank.wrapping_neg() };
        whole.min(ranks.saturating_sub(rank))
    }
}
