//! Heading of a report: the two ends, the link, and the effort of the run.

use super::number;
use crate::link::VerbsRecord;
use crate::machine::environment::Fingerprint;
use crate::profile::{ProfileDocument, Verdict};
use crate::serve::local::OWN_RESPONDER;

/// Verdict `unusable` with reason and remedy; `None` for usable results.
pub(super) fn unusable(document: &ProfileDocument) -> Option<String> {
    let reason = document.reason.as_ref().filter(|_| document.verdict == Verdict::Unusable)?;
    Some(format!("unusable: {reason}"))
}

/// Title of the document: both ends, transport and interface.
pub(super) fn title(document: &ProfileDocument) -> String {
    let Fingerprint { hostname, link, .. } = &document.host;
    if document.is_fit() {
        let of = if link.peer.is_empty() { "a file's values" } else { &link.peer };
        return format!("fit of {of}");
    }
    let there = match &document.responder {
        _ if is_to_itself(document) => "itself",
        Some(responder) if responder.hostname != *hostname => &responder.hostname,
        // Different machines or containers may have the same name.
        Some(_) | None => &link.peer,
    };
    let mut parts = vec![document.transport.clone()];
    if let Some(VerbsRecord { operation, here, there, .. }) = &link.verbs {
        parts = vec![format!("verbs {operation}"), format!("{} to {}", here.device, there.device)];
    }
    if let (Some(interface), Some(last)) = (&link.interface, parts.last_mut()) {
        last.push_str(&format!(" over {interface}"));
    }
    parts.extend(link.speed_bits_per_s.map(speed));
    let alignment = link.mpi.as_ref().and_then(|mpi| mpi.alignment);
    parts.extend(alignment.map(|alignment| alignment.to_string()));
    let rotated = link.mpi.as_ref().and_then(|mpi| mpi.rotated_bytes);
    parts.extend(rotated.map(|bytes| format!("rotating through {}", number::size(bytes))));
    parts.extend(link.mtu_bytes.map(|mtu| format!("MTU {mtu}")));
    format!("{hostname} to {there}: {}", parts.join(", "))
}

/// True if both ends ran on this machine: this command started the responder, or the peer's address
/// is reached over loopback. The host names must agree, too, as a forwarded port is on loopback as
/// well; names alone prove nothing.
fn is_to_itself(document: &ProfileDocument) -> bool {
    let Fingerprint { hostname, link, .. } = &document.host;
    let is_own = link.peer.starts_with(OWN_RESPONDER) || link.interface.as_deref() == Some("lo");
    let named_alike = |there: &Fingerprint| there.hostname == *hostname;
    is_own && document.responder.as_ref().is_some_and(named_alike)
}

fn speed(bits_per_s: u64) -> String {
    match bits_per_s / 1_000_000 {
        megabits if megabits % 1_000 == 0 => format!("{} Gb/s", megabits / 1_000),
        megabits => format!("{megabits} Mb/s"),
    }
}

/// Processors of both ends.
pub(super) fn ends(document: &ProfileDocument) -> Vec<String> {
    let here = &document.host;
    if here.hostname.is_empty() {
        return Vec::new();
    }
    match &document.responder {
        None => vec![processor(here)],
        Some(there) if is_to_itself(document) => {
            let number = |end: &Fingerprint| {
                end.cpu.map_or_else(|| "any".to_owned(), |number| number.to_string())
            };
            vec![format!("{}, cpu {} to cpu {}", model(here), number(here), number(there))]
        }
        Some(there) => {
            vec![format!("here:  {}", processor(here)), format!("there: {}", processor(there))]
        }
    }
}

fn processor(end: &Fingerprint) -> String {
    let cpu = end.cpu.map_or_else(|| "not pinned".to_owned(), |number| format!("cpu {number}"));
    format!("{}, {cpu}", model(end))
}

/// Model of the processor, shortened.
fn model(end: &Fingerprint) -> String {
    let name = end.cpu_model.as_deref().unwrap_or("unknown processor");
    let name = name.split('@').next().unwrap_or(name);
    let words = name.split_whitespace().map(|word| word.replace("(R)", "").replace("(TM)", ""));
    words.filter(|word| word != "CPU").collect::<Vec<_>>().join(" ")
}

/// Duration, messages, and the reason for the end of the run.
pub(super) fn effort(document: &ProfileDocument) -> String {
    if document.is_fit() {
        let samples: usize = document.sizes.iter().flat_map(|size| size.row.samples).sum();
        let (sizes, samples) = (document.sizes.len() as u64, number::count(samples as u64));
        let sizes = number::counted(sizes, "size");
        // Values of other tools have none.
        return if samples == "0" { sizes } else { format!("{samples} samples of {sizes}") };
    }
    let mut parts = vec![format!("{:.1} s", document.wall_s)];
    match document.launches {
        0 => {}
        1 => parts.push("1 launch".to_owned()),
        launches => parts.push(format!("{launches} launches")),
    }
    if document.history_runs > 0 {
        parts.push(format!("history of {}", number::counted(document.history_runs.into(), "run")));
    }
    parts.push(format!("{} messages", number::count(document.messages_sent)));
    parts.push(format!("{} lost", number::count(document.messages_lost)));
    if document.rounds_left_out * 100 >= document.rounds.max(1) {
        let percent = document.rounds_left_out * 100 / document.rounds.max(1);
        parts.push(format!("{percent}% of the rounds left out"));
    }
    let text = parts.join(", ");
    if document.incomplete.is_some() {
        text
    } else {
        format!("{text}; stopped: {}", document.stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;
    use crate::link::VerbsPort;

    #[test]
    fn a_link_over_verbs_is_named_by_operation_and_devices() {
        let mut document = fixtures::tcp();
        let end = |device: &str| VerbsPort { device: device.to_owned(), ..VerbsPort::default() };
        let record = VerbsRecord {
            operation: "write".to_owned(),
            here: end("mlx5_0"),
            there: end("mlx5_1"),
            ..VerbsRecord::default()
        };
        document.host.link.verbs = Some(record);
        document.host.link.interface = Some("ens1".to_owned());
        let text = title(&document);
        assert!(text.contains(": verbs write, mlx5_0 to mlx5_1 over ens1"), "{text}");
    }

    #[test]
    fn a_peer_is_this_machine_by_its_link_and_not_by_its_name() {
        let own = fixtures::shm();
        assert!(title(&own).starts_with("node1 to itself: "), "{}", title(&own));
        let mut alike = fixtures::tcp();
        "node1".clone_into(&mut alike.responder.as_mut().unwrap().hostname);
        assert!(title(&alike).starts_with("node1 to node7:5647: "), "{}", title(&alike));
        assert_eq!(ends(&alike).len(), 2);
        alike.host.link.interface = Some("lo".to_owned());
        assert!(title(&alike).starts_with("node1 to itself: "), "{}", title(&alike));
        let mut forwarded = fixtures::tcp();
        forwarded.host.link.interface = Some("lo".to_owned());
        assert!(title(&forwarded).starts_with("node1 to node7: "), "{}", title(&forwarded));
    }
}
