//! What is read is written and read again, and has to be the same.

use loggap::decimal;
use loggap::flags::parse;
use loggap::samples::{self, Limits, Row, SampleReader, TimedSample};
use loggap::trace::RankTrace;
use loggap::trace::convert::{Conversion, Input, Options, Strictness};
use loggap::trace::liballprof::RankText;
use loggap_core::goal::pattern::Pattern;
use loggap_core::goal::stats::Counter;
use loggap_core::noise::{self, Detour, Trace};
use loggap_core::trace::{BlockHeader, DEFINITIONS, Decoder, Encoder, FileHeader, MAX_PART};
use loggap_core::units::Picos;
use loggap_core::wire::ethernet::{self, EthernetFrame};
use loggap_core::wire::{FRAME_LEN, Message, ParseErrorKind};

/// A control frame, and the same bytes as an Ethernet frame.
pub fn wire_frame(data: &[u8]) {
    frame(data);
    let mut repaired = data.to_vec();
    repair_checksum(&mut repaired);
    frame(&repaired);
}

/// Gives a frame the checksum that it should have: nearly all changed ones
/// would be refused for it, and nothing behind it be reached.
pub(super) fn repair_checksum(frame: &mut [u8]) {
    const CHECKSUM_AT: usize = 12;
    if let Err(error) = Message::parse(frame)
        && let ParseErrorKind::Checksum { computed, .. } = error.kind
        && let Some(place) = frame.get_mut(CHECKSUM_AT..).and_then(<[u8]>::first_chunk_mut)
    {
        *place = computed.to_le_bytes();
    }
}

fn frame(data: &[u8]) {
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

/// The file of a traced rank: as it is, and as the parts of blocks whose checksums are right.
pub fn trace(data: &[u8]) {
    let header = FileHeader { run: 1, rank: 0, ranks: 1 }.emit();
    let block = |thread| [&BlockHeader::of(thread, 9, data).emit(), data].concat();
    let blocks = [&header[..], &block(DEFINITIONS), &block(0), &block(1)].concat();
    let calls = [&header[..], &block(0), &block(1)].concat();
    for file in [data.to_vec(), blocks, calls] {
        if let Ok(rank) = RankTrace::parse("0.trace".into(), file) {
            let errors = rank.records().filter(Result::is_err).count();
            assert!(errors <= 2, "a thread has records behind an error");
            let members = rank.communicators().values().map(|comm| comm.members().take(3).count());
            assert!(members.sum::<usize>() <= 3 * rank.communicators().len());
        }
    }
    let parts: Vec<_> = Decoder::new(data, 9).map_while(Result::ok).collect();
    let (mut encoder, mut again) = (Encoder::new(9), Vec::new());
    for part in &parts {
        let mut bytes = [0; MAX_PART];
        let length = encoder.put(part, &mut bytes).expect("room for a part");
        again.extend_from_slice(&bytes[..length]);
    }
    let read: Vec<_> = Decoder::new(&again, 9).map(|part| part.expect("a part")).collect();
    assert_eq!(read, parts);
}

/// A text of liballprof, read in both ways, and what becomes of it.
pub fn liballprof(data: &[u8]) {
    let text = || RankText::of("rank-0.txt".into(), data.to_vec(), 0, 2);
    assert!(text().records(Strictness::Strict).filter(Result::is_err).count() <= 1);
    assert!(text().records(Strictness::Lenient).all(|record| record.is_ok()));
    let options = Options { strictness: Strictness::Lenient, ..Options::default() };
    let other = RankText::of("rank-1.txt".into(), Vec::new(), 1, 2);
    let conversion = Conversion::new(Input::Liballprof(vec![text(), other]), options);
    let mut counter = Counter::new(&mut []);
    conversion.feed(&mut counter).expect("a lenient conversion takes all");
    counter.finish().expect("all ranks");
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
    let timed =
        found.iter().map(|sample| TimedSample { sample: *sample, launch: 0, time: Picos::ZERO });
    let timed: Vec<TimedSample> = timed.collect();
    samples::write(&mut text, &timed, &[]).expect("memory takes all");
    assert_eq!(rounds(&text), Some(found));
}

/// A word of the command line, read as each kind of argument.
pub fn argument(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    // A list in a file is read as one on the command line.
    if let Some(sizes) = (!text.starts_with('@')).then(|| parse::sizes(text)).and_then(Result::ok) {
        let list = sizes.list();
        assert!(list.is_sorted_by(|a, b| a < b) && !list.is_empty());
        assert_eq!((list.first(), list.last()), (Some(&sizes.first()), Some(&sizes.last())));
        let words: Vec<String> = list.iter().map(u64::to_string).collect();
        assert_eq!(parse::sizes(&words.join(",")).expect("ours").list(), list);
    }
    if let Ok(size) = parse::size(text) {
        assert_eq!(parse::size(&size.to_string()).expect("ours"), size);
    }
    if let Ok(time) = parse::time(text) {
        assert_eq!(parse::time(&decimal::fixed(u128::from(time.0), 3)), Ok(time));
    }
    if let Ok(seed) = parse::seed(text) {
        assert_eq!(parse::seed(&format!("{seed:#x}")), Ok(seed));
    }
    if let Ok(ppm) = parse::percent(text) {
        assert_eq!(parse::percent(&(decimal::fixed(u128::from(ppm), 4) + "%")), Ok(ppm));
    }
    if let Ok(time) = parse::duration(text) {
        assert_eq!(parse::duration(&format!("{}ns", time.as_nanos())), Ok(time));
    }
    let _ = parse::time_per_byte(text);
    if let Ok(time) = decimal::picos(text) {
        assert_eq!(decimal::picos(&decimal::seconds(time)), Ok(time));
    }
    if let Ok(pattern) = text.parse::<Pattern>() {
        assert_eq!(pattern.name().parse(), Ok(pattern));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_frame_is_no_longer_refused_for_its_checksum() {
        let mut frame = [0; FRAME_LEN];
        Message::Ready { sequence: 7 }.emit(&mut frame);
        for at in 16..FRAME_LEN {
            let mut changed = frame;
            changed[at] ^= 1;
            repair_checksum(&mut changed);
            let refused = Message::parse(&changed).err().map(|error| error.kind);
            assert!(!matches!(refused, Some(ParseErrorKind::Checksum { .. })), "byte {at}");
        }
    }
}
