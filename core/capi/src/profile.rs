//! Profile of a link as plain structs.

use loggap_core::model::compact::Part;
use loggap_core::model::{self, Curve, Estimate as CoreEstimate, Mark, SizeLine};
use loggap_core::units::{Bytes, Picos, SignedPerByte, SignedPicos};

use crate::boundary::plain;
use crate::reason::Reason;
use crate::report::ParameterKind;
use crate::status::{Detail, Outcome, Status};

/// Maximum number of ranges in a profile.
pub const LOGGAP_MAX_RANGES: usize = 8;
pub(crate) const MOST_CHANGES: u32 = 7;
const _: () = assert!(MOST_CHANGES as usize + 1 == LOGGAP_MAX_RANGES, "a place between two ranges");

/// The core's profile of this capacity.
///
/// cbindgen:ignore
pub(crate) type CoreProfile = model::Profile<LOGGAP_MAX_RANGES>;

/// Quality of an estimate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum MarkKind {
    /// The interval is as narrow as requested.
    Converged = 0,
    /// Time, messages or memory ran out first: further measuring would help.
    BudgetSpent = 1,
    /// The points do not lie on the model's line: further measuring would not help.
    Misfit = 2,
}

/// An estimate and its confidence interval.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Estimate {
    /// Estimated value.
    pub value: i64,
    /// Lower end of the interval.
    pub low: i64,
    /// Upper end of the interval.
    pub high: i64,
    /// A `loggap_mark_kind`.
    pub mark: u32,
}

/// A parameter that depends on the message size s:
/// `at_one + (s - 1) * per_byte`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Line {
    /// Value at size 1, in ps: an extrapolation if the range begins later, and
    /// 0 if the line is negative there.
    pub at_one: Estimate,
    /// Slope, in 2^-16 ps per byte. If only one size was measured, the interval
    /// is from `INT64_MIN` to `INT64_MAX`.
    pub per_byte: Estimate,
    /// Size at which the line's interval is narrowest.
    pub centre: u64,
    /// Value of the line at `centre`, in ps. The value at a size s is
    /// `at_centre_ps + (s - centre) * per_byte`.
    pub at_centre_ps: i64,
    /// Half-width of the interval of `at_centre_ps`, in ps.
    pub centre_half_width_ps: u64,
    /// Expected deviation of a later round from the line beyond the line's
    /// interval, in millionths of its value: scatter of rounds, and misfit of
    /// the model.
    pub scatter_ppm: u32,
}

/// Measured parameters of a range: bits of `loggap_range.known`.
/// `loggap_known_latency` is also absent if overheads overlap with the latency.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Known {
    /// `half_rtt`.
    HalfRtt = 1,
    /// `send_overhead`.
    SendOverhead = 2,
    /// `recv_overhead`.
    RecvOverhead = 4,
    /// `latency`.
    Latency = 8,
}

/// Parameters of one protocol, for sizes from `first` to `last`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Range {
    /// Smallest size of the range, in bytes.
    pub first: u64,
    /// Largest size of the range that was measured, in bytes.
    pub last: u64,
    /// Measured parameters besides `gap`: bits of `loggap_known`.
    pub known: u32,
    /// g and G: minimum time between two messages.
    pub gap: Line,
    /// Half the round trip, `PRTT(1,0,s)/2`.
    pub half_rtt: Line,
    /// o_s: time that the sender spends on a message.
    pub send_overhead: Line,
    /// o_r: time that the receiver spends on a message.
    pub recv_overhead: Line,
    /// L, in ps: `PRTT(1,0,1)/2 - o_s - o_r`.
    pub latency: Estimate,
}

/// Protocol change: a size at which a curve jumps.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Change {
    /// First size of the new protocol.
    pub at: u64,
    /// Smallest size at which the new protocol may begin.
    pub low: u64,
    /// Largest size at which the new protocol may begin.
    pub high: u64,
    /// Curve that shows the change best: a `loggap_parameter_kind`.
    pub parameter: u32,
    /// Height of the jump in millionths of the curve's value before it;
    /// negative if the new protocol is faster.
    pub jump_ppm: i32,
    /// 1 if a range begins here; 0 if the jump is significant but smaller than
    /// the tolerance, or too close to another one.
    pub splits: u32,
}

