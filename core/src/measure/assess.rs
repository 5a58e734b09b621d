//! From samples to a profile.
//!
//! A pure function of the set of samples and the options: neither the order
//! of the samples nor what measured them matters, so that a repeated
//! analysis of stored samples gives the same numbers.

use super::ranges::{self, Fitted, Span};
use super::warning::{AssessError, Warning};
use super::{Curve, Quantity, SampleStore};
use crate::fit::{Cell, Detector, Node, Point, Segment, Segmentation};
use crate::model::{Change, Estimate, Mark, Parameter, Profile, Range, SizeLine};
use crate::stats::Confidence;
use crate::units::{Bytes, Picos, SignedPicos};
use crate::wide::{hypotenuse, scaled, times};

/// What an assessment is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AssessOptions {
    /// Level of all intervals.
    pub confidence: Confidence,
    /// A number has converged when half its interval is at most this many
    /// millionths of it.
    pub relative_error_ppm: u32,
    /// Most protocol changes to look for; 0 takes all sizes as one protocol.
    pub max_changes: usize,
    /// How to look for them.
    pub detector: Detector,
}

impl Default for AssessOptions {
    /// 95 percent, 5 percent, up to 7 changes by the optimal partition.
    fn default() -> Self {
        Self {
            confidence: Confidence::P95,
            relative_error_ppm: 50_000,
            max_changes: 7,
            detector: Detector::optimal(),
        }
    }
}

/// The memory that an assessment needs, besides the samples.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AssessRequirements {
    /// Length of the slice of [`Point`].
    pub points: usize,
    /// Length of the slice of [`Node`].
    pub nodes: usize,
    /// Length of the slice of [`Cell`].
    pub cells: usize,
    /// Length of the slice of [`Segment`].
    pub segments: usize,
}

impl AssessRequirements {
    /// What up to `sizes` sizes and `max_changes` changes need.
    #[must_use]
    pub const fn new(sizes: usize, max_changes: usize) -> Self {
        let fit = Segmentation::requirements(sizes, max_changes);
        Self { points: sizes, nodes: fit.nodes, cells: fit.cells, segments: fit.segments }
    }
}

/// The memory of an assessment; its contents do not matter.
#[derive(Debug)]
pub struct AssessMemory<'m> {
    /// See [`AssessRequirements::points`].
    pub points: &'m mut [Point],
    /// See [`AssessRequirements::nodes`].
    pub nodes: &'m mut [Node],
    /// See [`AssessRequirements::cells`].
    pub cells: &'m mut [Cell],
    /// See [`AssessRequirements::segments`].
    pub segments: &'m mut [Segment],
}

/// Most warnings that an assessment lists.
pub const MAX_WARNINGS: usize = 24;

/// The parameters of a link, and what there is to say about them. At most
/// `N` protocols.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Assessment<const N: usize = 16> {
    /// The parameters.
    pub profile: Profile<N>,
    /// What its reader should know.
    pub warnings: heapless::Vec<Warning, MAX_WARNINGS>,
    /// Warnings beyond [`MAX_WARNINGS`].
    pub further_warnings: u32,
}

/// Scatter about a line above which the model is said not to fit well, in
/// millionths.
const NOTABLE_SCATTER_PPM: u32 = 150_000;

/// Takes what an assessment finds, as soon as it is found: the changes, then
/// the ranges with their lines, both by ascending size, and warnings in
/// between. So a device can keep it where and how it wants to.
pub trait Findings {
    /// A change between two ranges.
    fn change(&mut self, change: Change);
    /// A range from `first` to `last`: lines and latency that follow are its.
    fn range(&mut self, first: Bytes, last: Bytes);
    /// The line of one curve; a range has at least that of the gap.
    fn line(&mut self, curve: Curve, line: &SizeLine);
    /// The net latency, where it is known and positive.
    fn latency(&mut self, latency: &Estimate<SignedPicos>);
    /// What a reader should know.
    fn warning(&mut self, warning: Warning);
}

impl<const N: usize> Findings for Assessment<N> {
    fn change(&mut self, change: Change) {
        // At most as many as ranges.
        let _ = self.profile.changes.push(change);
    }

    fn range(&mut self, first: Bytes, last: Bytes) {
        // No more than the `N` that were asked for.
        let _ = self.profile.ranges.push(Range { first, last, ..Range::default() });
    }

    fn line(&mut self, curve: Curve, line: &SizeLine) {
        let Some(range) = self.profile.ranges.last_mut() else { return };
        match curve {
            Curve::Gap => range.gap = *line,
            Curve::HalfRtt => range.half_rtt = Some(*line),
            Curve::SendOverhead => range.send_overhead = Some(*line),
            Curve::RecvOverhead => range.recv_overhead = Some(*line),
        }
    }

