//! Schedules that are computed instead of stored.

use core::ops::Range;

use crate::units::Picos;

/// Operations of one rank that become ready together. Their order is that
/// of every release: sends, then receives, then calculations.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Release {
    /// Sends, by their numbers on the rank.
    pub sends: Range<u32>,
    /// How many further receives; they become ready in the order of their
    /// numbers.
    pub receives: u32,
    /// Calculations, by their numbers on the rank.
    pub calcs: Range<u32>,
}

impl Release {
    /// Nothing becomes ready.
    pub const NOTHING: Self = Self { sends: 0..0, receives: 0, calcs: 0..0 };

    /// One send.
    #[must_use]
    pub const fn send(number: u32) -> Self {
        Self::sends(number, number.saturating_add(1))
    }

    /// The sends from `first` to before `end`.
    #[must_use]
    pub const fn sends(first: u32, end: u32) -> Self {
        Self { sends: first..end, ..Self::NOTHING }
    }

    /// The next `count` receives.
    #[must_use]
    pub const fn receives(count: u32) -> Self {
        Self { receives: count, ..Self::NOTHING }
    }

    /// One calculation.
    #[must_use]
    pub const fn calc(number: u32) -> Self {
        Self::calcs(number, number.saturating_add(1))
    }

    /// The calculations from `first` to before `end`.
    #[must_use]
    pub const fn calcs(first: u32, end: u32) -> Self {
        Self { calcs: first..end, ..Self::NOTHING }
    }

    /// These, and `count` further receives.
    #[must_use]
    pub const fn and_receives(self, count: u32) -> Self {
        Self { receives: count, ..self }
    }
}

/// What a send sends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Transfer {
    /// The rank that receives.
    pub to: u32,
    /// The receive that the message is meant for, by its number on that
    /// rank.
    pub receive: u32,
    /// Bytes.
    pub size: u64,
}

/// A schedule that is computed: what each rank does next.
///
/// Sends, receives and calculations of a rank are each numbered from 0.
/// Operations use the first processor and interface; every message is eager.
pub trait Program {
    /// What a rank has to remember.
    type State: Copy + Default;

    /// Ranks.
    fn ranks(&self) -> u32;

    /// Bytes of the shortest and of the longest message.
    fn sizes(&self) -> [u64; 2];

    /// Messages and groups of released operations that can wait at the same
    /// time, at most.
    fn waiting(&self) -> u64;

    /// Messages of a whole run: how far a run is can be told by it.
    fn messages(&self) -> u64;

    /// Ranks that have something to do at the same time, about, for most of the
    /// run: how much there is to share out among threads.
    fn busy(&self) -> u32 {
        self.ranks()
    }

    /// Whether `rank` does the same whichever of several messages it handles
    /// first, as long as they are of one size.
    fn interchangeable(&self, rank: u32) -> bool;

    /// What waits for nothing.
    fn start(&self, rank: u32, state: &mut Self::State) -> Release;

    /// What a send releases.
    #[inline]
    fn sent(&self, _rank: u32, _state: &mut Self::State, _send: u32) -> Release {
        Release::NOTHING
    }

    /// What a receive releases once it has its message.
    fn received(&self, rank: u32, state: &mut Self::State, receive: u32) -> Release;

    /// What a calculation releases.
    fn calculated(&self, _rank: u32, _state: &mut Self::State, _calc: u32) -> Release {
        Release::NOTHING
    }

    /// What a send sends.
    fn transfer(&self, rank: u32, send: u32) -> Transfer;

    /// The receive that the next message meant for `receive` meets. It can
    /// be another one where a rank may send two messages that fit both in
    /// any order.
    #[inline]
    fn met(&self, _rank: u32, _state: &mut Self::State, receive: u32) -> u32 {
        receive
    }

    /// Bytes of the message that is meant for a receive.
    fn expected(&self, rank: u32, receive: u32) -> u64;

    /// How long a calculation takes.
    fn calc(&self, _rank: u32, _calc: u32) -> Picos {
        Picos::ZERO
    }
}
