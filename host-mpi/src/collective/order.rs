//! Orders of the leader to all ranks, and their encoding.

use loggap_core::units::Picos;

use super::scheme::{Batch, Start};

/// An order to all ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    /// End the series.
    End,
    /// End the series and the run.
    Halt,
    /// End everything: the leader has given up, and reports why.
    GiveUp,
    /// Synchronise the clocks once more.
    Synchronise,
    /// Carry out repetitions.
    Batch {
        /// Number of repetitions, and how they start.
        batch: Batch,
        /// First start by the clock, or else the time of the announcement.
        at: Picos,
    },
}

/// Length of an encoded order in words.
pub(super) const WORDS: usize = 5;

impl Order {
    pub(super) fn to_words(self) -> [u64; WORDS] {
        let Self::Batch { batch: Batch { start, count }, at } = self else {
            let command = match self {
                Self::End => 0,
                Self::Halt => 1,
                Self::GiveUp => 2,
                Self::Synchronise | Self::Batch { .. } => 3,
            };
            return [command, 0, 0, 0, 0];
        };
        let (command, lead, window) = match start {
            Start::Clock { lead, window } => (4, lead, window),
            Start::Barrier => (5, Picos::ZERO, Picos::ZERO),
            Start::Announced => (6, Picos::ZERO, Picos::ZERO),
            Start::BackToBack { rotate: false } => (7, Picos::ZERO, Picos::ZERO),
            Start::BackToBack { rotate: true } => (8, Picos::ZERO, Picos::ZERO),
        };
        [command, at.0, lead.0, window.0, count.into()]
    }

    /// Decodes the result of [`Order::to_words`]; `None` for anything else.
    pub(super) fn from_words([command, at, lead, window, count]: [u64; WORDS]) -> Option<Self> {
        let start = match command {
            0 => return Some(Self::End),
            1 => return Some(Self::Halt),
            2 => return Some(Self::GiveUp),
            3 => return Some(Self::Synchronise),
            4 => Start::Clock { lead: Picos(lead), window: Picos(window) },
            5 => Start::Barrier,
            6 => Start::Announced,
            7 => Start::BackToBack { rotate: false },
            8 => Start::BackToBack { rotate: true },
            _ => return None,
        };
        let count = u32::try_from(count).ok()?;
        Some(Self::Batch { batch: Batch { start, count }, at: Picos(at) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_travel_as_words() {
        let batch = |start| Order::Batch { batch: Batch { start, count: 7 }, at: Picos(9) };
        let orders = [
            Order::End,
            Order::Halt,
            Order::GiveUp,
            Order::Synchronise,
            batch(Start::Clock { lead: Picos(1), window: Picos(2) }),
            batch(Start::Barrier),
            batch(Start::Announced),
            batch(Start::BackToBack { rotate: false }),
            batch(Start::BackToBack { rotate: true }),
        ];
        for order in orders {
            assert_eq!(Order::from_words(order.to_words()), Some(order));
        }
    }

    #[test]
    fn what_is_no_order_is_none() {
        assert_eq!(Order::from_words([9, 0, 0, 0, 1]), None);
        assert_eq!(Order::from_words([5, 0, 0, 0, 1 << 32]), None);
    }
}