    fn latency(&mut self, latency: &Estimate<SignedPicos>) {
        if let Some(range) = self.profile.ranges.last_mut() {
            range.latency = Some(*latency);
        }
    }

    fn warning(&mut self, warning: Warning) {
        if self.warnings.push(warning).is_err() {
            self.further_warnings = self.further_warnings.saturating_add(1);
        }
    }
}

impl<const N: usize> Assessment<N> {
    /// Assesses the link that `store`'s samples were measured on.
    ///
    /// # Errors
    ///
    /// As [`assess`].
    pub fn new(
        store: &SampleStore<'_>,
        options: &AssessOptions,
        memory: &mut AssessMemory<'_>,
    ) -> Result<Self, AssessError> {
        let mut assessment = Self::default();
        assess::<N>(store, options, memory, &mut assessment)?;
        Ok(assessment)
    }
}

/// Assesses the link that `store`'s samples were measured on, as at most `N`
/// protocols, and tells `findings`.
///
/// # Errors
///
/// [`AssessError`] when there is nothing to assess, when the samples show
/// something else than the link, or when too little memory was lent. What was
/// told until then is no assessment.
pub fn assess<const N: usize>(
    store: &SampleStore<'_>,
    options: &AssessOptions,
    memory: &mut AssessMemory<'_>,
    findings: &mut impl Findings,
) -> Result<(), AssessError> {
    refuse_delayed_acknowledgements(store)?;
    let mut changes = heapless::Vec::<_, N>::new();
    let ends = ranges::find(store, options, memory, &mut changes)?;
    for &change in &changes {
        findings.change(change);
        if change.low < change.high {
            findings.warning(Warning::ChangeNotExact(change.low, change.high));
        }
    }
    for span in ranges::spans(&changes, ends) {
        range(store, options, span, memory.points, findings)?;
    }
    check_delays(store, findings);
    Ok(())
}

fn range(
    store: &SampleStore<'_>,
    options: &AssessOptions,
    span: Span,
    points: &mut [Point],
    findings: &mut impl Findings,
) -> Result<(), AssessError> {
    let (first, last) = (Bytes(span.0.into()), Bytes(span.1.into()));
    findings.range(first, last);
    let mut latency = Latency::default();
    for &curve in &Curve::ALL {
        let points = store.points(curve, span, points);
        match Fitted::new(points, span, options) {
            Some(fitted) => {
                let mut line = fitted.size_line();
                check_line(&line, curve, (first, last), points.len(), findings);
                line.include_scatter(store.round_spread_ppm(curve, span));
                latency.add(curve, &line.at_one);
                findings.line(curve, &line);
            }
            None if curve == Curve::Gap => return Err(AssessError::NoSamples),
            None => {}
        }
    }
    match latency.estimate(options.relative_error_ppm) {
        Some(latency) if latency.value.0 > 0 => findings.latency(&latency),
        Some(_) => findings.warning(Warning::Overlap(first)),
        None => {}
    }
    Ok(())
}

fn check_line(
    line: &SizeLine,
    curve: Curve,
    (first, last): (Bytes, Bytes),
    sizes: usize,
    findings: &mut impl Findings,
) {
    let parameter = curve.parameter();
    if curve == Curve::Gap && sizes < 3 {
        findings.warning(Warning::FewSizes(first, sizes));
    }
    if curve == Curve::Gap && line.per_byte.high.0 < 0 {
        findings.warning(Warning::Falling(first));
    }
    if line.at(first).0 < 0 || line.at(last).0 < 0 {
        findings.warning(Warning::Negative(parameter, first));
    }
    if line.scatter_ppm > NOTABLE_SCATTER_PPM {
        findings.warning(Warning::Misfit(parameter, first, line.scatter_ppm));
    }
}

/// Says where the delay of the paced rounds was not the plain round trip.
fn check_delays(store: &SampleStore<'_>, findings: &mut impl Findings) {
    let (mut fallback, mut short) = (Sizes::default(), Sizes::default());
    for row in 0..store.len() {
        let size = Bytes(store.size(row).unwrap_or_default().into());
        match store.delay_exceeds_gap(row) {
            Some(false) => short.add(size),
            Some(true) if paced_by_fallback(store, row) => fallback.add(size),
            _ => {}
        }
    }
    if fallback.count > 0 {
        findings.warning(Warning::DelayFallback(fallback.first, fallback.count));
    }
    if short.count > 0 {
        findings.warning(Warning::DelayTooShort(short.first, short.count));
    }
}

