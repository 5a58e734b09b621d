//! Report of an assessment: counts and warnings besides the profile.

use loggap_core::measure::{AssessError, Conclusion, Phase, SessionError, Traffic, Warning};
use loggap_core::model::Parameter;

use crate::boundary::plain;
use crate::frame::{limited_text, refused};
use crate::link::LinkCode;
use crate::reason::Reason;
use crate::status::{Detail, Status};

/// Reason why an assessment ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum ConclusionKind {
    /// Every interval is narrow enough, or further measuring would not help.
    Converged = 0,
    /// The time budget is spent.
    TimeSpent = 1,
    /// The message budget is spent.
    MessagesSpent = 2,
    /// The memory has no room for the samples still needed.
    MemorySpent = 3,
    /// All rounds at the sizes that need samples are lost.
    RoundsLost = 4,
    /// The progress callback asked to stop.
    Stopped = 5,
    /// The session failed before the plan was finished; the status says why.
    Failed = 6,
}

/// Kind of a warning about the profile.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum WarningKind {
    /// The gap exceeds the round trip at `value` sizes from `size` on:
    /// `PRTT(2,0,s)` served as the delay there.
    DelayFallback = 0,
    /// The delay was below the gap at `value` sizes from `size` on, which have
    /// no send overhead therefore.
    DelayTooShort = 1,
    /// `parameter` was clamped in the range from `size` on: its value at size 1
    /// or its slope is 0, and would be negative otherwise.
    Bound = 2,
    /// From `size` on bursts stall for `value` ps, the length of a timer of
    /// delayed acknowledgements.
    Stall = 3,
    /// Overheads overlap with the latency in the range from `size` on.
    Overlap = 4,
    /// Points of `parameter` deviate by `value` millionths from its line in the
    /// range from `size` on, beyond their noise.
    Misfit = 5,
    /// The range from `size` on has only `value` sizes.
    FewSizes = 6,
    /// The protocol changes somewhere between `size` and `value`.
    ChangeNotExact = 7,
    /// `value` sizes from `size` on were not measured, for lack of time or messages.
    SizesLeftOut = 8,
    /// `parameter` exceeded the round trip, its upper bound, at `value` sizes
    /// from `size` on, and was clamped to it.
    BeyondRoundTrip = 9,
}

/// A parameter of the model.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum ParameterKind {
    /// No parameter.
    None = 0,
    /// `PRTT(1,0,s)/2`.
    HalfRtt = 1,
    /// L.
    Latency = 2,
    /// o_s.
    SendOverhead = 3,
    /// o_r.
    RecvOverhead = 4,
    /// g and G.
    Gap = 5,
}

impl ParameterKind {
    pub(crate) const fn from_core(parameter: Parameter) -> Self {
        match parameter {
            Parameter::HalfRtt => Self::HalfRtt,
            Parameter::Latency => Self::Latency,
            Parameter::SendOverhead => Self::SendOverhead,
            Parameter::RecvOverhead => Self::RecvOverhead,
            Parameter::Gap => Self::Gap,
        }
    }

    /// Parameter of a `loggap_parameter_kind`; `None` for 0 and unknown numbers.
    pub(crate) const fn to_core(kind: u32) -> Option<Parameter> {
        match kind {
            1 => Some(Parameter::HalfRtt),
            2 => Some(Parameter::Latency),
            3 => Some(Parameter::SendOverhead),
            4 => Some(Parameter::RecvOverhead),
            5 => Some(Parameter::Gap),
            _ => None,
        }
    }
}

/// A warning.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct WarningRecord {
    /// A `loggap_warning_kind`.
    pub kind: u32,
    /// A `loggap_parameter_kind`.
    pub parameter: u32,
    /// A message size in bytes.
    pub size: u64,
    /// See `loggap_warning_kind`.
    pub value: u64,
}

/// Maximum number of warnings in a report.
pub const LOGGAP_MAX_WARNINGS: usize = 24;
const _: () = assert!(LOGGAP_MAX_WARNINGS == loggap_core::measure::MAX_WARNINGS, "the core's list");

/// Report of an assessment.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct AssessReport {
    /// A `loggap_conclusion_kind`.
    pub conclusion: u32,
    /// 1 if every parameter of the profile has converged.
    pub converged: u32,
    /// Data messages sent.
    pub data_sent: u64,
    /// Data messages received.
    pub data_received: u64,
    /// Control frames in both directions.
    pub control: u64,
    /// Completed rounds.
    pub rounds: u64,
    /// Rounds discarded because a message was lost or late.
    pub rounds_lost: u64,
    /// Data messages lost or late in either direction.
    pub messages_lost: u64,
    /// Time from the first round to the last, in ps.
    pub wall_ps: u64,
    /// Number of elements of `warnings` in use.
    pub warning_count: u32,
    /// Number of warnings that did not fit.
    pub further_warnings: u32,
    /// Warnings about the profile.
    pub warnings: [WarningRecord; LOGGAP_MAX_WARNINGS],
}

