//! Changes of protocol and of slope, as sentences.

use loggap_core::model::Parameter;

use super::number;
use crate::profile::{ChangeRecord, ProfileDocument};

/// One sentence per change of protocol, one for all small changes, and one for all bends.
pub(super) fn sentences(document: &ProfileDocument) -> Vec<String> {
    let (large, small): (Vec<_>, Vec<_>) =
        document.changes.iter().partition(|change| change.splits);
    let mut lines: Vec<String> = large.iter().map(|change| protocol(change)).collect();
    if lines.is_empty() {
        lines.push("no change of protocol found".to_owned());
    }
    if !small.is_empty() {
        let each = small.iter().map(|change| {
            format!("{}: {}", number::size(change.at_bytes), jump(change).unwrap_or_default())
        });
        lines.push(format!("small changes: {}", each.collect::<Vec<_>>().join(", ")));
    }
    let begins = document.ranges.iter().skip(1).map(|record| record.range.first.0);
    let bends = begins.filter(|size| !large.iter().any(|change| change.at_bytes == *size));
    let bends: Vec<String> = bends.map(number::size).collect();
    if !bends.is_empty() {
        lines.push(format!("bends without a jump: {}", bends.join(", ")));
    }
    lines
}

fn protocol(change: &ChangeRecord) -> String {
    let ChangeRecord { at_bytes, lo_bytes, hi_bytes, .. } = change;
    let mut text = format!("change of protocol at {}", number::size(*at_bytes));
    if lo_bytes < hi_bytes {
        let (low, high) = (number::size(*lo_bytes), number::size(*hi_bytes));
        text += &format!(" (between {low} and {high})");
    }
    if let Some(jump) = jump(change) {
        text += &format!(": {jump}");
    }
    if let Some(setting) = &change.setting {
        text += &format!("; {setting}");
    }
    text
}

/// Jump such as `+18% half round trip`; `None` if unknown.
fn jump(change: &ChangeRecord) -> Option<String> {
    let named = |parameter: &Parameter| parameter.key() == change.parameter;
    let curve = Parameter::ALL.iter().find(|one| named(one));
    let curve = curve.map_or(&*change.parameter, |parameter| parameter.name());
    (change.jump.abs() > 0.0).then(|| format!("{} {curve}", number::signed_percent(change.jump)))
}
