//! One rank's part of a collective, emitted into a [`Sink`].

use core::num::NonZeroU64;

use crate::goal::{Op, OpKind, Sink};
use crate::units::Picos;

/// Rank for which a pattern is emitted, within its group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Number of this rank, 0 to `ranks − 1`.
    pub rank: u32,
    /// Number of ranks in the group.
    pub ranks: u32,
    /// Root of the collective.
    pub root: u32,
    /// Size of the collective, bytes.
    pub size: u64,
}

impl Place {
    /// Exchanges 0 and the root: converts a rank to its virtual rank and back.
    pub(super) const fn swapped(&self, x: u32) -> u32 {
        if x == 0 {
            self.root
        } else if x == self.root {
            0
        } else {
            x
        }
    }

    /// Virtual rank of this rank: its number if the root were 0.
    pub(super) const fn virtual_rank(&self) -> u32 {
        self.swapped(self.rank)
    }

    /// Rank at `distance` above this one on the ring.
    pub(super) fn above(&self, distance: u64) -> u32 {
        self.on_ring(u64::from(self.rank) + distance)
    }

    /// Rank at `distance` below this one on the ring.
    pub(super) fn below(&self, distance: u64) -> u32 {
        let ranks = u64::from(self.ranks);
        self.on_ring(u64::from(self.rank) + ranks - u64::from(self.on_ring(distance)))
    }

    /// `distance` modulo the number of ranks, which is at least 1.
    #[allow(clippy::cast_possible_truncation, reason = "a remainder of a u32 fits")]
    pub(super) fn on_ring(&self, distance: u64) -> u32 {
        let ranks = NonZeroU64::new(u64::from(self.ranks)).unwrap_or(NonZeroU64::MIN);
        (distance % ranks) as u32
    }
}

/// A send and a receive of a rank.
#[derive(Clone, Copy)]
pub(super) struct Round {
    pub(super) to: u32,
    pub(super) from: u32,
    pub(super) size: u64,
}

/// Mode of a traversal of a collective.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Walk {
    /// Emits operations and edges.
    Emit,
    /// Emits only the edges by which this operation requires the ends of the collective.
    Tie(u32),
    /// Emits nothing, but counts operations.
    Skip,
}

/// Emitter of one rank's part of a collective.
///
/// A collective calls [`send`](Self::send), [`receive`](Self::receive) and [`calc`](Self::calc),
/// adds edges with [`requires`](Self::requires), and marks its first operations with
/// [`start`](Self::start) and its last ones with [`end`](Self::end). It can be traversed a second
/// time, to tie its ends to an operation emitted after it, so nothing has to be stored.
pub(super) struct Script<'s, S> {
    sink: &'s mut S,
    walk: Walk,
    /// Index of the rank's next operation.
    next: u32,
    /// Operation that first operations wait for.
    after: Option<u32>,
    first_rank: u32,
    tag: u32,
}

impl<'s, S: Sink> Script<'s, S> {
    /// Script for a rank without operations; peers are counted from `first_rank`.
    pub(super) const fn new(sink: &'s mut S, first_rank: u32) -> Self {
        Self { sink, walk: Walk::Emit, next: 0, after: None, first_rank, tag: 0 }
    }

    /// Lets the first operations from now on wait for `after`.
    pub(super) const fn set_after(&mut self, after: u32) {
        self.after = Some(after);
    }

    /// Emits `part`, whose first operations wait for `op`.
    pub(super) fn behind<F>(&mut self, op: u32, part: F) -> Result<(), S::Error>
    where
        F: FnOnce(&mut Self) -> Result<(), S::Error>,
    {
        let before = self.after.replace(op);
        part(self)?;
        self.after = before;
        Ok(())
    }

    /// Sets the tag of the messages from now on.
    pub(super) const fn set_tag(&mut self, tag: u32) {
        self.tag = tag;
    }

    /// Emits `part`, then an empty calculation that requires its ends; returns that calculation.
    pub(super) fn joined<F>(&mut self, part: F) -> Result<u32, S::Error>
    where
        F: Fn(&mut Self) -> Result<(), S::Error>,
    {
        let (walk, first) = (self.walk, self.next);
        if walk != Walk::Emit {
            self.walk = Walk::Skip;
        }
        part(self)?;
        let empty = self.next == first;
        let join = self.calc(Picos::ZERO)?;
        if walk == Walk::Emit {
            if empty {
                self.start(join)?;
            }
            self.walk = Walk::Tie(join);
            self.next = first;
            part(self)?;
            self.next = join.wrapping_add(1);
        }
        self.walk = walk;
        Ok(join)
    }

