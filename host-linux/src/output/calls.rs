//! Durations of the calls of RDMA verbs, as sentences.

use super::number::{self, TIME};
use crate::link::CallTimes;
use crate::profile::ProfileDocument;

/// One sentence per size at which the calls were timed.
pub(super) fn sentences(document: &ProfileDocument) -> Vec<String> {
    let verbs = document.host.link.verbs.as_ref();
    verbs.map_or(&[][..], |verbs| &verbs.calls).iter().filter_map(sentence).collect()
}

/// One sentence; `None` if nothing was timed.
fn sentence(calls: &CallTimes) -> Option<String> {
    let parts = [
        ("build the request", calls.build_s),
        ("ibv_post_send", calls.doorbell_s),
        ("ibv_poll_cq of a completion", calls.completion_s),
    ];
    let parts = parts
        .into_iter()
        .filter_map(|(name, seconds)| Some(format!("{name} {}", number::in_units(seconds?, TIME))));
    let parts: Vec<_> = parts.collect();
    let size = number::size(calls.size_bytes.into());
    (!parts.is_empty()).then(|| format!("calls at {size}: {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::VerbsRecord;

    #[test]
    fn parts_of_calls_are_named_with_their_units_and_what_is_missing_is_left_out() {
        let mut document = ProfileDocument::default();
        assert!(sentences(&document).is_empty());
        let timed = CallTimes {
            size_bytes: 1,
            posts: 64,
            completions: 64,
            build_s: Some(12e-9),
            doorbell_s: Some(3.25e-6),
            completion_s: Some(41e-9),
        };
        let unseen = CallTimes { size_bytes: 4_096, completion_s: None, ..timed };
        let calls = vec![timed, unseen, CallTimes::default()];
        document.host.link.verbs = Some(VerbsRecord { calls, ..VerbsRecord::default() });
        assert_eq!(
            sentences(&document),
            [
                "calls at 1 B: build the request 12.0 ns, ibv_post_send 3.25 us, ibv_poll_cq of a completion 41.0 ns",
                "calls at 4 KiB: build the request 12.0 ns, ibv_post_send 3.25 us"
            ]
        );
    }
}