/// Sizes of which only the first and the number are told.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    first: Bytes,
    count: usize,
}

impl Sizes {
    const fn add(&mut self, size: Bytes) {
        if self.count == 0 {
            self.first = size;
        }
        self.count += 1;
    }
}

impl Curve {
    /// The parameter that the curve's line gives.
    #[must_use]
    pub const fn parameter(self) -> Parameter {
        match self {
            Self::HalfRtt => Parameter::HalfRtt,
            Self::Gap => Parameter::Gap,
            Self::SendOverhead => Parameter::SendOverhead,
            Self::RecvOverhead => Parameter::RecvOverhead,
        }
    }
}

/// `L = PRTT(1,0,1)/2 − o_s − o_r`, possibly negative, from the lines' values
/// at size 1 as they come in. The intervals add in quadrature.
#[derive(Clone, Copy, Debug, Default)]
struct Latency {
    parts: u32,
    value: i64,
    /// The whole interval, not half of it.
    width: u64,
    misfit: bool,
}

impl Latency {
    fn add(&mut self, curve: Curve, at_one: &Estimate<SignedPicos>) {
        let value = at_one.value.0;
        self.value = match curve {
            Curve::Gap => return,
            Curve::HalfRtt => self.value.saturating_add(value),
            Curve::SendOverhead | Curve::RecvOverhead => self.value.saturating_sub(value),
        };
        self.width = hypotenuse(self.width, at_one.high.0.abs_diff(at_one.low.0));
        self.misfit |= matches!(at_one.mark, Mark::Misfit);
        self.parts += 1;
    }

    /// `None` where a part was not measured.
    fn estimate(&self, relative_error_ppm: u32) -> Option<Estimate<SignedPicos>> {
        let half = i64::try_from(self.width.div_ceil(2)).unwrap_or(i64::MAX);
        let size = u64::try_from(self.value).unwrap_or(0);
        let wanted = scaled(size, relative_error_ppm.into(), 1_000_000);
        let mark = match (half.unsigned_abs() <= wanted, self.misfit) {
            (true, _) => Mark::Converged,
            (false, true) => Mark::Misfit,
            (false, false) => Mark::BudgetSpent,
        };
        (self.parts == 3).then_some(Estimate {
            value: SignedPicos(self.value),
            low: SignedPicos(self.value.saturating_sub(half)),
            high: SignedPicos(self.value.saturating_add(half)),
            mark,
        })
    }
}

/// Whether the paced rounds of a row were spaced by `PRTT(2,0,s)`, which is
/// the round trip and a gap about as long.
fn paced_by_fallback(store: &SampleStore<'_>, row: usize) -> bool {
    let round_trip = store.middle(row, Quantity::RoundTrip);
    let delay = store.shortest_delay(row).unwrap_or_default().0;
    round_trip.is_some_and(|time| delay / 3 > time / 2)
}

/// Timers of delayed acknowledgements: 40 ms in Linux, 200 ms in BSD and
/// Windows, each with the lateness of a timer tick.
const ACKNOWLEDGEMENT_TIMERS: [(u64, u64); 2] =
    [(36_000_000_000, 49_000_000_000), (190_000_000_000, 221_000_000_000)];

/// How many times a stall exceeds what the link does otherwise.
const STALL_FACTOR: u64 = 4;

/// A burst that takes one acknowledgement timer longer than a round trip, on
/// a link whose round trip is a fraction of that even per message; or a round
/// trip of such length where other sizes take a fraction.
fn refuse_delayed_acknowledgements(store: &SampleStore<'_>) -> Result<(), AssessError> {
    let mut quickest = u64::MAX;
    for row in 0..store.len() {
        quickest = quickest.min(store.middle(row, Quantity::RoundTrip).unwrap_or(u64::MAX));
    }
    let messages = u64::from(store.messages().unwrap_or(2)).max(2);
    for row in 0..store.len() {
        let Some(round_trip) = store.middle(row, Quantity::RoundTrip) else { continue };
        let burst = store.middle(row, Quantity::Gap).unwrap_or(round_trip);
        let stalls = [
            (burst.saturating_sub(round_trip), times(round_trip, messages - 1)),
            (round_trip, quickest),
        ];
        for (stall, otherwise) in stalls {
            if is_timer(stall) && stall / STALL_FACTOR > otherwise {
                let size = Bytes(store.size(row).unwrap_or_default().into());
                return Err(AssessError::DelayedAcknowledgement(size, Picos(stall)));
            }
        }
    }
    Ok(())
}

fn is_timer(stall: u64) -> bool {
    ACKNOWLEDGEMENT_TIMERS.iter().any(|&(low, high)| (low..high).contains(&stall))
}
