//! One rank's part of one collective, on its way into a [`Sink`].

use core::num::NonZeroU64;

use crate::goal::{Op, OpKind, Sink};
use crate::units::Picos;

/// The rank for which a pattern is being emitted, within its group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// This rank, 0 to `ranks − 1`.
    pub rank: u32,
    /// Ranks in the group.
    pub ranks: u32,
    /// The rank at the root of the collective.
    pub root: u32,
    /// Bytes of the collective.
    pub size: u64,
}

impl Place {
    /// `x` with 0 and the root exchanged: the virtual rank of a rank, and
    /// the rank of a virtual rank.
    pub(super) const fn swapped(&self, x: u32) -> u32 {
        if x == 0 {
            self.root
        } else if x == self.root {
            0
        } else {
            x
        }
    }

    /// This rank as if the root were 0.
    pub(super) const fn virtual_rank(&self) -> u32 {
        self.swapped(self.rank)
    }

    /// The rank `distance` above this one on the ring.
    pub(super) fn above(&self, distance: u64) -> u32 {
        self.on_ring(u64::from(self.rank) + distance)
    }

    /// The rank `distance` below this one on the ring.
    pub(super) fn below(&self, distance: u64) -> u32 {
        let ranks = u64::from(self.ranks);
        self.on_ring(u64::from(self.rank) + ranks - u64::from(self.on_ring(distance)))
    }

    /// `distance` modulo the number of ranks, of which there is at least one.
    #[allow(clippy::cast_possible_truncation, reason = "a remainder of a u32 fits")]
    pub(super) fn on_ring(&self, distance: u64) -> u32 {
        let ranks = NonZeroU64::new(u64::from(self.ranks)).unwrap_or(NonZeroU64::MIN);
        (distance % ranks) as u32
    }
}

/// What a walk over a collective does with what it meets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Walk {
    /// Emits operations and edges.
    Emit,
    /// Emits nothing but the edges by which this operation requires the
    /// ends of the collective.
    Tie(u32),
    /// Emits nothing, counts operations.
    Skip,
}

/// Receives one rank's part of a collective.
///
/// A collective calls [`send`](Self::send), [`receive`](Self::receive) and
/// [`calc`](Self::calc), names the edges with [`requires`](Self::requires),
/// and marks its first operations with [`start`](Self::start) and its last
/// ones with [`end`](Self::end). It can be walked a second time, to tie its
/// ends to an operation emitted after it; so nothing has to be remembered.
pub(super) struct Script<'s, S> {
    sink: &'s mut S,
    walk: Walk,
    /// Index of the rank's next operation.
    next: u32,
    /// What first operations wait for.
    after: Option<u32>,
    first_rank: u32,
    tag: u32,
}

impl<'s, S: Sink> Script<'s, S> {
    /// A script for a rank without operations, whose peers count from
    /// `first_rank`.
    pub(super) const fn new(sink: &'s mut S, first_rank: u32) -> Self {
        Self { sink, walk: Walk::Emit, next: 0, after: None, first_rank, tag: 0 }
    }

    /// Lets the first operations of what follows wait for `after`, and
    /// returns what they waited for.
    pub(super) const fn set_after(&mut self, after: Option<u32>) -> Option<u32> {
        let before = self.after;
        self.after = after;
        before
    }

    /// Tag of the messages that follow.
    pub(super) const fn set_tag(&mut self, tag: u32) {
        self.tag = tag;
    }

    /// Emits `part`, then an empty calculation that requires its ends, and
    /// returns that one.
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

    /// A message of `size` bytes to `peer` of the group.
    pub(super) fn send(&mut self, peer: u32, size: u64) -> Result<u32, S::Error> {
        let peer = self.first_rank.wrapping_add(peer);
        self.op(OpKind::Send { peer, size, tag: self.tag.into() }, 0)
    }

    /// A message of `size` bytes from `peer` of the group.
    pub(super) fn receive(&mut self, peer: u32, size: u64) -> Result<u32, S::Error> {
        let peer = self.first_rank.wrapping_add(peer);
        self.op(OpKind::Receive { peer, size, tag: self.tag.into() }, 0)
    }

    /// A computation.
    pub(super) fn calc(&mut self, duration: Picos) -> Result<u32, S::Error> {
        self.op(OpKind::Calc { duration }, 0)
    }

    /// A computation on processor `cpu`.
    pub(super) fn calc_on(&mut self, duration: Picos, cpu: u8) -> Result<u32, S::Error> {
        self.op(OpKind::Calc { duration }, cpu)
    }

    /// `op` waits for `on`.
    pub(super) fn requires(&mut self, op: u32, on: u32) -> Result<(), S::Error> {
        if self.walk == Walk::Emit { self.sink.requires(op, on) } else { Ok(()) }
    }

    /// `op` waits for `on` where there is one, and is a first operation
    /// where there is not.
    pub(super) fn follows(&mut self, op: u32, on: Option<u32>) -> Result<(), S::Error> {
        match on {
            Some(on) => self.requires(op, on),
            None => self.start(op),
        }
    }

    /// Nothing in the collective precedes `op`.
    pub(super) fn start(&mut self, op: u32) -> Result<(), S::Error> {
        match self.after {
            Some(after) => self.requires(op, after),
            None => Ok(()),
        }
    }

    /// Nothing in the collective follows `op`.
    pub(super) fn end(&mut self, op: u32) -> Result<(), S::Error> {
        match self.walk {
            Walk::Tie(join) => self.sink.requires(join, op),
            Walk::Emit | Walk::Skip => Ok(()),
        }
    }
}
