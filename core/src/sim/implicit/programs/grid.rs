//! Grids of ranks: exchange of halos with the neighbours, and a sweep from one corner.

use crate::goal::pattern::{Grid, Stencil, SweepStep};
use crate::sim::implicit::{Extent, Program, Release, Transfer};
use crate::units::Picos;

/// Exchange of messages with the neighbours.
#[derive(Clone, Copy, Debug)]
pub struct Halo {
    pub(super) grid: Grid,
    pub(super) stencil: Stencil,
    pub(super) size: u64,
    /// Calculation before the sends.
    pub(super) compute: Option<Picos>,
}

impl Halo {
    #[allow(clippy::cast_possible_truncation, reason = "at most 26")]
    fn neighbours(&self, rank: u32) -> u32 {
        self.grid.neighbours(self.stencil, rank).count() as u32
    }
}

impl Program for Halo {
    type State = ();

    fn extent(&self) -> Extent {
        let (ranks, messages) = (self.grid.ranks(), self.grid.messages(self.stencil));
        let waiting = messages.saturating_add(u64::from(ranks).saturating_mul(4));
        Extent {
            ranks,
            sizes: [self.size; 2],
            waiting,
            messages,
            busy: ranks,
            interchangeable: true,
        }
    }

    fn start(&self, rank: u32, _state: &mut ()) -> Release {
        let neighbours = self.neighbours(rank);
        let release = match self.compute {
            None => Release::sends(0, neighbours),
            Some(_) => Release::calc(0),
        };
        release.and_receives(neighbours)
    }

    fn calculated(&self, rank: u32, _state: &mut (), _calc: u32) -> Release {
        Release::sends(0, self.neighbours(rank))
    }

    fn transfer(&self, rank: u32, send: u32) -> Transfer {
        let [to, receive] = self.grid.neighbour(self.stencil, rank, send).unwrap_or([rank, 0]);
        Transfer { to, receive, size: self.size }
    }

    fn expected(&self, _rank: u32, _receive: u32) -> u64 {
        self.size
    }

    fn calc(&self, _rank: u32, _calc: u32) -> Picos {
        self.compute.unwrap_or_default()
    }
}

/// Wavefront: a rank computes when the neighbours before it have sent, and sends to those behind.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    pub(super) grid: Grid,
    pub(super) size: u64,
    pub(super) compute: Picos,
}

impl Sweep {
    #[allow(clippy::cast_possible_truncation, reason = "at most 2")]
    fn count(&self, rank: u32, step: SweepStep) -> u32 {
        self.grid.swept(rank, step).count() as u32
    }
}

impl Program for Sweep {
    /// Messages received.
    type State = u32;

    fn extent(&self) -> Extent {
        let ranks = self.grid.ranks();
        Extent {
            ranks,
            sizes: [self.size; 2],
            waiting: u64::from(ranks).saturating_mul(4),
            messages: self.grid.swept_messages(),
            busy: self.grid.front(),
            interchangeable: true,
        }
    }

    fn start(&self, rank: u32, _state: &mut u32) -> Release {
        match self.count(rank, SweepStep::Before) {
            0 => Release::calc(0),
            before => Release::receives(before),
        }
    }

    fn received(&self, rank: u32, state: &mut u32, _receive: u32) -> Release {
        *state += 1;
        let is_last = *state == self.count(rank, SweepStep::Before);
        if is_last { Release::calc(0) } else { Release::NOTHING }
    }

    fn calculated(&self, rank: u32, _state: &mut u32, _calc: u32) -> Release {
        Release::sends(0, self.count(rank, SweepStep::Behind))
    }

    fn transfer(&self, rank: u32, send: u32) -> Transfer {
        let to = self.grid.swept(rank, SweepStep::Behind).nth(send as usize).unwrap_or(rank);
        let before = self.grid.swept(to, SweepStep::Before);
        let receive = (0..).zip(before).find(|(_, peer)| *peer == rank);
        Transfer { to, receive: receive.map_or(0, |(number, _)| number), size: self.size }
    }

    fn expected(&self, _rank: u32, _receive: u32) -> u64 {
        self.size
    }

    fn calc(&self, _rank: u32, _calc: u32) -> Picos {
        self.compute
    }
}
