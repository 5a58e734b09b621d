//! Closed forms of collective operations under `LogGOPS`, as printed in the talk on `LogGOPSim`
//! (LSAP '10), and the cases in which a simulation gives another time.
//!
//! The talk prints s where the model charges only the bytes after the first; with s − 1, as used
//! here, the forms are exact. P is the number of ranks, `w = s − 1`.

use core::fmt;

use super::LogGops;
use crate::units::{Bytes, Overflow, Picos};

/// A collective operation with a closed form.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ClosedForm {
    /// Linear scatter:
    /// `2o + L + max{(P−2)o + (P−1)wO, (P−2)g + (P−1)wG}`.
    Scatter,
    /// Linear gather, by the same form.
    Gather,
    /// Binomial tree: `(2o + L + max{wO, wG})·⌈log₂ P⌉`.
    BinomialTree,
    /// Dissemination: `(δ + 2o + L + max{wO, wG})·⌈log₂ P⌉` with
    /// `δ = max{0, wO − L}`.
    Dissemination,
}

/// Reason why a closed form differs, or may differ, from the simulation.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Caveat {
    /// s > S: the sender waits for its receiver, which the form ignores.
    Rendezvous,
    /// The form takes the larger of two sums, whereas the sender spaces each message by the larger
    /// of o + wO and g + wG. They differ if the processor is slower in one term and the network in
    /// the other.
    MixedMaximum,
    /// Every message holds the receiving processor for wG, which the form charges only to the
    /// network.
    ReceiverHeld,
    /// P is no power of two: the last round reaches only some ranks, by another path than the
    /// longest.
    PartialRound,
    /// The gap between two messages of a rank exceeds the duration of a round.
    GapLimited,
}

impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rendezvous => "above S the sender waits for its receiver; the form does not",
            Self::MixedMaximum => {
                "every message waits for the slower of processor and network; the form takes the \
                 slower of the two sums"
            }
            Self::ReceiverHeld => {
                "the receiving processor is held for (s-1)G of every message; in the form only \
                 the network is (compare with --receive overlap)"
            }
            Self::PartialRound => {
                "P is no power of two: the longest path has fewer messages than the form has rounds"
            }
            Self::GapLimited => "the gap g + (s-1)G is longer than a round; the form leaves it out",
        })
    }
}

/// The terms of the forms for one size.
struct Terms {
    /// o + wO.
    processor: Picos,
    /// g + wG.
    network: Picos,
    /// wO.
    processor_bytes: Picos,
    /// wG.
    network_bytes: Picos,
    /// 2o + L.
    ends_and_wire: Picos,
}

impl Terms {
    fn new(set: &LogGops, size: Bytes) -> Result<Self, Overflow> {
        let rest = size.after_first();
        let processor_bytes = set.overhead_per_byte.times(rest)?;
        let network_bytes = set.gap_per_byte.times(rest)?;
        Ok(Self {
            processor: set.overhead.plus(processor_bytes)?,
            network: set.gap.plus(network_bytes)?,
            processor_bytes,
            network_bytes,
            ends_and_wire: set.overhead.times(2)?.plus(set.latency)?,
        })
    }

    /// max{wO, wG}.
    fn slower_bytes(&self) -> Picos {
        self.processor_bytes.max(self.network_bytes)
    }

    /// 2o + L + max{wO, wG}: one message, alone.
    fn message(&self) -> Result<Picos, Overflow> {
        self.ends_and_wire.plus(self.slower_bytes())
    }

    /// Duration of one round of the dissemination.
    fn round(&self, set: &LogGops) -> Result<Picos, Overflow> {
        self.message()?.plus(self.processor_bytes.since(set.latency))
    }

    /// Scatter and gather as printed.
    fn linear(&self, ranks: u32) -> Result<Picos, Overflow> {
        let between = u64::from(ranks.saturating_sub(2));
        let by_processor = self.processor.times(between)?.plus(self.processor_bytes)?;
        let by_network = self.network.times(between)?.plus(self.network_bytes)?;
        self.ends_and_wire.plus(by_processor.max(by_network))
    }

    /// Duration of one message plus one spacing for each further one.
    fn spaced(&self, ranks: u32, spacing: Picos) -> Result<Picos, Overflow> {
        spacing.times(u64::from(ranks.saturating_sub(2)))?.plus(self.message()?)
    }
}

/// ⌈log₂ P⌉.
const fn rounds(ranks: u32) -> u64 {
    (u32::BITS - ranks.saturating_sub(1).leading_zeros()) as u64
}

