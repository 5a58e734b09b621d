//! What one rank knows of the root's clock, from one synchronisation to the
//! next.

use core::fmt;

use super::exchange::{Pinger, Series, SeriesError, SeriesOptions, measure_offset};
use super::parent::ParentClock;
use super::{ClockModel, DriftError, DriftEstimator, Offset, OffsetOptions};
use crate::units::{Picos, SignedPicos};

/// What has to hold of the clocks for an error to be a bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Assumptions {
    /// No two clocks move apart faster than this, in millionths.
    pub drift_ppm: u32,
    /// The momentary drift of two clocks differs from its mean between two
    /// offsets by at most this, in 10⁻⁹: temperature.
    pub wander_ppb: u32,
}

impl Default for Assumptions {
    /// 200 ppm, as two crystals of 100 ppm each may differ, and as
    /// [`OffsetOptions`](super::OffsetOptions) has it: a raw clock is not
    /// disciplined. 400 ppb: each of two crystals of -0.034 ppm/K² changes by
    /// half of that in 10 K around 28 °C.
    fn default() -> Self {
        Self { drift_ppm: 200, wander_ppb: 400 }
    }
}

impl Assumptions {
    /// The wander as a drift, in ps per second.
    pub(super) fn wander(&self) -> u64 {
        u64::from(self.wander_ppb).saturating_mul(1_000)
    }
}

/// How a new offset goes with what was known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Agreement {
    /// It is the first one.
    First,
    /// It lies where it was expected.
    Agrees,
    /// It lies outside by this: the clock was set in between, or the
    /// assumptions do not hold. What was known before was dropped.
    Contradicts(SignedPicos),
}

/// Why a rank was not synchronised over an edge.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SyncError<E> {
    /// There is no offset. What was known stays.
    Series(SeriesError<E>),
    /// There is no model of the clock.
    Drift(DriftError),
}

impl<E: fmt::Display> fmt::Display for SyncError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Series(error) => error.fmt(f),
            Self::Drift(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for SyncError<E> {}

/// Where a rank's model comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// Its own offsets.
    Own(DriftEstimator),
    /// A rank that reads the same clock.
    Shared(ParentClock),
}

/// The clock of one rank against the root's.
///
/// In every pass over the tree the child calls [`RankClock::synchronise`] or,
/// within a clock domain, [`RankClock::share`] with what its parent
/// [announces](RankClock::announce) when the step begins. Five passes over
/// [`LEAST_SPAN`](super::LEAST_SPAN) give a slope that is worth it (three are
/// the least that give any); a pass after what was measured gives
/// [`RankClock::since`].
#[derive(Clone, Copy, Debug)]
pub struct RankClock {
    source: Source,
    contradictions: u32,
}

impl Default for RankClock {
    /// Of which nothing is known.
    fn default() -> Self {
        Self { source: Source::Own(DriftEstimator::default()), contradictions: 0 }
    }
}

impl RankClock {
    /// The clock that all others follow.
    #[must_use]
    pub fn root() -> Self {
        Self { source: Source::Shared(ParentClock::root()), contradictions: 0 }
    }

    /// The last offset against the root's clock; none of that itself.
    #[must_use]
    pub const fn latest(&self) -> Option<Offset> {
        match &self.source {
            Source::Own(offsets) => offsets.last(),
            Source::Shared(parent) => parent.latest,
        }
    }

    /// Times that an offset contradicted what was known.
    #[must_use]
    pub const fn contradictions(&self) -> u32 {
        self.contradictions
    }

    /// The model from now on: the last offset with a growing error.
    ///
    /// # Errors
    ///
    /// [`DriftError::NoOffsets`] before the first pass,
    /// [`DriftError::Implausible`].
    pub fn model(&self, assumptions: &Assumptions) -> Result<ClockModel, DriftError> {
        match &self.source {
            Source::Own(offsets) => offsets.bounded(assumptions),
            Source::Shared(parent) => Ok(parent.model),
        }
    }

    /// What to tell a child.
    ///
    /// # Errors
    ///
    /// As [`RankClock::model`].
    pub fn announce(&self, assumptions: &Assumptions) -> Result<ParentClock, DriftError> {
        let (latest, contradictions) = (self.latest(), self.contradictions);
        Ok(ParentClock { model: self.model(assumptions)?, latest, contradictions })
    }

    /// The model of the time between the last pass of `before`, a copy taken
    /// then, and the last pass now, by interpolation.
    ///
    /// # Errors
    ///
    /// [`DriftError::NoOffsets`] where one of both has none,
    /// [`DriftError::Set`] where a clock was set in between,
    /// [`DriftError::Order`] where there was no pass since,
    /// [`DriftError::Implausible`].
    pub fn since(
        &self,
        before: &Self,
        assumptions: &Assumptions,
    ) -> Result<ClockModel, DriftError> {
        if self.contradictions != before.contradictions {
            return Err(DriftError::Set);
        }
        if let (Source::Shared(now), Source::Shared(then)) = (&self.source, &before.source)
            && now.latest.or(then.latest).is_none()
        {
            let error = now.model.error.max(then.model.error);
            return Ok(ClockModel { error, ..now.model });
        }
        let (Some(first), Some(second)) = (before.latest(), self.latest()) else {
            return Err(DriftError::NoOffsets);
        };
        Ok(ClockModel::between(&first, &second)?.wandering(assumptions))
    }

