//! From samples to a profile.
//!
//! A pure function of the samples, in the order of their arrival, and the
//! options: a repeated analysis of stored samples gives the same numbers.

use super::ranges::{Fitted, LatencySum, Ranges, Span};
use super::warning::{AssessError, Warning};
use crate::fit::{self, Bound, Detector, Node, Point};
use crate::measure::{Curve, Quantity, SampleStore};
use crate::model::{Change, Estimate, Profile, Range, SizeLine};
use crate::stats::Confidence;
use crate::units::{Bytes, Picos, SignedPicos};
use crate::wide::times;

/// What an assessment is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AssessOptions {
    /// Level of all intervals.
    pub confidence: Confidence,
    /// A number has converged when half its interval is at most this many
    /// millionths of it.
    pub relative_error_ppm: u32,
    /// Points may lie this many millionths beside their range's line before
    /// another range begins, and jumps smaller than this divide no range.
    pub tolerance_ppm: u32,
    /// Most places where ranges meet; 0 takes all sizes as one range.
    pub max_changes: usize,
    /// How to look for them.
    pub detector: Detector,
}

impl Default for AssessOptions {
    /// 95 percent, 5 percent, a tolerance of 6 percent, up to 7 places where
    /// ranges meet, changes by the default detector.
    fn default() -> Self {
        Self {
            confidence: Confidence::P95,
            relative_error_ppm: 50_000,
            tolerance_ppm: 60_000,
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
}

impl AssessRequirements {
    /// What up to `sizes` sizes need.
    #[must_use]
    pub const fn new(sizes: usize) -> Self {
        let points = sizes.saturating_mul(Curve::ALL.len());
        Self { points, nodes: fit::Requirements::new(sizes).nodes }
    }
}

/// The memory of an assessment; its contents do not matter.
#[derive(Debug)]
pub struct AssessMemory<'m> {
    /// See [`AssessRequirements::points`].
    pub points: &'m mut [Point],
    /// See [`AssessRequirements::nodes`].
    pub nodes: &'m mut [Node],
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

/// Takes what an assessment finds, as soon as it is found: the jumps, then
/// the ranges with their lines, both by ascending size, and warnings in
/// between. So a device can keep it where and how it wants to.
pub trait Findings {
    /// A jump, large or small.
    fn change(&mut self, change: Change);
    /// A range from `first` to `last`: lines and latency that follow are its.
    fn range(&mut self, first: Bytes, last: Bytes);
    /// The line of one curve; a range has at least that of the gap.
    fn line(&mut self, curve: Curve, line: &SizeLine);
    /// The net latency, where it is known and can be positive.
    fn latency(&mut self, latency: &Estimate<SignedPicos>);
    /// What a reader should know.
    fn warning(&mut self, warning: Warning);
}

impl<const N: usize> Findings for Assessment<N> {
    fn change(&mut self, change: Change) {
        // No more than the `N` that were asked for.
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
/// ranges, and tells `findings`.
///
/// # Errors
///
/// [`AssessError`] when there is nothing to assess, or too little memory was
/// lent. What was told until then is no assessment.
pub fn assess<const N: usize>(
    store: &SampleStore<'_>,
    options: &AssessOptions,
    memory: &mut AssessMemory<'_>,
    findings: &mut impl Findings,
) -> Result<(), AssessError> {
    let mut ranges = Ranges::<N>::find(store, options, memory)?;
    ranges.keep_founded(store, options);
    for &change in &ranges.changes {
        findings.change(change);
        if change.splits && change.low < change.high {
            findings.warning(Warning::ChangeNotExact(change.low, change.high));
        }
    }
    for span in ranges.spans() {
        assess_range(store, options, span, memory.points, findings)?;
    }
    check_rounds(store, findings);
    Ok(())
}

/// Assesses the sizes from `first` to `last` as one range.
///
/// # Errors
///
/// [`AssessError::NoSamples`] without bursts and round trips there.
pub fn assess_range(
    store: &SampleStore<'_>,
    options: &AssessOptions,
    span: Span,
    points: &mut [Point],
    findings: &mut impl Findings,
) -> Result<(), AssessError> {
    let (first, last) = (Bytes(span.0.into()), Bytes(span.1.into()));
    findings.range(first, last);
    let mut latency = LatencySum::default();
    let mut round_trip = None;
    for &curve in &Curve::ALL {
        let points = store.points(curve, span, points);
        match Fitted::new(store, curve, points, span, options) {
            Some(fitted) => {
                let mut line = fitted.size_line();
                check_line(&fitted, &line, first, findings);
                match (curve, round_trip) {
                    (Curve::HalfRtt, _) => round_trip = Some(SignedPicos(2 * line.at_one.value.0)),
                    // Elsewhere lines at one byte are extrapolated, the bound as well.
                    (Curve::SendOverhead | Curve::RecvOverhead, Some(bound)) if first.0 <= 1 => {
                        line.at_one.lower_to(bound);
                    }
                    _ => {}
                }
                line.include_scatter(store.round_spread_ppm(curve, span));
                latency.add(&fitted);
                findings.line(curve, &line);
            }
            None if curve == Curve::Gap => return Err(AssessError::NoSamples),
            None => {}
        }
    }
    if let Some((value, width)) = latency.width(store, options) {
        let latency = width.around(value, 1.0);
        if latency.high > 0 {
            let [value, low, high] = [latency.value, latency.low, latency.high].map(SignedPicos);
            findings.latency(&Estimate { value, low, high, mark: latency.mark });
        } else {
            findings.warning(Warning::Overlap(first));
        }
    }
    Ok(())
}

/// Scatter about a line above which the model is said not to fit well, in
/// millionths.
const NOTABLE_SCATTER_PPM: u32 = 150_000;

fn check_line(fitted: &Fitted<'_>, line: &SizeLine, first: Bytes, findings: &mut impl Findings) {
    let parameter = fitted.curve.parameter();
    if fitted.curve == Curve::Gap && fitted.points.len() < 3 {
        findings.warning(Warning::FewSizes(first, fitted.points.len()));
    }
    if fitted.line.bound() != Bound::Free {
        findings.warning(Warning::Bound(parameter, first));
    }
    if line.scatter_ppm > NOTABLE_SCATTER_PPM {
        findings.warning(Warning::Misfit(parameter, first, line.scatter_ppm));
    }
}

/// Says where rounds were not run as the method has it.
fn check_rounds(store: &SampleStore<'_>, findings: &mut impl Findings) {
    let [mut fallback, mut short, mut left_out, mut stalled] = [Sizes::default(); 4];
    let mut bounded =
        [(Curve::SendOverhead, Sizes::default()), (Curve::RecvOverhead, Sizes::default())];
    let mut stall = Picos::ZERO;
    for row in 0..store.len() {
        let size = Bytes(store.size(row).unwrap_or_default().into());
        match store.delay_exceeds_gap(row) {
            Some(false) => short.add(size),
            Some(true) if paced_by_fallback(store, row) => fallback.add(size),
            _ => {}
        }
        if store.level(row, Curve::Gap).is_none() {
            left_out.add(size);
        }
        for (curve, sizes) in &mut bounded {
            if store.is_at_bound(row, *curve) {
                sizes.add(size);
            }
        }
        if let Some(time) = acknowledgement_stall(store, row) {
            stalled.add(size);
            stall = stall.max(time);
        }
    }
    let each = [
        (stalled, Warning::Stall(stalled.first, stall)),
        (left_out, Warning::SizesLeftOut(left_out.first, left_out.count)),
        (fallback, Warning::DelayFallback(fallback.first, fallback.count)),
        (short, Warning::DelayTooShort(short.first, short.count)),
    ];
    let bounded = bounded.map(|(curve, sizes)| {
        (sizes, Warning::BeyondRoundTrip(curve.parameter(), sizes.first, sizes.count))
    });
    for (sizes, warning) in each.into_iter().chain(bounded) {
        if sizes.count > 0 {
            findings.warning(warning);
        }
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

/// Whether the paced rounds of a row were spaced by `PRTT(2,0,s)`, which is
/// the round trip and a gap about as long.
fn paced_by_fallback(store: &SampleStore<'_>, row: usize) -> bool {
    let round_trip = store.round_trip_and_beyond(row);
    let delay = store.shortest_delay(row).unwrap_or_default().0;
    round_trip.is_some_and(|(time, _)| delay / 3 > time / 2)
}

/// Timers of delayed acknowledgements: 40 ms in Linux, 200 ms in BSD and
/// Windows, each with the lateness of a timer tick.
const ACKNOWLEDGEMENT_TIMERS: [(u64, u64); 2] =
    [(36_000_000_000, 49_000_000_000), (190_000_000_000, 221_000_000_000)];

/// How many times a stall exceeds what a burst takes otherwise.
const STALL_FACTOR: u64 = 4;

/// By how much a burst takes longer than a round trip where that is the
/// timer of delayed acknowledgements: as long as the timer, beyond all that
/// the round trip explains, and about the same at a size at most a quarter as
/// large. What a slow link takes grows with the size instead.
fn acknowledgement_stall(store: &SampleStore<'_>, row: usize) -> Option<Picos> {
    let (round_trip, beyond) = store.round_trip_and_beyond(row)?;
    let rest = u64::from(store.messages(row, Quantity::Gap)?.saturating_sub(1));
    let is_timer = ACKNOWLEDGEMENT_TIMERS.iter().any(|&(low, high)| (low..high).contains(&beyond));
    let sudden = beyond / STALL_FACTOR > times(round_trip, rest);
    let size = store.size(row)?;
    let smaller = (0..row).rev().find(|&other| store.size(other) <= Some(size / 4)).unwrap_or(0);
    let (_, there) = store.round_trip_and_beyond(smaller)?;
    (is_timer && sudden && there > beyond / 2).then_some(Picos(beyond))
}
