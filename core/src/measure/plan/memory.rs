//! Memory of a plan, and the errors of creating one.

use core::fmt;

use crate::measure::{
    AssessMemory, AssessRequirements, QUANTITIES, Quantity, RowHeader, StoreRequirements,
};
use crate::units::Picos;

/// Late replies after which receives are no longer timed at a row.
const MOST_LATE: u8 = 24;
/// Consecutive losses after which a row is given up.
const LOSSES_IN_A_ROW: u8 = 24;

/// Flag of a row: a round was completed.
const ARRIVED: u8 = 1 << 7;
/// Flag of a row: no further rounds are run.
const GIVEN_UP: u8 = 1 << 6;

/// Plan of one row (size) of the store.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::measure) struct RowPlan {
    /// Bits of the quantities that need samples, and the flags [`ARRIVED`] and [`GIVEN_UP`].
    wanted: u8,
    /// True if overheads are measured here, not only the gap.
    pub(in crate::measure) full: bool,
    /// True if the row is dropped for lack of time or messages.
    pub(in crate::measure) parked: bool,
    /// Samples that each cell gets before the analysis decides.
    pub(in crate::measure) base: u8,
    /// Messages in a burst: fewer if one would occupy the link for long, more if large ones are
    /// cheap.
    pub(in crate::measure) messages: u32,
    /// Messages in a paced burst.
    pub(in crate::measure) paced_messages: u32,
    /// Number of late replies; each lengthens the wait before a timed receive by half a round trip.
    pub(in crate::measure) late: u8,
    /// True if the change at this size cannot be located more precisely.
    pub(in crate::measure) abandoned: bool,
    /// Bursts lost since the last halving, while none has arrived.
    pub(in crate::measure) lost_bursts: u8,
    /// Rounds lost since the last sample.
    pub(in crate::measure) losses: u8,
    /// Round trip measured by the pilot; zero before.
    pub(in crate::measure) round_trip: Picos,
    /// Delay of paced rounds, `d_G`; zero until it is chosen.
    pub(in crate::measure) pace: Picos,
}

impl RowPlan {
    /// True if `quantity` is measured at this row at all.
    pub(in crate::measure) const fn takes(&self, quantity: Quantity) -> bool {
        match quantity {
            Quantity::RoundTrip | Quantity::Gap => true,
            Quantity::Paced => self.full,
            Quantity::Receive => self.full && self.late < MOST_LATE,
        }
    }

    /// True if rounds of `quantity` can be run now.
    pub(in crate::measure) fn takes_rounds(&self, quantity: Quantity) -> bool {
        let needs_delay = matches!(quantity, Quantity::Paced | Quantity::Receive);
        let ready = self.full && self.pace > Picos::ZERO;
        let takes = self.takes(quantity);
        takes && !self.parked && !self.is_given_up() && (ready || !needs_delay)
    }

    /// True if the row is given up, since too many rounds were lost.
    pub(in crate::measure) const fn is_given_up(&self) -> bool {
        self.wanted & GIVEN_UP != 0 || self.losses >= LOSSES_IN_A_ROW
    }

    /// Stops further rounds of this row.
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

    /// Records a completed round, which may be one of the warm-up.
    pub(in crate::measure) const fn note_arrival(&mut self) {
        self.losses = 0;
        self.wanted |= ARRIVED;
    }

    pub(in crate::measure) const fn has_arrived(&self) -> bool {
        self.wanted & ARRIVED != 0
    }
}

/// Queue entry: a row and the quantity to measure.
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

/// Memory that a plan requires.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PlanRequirements {
    /// Requirements of the sample store.
    pub store: StoreRequirements,
    /// Length of the slice of [`Slot`].
    pub order: usize,
    /// Requirements of the analysis.
    pub assess: AssessRequirements,
}

impl PlanRequirements {
    /// Requirements of `sizes` sizes, including those added by bisection, with up to `repetitions`
    /// values per quantity; `None` if either exceeds 65,535.
    #[must_use]
    pub fn new(sizes: usize, repetitions: usize) -> Option<Self> {
        Some(Self {
            store: StoreRequirements::new(sizes, repetitions)?,
            order: Self::order(sizes),
            assess: AssessRequirements::new(sizes),
        })
    }

    /// Length of the queue: one sweep through all cells, with round trips twice.
    pub(in crate::measure) const fn order(sizes: usize) -> usize {
        sizes.saturating_mul(QUANTITIES + 1)
    }
}

/// Memory of a plan; its initial contents are irrelevant.
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

/// Reasons why there is no plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PlanError {
    /// There are no sizes.
    NoSizes,
    /// A message of no bytes cannot be measured.
    EmptyMessage,
    /// A burst has at least two messages; this number was requested.
    TooFewMessages(u32),
    /// The memory is too small for this number of sizes, or its parts do not match.
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
