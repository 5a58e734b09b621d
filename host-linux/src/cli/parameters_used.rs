//! The parameters of a simulation as a report names them.

use loggap_core::model::{Protocol, ReceiveOverhead};
use serde::Serialize;

use super::parameter_args::{Origin, ParameterArgs};
use crate::decimal::fixed;
use crate::sensitivity::Units;
use crate::simulation::ParameterSets;

/// Where parameters are from.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ParameterSource {
    /// "profile", "preset", "options" or "defaults".
    pub(super) source: &'static str,
    /// The profile's file or the preset's name.
    pub(super) name: Option<String>,
}

/// Where parameters are from, and what they are.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ParametersUsed {
    #[serde(flatten)]
    source: ParameterSource,
    sets: Vec<SetDocument>,
    #[serde(skip)]
    text: String,
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

/// One parameter set.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SetDocument {
    first_bytes: u64,
    latency_s: f64,
    send_overhead_s: f64,
    recv_overhead_s: f64,
    gap_s: f64,
    gap_per_byte_s: f64,
    send_overhead_per_byte_s: f64,
    recv_overhead_per_byte_s: f64,
    /// Null where no message waits for its receiver.
    eager_limit_bytes: Option<u64>,
}

impl SetDocument {
    /// The set at the place `number` of `sets`.
    pub(super) fn new(sets: &ParameterSets, number: usize, protocol: &Protocol) -> Self {
        let set = &protocol.parameters;
        let receive = receive(sets, number, protocol);
        Self {
            first_bytes: protocol.first.0,
            latency_s: set.latency.seconds(),
            send_overhead_s: set.overhead.seconds(),
            recv_overhead_s: receive.overhead.seconds(),
            gap_s: set.gap.seconds(),
            gap_per_byte_s: set.gap_per_byte.seconds(),
            send_overhead_per_byte_s: set.overhead_per_byte.seconds(),
            recv_overhead_per_byte_s: receive.overhead_per_byte.seconds(),
            eager_limit_bytes: Some(set.eager_limit.0).filter(|limit| *limit < u64::MAX),
        }
    }
}

fn receive(sets: &ParameterSets, number: usize, protocol: &Protocol) -> ReceiveOverhead {
    sets.receive.get(number).copied().unwrap_or(protocol.parameters.receive_overhead())
}

impl ParametersUsed {
    /// Those that `args` made to `sets`.
    pub(super) fn new(args: &ParameterArgs, sets: &ParameterSets) -> Self {
        let source = ParameterSource::from(args.origin());
        let values = values(sets, args);
        let text = match (&source.name, source.source) {
            (Some(name), source) => format!("{source} {name}: {values}"),
            (None, "defaults") => {
                format!("the defaults of LogGOPSim, of no machine: {values}")
            }
            (None, _) => values,
        };
        let set = |(number, protocol)| SetDocument::new(sets, number, protocol);
        Self { source, sets: sets.protocols.iter().enumerate().map(set).collect(), text }
    }

    /// In a line.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// The first set, as its options are written, and how many there are.
fn values(sets: &ParameterSets, args: &ParameterArgs) -> String {
    let Some(protocol) = sets.protocols.first() else { return String::new() };
    let (set, receive) = (&protocol.parameters, receive(sets, 0, protocol));
    let nanos = |picos: u64| fixed(picos.into(), 3);
    let per_byte = |units: u64| Units(units.into()).nanos();
    let (o, o_per_byte) = (nanos(set.overhead.0), per_byte(set.overhead_per_byte.0));
    let ends = if receive == set.receive_overhead() {
        format!("o = {o} ns, O = {o_per_byte} ns/B")
    } else {
        format!(
            "o_s = {o} ns, o_r = {} ns, O_s = {o_per_byte} ns/B, O_r = {} ns/B",
            nanos(receive.overhead.0),
            per_byte(receive.overhead_per_byte.0)
        )
    };
    // A profile has no S.
    let is_default = args.profile().is_some() && args.has_default_eager_limit();
    let default = if is_default { " (default)" } else { "" };
    let more = match sets.protocols.len() {
        0 | 1 => String::new(),
        all => format!("; the first of {all} sets"),
    };
    format!(
        "L = {} ns, {ends}, g = {} ns, G = {} ns/B, {}{default}{more}",
        nanos(set.latency.0),
        nanos(set.gap.0),
        per_byte(set.gap_per_byte.0),
        eager_limit(set.eager_limit.0)
    )
}

fn eager_limit(bytes: u64) -> String {
    match bytes {
        u64::MAX => "no S".to_owned(),
        bytes => format!("S = {bytes} B"),
    }
}
