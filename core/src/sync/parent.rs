//! Message from a parent to its child in the tree.

use super::{ClockModel, Offset};
use crate::units::{Picos, SignedPicos};

/// State of a parent's clock, sent to a child when a step begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ParentClock {
    /// Parent's clock against the root's, from now on.
    pub model: ClockModel,
    /// Parent's most recent offset; `None` for the root.
    pub latest: Option<Offset>,
    /// Number of offsets that contradicted the earlier ones.
    pub contradictions: u32,
}

impl ParentClock {
    /// Length of the message, in words.
    pub const WORDS: usize = 14;

    /// State of the root's clock.
    #[must_use]
    pub fn root() -> Self {
        Self { model: ClockModel::reference(), latest: None, contradictions: 0 }
    }

    /// Encodes the state as a message.
    #[must_use]
    pub fn to_words(&self) -> [u64; Self::WORDS] {
        let ClockModel { at, offset, drift, error, until, drift_error, wander } = self.model;
        let latest = self.latest.unwrap_or(Offset::NONE);
        [
            at.0,
            offset.0.cast_unsigned(),
            drift.cast_unsigned(),
            error.0,
            until.0,
            drift_error,
            wander,
            self.latest.is_some().into(),
            latest.at.0,
            latest.value.0.cast_unsigned(),
            latest.half_width.0,
            latest.round_trip.0,
            u64::from(latest.contradictions) << 32 | u64::from(latest.pings),
            self.contradictions.into(),
        ]
    }

    /// Decodes a message; `None` if it does not come from [`ParentClock::to_words`].
    #[must_use]
    pub fn from_words(words: &[u64; Self::WORDS]) -> Option<Self> {
        let [at, offset, drift, error, until, drift_error, wander, rest @ ..] = *words;
        let [is_some, latest_at, value, half_width, round_trip, counts, contradictions] = rest;
        let offset = SignedPicos(offset.cast_signed());
        let model = ClockModel {
            at: Picos(at),
            offset,
            drift: drift.cast_signed(),
            error: Picos(error),
            until: Picos(until),
            drift_error,
            wander,
        };
        let latest = Offset {
            at: Picos(latest_at),
            value: SignedPicos(value.cast_signed()),
            half_width: Picos(half_width),
            round_trip: Picos(round_trip),
            pings: u32::try_from(counts & u64::from(u32::MAX)).ok()?,
            contradictions: u32::try_from(counts >> 32).ok()?,
        };
        let latest = match is_some {
            0 => None,
            1 => Some(latest),
            _ => return None,
        };
        Some(Self { model, latest, contradictions: u32::try_from(contradictions).ok()? })
    }

    /// State of a clock that differs from this one by at most `open`.
    pub(super) fn within(&self, open: Picos) -> Self {
        let more = |error: Picos| Picos(error.0.saturating_add(open.0));
        let model = ClockModel { error: more(self.model.error), ..self.model };
        let latest = self.latest.map(|last| Offset { half_width: more(last.half_width), ..last });
        Self { model, latest, ..*self }
    }
}
