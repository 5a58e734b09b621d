//! What is written is read again, whatever it is; what is cut or foreign is refused.

use std::vec::Vec;

use quickcheck::{Arbitrary, Gen, quickcheck};

use super::*;

/// Parts of a block. Names are few; everything else takes any value.
#[derive(Clone, Debug)]
struct Parts(Vec<Part<'static>>);

fn envelope(g: &mut Gen) -> Envelope {
    let bytes = [0, 8, u64::arbitrary(g)];
    Envelope {
        peer: i32::arbitrary(g),
        tag: *g.choose(&[0, 1, ANY_TAG, i32::MIN, i32::MAX]).unwrap(),
        bytes: *g.choose(&bytes).unwrap(),
        communicator: u32::arbitrary(g),
    }
}

fn part(g: &mut Gen) -> Part<'static> {
    let direction = *g.choose(&[Direction::Send, Direction::Receive]).unwrap();
    let mode =
        *g.choose(&[Mode::Standard, Mode::Buffered, Mode::Synchronous, Mode::Ready]).unwrap();
    let request = Option::arbitrary(g);
    match u8::arbitrary(g) % 14 {
        0 => Part::Name(g.choose(&["", "Send", "Neighbor_alltoallw", "é"]).unwrap()),
        1 => Part::Call {
            name: u32::arbitrary(g),
            enter: u64::arbitrary(g),
            leave: u64::arbitrary(g),
        },
        2 => Part::Message(Message { direction, mode, envelope: envelope(g), request }),
        3 => {
            let received = Outcome::Received(envelope(g));
            let outcomes = [Outcome::Done, received, Outcome::Cancelled, Outcome::Freed];
            let outcome = *g.choose(&outcomes).unwrap();
            Part::Completed(Completed { request: u64::arbitrary(g), outcome })
        }
        4 => Part::Collective(Collective {
            communicator: u32::arbitrary(g),
            root: Option::arbitrary(g),
            sent: u64::arbitrary(g),
            received: u64::arbitrary(g),
            in_place: bool::arbitrary(g),
            request,
        }),
        5 => Part::Each { direction, peers: u64::arbitrary(g), bytes: u64::arbitrary(g) },
        6 => Part::Probed(envelope(g)),
        7 => Part::Tests { name: u32::arbitrary(g), count: u64::arbitrary(g) },
        8 => Part::Loop { inside: u64::arbitrary(g), computing: u64::arbitrary(g) },
        9 => Part::Communicator { number: u32::arbitrary(g), freed: bool::arbitrary(g) },
        10 => Part::Define { number: u32::arbitrary(g), identity: u64::arbitrary(g) },
        11 => Part::Members {
            remote: bool::arbitrary(g),
            first: i32::arbitrary(g),
            stride: i32::arbitrary(g),
            count: u32::arbitrary(g),
        },
        12 => Part::Dimension { extent: u32::arbitrary(g), periodic: bool::arbitrary(g) },
        _ => Part::Neighbour { direction, peer: i32::arbitrary(g) },
    }
}

impl Arbitrary for Parts {
    fn arbitrary(g: &mut Gen) -> Self {
        Self((0..g.size()).map(|_| part(g)).collect())
    }
}

fn encoded(parts: &[Part<'_>], base: u64) -> Vec<u8> {
    let (mut encoder, mut bytes) = (Encoder::new(base), Vec::new());
    for part in parts {
        let mut one = [0; MAX_PART];
        let length = encoder.put(part, &mut one).unwrap();
        bytes.extend_from_slice(&one[..length]);
    }
    bytes
}

quickcheck! {
    fn what_is_written_is_read_again(parts: Parts, base: u64) -> bool {
        let bytes = encoded(&parts.0, base);
        let read: Vec<_> = Decoder::new(&bytes, base).map(Result::unwrap).collect();
        let header = BlockHeader::of(7, base, &bytes);
        let half = bytes.len() / 2;
        let compressed = BlockHeader::compressed(7, base, u32::try_from(2 * half).unwrap(), &bytes[..half]);
        let file = FileHeader { run: base, rank: 3, ranks: 4 };
        read == parts.0
            && BlockHeader::parse(&header.emit()) == Ok(header)
            && header.fits(&bytes)
            && BlockHeader::parse(&compressed.emit()) == Ok(compressed)
            && compressed.fits(&bytes[..half])
            && FileHeader::parse(&file.emit()) == Ok(file)
    }

    fn any_bytes_are_read_to_an_end(bytes: Vec<u8>, base: u64) -> bool {
        let errors = Decoder::new(&bytes, base).filter(Result::is_err).count();
        let _ = (BlockHeader::parse(&bytes), FileHeader::parse(&bytes));
        errors <= 1
    }
}

#[test]
fn repeated_messages_take_few_bytes() {
    let envelope = Envelope { peer: 1, tag: 7, bytes: 65_536, communicator: 0 };
    let (direction, mode) = (Direction::Send, Mode::Standard);
    let exchange = |n: u64| {
        let message = Message { direction, mode, envelope, request: Some(n) };
        [
            Part::Call { name: 0, enter: 10_000 * n, leave: 10_000 * n + 900 },
            Part::Message(message),
            Part::Call { name: 1, enter: 10_000 * n + 1_000, leave: 10_000 * n + 9_000 },
            Part::Completed(Completed { request: n, outcome: Outcome::Done }),
        ]
    };
    let parts: Vec<_> = (1..=1_000).flat_map(exchange).collect();
    let bytes = encoded(&parts, 0);
    // Two records of 5 and of 2 and 1 bytes more.
    assert!(bytes.len() <= 13 * 1_000 + 20, "{}", bytes.len());
}

#[test]
fn what_is_cut_or_foreign_is_refused_with_its_place() {
    let header = FileHeader { run: 1, rank: 0, ranks: 2 }.emit();
    let error = |bytes: &[u8]| FileHeader::parse(bytes).unwrap_err();
    assert_eq!(error(&header[..20]).kind, ParseErrorKind::Truncated);
    assert_eq!(error(b"not a trace").kind, ParseErrorKind::Magic);
    let mut newer = header;
    newer[16] = 9;
    assert_eq!(error(&newer), ParseError { at: 16, kind: ParseErrorKind::Version(9) });
    for (length, stored, is_taken) in
        [(1 << 20, 1, true), ((1 << 20) + 1, 1, false), (u32::MAX, u32::MAX, true), (3, 4, false)]
    {
        let block = BlockHeader { thread: 0, length, stored, checksum: 0, base: 0 };
        let refused = ParseError { at: 8, kind: ParseErrorKind::Value("length") };
        let expected = if is_taken { Ok(block) } else { Err(refused) };
        assert_eq!(BlockHeader::parse(&block.emit()), expected);
    }
    let bytes = encoded(&[Part::Call { name: 3, enter: 1, leave: 500 }], 0);
    let cut = Decoder::new(&bytes[..2], 0).next().unwrap().unwrap_err();
    assert_eq!(cut, ParseError { at: 2, kind: ParseErrorKind::Truncated });
    let mut other = bytes.clone();
    other[0] ^= 1;
    assert!(!BlockHeader::of(0, 0, &bytes).fits(&other));
}
