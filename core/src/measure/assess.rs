//! From samples to a profile.
//!
//! A pure function of the set of samples and the options: neither the order
//! of the samples nor what measured them matters, so that a repeated
//! analysis of stored samples gives the same numbers.

use super::ranges::{self, Ranges};
use super::warning::{AssessError, Warning};
use super::{Curve, Quantity, SampleStore};
use crate::fit::{Cell, Detector, Node, Point, Segment, Segmentation};
use crate::model::{Estimate, Mark, Parameter, Profile, Range, SizeLine};
use crate::number::hypotenuse;
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

impl<const N: usize> Assessment<N> {
    /// Assesses the link that `store`'s samples were measured on.
    ///
    /// # Errors
    ///
    /// [`AssessError`] when there is nothing to assess, when the samples show
    /// something else than the link, or when too little memory was lent.
    pub fn new(
        store: &SampleStore<'_>,
        options: &AssessOptions,
        memory: &mut AssessMemory<'_>,
    ) -> Result<Self, AssessError> {
        refuse_delayed_acknowledgements(store)?;
        let Ranges { spans, changes } = ranges::find::<N>(store, options, memory)?;
        let mut assessment = Self::default();
        assessment.profile.changes = changes;
        for &span in &spans {
            let range = assessment.range(store, options, span, memory.points)?;
            // As many spans as ranges fit.
            let _ = assessment.profile.ranges.push(range);
        }
        for change in assessment.profile.changes.clone() {
            if change.low < change.high {
                assessment.warn(Warning::ChangeNotExact(change.low, change.high));
            }
        }
        assessment.check_delays(store);
        Ok(assessment)
    }

    fn range(
        &mut self,
        store: &SampleStore<'_>,
        options: &AssessOptions,
        span: (u64, u64),
        points: &mut [Point],
    ) -> Result<Range, AssessError> {
        let first = Bytes(span.0);
        let mut line = |curve: Curve| {
            let points = store.points(curve, span, options.confidence, points);
            let mut line = ranges::line(points, span, options)?;
            self.check_line(&line, curve, span, points.len());
            line.include_scatter(store.round_spread_ppm(curve, span));
            Some(line)
        };
        let gap = line(Curve::Gap).ok_or(AssessError::NoSamples)?;
        let half_rtt = line(Curve::HalfRtt);
        let send_overhead = line(Curve::SendOverhead);
        let recv_overhead = line(Curve::RecvOverhead);
        let latency = latency([half_rtt, send_overhead, recv_overhead], options);
        if latency.is_some_and(|latency| latency.value.0 <= 0) {
            self.warn(Warning::Overlap(first));
        }
        let latency = latency.filter(|latency| latency.value.0 > 0);
        Ok(Range {
            first,
            last: Bytes(span.1),
            gap,
            half_rtt,
            send_overhead,
            recv_overhead,
            latency,
        })
    }

    fn check_line(&mut self, line: &SizeLine, curve: Curve, span: (u64, u64), sizes: usize) {
        let (first, parameter) = (Bytes(span.0), curve.parameter());
        if curve == Curve::Gap && sizes < 3 {
            self.warn(Warning::FewSizes(first, sizes));
        }
        if curve == Curve::Gap && line.per_byte.high.0 < 0 {
            self.warn(Warning::Falling(first));
        }
        if line.at(first).0.min(line.at(Bytes(span.1)).0) < 0 {
            self.warn(Warning::Negative(parameter, first));
        }
        if line.scatter_ppm > NOTABLE_SCATTER_PPM {
            self.warn(Warning::Misfit(parameter, first, line.scatter_ppm));
        }
    }

    /// Says where the delay of the paced rounds was not the plain round trip.
    fn check_delays(&mut self, store: &SampleStore<'_>) {
        let (mut fallback, mut short) = ((Bytes(0), 0), (Bytes(0), 0));
        for row in 0..store.len() {
            let size = Bytes(store.size(row).unwrap_or_default().into());
            let count = |(first, count): &mut (Bytes, usize)| {
                *first = if *count == 0 { size } else { *first };
                *count += 1;
            };
            match store.delay_exceeds_gap(row) {
                Some(false) => count(&mut short),
                Some(true) if paced_by_fallback(store, row) => count(&mut fallback),
                _ => {}
            }
        }
        if fallback.1 > 0 {
            self.warn(Warning::DelayFallback(fallback.0, fallback.1));
        }
        if short.1 > 0 {
            self.warn(Warning::DelayTooShort(short.0, short.1));
        }
    }

    fn warn(&mut self, warning: Warning) {
        if self.warnings.push(warning).is_err() {
            self.further_warnings = self.further_warnings.saturating_add(1);
        }
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

/// `L = PRTT(1,0,1)/2 − o_s − o_r`, possibly negative; `None` where a part
/// was not measured. The intervals add in quadrature.
fn latency(parts: [Option<SizeLine>; 3], options: &AssessOptions) -> Option<Estimate<SignedPicos>> {
    let [half_rtt, send, recv] = parts;
    let parts = [half_rtt?.at_one, send?.at_one, recv?.at_one];
    let [half_rtt, send, recv] = parts;
    let value = half_rtt.value.0.saturating_sub(send.value.0).saturating_sub(recv.value.0);
    let half_width = |part: &Estimate<SignedPicos>| 0.5 * (part.high.0 as f64 - part.low.0 as f64);
    let half_width = parts.iter().map(half_width).fold(0.0, hypotenuse);
    let half = SignedPicos::from_f64(half_width).0;
    let wanted = value as f64 * f64::from(options.relative_error_ppm) * 1e-6;
    let misfit = parts.iter().any(|part| part.mark == Mark::Misfit);
    let mark = match (half_width <= wanted, misfit) {
        (true, _) => Mark::Converged,
        (false, true) => Mark::Misfit,
        (false, false) => Mark::BudgetSpent,
    };
    Some(Estimate {
        value: SignedPicos(value),
        low: SignedPicos(value.saturating_sub(half)),
        high: SignedPicos(value.saturating_add(half)),
        mark,
    })
}

/// Whether the paced rounds of a row were spaced by `PRTT(2,0,s)`, which is
/// the round trip and a gap about as long.
fn paced_by_fallback(store: &SampleStore<'_>, row: usize) -> bool {
    let round_trip = store.median(row, Quantity::RoundTrip, Confidence::P95);
    let delay = store.shortest_delay(row).unwrap_or_default().0;
    round_trip.is_some_and(|time| delay / 3 > time.median / 2)
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
    let median = |row, quantity| store.median(row, quantity, Confidence::P95).map(|m| m.median);
    let rows = || 0..store.len();
    let quickest =
        rows().filter_map(|row| median(row, Quantity::RoundTrip)).min().unwrap_or(u64::MAX);
    let messages = u64::from(store.messages().unwrap_or(2)).max(2);
    for row in rows() {
        let Some(round_trip) = median(row, Quantity::RoundTrip) else { continue };
        let burst = median(row, Quantity::Gap).unwrap_or(round_trip);
        let stalls = [
            (burst.saturating_sub(round_trip), times(round_trip, messages - 1)),
            (round_trip, quickest),
        ];
        for (stall, otherwise) in stalls {
            let timer =
                ACKNOWLEDGEMENT_TIMERS.iter().any(|&(low, high)| (low..high).contains(&stall));
            if timer && stall / STALL_FACTOR > otherwise {
                let size = Bytes(store.size(row).unwrap_or_default().into());
                return Err(AssessError::DelayedAcknowledgement(size, Picos(stall)));
            }
        }
    }
    Ok(())
}