    fn op(&mut self, kind: OpKind, cpu: u8) -> Result<u32, S::Error> {
        let index = self.next;
        self.next = index.wrapping_add(1);
        match self.walk {
            Walk::Emit => self.sink.op(Op { kind, cpu: cpu.into(), nic: 0 }),
            Walk::Tie(_) | Walk::Skip => Ok(index),
        }
    }

    /// Emits a send of `size` bytes to `peer` of the group.
    pub(super) fn send(&mut self, peer: u32, size: u64) -> Result<u32, S::Error> {
        let peer = self.first_rank.wrapping_add(peer);
        self.op(OpKind::Send { peer, size, tag: self.tag.into() }, 0)
    }

    /// Emits a receive of `size` bytes from `peer` of the group.
    pub(super) fn receive(&mut self, peer: u32, size: u64) -> Result<u32, S::Error> {
        let peer = self.first_rank.wrapping_add(peer);
        self.op(OpKind::Receive { peer, size, tag: self.tag.into() }, 0)
    }

    /// Emits a calculation.
    pub(super) fn calc(&mut self, duration: Picos) -> Result<u32, S::Error> {
        self.op(OpKind::Calc { duration }, 0)
    }

    /// Emits a calculation on processor `cpu`.
    pub(super) fn calc_on(&mut self, duration: Picos, cpu: u8) -> Result<u32, S::Error> {
        self.op(OpKind::Calc { duration }, cpu)
    }

    /// Emits a dependency of `op` on `on`.
    pub(super) fn requires(&mut self, op: u32, on: u32) -> Result<(), S::Error> {
        if self.walk == Walk::Emit { self.sink.requires(op, on) } else { Ok(()) }
    }

    /// Emits a dependency of `op` on `on`; without `on`, marks `op` as a first operation.
    pub(super) fn follows(&mut self, op: u32, on: Option<u32>) -> Result<(), S::Error> {
        match on {
            Some(on) => self.requires(op, on),
            None => self.start(op),
        }
    }

    /// Emits a send that waits for nothing and that nothing in the collective waits for.
    pub(super) fn send_alone(&mut self, peer: u32, size: u64) -> Result<(), S::Error> {
        let send = self.send(peer, size)?;
        self.start(send)?;
        self.end(send)
    }

    /// Emits a receive that waits for nothing and that nothing in the collective waits for.
    pub(super) fn receive_alone(&mut self, peer: u32, size: u64) -> Result<(), S::Error> {
        let receive = self.receive(peer, size)?;
        self.start(receive)?;
        self.end(receive)
    }

    /// Emits a round, whose send follows `ready`; returns its receive, for which the next waits.
    pub(super) fn exchange(&mut self, round: Round, ready: Option<u32>) -> Result<u32, S::Error> {
        let send = self.send(round.to, round.size)?;
        self.follows(send, ready)?;
        self.end(send)?;
        let receive = self.receive(round.from, round.size)?;
        self.start(receive)?;
        Ok(receive)
    }

    /// Emits rounds, in each of which the send waits for the receive of the round before.
    pub(super) fn exchanges(
        &mut self,
        mut rounds: impl Iterator<Item = Round>,
    ) -> Result<(), S::Error> {
        let last = rounds.try_fold(None, |ready, round| self.exchange(round, ready).map(Some))?;
        last.map_or(Ok(()), |receive| self.end(receive))
    }

    /// Marks a first operation of the collective.
    pub(super) fn start(&mut self, op: u32) -> Result<(), S::Error> {
        match self.after {
            Some(after) => self.requires(op, after),
            None => Ok(()),
        }
    }

    /// Marks a last operation of the collective.
    pub(super) fn end(&mut self, op: u32) -> Result<(), S::Error> {
        match self.walk {
            Walk::Tie(join) => self.sink.requires(join, op),
            Walk::Emit | Walk::Skip => Ok(()),
        }
    }
}
