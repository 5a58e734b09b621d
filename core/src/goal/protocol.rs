//! Order of calls to a [`Sink`](super::Sink), and a check of it.

use crate::worded::worded;

worded! {
    /// Violation of the order of calls to a sink.
    pub enum Misuse {
        /// The number of ranks was announced twice, or after a rank.
        CountTwice => "number of ranks announced twice";
        /// The rank opened is not the next one, or is past the last.
        RankOutOfOrder {
            /// Rank that was expected.
            next: u32,
            /// Rank that was opened.
            found: u32,
        } => "rank {found} opened where rank {next} comes next";
        /// A rank was opened while another was open.
        RankOpen {
            /// Rank that is open.
            rank: u32,
        } => "rank {rank} is still open";
        /// An element was added while no rank was open.
        NoOpenRank => "no rank is open";
        /// A dependency names an operation that does not exist yet.
        UnknownOp {
            /// Rank that is open.
            rank: u32,
            /// Operation that does not exist.
            op: u32,
        } => "rank {rank} has no operation {op} yet to depend on";
        /// A rank has more operations than a `u32` can count.
        TooManyOps {
            /// Rank that is open.
            rank: u32,
        } => "rank {rank} has more than 4294967295 operations";
        /// The schedule ended before its last rank.
        Unfinished {
            /// Number of ranks received.
            written: u32,
            /// Number of ranks announced, or 0.
            ranks: u32,
        } => "schedule ends after {written} of {ranks} ranks";
    }
}

/// Checker of the calls to a sink.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Protocol {
    ranks: Option<u32>,
    /// Number of ranks opened so far.
    opened: u32,
    open: bool,
    /// Number of operations of the open rank.
    ops: u32,
}

impl Protocol {
    pub(super) fn ranks(&mut self, ranks: u32) -> Result<(), Misuse> {
        match self.ranks {
            Some(_) => Err(Misuse::CountTwice),
            None => {
                self.ranks = Some(ranks);
                Ok(())
            }
        }
    }

    pub(super) fn begin_rank(&mut self, rank: u32) -> Result<(), Misuse> {
        if self.open {
            return Err(Misuse::RankOpen { rank: self.rank() });
        }
        if rank != self.opened || rank >= self.ranks.unwrap_or(0) {
            return Err(Misuse::RankOutOfOrder { next: self.opened, found: rank });
        }
        self.opened += 1;
        self.open = true;
        self.ops = 0;
        Ok(())
    }

    /// Counts an operation and returns its index.
    #[inline]
    pub(super) fn op(&mut self) -> Result<u32, Misuse> {
        if !self.open {
            return Err(Misuse::NoOpenRank);
        }
        let index = self.ops;
        self.ops = index.checked_add(1).ok_or(Misuse::TooManyOps { rank: self.rank() })?;
        Ok(index)
    }

    #[inline]
    pub(super) fn edge(&self, op: u32, on: u32) -> Result<(), Misuse> {
        if !self.open {
            return Err(Misuse::NoOpenRank);
        }
        match op.max(on) {
            highest if highest < self.ops => Ok(()),
            op => Err(Misuse::UnknownOp { rank: self.rank(), op }),
        }
    }

    pub(super) fn end_rank(&mut self) -> Result<(), Misuse> {
        if !self.open {
            return Err(Misuse::NoOpenRank);
        }
        self.open = false;
        Ok(())
    }

    /// Checks that all announced ranks are complete; returns their number.
    pub(super) fn finish(&self) -> Result<u32, Misuse> {
        match self.ranks {
            Some(ranks) if ranks == self.opened && !self.open => Ok(ranks),
            _ if self.open => Err(Misuse::RankOpen { rank: self.rank() }),
            ranks => Err(Misuse::Unfinished { written: self.opened, ranks: ranks.unwrap_or(0) }),
        }
    }

    /// The newest rank.
    pub(super) const fn rank(&self) -> u32 {
        self.opened.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_out_of_order_are_named() {
        let mut p = Protocol::default();
        assert_eq!(p.begin_rank(0), Err(Misuse::RankOutOfOrder { next: 0, found: 0 }));
        assert_eq!(p.ranks(2), Ok(()));
        assert_eq!(p.ranks(2), Err(Misuse::CountTwice));
        assert_eq!(p.op(), Err(Misuse::NoOpenRank));
        assert_eq!(p.begin_rank(1), Err(Misuse::RankOutOfOrder { next: 0, found: 1 }));
        assert_eq!(p.begin_rank(0), Ok(()));
        assert_eq!(p.begin_rank(1), Err(Misuse::RankOpen { rank: 0 }));
        assert_eq!((p.op(), p.edge(0, 0)), (Ok(0), Ok(())));
        assert_eq!(p.edge(0, 1), Err(Misuse::UnknownOp { rank: 0, op: 1 }));
        assert_eq!(p.finish(), Err(Misuse::RankOpen { rank: 0 }));
        assert_eq!(p.end_rank(), Ok(()));
        assert_eq!(p.edge(0, 0), Err(Misuse::NoOpenRank));
        assert_eq!(p.finish(), Err(Misuse::Unfinished { written: 1, ranks: 2 }));
        assert_eq!((p.begin_rank(1), p.end_rank(), p.finish()), (Ok(()), Ok(()), Ok(2)));
        assert_eq!(p.begin_rank(2), Err(Misuse::RankOutOfOrder { next: 2, found: 2 }));
    }
}
