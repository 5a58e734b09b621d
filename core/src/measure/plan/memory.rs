//! The memory that a plan works on, and why there may be no plan.

use core::fmt;

use crate::measure::{
    AssessMemory, AssessRequirements, QUANTITIES, Quantity, RowHeader, StoreRequirements,
};
use crate::units::Picos;

/// Late replies after which receiving is not timed at a row any more.
const MOST_LATE: u8 = 24;
/// Losses in a row after which a row is given up.
const LOSSES_IN_A_ROW: u8 = 24;

/// Bit of a row of which a round has come to its end.
const ARRIVED: u8 = 1 << 7;
/// Bit of a row that runs no further rounds.
const GIVEN_UP: u8 = 1 << 6;

/// What a plan intends for one row of the store.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::measure) struct RowPlan {
    /// Quantities that want samples, one bit each, and [`ARRIVED`].
    wanted: u8,
    /// Whether overheads are measured here, not only the gap.
    pub(in crate::measure) full: bool,
    /// Left out because time or messages are short.
    pub(in crate::measure) parked: bool,
    /// Samples that each cell gets before the analysis decides.
    pub(in crate::measure) base: u8,
    /// Messages in a burst: fewer where one would hold the link for long,
    /// more where large ones are cheap.
    pub(in crate::measure) messages: u32,
    /// Messages in a paced burst.
    pub(in crate::measure) paced_messages: u32,
    /// A reply was late so often that the wait before a timed receive is
    /// lengthened by this many halves.
    pub(in crate::measure) late: u8,
    /// Whether a change at this size is as exact as it can be.
    pub(in crate::measure) abandoned: bool,
    /// Bursts lost since the latest halving, while none has arrived.
    pub(in crate::measure) lost_bursts: u8,
    /// Rounds lost since the last sample.
    pub(in crate::measure) losses: u8,
    /// The round trip as far as the pilot knows it; zero before.
    pub(in crate::measure) round_trip: Picos,
    /// Delay of the paced rounds, `d_G`; zero before it was chosen.
    pub(in crate::measure) pace: Picos,
}

impl RowPlan {
    /// Whether `quantity` is measured at this row at all.
    pub(in crate::measure) const fn takes(&self, quantity: Quantity) -> bool {
        match quantity {
            Quantity::RoundTrip | Quantity::Gap => true,
            Quantity::Paced => self.full,
            Quantity::Receive => self.full && self.late < MOST_LATE,
        }
    }

    /// Whether rounds of `quantity` may be run now.
    pub(in crate::measure) fn takes_rounds(&self, quantity: Quantity) -> bool {
        let needs_delay = matches!(quantity, Quantity::Paced | Quantity::Receive);
        let ready = self.full && self.pace > Picos::ZERO;
        let takes = self.takes(quantity);
        takes && !self.parked && !self.is_given_up() && (ready || !needs_delay)
    }

    /// Whether so many rounds were lost that no more are tried.
    pub(in crate::measure) const fn is_given_up(&self) -> bool {
        self.wanted & GIVEN_UP != 0 || self.losses >= LOSSES_IN_A_ROW
    }

    /// Runs no further rounds.
    pub(in crate::measure) const fn give_up(&mut self) {
        self.wanted |= GIVEN_UP;
    }

    pub(in crate::measure) const fn wants(&self, quantity: Quantity) -> bool {
        self.wanted & (1 << quantity as u8) != 0
    }

    pub(in crate::measure) const fn wants_any(&self) -> bool {
        self.wanted & !(ARRIVED | GIVEN_UP) != 0
    }

    pub(in crate::measure) const fn want(&mut self, quantity: Quantity) {
        if self.takes(quantity) {
            self.wanted |= 1 << quantity as u8;
        }
    }

    pub(in crate::measure) const fn want_nothing(&mut self) {
        self.wanted &= ARRIVED | GIVEN_UP;
    }

    /// A round of this size has come to its end, warming up included.
    pub(in crate::measure) const fn note_arrival(&mut self) {
        self.losses = 0;
        self.wanted |= ARRIVED;
    }

    pub(in crate::measure) const fn has_arrived(&self) -> bool {
        self.wanted & ARRIVED != 0
    }
}

/// One experiment to come: a row and what to measure there.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub(in crate::measure) row: u16,
    pub(in crate::measure) quantity: Quantity,
}

impl Default for Slot {
    fn default() -> Self {
        Self { row: 0, quantity: Quantity::RoundTrip }
    }
}

/// How much memory a plan needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PlanRequirements {
    /// The sample store.
    pub store: StoreRequirements,
    /// Length of the slice of [`Slot`].
    pub order: usize,
    /// The analysis.
    pub assess: AssessRequirements,
}

impl PlanRequirements {
    /// What `sizes` sizes, those added by bisection included, with up to
    /// `repetitions` values per quantity need; `None` beyond 65,535 of either.
    #[must_use]
    pub fn new(sizes: usize, repetitions: usize) -> Option<Self> {
        Some(Self {
            store: StoreRequirements::new(sizes, repetitions)?,
            order: Self::order(sizes),
            assess: AssessRequirements::new(sizes),
        })
    }

    /// One sweep through all cells, with the round trips twice.
    pub(in crate::measure) const fn order(sizes: usize) -> usize {
        sizes.saturating_mul(QUANTITIES + 1)
    }
}

/// The memory of a plan; its contents do not matter.
#[derive(Debug)]
pub struct PlanMemory<'m> {
    /// See [`StoreRequirements::rows`].
    pub rows: &'m mut [RowHeader],
    /// See [`StoreRequirements::values`].
    pub values: &'m mut [u64],
    /// See `PlanRequirements::order`.
    pub order: &'m mut [Slot],
    /// See [`PlanRequirements::assess`].
    pub assess: AssessMemory<'m>,
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PlanError {
    /// No size was given.
    NoSizes,
    /// A message of no bytes cannot be measured.
    EmptyMessage,
    /// A burst needs at least two messages, this many were asked for.
    TooFewMessages(u32),
    /// The memory lent is too small for this many sizes, or its parts do not
    /// match.
    Memory(usize),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSizes => f.write_str("no message size to measure"),
            Self::EmptyMessage => f.write_str("messages of 0 B cannot be measured: begin with 1"),
            Self::TooFewMessages(messages) => {
                write!(f, "a burst of {messages} messages has no gap: use -n 2 or more")
            }
            Self::Memory(sizes) => write!(f, "too little memory lent for {sizes} sizes"),
        }
    }
}

impl core::error::Error for PlanError {}
