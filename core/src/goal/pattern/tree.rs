//! Trees: binomial broadcast and reduction, binary broadcast.

use super::script::{Place, Script};
use crate::goal::Sink;

/// Kind of a tree of virtual ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TreeKind {
    /// Binomial: in round k the virtual ranks below 2ᵏ have a child 2ᵏ above them.
    Binomial,
    /// Binary: virtual rank v has the children 2v + 1 and 2v + 2. With a root other than 0 Schedgen
    /// takes roles from real ranks but peers from virtual ranks, and deadlocks; here both are virtual.
    Binary,
}

/// First round in which the virtual rank `own` of a binomial tree has the data.
pub(crate) const fn first_round(own: u32) -> u32 {
    u32::BITS - own.leading_zeros()
}

impl TreeKind {
    /// Parent of `own`; `None` for the root.
    pub(crate) fn parent(self, own: u32) -> Option<u32> {
        match self {
            Self::Binomial => own.checked_ilog2().map(|highest| own ^ 1 << highest),
            Self::Binary => own.checked_sub(1).map(|above| above / 2),
        }
    }

    /// Number of children of `own` in a tree of `ranks` ranks.
    pub(crate) fn fan_out(self, own: u32, ranks: u32) -> u32 {
        match self {
            Self::Binomial => {
                let above = ranks.saturating_sub(1).saturating_sub(own);
                let rounds = above.checked_ilog2().map_or(0, |last| last + 1);
                rounds.saturating_sub(first_round(own))
            }
            Self::Binary => match u64::from(ranks).saturating_sub(2 * u64::from(own) + 1) {
                0 => 0,
                1 => 1,
                _ => 2,
            },
        }
    }

    /// Child `number` of `own`.
    #[inline]
    pub(crate) const fn child(self, own: u32, number: u32) -> u32 {
        match self {
            Self::Binomial => own.wrapping_add(1u32.wrapping_shl(first_round(own) + number)),
            Self::Binary => own.wrapping_mul(2).wrapping_add(1 + number),
        }
    }

    /// Parent and children of a rank.
    fn around(self, at: &Place) -> (Option<u32>, impl Iterator<Item = u32> + use<>) {
        let own = at.virtual_rank();
        let children = (0..self.fan_out(own, at.ranks)).map(move |number| self.child(own, number));
        (self.parent(own), children)
    }
}

/// Broadcast along a tree.
pub(super) fn broadcast<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    tree: TreeKind,
) -> Result<(), S::Error> {
    let (parent, children) = tree.around(at);
    let received = parent.map(|parent| out.receive(at.swapped(parent), at.size)).transpose()?;
    received.map_or(Ok(()), |receive| out.start(receive))?;
    let mut last = received;
    for child in children {
        let send = out.send(at.swapped(child), at.size)?;
        out.follows(send, received)?;
        out.end(send)?;
        last = None;
    }
    last.map_or(Ok(()), |receive| out.end(receive))
}

/// Binomial reduction: the reversed broadcast. The send to the parent is emitted first and waits
/// for every receive.
pub(super) fn binomial_reduce<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
) -> Result<(), S::Error> {
    let (parent, children) = TreeKind::Binomial.around(at);
    let sent = parent.map(|parent| out.send(at.swapped(parent), at.size)).transpose()?;
    let mut first = sent;
    for child in children {
        let receive = out.receive(at.swapped(child), at.size)?;
        out.start(receive)?;
        match sent {
            Some(send) => out.requires(send, receive)?,
            None => out.end(receive)?,
        }
        first = None;
    }
    first.map_or(Ok(()), |send| out.start(send))?;
    sent.map_or(Ok(()), |send| out.end(send))
}
