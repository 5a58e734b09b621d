//! Round trips of frames, and parsing of arbitrary bytes.

use super::*;
use crate::units::Picos;
use quickcheck::{Arbitrary, Gen, quickcheck};
use std::string::ToString;
use std::vec::Vec;

impl Arbitrary for Bounds {
    fn arbitrary(g: &mut Gen) -> Self {
        Self {
            message: u32::arbitrary(g),
            messages: u32::arbitrary(g),
            rounds: u32::arbitrary(g),
            pause: Picos(u64::arbitrary(g)),
            silence: Picos(u64::arbitrary(g)),
            session: Picos(u64::arbitrary(g)),
        }
    }
}

impl Arbitrary for Round {
    fn arbitrary(g: &mut Gen) -> Self {
        let timed = bool::arbitrary(g);
        Self {
            messages: u32::arbitrary(g).max(1),
            size: u32::arbitrary(g).max(1),
            reply_size: u32::arbitrary(g).max(1),
            policy: *g.choose(&[ReplyPolicy::AfterLast, ReplyPolicy::AfterEach]).unwrap(),
            timed,
            repeats: if timed { 1 } else { u16::arbitrary(g).max(1) },
            pause: Picos(u64::arbitrary(g)),
        }
    }
}

fn versions(g: &mut Gen) -> Versions {
    let (a, b) = (u8::arbitrary(g), u8::arbitrary(g));
    Versions { lowest: a.min(b), highest: a.max(b) }
}

fn refusal(g: &mut Gen) -> Refusal {
    match u8::arbitrary(g) % 5 {
        0 => Refusal::Version { initiator: versions(g), responder: versions(g) },
        1 => Refusal::Busy { waiting: u64::arbitrary(g) },
        2 => Refusal::Bounds {
            what: *g.choose(&Limited::ALL).unwrap(),
            asked: u64::arbitrary(g),
            allowed: u64::arbitrary(g),
        },
        3 => Refusal::OutOfOrder { kind: u8::arbitrary(g) },
        _ => Refusal::Malformed { at: u64::arbitrary(g) },
    }
}

fn list<T: Arbitrary>(g: &mut Gen) -> heapless::Vec<T, ROUNDS_PER_BATCH> {
    let count = 1 + usize::arbitrary(g) % ROUNDS_PER_BATCH;
    (0..count).map(|_| T::arbitrary(g)).collect()
}

impl Arbitrary for Message {
    fn arbitrary(g: &mut Gen) -> Self {
        let sequence = u32::arbitrary(g);
        let capabilities = u32::arbitrary(g);
        let bounds = Bounds::arbitrary(g);
        match u8::arbitrary(g) % 11 {
            0 => {
                let nonce = u64::arbitrary(g);
                Self::Hello(Hello { versions: versions(g), capabilities, bounds, nonce })
            }
            1 => Self::Welcome(Welcome { version: u8::arbitrary(g), capabilities, bounds }),
            2 => Self::Refuse(refusal(g)),
            3 => Self::Queue { position: sequence },
            4 => Self::Batch { sequence, rounds: list(g) },
            5 => Self::Ready { sequence },
            6 => {
                let values = list::<u64>(g).into_iter().map(Picos).collect();
                Self::Report { sequence, values }
            }
            7 => Self::Sync { token: sequence },
            8 => {
                let (received, replied) = (u64::arbitrary(g), u64::arbitrary(g));
                Self::Synced { token: sequence, received, replied }
            }
            9 => Self::Challenge { nonce: u64::arbitrary(g) },
            _ => Self::Bye,
        }
    }
}

quickcheck! {
    fn every_message_is_read_as_it_was_written(message: Message) -> bool {
        let mut frame = [0; FRAME_LEN];
        message.emit(&mut frame);
        Message::parse(&frame).as_ref() == Ok(&message)
    }

    fn a_changed_byte_never_passes_for_the_message(message: Message, at: usize, flip: u8) -> bool {
        let mut frame = [0; FRAME_LEN];
        message.emit(&mut frame);
        let used = HEADER_LEN + usize::from(u16::from_le_bytes([frame[6], frame[7]]));
        frame[at % used] ^= flip.max(1);
        Message::parse(&frame).is_err()
    }

    fn arbitrary_bytes_are_rejected_with_a_place(bytes: Vec<u8>) -> bool {
        Message::parse(&bytes).is_err_and(|error| error.at <= bytes.len())
    }
}

#[test]
fn a_torn_frame_says_how_much_is_missing() {
    let mut frame = [0; FRAME_LEN];
    Message::Bye.emit(&mut frame);
    let error = ParseError { at: 100, kind: ParseErrorKind::Truncated(FRAME_LEN - 100) };
    assert_eq!(Message::parse(&frame[..100]), Err(error));
}

#[test]
fn bounds_on_times_are_told_with_units() {
    let told = |what, asked, allowed| Refusal::Bounds { what, asked, allowed }.to_string();
    assert_eq!(
        told(Limited::Session, 3_601_500_000_000_000, 3_600_000_000_000_000),
        "a session of 3601.500 s: the responder allows 3600.000 s"
    );
    assert_eq!(
        told(Limited::Message, 8 << 20, 4 << 20),
        "8388608 bytes in a message: the responder allows 4194304"
    );
}
