//! Profiles, as documents and in few bytes.

use loggap::profile::{ProfileDocument, logp_test};
use loggap_core::model::{Profile, Prtt, compact};
use loggap_core::units::{Bytes, Picos};

/// A profile as `measure -o` writes it. The second text has to be as the
/// first: binary fractions of seconds are rounded once.
pub fn profile_json(data: &[u8]) {
    let Ok(document) = ProfileDocument::parse(data) else { return };
    let model = document.model().expect("was checked");
    let text = serde_json::to_vec(&document).expect("plain data");
    let again = ProfileDocument::parse(&text).expect("ours");
    assert_eq!(again.model().expect("was checked"), model);
    assert_eq!(serde_json::to_vec(&again).expect("plain data"), text);
    as_logp_test_and_back(&document);
    compact_and_back(&model);
    ask(&model);
}

/// Writes pLogP's parameters as logp_test does; what can be read of that is written the same.
fn as_logp_test_and_back(document: &ProfileDocument) {
    let written = |document: &ProfileDocument| {
        let mut text = Vec::new();
        logp_test::write(&mut text, document).expect("memory takes all");
        text
    };
    let Ok(read) = ProfileDocument::parse(&written(document)) else { return };
    let again = ProfileDocument::parse(&written(&read)).expect("ours");
    assert_eq!(written(&again), written(&read));
}

/// A profile in few bytes: as they are, and with the checksum that they
/// should have, which no fuzzer guesses. A profile has one encoding only.
pub fn profile_compact(data: &[u8]) {
    assert!(compact::decode::<16>(data).is_err() || is_summed(data), "a wrong sum is refused");
    let data = summed(data);
    let Ok(profile) = compact::decode::<16>(&data) else { return };
    assert_eq!(compact_and_back(&profile), data);
    ask(&profile);
}

/// Whether the last four bytes are the FNV-1a of those before.
fn is_summed(data: &[u8]) -> bool {
    summed(data) == data
}

/// `data` with its last four bytes set to the FNV-1a of those before.
fn summed(data: &[u8]) -> Vec<u8> {
    let body = &data[..data.len().saturating_sub(4)];
    let step = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let sum = body.iter().fold(0x811c_9dc5, step);
    [body, &sum.to_le_bytes()].concat()
}

fn compact_and_back(profile: &Profile) -> Vec<u8> {
    let mut bytes = vec![0; compact::most_bytes(16)];
    let length = compact::encode(profile, &mut bytes).expect("the most that there is");
    bytes.truncate(length);
    assert_eq!(compact::decode(&bytes).as_ref(), Ok(profile));
    bytes
}

/// Asks a profile for everything that it can tell, at its ends and in its
/// middle. A prediction lies in its own interval.
pub(super) fn ask(profile: &Profile) {
    for range in &profile.ranges {
        let set = range.loggops(Bytes(u64::MAX));
        let middle = Bytes(range.first.0.midpoint(range.last.0));
        for size in [Bytes(0), range.first, middle, range.last, Bytes(u64::MAX)] {
            let _ = profile.alternative(size);
            let _ = profile.predict_one_way(size);
            for messages in [0, 1, 2, u32::MAX] {
                let prtt = Prtt { messages, delay: Picos(range.last.0), size };
                if let Ok(found) = profile.predict_prtt(prtt) {
                    assert!(found.low <= found.value && found.value <= found.high, "{found:?}");
                }
            }
            if let Ok(set) = set {
                let _ = (set.gap_at(size), set.overhead_at(size), set.one_way(size));
            }
        }
    }
    let _ = profile.converged();
}