plain!(AssessReport);

impl AssessReport {
    pub(crate) const fn count(&mut self, traffic: &Traffic) {
        self.data_sent = traffic.data_sent;
        self.data_received = traffic.data_received;
        self.control = traffic.control_sent + traffic.control_received;
        self.rounds = traffic.rounds;
        self.rounds_lost = traffic.rounds_lost;
        self.messages_lost = traffic.messages_lost;
    }

    /// Adds a warning to the list, or counts it if the list is full.
    pub(crate) fn warn(&mut self, warning: Warning) {
        match self.warnings.get_mut(self.warning_count as usize) {
            Some(place) => {
                *place = WarningRecord::from_core(warning);
                self.warning_count += 1;
            }
            None => self.further_warnings = self.further_warnings.saturating_add(1),
        }
    }
}

impl WarningRecord {
    fn from_core(warning: Warning) -> Self {
        let none = ParameterKind::None;
        let (kind, parameter, size, value) = match warning {
            Warning::DelayFallback(size, count) => {
                (WarningKind::DelayFallback, none, size, count as u64)
            }
            Warning::DelayTooShort(size, count) => {
                (WarningKind::DelayTooShort, none, size, count as u64)
            }
            Warning::Bound(parameter, size, _) => {
                (WarningKind::Bound, ParameterKind::from_core(parameter), size, 0)
            }
            Warning::Stall(size, time) => (WarningKind::Stall, none, size, time.0),
            Warning::SizesLeftOut(size, count) => {
                (WarningKind::SizesLeftOut, none, size, count as u64)
            }
            Warning::BeyondRoundTrip(parameter, size, count) => {
                let parameter = ParameterKind::from_core(parameter);
                (WarningKind::BeyondRoundTrip, parameter, size, count as u64)
            }
            Warning::Overlap(size) => (WarningKind::Overlap, none, size, 0),
            Warning::Misfit(parameter, size, ppm) => {
                (WarningKind::Misfit, ParameterKind::from_core(parameter), size, ppm.into())
            }
            Warning::FewSizes(size, count) => (WarningKind::FewSizes, none, size, count as u64),
            Warning::ChangeNotExact(low, high) => (WarningKind::ChangeNotExact, none, low, high.0),
        };
        Self { kind: kind as u32, parameter: parameter as u32, size: size.0, value }
    }
}

pub(crate) const fn conclusion(conclusion: Conclusion) -> ConclusionKind {
    match conclusion {
        Conclusion::Converged => ConclusionKind::Converged,
        Conclusion::TimeSpent => ConclusionKind::TimeSpent,
        Conclusion::MessagesSpent => ConclusionKind::MessagesSpent,
        Conclusion::MemorySpent => ConclusionKind::MemorySpent,
        Conclusion::RoundsLost => ConclusionKind::RoundsLost,
        Conclusion::Stopped => ConclusionKind::Stopped,
    }
}

/// Detail of a failed assessment.
pub(crate) fn no_assessment(error: AssessError) -> Detail {
    match error {
        AssessError::NoSamples => Detail::because(Status::NoData, Reason::NoSizes),
        // Cannot happen: the memory was sized by the formula that the assessment checks.
        AssessError::Memory(_) => Detail::of(Status::Memory),
    }
}

/// Detail of a failed session.
pub(crate) fn no_session(error: SessionError<LinkCode>) -> Detail {
    let none = Reason::None;
    let (status, reason, phase, needed, found) = match error {
        SessionError::Link(code) => return code.failure(),
        SessionError::Refused(refusal) => return crate::frame::refusal(&refusal),
        SessionError::Malformed { phase, error } => {
            let mut wrong = refused(error);
            wrong.status = Status::Protocol as i32;
            return wrong.named(phase_name(phase));
        }
        SessionError::Silent { phase, limit } => (Status::Silent, none, Some(phase), limit.0, 0),
        SessionError::OutOfOrder { phase, kind } => {
            (Status::Protocol, Reason::FrameOrder, Some(phase), 0, kind.into())
        }
        SessionError::Misplaced { tag } => {
            (Status::Protocol, Reason::NotTheReply, None, 0, tag.into())
        }
        SessionError::OutOfBounds { what, asked, allowed } => {
            (Status::Refused, limited_text(what), None, asked, allowed)
        }
        SessionError::Invalid(_) => (Status::Option, none, None, 0, 0),
        SessionError::TooSmall { needed, lent } => {
            (Status::Option, Reason::SmallMessages, None, needed as u64, lent as u64)
        }
    };
    let failure = Detail::because(status, reason).needed(needed).found(found);
    match phase {
        Some(phase) => failure.named(phase_name(phase)),
        None => failure,
    }
}

const fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Handshake => "handshake",
        Phase::Queue => "queue",
        Phase::Batch => "batch",
        Phase::Round => "round",
        Phase::Synchronisation => "synchronisation",
        Phase::Description => "description",
    }
}
