//! Trait of schedules that are computed instead of stored.

use core::ops::Range;

use crate::units::Picos;

/// Operations of one rank that become ready together, in the order of every release: sends, then
/// receives, then calculations.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Release {
    /// Sends, by their numbers on the rank.
    pub sends: Range<u32>,
    /// Number of further receives; they become ready in the order of their numbers.
    pub receives: u32,
    /// Calculations, by their numbers on the rank.
    pub calcs: Range<u32>,
}

impl Release {
    /// Empty release.
    pub const NOTHING: Self = Self { sends: 0..0, receives: 0, calcs: 0..0 };

    /// Release of one send.
    #[must_use]
    pub const fn send(number: u32) -> Self {
        Self::sends(number, number.saturating_add(1))
    }

    /// Release of the sends `first..end`.
    #[must_use]
    pub const fn sends(first: u32, end: u32) -> Self {
        Self { sends: first..end, ..Self::NOTHING }
    }

    /// Release of the next `count` receives.
    #[must_use]
    pub const fn receives(count: u32) -> Self {
        Self { receives: count, ..Self::NOTHING }
    }

    /// Release of one calculation.
    #[must_use]
    pub const fn calc(number: u32) -> Self {
        Self::calcs(number, number.saturating_add(1))
    }

    /// Release of the calculations `first..end`.
    #[must_use]
    pub const fn calcs(first: u32, end: u32) -> Self {
        Self { calcs: first..end, ..Self::NOTHING }
    }

    /// This release with `count` receives.
    #[must_use]
    pub const fn and_receives(self, count: u32) -> Self {
        Self { receives: count, ..self }
    }
}

/// Destination and size of a send's message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Transfer {
    /// Rank that receives.
    pub to: u32,
    /// Number of the receive on that rank.
    pub receive: u32,
    /// Size, bytes.
    pub size: u64,
}

/// Size of a program.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Extent {
    /// Number of ranks.
    pub ranks: u32,
    /// Size of the shortest and of the longest message, bytes.
    pub sizes: [u64; 2],
    /// Largest number of messages and groups of released operations that wait at the same time.
    pub waiting: u64,
    /// Number of messages of a complete run, for progress reports.
    pub messages: u64,
    /// Typical number of ranks with events at the same time: the parallelism that threads can use.
    pub busy: u32,
    /// True if messages of equal size to a rank can be handled in any order with the same result.
    pub interchangeable: bool,
}

/// A computed schedule: the operations of each rank, released one after the other.
///
/// Sends, receives and calculations of a rank are each numbered from 0. Operations use the first
/// processor and interface; every message is eager.
pub trait Program {
    /// State of a rank in the program.
    type State: Copy + Default;

    /// Size of the program.
    fn extent(&self) -> Extent;

    /// Operations without dependencies.
    fn start(&self, rank: u32, state: &mut Self::State) -> Release;

    /// Operations that a send releases.
    #[inline]
    fn sent(&self, _rank: u32, _state: &mut Self::State, _send: u32) -> Release {
        Release::NOTHING
    }

    /// Operations that a matched receive releases.
    #[inline]
    fn received(&self, _rank: u32, _state: &mut Self::State, _receive: u32) -> Release {
        Release::NOTHING
    }

    /// Operations that a calculation releases.
    fn calculated(&self, _rank: u32, _state: &mut Self::State, _calc: u32) -> Release {
        Release::NOTHING
    }

    /// Destination and size of a send's message.
    fn transfer(&self, rank: u32, send: u32) -> Transfer;

    /// Receive that the next message for `receive` matches. It differs from `receive` if a rank may
    /// send two messages that fit both in either order.
    #[inline]
    fn met(&self, _rank: u32, _state: &mut Self::State, receive: u32) -> u32 {
        receive
    }

    /// Size of the message that a receive is meant for, bytes.
    fn expected(&self, rank: u32, receive: u32) -> u64;

    /// Duration of a calculation.
    fn calc(&self, _rank: u32, _calc: u32) -> Picos {
        Picos::ZERO
    }
}