/// Parameters of a link: contiguous ranges of sizes in ascending order, each
/// described by one line per parameter, and the protocol changes. A range that
/// begins without a change begins where the curves bend.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Profile {
    /// Number of elements of `ranges` in use.
    pub range_count: u32,
    /// Number of elements of `changes` in use.
    pub change_count: u32,
    /// Ranges, by ascending size.
    pub ranges: [Range; LOGGAP_MAX_RANGES],
    /// Protocol changes, by ascending size.
    pub changes: [Change; LOGGAP_MAX_RANGES],
}

plain!(Estimate, Line, Range, Change, Profile);

pub(crate) const fn mark_from_core(mark: Mark) -> u32 {
    let kind = match mark {
        Mark::Converged => MarkKind::Converged,
        Mark::BudgetSpent => MarkKind::BudgetSpent,
        Mark::Misfit => MarkKind::Misfit,
    };
    kind as u32
}

fn invalid(name: &'static str, value: impl Into<u64>) -> Detail {
    let reason = Reason::ProfileValue;
    Detail::because(Status::Option, reason).named(name).found(value.into())
}

fn mark_to_core(mark: u32) -> Outcome<Mark> {
    match mark {
        0 => Ok(Mark::Converged),
        1 => Ok(Mark::BudgetSpent),
        2 => Ok(Mark::Misfit),
        other => Err(invalid("mark", other)),
    }
}

fn put_estimate(place: &mut Estimate, [value, low, high]: [i64; 3], mark: Mark) {
    *place = Estimate { value, low, high, mark: mark_from_core(mark) };
}

fn put_latency(place: &mut Estimate, latency: &CoreEstimate<SignedPicos>) {
    let CoreEstimate { value, low, high, mark } = *latency;
    put_estimate(place, [value.0, low.0, high.0], mark);
}

fn to_estimate<T>(estimate: &Estimate, number: impl Fn(i64) -> T) -> Outcome<CoreEstimate<T>> {
    let Estimate { value, low, high, mark } = *estimate;
    let mark = mark_to_core(mark)?;
    Ok(CoreEstimate { value: number(value), low: number(low), high: number(high), mark })
}

fn put_line(place: &mut Line, line: &SizeLine) {
    let CoreEstimate { value, low, high, mark } = line.per_byte;
    put_latency(&mut place.at_one, &line.at_one);
    put_estimate(&mut place.per_byte, [value.0, low.0, high.0], mark);
    place.centre = line.centre.0;
    place.at_centre_ps = line.at_centre.0;
    place.centre_half_width_ps = line.centre_half_width.0;
    place.scatter_ppm = line.scatter_ppm;
}

fn to_line(line: &Line) -> Outcome<SizeLine> {
    Ok(SizeLine {
        at_one: to_estimate(&line.at_one, SignedPicos)?,
        per_byte: to_estimate(&line.per_byte, SignedPerByte)?,
        centre: Bytes(line.centre),
        at_centre: SignedPicos(line.at_centre_ps),
        centre_half_width: Picos(line.centre_half_width_ps),
        scatter_ppm: line.scatter_ppm,
    })
}

impl Range {
    pub(crate) fn as_core(&self) -> Outcome<model::Range> {
        if self.known > 0xf {
            return Err(invalid("known", self.known));
        }
        if self.first > self.last {
            return Err(invalid("first", self.first));
        }
        let line = |line: &Line, bit: Known| {
            let known = self.known & bit as u32 != 0;
            known.then(|| to_line(line)).transpose()
        };
        let latency = self.known & Known::Latency as u32 != 0;
        Ok(model::Range {
            first: Bytes(self.first),
            last: Bytes(self.last),
            gap: to_line(&self.gap)?,
            half_rtt: line(&self.half_rtt, Known::HalfRtt)?,
            send_overhead: line(&self.send_overhead, Known::SendOverhead)?,
            recv_overhead: line(&self.recv_overhead, Known::RecvOverhead)?,
            latency: latency.then(|| to_estimate(&self.latency, SignedPicos)).transpose()?,
        })
    }
}