impl ClosedForm {
    /// All closed forms.
    pub const ALL: [Self; 4] =
        [Self::Scatter, Self::Gather, Self::BinomialTree, Self::Dissemination];

    /// Value of the form for `ranks` ranks and messages of `size` bytes; zero for a single rank.
    ///
    /// # Errors
    ///
    /// [`Overflow`] past 2⁶⁴ ps.
    pub fn time(self, set: &LogGops, ranks: u32, size: Bytes) -> Result<Picos, Overflow> {
        if ranks < 2 {
            return Ok(Picos::ZERO);
        }
        let terms = Terms::new(set, size)?;
        match self {
            Self::Scatter | Self::Gather => terms.linear(ranks),
            Self::BinomialTree => terms.message()?.times(rounds(ranks)),
            Self::Dissemination => terms.round(set)?.times(rounds(ranks)),
        }
    }

    /// Reason why the simulation with the default rules may give another time than the form; `None`
    /// if both give the same.
    ///
    /// # Errors
    ///
    /// [`Overflow`] past 2⁶⁴ ps.
    pub fn caveat(
        self,
        set: &LogGops,
        ranks: u32,
        size: Bytes,
    ) -> Result<Option<Caveat>, Overflow> {
        if ranks < 2 {
            return Ok(None);
        }
        let terms = Terms::new(set, size)?;
        let spacing = terms.processor.max(terms.network);
        let held = set.overhead.plus(terms.slower_bytes())?.max(terms.network);
        let form = self.time(set, ranks, size)?;
        let rendezvous = size > set.eager_limit;
        let caveat = match self {
            Self::Scatter if terms.spaced(ranks, spacing)? != form => Some(Caveat::MixedMaximum),
            Self::Gather if terms.spaced(ranks, held)? != form => {
                let mixed = held == spacing;
                Some(if mixed { Caveat::MixedMaximum } else { Caveat::ReceiverHeld })
            }
            Self::BinomialTree if spacing > terms.message()? => Some(Caveat::GapLimited),
            Self::BinomialTree if !ranks.is_power_of_two() => Some(Caveat::PartialRound),
            Self::Dissemination if terms.network > terms.round(set)? => Some(Caveat::GapLimited),
            _ => None,
        };
        Ok(caveat.or_else(|| rendezvous.then_some(Caveat::Rendezvous)))
    }
}

impl fmt::Display for ClosedForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Scatter => "scatter",
            Self::Gather => "gather",
            Self::BinomialTree => "binomial tree",
            Self::Dissemination => "dissemination",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::PerByte;

    /// The defaults of `LogGOPSim`, in ns.
    const DEFAULT: LogGops = LogGops {
        latency: Picos(2_500_000),
        overhead: Picos(1_500_000),
        gap: Picos(1_000_000),
        gap_per_byte: PerByte(6_000 << 16),
        overhead_per_byte: PerByte(0),
        eager_limit: Bytes(65_535),
    };

    #[test]
    fn the_mixed_cases_have_the_known_values() -> Result<(), Overflow> {
        let size = Bytes(51);
        assert_eq!(ClosedForm::Gather.time(&DEFAULT, 8, size)?, Picos(14_500_000));
        assert_eq!(ClosedForm::Gather.caveat(&DEFAULT, 8, size)?, Some(Caveat::ReceiverHeld));
        let mixed = Some(Caveat::MixedMaximum);
        assert_eq!(ClosedForm::Scatter.caveat(&DEFAULT, 8, size)?, mixed);
        let large = ClosedForm::Gather.time(&DEFAULT, 8, Bytes(1_000))?;
        assert_eq!(large, Picos(53_458_000));
        Ok(())
    }

    #[test]
    fn more_than_half_of_all_ranks_take_the_most_rounds() {
        assert_eq!([2, 3, 4, 1 << 31, (1 << 31) + 1, u32::MAX].map(rounds), [1, 2, 2, 31, 32, 32]);
    }

    #[test]
    fn one_rank_alone_needs_no_time() {
        for form in ClosedForm::ALL {
            assert_eq!(form.time(&DEFAULT, 1, Bytes(8)), Ok(Picos::ZERO));
            assert_eq!(form.caveat(&DEFAULT, 1, Bytes(8)), Ok(None));
        }
    }

    #[test]
    fn times_past_the_end_are_overflow() {
        let slow = LogGops { gap_per_byte: PerByte(u64::MAX), ..DEFAULT };
        for form in ClosedForm::ALL {
            assert_eq!(form.time(&slow, 9, Bytes(1 << 40)), Err(Overflow));
        }
    }
}
