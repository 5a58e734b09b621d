//! A preset as a profile, exact values without sizes.

use loggap_core::model::{Estimate, LogGops, Preset, Range, SizeLine};
use loggap_core::units::{Bytes, PerByte, Picos, SignedPerByte, SignedPicos};

use super::{ProfileDocument, RangeRecord, SCHEMA_VERSION};

/// Last size of the presets of short messages, which have no gap per byte: the four words of a
/// small Active Message.
const SHORT: Bytes = Bytes(16);
/// Last size of the others.
const LONG: Bytes = Bytes(65_536);

impl From<&Preset> for ProfileDocument {
    fn from(preset: &Preset) -> Self {
        let next = preset.protocols.iter().skip(1).map(|next| Some(Bytes(next.first.0 - 1)));
        let lasts = next.chain([None]);
        let ranges = preset.protocols.iter().zip(lasts).map(|(protocol, last)| {
            let set = &protocol.parameters;
            let is_short = set.gap_per_byte == PerByte::ZERO;
            let last = last.unwrap_or(if is_short { SHORT } else { LONG });
            RangeRecord::from(range(set, preset.ends, [protocol.first, last]))
        });
        Self {
            schema_version: SCHEMA_VERSION,
            transport: preset.name.to_owned(),
            method: "preset".to_owned(),
            ranges: ranges.collect(),
            ..Self::default()
        }
    }
}

/// Lines of `set`, on which half a round trip is `L + o_s + o_r + (s − 1)·(G + 2·O)`.
fn range(set: &LogGops, ends: Option<[Picos; 2]>, [first, last]: [Bytes; 2]) -> Range {
    let [send, receive] = ends.unwrap_or([set.overhead; 2]).map(signed);
    let latency = signed(set.latency);
    let slope = |of: PerByte| SignedPerByte(of.0.cast_signed());
    let [gap, overhead] = [set.gap_per_byte, set.overhead_per_byte].map(slope);
    let one_way = SignedPicos(latency.0 + send.0 + receive.0);
    Range {
        first,
        last,
        gap: SizeLine::exact(signed(set.gap), gap),
        half_rtt: Some(SizeLine::exact(one_way, SignedPerByte(gap.0 + 2 * overhead.0))),
        send_overhead: Some(SizeLine::exact(send, overhead)),
        recv_overhead: Some(SizeLine::exact(receive, overhead)),
        latency: Some(Estimate::exact(latency)),
    }
}

const fn signed(time: Picos) -> SignedPicos {
    SignedPicos(time.0.cast_signed())
}
