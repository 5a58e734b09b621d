//! Descriptions of a responder's environment, sent on request of the initiator.

use loggap_core::measure::{Clock, Initiator, Link, SessionError};
use loggap_core::wire::MAX_DESCRIPTION;
use serde::Serialize;

use crate::link::LinkFingerprint;
use crate::machine::clock::HostClock;
use crate::machine::environment::Fingerprint;
use crate::machine::near;
use crate::machine::placement::Cpu;

/// JSON text on the wire: a [`Fingerprint`] and fields that only the responder adds.
#[derive(Serialize)]
struct Description<'a> {
    #[serde(flatten)]
    fingerprint: &'a Fingerprint,
    /// Version of this program.
    version: &'static str,
    /// NUMA node of the link's device.
    interface_numa_node: Option<u32>,
}

/// Describes this end of `link`, served on processor `cpu`, as JSON of at most [`MAX_DESCRIPTION`]
/// bytes. A longer description is replaced by an empty text, which means none.
#[must_use]
pub fn describe(clock: &HostClock, link: LinkFingerprint, cpu: Option<Cpu>) -> String {
    let fingerprint = Fingerprint::take(clock, link, cpu);
    let interface_numa_node = near::node_of(&fingerprint.link);
    let version = env!("CARGO_PKG_VERSION");
    let description = Description { fingerprint: &fingerprint, version, interface_numa_node };
    let text = serde_json::to_string(&description).unwrap_or_default();
    if text.len() > MAX_DESCRIPTION { String::new() } else { text }
}

/// Requests the peer's environment; `None` if it sends none, as firmware does, or text of another
/// format.
///
/// # Errors
///
/// As [`Initiator::describe`]; the session is then over.
pub fn responder_fingerprint<C: Clock, L: Link>(
    session: &mut Initiator<'_, C, L>,
) -> Result<Option<Fingerprint>, SessionError<L::Error>> {
    let mut text = [0; MAX_DESCRIPTION];
    let length = session.describe(&mut text)?;
    let text = length.and_then(|length| text.get(..length)).unwrap_or_default();
    Ok(serde_json::from_slice(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{AnyLink, LinkSettings, UnixLink};
    use crate::serve::respond::respond;
    use loggap_core::measure::{Buffers, SessionOptions};
    use loggap_core::wire::Bounds;
    use std::ops::ControlFlow;
    use std::thread;

    #[test]
    fn an_initiator_gets_the_responders_fingerprint() {
        let (near, far) = UnixLink::pair(LinkSettings::default()).unwrap();
        let responder = thread::spawn(move || {
            let (clock, far) = (HostClock::monotonic_raw(), AnyLink::Unix(far));
            let text = describe(&clock, far.fingerprint(), Some(3));
            assert!((100..=MAX_DESCRIPTION).contains(&text.len()), "{text}");
            assert!(text.contains("\"version\"") && text.contains("interface_numa_node"));
            let fingerprint = Fingerprint::take(&clock, far.fingerprint(), Some(3));
            respond(&clock, far, Bounds::default(), &text).unwrap();
            fingerprint
        });
        let (mut outgoing, mut incoming) = ([0; 1_000], [0; 1_000]);
        let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
        let (clock, options) = (HostClock::monotonic_raw(), SessionOptions::default());
        let go_on = |_| ControlFlow::Continue(());
        let mut session = Initiator::connect(clock, near, buffers, options, go_on).unwrap();
        let found = responder_fingerprint(&mut session).unwrap();
        session.close().unwrap();
        let expected = responder.join().unwrap();
        let found = found.unwrap();
        assert_eq!((found.hostname, found.cpu), (expected.hostname, Some(3)));
        assert_eq!((found.kernel, found.link), (expected.kernel, expected.link));
    }
}
