//! The responder's state machine before an initiator that does anything.

use super::Numbers;
use loggap_core::measure::{LinkProperties, ResponderState};
use loggap_core::units::{Bytes, Picos};
use loggap_core::wire::{
    Bounds, DescriptionRequest, FRAME_LEN, Hello, Message, ReplyPolicy, Round, Rounds, Versions,
    tag_of,
};

/// Longest message that the responder under test allows.
const LONGEST: u32 = 600;
/// What a stranger has to echo.
const NONCE: u64 = 0x5eed;

/// The responder under any stream of frames, data, silence and time.
pub fn responder_state(data: &[u8]) {
    let mut input = Numbers(data);
    let flags = input.byte();
    let reliable = flags & 1 == 0;
    let nonce = if flags & 2 == 0 { 0 } else { NONCE };
    let description: &[u8] = if flags & 4 == 0 { b"" } else { b"a machine" };
    let bounds = Bounds { message: LONGEST, messages: 40, ..Bounds::default() };
    let properties =
        LinkProperties { reliable, ..LinkProperties::reliable(Bytes(u64::from(LONGEST))) };
    let mut responder = ResponderState::with(bounds, properties, nonce, description);
    let mut stranger = nonce != 0 && !reliable;
    let mut outgoing = vec![0; LONGEST as usize];
    let mut now = Picos::ZERO;
    while !input.is_empty() {
        now = Picos(now.0.saturating_add(input.long()));
        let before = responder.served().replied;
        let message = message(&mut input, responder.awaited().length);
        match input.below(8) {
            0 => responder.handle_time(now),
            1 => return, // silence
            2 if responder.awaited().timed => {
                responder.handle_timed(now);
                responder.handle(now, &message);
            }
            3 => {
                if let Some(burst) = responder.burst() {
                    responder.handle_burst(burst.messages);
                }
            }
            _ => responder.handle(now, &message),
        }
        let first = responder.poll_transmit(&mut outgoing).unwrap_or_default();
        if stranger && first > 0 {
            assert!(first <= message.len(), "more than a stranger has sent");
            let sent = Message::parse(&outgoing).unwrap();
            stranger = !matches!(sent, Message::Welcome(_));
            let echoed =
                matches!(Message::parse(&message), Ok(Message::Hello(h)) if h.nonce == NONCE);
            assert!(stranger || echoed, "a stranger is welcomed");
        }
        assert!(first <= LONGEST as usize && responder.awaited().length <= LONGEST as usize);
        assert!(responder.reply_length() <= LONGEST as usize);
        assert!(responder.served().replied <= before + 1, "one reply for one message");
        assert!(responder.poll_transmit(&mut outgoing).is_none_or(|length| length == FRAME_LEN));
        assert_eq!(responder.poll_transmit(&mut outgoing), None);
        if responder.ending().is_some() {
            return;
        }
    }
}

/// A message that gets far, or raw bytes.
fn message(input: &mut Numbers<'_>, expected: usize) -> Vec<u8> {
    let message = match input.below(7) {
        0 => {
            let capabilities = input.word();
            let nonce = if capabilities & 2 == 0 { 0 } else { NONCE };
            let bounds = Bounds { message: input.word(), ..Bounds::default() };
            Message::Hello(Hello { versions: Versions::OURS, capabilities, bounds, nonce })
        }
        1 => Message::Batch { sequence: input.word(), rounds: rounds(input) },
        2 => Message::Sync { token: input.word() },
        3 => {
            let mut data = vec![input.byte(); expected];
            data[0] = tag_of(u32::from(input.byte()));
            return data;
        }
        4 => Message::Bye,
        6 => {
            let mut frame = [0; FRAME_LEN];
            DescriptionRequest { offset: input.byte().into() }.emit(&mut frame);
            return frame.to_vec();
        }
        _ => {
            let length = usize::from(input.short()) % 200;
            return (0..length).map(|_| input.byte()).collect();
        }
    };
    let mut frame = [0; FRAME_LEN];
    message.emit(&mut frame);
    frame.to_vec()
}

fn rounds(input: &mut Numbers<'_>) -> Rounds {
    let mut rounds = Rounds::new();
    for _ in 0..input.below(9) {
        let flags = input.byte();
        let _ = rounds.push(Round {
            messages: u32::from(input.below(50)),
            size: u32::from(input.short()) % (LONGEST + 2),
            reply_size: u32::from(input.short()) % (LONGEST + 2),
            policy: if flags & 1 == 0 { ReplyPolicy::AfterLast } else { ReplyPolicy::AfterEach },
            timed: flags & 2 != 0,
            repeats: u16::from(input.below(5)),
            pause: Picos(if flags & 4 == 0 { 0 } else { input.long() }),
        });
    }
    rounds
}
