//! Parameters of a simulation, as reports show them.

use loggap_core::model::{Protocol, ReceiveOverhead};
use loggap_core::units::Bytes;
use serde::Serialize;

use super::digits::Digits;
use super::parameter_args::{Origin, ParameterArgs};
use crate::output::Fields;
use crate::output::number::size as size_text;
use crate::profile::USUAL_EAGER_LIMIT;
use crate::simulation::ParameterSets;

/// Origin of parameters.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ParameterSource {
    /// "profile", "preset", "options" or "defaults".
    pub(super) source: &'static str,
    /// File of the profile, or name of the preset.
    pub(super) name: Option<String>,
}

/// Origin and values of parameters.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ParametersUsed {
    #[serde(flatten)]
    source: ParameterSource,
    sets: Vec<Fields>,
    #[serde(skip)]
    exact: String,
    #[serde(skip)]
    rounded: String,
}

impl From<Origin<'_>> for ParameterSource {
    fn from(origin: Origin<'_>) -> Self {
        let (source, name) = match origin {
            Origin::Profile(path) => ("profile", Some(path.display().to_string())),
            Origin::Preset(name) => ("preset", Some(name.to_owned())),
            Origin::Options => ("options", None),
            Origin::Defaults => ("defaults", None),
        };
        Self { source, name }
    }
}

/// Values of set number `number` of `sets`; no eager limit if no message waits for its receiver.
pub(super) fn set_fields(sets: &ParameterSets, number: usize, protocol: &Protocol) -> Fields {
    let set = &protocol.parameters;
    let receive = receive(sets, number, protocol);
    let limit = Some(set.eager_limit.0).filter(|limit| *limit < u64::MAX);
    Fields(vec![
        ("first_bytes", protocol.first.0.into()),
        ("latency_s", set.latency.seconds().into()),
        ("send_overhead_s", set.overhead.seconds().into()),
        ("recv_overhead_s", receive.overhead.seconds().into()),
        ("gap_s", set.gap.seconds().into()),
        ("gap_per_byte_s", set.gap_per_byte.seconds().into()),
        ("send_overhead_per_byte_s", set.overhead_per_byte.seconds().into()),
        ("recv_overhead_per_byte_s", receive.overhead_per_byte.seconds().into()),
        ("eager_limit_bytes", limit.into()),
    ])
}

fn receive(sets: &ParameterSets, number: usize, protocol: &Protocol) -> ReceiveOverhead {
    sets.receive.get(number).copied().unwrap_or(protocol.parameters.receive_overhead())
}

impl ParametersUsed {
    /// Parameters made by `args`. The text shows the set for messages of `size` bytes, or the first
    /// one.
    pub(super) fn new(args: &ParameterArgs, sets: &ParameterSets, size: Option<u64>) -> Self {
        let source = ParameterSource::from(args.origin());
        let has_default = args.profile().is_some() && !args.has_eager_limit();
        let default = has_default.then_some(USUAL_EAGER_LIMIT);
        let text = |digits| {
            let values = values(sets, size, default, digits);
            match (&source.name, source.source) {
                (Some(name), source) => format!("{source} {name}: {values}"),
                (None, "defaults") => {
                    format!("the defaults of LogGOPSim, of no machine: {values}")
                }
                (None, _) => values,
            }
        };
        let (exact, rounded) = (text(Digits::Exact), text(Digits::Rounded));
        let set = |(number, protocol)| set_fields(sets, number, protocol);
        Self { source, sets: sets.protocols.iter().enumerate().map(set).collect(), exact, rounded }
    }

    /// Text of one line.
    pub(super) fn text(&self, digits: Digits) -> &str {
        match digits {
            Digits::Exact => &self.exact,
            Digits::Rounded => &self.rounded,
        }
    }
}

/// Text of the set for messages of `size` bytes, written as options, with its number if there are
/// several sets, and a remark if S is `default`.
fn values(
    sets: &ParameterSets,
    size: Option<u64>,
    default: Option<Bytes>,
    digits: Digits,
) -> String {
    // Sets of network levels follow those of protocols.
    let all = sets.levels.first().map_or(sets.protocols.len(), |level| level.first);
    let own = sets.protocols.get(..all).unwrap_or_default();
    let holds = |protocol: &Protocol| size.is_some_and(|size| protocol.first.0 <= size);
    let number = own.iter().rposition(holds).unwrap_or(0);
    let Some(protocol) = own.get(number) else { return String::new() };
    let (set, receive) = (&protocol.parameters, receive(sets, number, protocol));
    let (o, o_per_byte) = (digits.time(set.overhead.0), digits.per_byte(set.overhead_per_byte.0));
    let ends = if receive == set.receive_overhead() {
        format!("o = {o}, O = {o_per_byte}")
    } else {
        format!(
            "o_s = {o}, o_r = {}, O_s = {o_per_byte}, O_r = {}",
            digits.time(receive.overhead.0),
            digits.per_byte(receive.overhead_per_byte.0)
        )
    };
    let remark = if default == Some(set.eager_limit) { " (default)" } else { "" };
    let which = match (all, size) {
        (0 | 1, _) => String::new(),
        (_, None) => format!("; the first of {all} sets"),
        (_, Some(size)) => {
            format!("; of messages of {}, set {} of {all}", size_text(size), number + 1)
        }
    };
    format!(
        "L = {}, {ends}, g = {}, G = {}, {}{remark}{which}",
        digits.time(set.latency.0),
        digits.time(set.gap.0),
        digits.per_byte(set.gap_per_byte.0),
        eager_limit(set.eager_limit.0)
    )
}

fn eager_limit(bytes: u64) -> String {
    match bytes {
        u64::MAX => "no S".to_owned(),
        bytes => format!("S = {bytes} B"),
    }
}
