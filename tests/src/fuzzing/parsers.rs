//! What is read is written and read again, and has to be the same.

use loggap::profile::ProfileDocument;
use loggap::samples::{self, Limits, Row, SampleReader};
use loggap_core::model::{Profile, compact};
use loggap_core::noise::{self, Detour, Trace};
use loggap_core::units::Picos;
use loggap_core::wire::ethernet::{self, EthernetFrame};
use loggap_core::wire::{FRAME_LEN, Message};

/// A control frame, and the same bytes as an Ethernet frame.
pub fn wire_frame(data: &[u8]) {
    if let Ok(message) = Message::parse(data) {
        let mut frame = [0; FRAME_LEN];
        message.emit(&mut frame);
        assert_eq!(Message::parse(&frame), Ok(message));
    }
    if let Ok(frame) = EthernetFrame::parse(data) {
        let mut again = vec![0; data.len().max(ethernet::MIN_FRAME)];
        let length = ethernet::emit([0xff; 6], frame.source(), frame.message(), &mut again);
        let length = length.expect("no longer than it was");
        let back = EthernetFrame::parse(&again[..length]).expect("ours");
        assert_eq!((back.source(), back.message()), (frame.source(), frame.message()));
    }
}

/// A noise trace, and what it costs operations where it is one.
pub fn noise_trace(data: &[u8]) {
    let mut detours = vec![Detour::default(); noise::count(data)];
    let Ok((found, length)) = noise::read(data, &mut detours) else { return };
    assert_eq!(found, detours.len());
    let Ok(trace) = Trace::new(&detours, length) else { return };
    let mut text = String::new();
    noise::write(&mut text, &detours, trace.length()).expect("a string takes all");
    let mut again = vec![Detour::default(); detours.len()];
    assert_eq!(noise::read(text.as_bytes(), &mut again), Ok((found, Some(trace.length()))));
    assert_eq!(again, detours);
    let (half, whole) = (Picos(trace.length().0 / 2), trace.length());
    for phase in [Picos::ZERO, half, whole] {
        let short = trace.lost(phase, half, half);
        assert!(short <= trace.lost(phase, half, whole), "more time loses no less");
        let _ = trace.lost(phase, Picos::MAX, Picos::MAX);
    }
}

/// A file of samples. The raw form is written again.
pub fn samples_csv(data: &[u8]) {
    let limits = Limits { samples: 1_000, line: 256 };
    let rounds = |data: &[u8]| {
        let mut reader = SampleReader::new(data, limits).ok()?;
        let mut rounds = vec![];
        while let Some(row) = reader.next_row().ok()? {
            if let Row::Round(sample) = row {
                rounds.push(sample);
            }
        }
        Some(rounds)
    };
    let Some(found) = rounds(data).filter(|found| !found.is_empty()) else { return };
    let mut text = vec![];
    samples::write(&mut text, &found).expect("memory takes all");
    assert_eq!(rounds(&text), Some(found));
}

/// A profile as `measure -o` writes it. The second text has to be as the
/// first: binary fractions of seconds are rounded once.
pub fn profile_json(data: &[u8]) {
    let Ok(document) = ProfileDocument::parse(data) else { return };
    let model = document.model().expect("was checked");
    let text = serde_json::to_vec(&document).expect("plain data");
    let again = ProfileDocument::parse(&text).expect("ours");
    assert_eq!(again.model().expect("was checked"), model);
    assert_eq!(serde_json::to_vec(&again).expect("plain data"), text);
    compact_and_back(&model);
}

/// A profile in few bytes.
pub fn profile_compact(data: &[u8]) {
    let Ok(profile) = compact::decode::<16>(data) else { return };
    compact_and_back(&profile);
}

fn compact_and_back(profile: &Profile) {
    let mut bytes = vec![0; compact::most_bytes(16)];
    let length = compact::encode(profile, &mut bytes).expect("the most that there is");
    assert_eq!(compact::decode(&bytes[..length]).as_ref(), Ok(profile));
}