    /// Takes an offset of the own clock against that of a parent whose model
    /// is `parent`.
    ///
    /// # Errors
    ///
    /// [`DriftError::Order`] when it is not later than the one before; it
    /// does not count then.
    pub fn handle(
        &mut self,
        offset: &Offset,
        parent: &ClockModel,
        assumptions: &Assumptions,
    ) -> Result<Agreement, DriftError> {
        let offset = offset.against(parent);
        let expected = match self.model(assumptions) {
            Ok(model) => Some(model),
            Err(DriftError::NoOffsets) => None,
            // One of those before is wrong: nothing is known.
            Err(_) => Some(ClockModel::default()),
        };
        let mut offsets = match &self.source {
            Source::Own(offsets) => *offsets,
            Source::Shared(_) => DriftEstimator::default(),
        };
        offsets.push(&offset)?;
        self.source = Source::Own(offsets);
        let Some(expected) = expected else { return Ok(Agreement::First) };
        let beyond = expected.contradiction(&offset);
        if beyond.0 == 0 && offset.contradictions == 0 {
            return Ok(Agreement::Agrees);
        }
        self.contradictions = self.contradictions.saturating_add(1);
        let mut anew = DriftEstimator::default();
        anew.push(&offset)?;
        self.source = Source::Own(anew);
        Ok(Agreement::Contradicts(beyond))
    }

    /// One series of pings with `parent`, and what follows for this clock.
    ///
    /// # Errors
    ///
    /// [`SyncError`].
    pub fn synchronise<P: Pinger>(
        &mut self,
        parent: &ParentClock,
        pinger: &mut P,
        options: &SyncOptions,
        middles: &mut [SignedPicos],
    ) -> Result<(Series, Agreement), SyncError<P::Error>> {
        let series = measure_offset(pinger, &options.series, middles).map_err(SyncError::Series)?;
        let agreement = self.handle(&series.offset, &parent.model, &options.assumptions);
        Ok((series, agreement.map_err(SyncError::Drift)?))
    }

    /// Takes over the model of `parent`, which is said to share this clock,
    /// after a short series that has to allow an offset of zero; what it
    /// leaves open adds to the error, unless domains are
    /// [trusted](SyncOptions::trusts_domains). False where it does not, or where
    /// the series stayed too wide and domains are not trusted: the clock is one
    /// of its own then, to be synchronised like one.
    ///
    /// Assumes that clocks of one domain keep the same time: one that differs
    /// by no more than a check can see, but drifts, is not found before it
    /// has drifted that far.
    ///
    /// # Errors
    ///
    /// [`SyncError::Series`].
    pub fn share<P: Pinger>(
        &mut self,
        parent: &ParentClock,
        pinger: &mut P,
        options: &SyncOptions,
    ) -> Result<bool, SyncError<P::Error>> {
        let series = measure_offset(pinger, &options.check, &mut []).map_err(SyncError::Series)?;
        let offset = series.offset;
        let is_wide = offset.half_width > options.check.offset.widest;
        if !offset.allows_zero() || is_wide && !options.trusts_domains {
            return Ok(false);
        }
        let open = offset.value.0.unsigned_abs().saturating_add(offset.half_width.0);
        let open = if options.trusts_domains { 0 } else { open };
        self.source = Source::Shared(parent.within(Picos(open)));
        self.contradictions = parent.contradictions;
        Ok(true)
    }
}

/// How a rank is synchronised.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SyncOptions {
    /// Over the edges between domains.
    pub series: SeriesOptions,
    /// Within a domain.
    pub check: SeriesOptions,
    /// What has to hold. `drift_ppm` is that of both series, too, as
    /// [`SyncOptions::expecting`] has it.
    pub assumptions: Assumptions,
    /// Whether ranks of a domain read one clock for certain, as those of one
    /// kernel do: then a check that allows an offset of zero adds nothing to
    /// the error, however wide it stayed.
    pub trusts_domains: bool,
}

impl SyncOptions {
    /// For clocks of this resolution and these assumptions, with the quickest
    /// round trips known between domains and within one: see
    /// [`OffsetOptions::expecting`].
    #[must_use]
    pub fn expecting(
        between: Picos,
        within: Picos,
        resolution: Picos,
        assumptions: Assumptions,
    ) -> Self {
        let mut options = Self { assumptions, ..Self::default() };
        let drift_ppm = assumptions.drift_ppm;
        let expecting = |round_trip| OffsetOptions::expecting(round_trip, resolution);
        options.series.offset = OffsetOptions { drift_ppm, ..expecting(between) };
        let patience = options.check.offset.patience;
        options.check.offset = OffsetOptions { drift_ppm, patience, ..expecting(within) };
        options
    }
}

impl Default for SyncOptions {
    /// The defaults of each; five pings that narrow nothing in a check.
    fn default() -> Self {
        let series = SeriesOptions::default();
        let check = OffsetOptions { patience: 5, ..series.offset };
        let assumptions = Assumptions::default();
        Self { series, check: SeriesOptions::of(check), assumptions, trusts_domains: false }
    }
}