impl Change {
    pub(crate) fn as_core(&self) -> Outcome<model::Change> {
        let parameter = ParameterKind::to_core(self.parameter);
        if self.splits > 1 {
            return Err(invalid("splits", self.splits));
        }
        Ok(model::Change {
            at: Bytes(self.at),
            low: Bytes(self.low),
            high: Bytes(self.high),
            parameter: parameter.ok_or(invalid("parameter", self.parameter))?,
            jump_ppm: self.jump_ppm,
            splits: self.splits == 1,
        })
    }

    const fn from_core(change: &model::Change) -> Self {
        Self {
            at: change.at.0,
            low: change.low.0,
            high: change.high.0,
            parameter: ParameterKind::from_core(change.parameter) as u32,
            jump_ppm: change.jump_ppm,
            splits: change.splits as u32,
        }
    }
}

impl Profile {
    /// Adds a change if there is room; a profile of the core never has more.
    pub(crate) fn add_change(&mut self, change: &model::Change) {
        if let Some(place) = self.changes.get_mut(self.change_count as usize) {
            *place = Change::from_core(change);
            self.change_count += 1;
        }
    }

    /// Adds a range without parameters if there is room.
    pub(crate) fn add_range(&mut self, first: Bytes, last: Bytes) {
        if let Some(place) = self.ranges.get_mut(self.range_count as usize) {
            (place.first, place.last) = (first.0, last.0);
            self.range_count += 1;
        }
    }

    /// Adds a line to the last range.
    pub(crate) fn add_line(&mut self, curve: Curve, line: &SizeLine) {
        let Some(range) = self.last_range() else { return };
        let (place, known) = match curve {
            Curve::Gap => (&mut range.gap, 0),
            Curve::HalfRtt => (&mut range.half_rtt, Known::HalfRtt as u32),
            Curve::SendOverhead => (&mut range.send_overhead, Known::SendOverhead as u32),
            Curve::RecvOverhead => (&mut range.recv_overhead, Known::RecvOverhead as u32),
        };
        range.known |= known;
        put_line(place, line);
    }

    /// Adds the latency to the last range.
    pub(crate) fn add_latency(&mut self, latency: &CoreEstimate<SignedPicos>) {
        if let Some(range) = self.last_range() {
            range.known |= Known::Latency as u32;
            put_latency(&mut range.latency, latency);
        }
    }

    fn last_range(&mut self) -> Option<&mut Range> {
        let last = self.range_count.checked_sub(1)?;
        self.ranges.get_mut(last as usize)
    }

    /// Adds a part of a profile of the core.
    pub(crate) fn add(&mut self, part: Part<'_>) {
        let range = match part {
            Part::Change(change) => return self.add_change(change),
            Part::Range(range) => range,
        };
        self.add_range(range.first, range.last);
        for curve in Curve::ALL {
            if let Some(line) = range.line(curve) {
                self.add_line(curve, line);
            }
        }
        if let Some(latency) = &range.latency {
            self.add_latency(latency);
        }
    }

    /// Removes all ranges and changes.
    pub(crate) const fn empty(&mut self) {
        (self.range_count, self.change_count) = (0, 0);
    }

    /// Ranges in use.
    pub(crate) fn ranges(&self) -> Outcome<&[Range]> {
        let used = usize::try_from(self.range_count).ok().and_then(|n| self.ranges.get(..n));
        used.ok_or(invalid("range_count", self.range_count))
    }

    /// Changes in use.
    pub(crate) fn changes(&self) -> Outcome<&[Change]> {
        let used = usize::try_from(self.change_count).ok().and_then(|n| self.changes.get(..n));
        used.ok_or(invalid("change_count", self.change_count))
    }

    pub(crate) fn as_core(&self) -> Outcome<CoreProfile> {
        let mut profile = CoreProfile::default();
        for range in self.ranges()? {
            // `profile` has room for every element of this struct.
            let _ = profile.ranges.push(range.as_core()?);
        }
        for change in self.changes()? {
            let _ = profile.changes.push(change.as_core()?);
        }
        Ok(profile)
    }
}
