//! Assessment: computes a profile from samples.
//!
//! A pure function of the samples, in the order of their arrival, and the options: repeating it on
//! stored samples gives the same numbers.

use super::ranges::{Fitted, LatencySum, Ranges, SizeSpan};
use super::warning::{AssessError, Warning};
use crate::fit::{self, Bound, Detector, Node, Point};
use crate::measure::{Quantity, SampleStore};
use crate::model::{Change, Curve, Estimate, Profile, Range, SizeLine};
use crate::stats::Confidence;
use crate::units::{Bytes, Picos, SignedPicos};
use crate::wide::times;

/// Options of an assessment.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AssessOptions {
    /// Confidence level of all intervals.
    pub confidence: Confidence,
    /// Half-width, in millionths of a number, up to which it counts as converged.
    pub relative_error_ppm: u32,
    /// Largest deviation of points from their range's line, in millionths of their value, before
    /// another range begins; smaller jumps divide no range.
    pub tolerance_ppm: u32,
    /// Most boundaries between ranges; 0 fits all sizes as one range.
    pub max_changes: usize,
    /// Change detector.
    pub detector: Detector,
    /// True if there are no one-way times, see [`LinkProperties::one_sided`].
    ///
    /// [`LinkProperties::one_sided`]: crate::measure::LinkProperties::one_sided
    pub one_sided: bool,
}

impl Default for AssessOptions {
    /// 95 percent, 5 percent, a tolerance of 6 percent, up to 7 boundaries, the default detector.
    fn default() -> Self {
        Self {
            confidence: Confidence::P95,
            relative_error_ppm: 50_000,
            tolerance_ppm: 60_000,
            max_changes: 7,
            detector: Detector::optimal(),
            one_sided: false,
        }
    }
}

/// Memory that an assessment needs besides the samples.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AssessRequirements {
    /// Length of the slice of [`Point`].
    pub points: usize,
    /// Length of the slice of [`Node`].
    pub nodes: usize,
}

impl AssessRequirements {
    /// Requirements of up to `sizes` sizes.
    #[must_use]
    pub const fn new(sizes: usize) -> Self {
        let points = sizes.saturating_mul(Curve::ALL.len());
        Self { points, nodes: fit::Requirements::new(sizes).nodes }
    }
}

/// Memory of an assessment; its initial contents are irrelevant.
#[derive(Debug)]
pub struct AssessMemory<'m> {
    /// See [`AssessRequirements::points`].
    pub points: &'m mut [Point],
    /// See [`AssessRequirements::nodes`].
    pub nodes: &'m mut [Node],
}

/// Most warnings that an assessment lists.
pub const MAX_WARNINGS: usize = 24;

/// Parameters of a link, with warnings. At most `N` protocols.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Assessment<const N: usize = 16> {
    /// The parameters.
    pub profile: Profile<N>,
    /// Warnings about the measurement.
    pub warnings: heapless::Vec<Warning, MAX_WARNINGS>,
    /// Number of warnings beyond [`MAX_WARNINGS`].
    pub further_warnings: u32,
}

/// Receiver of an assessment's results, as soon as each is computed: the jumps, then the ranges
/// with their lines, both by ascending size, and warnings in between. Allows a device to choose its
/// own representation.
pub trait Findings {
    /// A jump, large or small.
    fn change(&mut self, change: Change);
    /// A range from `first` to `last`, to which the following lines and latency belong.
    fn range(&mut self, first: Bytes, last: Bytes);
    /// Line of one curve; a range has at least that of the gap.
    fn line(&mut self, curve: Curve, line: &SizeLine);
    /// Net latency, if it was measured and part of its interval is positive.
    fn latency(&mut self, latency: &Estimate<SignedPicos>);
    /// A warning about the measurement.
    fn warning(&mut self, warning: Warning);
}

impl<const N: usize> Findings for Assessment<N> {
    fn change(&mut self, change: Change) {
        // At most the `N` requested.
        let _ = self.profile.changes.push(change);
    }

    fn range(&mut self, first: Bytes, last: Bytes) {
        // At most the `N` requested.
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
    /// Assesses a link from the samples in `store`.
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

/// Assesses a link from the samples in `store`, as at most `N` ranges, and passes the results to
/// `findings`.
///
/// # Errors
///
/// [`AssessError`] if there is nothing to assess or too little memory. Results passed before the
/// error are invalid.
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

/// Assesses the sizes of `span` as one range.
///
/// # Errors
///
/// [`AssessError::NoSamples`] if the range lacks bursts or round trips.
pub fn assess_range(
    store: &SampleStore<'_>,
    options: &AssessOptions,
    span: SizeSpan,
    points: &mut [Point],
    findings: &mut impl Findings,
) -> Result<(), AssessError> {
    let (first, last) = (Bytes(span.first.into()), Bytes(span.last.into()));
    findings.range(first, last);
    let mut latency = LatencySum::default();
    let mut round_trip = None;
    for &curve in &Curve::ALL {
        let points = store.points(curve, span, points);
        match Fitted::new(store, curve, points, span, options) {
            Some(fitted) => {
                let mut line = fitted.size_line();
                if curve == Curve::HalfRtt {
                    round_trip = Some(SignedPicos(2 * line.at_one.value.0));
                    if options.one_sided {
                        continue;
                    }
                }
                check_line(&fitted, &line, first, findings);
                match (curve, round_trip) {
                    // In ranges of larger sizes the value at one byte is extrapolated, as would be
                    // its bound.
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

/// Scatter about a line above which a warning of misfit is given, in millionths.
const NOTABLE_SCATTER_PPM: u32 = 150_000;

fn check_line(fitted: &Fitted<'_>, line: &SizeLine, first: Bytes, findings: &mut impl Findings) {
    let parameter = fitted.curve.parameter();
    if fitted.curve == Curve::Gap && fitted.points.len() < 3 {
        findings.warning(Warning::FewSizes(first, fitted.points.len()));
    }
    let bound = fitted.line.bound();
    if bound != Bound::Free {
        findings.warning(Warning::Bound(parameter, first, bound));
    }
    if line.scatter_ppm > NOTABLE_SCATTER_PPM {
        findings.warning(Warning::Misfit(parameter, first, line.scatter_ppm));
    }
}

/// Warns of rounds that were not run as the method requires.
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

/// Counter of sizes that remembers the first.
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

/// True if the paced rounds of a row were spaced by `PRTT(2,0,s)`, that is, by a round trip and a
/// gap of similar length.
fn paced_by_fallback(store: &SampleStore<'_>, row: usize) -> bool {
    let round_trip = store.round_trip_and_beyond(row);
    let delay = store.shortest_delay(row).unwrap_or_default().0;
    round_trip.is_some_and(|(time, _)| delay / 3 > time / 2)
}

/// Ranges of the delayed-acknowledgement timers, in ps: 40 ms in Linux, 200 ms in BSD and Windows,
/// each plus a timer tick.
const ACKNOWLEDGEMENT_TIMERS: [(u64, u64); 2] =
    [(36_000_000_000, 49_000_000_000), (190_000_000_000, 221_000_000_000)];

/// Least ratio of a stall to the rest of the burst's duration.
const STALL_FACTOR: u64 = 4;

/// Stall of a burst by the timer of delayed acknowledgements: its excess over a round trip, if that
/// is as long as the timer, not explained by the round trips, and about the same at a quarter of
/// the size or less. The excess on a slow link grows with the size instead.
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
