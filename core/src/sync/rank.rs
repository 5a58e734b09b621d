//! One rank's model of the root's clock, kept from one synchronisation to the next.

use core::fmt;

use super::exchange::{Pinger, Series, SeriesError, SeriesOptions, measure_offset};
use super::parent::ParentClock;
use super::{ClockModel, DriftError, DriftEstimator, Offset, OffsetOptions};
use crate::units::{Picos, SignedPicos};

/// Assumptions about the clocks under which errors are bounds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Assumptions {
    /// Largest drift between two clocks, in millionths.
    pub drift_ppm: u32,
    /// Largest difference of the momentary drift of two clocks from its mean between two offsets,
    /// in 10⁻⁹; caused by temperature.
    pub wander_ppb: u32,
}

impl Default for Assumptions {
    /// 200 ppm: the difference of two crystals of 100 ppm each, as in
    /// [`OffsetOptions`](super::OffsetOptions); raw clocks are not disciplined. 400 ppb: each of
    /// two crystals of -0.034 ppm/K² changes by half of that within 10 K around 28 °C.
    fn default() -> Self {
        Self { drift_ppm: 200, wander_ppb: 400 }
    }
}

impl Assumptions {
    /// Wander as a drift, in ps per second.
    pub(super) fn wander(&self) -> u64 {
        u64::from(self.wander_ppb).saturating_mul(1_000)
    }
}

/// Comparison of a new offset with the range predicted by earlier ones.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Agreement {
    /// There was no earlier offset.
    First,
    /// The offset lies in the predicted range.
    Agrees,
    /// The offset lies outside by this: the clock was set in between, or the assumptions do not
    /// hold. The earlier offsets were dropped.
    Contradicts(SignedPicos),
}

/// Reasons why a rank was not synchronised over an edge.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SyncError<E> {
    /// There is no new offset; the earlier ones are kept.
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

/// Origin of a rank's model.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// Offsets measured by the rank itself.
    Own(DriftEstimator),
    /// Model of a rank that reads the same clock.
    Shared(ParentClock),
}

/// Clock of one rank against the root's.
///
/// In every pass over the tree a child calls [`RankClock::synchronise`] or, within a clock domain,
/// [`RankClock::share`], with the [announcement](RankClock::announce) that its parent sends when
/// the step begins. Five passes over [`LEAST_SPAN`](super::LEAST_SPAN) give a useful slope (at
/// least three are needed for any); a pass after the measurement allows [`RankClock::since`].
#[derive(Clone, Copy, Debug)]
pub struct RankClock {
    source: Source,
    contradictions: u32,
}

impl Default for RankClock {
    /// Clock without any offset.
    fn default() -> Self {
        Self { source: Source::Own(DriftEstimator::default()), contradictions: 0 }
    }
}

impl RankClock {
    /// Clock of the root.
    #[must_use]
    pub fn root() -> Self {
        Self { source: Source::Shared(ParentClock::root()), contradictions: 0 }
    }

    /// Most recent offset against the root's clock; `None` for the root.
    #[must_use]
    pub const fn latest(&self) -> Option<Offset> {
        match &self.source {
            Source::Own(offsets) => offsets.last(),
            Source::Shared(parent) => parent.latest,
        }
    }

    /// Number of offsets that contradicted the earlier ones.
    #[must_use]
    pub const fn contradictions(&self) -> u32 {
        self.contradictions
    }

    /// Model from now on: the most recent offset with a growing error.
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

    /// State to send to a child.
    ///
    /// # Errors
    ///
    /// As [`RankClock::model`].
    pub fn announce(&self, assumptions: &Assumptions) -> Result<ParentClock, DriftError> {
        let (latest, contradictions) = (self.latest(), self.contradictions);
        Ok(ParentClock { model: self.model(assumptions)?, latest, contradictions })
    }

    /// Model of the time between the last pass of `before`, a copy made at that time, and the most
    /// recent pass, by interpolation.
    ///
    /// # Errors
    ///
    /// [`DriftError::NoOffsets`] if one of the two has none, [`DriftError::Set`] if a clock was set
    /// in between, [`DriftError::Order`] if there was no pass since, [`DriftError::Implausible`].
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

    /// Adds an offset of the own clock against that of a parent whose model is `parent`.
    ///
    /// # Errors
    ///
    /// [`DriftError::Order`] if it is not later than the one before; it is then ignored.
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
            // One of the earlier offsets is wrong: the default model predicts nothing.
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

    /// Measures the offset to `parent` by a series of pings and updates this clock.
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

    /// Adopts the model of `parent`, which is expected to read the same clock, after a short series
    /// whose bounds have to contain an offset of zero. The largest offset that they allow adds to
    /// the error, unless domains are [trusted](SyncOptions::trusts_domains). Returns false if zero
    /// is outside the bounds, or if they stayed too wide and domains are not trusted; the clock
    /// then has to be synchronised like that of another domain.
    ///
    /// Assumes that clocks of one domain show the same time: a clock that drifts is not detected
    /// until it differs by more than the check resolves.
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

/// Options of a rank's synchronisation.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SyncOptions {
    /// Series over an edge between domains.
    pub series: SeriesOptions,
    /// Series over an edge within a domain.
    pub check: SeriesOptions,
    /// Assumptions about the clocks. [`SyncOptions::expecting`] sets `drift_ppm` of both series to
    /// the value here.
    pub assumptions: Assumptions,
    /// True if ranks of a domain are known to read one clock, such as that of one kernel. A check
    /// whose bounds contain zero then adds nothing to the error, however wide they are.
    pub trusts_domains: bool,
}

impl SyncOptions {
    /// Options for clocks of this resolution, with these assumptions and the fastest known round
    /// trips between domains and within one: see [`OffsetOptions::expecting`].
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
    /// Defaults of each part; a check stops after five pings without narrower bounds.
    fn default() -> Self {
        let series = SeriesOptions::default();
        let check = OffsetOptions { patience: 5, ..series.offset };
        let assumptions = Assumptions::default();
        Self { series, check: SeriesOptions::of(check), assumptions, trusts_domains: false }
    }
}
